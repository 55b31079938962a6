/** Opens a sink, reconciles its position with the journal, and closes it. */
import { WaybillError } from '../errors/errors.ts';
import type { DeliverJournal } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { FeedPosition, Sink } from '../model/sink.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { within } from '../time/deadline.ts';
import type { Sender } from './sender.ts';

/** Maximum ms to wait for a sink to close; shorter after the shutdown timeout. */
const closeMs = 10_000;
const closeAbandonedMs = 1_000;

interface OpenerParts {
  readonly id: string;
  readonly open: (signal: AbortSignal) => Promise<Sink>;
  readonly journal: DeliverJournal;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly log: Log;
}

export class Opener {
  readonly #parts: OpenerParts;

  constructor(parts: OpenerParts) {
    this.#parts = parts;
  }

  /** Opens the sink within its deadline. Closes a sink that opens too late. */
  async open(abandon: AbortSignal): Promise<Sink> {
    const { journal } = this.#parts;
    const owned = journal.owned?.(abandon);
    // mutant: owned-open
    if (owned) await owned;
    const opening = this.#parts.open(abandon);
    try {
      return await this.#parts.sender.call(() => opening, abandon);
    } catch (thrown) {
      opening.then((sink) => sink[Symbol.asyncDispose]()).catch(() => undefined);
      throw thrown;
    }
  }

  /**
   * Requests the position of a sink that stores it, and acknowledges the entries that the sink has.
   * @returns the last acknowledged entry, and the position of another feed that the sink stored with it
   * @throws WaybillError `sink_blocked` when the position does not fit the journal
   */
  async resume(sink: Sink, abandon: AbortSignal): Promise<{ readonly acknowledged: number; readonly feed: FeedPosition | undefined }> {
    const { id, journal, sender, log } = this.#parts;
    await journal.flush();
    const found = sink.position ? await sender.call((signal) => sink.position?.(signal) ?? Promise.resolve(undefined), abandon) : undefined;
    // mutant: compare-position
    if (found) await this.#compare(found.position);
    if (/* mutant: sink-position */ found && found.position.seq > journal.sinkProgress(id).acknowledged) await journal.found(id, found);
    const { acknowledged, orders } = journal.sinkProgress(id);
    if (orders.adopt === true) {
      await journal.adopted(id);
      log.write('sink.adopted', { sink: id, acknowledged });
    }
    return { acknowledged, feed: found?.feed };
  }

  /** Closes the sink, within a time limit: the next open does not wait for a sink that hangs. */
  async close(sink: Sink, abandon: AbortSignal): Promise<void> {
    const { id, clock, log } = this.#parts;
    const maxMs = abandon.aborted ? closeAbandonedMs : closeMs;
    const late = (): WaybillError => new WaybillError('aborted', `sink "${id}" did not close within ${maxMs / 1000} s`);
    try {
      await within(async () => sink[Symbol.asyncDispose](), maxMs, late, clock);
    } catch (error) {
      log.write('sink.close_failed', { sink: id, error });
    }
  }

  /** Rejects a position that this journal never had, or that precedes the last delivery: the journal or the sink was rolled back. */
  async #compare({ seq, chain }: Position): Promise<void> {
    const { id, journal } = this.#parts;
    const { delivered } = journal.sinkProgress(id);
    const known = seq === delivered.seq ? delivered.chain : await journal.chainAt(seq);
    if (seq >= delivered.seq && known && Buffer.compare(known, chain) === 0) return;
    const reason =
      seq < delivered.seq
        ? `entry ${delivered.seq} was delivered to it, but it now ends at entry ${seq}`
        : `it has entry ${seq}, which this state does not know`;
    throw new WaybillError('sink_blocked', `cannot resume sink "${id}": ${reason}; restore the right state, or see "waybill sinks adopt"`);
  }
}
