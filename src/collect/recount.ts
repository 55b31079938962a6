/**
 * Counting closed windows again. An equal count shows that nothing came; a greater one has the window read again; a smaller one is never believed
 * at once: it is counted again after `settle`, and then another window tells whether this one has vanished or the rights have shrunk.
 */
import type { CollectJournal } from '../model/journal.ts';
import type { Hold, LedgerWindow } from '../model/ledger.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Asker } from './ask.ts';
import type { Holds, Waits } from './hold.ts';
import type { Paging } from './pass.ts';
import { dayMicros, nextRecount } from './windows.ts';

export interface RecountParts {
  readonly sourceId: string;
  readonly asker: Asker;
  readonly paging: Paging;
  readonly journal: CollectJournal;
  readonly holds: Holds;
  readonly clock: Clock;
  readonly random: Random;
  readonly waits: Waits;
  readonly log: Log;
  readonly meters: Pick<Meters, 'windowVanished'>;
  readonly settle: Micros;
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
const guardedMost = 1_000;
const releasedWords = 'a hold that found fewer records in it has ended: it is counted again';

export class Recounter {
  readonly #parts: RecountParts;
  /** When a window with records was last counted against what was proven, ms of the monotonic clock. */
  #countedAt: number;
  /** How far the windows of a hold are counted; after a restart it begins anew. */
  #survey: { since: Micros; left: LedgerWindow[]; shrunk: Micros[]; counted: number; isWhole: boolean } | undefined;
  constructor(parts: RecountParts) {
    this.#parts = parts;
    this.#countedAt = parts.clock.monotonic();
    parts.holds.onEnd((hold) => this.release(hold));
  }

