/**
 * Stores pages in the journal, and does what follows: it counts the records for the metrics,
 * informs the visibility check, and waits for sinks that lag while history is read.
 */
import type { Appended, CollectedPage, CollectedRecord, CollectJournal } from '../model/journal.ts';
import type { Window } from '../model/ledger.ts';
import type { PageRequest } from '../model/source.ts';
import { noSpan, traced, type Meters, type SpanAttributes } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import { sampleOf, type Sample } from './contradictions.ts';
import type { Answer } from './requester.ts';
import type { SourceAccess } from './source-access.ts';
import type { VisibilityCheck } from './visibility.ts';
import { filterSlack, owns, wholeSecond, widestMicros } from './windows.ts';

interface PageStoreParts extends Pick<SourceAccess, 'sourceId' | 'clock' | 'log' | 'closeDelay'> {
  readonly journal: Pick<CollectJournal, 'append' | 'progress' | 'laggingPosition'>;
  readonly visibility: Pick<VisibilityCheck, 'appended'>;
  readonly meters: Pick<Meters, 'recordsCollected' | 'recordsLate' | 'recordDelay'>;
  /** Called with a record that the query of its own window may not show. */
  readonly suspect?: (sample: Sample) => void;
  /** `VisibilityProfile.polledFrom` from before a restart. */
  readonly polledFrom?: Micros | undefined;
}

/** Attributes by the semantic conventions of OpenTelemetry for databases. */
function journalAttributes(records: number): SpanAttributes {
  return { 'db.system.name': 'sqlite', 'db.operation.name': 'append', 'db.operation.batch.size': records };
}

const sinkPauseMs = 4;
const maxSinkPauses = 5;
/** Seconds to remember: more than a day. */
const maxInHand = 100_000;
/** Records of a second to remember by their identity; others are counted. */
const samplesOfSecond = 5;
/** For waits that are too short to be worth interrupting. */
const unstoppable = new AbortController().signal;

export class PageStore {
  readonly #parts: PageStoreParts;
  /** The start of the first live poll: no poll waited for records dated earlier, so their delay is not measured. */
  polledFrom: Micros | undefined;
  /** By second: the new records that queries other than that of their window have shown, and some of them. */
  readonly #inHand = new Map<Micros, { records: number; readonly samples: Sample[] }>();
  #windowRecords = 0;
  #hasRecords = false;
  /** The position of the slowest sink after the last wait that did not help. */
  #stoodAt: number | undefined;

  constructor(parts: PageStoreParts) {
    this.#parts = parts;
    this.polledFrom = parts.polledFrom;
  }

  /** Records appended so far while windows were read. */
  get windowRecords(): number {
    return this.#windowRecords;
  }

