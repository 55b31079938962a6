/**
 * `npm run bench -- live [--rate 100] [--seconds 1800] [--pollInterval 10] [--closeDelay 900]
 * [--save]`: one source with a fixed rate and default settings, in real time. Prints how often each
 * record was read, the CPU per 100,000 records that arrived, and the delay from visible at the
 * service to written in the file, next to their bars. Fails if a record is lost or doubled.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Snapshot } from '../src/model/snapshot.ts';
import { flag, options, positiveInteger, positiveNumber } from './options.ts';
import { requireAll } from './peers/check.ts';
import { measure } from './peers/measure.ts';
import { peers } from './peers/programs.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import { waybill } from './program.ts';
import { machine, publish } from './publish.ts';
import { firstLogId, perSecond } from './record.ts';
import { digits, rangeOf, rangeText } from './result.ts';
import type { Range } from './result.ts';
import { Tally } from './tally.ts';
import { visibleAfterMs } from './visibility.ts';

const {
  rate,
  seconds,
  pollInterval: pollSeconds,
  closeDelay,
  save,
} = options({
  /** Records per second. */
  rate: positiveNumber(100),
  /** Duration of the measurement, which starts when the earlier history is closed and delivered. */
  seconds: positiveNumber(1_800),
  pollInterval: positiveNumber(10),
  closeDelay: positiveInteger(900),
  save: flag,
});
const maxP99 = pollSeconds + 1;
/**
 * The newest proven window ends before the close delay and its own width. A window is at most as wide
 * as the close delay; at 100 records a second it is at most 180 s.
 */
const lagSeconds = closeDelay + Math.min(closeDelay, 180);
/** The clock of the service is measured for five minutes first. */
const historyTimeoutMs = 1_800_000;
const floorRecords = 500_000;
/** Before the measurement, and as many after it. */
const floorRuns = 2;
/** s for 100,000 records. The bar was set on a machine where plain Node takes `cpuOfFloorThere`. */
const maxCpu = 8;
const cpuOfFloorThere = 1.2;
const maxCpuOfFloor = 6.67;
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'waybill-live-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const out = join(directory, 'events.ndjson');
const sentence = machine();
const floors = await floorCpus();
// Enough history that windows are closed from the start of the measurement on.
const beginMs = Math.floor(Date.now() / 1000) * 1000 - 3 * closeDelay * 1000;

interface Stats {
  readonly requests: number;
  readonly counts: number;
  readonly polled: number;
  readonly closed: number;
}

/** The numbers of the records in new lines of the file, and how often each arrived. */
class Delivered {
  readonly #tally: Tally;
  #unknown = 0;
  readonly #buffer = Buffer.alloc(1_048_576);
  #at = 0;
  #rest = '';

  /** @param records  more than the service has at the end */
  constructor(records: number) {
    this.#tally = new Tally(records);
  }

