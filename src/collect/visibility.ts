/**
 * What a page must show before it is appended. The poorer copy of a record would be kept for ever, because its uid is then known: so a page from
 * which a usual field is missing altogether waits until a reference record has been asked whether the right to see it is gone.
 */
import { codeOf } from '../errors.ts';
import type { Appended, CollectJournal } from '../model/journal.ts';
import type { Window } from '../model/ledger.ts';
import type { PageRequest } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Answer, Requester } from './requester.ts';
import { Shares, shows, watchedFields } from './fields.ts';
import type { Text, WatchedField } from './fields.ts';
import type { Suspensions } from './suspension.ts';
import type { Paging } from './page-cursor.ts';
import { readReferenceRecord } from './reference-record.ts';
import type { ReferenceRecord, ReferenceRecords } from './reference-record.ts';
import { owns } from './windows.ts';

/** What is kept of it over a restart; plain JSON. */
export interface FieldsProfile {
  readonly recent: string;
  readonly referenceRecords: ReferenceRecords;
}

interface VisibilityParts {
  readonly sourceId: string;
  readonly requester: Requester;
  readonly paging: Paging;
  readonly journal: Pick<CollectJournal, 'timeless'>;
  readonly suspensions: Suspensions;
  readonly log: Log;
  readonly profile?: FieldsProfile | undefined;
  /** Called when there is a reference record for a field that had none, to keep it at once: a kill must not take the only one there is. */
  readonly learned?: (() => Promise<void>) | undefined;
}

/** A page of so many records none of which has a readable time. */
const timelessPage = 100;
/** So many uids of records without a readable time are remembered. */
const maxTimeless = 100_000;
/** Poor records that a reference record has acquitted: the live poll brings them again with every poll. */
const maxAcquitted = 10_000;
/** A reference record is looked for among so many records of a page. */
const maxCandidates = 20;

export class VisibilityCheck {
  readonly #parts: VisibilityParts;
  readonly #shares: Shares;
  readonly #acquitted = new Set<string>();
  #referenceRecords: ReferenceRecords;

  constructor(parts: VisibilityParts) {
    this.#parts = parts;
    this.#shares = new Shares(parts.profile?.recent);
    this.#referenceRecords = parts.profile?.referenceRecords ?? {};
  }

