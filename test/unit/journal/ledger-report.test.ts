/**
 * The completeness report compared with a second computation: the tests unpack and count the rows
 * of the SQLite file with independent code, and the service's list gives the expected counts.
 */
import { zstdDecompressSync } from 'node:zlib';
import type { Database } from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { ReportQuery } from '../../../src/journal/queries/ledger.ts';
import type { LedgerReport, LedgerReportSource } from '../../../src/model/ledger-report.ts';
import { byPeriod } from '../../../src/report/ledger/periods.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { base, between, collected, day, hour, minute, second, seeded } from '../../support/records.ts';
import { ages, world } from '../../support/collect/world.ts';
import { gap, lastAge, opened, pageOf, proven, source as sourceId, span } from '../../support/journal/opening.ts';

interface Raw {
  readonly seq: number;
  /** µs, undefined if it cannot be parsed. */
  readonly time: number | undefined;
  readonly received: number;
  readonly late: boolean;
}

/** Every record of the journal, from its rows alone. */
function rawRecords(db: Database): Raw[] {
  interface Segment {
    seq: number;
    n: number;
    kind: number;
    received_us: number;
    flags: Buffer;
    ends: Buffer;
    body: Buffer;
  }
  const rows = db.prepare<[], Segment>('SELECT * FROM segments WHERE kind % 256 = 1 ORDER BY seq').all();
  return rows.flatMap((row) => {
    const body = row.kind >= 256 ? zstdDecompressSync(row.body) : row.body;
    return Array.from({ length: row.n }, (_, i): Raw => {
      const text = body.toString('utf8', i === 0 ? 0 : row.ends.readUInt32LE(i * 4 - 4), row.ends.readUInt32LE(i * 4));
      const { logTimestamp } = JSON.parse(text) as { logTimestamp: string };
      const ms = Date.parse(`${logTimestamp.slice(0, 23)}Z`);
      const time = Number.isNaN(ms) ? undefined : ms * 1000 + Number(logTimestamp.slice(23));
      return { seq: row.seq + i, time, received: row.received_us, late: row.flags.length > 0 && (row.flags[i] ?? 0) % 2 === 1 };
    });
  });
}

function micros(time: string): number {
  return Date.parse(time) * 1000;
}

function only(report: LedgerReport): LedgerReportSource {
  const [source] = report.sources;
  if (!source || report.sources.length !== 1) throw new Error('the report has one source');
  return source;
}

