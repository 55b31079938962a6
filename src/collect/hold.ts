/**
 * Hold: the service shows less than it did, or says times that cannot be right, and nothing may be closed until that has passed. One hold at a
 * time, in the state and in the ledger; its end is a line as well.
 */
import type { CollectJournal } from '../model/journal.ts';
import type { Hold, LedgerWindow } from '../model/ledger.ts';
import type { ServerClock, Source } from '../model/source.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';

/** How long things wait, ms: the figures of the default `settle`, in proportion where everything is shortened. */
export interface Waits {
  /** Between two tries with a fresh token. */
  readonly fresh: number;
  /** Between two tests of a hold. */
  readonly test: number;
  /** Without the count of a window with records for so long one is counted at random. */
  readonly guard: number;
}

export function waitsFor(settleMs: number): Waits {
  return {
    fresh: Math.min(20_000, Math.max(100, settleMs / 45)),
    test: Math.min(60_000, Math.max(500, settleMs / 15)),
    guard: Math.min(300_000, Math.max(1_000, settleMs / 3)),
  };
}

/** Before any hold a fresh token is tried so many times. */
export const freshTries = 3;

export interface HoldParts {
  readonly sourceId: string;
  readonly source: Pick<Source, 'renew'>;
  readonly journal: Pick<CollectJournal, 'marks' | 'setHold' | 'sound'>;
  readonly serverClock: Pick<ServerClock, 'agreed'>;
  readonly clock: Clock;
  readonly waits: Waits;
  readonly log: Log;
  readonly meters: Pick<Meters, 'sourceHold'>;
  /** What `sound` was before a restart. */
  readonly sound?: Micros | undefined;
}

export class Holds {
  readonly #parts: HoldParts;
  /** False while the source has no place in the state yet: then there is no ledger that could say so. */
  #isOpen = false;
  #current: Hold | undefined;
  #testAt = 0;
  #sound: Micros | undefined;
  #release: (hold: Hold) => Promise<void> = () => Promise.resolve();

  constructor(parts: HoldParts) {
    this.#parts = parts;
    this.#sound = parts.sound;
  }

  /** Takes up the hold that the state says, from here on. */
  open(): void {
    this.#isOpen = true;
    this.#current = this.#parts.journal.marks(this.#parts.sourceId).hold;
    this.#tellSound();
    if (this.#current) this.#parts.log.error({ source: this.#parts.sourceId, ...said(this.#current) }, 'source is still on hold');
  }

  /** What is to be done before a hold ends, in the ledger: what was closed while less may have been shown is counted again. */
  onEnd(release: (hold: Hold) => Promise<void>): void {
    this.#release = release;
  }

  /**
   * When a sound window was last counted whole, server time; undefined before there was one. A window that was closed before is sound: it was
   * proven when everything was shown. One that was closed since may have been read while less was, and is remembered until that is known.
   */
  get sound(): Micros | undefined {
    return this.#sound;
  }

  isSound(window: Pick<LedgerWindow, 'closed'>): boolean {
    return this.#sound !== undefined && window.closed <= this.#sound;
  }

  /** A sound window with records was counted whole: just now, or for the first one when it was closed. */
  foundSound(at: Micros = this.#now()): void {
    this.#sound = at;
    this.#tellSound();
  }

  /** Time may go back, when a clock is set right: a whole count in what is the future again says nothing of what is closed from now on. */
  wentBack(now: Micros): void {
    if (this.#sound !== undefined && this.#sound > now) this.foundSound(now);
  }

  /** What was closed before a hold began and after the last whole count is remembered until the hold has ended: then it is counted again. */
  #tellSound(): void {
    if (this.#isOpen) this.#parts.journal.sound(this.#parts.sourceId, (this.#current ? this.#current.sound : this.#sound) ?? 0);
  }

  get current(): Hold | undefined {
    return this.#current;
  }

  /** Why it is on hold, in one line. */
  get words(): string | undefined {
    return this.#current && `hold (${this.#current.reason}): ${this.#current.words}`;
  }

  /** Begins a hold, unless there is one already. */
  async begin(hold: Omit<Hold, 'since' | 'sound'>): Promise<void> {
    if (!this.#isOpen || this.#current) return;
    const { sourceId, journal, log, meters, clock, waits } = this.#parts;
    const since = this.#now();
    const begun: Hold = { ...hold, since, sound: this.#sound ?? 0 };
    await journal.setHold(sourceId, begun, since);
    this.#current = begun;
    this.#testAt = clock.monotonic() + waits.test;
    meters.sourceHold(sourceId, hold.reason);
    log.error({ source: sourceId, ...said(begun) }, 'source is on hold');
  }

  /** What was found out about the hold since it began. */
  async amend(found: Pick<Hold, 'words' | 'shrunk'>): Promise<void> {
    if (!this.#current) return;
    const { sourceId, journal, log } = this.#parts;
    const amended = { ...this.#current, ...found };
    await journal.setHold(sourceId, amended, this.#now());
    this.#current = amended;
    log.error({ source: sourceId, ...said(amended) }, 'source is still on hold');
  }

  /** Ends the hold, if it is one for this reason. */
  async end(reason: Hold['reason']): Promise<void> {
    const { sourceId, journal, log } = this.#parts;
    const ended = this.#current;
    if (ended?.reason !== reason) return;
    await this.#release(ended);
    await journal.setHold(sourceId, undefined, this.#now());
    this.#current = undefined;
    this.#tellSound();
    log.warn({ source: sourceId, ...said(ended) }, 'hold has ended');
  }

  /** True once in each time between two tests. */
  testIsDue(): boolean {
    const { clock, waits } = this.#parts;
    if (clock.monotonic() < this.#testAt) return false;
    this.#testAt = clock.monotonic() + waits.test;
    return true;
  }

  /** The next request is to carry a fresh token: rights may stand in it. */
  renew(): void {
    this.#parts.source.renew?.();
  }

  /** Tries with a fresh token, three times in a minute, whether something that failed passes after all. */
  async passesAfresh(test: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    const { clock, waits } = this.#parts;
    for (let tries = 0; tries < freshTries; tries += 1) {
      this.renew();
      await clock.sleep(waits.fresh, signal);
      if (await test()) return true;
    }
    return false;
  }

  #now(): Micros {
    return this.#parts.serverClock.agreed() ?? this.#parts.clock.now() * 1000;
  }
}

function said({ reason, words, since, fields, windows }: Hold): object {
  return { reason, words, since: microsToIso(since), fields, windows: windows?.map(microsToIso) };
}