  profile(): FieldsProfile {
    return { recent: this.#shares.kept(), referenceRecords: this.#referenceRecords };
  }

  /** True while nothing may be closed. */
  get isSuspended(): boolean {
    return this.#parts.suspensions.current !== undefined;
  }

  /** Whether the page may be appended without another question, so that the next one may be asked for meanwhile. */
  isPlain(answer: Answer): boolean {
    return this.#missing(answer).length === 0;
  }

  /** Whether the page may be appended; asks the reference records where fields are missing. What is refused is read again when the suspension has ended. */
  async admits(answer: Answer, signal: AbortSignal): Promise<boolean> {
    const { suspensions, journal, sourceId, log } = this.#parts;
    const { current } = suspensions;
    const missing = this.#missing(answer);
    if (current) {
      if (missing.length > 0) return false;
      if (current.reason === 'timestamp' && isTimeless(answer)) return (await journal.timeless(sourceId)) <= maxTimeless;
      // Who shows the fields again has the right to see them again.
      if (current.reason === 'fields' && this.#showsAll(answer, current.fields ?? [])) await suspensions.end('fields');
      return true;
    }
    if (missing.length === 0) return true;
    const gone = await this.#gone(missing, signal);
    if (gone.length > 0 && !(await suspensions.passesAfresh(async () => (await this.#gone(gone, signal)).length === 0, signal))) {
      const message = `${gone.join(', ')} ${gone.length === 1 ? 'is' : 'are'} not shown any more, in records that showed ${gone.length === 1 ? 'it' : 'them'} before`;
      // mutant: suspend-source
      await suspensions.begin({ reason: 'fields', message, fields: gone });
      return false;
    }
    if (gone.length > 0) {
      // With the fresh token the service shows the field: this page came with less, and is asked for again.
      log.write('source.fields_restored', { source: sourceId, fields: gone });
      return false;
    }
    if (!(await this.#isPoorByItself(answer, missing, signal))) return false;
    log.write('source.fields_checked', { source: sourceId, fields: missing, records: answer.records.length });
    return true;
  }

  /**
   * Whether the records of a page lack the fields by themselves; its reference record has just shown them. The right to see them may have come back between
   * the page and the reference record: so the page is asked for once more, and then the reference record. Records that lack them between two looks at a reference record that
   * shows them are acquitted; others of the page are not, and it is read again.
   */
  async #isPoorByItself(answer: Answer, fields: readonly WatchedField[], signal: AbortSignal): Promise<boolean> {
    const retry = await this.#askAgain(answer.request, signal);
    if (fields.some((field) => retry.some((record) => shows(record, field)))) return false;
    if ((await this.#gone(fields, signal)).length > 0) return false;
    if (this.#acquitted.size > maxAcquitted) this.#acquitted.clear();
    for (const { uid } of retry) this.#acquitted.add(uid);
    return this.#missing(answer).length === 0;
  }

  /** The records of a page as they are shown now; none where it cannot be read any more: then whoever reads it meets that. */
  async #askAgain(request: PageRequest, signal: AbortSignal): Promise<Answer['records']> {
    try {
      return (await this.#parts.requester.ask(request, signal)).records;
    } catch (thrown) {
      if (!(codeOf(thrown) ?? '').startsWith('page_')) throw thrown;
      return [];
    }
  }

  /** Told of each page once it is appended. */
  async appended(records: Answer['records'], { fresh }: Appended): Promise<void> {
    const { suspensions, journal, sourceId } = this.#parts;
    this.#shares.note(fresh);
    if (records.length === 0) return;
    if (!isTimeless({ records })) {
      await suspensions.end('timestamp');
      return;
    }
    if (fresh.length === 0) return;
    if (records.length >= timelessPage) {
      await suspensions.begin({
        reason: 'timestamp',
        message: `none of the ${records.length} records of a page has a time that can be read`,
      });
    } else if ((await journal.timeless(sourceId)) > maxTimeless) {
      await suspensions.begin({ reason: 'timestamp', message: `more than ${maxTimeless} records have no time that can be read` });
    }
  }

  /** Adds to `found` a reference record for each field that a record of the window shows; they count once the window is `proven`. */
  candidates(records: Answer['records'], window: Window, found: ReferenceRecords): void {
    const requested = watchedFields.filter((field) => found[field] === undefined);
    if (requested.length === 0) return;
    for (const record of records.slice(0, maxCandidates)) {
      if (record.time === undefined || !owns(window, record.time)) continue;
      for (const field of requested) if (shows(record, field)) found[field] ??= { uid: record.uid, time: record.time };
    }
  }

  /** A window with these records was proven: the newest are the reference records, since the service may forget old ones. */
  async proven(found: ReferenceRecords): Promise<void> {
    const newer = Object.entries(found).filter(([field, { time }]) => time >= (this.#referenceRecords[field as WatchedField]?.time ?? 0));
    const isFirst = newer.some(([field]) => this.#referenceRecords[field as WatchedField] === undefined);
    this.#referenceRecords = { ...this.#referenceRecords, ...(Object.fromEntries(newer) as ReferenceRecords) };
    if (isFirst) await this.#parts.learned?.();
  }

  /** The test of a suspension for `fields`: whether all of them are shown again. */
  async test(fields: readonly string[], signal: AbortSignal): Promise<boolean> {
    this.#parts.suspensions.renew();
    return (
      (
        await this.#gone(
          watchedFields.filter((field) => fields.includes(field)),
          signal,
        )
      ).length === 0
    );
  }

  /** The usual fields that the page lacks altogether; a field without a reference record cannot be asked for. */
  #missing({ records }: Pick<Answer, 'records'>): WatchedField[] {
    const news = this.#acquitted.size === 0 ? records : records.filter(({ uid }) => !this.#acquitted.has(uid));
    return this.#shares.missingIn(news).filter((field) => this.#referenceRecords[field] !== undefined);
  }

  #showsAll({ records }: Answer, fields: readonly string[]): boolean {
    return watchedFields.filter((field) => fields.includes(field)).every((field) => records.some((record) => shows(record, field)));
  }

  async #gone(fields: readonly WatchedField[], signal: AbortSignal): Promise<WatchedField[]> {
    // The fields often share a reference record: it is read once.
    const read = new Map<string, Text | undefined>();
    const gone: WatchedField[] = [];
    for (const field of fields) {
      const referenceRecord: ReferenceRecord | undefined = this.#referenceRecords[field];
      if (!referenceRecord) continue;
      if (!read.has(referenceRecord.uid)) read.set(referenceRecord.uid, await readReferenceRecord(this.#parts, referenceRecord, signal));
      const record = read.get(referenceRecord.uid);
      if (!record || !shows(record, field)) gone.push(field);
    }
    return gone;
  }
}

function isTimeless({ records }: Pick<Answer, 'records'>): boolean {
  return records.length > 0 && records.every(({ time }) => time === undefined);
}
