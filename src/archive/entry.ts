/** Entries of the archive's Merkle tree: 57 bytes for each archived line, without personal data. Pure. */
import { writeBytes } from './base64url.ts';
import type { Line } from './line.ts';
import { writeSha256 } from './merkle.ts';

export const entryBytes = 57;
/** An entry in a bundle stands after its length in two bytes. */
export const bundleStep = 2 + entryBytes;
export const uidBytes = 16;

const kinds = { record: 1, ledger: 2, operation: 3, position: 4 } as const;

type EntryFacts = Pick<Line, 'kind' | 'seq'> & { readonly uid?: string };

/** Kind (1 byte), uid (16, zero without a record), sequence number (8, big-endian), SHA-256 of the line (32). */
export function formatEntry(facts: EntryFacts, line: Uint8Array): Buffer {
  const entry = Buffer.alloc(entryBytes);
  writeEntry(entry, facts, line);
  return entry;
}

/** The same as `formatEntry`, but overwrites the given entry. */
export function writeEntry(entry: Buffer, { kind, seq, uid }: EntryFacts, line: Uint8Array): void {
  entry[0] = kinds[kind];
  if (uid === undefined) entry.fill(0, 1, 1 + uidBytes);
  else writeBytes(entry, 1, uid);
  entry.writeUInt32BE(Math.floor(seq / 2 ** 32), 17);
  entry.writeUInt32BE(seq % 2 ** 32, 21);
  writeSha256(entry, 25, line);
}

/** @param at  where the entry begins */
export function isRecord(bytes: Uint8Array, at = 0): boolean {
  return bytes[at] === kinds.record;
}

/** The 16 bytes of the uid of a record's entry. */
export function uidOf(entry: Uint8Array): Uint8Array {
  return entry.subarray(1, 1 + uidBytes);
}

/** Writes an entry after its length (2 bytes, big-endian) as number `i` of a bundle. */
export function writeToBundle(bundle: Buffer, i: number, entry: Uint8Array): void {
  const at = entryAt(i);
  bundle[at - 2] = 0;
  bundle[at - 1] = entryBytes;
  bundle.set(entry, at);
}

/** Where entry `i` of a bundle begins. */
export function entryAt(i: number): number {
  return i * bundleStep + 2;
}

/** @returns false for bytes that are not entries of an archive */
export function isBundle(bytes: Uint8Array): boolean {
  if (bytes.length % bundleStep !== 0) return false;
  for (let at = 0; at < bytes.length; at += bundleStep) if (bytes[at] !== 0 || bytes[at + 1] !== entryBytes) return false;
  return true;
}

/** @returns undefined for bytes that are not entries of an archive */
export function parseBundle(bytes: Buffer): readonly Buffer[] | undefined {
  if (!isBundle(bytes)) return undefined;
  return Array.from({ length: bytes.length / bundleStep }, (_, i) => bytes.subarray(entryAt(i), entryAt(i) + entryBytes));
}
