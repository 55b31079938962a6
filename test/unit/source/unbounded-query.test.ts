/** Unbounded queries are used until a service that answers bounded queries does not answer them. */
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors.ts';
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

test('sends no times while the service answers that, and does not change queries with times', async () => {
  const it = world();
  expect((await it.everything.page(all, never)).total).toBe(40);
  expect((await it.everything.page({ ...all, query: lastDay }, never)).total).toBe(10);
  it.model.isFailing = () => true;
  it.model.fails = refused;
  await expect(it.everything.page({ ...all, query: lastDay }, never)).rejects.toBe(refused);
  expect(it.asked()).toEqual([{}, lastDay, lastDay]);
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
