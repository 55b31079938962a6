/**
 * What a page must show before it is appended. The poorer copy of a record would be kept for ever, because its uid is then known: so a page from
 * which a usual field is missing altogether waits until a witness has been asked whether the right to see it is gone.
 */
import { codeOf } from '../errors.ts';
import type { Appended, CollectJournal } from '../model/journal.ts';
import type { Window } from '../model/ledger.ts';
import type { PageRequest } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Answer, Asker } from './ask.ts';
import { Shares, shows, watchedFields } from './fields.ts';
import type { Text, WatchedField } from './fields.ts';
import type { Holds } from './hold.ts';
import type { Paging } from './pass.ts';
import { readWitness } from './witness.ts';
import type { Witness, Witnesses } from './witness.ts';
import { owns } from './windows.ts';

/** What is kept of it over a restart; plain JSON. */
export interface FieldsProfile {
  readonly recent: string;
  readonly witnesses: Witnesses;
}

export interface GateParts {
  readonly sourceId: string;
  readonly asker: Asker;
  readonly paging: Paging;
  readonly journal: Pick<CollectJournal, 'timeless'>;
  readonly holds: Holds;
  readonly log: Log;
  readonly profile?: FieldsProfile | undefined;
  /** Called when there is a witness for a field that had none, to keep it at once: a kill must not take the only one there is. */
  readonly learned?: (() => Promise<void>) | undefined;
}

/** A page of so many records none of which has a readable time. */
const timelessPage = 100;
/** So many uids of records without a readable time are remembered. */
const timelessMost = 100_000;
/** Poor records that a witness has acquitted: tip brings them again with every poll. */
const acquittedMost = 10_000;
/** A witness is looked for among so many records of a page. */
const candidatesMost = 20;

