/**
 * Unexpected properties of records do not conflict: any combination is still one JSON value.
 * Generated without the network, because the number of pairs is the square of the switches.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceClock } from '../../src/reference/clock.ts';
import { DataFile } from '../../src/reference/data-file.ts';
import { Feed } from '../../src/reference/logs/feed.ts';
import { organizationOf } from '../../src/reference/people/organization.ts';
import { Store } from '../../src/reference/logs/store.ts';
import { switchNames, Switches } from '../../src/reference/switches.ts';

const names = switchNames.filter((name) => name.startsWith('odd'));
const pairs = names.flatMap((one, at) => names.slice(at + 1).map((other) => [one, other] as const));
const everything = { from: undefined, until: undefined, equal: {}, ownOf: undefined };
const neverAborted = new AbortController().signal;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'odd-pairs-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function texts(odd: readonly string[], share: number, count: number): Promise<string[]> {
  const switches = new Switches();
  switches.set({ nodes: 2, ...Object.fromEntries(odd.map((name) => [name, share])) });
  const data = new DataFile(join(folder, `${odd.join('-')}.db`), false);
  const store = new Store(data);
  try {
    const feed = new Feed(new ServiceClock('system'), data, store, switches.values, organizationOf('1'), odd.join());
    await feed.fill(count, 3_600_000, () => undefined, neverAborted);
    return [...store.all(everything)].flat();
  } finally {
    data.close();
  }
}

describe('odd records', () => {
  test('have eleven kinds', () => expect(names).toHaveLength(11));

  test.each(pairs)('%s with %s: every record is JSON, with at least one field', async (one, other) => {
    const made = await texts([one, other], 0.5, 80);
    expect(made).toHaveLength(80);
    for (const text of made) expect(Object.keys(JSON.parse(text) as object).length).toBeGreaterThanOrEqual(13);
  });

  test.each([0.5, 1])('all at once, at %d', async (share) => {
    const made = await texts(names, share, 300);
    expect(made).toHaveLength(300);
    for (const text of made) expect(typeof JSON.parse(text)).toBe('object');
  });

  test('a repeated logId is that of another record, also if ids are missing, null, of another type or big', async () => {
    const odd = ['oddRepeatedId', 'oddMissing', 'oddNull', 'oddType', 'oddBigId'];
    const ids = (await texts(odd, 0.3, 2_000)).flatMap((text) => /^\{"logId":(\d+)[,}]/.exec(text)?.[1] ?? []);
    expect(new Set(ids).size).toBeLessThan(ids.length * 0.9);
    // A big one is 2^53 plus twice a small one: enlarging a repeated one again would have no bound.
    for (const id of ids) expect(BigInt(id)).toBeLessThan(2n ** 54n);
  });
});