  /** Records that were visible at a time and have not arrived, and wrong ones. */
  found(at: number): { readonly lost: number; readonly doubled: number; readonly changed: number } {
    return { lost: this.#tally.lost((i) => visibleAt(i) <= at), doubled: this.#tally.doubled, changed: this.#unknown };
  }

  read(): number[] {
    const found: number[] = [];
    const file = openSync(out, 'r');
    for (;;) {
      const read = readSync(file, this.#buffer, 0, this.#buffer.length, this.#at);
      if (read === 0) break;
      this.#at += read;
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, read)).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) {
        const logId = Number(/logId\\?":(\d+)/.exec(line)?.[1]);
        if (this.#tally.add(logId)) found.push(logId - firstLogId);
        else this.#unknown += 1;
      }
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
  const maxSeconds = (Date.now() - beginMs) / 1000 + seconds + lagSeconds + 600;
  const delivered = new Delivered(Math.ceil(maxSeconds * rate));
  delivered.read();
  const before = { at: Date.now(), cpu: cpuSeconds(daemon.pid), stats: await stats() };
  process.stderr.write(`history is closed and delivered; measuring for ${seconds} s\n`);
  const delays: number[] = [];
  let inTime = 0;
  let records = 0;
  const endAt = before.at + seconds * 1000;
  while (Date.now() < endAt) {
    await sleep(100);
    const now = Date.now();
    for (const i of delivered.read()) {
      records += 1;
      if (visibleAt(i) < before.at) continue;
      delays.push((now - visibleAt(i)) / 1000);
      inTime += Number(now - visibleAt(i) <= maxP99 * 1000);
    }
  }
  const after = { at: Date.now(), cpu: cpuSeconds(daemon.pid), stats: await stats() };
  const since = (name: keyof Stats): number => after.stats[name] - before.stats[name];
  const memory = memoryMiB(daemon.pid).peak;
  // A record that no live poll found arrives with its window.
  const completeBy = Date.now() + (lagSeconds + maxP99) * 1000;
  do {
    await sleep(1_000);
    delivered.read();
  } while (delivered.found(after.at).lost > 0 && Date.now() < completeBy);
  await daemon[Symbol.asyncDispose]();
  delivered.read();
  requireAll('the file', delivered.found(after.at));
  report({
    floor: rangeOf([...floors, ...(await floorCpus())]),
    records,
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
  const closedUntil = snapshot?.sources[0]?.closedUntil ?? 0;
  const lagEntries = snapshot?.sinks[0]?.lagEntries ?? Infinity;
  return closedUntil >= (Date.now() - lagSeconds * 1000) * 1000 && lagEntries <= 2 * pollSeconds * rate;
}

/** When a record becomes visible, ms since 1970. */
function visibleAt(i: number): number {
  return beginMs + (i * 1000) / rate + visibleAfterMs(i);
}

async function floorCpus(): Promise<number[]> {
  const found: number[] = [];
  for (let run = 0; run < floorRuns; run += 1) found.push(await floorCpu());
  return found;
}

/** CPU seconds of plain Node per 100,000 records of history. */
async function floorCpu(): Promise<number> {
  const plain = peers().find(({ name }) => name === 'plain Node');
  if (plain === undefined) throw new Error('plain Node is not among the programs');
  const firstMs = Math.floor(Date.now() / 1000) * 1000 - (floorRecords / perSecond) * 1000 - 600_000;
  await using pages = start(process.execPath, [join(root, 'bench/server.ts'), String(floorRecords), String(firstMs)]);
  const { port } = JSON.parse(await pages.firstLine) as { port: number };
  const setting = { server: { pid: pages.pid, port }, directory, records: floorRecords, beginMs: firstMs };
  const run = await measure(plain, setting);
  requireAll(plain.name, run);
  return (run.fromStart.cpuSeconds / floorRecords) * 100_000;
}

interface Measured {
  /** CPU of plain Node, s per 100,000 records. */
  readonly floor: Range;
  /** Records that arrived. */
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
      command: `npm run bench -- live --rate ${rate} --seconds ${seconds}${pollSeconds === 10 ? '' : ` --pollInterval ${pollSeconds}`}${closeDelay === 900 ? '' : ` --closeDelay ${closeDelay}`}`,
      text: [
        sentence,
        `One source of ${rate} records a second with default settings, in real time: ${records.toLocaleString('en-US')} records arrived in ${seconds} s. At the end every record had arrived once.`,
        `Plain Node of the comparison with other collectors takes ${rangeText(floor)} s of CPU per 100,000 records of history, in ${2 * floorRuns} runs before and after.`,
        `The bar of ${maxCpuOfFloor} times plain Node is the bar of ${maxCpu} s per 100,000 records on a machine whose plain Node takes ${cpuOfFloorThere} s.`,
        `The delay is from visible at the service to written in the file; ${(inTime * 100).toFixed(2)} % within ${maxP99} s.`,
      ],
      tables: [{ caption: 'Cost and delay:', columns, rows: [cells] }],
      bars: [
        { what: 'each record is read, times', value: polls + windows, limit: 'at most', bar: 3, goal: 1.5 },
        { what: 'CPU per 100,000 records', unit: ' s', value: cpu, limit: 'at most', bar: maxCpu },
        { what: 'CPU per 100,000 records, of plain Node', value: cpu / floor.median, limit: 'at most', bar: maxCpuOfFloor },
        { what: 'p99 of the delay', unit: ' s', value: p99, limit: 'at most', bar: maxP99 },
      ],
    },
    save,
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
