/**
 * Suspension: the service shows less than it did, or says times that cannot be right, and nothing may be closed until that has passed. One suspension at a
 * time, in the state and in the ledger; its end is a line as well.
 */
import type { CollectJournal } from '../model/journal.ts';
import type { Suspension, LedgerWindow } from '../model/ledger.ts';
import type { ServerClock, Source } from '../model/source.ts';
import type { LogFields } from '../model/log-events.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';

/** How long things wait, ms: the figures of the default `closeDelay`, in proportion where everything is shortened. */
export interface Waits {
  /** Between two tries with a fresh token. */
  readonly fresh: number;
  /** Between two tests of a suspension. */
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

/** Before any suspension a fresh token is tried so many times. */
export const freshAttempts = 3;

interface SuspensionParts {
  readonly sourceId: string;
  readonly source: Pick<Source, 'renew'>;
  readonly journal: Pick<CollectJournal, 'progress' | 'setSuspension' | 'lastFullVisibility'>;
  readonly serverClock: Pick<ServerClock, 'agreed'>;
  readonly clock: Clock;
  readonly waits: Waits;
  readonly log: Log;
  readonly meters: Pick<Meters, 'sourceSuspended'>;
  /** What `sound` was before a restart. */
  readonly lastFullVisibility?: Micros | undefined;
}

export class Suspensions {
  readonly #parts: SuspensionParts;
  /** False while the source has no place in the state yet: then there is no ledger that could say so. */
  #isOpen = false;
  #current: Suspension | undefined;
  #testAt = 0;
  #lastFullVisibility: Micros | undefined;
  #release: (suspension: Suspension) => Promise<void> = () => Promise.resolve();

  constructor(parts: SuspensionParts) {
    this.#parts = parts;
    this.#lastFullVisibility = parts.lastFullVisibility;
  }

  /** Takes up the suspension that the state says, from here on. */
  open(): void {
    this.#isOpen = true;
    this.#current = this.#parts.journal.progress(this.#parts.sourceId).suspension;
    this.#reportFullVisibility();
    if (this.#current) this.#parts.log.write('source.still_suspended', { source: this.#parts.sourceId, ...said(this.#current) });
  }

  /** What is to be done before a suspension ends, in the ledger: what was closed while less may have been shown is counted again. */
  onEnd(release: (suspension: Suspension) => Promise<void>): void {
    this.#release = release;
  }

  /**
   * When a sound window was last counted whole, server time; undefined before there was one. A window that was closed before is sound: it was
   * proven when everything was shown. One that was closed since may have been read while less was, and is remembered until that is known.
   */
  get lastFullVisibility(): Micros | undefined {
    return this.#lastFullVisibility;
  }

  isFullyVisible(window: Pick<LedgerWindow, 'closed'>): boolean {
    return this.#lastFullVisibility !== undefined && window.closed <= this.#lastFullVisibility;
  }

  /** A sound window with records was counted whole: just now, or for the first one when it was closed. */
  foundFullVisibility(at: Micros = this.#now()): void {
    this.#lastFullVisibility = at;
    this.#reportFullVisibility();
  }

  /** Time may go back, when a clock is set right: a whole count in what is the future again says nothing of what is closed from now on. */
  wentBack(now: Micros): void {
    if (this.#lastFullVisibility !== undefined && this.#lastFullVisibility > now) this.foundFullVisibility(now);
  }

  /** What was closed before a suspension began and after the last whole count is remembered until the suspension has ended: then it is counted again. */
  #reportFullVisibility(): void {
    if (this.#isOpen)
      this.#parts.journal.lastFullVisibility(
        this.#parts.sourceId,
        (this.#current ? this.#current.lastFullVisibility : this.#lastFullVisibility) ?? 0,
      );
  }

  get current(): Suspension | undefined {
    return this.#current;
  }

  /** Why it is suspended, in one line. */
  get message(): string | undefined {
    return this.#current && `suspended (${this.#current.reason}): ${this.#current.message}`;
  }

  /** Begins a suspension, unless there is one already. */
  async begin(suspension: Omit<Suspension, 'since' | 'lastFullVisibility'>): Promise<void> {
    if (!this.#isOpen || this.#current) return;
    const { sourceId, journal, log, meters, clock, waits } = this.#parts;
    const since = this.#now();
    const begun: Suspension = { ...suspension, since, lastFullVisibility: this.#lastFullVisibility ?? 0 };
    await journal.setSuspension(sourceId, begun, since);
    this.#current = begun;
    this.#testAt = clock.monotonic() + waits.test;
    meters.sourceSuspended(sourceId, suspension.reason);
    log.write('source.suspended', { source: sourceId, ...said(begun) });
  }

  /** What was found out about the suspension since it began. */
  async amend(found: Pick<Suspension, 'message' | 'shrunk'>): Promise<void> {
    if (!this.#current) return;
    const { sourceId, journal, log } = this.#parts;
    const amended = { ...this.#current, ...found };
    await journal.setSuspension(sourceId, amended, this.#now());
    this.#current = amended;
    log.write('source.still_suspended', { source: sourceId, ...said(amended) });
  }

  /** Ends the suspension, if it is one for this reason. */
  async end(reason: Suspension['reason']): Promise<void> {
    const { sourceId, journal, log } = this.#parts;
    const ended = this.#current;
    if (ended?.reason !== reason) return;
    await this.#release(ended);
    await journal.setSuspension(sourceId, undefined, this.#now());
    this.#current = undefined;
    this.#reportFullVisibility();
    log.write('source.suspension_ended', { source: sourceId, ...said(ended) });
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
    for (let attempts = 0; attempts < freshAttempts; attempts += 1) {
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

function said({ reason, message, since, fields, windows }: Suspension): LogFields<'source.suspended'> {
  return { reason, detail: message, since: microsToIso(since), fields, windows: windows?.map(microsToIso) };
}
