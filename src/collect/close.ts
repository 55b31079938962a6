/**
 * What happens to a window of the ledger: it is closed with a proof, left as a gap, tried again. Each outcome is one call of the journal; nothing
 * here moves a mark by itself. Counting again is for recount.ts.
 */
import { WaybillError } from '../errors.ts';
import type { CollectJournal } from '../model/journal.ts';
import type { LedgerWindow, Range, Verdict, Window } from '../model/ledger.ts';
import type { ServerClock } from '../model/source.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Asker } from './ask.ts';
import type { Holds, Waits } from './hold.ts';
import { readWindow } from './read-window.ts';
import type { Outcome, Reading, Splitting } from './read-window.ts';
import { isCountable, mostOf, Recounter } from './recount.ts';
import { EarlyWindows } from './early.ts';
import type { EarlyWindow } from './early.ts';
import { Widths } from './widths.ts';
import { lowerHalf, nextRecount, nextTry, nextWindow, queryOf, upperHalf, widestMicros, widthWithin } from './windows.ts';

export interface CloserParts {
  readonly reading: Reading;
  readonly asker: Asker;
  readonly journal: CollectJournal;
  readonly holds: Holds;
  readonly serverClock: ServerClock;
  readonly clock: Clock;
  readonly random: Random;
  readonly waits: Waits;
  readonly log: Log;
  readonly meters: Pick<Meters, 'windowVanished'>;
  readonly settle: Micros;
  /** Ages of recount, ascending. */
  readonly ages: readonly Micros[];
}

/** So many gaps with the reason `filter` in a row are not an accident. */
const strangeMost = 3;
const strangeWords = 'three windows in a row hold records from outside of them: the service does not filter by time as it says';

export class Closer {
  readonly #parts: CloserParts;
  readonly #source: string;
  /** By the begin of a range: history may be denser than the present. */
  readonly #widths = new Map<Micros, Widths>();
  readonly #early = new EarlyWindows();
  #proven = false;
  /** Whether the last windows of the live range all held records from elsewhere: the ledger knows, also after a restart. */
  #isStrange = false;
  readonly #recounter: Recounter;

