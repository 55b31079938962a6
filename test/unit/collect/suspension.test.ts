/**
 * The loop of a source whose permissions shrink, whose clock is wrong, or that refuses requests:
 * the reports, the windows that stay open, and how it resumes.
 */
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import { base, hour, minute, second } from '../../support/records.ts';
import { opened, source as sourceId } from '../../support/journal/opening.ts';
import { faultsOf, seenFaults, tilingFaults } from '../../support/journal/recompute.ts';
import { begun, isLivePoll, running } from '../../support/collect/running.ts';
import type { Running } from '../../support/collect/running.ts';
import { appended, owned, world } from '../../support/collect/world.ts';
import { sized } from '../../support/long-run.ts';

const everything = { from: base, to: Number.MAX_SAFE_INTEGER };
const rich = { userNetwork: { ipAddress: '192.0.2.7' } };

/** The ledger entries about suspensions: state, reason, and whether from and until are equal. */
async function holds(it: Running): Promise<unknown[]> {
  const entries = await it.journal.read(0, { records: 100_000, bytes: 1e9 });
  return entries
    .filter(({ kind }) => kind === 'ledger')
    .map(({ text }) => JSON.parse(text) as { ledger: string; state: string; reason: string; from: number; to: number })
    .filter(({ ledger }) => ledger === 'suspension')
    .map(({ state, reason, from, to: until }) => [state, reason, from === until]);
}

/** A record each minute for this period, all with their fields. */
function fill(it: Running, from: number, until: number): void {
  for (let time = from, id = Math.floor((from - base) / second); time < until; time += minute, id += 60)
    it.source.add(id, time, time, rich);
}

// promise: A source that hides fields is suspended within one poll. Once they are back, all records arrive in full.
test('lost rights to fields suspend the source within one poll, and when they are back all records arrive in full', async () => {
  const it = await begun({ after: 2 * hour, pageSize: 50 });
  fill(it, base + minute, base + 5 * hour);
  await it.runUntil(base + 2.5 * hour);
  const before = it.journal.progress(sourceId).live.closedUntil;
  expect(before).toBeGreaterThanOrEqual(base + 2 * hour);
  const full = [...it.source.records];
  const poor = full.map((each) => ({ ...each, text: JSON.stringify({ ...JSON.parse(each.text), userNetwork: undefined }) }));
  it.source.records.splice(0, Infinity, ...poor);
  await it.runUntil(base + 2.5 * hour + 3 * minute);
  expect(it.collector.view()).toMatchObject({
    suspension: true,
    trouble: expect.stringMatching(/^suspended \(fields\): userNetwork/) as string,
  });
  const held = it.journal.progress(sourceId).live.closedUntil;
  await it.runUntil(base + 3.5 * hour);
  expect(it.journal.progress(sourceId)).toMatchObject({ state: 'suspended', live: { closedUntil: held } });
  // Tested each minute, and a live poll each half minute: no other request.
  const from = it.source.requests.length;
  await it.runUntil(base + 3.5 * hour + 10 * minute);
  expect(it.source.requests.length - from).toBeLessThan(40);
  it.source.records.splice(0, Infinity, ...full);
  await it.runUntil(base + 5.5 * hour);
  expect(it.collector.view().suspension).toBe(false);
  const db = it.beside();
  expect(appended(db)).toEqual(owned(full, everything));
  expect([...faultsOf(db), ...seenFaults(db), ...tilingFaults(db)]).toEqual([]);
  const texts = (await it.journal.read(0, { records: 100_000, bytes: 1e9 })).filter(({ kind }) => kind === 'record');
  expect(texts.filter(({ text }) => !text.includes('userNetwork'))).toEqual([]);
  expect(await holds(it)).toEqual([
    ['suspended', 'fields', true],
    ['active', 'fields', true],
  ]);
  expect(it.counted.suspensions).toEqual(['fields']);
  expect(it.journal.progress(sourceId).frontier).toBeGreaterThan(base + 4.5 * hour);
});

