/**
 * Recounts closed windows. An equal count shows that no record was added. After a greater count the window is read again. A smaller count
 * is not trusted at once: the window is recounted after `closeDelay`, and then the count of another window shows the cause. Either records
 * of this window were deleted, or the client has lost the right to see records.
 */
import type { LedgerWindow, Remark, Suspension } from '../model/ledger.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { SourceAccess } from './source-access.ts';
import { dayMicros, nextRecount } from './windows.ts';

interface RecountParts extends Omit<SourceAccess, 'serverClock' | 'handoff'> {
  readonly meters: Pick<Meters, 'windowShrunk'>;
  /** Ages of recount, ascending. */
  readonly ages: readonly Micros[];
  /** Server time. */
  readonly now: () => Micros;
  readonly isTimeKnown: () => boolean;
  /** Reads a window again with proof, and stores the verdict. */
  readonly reread: (window: LedgerWindow, signal: AbortSignal) => Promise<void>;
}

/** A smaller correction of a clock does not matter: windows are closed much later than their end. */
export const steppedMicros = 5_000_000;
/** Samples are drawn from this many windows: the windows with the most records. */
const maxSampledWindows = 1_000;
/** Its answers show that the time of the service is not known any more: they may be old, and confirm nothing. The work is done later. */
export class ClockLost extends Error {}
const releasedMessage = 'recounting: a suspension during which the window showed fewer records has ended';

export class Recounter {
  readonly #parts: RecountParts;
  /** When a window with records was last recounted, ms of the monotonic clock. */
  #countedAt: number;
  /** Progress of the recounts during a suspension; a restart begins them again. */
  #sampleRecount: { since: Micros; left: LedgerWindow[]; shrunk: Micros[]; counted: number; isComplete: boolean } | undefined;
  constructor(parts: RecountParts) {
    this.#parts = parts;
    this.#countedAt = parts.clock.monotonic();
    parts.suspensions.onEnd((suspension) => this.release(suspension));
  }

