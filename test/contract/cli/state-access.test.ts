/**
 * Commands that only read: the settings they need, the states they may read, and a daemon that no
 * longer runs.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { settingsText } from '../../../src/config/state-settings.ts';
import { dispatch } from '../../../src/main.ts';
import { outputOf, type Output } from '../../support/command-io.ts';
import { service } from '../../support/offline-check.ts';
import { waybillProgram } from '../../support/programs.ts';
import { base, day, hour } from '../../support/records.ts';
import { gap, lastAge, opened, proven, source, temporary } from '../../support/journal/opening.ts';

/** The output of `waybill init`: every address from the environment, which only the daemon has. */
const configuration = (state: string): string => `dataDir: ${state}
sources:
  - id: ${source}
    baseUrl: \${env:WAYBILL_BASE_URL}
    auth:
      authUrl: \${env:WAYBILL_AUTH_URL}
      tenantId: \${env:WAYBILL_TENANT_ID}
      clientId: \${env:WAYBILL_CLIENT_ID}
      clientSecret: \${file:/run/secrets/not-here}
      scopeAddress: \${env:WAYBILL_SCOPE_ADDRESS}
sinks:
  - { id: siem, type: splunk-hec, url: "\${env:HEC_URL}", token: "\${env:HEC_TOKEN}", sources: [${source}], filter: { result: [AccessDenied] } }
`;

const waybill = (...argv: string[]): Promise<Output> => outputOf(dispatch, argv);

/** A state with one proven window and one gap, without a daemon. */
async function state(settings?: string): Promise<string> {
  const { journal, directory, close } = await opened();
  await journal.close(source, { from: base, to: base + hour }, proven(0, base + hour, base + day), lastAge);
  await journal.close(source, { from: base + hour, to: base + 2 * hour }, gap(), lastAge);
  journal.sinkPositions.register('siem', 'splunk-hec', 'place', journal.positionFor('journal'), undefined);
  if (settings !== undefined) journal.storeSettings(settings);
  await close();
  return directory;
}

const reading = [
  ['status'],
  ['ledger'],
  ['gaps', 'list'],
  ['operations', 'list'],
  ['sinks', 'list'],
  ['sources', 'list'],
  ['dead-letters', 'list'],
  ['backfill', 'list'],
];

test.each(reading)('%s %s reads the state if no reference of the configuration resolves', async (...command) => {
  const directory = await state();
  const file = join(directory, 'waybill.yaml');
  writeFileSync(file, configuration(directory));
  const shown = await waybill(...command, '--config', file);
  expect(shown.stderr).toBe('');
  expect(shown.stdout).not.toBe('');
  // The ledger has a gap.
  expect(shown.code).toBe(command[0] === 'ledger' ? 3 : 0);
});

test('an unresolved reference that a report needs is named, and one of dataDir is an error that names --data-dir', async () => {
  const directory = await state();
  const file = join(directory, 'waybill.yaml');
  writeFileSync(file, configuration(directory).replace(`[${source}]`, '["${env:ONLY}"]'));
  const shown = await waybill('sinks', 'list', '--config', file);
  expect([shown.code, shown.stderr]).toEqual([
    0,
    'warning: sinks.siem.sources[0] (line 12): environment variable "ONLY" is not set; the report ignores it\n',
  ]);
  writeFileSync(file, configuration('${env:STATE}'));
  const refused = await waybill('status', '--config', file);
  expect([refused.code, refused.stderr.split('\n')[1]]).toEqual([2, '  dataDir (line 1): environment variable "STATE" is not set']);
  const absent = await waybill('status', '--config', join(directory, 'no.yaml'));
  expect([absent.code, absent.stderr]).toEqual([
    2,
    expect.stringMatching(/no\.yaml.*ENOENT.*; use --data-dir DIR to read a state without one\n$/),
  ]);
});

test.each(reading)('%s %s reads the state of an invalid configuration, and prints its problems as warnings', async (...command) => {
  const directory = await state();
  const file = join(directory, 'waybill.yaml');
  const faults: [string, RegExp][] = [
    [configuration(directory).replace('sources: [', 'surces: ['), /^warning: sinks\.siem\.surces \(line 12\): is not a setting; /m],
    // Not YAML: the state directory is still readable.
    [configuration(directory).replace('sinks:', '  sinks: ['), /^warning: .*line \d+/m],
  ];
  for (const [text, problem] of faults) {
    writeFileSync(file, text);
    const shown = await waybill(...command, '--config', file);
    expect(shown.stderr).toMatch(
      /^warning: cannot use the configuration ".*": .* problems?; reading the state in ".*" with the settings of its last start$/m,
    );
    expect(shown.stderr).toMatch(problem);
    expect(shown.stdout).not.toBe('');
    expect(shown.code).toBe(command[0] === 'ledger' ? 3 : 0);
  }
});

test('an invalid configuration without a state is an error as before', async () => {
  const directory = temporary();
  const file = join(directory, 'waybill.yaml');
  writeFileSync(file, configuration(join(directory, 'none')).replace('sources: [', 'surces: ['));
  const shown = await waybill('ledger', '--config', file);
  expect([shown.code, shown.stderr]).toEqual([
    2,
    expect.stringMatching(/sinks\.siem\.surces \(line 12\): is not a setting; the nearest is "sources"/),
  ]);
});

