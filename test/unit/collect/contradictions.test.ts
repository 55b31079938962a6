/**
 * A service that does not find its records by their times: its filter reads the times of a query in another zone,
 * ignores seconds, or it holds records that no window can hold. The expected offsets are those of tz database zones.
 */
import { expect, test } from 'vitest';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { source as sourceId } from '../../support/journal/opening.ts';
import { begun } from '../../support/collect/running.ts';
import type { Running } from '../../support/collect/running.ts';
import { appended, owned } from '../../support/collect/world.ts';
import type { Options } from '../../support/collect/world.ts';
import { isLong, sized } from '../../support/long-run.ts';
import { recordText } from '../../support/records.ts';

interface Closed {
  readonly from: number;
  readonly to: number;
  readonly records: number;
}

function proven(it: Running): Closed[] {
  return it
    .beside()
    .prepare<[], Closed>("SELECT from_us AS `from`, to_us AS `to`, records FROM windows WHERE state = 'proven' AND reason IS NULL")
    .all();
}

/** Windows that are proven with another number of records than the service holds. */
function falsely(it: Running): Closed[] {
  return proven(it).filter((window) => window.records !== owned(it.source.records, window).length);
}

function suspension(it: Running): { readonly reason: string; readonly message: string } | undefined {
  return it.journal.progress(sourceId).suspension;
}

/** A service with a record every seven minutes of two days, and a ledger of the last day and a half. */
async function twoDays(switches: Options['switches'] = {}): Promise<Running> {
  const it = await begun({ after: 1.5 * day, pageSize: 100, switches });
  for (let id = 0; id < 600; id += 1) it.source.add(id, base - 12 * hour + id * 7 * minute + 23 * second);
  return it;
}

/** The records that the service shows by now, in the ledger. */
async function expectHealed(it: Running): Promise<void> {
  await it.runUntil(it.source.now() + 3 * hour);
  expect(suspension(it)).toBeUndefined();
  expect(falsely(it)).toEqual([]);
  const due = { from: base, to: it.journal.progress(sourceId).live.closedUntil };
  expect(due.to).toBeGreaterThan(it.source.now() - hour);
  expect(appended(it.beside())).toEqual(expect.arrayContaining(owned(it.source.records, due)));
}

const zones = [
  ['Pacific/Pago_Pago', '11 h behind UTC', -11 * hour],
  ['Pacific/Marquesas', '9 h 30 min behind UTC', -9.5 * hour],
  ['America/New_York', '5 h behind UTC', -5 * hour],
  ['America/St_Johns', '3 h 30 min behind UTC', -3.5 * hour],
  ['Europe/Berlin', '1 h ahead of UTC', hour],
  ['Asia/Kolkata', '5 h 30 min ahead of UTC', 5.5 * hour],
  ['Asia/Kathmandu', '5 h 45 min ahead of UTC', 5.75 * hour],
  ['Pacific/Chatham', '13 h 45 min ahead of UTC', 13.75 * hour],
] as const;

test.each(zones.filter((_, i) => isLong || i === 3))(
  'a filter that reads times as in %s is named (%s), and no window is proven before it is right',
  async (_, words, offset) => {
    for (const sortsDescending of [false, true].slice(0, sized(1, 2))) {
      const it = await twoDays({ reads: (time) => time + offset, sortsDescending });
      // The clock of the service is known after five minutes.
      await it.runUntil(it.source.now() + 7 * minute);
      expect(suspension(it)).toMatchObject({ reason: 'filter', message: expect.stringContaining(`reads times ${words}`) as string });
      expect(it.collector.view().trouble).toContain(words);
      await it.runUntil(it.source.now() + 2 * hour);
      expect(proven(it)).toEqual([]);
      it.source.switches.reads = (time) => time;
      await expectHealed(it);
    }
  },
);

const changes = [
  ['a zone in the west', -4 * hour],
  ['a zone in the east', 10.5 * hour],
  ['an hour of daylight saving', hour],
] as const;

test.each(changes.slice(0, sized(1, 3)))(
  'a filter that begins to read another zone while the program runs (%s) proves no window with it',
  async (_, offset) => {
    const it = await twoDays();
    await it.runUntil(it.source.now() + 2 * hour);
    const before = proven(it).length;
    expect(before).toBeGreaterThan(8);
    it.source.switches.reads = (time) => time + offset;
    await it.runUntil(it.source.now() + 20 * minute);
    expect(suspension(it)).toMatchObject({ reason: 'filter' });
    await it.runUntil(it.source.now() + 2 * hour);
    expect(falsely(it)).toEqual([]);
    it.source.switches.reads = (time) => time;
    await expectHealed(it);
  },
);

