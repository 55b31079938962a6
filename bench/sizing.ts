/**
 * `npm run bench -- sizing [--records N] [--file records.ndjson]`: bytes of a record in each format
 * and in the state, for docs/sizing.md. The numbers depend on the records and not on the machine:
 * `--file` measures other records.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../src/time/clock.ts';
import { encoder, formats } from '../src/encode/index.ts';
import { Journal } from '../src/journal/journal.ts';
import type { CollectedRecord } from '../src/model/journal.ts';
import { identify } from '../src/record/identity.ts';
import { readText } from '../src/record/read.ts';
import { normalize } from './encoding.ts';
import { options, positiveInteger, text } from './options.ts';
import { recordText } from './record.ts';
import { table } from './table.ts';

const { records: count, file } = options({ records: positiveInteger(100_000), file: text('a file that exists', existsSync) });
const source = 'bench';
const beginMs = Date.parse('2026-11-20T00:00:00Z');
const texts =
  file === undefined
    ? Array.from({ length: count }, (_, i) => recordText(i, beginMs))
    : readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
/** The number of ages in the default of `recountAfter`; windows are a quarter of an hour wide. */
const recounts = 7;
const windowWidth = 900_000_000;
const identity = identify(source);
const records = texts.map((text): CollectedRecord => {
  const record = readText(text);
  return { text, bytes: record.bytes, uid: identity(record), time: record.time, isObject: record.isObject };
});
const begin = Math.floor(Math.min(...records.slice(0, 1000).map(({ time }) => time ?? beginMs * 1000)) / windowWidth) * windowWidth;
const received = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / texts.length;

process.stdout.write(
  `${texts.length} records, ${received.toFixed(0)} bytes each as received\n\n${formatTable()}\n\n${await stateTable()}\n\n${await windowBytes()} bytes a window of the ledger with ${recounts} recounts\n`,
);

function formatTable(): string {
  const rows = formats.flatMap((format) =>
    (format === 'ecs' || format === 'ocsf' ? [true, false] : [true]).map((includeOriginal) => {
      const encode = encoder(format, { includeOriginal, cef: { ipv6: 'c6a2', geo: 'cfp' } });
      const lines = texts.map((text, i) =>
        encode(normalize({ record: readText(text), uid: records[i]?.uid ?? '', received: beginMs * 1000 })).toString(),
      );
      const whole = Buffer.from(lines.join('\n'));
      const name = includeOriginal ? format : `${format}, includeOriginal: false`;
      return [name, (whole.length / lines.length).toFixed(0), (gzipSync(whole).length / lines.length).toFixed(0)];
    }),
  );
  return table(['format', 'bytes a record', 'with gzip'], rows);
}

/** The size of a state with only these records, appended in transactions of one page each. */
async function stateTable(): Promise<string> {
  const rows: string[][] = [];
  for (const size of [1, 10, 100, 1000].filter((size) => size <= records.length)) {
    const used = records.slice(0, size === 1 ? 1_000 : records.length);
    rows.push([`${size}`, ((await stateBytes(used, size)) / used.length).toFixed(0)]);
  }
  return table(['records a page', 'bytes a record in the state'], rows);
}

async function stateBytes(used: readonly CollectedRecord[], pageSize: number): Promise<number> {
  return sizeAfter(async (journal) => {
    for (let i = 0; i < used.length; i += pageSize) {
      const page = used.slice(i, i + pageSize);
      const last = page.at(-1)?.time ?? begin;
      await journal.append({ source, records: page, received: last, serverNow: last });
    }
  });
}

async function windowBytes(): Promise<string> {
  const windows = 200;
  const size = await sizeAfter(async (journal) => {
    for (let i = 0; i < windows; i += 1) {
      const window = { from: begin + i * windowWidth, to: begin + (i + 1) * windowWidth };
      const query = { startTime: '2026-11-20T01:59:59.00', endTime: '2026-11-20T02:15:01.00' };
      const digest = createHash('sha256').update(String(i)).digest();
      const proof = { query, total: 100, inWindow: 100, digest, passes: 1, requests: 2, first: window.to, last: window.to };
      await journal.close(
        source,
        window,
        { verdict: { proven: true, proof }, next: window.to, at: window.to, recount: false },
        windowWidth,
      );
      for (let recount = 1; recount <= recounts; recount += 1)
        await journal.confirm(source, window, recount < recounts ? window.to + recount : undefined, window.to + recount, windowWidth);
    }
  });
  return (size / windows).toFixed(0);
}

/** The bytes that this work adds to an empty state. */
async function sizeAfter(work: (journal: Journal) => Promise<void>): Promise<number> {
  return (await sizeOfState(work)) - (await sizeOfState(() => Promise.resolve()));
}

async function sizeOfState(work: (journal: Journal) => Promise<void>): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'waybill-sizing-'));
  try {
    const options = { directory, maxSize: 2 ** 40, retention: 86_400_000, version: '0.0.0', expectState: false, lockWait: 0 };
    const journal = await Journal.open(options, systemClock, new AbortController().signal);
    journal.registerSource(source, 'tenant', begin);
    await work(journal);
    await journal[Symbol.asyncDispose]();
    return statSync(join(directory, 'waybill.db')).size;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
