/** One run of a program: time and CPU until the last byte of its file is on the disk, memory, and the check of the file. */
import { closeSync, fdatasyncSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ask, cpuSeconds, machineCpuSeconds, memoryMiB, sleep } from '../process.ts';
import { check } from './check.ts';
import type { Check } from './check.ts';
import type { Peer } from './programs.ts';

/** A program is done when the last record was served and its file has not grown for this long. */
const quietMs = 3_000;
const timeoutMs = 900_000;

interface Setting {
  readonly server: { readonly pid: number; readonly port: number };
  /** For the files of the program. */
  readonly directory: string;
  readonly records: number;
  /** ms since 1970 of the first record. */
  readonly beginMs: number;
}

interface Stats {
  readonly firstAt: number;
  readonly windowAt: number;
  readonly lastRecordAt: number;
}

/** Seconds and CPU seconds, from one moment to the last byte in the synced file. */
export interface Cost {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export interface Run extends Check {
  readonly fromStart: Cost;
  /** From the first window of Waybill, and the first request of the others. */
  readonly fromFirst: Cost;
  readonly peakMiB: number;
  /** CPU cores that other programs used during the run. */
  readonly others: number;
}

interface Sample {
  /** ms since 1970. */
  readonly at: number;
  readonly cpu: number;
  /** CPU seconds of the machine without this benchmark. */
  readonly others: number;
}

/**
 * Runs a program until its file contains the whole log and stops growing; then stops it and checks
 * the file.
 */
export async function measure(peer: Peer, { server, directory, records, beginMs }: Setting): Promise<Run> {
  const { port } = server;
  const folder = join(directory, 'run');
  mkdirSync(folder);
  const file = join(folder, 'events.ndjson');
  await ask({ port }, '/stats?reset');
  const samples: Sample[] = [];
  const startedAt = now();
  const program = peer.start({ port, folder, file, beginMs });
  program.firstLine.catch(() => undefined);
  const state = { hasEnded: false };
  void program.ended.then(() => (state.hasEnded = true));
  const take = (): void => void samples.push({ at: now(), cpu: cpuSeconds(program.pid), others: othersCpu([program.pid, server.pid]) });
  const stats = async (): Promise<Stats> => {
    const found = await ask<Stats>({ port }, '/stats');
    if (found === undefined) throw new Error('the page server does not answer');
    return found;
  };
  take();
  for (;;) {
    await sleep(100);
    take();
    if (state.hasEnded) throw new Error(`${peer.name} ended before it was stopped`);
    if (now() - startedAt > timeoutMs) throw new Error(`${peer.name} has not finished after ${timeoutMs / 1000} s`);
    const writtenAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (now() - writtenAt > quietMs && (await stats()).lastRecordAt > 0) break;
  }
  const syncMs = sync(file);
  const endedAt = statSync(file).mtimeMs;
  const { peak } = memoryMiB(program.pid);
  const { firstAt, windowAt } = await stats();
  await program[Symbol.asyncDispose]();
  const found = await check(file, peer.output, { records, beginMs });
  rmSync(folder, { recursive: true });
  const cost = (from: number): Cost => ({
    seconds: (endedAt + syncMs - from) / 1000,
    cpuSeconds: valueAt(samples, endedAt, 'cpu') - valueAt(samples, from, 'cpu'),
  });
  return {
    ...found,
    fromStart: cost(startedAt),
    fromFirst: cost(windowAt || firstAt),
    peakMiB: peak,
    // The kernel counts the time of all programs in steps of 10 ms, and can count less than that of these two.
    others: Math.max(0, valueAt(samples, endedAt, 'others') - valueAt(samples, startedAt, 'others')) / ((endedAt - startedAt) / 1000),
  };
}

function sync(file: string): number {
  const descriptor = openSync(file, 'r+');
  const begin = performance.now();
  fdatasyncSync(descriptor);
  closeSync(descriptor);
  return performance.now() - begin;
}

/** CPU seconds of the machine without this process and these. */
function othersCpu(pids: readonly number[]): number {
  const { user, system } = process.cpuUsage();
  return pids.reduce((rest, pid) => rest - cpuSeconds(pid), machineCpuSeconds() - (user + system) / 1e6);
}

/** The interpolated value at a time between two samples. */
function valueAt(samples: readonly Sample[], at: number, key: 'cpu' | 'others'): number {
  const after = samples.findIndex((sample) => sample.at >= at);
  const [a, b] = [samples[Math.max(0, after - 1)], samples[Math.max(0, after)]];
  if (a === undefined || b === undefined) throw new Error('no sample was taken');
  return a.at === b.at ? b[key] : a[key] + ((b[key] - a[key]) * (at - a.at)) / (b.at - a.at);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
