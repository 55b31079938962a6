/** A segment in memory, and the entries that sinks read from it. */
import type { Entry, Limit } from '../model/journal.ts';
import type { Micros } from '../model/time.ts';
import { readRecord } from '../record/read.ts';
import type { Notes } from '../model/record.ts';
import { flagLate, flagNoTime, kindLedger, ledgerUid, type SegmentContent } from './segment.ts';

/** A segment in memory, with its body unpacked and without entry objects. */
export interface Unpacked extends Pick<SegmentContent, 'seq' | 'n' | 'number' | 'received' | 'flags' | 'uids' | 'ends' | 'body'> {
  readonly kind: number;
  readonly source: string;
  readonly chain: Uint8Array;
  /** See Entry.notes; only while a segment waits in memory. */
  readonly notes?: readonly (Notes | undefined)[];
}

/** An entry of a segment. Text and time are decoded when they are read. */
class SegmentEntry implements Entry {
  readonly kind: 'record' | 'ledger';
  readonly seq: number;
  readonly number: number | undefined;
  readonly source: string;
  readonly received: Micros;
  readonly late: boolean;
  readonly chain: Uint8Array;
  readonly #segment: Unpacked;

  constructor(segment: Unpacked, i: number) {
    const flag = segment.flags[i] ?? 0;
    this.kind = segment.kind === kindLedger ? 'ledger' : 'record';
    this.seq = segment.seq + i;
    this.number = segment.number === null ? undefined : segment.number + i;
    this.source = segment.source;
    this.received = segment.received;
    this.late = (flag & flagLate) !== 0;
    this.chain = segment.chain;
    this.#segment = segment;
  }

  get bytes(): Uint8Array {
    const { body, ends } = this.#segment;
    const i = this.seq - this.#segment.seq;
    return body.subarray(beginOf(ends, i), beginOf(ends, i + 1));
  }

  get notes(): Notes | undefined {
    return this.#segment.notes?.[this.seq - this.#segment.seq];
  }

  get text(): string {
    return bufferOf(this.bytes).toString('utf8');
  }

  get uid(): string {
    const at = (this.seq - this.#segment.seq) * 16;
    return this.kind === 'record' ? bufferOf(this.#segment.uids).toString('base64url', at, at + 16) : ledgerUid(this.text);
  }

  get time(): Micros | undefined {
    const flags = this.#segment.flags[this.seq - this.#segment.seq] ?? 0;
    return this.kind === 'record' && (flags & flagNoTime) === 0 ? readRecord(this.bytes, this.notes).time : undefined;
  }
}

/** Reads entries from adjacent segments, in order, up to a limit; at least one. */
export class SegmentReader {
  readonly entries: Entry[] = [];
  /** The next entry to read. */
  next: number;
  isFull = false;
  readonly #limit: Limit;
  #bytes = 0;

  constructor(after: number, limit: Limit) {
    this.next = after + 1;
    this.#limit = limit;
  }

  /** @param segment  contains the next entry */
  read(segment: Unpacked): void {
    const { records, bytes } = this.#limit;
    for (let i = this.next - segment.seq; i < segment.n && !this.isFull; i += 1) {
      const length = beginOf(segment.ends, i + 1) - beginOf(segment.ends, i);
      if (this.entries.length > 0 && this.#bytes + length > bytes) {
        this.isFull = true;
        return;
      }
      this.entries.push(new SegmentEntry(segment, i));
      this.next += 1;
      this.#bytes += length;
      this.isFull = this.entries.length >= records || this.#bytes >= bytes;
    }
  }
}

/** The start of entry i in a body, from the table of ends (uint32, little-endian). */
export function beginOf(ends: Uint8Array, i: number): number {
  const at = i * 4 - 4;
  if (at < 0) return 0;
  return ((ends[at] ?? 0) | ((ends[at + 1] ?? 0) << 8) | ((ends[at + 2] ?? 0) << 16) | ((ends[at + 3] ?? 0) << 24)) >>> 0;
}

/** A Buffer on the same memory. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
