import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { CollectJournal } from '../../../src/model/journal.ts';
import type { Meters } from '../../../src/model/telemetry.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { base, between, day, hour, minute, second, seeded } from '../../support/records.ts';
import { gap, opened, source as sourceId } from '../../support/journal/opening.ts';
import { faultsOf, seenFaults, tilingFaults } from '../../support/journal/recompute.ts';
import { begun, isLivePoll, running } from '../../support/collect/running.ts';
import { appended, owned, span, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';
import { sized } from '../../support/long-run.ts';

const uncounted = {
  recordsCollected: () => undefined,
  recordsLate: () => undefined,
  sourceSuspended: () => undefined,
  windowShrunk: () => undefined,
} as unknown as Meters;
const everything = { from: base, to: Number.MAX_SAFE_INTEGER };

test('records of three hours, some of them late, are each delivered once; windows tile, and the counters add up', async () => {
  const it = await begun({ pageSize: 7, pollInterval: 60_000 });
  const random = seeded(3);
  for (let id = 1; id <= 150; id += 1) {
    const time = base + between(random, 0, 3 * 3_600) * second;
    const late = random();
    const delay = late < 0.6 ? 0 : late < 0.9 ? between(random, 0, 14) * minute : between(random, 14, 40) * minute;
    it.source.add(id, time, time + delay);
  }
  await it.runUntil(base + 4.5 * hour);
  const db = it.beside();
  expect(appended(db)).toEqual(owned(it.source.records, everything));
  expect([...faultsOf(db), ...seenFaults(db), ...tilingFaults(db)]).toEqual([]);
  const late = it.journal.progress(sourceId).late;
  expect(late).toBeGreaterThan(0);
  expect(it.counted).toEqual({ collected: 150, late, suspensions: [] });
  expect(it.journal.progress(sourceId).frontier).toBeGreaterThan(base + 4.5 * hour - 3 * 15 * minute);
  expect(it.source.mostAtOnce).toBe(1);
  // No window was closed before its close delay had passed.
  expect(db.prepare('SELECT count(*) AS n FROM windows WHERE closed_us < to_us + ?').get(15 * minute)).toEqual({ n: 0 });
});

test('a record is in the journal one poll after it became visible, while a long history is being closed', async () => {
  const it = await begun({ after: 3 * day, pageSize: 50 });
  for (let id = 1; id <= 3_000; id += 1) it.source.add(id, base + id * 60 * second, 0);
  const times: number[] = [];
  it.source.before = (request) => {
    if (isLivePoll(request)) times.push(it.clock.monotonic());
  };
  it.source.delay = 2_000;
  const visible = it.source.now() + 7 * minute;
  it.source.add(9_999, visible);
  let seenAt = 0;
  const append = it.journal.append.bind(it.journal);
  it.journal.append = async (page) => {
    const result = await append(page);
    if (result.fresh.some(({ text }) => text.includes('"logId":9999,'))) seenAt = it.source.now();
    return result;
  };
  await it.runUntil(it.source.now() + 20 * minute);
  expect(seenAt - visible).toBeGreaterThanOrEqual(0);
  // A poll, and one response in flight.
  expect(seenAt - visible).toBeLessThan(40 * second);
  const gaps = times.slice(1).map((at, i) => at - (times[i] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(40_000);
  expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(base + day);
});

test('after ten windows in a row a task of lower priority runs', async () => {
  const it = await begun({ after: 60 * day });
  // Days without a record are read together.
  for (let number = 0; number < 60; number += 1) it.source.add(number, base + number * day + hour, 0);
  for (let i = 0; i < 4; i += 1) await it.journal.close(sourceId, span(i, i + 1), gap({ total: 0, seen: 0 }, base + day), day);
  const order: string[] = [];
  const close = it.journal.close.bind(it.journal);
  it.journal.close = (source, window, ...others) => {
    order.push(window.from < base + 4 * second ? 'retry' : 'close');
    return close(source, window, ...others);
  };
  await it.runUntil(it.source.now() + 30 * minute);
  const turns = order.slice(0, order.lastIndexOf('retry')).join(' ').split('retry');
  expect(turns.map((part) => part.trim().split(' ').length)).toEqual([10, 10, 10, 10]);
  expect(it.journal.progress(sourceId).frontier).toBeGreaterThan(base + 59 * day);
});

test('until the clock of the service is known no window is closed, and counts obtain the missing responses', async () => {
  const it = await begun({ after: 10 * hour });
  it.source.add(1, base + 10 * hour - 30 * second, 0);
  const begin = it.source.now();
  await it.runUntil(begin + 4 * minute);
  expect(it.serverClock.established()).toBe(false);
  expect(it.source.requests.filter(({ pageSize, query }) => pageSize === 1 && query.startTime === undefined).length).toBeLessThanOrEqual(
    20,
  );
  expect(it.journal.progress(sourceId).live.closedUntil).toBe(base);
  expect(appended(it.beside())).toHaveLength(1);
  await it.runUntil(begin + 8 * minute);
  expect(it.serverClock.established()).toBe(true);
  expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(base + 9 * hour);
});

test('a clock of the service more than an hour ahead suspends the source: live polls continue, nothing is closed, and the status shows it', async () => {
  const it = await begun({ after: 10 * hour });
  it.source.skew = 2 * hour;
  it.source.add(1, base + hour);
  await it.runUntil(it.source.now() + 15 * minute);
  expect(it.journal.progress(sourceId).live.closedUntil).toBe(base);
  expect(it.collector.view()).toMatchObject({ suspension: true, trouble: expect.stringContaining('clock') as string });
  expect(it.source.requests.filter(isLivePoll).length).toBeGreaterThan(20);
  expect(it.lines.lines.filter(({ event }) => event === 'source.suspended')).toHaveLength(1);
});

test('with a service clock hours ahead from the first response on, new records arrive without a proof', async () => {
  const it = await begun({ after: 10 * hour });
  it.source.skew = 2 * hour;
  const present = it.clock.wall * 1000;
  // Dated by a node with a correct clock.
  for (let id = 1; id <= 5; id += 1) it.source.add(id, present + id * minute, present + 2 * hour + id * minute);
  await it.runUntil(it.source.now() + 15 * minute);
  expect(appended(it.beside())).toHaveLength(5);
  expect(it.journal.progress(sourceId).live.closedUntil).toBe(base);
  expect(it.collector.view()).toMatchObject({ suspension: true });
});

test('a jump of the local clock changes nothing', async () => {
  const it = await begun({ after: 2 * hour });
  await it.runUntil(base + 2 * hour + 20 * minute);
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  // The machine's clock is set back half an hour; the service's is not.
  it.clock.wall -= 1_800_000;
  it.source.skew += 30 * minute;
  const now = it.source.now();
  it.source.add(1, now - second);
  await it.runUntil(now + 40 * minute);
  expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(reached);
  expect(
    it
      .beside()
      .prepare('SELECT count(*) AS n FROM windows WHERE closed_us < to_us + ?')
      .get(15 * minute),
  ).toEqual({ n: 0 });
  expect(appended(it.beside())).toHaveLength(1);
});

test('network faults cause waiting, but no gap, no loss and no end', async () => {
  const it = await begun({ pageSize: 5, after: 2 * hour });
  const random = seeded(17);
  for (let id = 1; id <= 60; id += 1) it.source.add(id, base + id * 100 * second);
  const faults = [
    'source_unreachable',
    'source_busy',
    'source_unauthorized',
    'source_forbidden',
    'token_unreachable',
    'token_refused',
  ] as const;
  it.source.before = () => {
    const fault = faults[between(random, 0, 18)];
    if (fault)
      throw new WaybillError(fault, `cannot reach the source: ${fault}`, { retryAfterMs: fault === 'source_busy' ? 3_000 : undefined });
    if (random() < 0.05) throw new WaybillError('page_malformed', 'cannot read the page: it is HTML');
  };
  await it.runUntil(base + 3 * hour);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(it.beside().prepare("SELECT count(*) AS n FROM windows WHERE state = 'gap'").get()).toEqual({ n: 0 });
  expect(it.journal.progress(sourceId).frontier).toBeGreaterThan(base + 2.3 * hour);
});

test('credentials that stay refused are logged as an error with source and reason, the first attempts at debug level', async () => {
  const it = await begun();
  it.source.add(1, base + hour);
  it.source.before = () => {
    throw new WaybillError('token_refused', 'cannot obtain a token: invalid_client: the secret has expired');
  };
  await it.runUntil(it.source.now() + 5 * minute);
  const lines = it.lines.lines.filter(({ event }) => event.startsWith('source.token_'));
  expect(lines.slice(0, 5).map(({ level, event }) => [level, event])).toEqual([
    ...Array<string[]>(3).fill(['debug', 'source.token_retried']),
    ...Array<string[]>(2).fill(['error', 'source.token_refused']),
  ]);
  expect(lines[4]?.fields).toMatchObject({
    source: sourceId,
    code: 'token_refused',
    error: { message: 'cannot obtain a token: invalid_client: the secret has expired' },
  });
});

const htmlPage = new WaybillError('page_malformed', 'cannot read the page: it is HTML');
const refusal = new WaybillError('page_refused', 'cannot read the page: 400');
const notFound = new WaybillError('page_not_found', 'cannot read the page: 404');

test.each([
  ['HTML', htmlPage],
  ['400', refusal],
  ['404', notFound],
])('while every request fails with %s the source waits up to a minute, makes no page smaller and no gap', async (_what, failure) => {
  const it = await begun({ pageSize: 50, after: 2 * hour });
  for (let id = 1; id <= 100; id += 1) it.source.add(id, base + id * 100 * second);
  it.source.before = () => {
    const now = it.source.now();
    if (now > base + 2.5 * hour && now < base + 2.8 * hour) throw failure;
  };
  await it.runUntil(base + 2.5 * hour);
  const before = { requests: it.source.requests.length, lines: it.lines.lines.length };
  await it.runUntil(base + 2.8 * hour);
  // 18 minutes; a cycle of requests has at most six, and a line for each attempt.
  expect(it.source.requests.length - before.requests).toBeLessThan(18 * 2 * 6);
  expect(it.lines.lines.length - before.lines).toBeLessThan(18 * 2 + 12);
  await it.runUntil(base + 3.5 * hour);
  const lines = it.log.lines.concat(it.lines.lines);
  expect(lines.filter(({ event }) => event === 'window.not_proven' || event === 'source.page_size_refused')).toEqual([]);
  expect(it.paging.size).toBe(50);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(it.beside().prepare("SELECT count(*) AS n FROM windows WHERE state = 'gap'").get()).toEqual({ n: 0 });
  expect(it.journal.progress(sourceId).frontier).toBeGreaterThan(base + 2.9 * hour);
});

test('a fatal error ends the loop with its cause', async () => {
  const it = await begun();
  it.source.before = () => {
    throw new TypeError('a mistake');
  };
  await expect(it.collector.run(it.signal)).rejects.toThrow('a mistake');
  const other = await begun();
  other.beside().exec('UPDATE owner SET epoch = epoch + 1');
  other.source.add(1, base + 30 * second, 0);
  await expect(other.collector.run(other.signal)).rejects.toMatchObject({ code: 'internal_error' });
});

/** The journal, with some calls replaced by the test. */
function withJournal({ journal }: { readonly journal: CollectJournal }, own: Partial<CollectJournal>): CollectJournal {
  const bound = (_: object, name: keyof CollectJournal): unknown => own[name] ?? journal[name].bind(journal);
  return new Proxy(journal, { get: bound as ProxyHandler<CollectJournal>['get'] & {} });
}

test('with the journal full collecting pauses without requests, and resumes by itself', async () => {
  const it = await world({ after: hour });
  let full = true;
  let refused = 0;
  const journal = withJournal(it, {
    paused: async () => (full ? 'journal_full' : undefined),
    append: async (page) => {
      // The hard limit, reached by the first page after the pause.
      if (refused === 0 && page.records.length > 0) {
        refused += 1;
        throw new WaybillError('journal_full', 'cannot write the state: the quota is full');
      }
      return it.journal.append(page);
    },
  });
  const own = running(it, {}, journal);
  own.source.add(1, base + hour - 10 * second);
  await own.runUntil(own.source.now() + minute);
  expect(own.source.requests).toEqual([]);
  full = false;
  await own.runUntil(own.source.now() + 2 * minute);
  expect(refused).toBe(1);
  expect(appended(it.beside())).toHaveLength(1);
  const lines = own.lines.lines.filter(({ event }) => event === 'source.paused' || event === 'source.resumed');
  expect(lines.map(({ event }) => event)).toEqual(['source.paused', 'source.resumed']);
  const { seconds } = lines[1]?.fields as { seconds: number };
  expect(seconds).toBeGreaterThanOrEqual(60);
  expect(seconds).toBeLessThan(64);
});

test('a full disk is one pause until a write succeeds: a turn that writes nothing does not end it', async () => {
  const it = await world({ after: hour });
  let full = true;
  const own = running(
    it,
    {},
    withJournal(it, {
      refuses: () => (full ? 'disk' : undefined),
      append: (page) =>
        full && page.records.length > 0
          ? Promise.reject(new WaybillError('journal_full', 'cannot write the state: its disk is full'))
          : it.journal.append(page),
    }),
  );
  own.source.add(1, base + hour - 10 * second);
  const pauses = () => own.lines.lines.flatMap(({ event }) => (/^source\.(paused|resumed)$/.test(event) ? [event] : []));
  await own.runUntil(own.source.now() + 2 * minute);
  expect(pauses()).toEqual(['source.paused']);
  full = false;
  await own.runUntil(own.source.now() + minute);
  expect(pauses()).toEqual(['source.paused', 'source.resumed']);
});

test('a write refused by journal.maxSize pauses collection, and the log names the reason', async () => {
  const it = await world({ after: hour });
  const refused = new WaybillError('journal_full', 'cannot write the state: the quota is full');
  let full = false;
  const own = running(
    it,
    {},
    withJournal(it, {
      paused: async () => (full ? 'journal_full' : undefined),
      append: (page) => {
        full ||= page.records.length > 0;
        return full ? Promise.reject(refused) : it.journal.append(page);
      },
    }),
  );
  own.source.add(1, base + hour - 10 * second);
  await own.runUntil(own.source.now() + minute);
  expect(own.lines.lines.filter(({ level }) => level === 'error')).toEqual([
    {
      level: 'error',
      event: 'source.paused',
      fields: { source: sourceId, code: 'journal_full', reason: 'journal_full', error: refused },
    },
  ]);
});

test('after a kill at any request and a restart nothing is lost, nothing is appended twice, and the ledger has no hole', async () => {
  const random = seeded(29);
  const it = await world({ after: minute, pageSize: 4 });
  it.source.delay = 20;
  for (let id = 1; id <= 120; id += 1) {
    const time = base + between(random, 0, 7_200) * second;
    it.source.add(id, time, time + (random() < 0.2 ? between(random, 0, 60) * minute : 0));
  }
  let at: World = it;
  for (let life = 0; life < sized(3, 15); life += 1) {
    const own = running(at);
    const abort = new AbortController();
    const stop = it.source.requests.length + between(random, 1, 120);
    it.source.before = (_request, count) => {
      if (count >= stop) abort.abort(new Error('killed'));
    };
    await expect(own.collector.run(abort.signal)).rejects.toThrow('killed');
    await at.journal[Symbol.asyncDispose]();
    const { journal } = await opened({ directory: it.directory, clock: it.clock });
    journal.db.pragma('synchronous = OFF');
    at = { ...at, journal };
    const db = it.beside();
    expect([...faultsOf(db), ...seenFaults(db), ...tilingFaults(db)], `life ${life}`).toEqual([]);
    db.close();
  }
  it.source.before = () => undefined;
  await running(at).runUntil(Math.max(it.source.now() + 30 * minute, base + 4 * hour));
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
});

test('history waits for a sink that progresses, for a bounded time, and only once for a sink without progress', async () => {
  const it = await world({ after: 2 * hour, pageSize: 50 });
  for (let i = 0; i < 600; i += 1) it.source.add(i + 1, base + i * second, 0);
  const asked: number[] = [];
  let position = 0;
  const journal = withJournal(it, {
    paused: async () => undefined,
    // Progresses at first, then stops.
    laggingPosition: () => {
      asked.push(it.clock.monotonic());
      position = Math.min(position + 1, 12);
      return position;
    },
  });
  const own = running(it, {}, journal);
  await own.runUntil(own.source.now() + 20 * minute);
  expect(appended(it.beside())).toHaveLength(600);
  // While it progresses, each page waits five times 4 ms. Once a wait saw no progress, pages no
  // longer wait.
  const waits = asked.slice(1).filter((at, i) => at - (asked[i] ?? 0) === 4).length;
  expect(waits).toBeGreaterThanOrEqual(10);
  expect(waits).toBeLessThanOrEqual(15);
  expect(asked.length).toBeGreaterThan(18);
});

test('a page size that shrank because of refusals is tried again after ten minutes', async () => {
  const own = await begun({ after: hour, pageSize: 10 });
  own.source.switches.refuseAbove = 3;
  for (let i = 0; i < 40; i += 1) own.source.add(i + 1, base + hour - 60 * second + i * second);
  await own.runUntil(own.source.now() + minute);
  expect(own.paging.size).toBeLessThanOrEqual(3);
  own.source.switches.refuseAbove = Infinity;
  await own.runUntil(own.source.now() + 12 * minute);
  expect(own.paging.size).toBe(10);
  expect(appended(own.beside())).toHaveLength(40);
});

test('new records are read while all requests of a window fail', async () => {
  const own = await begun({ after: hour });
  const page = own.source.page.bind(own.source);
  own.source.page = (request, signal) => {
    if (request.query.endTime !== undefined) return Promise.reject(new WaybillError('source_busy', 'cannot read: 503'));
    return page(request, signal);
  };
  await own.runUntil(own.source.now() + 10 * minute);
  own.source.add(1, own.source.now() - second);
  await own.runUntil(own.source.now() + 3 * minute);
  expect(appended(own.beside())).toHaveLength(1);
});

test('windows are closed although each poll takes longer than polls are apart', async () => {
  const own = await begun({ after: hour });
  own.source.delay = 40_000;
  for (let i = 0; i < 5; i += 1) own.source.add(i + 1, base + i * minute);
  await own.runUntil(own.source.now() + 3 * hour);
  expect(own.journal.progress(sourceId).frontier).toBeGreaterThan(base + 2 * hour);
});

test('responses of a service whose clock steps back by ten seconds are used again within a minute, and no record is lost', async () => {
  const own = await begun({ after: hour });
  const page = own.source.page.bind(own.source);
  let ahead = 10_000;
  own.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    return { ...answer, date: answer.date === undefined ? undefined : answer.date + ahead };
  };
  await own.runUntil(own.source.now() + 10 * minute);
  ahead = 0;
  own.source.add(1, own.source.now() - second);
  await own.runUntil(own.source.now() + minute);
  expect(appended(own.beside())).toHaveLength(1);
  expect(own.lines.lines.filter(({ event }) => event === 'source.clock_reset')).toHaveLength(1);
});

test('a service clock 50 minutes ahead that is then corrected: no window is closed early and no record is lost, however early the recounts', async () => {
  const closeDelay = 30_000;
  const it = await begun({ after: hour, closeDelay, recountAfter: [120_000, 300_000], pollInterval: 10_000 });
  const page = it.source.page.bind(it.source);
  let ahead = 50 * 60_000;
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    return { ...answer, date: answer.date === undefined ? undefined : answer.date + ahead };
  };
  const begin = it.source.now();
  // Some visible at once, some after the overlap of live polls: only recounts find those.
  for (let id = 1; id <= 60; id += 1) it.source.add(id, begin + id * 30 * second, begin + id * 30 * second + (id % 3) * 130 * second);
  await it.runUntil(begin + 15 * minute);
  expect(it.collector.view().clockOffsetSeconds).toBeGreaterThan(2_900);
  expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(begin + 10 * minute);
  ahead = 0;
  await it.runUntil(begin + 45 * minute);
  const db = it.beside();
  expect(appended(db)).toEqual(owned(it.source.records, everything));
  // The times in the ledger are as if the clock had been correct.
  expect(db.prepare('SELECT count(*) AS n FROM windows WHERE closed_us < to_us + ? OR closed_us > ?').get(closeDelay * 1000, it.source.now())).toEqual({ n: 0 }); // prettier-ignore
  expect(seenFaults(db).filter((words) => words.endsWith('twice'))).toEqual([]);
});

test('windows closed while both clocks were ahead are listed until their end has passed, and are then read again', async () => {
  const it = await begun({ after: 2 * hour });
  // Both machine and service are 50 minutes ahead.
  it.clock.wall += 50 * 60_000;
  await it.runUntil(base + 2 * hour + 50 * minute + 15 * minute);
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  expect(reached).toBeGreaterThan(base + 2 * hour + 30 * minute);
  it.clock.wall -= 50 * 60_000;
  const restarted = running(it);
  const time = base + 2 * hour + 25 * minute;
  // Beyond the reach of live polls.
  it.source.add(1, time, time + 14 * minute);
  await restarted.runUntil(base + 2 * hour + 23 * minute);
  const early = (): readonly { to: number; next: number | null }[] =>
    it
      .beside()
      .prepare<[], { to: number; next: number | null }>(`SELECT to_us AS "to", next_us AS next FROM windows WHERE reason = 'reread'`)
      .all();
  const listed = early();
  expect(listed.length).toBeGreaterThan(1);
  expect(listed.every(({ to: until, next }) => next === until + 15 * minute && next > it.source.now())).toBe(true);
  expect(ledgerReport(it.beside()).complete).toBe(false);
  expect(restarted.lines.lines.filter(({ event }) => event === 'window.closed_early').length).toBeGreaterThan(1);
  await restarted.runUntil(reached + 20 * minute);
  expect(early()).toEqual([]);
  expect(ledgerReport(it.beside()).complete).toBe(true);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(restarted.counted.late).toBe(1);
});

interface DoubtedRow {
  readonly to: number;
  readonly next: number | null;
}
const doubted = (it: Pick<World, 'beside'>): DoubtedRow[] =>
  it
    .beside()
    .prepare<[], DoubtedRow>(`SELECT to_us AS "to", next_us AS next FROM windows WHERE state = 'proven' AND reason = 'reread'`)
    .all();

test.each([
  ['no record was created since: it is proven', 0],
  ['a record was created since: it stays in doubt', 1],
])('a window closed by clocks that were ahead, whose uids have expired, is counted when its time has come; %s', async (_, added) => {
  const it = await begun({ after: 2 * hour, closeDelay: 30_000, recountAfter: [60_000] });
  // Windows with records are always counted completely, so all uids may expire.
  it.source.add(1, base + hour);
  it.clock.wall += 50 * 60_000;
  await it.runUntil(base + 2 * hour + 65 * minute);
  it.clock.wall -= 50 * 60_000;
  const restarted = running(it, { closeDelay: 30_000, recountAfter: [60_000] });
  await restarted.runUntil(base + 2 * hour + 20 * minute);
  const listed = doubted(it);
  expect(listed.length).toBeGreaterThan(1);
  expect(listed.every(({ to, next }) => next === to + 30 * second)).toBe(true);
  expect(ledgerReport(it.beside())).toMatchObject({ complete: false, final: false });
  const time = base + 2 * hour + 30 * minute + 15 * second;
  for (let id = 0; id < added; id += 1) it.source.add(2 + id, time, time);
  await restarted.runUntil(base + 2 * hour + 75 * minute);
  expect(doubted(it).map(({ next }) => next)).toEqual(Array<null>(added).fill(null));
  expect(ledgerReport(it.beside()).complete).toBe(added === 0);
});

test('a service clock two hours behind for minutes: its windows are in doubt until the clock is right, also windows without uids', async () => {
  const it = await begun({ after: 2 * hour, closeDelay: 30_000, recountAfter: [60_000] });
  for (let id = 1; id <= 20; id += 1) it.source.add(id, base + id * minute);
  const page = it.source.page.bind(it.source);
  let behind = 0;
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    return { ...answer, date: answer.date === undefined ? undefined : answer.date - behind };
  };
  await it.runUntil(it.source.now() + 20 * minute);
  const proven = ledgerReport(it.beside());
  expect(proven.complete).toBe(true);
  behind = 2 * 3_600_000;
  await it.runUntil(it.source.now() + 10 * minute);
  expect(it.lines.lines.some(({ event }) => event === 'source.clock_reset')).toBe(true);
  expect(doubted(it).length).toBeGreaterThan(1);
  expect(ledgerReport(it.beside()).complete).toBe(false);
  behind = 0;
  await it.runUntil(it.source.now() + 10 * minute);
  expect(doubted(it)).toEqual([]);
  expect(ledgerReport(it.beside()).complete).toBe(true);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
});

