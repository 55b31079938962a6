/**
 * What a person has a sink get besides its batches, between two of them and on the sink that is open: a dead letter once more, events to try it
 * out, a range of the journal again. Positions do not move.
 */
import { WaybillError } from '../errors.ts';
import type { Batch, DeliverJournal, Entry, Limit, Message, Position, Rejection, ReplayProgress, ReplayRange } from '../model.ts';
import { Batches, type Prepared } from './batches.ts';
import type { Pipeline } from './pipeline.ts';

/** Messages that are sent once, and answered for at once. */
export interface Shot {
  readonly besides: 'retry' | 'test';
  readonly messages: readonly Message[];
  /** Writes down what came of it, before anybody is told. */
  readonly keep: (answer: ShotAnswer) => Promise<void>;
}

/** What the sink has answered: all but the refused are taken. */
export interface ShotAnswer {
  readonly refused: readonly Rejection[];
  readonly note: string | undefined;
}

interface Waiting extends Shot {
  readonly resolve: (answer: ShotAnswer) => void;
  readonly reject: (cause: WaybillError) => void;
}

export class Besides {
  #shots: Waiting[] = [];
  #replay: Replay | undefined;
  readonly #wake: () => void;

  /** `wake` is called when there is something to do. */
  constructor(wake: () => void) {
    this.#wake = wake;
  }

  get isWaiting(): boolean {
    return this.#shots.length > 0 || this.#replay?.isRunning === true;
  }

  /** @throws WaybillError `sink_again` when the sink does not take now, or does not answer: nothing waits for a sink that is away */
  shoot(shot: Shot): Promise<ShotAnswer> {
    return new Promise((resolve, reject) => {
      this.#shots.push({ ...shot, resolve, reject });
      this.#wake();
    });
  }

  nextShot(): Waiting | undefined {
    return this.#shots.shift();
  }

  /** The sink is in trouble: whoever waits is told. */
  giveUp(cause: WaybillError): void {
    for (const { reject } of this.#shots.splice(0)) reject(cause);
  }

  /** Begins a replay; it goes on in the loop. @throws WaybillError `usage` while another one is under way */
  begin(replay: Replay): void {
    if (this.#replay?.isRunning) throw new WaybillError('usage', 'cannot begin a replay: one is under way for this sink');
    this.#replay = replay;
    this.#wake();
  }

  get replay(): Replay | undefined {
    return this.#replay;
  }
}

export interface ReplayParts {
  readonly journal: Pick<DeliverJournal, 'read' | 'pruned' | 'segmentOf'>;
  readonly pipeline: Pipeline;
  readonly limit: Limit;
  readonly range: ReplayRange;
  /** About how many entries it has. */
  readonly expected: number;
  /** Dead letters have a command of their own. */
  readonly isLetter: (seq: number) => boolean;
  /** Wall clock, ms. */
  readonly began: number;
}

/** A range of the journal on its way to one sink once more. */
export class Replay {
  readonly #parts: ReplayParts;
  readonly #batches: Batches;
  /** The last entry that is settled. */
  #at: number;
  #passed = 0;
  #sent = 0;
  #refused = 0;
  #ended: number | undefined;

  constructor(parts: ReplayParts) {
    const { pipeline, limit, range, isLetter } = parts;
    this.#parts = parts;
    this.#at = range.first - 1;
    const isWanted = (entry: Entry): boolean => this.#isInTime(entry) && !isLetter(entry.seq);
    const wanted: Pipeline = (entry, put) => (isWanted(entry) ? pipeline(entry, put) : undefined);
    this.#batches = new Batches((after, most) => this.#read(after, most), wanted, limit, this.#at);
  }

  get isRunning(): boolean {
    return this.#ended === undefined;
  }

  /** The next batch; undefined when all of the range is sent. One that was not settled comes again. */
  async next(): Promise<Prepared | undefined> {
    this.#batches.restart(this.#at);
    await this.#batches.fill();
    return this.#batches.take();
  }

  /** Position and note of the sink stay as they are. */
  batchOf({ messages, bytes }: Prepared, present: Position): Batch {
    return { messages, bytes, through: present, uncertain: true, besides: 'replay' };
  }

  settled({ messages, through, count }: Prepared, refused: number): void {
    this.#at = through.seq;
    this.#passed += count;
    this.#sent += messages.length - refused;
    this.#refused += refused;
  }

  end(now: number): void {
    this.#ended = now;
  }

  progress(): ReplayProgress {
    const { range, expected, began } = this.#parts;
    return {
      ...range,
      state: this.isRunning ? 'running' : 'done',
      ...{ at: this.#at, passed: this.#passed, expected, sent: this.#sent, refused: this.#refused, began, ended: this.#ended },
    };
  }

  /** What was pruned since it began is passed over. */
  async #read(given: number, limit: Limit): Promise<readonly Entry[]> {
    const { journal, range } = this.#parts;
    const after = Math.max(given, journal.pruned());
    if (after >= range.last) return [];
    if (!range.times) return journal.read(after, { ...limit, records: Math.min(limit.records, range.last - after) });
    const segment = await journal.segmentOf(after, range.times);
    if (!segment || segment.first > range.last) return [];
    const from = Math.max(after, segment.first - 1);
    return journal.read(from, { ...limit, records: Math.min(limit.records, segment.last - from, range.last - from) });
  }

  #isInTime(entry: Entry): boolean {
    const { times } = this.#parts.range;
    if (!times) return true;
    const { time } = entry;
    return time !== undefined && times.from <= time && time < times.until;
  }
}
