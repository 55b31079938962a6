/**
 * The coverage of a ledger and the obligations of sinks, for rows written by the test: each number
 * can be counted by hand.
 */
import type { Database } from 'better-sqlite3';
import { expect, test } from 'vitest';
import { coverageOf } from '../../../src/journal/queries/coverage.ts';
import { owingSinks, type CoverageQuery } from '../../../src/journal/queries/owed.ts';
import { gapsOf } from '../../../src/journal/queries/gaps.ts';
import { recentWindows } from '../../../src/journal/queries/recent.ts';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import { suspendedTogether } from '../../../src/journal/queries/suspensions.ts';
import { unacknowledged } from '../../../src/journal/queries/sink-coverage.ts';
import type { Coverage } from '../../../src/model/snapshot.ts';
import type { Micros } from '../../../src/model/time.ts';
import { byPeriod } from '../../../src/report/ledger/periods.ts';
import { tallyOf } from '../../../src/report/ledger/tally.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { base, collected, hour, second } from '../../support/records.ts';
import { opened, pageOf, source } from '../../support/journal/opening.ts';

const width = 10 * second;

/**
 * Ten windows of ten seconds; the sixth is a gap, the seventh accepted, the eighth in doubt, the
 * ninth due for a recount.
 */
async function ledger(): Promise<{
  db: Database;
  at: (i: number) => Micros;
  of: (query?: CoverageQuery, held?: ReadonlySet<Micros>) => Coverage;
}> {
  const { journal, beside } = await opened();
  for (const id of ['siem', 'lake']) journal.sinkPositions.register(id, 'file', id, { seq: 0, chain: new Uint8Array(32) }, undefined);
  // Entries 1 to 3, and 4 to 6, on two pages.
  await journal.append(pageOf([collected(1, base + second), collected(2, base + width), collected(3, base + width + second)]));
  await journal.append(
    pageOf([collected(4, base + 3 * width), collected(5, base + 3 * width + second), collected(6, base + 5 * width - second)]),
  );
  const db = beside();
  const at = (i: number): Micros => base + i * width;
  const insert = db.prepare(
    "INSERT INTO windows (source, from_us, to_us, query, state, records, closed_us, seq, reason, next_us) VALUES (1, ?, ?, '{}', ?, 1, 0, 0, ?, ?)",
  );
  const states = [
    null,
    null,
    null,
    null,
    null,
    ['gap', 'count', 1],
    ['accepted', 'count', null],
    ['proven', 'reread', null],
    ['proven', null, 5],
    null,
  ] as const;
  for (const [i, row] of states.entries()) insert.run(at(i), at(i + 1), ...(row ?? ['proven', null, null]));
  db.prepare('UPDATE ranges SET closed_until_us = ?').run(at(10));
  db.prepare('UPDATE sinks SET acknowledged = 6').run();
  return { db, at, of: (query, held) => coverageOf(db, { n: 1, id: source }, owingSinks(db), held, query) };
}

test('windows by state, and what is final', async () => {
  const { at, of } = await ledger();
  expect(of()).toMatchObject({
    ...{ startsAt: base, liveFrom: base, history: [], read: [{ from: at(0), to: at(10) }] },
    windows: { all: 10, proven: 7, final: 6, gap: 1, accepted: 1, inDoubt: 1 },
  });
  // Listed by a suspension: the first is in doubt and no longer final; a gap stays a gap.
  expect(of({}, new Set([at(0), at(5), at(7)])).windows).toEqual({ all: 10, proven: 6, final: 5, gap: 1, accepted: 1, inDoubt: 2 });
});

