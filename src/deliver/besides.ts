/**
 * What a person has a sink get besides its batches, between two of them and on the sink that is open: a dead letter once more, events to try it
 * out, a range of the journal again (replay.ts). Positions do not move.
 */
import { codeOf, WaybillError, wordsOf } from '../errors.ts';
import type {
  Batch,
  Clock,
  DeliverJournal,
  Entry,
  Limit,
  Log,
  Message,
  Meters,
  Operation,
  Position,
  Rejection,
  ReplayRange,
  Taken,
} from '../model.ts';
import { batchOf } from './batches.ts';
import type { Pipeline } from './pipeline.ts';
import { Replay } from './replay.ts';

/** What the sink has answered: all but the refused are taken. */
export interface ShotAnswer {
  readonly refused: readonly Rejection[];
  readonly note: string | undefined;
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
   * Sends a dead letter once more. Taken, it is gone; refused, it stays, with what was said last.
   * @throws WaybillError `usage` where there is nothing to send, `sink_again`, `sink_blocked` or `sink_unknown` when the sink did not say
   */
  async retry(seq: number, operation: Operation): Promise<ShotAnswer> {
    const { id, journal, pipeline } = this.#parts;
    const entry = await journal.letter(id, seq);
    if (!entry && this.#taken.has(seq)) return { refused: [], note: undefined };
    if (!entry) throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": it is no dead letter that is kept`);
    const keep = ({ refused: [rejection], note }: ShotAnswer): Promise<void> =>
      journal.settleLetter(id, seq, rejection ? { taken: false, rejection } : { taken: true, note }, operation);
    let message: Message | undefined;
    try {
      message = pipeline(entry, (text) => Buffer.from(text, 'utf8'));
    } catch (thrown) {
      const answer = { refused: [{ seq, code: 'cannot_encode', words: wordsOf(thrown) }], note: undefined };
      await keep(answer);
      return answer;
    }
    if (message) return this.#shoot('retry', [message], keep);
    throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": it is not for this sink any more (sources, where)`);
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

  async #send({ messages, besides, keep, resolve, reject }: Shot, turn: Turn): Promise<void> {
    const { id, meters } = this.#parts;
    const [message] = messages;
    // Asked for twice before it was its turn, it is sent once.
    if (besides === 'retry' && message && this.#taken.has(message.seq) && !(await this.#parts.journal.letter(id, message.seq))) {
      resolve({ refused: [], note: undefined });
      return;
    }
    const batch = batchOf({ messages, through: turn.present, uncertain: true, bytes: 0, besides }, messages);
    try {
      const answer = await answerOf(batch, turn);
      await turn.commit(() => keep(answer));
      if (besides === 'retry' && message && answer.refused.length === 0) this.#taken.add(message.seq);
      if (besides === 'retry') meters.eventsSent(id, messages.length - answer.refused.length);
      resolve(answer);
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

/** One attempt. Throws what the sink throws, but for a refusal of all of it. */
async function answerOf(batch: Batch, { send }: Turn): Promise<ShotAnswer> {
  try {
    const { rejections, again, note } = await send(batch);
    if (again && again.seqs.length > 0) throw new WaybillError(again.code, again.words);
    return { refused: rejections, note };
  } catch (thrown) {
    if (codeOf(thrown) !== 'sink_refused') throw thrown;
    const words = wordsOf(thrown);
    return { refused: batch.messages.map(({ seq }) => ({ seq, code: 'refused', words })), note: undefined };
  }
}
