/**
 * Runs the comparison of `contradictions.ts` before the first window is closed, before each window that has
 * just become due, and every few minutes. While the service does not find records by their times the
 * source is suspended (`filter`). A record outside of every window is named, and no ledger is complete with it.
 */
import { codeOf } from '../errors/errors.ts';
import type { CollectedRecord } from '../model/journal.ts';
import type { PageRequest } from '../model/source.ts';
import type { LedgerWindow } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { endsOf, findByTime, misread, notCountedByTime, outsideOf, outsideText, samplesOf, shortfallText } from './contradictions.ts';
import type { Ends, Looking, Sample, Shortfall } from './contradictions.ts';
import type { Answer } from './requester.ts';
import type { SourceAccess } from './source-access.ts';
import { dayMicros, nextWindow } from './windows.ts';

/** Survives a restart; plain JSON. */
export interface ContradictionProfile {
  /** Server time of the last check that found records by their times. */
  readonly agreed?: Micros | undefined;
  /** A record outside of every window, as a sentence for the operator. */
  readonly outside?: string | undefined;
}

interface CheckParts extends SourceAccess {
  /** The ledger is to hold all records of the service. */
  readonly isFromEarliest: boolean;
  readonly store: (answer: Answer, signal: AbortSignal) => Promise<void>;
  readonly recount: (window: LedgerWindow, signal: AbortSignal) => Promise<void>;
  /** A record that the query of its window must show. */
  readonly remember: (record: CollectedRecord, request: PageRequest) => void;
  /** Saves the profile at once. */
  readonly learned: (() => Promise<void>) | undefined;
  readonly profile: ContradictionProfile | undefined;
}

/** How many times as long as the last check the pause after it is at least: a slow service has time for windows and history. */
const pauses = 9;
const hourMs = 3_600_000;
/** Totals that differ for so long are wrong, and not late. */
const lagMicros = 60_000_000;

export class ContradictionCheck {
  readonly #parts: CheckParts;
  readonly #looking: Looking;
  #profile: ContradictionProfile;
  /** When the last check began, server time; when it ended, and what it took, ms of the monotonic clock. */
  #checked: Micros = 0;
  #checkedAt = -Infinity;
  #took = 0;
  #suspect: Sample | undefined;
  /** The end of the last search for a suspect, ms of the monotonic clock. */
  #comparedAt = -Infinity;
  /** The total at the last check, and the oldest record that was found by its time. */
  #total: number | undefined;
  #oldest: string | undefined;
  /** Totals that differed, and the server time at which they first did. */
  #short: (Shortfall & { readonly since: Micros }) | undefined;

  constructor(parts: CheckParts) {
    this.#parts = parts;
    this.#looking = { ...parts, pauseMs: parts.waits.fresh };
    this.#profile = parts.profile ?? {};
  }

  get profile(): ContradictionProfile {
    return this.#profile;
  }

  /** A record of a closed window, or far outside of the window that is read, was received: it is looked for soon. */
  suspect(sample: Sample): void {
    this.#suspect ??= sample;
  }

