/**
 * Counting closed windows again. An equal count shows that nothing came; a greater one has the window read again; a smaller one is never believed
 * at once: it is counted again after `closeDelay`, and then another window tells whether this one has vanished or the rights have shrunk.
 */
import type { CollectJournal } from '../model/journal.ts';
import type { Suspension, LedgerWindow } from '../model/ledger.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Requester } from './requester.ts';
import type { Suspensions, Waits } from './suspension.ts';
import type { Paging } from './page-cursor.ts';
import { dayMicros, nextRecount } from './windows.ts';

interface RecountParts {
  readonly sourceId: string;
  readonly requester: Requester;
  readonly paging: Paging;
  readonly journal: CollectJournal;
  readonly suspensions: Suspensions;
  readonly clock: Clock;
  readonly random: Random;
  readonly waits: Waits;
  readonly log: Log;
  readonly meters: Pick<Meters, 'windowShrunk'>;
  readonly closeDelay: Micros;
  /** Ages of recount, ascending. */
  readonly ages: readonly Micros[];
  /** Server time. */
  readonly now: () => Micros;
  /** Reads a window again with proof, and records what is found. */
  readonly reread: (window: LedgerWindow, signal: AbortSignal) => Promise<void>;
}

/** A clock that is set right by no more than that has closed nothing that matters before its time. */
export const steppedMicros = 5_000_000;
/** The guard chooses among so many windows, those with the most records. */
const maxSampledWindows = 1_000;
const releasedMessage = 'a suspension that found fewer records in it has ended: it is counted again';

export class Recounter {
  readonly #parts: RecountParts;
  /** When a window with records was last counted against what was proven, ms of the monotonic clock. */
  #countedAt: number;
  /** How far the windows of a suspension are counted; after a restart it begins anew. */
  #sampleRecount: { since: Micros; left: LedgerWindow[]; shrunk: Micros[]; counted: number; isWhole: boolean } | undefined;
  constructor(parts: RecountParts) {
    this.#parts = parts;
    this.#countedAt = parts.clock.monotonic();
    parts.suspensions.onEnd((suspension) => this.release(suspension));
  }

