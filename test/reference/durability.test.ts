/**
 * Acknowledged work survives a `kill -9` completely: each payload with its key, its policies and
 * its records.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ServiceClock } from '../../src/reference/clock.ts';
import { DataFile } from '../../src/reference/data-file.ts';
import { Feed } from '../../src/reference/logs/feed.ts';
import { Store } from '../../src/reference/logs/store.ts';
import { organizationOf } from '../../src/reference/people/organization.ts';
import { Switches } from '../../src/reference/switches.ts';
import { logOf, opens, places, policy, protect, type Protected } from '../support/reference/files.ts';
import { Service } from '../support/reference/service.ts';

test('a service killed at work has lost nothing that it acknowledged, and has no partial write', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const options = ['--data', join(folder, 'data.db'), '--seed', 'durable'];
  const before = await Service.startProgram(...options);
  const author = await before.as('Author');
  const colleague = await before.as('Recipient');
  const administrator = await before.as('Policy Administrator');
  const excludedCountries = { excludedCountries: ['NZ'] };
  await before.call(administrator, 'POST', '/organization/policies/excluded-countries', excludedCountries);

  const files: Protected[] = [];
  const shared: Protected[] = [];
  const work = async (): Promise<void> => {
    for (;;) {
      const file = await protect(before, author, `file ${files.length}`);
      files.push(file);
      await policy(before, author, file, 'user-authorizations', { userId: colleague.userId, accessLevel: 'View' });
      shared.push(file);
    }
  };
  const ended = Promise.allSettled(Array.from({ length: 4 }, work));
  await expect.poll(() => shared.length, { interval: 5, timeout: 60_000 }).toBeGreaterThan(30);
  await before.stop('SIGKILL');
  await ended;

  await using after = await Service.start(...options);
  const again = { author: await after.as('Author'), colleague: await after.as('Recipient') };
  expect(again.author.userId).toBe(author.userId);
  const truth = await after.truth();
  const made = truth.filter((record) => record['actionAttempted'] === 'Encrypt').map((record) => String(record['payloadId']));
  expect(made).toEqual(expect.arrayContaining(files.map(({ payloadId }) => payloadId)));
  for (const payloadId of made) expect((await after.call(again.author, 'GET', `/payloads/${payloadId}`)).status).toBe(200);
  for (const file of shared) {
    expect(await logOf(after, file)).toEqual(['Encrypt AccessGranted Success', 'Audit AuthorisedUserAccess Created']);
    expect(await opens(after, again.colleague, file)).toBe(200);
  }
  expect(await opens(after, again.author, shared[0] as Protected, places.wellington)).toBe('GeoValidationCountryExclusionFailed');
  const ids = (await after.truth()).map((record) => record.logId);
  expect(new Set(ids).size).toBe(ids.length);
});

test('records and the id of the next one are written together or not at all, at the start and at each tick', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const data = new DataFile(join(folder, 'data.db'), false);
  onTestFinished(() => data.close());
  const store = new Store(data);
  const switches = new Switches();
  const feed = new Feed(new ServiceClock('system'), data, store, switches.values, organizationOf('1'), '1');
  data.setFact = () => {
    throw new Error('the disk is full');
  };
  await expect(feed.fill(20, 60_000, () => undefined, new AbortController().signal)).rejects.toThrow('the disk is full');
  expect(store.isEmpty()).toBe(true);

  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  switches.set({ rate: 1000 });
  feed.start();
  onTestFinished(() => feed.stop());
  expect(() => vi.advanceTimersByTime(50)).toThrow('the disk is full');
  expect(store.isEmpty()).toBe(true);
});
