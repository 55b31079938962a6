/**
 * A schema-driven fuzzer against the service's own description: `node test/support/reference/fuzz.ts
 * [EXAMPLES] [SEED]`. Starts the service with a Super Administrator's token and runs Schemathesis
 * (Python: `pip install schemathesis`; SCHEMATHESIS names the program if it is not on the PATH)
 * with every check except one: a request that matches the schemas need not succeed, because a file
 * must also have been protected. Ends with 1 after a 5xx or an undescribed response; prints the
 * counts of the service.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Service } from './service.ts';

const [examples = '400', seed = '1'] = process.argv.slice(2);

await using service = await Service.start('--records', '500', '--seed', 'fuzz');
const { userId, token } = await service.as('Super Administrator');
const headers = { Authorization: `Bearer ${token}`, 'Ocp-Apim-Subscription-Key': service.line.subscriptionKey, 'x-api-caller-id': userId };
const options = [
  'run',
  `${service.line.authUrl}/openapi.json`,
  '--tls-verify',
  service.line.ca,
  '--exclude-checks',
  'positive_data_acceptance',
];
const more = ['--max-examples', examples, '--seed', seed, '--continue-on-failure', '--workers', '2'];
const given = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
// Schemathesis stores its findings in the working directory.
const cwd = mkdtempSync(join(tmpdir(), 'reference-fuzz-'));
const fuzzer = spawn(process.env['SCHEMATHESIS'] ?? 'schemathesis', [...options, ...more, ...given], {
  cwd,
  stdio: ['ignore', 'inherit', 'inherit'],
});
const [code] = (await once(fuzzer, 'close')) as [number | null];
rmSync(cwd, { recursive: true });

const { json } = await service.control('GET', '/stats');
const requests = json['requests'] as Record<string, Record<string, number>>;
const byStatus: Record<string, number> = {};
for (const counts of Object.values(requests)) {
  for (const [status, count] of Object.entries(counts)) byStatus[status] = (byStatus[status] ?? 0) + count;
}
const total = Object.values(byStatus).reduce((sum, count) => sum + count, 0);
process.stdout.write(`${JSON.stringify({ total, byStatus })}\n`);
const failed = Object.keys(byStatus).some((status) => status.startsWith('5'));
process.exitCode = code === 0 && !failed ? 0 : 1;
