import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import { Requester } from '../../../src/collect/requester.ts';
import { Handoff } from '../../../src/collect/handoff.ts';
import { readWindow } from '../../../src/collect/read-window.ts';
import type { Outcome, Splitting, Reading } from '../../../src/collect/read-window.ts';
import { queryOf } from '../../../src/collect/windows.ts';
import type { Verdict, Window } from '../../../src/model/ledger.ts';
import type { RecordFields } from '../../../src/model/record.ts';
import { readText } from '../../../src/record/read.ts';
import type { ServerClock, Source } from '../../../src/model/source.ts';
import type { Switches } from '../../support/model-source.ts';
import { base, between, recordText, second, seeded, uidOf } from '../../support/records.ts';
import { appended, digest, owned, span, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';
import { isLong, sized } from '../../support/long-run.ts';

const window = span(0, 60);

function read(it: World, of: Window = window, splitting: Splitting = 'any'): Promise<Outcome> {
  return readWindow(it.reading, of, queryOf(of), splitting, it.signal);
}

function verdict(outcome: Outcome): Verdict {
  if ('kind' in outcome) throw new Error(`no verdict: ${JSON.stringify(outcome)}`);
  return outcome;
}

/** Asserts a proof and its truth: each record of the window was appended once. */
function expectProven(it: World, outcome: Outcome, of: Window = window): Extract<Verdict, { proven: true }>['proof'] {
  const found = verdict(outcome);
  if (!found.proven) throw new Error(`gap (${found.reason}): ${found.message}`);
  const { proof } = found;
  const own = owned(it.source.records, of);
  const has = new Set(appended(it.beside()));
  expect(own.filter((uid) => !has.has(uid))).toEqual([]);
  expect(has.size).toBe(appended(it.beside()).length);
  expect(proof).toMatchObject({ query: queryOf(of), inWindow: own.length });
  expect(Buffer.from(proof.digest).toString('hex')).toBe(digest(own));
  return proof;
}

function expectGap(outcome: Outcome): Extract<Verdict, { proven: false }> {
  const found = verdict(outcome);
  if (found.proven) throw new Error('proven');
  return found;
}

/** Ten records, five seconds apart, including the edges. */
function fill(it: World, count = 10, from = 0, step = 5): void {
  for (let i = 0; i < count; i += 1) it.source.add(i + 1, base + (from + i * step) * second);
}

test('an empty window is proven by two requests', async () => {
  const it = await world();
  const proof = expectProven(it, await read(it));
  expect(proof).toMatchObject({ total: 0, passes: 1, requests: 2 });
  expect(it.source.requests).toEqual([
    { query: { startTime: '2026-11-20T01:59:59.00', endTime: '2026-11-20T02:01:01.00' }, page: 1, pageSize: 10 },
    { query: { startTime: '2026-11-20T01:59:59.00', endTime: '2026-11-20T02:01:01.00' }, page: 1, pageSize: 1 },
  ]);
});

test('the count comes after the last page and includes the padding; the window owns only records inside it', async () => {
  const it = await world({ pageSize: 3 });
  const edges = [-2, -1, -0.000001, 0, 59.999999, 60, 61, 62].map((at) => base + Math.round(at * second));
  edges.forEach((time, i) => it.source.add(i + 1, time));
  const proof = expectProven(it, await read(it));
  // The query covers −1 to 61 s; two records belong to the window.
  expect(proof).toMatchObject({ total: 6, inWindow: 2 });
  expect(it.source.requests.map(({ page, pageSize }) => [page, pageSize])).toEqual([
    [1, 3],
    [2, 3],
    [3, 3],
    [1, 1],
  ]);
});

test.each<[string, Partial<Switches>]>([
  ['the lower bound is excluded', { lowerBound: 'excluded' }],
  ['the upper bound is excluded', { upperBound: 'excluded' }],
  ['both bounds are excluded and times are cut to seconds', { lowerBound: 'excluded', upperBound: 'excluded', cut: second }],
  ['times are cut to 10 ms', { cut: 10_000, lowerBound: 'excluded' }],
  ['pages count from 0', { firstPage: 0 }],
  ['answers do not say their page', { echo: 'nothing' }],
  ['the sort is ignored', { order: 'ignored' }],
  ['ties are unstable', { order: 'unstable ties' }],
  ['the last page is repeated after the end', { pastEnd: 'last' }],
  ['the last page is repeated after the end, without a number', { pastEnd: 'last', echo: 'nothing' }],
  ['the page after the last is 404', { pastEnd: '404' }],
  ['a page has at most 4 records', { pageCap: 4 }],
  ['a page has at most 4 records and does not say so', { pageCap: 4, admitsCap: false }],
  ['a page size above 3 is refused', { refuseAbove: 3 }],
  ['a body above 400 bytes is refused', { bytesMax: 400 }],
])('a window is proven though %s', async (_what, switches) => {
  const it = await world({ switches, pageSize: 10 });
  // Records on both edges of the window and of its padding, with ties, and out of order in the
  // service's list; 20 are two full pages.
  const times = [0, 0, 59.999999, 60, 0.004, 61, -1, 30, 30, 30, 30, 30, 1, 2, 3, 4, 5, 6, 7, 8];
  times.forEach((at, i) => it.source.add(i + 1, base + Math.round(at * second)));
  expectProven(it, await read(it));
});

// promise: Each way in which a correct service counts, caps, sorts and pages leads to a proof, and the proof is true.
test('every variant of a correct service gives a proof, and the proof is true', async () => {
  const random = seeded(41);
  const pick = <Item>(...items: readonly Item[]): Item => items[between(random, 0, items.length)] as Item;
  let passes = 0;
  for (let run = 0; run < sized(8, 24); run += 1) {
    const switches: Partial<Switches> = {
      firstPage: pick(0, 1),
      pageCap: pick(1000, 7, 5),
      admitsCap: pick(true, false),
      echo: pick('page', 'nothing'),
      order: pick('ascending', 'ignored', 'unstable ties'),
      lowerBound: pick('included', 'excluded'),
      upperBound: pick('included', 'excluded'),
      cut: pick(1, 10_000, second),
      pastEnd: pick('empty', 'last', '404'),
    };
    const it = await world({ switches, pageSize: pick(3, 10, 20) });
    for (let id = between(random, 0, 40); id > 0; id -= 1)
      it.source.add(id, base + between(random, -2, 63) * second + pick(0, 0, 3, 999_999));
    // While the window is read, records become visible anywhere in it, and the page size changes.
    const last = between(random, 0, 12);
    it.source.before = (_request, count) => {
      if (count < last && random() < 0.4) it.source.add(100 + count, base + between(random, 0, 60) * second);
      if (count === 3 && random() < 0.3) it.source.switches.pageCap = 4;
    };
    const proof = expectProven(it, await read(it));
    passes += proof.passes;
    await it.journal[Symbol.asyncDispose]();
  }
  expect(passes).toBeGreaterThan(sized(9, 28));
});

test('a record inserted before a page already read is not missed: neither the first total nor the items are a proof', async () => {
  const it = await world({ pageSize: 2 });
  fill(it, 4, 10);
  // After page 1, a record appears before it, pages shift to the right, and one record comes twice:
  // 5 items, total 5.
  it.source.before = (_request, count) => {
    if (count === 2) it.source.add(99, base);
  };
  const proof = expectProven(it, await read(it));
  expect(proof).toMatchObject({ total: 5, passes: 2 });
  // The count follows the last page of each pass; passes are 2 s apart.
  expect(it.source.requests.map(({ page, pageSize }) => `${page}/${pageSize}`).join(' ')).toBe('1/2 2/2 3/2 1/1 1/2 2/2 3/2 1/1');
  expect(it.clock.monotonic()).toBe(2_000);
});

test('a cached answer is not used: the request is repeated', async () => {
  const it = await world({ pageSize: 10 });
  fill(it, 3);
  it.source.before = (_request, count) => (it.source.switches.age = count === 2 || count === 3 ? 7 : 0);
  const proof = expectProven(it, await read(it));
  expect(proof).toMatchObject({ passes: 1, requests: 4 });
});

test('a lagging total hides no record: a pass ends at a short page, not because of the total', async () => {
  const it = await world({ pageSize: 2, switches: { total: 'lagging', totalLag: 5 * second } });
  fill(it, 3);
  const third = it.source.records[2];
  if (third) it.source.records[2] = { ...third, visible: it.source.now() - second };
  const proof = expectProven(it, await read(it, window, 'none'));
  expect(proof).toMatchObject({ total: 3 });
  expect(proof.passes).toBeGreaterThan(1);
});

test('a count below the records received clears the tally', async () => {
  const it = await world({ pageSize: 2 });
  fill(it, 5);
  // The first record disappears after the last page, before the count.
  it.source.before = (_request, count) => {
    const first = it.source.records[0];
    if (count === 4 && first) it.source.records[0] = { ...first, gone: it.source.now() };
  };
  const found = verdict(await read(it));
  if (!found.proven) throw new Error(found.message);
  expect(found.proof).toMatchObject({ total: 4, inWindow: 4, passes: 2 });
  expect(Buffer.from(found.proof.digest).toString('hex')).toBe(digest(owned(it.source.records.slice(1), window)));
});

test('the tally is cleared also when other records were added meanwhile: no proof of records that were not read', async () => {
  const it = await world({ pageSize: 10 });
  fill(it, 3);
  const hide = (i: number, more: object): void => {
    const record = it.source.records[i];
    if (record) it.source.records[i] = { ...record, ...more };
  };
  // Pass 1 receives 1 2 3, then 1 and 2 disappear: the count is 1. Pass 2 receives only 3, and 4
  // and 5 appear before the count: three, as many as were ever received, although two of them are
  // gone.
  it.source.before = (_request, count) => {
    if (count === 2) [0, 1].forEach((i) => hide(i, { gone: it.source.now() }));
    if (count === 4) [4, 5].forEach((id) => it.source.add(id, base + second));
  };
  const found = verdict(await read(it));
  if (!found.proven) throw new Error(found.message);
  expect(found.proof).toMatchObject({ total: 3, inWindow: 3 });
  const has = new Set(appended(it.beside()));
  for (const uid of owned(it.source.records, window)) expect(has).toContain(uid);
});

test.each<[string, Partial<Switches>, string, number]>([
  ['is never given', { total: 'missing' }, 'total', 3],
  ['always says one more', { total: 'one more' }, 'count', 6],
  ['always says one less', { total: 'one less' }, 'count', 6],
])('a total that %s causes a gap, and every record is delivered', async (_what, switches, reason, passes) => {
  const it = await world({ pageSize: 4, switches });
  fill(it, 10);
  const found = expectGap(await read(it, window, 'none'));
  expect(found).toMatchObject({ reason, inWindow: 10, seen: 10, query: queryOf(window) });
  // The first pass found new records and does not count.
  expect(found.passes).toBe(passes + 1);
  expect(appended(it.beside())).toEqual(owned(it.source.records, window));
});

// promise: Two records with the same identity are a gap, never a proof.
test('two records with the same identity are a gap (count), never a proof', async () => {
  const it = await world();
  fill(it, 3);
  it.source.add(2, base + 5 * second, 0, { payloadName: 'another' });
  const uid = uidOf(it.source.records.at(-1)?.text ?? '');
  expect(expectGap(await read(it))).toMatchObject({
    reason: 'count',
    total: 4,
    seen: 3,
    message: `received 3, the service counted 4; records share the identity ${uid} and count as one here`,
  });
});

test('the gap also names two records with equal bytes', async () => {
  const it = await world();
  fill(it, 3);
  const [, twin] = it.source.records;
  if (!twin) throw new Error('the service has three records');
  it.source.records.push({ ...twin });
  expect(expectGap(await read(it))).toMatchObject({
    reason: 'count',
    message: `received 3, the service counted 4; records share the identity ${uidOf(twin.text)} and count as one here`,
  });
});

test('a total equal to the number of identities proves nothing if one response contains an identity twice', async () => {
  const it = await world({ switches: { total: 'one less' } });
  fill(it, 3);
  const [, twin] = it.source.records;
  if (!twin) throw new Error('the service has three records');
  it.source.records.push({ ...twin });
  expect(expectGap(await read(it))).toMatchObject({
    reason: 'count',
    total: 3,
    seen: 3,
    message: `received 3, the service counted 3; records share the identity ${uidOf(twin.text)} and count as one here`,
  });
});

test('two equal records on neighbouring pages are a gap that names none: pages may have moved in between', async () => {
  const it = await world({ pageSize: 4 });
  fill(it, 9);
  const twin = it.source.records[3];
  if (!twin) throw new Error('the service has nine records');
  it.source.records.push({ ...twin });
  expect(expectGap(await read(it))).toMatchObject({ reason: 'count', message: 'received 9, the service counted 10' });
  expect(it.paging.size).toBe(4);
});

test('a record that moves to the next page between two responses is no collision', async () => {
  const it = await world({ pageSize: 2, switches: { total: 'one more' } });
  fill(it, 4);
  // A record appears near the start between the two pages of a pass: the last record of the first
  // page is the first of the second.
  let asked = 0;
  const page = it.source.page.bind(it.source);
  it.source.page = (request, signal) => {
    if (request.page === 2 && (asked += 1) > 4) it.source.add(100 + asked, base + second - asked);
    return page(request, signal);
  };
  expect(expectGap(await read(it)).message).not.toContain('identity');
});

test('responses that always report the first page end the pass without a proof', async () => {
  const it = await world({ pageSize: 4, switches: { echo: 'stuck' } });
  fill(it, 10);
  expect(expectGap(await read(it))).toMatchObject({ reason: 'count', total: 10, seen: 4 });
  expect(it.source.requests.length).toBeLessThan(30);
});

test('a window is proven although each response reports the first page, since the records decide', async () => {
  const it = await world({ pageSize: 4, switches: { echo: 'first' } });
  fill(it, 10);
  expect(await read(it)).toMatchObject({ proven: true, proof: { total: 10, passes: 1 } });
  expect(it.source.requests).toHaveLength(4);
});

test('a window of one full page is proven also if the service repeats the page after its end in another order', async () => {
  const it = await world({ pageSize: 10, switches: { echo: 'asked', pastEnd: 'last', order: 'unstable ties' } });
  for (let id = 1; id <= 10; id += 1) it.source.add(id, base);
  it.source.before = (_request, count) => {
    if (count > 20) throw new Error('requests never end');
  };
  expect(await read(it)).toMatchObject({ proven: true, proof: { total: 10, passes: 1 } });
});

test('a pass that finds new records is not counted as an attempt; after forty passes the window is a gap', async () => {
  const it = await world({ pageSize: 50 });
  let id = 0;
  // A service that has one more record at each count.
  it.source.before = ({ pageSize }) => {
    if (pageSize === 1) it.source.add((id += 1), base + id * 1000);
  };
  expect(expectGap(await read(it))).toMatchObject({ reason: 'count', passes: 40 });
});

test('a service that ignores the time filter makes a gap (out_of_range), and records out of range are not counted as received', async () => {
  const it = await world({ switches: { noFilter: true } });
  fill(it, 3);
  it.source.add(50, base + 3_600 * second);
  expect(expectGap(await read(it))).toMatchObject({
    reason: 'out_of_range',
    seen: 3,
    inWindow: 3,
    message: expect.stringMatching(/^1 records? .* 2 s outside/) as string,
  });
  // Padding and truncated times explain less than two seconds.
  const near = await world({ switches: { noFilter: true } });
  near.source.add(1, base - 2 * second);
  near.source.add(2, base + 62 * second - 1);
  expectProven(near, await read(near));
});

test('more than 9,900 by the first page: the window is split after that page; exactly 9,900 are read', async () => {
  const it = await world({ pageSize: 1000 });
  for (let id = 1; id <= 9_900; id += 1) it.source.add(id, base + id * 6_000);
  // Outside the window, so that the window does not contain every record.
  [10_001, 10_002].forEach((id) => it.source.add(id, base + 3_600 * second));
  expectProven(it, await read(it));
  it.source.add(9_901, base);
  const before = it.source.requests.length;
  expect(await read(it)).toMatchObject({ kind: 'split', records: 9_901 });
  // The page requested ahead was answered; no other request was sent.
  expect(it.source.requests.length - before).toBeLessThanOrEqual(2);
  expect(it.source.mostAtOnce).toBe(1);
});

test('a window of the ledger is never split', async () => {
  const it = await world({ pageSize: 1000 });
  for (let id = 1; id <= 9_901; id += 1) it.source.add(id, base + id * 6_000);
  it.source.add(10_001, base + 3_600 * second);
  expect(expectProven(it, await read(it, window, 'none')).total).toBe(9_901);
});

test('a total below what was received in two passes running is a capped total: the window is split', async () => {
  const it = await world({ pageSize: 100, switches: { total: 'cap', totalCap: 30 } });
  fill(it, 40, 0, 1);
  expect(await read(it)).toMatchObject({ kind: 'split', records: 40 });
});

test('a total that may be a cap is no proof: the window is split, and a window of one second is a gap', async () => {
  const it = await world({ pageSize: 200, switches: { total: 'cap', totalCap: 120, servedMost: 120 } });
  fill(it, 130, 0, 0.001);
  it.caps.largest = 120;
  expect(await read(it)).toMatchObject({ kind: 'split', records: 120 });
  const one = span(0, 1);
  expect(expectGap(await read(it, one, 'none'))).toMatchObject({
    reason: 'total',
    total: 120,
    message: expect.stringMatching(/may be a cap/) as string,
  });
});

test('the unbounded count detects a cap that no window has reached', async () => {
  const it = await world({ pageSize: 200, switches: { total: 'cap', totalCap: 120, servedMost: 120 } });
  fill(it, 130, 0, 0.001);
  expect(it.caps.largest).toBe(0);
  expect(await read(it)).toMatchObject({ kind: 'split', records: 120 });
  expect(it.caps.largest).toBe(120);
});

test('the largest total of a correct service is its unbounded count, and no cap', async () => {
  const it = await world({ pageSize: 200 });
  fill(it, 130, 0, 0.1);
  it.source.add(999, base + 7_000 * second);
  expectProven(it, await read(it));
  expect(it.caps.largest).toBe(131);
  // Below 100 a total is no sign of a cap.
  const small = await world({ pageSize: 200 });
  fill(small, 99, 0, 0.1);
  expectProven(small, await read(small));
});

test('a cap that ends between the count of a window and the unbounded count gives no proof', async () => {
  const it = await world({ pageSize: 200, switches: { total: 'cap', totalCap: 107, servedMost: 107 } });
  fill(it, 110, 0, 0.5);
  for (let i = 0; i < 49; i += 1) it.source.add(1_000 + i, base + (7_000 + i) * second);
  it.source.before = ({ query }) => {
    if (query.startTime === undefined) Object.assign(it.source.switches, { total: 'true', servedMost: Infinity });
  };
  expect(await read(it)).toMatchObject({ kind: 'split', records: 107 });
  expectProven(it, await read(it));
});

test('the only unreadable record is found by halving; all others are delivered, and the gap names its place', async () => {
  const it = await world({ pageSize: 16 });
  fill(it, 40, 0, 1);
  it.source.switches.unreadable = new Set([23]);
  const found = expectGap(await read(it));
  // The 23rd place; pages count from 1.
  expect(found).toMatchObject({
    reason: 'unreadable',
    message: expect.stringMatching(/^page 23 with pageSize 1 cannot be read: .*item 23 is cut/) as string,
  });
  const readable = it.source.records.filter(({ text }) => !text.includes('"logId":23,'));
  expect(appended(it.beside())).toEqual(owned(readable, window));
  expect(found.seen).toBe(39);
  // After the unreadable page the full size is requested again.
  expect(it.source.requests.filter(({ page, pageSize }) => page === 3 && pageSize === 16)).toHaveLength(1);
  expect(it.paging.size).toBe(16);
});

test.each([1, 16, 17, 40])('a record that cannot be read at place %i is a gap, others are delivered', async (place) => {
  const it = await world({ pageSize: 16 });
  fill(it, 40, 0, 1);
  it.source.switches.unreadable = new Set([place]);
  expect(expectGap(await read(it))).toMatchObject({
    reason: 'unreadable',
    seen: 39,
    message: expect.stringMatching(new RegExp(`^page ${place} `)) as string,
  });
});

test('if small pages are refused, the gap names the smallest unreadable page, and all later records are delivered', async () => {
  const it = await world({ pageSize: 16, switches: { unreadable: new Set([23]), refuseBelow: 8 } });
  fill(it, 40, 0, 1);
  const found = expectGap(await read(it));
  expect(found).toMatchObject({
    reason: 'unreadable',
    seen: 32,
    total: 40,
    message: expect.stringMatching(/^page 3 with pageSize 8 cannot be read: .*item 23 is cut/) as string,
  });
  expect(appended(it.beside())).toEqual(owned([...it.source.records.slice(0, 16), ...it.source.records.slice(24)], window));
});

test.each([1, 7, 30, 60])(
  'with equal times in another order at each request and record %i unreadable, all other records are delivered',
  async (bad) => {
    const it = await world({ pageSize: 16, switches: { order: 'unstable ties', unreadable: new Set([bad]) } });
    // Twenty in each second.
    for (let i = 0; i < 60; i += 1) it.source.add(i + 1, base + Math.floor(i / 20) * second);
    const { reason, seen } = expectGap(await read(it));
    // The last pass or its count may have met no page with the record, or no other.
    expect([seen, ['unreadable', 'count', 'total'].includes(reason)]).toEqual([59, true]);
    const readable = it.source.records.filter(({ text }) => !text.includes(`"logId":${bad},`));
    expect(new Set(appended(it.beside()))).toEqual(new Set(owned(readable, window)));
  },
);

test('records next to a record that is only counted are delivered, and the gap reports both numbers', async () => {
  const it = await world({ switches: { hidden: new Set([1]) } });
  fill(it);
  const gap = expectGap(await read(it));
  expect(gap).toMatchObject({ reason: 'count', inWindow: 9, seen: 9, total: 10, message: 'received 9, the service counted 10' });
  expect(appended(it.beside())).toHaveLength(9);
});

test('more records in a second than the paging depth are a gap with the message of the service, and the records shown are delivered', async () => {
  const it = await world({ switches: { deepest: 30 } });
  for (let id = 1; id <= 40; id += 1) it.source.add(id, base);
  const gap = expectGap(await read(it, span(0, 1), 'none'));
  expect(gap).toMatchObject({ reason: 'unreadable', inWindow: 30, total: 40 });
  expect(gap.message).toBe('page 31 with pageSize 1 cannot be read: cannot read the page: 400 too deep');
  expect(appended(it.beside())).toHaveLength(30);
  expect(it.paging.size).toBe(10);
  expect(it.source.requests.length).toBeLessThan(30);
});

test('404 for one window, while others are answered, is a gap with the message of the service', async () => {
  const it = await world({ switches: { emptyIs404: true } });
  it.source.add(1, base + 600 * second);
  it.source.before = (_request, count) => {
    if (count > 50) throw new Error('requests never end');
  };
  const gap = expectGap(await read(it));
  expect(gap).toMatchObject({ reason: 'unreadable', inWindow: 0, seen: 0 });
  expect(gap.message).toBe(
    'page 1 with pageSize 10 cannot be read: cannot read the page: 404 no records; the service answers other requests',
  );
  expectProven(it, await read(it, span(590, 610)), span(590, 610));
});

test('a service that refuses small pages counts in larger ones', async () => {
  const it = await world({ switches: { refuseBelow: 10 } });
  it.source.before = (_request, count) => {
    if (count > 50) throw new Error('requests never end');
  };
  fill(it);
  expectProven(it, await read(it));
  const before = it.source.requests.length;
  expectProven(it, await read(it));
  // The size is found once.
  expect(it.source.requests.length - before).toBe(3);
});

test('a count that a gateway refused for a moment does not make later counts larger', async () => {
  const it = await world();
  fill(it);
  let refusals = 0;
  it.source.before = ({ query, pageSize }) => {
    if (query.endTime === undefined || pageSize > 1 || (refusals += 1) > 1) return;
    throw new WaybillError('page_refused', 'cannot read the page: 400 the gateway refuses');
  };
  expectProven(it, await read(it));
  expect(refusals).toBeGreaterThan(1);
  expectProven(it, await read(it));
  expect(it.source.requests.at(-1)).toMatchObject({ pageSize: 1 });
});

test('unreadable responses end in a gap after a bounded number of requests', async () => {
  const it = await world({ pageSize: 16 });
  fill(it, 4_000, 0, 0.01);
  it.source.switches.unreadable = new Set(it.source.records.map((_, i) => i + 1));
  expect(expectGap(await read(it))).toMatchObject({ reason: 'unreadable', seen: 0 });
  expect(it.source.requests.length).toBeLessThan(200);
});

test('an unreadable count is neither a proof nor an end', async () => {
  const it = await world({ pageSize: 10 });
  fill(it, 3);
  const { switches } = it.source;
  it.source.before = ({ pageSize }) => (switches.unreadable = new Set(pageSize === 1 ? [1] : []));
  expect(expectGap(await read(it))).toMatchObject({ reason: 'total', seen: 3 });
});

test('a short first page with a greater total limits the page size for this reading only', async () => {
  const it = await world({ pageSize: 10, switches: { total: 'one more' } });
  fill(it, 3);
  expectGap(await read(it));
  expect(it.paging.size).toBe(10);
});

test('a page size that shrinks half-way restarts the pass with the smaller size', async () => {
  const it = await world({ pageSize: 10 });
  fill(it, 35, 0, 1);
  it.source.before = (_request, count) => (it.source.switches.pageCap = count >= 3 ? 4 : 10);
  expect(expectProven(it, await read(it)).total).toBe(35);
  const asked = it.source.requests.map(({ page, pageSize }) => `${page}/${pageSize}`);
  expect(asked.slice(0, 5)).toEqual(['1/10', '2/10', '3/10', '1/4', '2/4']);
  expect(it.paging.size).toBe(4);
  expect(appended(it.beside())).toHaveLength(35);
});

test('a record that the live poll appends between two pages is known and not in the tally', async () => {
  const it = await world({ pageSize: 2 });
  fill(it, 6);
  let turns = 0;
  const handoff = new Handoff();
  let outcome: Outcome = { kind: 'suspended' };
  const reading = handoff.run(
    () => true,
    async () => {
      outcome = await readWindow({ ...it.reading, handoff }, window, queryOf(window), 'any', it.signal);
    },
  );
  while ((await reading.next()).done !== true) {
    turns += 1;
    // Like a live poll: appends the last record, which this reading has not seen yet.
    const answer = await it.requester.ask({ query: queryOf(window), page: 3, pageSize: 2 }, it.signal);
    await it.journal.append({ source: 'production', records: answer.records, received: base, serverNow: base });
  }
  expect(expectProven(it, outcome)).toMatchObject({ total: 6, passes: 1 });
  expect(turns).toBe(4);
  expect(it.source.mostAtOnce).toBe(1);
});

test('at most one request is in flight, and the next page is requested while one is stored', async () => {
  const it = await world({ pageSize: 5 });
  it.source.delay = 20;
  fill(it, 23, 0, 1);
  expectProven(it, await read(it));
  expect(it.source.mostAtOnce).toBe(1);
  // The second page was requested before the first was appended.
  expect(it.pages[0]?.records).toHaveLength(5);
});

test('a reading that is aborted restarts, and nothing is appended twice', async () => {
  const random = seeded(8);
  const it = await world({ pageSize: 4 });
  fill(it, 22, 0, 2);
  for (let turn = 0; turn < 12; turn += 1) {
    const abort = new AbortController();
    const stop = between(random, 1, 7);
    const begun = it.source.requests.length;
    it.source.before = (_request, count) => {
      if (count - begun === stop) abort.abort(new Error('killed'));
    };
    await readWindow(it.reading, window, queryOf(window), 'any', abort.signal).catch((thrown: unknown) => {
      expect(thrown).toMatchObject({ message: 'killed' });
    });
  }
  it.source.before = () => undefined;
  expect(expectProven(it, await read(it)).passes).toBe(1);
  expect(appended(it.beside())).toEqual(owned(it.source.records, window));
});

test('a second with more than 500,000 records is a gap (size), and reading stops', async ({ skip }) => {
  skip(!isLong, 'npm run test:long runs it');
  const it = await world();
  const at = recordText(0, base).replace('"logId":0', '"logId":');
  let pages = 0;
  const source: Source = {
    page: ({ page = 1, pageSize }) => {
      pages += 1;
      const items = Array.from({ length: pageSize }, (_, i) => readText(at.replace('"logId":', `"logId":${page * pageSize + i}`)));
      const received = { date: undefined, age: 0, received: base, receivedMonotonic: 0 };
      return Promise.resolve({ items, page, pageSize, total: 600_000, ...received });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  // This test only counts records: a part of the bytes stands in for the hash of a record.
  const uidOf = ({ bytes }: RecordFields): string => bytes.toString('latin1', 9, 16);
  const serverClock: ServerClock = {
    observe: () => 'accepted',
    now: () => base,
    agreed: () => base,
    expected: () => base,
    stoodSince: () => undefined,
    established: () => true,
    missing: () => 0,
    remainingMs: () => 0,
    measuring: () => undefined,
    ahead: () => false,
  };
  const requester = new Requester({ source, sourceId: 'production', uidOf, serverClock, clock: it.clock, random: () => 0.5, log: it.log });
  const store: Reading['pages']['store'] = ({ records }) =>
    Promise.resolve({ received: records.length, appended: 0, known: 0, outside: records.length, late: 0, fresh: [] });
  const reading: Reading = {
    ...it.reading,
    requester,
    paging: { first: 1, size: 10_000 },
    pages: { store, contradicts: () => undefined },
  };
  const one = span(0, 1);
  const found = expectGap(await readWindow(reading, one, queryOf(one), 'none', it.signal));
  expect(found).toMatchObject({ reason: 'size', seen: 510_000 });
  expect(pages).toBeLessThanOrEqual(52);
});

test('one record out of range makes a gap (out_of_range), and all other records are collected', async () => {
  const it = await world({ pageSize: 4 });
  fill(it, 12);
  const page = it.source.page.bind(it.source);
  const stranger = readText(recordText(999, window.from - 60 * second));
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    return request.pageSize > 1 && request.page === it.paging.first
      ? { ...answer, items: [...answer.items.slice(0, -1), stranger] }
      : answer;
  };
  expect(expectGap(await read(it))).toMatchObject({ reason: 'out_of_range' });
  // Only the record whose place the out-of-range record took is missing.
  expect(appended(it.beside())).toHaveLength(11);
});
