import { expect, test } from 'vitest';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import type { Suspension, LedgerWindow } from '../../../src/model/ledger.ts';
import type { Micros } from '../../../src/model/time.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { base, day, hour, minute, recordText, second } from '../../support/records.ts';
import { gap, proven, source as sourceId } from '../../support/journal/opening.ts';
import { seenFaults, tilingFaults } from '../../support/journal/recompute.ts';
import { ages, appended, owned, closeDelay, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';

const everything = { from: 0, to: Number.MAX_SAFE_INTEGER };

interface Row extends Pick<LedgerWindow, 'from' | 'to' | 'state' | 'records' | 'late' | 'recounts' | 'attempts'> {
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
      `SELECT from_us AS "from", to_us AS "to", state, total, records, late, recounts, attempts, reason, next_us AS next, closed_us AS closed, query
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

/** Advances server time in steps of the close delay, so that each window is closed when it is due. */
async function closeUntil(it: World, until: number): Promise<number> {
  let closed = await closeAll(it);
  for (let at = it.source.now() + closeDelay; at <= until; at += closeDelay) {
    go(it, at);
    closed += await closeAll(it);
  }
  return closed;
}

/** Advances server time to `at`. */
function go(it: World, at: number): void {
  it.clock.wall += (at - it.source.now()) / 1000;
}

/** Schedules a recount of these windows at once. */
async function makeDue(it: World, windows: readonly Row[]): Promise<void> {
  for (const { from, to, attempts } of windows)
    await it.journal.remark(
      sourceId,
      { from, to },
      { reason: undefined, message: 'scheduled by the test', next: to, attempts },
      it.source.now(),
      30 * day,
    );
}

/** Runs due work until none is left. @returns the number of rounds with work */
async function again(it: World): Promise<number> {
  let turns = 0;
  while (await it.closer.retry(it.source.now(), it.signal)) turns += 1;
  return turns;
}

test('windows are closed once closeDelay has passed, and not before; they tile', async () => {
  const it = await world({ after: 2 * closeDelay + minute });
  for (let id = 1; id <= 50; id += 1) it.source.add(id, base + id * 130 * second);
  expect(await closeUntil(it, base + 2 * hour + 300 * second)).toBeGreaterThan(5);
  expect(await closeAll(it)).toBe(0);
  for (const { to: until, closed, state } of rows(it)) {
    expect(closed).toBeGreaterThanOrEqual(until + closeDelay);
    expect(state).toBe('proven');
  }
  const { live, frontier } = it.journal.progress(sourceId);
  expect(frontier).toBe(live.closedUntil);
  expect(live.closedUntil).toBeGreaterThan(base + hour);
  expect(tilingFaults(it.beside())).toEqual([]);
  // Not one second before closeDelay has passed.
  go(it, live.closedUntil + 2 * closeDelay - second);
  expect(await closeAll(it)).toBe(0);
  go(it, live.closedUntil + 2 * closeDelay);
  expect(await closeAll(it)).toBe(1);
});

test('a dense period is split down to seconds, no record is lost at the splits, and windows become wider again', async () => {
  const it = await world({ after: 2 * hour, pageSize: 1000 });
  let id = 0;
  // 12,000 in one second in the middle, its edges among them, and some around it.
  for (let i = 0; i < 12_000; i += 1) it.source.add((id += 1), base + 600 * second + Math.floor((i * (second - 1)) / 11_999));
  for (let i = 0; i < 1_200; i += 1) it.source.add((id += 1), base + i * second);
  it.source.add((id += 1), base + 7_100 * second, 0);
  await closeAll(it);
  expect(tilingFaults(it.beside())).toEqual([]);
  const all = rows(it);
  expect(all.every(({ state }) => state === 'proven')).toBe(true);
  // Only a window of one second may contain more than 9,900.
  const crowded = all.filter(({ records: own }) => own > 9_900);
  expect(crowded).toMatchObject([{ from: base + 600 * second, to: base + 601 * second, records: 12_001 }]);
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  const own = owned(it.source.records, { from: base, to: reached });
  expect(own).toHaveLength(13_200);
  expect(all.reduce((sum, { records: own }) => sum + own, 0)).toBe(13_200);
  expect(appended(it.beside())).toEqual(own);
  expect(Math.max(...all.slice(-3).map(({ from, to: until }) => until - from))).toBeGreaterThan(60 * second);
});

test('a gap is retried after 1, 5 and 15 minutes, at the ages of recounts, then daily, and its proof advances the frontier', async () => {
  const it = await world({ after: 2 * closeDelay, switches: { total: 'missing' } });
  it.source.add(1, base + second);
  await closeAll(it);
  const { from, to: until } = first(it);
  expect(first(it)).toMatchObject({ state: 'gap', reason: 'total', records: 1, total: null, attempts: 1 });
  const tried: number[] = [];
  for (let turn = 0; turn < 13; turn += 1) {
    const { next, closed } = first(it);
    if (next === null) throw new Error('never tried again');
    tried.push(turn < 3 ? next - closed : next - until);
    go(it, next - 1);
    expect(await it.closer.retry(it.source.now(), it.signal)).toBe(false);
    go(it, next);
    expect(await it.closer.retry(it.source.now(), it.signal)).toBe(true);
    expect(first(it)).toMatchObject({ state: 'gap', attempts: turn + 2, recounts: 0 });
  }
  expect(tried.slice(0, 10)).toEqual([minute, 5 * minute, 15 * minute, ...ages]);
  // After the last age the gap is tried again daily, counted from the previous attempt (an attempt takes a few seconds).
  for (const [i, wait] of tried.slice(10).entries()) expect(Math.floor(wait / day)).toBe(31 + i);
  expect(it.journal.progress(sourceId).frontier).toBe(from);
  // Days later the service sends totals again.
  it.source.switches.total = 'true';
  go(it, first(it).next ?? 0);
  await it.closer.retry(it.source.now(), it.signal);
  expect(first(it)).toMatchObject({ state: 'proven', reason: null, total: 1, next: null });
  expect(it.journal.progress(sourceId).frontier).toBe(until);
});

test('a closed window is counted once at each age by exactly its stored query, until it is final', async () => {
  const it = await world({ after: 2 * closeDelay });
  it.source.add(1, base + second);
  await closeAll(it);
  const { to: until } = first(it);
  // The query as a release with another padding would have stored it.
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
    expect(first(it)).toMatchObject({ recounts: i + 1, state: 'proven', reason: null });
  }
  expect(first(it).next).toBeNull();
  go(it, until + 400 * day);
  expect(await again(it)).toBe(0);
});

test('ages that passed without a recount lead to one recount; the next is due at the next age', async () => {
  const it = await world({ after: 2 * closeDelay });
  await closeAll(it);
  go(it, base + 4 * day);
  expect(await again(it)).toBe(1);
  expect(first(it)).toMatchObject({ recounts: 1, next: first(it).to + 7 * day });
});

// promise: A record that becomes visible after its window was closed is found by a recount and counted as late, and the window is proven again.
test('a record that became visible after its window was closed is found at the next age, counted as late, and the window is proven again', async () => {
  const it = await world({ after: 2 * closeDelay });
  it.source.add(1, base + second);
  await closeAll(it);
  const { to: until } = first(it);
  it.source.add(2, base + 2 * second, until + 5 * hour);
  go(it, until + hour);
  await again(it);
  expect(first(it)).toMatchObject({ total: 1, late: 0, recounts: 1 });
  go(it, until + 6 * hour);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'proven', reason: null, total: 2, records: 2, late: 1, recounts: 2, next: until + day });
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  expect(seenFaults(it.beside())).toEqual([]);
});

test('a re-read without a proof leaves the old proof, lists the window, and is retried like a gap', async () => {
  const it = await world({ after: 2 * closeDelay });
  it.source.add(1, base + second);
  await closeAll(it);
  const { to: until } = first(it);
  it.source.switches.total = 'one more';
  go(it, until + hour);
  await again(it);
  const { next, closed } = first(it);
  expect(first(it)).toMatchObject({ state: 'proven', reason: 'reread', total: 1, records: 1, recounts: 1, attempts: 1 });
  expect(closed).toBeLessThan(until + hour);
  expect(it.journal.progress(sourceId).frontier).toBe(until);
  expect((next ?? 0) - it.source.now()).toBe(minute);
  it.source.switches.total = 'true';
  go(it, next ?? 0);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'proven', reason: null, total: 1, attempts: 0, next: until + 6 * hour });
});

/**
 * Three closed windows with 3, 2 and 4 records; the first is due for a recount one hour after its
 * end.
 */
async function threeWindows(): Promise<{ it: World; to: number; windows: Row[] }> {
  const it = await world({ after: 4 * closeDelay });
  [3, 2, 4].forEach((count, window) => {
    for (let i = 1; i <= count; i += 1) it.source.add(window * 10 + i, base + window * closeDelay + i * minute);
  });
  await closeAll(it);
  const windows = rows(it);
  expect(windows.map(({ records: own }) => own)).toEqual([3, 2, 4]);
  return { it, to: first(it).to, windows };
}

test('a smaller total is recounted after closeDelay; if another window shows all its records, the window has shrunk', async () => {
  const { it, to: until } = await threeWindows();
  it.source.records.shift();
  go(it, until + hour);
  expect(await again(it)).toBe(1);
  // A replica may lag: the window stays, its stored total is not lowered, and the difference is
  // logged.
  const counted = it.source.now();
  expect(first(it)).toMatchObject({
    state: 'proven',
    reason: null,
    total: 3,
    records: 3,
    recounts: 0,
    next: counted + closeDelay,
    attempts: 1,
  });
  expect(it.log.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ fields: { stored: 3, total: 2 } }]);
  go(it, counted + closeDelay);
  it.source.requests.length = 0;
  expect(await it.closer.retry(it.source.now(), it.signal)).toBe(true);
  // The proof, true at its time, stays; its recounts end.
  expect(first(it)).toMatchObject({ state: 'proven', reason: 'shrunk', total: 3, records: 3, next: null });
  expect(it.log.lines.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { stored: 3, total: 2 } }]);
  expect(it.reported).toEqual({ suspensions: [], vanished: 1 });
  expect(it.suspensions.current).toBeUndefined();
  // Three requests: the window, the window with the most records of the last day, and the first
  // window again, since its rows may have returned.
  const [asked, , richest] = rows(it).map(({ query }) => JSON.parse(query) as unknown);
  expect(it.source.requests.map(({ query }) => query)).toEqual([asked, richest, asked]);
  const line = (await it.journal.read(it.journal.head().seq - 1, { records: 1, bytes: 1e6 }))[0];
  expect(JSON.parse(line?.text ?? '')).toMatchObject({ ledger: 'window', reason: 'shrunk', total: 3, records: 3 });
  go(it, until + 40 * day);
  await again(it);
  expect(first(it)).toMatchObject({ reason: 'shrunk' });
});

test('when every window has shrunk, the source is suspended after three fresh tokens; nothing is closed, and the suspension ends when the rows are shown again', async () => {
  const { it, to: until, windows } = await threeWindows();
  // From now on one record of each window is hidden.
  const hidden = it.source.records.filter((_, i) => [0, 3, 5].includes(i));
  const all = [...it.source.records];
  it.source.records.splice(0, all.length, ...all.filter((record) => !hidden.includes(record)));
  go(it, until + hour);
  await again(it);
  expect(it.suspensions.current).toBeUndefined();
  go(it, first(it).next ?? 0);
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.source.renewed).toBe(3);
  expect(it.suspensions.current).toMatchObject({ reason: 'rows', windows: [windows[2]?.from, windows[0]?.from] });
  expect(it.journal.progress(sourceId)).toMatchObject({ state: 'suspended', suspension: { reason: 'rows' } });
  expect(it.reported).toEqual({ suspensions: ['rows'], vanished: 0 });
  // Both windows are listed as open, and their proofs are unchanged.
  expect(rows(it).map(({ reason, records: own, next }) => [reason, own, next === null])).toEqual([
    ['reread', 3, true],
    [null, 2, false],
    ['reread', 4, true],
  ]);
  // No recount happens now, and yet they are not final.
  expect(ledgerReport(it.beside()).sources[0]?.windows.map(({ state }) => state)).toEqual(['proven', 'proven', 'proven']);
  const suspension = (): Suspension => it.suspensions.current ?? { reason: 'rows', message: 'none', since: 0 };
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(false);
  it.source.records.splice(0, Infinity, ...all);
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(true);
  await it.suspensions.end('rows');
  expect(it.journal.progress(sourceId)).toMatchObject({ state: 'active', suspension: undefined });
  go(it, it.source.now() + second);
  await again(it);
  expect(rows(it).every(({ state, reason, attempts: tries }) => state === 'proven' && reason === null && tries === 0)).toBe(true);
});

/**
 * All three windows lack a record, the source is suspended, and all windows that shrank are listed.
 * `give` restores the rows.
 */
async function threeSuspended(): Promise<{ it: World; suspension: () => Suspension; all: World['source']['records']; lack: () => void }> {
  const { it, to: until } = await threeWindows();
  const all = [...it.source.records];
  const lack = (): void => void it.source.records.splice(0, Infinity, ...all.filter((_, i) => ![0, 3, 5].includes(i)));
  lack();
  go(it, until + hour);
  await again(it);
  go(it, first(it).next ?? 0);
  await it.closer.retry(it.source.now(), it.signal);
  const suspension = (): Suspension => it.suspensions.current ?? { reason: 'rows', message: 'none', since: 0 };
  while (await it.closer.recounter.sampleRecount(suspension(), it.signal));
  expect(suspension()).toMatchObject({ windows: [expect.any(Number), expect.any(Number)], shrunk: [rows(it)[1]?.from] });
  return { it, suspension, all, lack };
}

/** Windows that status and the report show as open: how many, and the reason of each. */
function doubted(it: World): (number | (string | null)[] | undefined)[] {
  const live = {
    closeDelaySeconds: () => 900,
    paused: undefined,
    maxSize: 1,
    configured: [sourceId],
    source: () => undefined,
    sink: () => undefined,
  };
  const { sources } = snapshotOf(it.beside(), '0.1.0', 0, live);
  const { gap = 0, inDoubt = 0 } = sources[0]?.windows ?? {};
  return [gap + inDoubt, ledgerReport(it.beside()).sources[0]?.windows.map(({ reason }) => reason)];
}

test('when a suspension ends, each window that shrank is recounted at once, and stays in doubt until then', async () => {
  const { it, suspension, all } = await threeSuspended();
  expect(doubted(it)).toEqual([3, ['reread', 'reread', 'reread']]);
  it.source.records.splice(0, Infinity, ...all);
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(true);
  await it.suspensions.end('rows');
  // The ledger stores it, so that it survives a kill at this moment.
  expect(doubted(it)).toEqual([3, ['reread', 'reread', 'reread']]);
  const now = it.source.now();
  expect(rows(it).map(({ next }) => (next ?? Infinity) <= now)).toEqual([true, true, true]);
  it.source.requests.length = 0;
  expect(await again(it)).toBe(3);
  // One request for each window: an equal count confirms its proof.
  expect(it.source.requests.map(({ pageSize }) => pageSize)).toEqual([1, 1, 1]);
  expect(doubted(it)).toEqual([0, [null, null, null]]);
  expect(rows(it).every(({ attempts: tries, recounts, next }) => tries === 0 && recounts > 0 && next !== null)).toBe(true);
});

test('rows that are hidden again during these recounts suspend the source again: windows in doubt are compared with each other', async () => {
  const { it, all, lack } = await threeSuspended();
  it.source.records.splice(0, Infinity, ...all);
  await it.suspensions.end('rows');
  lack();
  // Older than a day: only another window shows that the records still exist.
  go(it, it.source.now() + 2 * day);
  for (let turn = 0; turn < 3 && !it.suspensions.current; turn += 1) await it.closer.retry(it.source.now(), it.signal);
  expect(it.reported).toEqual({ suspensions: ['rows', 'rows'], vanished: 0 });
  expect(doubted(it)).toEqual([3, ['reread', 'reread', 'reread']]);
});

test('rows that a fresh token shows again do not suspend the source', async () => {
  const { it, to: until } = await threeWindows();
  const all = [...it.source.records];
  it.source.records.splice(0, Infinity, ...all.filter((_, i) => i % 3 === 1));
  it.source.renewing = () => it.source.records.splice(0, Infinity, ...all);
  go(it, until + hour);
  await again(it);
  go(it, first(it).next ?? 0);
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.reported.suspensions).toEqual([]);
  // Counts the window again, and works through the hours that became due.
  go(it, first(it).next ?? 0);
  await again(it);
  expect(rows(it).map(({ reason, attempts: tries }) => [reason, tries])).toEqual([
    [null, 0],
    [null, 0],
    [null, 0],
  ]);
});

test('windows closed since the last full visibility are recounted when a suspension ends, whatever their age', async () => {
  const { it, to: until } = await threeWindows();
  const all = [...it.source.records];
  go(it, until + hour);
  await again(it);
  // From here on the service shows no record, so the next window is closed without its four records.
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  for (let i = 0; i < 4; i += 1) all.push({ time: reached + i * minute, visible: 0, text: recordText(100 + i, reached + i * minute) });
  it.source.records.splice(0, Infinity);
  go(it, reached + 2 * closeDelay + hour);
  await it.closer.closeNext(it.source.now(), it.signal);
  expect(rows(it).at(-1)).toMatchObject({ from: reached, state: 'proven', records: 0 });
  await it.suspensions.begin({ reason: 'forbidden', message: 'the right is missing' });
  it.source.records.push(...all);
  await it.suspensions.end('forbidden');
  const due = (await it.journal.due(sourceId, it.source.now()))?.from;
  expect(due).toBeDefined();
  await again(it);
  expect(rows(it).at(-1)).toMatchObject({ from: reached, state: 'proven', records: 4, reason: null });
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  // The same if the window has no recount ahead: its uids stay until full visibility is confirmed,
  // so that it can be read again.
  const next = it.journal.progress(sourceId).live.closedUntil;
  for (let i = 0; i < 4; i += 1) all.push({ time: next + i * minute, visible: 0, text: recordText(200 + i, next + i * minute) });
  it.source.records.splice(0, Infinity);
  go(it, next + 50 * day);
  await it.closer.closeNext(it.source.now(), it.signal);
  await it.closer.closeNext(it.source.now(), it.signal);
  const old = rows(it).find(({ from }) => from === next);
  expect(old).toMatchObject({ state: 'proven', records: 0, next: null });
  await it.suspensions.begin({ reason: 'rows', message: 'less is shown', windows: [] });
  it.source.records.push(...all);
  await it.suspensions.end('rows');
  await again(it);
  expect(rows(it).find(({ from }) => from === next)).toMatchObject({ state: 'proven', records: 4, reason: null, next: null });
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  // Once a window is counted completely after that, its uids expire as usual.
  await closeAll(it);
  expect(it.journal.remembers(sourceId, { from: next, to: next + second })).toBe(true);
  go(it, it.source.now() + 2 * closeDelay);
  it.suspensions.foundFullVisibility();
  await closeAll(it);
  expect(it.journal.remembers(sourceId, { from: next, to: next + second })).toBe(false);
});

test('before any recount the first window alone stands for full visibility: windows closed after it with fewer records are recounted', async () => {
  const it = await world({ after: 6 * closeDelay });
  for (let i = 1; i <= 6; i += 1) it.source.add(i, base + i * minute);
  const closeTo = (to: number): Promise<boolean> =>
    it.closer.closeNext(it.source.now(), it.signal, { ...it.journal.progress(sourceId).live, to });
  await closeTo(base + closeDelay);
  go(it, it.source.now() + second);
  // The next three are closed while only own records are shown, and then counted alike.
  const all = [...it.source.records];
  for (let i = 0; i < 9; i += 1)
    all.push({ time: base + closeDelay + i * 4 * minute, visible: 0, text: recordText(50 + i, base + closeDelay + i * 4 * minute) });
  it.source.records.splice(0, Infinity, ...all.filter((_, i) => i % 5 === 1));
  for (let window = 2; window <= 5; window += 1) await closeTo(base + window * closeDelay);
  await makeDue(it, rows(it).slice(1));
  await again(it);
  expect(rows(it).filter(({ recounts }) => recounts > 0).length).toBeGreaterThan(2);
  await makeDue(it, [first(it)]);
  await again(it);
  go(it, first(it).next ?? 0);
  for (let turn = 0; turn < 5 && !it.suspensions.current; turn += 1) await it.closer.retry(it.source.now(), it.signal);
  expect(it.suspensions.current).toMatchObject({ reason: 'rows', windows: [base] });
  it.source.records.splice(0, Infinity, ...all);
  await it.suspensions.end('rows');
  await again(it);
  expect(appended(it.beside())).toEqual(owned(all, everything));
});

test('a suspension ends when an operator accepts the windows that shrank', async () => {
  const { it, to: until } = await threeWindows();
  it.source.records.splice(0, Infinity);
  go(it, until + hour);
  await again(it);
  go(it, first(it).next ?? 0);
  await it.closer.retry(it.source.now(), it.signal);
  const suspension = (): Suspension => it.suspensions.current ?? { reason: 'rows', message: 'none', since: 0 };
  const accept = async (froms: readonly Micros[] = []): Promise<void> => {
    for (const from of froms) await it.journal.acceptGap(sourceId, from, { at: accepted, actor: 'j.doe', reason: 'deleted by order' });
  };
  // Server time has a resolution of a second; the local clock is ahead by the rest.
  const accepted = it.source.now() + 0.9 * second;
  const others = rows(it)[1]?.from ?? 0;
  await expect(accept([others])).rejects.toThrow('it is proven');
  await accept(suspension().windows);
  // Other windows that shrank are not known yet.
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(false);
  while (await it.closer.recounter.sampleRecount(suspension(), it.signal));
  expect(suspension()).toMatchObject({
    shrunk: [others],
    message: expect.stringContaining('1 of 1 other windows show fewer too') as string,
  });
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(false);
  await accept(suspension().shrunk);
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(true);
  await it.suspensions.end('rows');
  const report = ledgerReport(it.beside());
  const [end] = report.sources[0]?.suspensions.slice(-1) ?? [];
  // The operation comes before its consequence.
  expect([end?.event, end?.at]).toEqual(['active', report.operations.at(-1)?.at]);
  expect(rows(it).map(({ state, reason }) => [state, reason])).toEqual(Array(3).fill(['accepted', 'reread']));
  // Nothing is left that could start another suspension.
  go(it, it.source.now() + day);
  expect(await it.closer.retry(it.source.now(), it.signal)).toBe(false);
  expect(it.reported.suspensions).toEqual(['rows']);
});

test.each([
  ['of the last day tells it by itself', hour, 'rows'],
  ['that is older has vanished', 2 * day, undefined],
])('if no other window can be counted, one %s', async (_what, age, reason) => {
  const it = await world({ after: 2 * closeDelay });
  [1, 2].forEach((id) => it.source.add(id, base + id * second));
  await closeAll(it);
  it.source.records.shift();
  go(it, first(it).to + age);
  await again(it);
  go(it, first(it).next ?? 0);
  await again(it);
  expect(it.suspensions.current?.reason).toBe(reason);
  expect(first(it)).toMatchObject({ reason: reason === undefined ? 'shrunk' : 'reread', total: 2 });
});

test('a window that was closed while rows were hidden does not show full visibility', async () => {
  const { it, to: until } = await threeWindows();
  go(it, until + hour);
  await again(it);
  const own = it.source.records.splice(0, Infinity).slice(0, 1);
  it.source.records.push(...own);
  // Closed with own records only, and yet the window with the most records by far.
  const { closedUntil: reached } = it.journal.progress(sourceId).live;
  for (let i = 0; i < 9; i += 1) it.source.add(100 + i, reached + i * minute);
  go(it, reached + 2 * closeDelay + minute);
  await closeAll(it);
  expect(rows(it).at(-1)).toMatchObject({ from: reached, records: 9 });
  await makeDue(
    it,
    rows(it).filter(({ total }) => total === 4),
  );
  go(it, it.source.now() + minute);
  await it.closer.retry(it.source.now(), it.signal);
  go(it, rows(it)[2]?.next ?? 0);
  for (let turn = 0; turn < 4 && !it.suspensions.current; turn += 1) await it.closer.retry(it.source.now(), it.signal);
  expect(it.suspensions.current).toMatchObject({ reason: 'rows' });
});

/**
 * Two proven windows with 5 and 3 records around a gap with 4, because the service counted one
 * more; its next attempt is due.
 */
async function gapBetween(): Promise<{ it: World; from: number; gapped: () => Row }> {
  const it = await world({ after: 4 * closeDelay });
  [5, 4, 3].forEach((count, window) => {
    for (let i = 1; i <= count; i += 1) it.source.add(window * 10 + i, base + window * closeDelay + i * minute);
  });
  const from = base + closeDelay;
  it.source.before = ({ query }) => {
    it.source.switches.total = query.startTime === '2026-11-20T02:14:59.00' ? 'one more' : 'true';
  };
  await closeAll(it);
  it.source.before = () => undefined;
  it.source.switches.total = 'true';
  const gapped = (): Row => rows(it)[1] as Row;
  expect(gapped()).toMatchObject({ from, state: 'gap', reason: 'count', total: 5 });
  go(it, gapped().next ?? 0);
  return { it, from, gapped };
}

test('a gap that shows fewer records has shrunk if another window shows all its records; without such a window it stays a gap and the source is suspended', async () => {
  const gone = await gapBetween();
  gone.it.source.records.splice(6, 2);
  await again(gone.it);
  expect(gone.gapped()).toMatchObject({ state: 'proven', reason: 'shrunk', total: 2, next: null });
  expect(gone.it.reported).toEqual({ suspensions: [], vanished: 1 });
  const shrunk = gone.it.log.lines.filter(({ event }) => event === 'window.shrunk');
  expect(shrunk).toMatchObject([{ fields: { source: sourceId, stored: 5, total: 2 } }]);

  const { it, from, gapped } = await gapBetween();
  const all = it.source.records.splice(0, Infinity);
  // No record is shown, so every window could be proven empty.
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.source.renewed).toBe(3);
  expect(it.suspensions.current).toMatchObject({ reason: 'rows', windows: [base] });
  expect(it.suspensions.current?.message).toContain('shows 0 of 5 records');
  expect(gapped()).toMatchObject({ state: 'gap', reason: 'count', total: 5 });
  expect(it.reported).toEqual({ suspensions: ['rows'], vanished: 0 });
  const suspension = (): Suspension => it.suspensions.current ?? { reason: 'rows', message: 'none', since: 0 };
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(false);
  it.source.records.push(...all);
  // The service had counted one too many: it now has fewer than that, so the window counts as
  // shrunk although all records exist.
  it.source.add(19, from + 9 * minute);
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(true);
  await it.suspensions.end('rows');
  await again(it);
  expect(gapped()).toMatchObject({ state: 'proven', reason: null, total: 5, records: 5 });
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
});

test('a suspension does not wait for a gap that lost records too: after the other window is accepted, the rest of the gap is proven', async () => {
  const { it, from, gapped } = await gapBetween();
  // All five records of the first window are deleted, and two of the four of the gap; the last
  // window stays intact.
  it.source.records.splice(0, 7);
  await it.closer.retry(it.source.now(), it.signal);
  const suspension = (): Suspension => it.suspensions.current ?? { reason: 'rows', message: 'none', since: 0 };
  expect(suspension()).toMatchObject({
    reason: 'rows',
    windows: [base],
    message: expect.stringContaining('shows 2 of 5 records') as string,
  });
  while (await it.closer.recounter.sampleRecount(suspension(), it.signal));
  expect(suspension().shrunk).toEqual([]);
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(false);
  await it.journal.acceptGap(sourceId, base, { at: base, actor: 'j.doe', reason: 'deleted by order' });
  expect(await it.closer.recounter.test(suspension(), it.signal)).toBe(true);
  // A suspension that lists the gap, as an earlier state may, does not wait for it either.
  expect(await it.closer.recounter.test({ ...suspension(), windows: [base, from] }, it.signal)).toBe(true);
  await it.suspensions.end('rows');
  await again(it);
  expect(gapped()).toMatchObject({ state: 'proven', reason: 'shrunk', total: 2, records: 2, next: null });
  expect(it.reported).toEqual({ suspensions: ['rows'], vanished: 1 });
});

test('rows that are shown again during a retry leave the window a gap, to be retried', async () => {
  const { it, gapped } = await gapBetween();
  const all = it.source.records.splice(0, Infinity);
  const isReference = ({ query }: { query: { startTime?: string } }): boolean => query.startTime === '2026-11-20T01:59:59.00';
  it.source.before = (request) => {
    if (isReference(request) && it.source.records.length === 0) it.source.records.push(...all);
  };
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.suspensions.current).toBeUndefined();
  expect(gapped()).toMatchObject({ state: 'gap', reason: 'count', total: 5, attempts: 2 });
  // The result is the same if the other window cannot be counted.
  it.source.records.splice(0, Infinity);
  it.source.before = (request) => {
    it.source.switches.total = isReference(request) ? 'missing' : 'true';
  };
  go(it, gapped().next ?? 0);
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.suspensions.current).toBeUndefined();
  expect(gapped()).toMatchObject({ state: 'gap', total: 5, attempts: 3 });
});

test('a window that shows fewer records while it is read again keeps its old proof', async () => {
  const { it, to: until } = await threeWindows();
  it.source.add(9, base + 9 * minute);
  const all = [...it.source.records];
  // The total includes the late record; the rows are hidden before the page is read.
  it.source.before = ({ pageSize }) => {
    if (pageSize > 1) it.source.records.length = 0;
  };
  go(it, until + hour);
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.suspensions.current).toMatchObject({ reason: 'rows' });
  expect(first(it)).toMatchObject({ state: 'proven', reason: 'reread', total: 3, records: 3 });
  it.source.before = () => undefined;
  it.source.records.push(...all);
  await it.suspensions.end('rows');
  await again(it);
  expect(first(it)).toMatchObject({ state: 'proven', reason: null, total: 4, records: 4 });
  expect(it.reported).toEqual({ suspensions: ['rows'], vanished: 0 });
});

test('a short lag of a replica leaves only log lines and ledger lines', async () => {
  const it = await world({ after: 2 * closeDelay });
  [1, 2, 3].forEach((id) => it.source.add(id, base + id * second));
  await closeAll(it);
  const { to: until } = first(it);
  it.source.switches.total = 'one less';
  go(it, until + hour);
  await again(it);
  it.source.switches.total = 'true';
  go(it, first(it).next ?? 0);
  await again(it);
  expect(first(it)).toMatchObject({
    state: 'proven',
    reason: null,
    total: 3,
    records: 3,
    attempts: 0,
    recounts: 1,
    next: until + 6 * hour,
  });
});

test('when idle, one window with records is counted at random, at most one in five minutes', async () => {
  const { it } = await threeWindows();
  const { recounter } = it.closer;
  expect(await recounter.checkSamples(it.source.now(), it.signal)).toBe(false);
  it.source.requests.length = 0;
  await it.clock.sleep(299_000, it.signal);
  expect(await recounter.checkSamples(it.source.now(), it.signal)).toBe(false);
  await it.clock.sleep(1_000, it.signal);
  const { seq } = it.journal.head();
  expect(await recounter.checkSamples(it.source.now(), it.signal)).toBe(true);
  expect(await recounter.checkSamples(it.source.now(), it.signal)).toBe(false);
  expect(it.source.requests).toHaveLength(1);
  expect(it.journal.head().seq).toBe(seq);
  // A recount of a window with records has the same effect.
  go(it, first(it).to + hour);
  await again(it);
  await it.clock.sleep(290_000, it.signal);
  expect(await recounter.checkSamples(it.source.now(), it.signal)).toBe(false);
  await it.clock.sleep(10_000, it.signal);
  it.source.records.length = 0;
  expect(await recounter.checkSamples(it.source.now(), it.signal)).toBe(true);
  expect(rows(it).filter(({ attempts: tries }) => tries === 1)).toMatchObject([{ next: it.source.now() + closeDelay, reason: null }]);
});

test('while history is read, its newest windows are sampled although all of them are old', async () => {
  const it = await world({ after: 100 * day });
  it.source.add(1, base + minute);
  await it.closer.closeNext(it.source.now(), it.signal);
  await it.clock.sleep(300_000, it.signal);
  it.source.requests.length = 0;
  expect(await it.closer.recounter.checkSamples(it.source.now(), it.signal)).toBe(true);
  expect(it.source.requests.map(({ query }) => query)).toEqual([JSON.parse(first(it).query)]);
  expect(it.suspensions.lastFullVisibility).toBe(it.source.now());
});

test('a window whose uids are forgotten is never read again, whatever a sample recount finds', async () => {
  const { it } = await threeWindows();
  it.beside().exec('UPDATE windows SET next_us = NULL');
  it.suspensions.foundFullVisibility(base + 2 * day);
  await it.journal.close(sourceId, { from: it.journal.progress(sourceId).live.closedUntil, to: base + 60 * day }, proven(), 30 * day);
  expect(it.journal.remembers(sourceId, first(it))).toBe(false);
  for (let i = 50; i < 60; i += 1) it.source.add(i, base + (i % 3) * closeDelay + i * 2 * second);
  const due = { ...(await it.journal.window(sourceId, base)), from: base, to: first(it).to } as LedgerWindow;
  await it.closer.recounter.recount(due, it.signal);
  // Listed as open, with its proof unchanged.
  expect(first(it)).toMatchObject({ state: 'proven', reason: 'reread', total: 3, next: null });
  expect(appended(it.beside())).toHaveLength(9);
});

test('recounts come before gaps, whichever was due first', async () => {
  const it = await world({ after: 2 * closeDelay });
  await closeAll(it);
  const { to: until } = first(it);
  await it.journal.close(sourceId, { from: until, to: until + second }, gap({}, until + minute), 30 * day);
  go(it, until + hour);
  it.source.requests.length = 0;
  await it.closer.retry(it.source.now(), it.signal);
  expect(it.source.requests).toHaveLength(1);
  expect(rows(it).map(({ recounts, attempts: tries }) => [recounts, tries])).toEqual([
    [1, 0],
    [0, 1],
  ]);
});

test('three windows in a row with records out of range are reported as trouble until the next window without', async () => {
  const it = await world({ after: 2 * closeDelay + minute, switches: { noFilter: true } });
  it.source.add(1, base + 10 * closeDelay, 0);
  for (const trouble of [undefined, undefined, expect.stringContaining('ignores the time filter')]) {
    await it.closer.closeNext(it.source.now(), it.signal);
    expect(rows(it).at(-1)).toMatchObject({ state: 'gap', reason: 'out_of_range' });
    expect(it.closer.trouble).toEqual(trouble);
    go(it, it.source.now() + closeDelay);
  }
  expect(it.log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  // After a restart the ledger still shows it, and it is reported once more.
  const later = it.anotherCloser();
  expect(later.trouble).toBeUndefined();
  await later.checkTimeFilter();
  expect(later.trouble).toEqual(it.closer.trouble);
  expect(it.log.lines.filter(({ level }) => level === 'error')).toHaveLength(2);
  it.source.switches.noFilter = false;
  await later.closeNext(it.source.now(), it.signal);
  expect(later.trouble).toBeUndefined();
});

test('a window with records out of range that is proven later is no longer reported as trouble', async () => {
  const it = await world({ after: 2 * closeDelay + minute, switches: { noFilter: true } });
  it.source.add(1, base + 10 * closeDelay, 0);
  await closeUntil(it, base + 5 * closeDelay);
  expect(it.closer.trouble).toBeDefined();
  it.source.switches.noFilter = false;
  go(it, it.source.now() + minute);
  await again(it);
  expect(it.closer.trouble).toBeUndefined();
});

test('a recount without a usable total, or with an unreadable response, confirms nothing', async () => {
  const it = await world({ after: 2 * closeDelay });
  [1, 2].forEach((id) => it.source.add(id, base + id * second));
  await closeAll(it);
  const { to: until } = first(it);
  it.source.before = ({ pageSize }) => (it.source.switches.unreadable = new Set(pageSize === 1 ? [1] : []));
  go(it, until + hour);
  await again(it);
  expect(first(it)).toMatchObject({ state: 'proven', reason: 'reread', total: 2 });
});

test('a window that cannot be read does not stop later windows', async () => {
  const it = await world({ after: 3 * hour });
  it.source.add(1, base + second);
  it.source.add(2, base + 2 * hour + second);
  it.source.switches.unreadable = new Set([1]);
  await closeAll(it);
  const all = rows(it);
  expect(all[0]).toMatchObject({ state: 'gap', reason: 'unreadable' });
  expect(all.slice(1).every(({ state }) => state === 'proven')).toBe(true);
  expect(it.journal.progress(sourceId)).toMatchObject({ frontier: base });
  expect(appended(it.beside())).toHaveLength(1);
});
