/** Entries of an archive's log: 57 bytes for each line, without personal data. Pure. */
import { uidBytes } from '../record/identity.ts';
import type { Line } from './line.ts';
import { sha256 } from './merkle.ts';

const entryBytes = 57;

const kinds = { record: 1, ledger: 2, operation: 3, position: 4 } as const;

/** Kind (1 byte), uid (16, zero without a record), sequence number (8, big-endian), SHA-256 of the line (32). */
export function formatEntry(facts: Pick<Line, 'kind' | 'seq'> & { readonly uid?: string }, line: Uint8Array): Buffer {
  const entry = Buffer.alloc(entryBytes);
  entry.writeUInt8(kinds[facts.kind]);
  if (facts.uid !== undefined) entry.set(uidBytes(facts.uid), 1);
  entry.writeBigUInt64BE(BigInt(facts.seq), 17);
  entry.set(sha256(line), 25);
  return entry;
}

export function isRecord(entry: Uint8Array): boolean {
  return entry[0] === kinds.record;
}

/** Entries of a bundle, each after its length (2 bytes, big-endian). */
export function formatBundle(entries: readonly Uint8Array[]): Buffer {
  const length = Buffer.of(0, entryBytes);
  return Buffer.concat(entries.flatMap((entry) => [length, entry]));
}

/** @returns undefined for bytes that are not entries of an archive */
export function parseBundle(bytes: Buffer): readonly Buffer[] | undefined {
  const step = 2 + entryBytes;
  const entries = Array.from({ length: Math.floor(bytes.length / step) }, (_, i) => bytes.subarray(i * step + 2, (i + 1) * step));
  return formatBundle(entries).equals(bytes) ? entries : undefined;
}