test('a filter that becomes right during the search for its offset is not accused', async () => {
  const it = await twoDays({ reads: (time) => time + hour });
  const matching = it.source.matching.bind(it.source);
  let narrow = 0;
  it.source.matching = (request, now) => {
    const { startTime, endTime } = request.query;
    const width = startTime && endTime ? Date.parse(`${endTime}Z`) - Date.parse(`${startTime}Z`) : 0;
    // The query of a minute is the first that a right filter answers.
    if (width > 0 && width <= 3_000) narrow += 1;
    else if (width === 60_000 && narrow > 0) it.source.switches.reads = (time) => time;
    return matching(request, now);
  };
  await it.runUntil(it.source.now() + 10 * minute);
  expect(narrow).toBeGreaterThan(1);
  expect(it.source.switches.reads(0)).toBe(0);
  expect(it.lines.lines.filter(({ event }) => event === 'source.suspended')).toEqual([]);
});

test('daylight saving in the past: present records are found, and those of the summer are not', async () => {
  // Winter begins at 10:00 of the first day of the ledger; there is a record every three hours.
  const it = await begun({ after: 1.5 * day, pageSize: 100, switches: { reads: (time) => (time < base + 8 * hour ? time + hour : time) } });
  for (let id = 0; id < 20; id += 1) it.source.add(id, base - 6 * hour + id * 3 * hour + 30 * minute, 0);
  await it.runUntil(it.source.now() + 10 * minute);
  expect(suspension(it)).toMatchObject({ reason: 'filter', message: expect.stringContaining('reads times 1 h ahead of UTC') as string });
  expect(falsely(it)).toEqual([]);
});

test('a filter that ignores seconds is named, whether it cuts only the times of a query or also those of records', async () => {
  for (const switches of [{ cutsBounds: minute }, { cutsBounds: minute, cut: minute }]) {
    const it = await twoDays(switches);
    await it.runUntil(it.source.now() + 10 * minute);
    expect(suspension(it)).toMatchObject({
      reason: 'filter',
      message: expect.stringContaining('the time filter ignores seconds') as string,
    });
    expect(falsely(it)).toEqual([]);
    it.source.switches.cutsBounds = 1;
    it.source.switches.cut = 1;
    await expectHealed(it);
  }
});

test('a record that polls show and the query of its own window does not is named with its logId', async () => {
  const it = await begun({ after: hour, pageSize: 100 });
  const at = base + 50 * minute + 500_000;
  for (let id = 0; id < 30; id += 1) it.source.add(id, base + id * 10 * minute);
  it.source.add(777, at);
  // No query with both times finds it.
  const matching = it.source.matching.bind(it.source);
  it.source.matching = (request, now) =>
    matching(request, now).filter(
      ({ time }) => time !== at || request.query.startTime === undefined || request.query.endTime === undefined,
    );
  await it.runUntil(base + 3 * hour);
  expect(suspension(it)).toMatchObject({ reason: 'filter', message: expect.stringContaining('does not find record 777 of') as string });
  expect(falsely(it)).toEqual([]);
});

test('a service that needs a minute for an answer is not asked for samples alone: history is read too', async () => {
  const it = await twoDays();
  it.journal.history.add(sourceId, { from: base - 6 * hour, to: base }, {}, { actor: 'j.doe', reason: undefined });
  it.source.delay = minute / 1000;
  await it.runUntil(it.source.now() + 12 * hour);
  expect(it.journal.backfills(sourceId)).toEqual([]);
  expect(falsely(it)).toEqual([]);
});

test('a record that appears late, or is deleted before it is looked for, suspends nothing', async () => {
  const it = await twoDays();
  const now = it.source.now();
  // Dated in windows that are closed by then.
  for (let id = 1000; id < 1010; id += 1) it.source.add(id, now - id * minute, now + (id - 990) * minute);
  it.source.before = ({ query }) => {
    const late = it.source.records.find(({ text, visible }) => text.includes('"logId":1005,') && visible <= it.source.now());
    if (late && query.endTime !== undefined) it.source.records.splice(it.source.records.indexOf(late), 1);
  };
  await it.runUntil(now + 2 * hour);
  expect(it.counted.suspensions).toEqual([]);
});

