/**
 * `check` with a service that answers only queries with times (docs/operations.md), over a real
 * connection.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command } from '../../src/cli/commands/check/index.ts';
import { outputOf } from '../support/command-io.ts';
import { createAuthority } from '../support/certificates.ts';
import { startService } from '../support/model-service-server.ts';
import type { Finding } from '../support/offline-check.ts';
import { temporaryDirectory } from '../support/config/loading.ts';

async function checked(refuse: (parameters: URLSearchParams) => number | undefined): Promise<{ code: number; findings: Finding[] }> {
  const authority = await createAuthority('Test Root');
  await using service = await startService({ certificate: await authority.issue({ name: 'service', hosts: ['127.0.0.1'] }), refuse });
  using directory = temporaryDirectory();
  const at = `https://127.0.0.1:${service.port}`;
  const auth = { authUrl: at, tenantId: 't', clientId: 'c', clientSecret: service.secret, scopeAddress: 's' };
  const source = { id: 'tenant', baseUrl: `${at}/v2/api`, auth, subscriptionKey: service.subscriptionKey, start: '2026-11-21T00:00:00Z' };
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(join(directory.path, 'ca.pem'), authority.cert);
  const rest = {
    dataDir: join(directory.path, 'state'),
    tls: { ca: join(directory.path, 'ca.pem') },
    sinks: [{ id: 'out', type: 'stdout' }],
  };
  writeFileSync(file, JSON.stringify({ ...rest, sources: [source] }));
  const { code, stdout } = await outputOf((args, io) => command.run(args, io), ['--config', file, '--source', 'tenant', '--json']);
  return { code, ...(JSON.parse(stdout) as { findings: Finding[] }) };
}

test.each([400, 500] as const)(
  'a service that responds to the query without times with %s is queried with a time, and works',
  async (status) => {
    const { code, findings } = await checked((parameters) =>
      parameters.has('startTime') || parameters.has('endTime') ? undefined : status,
    );
    expect(code).toBe(0);
    expect(
      findings.filter(({ level, subject }) => level === 'warning' && subject === 'source tenant').map(({ message: words }) => words),
    ).toEqual([
      'unbounded query rejected; counting records since 1970-01-01T00:00:00.00 instead, so a total of that size may be mistaken for a cap',
    ]);
  },
);

test('a service that answers no query is an error, which quotes the response to the query without times', async () => {
  const { code, findings } = await checked(() => 503);
  expect(code).toBe(1);
  expect(findings.filter(({ level }) => level === 'error').map(({ message: words }) => words)).toEqual([expect.stringContaining('503')]);
});
