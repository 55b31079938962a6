/**
 * Closes a window of the ledger with a proof or as a gap, and retries gaps. Each outcome is one call of the journal, which alone moves
 * `closedUntil` and the frontier. Recounts are in recount.ts.
 */
import { WaybillError } from '../errors/errors.ts';
import type { CollectedPage } from '../model/journal.ts';
import type { LedgerWindow, Range, Verdict, Window } from '../model/ledger.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { PageStore } from './page-store.ts';
import type { SourceAccess } from './source-access.ts';
import { readWindow, type Outcome, type Reading, type Splitting } from './read-window.ts';
import { ClockLost, isCountable, maxTotalOf, Recounter } from './recount.ts';
import { EarlyWindows, type EarlyWindow } from './early.ts';
import { Widths } from './window-width.ts';
import {
  dayMicros,
  lowerHalf,
  nextRecount,
  nextTry,
  nextWidth,
  nextWindow,
  queryOf,
  secondMicros,
  upperHalf,
  wholeSecond,
  widestMicros,
  widthWithin,
} from './windows.ts';

interface CloserParts extends Omit<SourceAccess, 'handoff'> {
  readonly reading: Reading;
  readonly meters: Pick<Meters, 'windowShrunk'>;
  /** Ages of recount, ascending. */
  readonly ages: readonly Micros[];
  /** From before a restart. */
  readonly pace?: Pace | undefined;
  readonly keepPace?: ((pace: Pace) => Promise<void>) | undefined;
}

/** How far a range was read; plain JSON. A process that is often killed must not read the same records in each life. */
export interface Pace {
  /** The begin of the range. */
  readonly range: Micros;
  /** What is read of the range in two seconds: the width of the first windows after a restart. */
  readonly width: Micros;
  /** The end of the history that was read before the clock of the service was known. */
  readonly early: Micros;
}

const paceMs = 2_000;

/** This many consecutive gaps with the reason `out_of_range` show that the service ignores the time filter. */
const maxOutOfRangeWindows = 3;
const outOfRangeMessage = 'three windows in a row received records of other times: the service ignores the time filter';

export class WindowCloser {
  readonly #parts: CloserParts;
  readonly #source: string;
  /** By the start of the range: the ranges differ in their records per hour. */
  readonly #widths = new Map<Micros, Widths>();
  readonly #early: EarlyWindows;
  #pacedAt: number;
  /** By the start of the range: the width of its last window, if that was empty and a day wide or more. */
  readonly #empty = new Map<Micros, Micros>();
  /** No wider query can be counted. */
  #widestCount: Micros = Infinity;
  #proven = false;
  /** The last windows of the live range all received records of other times. Read from the ledger, so that it survives a restart. */
  #ignoresTimeFilter = false;
  readonly recounter: Recounter;

  constructor(parts: CloserParts) {
    this.#parts = parts;
    this.#source = parts.sourceId;
    this.#early = new EarlyWindows(parts.pace?.early);
    this.#pacedAt = parts.clock.monotonic();
    this.recounter = new Recounter({
      ...parts,
      now: () => this.#serverNow(),
      isTimeKnown: () => this.#parts.serverClock.established(),
      reread: (window, signal) => this.#reread(window, true, signal),
    });
  }