  /** Asks the stored query for its total again. Under the assumptions of the proof an equal total shows that nothing came. */
  async recount(window: LedgerWindow, signal: AbortSignal): Promise<void> {
    const { sourceId, journal, holds, log, ages, now } = this.#parts;
    await this.#beginSound();
    const total = await this.#count(window, signal);
    // What tip found out meanwhile counts: in hold nothing is confirmed.
    if (holds.current) return;
    const at = now();
    const fields = this.#fields(window, total);
    if (/* mutant: recount-agrees */ total !== undefined && total === window.total) {
      await journal.confirm(sourceId, window, nextRecount(window.until, ages, at), at, this.#lastAge);
      log.debug(fields, 'recount agrees');
      return;
    }
    // mutant: recount-fewer
    if (total !== undefined && window.total !== undefined && total < window.total) {
      await this.#fewer(window, total, signal);
      return;
    }
    if (this.#isForgotten(window)) {
      // It could only be read again by taking what was delivered long ago for new.
      const words = `the service counts ${total ?? 'nothing'} now, and the window is too old to be read again`;
      await journal.remark(sourceId, window, { reason: 'reread', words, next: undefined, tries: window.tries + 1 }, at, this.#lastAge);
      log.error(fields, 'window changed after its last recount');
      return;
    }
    log.info(fields, 'window changed after it was closed');
    await this.#parts.reread(window, signal);
  }

  /** When no sound window with records was counted for five minutes, one is, at random: rights that shrink are noticed in quiet times too. */
  async guard(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { clock, waits, random, holds, settle } = this.#parts;
    if (clock.monotonic() - this.#countedAt < waits.guard) return false;
    this.#countedAt = clock.monotonic();
    await this.#beginSound();
    // Where history is read the ledger ends long ago: its newest windows tell what is shown.
    const end = Math.min(serverNow, this.#parts.journal.marks(this.#parts.sourceId).live.reached);
    const since = end - Math.max(this.#lastAge, dayMicros);
    const sound = await this.#sound(since);
    // Where all that were sound are gone one of the others begins anew.
    const windows = sound.length > 0 ? sound : (await this.#richest(since)).filter(({ reason }) => reason === undefined);
    const window = windows[Math.floor(random() * windows.length)];
    if (!window) return false;
    const total = await this.#count(window, signal, true);
    if (holds.current || total === undefined || window.total === undefined || total === window.total) return true;
    if (total < window.total && window.tries === 0) await this.#doubt(window, total, this.#parts.now() + settle);
    else if (total > window.total && !this.#isForgotten(window)) await this.#parts.reread(window, signal);
    return true;
  }

  /**
   * The test of a hold for `rows`: whether the first window that shrank is whole again, of the proven ones that nobody has accepted; or all are
   * accepted, and others were counted as well.
   */
  async test({ windows = [], shrunk }: Hold, signal: AbortSignal): Promise<boolean> {
    this.#parts.holds.renew();
    const listed = await this.#windows(windows);
    await this.#list(listed);
    const witness = [...listed, ...(await this.#windows(shrunk ?? []))].find(({ state }) => state === 'closed');
    if (witness === undefined) return shrunk !== undefined || listed.length === 0;
    return (await this.#compare(witness, signal)) === 'whole';
  }

  /**
   * In a hold for `rows` one more window is counted, so that a person can accept together what shrank together: those of the last day, and older ones
   * until one is whole; what shrank of the rest is held against that. @returns false when there is none left
   */
  async survey(hold: Hold, signal: AbortSignal): Promise<boolean> {
    if (hold.shrunk !== undefined) return false;
    if (this.#survey?.since !== hold.since)
      this.#survey = { since: hold.since, left: await this.#others(hold), shrunk: [], counted: 0, isWhole: false };
    const survey = this.#survey;
    const window = survey.left.shift();
    if (window === undefined || (survey.isWhole && window.until <= hold.since - dayMicros)) {
      const { shrunk, counted } = survey;
      await this.#parts.holds.amend({ shrunk, words: `${hold.words}; of ${counted} other windows ${shrunk.length} hold fewer too` });
      return false;
    }
    const total = await this.#count(window, signal, false);
    survey.counted += 1;
    if (total === undefined || window.total === undefined) return true;
    if (total < window.total) survey.shrunk.push(window.from);
    else survey.isWhole = true;
    return true;
  }

  /** What a hold has not listed of the windows that tell whether everything is shown, newest first. */
  async #others({ since, windows = [] }: Hold): Promise<LedgerWindow[]> {
    const found = new Map([...(await this.#sound(since - dayMicros)), ...(await this.#sound(0))].map((each) => [each.from, each]));
    for (const from of windows) found.delete(from);
    return [...found.values()].sort((a, b) => b.from - a.from);
  }

  /**
   * Before a hold ends: all that was found to hold fewer is counted again at once, but for what was accepted, and stays in doubt until it has been;
   * and so is what was closed since a window was last counted whole, for less may have been shown then already.
   */
  async release({ reason, sound, windows = [], shrunk = [] }: Hold): Promise<void> {
    const { sourceId, journal, now } = this.#parts;
    if (reason === 'clock' || reason === 'timestamp') return;
    const at = now();
    for (const window of await this.#windows([...windows, ...shrunk])) {
      if (window.state !== 'closed' || window.reason === 'vanished') continue;
      await journal.remark(sourceId, window, { reason: 'reread', words: releasedWords, next: at, tries: 1 }, at, this.#lastAge);
    }
    if (sound === undefined) return;
    for (const window of await journal.closedSince(sourceId, sound)) {
      if (window.next !== undefined && window.next <= at) continue;
      await journal.remark(sourceId, window, { reason: undefined, words: undefined, next: at, tries: window.tries }, at, this.#lastAge);
    }
  }

  /**
   * Time went back: both clocks were ahead, and one was set right. What was closed at a time that has not come yet keeps its proof, true when it was
   * made. A window whose end has not settled is listed as open until it has, and then read again; others are counted at the ages still ahead of them.
   */
  async closedAhead(at: Micros): Promise<void> {
    const { sourceId, journal, log, settle, ages } = this.#parts;
    for (const window of await journal.closedSince(sourceId, at + steppedMicros)) {
      const isForgotten = this.#isForgotten(window);
      const isEarly = window.until + settle > at;
      const due = isEarly ? window.until + settle : nextRecount(window.until, ages, at);
      if (!isEarly && (isForgotten || due === window.next)) continue;
      const words = `closed at ${microsToIso(window.closed)} by clocks that were ahead${isForgotten ? '; what it held is forgotten, and it cannot be read again' : ''}`;
      const remark = { reason: isEarly ? ('reread' as const) : undefined, words, next: isForgotten ? undefined : due, tries: window.tries };
      await journal.remark(sourceId, window, remark, at, this.#lastAge);
      log.error({ ...this.#fields(window, undefined), words }, 'window was closed before its time');
    }
  }

  /** Fewer than were proven. A replica may lag: only a second count, after `settle`, is believed, and then another window is counted. */
  async #fewer(window: LedgerWindow, total: number, signal: AbortSignal): Promise<void> {
    const { settle, now } = this.#parts;
    const found = window.tries === 0 ? 'unknown' : await this.whereTheyAre(window, total, signal);
    if (found === 'vanished') await this.#vanish(window, total);
    else if (found === 'unknown') await this.#doubt(window, total, now() + settle);
  }

  /**
   * Where records are that a window has shown and does not show any more: another window tells. With that one whole they have vanished. With fewer
   * there as well rows are hidden, and the source is on hold.
   * @param total  what the window shows now
   */
  async whereTheyAre(window: LedgerWindow, total: number, signal: AbortSignal): Promise<'vanished' | 'held' | 'unknown'> {
    const { holds } = this.#parts;
    await this.#beginSound();
    const other = await this.#other(window);
    const seen = other === undefined ? 'whole' : await this.#compare(other, signal);
    if (other === undefined || seen === 'whole') {
      // Rows may have come back between the two questions: so the first is asked once more.
      const again = other === undefined ? total : await this.#count(window, signal, false);
      if (holds.current) return 'held';
      return again !== undefined && again <= total ? 'vanished' : 'unknown';
    }
    const isFewer = async (): Promise<boolean> => (await this.#compare(other, signal)) === 'fewer';
    // The answer that showed fewer may be as stale as the token was: nothing is known yet.
    if (seen === 'unknown' || (await holds.passesAfresh(async () => !(await isFewer()), signal))) return 'unknown';
    const isAlone = other.from === window.from;
    const words =
      `the window from ${microsToIso(window.from)} holds ${total} of ${mostOf(window)} records` +
      (isAlone ? '' : `, and that from ${microsToIso(other.from)} fewer than its ${other.total ?? 0} as well`);
    // Not a gap, of which nothing was proven: with the hold over it is tried again, and held against another window.
    const listed = isAlone || window.state === 'gap' ? [other] : [other, window];
    await holds.begin({ reason: 'rows', words, windows: listed.map(({ from }) => from) });
    await this.#list(listed);
    return 'held';
  }

  /**
   * Another window that tells whether rows are hidden: of the last day the one with the most records; else the newest, which the service forgets
   * last. Where there is none a window of the last day tells it by itself; not so a gap, of which nothing was proven.
   */
  async #other(window: LedgerWindow): Promise<LedgerWindow | undefined> {
    const since = this.#parts.now() - dayMicros;
    const isOther = ({ from }: LedgerWindow): boolean => from !== window.from;
    const [richest] = (await this.#sound(since)).filter(isOther);
    if (richest) return richest;
    const newest = (await this.#sound(0)).filter(isOther).sort((a, b) => b.from - a.from)[0];
    return newest ?? (window.state === 'closed' && window.until > since ? window : undefined);
  }

  /** What the first window showed is all that can be known of what there is to be shown: it is sound by itself. */
  async #beginSound(): Promise<void> {
    const { holds } = this.#parts;
    if (holds.sound !== undefined) return;
    const windows = (await this.#richest(0)).filter(({ reason }) => reason === undefined);
    if (windows.length > 0) holds.foundSound(windows.reduce((least, { closed }) => Math.min(least, closed), Infinity));
  }

  /** Windows with records that were closed when everything was shown, the most records first. One that is to be counted again is still a witness. */
  async #sound(since: Micros): Promise<readonly LedgerWindow[]> {
    return (await this.#richest(since)).filter((window) => this.#parts.holds.isSound(window));
  }

  #richest(since: Micros): Promise<readonly LedgerWindow[]> {
    return this.#parts.journal.richest(this.#parts.sourceId, since, guardedMost);
  }

  async #doubt(window: LedgerWindow, total: number, next: Micros): Promise<void> {
    const { sourceId, journal, log, now } = this.#parts;
    const reason = window.reason === 'reread' ? window.reason : undefined;
    const remark = { reason, words: wordsOf(window, total), next, tries: window.tries + 1 } as const;
    await journal.remark(sourceId, window, remark, now(), this.#lastAge);
    log.warn({ ...this.#fields(window, total), next: microsToIso(next) }, 'recount gives fewer than were proven: it is counted again');
  }

  /** The old proof, true at its time, stays; its recounts end. */
  async #vanish(window: LedgerWindow, total: number): Promise<void> {
    const { sourceId, journal, log, meters, now } = this.#parts;
    const remark = { reason: 'vanished', words: wordsOf(window, total), next: undefined, tries: window.tries + 1 } as const;
    await journal.remark(sourceId, window, remark, now(), this.#lastAge);
    meters.windowVanished(sourceId);
    log.error(this.#fields(window, total), 'records have vanished at the service');
  }

  /** Lists windows as open, so that a person can see and accept them. */
  async #list(windows: readonly LedgerWindow[]): Promise<void> {
    const { sourceId, journal, now } = this.#parts;
    for (const window of windows) {
      if (window.state !== 'closed' || window.reason !== undefined) continue;
      const remark = { reason: 'reread', words: 'the service shows fewer records than were proven', next: undefined, tries: 1 } as const;
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

  async #count(window: LedgerWindow, signal: AbortSignal, isSound = this.#parts.holds.isSound(window)): Promise<number | undefined> {
    const { asker, paging, clock, holds } = this.#parts;
    const { total } = await asker.count(/* mutant: recount-query */ window.query, paging.first, signal);
    // What was closed since may have been read while less was shown: that it is as it was says nothing.
    if ((window.total ?? 0) === 0 || !isSound) return total;
    this.#countedAt = clock.monotonic();
    if (total !== undefined && total >= (window.total ?? 0)) holds.foundSound();
    return total;
  }

  #isForgotten(window: LedgerWindow): boolean {
    return !this.#parts.journal.remembers(this.#parts.sourceId, window);
  }

  #fields(window: LedgerWindow, total: number | undefined): object {
    return {
      source: this.#parts.sourceId,
      from: microsToIso(window.from),
      until: microsToIso(window.until),
      stored: window.total,
      total,
    };
  }

  get #lastAge(): Micros {
    return this.#parts.ages.at(-1) ?? 0;
  }
}

/** The most records that a window was ever known to hold: proven, counted or received. */
export function mostOf({ total, seen }: LedgerWindow): number {
  return Math.max(total ?? 0, seen);
}

/**
 * Whether a count can confirm a window: it is proven, and nothing beyond its proof was ever received. An equal count then shows that nothing came,
 * also where a hold or a later count had put it in doubt.
 */
export function isCountable(window: LedgerWindow): boolean {
  return window.state === 'closed' && window.reason !== 'vanished' && mostOf(window) === window.total;
}

function wordsOf(window: LedgerWindow, total: number): string {
  return `the service counted ${window.total ?? 0} when the window was closed and ${total} now`;
}