// promise: Status, report, days and page give the same numbers of proven windows, gaps, accepted gaps and windows in doubt.
test('status, report, days, page and coverage give the same numbers; a window in doubt is no gap', async () => {
  const { db, at, of } = await ledger();
  const suspension = { reason: 'rows', message: 'fewer records', since: 0, windows: [at(0), at(5), at(7)] };
  db.prepare('UPDATE sources SET profile = ?').run(JSON.stringify({ suspension }));
  const counted = { all: 10, proven: 6, final: 5, gap: 1, accepted: 1, inDoubt: 2 };
  expect(of({}, suspendedTogether(db).get(source)).windows).toEqual(counted);
  const stopped = { source: () => undefined, sink: () => undefined, paused: undefined, maxSize: 0, configured: [source] };
  expect(snapshotOf(db, '0.1.0', at(10), { ...stopped, closeDelaySeconds: () => 1 }).sources[0]?.windows).toEqual(counted);
  const windows = ledgerReport(db).sources[0]?.windows ?? [];
  expect(tallyOf(windows)).toMatchObject({ ...counted, records: 10, shrunk: 0 });
  expect(byPeriod(windows, 'day')).toMatchObject([{ counts: counted, state: 'gap', records: 10 }]);
  const shown = recentWindows(db, 10).get(source) ?? [];
  expect(shown.filter(({ isInDoubt }) => isInDoubt).map(({ from }) => from)).toEqual([at(0), at(7)]);
  const from = (i: number) => ({ from: new Date(at(i) / 1_000).toISOString().replace('.000Z', 'Z') });
  expect(gapsOf([db])).toMatchObject({
    gaps: [{ ...from(5), state: 'gap', reason: 'reread' }],
    inDoubt: [0, 7].map((i) => ({ ...from(i), state: 'proven', reason: 'reread' })),
    accepted: [{ ...from(6), state: 'accepted', reason: 'count' }],
  });
});

test('a period includes the windows that overlap it, and no other', async () => {
  const { at, of } = await ledger();
  const all = (from: Micros, to: Micros): number => of({ from, to }).windows.all;
  expect([all(at(2), at(4)), all(at(2) + 1, at(4) + 1), all(at(2) - 1, at(4)), all(at(2), at(2) + 1)]).toEqual([2, 3, 3, 1]);
  expect([all(at(10), at(12)), all(at(10) - 1, at(12)), all(at(-2), at(0)), all(at(-2), at(0) + 1)]).toEqual([0, 1, 0, 1]);
});

test('a sink lacks the windows with a page in their time that it has not acknowledged completely', async () => {
  const { db, at, of } = await ledger();
  const lacking = (acked: number): unknown => {
    db.prepare("UPDATE sinks SET acknowledged = ? WHERE id = 'siem'").run(acked);
    return of().sinks.map(({ id, windows, lacking: some, deadLetters }) => [id, windows, some, deadLetters]);
  };
  const lake = ['lake', 10, 0, 0];
  expect(lacking(6)).toEqual([lake, ['siem', 10, 0, 0]]);
  // The second page is in windows 3 and 4, the first in 0 and 1.
  expect(lacking(5)).toEqual([lake, ['siem', 10, 2, 0]]);
  expect(lacking(3)).toEqual([lake, ['siem', 10, 2, 0]]);
  expect(lacking(2)).toEqual([lake, ['siem', 10, 4, 0]]);
  expect(lacking(0)).toEqual([lake, ['siem', 10, 4, 0]]);
  expect(unacknowledged(db, 1, 5)).toEqual([{ from: at(3), to: at(5) - second + 1 }]);
  expect(unacknowledged(db, 1, 6)).toEqual([]);
  expect(unacknowledged(db, 2, 0)).toEqual([]);
});

test('a dead letter is not delivered, except for a sink with a filter; it counts if the sink owes its window', async () => {
  const { db, at, of } = await ledger();
  const insert = db.prepare(
    "INSERT INTO dead_letters (sink, seq, source, uid, time_us, received_us, code, message, attempts, at_us, state, kind) VALUES ('siem', ?, ?, x'00', ?, 0, '400', '', 1, 0, ?, 1)",
  );
  insert.run(1, 1, at(0) + second, 'stored');
  insert.run(2, 1, at(0) + 2 * second, 'discarded');
  insert.run(3, 1, at(3), 'stored');
  insert.run(4, 1, at(20), 'stored');
  insert.run(5, 2, at(1), 'stored');
  insert.run(6, 1, null, 'stored');
  const siem = (query?: CoverageQuery): unknown => of(query).sinks.find(({ id }) => id === 'siem');
  expect(siem()).toEqual({ id: 'siem', windows: 10, lacking: 2, lost: 0, deadLetters: 3, undated: 1 });
  // The last one has no readable time, and was received before these periods start.
  expect(siem({ from: at(1), to: at(3) })).toEqual({ id: 'siem', windows: 2, lacking: 0, lost: 0, deadLetters: 0 });
  expect(siem({ from: at(3) })).toEqual({ id: 'siem', windows: 7, lacking: 1, lost: 0, deadLetters: 1 });
  expect(siem({ filteredSinks: new Set(['siem']) })).toEqual({ id: 'siem', windows: 10, lacking: 0, lost: 0, deadLetters: 0 });
});

