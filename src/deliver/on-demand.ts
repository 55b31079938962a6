/**
 * What a person has a sink gets in addition to its batches, between two of them and on the sink that is open: a dead letter once more, events to try it
 * out, a range of the journal again (replay.ts). Positions do not move.
 */
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { DeliverJournal, Entry, DeadLetterResult, Limit, Operation, ReplayRange } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch, Message, Rejection, DeliveryResult } from '../model/sink.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { batchOf } from './batcher.ts';
import type { Pipeline } from './pipeline.ts';
import { Replay } from './replay.ts';

/** What the sink has answered: all but the refused and those that are left are taken. */
export interface OnDemandAnswer {
  readonly rejected: readonly Rejection[];
  readonly resumeNote: string | undefined;
  /** Messages that were not taken and may be later, and the reason. */
  readonly left?: readonly number[];
  readonly error?: WaybillError;
}

/** Messages that are sent once, and answered for at once. */
interface OnDemandSend {
  readonly onDemand: 'retry' | 'test';
  readonly messages: readonly Message[];
  /** Writes down what came of it, before anybody is told. */
  readonly keep: (answer: OnDemandAnswer) => Promise<void>;
  readonly resolve: (answer: OnDemandAnswer) => void;
  readonly reject: (cause: WaybillError) => void;
}

export interface OnDemandParts {
  readonly id: string;
  readonly limit: Limit;
  readonly journal: DeliverJournal;
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
  /** Called when there is something to do. */
  readonly wake: () => void;
  /** Why the sink does not take now; undefined: it does. */
  readonly away: () => WaybillError | undefined;
  /** Up to where the sink has everything. */
  readonly acknowledged: () => number;
}

/** The open sink, as the loop lends it between two batches. */
export interface Turn {
  /** The position that the sink has. */
  readonly present: Position;
  /** One attempt. */
  readonly send: (batch: Batch) => Promise<DeliveryResult>;
  /** Until all of it is taken or a dead letter. @returns how many were refused */
  readonly acknowledge: (batch: Batch, entries: ReadonlyMap<number, Entry>) => Promise<number>;
  /** Keeps an entry of which no message can be made. */
  readonly deadLetter: (entries: ReadonlyMap<number, Entry>, rejection: Rejection) => Promise<void>;
  /** Writes to the journal, again while there is no room. */
  readonly commit: (write: () => Promise<void>) => Promise<void>;
  /** Lets everybody else have a turn. */
  readonly yield: () => Promise<void>;
}

export class OnDemand {
  readonly #parts: OnDemandParts;
  #sends: OnDemandSend[] = [];
  /** Dead letters that the sink took since this loop began, or said that it had taken when it was opened. */
  readonly #delivered = new Set<number>();
  #replay: Replay | undefined;

  constructor(parts: OnDemandParts) {
    this.#parts = parts;
  }

  get isWaiting(): boolean {
    return this.#sends.length > 0 || this.#replay?.isRunning === true;
  }

  /** The one under way, or the last that ended. */
  get replayed(): Replay | undefined {
    return this.#replay;
  }

