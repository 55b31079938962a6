import { expect, test } from 'vitest';
import { Backfiller } from '../../../src/collect/backfill.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { source as sourceId } from '../../support/journal/opening.ts';
import { appended, owned, closeDelay, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';

const act = { actor: 'j.doe', reason: undefined };

function backfiller({ closer, pageStore: pages, journal, requester, clock, log }: World): Backfiller {
  return new Backfiller({ sourceId, closer, pages, journal, requester, clock, log });
}

async function toItsEnd(it: World, history: Backfiller, most = 200): Promise<number> {
  let turns = 0;
  while (await history.turn(it.source.now(), it.signal)) {
    turns += 1;
    if (turns > most) throw new Error('it does not end');
  }
  return turns;
}

test('reads a range to its end with a proof for each window, each record once, and none outside it', async () => {
  const it = await world({ after: day });
  // Records on and around both edges, and some between.
  [-7 * hour, -6 * hour, -6 * hour + 1, -3 * hour, -1 * second, -1].forEach((at, i) => it.source.add(i + 1, base + at));
  it.journal.history.add(sourceId, { from: base - 6 * hour, to: base }, {}, act);
  const history = backfiller(it);
  expect(await toItsEnd(it, history)).toBeGreaterThan(1);
  expect(it.journal.backfills(sourceId)).toEqual([]);
  const db = it.beside();
  expect(appended(db)).toEqual(owned(it.source.records, { from: base - 6 * hour, to: base }));
  const windows = db.prepare('SELECT from_us, to_us, state FROM windows ORDER BY from_us').all() as {
    from_us: number;
    to_us: number;
    state: string;
  }[];
  expect(windows[0]?.from_us).toBe(base - 6 * hour);
  expect(windows.at(-1)?.to_us).toBe(base);
  windows.slice(1).forEach((window, i) => expect(window.from_us).toBe(windows[i]?.to_us));
  expect(windows.every(({ state }) => state === 'proven')).toBe(true);
});

test('a window is recounted at the ages that it has not reached; an older window is not recounted', async () => {
  const it = await world({ after: day });
  it.journal.history.add(sourceId, { from: base - 40 * day, to: base }, {}, act);
  await toItsEnd(it, backfiller(it));
  const rows = it.beside().prepare('SELECT to_us, next_us FROM windows').all() as { to_us: number; next_us: number | null }[];
  const now = it.source.now();
  for (const { to_us: until, next_us: next } of rows) {
    const ahead = [hour, 6 * hour, day, 3 * day, 7 * day, 14 * day, 30 * day].map((age) => until + age).filter((at) => at > now);
    // Server time may have advanced with later responses.
    if (next === null) expect(ahead.length === 0 || Math.min(...ahead) - now < minute).toBe(true);
    else expect(next).toBe(Math.min(...ahead));
  }
  expect(rows.some(({ next_us: next }) => next === null)).toBe(true);
  expect(rows.some(({ next_us: next }) => next !== null)).toBe(true);
});

test('waits until closeDelay has passed, also within a range', async () => {
  const it = await world({ after: 0 });
  it.journal.history.add(sourceId, { from: base - hour, to: base }, {}, act);
  const history = backfiller(it);
  await toItsEnd(it, history);
  const [range] = it.journal.backfills(sourceId);
  expect(range?.closedUntil).toBeLessThanOrEqual(it.source.now() - closeDelay);
  expect(range?.closedUntil).toBeGreaterThan(base - hour);
  it.clock.wall += 60 * 60_000;
  await toItsEnd(it, history);
  expect(it.journal.backfills(sourceId)).toEqual([]);
});

test('the newest range is read first; a paused range is not read', async () => {
  const it = await world({ after: day });
  it.journal.history.add(sourceId, { from: base - 10 * hour, to: base - 9 * hour }, {}, act);
  it.journal.history.add(sourceId, { from: base - hour, to: base }, {}, act);
  const history = backfiller(it);
  await history.turn(it.source.now(), it.signal);
  const froms = (): number[] => it.journal.backfills(sourceId).map(({ from, closedUntil: reached }) => (reached > from ? from : 0));
  expect(froms()[0] === base - hour || it.journal.backfills(sourceId).length === 1).toBe(true);
  it.journal.history.pause(sourceId, base - 10 * hour, true, act);
  await toItsEnd(it, history);
  expect(it.journal.backfills(sourceId)).toMatchObject([{ from: base - 10 * hour, closedUntil: base - 10 * hour }]);
  it.journal.history.pause(sourceId, base - 10 * hour, false, act);
  await toItsEnd(it, history);
  expect(it.journal.backfills(sourceId)).toEqual([]);
});

test('a rate spaces the requests of its windows', async () => {
  const it = await world({ after: day });
  for (let i = 0; i < 40; i += 1) it.source.add(i + 1, base - 40 * minute + i * minute);
  it.journal.history.add(sourceId, { from: base - hour, to: base }, { rate: 0.5 }, act);
  const history = backfiller(it);
  const began = it.clock.monotonic();
  while (it.journal.backfills(sourceId).length > 0)
    if (!(await history.turn(it.source.now(), it.signal))) await it.clock.sleep(100, it.signal);
  const requests = it.source.requests.length;
  const last = 5;
  expect(requests).toBeGreaterThan(last);
  // The last window's requests need not be waited for.
  expect((it.clock.monotonic() - began) / 1000).toBeGreaterThanOrEqual((requests - last * 3) / 0.5);
});

test('reports the window that is being read', async () => {
  const it = await world({ after: day });
  it.source.add(1, base - minute);
  it.journal.history.add(sourceId, { from: base - hour, to: base }, {}, act);
  const history = backfiller(it);
  const seen: unknown[] = [];
  it.source.before = () => seen.push([history.reading(base - hour)?.from, history.reading(base)]);
  await history.turn(it.source.now(), it.signal);
  expect(seen.length).toBeGreaterThan(0);
  expect(seen).toEqual(seen.map(() => [base - hour, undefined]));
  expect(history.reading(base - hour)).toBeUndefined();
});
