import { expect, test } from 'vitest';
import type { LedgerWindow } from '../../../src/model.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { source as sourceId } from '../journal/opening.ts';
import { seenFaults, tilingFaults } from '../journal/recompute.ts';
import { ages, appended, owned, settle, world } from './world.ts';
import type { World } from './world.ts';

const everything = { from: 0, until: Number.MAX_SAFE_INTEGER };

interface Row extends Pick<LedgerWindow, 'from' | 'until' | 'state' | 'own' | 'late' | 'recounts' | 'tries'> {
  readonly total: number | null;
  readonly reason: string | null;
  readonly next: number | null;
  readonly closed: number;
  readonly query: string;
}

function rows(it: World): Row[] {
  return it
    .beside()
    .prepare<[], Row>(
      `SELECT from_us AS "from", until_us AS until, state, total, own, late, recounts, tries, reason, next_us AS next, closed_us AS closed, query
       FROM windows ORDER BY from_us`,
    )
    .all();
}

function first(it: World): Row {
  const [row] = rows(it);
  if (!row) throw new Error('no window');
  return row;
}

async function closeAll(it: World): Promise<number> {
  let closed = 0;
  while (await it.closer.closeNext(it.source.now(), it.signal)) closed += 1;
  return closed;
}

/** Moves server time to `at`. */
function go(it: World, at: number): void {
  it.clock.wall += (at - it.source.now()) / 1000;
}

/** Does what is due until nothing is; returns how often something was. */
async function again(it: World): Promise<number> {
  let turns = 0;
  while (await it.closer.again(it.source.now(), it.signal)) turns += 1;
  return turns;
}

test('windows are closed up to what is settled, and no further; they tile (I3, I5)', async () => {
  const it = await world({ after: 2 * hour + 300 * second });
  for (let id = 1; id <= 50; id += 1) it.source.add(id, base + id * 130 * second);
  expect(await closeAll(it)).toBeGreaterThan(5);
  expect(await closeAll(it)).toBe(0);
  for (const { until, closed, state } of rows(it)) {
    expect(closed).toBeGreaterThanOrEqual(until + settle);
    expect(state).toBe('closed');
  }
  const { live, frontier } = it.journal.marks(sourceId);
  expect(frontier).toBe(live.reached);
  expect(live.reached).toBeGreaterThan(base + hour);
  expect(tilingFaults(it.beside())).toEqual([]);
  // Not one second more until it is settled.
  go(it, live.reached + 2 * settle - second);
  expect(await closeAll(it)).toBe(0);
  go(it, live.reached + 2 * settle);
  expect(await closeAll(it)).toBe(1);
});

test('a crowded stretch is split down to the second, nothing is lost at the cuts, and width comes back (C35)', async () => {
  const it = await world({ after: 2 * hour, pageSize: 1000 });
  let id = 0;
  // 6,000 in one second in the middle, its edges among them, and some around it.
  for (let i = 0; i < 6_000; i += 1) it.source.add((id += 1), base + 600 * second + Math.floor((i * (second - 1)) / 5_999));
  for (let i = 0; i < 1_200; i += 1) it.source.add((id += 1), base + i * second);
  it.source.add((id += 1), base + 7_100 * second, 0);
  await closeAll(it);
  expect(tilingFaults(it.beside())).toEqual([]);
  const all = rows(it);
  expect(all.every(({ state }) => state === 'closed')).toBe(true);
  // Only a window of a second may hold more than 5,000.
  const crowded = all.filter(({ own }) => own > 5_000);
  expect(crowded).toMatchObject([{ from: base + 600 * second, until: base + 601 * second, own: 6_001 }]);
  const { reached } = it.journal.marks(sourceId).live;
  const own = owned(it.source.records, { from: base, until: reached });
  expect(own).toHaveLength(7_200);
  expect(all.reduce((sum, { own }) => sum + own, 0)).toBe(7_200);
  expect(appended(it.beside())).toEqual(own);
  expect(Math.max(...all.slice(-3).map(({ from, until }) => until - from))).toBeGreaterThan(60 * second);
});

test('a gap is tried after 1, 5 and 15 minutes, at the ages, then daily, and its proof moves the frontier (C22, C23)', async () => {
  const it = await world({ after: 2 * settle, switches: { total: 'missing' } });
  it.source.add(1, base + second);
  await closeAll(it);
  const { from, until } = first(it);
  expect(first(it)).toMatchObject({ state: 'gap', reason: 'total', own: 1, total: null, tries: 1 });
  const tried: number[] = [];
  for (let turn = 0; turn < 13; turn += 1) {
    const { next, closed } = first(it);
    if (next === null) throw new Error('never tried again');
    tried.push(turn < 3 ? next - closed : next - until);
    go(it, next - 1);
    expect(await it.closer.again(it.source.now(), it.signal)).toBe(false);
    go(it, next);
    expect(await it.closer.again(it.source.now(), it.signal)).toBe(true);
    expect(first(it)).toMatchObject({ state: 'gap', tries: turn + 2, recounts: 0 });
  }
  expect(tried.slice(0, 10)).toEqual([minute, 5 * minute, 15 * minute, ...ages]);
  // Then daily, from when it was tried (a try itself takes a few seconds).
  for (const [i, wait] of tried.slice(10).entries()) expect(Math.floor(wait / day)).toBe(31 + i);
  expect(it.journal.marks(sourceId).frontier).toBe(from);
  // Days later the service counts again.
  it.source.switches.total = 'true';
  go(it, first(it).next ?? 0);
  await it.closer.again(it.source.now(), it.signal);
  expect(first(it)).toMatchObject({ state: 'closed', reason: null, total: 1, next: null });
  expect(it.journal.marks(sourceId).frontier).toBe(until);
});

