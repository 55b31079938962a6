/**
 * Makes batches of what lies behind a position: entries in, messages out, as soon as they are there. A batch is full by count, by bytes, or when
 * it spans as many entries as may be uncertain; so a sink that wants one record in a thousand reads on until it has some to send.
 */
import { messageOf } from '../errors.ts';
import type { Entry, Limit } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch, Message, Rejection } from '../model/sink.ts';
import type { Micros } from '../model/time.ts';
import { BatchSpace } from './batch-space.ts';
import type { Pipeline } from './pipeline.ts';

/** Entries beyond the committed `acknowledged` that were ever sent: a start has no more than these to be uncertain about. */
export const maxUncertain = 10_000;
/** Entries that are looked at in one go, where few are for this sink. */
const maxRead = 1_000;

/** A batch with the entries behind its messages: a dead letter keeps its own copy of the record. */
export interface Prepared {
  readonly messages: readonly Message[];
  /** The last entry that was read for it; it may lie behind the last message. */
  readonly through: Position;
  readonly bytes: number;
  readonly entries: ReadonlyMap<number, Entry>;
  /** How many entries were read for it. */
  readonly count: number;
  /** An entry of which no message could be made; it stands alone. */
  readonly unmade: Rejection | undefined;
}

/** The entries behind a position, in order, until a limit is reached; none when there is none. */
export type ReadEntries = (after: number, limit: Limit) => Promise<readonly Entry[]>;

export class Batches {
  readonly #read: ReadEntries;
  readonly #pipeline: Pipeline;
  readonly #limit: Limit;
  readonly #space = new BatchSpace();
  /** The last entry that was read. */
  #cursor: number;
  #messages: Message[] = [];
  #entries = new Map<number, Entry>();
  #bytes = 0;
  /** Of the batch that is being made: its first and last entry, and how many there are. */
  #first: Entry | undefined;
  #last: Entry | undefined;
  #count = 0;
  #unmade: Rejection | undefined;
  #isFull = false;
  /** A message that was made but did not fit: it opens the next batch. */
  #ahead: Message | undefined;

  constructor(read: ReadEntries, pipeline: Pipeline, limit: Limit, after: number) {
    this.#read = read;
    this.#pipeline = pipeline;
    this.#limit = limit;
    this.#cursor = after;
  }

  /** Begins anew behind a position. What was made is left to whoever still reads from it, as a send may whose outcome is unknown. */
  restart(after: number): void {
    this.#space.renew();
    this.#ahead = undefined;
    this.#begin();
    this.#cursor = after;
  }

  /** Reads what is there, until the batch is full. */
  async fill(): Promise<void> {
    let requested = 0;
    while (!this.#isFull) {
      // No more than is missing; where nothing of it was for this sink, more.
      requested = Math.min(Math.max(1, 2 * requested, this.#limit.records - this.#messages.length), maxRead, maxUncertain - this.#count);
      const read = await this.#read(this.#cursor, { records: requested, bytes: this.#limit.bytes });
      if (read.length === 0) return;
      for (const entry of read) {
        if (!this.#add(entry)) break;
      }
    }
  }

  /** Whether the batch that is being made is full: it is sent at once, or passed over when nothing of it is for this sink. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Whether there is something in it to be sent, or to become a dead letter. */
  get hasMessages(): boolean {
    return this.#messages.length > 0 || this.#unmade !== undefined;
  }

  /** When the first entry of the batch that is being made was received. */
  get received(): Micros | undefined {
    return this.#first?.received;
  }

  /** The batch as it is, and the next one begins; undefined when nothing was read. The one before must be acknowledged first. */
  take(): Prepared | undefined {
    const last = this.#last;
    if (!last) return undefined;
    const through = { seq: last.seq, chain: last.chain };
    const delivered = {
      ...{ messages: this.#messages, through, bytes: this.#bytes },
      ...{ entries: this.#entries, count: this.#count, unmade: this.#unmade },
    };
    this.#begin();
    this.#space.next();
    return delivered;
  }

  #begin(): void {
    this.#messages = [];
    this.#entries = new Map();
    this.#bytes = this.#count = 0;
    this.#first = this.#last = this.#unmade = undefined;
    this.#isFull = false;
  }

  /** False: this entry belongs into the next batch. */
  #add(entry: Entry): boolean {
    const { records, bytes } = this.#limit;
    let message: Message | undefined;
    try {
      message = this.#ahead?.seq === entry.seq ? this.#space.moved(this.#ahead) : this.#pipeline(entry, this.#space.put);
    } catch (thrown) {
      // Normalize and encode are total. Should one throw all the same, the record is a dead letter, in a batch of its own.
      this.#isFull = true;
      if (this.#messages.length > 0) return false;
      this.#entries.set(entry.seq, entry);
      this.#unmade = { seq: entry.seq, code: 'cannot_encode', message: messageOf(thrown) };
    }
    if (message) {
      const { length } = message.bytes;
      if (this.#messages.length > 0 && this.#bytes + length > bytes) {
        this.#ahead = message;
        this.#isFull = true;
        return false;
      }
      this.#messages.push(message);
      this.#entries.set(entry.seq, entry);
      this.#bytes += length;
    }
    this.#first ??= entry;
    this.#last = entry;
    this.#cursor = entry.seq;
    this.#count += 1;
    this.#isFull ||= this.#messages.length >= records || this.#bytes >= bytes || this.#count >= maxUncertain;
    return !this.#isFull;
  }
}

/** Two batches in order; the lower one acknowledges up to its own last message. Both are uncertain: a large request may be read in parts. */
export function halve(batch: Batch, entries: ReadonlyMap<number, Entry>): [Batch, Batch] {
  const middle = Math.ceil(batch.messages.length / 2);
  const lower = batch.messages.slice(0, middle);
  const upper = batch.messages.slice(middle);
  const last = batch.onDemand === undefined ? entries.get(lower.at(-1)?.seq ?? 0) : undefined;
  const through = /* mutant: lower-half */ last ? { seq: last.seq, chain: last.chain } : batch.through;
  return [batchOf({ ...batch, through, uncertain: true }, lower), batchOf({ ...batch, uncertain: true }, upper)];
}

/** The same batch with these messages alone. */
export function batchOf(batch: Batch, messages: readonly Message[]): Batch {
  return { ...batch, messages, bytes: messages.reduce((sum, message) => sum + message.bytes.length, 0) };
}
