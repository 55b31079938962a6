/**
 * `npm run bench -- live`: one source with a fixed rate and default settings, in real time. Prints
 * how often each record was read, the CPU per 100,000 records, and the delay from visible at the
 * service to written in the file, next to their bars.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Snapshot } from '../src/model/snapshot.ts';
import { measure } from './peers/measure.ts';
import { peers } from './peers/programs.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import { waybill } from './program.ts';
import { machine, publish } from './publish.ts';
import { firstLogId, perSecond } from './record.ts';
import { digits } from './result.ts';
import { visibleAfterMs } from './visibility.ts';

const { values } = parseArgs({
  options: {
    /** Records per second. */
    rate: { type: 'string', default: '100' },
    /** Duration of the measurement, which starts when the earlier history is closed and delivered. */
    seconds: { type: 'string', default: '1800' },
    pollInterval: { type: 'string', default: '10' },
    closeDelay: { type: 'string', default: '900' },
    save: { type: 'boolean', default: false },
  },
});
const rate = Number(values.rate);
const seconds = Number(values.seconds);
const pollSeconds = Number(values.pollInterval);
const closeDelay = Number(values.closeDelay);
const maxP99 = pollSeconds + 1;
/** The clock of the service is measured for five minutes first. */
const historyTimeoutMs = 1_800_000;
const floorRecords = 500_000;
/** s for 100,000 records. The bar was set on a machine where plain Node takes 1.2 s. */
const maxCpu = 8;
const maxCpuOfFloor = 6.67;
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'waybill-live-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const out = join(directory, 'events.ndjson');
const sentence = machine();
// Enough history that windows are closed from the start of the measurement on.
const beginMs = Math.floor(Date.now() / 1000) * 1000 - 3 * closeDelay * 1000;

interface Stats {
  readonly requests: number;
  readonly counts: number;
  readonly polled: number;
  readonly closed: number;
}

/** The numbers of the records in new lines of a file. */
class Delivered {
  readonly #buffer = Buffer.alloc(1_048_576);
  #at = 0;
  #rest = '';

  read(): number[] {
    const found: number[] = [];
    const file = openSync(out, 'r');
    for (;;) {
      const read = readSync(file, this.#buffer, 0, this.#buffer.length, this.#at);
      if (read === 0) break;
      this.#at += read;
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, read)).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) found.push(Number(/logId\\?":(\d+)/.exec(line)?.[1]) - firstLogId);
    }
    closeSync(file);
    return found;
  }
}

const server = start(process.execPath, [join(root, 'bench/live-server.ts'), String(beginMs), String(rate)]);
try {
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  writeFileSync(join(directory, 'waybill.yaml'), configuration(port));
  await using daemon = start(waybill(), ['run', '--config', 'waybill.yaml'], directory);
  daemon.firstLine.catch(() => undefined);
  const socketPath = join(directory, 'state', 'waybill.sock');
  const stats = async (): Promise<Stats> => (await ask<Stats>({ port }, '/stats')) ?? { requests: 0, counts: 0, polled: 0, closed: 0 };
  const giveUpAt = Date.now() + historyTimeoutMs;
  while (!isCaughtUp(await ask<Snapshot>({ socketPath }, '/snapshot'))) {
    if (Date.now() > giveUpAt) throw new Error(`the history is not closed and delivered after ${historyTimeoutMs / 1000} s`);
    await sleep(1_000);
  }
  const delivered = new Delivered();
  delivered.read();
  const before = { at: Date.now(), cpu: cpuSeconds(daemon.pid), stats: await stats() };
  process.stderr.write(`history is closed and delivered; measuring for ${seconds} s\n`);
  const delays: number[] = [];
  let inTime = 0;
  const endAt = before.at + seconds * 1000;
  while (Date.now() < endAt) {
    await sleep(100);
    const now = Date.now();
    for (const i of delivered.read()) {
      const visibleAt = beginMs + (i * 1000) / rate + visibleAfterMs(i);
      if (visibleAt < before.at) continue;
      delays.push((now - visibleAt) / 1000);
      inTime += Number(now - visibleAt <= maxP99 * 1000);
    }
  }
  const after = { at: Date.now(), cpu: cpuSeconds(daemon.pid), stats: await stats() };
  const records = ((after.at - before.at) / 1000) * rate;
  const since = (name: keyof Stats): number => after.stats[name] - before.stats[name];
  const memory = memoryMiB(daemon.pid).peak;
  await daemon[Symbol.asyncDispose]();
  report({
    floor: await floorCpu(),
    records: Math.round(records),
    polls: since('polled') / records,
    windows: since('closed') / records,
    requests: (since('requests') / records) * 100_000,
    counts: (since('counts') / records) * 100_000,
    cpu: ((after.cpu - before.cpu) / records) * 100_000,
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    inTime: inTime / delays.length,
    memory,
  });
} finally {
  await server[Symbol.asyncDispose]();
}