// promise: A source that hides records is suspended, also in quiet times. Once they are back, nothing is lost.
test('rights that shrink to fewer rows are found in quiet times too, and nothing is lost once they are back', async () => {
  const it = await begun({ after: 3 * hour, pageSize: 50 });
  fill(it, base + minute, base + 3 * hour);
  await it.runUntil(base + 3.6 * hour);
  const full = [...it.source.records];
  // Only every fifth record is an own record.
  const own = full.filter((_, i) => i % 5 === 0);
  it.source.records.splice(0, Infinity, ...own);
  await it.runUntil(base + 4.2 * hour);
  expect(it.collector.view()).toMatchObject({ suspension: true, trouble: expect.stringMatching(/^suspended \(rows\)/) as string });
  expect(it.beside().prepare("SELECT count(*) AS n FROM windows WHERE reason = 'reread'").get()).toEqual({ n: 2 });
  expect(it.beside().prepare("SELECT count(*) AS n FROM windows WHERE reason = 'shrunk'").get()).toEqual({ n: 0 });
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  // Records of this period are hidden except own ones.
  fill(it, base + 4.25 * hour, base + 4.5 * hour);
  const added = it.source.records.splice(own.length, Infinity);
  it.source.records.push(...added.filter((_, i) => i % 5 === 0));
  await it.runUntil(base + 5 * hour);
  expect(it.journal.progress(sourceId).live.closedUntil).toBe(reached);
  it.source.records.splice(0, Infinity, ...full, ...added);
  await it.runUntil(base + 6.5 * hour);
  const db = it.beside();
  expect(it.collector.view().suspension).toBe(false);
  expect(appended(db)).toEqual(owned(it.source.records, everything));
  expect(db.prepare("SELECT count(*) AS n FROM windows WHERE reason IS NOT NULL OR state <> 'proven'").get()).toEqual({ n: 0 });
  expect(await holds(it)).toEqual([
    ['suspended', 'rows', true],
    // Other windows that shrank, once they were counted.
    ['suspended', 'rows', true],
    ['active', 'rows', true],
  ]);
});

test('403 without Retry-After: three fresh tokens in a minute, then a suspension with one request a minute, which ends with an answer', async () => {
  const it = await begun({ after: hour });
  fill(it, base + minute, base + 3 * hour);
  await it.runUntil(base + 1.5 * hour);
  let isForbidden = true;
  const asked: number[] = [];
  it.source.before = () => {
    if (!isForbidden) return;
    asked.push(it.clock.monotonic());
    throw new WaybillError('source_forbidden', 'cannot read: the right logs.read.all is missing');
  };
  await it.runUntil(base + 1.5 * hour + 20 * minute);
  expect(it.collector.view()).toMatchObject({
    suspension: true,
    trouble: expect.stringMatching(/^suspended \(forbidden\): .*logs\.read\.all/) as string,
  });
  // The first four of one request within a minute, then one a minute for each of the two that wait.
  const begin = asked[0] ?? 0;
  expect(asked.filter((at) => at - begin < 61_000).length).toBeGreaterThanOrEqual(4);
  expect(asked.filter((at) => at - begin > 300_000 && at - begin <= 900_000).length).toBeLessThanOrEqual(22);
  expect(it.source.renewed).toBeGreaterThanOrEqual(3);
  isForbidden = false;
  await it.runUntil(base + 4 * hour);
  expect(it.collector.view().suspension).toBe(false);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(await holds(it)).toEqual([
    ['suspended', 'forbidden', true],
    ['active', 'forbidden', true],
  ]);
});

