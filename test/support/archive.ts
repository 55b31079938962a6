/** Small archives for tests: tests supply the lines, and the archive's writer signs them. */
import { createHash, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { checkpointPath, formatCheckpoint } from '../../src/archive/checkpoint.ts';
import { EntryLog } from '../../src/archive/entry-log.ts';
import type { EntryLine, LedgerLine, RecordLine } from '../../src/archive/line.ts';
import { signerOf, signNote } from '../../src/archive/signed-note.ts';
import type { Signer } from '../../src/archive/signed-note.ts';
import type { WritableArchiveStore } from '../../src/archive/store.ts';
import { ArchiveWriter } from '../../src/archive/writer.ts';
import type { Through, WriterOptions } from '../../src/archive/writer.ts';
import { uidOfParts } from './uid-of-parts.ts';

/** 2026-07-01T00:00:00Z in µs. */
export const start = 1_782_864_000_000_000;
export const minute = 60_000_000;

/** An Ed25519 key from a seed (RFC 8410). */
export function keyFrom(seed: number): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, seed)]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** Bytes that look random and are the same in every run. */
export function seededBytes(seed: string): (bytes: number) => Uint8Array {
  let calls = 0;
  return (bytes) =>
    createHash('shake256', { outputLength: bytes })
      .update(`${seed} ${(calls += 1)}`)
      .digest();
}

export function through(seq: number): Through {
  const chain = createHash('sha256').update(`chain ${seq}`).digest('hex');
  return { journal: 'journal-1', seq, chain, at: start + seq * 1_000_000, completeSince: start, sources: null, filtered: false };
}

/** A record with time `at`, whose text contains characters that split lines in careless readers. */
export function recordLine(seq: number, at: number, source = 'production'): RecordLine {
  const time = new Date(at / 1000).toISOString().slice(0, 23);
  const uid = uidOfParts(['waybill/1', source, String(seq), time.replace(/\.?0+$/, ''), null, null, null]);
  const record = `{"logId":${seq},\n "logTimestamp":"${time}","userName":"Łucja \\n \u2028 \\",\\"record\\":{"}`;
  return { kind: 'record', seq, uid, source, received: at + 1_000_000, late: false, record: Buffer.from(record) };
}

/** The uid of the record with this sequence number. */
export function uidOf(seq: number, lines: readonly EntryLine[]): string {
  const line = lines.find((each) => each.seq === seq);
  if (line?.kind !== 'record') throw new Error(`expected a record with the sequence number ${seq}`);
  return line.uid;
}

/** The proof of a window over these records. */
export function provenLine(
  seq: number,
  from: number,
  to: number,
  records: readonly RecordLine[],
  more: Partial<LedgerLine> = {},
): LedgerLine {
  const uids = records.map(({ uid }) => Buffer.from(uid, 'base64url')).sort((a, b) => Buffer.compare(a, b));
  return {
    kind: 'ledger',
    seq,
    source: 'production',
    from,
    to,
    state: 'proven',
    query: { startTime: new Date(from / 1000 - 1_000).toISOString(), endTime: new Date(to / 1000 + 1_000).toISOString() },
    total: records.length,
    records: records.length,
    digest: createHash('sha256').update(Buffer.concat(uids)).digest('hex'),
    passes: 1,
    recounts: 0,
    reason: null,
    at: to + minute,
    ...more,
  };
}

/** Windows of a minute, `perWindow` records each, every window with its proof after its records. */
export function windowLines(windows: number, perWindow: number): EntryLine[] {
  const lines: EntryLine[] = [];
  for (let i = 0; i < windows; i += 1) {
    const from = start + i * minute;
    const records = Array.from({ length: perWindow }, (_, k) => recordLine(lines.length + k + 1, from + k * 1_000_000));
    lines.push(...records, provenLine(lines.length + perWindow + 1, from, from + minute, records));
  }
  return lines;
}

export function openWriter(store: WritableArchiveStore, seed: string, options: Partial<WriterOptions> = {}): Promise<ArchiveWriter> {
  return ArchiveWriter.open(store, { key: keyFrom(1), random: seededBytes(seed), beginsAfter: 0, ...options });
}

