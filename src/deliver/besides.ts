/**
 * What a person has a sink get besides its batches, between two of them and on the sink that is open: a dead letter once more, events to try it
 * out, a range of the journal again (replay.ts). Positions do not move.
 */
import { codeOf, WaybillError, wordsOf } from '../errors.ts';
import type { DeliverJournal, Entry, LetterFate, Limit, Operation, ReplayRange } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch, Message, Rejection, Taken } from '../model/sink.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { batchOf } from './batches.ts';
import type { Pipeline } from './pipeline.ts';
import { Replay } from './replay.ts';

/** What the sink has answered: all but the refused and those that are left are taken. */
export interface ShotAnswer {
  readonly refused: readonly Rejection[];
  readonly note: string | undefined;
  /** Messages that were not taken and may be later, and why. */
  readonly left?: readonly number[];
  readonly why?: WaybillError;
}

/** Messages that are sent once, and answered for at once. */
interface Shot {
  readonly besides: 'retry' | 'test';
  readonly messages: readonly Message[];
  /** Writes down what came of it, before anybody is told. */
  readonly keep: (answer: ShotAnswer) => Promise<void>;
  readonly resolve: (answer: ShotAnswer) => void;
  readonly reject: (cause: WaybillError) => void;
}

export interface BesidesParts {
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
  readonly acked: () => number;
}

/** The open sink, as the loop lends it between two batches. */
export interface Turn {
  /** The position that the sink has. */
  readonly present: Position;
  /** One attempt. */
  readonly send: (batch: Batch) => Promise<Taken>;
  /** Until all of it is taken or a dead letter. @returns how many were refused */
  readonly settle: (batch: Batch, entries: ReadonlyMap<number, Entry>) => Promise<number>;
  /** Keeps an entry of which no message can be made. */
  readonly bury: (entries: ReadonlyMap<number, Entry>, rejection: Rejection) => Promise<void>;
  /** Writes to the journal, again while there is no room. */
  readonly commit: (write: () => Promise<void>) => Promise<void>;
  /** Lets everybody else have a turn. */
  readonly yield: () => Promise<void>;
}

export class Besides {
  readonly #parts: BesidesParts;
  #shots: Shot[] = [];
  /** Dead letters that the sink took since this loop began, or said that it had taken when it was opened. */
  readonly #taken = new Set<number>();
  #replay: Replay | undefined;

  constructor(parts: BesidesParts) {
    this.#parts = parts;
  }

  get isWaiting(): boolean {
    return this.#shots.length > 0 || this.#replay?.isRunning === true;
  }

  /** The one under way, or the last that ended. */
  get replayed(): Replay | undefined {
    return this.#replay;
  }

