/** Unbounded queries are used until a service that answers bounded queries does not answer them. */
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { PageRequest } from '../../../src/model/source.ts';
import { calibrate } from '../../../src/collect/calibrate.ts';
import { UnboundedQuery } from '../../../src/source/unbounded-query.ts';
import { ModelSource } from '../../support/model-source.ts';
import { base, day, hour } from '../../support/records.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { Lines } from '../../support/collect/world.ts';

const never = new AbortController().signal;
const refused = new WaybillError('page_refused', '400 startTime is required');
const busy = new WaybillError('source_busy', '504 timeout');
const all: PageRequest = { query: {}, page: undefined, pageSize: 100 };
const epoch = { startTime: '1970-01-01T00:00:00.00' };
const lastDay = { startTime: '2026-11-20T02:00:00.00' };

const no: (request: PageRequest) => boolean = () => false;

/**
 * A service with forty records, thirty of them older than a day; `fails` is thrown for requests
 * that match `isFailing`.
 */
function world(query?: { startTime: string }) {
  const clock = new VirtualClock((base + day) / 1000);
  const service = new ModelSource(clock);
  for (let i = 1; i <= 30; i += 1) service.add(i, base - i * hour);
  for (let i = 31; i <= 40; i += 1) service.add(i, base + (i - 30) * hour);
  const log = new Lines();
  const model = { fails: busy, isFailing: no };
  service.before = (request) => {
    if (model.isFailing(request)) throw model.fails;
  };
  const everything = new UnboundedQuery({ id: 's', source: service, clock, log, query });
  const asked = (): unknown[] => service.requests.splice(0).map((request) => request.query);
  return { clock, service, log, model, everything, asked };
}

const isUntimed = ({ query }: PageRequest): boolean => query.startTime === undefined;
const isBeforeToday = (request: PageRequest): boolean => isUntimed(request) || request.query.startTime === epoch.startTime;

test('sends no times while the service answers that, and does not change queries with both times', async () => {
  const it = world();
  expect((await it.everything.page(all, never)).total).toBe(40);
  const both = { ...lastDay, endTime: '2026-11-21T00:00:00.00' };
  expect((await it.everything.page({ ...all, query: both }, never)).total).toBe(10);
  it.model.isFailing = () => true;
  it.model.fails = refused;
  await expect(it.everything.page({ ...all, query: both }, never)).rejects.toBe(refused);
  expect(it.asked()).toEqual([{}, both, both]);
  expect(it.everything.forms).toEqual([]);
});

/** A service that demands both times, or none. */
const isHalf = ({ query }: PageRequest): boolean => (query.startTime === undefined) !== (query.endTime === undefined);

test('a query with one time that is refused gets the other one: a day ahead of the present, or since 1970', async () => {
  const it = world();
  it.model.fails = refused;
  it.model.isFailing = isHalf;
  expect((await it.everything.page({ ...all, query: lastDay }, never)).total).toBe(10);
  await it.clock.sleep(60_000, never);
  expect((await it.everything.page({ ...all, query: lastDay }, never)).total).toBe(10);
  expect((await it.everything.page({ ...all, query: { endTime: '2026-11-20T02:00:00.00' } }, never)).total).toBe(30);
  expect((await it.everything.page(all, never)).total).toBe(40);
  // `base` is 2026-11-20T02:00:00Z, and the clock is a day later. The refused form is not tried again.
  expect(it.asked()).toEqual([
    lastDay,
    { ...lastDay, endTime: '2026-11-22T02:00:00.00' },
    { ...lastDay, endTime: '2026-11-22T02:01:00.00' },
    { ...epoch, endTime: '2026-11-20T02:00:00.00' },
    {},
  ]);
  expect(it.everything.forms).toEqual(['query with only one time rejected; live polls add an endTime, a day ahead']);
  expect(it.log.lines).toMatchObject([{ level: 'warn', event: 'source.open_query_rejected', fields: { source: 's', error: refused } }]);
});

test('a service that also refuses an end in the future gets the present, and the usual form once it answers that again', async () => {
  const it = world();
  it.model.fails = refused;
  it.model.isFailing = (request) => isHalf(request) || Date.parse(`${request.query.endTime ?? ''}Z`) > it.clock.now();
  expect((await it.everything.page({ ...all, query: lastDay }, never)).total).toBe(10);
  expect(it.asked().at(-1)).toEqual({ ...lastDay, endTime: '2026-11-21T02:00:00.00' });
  it.model.isFailing = (request) => !isHalf(request);
  expect((await it.everything.page({ ...all, query: lastDay }, never)).total).toBe(10);
  expect(it.asked().at(-1)).toEqual(lastDay);
  expect(it.everything.forms).toEqual([]);
});

