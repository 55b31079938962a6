/** Programs as the benchmark sees them from outside: started, asked, measured by the operating system's own accounting, ended. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createInterface } from 'node:readline';

export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Its first line on standard output. */
  readonly firstLine: Promise<string>;
  readonly ended: Promise<number | null>;
}

export function start(program: string, args: readonly string[], cwd?: string): Program {
  const child: ChildProcess = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  if (!child.stdout || child.pid === undefined) throw new Error(`cannot start ${program} ${args.join(' ')}`);
  const lines = createInterface({ input: child.stdout });
  const firstLine = new Promise<string>((resolve, reject) => {
    lines.once('line', resolve);
    void ended.then((code) => reject(new Error(`${program} ended with ${code ?? 'a signal'} before it said anything`)));
  });
  firstLine.catch(() => undefined);
  return {
    pid: child.pid,
    firstLine,
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** CPU seconds that a process has used, of all its threads. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime and stime, in clock ticks of 1/100 s (proc(5)).
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** CPU ms that the main thread of a process has used, to the nanosecond. */
export function mainThreadMs(pid: number): number {
  // The first number: ns spent on a CPU (Linux, Documentation/scheduler/sched-stats).
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

/** Resident memory now, and at most so far, in MiB. */
export function memoryMiB(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024;
  return { now: of('VmRSS'), peak: of('VmHWM') };
}

/** JSON from a Unix socket or an address. */
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