  /**
   * Sends dead letters once more, in batches as the sink takes them. What is taken is gone; what is refused stays, with what was said last.
   * @throws WaybillError `usage` where there is nothing to send, `sink_again`, `sink_blocked` or `sink_unknown` when the sink did not say of all of them;
   *         what it did say is settled
   */
  async retry(seqs: readonly number[], operation: Operation): Promise<ShotAnswer> {
    const { id, journal, pipeline, limit } = this.#parts;
    const settle = async (seq: number, fate: LetterFate): Promise<void> => journal.settleLetter(id, seq, fate, operation);
    const messages: Message[] = [];
    const refused: Rejection[] = [];
    for (const seq of new Set(seqs)) {
      const entry = await journal.letter(id, seq);
      if (!entry && this.#taken.has(seq)) continue;
      if (!entry) throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": it is no dead letter that is kept`);
      let message: Message | undefined;
      try {
        message = pipeline(entry, (text) => Buffer.from(text, 'utf8'));
      } catch (thrown) {
        refused.push({ seq, code: 'cannot_encode', words: wordsOf(thrown) });
        continue;
      }
      if (!message)
        throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": it is not for this sink any more (sources, where)`);
      messages.push(message);
    }
    for (const rejection of refused) await settle(rejection.seq, { taken: false, rejection });
    let note: string | undefined;
    for (const part of inBatches(messages, limit)) {
      const answer = await this.#shoot('retry', part, async ({ refused: said, left = [], note: newNote }) => {
        for (const { seq } of part) {
          const rejection = said.find((each) => each.seq === seq);
          if (!left.includes(seq)) await settle(seq, rejection ? { taken: false, rejection } : { taken: true, note: newNote });
        }
      });
      refused.push(...answer.refused);
      note = answer.note;
    }
    return { refused, note };
  }

  /**
   * A dead letter that the sink says it took by an attempt whose answer came to nobody: it is gone, as if the answer had come. Who had it sent is not
   * known any more.
   */
  async found(seq: number): Promise<void> {
    const { id, journal, clock } = this.#parts;
    if (!(await journal.letter(id, seq))) return;
    const operation = { at: clock.now() * 1000, who: null, what: 'dead-letters retry', detail: { found: true } };
    await journal.settleLetter(id, seq, { taken: true, note: undefined }, operation);
    this.#taken.add(seq);
  }

  /** Sends events that are in no journal. Throws as `retry`. */
  async test(messages: readonly Message[]): Promise<ShotAnswer> {
    const { id, journal } = this.#parts;
    return this.#shoot('test', messages, async ({ note }) => {
      if (note !== undefined && note !== journal.sinkMarks(id).note) await journal.commitNote(id, note);
    });
  }

  /** Begins to send a range of the journal again, at most what is acknowledged. @throws WaybillError `usage` while a replay is under way */
  replay(range: ReplayRange, expected: number, isLetter: (seq: number) => boolean): void {
    if (this.#replay?.isRunning) throw new WaybillError('usage', 'cannot begin a replay: one is under way for this sink');
    const { journal, pipeline, limit, clock, acked, wake } = this.#parts;
    const last = Math.min(range.last, acked());
    this.#replay = new Replay({ journal, pipeline, limit, range: { ...range, last }, expected, isLetter, began: clock.now() });
    wake();
  }

  /** One step of what is asked for. Throws what the sink throws when the outcome is unknown. */
  async step(turn: Turn): Promise<void> {
    const shot = this.#shots.shift();
    if (shot) await this.#send(shot, turn);
    else if (this.#replay?.isRunning) await this.#stepReplay(this.#replay, turn);
  }

  /** The sink is in trouble: nobody waits for one that is away. A replay goes on when it is back. */
  giveUp(cause: WaybillError): void {
    for (const { reject } of this.#shots.splice(0)) reject(cause);
  }

  #shoot(besides: Shot['besides'], messages: readonly Message[], keep: Shot['keep']): Promise<ShotAnswer> {
    const away = this.#parts.away();
    if (away) throw away;
    return new Promise((resolve, reject) => {
      this.#shots.push({ besides, messages, keep, resolve, reject });
      this.#parts.wake();
    });
  }

  async #send({ messages: given, besides, keep, resolve, reject }: Shot, turn: Turn): Promise<void> {
    const { id, meters, journal } = this.#parts;
    const messages: Message[] = [];
    // Asked for twice before it was its turn, it is sent once.
    for (const message of given)
      if (besides !== 'retry' || !this.#taken.has(message.seq) || (await journal.letter(id, message.seq))) messages.push(message);
    if (messages.length === 0) {
      resolve({ refused: [], note: undefined });
      return;
    }
    const batch = batchOf({ messages, through: turn.present, uncertain: true, bytes: 0, besides }, messages);
    try {
      const answer = await answerOf(batch, turn);
      const { left = [], refused, why } = answer;
      await turn.commit(() => keep(answer));
      const gone = messages.filter(({ seq }) => !left.includes(seq) && !refused.some((each) => each.seq === seq));
      if (besides === 'retry') {
        for (const { seq } of gone) this.#taken.add(seq);
        meters.eventsSent(id, gone.length);
      }
      if (why) reject(why);
      else resolve(answer);
    } catch (thrown) {
      const code = codeOf(thrown);
      const isAway = code === 'sink_again' || code === 'sink_blocked';
      reject(new WaybillError(isAway ? code : 'sink_unknown', wordsOf(thrown), { cause: thrown }));
      if (!isAway) throw thrown;
    }
  }

  async #stepReplay(replay: Replay, turn: Turn): Promise<void> {
    const { id, clock, log } = this.#parts;
    const prepared = await replay.next();
    if (!prepared) {
      await turn.commit(() => this.#parts.journal.resent(id, replay.resent()));
      replay.end(clock.now());
      const { sent, refused, first, last } = replay.progress();
      log.info({ sink: id, from: first, through: last, sent, refused }, 'replay ended');
      return;
    }
    const { messages, entries, unmade } = prepared;
    let refused = 0;
    if (unmade) {
      await turn.bury(entries, unmade);
      refused = 1;
    } else if (messages.length > 0) refused = await turn.settle(replay.batchOf(prepared, turn.present), entries);
    else await turn.yield();
    replay.settled(prepared, refused);
  }
}

/** One attempt. A batch that is refused whole is halved, down to the message that is to blame. Throws what else the sink throws. */
async function answerOf(batch: Batch, turn: Turn): Promise<ShotAnswer> {
  const { messages } = batch;
  try {
    const { rejections, again, note } = await turn.send(batch);
    if (!again || again.seqs.length === 0) return { refused: rejections, note };
    return { refused: rejections, note, left: again.seqs, why: new WaybillError(again.code, again.words) };
  } catch (thrown) {
    if (codeOf(thrown) !== 'sink_refused') throw thrown;
    const words = wordsOf(thrown);
    if (messages.length <= 1) return { refused: messages.map(({ seq }) => ({ seq, code: 'refused', words })), note: undefined };
    const middle = Math.ceil(messages.length / 2);
    const lower = await answerOf(batchOf(batch, messages.slice(0, middle)), turn);
    const later = messages.slice(middle);
    if (lower.why) return { ...lower, left: [...(lower.left ?? []), ...later.map(({ seq }) => seq)] };
    const upper = await answerOf(batchOf(batch, later), turn);
    return { ...upper, refused: [...lower.refused, ...upper.refused], note: upper.note ?? lower.note };
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
