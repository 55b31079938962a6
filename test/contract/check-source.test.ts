/**
 * `check` with a service that answers only queries with times (docs/operations.md), over a real
 * connection.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { command } from '../../src/cli/commands/check/index.ts';
import { createAuthority } from '../support/certificates.ts';
import { answering, startService } from '../support/model-service-server.ts';
import { ModelService } from '../support/model-service.ts';
import type { ModelAnswer } from '../support/model-service.ts';
import { temporaryDirectory } from '../unit/config/loading.ts';

interface Finding {
  readonly subject: string;
  readonly level: string;
  readonly message: string;
}

/** Refuses the query without times, or responds with 500. */
class WithTimesAlone extends ModelService {
  readonly #status: number;

  constructor(status: number) {
    super();
    this.#status = status;
  }

  override answer(parameters: URLSearchParams, now: number): ModelAnswer {
    if (parameters.has('startTime') || parameters.has('endTime')) return super.answer(parameters, now);
    return { status: this.#status, body: '{"title":"startTime is needed"}' };
  }
}

async function checked(model: ModelService, isUp = true): Promise<{ code: number; findings: Finding[] }> {
  const authority = await createAuthority('Test Root');
  await using service = await startService({ certificate: await authority.issue({ name: 'service', hosts: ['127.0.0.1'] }), model });
  if (!isUp) service.nextPages.push(...Array.from({ length: 20 }, () => answering(503)));
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
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const io = { stdin, stdout, stderr, env: {}, signal: new AbortController().signal };
  const code = await command.run(['--config', file, '--source', 'tenant', '--json'], io);
  return { code, ...(JSON.parse(String(stdout.read())) as { findings: Finding[] }) };
}

test.each([400, 500] as const)(
  'a service that responds to the query without times with %s is queried with a time, and works',
  async (status) => {
    const { code, findings } = await checked(new WithTimesAlone(status));
    expect(code).toBe(0);
    expect(
      findings.filter(({ level, subject }) => level === 'warning' && subject === 'source tenant').map(({ message: words }) => words),
    ).toEqual([
      'unbounded query rejected; counting records since 1970-01-01T00:00:00.00 instead, so a total of that size may be mistaken for a cap',
    ]);
  },
);

test('a service that answers no query is an error, which quotes the response to the query without times', async () => {
  const { code, findings } = await checked(new ModelService(), false);
  expect(code).toBe(1);
  expect(findings.filter(({ level }) => level === 'error').map(({ message: words }) => words)).toEqual([expect.stringContaining('503')]);
});