test('after no form of a query with one time was answered, a minute passes before the others are tried again', async () => {
  const it = world();
  it.model.fails = refused;
  it.model.isFailing = () => true;
  for (let i = 0; i < 20; i += 1) await expect(it.everything.page({ ...all, query: lastDay }, never)).rejects.toBe(refused);
  expect(it.asked()).toHaveLength(20 + 2);
  await it.clock.sleep(60_000, never);
  await expect(it.everything.page({ ...all, query: lastDay }, never)).rejects.toBe(refused);
  expect(it.asked()).toHaveLength(3);
});

test('a service that demands both times for every query is read since 1970 until a day ahead, which moves with the clock', async () => {
  const it = world();
  it.model.fails = refused;
  it.model.isFailing = (request) => request.query.startTime === undefined || isHalf(request);
  expect(await calibrate(it.everything, 100, never)).toMatchObject({ total: 40 });
  const whole = { ...epoch, endTime: '2026-11-22T02:00:00.00' };
  // Calibration requests page 1 too.
  expect(it.asked()).toEqual([{}, epoch, whole, {}, whole]);
  expect(it.everything.isWhole).toBe(true);
  await it.clock.sleep(3_600_000, never);
  expect((await it.everything.page(all, never)).total).toBe(40);
  expect(it.asked()).toEqual([{ ...epoch, endTime: '2026-11-22T03:00:00.00' }]);
  expect(it.everything.forms).toEqual([
    'unbounded query rejected; counting records since 1970-01-01T00:00:00.00 until a day ahead instead, so a total of that size may be mistaken for a cap',
  ]);
});

test('a refused query is replaced at once: calibration covers the log since 1970', async () => {
  const it = world();
  it.model.fails = refused;
  it.model.isFailing = isUntimed;
  expect(await calibrate(it.everything, 'auto', never)).toEqual({ firstPage: 1, pageSize: 1000, total: 40, dated: true });
  // The refusal is confirmed by a second request.
  expect(it.asked()).toEqual([{}, epoch, {}, epoch]);
  expect(it.everything).toMatchObject({ query: epoch, isWhole: true });
  expect((await it.everything.page(all, never)).total).toBe(40);
  expect(it.asked()).toEqual([epoch]);
  expect(it.log.lines).toMatchObject([{ level: 'warn', fields: { source: 's', ...epoch, error: refused } }]);
});

test('a refused page size is another case: calibration reduces it, and sends no times', async () => {
  const it = world();
  it.service.switches.refuseAbove = 200;
  expect(await calibrate(it.everything, 'auto', never)).toMatchObject({ pageSize: 200, total: 40 });
  expect(it.everything.query).toEqual({});
});

test('three failures in a row replace the query if another one succeeds: by one over the last day if the whole log fails', async () => {
  const it = world();
  it.model.isFailing = isBeforeToday;
  await expect(it.everything.page(all, never)).rejects.toBe(busy);
  await expect(it.everything.page(all, never)).rejects.toBe(busy);
  expect(it.asked()).toEqual([{}, {}]);
  expect((await it.everything.page(all, never)).total).toBe(10);
  expect(it.asked()).toEqual([{}, epoch, lastDay, {}]);
  expect(it.everything).toMatchObject({ query: lastDay, isWhole: false });
});

test('a service that answers nothing, sends Retry-After, or just recovers is queried without times as before', async () => {
  const it = world();
  it.model.isFailing = () => true;
  for (let i = 0; i < 7; i += 1) await expect(it.everything.page(all, never)).rejects.toBe(busy);
  // Seven times, and the other query with every third.
  expect(it.asked()).toHaveLength(11);
  it.model.fails = new WaybillError('source_busy', '429', { retryAfterMs: 1_000 });
  for (let i = 0; i < 7; i += 1) await expect(it.everything.page(all, never)).rejects.toBe(it.model.fails);
  expect(it.asked()).toHaveLength(7);
  it.model.fails = busy;
  let left = 3;
  it.model.isFailing = () => (left -= 1) >= 0;
  await expect(it.everything.page(all, never)).rejects.toBe(busy);
  expect((await it.everything.page(all, never)).total).toBe(40);
  expect(it.asked()).toEqual([{}, {}, epoch, lastDay, {}]);
  expect(it.everything.query).toEqual({});
});

test('a page that is refused for its depth does not replace the query', async () => {
  const it = world();
  it.service.switches.deepest = 10;
  await expect(it.everything.page({ ...all, page: 2, pageSize: 10 }, never)).rejects.toMatchObject({ code: 'page_refused' });
  expect(it.asked()).toHaveLength(1);
});

test('the query in use before a restart is used until a wider one succeeds', async () => {
  const it = world(lastDay);
  it.model.isFailing = isBeforeToday;
  expect((await it.everything.page(all, never)).total).toBe(10);
  await it.everything.widen(never);
  expect(it.asked()).toEqual([lastDay, {}, epoch]);
  it.model.isFailing = isUntimed;
  await it.everything.widen(never);
  expect(it.everything).toMatchObject({ query: epoch, isWhole: true });
  it.model.isFailing = () => false;
  await it.everything.widen(never);
  expect(it.everything.query).toEqual({});
  it.asked();
  await it.everything.widen(never);
  expect(it.asked()).toEqual([]);
});
