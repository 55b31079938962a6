/** `check --offline` on the predicted requests of sources. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/check/index.ts';
import { temporaryDirectory } from '../config/loading.ts';

interface Finding {
  readonly subject: string;
  readonly level: string;
  readonly message: string;
}

/** The findings about a configuration with this many sources, all in one group. */
async function findings(count: number, perSecond: number): Promise<Finding[]> {
  using directory = temporaryDirectory();
  const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 'hush', scopeAddress: 's' };
  const sources = Array.from({ length: count }, (_, i) => ({
    ...{ id: `tenant-${i}`, baseUrl: 'https://service.example/v2/api', auth, start: '2026-11-21T00:00:00Z' },
    requests: { perSecond, group: 'gateway' },
  }));
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(file, JSON.stringify({ dataDir: join(directory.path, 'state'), sources, sinks: [{ id: 'out', type: 'stdout' }] }));
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const io = { stdin, stdout, stderr, env: {}, signal: new AbortController().signal };
  expect(await command.run(['--config', file, '--offline', '--json'], io)).toBe(0);
  return (JSON.parse(String(stdout.read())) as { findings: Finding[] }).findings;
}

test('with the defaults a source sends 9,792 requests a day', async () => {
  expect(await findings(1, 10)).toContainEqual({
    subject: 'source tenant-0',
    level: 'ok',
    message: 'about 9792 requests a day when idle, 0.11 a second',
  });
});

test('sources that share a budget are compared with it together', async () => {
  const ofGroup = async (count: number, perSecond: number): Promise<Finding[]> =>
    (await findings(count, perSecond)).filter(({ subject }) => subject === 'group gateway');
  // 88 times 9,792 a day are 9.97 per second, 100 times are 11.3.
  expect(await ofGroup(88, 10)).toEqual([]);
  expect(await ofGroup(100, 10)).toEqual([
    {
      subject: 'group gateway',
      level: 'warning',
      message: expect.stringMatching(/^100 sources share 10 .* need 11\.3 when idle/) as string,
    },
  ]);
  expect(await ofGroup(100, 12)).toEqual([]);
});
