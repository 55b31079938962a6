/**
 * Records for the tests of journal and collect. The tests define their own identity: 16 bytes of a
 * hash over `logId` and `logTimestamp`, independent of the program's.
 */
import { createHash } from 'node:crypto';
import type { CollectedRecord } from '../../src/model/journal.ts';
import type { RecordFields } from '../../src/model/record.ts';
import type { Micros } from '../../src/model/time.ts';

export const second = 1_000_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** 2026-11-20T02:00:00Z in µs. */
export const base: Micros = 1_795_140_000_000_000;

/** `logTimestamp` as the service writes it: UTC without an offset, with six digits. */
function timeText(at: Micros): string {
  const seconds = Math.floor(at / second);
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(at - seconds * second).padStart(6, '0')}`;
}

export function recordText(logId: number, at: Micros, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ logId, logTimestamp: timeText(at), actionAttempted: 'Decrypt', ...more });
}

export function uidOf(text: string): string {
  const id = /"logId":(\d+)/.exec(text)?.[1] ?? text;
  const at = /"logTimestamp":"([^"]*)"/.exec(text)?.[1] ?? '';
  return createHash('sha256').update(`${id} ${at}`).digest().subarray(0, 16).toString('base64url');
}

/** `uidOf` of a parsed record. */
export function uidOfRecord({ bytes }: RecordFields): string {
  return uidOf(bytes.toString());
}

/** A record as collect passes it to the journal; `time` undefined: its time cannot be parsed. */
export function collected(logId: number, time: Micros | undefined, more: Readonly<Record<string, unknown>> = {}): CollectedRecord {
  const text = time === undefined ? JSON.stringify({ logId, logTimestamp: 'yesterday', ...more }) : recordText(logId, time, more);
  return {
    bytes: Buffer.from(text, 'utf8'),
    text,
    uid: uidOf(text),
    time,
    isObject: true,
  };
}

/** Pseudo-random numbers in [0, 1) from a seed (mulberry32, public domain). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A whole number in [from, until). */
export function between(random: () => number, from: number, until: number): number {
  return from + Math.floor(random() * (until - from));
}
