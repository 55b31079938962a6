/**
 * The loop around one sink: reads the journal, makes batches, sends, acknowledges. It owns waiting, trying again, halving and dead letters; the
 * sink only sends. A loop shares nothing with another but the journal, which it only reads: a slow or broken sink delays itself.
 */
import { codeOf, isFinal, WaybillError, wordsOf } from '../errors.ts';
import type {
  Batch,
  Clock,
  DeliverJournal,
  Entry,
  Log,
  Message,
  Meters,
  Micros,
  Position,
  Random,
  Rejection,
  Sink,
  SinkSnapshot,
  Taken,
} from '../model.ts';
import { BatchSpace } from './batch-space.ts';
import type { Pipeline } from './pipeline.ts';

export interface DeliverSettings {
  readonly id: string;
  readonly type: string;
  readonly batch: { readonly records: number; readonly bytes: number; readonly wait: number };
  /** ms a send may take before its outcome counts as unknown. */
  readonly deadline: number;
  /** Whether the outcome of a send can be found out afterwards: then acknowledgements wait for the next transaction, at most a second. */
  readonly resolvable: boolean;
  /** ms blocked before the probe for people fails; Infinity: never. */
  readonly unreadyAfter: number;
}

export interface DeliveryParts {
  readonly settings: DeliverSettings;
  readonly journal: DeliverJournal;
  readonly pipeline: Pipeline;
  readonly open: (signal: AbortSignal) => Promise<Sink>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Meters;
}

/** Entries beyond the committed `acked` that were ever sent: a start has no more than these to be uncertain about. */
export const uncertainMost = 10_000;
const backoffFirstMs = 250;
const backoffMostMs = 60_000;
const blockedMs = 60_000;
/** What a sink asks us to wait is obeyed within these. */
const askedLeastMs = 1_000;
const askedMostMs = 900_000;
/** Entries that are not for this sink are acknowledged with the next batch, or alone after this long. */
const aloneMs = 10_000;
const groupedMs = 1_000;
const idleMostMs = 60_000;

/** Why a timer ends early; made once, since an error made for each would record the stack each time. */
const ended = new WaybillError('aborted', 'what was waited for has come');

/** A batch with the entries behind its messages: a dead letter keeps its own copy of the record. */
interface Prepared {
  readonly batch: Batch;
  readonly entries: ReadonlyMap<number, Entry>;
  /** An entry of which no message could be made; it stands alone in its batch. */
  readonly unmade: Rejection | undefined;
}

/** What became of a batch: taken but for the rejections, or, with `refused`, what is left of it refused whole. */
interface Answer extends Taken {
  readonly refused: string | undefined;
  readonly rest: readonly Message[];
}