test('a request before the loop starts triggers no live poll', async () => {
  const own = await begun({ after: hour });
  const page = own.source.page.bind(own.source);
  let failures = 3;
  own.source.page = (request, signal) => {
    failures -= 1;
    return failures >= 0 ? Promise.reject(new WaybillError('source_busy', 'cannot read: 503')) : page(request, signal);
  };
  await own.requester.page({ query: {}, page: undefined, pageSize: 1 }, own.signal);
  expect(own.source.requests).toHaveLength(1);
});

test('three windows with records out of range are reported as trouble after a restart too', async () => {
  const it = await begun({ after: hour });
  for (let i = 0; i < 3; i += 1) {
    const window = { from: base + i * minute, to: base + (i + 1) * minute };
    await it.journal.close(sourceId, window, gap({ reason: 'out_of_range' }, base + 9 * day), 30 * day);
  }
  expect(it.collector.view().trouble).toBe('no answer yet');
  await it.runUntil(it.source.now() + minute);
  expect(it.collector.view().trouble).toMatch(/ignores the time filter/);
  // The clock of the service is known after five minutes: then windows are closed, and their
  // records are reported.
  await it.runUntil(it.source.now() + 6 * minute);
  expect(it.collector.view().trouble).toBeUndefined();
});

test('no counts are sent for responses that live polls bring in time for the clock of the service', async () => {
  const it = await begun({ after: hour, pollInterval: 10_000 });
  // Five minutes with a poll every ten seconds bring more than twenty.
  await it.runUntil(it.source.now() + 5 * minute - second);
  expect(it.source.requests.every(isLivePoll)).toBe(true);
  expect(it.serverClock.established()).toBe(false);
  await it.runUntil(it.source.now() + 30 * second);
  expect(it.serverClock.established()).toBe(true);
  expect(it.source.requests.some((request) => !isLivePoll(request))).toBe(true);
});