test('a retry asks a repaired service at once with a new token; until then the view names the failure and the next attempt', async () => {
  for (const code of ['source_forbidden', 'source_busy'] as const) {
    const it = await begun({ after: hour });
    let isBroken = true;
    it.source.before = () => {
      if (isBroken) throw new WaybillError(code, 'cannot read: refused');
    };
    await it.runUntil(base + hour + 20 * minute + 20 * second);
    const { failing } = it.collector.view();
    expect(failing).toMatchObject({ code, message: 'cannot read: refused' });
    expect(failing?.since).toBeLessThan(base + hour + 2 * minute);
    // Pauses are up to a minute.
    expect(failing?.nextAttempt).toBeGreaterThan(it.source.now());
    expect(failing?.nextAttempt).toBeLessThanOrEqual(it.source.now() + minute);
    isBroken = false;
    const { renewed } = it.source;
    const began = it.source.now();
    it.collector.retry();
    await it.runUntil(began + second);
    expect(it.source.renewed).toBeGreaterThan(renewed);
    expect(it.collector.view().failing).toBeUndefined();
    expect(it.collector.view().lastSuccess).toBeGreaterThanOrEqual(began);
  }
});

test('a 403 that a fresh token resolves does not suspend the source', async () => {
  const it = await begun({ after: hour });
  let left = 2;
  it.source.before = () => {
    if ((left -= 1) >= 0) throw new WaybillError('source_forbidden', 'cannot read: the right is missing');
  };
  await it.runUntil(base + hour + 10 * minute);
  expect(it.source.renewed).toBe(2);
  expect(await holds(it)).toEqual([]);
});

test('a clock that is ahead, and its correction, are lines of the ledger', async () => {
  const it = await begun({ after: hour });
  it.source.skew = 2 * hour;
  await it.runUntil(it.source.now() + 20 * minute);
  expect(it.journal.progress(sourceId)).toMatchObject({ state: 'suspended', suspension: { reason: 'clock' } });
  // The clock of this machine is corrected.
  it.clock.wall += 2 * 3_600_000;
  it.source.skew = 0;
  await it.runUntil(it.source.now() + 10 * minute);
  expect(await holds(it)).toEqual([
    ['suspended', 'clock', true],
    ['active', 'clock', true],
  ]);
  expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(base);
});

test('a suspension continues after a restart, with the same test', async () => {
  const it = await begun({ after: 2 * hour, pageSize: 50 });
  fill(it, base + minute, base + 4 * hour);
  await it.runUntil(base + 2.5 * hour);
  const full = [...it.source.records];
  it.source.records.splice(
    0,
    Infinity,
    ...full.map((each) => ({ ...each, text: JSON.stringify({ ...JSON.parse(each.text), userNetwork: undefined }) })),
  );
  await it.runUntil(base + 2.6 * hour);
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  const visibility = it.collector.visibilityProfile();
  await it.journal[Symbol.asyncDispose]();
  const { journal } = await opened({ directory: it.directory, clock: it.clock });
  journal.db.pragma('synchronous = OFF');
  const again = running({ ...it, journal }, {}, journal, { visibility });
  await again.runUntil(base + 3 * hour);
  expect(again.collector.view()).toMatchObject({ suspension: true, trouble: expect.stringMatching(/^suspended \(fields\)/) as string });
  expect(journal.progress(sourceId).live.closedUntil).toBe(reached);
  it.source.records.splice(0, Infinity, ...full);
  await again.runUntil(base + 4.5 * hour);
  expect(appended(it.beside())).toEqual(owned(full, everything));
  expect(again.counted.suspensions).toEqual([]);
});

