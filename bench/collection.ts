/**
 * `npm run bench -- collection [--records 1000000] [--only journal|file]
 * [--characters ascii|utf-8|escaped] [--dir DIRECTORY] [--json]`: the rate of the daemon and its
 * cost, next to a floor measured in the same run. The daemon is the real one, in a separate process
 * with the default rules: padding, totals, proofs, synchronous=FULL. `--characters utf-8` puts names
 * that are not ASCII into the records; `escaped` sends the same names as `\uXXXX`, as `json.dumps`
 * of Python does. Machines are shared: quote ratios.
 */
import { closeSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Snapshot } from '../src/model/snapshot.ts';
import { configuration } from './configuration.ts';
import { flag, oneOf, options, positiveInteger, text } from './options.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import { waybill } from './program.ts';
import { characterSets, perSecond } from './record.ts';
import { table } from './table.ts';

const { records, json, dir, only, characters } = options({
  records: positiveInteger(1_000_000),
  json: flag,
  dir: text('a directory'),
  only: oneOf(['journal', 'file'], undefined),
  characters: oneOf(characterSets, 'ascii'),
});
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = dir ?? mkdtempSync(join(tmpdir(), 'waybill-bench-'));
mkdirSync(directory, { recursive: true });

interface Row {
  readonly what: string;
  readonly recordsPerSecond: number;
  readonly cpuPer100k: number;
  readonly peakMiB: number;
  readonly windows?: number;
  readonly requestsPer100k?: number;
  readonly commitsPer100k?: number;
  /** Resident memory at each tenth of the records. */
  readonly memory?: readonly number[];
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const rows: Row[] = [];
const syncMs = measureSync();
say(
  `${records} records of the last ${(records / perSecond / 3600).toFixed(1)} h, 30 a second, ${characters}; one synced write of 4 KiB takes ${syncMs.toFixed(2)} ms here`,
);

// The log ends a while ago, so that live polls find no records and every window is history.
const beginMs = Math.floor(Date.now() / 1000) * 1000 - Math.ceil(records / perSecond) * 1000 - 600_000;
const endMs = beginMs + Math.ceil(records / perSecond) * 1000;
const server = start(process.execPath, [join(root, 'bench/server.ts'), String(records), String(beginMs), String(perSecond), characters]);
try {
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  const floorBefore = await floor(port);
  const wanted = (what: typeof only): boolean => only === undefined || only === what;
  if (wanted('journal')) rows.push(await collectOnly(port), await journalToFile(port));
  if (wanted('file')) rows.push(await sourceToFile(port));
  const floorAfter = await floor(port);
  rows.unshift({
    what: 'floor: parse, map, append',
    recordsPerSecond: (floorBefore.recordsPerSecond + floorAfter.recordsPerSecond) / 2,
    cpuPer100k: (floorBefore.cpuPer100k + floorAfter.cpuPer100k) / 2,
    peakMiB: Math.max(floorBefore.peakMiB, floorAfter.peakMiB),
  });
} finally {
  await server[Symbol.asyncDispose]();
  if (dir === undefined) rmSync(directory, { recursive: true, force: true });
}
report();

/** The plain pipeline, in a separate process. */
async function floor(port: number): Promise<Row> {
  const program = start(process.execPath, [
    join(root, 'bench/floor.ts'),
    `http://127.0.0.1:${port}/v2/api`,
    String(records),
    join(directory, 'floor.ndjson'),
  ]);
  const result = JSON.parse(await program.firstLine) as { records: number; seconds: number; cpuSeconds: number; rssMiB: number };
  await program.ended;
  rmSync(join(directory, 'floor.ndjson'));
  if (result.records !== records) throw new Error(`the floor read ${result.records} of ${records} records`);
  return {
    what: 'floor',
    recordsPerSecond: result.records / result.seconds,
    cpuPer100k: (result.cpuSeconds / result.records) * 100_000,
    peakMiB: result.rssMiB,
  };
}

async function collectOnly(port: number): Promise<Row> {
  return measured('source to journal', port, false, (snapshot) => reached(snapshot));
}

async function journalToFile(port: number): Promise<Row> {
  // The state of the previous run: the journal has every record, and the source needs no more
  // reads.
  return measured('filled journal to file', port, true, (snapshot) => snapshot.sinks[0]?.lagEntries === 0, 'source-to-journal', true);
}

async function sourceToFile(port: number): Promise<Row> {
  return measured('source to file', port, true, (snapshot) => reached(snapshot) && snapshot.sinks[0]?.lagEntries === 0);
}

function reached(snapshot: Snapshot): boolean {
  return (snapshot.sources[0]?.closedUntil ?? 0) >= endMs * 1000;
}

/**
 * Starts the daemon, waits until `done`, and measures from the first window (or the first line of the file) on.
 */
async function measured(
  what: string,
  port: number,
  withFile: boolean,
  done: (snapshot: Snapshot) => boolean,
  stateOf = what.replaceAll(' ', '-'),
  isFilled = false,
): Promise<Row> {
  const work = join(directory, stateOf);
  mkdirSync(work, { recursive: true });
  const out = join(work, 'events.ndjson');
  writeFileSync(join(work, 'waybill.yaml'), configuration(port, beginMs, withFile ? [{ id: 'file', type: 'file', path: out }] : []));
  const before = await stats(port);
  await using daemon = start(waybill(), ['run', '--config', join(work, 'waybill.yaml')], work);
  daemon.firstLine.catch(() => undefined);
  const socketPath = join(work, 'state', 'waybill.sock');
  const snapshot = (): Promise<Snapshot | undefined> => ask<Snapshot>({ socketPath }, '/snapshot');
  const started = async (): Promise<boolean> => (isFilled ? sizeOf(out) > 0 : (await stats(port)).windowed > before.windowed);
  while (!(await started())) await sleep(5);
  const begin = performance.now();
  const cpu = cpuSeconds(daemon.pid);
  const first = await snapshot();
  const memory: number[] = [];
  let last: Snapshot | undefined;
  for (;;) {
    await sleep(250);
    last = await snapshot();
    if (!last) continue;
    const share = isFilled ? (last.sinks[0]?.acknowledged ?? 0) / last.journal.head : last.journal.head / records;
    if (memory.length < Math.floor(share * 10)) memory.push(Math.round(memoryMiB(daemon.pid).now));
    if (done(last)) break;
  }
  const seconds = (performance.now() - begin) / 1000;
  const used = cpuSeconds(daemon.pid) - cpu;
  const { peak } = memoryMiB(daemon.pid);
  const after = await stats(port);
  const windows = last.sources[0]?.windows.proven ?? 0;
  if (!isFilled && last.sources[0]?.collected !== records)
    throw new Error(`${what}: ${last.sources[0]?.collected ?? 0} of ${records} records`);
  if (last.sources[0]?.windows.gap !== 0) throw new Error(`${what}: a window was not proven`);
  const row: Row = { what, recordsPerSecond: records / seconds, cpuPer100k: (used / records) * 100_000, peakMiB: peak, memory };
  if (isFilled) return row;
  return {
    ...row,
    windows,
    requestsPer100k: ((after.requests - before.requests) / records) * 100_000,
    commitsPer100k: (((last.journal.commits ?? 0) - (first?.journal.commits ?? 0)) / records) * 100_000,
  };
}

async function stats(port: number): Promise<{ requests: number; windowed: number }> {
  const found = await ask<{ pages: number; counts: number; windowed: number }>({ port }, '/stats');
  return { requests: (found?.pages ?? 0) + (found?.counts ?? 0), windowed: found?.windowed ?? 0 };
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** The median of 100 synced writes of 4 KiB. */
function measureSync(): number {
  const path = join(directory, 'sync');
  const file = openSync(path, 'w');
  const times = Array.from({ length: 100 }, () => {
    const begin = performance.now();
    writeSync(file, Buffer.alloc(4096));
    fdatasyncSync(file);
    return performance.now() - begin;
  });
  closeSync(file);
  rmSync(path);
  return times.sort((a, b) => a - b)[50] ?? 0;
}

function report(): void {
  const [base] = rows;
  const columns = ['', 'records/s', 'of floor', 'CPU s/100k', 'of floor', 'peak MiB', 'windows', 'requests/100k', 'commits/100k'];
  const cells = rows.map((row) => [
    row.what,
    Math.round(row.recordsPerSecond).toLocaleString('en-US'),
    (row.recordsPerSecond / (base?.recordsPerSecond ?? 1)).toFixed(2),
    row.cpuPer100k.toFixed(2),
    (row.cpuPer100k / (base?.cpuPer100k ?? 1)).toFixed(2),
    row.peakMiB.toFixed(0),
    row.windows?.toString() ?? '',
    row.requestsPer100k?.toFixed(0) ?? '',
    row.commitsPer100k?.toFixed(0) ?? '',
  ]);
  process.stdout.write(`${table(columns, cells)}\n`);
  for (const row of rows) if (row.memory) process.stdout.write(`resident MiB at each tenth, ${row.what}: ${row.memory.join(' ')}\n`);
  if (json) process.stdout.write(`${JSON.stringify({ records, characters, syncMs, rows })}\n`);
}