test('a sink owes windows at or after its start, of its sources, and requested history as it was requested', async () => {
  const { db, at, of } = await ledger();
  db.prepare("UPDATE sinks SET begun_us = ?, acknowledged = 0 WHERE id = 'siem'").run(at(1));
  const siem = (query?: CoverageQuery): unknown => of(query).sinks.find(({ id }) => id === 'siem');
  expect(siem()).toMatchObject({ id: 'siem', windows: 9, lacking: 3, lost: 0, deadLetters: 0 });
  db.prepare("UPDATE sinks SET begun_us = ? WHERE id = 'siem'").run(at(1) + 1);
  expect(siem()).toMatchObject({ id: 'siem', windows: 8, lacking: 2, lost: 0, deadLetters: 0 });
  expect(siem({ sinkSources: new Map([['siem', ['another']]]) })).toBeUndefined();
  expect(siem({ sinkSources: new Map([['siem', [source]]]) })).toBeDefined();
  db.prepare("UPDATE sinks SET begun_us = ? WHERE id = 'siem'").run(at(2));
  const range = db.prepare(
    'INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us, backfill) VALUES (1, ?, ?, ?, 0, ?)',
  );
  const window = db.prepare(
    "INSERT INTO windows (source, from_us, to_us, query, state, records, closed_us, seq) VALUES (1, ?, ?, '{}', 'proven', 1, 0, 1)",
  );
  const request = (hours: number, order: object): void => {
    range.run(base - hours * hour, base - (hours - 1) * hour, base - (hours - 1) * hour, JSON.stringify(order));
    window.run(base - hours * hour, base - (hours - 1) * hour);
  };
  request(1, { asked: at(3), paused: true });
  expect(siem()).toMatchObject({ windows: 9 });
  request(2, { asked: at(3), paused: false, sinks: ['lake'] });
  request(3, { asked: at(1), paused: false });
  expect(siem()).toMatchObject({ windows: 9 });
  expect(of().sinks.find(({ id }) => id === 'lake')).toMatchObject({ windows: 13 });
  expect(of()).toMatchObject({
    startsAt: base - 3 * hour,
    liveFrom: base,
    history: [{ paused: false }, { paused: false }, { paused: true }],
  });
});

test('a sink that starts at an instant owes no window before it, not even of requested history', async () => {
  const { db, at, of } = await ledger();
  const range = db.prepare(
    'INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us, backfill) VALUES (1, ?, ?, ?, 0, ?)',
  );
  const window = db.prepare(
    "INSERT INTO windows (source, from_us, to_us, query, state, records, closed_us, seq) VALUES (1, ?, ?, '{}', 'proven', 1, 0, 1)",
  );
  // An hour of history in six windows, requested after the sink started.
  range.run(base - hour, base, base, JSON.stringify({ asked: at(20), paused: false }));
  for (let i = 0; i < 6; i += 1) window.run(base - hour + (i * hour) / 6, base - hour + ((i + 1) * hour) / 6);
  // Both the coverage, for summary and status, and the tables of the report.
  const owed = (begun: Micros, from: Micros | null): unknown => {
    db.prepare("UPDATE sinks SET begun_us = ?, from_us = ? WHERE id = 'siem'").run(begun, from);
    const counts = [of().sinks, ledgerReport(db).sources[0]?.sinks ?? []].map((sinks) => sinks.find(({ id }) => id === 'siem')?.windows);
    expect(counts[1]).toBe(counts[0]);
    return counts[0];
  };
  expect(owed(at(3), null)).toBe(13);
  expect(owed(at(3), at(3))).toBe(7);
  // The sink starts within a window: it receives only the part after its start, so it does not owe
  // the window.
  expect(owed(at(3) + 1, at(3) + 1)).toBe(6);
  expect(owed(at(4) - 1, at(4) - 1)).toBe(6);
  const half = base - hour / 2;
  expect([owed(half, half), owed(half + 1, half + 1), owed(base - 2 * hour, base - 2 * hour)]).toEqual([13, 12, 16]);
  // The sink was retired, and returned with an instant as `start`, before it had received everything from before that instant.
  expect(owed(0, at(4))).toBe(6);
});

