import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigFile } from '../../../src/config/config-file.ts';
import { codeOf } from '../../../src/errors/errors.ts';
import type { Clock } from '../../../src/model/time.ts';
import { temporaryDirectory, valid } from '../../support/config/loading.ts';

type Step = () => void;
const wait: Step = () => undefined;

/** Each sleep performs the next step; after the last one the signal is aborted. */
class Script implements Clock {
  readonly slept: number[] = [];
  readonly #steps: Step[] = [];
  #stop = new AbortController();

  now = (): number => Date.parse('2026-11-21T12:00:00Z');
  monotonic = (): number => 0;
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    this.slept.push(ms);
    const step = this.#steps.shift();
    if (step) step();
    else this.#stop.abort(new Error('the script has ended'));
    return signal.aborted ? Promise.reject(signal.reason as Error) : Promise.resolve();
  }

  /** @returns the result of `due`, or `none` if nothing was due after all these steps */
  async play(file: ConfigFile, ...steps: Step[]): Promise<object | 'none'> {
    this.#steps.splice(0, Infinity, ...steps);
    this.#stop = new AbortController();
    this.slept.length = 0;
    return file.due(this.#stop.signal).catch((thrown: unknown) => {
      if (this.#stop.signal.aborted && thrown === this.#stop.signal.reason) return 'none';
      throw thrown;
    });
  }
}

const changed = { changed: true };
const included = 'sinks:\n  - { id: more, type: file, path: more.ndjson }\n';

interface Started {
  readonly at: (name: string) => string;
  readonly file: ConfigFile;
  readonly script: Script;
}

/**
 * A configuration with a secret in a file and an include pattern, behind a symlink, after its first
 * check.
 */
async function inDirectory(work: (started: Started) => Promise<void>): Promise<void> {
  using directory = temporaryDirectory();
  const at = (name: string): string => join(directory.path, name);
  mkdirSync(at('v1'));
  mkdirSync(at('tenants'));
  writeFileSync(at('secret'), 'one');
  writeFileSync(at('v1/waybill.yaml'), valid({ top: 'include: ["tenants/*.yaml"]', auth: `clientSecret: \${file:${at('secret')}}` }));
  symlinkSync('v1', at('data'));
  symlinkSync('data/waybill.yaml', at('waybill.yaml'));
  const script = new Script();
  const file = new ConfigFile({ path: at('waybill.yaml'), environment: {}, clock: script });
  await file.load();
  // A change between the start and the first check must not be missed.
  expect(await script.play(file, wait, wait)).toEqual(changed);
  expect(await script.play(file, wait, wait, wait)).toBe('none');
  await work({ at, file, script });
}

const changes: readonly (readonly [string, (at: Started['at']) => void])[] = [
  [
    'a symlink points to another directory',
    (at) => {
      mkdirSync(at('v2'));
      writeFileSync(at('v2/waybill.yaml'), valid());
      symlinkSync('v2', at('data_tmp'));
      renameSync(at('data_tmp'), at('data'));
    },
  ],
  ['the file has other content of the same size', (at) => writeFileSync(at('v1/waybill.yaml'), '#'.repeat(100))],
  ['the file is deleted', (at) => rmSync(at('v1/waybill.yaml'))],
  ['a file of a secret has other content', (at) => writeFileSync(at('secret'), 'two')],
  ['a new file matches the pattern of include', (at) => writeFileSync(at('tenants/a.yaml'), included)],
];

test.each(changes)('%s: the configuration is due after two equal checks', (_name, change) =>
  inDirectory(async ({ at, file, script }) => {
    expect(await script.play(file, () => change(at), wait)).toEqual(changed);
    expect(script.slept).toEqual([2_000, 500]);
    expect(await script.play(file, wait, wait)).toBe('none');
  }),
);

test('a file that is being written is not due until it stays the same', () =>
  inDirectory(async ({ at, file, script }) => {
    const write = (text: string) => (): void => writeFileSync(at('v1/waybill.yaml'), text);
    expect(await script.play(file, write('sources:'), write(valid().slice(0, 80)), wait, write(valid()), wait, wait)).toEqual(changed);
    expect(script.slept).toEqual([2_000, 500, 2_000, 500, 2_000, 500]);
  }));