// promise: The records, late records, delays and deliveries of the report equal a second count, in the file of the state and at a model of the service.
test(
  'the records, delays and deliveries of the report, counted a second time in the file and at the service',
  { timeout: 300_000 },
  async () => {
    const random = seeded(20_261_121);
    const it = await world({ after: 0, pageSize: 50 });
    const end = base + 40 * hour;
    for (let id = 1; id <= 700; id += 1) {
      const time = base + between(random, 0, 40 * 3_600_000) * 1000 + between(random, 0, 1000);
      const isLate = random() < 0.12;
      it.source.add(id, time, time + (isLate ? between(random, 20, 1_000) * minute : between(random, 0, 300) * second));
    }
    const { journal, source, closer, signal } = it;
    journal.sinkPositions.register('siem', 'file', 'a', { seq: 0, chain: new Uint8Array(32) }, undefined);
    let lakeFrom = 0;
    for (let at = base; at <= end; at += 15 * minute) {
      it.clock.wall += (at - source.now()) / 1000;
      while (await closer.closeNext(source.now(), signal));
      while (await closer.retry(source.now(), signal));
      if (lakeFrom === 0 && at >= base + 20 * hour) {
        lakeFrom = journal.head().seq;
        journal.sinkPositions.register('lake', 'file', 'b', journal.head(), undefined);
      }
      if (at === base + 30 * hour) {
        const acked = journal.head().seq;
        const entries = (await journal.read(0, { records: acked, bytes: 1e9 })).filter(({ kind }) => kind === 'record');
        const refused = [3, 50, 51, 200].map((i) => entries[i]).filter((entry) => entry !== undefined);
        const deadLetters = refused.map((entry) => ({ entry, rejection: { seq: entry.seq, code: '400', message: 'no' }, attempts: 1 }));
        await journal.acknowledge('siem', { acknowledged: acked, delivered: undefined }, deadLetters);
        await journal.acknowledge('lake', { acknowledged: acked, delivered: undefined }, []);
      }
    }
    // The last window is a gap: the service stops sending totals. Some records are in no window yet,
    // one of them without a readable time.
    source.switches.total = 'missing';
    it.clock.wall += 15 * 60_000;
    while (await closer.closeNext(source.now(), signal));
    source.switches.total = 'true';
    const now = source.now();
    const open = [collected(9_001, now - minute), collected(9_002, now - 2 * second), collected(9_003, undefined)];
    await journal.append(pageOf(open, { received: now, serverNow: now }));

    const db = it.beside();
    const recountAges = new Map([[sourceId, ages.map((age) => age / 1000)]]);
    const report = ledgerReport(db, { now, recountAges });
    const found = only(report);
    const raw = rawRecords(db);
    const within = (from: string, to: string): Raw[] =>
      raw.filter(({ time }) => time !== undefined && time >= micros(from) && time < micros(to));
    const delay = ({ received, time }: Raw): number => Math.max(0, received - (time ?? 0));

    expect(found.windows.length).toBeGreaterThan(100);
    expect(found.late).toBeGreaterThan(20);
    let unseen = 0;
    for (const window of found.windows) {
      const records = within(window.from, window.to);
      const late = records.filter((record) => record.late);
      unseen += records.length - window.records;
      expect([window.from, window.late, window.lateLongestSeconds]).toEqual([
        window.from,
        late.length,
        late.length === 0 ? null : Math.max(...late.map(delay)) / 1e6,
      ]);
      // Records from a neighbour's padding since the last count are not in this count yet.
      expect(window.records).toBeLessThanOrEqual(records.length);
      expect(window.records).toBeGreaterThanOrEqual(records.length - late.length);
      if (window.state !== 'gap') expect(window.received).toBe(window.total);
      const due = ages.filter((age) => window.nextRecount !== null && micros(window.to) + age >= micros(window.nextRecount));
      expect(window.recountsDue).toBe(window.state === 'gap' ? null : due.length);
      // The answers of the service to this query when it was last counted: all visible records.
      if (window.recounts === 0 && window.closedAt !== null) {
        const seen = source.matching({ query: window.query }, micros(window.closedAt));
        expect(window.total).toBe(seen.length);
      }
    }
    expect(unseen).toBeLessThanOrEqual(2);

    // Sums: windows to days, months, the source, and the total of all collected records.
    expect(found.collected).toBe(found.windows.reduce((sum, { records: own }) => sum + own, 0));
    expect(found.late).toBe(raw.filter(({ late }) => late).length);
    for (const by of ['day', 'month'] as const) {
      const periods = byPeriod(found.windows, by);
      const counts = new Map<string, number>();
      for (const { from, records: own } of found.windows) {
        const name = new Date(Date.parse(from)).toISOString().slice(0, by === 'day' ? 10 : 7);
        counts.set(name, (counts.get(name) ?? 0) + own);
      }
      expect(new Map(periods.map(({ name, records }) => [name, records]))).toEqual(counts);
      // A period counts the records between its first and its last window, except those not counted yet.
      for (const { from, to, records } of periods) expect(Math.abs(within(from, to).length - records)).toBeLessThanOrEqual(unseen);
    }
    const inNoWindow = raw.filter(({ time }) => time === undefined || time >= micros(found.readUntil ?? '')).length;
    expect(found.lifetime).toEqual({ collected: raw.length, inWindows: found.collected, outside: inNoWindow + unseen });
    expect(inNoWindow).toBe(3);
    const bounds = [hour, 6 * hour, day, 3 * day, 7 * day, 14 * day, 30 * day, Infinity];
    const delays = raw.filter(({ late }) => late).map(delay);
    expect(Object.values(found.lateDelays.within)).toEqual(
      bounds.map((bound, i) => delays.filter((d) => d <= bound && d > (bounds[i - 1] ?? -1)).length),
    );
    expect(found.lateDelays.longestSeconds).toBe(Math.max(...delays) / 1e6);

    // Sinks: the report's numbers for a sink lie between its start and its acknowledgement.
    const acked = new Map(
      db
        .prepare<[], { id: string; acknowledged: number }>('SELECT id, acknowledged FROM sinks')
        .all()
        .map((row) => [row.id, row.acknowledged]),
    );
    for (const { id, since, records, deadLetters, complete, windows } of found.sinks) {
      const begin = id === 'lake' ? lakeFrom : 0;
      let has = 0;
      for (const window of found.windows) {
        const claim = window.sinks[id];
        if (!claim?.complete) continue;
        const seqs = within(window.from, window.to).map(({ seq }) => seq);
        expect(
          seqs.every((seq) => seq > begin && seq <= (acked.get(id) ?? 0)),
          `${id} ${window.from}`,
        ).toBe(true);
        has += window.records - claim.deadLetters;
      }
      expect([id, since === null, records, deadLetters]).toEqual([id, id === 'siem', has, id === 'siem' ? 4 : 0]);
      expect(complete).toBeGreaterThan(10);
      expect(windows - complete).toBeGreaterThan(10);
      if (id === 'lake') expect(windows).toBeLessThan(found.windows.length);
    }
    expect([report.complete, report.final, found.windows.at(-1)?.state]).toEqual([false, false, 'gap']);
  },
);

