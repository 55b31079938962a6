/**
 * Suspends a source while the service shows fewer fields or records than before, or times that cannot be right: nothing is closed until
 * that has passed. There is one suspension at a time. The ledger has a line for its begin and one for its end.
 */
import type { CollectJournal } from '../model/journal.ts';
import { suspensionMessage, type LedgerWindow, type Suspension } from '../model/ledger.ts';
import type { ServerClock, Source } from '../model/source.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';

/** Waits in ms: fixed for the default `closeDelay`, and in proportion for a shorter one. */
export interface Waits {
  /** Between two attempts with a fresh token. */
  readonly fresh: number;
  /** Between two tests of a suspension. */
  readonly test: number;
  /** After this long without a recount of a window with records, a random one is recounted. */
  readonly sample: number;
}

export function waitsFor(closeDelayMs: number): Waits {
  return {
    fresh: Math.min(20_000, Math.max(100, closeDelayMs / 45)),
    test: Math.min(60_000, Math.max(500, closeDelayMs / 15)),
    sample: Math.min(300_000, Math.max(1_000, closeDelayMs / 3)),
  };
}

/** Attempts with a fresh token before the source is suspended. */
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
  /** From before a restart. */
  readonly lastFullVisibility?: Micros | undefined;
}

export class Suspensions {
  readonly #parts: SuspensionParts;
  /** False while the source is not in the state yet: then there is no ledger to write to. */
  #isOpen = false;
  #current: Suspension | undefined;
  #testAt = 0;
  #lastFullVisibility: Micros | undefined;
  #release: (suspension: Suspension) => Promise<void> = () => Promise.resolve();

  constructor(parts: SuspensionParts) {
    this.#parts = parts;
    this.#lastFullVisibility = parts.lastFullVisibility;
  }

  /** Loads the suspension from the state, and begins to write suspensions. */
  open(): void {
    this.#isOpen = true;
    this.#current = this.#parts.journal.progress(this.#parts.sourceId).suspension;
    this.#reportFullVisibility();
    if (this.#current) this.#parts.log.write('source.still_suspended', { source: this.#parts.sourceId, ...fieldsOf(this.#current) });
  }

  /** Sets what runs before a suspension ends: it schedules recounts of windows closed while the service may have hidden records. */
  onEnd(release: (suspension: Suspension) => Promise<void>): void {
    this.#release = release;
  }

  /**
   * Server time of the last full visibility: the last time when the recount of a window showed all
   * its records. Undefined before the first. A window closed before it was proven while the service
   * showed all records. A window closed since may have been read while some were hidden.
   */
  get lastFullVisibility(): Micros | undefined {
    return this.#lastFullVisibility;
  }

  isFullyVisible(window: Pick<LedgerWindow, 'closed'>): boolean {
    return this.#lastFullVisibility !== undefined && window.closed <= this.#lastFullVisibility;
  }

  /** The recount of a fully visible window showed all its records; or the first window with records was closed at this time. */
  foundFullVisibility(at: Micros = this.#now()): void {
    this.#lastFullVisibility = at;
    this.#reportFullVisibility();
  }

  /** A clock may be set back: a full visibility that is now in the future says nothing about windows closed from now on. */
  wentBack(now: Micros): void {
    if (this.#lastFullVisibility !== undefined && this.#lastFullVisibility > now) this.foundFullVisibility(now);
  }

  /**
   * The journal keeps the record uids of the windows that were closed since the service last showed
   * all fields and records. These windows are recounted when a suspension ends.
   */
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

  get message(): string | undefined {
    return this.#current && suspensionMessage(this.#current);
  }

  /**
   * Begins a suspension, unless there is one already.
   * @param visibleUntil  server time: windows closed later are recounted at the end, in addition to those
   * closed since the last full visibility
   */
  async begin(suspension: Omit<Suspension, 'since' | 'lastFullVisibility'>, visibleUntil: Micros = Infinity): Promise<void> {
    if (!this.#isOpen || this.#current) return;
    const { sourceId, journal, log, meters, clock, waits } = this.#parts;
    const since = this.#now();
    const begun: Suspension = { ...suspension, since, lastFullVisibility: Math.min(visibleUntil, this.#lastFullVisibility ?? 0) };
    await journal.setSuspension(sourceId, begun, since);
    this.#current = begun;
    this.#testAt = clock.monotonic() + waits.test;
    meters.sourceSuspended(sourceId, suspension.reason);
    log.write('source.suspended', { source: sourceId, ...fieldsOf(begun) });
  }

  async amend(found: Pick<Suspension, 'message' | 'shrunk'>): Promise<void> {
    if (!this.#current) return;
    const { sourceId, journal, log } = this.#parts;
    const amended = { ...this.#current, ...found };
    await journal.setSuspension(sourceId, amended, this.#now());
    this.#current = amended;
    log.write('source.still_suspended', { source: sourceId, ...fieldsOf(amended) });
  }

  /** Ends the suspension if it has this reason. */
  async end(reason: Suspension['reason']): Promise<void> {
    const { sourceId, journal, log } = this.#parts;
    const ended = this.#current;
    if (ended?.reason !== reason) return;
    await this.#release(ended);
    await journal.setSuspension(sourceId, undefined, this.#now());
    this.#current = undefined;
    this.#reportFullVisibility();
    log.write('source.suspension_ended', { source: sourceId, ...fieldsOf(ended) });
  }

  /** True once in each test interval. */
  testIsDue(): boolean {
    const { clock, waits } = this.#parts;
    if (clock.monotonic() < this.#testAt) return false;
    this.#testAt = clock.monotonic() + waits.test;
    return true;
  }

  /** Makes the next request use a fresh token: the rights may be a part of the token. */
  renew(): void {
    this.#parts.source.renew?.();
  }

  /**
   * Repeats a failed test with a fresh token, three times in a minute.
   * @returns true once it passes
   */
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

export function fieldsOf({
  reason,
  message,
  since,
  fields,
  windows,
}: Suspension): Record<'reason' | 'detail' | 'since', string> & { fields: unknown; windows: unknown } {
  return { reason, detail: message, since: microsToIso(since), fields, windows: windows?.map(microsToIso) };
}
