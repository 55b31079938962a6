/**
 * The commands of docs/audit.md that count a day at the service, unchanged, with programs that
 * answer as the ledger and the service do: a failure in between ends them with an error and without
 * a number. `test/e2e/report.test.ts` runs them against the reference service.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { commandsOf } from '../../support/e2e-commands.ts';

const commands = commandsOf('docs/audit.md', 'Counting a day at the service');
const hasPrograms = ['jq', 'awk', 'curl'].every((name) => spawnSync('bash', ['-c', `command -v ${name}`]).status === 0);
/** The cells that the commands read: 2 to 4 are the day and its bounds, 12 is the number of records. */
const day = 'production,2026-11-20,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,,,,,,,,3,,,\r\n';
const record = (logId: number, time: string): object => ({
  ...{ logId, logTimestamp: `2026-11-20T${time}`, actionAttempted: 'Decrypt', result: 'AccessGranted', resultReason: 'Success' },
});
/** The three records of the day, and the first of the next day, which the bounds of the query include. */
const data = [
  ...['00:00:00.0000000', '12:00:00', '23:59:59.9999999'].map((time, i) => record(i, time)),
  { ...record(9, ''), logTimestamp: '2026-11-21T00:00:00' },
];

/** Runs the commands. `broken`: shell programs by name, in place of the working ones. */
function counted(broken: Readonly<Record<string, string>> = {}, ledger = day, page: object = { data, pagination: { totalRecords: 4 } }) {
  const place = mkdtempSync(join(tmpdir(), 'waybill-counted-day-'));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  writeFileSync(join(place, 'given.csv'), `# COMPLETE AND DELIVERED\r\nsource,day,from,to\r\n${ledger}`);
  writeFileSync(join(place, 'given.json'), JSON.stringify(page));
  const programs = {
    waybill: 'for last; do :; done; cp given.csv "$last"',
    curl: `case "$*" in */token*) echo '{"access_token":"t"}';; *) cat given.json;; esac`,
    ...broken,
  };
  for (const [name, line] of Object.entries(programs)) {
    writeFileSync(join(place, name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(place, name), 0o755);
  }
  const names = ['CLIENT', 'SECRET', 'SCOPE', 'TENANT', 'AUTH_URL', 'BASE_URL', 'KEY'];
  const env = {
    PATH: `${place}:${process.env['PATH'] ?? ''}`,
    SOURCE: 'production',
    DAY: '2026-11-20',
    ...Object.fromEntries(names.map((name) => [name, 'x'])),
  };
  const { status, stdout, stderr } = spawnSync('bash', ['-c', commands], {
    cwd: place,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  return { code: status, stdout, stderr };
}

const jq = (pattern: string, end: string): Record<string, string> => ({
  jq: `case "$*" in ${pattern}) ${end};; esac; exec ${execFileSync('bash', ['-c', 'command -v jq'], { encoding: 'utf8' }).trim()} "$@"`,
});

// promise: The commands with which an auditor counts a day find equal and different numbers.
test.runIf(hasPrograms)('equal and different numbers of a day: exit 0 and 1', () => {
  expect(counted()).toEqual({ code: 0, stdout: '3 at the service, 3 in the ledger of 2026-11-20\n', stderr: '' });
  expect(counted({}, day.replace(',3,', ',2,'))).toEqual({
    code: 1,
    stdout: '3 at the service, 2 in the ledger of 2026-11-20\n',
    stderr: '',
  });
});

test.runIf(hasPrograms).each([
  ['a jq that fails at the records', () => counted(jq('*.data*', 'exit 5'))],
  ['a jq that omits the total', () => counted(jq('*totalRecords*', 'exit 0'))],
  ['a jq that fails after a token', () => counted(jq('*access_token*', 'echo null; exit 1'))],
  ['a curl that fails', () => counted({ curl: 'exit 22' })],
  ['a service that sends fewer records than its total', () => counted({}, day, { data: data.slice(1), pagination: { totalRecords: 4 } })],
  ['a ledger without the day', () => counted({}, '')],
  ['a ledger that cannot be read', () => counted({ waybill: 'exit 1' })],
])('%s: an error and no number', (_, run) => {
  const { code, stdout, stderr } = run();
  expect([stdout, stderr]).toEqual(['', expect.stringMatching(/^NOT COUNTED: line \d+ ended with \d+$/m)]);
  expect(code).toBeGreaterThan(0);
});