const outside = [
  '0001-01-01T00:00:00',
  '1601-01-01T00:00:00',
  '1900-01-01T00:00:00.00',
  '1969-12-31T23:59:59',
  '9999-12-31T23:59:59.9999999',
];

test.each(outside)('a record dated %s is delivered, and named as outside of every window until it is corrected', async (logTimestamp) => {
  const it = await twoDays();
  const text = recordText(4711, 0).replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${logTimestamp}"`);
  it.source.records.push({ time: Date.parse(`${logTimestamp.slice(0, 19)}Z`) * 1000, visible: 0, text });
  await it.runUntil(it.source.now() + 10 * minute);
  const words = `record 4711 of ${logTimestamp} is outside of every window`;
  expect(it.collector.view().trouble).toBe(words);
  expect(it.collector.visibilityProfile().contradictions?.outside).toBe(words);
  expect(it.beside().prepare('SELECT count(*) AS n FROM segments WHERE kind & 255 = 1 AND max_us IS NULL').get()).toEqual({ n: 1 });
  // Other records are read and proven.
  expect(proven(it).length).toBeGreaterThan(5);
  it.source.records.pop();
  await it.runUntil(it.source.now() + 10 * minute);
  expect(it.collector.view().trouble).toBeUndefined();
});

test('a record dated in 1970 or in the future of every clock is outside, one of an hour ago or a few minutes ahead is not', async () => {
  for (const [time, isOutside] of [
    [5 * hour, true],
    [base + 400 * day, true],
    [base - hour, false],
    [base + 1.5 * day + 10 * minute, false],
  ] as const) {
    const it = await twoDays();
    it.source.add(4711, time, 0);
    await it.runUntil(it.source.now() + 10 * minute);
    expect([time, it.collector.view().trouble !== undefined]).toEqual([time, isOutside]);
  }
});

test('with start: earliest a record before the ledger is outside of it', async () => {
  const it = await twoDays();
  await it.runUntil(it.source.now() + 10 * minute);
  expect(it.collector.view().trouble).toBeUndefined();
  const whole = await begun({ after: 1.5 * day, pageSize: 100, start: { kind: 'earliest' } });
  whole.source.add(4711, base - 12 * hour, 0);
  for (let id = 0; id < 100; id += 1) whole.source.add(id, base + id * 10 * minute, 0);
  await whole.runUntil(whole.source.now() + 10 * minute);
  expect(whole.collector.view().trouble).toMatch(/^record 4711 of .* is outside of every window$/);
});

test('an ancient record costs a few requests, not two for each day since then', async () => {
  const it = await begun({ after: 20_000 * day, pageSize: 100 });
  it.source.add(1, base + hour, 0);
  it.source.add(2, base + 10_000 * day + hour, 0);
  for (let id = 3; id < 60; id += 1) it.source.add(id, base + 20_000 * day - id * hour, 0);
  await it.runUntil(it.source.now() + 30 * minute);
  expect(it.journal.progress(sourceId).live.closedUntil).toBeGreaterThan(base + 20_000 * day - hour);
  expect(falsely(it)).toEqual([]);
  expect(appended(it.beside())).toHaveLength(59);
  const windows = proven(it);
  expect(windows.length).toBeLessThan(250);
  expect(it.source.requests.filter(({ query }) => query.endTime !== undefined).length).toBeLessThan(1_000);
  expect(windows.every(({ from, to }) => to - from <= day || (from % day === 0 && to % day === 0))).toBe(true);
});

test('a suspended source asks for one record until that is found: the offset is searched again each hour', async () => {
  const it = await twoDays({ reads: (time) => time + 7 * minute });
  await it.runUntil(it.source.now() + 10 * minute);
  expect(suspension(it)).toMatchObject({ reason: 'filter' });
  const before = it.source.requests.length;
  await it.runUntil(it.source.now() + 30 * minute);
  // Each minute the record twice, and the poll every ten seconds.
  expect(it.source.requests.length - before).toBeLessThan(30 * (2 + 6 + 2));
  it.source.switches.reads = (time) => time;
  await expectHealed(it);
});

