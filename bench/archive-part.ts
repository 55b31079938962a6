/**
 * One part of the benchmark `archive`, in a separate process, in the folder DIRECTORY: `write` archives records with the sink, `write-floor`
 * packs the same lines with gzip and computes one SHA-256 a line, `verify` verifies the archive, and `verify-floor` unpacks its segments and
 * computes one SHA-256 a line. Prints time, CPU and memory; the time to create the records is not included.
 */
import { createPrivateKey, hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { DirectoryStore } from '../src/archive/directory-store.ts';
import { parseVerifier } from '../src/archive/signed-note.ts';
import { verifyArchive } from '../src/archive/verify/verify.ts';
import { systemClock } from '../src/time/clock.ts';
import type { Batch } from '../src/model/sink.ts';
import { ArchiveSink } from '../src/sink/archive/sink.ts';
import { archiveBatches } from './archive-batches.ts';
import { publicKeyPath, signedLines } from './archive-proof.ts';

export interface PartResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Of lines, before gzip. */
  readonly bytes: number;
  readonly peakMiB: number;
}

const [, , part = '', directory = '', records = '0', recordBytes = ''] = process.argv;
const archive = join(directory, 'archive');
const lineFeed = 0x0a;
const sweepMs = 50;
const key = createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)]),
  format: 'der',
  type: 'pkcs8',
});

const parts: Readonly<Record<string, () => Promise<PartResult>>> = {
  write: write,
  'write-floor': writeFloor,
  verify: verify,
  'verify-floor': verifyFloor,
};
const result = await parts[part]?.();
process.stdout.write(`${JSON.stringify(result)}\n`);

/**
 * Measures `work`. Collects garbage first, so that earlier garbage is not part of the measurement:
 * threads sweep it for some time after the call.
 */
async function measured(work: () => Promise<number>): Promise<PartResult> {
  globalThis.gc?.();
  await setTimeout(sweepMs);
  const begin = performance.now();
  const before = process.cpuUsage();
  const bytes = await work();
  const { user, system } = process.cpuUsage(before);
  return {
    seconds: (performance.now() - begin) / 1000,
    cpuSeconds: (user + system) / 1e6,
    bytes,
    peakMiB: process.resourceUsage().maxRSS / 1024,
  };
}

/** Batches are created in advance if they fit in memory, else between the measured calls. */
async function write(): Promise<PartResult> {
  await using sink = await ArchiveSink.open(
    { name: archive, store: new DirectoryStore(archive), key },
    { id: 'archive', log: { write: () => undefined }, clock: systemClock, selected: undefined, filtered: false },
    {
      journal: 'bench',
      position: { seq: 0, chain: new Uint8Array(32) },
      resumeNote: undefined,
      replayedFrom: () => undefined,
      restored: () => Promise.resolve(),
      completeSince: 0,
      chainAt: () => Promise.resolve(undefined),
      commitResumeNote: () => Promise.resolve(),
      lost: () => Promise.resolve(),
      archiveCheckpoint: () => Promise.resolve(),
    },
  );
  const signal = new AbortController().signal;
  let total: PartResult = { seconds: 0, cpuSeconds: 0, bytes: 0, peakMiB: 0 };
  for (const batch of archiveBatches(Number(records), recordBytes === 'small')) {
    const { seconds, cpuSeconds, bytes, peakMiB } = await measured(() => send(sink, batch, signal));
    total = { seconds: total.seconds + seconds, cpuSeconds: total.cpuSeconds + cpuSeconds, bytes: total.bytes + bytes, peakMiB };
  }
  return total;
}

async function send(sink: ArchiveSink, batch: Batch, signal: AbortSignal): Promise<number> {
  await sink.send(batch, signal);
  return batch.bytes;
}

async function writeFloor(): Promise<PartResult> {
  const pack = promisify(gzip);
  let total: PartResult = { seconds: 0, cpuSeconds: 0, bytes: 0, peakMiB: 0 };
  for (const name of segments()) {
    const text = await promisify(gunzip)(readFileSync(name));
    const lines = linesOf(text);
    const { seconds, cpuSeconds, peakMiB } = await measured(async () => {
      for (const line of lines) hash('sha256', line, 'binary');
      await pack(text);
      return text.length;
    });
    total = { seconds: total.seconds + seconds, cpuSeconds: total.cpuSeconds + cpuSeconds, bytes: total.bytes + text.length, peakMiB };
  }
  return total;
}

async function verify(): Promise<PartResult> {
  const publicKey = parseVerifier(readFileSync(publicKeyPath(archive), 'utf8'));
  if (!publicKey) throw new Error('the archive has no public key');
  const expected = signedLines(archive);
  return measured(async () => {
    const { result, lines, findings } = await verifyArchive(new DirectoryStore(archive), [publicKey]);
    if (result !== 'intact' || lines !== expected)
      throw new Error(`${result}, ${lines} lines of ${expected}: ${JSON.stringify(findings[0])}`);
    return 0;
  });
}

function verifyFloor(): Promise<PartResult> {
  const unpack = promisify(gunzip);
  return measured(async () => {
    let bytes = 0;
    for (const name of segments()) {
      const text = await unpack(readFileSync(name));
      for (const line of linesOf(text)) hash('sha256', line, 'binary');
      bytes += text.length;
    }
    return bytes;
  });
}

function segments(): readonly string[] {
  const folder = join(archive, 'segments');
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
}

function linesOf(text: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0, end = text.indexOf(lineFeed); end >= 0; start = end + 1, end = text.indexOf(lineFeed, start))
    lines.push(text.subarray(start, end));
  return lines;
}
