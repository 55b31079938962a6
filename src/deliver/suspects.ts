/**
 * Finds the messages that a receiver cannot take while it takes others (docs/adding-a-sink.md, "One rule for every sink"): a message that it
 * refuses although it accepted a later one, and a message at which the attempts end, without an answer or as it is refused alone. The counts last as long as the
 * process.
 */
import type { Message, Rejection, RetryableRejection } from '../model/sink.ts';
import type { Clock } from '../model/time.ts';

/** A suspect is a dead letter after this many refusals: about four seconds, given the waits of the loop. */
const maxRefusals = 6;
/** A suspect that the receiver cannot take now: only after this many refusals while it took later ones, and this time in ms. */
const maxPassing = 10;
const passingMs = 15 * 60_000;
/** After this many attempts that ended at the same message, it is sent alone. */
const attemptsTogether = 2;
/** After this many, a later message is sent before it. If the receiver takes that one, the next attempt is the last. */
const attemptsUnproven = 5;

/** A message at which attempts ended. */
interface Ending {
  attempts: number;
  /** The receiver has accepted a later message since the last attempt. */
  isProven: boolean;
}

export class Suspects {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The refusals of each suspect, and when the first was, ms. */
  readonly #refusals = new Map<number, { readonly attempts: number; readonly since: number }>();
  readonly #endings = new Map<number, Ending>();
  /** Settled before the suspects ahead of them: not to be sent again. */
  readonly #settled = new Set<number>();
  #isSearching = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /**
   * Counts the refusals of each suspect. The first needs a later message that was accepted; after it, attempts alone count too, but not
   * of a failure that passes.
   * @returns the dead letters
   */
  refused({ seqs, suspects = [], message, reasons = [] }: RetryableRejection): Rejection[] {
    const now = this.#clock.monotonic();
    const proven = new Set(suspects);
    const reasonOf = new Map(reasons.map((each) => [each.seq, each]));
    return seqs.flatMap((seq) => {
      const known = this.#refusals.get(seq);
      const { isPassing, ...reason }: Rejection = reasonOf.get(seq) ?? { seq, code: 'unavailable', message };
      if (!proven.has(seq) && (!known || isPassing)) return [];
      const attempts = (known?.attempts ?? 0) + 1;
      const since = known?.since ?? now;
      this.#refusals.set(seq, { attempts, since });
      // mutant: suspect-dead-letter
      if (attempts < maxRefusals) return [];
      // mutant: passing-dead-letter
      if (isPassing && (attempts < maxPassing || now - since < passingMs)) return [];
      return [{ ...reason, attempts }];
    });
  }

  isCounted(seq: number): boolean {
    return this.#refusals.has(seq);
  }

  /** True while too few attempts were refused to say that the receiver refuses every message. */
  get isUnclear(): boolean {
    return this.#endings.values().every(({ attempts }) => attempts < attemptsUnproven);
  }

  /** The messages that are not settled yet. */
  unsettled(messages: readonly Message[]): readonly Message[] {
    return this.#settled.size === 0 ? messages : messages.filter(({ seq }) => !this.#settled.has(seq));
  }

  /** After many attempts that ended at the first message: a later one to send before it, to see that the receiver takes others. */
  witness([first, ...others]: readonly Message[]): Message | undefined {
    if (this.#attemptsOf(first) < attemptsUnproven) return undefined;
    // Prefers a message that has not failed itself.
    const least = others.reduce((min, other) => Math.min(min, this.#attemptsOf(other)), Infinity);
    return others.find((other) => this.#attemptsOf(other) === least);
  }

  /** Divides a batch after attempts that ended at its first message: that message alone, then twice as many each time. */
  groups(messages: readonly Message[]): readonly (readonly Message[])[] {
    this.#isSearching ||= this.#attemptsOf(messages[0]) >= attemptsTogether;
    if (!this.#isSearching) return [messages];
    const groups: (readonly Message[])[] = [];
    for (let at = 0, size = 1; at < messages.length; at += size, size *= 2) groups.push(messages.slice(at, at + size));
    return groups;
  }

  /** The message is not to be sent again with its batch. */
  settle(seq: number): void {
    this.#settled.add(seq);
  }

  /** The receiver has accepted the witness: the messages before it that fail now are the cause themselves. */
  accepted({ seq }: Message): void {
    this.settle(seq);
    for (const [earlier, ending] of this.#endings) if (earlier < seq) ending.isProven = true;
  }

  /**
   * An attempt ended at this message, without an answer or with the refusal of this message alone.
   * @param isAlone  the attempt had no other message
   * @returns its dead letter when it is the cause
   */
  ended({ seq }: Message, isAlone: boolean, reason: Omit<Rejection, 'seq'>): Rejection | undefined {
    const ending = this.#endings.get(seq) ?? { attempts: 0, isProven: false };
    ending.attempts = Math.max(ending.attempts + 1, this.#isSearching ? attemptsTogether : 0);
    const { attempts, isProven } = ending;
    ending.isProven = false;
    this.#endings.set(seq, ending);
    // mutant: ended-dead-letter
    if (!isAlone || !isProven || attempts <= attemptsUnproven) return undefined;
    this.#endings.delete(seq);
    return { ...reason, seq, attempts };
  }

  /** Each of these messages is delivered or a dead letter. */
  done(messages: readonly Message[], isWhole: boolean): void {
    if (isWhole) this.#isSearching = false;
    for (const { seq } of messages) {
      this.#refusals.delete(seq);
      this.#endings.delete(seq);
      this.#settled.delete(seq);
    }
  }

  #attemptsOf(message: Message | undefined): number {
    return this.#endings.get(message?.seq ?? 0)?.attempts ?? 0;
  }
}
