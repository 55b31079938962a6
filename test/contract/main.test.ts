import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { fitted } from '../../src/cli/help-text.ts';
import { commands } from '../../src/cli/catalog.ts';
import { exitCodeOf, StoppedError } from '../../src/cli/exit-code.ts';
import { loadCommand } from '../../src/cli/registry.ts';
import { dispatch } from '../../src/main.ts';
import { commandIo, outputOf, type Output } from '../support/command-io.ts';
import { oldNode } from '../support/old-node.ts';
import { referenceProgram, waybillProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/config/loading.ts';

/** A configuration of a service that is never requested. */
function configurationWith(state: string): string {
  return `dataDir: ${JSON.stringify(state)}
admin: { listen: ['127.0.0.1:0'] }
log: { level: error }
sources:
  - id: production
    baseUrl: http://127.0.0.1:9/v2/api
    start: 2026-11-20T00:00:00Z
    auth: { authUrl: http://127.0.0.1:9, tenantId: t, clientId: c, clientSecret: not-much-of-one, scopeAddress: s }
`;
}

type Outcome = Output<number | null>;

/** Runs a command line inside this process. */
const dispatched = (...argv: string[]): Promise<Outcome> => outputOf(dispatch, argv);

/** Runs the program itself; `drive` controls the process. */
function spawned(argv: readonly string[], drive?: Drive): Promise<Outcome> {
  return run(process.execPath, [waybillProgram, ...argv], drive);
}

type Drive = (child: ChildProcess) => void;

async function run(file: string, argv: readonly string[], drive: Drive = () => undefined): Promise<Outcome> {
  const child = spawn(file, argv, { stdio: 'pipe' });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  drive(child);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

test('the release is that of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  for (const flag of ['--version', '-v']) expect(await dispatched(flag)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

test('the program bounds its heap, and the allocator of glibc returns memory unless the environment decides', async ({ skip }) => {
  skip(process.platform !== 'linux', 'needs /proc of Linux');
  const environment = { ...process.env, MALLOC_ARENA_MAX: '7', MALLOC_TRIM_THRESHOLD_: undefined, MALLOC_MMAP_THRESHOLD_: undefined };
  const child = spawn(process.execPath, [waybillProgram, 'reference', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment,
  });
  try {
    await once(child.stdout, 'data');
    const read = (name: string): string[] => readFileSync(`/proc/${child.pid ?? 0}/${name}`, 'utf8').split('\0');
    expect(read('cmdline')).toEqual(
      expect.arrayContaining([
        '--disable-sigusr1',
        '--max-semi-space-size=16',
        '--heap-growing-percent=100',
        '--max-old-space-size=1024',
        '--expose-gc',
      ]),
    );
    expect(
      read('environ')
        .filter((each) => each.startsWith('MALLOC_'))
        .toSorted(),
    ).toEqual(['MALLOC_ARENA_MAX=7', 'MALLOC_MMAP_THRESHOLD_=262144', 'MALLOC_TRIM_THRESHOLD_=262144']);
  } finally {
    child.kill('SIGKILL');
  }
});

test('an unknown command suggests the nearest name and ends with 2', async () => {
  expect(await dispatched('statsu')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'cannot find the command "statsu": the nearest is "status"; waybill help lists all\n',
  });
  // A command is a name from the list, never a path.
  expect((await dispatched('../main')).code).toBe(2);
  expect((await dispatched('io')).code).toBe(2);
});

test('an invalid option is reported in one line and ends with 2', async () => {
  const { code, stdout, stderr } = await dispatched('schema', '--nope');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe('cannot use --nope with "schema": no such option; see waybill help schema\n');
});

test('a command with --help prints the text of waybill help, and does nothing', async () => {
  const { usage } = await loadCommand('init');
  const stdout = fitted(usage);
  for (const argv of [
    ['init', '--help'],
    ['init', 'file', '-h'],
    ['help', 'init'],
  ]) {
    expect(await dispatched(...argv)).toEqual({ code: 0, stdout, stderr: '' });
  }
  expect((await dispatched()).stdout).toBe((await dispatched('--help')).stdout);
});

test('each error of a configuration is a line, and the exit code is 2', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(file, 'shutdownTimeout: long\nsources: []\n');
  expect(await dispatched('run', '--config', file)).toEqual({
    code: 2,
    stdout: '',
    stderr: `cannot use the configuration "${file}": 2 problems
  shutdownTimeout (line 1): "long" is not a duration such as 10s, 5m, 2h
  sources (line 2): an empty list names no source: at least one is required
`,
  });
});

test.each(commands)('the command %s has a summary of one line and two examples', async (name) => {
  const { summary, usage } = await loadCommand(name);
  expect(summary).toMatch(/^[a-z][^\n]{10,120}[^.\n]$/);
  expect(usage).toMatch(new RegExp(`^(usage: )?waybill ${name}\\b`));
  expect(usage.endsWith('\n')).toBe(true);
  const [, examples = ''] = /\nExamples:?\n([^]*)$/.exec(usage) ?? [];
  expect(examples.match(/^ +.*\bwaybill\b/gm)?.length ?? 0).toBeGreaterThanOrEqual(2);
});

test('the program itself sets the exit code', async () => {
  expect(await spawned(['nope'])).toMatchObject({ code: 2, stdout: '' });
  expect(await spawned(['--version'])).toMatchObject({ code: 0, stderr: '' });
});

test('a command ends although a thread of the pool hangs, with its output and its exit code', async ({ skip }) => {
  skip(process.platform !== 'linux', 'needs mkfifo');
  using directory = temporaryDirectory();
  const pipe = join(directory.path, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // Opening a pipe that nobody writes to hangs as a silent name server does: `process.exit` waits for the thread of both.
  const script = join(directory.path, 'script.mjs');
  writeFileSync(
    script,
    `import { open } from 'node:fs';
     import { main } from ${JSON.stringify(new URL('../../src/main.ts', import.meta.url).href)};
     await main(['check'], async (_argv, { stdout }) => {
       open(${JSON.stringify(pipe)}, 'r', () => undefined);
       stdout.write('x'.repeat(300_000));
       return 3;
     });`,
  );
  const { code, stdout } = await run(process.execPath, [script], (child) => void setTimeout(() => child.kill('SIGKILL'), 20_000).unref());
  expect({ code, length: stdout.length }).toEqual({ code: 3, length: 300_000 });
});

test('no user who can send it a signal can start a debugger: it knows every secret', async () => {
  // Started as by an image, a shell and a script; by default, Node listens for a debugger at
  // SIGUSR1.
  for (const [file, ...first] of [[waybillProgram], [process.execPath, waybillProgram]] as const) {
    const { stderr } = await run(file, [...first, 'encode', '--format', 'raw'], (child) => {
      child.stdout?.once('data', () => {
        child.kill('SIGUSR1');
        setTimeout(() => child.kill('SIGTERM'), 300);
      });
      child.stdin?.write('{"a":1}\n');
    });
    expect(stderr).not.toContain('Debugger');
  }
});

test('under a Node that is too old the program reports it in one line', async ({ skip }) => {
  const old = oldNode();
  if (!old) return skip('there is no Node older than 24 on this machine');
  const { code, stdout, stderr } = await run('/usr/bin/env', ['-i', `PATH=${old.directory}`, waybillProgram, '--version']);
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: `waybill needs Node 24 or newer; this is ${old.version} (${realpathSync(join(old.directory, 'node'))})\n`,
  });
});