  /** @returns false when no check is due */
  async whenDue(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { journal, sourceId, clock, closeDelay, suspensions, waits } = this.#parts;
    const next = nextWindow(journal.progress(sourceId).live.closedUntil, dayMicros, serverNow, closeDelay);
    const isNext = next !== undefined && next.to + closeDelay > this.#checked;
    const sinceMs = clock.monotonic() - this.#checkedAt;
    const usual = this.#short && this.#profile.outside === undefined ? waits.test : Math.max(waits.sample, pauses * this.#took);
    if (!isNext && sinceMs < (this.#suspect ? waits.fresh : usual)) return false;
    this.#checked = serverNow;
    const begun = clock.monotonic();
    const since = this.#suspect ? 0 : (this.#profile.agreed ?? 0);
    const message = await this.#compare(serverNow, signal);
    this.#checkedAt = clock.monotonic();
    this.#took = this.#checkedAt - begun;
    // mutant: filter-suspension
    if (message !== undefined) await suspensions.begin({ reason: 'filter', message }, since);
    return true;
  }

  /** True if the suspension may end. */
  async passes(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#parts;
    // The search for the offset takes over a hundred requests, so it is repeated each hour only.
    if (this.#suspect && clock.monotonic() - this.#comparedAt < hourMs) {
      const { record, isWhole } = await findByTime(this.#looking, this.#suspect, signal);
      if (record === undefined && isWhole) return false;
    }
    const message = await this.#compare(serverNow, signal);
    if (message !== undefined && message !== this.#parts.suspensions.current?.message) await this.#parts.suspensions.amend({ message });
    return message === undefined;
  }

  /** @returns how the service contradicts itself; undefined if it does not, or the records cannot be read */
  async #compare(serverNow: Micros, signal: AbortSignal): Promise<string | undefined> {
    const { closeDelay, journal, sourceId, remember, store, clock } = this.#parts;
    try {
      const ends = await endsOf(this.#looking, signal, this.#total);
      const { closedUntil } = journal.progress(sourceId).live;
      for (const { record, answer } of ends.shown) if ((record.time ?? 0) >= closedUntil) remember(record, answer.request);
      // mutant: shown-and-lacking
      for (const answer of new Set(ends.shown.map((each) => each.answer))) {
        const records = answer.records.filter(({ time }) => time !== undefined && time < closedUntil);
        if (await journal.lacks({ ...answer, source: sourceId, records })) await store({ ...answer, records }, signal);
      }
      await this.#recountExceeded(ends, signal);
      await this.#noteOutside(ends, serverNow, signal);
      const suspect = this.#suspect;
      const samples = samplesOf(ends, serverNow).filter(({ uid }, i) => i === 0 || uid !== this.#oldest);
      for (const sample of [...(suspect ? [suspect] : []), ...samples]) {
        const message = await misread(this.#looking, sample, sample.time + closeDelay <= serverNow, signal);
        if (message === undefined) continue;
        this.#suspect = sample;
        this.#comparedAt = clock.monotonic();
        return message;
      }
      this.#suspect = undefined;
      this.#total = ends.total;
      this.#oldest = samples[1]?.uid ?? this.#oldest;
      this.#profile = { ...this.#profile, agreed: serverNow };
    } catch (thrown) {
      if (!(codeOf(thrown) ?? '').startsWith('page_')) throw thrown;
    }
    return undefined;
  }

  /** The uids of old windows are deleted, so a record that one of them lacks is found by the number of its records alone. */
  async #recountExceeded({ shown }: Ends, signal: AbortSignal): Promise<void> {
    const { journal, sourceId, recount, suspensions } = this.#parts;
    const windows = new Map<Micros, { readonly window: LedgerWindow; readonly uids: Set<string> }>();
    let window: LedgerWindow | undefined;
    for (const {
      record: { time, uid },
    } of shown) {
      if (time === undefined) continue;
      if (!window || time < window.from || time >= window.to) window = await journal.windowAt(sourceId, time);
      if (window?.state !== 'proven' || window.reason !== undefined) continue;
      const known = windows.get(window.from) ?? { window, uids: new Set() };
      windows.set(window.from, known);
      known.uids.add(uid);
    }
    for (const { window: counted, uids } of windows.values())
      if (/* mutant: more-than-counted */ uids.size > counted.records && !suspensions.current) await recount(counted, signal);
  }

  async #noteOutside(ends: Ends, serverNow: Micros, signal: AbortSignal): Promise<void> {
    const { sourceId, store, learned, log } = this.#parts;
    if (ends.total !== undefined && ends.total === this.#total && !this.#short) return;
    const found = /* mutant: record-outside */ outsideOf(ends, serverNow, (time) => this.#covers(time));
    const short = found ? undefined : await this.#shortOf(ends, serverNow, signal);
    const outside = found ? outsideText(found) : short === 'recent' ? this.#profile.outside : short && shortfallText(short);
    if (outside === this.#profile.outside) return;
    this.#profile = { ...this.#profile, outside };
    // No window and no poll may ever show it.
    if (found && found.record.time === undefined) await store({ ...found.answer, records: [found.record] }, signal);
    if (outside !== undefined) log.write('source.record_outside', { source: sourceId, detail: outside });
    await learned?.();
  }

  /** @returns `recent` while the totals of a service whose replicas lag may still become equal */
  async #shortOf({ total }: Ends, serverNow: Micros, signal: AbortSignal): Promise<Shortfall | 'recent' | undefined> {
    const before = this.#short;
    const short = await notCountedByTime(this.#looking, total && Math.min(total, before?.all ?? total), signal);
    this.#short = short && { ...short, since: before?.since ?? serverNow };
    return short && /* mutant: totals-lag */ this.#isRecent(serverNow) ? 'recent' : short;
  }

  #isRecent(serverNow: Micros): boolean {
    return this.#short !== undefined && serverNow - this.#short.since < Math.min(this.#parts.closeDelay, lagMicros);
  }

  /** A ledger that begins at a time covers less than the service has, except placeholders of 1970. */
  #covers(time: Micros): boolean {
    const { journal, sourceId, isFromEarliest } = this.#parts;
    return (!isFromEarliest && time >= dayMicros) || journal.covers(sourceId, time);
  }
}
