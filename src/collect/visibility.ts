/**
 * Checks that a page shows the usual fields before it is stored. A record is stored once, because
 * its uid is known afterwards: a copy without fields could never be replaced. So when no record of
 * a page shows a usual field, a reference record shows whether the right to see that field is lost.
 */
import { codeOf } from '../errors/errors.ts';
import type { Appended } from '../model/journal.ts';
import type { Window } from '../model/ledger.ts';
import type { PageRequest } from '../model/source.ts';
import type { Answer } from './requester.ts';
import { Shares, shows, watchedFields, type Text, type WatchedField } from './fields.ts';
import { readReferenceRecord, type ReferenceRecord, type ReferenceRecords } from './reference-record.ts';
import type { SourceAccess } from './source-access.ts';
import { owns } from './windows.ts';

/** Survives a restart; plain JSON. */
export interface FieldsProfile {
  readonly recent: string;
  readonly referenceRecords: ReferenceRecords;
}

interface VisibilityParts extends Pick<SourceAccess, 'sourceId' | 'requester' | 'paging' | 'journal' | 'suspensions' | 'log'> {
  readonly profile?: FieldsProfile | undefined;
  /** Called with the first reference record of a field, to save it at once: it must survive a kill. */
  readonly learned?: (() => Promise<void>) | undefined;
}

/** A page of at least this many records, none of them with a readable time, suspends the source. */
const timelessPage = 100;
/** The journal stores at most this many uids of records without a readable time. */
const maxTimeless = 100_000;
/** Records known to lack a field themselves: each live poll receives them again. */
const maxLackingThemselves = 10_000;
/** A reference record is selected among this many records of a page. */
const maxCandidates = 20;

export class VisibilityCheck {
  readonly #parts: VisibilityParts;
  readonly #shares: Shares;
  /** Uids of records that lack a usual field themselves, although the client may see it. */
  readonly #lackingThemselves = new Set<string>();
  #referenceRecords: ReferenceRecords;

  constructor(parts: VisibilityParts) {
    this.#parts = parts;
    this.#shares = new Shares(parts.profile?.recent);
    this.#referenceRecords = parts.profile?.referenceRecords ?? {};
  }

