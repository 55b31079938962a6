/**
 * One partition of the model of a broker: its batches, the last batches of each producer (KIP-98),
 * and open and aborted transactions. It is the weaker kind of broker, without the checks of
 * KIP-890: it accepts a delayed batch that is in sequence.
 */
import { markerBatch, readBatch } from './kafka-wire.ts';
import type { RecordBatch, StoredRecord } from './kafka-wire.ts';

export const errors = {
  none: 0,
  unknownTopic: 3,
  messageTooLarge: 10,
  invalidRequiredAcks: 21,
  topicDenied: 29,
  groupDenied: 30,
  saslFailed: 58,
  topicExists: 36,
  outOfOrderSequence: 45,
  invalidEpoch: 47,
  invalidTransactionState: 48,
  concurrentTransactions: 51,
  transactionalIdDenied: 53,
} as const;

interface Stored {
  readonly offset: bigint;
  readonly count: number;
  readonly bytes: Buffer;
  /** Undefined for the marker that ends a transaction. */
  readonly batch: RecordBatch | undefined;
}

interface ProducerState {
  epoch: number;
  /** The last five batches, by their first sequence number. */
  readonly batches: { readonly first: number; readonly count: number; readonly offset: bigint }[];
}

export class PartitionLog {
  readonly stored: Stored[] = [];
  end = 0n;
  readonly #producers = new Map<bigint, ProducerState>();
  /** The first offset of each open transaction. */
  readonly #open = new Map<bigint, bigint>();
  readonly aborted: { readonly producerId: bigint; readonly from: bigint; readonly end: bigint }[] = [];

  /** The last stable offset: every earlier transaction has ended. */
  get stable(): bigint {
    return [...this.#open.values()].reduce((least, from) => (from < least ? from : least), this.end);
  }

  append(bytes: Buffer): { readonly error: number; readonly offset: bigint } {
    const batch = readBatch(bytes);
    const { producerId, epoch, firstSequence: first, records, isTransactional } = batch;
    const refuse = (error: number) => ({ error, offset: -1n });
    if (producerId >= 0n) {
      let state = this.#producers.get(producerId);
      if (state && epoch < state.epoch) return refuse(errors.invalidEpoch);
      const again = state?.epoch === epoch ? state.batches.find((one) => one.first === first && one.count === records.length) : undefined;
      if (again) return { error: errors.none, offset: again.offset };
      if (!state || epoch > state.epoch) this.#producers.set(producerId, (state = { epoch, batches: [] }));
      const last = state.batches.at(-1);
      if (first !== (last === undefined ? 0 : last.first + last.count)) return refuse(errors.outOfOrderSequence);
      state.batches.push({ first, count: records.length, offset: this.end });
      if (state.batches.length > 5) state.batches.shift();
      if (isTransactional && !this.#open.has(producerId)) this.#open.set(producerId, this.end);
    }
    const offset = this.end;
    const own = Buffer.from(bytes);
    own.writeBigInt64BE(offset);
    this.stored.push({ offset, count: records.length, bytes: own, batch });
    this.end += BigInt(records.length);
    return { error: errors.none, offset };
  }

  /**
   * Ends a transaction. Its epoch applies from now on: delayed requests with an older epoch are
   * rejected.
   */
  mark(producerId: bigint, epoch: number, isCommit: boolean): void {
    const from = this.#open.get(producerId);
    const state = this.#producers.get(producerId);
    if (!state || state.epoch < epoch) this.#producers.set(producerId, { epoch, batches: [] });
    this.#open.delete(producerId);
    if (!isCommit && from !== undefined) this.aborted.push({ producerId, from, end: this.end });
    this.stored.push({ offset: this.end, count: 1, bytes: markerBatch(this.end, producerId, epoch, isCommit), batch: undefined });
    this.end += 1n;
  }

  /** The batches in [offset, until). */
  from(offset: bigint, until: bigint): readonly Stored[] {
    return this.stored.filter((one) => one.offset + BigInt(one.count) > offset && one.offset < until);
  }

  /** The records that a consumer with `read_committed` sees. */
  committed(): StoredRecord[] {
    return this.stored.flatMap(({ offset, batch }) => {
      if (!batch || offset >= this.stable) return [];
      const { producerId, isTransactional } = batch;
      const isGone = isTransactional && this.aborted.some((one) => one.producerId === producerId && offset >= one.from && offset < one.end);
      return isGone ? [] : batch.records;
    });
  }
}
