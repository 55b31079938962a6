/**
 * What happens to a window of the ledger: it is closed with a proof, left as a gap, tried again. Each outcome is one call of the journal; nothing
 * here moves a mark by itself. Counting again is for recount.ts.
 */
import { WaybillError } from '../errors.ts';
import type { Clock, CollectJournal, LedgerWindow, Log, Meters, Micros, Random, Range, ServerClock, Verdict, Window } from '../model.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Asker } from './ask.ts';
import type { Holds, Waits } from './hold.ts';
import { readWindow } from './read-window.ts';
import type { Outcome, Reading } from './read-window.ts';
import { isCountable, mostOf, Recounter } from './recount.ts';
import { lowerHalf, nextRecount, nextTry, nextWidth, nextWindow, queryOf, widestMicros } from './windows.ts';

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

/** How wide windows are wished for, and with how many records one was found too crowded to be proven: it is not widened to that again. */
interface Pace {
  width: Micros;
  crowded: number;
}

/** So many gaps with the reason `filter` in a row are not an accident. */
const strangeMost = 3;
const strangeWords = 'three windows in a row hold records from outside of them: the service does not filter by time as it says';

export class Closer {
  readonly #parts: CloserParts;
  readonly #source: string;
  /** By the begin of a range: history may be denser than the present. */
  readonly #paces = new Map<Micros, Pace>();
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
    const pace = this.#paceOf(from);
    const width = Math.min(pace.width, widestMicros(reached, serverNow - settle, settle));
    let window = nextWindow(reached, width, serverNow, settle, until);
    if (!window) return false;
    for (;;) {
      this.reading = until === null ? undefined : window;
      const half = lowerHalf(window);
      const outcome = await this.#read(window, queryOf(window), half !== undefined, signal);
      if ('split' in outcome) {
        if (!half) throw new WaybillError('invariant', `window of one second of "${this.#source}" at ${window.from} was to be split`);
        pace.crowded = Math.min(pace.crowded, outcome.records);
        window = half;
        continue;
      }
      // Nor when a clock was set right meanwhile: its end has not settled by the time that holds now.
      if ('held' in outcome || !this.#isSettled(window)) return true;
      await this.#record(window, outcome, 1, false);
      this.reading = undefined;
      const total = outcome.proven ? outcome.proof.total : outcome.seen;
      const wide = nextWidth(window.until - window.from, total);
      pace.width = wide > window.until - window.from && total * 2 >= pace.crowded ? window.until - window.from : wide;
      return true;
    }
  }

  #paceOf(from: Micros): Pace {
    const pace = this.#paces.get(from) ?? { width: Number.MAX_SAFE_INTEGER, crowded: Number.MAX_SAFE_INTEGER };
    this.#paces.set(from, pace);
    return pace;
  }

  /** Does what is due first: recounts, then further tries. False when nothing is due. */
  async again(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const window = await this.#parts.journal.due(this.#source, serverNow);
    if (!window) return false;
    if (isCountable(window)) await this.#recounter.recount(window, signal);
    else await this.#reread(window, false, signal);
    return true;
  }

  /** A window of the ledger keeps its edges: reading it never ends in a split. */
  async #reread(window: LedgerWindow, recount: boolean, signal: AbortSignal): Promise<void> {
    const outcome = await this.#read(window, window.query, false, signal);
    if ('split' in outcome) throw new WaybillError('invariant', 'a window of the ledger was to be split');
    if ('held' in outcome) return;
    const verdict = await this.#believed(window, outcome, signal);
    if (verdict) await this.#record(window, verdict, window.tries + 1, recount);
  }

  /**
   * Of fewer records than a window has shown a proof is worth nothing while rows are hidden: what is shown then proves itself. Undefined in hold.
   */
  async #believed(window: LedgerWindow, verdict: Verdict, signal: AbortSignal): Promise<Verdict | undefined> {
    if (!verdict.proven || verdict.proof.total >= mostOf(window)) return verdict;
    const { query, total, own, digest, passes, requests } = verdict.proof;
    const found = await this.#recounter.whereTheyAre(window, total, signal);
    if (found === 'held') return undefined;
    if (found === 'vanished') return verdict;
    const words = `the service counts ${total} now and has shown ${mostOf(window)}; whether the others have vanished is not known yet`;
    return { proven: false, reason: 'count', words, query, total, own, seen: total, digest, passes, requests };
  }

  #read(window: Window, query: LedgerWindow['query'], mayBeSplit: boolean, signal: AbortSignal): Promise<Outcome> {
    return readWindow(this.#parts.reading, window, query, mayBeSplit, signal);
  }

  async #record(window: Window, verdict: Verdict, tries: number, recount: boolean): Promise<void> {
    const { journal, log, ages, clock, settle } = this.#parts;
    const at = this.#serverNow();
    const next = verdict.proven ? nextRecount(window.until, ages, at) : nextTry(window.until, tries, ages, at);
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
