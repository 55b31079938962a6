/**
 * What happens to a window of the ledger: it is closed with a proof, left as a gap, counted again, tried again. Each outcome is one call of
 * the journal; nothing here moves a mark by itself.
 */
import { WaybillError } from '../errors.ts';
import type { Clock, CollectJournal, LedgerWindow, Log, Micros, Range, ServerClock, Verdict, Window } from '../model.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Asker } from './ask.ts';
import { readWindow } from './read-window.ts';
import type { Outcome, Reading } from './read-window.ts';
import { lowerHalf, nextRecount, nextTry, nextWidth, nextWindow, queryOf, widestMicros } from './windows.ts';

export interface CloserParts {
  readonly reading: Reading;
  readonly asker: Asker;
  readonly journal: CollectJournal;
  readonly serverClock: ServerClock;
  readonly clock: Clock;
  readonly log: Log;
  readonly settle: Micros;
  /** Ages of recount, ascending. */
  readonly ages: readonly Micros[];
}

/** How wide windows are wished for, and with how many records one was found too crowded to be proven: it is not widened to that again. */
interface Pace {
  width: Micros;
  crowded: number;
}

export class Closer {
  readonly #parts: CloserParts;
  readonly #source: string;
  /** By the begin of a range: history may be denser than the present. */
  readonly #paces = new Map<Micros, Pace>();
  #proven = false;

  constructor(parts: CloserParts) {
    this.#parts = parts;
    this.#source = parts.reading.sourceId;
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

  /** Does what is due first of recounts and further tries, if anything is. */
  async again(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const window = await this.#parts.journal.due(this.#source, serverNow);
    if (!window) return false;
    if (window.state === 'closed' && window.reason === undefined) await this.#recount(window, signal);
    else await this.#retry(window, signal);
    return true;
  }

  /** Asks the stored query for its total again. Under the assumptions of the proof an equal total shows that nothing came. */
  async #recount(window: LedgerWindow, signal: AbortSignal): Promise<void> {
    const { asker, journal, reading, log, ages } = this.#parts;
    const { total } = await asker.count(window.query, reading.paging.first, signal);
    const at = this.#serverNow();
    const fields = { source: this.#source, from: microsToIso(window.from), until: microsToIso(window.until), stored: window.total, total };
    if (total !== undefined && total === window.total) {
      await journal.confirm(this.#source, window, nextRecount(window.until, ages, at), at, this.#lastAge());
      log.debug(fields, 'recount agrees');
      return;
    }
    if (total !== undefined && window.total !== undefined && total < window.total) {
      // A closed window may only grow. The stored total is never lowered in silence: the window is listed as open, and read again after
      // `settle`, since a replica may lag.
      log.error(fields, 'recount gives fewer than were proven');
      const words = `the service counted ${window.total} when the window was closed and ${total} now`;
      const stays = { query: window.query, total, own: window.own, seen: window.seen, digest: new Uint8Array(0), passes: 0, requests: 1 };
      await this.#record(window, { proven: false, reason: 'count', words, ...stays }, window.tries + 1, true, at + this.#parts.settle);
      return;
    }
    log.info(fields, 'window changed after it was closed');
    await this.#record(window, whole(await this.#read(window, window.query, false, signal)), window.tries + 1, true);
  }

  async #retry(window: LedgerWindow, signal: AbortSignal): Promise<void> {
    await this.#record(window, whole(await this.#read(window, window.query, false, signal)), window.tries + 1, false);
  }

  #read(window: Window, query: LedgerWindow['query'], mayBeSplit: boolean, signal: AbortSignal): Promise<Outcome> {
    return readWindow(this.#parts.reading, window, query, mayBeSplit, signal);
  }

  async #record(window: Window, verdict: Verdict, tries: number, recount: boolean, retryAt?: Micros): Promise<void> {
    const { journal, log, ages, clock, settle } = this.#parts;
    const at = this.#serverNow();
    const next = verdict.proven ? nextRecount(window.until, ages, at) : (retryAt ?? nextTry(window.until, tries, ages, at));
    await journal.close(this.#source, window, { verdict, next, at, recount }, this.#lastAge());
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
    if (this.#proven) return;
    this.#proven = true;
    log.info({ ...fields, own, total, next: microsToIso(clock.now() * 1000 + settle) }, 'first window proven');
  }

  #serverNow(): Micros {
    const now = this.#parts.serverClock.now();
    if (now === undefined) throw new WaybillError('invariant', `source "${this.#source}" has an established clock without a time`);
    return now;
  }

  #lastAge(): Micros {
    return this.#parts.ages.at(-1) ?? 0;
  }
}

/** A window of the ledger keeps its edges: reading it never ends in a split. */
function whole(outcome: Outcome): Verdict {
  if ('split' in outcome) throw new WaybillError('invariant', 'a window of the ledger was to be split');
  return outcome;
}