export class Gate {
  readonly #parts: GateParts;
  readonly #shares: Shares;
  readonly #acquitted = new Set<string>();
  #witnesses: Witnesses;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#shares = new Shares(parts.profile?.recent);
    this.#witnesses = parts.profile?.witnesses ?? {};
  }

  profile(): FieldsProfile {
    return { recent: this.#shares.kept(), witnesses: this.#witnesses };
  }

  /** True while nothing may be closed. */
  get isHeld(): boolean {
    return this.#parts.holds.current !== undefined;
  }

  /** Whether the page may be appended without another question, so that the next one may be asked for meanwhile. */
  isPlain(answer: Answer): boolean {
    return this.#missing(answer).length === 0;
  }

  /** Whether the page may be appended; asks the witnesses where fields are missing. What is refused is read again when the hold has ended. */
  async admits(answer: Answer, signal: AbortSignal): Promise<boolean> {
    const { holds, journal, sourceId, log } = this.#parts;
    const { current } = holds;
    const missing = this.#missing(answer);
    if (current) {
      if (missing.length > 0) return false;
      if (current.reason === 'timestamp' && isTimeless(answer)) return (await journal.timeless(sourceId)) <= timelessMost;
      // Who shows the fields again has the right to see them again.
      if (current.reason === 'fields' && this.#showsAll(answer, current.fields ?? [])) await holds.end('fields');
      return true;
    }
    if (missing.length === 0) return true;
    const gone = await this.#gone(missing, signal);
    if (gone.length > 0 && !(await holds.passesAfresh(async () => (await this.#gone(gone, signal)).length === 0, signal))) {
      const words = `${gone.join(', ')} ${gone.length === 1 ? 'is' : 'are'} not shown any more, in records that showed ${gone.length === 1 ? 'it' : 'them'} before`;
      // mutant: suspend-source
      await holds.begin({ reason: 'fields', words, fields: gone });
      return false;
    }
    if (gone.length > 0) {
      // With the fresh token the service shows the field: this page came with less, and is asked for again.
      log.info({ source: sourceId, fields: gone }, 'fields are shown again with a fresh token');
      return false;
    }
    if (!(await this.#isPoorByItself(answer, missing, signal))) return false;
    log.debug({ source: sourceId, fields: missing, records: answer.records.length }, 'page without usual fields: its witness shows them');
    return true;
  }

  /**
   * Whether the records of a page lack the fields by themselves; its witness has just shown them. The right to see them may have come back between
   * the page and the witness: so the page is asked for once more, and then the witness. Records that lack them between two looks at a witness that
   * shows them are acquitted; others of the page are not, and it is read again.
   */
  async #isPoorByItself(answer: Answer, fields: readonly WatchedField[], signal: AbortSignal): Promise<boolean> {
    const again = await this.#askAgain(answer.request, signal);
    if (fields.some((field) => again.some((record) => shows(record, field)))) return false;
    if ((await this.#gone(fields, signal)).length > 0) return false;
    if (this.#acquitted.size > acquittedMost) this.#acquitted.clear();
    for (const { uid } of again) this.#acquitted.add(uid);
    return this.#missing(answer).length === 0;
  }

  /** The records of a page as they are shown now; none where it cannot be read any more: then whoever reads it meets that. */
  async #askAgain(request: PageRequest, signal: AbortSignal): Promise<Answer['records']> {
    try {
      return (await this.#parts.asker.ask(request, signal)).records;
    } catch (thrown) {
      if (!(codeOf(thrown) ?? '').startsWith('page_')) throw thrown;
      return [];
    }
  }

  /** Told of each page once it is appended. */
  async appended(records: Answer['records'], { fresh }: Appended): Promise<void> {
    const { holds, journal, sourceId } = this.#parts;
    this.#shares.note(fresh);
    if (records.length === 0) return;
    if (!isTimeless({ records })) {
      await holds.end('timestamp');
      return;
    }
    if (fresh.length === 0) return;
    if (records.length >= timelessPage) {
      await holds.begin({ reason: 'timestamp', words: `none of the ${records.length} records of a page has a time that can be read` });
    } else if ((await journal.timeless(sourceId)) > timelessMost) {
      await holds.begin({ reason: 'timestamp', words: `more than ${timelessMost} records have no time that can be read` });
    }
  }

  /** Adds to `found` a witness for each field that a record of the window shows; they count once the window is `proven`. */
  candidates(records: Answer['records'], window: Window, found: Witnesses): void {
    const wanted = watchedFields.filter((field) => found[field] === undefined);
    if (wanted.length === 0) return;
    for (const record of records.slice(0, candidatesMost)) {
      if (record.time === undefined || !owns(window, record.time)) continue;
      for (const field of wanted) if (shows(record, field)) found[field] ??= { uid: record.uid, time: record.time };
    }
  }

  /** A window with these records was proven: the newest are the witnesses, since the service may forget old ones. */
  async proven(found: Witnesses): Promise<void> {
    const newer = Object.entries(found).filter(([field, { time }]) => time >= (this.#witnesses[field as WatchedField]?.time ?? 0));
    const isFirst = newer.some(([field]) => this.#witnesses[field as WatchedField] === undefined);
    this.#witnesses = { ...this.#witnesses, ...(Object.fromEntries(newer) as Witnesses) };
    if (isFirst) await this.#parts.learned?.();
  }

  /** The test of a hold for `fields`: whether all of them are shown again. */
  async test(fields: readonly string[], signal: AbortSignal): Promise<boolean> {
    this.#parts.holds.renew();
    return (
      (
        await this.#gone(
          watchedFields.filter((field) => fields.includes(field)),
          signal,
        )
      ).length === 0
    );
  }

  /** The usual fields that the page lacks altogether; a field without a witness cannot be asked for. */
  #missing({ records }: Pick<Answer, 'records'>): WatchedField[] {
    const news = this.#acquitted.size === 0 ? records : records.filter(({ uid }) => !this.#acquitted.has(uid));
    return this.#shares.missingIn(news).filter((field) => this.#witnesses[field] !== undefined);
  }

  #showsAll({ records }: Answer, fields: readonly string[]): boolean {
    return watchedFields.filter((field) => fields.includes(field)).every((field) => records.some((record) => shows(record, field)));
  }

  async #gone(fields: readonly WatchedField[], signal: AbortSignal): Promise<WatchedField[]> {
    // The fields often share a witness: it is read once.
    const read = new Map<string, Text | undefined>();
    const gone: WatchedField[] = [];
    for (const field of fields) {
      const witness: Witness | undefined = this.#witnesses[field];
      if (!witness) continue;
      if (!read.has(witness.uid)) read.set(witness.uid, await readWitness(this.#parts, witness, signal));
      const record = read.get(witness.uid);
      if (!record || !shows(record, field)) gone.push(field);
    }
    return gone;
  }
}

function isTimeless({ records }: Pick<Answer, 'records'>): boolean {
  return records.length > 0 && records.every(({ time }) => time === undefined);
}