export class Delivery {
  readonly #parts: DeliveryParts;
  /** The last entry that was read into a batch. */
  #cursor: number;
  /** The last entry that is acknowledged, in the file or waiting for its transaction. */
  #acked: number;
  /** Messages up to here may have been taken by an attempt whose answer never came. */
  #uncertain: number;
  #state: 'active' | 'waiting' | 'blocked' = 'active';
  #troubleSince: number | undefined;
  #lastError: string | undefined;
  #lastSuccess: Micros | undefined;
  /** When the oldest entry that is not acknowledged was received. */
  #oldest: Micros | undefined;
  #flushAt: number | undefined;
  #failures = 0;
  /** A message that was made but did not fit: it opens the next batch. */
  #ahead: Message | undefined;
  readonly #space = new BatchSpace();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    this.#cursor = this.#acked = parts.journal.sinkMarks(parts.settings.id).acked;
    this.#uncertain = this.#acked + uncertainMost;
  }

  /**
   * Runs until `stop` is aborted; the batch under way may go on until `abandon` is. What it throws is final: the process must end.
   */
  async run(stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        await using sink = await this.#open(abandon);
        await this.#resume(sink, abandon);
        await this.#deliver(sink, stop, abandon);
      } catch (thrown) {
        // A sink that cannot even be closed: what went wrong first is what counts.
        const cause: unknown = thrown instanceof SuppressedError ? thrown.suppressed : thrown;
        if (isFinal(cause)) throw cause;
        if (hasEnded(stop)) break;
        await this.#pause(cause, stop).catch(() => undefined);
      }
    }
    await this.#parts.journal.flush();
  }

  view(): Omit<SinkSnapshot, 'deadLetters'> {
    const { settings, journal, clock } = this.#parts;
    const since = this.#troubleSince;
    const isUnready = since !== undefined && clock.monotonic() - since > settings.unreadyAfter;
    const lag = journal.head().seq - this.#acked;
    return {
      id: settings.id,
      type: settings.type,
      state: this.#state,
      trouble: isUnready ? (this.#lastError ?? this.#state) : undefined,
      acked: this.#acked,
      lagRecords: lag,
      lagSeconds: lag === 0 || this.#oldest === undefined ? 0 : Math.max(0, clock.now() / 1000 - this.#oldest / 1e6),
      lastSuccess: this.#lastSuccess,
      lastError: this.#lastError,
    };
  }

  /** Opens the sink under its deadline; one that opens later than that is closed again. */
  async #open(abandon: AbortSignal): Promise<Sink> {
    const opening = this.#parts.open(abandon);
    try {
      return await this.#within(() => opening, abandon);
    } catch (thrown) {
      opening.then((sink) => sink[Symbol.asyncDispose]()).catch(() => undefined);
      throw thrown;
    }
  }

  /** A sink that keeps our position is asked for it: what it has is acknowledged, and everything goes on from there. */
  async #resume(sink: Sink, abandon: AbortSignal): Promise<void> {
    const { settings, journal } = this.#parts;
    await journal.flush();
    const found = sink.position
      ? await this.#within((signal) => sink.position?.(signal) ?? Promise.resolve(undefined), abandon)
      : undefined;
    if (found) await this.#compare(found.position);
    if (found && found.position.seq > journal.sinkMarks(settings.id).acked) {
      await journal.acknowledge(settings.id, { acked: found.position.seq, taken: found }, []);
    }
    this.#cursor = this.#acked = journal.sinkMarks(settings.id).acked;
    this.#oldest = (await journal.read(this.#acked, { records: 1, bytes: 1 }))[0]?.received;
    // What could not be opened is open now; what is still to be sent will show whether it takes.
    if (this.#state === 'blocked' || journal.head().seq === this.#acked) this.#recovered();
  }

  /** A position that this journal never had, or one before what it knows as taken: one of the two went back. */
  async #compare({ seq, chain }: Position): Promise<void> {
    const { settings, journal } = this.#parts;
    const { taken } = journal.sinkMarks(settings.id);
    const own = seq === taken.seq ? taken.chain : await journal.chainAt(seq);
    if (seq >= taken.seq && own && Buffer.compare(own, chain) === 0) return;
    const reason =
      seq < taken.seq ? `it had taken entry ${taken.seq} and now ends at ${seq}` : `it has entry ${seq}, which this state does not know`;
    throw new WaybillError(
      'sink_blocked',
      `cannot go on with sink "${settings.id}": ${reason}; restore the right state, or give it a new id`,
    );
  }

  async #deliver(sink: Sink, stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    let made: Prepared | undefined;
    while (!stop.aborted) {
      const prepared = made ?? (await this.#nextBatch(stop));
      made = undefined;
      if (prepared.unmade) {
        await this.#acknowledge(prepared, prepared.batch.through, undefined, [prepared.unmade], stop);
      } else if (prepared.batch.messages.length === 0) {
        this.#skip(prepared.batch.through);
      } else {
        const settled = this.#settle(sink, prepared, stop, abandon);
        settled.catch(() => undefined);
        // The next batch is made while this one is on its way; it is not sent before this one is settled.
        if (this.#waiting() >= this.#parts.settings.batch.records) made = await this.#prepare();
        await settled;
      }
      await this.#flushWhenDue(stop);
    }
  }

  #waiting(): number {
    return this.#parts.journal.head().seq - this.#cursor;
  }

  /** Waits until there is a batch to send: full, or `batch.wait` after its first entry was there. */
  async #nextBatch(stop: AbortSignal): Promise<Prepared> {
    const { journal, clock, settings } = this.#parts;
    let first: number | undefined;
    for (;;) {
      stop.throwIfAborted();
      const changed = journal.changed();
      const waiting = this.#waiting();
      if (waiting > 0 && first === undefined) {
        first = clock.monotonic();
        this.#oldest = (await journal.read(this.#cursor, { records: 1, bytes: 1 }))[0]?.received;
      }
      const left = first === undefined ? Infinity : first + settings.batch.wait - clock.monotonic();
      if (waiting >= settings.batch.records || left <= 0) return this.#prepare();
      await this.#flushWhenDue(stop);
      const untilFlush = this.#flushAt === undefined ? Infinity : this.#flushAt - clock.monotonic();
      await this.#sleep(changed, Math.max(1, Math.min(left, untilFlush)), stop);
    }
  }

  /** Reads entries and makes messages of them, until a limit of the batch is reached. */
  async #prepare(): Promise<Prepared> {
    const { journal, settings, pipeline } = this.#parts;
    const { records, bytes } = settings.batch;
    const read = await journal.read(this.#cursor, { records: Math.min(records, uncertainMost), bytes });
    this.#space.next();
    const messages: Message[] = [];
    const entries = new Map<number, Entry>();
    let size = 0;
    let last: Entry | undefined;
    let unmade: Rejection | undefined;
    for (const entry of read) {
      try {
        const message = this.#ahead?.seq === entry.seq ? this.#space.moved(this.#ahead) : pipeline(entry, this.#space.put);
        if (message) {
          const { length } = message.bytes;
          if (messages.length > 0 && size + length > bytes) {
            this.#ahead = message;
            break;
          }
          messages.push(message);
          entries.set(entry.seq, entry);
          size += length;
        }
      } catch (thrown) {
        // Normalize and encode are total. Should one throw all the same, the record is a dead letter, in a batch of its own.
        if (messages.length > 0) break;
        entries.set(entry.seq, entry);
        unmade = { seq: entry.seq, code: 'cannot_encode', words: wordsOf(thrown) };
      }
      last = entry;
      if (unmade || size >= bytes) break;
    }
    if (!last) throw new WaybillError('invariant', `sink "${settings.id}" was to read behind entry ${this.#cursor}, and there is none`);
    this.#cursor = last.seq;
    const through: Position = { seq: last.seq, chain: last.chain };
    const uncertain = (messages[0]?.seq ?? Infinity) <= this.#uncertain;
    return { batch: { messages, through, uncertain, bytes: size }, entries, unmade };
  }

  /** Sends a batch until all of it is acknowledged. One that is refused whole is halved, in order, down to the message that is to blame. */
  async #settle(sink: Sink, prepared: Prepared, stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    const { journal, settings } = this.#parts;
    this.#oldest = prepared.entries.values().next().value?.received ?? this.#oldest;
    const parts: Batch[] = [prepared.batch];
    // Of messages that were refused while others of their batch are still to be sent.
    let refused: readonly Rejection[] = [];
    for (let part = parts.shift(); part; part = parts.shift()) {
      // A batch is sent only if its last entry lies within 10,000 of what is acknowledged in the file.
      if (part.through.seq > journal.sinkMarks(settings.id).acked + uncertainMost) await this.#flush(stop);
      const { through } = part;
      const answer = await this.#send(sink, part, stop, abandon);
      refused = [...refused, ...answer.rejections];
      const isLater = ({ seq }: Rejection): boolean => seq > through.seq && prepared.entries.has(seq);
      const due = refused.filter((rejection) => !isLater(rejection));
      const [only] = answer.rest;
      if (answer.refused === undefined) {
        this.#succeeded(part, answer);
        await this.#acknowledge(prepared, through, { position: through, note: answer.note }, due, stop);
      } else if (answer.rest.length > 1) {
        part = batchOf(part, answer.rest);
        parts.unshift(...halve(part, prepared.entries));
        continue;
      } else if (only) {
        await this.#acknowledge(prepared, through, undefined, [...due, { seq: only.seq, code: 'refused', words: answer.refused }], stop);
      }
      refused = refused.filter(isLater);
    }
  }

  /** One batch until the sink has taken it, or refuses whole what is left of it. Throws when the outcome is unknown. */
  async #send(sink: Sink, given: Batch, stop: AbortSignal, abandon: AbortSignal): Promise<Answer> {
    let batch = given;
    const rejections: Rejection[] = [];
    for (;;) {
      try {
        const taken = await this.#within((signal) => sink.send(batch, signal), abandon);
        rejections.push(...taken.rejections);
        if (taken.duplicates) this.#parts.meters.sinkDuplicates(this.#parts.settings.id, taken.duplicates);
        const { again } = taken;
        if (again === undefined || again.seqs.length === 0) return { rejections, note: taken.note, refused: undefined, rest: [] };
        const left = new Set(again.seqs);
        batch = batchOf(
          batch,
          batch.messages.filter(({ seq }) => left.has(seq)),
        );
        await this.#pause(new WaybillError(again.code, again.words, { retryAfterMs: again.retryAfterMs }), stop);
      } catch (thrown) {
        const code = codeOf(thrown);
        if (code === 'sink_again' || code === 'sink_blocked') {
          await this.#pause(thrown, stop);
          continue;
        }
        this.#uncertain = Math.max(this.#uncertain, batch.through.seq);
        if (code === 'sink_refused') return { rejections, note: undefined, refused: wordsOf(thrown), rest: batch.messages };
        // It may still read from there, past its deadline.
        this.#space.renew();
        throw thrown;
      }
    }
  }

  async #acknowledge(
    prepared: Prepared,
    through: Position,
    taken: { readonly position: Position; readonly note: string | undefined } | undefined,
    rejections: readonly Rejection[],
    stop: AbortSignal,
  ): Promise<void> {
    const { journal, settings, clock, log } = this.#parts;
    const acknowledgement = { acked: through.seq, taken };
    const letters = rejections.map((rejection) => {
      const entry = prepared.entries.get(rejection.seq);
      if (entry) return { entry, rejection, tries: 1 };
      throw new WaybillError('sink_blocked', `sink "${settings.id}" refused entry ${rejection.seq}, which was not in its batch`);
    });
    this.#acked = through.seq;
    if (rejections.length === 0 && settings.resolvable) {
      journal.acknowledgeLater(settings.id, acknowledgement);
      this.#flushAt = Math.min(this.#flushAt ?? Infinity, clock.monotonic() + groupedMs);
      return;
    }
    await this.#commit(() => journal.acknowledge(settings.id, acknowledgement, letters), stop);
    this.#flushAt = undefined;
    // The server's words may quote the record: they stand in the dead letter, not in the log.
    for (const { seq, code } of rejections) log.error({ sink: settings.id, seq, code }, 'dead letter');
  }

  /** Entries that are not for this sink: acknowledged with the next batch, or alone after a while. */
  #skip(through: Position): void {
    const { journal, settings, clock } = this.#parts;
    this.#acked = through.seq;
    journal.acknowledgeLater(settings.id, { acked: through.seq, taken: undefined });
    this.#flushAt ??= clock.monotonic() + aloneMs;
  }

  async #flushWhenDue(stop: AbortSignal): Promise<void> {
    if (this.#flushAt !== undefined && this.#parts.clock.monotonic() >= this.#flushAt) await this.#flush(stop);
  }

  async #flush(stop: AbortSignal): Promise<void> {
    await this.#commit(() => this.#parts.journal.flush(), stop);
    this.#flushAt = undefined;
  }

  /** On a full disk the write is tried again, not the send; meanwhile nothing is sent. */
  async #commit(write: () => Promise<void>, stop: AbortSignal): Promise<void> {
    for (let hasFailed = false; ; hasFailed = true) {
      try {
        await write();
        if (hasFailed) this.#recovered();
        return;
      } catch (thrown) {
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        await this.#pause(thrown, stop);
      }
    }
  }

  #recovered(): void {
    this.#state = 'active';
    this.#troubleSince = undefined;
    this.#failures = 0;
  }

  #succeeded({ messages }: Batch, { rejections }: Taken): void {
    const { settings, meters, clock, log } = this.#parts;
    const now = clock.now();
    const oldest = messages.reduce((least, message) => Math.min(least, message.time), Infinity);
    const delaySeconds = Math.max(0, now / 1000 - oldest / 1e6);
    if (this.#lastSuccess === undefined) {
      log.info({ sink: settings.id, messages: messages.length, delaySeconds: Math.round(delaySeconds * 1000) / 1000 }, 'first event taken');
    } else if (this.#state !== 'active') log.info({ sink: settings.id }, 'sink takes again');
    this.#recovered();
    this.#lastSuccess = now * 1000;
    meters.eventsSent(settings.id, messages.length - rejections.length);
    // One delay a batch, that of its oldest message: what a person waits for.
    meters.deliveryDelay(settings.id, delaySeconds);
  }

  async #pause(thrown: unknown, stop: AbortSignal): Promise<void> {
    const { settings, clock, random, log } = this.#parts;
    const isBlocked = codeOf(thrown) === 'sink_blocked' || codeOf(thrown) === 'file_lost_data';
    this.#state = isBlocked ? 'blocked' : 'waiting';
    this.#troubleSince ??= clock.monotonic();
    this.#lastError = wordsOf(thrown);
    const asked = thrown instanceof WaybillError ? thrown.retryAfterMs : undefined;
    const most = Math.min(backoffMostMs, backoffFirstMs * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    const obeyed = asked === undefined ? undefined : Math.min(askedMostMs, Math.max(askedLeastMs, asked));
    const waitMs = obeyed ?? (isBlocked ? blockedMs : Math.max(50, random() * most));
    const fields = { sink: settings.id, code: codeOf(thrown), waitMs: Math.round(waitMs), error: thrown };
    if (isBlocked) log.error(fields, 'sink is blocked');
    else log.warn(fields, 'sink does not take');
    await clock.sleep(waitMs, stop);
  }

  /** Runs one call of the sink under its deadline: passing it means that the outcome is unknown. */
  async #within<Result>(call: (signal: AbortSignal) => Promise<Result>, abandon: AbortSignal): Promise<Result> {
    const { settings, clock } = this.#parts;
    const over = new AbortController();
    const signal = AbortSignal.any([abandon, over.signal]);
    const timer = clock.sleep(settings.deadline, signal).then(() => {
      throw new WaybillError('sink_unknown', `sink "${settings.id}" did not answer within ${settings.deadline / 1000} s`);
    });
    try {
      return await Promise.race([call(signal), timer]);
    } finally {
      over.abort(ended);
      timer.catch(() => undefined);
    }
  }

  /** Sleeps, but no longer than until something is appended. */
  async #sleep(changed: Promise<unknown>, ms: number, stop: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const most = Math.min(ms, idleMostMs);
    const slept = this.#parts.clock.sleep(most, AbortSignal.any([stop, woken.signal])).catch(() => undefined);
    await Promise.race([changed, slept]);
    woken.abort(ended);
    await slept;
  }
}

/** Asked anew after an await: the compiler remembers what the loop's condition found. */
function hasEnded(stop: AbortSignal): boolean {
  return stop.aborted;
}

/** Two batches in order; the lower one settles up to its own last message. Both are uncertain: a large request may be read in parts. */
function halve(batch: Batch, entries: ReadonlyMap<number, Entry>): [Batch, Batch] {
  const middle = Math.ceil(batch.messages.length / 2);
  const lower = batch.messages.slice(0, middle);
  const upper = batch.messages.slice(middle);
  const last = entries.get(lower.at(-1)?.seq ?? 0);
  const through = last ? { seq: last.seq, chain: last.chain } : batch.through;
  return [batchOf({ ...batch, through, uncertain: true }, lower), batchOf({ ...batch, uncertain: true }, upper)];
}

/** The same batch with these messages alone. */
function batchOf(batch: Batch, messages: readonly Message[]): Batch {
  return { ...batch, messages, bytes: messages.reduce((sum, message) => sum + message.bytes.length, 0) };
}
