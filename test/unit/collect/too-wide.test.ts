/** Windows whose query is refused or times out, while narrower ones are answered. */
import { expect, test } from 'vitest';
import type { LedgerWindow } from '../../../src/model/ledger.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { source as sourceId } from '../../support/journal/opening.ts';
import { tilingFaults } from '../../support/journal/recompute.ts';
import { appended, closeDelay, world } from '../../support/collect/world.ts';
import type { Options, World } from '../../support/collect/world.ts';

/** A record every six minutes for two days. */
async function twoDays(options: Options['switches'] = {}): Promise<World> {
  const it = await world({ after: 2 * day, pageSize: 100, switches: options });
  for (let id = 0; id < 470; id += 1) it.source.add(id, base + id * 6 * minute, 0);
  return it;
}

async function closeAll(it: World): Promise<void> {
  while (await it.closer.closeNext(it.source.now(), it.signal));
}

async function again(it: World): Promise<void> {
  while (await it.closer.retry(it.source.now(), it.signal));
}

function rows(it: World): Pick<LedgerWindow, 'from' | 'to' | 'state' | 'reason' | 'attempts'>[] {
  const sql = 'SELECT from_us AS "from", to_us AS "to", state, reason, attempts FROM windows ORDER BY from_us';
  return it.beside().prepare<[], Pick<LedgerWindow, 'from' | 'to' | 'state' | 'reason' | 'attempts'>>(sql).all();
}

test.each([
  ['refused', false, 350],
  ['not answered in time', true, 500],
])('a window whose query is %s for its width is split until it is answered', async (_what, slow, most) => {
  const it = await twoDays({ widest: hour, slow });
  await closeAll(it);
  expect(rows(it).every(({ state, from, to: until }) => state === 'proven' && until - from <= hour)).toBe(true);
  expect(rows(it).at(-1)?.to).toBeGreaterThan(base + 2 * day - closeDelay - hour);
  expect(appended(it.beside())).toHaveLength(470);
  // About 70 windows, two requests each.
  expect(it.source.requests.length).toBeLessThan(most);
});

test('a window is split also if pages of the current size are refused', async () => {
  const it = await twoDays({ widest: hour, refuseAbove: 20 });
  await closeAll(it);
  expect(rows(it).every(({ state }) => state === 'proven')).toBe(true);
  expect(appended(it.beside())).toHaveLength(470);
});

test("a window deeper than the service's paging depth is split until it is not", async () => {
  const it = await world({ after: hour, pageSize: 10, switches: { deepest: 30 } });
  for (let id = 1; id <= 200; id += 1) it.source.add(id, base + id * 10 * second, 0);
  await closeAll(it);
  expect(rows(it).filter(({ state }) => state !== 'proven')).toEqual([]);
  expect(appended(it.beside())).toHaveLength(200);
});

test('if the narrowest query is refused too, no window is split, except at the start of the answered time', async () => {
  const it = await twoDays({ oldest: base + 20 * hour + 1_234 * second });
  await closeAll(it);
  const gaps = rows(it).filter(({ state }) => state === 'gap');
  expect(gaps.at(-1)?.to).toBeLessThanOrEqual(base + 20 * hour + 1_236 * second);
  expect(gaps.at(-1)?.to).toBeGreaterThan(base + 20 * hour + 1_230 * second);
  expect(gaps.length).toBeLessThan(30);
  expect(it.source.requests.length).toBeLessThan(1_500);
});

test('a gap that is later refused for its width is split until its parts are answered', async () => {
  const it = await twoDays({ oldest: Infinity });
  await closeAll(it);
  const before = rows(it);
  expect(before.every(({ state, reason }) => state === 'gap' && reason === 'unreadable')).toBe(true);
  Object.assign(it.source.switches, { oldest: -Infinity, widest: hour });
  it.clock.wall += 10 * 60_000;
  await again(it);
  expect(rows(it).filter(({ state }) => state !== 'proven')).toEqual([]);
  expect(rows(it).length).toBeGreaterThan(before.length);
  expect(tilingFaults(it.beside())).toEqual([]);
  const { frontier, live } = it.journal.progress(sourceId);
  expect(frontier).toBe(live.closedUntil);
  expect(appended(it.beside())).toHaveLength(470);
});

test('a gap is not split while the service counts fewer records than it returned: the half that lost them is unknown', async () => {
  const it = await twoDays({ unreadable: new Set([3]) });
  await closeAll(it);
  const before = rows(it);
  const gap = before.find(({ state }) => state === 'gap');
  expect(gap).toMatchObject({ reason: 'unreadable', attempts: 1 });
  Object.assign(it.source.switches, { unreadable: new Set(), widest: minute });
  it.clock.wall += 70_000;
  expect(await it.closer.retry(it.source.now(), it.signal)).toBe(true);
  expect(rows(it).map(({ from }) => from)).toEqual(before.map(({ from }) => from));
});

test.each([false, true])('after a poll refused for its width, or a timeout, the next poll has half the width (slow: %s)', async (slow) => {
  const it = await twoDays();
  await it.poll();
  it.clock.wall += 6 * 3_600_000;
  Object.assign(it.source.switches, { widest: 6 * minute, slow });
  it.source.add(9_999, it.source.now() - minute, 0);
  let resume = await it.poll();
  let polls = 1;
  for (; resume !== undefined && polls < 20; polls += 1) resume = await it.poll();
  // Six hours, halved until they are less than six minutes.
  expect(polls).toBe(7);
  expect(appended(it.beside()).length).toBeGreaterThan(0);
});