test('time of the period that was due and is not in the ledger is named, and the period is neither complete nor final', async () => {
  const { journal, beside } = await opened();
  await journal.close(sourceId, span(0, 10), proven(), lastAge);
  await journal.close(sourceId, span(10, 20), proven(), lastAge);
  const at = (seconds: number): string => new Date((base + seconds * second) / 1000).toISOString().replace('.000Z', 'Z');
  // Of a source that is not configured 10 s are due after its close delay of 0 s.
  const ask = (from?: number, to?: number, now = 30): LedgerReport =>
    ledgerReport(beside(), {
      now: base + now * second,
      from: from === undefined ? undefined : base + from * second,
      to: to === undefined ? undefined : base + to * second,
    });
  expect(ask()).toMatchObject({
    complete: true,
    final: true,
    from: null,
    to: null,
    uncovered: [],
    sources: [{ covered: [{ from: at(0), to: at(20) }], startsAt: at(0) }],
  });
  expect(ask(0, 20)).toMatchObject({ complete: true, final: true, from: at(0), to: at(20) });
  const hole = (from: number, to: number, reason: string): unknown => ({ source: sourceId, from: at(from), to: at(to), reason });
  expect(ask(-60, 20)).toMatchObject({ complete: false, final: false, uncovered: [hole(-60, 0, 'before_ledger')] });
  expect(ask(15, 90)).toMatchObject({
    complete: true,
    final: false,
    uncovered: [],
    sources: [{ covered: [{ from: at(10), to: at(20) }] }],
  });
  expect(ask(15, 90, 31)).toMatchObject({ complete: false, final: false, uncovered: [hole(20, 21, 'behind')] });
  expect(ask(15, 90, 500)).toMatchObject({ complete: false, final: false, uncovered: [hole(20, 90, 'behind')] });
  expect(ask(-60, -30)).toMatchObject({
    complete: false,
    final: false,
    uncovered: [hole(-60, -30, 'before_ledger')],
    sources: [{ windows: [], covered: [] }],
  });
});