test('memory limits apply however the program is started, and limits of the caller take precedence', async () => {
  const heapMiB = async (...options: string[]): Promise<number> => {
    const probe = `process.on('exit', () => console.error(require('node:v8').getHeapStatistics().heap_size_limit / 2 ** 20))`;
    using directory = temporaryDirectory();
    writeFileSync(join(directory.path, 'probe.cjs'), probe);
    const { stderr } = await run(process.execPath, [
      ...options,
      '--require',
      join(directory.path, 'probe.cjs'),
      waybillProgram,
      '--version',
    ]);
    return Number(stderr);
  };
  // The old space and the young generation.
  expect(await heapMiB()).toBeLessThan(1_024 + 100);
  expect(await heapMiB('--max-old-space-size=2000')).toBeGreaterThan(2_000);
});

test('the program ends without a message if its reader goes away', async () => {
  const { code, stderr } = await spawned(['encode', '--format', 'raw'], (child) => {
    child.stdout?.once('data', () => child.stdout?.destroy());
    const feed = (): void => {
      if (child.stdin?.writable && child.exitCode === null) child.stdin.write('{"a":1}\n'.repeat(2_000), () => setImmediate(feed));
    };
    child.stdin?.on('error', () => undefined);
    feed();
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test.runIf(existsSync('/dev/full')).each([
  [waybillProgram, 'schema'],
  [waybillProgram, 'help'],
  [waybillProgram, '--version'],
  [referenceProgram, '--help'],
  [referenceProgram, '--json'],
])('output that cannot be written is reported in one line and ends with 1: %s %s', async (file, argument) => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [file, argument], { stdio: ['ignore', full, 'pipe'] });
  closeSync(full);
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'cannot write to standard output: ENOSPC: no space left on device, write\n' });
});

