/** The check of an output file finds every kind of fault that is planted in it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { messagesIn } from '../../../bench/encoding.ts';
import { check } from '../../../bench/peers/check.ts';

const directory = mkdtempSync(join(tmpdir(), 'waybill-check-'));
afterAll(() => rmSync(directory, { recursive: true }));

const beginMs = Date.UTC(2026, 10, 20);
const message = messagesIn('ecs', beginMs);
const records = 10;
const right = Array.from({ length: records }, (_, i) => message(i).text);
const ofTenant = (lines: readonly string[], tenant: string): string[] =>
  lines.map((line) => line.replace('"organization":{"id":"bench"}', `"organization":{"id":"${tenant}"}`));

async function found(lines: readonly string[], tenants?: readonly string[]): Promise<object> {
  const file = join(directory, 'events.ndjson');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const { lost, doubled, changed } = await check(file, 'ECS', { records, beginMs, ...(tenants ? { tenants } : {}) });
  return { lost, doubled, changed };
}

test('every record once is right', async () => {
  expect(await found(right)).toEqual({ lost: 0, doubled: 0, changed: 0 });
});

test('a lost and a doubled record are counted', async () => {
  expect(await found([...right.slice(1), right[2] ?? ''])).toEqual({ lost: 1, doubled: 1, changed: 0 });
});

describe('a changed record is counted', () => {
  test.each([
    ['its user', '"user":{"id":"u-000003"', '"user":{"id":"wrong"'],
    ['its outcome', '"outcome":"success"', '"outcome":"failure"'],
    ['its time', '"@timestamp":"2026-11-20T00:00:00.1', '"@timestamp":"2026-11-20T00:00:00.2'],
    ['its original', '\\"userId\\":\\"u-000003\\"', '\\"userId\\":\\"wrong\\"'],
    ['a field that is missing', '"type":"Laptop"', '"other":"Laptop"'],
  ])('%s', async (_, before, after) => {
    const lines = right.with(3, (right[3] ?? '').replace(before, after));
    expect(lines[3]).not.toBe(right[3]);
    expect(await found(lines)).toEqual({ lost: 0, doubled: 0, changed: 1 });
  });

  test('a line with nothing but the original', async () => {
    const { event } = JSON.parse(right[3] ?? '') as { event: { original: string } };
    const line = JSON.stringify({ event: { original: event.original }, user: { id: 'wrong' } });
    expect(await found(right.with(3, line))).toEqual({ lost: 0, doubled: 0, changed: 1 });
  });
});

test('records of several sources are counted for each source', async () => {
  const [one, two] = [ofTenant(right, 'one'), ofTenant(right, 'two')];
  expect(two[0]).not.toBe(right[0]);
  expect(await found([...one, ...two], ['one', 'two'])).toEqual({ lost: 0, doubled: 0, changed: 0 });
  // The sum over both sources is right.
  expect(await found([...one, ...two.slice(1), one[0] ?? ''], ['one', 'two'])).toEqual({ lost: 1, doubled: 1, changed: 0 });
  expect(await found([...one, ...ofTenant(right, 'three')], ['one', 'two'])).toEqual({ lost: 10, doubled: 0, changed: 10 });
});
