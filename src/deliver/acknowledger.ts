/**
 * Acknowledges entries for one sink: with the journal's next transaction, or in a separate one when
 * there are dead letters or the sink cannot report its position.
 */
import { codeOf, WaybillError } from '../errors/errors.ts';
import type { Acknowledgement, DeliverJournal, Entry, Replay } from '../model/journal.ts';
import type { Rejection } from '../model/sink.ts';
import { traced, type Log, type Tracer } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { Pauses } from './pauses.ts';
import { rejectionCode } from './rejection-code.ts';
import type { RetryPolicy } from './retry-policy.ts';

/**
 * Maximum wait of an acknowledgement for the journal's next transaction, ms. Under load
 * acknowledgements cost no transaction, and on an idle journal the ledger is soon up to date.
 */
const groupedMs = 1_000;

interface AcknowledgerParts {
  readonly id: string;
  /** The sink can resolve an unknown outcome: acknowledgements without dead letters may wait. */
  readonly resolvable: boolean;
  readonly journal: DeliverJournal;
  readonly pauses: Pauses;
  readonly retryPolicy: RetryPolicy;
  readonly clock: Clock;
  readonly log: Log;
  readonly tracer: Tracer;
}

export class Acknowledger {
  readonly #parts: AcknowledgerParts;
  #acknowledged: number;
  #flushAt: number | undefined;

  constructor(parts: AcknowledgerParts) {
    this.#parts = parts;
    this.#acknowledged = parts.journal.sinkProgress(parts.id).acknowledged;
  }

  /** The last acknowledged entry, committed or waiting for its transaction. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** The latest time to write waiting acknowledgements, by the monotonic clock. */
  get flushAt(): number {
    return this.#flushAt ?? Infinity;
  }

  /** Continues at the journal's position, after the sink was opened. */
  resume(acknowledged: number): void {
    this.#acknowledged = acknowledged;
  }

  /**
   * @param entries  of the batch
   * @param rejections  become dead letters
   * @param replay  its progress, for the same transaction
   */
  async acknowledge(
    acknowledgement: Acknowledgement,
    entries: ReadonlyMap<number, Entry> | undefined,
    rejections: readonly Rejection[],
    stop: AbortSignal,
    replay?: Replay,
  ): Promise<void> {
    const { id, resolvable, journal, log, tracer } = this.#parts;
    const deadLetters = rejections.map((rejection) => {
      const entry = entries?.get(rejection.seq);
      if (entry) return { entry, rejection, attempts: rejection.attempts ?? 1 };
      throw new WaybillError('sink_blocked', `sink "${id}" rejected entry ${rejection.seq}, which was not in its batch`);
    });
    const attributes = { 'db.system.name': 'sqlite', 'db.operation.name': 'acknowledge', 'waybill.messages.rejected': rejections.length };
    await traced(tracer.start('acknowledge journal', attributes, { kind: 'client' }), async () => {
      this.#acknowledged = acknowledgement.acknowledged;
      if (rejections.length === 0 && resolvable && !replay) {
        journal.acknowledgeLater(id, acknowledgement);
        this.#flushSoon();
        return;
      }
      await this.commit(() => journal.acknowledge(id, acknowledgement, deadLetters, replay), stop);
      this.#flushAt = undefined;
      // The server's message may quote the record: only the dead letter stores it, not the log.
      for (const { seq, code } of rejections) log.write('sink.dead_letter', { sink: id, seq, code: rejectionCode(code) });
    });
  }

  /** Acknowledges entries that are not for this sink. */
  passOver(acknowledged: number): void {
    const { id, journal } = this.#parts;
    this.#acknowledged = acknowledged;
    journal.acknowledgeLater(id, { acknowledged, delivered: undefined });
    this.#flushSoon();
  }

  async flushWhenDue(stop: AbortSignal): Promise<void> {
    if (this.#parts.clock.monotonic() >= this.flushAt) await this.flush(stop);
  }

  async flush(stop: AbortSignal): Promise<void> {
    await this.commit(() => this.#parts.journal.flush(), stop);
    this.#flushAt = undefined;
  }

  /** Writes to the journal. On a full disk it retries the write, not the send. The loop sends nothing else until the write succeeds. */
  async commit(write: () => Promise<void>, stop: AbortSignal): Promise<void> {
    const { pauses, retryPolicy } = this.#parts;
    for (let hasFailed = false; ; hasFailed = true) {
      try {
        await write();
        if (hasFailed) retryPolicy.recovered();
        return;
      } catch (thrown) {
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        await pauses.afterFailure(thrown, stop);
      }
    }
  }

  #flushSoon(): void {
    this.#flushAt ??= this.#parts.clock.monotonic() + groupedMs;
  }
}