test.each(reading)('%s %s --data-dir DIR reports the same as with the configuration of the daemon', async (...command) => {
  const settings = settingsText({
    ...{ dataDir: '', journal: { maxSize: 10_737_418_240 } },
    sources: [
      {
        id: source,
        start: { kind: 'now' },
        closeDelay: 900_000,
        recountAfter: [3_600, 21_600, 86_400, 259_200, 604_800, 1_209_600, 2_592_000].map((s) => s * 1_000),
      },
    ],
    sinks: [{ id: 'siem', sources: [source], filter: true }],
  });
  const directory = await state(settings);
  const file = join(directory, 'waybill.yaml');
  writeFileSync(file, configuration(directory));
  // The time of the call is removed: the report on a stopped daemon ends at it.
  const timeless = ({ code, stdout, stderr }: Output): Output => ({
    code,
    stderr,
    stdout: stdout
      .replace(/"(made|generatedAt)": ".*"|"(lagSeconds)": [\d.]+/g, '')
      .replace(/–[\d :-]+ UTC, the daemon is not running|\(\d+ s ago\)/g, '')
      .replace(/"to": ".*"(?=,\s*"reason": "daemon_stopped")/g, ''),
  });
  const [known, bare] = [
    await waybill(...command, '--json', '--config', file),
    await waybill(...command, '--json', '--data-dir', directory),
  ];
  expect(timeless(bare)).toEqual(timeless(known));
});

test('a state with unknown settings is read, with a warning', async () => {
  const directory = await state();
  const shown = await waybill('status', '--data-dir', directory);
  expect(shown.code).toBe(0);
  expect(shown.stderr).toMatch(/^warning: the state does not contain the settings of its sources and sinks yet: /);
  // Not "gone from the configuration": its sources are unknown.
  expect(shown.stdout).toMatch(/^production +stopped /m);
});

test('--data-dir is only for commands that read', async () => {
  const directory = await state();
  for (const command of [
    ['gaps', 'retry', '--all'],
    ['sources', 'retire'],
    ['sinks', 'retire'],
  ])
    expect(await waybill(...command, '--data-dir', directory)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^cannot use --data-dir with .*: it is an option of /) as string,
    });
});

test('a stopped daemon: its end, the known state, and the advice; --exit-code is 3', async () => {
  const directory = await state();
  const file = join(directory, 'waybill.yaml');
  writeFileSync(file, configuration(directory));
  const ended = Date.now() / 1000 - 960;
  utimesSync(join(directory, 'waybill.db'), ended, ended);
  const shown = await waybill('status', '--config', file, '--exit-code');
  expect(shown.code).toBe(3);
  expect(shown.stdout).toContain('No daemon runs; the state was last written 16 min ago.');
  expect(shown.stdout).toMatch(/To do: start it/);
  expect(shown.stdout).not.toContain('waybill check');
  expect((await waybill('status', '--config', file)).code).toBe(0);
});

test('a directory without a state differs from one of another user', async ({ skip }) => {
  const empty = temporary();
  const file = join(empty, 'file');
  writeFileSync(file, '');
  for (const [directory, words] of [
    [join(empty, 'none'), 'there is no such directory; has the daemon run?'],
    [empty, 'the directory has none; has the daemon run?'],
    [file, 'it is not a directory'],
  ] as const) {
    expect(await waybill('status', '--data-dir', directory)).toMatchObject({
      code: 1,
      stderr: `cannot find a state in "${directory}": ${words}\n`,
    });
  }
  if (process.getuid?.() !== 0) return skip('only root can become another user');
  const place = temporary();
  chmodSync(place, 0o755);
  const directory = join(place, 'state');
  mkdirSync(directory);
  spawnSync('cp', ['-a', `${await state()}/.`, directory]);
  chmodSync(directory, 0o700);
  // Reads as nobody, who may read the program.
  const options = { encoding: 'utf8', uid: 65_534, gid: 65_534, env: { PATH: process.env['PATH'] } } as const;
  for (const command of [['status'], ['ledger'], ['gaps', 'list'], ['sinks', 'list']]) {
    const { status, stderr } = spawnSync(process.execPath, [waybillProgram, ...command, '--data-dir', directory], options);
    if (stderr.includes('EACCES') && stderr.includes('waybill.js')) return skip('another user cannot read the checkout');
    expect([status, stderr]).toEqual([
      1,
      `cannot read the state in "${directory}": it belongs to root (mode 0700), this is nobody; run the command as root, or ask the running daemon: status, ledger, gaps list and operations list take --admin URL, with the read token in WAYBILL_ADMIN_TOKEN\n`,
    ]);
  }
  // The daemon after a move, with a state that was copied as root.
  const config = join(place, 'waybill.yaml');
  writeFileSync(
    config,
    JSON.stringify({ dataDir: directory, sources: [{ id: source, ...service }], sinks: [{ id: 'out', type: 'stdout' }] }),
  );
  const run = spawnSync(process.execPath, [waybillProgram, 'run', '--require-state', '--config', config], { ...options, timeout: 60_000 });
  expect(run.status, run.stderr).toBe(1);
  expect(run.stderr).toContain('"code":"state_unusable"');
  expect(run.stderr).toContain('it belongs to root (mode 0700), this is nobody');
});