  constructor(parts: CloserParts) {
    const { reading, asker, journal, holds, clock, random, waits, log, meters, settle, ages } = parts;
    this.#parts = parts;
    this.#source = reading.sourceId;
    this.#recounter = new Recounter({
      sourceId: reading.sourceId,
      paging: reading.paging,
      ...{ asker, journal, holds, clock, random, waits, log, meters, settle, ages },
      now: () => this.#serverNow(),
      reread: (window, signal) => this.#reread(window, true, signal),
    });
  }

  /** Counts closed windows again. */
  get recounter(): Recounter {
    return this.#recounter;
  }

  /** Takes up what the last windows say of the service: after each of them, and first when the loop begins. */
  lookBack(): void {
    const latest = this.#parts.journal.latest(this.#source, strangeMost);
    const isStrange = latest.length === strangeMost && latest.every(({ state, reason }) => state !== 'closed' && reason === 'filter');
    if (isStrange && !this.#isStrange)
      this.#parts.log.error({ source: this.#source, reason: 'filter', words: strangeWords }, 'source does not filter by time');
    this.#isStrange = isStrange;
  }

  /** What the readings themselves say is wrong with the service. */
  get trouble(): string | undefined {
    return this.#isStrange ? strangeWords : undefined;
  }

  /** The window of a range of history that is being read. */
  reading: Window | undefined;

  /** Closes the next window of a range, if its end is settled; of the live range unless another is given. */
  async closeNext(serverNow: Micros, signal: AbortSignal, range: Range = this.#parts.journal.marks(this.#source).live): Promise<boolean> {
    const { settle } = this.#parts;
    const { from, until, reached } = range;
    if (until === null) {
      const early = this.#early.at(reached);
      if (early && early.window.until + settle <= serverNow) return this.#closeEarly(early, signal);
    }
    const width = this.#widthsOf(from).wish(widestMicros(reached, serverNow - settle, settle));
    // What was read early keeps its edges.
    const window = nextWindow(reached, width, serverNow, settle, until ?? this.#early.after(reached) ?? null);
    if (!window) return false;
    const read = await this.#readNext(window, width, range, signal);
    // Nor when a clock was set right meanwhile: its end has not settled by the time that holds now.
    if (!read || !this.#isSettled(read.window)) return true;
    // mutant: record-window
    await this.#record(read.window, read.verdict, 1, false);
    this.reading = undefined;
    return true;
  }

  /**
   * Reads history of the live range before the clock of the service is known: it is collected at once, and each window is closed once the clock is
   * known and a count confirms what was read.
   * @param before  µs: only windows are read whose end is settled by then
   * @returns false when there is none
   */
  async readEarly(before: Micros, signal: AbortSignal): Promise<boolean> {
    const { journal, settle } = this.#parts;
    const { live } = journal.marks(this.#source);
    const begin = Math.max(live.reached, this.#early.until);
    const width = this.#widthsOf(live.from).wish(widestMicros(begin, before - settle, settle));
    const window = nextWindow(begin, width, before, settle);
    if (!window) return false;
    const read = await this.#readNext(window, width, live, signal);
    if (read) this.#early.add(read.window, read.verdict);
    return true;
  }

  /**
   * The theorem of read-window.ts holds for any answer served after the last page: one that counts now what was received then proves the window
   * at this moment. Where it counts otherwise the window is read again.
   */
  async #closeEarly({ window, proof }: EarlyWindow, signal: AbortSignal): Promise<boolean> {
    const { asker, reading, holds, log } = this.#parts;
    const { total, serverNow } = await asker.count(proof.query, reading.paging.first, signal);
    if (holds.current || !this.#isSettled(window)) return true;
    this.#early.drop(window);
    if (total !== proof.total) {
      log.debug(
        { source: this.#source, ...this.#edges(window), total, received: proof.total },
        'window changed since it was read: reading again',
      );
      return true;
    }
    const last = serverNow ?? this.#serverNow();
    // While the clock was being measured its bound could go back.
    const confirmed = { ...proof, requests: proof.requests + 1, first: Math.min(proof.first, last), last };
    await this.#record(window, { proven: true, proof: confirmed }, 1, false);
    return true;
  }

  /** Reads a window of a range, or as much of its lower end as can be proven in one piece. Undefined in hold. */
  async #readNext(
    whole: Window,
    wish: Micros,
    { from, until }: Range,
    signal: AbortSignal,
  ): Promise<{ readonly window: Window; readonly verdict: Verdict } | undefined> {
    const widths = this.#widthsOf(from);
    let asked = wish;
    for (let window = whole; ;) {
      this.reading = until === null ? undefined : window;
      const half = lowerHalf(window);
      const outcome = await this.#read(window, queryOf(window), half === undefined ? 'none' : 'any', signal);
      if ('held' in outcome) return undefined;
      if (!('split' in outcome)) {
        widths.read(asked, window.until - window.from, outcome.proven ? outcome.proof.total : outcome.seen);
        return { window, verdict: outcome };
      }
      if (!half) throw new WaybillError('invariant', `window of one second of "${this.#source}" at ${window.from} was to be split`);
      if (outcome.records === undefined) {
        widths.refused(window.until - window.from);
        this.#parts.log.info({ source: this.#source, ...this.#edges(window), words: outcome.words }, 'window is too wide for the service');
      } else widths.crowded(outcome.records);
      asked = widthWithin((window.until - window.from) / 2);
      window = half;
    }
  }

  #widthsOf(from: Micros): Widths {
    const widths = this.#widths.get(from) ?? new Widths();
    this.#widths.set(from, widths);
    return widths;
  }

  /** Does what is due first: recounts, then further tries. False when nothing is due. */
  async again(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const window = await this.#parts.journal.due(this.#source, serverNow);
    if (!window) return false;
    if (isCountable(window)) await this.#recounter.recount(window, signal);
    else await this.#reread(window, false, signal);
    return true;
  }

  /** A window of the ledger keeps its edges, but for a gap that is too much for the service to answer. */
  async #reread(window: LedgerWindow, recount: boolean, signal: AbortSignal): Promise<void> {
    const outcome = await this.#read(window, window.query, (await this.#mayBeDivided(window, signal)) ? 'refused' : 'none', signal);
    if ('held' in outcome) return;
    if ('split' in outcome) {
      await this.#divide(window, outcome.words);
      return;
    }
    const verdict = await this.#believed(window, outcome, signal);
    if (verdict) await this.#record(window, verdict, window.tries + 1, recount);
  }

  /** Only while the service counts all that the gap has ever shown: what it has lost could not be told of its halves. */
  async #mayBeDivided(window: LedgerWindow, signal: AbortSignal): Promise<boolean> {
    if (window.state !== 'gap' || window.reason !== 'unreadable' || lowerHalf(window) === undefined) return false;
    if (mostOf(window) === 0) return true;
    const { asker, reading } = this.#parts;
    const { total } = await asker.count(window.query, reading.paging.first, signal);
    return total !== undefined && total >= mostOf(window);
  }

  /** Two gaps in the place of one, which are due at once. */
  async #divide(window: LedgerWindow, words: string): Promise<void> {
    const lower = lowerHalf(window);
    if (!lower) throw new WaybillError('invariant', `gap of one second of "${this.#source}" at ${window.from} was to be split`);
    const { journal, log } = this.#parts;
    const parts = [lower, upperHalf(window, lower)].map((part) => ({ ...part, query: queryOf(part) }));
    await journal.divide(this.#source, window, parts, { words, at: this.#serverNow() }, this.#lastAge());
    const { from, until } = this.#edges(window);
    log.info({ source: this.#source, from, until, words }, 'gap is too wide for the service: its halves are tried');
  }

  #edges({ from, until }: Window): { from: string; until: string } {
    return { from: microsToIso(from), until: microsToIso(until) };
  }

  /**
   * Of fewer records than a window has shown a proof is worth nothing while rows are hidden: what is shown then proves itself. Undefined in hold.
   */
  async #believed(window: LedgerWindow, verdict: Verdict, signal: AbortSignal): Promise<Verdict | undefined> {
    // mutant: proof-of-fewer
    if (!verdict.proven || verdict.proof.total >= mostOf(window)) return verdict;
    const { query, total, own, digest, passes, requests } = verdict.proof;
    const found = await this.#recounter.whereTheyAre(window, total, signal);
    if (found === 'held') return undefined;
    if (found === 'vanished') return verdict;
    const words = `the service counts ${total} now and has shown ${mostOf(window)}; whether the others have vanished is not known yet`;
    return { proven: false, reason: 'count', words, query, total, own, seen: total, digest, passes, requests };
  }

  #read(window: Window, query: LedgerWindow['query'], splitting: Splitting, signal: AbortSignal): Promise<Outcome> {
    return readWindow(this.#parts.reading, window, query, splitting, signal);
  }

  async #record(window: Window, verdict: Verdict, tries: number, recount: boolean): Promise<void> {
    const { journal, log, ages, clock, settle } = this.#parts;
    const at = this.#serverNow();
    const next = /* mutant: next-try */ verdict.proven ? nextRecount(window.until, ages, at) : nextTry(window.until, tries, ages, at);
    await journal.close(this.#source, window, { verdict, next, at, recount }, this.#lastAge());
    this.lookBack();
    const fields = { source: this.#source, from: microsToIso(window.from), until: microsToIso(window.until) };
    if (!verdict.proven) {
      log.warn(
        {
          ...fields,
          reason: verdict.reason,
          words: verdict.words,
          total: verdict.total,
          received: verdict.seen,
          next: next === undefined ? undefined : microsToIso(next),
        },
        'window not proven',
      );
      return;
    }
    const { total, own, passes } = verdict.proof;
    log.debug({ ...fields, total, own, passes }, 'window proven');
    if (tries > 1 && (await journal.window(this.#source, window.from))?.reason === 'vanished') {
      this.#parts.meters.windowVanished(this.#source);
      log.error({ ...fields, total }, 'records have vanished at the service');
    }
    if (this.#proven) return;
    this.#proven = true;
    log.info({ ...fields, own, total, next: microsToIso(clock.now() * 1000 + settle) }, 'first window proven');
  }

  /** I5: no window is closed before its end is settled. */
  #isSettled({ until }: Window): boolean {
    return this.#parts.serverClock.established() && this.#serverNow() >= until + this.#parts.settle;
  }

  /** What both clocks have reached. */
  #serverNow(): Micros {
    const now = this.#parts.serverClock.agreed();
    if (now === undefined) throw new WaybillError('invariant', `source "${this.#source}" has an established clock without a time`);
    this.#parts.holds.wentBack(now);
    return now;
  }

  #lastAge(): Micros {
    return this.#parts.ages.at(-1) ?? 0;
  }
}