test.each([
  ['ignores the time of the day', (time: number, isEnd: boolean) => Math.floor(time / day) * day + (isEnd ? day - second : 0)],
  ['reads the start of a query five hours behind', (time: number, isEnd: boolean) => time - (isEnd ? 0 : 5 * hour)],
])('a filter that %s is named by a record that a query of one second returns', async (_, reads) => {
  const it = await twoDays();
  const matching = it.source.matching.bind(it.source);
  it.source.matching = (request, now) => {
    const { startTime, endTime } = request.query;
    const to = (text: string | undefined, isEnd: boolean): string | undefined =>
      text === undefined ? undefined : new Date(reads(Date.parse(`${text}Z`) * 1000, isEnd) / 1000).toISOString().slice(0, 22);
    const [from, until] = [to(startTime, false), to(endTime, true)];
    return matching({ ...request, query: { ...(from && { startTime: from }), ...(until && { endTime: until }) } }, now);
  };
  await it.runUntil(it.source.now() + 10 * minute);
  expect(suspension(it)).toMatchObject({
    reason: 'filter',
    message: expect.stringMatching(/^the time filter returns record \d+ of \S+ for a query of the second \S+$/) as string,
  });
  expect(falsely(it)).toEqual([]);
});

test('records that no query with times counts are reported, and the ledger is incomplete', async () => {
  const it = await twoDays();
  const matching = it.source.matching.bind(it.source);
  const isHidden = (time: number): boolean => time >= base + 6 * hour && time < base + 9 * hour;
  it.source.matching = (request, now) =>
    matching(request, now).filter(
      ({ time }) => !isHidden(time) || (request.query.startTime === undefined && request.query.endTime === undefined),
    );
  await it.runUntil(it.source.now() + 10 * minute);
  const hidden = it.source.records.filter(({ time }) => isHidden(time)).length;
  expect(it.collector.view().trouble).toMatch(new RegExp(`^no query with times counts ${hidden} of \\d+ records$`));
  it.source.matching = matching;
  it.source.add(4711, it.source.now(), 0);
  await it.runUntil(it.source.now() + 10 * minute);
  expect(it.collector.view().trouble).toBeUndefined();
});

test('totals of a replica that lags for less than a minute are no contradiction', async () => {
  const it = await twoDays();
  await it.runUntil(it.source.now() + 10 * minute);
  const page = it.source.page.bind(it.source);
  let until: number | undefined;
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    if (!request.query.startTime?.startsWith('1970') || answer.total === undefined) return answer;
    until ??= it.source.now() + minute - second;
    return it.source.now() < until ? { ...answer, total: Math.max(0, answer.total - 1) } : answer;
  };
  it.source.add(4711, it.source.now(), 0);
  await it.runUntil(it.source.now() + 10 * minute);
  expect(until).toBeLessThan(it.source.now());
  expect(it.lines.lines.filter(({ event }) => event === 'source.record_outside')).toEqual([]);
});

test.each([
  ['of a closed window is stored', [1_200_000, 86_400_000], undefined],
  ['of a window whose uids are deleted puts it in doubt', [1_200_000], 'reread'],
])('a record that an unbounded query shows and that the ledger lacks, %s', async (_, recountAfter, reason) => {
  const it = await begun({ after: 2 * hour, pageSize: 100, recountAfter });
  for (let id = 0; id < 12; id += 1) it.source.add(id, base + id * 10 * minute, 0);
  await it.runUntil(it.source.now() + 30 * minute);
  const at = base + 35 * minute;
  it.source.add(4711, at, it.source.now());
  await it.runUntil(it.source.now() + 10 * minute);
  const lacking = reason === undefined ? 0 : 1;
  expect(appended(it.beside())).toHaveLength(13 - lacking);
  expect(falsely(it)).toEqual([]);
  expect(await it.journal.windowAt(sourceId, at)).toMatchObject({ reason });
});

test('another service with as many records at the same times is read: an equal count alone ends no doubt', async () => {
  const it = await begun({ after: 2 * hour, pageSize: 100 });
  for (let id = 0; id < 110; id += 1) it.source.add(id, base + id * minute + 30 * second, 0);
  await it.runUntil(it.source.now() + 30 * minute);
  it.source.records.splice(0);
  for (let id = 0; id < 110; id += 1) it.source.add(1000 + id, base + id * minute + 30 * second, 0);
  it.journal.history.followHost(sourceId, 'https://one.example/v2/api');
  expect(it.journal.history.followHost(sourceId, 'https://other.example/v2/api')?.windows).toBeGreaterThan(3);
  await it.runUntil(it.source.now() + 30 * minute);
  const due = { from: base, to: it.journal.progress(sourceId).live.closedUntil };
  expect(appended(it.beside())).toEqual(expect.arrayContaining(owned(it.source.records, due)));
});
