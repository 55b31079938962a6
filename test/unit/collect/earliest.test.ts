import { expect, test } from 'vitest';
import { earliest } from '../../../src/collect/earliest.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { closeDelay, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';

function found(it: World): Promise<{ start: number; message: string }> {
  return earliest(it.requester, it.paging, it.source.now(), closeDelay, it.signal);
}

/**
 * The first page in ascending order shows the earliest record: one page of one record, one count.
 */
test('the first record in ascending order, when nothing is counted before it', async () => {
  const it = await world({ after: 100 * day });
  it.source.add(1, base + 40 * day + 123_456);
  it.source.add(2, base + 41 * day);
  expect(await found(it)).toMatchObject({ start: base + 40 * day - 2 * second, message: expect.stringMatching(/ascending/) as string });
  expect(it.source.requests).toHaveLength(2);
  expect(it.source.requests.every(({ pageSize }) => pageSize === 1)).toBe(true);
});

test.each(['included', 'excluded'] as const)('by counts if the order is not honoured; upper bound %s', async (upperBound) => {
  const it = await world({ after: 100 * day, switches: { order: 'ignored', upperBound } });
  it.source.add(1, base + 60 * day);
  const first = base + 7 * day + 3 * hour + 5 * minute + 999_999;
  it.source.add(2, first);
  it.source.add(3, base + 50 * day);
  const { start, message: words } = await found(it);
  expect(words).toMatch(/by counting/);
  expect(start % second).toBe(0);
  expect(start).toBeLessThanOrEqual(first - 1);
  expect(first - start).toBeLessThan(4 * second);
  expect(it.source.requests.length).toBeLessThan(45);
});

test('also if the service compares times in whole seconds', async () => {
  const it = await world({ after: 100 * day, switches: { order: 'ignored', cut: second, upperBound: 'excluded' } });
  it.source.add(1, base + 60 * day);
  it.source.add(2, base + 8 * day + 999_999);
  expect((await found(it)).start).toBeLessThanOrEqual(base + 8 * day);
});

test('for a service without records history starts closeDelay ago: records written now become visible later', async () => {
  const it = await world({ after: day + 250_000 });
  expect(await found(it)).toEqual({ start: base + day - closeDelay, message: 'the service has no record' });
});

test('a first record without a readable time does not hide the others', async () => {
  const it = await world({ after: 100 * day, switches: { order: 'ignored' } });
  it.source.records.push({ time: base + day, visible: base, text: '{"logId":1,"logTimestamp":"yesterday"}' });
  it.source.add(2, base + 3 * day);
  expect((await found(it)).start).toBeLessThanOrEqual(base + day);
});

test('without a usable total the first record counts, and the message says so', async () => {
  const it = await world({ after: 100 * day, switches: { total: 'missing' } });
  it.source.add(1, base + 40 * day);
  expect(await found(it)).toEqual({
    start: base + 40 * day - 2 * second,
    message: 'the first record in ascending order; not verified, because the service gives no usable total',
  });
});