test('a second with only 503 responses, while others are answered, is read in smaller pages and left as a gap; other windows are closed', async () => {
  const it = await begun({ after: 3 * hour, pageSize: 40 });
  fill(it, base + minute, base + 3 * hour);
  const bad = base + 10 * minute;
  let smaller = 0;
  it.source.before = ({ query, pageSize }) => {
    const covers =
      query.endTime !== undefined && Date.parse(`${query.startTime ?? ''}Z`) * 1000 <= bad && bad <= Date.parse(`${query.endTime}Z`) * 1000;
    if (!covers) return;
    if (pageSize > 1 && pageSize < 40) smaller += 1;
    throw new WaybillError('source_busy', 'cannot read: 503');
  };
  await it.runUntil(base + 3.9 * hour);
  expect(smaller).toBeGreaterThan(0);
  const windows = it.beside().prepare('SELECT state, reason, from_us, to_us FROM windows ORDER BY from_us').all() as {
    readonly state: string;
    readonly reason: string | null;
    readonly from_us: number;
    readonly to_us: number;
  }[];
  const open = windows.filter(({ state }) => state !== 'proven');
  // Divided down to the seconds whose padded queries cover that moment.
  expect(open.length).toBeGreaterThan(0);
  for (const { state, reason, from_us, to_us: until_us } of open) {
    expect({ state, reason }).toEqual({ state: 'gap', reason: 'unreadable' });
    expect(from_us).toBeGreaterThanOrEqual(bad - 2e6);
    expect(until_us).toBeLessThanOrEqual(bad + 3e6);
  }
  expect(windows.length).toBeGreaterThan(3);
  it.source.before = () => undefined;
  await it.runUntil(base + 7 * hour);
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
});

test('maintenance requests come before windows are closed, and not during a suspension', async () => {
  const it = await world({ after: hour });
  it.source.delay = 20;
  let turns = 0;
  const own = running(it, {}, it.journal, {
    maintenance: async (signal) => {
      if (turns > 0) return false;
      turns += 1;
      await own.requester.page({ query: {}, page: undefined, pageSize: 1000 }, signal);
      return true;
    },
  });
  await own.runUntil(base + 1.5 * hour);
  expect(turns).toBe(1);
  const asked = it.source.requests.findIndex(({ pageSize }) => pageSize === 1000);
  const closed = it.source.requests.findIndex(({ query, pageSize }) => query.endTime !== undefined && pageSize > 1);
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThan(closed);
  expect(it.source.requests.filter(isLivePoll).length).toBeGreaterThan(10);
  expect(it.source.mostAtOnce).toBe(1);
});

test('after a large deletion one suspension lists all windows that shrank, and ends once all are accepted', async () => {
  const it = await begun({ after: hour, pollInterval: 120_000 });
  for (let id = 1; id <= sized(35, 70); id += 1) it.source.add(id, base + id * 7 * minute);
  await it.runUntil(base + sized(5, 10) * hour);
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  const deleted = it.source.records.filter(({ time }) => time > base + 20 * minute);
  it.source.records.splice(0, Infinity, ...it.source.records.filter((record) => !deleted.includes(record)));
  await it.runUntil(it.source.now() + 2 * hour);
  const hold = it.journal.progress(sourceId).suspension;
  // Computed in the test: records that a window's padded query showed and no longer shows.
  const lacking = it
    .beside()
    .prepare<[number], { from: number; to: number }>(
      'SELECT from_us AS "from", to_us AS "to" FROM windows WHERE from_us < ? ORDER BY from_us',
    )
    .all(reached)
    .filter(({ from, to: until }) => deleted.some(({ time }) => from - second <= time && time <= until + second))
    .map(({ from }) => from);
  expect(lacking.length).toBeGreaterThan(sized(10, 20));
  expect([...(hold?.windows ?? []), ...(hold?.shrunk ?? [])].sort((a, b) => a - b)).toEqual(lacking);
  for (const from of lacking) await it.journal.acceptGap(sourceId, from, { at: base, actor: 'j.doe', reason: 'deleted by order' });
  await it.runUntil(it.source.now() + 3 * hour);
  expect(it.counted.suspensions).toEqual(['rows']);
  expect(it.journal.progress(sourceId)).toMatchObject({ state: 'active' });
  expect(it.journal.progress(sourceId).frontier).toBeGreaterThan(it.source.now() - hour);
});