  /** Asks the stored query for its total again. Under the assumptions of the proof an equal total shows that nothing came. */
  async recount(window: LedgerWindow, signal: AbortSignal): Promise<void> {
    const { sourceId, journal, suspensions, log, ages, now } = this.#parts;
    await this.#beginFullVisibility();
    const total = await this.#count(window, signal);
    // What the live poll found out meanwhile counts: while suspended nothing is confirmed.
    if (suspensions.current) return;
    const at = now();
    const fields = this.#fields(window, total);
    if (/* mutant: recount-agrees */ total !== undefined && total === window.total) {
      await journal.confirm(sourceId, window, nextRecount(window.to, ages, at), at, this.#lastAge);
      log.write('window.recounted', fields);
      return;
    }
    // mutant: recount-fewer
    if (total !== undefined && window.total !== undefined && total < window.total) {
      await this.#fewer(window, total, signal);
      return;
    }
    if (this.#isForgotten(window)) {
      // It could only be read again by taking what was delivered long ago for new.
      const message = `the service counts ${total ?? 'nothing'} now, and the window is too old to be read again`;
      await journal.remark(
        sourceId,
        window,
        { reason: 'reread', message, next: undefined, attempts: window.attempts + 1 },
        at,
        this.#lastAge,
      );
      log.write('window.grew_too_late', fields);
      return;
    }
    log.write('window.grew', fields);
    await this.#parts.reread(window, signal);
  }

  /** When no sound window with records was counted for five minutes, one is, at random: rights that shrink are noticed in quiet times too. */
  async checkSamples(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { clock, waits, random, suspensions, closeDelay } = this.#parts;
    if (clock.monotonic() - this.#countedAt < waits.guard) return false;
    this.#countedAt = clock.monotonic();
    await this.#beginFullVisibility();
    // Where history is read the ledger ends long ago: its newest windows tell what is shown.
    const end = Math.min(serverNow, this.#parts.journal.progress(this.#parts.sourceId).live.closedUntil);
    const since = end - Math.max(this.#lastAge, dayMicros);
    const isUnchanged = await this.#lastFullVisibility(since);
    // Where all that were sound are gone one of the others begins anew.
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
   * The test of a suspension for `rows`: whether the first window that shrank is whole again, of the proven ones that nobody has accepted; or all are
   * accepted, and others were counted as well.
   */
  async test({ windows = [], shrunk }: Suspension, signal: AbortSignal): Promise<boolean> {
    this.#parts.suspensions.renew();
    const listed = await this.#windows(windows);
    await this.#list(listed);
    const referenceRecord = [...listed, ...(await this.#windows(shrunk ?? []))].find(({ state }) => state === 'proven');
    if (referenceRecord === undefined) return shrunk !== undefined || listed.length === 0;
    return (await this.#compare(referenceRecord, signal)) === 'whole';
  }

  /**
   * In a suspension for `rows` one more window is counted, so that a person can accept together what shrank together: those of the last day, and older ones
   * until one is whole; what shrank of the rest is held against that. @returns false when there is none left
   */
  async sampleRecount(suspension: Suspension, signal: AbortSignal): Promise<boolean> {
    if (suspension.shrunk !== undefined) return false;
    if (this.#sampleRecount?.since !== suspension.since)
      this.#sampleRecount = { since: suspension.since, left: await this.#others(suspension), shrunk: [], counted: 0, isWhole: false };
    const sampleRecount = this.#sampleRecount;
    const window = sampleRecount.left.shift();
    if (window === undefined || (sampleRecount.isWhole && window.to <= suspension.since - dayMicros)) {
      const { shrunk, counted } = sampleRecount;
      await this.#parts.suspensions.amend({
        shrunk,
        message: `${suspension.message}; of ${counted} other windows ${shrunk.length} hold fewer too`,
      });
      return false;
    }
    const total = await this.#count(window, signal, false);
    sampleRecount.counted += 1;
    if (total === undefined || window.total === undefined) return true;
    if (total < window.total) sampleRecount.shrunk.push(window.from);
    else sampleRecount.isWhole = true;
    return true;
  }

  /** What a suspension has not listed of the windows that tell whether everything is shown, newest first. */
  async #others({ since, windows = [] }: Suspension): Promise<LedgerWindow[]> {
    const found = new Map(
      [...(await this.#lastFullVisibility(since - dayMicros)), ...(await this.#lastFullVisibility(0))].map((each) => [each.from, each]),
    );
    for (const from of windows) found.delete(from);
    return [...found.values()].sort((a, b) => b.from - a.from);
  }

  /**
   * Before a suspension ends: all that was found to hold fewer is counted again at once, but for what was accepted, and stays in doubt until it has been;
   * and so is what was closed since a window was last counted whole, for less may have been shown then already.
   */
  async release({ reason, lastFullVisibility, windows = [], shrunk = [] }: Suspension): Promise<void> {
    const { sourceId, journal, now } = this.#parts;
    if (reason === 'clock' || reason === 'timestamp') return;
    const at = now();
    for (const window of await this.#windows([...windows, ...shrunk])) {
      if (window.state !== 'proven' || window.reason === 'shrunk') continue;
      await journal.remark(sourceId, window, { reason: 'reread', message: releasedMessage, next: at, attempts: 1 }, at, this.#lastAge);
    }
    if (lastFullVisibility === undefined) return;
    for (const window of await journal.closedSince(sourceId, lastFullVisibility)) {
      if (window.next !== undefined && window.next <= at) continue;
      await journal.remark(
        sourceId,
        window,
        { reason: undefined, message: undefined, next: at, attempts: window.attempts },
        at,
        this.#lastAge,
      );
    }
  }

  /**
   * Time went back: both clocks were ahead, and one was set right. What was closed at a time that has not come yet keeps its proof, true when it was
   * made. A window whose end has not settled is listed as open until it has, and then read again; others are counted at the ages still ahead of them.
   */
  async closedAhead(at: Micros): Promise<void> {
    const { sourceId, journal, log, closeDelay, ages } = this.#parts;
    for (const window of await journal.closedSince(sourceId, at + steppedMicros)) {
      const isForgotten = this.#isForgotten(window);
      const isEarly = window.to + closeDelay > at;
      const due = isEarly ? window.to + closeDelay : nextRecount(window.to, ages, at);
      if (!isEarly && (isForgotten || due === window.next)) continue;
      const message = `closed at ${microsToIso(window.closed)} by clocks that were ahead${isForgotten ? '; what it held is forgotten, and it cannot be read again' : ''}`;
      const remark = {
        reason: isEarly ? ('reread' as const) : undefined,
        message,
        next: isForgotten ? undefined : due,
        attempts: window.attempts,
      };
      await journal.remark(sourceId, window, remark, at, this.#lastAge);
      log.write('window.closed_early', { ...this.#fields(window, undefined), detail: message });
    }
  }

  /** Fewer than were proven. A replica may lag: only a second count, after `closeDelay`, is believed, and then another window is counted. */
  async #fewer(window: LedgerWindow, total: number, signal: AbortSignal): Promise<void> {
    const { closeDelay, now } = this.#parts;
    const found = window.attempts === 0 ? 'unknown' : await this.whereTheyAre(window, total, signal);
    if (found === 'shrunk') await this.#vanish(window, total);
    else if (found === 'unknown') await this.#doubt(window, total, now() + closeDelay);
  }

  /**
   * Where records are that a window has shown and does not show any more: another window tells. With that one whole they have vanished. With fewer
   * there as well rows are hidden, and the source is suspended.
   * @param total  what the window shows now
   */
  async whereTheyAre(window: LedgerWindow, total: number, signal: AbortSignal): Promise<'shrunk' | 'suspended' | 'unknown'> {
    const { suspensions } = this.#parts;
    await this.#beginFullVisibility();
    const other = await this.#other(window);
    const seen = other === undefined ? 'whole' : await this.#compare(other, signal);
    if (other === undefined || seen === 'whole') {
      // Rows may have come back between the two questions: so the first is asked once more.
      const retry = other === undefined ? total : await this.#count(window, signal, false);
      if (suspensions.current) return 'suspended';
      return retry !== undefined && retry <= total ? 'shrunk' : 'unknown';
    }
    const isFewer = async (): Promise<boolean> => (await this.#compare(other, signal)) === 'fewer';
    // The answer that showed fewer may be as stale as the token was: nothing is known yet.
    if (seen === 'unknown' || (await suspensions.passesAfresh(async () => !(await isFewer()), signal))) return 'unknown';
    const isAlone = other.from === window.from;
    const message =
      `the window from ${microsToIso(window.from)} holds ${total} of ${maxTotalOf(window)} records` +
      (isAlone ? '' : `, and that from ${microsToIso(other.from)} fewer than its ${other.total ?? 0} as well`);
    // Not a gap, of which nothing was proven: with the suspension over it is tried again, and held against another window.
    const listed = isAlone || window.state === 'gap' ? [other] : [other, window];
    await suspensions.begin({ reason: 'rows', message, windows: listed.map(({ from }) => from) });
    await this.#list(listed);
    return 'suspended';
  }

  /**
   * Another window that tells whether rows are hidden: of the last day the one with the most records; else the newest, which the service forgets
   * last. Where there is none a window of the last day tells it by itself; not so a gap, of which nothing was proven.
   */
  async #other(window: LedgerWindow): Promise<LedgerWindow | undefined> {
    const since = this.#parts.now() - dayMicros;
    const isOther = ({ from }: LedgerWindow): boolean => from !== window.from;
    const [richest] = (await this.#lastFullVisibility(since)).filter(isOther);
    if (richest) return richest;
    const newest = (await this.#lastFullVisibility(0)).filter(isOther).sort((a, b) => b.from - a.from)[0];
    return newest ?? (window.state === 'proven' && window.to > since ? window : undefined);
  }

  /** What the first window showed is all that can be known of what there is to be shown: it is sound by itself. */
  async #beginFullVisibility(): Promise<void> {
    const { suspensions } = this.#parts;
    if (suspensions.lastFullVisibility !== undefined) return;
    const windows = (await this.#richest(0)).filter(({ reason }) => reason === undefined);
    if (windows.length > 0) suspensions.foundFullVisibility(windows.reduce((least, { closed }) => Math.min(least, closed), Infinity));
  }

  /** Windows with records that were closed when everything was shown, the most records first. One that is to be counted again is still a reference record. */
  async #lastFullVisibility(since: Micros): Promise<readonly LedgerWindow[]> {
    return (await this.#richest(since)).filter((window) => this.#parts.suspensions.isFullyVisible(window));
  }

  #richest(since: Micros): Promise<readonly LedgerWindow[]> {
    return this.#parts.journal.richest(this.#parts.sourceId, since, maxSampledWindows);
  }

  async #doubt(window: LedgerWindow, total: number, next: Micros): Promise<void> {
    const { sourceId, journal, log, now } = this.#parts;
    const reason = window.reason === 'reread' ? window.reason : undefined;
    const remark = { reason, message: wordsOf(window, total), next, attempts: window.attempts + 1 } as const;
    await journal.remark(sourceId, window, remark, now(), this.#lastAge);
    log.write('window.recount_below', { ...this.#fields(window, total), next: microsToIso(next) });
  }

  /** The old proof, true at its time, stays; its recounts end. */
  async #vanish(window: LedgerWindow, total: number): Promise<void> {
    const { sourceId, journal, log, meters, now } = this.#parts;
    const remark = { reason: 'shrunk', message: wordsOf(window, total), next: undefined, attempts: window.attempts + 1 } as const;
    await journal.remark(sourceId, window, remark, now(), this.#lastAge);
    meters.windowShrunk(sourceId);
    log.write('window.shrunk', this.#fields(window, total));
  }

  /** Lists windows as open, so that a person can see and accept them. */
  async #list(windows: readonly LedgerWindow[]): Promise<void> {
    const { sourceId, journal, now } = this.#parts;
    for (const window of windows) {
      if (window.state !== 'proven' || window.reason !== undefined) continue;
      const remark = {
        reason: 'reread',
        message: 'the service shows fewer records than were proven',
        next: undefined,
        attempts: 1,
      } as const;
      await journal.remark(sourceId, window, remark, now(), this.#lastAge);
    }
  }

  async #windows(froms: readonly Micros[]): Promise<LedgerWindow[]> {
    const windows = await Promise.all(froms.map((from) => this.#parts.journal.window(this.#parts.sourceId, from)));
    return windows.filter((window) => window !== undefined);
  }

  async #compare(window: LedgerWindow, signal: AbortSignal): Promise<'whole' | 'fewer' | 'unknown'> {
    const total = await this.#count(window, signal);
    if (total === undefined || window.total === undefined) return 'unknown';
    return total >= window.total ? 'whole' : 'fewer';
  }

  async #count(
    window: LedgerWindow,
    signal: AbortSignal,
    isFullyVisible = this.#parts.suspensions.isFullyVisible(window),
  ): Promise<number | undefined> {
    const { requester, paging, clock, suspensions } = this.#parts;
    const { total } = await requester.count(/* mutant: recount-query */ window.query, paging.first, signal);
    // What was closed since may have been read while less was shown: that it is as it was says nothing.
    if ((window.total ?? 0) === 0 || !isFullyVisible) return total;
    this.#countedAt = clock.monotonic();
    if (total !== undefined && total >= (window.total ?? 0)) suspensions.foundFullVisibility();
    return total;
  }

  #isForgotten(window: LedgerWindow): boolean {
    return !this.#parts.journal.remembers(this.#parts.sourceId, window);
  }

  #fields(window: LedgerWindow, total: number | undefined): object {
    return {
      source: this.#parts.sourceId,
      from: microsToIso(window.from),
      to: microsToIso(window.to),
      stored: window.total,
      total,
    };
  }

  get #lastAge(): Micros {
    return this.#parts.ages.at(-1) ?? 0;
  }
}

/** The most records that a window was ever known to hold: proven, counted or received. */
export function maxTotalOf({ total, received: seen }: LedgerWindow): number {
  return Math.max(total ?? 0, seen);
}

/**
 * Whether a count can confirm a window: it is proven, and nothing beyond its proof was ever received. An equal count then shows that nothing came,
 * also where a suspension or a later count had put it in doubt.
 */
export function isCountable(window: LedgerWindow): boolean {
  return window.state === 'proven' && window.reason !== 'shrunk' && maxTotalOf(window) === window.total;
}

function wordsOf(window: LedgerWindow, total: number): string {
  return `the service counted ${window.total ?? 0} when the window was closed and ${total} now`;
}
