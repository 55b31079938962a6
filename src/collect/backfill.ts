/**
 * Reads requested history: separate ranges, with the same proof as the present, while no newer work
 * is due. Each turn reads one window, so that newer work waits for one window at most.
 */
import type { Backfill, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { WindowCloser } from './close.ts';
import type { PageStore } from './page-store.ts';
import type { SourceAccess } from './source-access.ts';

interface BackfillParts extends Pick<SourceAccess, 'sourceId' | 'requester' | 'journal' | 'clock' | 'log'> {
  readonly closer: WindowCloser;
  readonly pages: Pick<PageStore, 'windowRecords'>;
}

/** The recent speed of one range. */
interface Pace {
  /** Monotonic, ms: when the next request of the range may be sent (`rate`). */
  notBefore: number;
  /** The start time of each recent window, and the number of records that this process had appended to the range at that time. */
  readonly progress: { readonly at: number; readonly records: number }[];
  records: number;
}

/** The speed is measured over this many windows. */
const maxMeasured = 20;

export class Backfiller {
  readonly #parts: BackfillParts;
  readonly #paces = new Map<Micros, Pace>();
  #current: { readonly range: Backfill; readonly recordsBefore: number } | undefined;

  constructor(parts: BackfillParts) {
    this.#parts = parts;
  }

  /** The window that is being read in the range that starts at `from`: a cancelled range must not end before the end of this window. */
  reading(from: Micros): Window | undefined {
    return this.#current?.range.from === from ? this.#parts.closer.reading : undefined;
  }

  /** Rate over the last windows, in records per second; undefined before the first window. */
  perSecond(from: Micros): number | undefined {
    const pace = this.#paces.get(from);
    const [first] = pace?.progress ?? [];
    if (!pace || !first) return undefined;
    const seconds = (this.#parts.clock.monotonic() - first.at) / 1000;
    return seconds > 0 ? (pace.records + this.#newRecords(from) - first.records) / seconds : undefined;
  }

  /** Records that the window under way has added to the range. */
  #newRecords(from: Micros): number {
    return this.#current?.range.from === from ? this.#parts.pages.windowRecords - this.#current.recordsBefore : 0;
  }

  /**
   * Reads one window of the newest range that may continue.
   * @returns false when no range has a window to read
   */
  async turn(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const {
      journal,
      clock,
      closer,
      pages,
      requester: { health },
      sourceId: source,
      log,
    } = this.#parts;
    for (const range of journal.backfills(source)) {
      const pace = this.#paceOf(range.from);
      const began = clock.monotonic();
      if (range.order.paused) {
        pace.progress.length = 0;
        continue;
      }
      if (began < pace.notBefore) continue;
      const requests = health.requests;
      const isFirst = pace.progress.length === 0;
      pace.progress.push({ at: began, records: pace.records });
      if (pace.progress.length > maxMeasured) pace.progress.shift();
      this.#current = { range, recordsBefore: pages.windowRecords };
      try {
        if (!(await closer.closeNext(serverNow, signal, range))) {
          if (isFirst) pace.progress.pop();
          continue;
        }
      } finally {
        pace.records += this.#newRecords(range.from);
        this.#current = undefined;
      }
      if (range.order.rate !== undefined) pace.notBefore = began + ((health.requests - requests) / range.order.rate) * 1000;
      if (isFirst)
        log.write('backfill.started', {
          source,
          from: microsToIso(range.from),
          to: microsToIso(range.to),
          readUntil: microsToIso(range.closedUntil),
        });
      if (!journal.backfills(source).some(({ from }) => from === range.from)) {
        this.#paces.delete(range.from);
        log.write('backfill.completed', { source, from: microsToIso(range.from), to: microsToIso(range.to) });
      }
      return true;
    }
    return false;
  }

  #paceOf(from: Micros): Pace {
    const pace = this.#paces.get(from) ?? { notBefore: 0, progress: [], records: 0 };
    this.#paces.set(from, pace);
    return pace;
  }
}