test('each command that opens a damaged state reports it in one line with the remedy, and ends with 1', async () => {
  using directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(file, configurationWith(state));
  mkdirSync(state);
  const db = new Database(join(state, 'waybill.db'));
  db.exec('CREATE TABLE meta (key TEXT PRIMARY KEY, value)');
  db.exec(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO meta SELECT 'k' || i, hex(randomblob(100)) FROM n",
  );
  db.close();
  const bytes = readFileSync(join(state, 'waybill.db'));
  expect(bytes.length).toBeGreaterThan(60_000);
  writeFileSync(join(state, 'waybill.db'), bytes.fill(0xa5, 4_096));
  const words = `cannot read the state in "${state}": it is damaged; keep the directory, `;
  // The daemon reports it as a log line.
  const daemon = await dispatched('run', '--config', file);
  expect(daemon.code).toBe(1);
  expect(JSON.parse(daemon.stderr)).toMatchObject({ level: 'error', code: 'state_corrupt', event: 'daemon.not_started' });
  expect(daemon.stderr).toContain(JSON.stringify(words).slice(1, -1));
  for (const argv of [['status'], ['ledger'], ['gaps', 'list'], ['sources', 'list'], ['operations', 'list'], ['backfill', 'list']]) {
    const { code, stdout, stderr } = await dispatched(...argv, '--config', file);
    expect({ code, stdout }, argv.join(' ')).toEqual({ code: 1, stdout: '' });
    const lines = stderr.split('\n').filter((line) => line !== '');
    expect(lines, argv.join(' ')).toEqual([expect.stringMatching(`^${words}`)]);
  }
  const { code, stdout } = await dispatched('check', '--offline', '--config', file);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^state +warning +cannot read the state in /m);
});

test('the first SIGINT asks the command to stop, the second ends the program immediately', async () => {
  const script = `
    const { main } = await import(${JSON.stringify(new URL('../../src/main.ts', import.meta.url).href)});
    await main([], async (argv, io) => {
      io.signal.addEventListener('abort', () => process.stdout.write(io.signal.reason.message));
      setInterval(() => undefined, 1000);
      process.stdout.write('ready ');
      await new Promise(() => undefined);
    });`;
  const signalled = (signal: NodeJS.Signals) =>
    run(process.execPath, ['--input-type=module', '-e', script], (child) => {
      child.stdout?.on('data', () => child.kill(signal));
    });
  expect(await signalled('SIGINT')).toEqual({ code: 130, stdout: 'ready received SIGINT', stderr: '' });
  expect(await signalled('SIGTERM')).toEqual({ code: 143, stdout: 'ready received SIGTERM', stderr: '' });
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a command that %s ends has the exit code %i, which no result has', async (signal, code) => {
  expect(exitCodeOf(new StoppedError(signal))).toBe(code);
  const script = `
    const { main } = await import(${JSON.stringify(new URL('../../src/main.ts', import.meta.url).href)});
    process.stdout.write('ready');
    await main(['encode', '--format', 'raw']);`;
  const ended = await run(process.execPath, ['--input-type=module', '-e', script], (child) => {
    child.stdout?.on('data', () => setTimeout(() => child.kill(signal), 500));
  });
  expect(ended).toMatchObject({ code, stderr: `received ${signal}\n` });
});

test('an unexpected error is printed with its stack and ends with 1', async () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  stdout.write = () => {
    throw new RangeError('nobody expected this');
  };
  expect(await dispatch(['schema'], commandIo({ stdout, stderr }))).toBe(1);
  expect(String(stderr.read())).toMatch(/^RangeError: nobody expected this\n +at /);
});
