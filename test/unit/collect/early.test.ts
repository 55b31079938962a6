/**
 * History that is read before the clock of the service is known: collected at once, proven later,
 * and never by the early read alone.
 */
import { expect, test } from 'vitest';
import type { Pace } from '../../../src/collect/close.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { PageRequest } from '../../../src/model/source.ts';
import type { ClockProfile } from '../../../src/source/server-clock.ts';
import { base, hour, minute, second } from '../../support/records.ts';
import { source as sourceId } from '../../support/journal/opening.ts';
import { seenFaults, tilingFaults } from '../../support/journal/recompute.ts';
import { begun, isLivePoll, running, isOfOneRecord } from '../../support/collect/running.ts';
import type { Running } from '../../support/collect/running.ts';
import { appended, digest, owned, world } from '../../support/collect/world.ts';

const closeDelay = 15 * minute;
const everything = { from: base, to: Number.MAX_SAFE_INTEGER };

interface Row {
  readonly from: number;
  readonly to: number;
  readonly closed: number;
  readonly total: number;
  readonly records: number;
  readonly digest: string;
}

function windows(it: Running): Row[] {
  const rows = it
    .beside()
    .prepare<[], { from_us: number; to_us: number; closed_us: number; total: number; records: number; digest: Buffer; state: string }>(
      'SELECT from_us, to_us, closed_us, total, records, digest, state FROM windows ORDER BY from_us',
    )
    .all();
  expect(rows.every(({ state }) => state === 'proven')).toBe(true);
  return rows.map((row) => ({
    ...{ from: row.from_us, to: row.to_us, closed: row.closed_us, total: row.total, records: row.records },
    digest: row.digest.toString('hex'),
  }));
}

/** Every window has exactly the records that the service has now. */
function expectTrue(it: Running): void {
  for (const window of windows(it)) {
    const uids = owned(it.source.records, window);
    expect([window.from, window.records, window.digest]).toEqual([window.from, uids.length, digest(uids)]);
  }
  const db = it.beside();
  expect(appended(db)).toEqual(owned(it.source.records, everything));
  expect([...seenFaults(db), ...tilingFaults(db)]).toEqual([]);
}

const isPage = (request: PageRequest): boolean => request.query.endTime !== undefined && request.pageSize > 1 && !isOfOneRecord(request);
const beginOf = ({ query }: PageRequest): number => Date.parse(`${query.startTime ?? ''}Z`) * 1000 + second;
const endOf = ({ query }: PageRequest): number => Date.parse(`${query.endTime ?? ''}Z`) * 1000 - second;

/** A source whose ledger starts three hours ago, with a record every minute. */
async function threeHours(): Promise<Running> {
  const it = await begun({ after: 3 * hour, pollInterval: 10_000 });
  for (let id = 1; id < 180; id += 1) it.source.add(id, base + id * minute, 0);
  return it;
}

test('early history is collected at once, closed when the clock is known, and read only once', async () => {
  const it = await threeHours();
  const begin = it.source.now();
  await it.runUntil(begin + 5 * second);
  const early = owned(it.source.records, { from: base, to: begin - hour - closeDelay - 15 * minute });
  expect(appended(it.beside())).toEqual(expect.arrayContaining(early));
  expect(early.length).toBeGreaterThan(80);
  expect(it.lines.lines.filter(({ event }) => event === 'source.clock_measuring')).toMatchObject([
    // The first response took 20 ms.
    { level: 'info', fields: { source: sourceId, to: new Date((begin + 5 * minute) / 1000 + 20).toISOString() } },
  ]);

  await it.runUntil(begin + 5 * minute - second);
  expect(it.serverClock.established()).toBe(false);
  expect(windows(it)).toEqual([]);
  const pages = it.source.requests.filter(isPage);
  expect(pages.length).toBeGreaterThan(6);

  await it.runUntil(begin + 5 * minute + 20 * second);
  const closed = windows(it);
  expect(it.journal.progress(sourceId).live.closedUntil).toBe(base + 2.75 * hour);
  for (const window of closed) expect(window.closed).toBeGreaterThanOrEqual(begin + 5 * minute - 2 * second);
  const again = it.source.requests.filter(isPage).slice(pages.length);
  const readUpTo = Math.max(...pages.map(endOf));
  expect(again.filter((request) => beginOf(request) < readUpTo)).toEqual([]);
  await it.runUntil(base + 4 * hour);
  expectTrue(it);
});

test('the first window is closed as soon as the clock is known, not with the next poll', async () => {
  const it = await begun({ after: 3 * hour, pollInterval: 60_000 });
  let closedAt = 0;
  const close = it.journal.close.bind(it.journal);
  it.journal.close = (...args) => {
    closedAt ||= it.clock.monotonic();
    return close(...args);
  };
  const begin = it.clock.monotonic();
  await it.runUntil(it.source.now() + 6 * minute);
  // Five minutes after the first response, which takes 20 ms, and the count that confirms the
  // window.
  expect(closedAt - begin).toBeGreaterThanOrEqual(300_000);
  expect(closedAt - begin).toBeLessThan(300_200);
});

