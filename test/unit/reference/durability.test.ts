/** What was answered is there after a `kill -9`, whole: each payload with its key, its policies and the records that tell of them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { logOf, opens, places, policy, protect, type Protected } from './files.ts';
import { Service } from './service.ts';

test('a service that is killed in the middle of its work has lost nothing that it answered, and nothing half', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const options = ['--data', join(folder, 'data.db'), '--seed', 'durable'];
  const before = await Service.start(...options);
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
  await expect.poll(() => shared.length, { interval: 5, timeout: 20_000 }).toBeGreaterThan(30);
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