test('windows that no sink is to receive are counted, with the time since which each sink answers and why', async () => {
  const { db, at, of } = await ledger();
  const starts = { at: at(7), reason: 'start' };
  const changed = { at: at(4), reason: 'selection' };
  const since = (query: CoverageQuery = {}): unknown => {
    const { unanswered, sinks } = of(query);
    return [unanswered, ...sinks.map(({ id, windows, since: from }) => [id, windows, ...(from ? [from] : [])])];
  };
  expect(since()).toEqual([undefined, ['lake', 10], ['siem', 10]]);
  // One sink starts later: the other still answers for all.
  db.prepare("UPDATE sinks SET begun_us = ? WHERE id = 'lake'").run(at(7));
  expect(since()).toEqual([undefined, ['lake', 3, starts], ['siem', 10]]);
  // The filter of the other changed at the fourth window.
  const widened = JSON.stringify({ since: { [source]: at(4) } });
  db.prepare("UPDATE sinks SET selection = ? WHERE id = 'siem'").run(widened);
  expect(since()).toEqual([4, ['lake', 3, starts], ['siem', 6, changed]]);
  expect(since({ to: at(4) })).toEqual([4, ['lake', 0, starts], ['siem', 0, changed]]);
  expect(since({ from: at(4) })).toEqual([undefined, ['lake', 3, starts], ['siem', 6, changed]]);
  expect(of({ sinkSources: new Map([['lake', ['other']]]) }).unanswered).toBe(4);
  db.prepare("UPDATE sinks SET selection = ? WHERE id = 'siem'").run(JSON.stringify({ sources: ['other'] }));
  expect(since({ sinkSources: new Map([['lake', ['other']]]) })).toEqual([10]);
  // History that was requested for none of the sinks.
  db.prepare('UPDATE sinks SET selection = NULL, begun_us = 0').run();
  db.prepare('INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us, backfill) VALUES (1, ?, ?, ?, 0, ?)').run(
    ...[base - hour, base, base, JSON.stringify({ asked: at(20), paused: false, sinks: [] })],
  );
  db.prepare(
    "INSERT INTO windows (source, from_us, to_us, query, state, records, closed_us, seq) VALUES (1, ?, ?, '{}', 'proven', 1, 0, 1)",
  ).run(base - hour, base);
  expect(since()).toEqual([1, ['lake', 10], ['siem', 10]]);
});