test('a record that becomes visible between reading and closing causes a second read of the window', async () => {
  const it = await threeHours();
  const begin = it.source.now();
  it.source.add(1_000, base + 20 * minute + 1, begin + 2 * minute);
  await it.runUntil(begin + minute);
  expect(appended(it.beside()).length).toBeGreaterThan(80);
  await it.runUntil(base + 4 * hour);
  expectTrue(it);
});

test('a record that disappears between reading and closing is in no proof', async () => {
  const it = await threeHours();
  const begin = it.source.now();
  const [record] = it.source.records.filter(({ time }) => time === base + 20 * minute);
  if (!record) throw new Error('there is no such record');
  it.source.records.splice(it.source.records.indexOf(record), 1, { ...record, gone: begin + minute });
  await it.runUntil(begin + 30 * minute);
  const window = windows(it).find(({ from, to: until }) => from <= record.time && record.time < until);
  if (!window) throw new Error('there is no such window');
  const left = owned(
    it.source.records.filter(({ gone }) => gone === undefined),
    window,
  );
  expect([window.records, window.digest]).toEqual([left.length, digest(left)]);
  // The journal keeps the record, because it was delivered.
  expect(appended(it.beside())).toEqual(expect.arrayContaining(owned([record], window)));
});

test('after a restart between reading and closing the window is read again, and nothing is appended twice', async () => {
  const it = await threeHours();
  await it.runUntil(it.source.now() + minute);
  const before = appended(it.beside());
  expect(before.length).toBeGreaterThan(80);
  const next = running(it, { pollInterval: 10_000 });
  await next.runUntil(it.source.now() + 4 * minute);
  expect(windows(next)).toEqual([]);
  await next.runUntil(base + 4 * hour);
  expectTrue(next);
});

test.each([
  ['the service is 40 min behind', -40 * minute, 0],
  ['this machine is 40 min behind', 0, -40 * minute],
])('where %s, only windows that ended an hour before both clocks are read early', async (_what, skew, wall) => {
  const place = await world({ after: 4 * hour });
  place.source.delay = 20;
  place.clock.wall += wall / 1000;
  // The model derives its time from the wall clock.
  place.source.skew += skew - wall;
  const it = running(place, { pollInterval: 10_000 });
  const least = base + 4 * hour - 40 * minute;
  await it.runUntil(it.source.now() + 4 * minute);
  const ends = it.source.requests.filter((request) => !isLivePoll(request) && request.query.endTime !== undefined).map(endOf);
  expect(ends.length).toBeGreaterThan(0);
  expect(Math.max(...ends)).toBeLessThanOrEqual(least + 4 * minute - hour - closeDelay);
  expect(Math.max(...ends)).toBeGreaterThan(least - hour - 2 * closeDelay - 15 * minute);
});

/** The records in the journal after each of several lives of ten seconds. A page of ten records takes 200 ms. */
async function shortLives(it: Running, profile?: ClockProfile): Promise<number[]> {
  it.source.delay = 200;
  let pace: Pace | undefined;
  const after: number[] = [];
  for (let life = 0; life < 6; life += 1) {
    const keepPace = (kept: Pace): Promise<void> => Promise.resolve(void (pace = kept));
    const next = running(it, { pollInterval: 30_000 }, it.journal, { pace, keepPace }, profile);
    await next.runUntil(it.source.now() + 10 * second);
    after.push(appended(it.beside()).length);
  }
  return after;
}

test.each([false, true])('history moves forward in lives of ten seconds; the clock of the service is known: %s', async (isKnown) => {
  const it = await begun({ after: 8 * hour, pollInterval: 10_000 });
  for (let id = 1; id < 2_000; id += 1) it.source.add(id, base + id * 10 * second);
  it.source.before = ({ query }) => {
    if (query.endTime !== undefined) throw new WaybillError('source_busy', 'cannot read: 503');
  };
  await it.runUntil(it.source.now() + 6 * minute);
  it.source.before = () => undefined;
  const profile = isKnown ? it.serverClock.profile() : undefined;
  const [first = 0, ...later] = await shortLives(it, profile);
  expect(first).toBeGreaterThan(100);
  // Each life that reads only what the life before it has read adds nothing.
  expect(later.at(-1)).toBeGreaterThan(3 * first);
  expect(it.journal.progress(sourceId).live.closedUntil > base + hour).toBe(isKnown);
  await running(it, {}, it.journal, {}, profile).runUntil(it.source.now() + 30 * minute);
  expectTrue(it);
});