test('if polls are too far apart, counts obtain the other responses at once', async () => {
  const it = await begun({ after: hour, pollInterval: 60_000 });
  await it.runUntil(it.source.now() + 30 * second);
  // Four more polls are certain to come in time; with the first one and these counts that is
  // twenty.
  expect(it.source.counts).toBe(15);
  await it.runUntil(it.source.now() + 5 * minute);
  expect(it.serverClock.established()).toBe(true);
});

test('a source reports the remaining measurement of its clock and the time of the next possible proof', async () => {
  const it = await begun({ after: hour, pollInterval: 10_000 });
  const begin = it.source.now();
  await it.runUntil(begin + minute);
  // One of the five minutes has passed, with a poll every ten seconds.
  const { clock, nextProof } = it.collector.view();
  expect(clock?.remainingMs).toBeGreaterThan(234_000);
  expect(clock?.remainingMs).toBeLessThanOrEqual(240_020);
  // Polls at 0, 10, … 50 s.
  expect(clock?.answersMissing).toBe(14);
  // The bound is a second behind the service's time.
  expect(nextProof).toBe(it.source.now() - second + (clock?.remainingMs ?? 0) * 1000);
  await it.runUntil(begin + 6 * minute);
  expect(it.collector.view().clock).toBeUndefined();
  // It is 03:06: windows are closed up to 02:45, and the next ends at 03:00.
  expect(it.collector.view().nextProof).toBe(base + hour + 15 * minute);
});