  profile(): FieldsProfile {
    return { recent: this.#shares.profile(), referenceRecords: this.#referenceRecords };
  }

  /** True while nothing may be closed. */
  get isSuspended(): boolean {
    return this.#parts.suspensions.current !== undefined;
  }

  /** True if the page may be stored without another request: then the next page may be requested early. */
  isPlain(answer: Answer): boolean {
    return this.#missing(answer).length === 0;
  }

  /**
   * True if the page may be stored. If fields are missing, reads the reference records. A page that may not be stored is read again later.
   */
  async admits(answer: Answer, signal: AbortSignal): Promise<boolean> {
    const { suspensions, journal, sourceId, log } = this.#parts;
    const { current } = suspensions;
    const missing = this.#missing(answer);
    if (current) {
      if (missing.length > 0) return false;
      if (current.reason === 'timestamp' && isTimeless(answer)) return (await journal.timeless(sourceId)) <= maxTimeless;
      // The fields are shown, so the client may see them again.
      if (current.reason === 'fields' && this.#showsAll(answer, current.fields ?? [])) await suspensions.end('fields');
      return true;
    }
    if (missing.length === 0) return true;
    const gone = await this.#gone(missing, signal);
    if (gone.length > 0 && !(await suspensions.passesAfresh(async () => (await this.#gone(gone, signal)).length === 0, signal))) {
      const message = `${gone.join(', ')} ${gone.length === 1 ? 'is' : 'are'} no longer shown in records that showed ${gone.length === 1 ? 'it' : 'them'} before`;
      // mutant: suspend-source
      await suspensions.begin({ reason: 'fields', message, fields: gone });
      return false;
    }
    if (gone.length > 0) {
      // With the fresh token the service shows the field: this page is requested again.
      log.write('source.fields_restored', { source: sourceId, fields: gone });
      return false;
    }
    if (!(await this.#lacksThemselves(answer, missing, signal))) return false;
    log.write('source.fields_checked', { source: sourceId, fields: missing, records: answer.records.length });
    return true;
  }

  /**
   * True if the records of a page were written without the fields. A reference record has just shown the fields, but the right to see them
   * may have come back after the page. So the page is requested a second time, and then the reference record. If the reference record shows
   * the fields both before and after that, the right was there, and the records do not have the fields. If the page then has other records,
   * it is read again.
   */
  async #lacksThemselves(answer: Answer, fields: readonly WatchedField[], signal: AbortSignal): Promise<boolean> {
    const secondAnswer = await this.#requestAgain(answer.request, signal);
    if (fields.some((field) => secondAnswer.some((record) => shows(record, field)))) return false;
    if ((await this.#gone(fields, signal)).length > 0) return false;
    if (this.#lackingThemselves.size > maxLackingThemselves) this.#lackingThemselves.clear();
    for (const { uid } of secondAnswer) this.#lackingThemselves.add(uid);
    return this.#missing(answer).length === 0;
  }

  /** The records that the page shows now; none if it cannot be read any more: the caller then reads it again, and handles the error. */
  async #requestAgain(request: PageRequest, signal: AbortSignal): Promise<Answer['records']> {
    try {
      return (await this.#parts.requester.ask(request, signal)).records;
    } catch (thrown) {
      if (!(codeOf(thrown) ?? '').startsWith('page_')) throw thrown;
      return [];
    }
  }

  async appended(records: Answer['records'], { fresh }: Appended): Promise<void> {
    const { suspensions, journal, sourceId } = this.#parts;
    this.#shares.add(fresh);
    if (records.length === 0) return;
    if (!isTimeless({ records })) {
      await suspensions.end('timestamp');
      return;
    }
    if (fresh.length === 0) return;
    if (records.length >= timelessPage) {
      await suspensions.begin({
        reason: 'timestamp',
        message: `none of the ${records.length} records of a page has a readable time`,
      });
    } else if ((await journal.timeless(sourceId)) > maxTimeless) {
      await suspensions.begin({ reason: 'timestamp', message: `more than ${maxTimeless} records have no readable time` });
    }
  }

  /**
   * Adds to `found` a reference record for each field that a record of the window shows. Call `proven` with them once the window is proven.
   */
  candidates(records: Answer['records'], window: Window, found: ReferenceRecords): void {
    const requested = watchedFields.filter((field) => found[field] === undefined);
    if (requested.length === 0) return;
    for (const record of records.slice(0, maxCandidates)) {
      if (record.time === undefined || !owns(window, record.time)) continue;
      for (const field of requested) if (shows(record, field)) found[field] ??= { uid: record.uid, time: record.time };
    }
  }

  /** A window with these records was proven. The newest become reference records, because the service may delete old ones. */
  async proven(found: ReferenceRecords): Promise<void> {
    const newer = Object.entries(found).filter(([field, { time }]) => time >= (this.#referenceRecords[field as WatchedField]?.time ?? 0));
    const isFirst = newer.some(([field]) => this.#referenceRecords[field as WatchedField] === undefined);
    this.#referenceRecords = { ...this.#referenceRecords, ...(Object.fromEntries(newer) as ReferenceRecords) };
    if (isFirst) await this.#parts.learned?.();
  }

  /** True if a suspension for `fields` may end: all of them are shown again. */
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

  /** The usual fields that no record of the page shows; a field without a reference record cannot be checked. */
  #missing({ records }: Pick<Answer, 'records'>): WatchedField[] {
    const unchecked = this.#lackingThemselves.size === 0 ? records : records.filter(({ uid }) => !this.#lackingThemselves.has(uid));
    return this.#shares.missingIn(unchecked).filter((field) => this.#referenceRecords[field] !== undefined);
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
