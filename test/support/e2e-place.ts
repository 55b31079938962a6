/**
 * The directory of an end-to-end test, the programs that it starts, and one seed for its random
 * choices. A failed test keeps its directory and prints the path; `WAYBILL_SEED` repeats the
 * choices.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waybillProgram } from './programs.ts';
import { noteLine } from './telemetry/written-events.ts';

/** A number in [0, 1). */
export type Chance = () => number;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Done {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The limit of a wait for a state that must come, ms. It ends what hangs, and is no measure of speed: a loaded machine is many times slower. */
export const patience = 150_000;

export const seed = process.env['WAYBILL_SEED'] ?? '20261121';

const running = new Set<ChildProcess>();
// No program outlives the test process.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export class Place implements AsyncDisposable {
  readonly directory: string;
  readonly chance: Chance;
  /** Environment variables of every program that starts here. */
  environment: Readonly<Record<string, string>> = {};
  /** A command that executes every program that starts here, such as `prlimit --nofile=96`. */
  launcher: readonly string[] = [];
  readonly #name: string;
  readonly #children = new Set<ChildProcess>();
  /** The number of `during` calls that have not succeeded. */
  #unfinished = 0;

  constructor(name: string) {
    this.#name = name;
    this.directory = mkdtempSync(join(tmpdir(), `waybill-e2e-${name}-`));
    this.chance = chanceOf(`${seed}/${name}`);
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Runs the work. If it throws or never ends, the directory is kept. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#unfinished += 1;
    const result = await work();
    this.#unfinished -= 1;
    return result;
  }

  /** Starts the program in this directory. Its environment has only the given settings, and no proxy. */
  spawn(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
    const [command, ...before] = [...this.launcher, process.execPath];
    const child = spawn(command, [...before, ...args], {
      cwd: this.directory,
      env: { PATH, NODE_COMPILE_CACHE, TMPDIR: this.directory, ...this.environment, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    this.#children.add(child);
    child.once('exit', () => {
      running.delete(child);
      this.#children.delete(child);
    });
    return child;
  }

  /** Runs `waybill …` until it exits. */
  waybill(...args: string[]): Promise<Done> {
    return this.waybillWith({}, ...args);
  }

  /** The same with these additional environment variables. */
  async waybillWith(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Done> {
    const child = this.spawnWaybill(args, env);
    const [stdout, stderr, ended] = await Promise.all([textOf(child.stdout), textOf(child.stderr), endOf(child)]);
    stderr.split('\n').forEach(noteLine);
    return { code: ended.code, stdout, stderr };
  }

  /** Starts `waybill …` and returns at once. */
  spawnWaybill(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
    return this.spawn([waybillProgram, ...args], env);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = [...this.#children].map((child) => endOf(child));
    for (const child of this.#children) child.kill('SIGKILL');
    await Promise.all(ends);
    if (this.#unfinished === 0) rmSync(this.directory, { recursive: true, force: true });
    else process.stderr.write(`${this.#name}: kept in ${this.directory}, repeat with WAYBILL_SEED=${seed}\n`);
  }
}

/** Runs the work in a new place, which is deleted after success and kept after a failure. */
export async function inPlace(name: string, work: (place: Place) => Promise<void>): Promise<void> {
  await using place = new Place(name);
  await place.during(() => work(place));
}

/** Numbers that follow from the text alone (xmur3 and mulberry32). */
function chanceOf(text: string): Chance {
  let hash = 1_779_033_703 ^ text.length;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 3_432_918_353);
    hash = (hash << 13) | (hash >>> 19);
  }
  return () => {
    hash = (hash + 0x6d2b79f5) | 0;
    let mixed = Math.imul(hash ^ (hash >>> 15), 1 | hash);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function endOf(child: ChildProcess): Promise<Ended> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * GET on a server of the test. After a connection reset without a response it is repeated once, with
 * a line in the output: a GET changes nothing, and no test is about such resets.
 */
export async function question(url: string): Promise<Response> {
  // The other side may close an idle connection at the moment of its next use.
  const headers = { connection: 'close' };
  try {
    return await fetch(url, { headers });
  } catch (thrown) {
    const code = thrown instanceof Error && thrown.cause instanceof Error && 'code' in thrown.cause ? thrown.cause.code : undefined;
    if (code !== 'ECONNRESET') throw new Error(`GET ${url} got no response`, { cause: thrown });
    process.stderr.write(`GET ${url} was reset and is repeated\n`);
    await pause(200);
    return fetch(url, { headers });
  }
}

/**
 * Polls until there is a value.
 * @param what  the expected state, for the error; a function can report the progress
 * @param ms    timeout
 */
export async function until<Value>(
  what: string | (() => string),
  ms: number,
  ask: () => Value | undefined | Promise<Value | undefined>,
): Promise<Value> {
  const began = performance.now();
  for (;;) {
    const value = await ask();
    if (value !== undefined) return value;
    const waited = performance.now() - began;
    if (waited > ms) throw new Error(`not within ${ms} ms: ${typeof what === 'string' ? what : what()}`);
    // A question costs the daemon CPU time: who has waited for long asks less often.
    await pause(Math.min(400, Math.max(100, waited / 10)));
  }
}

async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  if (!stream) return '';
  let text = '';
  stream.setEncoding('utf8');
  for await (const part of stream as AsyncIterable<string>) text += part;
  return text;
}