test.each([9, -25, -7].slice(0, sized(1, 3)))(
  'the local clock jumps by %i h at run time: no suspension, windows are closed, no record is lost',
  async (hours) => {
    const it = await begun({ after: 2 * hour, pollInterval: 60_000 });
    await it.runUntil(base + 2 * hour + 20 * minute);
    const { closedUntil: reached } = it.journal.progress(sourceId).live;
    it.clock.wall += (hours * hour) / 1000;
    // The service's clock does not change, but the model derives its time from the local clock.
    it.source.skew -= hours * hour;
    const now = it.source.now();
    for (let id = 1; id <= 60; id += 1) it.source.add(id, now + id * minute);
    await it.runUntil(now + 2 * hour);
    expect(it.counted.suspensions).toEqual([]);
    expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(reached + 90 * minute);
    const db = it.beside();
    expect(appended(db)).toEqual(owned(it.source.records, everything));
    expect([...faultsOf(db), ...seenFaults(db), ...tilingFaults(db)]).toEqual([]);
    expect(it.collector.view()).toMatchObject({ suspension: false, trouble: undefined });
    expect(db.prepare('SELECT count(*) AS n FROM windows WHERE closed_us < to_us + ?').get(15 * minute)).toEqual({ n: 0 });
  },
);

test('a service clock in the year 9999 suspends the source, and displayed times use the local clock', async () => {
  const it = await begun({ after: 2 * hour });
  const skew = Date.UTC(9999, 0, 1) * 1000 - it.source.now();
  it.source.skew = skew;
  for (let id = 1; id <= 5; id += 1) it.source.add(id, base + id * minute, base);
  await it.runUntil(it.source.now() + 15 * minute);
  const { suspension: hold, serverNow } = it.collector.view();
  expect(hold).toBe(true);
  expect(serverNow).toBe(it.clock.now() * 1000);
  expect(it.journal.progress(sourceId).live.closedUntil).toBe(base);
});