  /** The caller has run the visibility check on the page. */
  async store(
    answer: Answer | Pick<Answer, 'records' | 'received' | 'serverNow'>,
    place: Pick<CollectedPage, 'window' | 'polledUntil'> = {},
  ): Promise<Appended> {
    const { records, received, serverNow } = answer;
    const span = 'span' in answer ? answer.span : noSpan;
    const page = { source: this.#parts.sourceId, records, received, serverNow, ...place };
    const append = span.child('append journal', journalAttributes(records.length), { kind: 'client' });
    const appended = await traced(append, () => this.#parts.journal.append(page));
    span.set({ 'waybill.records.appended': appended.appended });
    span.run(() => this.#count(page, appended));
    await this.#parts.visibility.appended(records, appended);
    if ('request' in answer) this.#examine(page, appended, answer.request);
    if (page.window !== undefined && appended.appended > 0) await this.#waitForSinks();
    return appended;
  }

  /** Remembers new records until their windows are read; suspects one of a closed window, or far outside of the window that is read. */
  #examine({ window, records }: CollectedPage, { late, fresh }: Appended, request: PageRequest): void {
    const { suspect, journal, sourceId } = this.#parts;
    const { closedUntil } = journal.progress(sourceId).live;
    for (const record of fresh) if (record.time !== undefined && !(window && owns(window, record.time))) this.remember(record, request, 1);
    const isStray = ({ time }: CollectedRecord): boolean =>
      window !== undefined && time !== undefined && (time < window.from - filterSlack || time >= window.to + filterSlack);
    const isLate = ({ time }: CollectedRecord): boolean => time !== undefined && time < closedUntil && !(window && owns(window, time));
    const stray = records.find(isStray);
    const record = stray ?? (late > 0 ? fresh.find(isLate) : undefined);
    const sample = record && sampleOf(record, request);
    if (sample) suspect?.({ ...sample, isStray: stray !== undefined });
  }

  /** @param fresh  1 for a record that is new, 0 for one that another query may show too */
  remember(record: CollectedRecord, request: PageRequest, fresh: 0 | 1 = 0): void {
    const sample = sampleOf(record, request);
    if (!sample) return;
    if (this.#inHand.size > maxInHand) this.#inHand.clear();
    const at = wholeSecond(sample.time);
    const known = this.#inHand.get(at) ?? { records: 0, samples: [] };
    this.#inHand.set(at, known);
    known.records += fresh;
    if (known.samples.length < samplesOfSecond && !known.samples.some(({ uid }) => uid === sample.uid)) known.samples.push(sample);
  }

  /**
   * A window was read, and the service counts as many records as it showed. Compares these with the records of the window that
   * other queries have shown since the start of the process, and forgets those.
   * @returns the number of the latter, if it is larger or one of them is missing
   */
  contradicts(window: Window, records: number, has: (uid: string) => boolean): number | undefined {
    let inHand = 0;
    let lacking: Sample | undefined;
    for (const [second, known] of this.#inHand) {
      if (!owns(window, second)) continue;
      this.#inHand.delete(second);
      inHand += known.records;
      lacking ??= known.samples.find(({ uid }) => !has(uid));
    }
    if (lacking) this.#parts.suspect?.(lacking);
    return /* mutant: in-hand */ lacking !== undefined || inHand > records ? Math.max(inHand, records + 1) : undefined;
  }

  #count({ window, serverNow, received }: CollectedPage, { appended, late, fresh }: Appended): void {
    const { sourceId, meters, log } = this.#parts;
    if (appended === 0) return;
    meters.recordsCollected(sourceId, appended);
    if (late > 0) meters.recordsLate(sourceId, late);
    if (window !== undefined) this.#windowRecords += appended;
    const polledFrom = this.polledFrom ?? Infinity;
    if (!this.#isHistory(window, serverNow)) {
      const longest = this.#longestDelay(window);
      for (const { time } of fresh)
        if (time !== undefined && time >= polledFrom) meters.recordDelay(sourceId, Math.min(longest, Math.max(0, received - time)) / 1e6);
    }
    if (this.#hasRecords) return;
    this.#hasRecords = true;
    log.write('source.first_record', { source: sourceId, records: appended });
  }

  /**
   * A record that no live poll reached may be visible long before its window is closed. It is not
   * late, so its delay counts as `closeDelay` at most.
   */
  #longestDelay(window: CollectedPage['window']): Micros {
    const { sourceId, journal, closeDelay } = this.#parts;
    return window !== undefined && window.from >= journal.progress(sourceId).live.closedUntil ? closeDelay : Infinity;
  }

  /** The delay until a record becomes visible cannot be measured while history is read for the first time. */
  #isHistory(window: CollectedPage['window'], serverNow: Micros): boolean {
    if (window === undefined) return false;
    const { sourceId, journal, closeDelay } = this.#parts;
    const { from, closedUntil } = journal.progress(sourceId).live;
    return window.to <= from || serverNow - closedUntil > closeDelay + 2 * widestMicros(closedUntil, closedUntil, closeDelay);
  }

  /**
   * While history is read, waits for sinks that lag, so that they read the records from memory: to read them back from the file costs more
   * than a short wait. The wait is bounded, and a sink without progress is not waited for: it delays only itself.
   */
  async #waitForSinks(): Promise<void> {
    const { journal, clock } = this.#parts;
    for (let pauses = 0; pauses < maxSinkPauses; pauses += 1) {
      const lagging = journal.laggingPosition();
      if (lagging === undefined || lagging === this.#stoodAt) return;
      await clock.sleep(sinkPauseMs, unstoppable);
    }
    this.#stoodAt = journal.laggingPosition();
  }
}