test('windows with entries that a sink lost are lacking at that sink, with the latest reason in the period', async () => {
  const { db, at, of } = await ledger();
  const insert = db.prepare(
    'INSERT INTO sink_losses (sink, source, first, last, from_us, to_us, at_us, message) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const siem = (query?: CoverageQuery): unknown => of(query).sinks.find(({ id }) => id === 'siem');
  insert.run('siem', 1, 4, 6, at(3), at(4), 20, 'was deleted');
  insert.run('siem', 1, 1, 3, at(0) + second, at(1) - 1, 10, 'was truncated');
  insert.run('siem', 2, 1, 3, at(8), at(9), 30, 'of another source');
  insert.run('lake', 1, 1, 3, at(9), at(9), 5, 'was emptied');
  const loss = { loss: 'was deleted', lostEntries: { first: 1, last: 6 } };
  expect(siem()).toEqual({ id: 'siem', windows: 10, lacking: 3, lost: 3, ...loss, deadLetters: 0 });
  expect(of().sinks.find(({ id }) => id === 'lake')).toEqual({
    id: 'lake',
    windows: 10,
    lacking: 1,
    lost: 1,
    loss: 'was emptied',
    lostEntries: { first: 1, last: 3 },
    deadLetters: 0,
  });
  const truncated = { loss: 'was truncated', lostEntries: { first: 1, last: 3 } };
  expect(siem({ to: at(3) })).toEqual({ id: 'siem', windows: 3, lacking: 1, lost: 1, ...truncated, deadLetters: 0 });
  expect(siem({ from: at(1), to: at(3) })).toEqual({ id: 'siem', windows: 2, lacking: 0, lost: 0, deadLetters: 0 });
  // A filter does not restore lost entries.
  expect(siem({ filteredSinks: new Set(['siem']) })).toMatchObject({ lacking: 3, lost: 3 });
  // A window both pending and lost counts once, and a sink cannot lack a window that it does not
  // owe.
  db.prepare("UPDATE sinks SET acknowledged = 3 WHERE id = 'siem'").run();
  expect(siem()).toMatchObject({ lacking: 3, lost: 3 });
  db.prepare("UPDATE sinks SET begun_us = ? WHERE id = 'siem'").run(at(4));
  expect(siem()).toMatchObject({ windows: 6, lacking: 1, lost: 1 });
});

test('a retired sink owes nothing, and a source without a row covers nothing', async () => {
  const { db, of } = await ledger();
  db.prepare("UPDATE sinks SET state = 'retired' WHERE id = 'siem'").run();
  expect(of().sinks.map(({ id }) => id)).toEqual(['lake']);
  expect(coverageOf(db, { n: 0, id: 'silent', start: base }, owingSinks(db))).toEqual({
    ...{ startsAt: base, liveFrom: undefined, history: [], read: [] },
    windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 },
    sinks: ['lake'].map((id) => ({ id, windows: 0, lacking: 0, lost: 0, deadLetters: 0 })),
  });
});

test('a record without a readable time is lacking while it is pending, on a page with others too, and while it is a dead letter', async () => {
  const { journal, beside } = await opened();
  journal.sinkPositions.register('siem', 'file', 'siem', journal.positionFor('journal'), undefined);
  await journal.append(pageOf([collected(1, base + second), collected(2, undefined), collected(3, undefined)]));
  await journal.append(pageOf([collected(4, undefined)]));
  const db = beside();
  const undated = (acked: number, query?: CoverageQuery): number | undefined => {
    db.prepare('UPDATE sinks SET acknowledged = ?').run(acked);
    return coverageOf(db, { n: 1, id: source }, owingSinks(db), undefined, query).sinks[0]?.undated;
  };
  expect([0, 1, 2, 3, 4].map((acked) => undated(acked))).toEqual([3, 3, 2, 1, undefined]);
  expect(undated(4, { filteredSinks: new Set(['siem']) })).toBeUndefined();
  // The record was received 7 µs after `base`, so its time cannot be later.
  expect([undated(3, { from: base + 7 }), undated(3, { from: base + 8 })]).toEqual([1, undefined]);
  db.prepare(
    "INSERT INTO dead_letters (sink, seq, source, uid, time_us, received_us, code, message, attempts, at_us, state, kind) VALUES ('siem', 4, 1, x'00', NULL, ?, '400', '', 1, 0, 'stored', 1)",
  ).run(base);
  expect([undated(4), undated(4, { from: base + 1 })]).toEqual([1, undefined]);
  db.prepare('UPDATE sinks SET acknowledged = 4').run();
  const report = ledgerReport(db, { now: base + 20 * second });
  expect(report).toMatchObject({ delivered: false });
});

test('a sink that owes no window yet waits while a record of the period is not acknowledged', async () => {
  const { journal, beside } = await opened();
  journal.sinkPositions.register('siem', 'file', 'siem', journal.positionFor('journal'), undefined);
  await journal.append(pageOf([collected(1, base + second)]));
  const db = beside();
  const waits = (query?: CoverageQuery): boolean | undefined =>
    coverageOf(db, { n: 1, id: source }, owingSinks(db), undefined, query).sinks[0]?.waits;
  expect([waits(), waits({ from: base + 2 * second }), waits({ to: base + second }), waits({ to: base + second + 1 })]).toEqual([
    ...[true, undefined, undefined, true],
  ]);
  expect(ledgerReport(db, { now: base + 5 * second })).toMatchObject({ complete: false, delivered: false });
  db.prepare('UPDATE sinks SET acknowledged = 1').run();
  expect(waits()).toBeUndefined();
  expect(ledgerReport(db, { now: base + 5 * second })).toMatchObject({ complete: false, delivered: true });
});