  /**
   * Sends dead letters once more, in batches as the sink takes them. What is taken is gone; what is refused stays, with what was said last.
   * @throws WaybillError `usage` where there is nothing to send, `sink_unavailable`, `sink_blocked` or `sink_outcome_unknown` when the sink did not say of all of them;
   *         what it did say is committed
   */
  async retry(seqs: readonly number[], operation: Operation): Promise<OnDemandAnswer> {
    const { id, journal, pipeline, limit } = this.#parts;
    const acknowledge = async (seq: number, result: DeadLetterResult): Promise<void> =>
      journal.resolveDeadLetter(id, seq, result, operation);
    const messages: Message[] = [];
    const rejected: Rejection[] = [];
    for (const seq of new Set(seqs)) {
      const entry = await journal.deadLetter(id, seq);
      if (!entry && this.#delivered.has(seq)) continue;
      if (!entry) throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": it is no dead letter that is kept`);
      let message: Message | undefined;
      try {
        message = pipeline(entry, (text) => Buffer.from(text, 'utf8'));
      } catch (thrown) {
        rejected.push({ seq, code: 'cannot_encode', message: messageOf(thrown) });
        continue;
      }
      if (!message)
        throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": it is not for this sink any more (sources, filter)`);
      messages.push(message);
    }
    for (const rejection of rejected) await acknowledge(rejection.seq, { delivered: false, rejection });
    let resumeNote: string | undefined;
    for (const part of inBatches(messages, limit)) {
      const answer = await this.#enqueue('retry', part, async ({ rejected: answered, left = [], resumeNote: newNote }) => {
        for (const { seq } of part) {
          const rejection = answered.find((each) => each.seq === seq);
          if (!left.includes(seq))
            await acknowledge(seq, rejection ? { delivered: false, rejection } : { delivered: true, resumeNote: newNote });
        }
      });
      rejected.push(...answer.rejected);
      resumeNote = answer.resumeNote;
    }
    return { rejected, resumeNote };
  }

  /**
   * A dead letter that the sink says it took by an attempt whose answer came to nobody: it is gone, as if the answer had come. Who had it sent is not
   * known any more.
   */
  async found(seq: number): Promise<void> {
    const { id, journal, clock } = this.#parts;
    if (!(await journal.deadLetter(id, seq))) return;
    const operation = { at: clock.now() * 1000, actor: null, operation: 'dead-letters retry', detail: { found: true } };
    await journal.resolveDeadLetter(id, seq, { delivered: true, resumeNote: undefined }, operation);
    this.#delivered.add(seq);
  }

  /** Sends events that are in no journal. Throws as `retry`. */
  async test(messages: readonly Message[]): Promise<OnDemandAnswer> {
    const { id, journal } = this.#parts;
    return this.#enqueue('test', messages, async ({ resumeNote }) => {
      if (resumeNote !== undefined && resumeNote !== journal.sinkProgress(id).resumeNote) await journal.commitResumeNote(id, resumeNote);
    });
  }

  /** Begins to send a range of the journal again, at most what is acknowledged. @throws WaybillError `usage` while a replay is under way */
  replay(range: ReplayRange, expected: number, isDeadLetter: (seq: number) => boolean): void {
    if (this.#replay?.isRunning) throw new WaybillError('usage', 'cannot begin a replay: one is under way for this sink');
    const { journal, pipeline, limit, clock, acknowledged, wake } = this.#parts;
    const last = Math.min(range.last, acknowledged());
    this.#replay = new Replay({ journal, pipeline, limit, range: { ...range, last }, expected, isDeadLetter, began: clock.now() });
    wake();
  }

  /** One step of what is asked for. Throws what the sink throws when the outcome is unknown. */
  async step(turn: Turn): Promise<void> {
    const send = this.#sends.shift();
    if (send) await this.#send(send, turn);
    else if (this.#replay?.isRunning) await this.#stepReplay(this.#replay, turn);
  }

  /** The sink is in trouble: nobody waits for one that is away. A replay goes on when it is back. */
  giveUp(cause: WaybillError): void {
    for (const { reject } of this.#sends.splice(0)) reject(cause);
  }

  #enqueue(onDemand: OnDemandSend['onDemand'], messages: readonly Message[], keep: OnDemandSend['keep']): Promise<OnDemandAnswer> {
    const away = this.#parts.away();
    if (away) throw away;
    return new Promise((resolve, reject) => {
      this.#sends.push({ onDemand, messages, keep, resolve, reject });
      this.#parts.wake();
    });
  }

  async #send({ messages: given, onDemand, keep, resolve, reject }: OnDemandSend, turn: Turn): Promise<void> {
    const { id, meters, journal } = this.#parts;
    const messages: Message[] = [];
    // Asked for twice before it was its turn, it is sent once.
    for (const message of given)
      if (onDemand !== 'retry' || !this.#delivered.has(message.seq) || (await journal.deadLetter(id, message.seq))) messages.push(message);
    if (messages.length === 0) {
      resolve({ rejected: [], resumeNote: undefined });
      return;
    }
    const batch = batchOf({ messages, through: turn.present, uncertain: true, bytes: 0, onDemand }, messages);
    try {
      const answer = await answerOf(batch, turn);
      const { left = [], rejected, error } = answer;
      await turn.commit(() => keep(answer));
      const gone = messages.filter(({ seq }) => !left.includes(seq) && !rejected.some((each) => each.seq === seq));
      if (onDemand === 'retry') {
        for (const { seq } of gone) this.#delivered.add(seq);
        meters.eventsDelivered(id, gone.length);
      }
      if (error) reject(error);
      else resolve(answer);
    } catch (thrown) {
      const code = codeOf(thrown);
      const isAway = code === 'sink_unavailable' || code === 'sink_blocked';
      reject(new WaybillError(isAway ? code : 'sink_outcome_unknown', messageOf(thrown), { cause: thrown }));
      if (!isAway) throw thrown;
    }
  }

  async #stepReplay(replay: Replay, turn: Turn): Promise<void> {
    const { id, clock, log } = this.#parts;
    const prepared = await replay.next();
    if (!prepared) {
      await turn.commit(() => this.#parts.journal.resent(id, replay.resent()));
      replay.end(clock.now());
      const { sent, rejected, first, last } = replay.progress();
      log.write('sink.replay_completed', { sink: id, from: first, through: last, sent, rejected });
      return;
    }
    const { messages, entries, unmade } = prepared;
    let rejected = 0;
    if (unmade) {
      await turn.deadLetter(entries, unmade);
      rejected = 1;
    } else if (messages.length > 0) rejected = await turn.acknowledge(replay.batchOf(prepared, turn.present), entries);
    else await turn.yield();
    replay.acknowledged(prepared, rejected);
  }
}

/** One attempt. A batch that is refused whole is halved, down to the message that is to blame. Throws what else the sink throws. */
async function answerOf(batch: Batch, turn: Turn): Promise<OnDemandAnswer> {
  const { messages } = batch;
  try {
    const { rejections, retryable: retry, resumeNote } = await turn.send(batch);
    if (!retry || retry.seqs.length === 0) return { rejected: rejections, resumeNote };
    return { rejected: rejections, resumeNote, left: retry.seqs, error: new WaybillError(retry.code, retry.message) };
  } catch (thrown) {
    if (codeOf(thrown) !== 'sink_refused') throw thrown;
    const message = messageOf(thrown);
    if (messages.length <= 1) return { rejected: messages.map(({ seq }) => ({ seq, code: 'refused', message })), resumeNote: undefined };
    const middle = Math.ceil(messages.length / 2);
    const lower = await answerOf(batchOf(batch, messages.slice(0, middle)), turn);
    const later = messages.slice(middle);
    if (lower.error) return { ...lower, left: [...(lower.left ?? []), ...later.map(({ seq }) => seq)] };
    const upper = await answerOf(batchOf(batch, later), turn);
    return { ...upper, rejected: [...lower.rejected, ...upper.rejected], resumeNote: upper.resumeNote ?? lower.resumeNote };
  }
}

/** The messages in order, in batches within the limit; one that is longer by itself goes alone. */
function inBatches(messages: readonly Message[], { records, bytes }: Limit): Message[][] {
  const made: Message[][] = [];
  let size = 0;
  for (const message of messages) {
    const last = made.at(-1);
    size += message.bytes.length;
    if (last && last.length < records && size <= bytes) last.push(message);
    else {
      made.push([message]);
      size = message.bytes.length;
    }
  }
  return made;
}