test('records between start and the reach of the first poll are history: their delay is not measured', async () => {
  const place = await world({ after: 40 * minute });
  const delays: number[] = [];
  const meters = { ...uncounted, recordDelay: (_source: string, seconds: number) => delays.push(seconds) };
  const it = running(place, { pollInterval: 10_000 }, place.journal, { meters });
  const begin = it.source.now();
  // Visible when they happened, long before the daemon started; then one every minute.
  for (let id = 1; id <= 39; id += 1) it.source.add(id, base + id * minute, 0);
  for (let id = 41; id <= 70; id += 1) it.source.add(id, base + id * minute);
  await it.runUntil(begin + 50 * minute);
  expect(appended(it.beside())).toHaveLength(69);
  // The first poll reaches two minutes back, and finds two of them.
  expect(delays.length).toBeGreaterThanOrEqual(31);
  expect(delays.length).toBeLessThanOrEqual(32);
  expect(Math.max(...delays)).toBeLessThanOrEqual(120);
  // The next process knows it too.
  const visibility = it.collector.visibilityProfile();
  const again = running(place, { pollInterval: 10_000 }, place.journal, { meters, visibility });
  expect(again.collector.visibilityProfile().polledFrom).toBe(begin - 2 * minute);
});

test('records read for another purpose are stored too, and late ones are logged', async () => {
  const it = await begun({ after: 4 * hour, pollInterval: 60_000 });
  it.source.add(1, base + 10 * minute, 0);
  await it.runUntil(base + 4 * hour + 20 * minute);
  // This record became visible after its window was closed, and before the recount.
  it.source.add(2, base + 10 * minute + second, 0);
  const { requester } = it;
  const answer = await requester.ask({ query: {}, page: 1, pageSize: 10 }, it.signal);
  await it.collector.store(answer, it.signal);
  await it.collector.store(answer, it.signal);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(it.journal.progress(sourceId).late).toBe(1);
  expect(it.lines.lines.filter(({ event }) => event === 'source.late_records_found')).toMatchObject([
    { level: 'warn', fields: { source: sourceId, records: 1 } },
  ]);
});

