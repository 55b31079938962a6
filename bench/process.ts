/**
 * Starts programs, sends them HTTP requests, measures them by the accounting of the operating
 * system, and stops them.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createInterface } from 'node:readline';

export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Its first line on standard output. */
  readonly firstLine: Promise<string>;
  readonly ended: Promise<number | null>;
}

const stopTimeoutMs = 30_000;
/** Each started program leads a process group with this id. A signal to the benchmark, or its failure, ends them all. */
const groups = new Set<number>();
const endGroups = (): void => {
  for (const group of groups) signalGroup(group, 'SIGKILL');
};
process.on('exit', endGroups);
for (const [signal, number] of [
  ['SIGHUP', 1],
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const)
  process.on(signal, () => process.exit(128 + number));

/** @returns false if the group has no process */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw thrown;
  }
}

/** @param env  in addition to the environment of the benchmark */
export function start(program: string, args: readonly string[], cwd?: string, env: Readonly<Record<string, string>> = {}): Program {
  const child: ChildProcess = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  if (!child.stdout || child.pid === undefined) throw new Error(`cannot start ${program} ${args.join(' ')}`);
  const { pid } = child;
  groups.add(pid);
  const lines = createInterface({ input: child.stdout });
  const firstLine = new Promise<string>((resolve, reject) => {
    lines.once('line', resolve);
    void ended.then((code) => reject(new Error(`${program} ended with ${code ?? 'a signal'} before it printed a line`)));
  });
  firstLine.catch(() => undefined);
  return {
    pid,
    firstLine,
    ended,
    async [Symbol.asyncDispose]() {
      signalGroup(pid, 'SIGTERM');
      const limit = setTimeout(() => signalGroup(pid, 'SIGKILL'), stopTimeoutMs);
      await ended;
      // The group lives as long as a process that the program started.
      while (signalGroup(pid, 0)) await sleep(20);
      clearTimeout(limit);
      groups.delete(pid);
    },
  };
}

/** CPU seconds (user and system) of a process, its threads, and every process that it started; 0 after its end. */
export function cpuSeconds(pid: number): number {
  const stat = readProc(`${pid}/stat`);
  if (stat === '') return 0;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime, stime, cutime and cstime, in clock ticks of 1/100 s (proc(5)).
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / 100 + childrenOf(pid).reduce((sum, child) => sum + cpuSeconds(child), 0);
}

function childrenOf(pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.flatMap((thread) => readProc(`${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number));
  } catch (thrown) {
    if (hasEnded(thrown)) return [];
    throw thrown;
  }
}

/** @returns an empty text if the process or thread has ended */
function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch (thrown) {
    if (hasEnded(thrown)) return '';
    throw thrown;
  }
}

function hasEnded(thrown: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes((thrown as NodeJS.ErrnoException).code ?? '');
}

/** CPU seconds that every process of this machine has used together. */
export function machineCpuSeconds(): number {
  // user nice system idle iowait irq softirq steal, in clock ticks (proc(5)).
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '')
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / 100;
}

/** CPU ms that the main thread of a process has used, to the nanosecond. */
export function mainThreadMs(pid: number): number {
  // The first number: ns spent on a CPU (Linux, Documentation/scheduler/sched-stats).
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

/** Resident memory, current and peak, in MiB. */
export function memoryMiB(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024;
  return { now: of('VmRSS'), peak: of('VmHWM') };
}

/** JSON from a Unix socket or a port. */
export async function ask<Answer>(at: { socketPath: string } | { port: number }, path: string): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const asking = request({ ...at, host: '127.0.0.1', path, timeout: 10_000 }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () => resolve(answer.statusCode === 200 ? (JSON.parse(Buffer.concat(parts).toString()) as Answer) : undefined));
    });
    asking.on('error', () => resolve(undefined));
    asking.end();
  });
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
