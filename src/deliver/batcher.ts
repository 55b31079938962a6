/**
 * Groups the entries after a position into batches. A batch is full by count, by bytes, or when it
 * spans `maxUncertain` entries. For a sink that selects few records, `fill` reads on until it has a message.
 */
import { messageOf } from '../errors/errors.ts';
import type { Entry, Limit } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch, Message, Rejection } from '../model/sink.ts';
import type { Clock } from '../model/time.ts';
import { BatchSpace } from './batch-space.ts';
import type { Pipeline } from './pipeline.ts';

/** The maximum distance of a sent entry from the committed `acknowledged`. It limits the uncertain entries after a restart. */
export const maxUncertain = 10_000;
/** Entries per read. */
const maxRead = 1_000;
/**
 * Encoded between two turns of the event loop, less than a millisecond. While the loop encodes, a
 * receiver that has answered waits for the next bytes of the batch in flight.
 */
const entriesPerTurn = 16;
/** The batch in flight is never abandoned by an error of the batch after it. */
const unstoppable = new AbortController().signal;

/** A batch with the entries of its messages: a rejected message becomes a dead letter with its entry. */
export interface Prepared {
  readonly messages: readonly Message[];
  /** The last entry read for the batch. It may follow the last message. */
  readonly through: Position;
  readonly bytes: number;
  readonly entries: ReadonlyMap<number, Entry>;
  /** Number of entries read for the batch. */
  readonly count: number;
  /** An entry that could not be encoded; the batch has no messages then. */
  readonly unmade: Rejection | undefined;
  /** When its entries were read, wall clock in ms, for the trace. */
  readonly read?: { readonly from: number; readonly to: number } | undefined;
}

/** Reads the entries after a position, in order, up to a limit. */
type ReadEntries = (after: number, limit: Limit) => Promise<readonly Entry[]>;

export class Batches {
  readonly #read: ReadEntries;
  readonly #pipeline: Pipeline;
  readonly #limit: Limit;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #space = new BatchSpace();
  #cursor: number;
  #messages: Message[] = [];
  #entries = new Map<number, Entry>();
  #bytes = 0;
  /** The last entry of the next batch, and its number of entries. */
  #last: Entry | undefined;
  #count = 0;
  #unmade: Rejection | undefined;
  #isFull = false;
  /** A message that did not fit: it begins the following batch. */
  #ahead: Message | undefined;

  constructor(read: ReadEntries, pipeline: Pipeline, limit: Limit, clock: Pick<Clock, 'sleep'>, after: number) {
    this.#read = read;
    this.#pipeline = pipeline;
    this.#limit = limit;
    this.#clock = clock;
    this.#cursor = after;
  }

  /** Starts again after a position. A send of unknown outcome may still read from the old batch: its memory is not reused. */
  restart(after: number): void {
    this.#space.renew();
    this.#ahead = undefined;
    this.#begin();
    this.#cursor = after;
  }

  /** Reads entries until the batch is full or the journal has no more. */
  async fill(): Promise<void> {
    let requested = 0;
    while (!this.#isFull) {
      // Requests the number of missing entries, and doubles it after each read that did not fill the batch.
      requested = Math.min(Math.max(1, 2 * requested, this.#limit.records - this.#messages.length), maxRead, maxUncertain - this.#count);
      const read = await this.#read(this.#cursor, { records: requested, bytes: this.#limit.bytes });
      if (read.length === 0) return;
      for (const entry of read) {
        if (!this.#add(entry)) break;
        if (this.#count % entriesPerTurn === 0) await this.#clock.sleep(0, unstoppable);
      }
    }
  }

  /** A full batch is sent at once, or passed over when it has no messages. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** The next batch has a message to send, or an entry to dead-letter. */
  get hasMessages(): boolean {
    return this.#messages.length > 0 || this.#unmade !== undefined;
  }

  /** @returns the batch as it is; undefined when nothing was read. The previous batch must be acknowledged first. */
  take(): Prepared | undefined {
    const last = this.#last;
    if (!last) return undefined;
    const through = { seq: last.seq, chain: last.chain };
    const prepared = {
      messages: this.#messages,
      through,
      bytes: this.#bytes,
      entries: this.#entries,
      count: this.#count,
      unmade: this.#unmade,
    };
    this.#begin();
    this.#space.next();
    return prepared;
  }

  #begin(): void {
    this.#messages = [];
    this.#entries = new Map();
    this.#bytes = this.#count = 0;
    this.#last = this.#unmade = undefined;
    this.#isFull = false;
  }

  /** @returns false when the batch is full */
  #add(entry: Entry): boolean {
    const { records, bytes } = this.#limit;
    let message: Message | undefined;
    try {
      message = this.#ahead?.seq === entry.seq ? this.#space.moved(this.#ahead) : this.#pipeline(entry, this.#space.put);
    } catch (thrown) {
      // Normalize and encode should not throw. If one does, the record becomes a dead letter, in a separate batch.
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
    this.#last = entry;
    this.#cursor = entry.seq;
    this.#count += 1;
    this.#isFull ||= this.#messages.length >= records || this.#bytes >= bytes || this.#count >= maxUncertain;
    return !this.#isFull;
  }
}

/** Splits a batch in two, in order. */
export function halve(batch: Batch, entries: ReadonlyMap<number, Entry>): Batch[] {
  const middle = Math.ceil(batch.messages.length / 2);
  return divided(batch, [batch.messages.slice(0, middle), batch.messages.slice(middle)], entries);
}

/**
 * A batch as several, in order. Each but the last acknowledges up to its last message. All are uncertain: the receiver may have processed a
 * part of the request.
 */
export function divided(batch: Batch, groups: readonly (readonly Message[])[], entries: ReadonlyMap<number, Entry>): Batch[] {
  return groups.map((messages) => {
    const isLast = messages === groups.at(-1);
    const last = isLast ? undefined : messages.at(-1);
    const through = /* mutant: lower-half */ last ? positionOf(last, batch, entries) : batch.through;
    return batchOf({ ...batch, through, uncertain: true }, messages);
  });
}

/** The position of a message of a batch. A request has no entries, and no chain. */
export function positionOf({ seq }: Message, { through }: Batch, entries: Prepared['entries']): Position {
  return { seq, chain: entries.get(seq)?.chain ?? through.chain };
}

export function batchOf(batch: Batch, messages: readonly Message[]): Batch {
  return { ...batch, messages, bytes: messages.reduce((sum, message) => sum + message.bytes.length, 0) };
}