test('a file that has its old content again is not due', () =>
  inDirectory(async ({ at, file, script }) => {
    const write = (text: string) => (): void => writeFileSync(at('secret'), text);
    expect(await script.play(file, write('two'), write('one'), wait)).toBe('none');
  }));

test('SIGHUP: the configuration is due at once, and its content counts as seen', () =>
  inDirectory(async ({ at, file, script }) => {
    writeFileSync(at('secret'), 'two');
    file.request();
    expect(await script.play(file)).toEqual({ changed: false });
    expect(await script.play(file, wait, wait)).toBe('none');
  }));

test('a configuration from a pipe is read once; its secrets and included files are still watched', async () => {
  using directory = temporaryDirectory();
  const at = (name: string): string => join(directory.path, name);
  mkdirSync(at('tenants'));
  writeFileSync(at('secret'), 'one');
  execFileSync('mkfifo', [at('pipe')]);
  const text = valid({ top: `include: ["${at('tenants')}/*.yaml"]`, auth: `clientSecret: \${file:${at('secret')}}` });
  const script = new Script();
  const file = new ConfigFile({ path: at('pipe'), environment: {}, clock: script });
  const ids = async (): Promise<string[]> => (await file.load()).config.sinks.map(({ id }) => id);
  // A separate program: this thread blocks until the pipe has a writer.
  const writer = spawn('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, at('pipe')]);
  expect(await ids()).toEqual(['out']);
  await once(writer, 'exit');
  expect(await script.play(file, wait, wait)).toEqual(changed);
  expect(await ids(), 'after the first look').toEqual(['out']);
  expect(await script.play(file, wait, wait, wait)).toBe('none');
  file.request();
  expect(await script.play(file)).toEqual({ changed: false });
  expect(await ids(), 'after SIGHUP').toEqual(['out']);
  expect(await script.play(file, () => writeFileSync(at('secret'), 'two'), wait)).toEqual(changed);
  expect(await script.play(file, () => writeFileSync(at('tenants/a.yaml'), included), wait)).toEqual(changed);
  expect(await ids()).toEqual(['out', 'more']);
});

test.each<[string, (path: string) => void]>([
  ['a pipe', (path) => execFileSync('mkfifo', [path])],
  ['a directory', (path) => mkdirSync(path)],
])('%s in place of the configuration is refused without waiting', (_name, replace) =>
  inDirectory(async ({ at, file }) => {
    rmSync(at('v1/waybill.yaml'));
    replace(at('v1/waybill.yaml'));
    const path = at('waybill.yaml');
    await expect(file.load()).rejects.toThrow(`cannot read the configuration "${path}": "${path}" is not a regular file`);
  }),
);

test('a configuration that was found at its usual place is not replaced by another while it is missing', async () => {
  using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'waybill.yaml'), valid());
  const module = JSON.stringify(new URL('../../../src/config/config-file.ts', import.meta.url).href);
  const program = `
    const { ConfigFile } = await import(${module});
    const file = new ConfigFile({ path: undefined, environment: {}, clock: { now: Date.now } });
    await file.load();
    (await import('node:fs')).rmSync('waybill.yaml');
    console.log(await file.load().catch(({ message }) => message));`;
  const options = { cwd: directory.path, encoding: 'utf8' } as const;
  expect(execFileSync(process.execPath, ['--input-type=module', '-e', program], options)).toMatch(
    /^cannot read the configuration "\.\/waybill\.yaml": ENOENT/,
  );
});

test('an included file that a rejected configuration names is watched before it exists', () =>
  inDirectory(async ({ at, file, script }) => {
    expect(await script.play(file, () => writeFileSync(at('v1/waybill.yaml'), valid({ top: 'include: [later.yaml]' })), wait)).toEqual(
      changed,
    );
    expect(await file.load().then(() => 'loaded', codeOf)).toBe('config_invalid');
    expect(await script.play(file, wait, wait), 'the new name is looked at for the first time').toEqual(changed);
    expect(await script.play(file, wait, wait)).toBe('none');
    expect(await script.play(file, () => writeFileSync(at('later.yaml'), included), wait)).toEqual(changed);
    expect((await file.load()).config.sinks.map(({ id }) => id)).toEqual(['out', 'more']);
  }));