test('a configured source without a window is named, and nothing after its start is complete', async () => {
  const { journal, beside } = await opened();
  const [begun] = ledgerReport(beside(), { now: base + 20 * second }).sources;
  expect([begun?.startsAt === null, begun?.completeUntil]).toEqual([false, null]);
  await journal.close(sourceId, span(0, 10), proven(), lastAge);
  const ask = (start: number | undefined, query: ReportQuery = {}): unknown[] => {
    const configured = new Map([
      [sourceId, base],
      ['silent', start],
    ]);
    const { complete, final, sources } = ledgerReport(beside(), { now: base + 20 * second, configured, ...query });
    return [
      complete,
      final,
      sources.map(({ id, startsAt: begins, completeUntil, windows }) => [id, begins === null, completeUntil === null, windows.length]),
    ];
  };
  const both = [
    [sourceId, false, false, 1],
    ['silent', true, true, 0],
  ];
  // `start: now` is unknown before the first response.
  expect(ask(undefined)).toEqual([false, false, both]);
  expect(ask(base)).toEqual([false, false, both]);
  // Nothing of it is due yet.
  expect(ask(base, { now: base + 10 * second })).toEqual([true, false, both]);
  expect(ask(base, { to: base + 10 * second })).toEqual([false, false, both]);
  expect(ask(base, { source: 'silent' })).toEqual([false, false, both.slice(1)]);
  expect(ask(base, { source: sourceId })).toEqual([true, true, both.slice(0, 1)]);
  // The source without a ledger starts after the period, so no part of the period can be missing.
  expect(ask(base + 10 * second, { to: base + 10 * second })).toEqual([true, true, both]);
  expect(ask(base + 10 * second, { to: base + 11 * second })).toEqual([true, false, both]);
  expect(ask(base + 10 * second, { to: base + 11 * second, now: base + day })).toEqual([false, false, both]);
  expect(ask(base + day, { from: base - day, to: base - hour })).toEqual([false, false, both.map((each) => [...each.slice(0, 3), 0])]);
});

test('windows that a suspension for rows lists are in doubt in any period until the suspension has ended', async () => {
  const { journal, beside } = await opened();
  for (const i of [0, 1, 2, 3]) await journal.close(sourceId, span(i * 10, i * 10 + 10), proven(), lastAge);
  const at = (i: number): number => base + i * 10 * second;
  const suspension = { reason: 'rows' as const, message: 'fewer', since: base + day, windows: [at(3)], shrunk: [at(1)] };
  await journal.setSuspension(sourceId, suspension, base + day);
  const ask = (from?: number, to?: number): unknown[] => {
    const report = ledgerReport(beside(), { from, to });
    return [report.complete, report.final, only(report).windows.map(({ state, reason }) => [state, reason])];
  };
  const [whole, doubted] = [
    ['final', null],
    ['proven', 'reread'],
  ];
  expect(ask()).toEqual([false, false, [whole, doubted, whole, doubted]]);
  expect(ask(at(1), at(2))).toEqual([false, false, [doubted]]);
  expect(ask(at(2), at(3))).toEqual([true, true, [whole]]);
  await journal.setSuspension(sourceId, undefined, base + day);
  expect(ask()).toEqual([true, true, [whole, whole, whole, whole]]);
});