test('an old answer of a cache confirms no window and ends nothing: the clock of the service is measured again first', async () => {
  for (const dates of [true, false].slice(0, sized(1, 2))) {
    const it = await begun({ after: 2 * hour });
    for (let id = 0; id < 300; id += 1) it.source.add(id, base + id * minute + second);
    const page = it.source.page.bind(it.source);
    it.source.page = async (request, signal) => ({ ...(await page(request, signal)), ...(!dates && { date: undefined }) });
    await it.runUntil(it.source.now() + 2 * hour);
    let confirmed = 0;
    const confirm = it.journal.confirm.bind(it.journal);
    it.journal.confirm = (...args) => {
      confirmed += it.source.switches.age > 0 ? 1 : 0;
      return confirm(...args);
    };
    it.source.before = ({ query: { endTime }, pageSize }) => {
      // A recount, and every answer from then on.
      if (pageSize === 1 && endTime !== undefined && Date.parse(`${endTime}Z`) < base / 1000 + 3_600_000) it.source.switches.age = 30;
    };
    await it.runUntil(it.source.now() + 3 * hour);
    expect([it.source.switches.age, confirmed]).toEqual([30, 0]);
    it.source.before = () => undefined;
    it.source.switches.age = 0;
    await it.runUntil(it.source.now() + 3 * hour);
    // Without a `Date`, the newest record is the time of the service.
    const time = dates ? it.source.now() : base + 300 * minute;
    expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(time - 2 * hour);
  }
});