test('a closed window is counted at each age, once, by its stored query word for word, until it is final (C2, C18)', async () => {
  const it = await world({ after: 2 * settle });
  it.source.add(1, base + second);
  await closeAll(it);
  const { until } = first(it);
  // As a release with other padding would have stored it.
  const stored = { startTime: '2026-11-20T01:59:58.50', endTime: '2026-11-20T02:15:07.25' };
  const db = it.beside();
  db.prepare('UPDATE windows SET query = ?').run(JSON.stringify(stored));
  for (const [i, age] of ages.entries()) {
    go(it, until + age - 1);
    expect(await again(it)).toBe(0);
    go(it, until + age);
    it.source.requests.length = 0;
    expect(await again(it)).toBe(1);
    expect(it.source.requests).toEqual([{ query: stored, page: 1, pageSize: 1 }]);
    expect(first(it)).toMatchObject({ recounts: i + 1, state: 'closed', reason: null });
  }
  expect(first(it).next).toBeNull();
  go(it, until + 400 * day);
  expect(await again(it)).toBe(0);
});

test('ages that passed while nobody asked are one recount, and the next is ahead', async () => {
  const it = await world({ after: 2 * settle });
  await closeAll(it);
  go(it, base + 4 * day);
  expect(await again(it)).toBe(1);
  expect(first(it)).toMatchObject({ recounts: 1, next: first(it).until + 7 * day });
});

test('what became visible after the window was closed is found at the next age, late, and proven anew', async () => {
  const it = await world({ after: 2 * settle });
  it.source.add(1, base + second);
  await closeAll(it);
  const { until } = first(it);
  it.source.add(2, base + 2 * second, until + 5 * hour);
  go(it, until + hour);
  await again(it);
  expect(first(it)).toMatchObject({ total: 1, late: 0, recounts: 1 });
  go(it, until + 6 * hour);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'closed', reason: null, total: 2, own: 2, late: 1, recounts: 2, next: until + day });
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(seenFaults(it.beside())).toEqual([]);
});

test('a re-read that cannot be proven leaves the old proof, lists the window, and is tried like a gap', async () => {
  const it = await world({ after: 2 * settle });
  it.source.add(1, base + second);
  await closeAll(it);
  const { until } = first(it);
  it.source.switches.total = 'one more';
  go(it, until + hour);
  await again(it);
  const { next, closed } = first(it);
  expect(first(it)).toMatchObject({ state: 'closed', reason: 'reread', total: 1, own: 1, recounts: 1, tries: 1 });
  expect(closed).toBeLessThan(until + hour);
  expect(it.journal.marks(sourceId).frontier).toBe(until);
  expect((next ?? 0) - it.source.now()).toBe(minute);
  it.source.switches.total = 'true';
  go(it, next ?? 0);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'closed', reason: null, total: 1, tries: 0, next: until + 6 * hour });
});

test('a total that fell is never silent: it is told, listed, tried again, and at last closed as vanished (C19, C20)', async () => {
  const it = await world({ after: 2 * settle });
  [1, 2, 3].forEach((id) => it.source.add(id, base + id * second));
  await closeAll(it);
  const { until } = first(it);
  it.source.records.shift();
  go(it, until + hour);
  expect(await again(it)).toBe(1);
  // A replica may lag: it is read again after `settle`.
  expect(first(it)).toMatchObject({ state: 'closed', reason: 'reread', total: 3, own: 3, next: it.source.now() + settle });
  expect(it.log.lines.filter(({ level }) => level === 'error')).toMatchObject([
    { phrase: 'recount gives fewer than were proven', fields: { stored: 3, total: 2 } },
  ]);
  go(it, first(it).next ?? 0);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'closed', reason: 'vanished', total: 2, own: 2 });
  // It stays listed, whatever else is due.
  go(it, until + 40 * day);
  await again(it);
  expect(first(it)).toMatchObject({ reason: 'vanished' });
});

test('a replica that lagged for a moment leaves no trace but a line in the log', async () => {
  const it = await world({ after: 2 * settle });
  [1, 2, 3].forEach((id) => it.source.add(id, base + id * second));
  await closeAll(it);
  const { until } = first(it);
  it.source.switches.total = 'one less';
  go(it, until + hour);
  await again(it);
  it.source.switches.total = 'true';
  go(it, first(it).next ?? 0);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'closed', reason: null, total: 3, own: 3 });
});

test('a recount without a usable total, or with an answer that cannot be read, is not taken for agreement', async () => {
  const it = await world({ after: 2 * settle });
  [1, 2].forEach((id) => it.source.add(id, base + id * second));
  await closeAll(it);
  const { until } = first(it);
  it.source.before = ({ pageSize }) => (it.source.switches.unreadable = new Set(pageSize === 1 ? [1] : []));
  go(it, until + hour);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'closed', reason: 'reread', total: 2 });
});

test('a bad window does not stop those behind it', async () => {
  const it = await world({ after: 3 * hour });
  it.source.add(1, base + second);
  it.source.add(2, base + 2 * hour + second);
  it.source.switches.unreadable = new Set([1]);
  await closeAll(it);
  const all = rows(it);
  expect(all[0]).toMatchObject({ state: 'gap', reason: 'unreadable' });
  expect(all.slice(1).every(({ state }) => state === 'closed')).toBe(true);
  expect(it.journal.marks(sourceId)).toMatchObject({ frontier: base });
  expect(appended(it.beside())).toHaveLength(1);
});