  /** Asks for the total of the stored query. Under the assumptions of the proof an equal total shows that no record was added. */
  async recount(window: LedgerWindow, signal: AbortSignal): Promise<void> {
    const { sourceId, journal, suspensions, log, ages, now } = this.#parts;
    await this.#beginFullVisibility();
    const { total, isNew } = await this.#ask(window, signal);
    // A live poll may have suspended the source in the meantime: then nothing is confirmed.
    if (suspensions.current) return;
    const at = now();
    const fields = { ...this.#fields(window), total };
    if (/* mutant: recount-agrees */ total !== undefined && total === window.total && !isNew) {
      await journal.confirm(sourceId, window, nextRecount(window.to, ages, at), at, this.#lastAge);
      log.write('window.recounted', { ...fields, stored: total, total });
      return;
    }
    // mutant: recount-fewer
    if (total !== undefined && window.total !== undefined && total < window.total) {
      await this.#fewer(window, total, signal);
      return;
    }
    if (this.#isForgotten(window)) {
      // Its uids are forgotten: records delivered long ago would count as new.
      const message = `the service counts ${total ?? 'no total'} now, and the window is too old to be read again`;
      await this.#remark(window, { reason: 'reread', message, next: undefined, attempts: window.attempts + 1 }, at);
      log.write('window.grew_too_late', fields);
      return;
    }
    log.write('window.grew', fields);
    await this.#parts.reread(window, signal);
  }

  /** Recounts a random window if none with records was recounted for five minutes: lost rights are noticed in quiet times too. */
  async checkSamples(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { clock, waits, random, suspensions, closeDelay } = this.#parts;
    if (clock.monotonic() - this.#countedAt < waits.sample) return false;
    this.#countedAt = clock.monotonic();
    await this.#beginFullVisibility();
    // While history is read, the newest windows of the ledger are old.
    const end = Math.min(serverNow, this.#parts.journal.progress(this.#parts.sourceId).live.closedUntil);
    const since = end - Math.max(this.#lastAge, dayMicros);
    const isUnchanged = await this.#lastFullVisibility(since);
    // Without a window from before the last full visibility, any window that is not in doubt serves.
    const windows = isUnchanged.length > 0 ? isUnchanged : (await this.#richest(since)).filter(({ reason }) => reason === undefined);
    const window = windows[Math.floor(random() * windows.length)];
    if (!window) return false;
    const total = await this.#count(window, signal, true);
    if (suspensions.current || total === undefined || window.total === undefined || total === window.total) return true;
    if (total < window.total && window.attempts === 0) await this.#doubt(window, total, this.#parts.now() + closeDelay);
    else if (total > window.total && !this.#isForgotten(window)) await this.#parts.reread(window, signal);
    return true;
  }

  /**
   * Tests whether a suspension for `rows` may end. An operator can accept windows that shrank. The suspension may end when the first window
   * that is not accepted shows all its records again. If all are accepted, it may end when the other windows were recounted too.
   */
  async test({ windows = [], shrunk }: Suspension, signal: AbortSignal): Promise<boolean> {
    this.#parts.suspensions.renew();
    const listed = await this.#windows(windows);
    await this.#list(listed);
    const referenceRecord = [...listed, ...(await this.#windows(shrunk ?? []))].find(({ state }) => state === 'proven');
    if (referenceRecord === undefined) return shrunk !== undefined || listed.length === 0;
    return (await this.#compare(referenceRecord, signal)) === 'complete';
  }

  /**
   * Recounts one more window during a suspension for `rows`, so that an operator sees all windows that shrank, and can accept them
   * together. All windows of the last day are recounted, and older ones until one shows all its records.
   * @returns false when there is none left
   */
  async sampleRecount(suspension: Suspension, signal: AbortSignal): Promise<boolean> {
    if (suspension.shrunk !== undefined) return false;
    if (this.#sampleRecount?.since !== suspension.since)
      this.#sampleRecount = { since: suspension.since, left: await this.#others(suspension), shrunk: [], counted: 0, isComplete: false };
    const sampleRecount = this.#sampleRecount;
    const window = sampleRecount.left.shift();
    if (window === undefined || (sampleRecount.isComplete && window.to <= suspension.since - dayMicros)) {
      const { shrunk, counted } = sampleRecount;
      await this.#parts.suspensions.amend({
        shrunk,
        message: `${suspension.message}; ${shrunk.length} of ${counted} other windows show fewer too`,
      });
      return false;
    }
    const total = await this.#count(window, signal, false);
    sampleRecount.counted += 1;
    if (total === undefined || window.total === undefined) return true;
    if (total < window.total) sampleRecount.shrunk.push(window.from);
    else sampleRecount.isComplete = true;
    return true;
  }

  /** The windows with full visibility that a suspension does not list, newest first. */
  async #others({ since, windows = [] }: Suspension): Promise<LedgerWindow[]> {
    const found = new Map(
      [...(await this.#lastFullVisibility(since - dayMicros)), ...(await this.#lastFullVisibility(0))].map((each) => [each.from, each]),
    );
    for (const from of windows) found.delete(from);
    return [...found.values()].sort((a, b) => b.from - a.from);
  }

  /**
   * Before a suspension ends, schedules recounts. Each window that showed fewer records is due at once, unless an operator accepted it, and
   * stays in doubt until then. Windows closed since the last full visibility are due too: the service may have hidden records already.
   */
  async release({ reason, lastFullVisibility, windows = [], shrunk = [] }: Suspension): Promise<void> {
    const { sourceId, journal, now } = this.#parts;
    if (reason === 'clock' || reason === 'timestamp') return;
    const at = now();
    for (const window of await this.#windows([...windows, ...shrunk])) {
      if (window.state !== 'proven' || window.reason === 'shrunk') continue;
      await this.#remark(window, { reason: 'reread', message: releasedMessage, next: at, attempts: 1 }, at);
    }
    if (lastFullVisibility === undefined) return;
    for (const window of await journal.closedSince(sourceId, lastFullVisibility)) {
      if (window.next !== undefined && window.next <= at) continue;
      await this.#remark(window, { reason: undefined, message: undefined, next: at, attempts: window.attempts }, at);
    }
  }

  /**
   * Called when time went back: both clocks were ahead, and one was corrected. Windows with a close time in the future keep their proofs.
   * If the close delay of such a window has not passed, the window is in doubt until then, and is counted again: an equal count proves it,
   * even if its uids were deleted. The other windows are recounted at the ages that they have not reached.
   */
  async closedAhead(at: Micros): Promise<void> {
    const { sourceId, journal, log, closeDelay, ages } = this.#parts;
    for (const window of await journal.closedSince(sourceId, at + steppedMicros)) {
      const isEarly = window.to + closeDelay > at;
      const due = isEarly ? window.to + closeDelay : nextRecount(window.to, ages, at);
      if (!isEarly && (due === window.next || this.#isForgotten(window))) continue;
      const message = `closed at ${microsToIso(window.closed)}, which is in the future by the present time of the service`;
      await this.#remark(window, { reason: isEarly ? 'reread' : undefined, message, next: due, attempts: window.attempts }, at);
      log.write('window.closed_early', { ...this.#fields(window), detail: message });
    }
  }

  /**
   * The count is below the proven total. A replica may lag, so only a second count after
   * `closeDelay` is trusted; then another window is counted.
   */
  async #fewer(window: LedgerWindow, total: number, signal: AbortSignal): Promise<void> {
    const { closeDelay, now } = this.#parts;
    const found = window.attempts === 0 ? 'unknown' : await this.causeOfFewer(window, total, signal);
    if (found === 'shrunk') await this.#shrink(window, total);
    else if (found === 'unknown') await this.#doubt(window, total, now() + closeDelay);
  }

  /**
   * Finds the cause when a window shows fewer records than before, by the count of another window. If that shows all its records, records
   * of this window were deleted. If it shows fewer too, the service hides records, and the source is suspended.
   * @param total  the count of the window now
   */
  async causeOfFewer(window: LedgerWindow, total: number, signal: AbortSignal): Promise<'shrunk' | 'suspended' | 'unknown'> {
    const { suspensions } = this.#parts;
    await this.#beginFullVisibility();
    const other = await this.#other(window);
    const seen = other === undefined ? 'complete' : await this.#compare(other, signal);
    if (other === undefined || seen === 'complete') {
      // The service may show records again since the first count: a second count decides.
      const secondCount = other === undefined ? total : await this.#count(window, signal, false);
      if (suspensions.current) return 'suspended';
      return secondCount !== undefined && secondCount <= total ? 'shrunk' : 'unknown';
    }
    const isFewer = async (): Promise<boolean> => (await this.#compare(other, signal)) === 'fewer';
    // An old token may lack rights that a fresh token has.
    if (seen === 'unknown' || (await suspensions.passesAfresh(async () => !(await isFewer()), signal))) return 'unknown';
    const isAlone = other.from === window.from;
    const message =
      `the window from ${microsToIso(window.from)} shows ${total} of ${maxTotalOf(window)} records` +
      (isAlone ? '' : `, and the window from ${microsToIso(other.from)} fewer than its ${other.total ?? 0}`);
    // A gap is not listed: nothing was proven of it. It is retried after the suspension.
    const listed = isAlone || window.state === 'gap' ? [other] : [other, window];
    await suspensions.begin({ reason: 'rows', message, windows: listed.map(({ from }) => from) });
    await this.#list(listed);
    return 'suspended';
  }

  /**
   * The window to compare with: the window with the most records of the last day; else the newest window, which the service deletes last.
   * If there is no other window, a proven window of the last day is compared with itself.
   */
  async #other(window: LedgerWindow): Promise<LedgerWindow | undefined> {
    const since = this.#parts.now() - dayMicros;
    const isOther = ({ from }: LedgerWindow): boolean => from !== window.from;
    const [richest] = (await this.#lastFullVisibility(since)).filter(isOther);
    if (richest) return richest;
    const newest = (await this.#lastFullVisibility(0)).filter(isOther).sort((a, b) => b.from - a.from)[0];
    return newest ?? (window.state === 'proven' && window.to > since ? window : undefined);
  }

  /** Before any recount, the first closed window with records represents full visibility. */
  async #beginFullVisibility(): Promise<void> {
    const { suspensions } = this.#parts;
    if (suspensions.lastFullVisibility !== undefined) return;
    const windows = (await this.#richest(0)).filter(({ reason }) => reason === undefined);
    if (windows.length > 0) suspensions.foundFullVisibility(windows.reduce((least, { closed }) => Math.min(least, closed), Infinity));
  }

  /** Windows closed before the last full visibility, the most records first; a window that waits for a recount is among them. */
  async #lastFullVisibility(since: Micros): Promise<readonly LedgerWindow[]> {
    return (await this.#richest(since)).filter((window) => this.#parts.suspensions.isFullyVisible(window));
  }

  #richest(since: Micros): Promise<readonly LedgerWindow[]> {
    return this.#parts.journal.richest(this.#parts.sourceId, since, maxSampledWindows);
  }

  async #doubt(window: LedgerWindow, total: number, next: Micros): Promise<void> {
    const reason = window.reason === 'reread' ? window.reason : undefined;
    await this.#remark(window, { reason, message: messageOf(window, total), next, attempts: window.attempts + 1 });
    this.#parts.log.write('window.recount_below', { ...this.#fields(window), total, next: microsToIso(next) });
  }

  /** The old proof stays: it was true at its time. The window is not recounted any more. */
  async #shrink(window: LedgerWindow, total: number): Promise<void> {
    const { sourceId, log, meters } = this.#parts;
    await this.#remark(window, { reason: 'shrunk', message: messageOf(window, total), next: undefined, attempts: window.attempts + 1 });
    meters.windowShrunk(sourceId);
    log.write('window.shrunk', { ...this.#fields(window), total });
  }

  /** Lists windows as open, so that an operator can see and accept them. */
  async #list(windows: readonly LedgerWindow[]): Promise<void> {
    for (const window of windows) {
      if (window.state !== 'proven' || window.reason !== undefined) continue;
      const message = 'the service shows fewer records than the proven total';
      await this.#remark(window, { reason: 'reread', message, next: undefined, attempts: 1 });
    }
  }

  #remark(window: LedgerWindow, remark: Remark, at = this.#parts.now()): Promise<void> {
    return this.#parts.journal.remark(this.#parts.sourceId, window, remark, at, this.#lastAge);
  }

  async #windows(froms: readonly Micros[]): Promise<LedgerWindow[]> {
    const windows = await Promise.all(froms.map((from) => this.#parts.journal.window(this.#parts.sourceId, from)));
    return windows.filter((window) => window !== undefined);
  }

  async #compare(window: LedgerWindow, signal: AbortSignal): Promise<'complete' | 'fewer' | 'unknown'> {
    const total = await this.#count(window, signal);
    if (total === undefined || window.total === undefined) return 'unknown';
    return total >= window.total ? 'complete' : 'fewer';
  }

  async #count(window: LedgerWindow, signal: AbortSignal, isFullyVisible?: boolean): Promise<number | undefined> {
    return (await this.#ask(window, signal, isFullyVisible)).total;
  }

  /** @returns `isNew`: the answer shows a record that the journal lacks, as another service with as many records would */
  async #ask(
    window: LedgerWindow,
    signal: AbortSignal,
    isFullyVisible = this.#parts.suspensions.isFullyVisible(window),
  ): Promise<{ readonly total: number | undefined; readonly isNew: boolean }> {
    const { sourceId, journal, requester, paging, clock, suspensions } = this.#parts;
    const answer = await requester.count(/* mutant: recount-query */ window.query, paging.first, signal);
    const { total } = answer;
    // mutant: recount-uids
    const counted = { total, isNew: 'records' in answer && (await journal.lacks({ source: sourceId, ...answer })) };
    if (!this.#parts.isTimeKnown()) throw new ClockLost();
    // A window closed since may have been read while the service hid records: its equal count shows nothing.
    if ((window.total ?? 0) === 0 || !isFullyVisible) return counted;
    this.#countedAt = clock.monotonic();
    if (total !== undefined && total >= (window.total ?? 0)) suspensions.foundFullVisibility();
    return counted;
  }

  #isForgotten(window: LedgerWindow): boolean {
    return !this.#parts.journal.remembers(this.#parts.sourceId, window);
  }

  #fields(window: LedgerWindow): { source: string; from: string; to: string; stored: number | undefined } {
    return {
      source: this.#parts.sourceId,
      from: microsToIso(window.from),
      to: microsToIso(window.to),
      stored: window.total,
    };
  }

  get #lastAge(): Micros {
    return this.#parts.ages.at(-1) ?? 0;
  }
}

/** The largest number of records known of a window: proven, counted or received. */
export function maxTotalOf({ total, received: seen }: LedgerWindow): number {
  return Math.max(total ?? 0, seen);
}

/**
 * True if an equal count can confirm a window: it is proven, and no record beyond its proof was
 * ever received. That also holds for a window that a suspension or a later count has put in doubt.
 */
export function isCountable(window: LedgerWindow): boolean {
  return window.state === 'proven' && window.reason !== 'shrunk' && maxTotalOf(window) === window.total;
}

function messageOf(window: LedgerWindow, total: number): string {
  return `the service counted ${window.total ?? 0} records when the window was closed, and ${total} now`;
}