  /** Checks the last windows for records of other times. Called at the start, and after each window. */
  async checkTimeFilter(): Promise<void> {
    const latest = await this.#parts.journal.latest(this.#source, maxOutOfRangeWindows);
    const ignoresTimeFilter =
      latest.length === maxOutOfRangeWindows && latest.every(({ state, reason }) => state !== 'proven' && reason === 'out_of_range');
    if (ignoresTimeFilter && !this.#ignoresTimeFilter)
      this.#parts.log.write('source.time_filter_ignored', { source: this.#source, reason: 'out_of_range', detail: outOfRangeMessage });
    this.#ignoresTimeFilter = ignoresTimeFilter;
  }

  /** For the status: a fault of the service that the windows show. */
  get trouble(): string | undefined {
    return this.#ignoresTimeFilter ? outOfRangeMessage : undefined;
  }

  /** The window of requested history that is being read. */
  reading: Window | undefined;

  /**
   * Closes the next window of a range if its close delay has passed.
   * @param range  default: the live range
   */
  async closeNext(
    serverNow: Micros,
    signal: AbortSignal,
    range: Range = this.#parts.journal.progress(this.#source).live,
  ): Promise<boolean> {
    const { closeDelay } = this.#parts;
    const { from, to, closedUntil } = range;
    if (to === null) {
      const early = this.#early.at(closedUntil);
      if (early && early.window.to + closeDelay <= serverNow) return this.#closeEarly(early, signal);
    }
    const width = this.#widthsOf(from).requestWidth(widestMicros(closedUntil, serverNow - closeDelay, closeDelay));
    // A window that was read early keeps its edges.
    const end = to ?? this.#early.after(closedUntil) ?? null;
    const next = nextWindow(closedUntil, width, serverNow, closeDelay, end);
    if (!next) return false;
    const window = await this.#withEmptyDays(next, from, Math.min(end ?? Infinity, serverNow - closeDelay), signal);
    const read = await this.#readNext(window, width, range, signal);
    // A clock may have been set back in the meantime: then the close delay has not passed by the corrected time.
    if (!read || !this.#isDue(read.window)) return true;
    // mutant: record-window
    await this.#record(read.window, read.verdict, 1, false);
    this.reading = undefined;
    return true;
  }

  /**
   * Reads history of the live range before the clock of the service is known. Records are stored at
   * once. Each window is closed when the clock is known and a count confirms it.
   * @param before  µs: reads only windows whose close delay has passed by then
   * @returns false when there is none
   */
  async readEarly(before: Micros, signal: AbortSignal): Promise<boolean> {
    const { journal, closeDelay } = this.#parts;
    const { live } = journal.progress(this.#source);
    const begin = Math.max(live.closedUntil, this.#early.to);
    const width = this.#widthsOf(live.from).requestWidth(widestMicros(begin, before - closeDelay, closeDelay));
    const next = nextWindow(begin, width, before, closeDelay);
    if (!next) return false;
    const window = await this.#withEmptyDays(next, live.from, before - closeDelay, signal);
    const read = await this.#readNext(window, width, live, signal);
    if (read) this.#early.add(read.window, read.verdict);
    return true;
  }

  /**
   * Counts the window once more. An equal count proves it now: the theorem at `WindowTally.counted`
   * holds for every count after the last page. After any other count the window is read again.
   */
  async #closeEarly({ window, proof }: EarlyWindow, signal: AbortSignal): Promise<boolean> {
    const { requester, paging, suspensions, log } = this.#parts;
    const { total, serverNow: last = this.#serverNow() } = await requester.count(proof.query, paging.first, signal);
    if (suspensions.current || !this.#isDue(window)) return true;
    this.#early.drop(window);
    if (total !== proof.total) {
      log.write('window.reread', { source: this.#source, ...this.#edges(window), total, received: proof.total });
      return true;
    }
    // Server time may have gone back while the clock was measured.
    const confirmed = { ...proof, requests: proof.requests + 1, first: Math.min(proof.first, last), last };
    await this.#record(window, { proven: true, proof: confirmed }, 1, false);
    return true;
  }

  /**
   * After an empty window of a day or more, the next one is twice as wide if one count finds no record in it: otherwise one
   * ancient record would cost two requests for each day since then.
   */
  async #withEmptyDays(window: Window, range: Micros, end: Micros, signal: AbortSignal): Promise<Window> {
    const { requester, paging } = this.#parts;
    const width = 2 * (this.#empty.get(range) ?? 0);
    const to = Math.floor(Math.min(window.from + width, end) / dayMicros) * dayMicros;
    if (to <= window.to || width > this.#widestCount) return window;
    const stretch = { from: window.from, to };
    const { total } = await requester.count(queryOf(stretch), paging.first, signal);
    if (total === undefined) this.#widestCount = width / 2;
    return total === 0 ? stretch : window;
  }

  /** Reads a window of a range, halved until it can be read in one piece. Undefined while suspended. */
  async #readNext(
    whole: Window,
    requestWidth: Micros,
    { from, to }: Range,
    signal: AbortSignal,
  ): Promise<{ readonly window: Window; readonly verdict: Verdict } | undefined> {
    const widths = this.#widthsOf(from);
    let requested = requestWidth;
    for (let window = whole; ;) {
      this.reading = to === null ? undefined : window;
      const half = lowerHalf(window);
      const outcome = await this.#read(window, queryOf(window), half === undefined ? 'none' : 'any', signal, from);
      if (!('kind' in outcome)) {
        const isEmpty = outcome.proven && outcome.proof.total === 0;
        this.#empty.set(from, isEmpty && window.to - window.from >= dayMicros ? window.to - window.from : 0);
        widths.read(requested, window.to - window.from, outcome.proven ? outcome.proof.total : outcome.seen);
        return { window, verdict: outcome };
      }
      if (outcome.kind === 'suspended') return undefined;
      if (!half) throw new WaybillError('internal_error', `cannot split a window of one second of "${this.#source}" at ${window.from}`);
      if (outcome.records === undefined) {
        widths.refused(window.to - window.from);
        this.#parts.log.write('window.too_wide', { source: this.#source, ...this.#edges(window), detail: outcome.message });
      } else widths.crowded(outcome.records);
      const width = window.to - window.from;
      const fitting = outcome.records === undefined ? width : nextWidth(width, outcome.records);
      requested = widthWithin(Math.min(fitting, width / 2));
      window = lowerHalf(window, fitting) ?? half;
    }
  }

  #widthsOf(from: Micros): Widths {
    const { pace } = this.#parts;
    const widths = this.#widths.get(from) ?? new Widths(pace?.range === from ? pace.width : undefined);
    this.#widths.set(from, widths);
    return widths;
  }

  /** A page of a window of this range is stored. @param begun  when the reading of the window began, ms of the monotonic clock */
  async #keepPace(range: Micros, { from, to }: Window, begun: number, records: CollectedPage['records']): Promise<void> {
    const { clock, keepPace } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#pacedAt < paceMs) return;
    this.#pacedAt = now;
    const newest = records.reduce((latest, { time = from }) => Math.max(latest, time), from);
    const read = ((Math.min(newest, to) - from) * paceMs) / (now - begun);
    // Without a sort order the first page may hold the newest record: the width becomes smaller nevertheless.
    const width = now - begun < paceMs ? to - from : wholeSecond(Math.min(read, (to - from) / 2));
    // mutant: pace
    await keepPace?.({ range, width: Math.max(secondMicros, width), early: this.#early.to });
  }

  /** Recounts or retries the window that is due first. @returns false when none is due */
  async retry(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const window = await this.#parts.journal.due(this.#source, serverNow);
    if (!window) return false;
    if (isCountable(window)) await this.recounter.recount(window, signal);
    else await this.#reread(window, false, signal);
    return true;
  }

  /** A window of the ledger keeps its edges, except a gap that is too much for the service to answer. */
  async #reread(window: LedgerWindow, recount: boolean, signal: AbortSignal): Promise<void> {
    const outcome = await this.#read(window, window.query, (await this.#mayBeDivided(window, signal)) ? 'refused' : 'none', signal);
    if ('kind' in outcome) {
      if (outcome.kind === 'split') await this.#divide(window, outcome.message);
      return;
    }
    const verdict = await this.#checkFewer(window, outcome, signal);
    if (verdict && this.#parts.serverClock.established()) await this.#record(window, verdict, window.attempts + 1, recount);
  }

  /** A gap is not divided if the service now counts fewer records than it showed before: it would be unknown which half lost them. */
  async #mayBeDivided(window: LedgerWindow, signal: AbortSignal): Promise<boolean> {
    if (window.state !== 'gap' || window.reason !== 'unreadable' || lowerHalf(window) === undefined) return false;
    if (maxTotalOf(window) === 0) return true;
    const { requester, paging } = this.#parts;
    const { total } = await requester.count(window.query, paging.first, signal);
    return total !== undefined && total >= maxTotalOf(window);
  }

  /** Replaces a gap by two gaps, which are due at once. */
  async #divide(window: LedgerWindow, message: string): Promise<void> {
    const lower = lowerHalf(window);
    if (!lower) throw new WaybillError('internal_error', `cannot split a gap of one second of "${this.#source}" at ${window.from}`);
    const { journal, log } = this.#parts;
    const parts = [lower, upperHalf(window, lower)].map((part) => ({ ...part, query: queryOf(part) }));
    await journal.divide(this.#source, window, parts, { message, at: this.#serverNow() }, this.#lastAge());
    const { from, to } = this.#edges(window);
    log.write('window.gap_divided', { source: this.#source, from, to, detail: message });
  }

  #edges({ from, to }: Window): { from: string; to: string } {
    return { from: microsToIso(from), to: microsToIso(to) };
  }

  /**
   * A proof of fewer records than the window showed before is not trusted while the service may
   * hide records: hidden records are not counted either. Undefined while suspended.
   */
  async #checkFewer(window: LedgerWindow, verdict: Verdict, signal: AbortSignal): Promise<Verdict | undefined> {
    // mutant: proof-of-fewer
    if (!verdict.proven || verdict.proof.total >= maxTotalOf(window)) return verdict;
    const { query, total, inWindow: own, digest, passes, requests } = verdict.proof;
    const found = await this.recounter.causeOfFewer(window, total, signal);
    if (found === 'suspended') return undefined;
    if (found === 'shrunk') return verdict;
    const message = `the service counts ${total} records now and showed ${maxTotalOf(window)} before; the cause is not known yet`;
    return { proven: false, reason: 'count', message, query, total, inWindow: own, seen: total, digest, passes, requests };
  }

  /** @param range  the begin of the range whose next window this is */
  #read(window: Window, query: LedgerWindow['query'], splitting: Splitting, signal: AbortSignal, range?: Micros): Promise<Outcome> {
    const { reading, clock } = this.#parts;
    const begun = clock.monotonic();
    const store: PageStore['store'] = async (page, place) => {
      const stored = await reading.pages.store(page, place);
      if (range !== undefined) await this.#keepPace(range, window, begun, page.records);
      return stored;
    };
    return readWindow(
      { ...reading, pages: { store, contradicts: (...read) => reading.pages.contradicts(...read) } },
      window,
      query,
      splitting,
      signal,
    );
  }

  async #record(window: Window, verdict: Verdict, attempts: number, recount: boolean): Promise<void> {
    const { journal, log, ages, clock, closeDelay } = this.#parts;
    const at = this.#serverNow();
    const before = attempts > 1 ? await journal.window(this.#source, window.from) : undefined;
    const next = /* mutant: next-try */ verdict.proven ? nextRecount(window.to, ages, at) : nextTry(window.to, attempts, ages, at);
    await journal.close(this.#source, window, { verdict, next, at, recount }, this.#lastAge());
    await this.checkTimeFilter();
    const fields = { source: this.#source, from: microsToIso(window.from), to: microsToIso(window.to) };
    if (!verdict.proven) {
      log.write('window.not_proven', {
        ...fields,
        reason: verdict.reason,
        detail: verdict.message,
        total: verdict.total,
        received: verdict.seen,
        next: next === undefined ? undefined : microsToIso(next),
      });
      return;
    }
    const { total, inWindow: own, passes } = verdict.proof;
    const counts = { counted: total, received: total, inWindow: own };
    log.write('window.proven', { ...fields, ...counts, passes });
    if (before && (await journal.window(this.#source, window.from))?.reason === 'shrunk') {
      this.#parts.meters.windowShrunk(this.#source);
      log.write('window.shrunk', { ...fields, stored: maxTotalOf(before), total });
    }
    if (this.#proven) return;
    this.#proven = true;
    log.write('window.first_proven', { ...fields, ...counts, next: microsToIso(clock.now() * 1000 + closeDelay) });
  }

  /** No window is closed before its close delay has passed. */
  #isDue({ to }: Window): boolean {
    return this.#parts.serverClock.established() && this.#serverNow() >= to + this.#parts.closeDelay;
  }

  /** The time that both clocks have reached. */
  #serverNow(): Micros {
    const now = this.#parts.serverClock.agreed();
    if (now === undefined) throw new ClockLost();
    this.#parts.suspensions.wentBack(now);
    return now;
  }

  #lastAge(): Micros {
    return this.#parts.ages.at(-1) ?? 0;
  }
}
