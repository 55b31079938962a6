/**
 * Which fields a service shows, pure: which of those that a permission may hide a record has, in what share of the last 1,000 records each was,
 * and which of the usual ones a page lacks altogether.
 */
import type { CollectedRecord } from '../model/journal.ts';
import { personalFields } from '../record/fields.ts';
import type { PersonalField } from '../record/fields.ts';

/** The fields that appear "depending on the permissions" (specification 2.7, 4.6). */
export const watchedFields = ['userNetwork', ...personalFields] as const;
export type WatchedField = 'userNetwork' | PersonalField;

/** A field in at least this share of the last records is missed when a page has none. */
const usualShare = 0.9;
const recordsBack = 1_000;
/** Of each page so many are looked at, evenly spread: all would cost more than they tell. */
const maxLooks = 100;

export type Text = Pick<CollectedRecord, 'text'>;

/** Whether the record shows the field, with something in it. A key inside of a text has its quotation marks escaped. */
export function shows({ text }: Text, field: WatchedField): boolean {
  const key = `"${field}"`;
  for (let at = text.indexOf(key); at !== -1; at = text.indexOf(key, at + key.length)) {
    const value = text.slice(at + key.length, at + key.length + 24).trimStart();
    // The same text as a value is followed by something else than a colon.
    if (value.startsWith(':')) return !/^:\s*(?:null\b|""|\{\s*\})/.test(value);
  }
  return false;
}

/** What of the last 1,000 records had which fields. */
export class Shares {
  /** One character a record: the fields that it had, as the bits of a digit in base 32; the newest last. */
  #recent: string;
  /** Made when it is asked for. */
  #usual: readonly WatchedField[] | undefined;

  /** @param recent  what `kept` gave */
  constructor(recent = '') {
    this.#recent = /^[0-9a-v]*$/.test(recent) ? recent.slice(-recordsBack) : '';
  }

  /** For the profile of the source. */
  kept(): string {
    return this.#recent;
  }

  note(records: readonly Text[]): void {
    const step = Math.max(1, Math.ceil(records.length / maxLooks));
    let seen = '';
    for (let i = 0; i < records.length; i += step) {
      const record = records[i];
      if (record) seen += watchedFields.reduce((bits, field, bit) => bits | (shows(record, field) ? 1 << bit : 0), 0).toString(32);
    }
    if (seen === '') return;
    this.#recent = (this.#recent + seen).slice(-recordsBack);
    this.#usual = undefined;
  }

  /** Between 0 and 1; 0 before there was a record. */
  shareOf(field: WatchedField): number {
    const bit = 1 << watchedFields.indexOf(field);
    let having = 0;
    for (let at = 0; at < this.#recent.length; at += 1) if (((digits[this.#recent.charCodeAt(at)] ?? 0) & bit) !== 0) having += 1;
    return this.#recent === '' ? 0 : having / this.#recent.length;
  }

  /** The usual fields that none of these records shows; none of no record. */
  missingIn(records: readonly Text[]): WatchedField[] {
    if (records.length === 0) return [];
    this.#usual ??= watchedFields.filter((field) => this.shareOf(field) >= usualShare);
    return this.#usual.filter((field) => !records.some((record) => shows(record, field)));
  }
}

/** The value of each digit in base 32 by its code. */
const digits = new Uint8Array(128);
for (let value = 0; value < 32; value += 1) digits[value.toString(32).charCodeAt(0)] = value;