/** All history is closed and delivered: what is left belongs to the last windows and polls. */
function isCaughtUp(snapshot: Snapshot | undefined): boolean {
  // The newest proven window ends before the close delay and its own width. A window is at most as
  // wide as the close delay; at 100 records a second it is at most 180 s.
  const lagMs = (closeDelay + Math.min(closeDelay, 180)) * 1000;
  const closedUntil = snapshot?.sources[0]?.closedUntil ?? 0;
  const lagRecords = snapshot?.sinks[0]?.lagRecords ?? Infinity;
  return closedUntil >= (Date.now() - lagMs) * 1000 && lagRecords <= 2 * pollSeconds * rate;
}

/** CPU seconds of plain Node per 100,000 records of history. */
async function floorCpu(): Promise<number> {
  const plain = peers().find(({ name }) => name === 'plain Node');
  if (plain === undefined) throw new Error('plain Node is not among the programs');
  const firstMs = Math.floor(Date.now() / 1000) * 1000 - (floorRecords / perSecond) * 1000 - 600_000;
  await using pages = start(process.execPath, [join(root, 'bench/server.ts'), String(floorRecords), String(firstMs)]);
  const { port } = JSON.parse(await pages.firstLine) as { port: number };
  const setting = { server: { pid: pages.pid, port }, directory, records: floorRecords, beginMs: firstMs };
  return ((await measure(plain, setting)).fromStart.cpuSeconds / floorRecords) * 100_000;
}

interface Measured {
  /** CPU of plain Node, s per 100,000 records. */
  readonly floor: number;
  readonly records: number;
  /** Records read by live polls and by windows, per record. */
  readonly polls: number;
  readonly windows: number;
  /** Requests per 100,000 records, and how many of them only count. */
  readonly requests: number;
  readonly counts: number;
  readonly cpu: number;
  readonly p50: number;
  readonly p99: number;
  readonly inTime: number;
  readonly memory: number;
}

function report({ floor, records, polls, windows, requests, counts, cpu, p50, p99, inTime, memory }: Measured): void {
  const columns = ['read per record', 'by polls', 'by windows', 'requests/100k', 'counts', 'CPU s/100k', 'p50 s', 'p99 s', 'peak MiB'];
  const cells = [polls + windows, polls, windows, requests, counts, cpu, p50, p99, memory].map(digits);
  publish(
    'live',
    {
      title: 'Live',
      command: `npm run bench -- live --rate ${rate} --seconds ${seconds}${values.closeDelay === '900' ? '' : ` --closeDelay ${closeDelay}`}`,
      text: [
        sentence,
        `One source of ${rate} records a second with default settings, in real time: ${records.toLocaleString('en-US')} records in ${seconds} s.`,
        `Beside it, plain Node of the comparison with other collectors takes ${digits(floor)} s of CPU per 100,000 records of history.`,
        `The delay is from visible at the service to written in the file; ${(inTime * 100).toFixed(2)} % within ${maxP99} s.`,
      ],
      tables: [{ caption: 'Cost and delay:', columns, rows: [cells] }],
      bars: [
        { what: 'each record is read, times', value: polls + windows, limit: 'at most', bar: 3, goal: 1.5 },
        { what: 'CPU per 100,000 records', unit: ' s', value: cpu, limit: 'at most', bar: maxCpu },
        { what: 'CPU per 100,000 records, of plain Node', value: cpu / floor, limit: 'at most', bar: maxCpuOfFloor },
        { what: 'p99 of the delay', unit: ' s', value: p99, limit: 'at most', bar: maxP99 },
      ],
    },
    values.save,
  );
}

function quantile(sorted: number[], share: number): number {
  sorted.sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

function configuration(port: number): string {
  const address = `http://127.0.0.1:${port}`;
  return JSON.stringify({
    dataDir: './state',
    sources: [
      {
        id: 'bench',
        baseUrl: `${address}/v2/api`,
        auth: { authUrl: address, tenantId: 'bench', clientId: 'bench', clientSecret: 'bench', scopeAddress: 'bench' },
        start: new Date(beginMs).toISOString(),
        pollInterval: `${pollSeconds}s`,
        closeDelay: `${closeDelay}s`,
      },
    ],
    sinks: [{ id: 'file', type: 'file', path: out }],
    admin: { listen: '127.0.0.1:0' },
    log: { level: 'error' },
  });
}