test('the report contains operations of the period and on its windows, and suspensions as the journal has them', async () => {
  const { journal, beside } = await opened();
  await journal.close(sourceId, span(0, 10), gap({ message: 'received 2, the service counted 3' }), lastAge);
  const db = beside();
  const insert = db.prepare('INSERT INTO operations (at_us, actor, operation, detail) VALUES (?, ?, ?, ?)');
  const accepted = { source: sourceId, from: base, to: base + 10 * second, gapReason: 'count', reason: 'ticket 4711', evidence: null };
  // A gap is accepted long after its time.
  insert.run(base + 40 * day, 'j.doe', 'gaps accept', JSON.stringify(accepted));
  insert.run(base + 40 * day, 'j.doe', 'gaps accept', JSON.stringify({ ...accepted, source: 'another' }));
  insert.run(base + 5 * second, null, 'reload', null);
  insert.run(base + 6 * second, 'x', 'reload', 'no JSON');
  insert.run(base + 50 * second, 'y', 'reload', null);
  const report = ledgerReport(db, { source: sourceId, to: base + 20 * second });
  expect(report.operations).toEqual([
    {
      ...{ at: '2026-12-30T02:00:00Z', actor: 'j.doe', operation: 'gaps accept' },
      detail: { source: sourceId, from: '2026-11-20T02:00:00Z', to: '2026-11-20T02:00:10Z', gapReason: 'count', reason: 'ticket 4711' },
    },
    { at: '2026-11-20T02:00:05Z', actor: null, operation: 'reload', detail: {} },
    { at: '2026-11-20T02:00:06Z', actor: 'x', operation: 'reload', detail: { message: 'no JSON' } },
  ]);
  expect(only(report).windows[0]).toMatchObject({
    ...{ state: 'gap', reason: 'count', message: 'received 2, the service counted 3' },
    ...{ received: 2, total: 3 },
  });
  expect(only(report).suspensions).toEqual([]);
  // A ledger entry about one instant: from = to.
  const segment = db.prepare(
    `INSERT INTO segments (seq, n, kind, source, min_us, max_us, received_us, flags, uids, ends, body, chain)
     VALUES (?, 1, 2, (SELECT source_no AS n FROM sources), ?, ?, ?, x'', x'', x'00', ?, x'00')`,
  );
  // A line with the same state changes the facts of the suspension.
  const changes = [
    ['suspended', 'gone'],
    ['suspended', 'gone, and one more'],
    ['active', 'gone, and one more'],
    ['suspended', 'gone again'],
  ];
  for (const [i, [state, message]] of changes.entries()) {
    const at = base + (i + 1) * second;
    const line = { ledger: 'suspension', source: sourceId, from: at, to: at, revision: 1, state, reason: 'fields', message };
    segment.run(99 + i, at, at, at, Buffer.from(JSON.stringify(line)));
  }
  expect(only(ledgerReport(db)).suspensions).toEqual([
    { at: '2026-11-20T02:00:01Z', event: 'suspended', reason: 'fields', message: 'gone' },
    { at: '2026-11-20T02:00:02Z', event: 'changed', reason: 'fields', message: 'gone, and one more' },
    { at: '2026-11-20T02:00:03Z', event: 'active', reason: 'fields', message: 'gone, and one more' },
    { at: '2026-11-20T02:00:04Z', event: 'suspended', reason: 'fields', message: 'gone again' },
  ]);
  expect(only(ledgerReport(db, { from: base + 5 * second })).suspensions).toEqual([]);
});

test('a sink has requested history only if it was requested for it, and after it started', async () => {
  const { journal, beside } = await opened();
  for (const id of ['siem', 'lake', 'young'])
    journal.sinkPositions.register(id, 'file', id, { seq: 0, chain: new Uint8Array(32) }, undefined);
  const db = beside();
  db.prepare("UPDATE sinks SET begun_us = ?, acknowledged = 100 WHERE id <> 'young'").run(base);
  db.prepare("UPDATE sinks SET begun_us = ?, acknowledged = 100 WHERE id = 'young'").run(base + 2 * hour);
  const range = db.prepare(
    'INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us, backfill) VALUES (1, ?, ?, ?, 0, ?)',
  );
  const window = db.prepare(
    "INSERT INTO windows (source, from_us, to_us, query, state, records, closed_us, seq) VALUES (1, ?, ?, '{}', 'proven', 1, 0, 1)",
  );
  for (const [hours, order] of [
    [3, { asked: base + hour, paused: false }],
    [2, { asked: base + hour, paused: false, sinks: ['lake'] }],
    [1, { asked: base + 3 * hour, paused: false }],
  ] as const) {
    range.run(base - hours * hour, base - (hours - 1) * hour, base - (hours - 1) * hour, JSON.stringify(order));
    window.run(base - hours * hour, base - (hours - 1) * hour);
  }
  window.run(base, base + hour);
  expect(only(ledgerReport(db)).windows.map(({ sinks }) => Object.keys(sinks))).toEqual([
    ['lake', 'siem'],
    ['lake'],
    ['lake', 'siem', 'young'],
    ['lake', 'siem'],
  ]);
});