/** Appends the lines in segments of `perSegment` lines. */
export async function writeArchive(
  store: WritableArchiveStore,
  lines: readonly EntryLine[],
  perSegment: number,
  key = keyFrom(1),
): Promise<void> {
  const writer = await openWriter(store, 'archive', { key });
  for (let i = 0; i < lines.length; i += perSegment) {
    const batch = lines.slice(i, i + perSegment);
    await writer.append(batch, through(batch.at(-1)?.seq ?? 0));
  }
}

export class MemoryStore implements WritableArchiveStore {
  readonly files: Map<string, Buffer>;

  constructor(files: Iterable<readonly [string, Buffer]> = []) {
    this.files = new Map(files);
  }

  read(path: string): Promise<Buffer | undefined> {
    return Promise.resolve(this.files.get(path));
  }

  async *list(folder: string): AsyncGenerator<string> {
    for (const path of [...this.files.keys()]) if (path.startsWith(folder)) yield path;
  }

  create(path: string, bytes: Uint8Array): Promise<boolean> {
    const found = this.files.get(path);
    if (found === undefined) this.files.set(path, Buffer.from(bytes));
    return Promise.resolve(found === undefined || found.equals(bytes));
  }

  remove(path: string): Promise<void> {
    this.files.delete(path);
    return Promise.resolve();
  }

  replace(path: string, bytes: Uint8Array): Promise<void> {
    this.files.set(path, Buffer.from(bytes));
    return Promise.resolve();
  }
}

/** A line as text, and the facts that its entry repeats. */
export interface SignedLine {
  readonly kind: 'record' | 'ledger' | 'operation' | 'position';
  readonly seq: number;
  readonly uid?: string;
  readonly text: string;
}

/**
 * An archive of any lines: one segment for each list.
 * @param signers  of each checkpoint, with the origin as name; default: the key of seed 1
 */
export function signedArchive(
  segments: readonly (readonly SignedLine[])[],
  signers: readonly Signer[] = [signerOf('waybill/signed', keyFrom(1))],
): MemoryStore {
  const store = new MemoryStore();
  const origin = signers[0]?.name ?? '';
  const log = new EntryLog();
  for (const [i, lines] of segments.entries()) {
    const first = log.size;
    for (const { text, ...facts } of lines) log.append(facts, Buffer.from(text));
    const file = gzipSync(lines.map(({ text }) => `${text}\n`).join(''));
    store.files.set(segmentPath(first, file), file);
    for (const { path, bytes } of log.take().objects) store.files.set(path, Buffer.from(bytes));
    const note = Buffer.from(signNote(formatCheckpoint({ origin, size: log.size, root: log.root() }), signers));
    store.files.set(checkpointPath(i + 1), note);
    store.files.set('checkpoint', note);
  }
  return store;
}

/**
 * The same lines, changed, in an archive that the key of seed 1 signs.
 * @param change  the line, or the lines in its place. A segment without a line is left out
 */
export function signedAnew(
  { files }: MemoryStore,
  change: (text: string) => string | readonly string[],
  signers?: readonly Signer[],
): MemoryStore {
  const segments = [...files].filter(([path]) => path.startsWith('segments/')).sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = segments.map(([, file]) => gunzipSync(file).toString().trimEnd().split('\n').flatMap(change));
  return signedArchive(
    lines
      .filter(({ length }) => length > 0)
      .map((each) => each.map((text) => ({ kind: 'record' as const, seq: 0, ...factsIn(text), text }))),
    signers,
  );
}

function factsIn(text: string): Partial<SignedLine> {
  const [, kind, seq, uid] = /^\{"kind":"(\w+)".*?"seq":(\d+)(?:,"uid":"([\w-]{22})")?/.exec(text) ?? [];
  return kind === undefined ? {} : { kind: kind as SignedLine['kind'], seq: Number(seq), ...(uid !== undefined && { uid }) };
}

export function segmentPath(firstLeaf: number, file: Uint8Array): string {
  return `segments/${String(firstLeaf).padStart(16, '0')}-${createHash('sha256').update(file).digest('hex')}.ndjson.gz`;
}

/** The lines of a file of proofs. */
export function linesIn(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
