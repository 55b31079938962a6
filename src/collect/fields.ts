/**
 * The fields that a permission may hide: which of them a record shows, the share of the last 1,000
 * records that showed each, and the usual fields that a page lacks in all its records. Pure.
 */
import type { CollectedRecord } from '../model/journal.ts';
import { personalFields, type PersonalField } from '../record/fields.ts';

/** The fields that appear "depending on the permissions". `Shares` keeps them as one digit in base 32, which has five bits. */
export const watchedFields = ['userNetwork', ...personalFields] as const satisfies { readonly length: 5 };
export type WatchedField = 'userNetwork' | PersonalField;

/** A field is usual when at least this share of the last records contain it. */
const usualShare = 0.9;
const recordsBack = 1_000;
/** The number of records examined per page, evenly spread: examining all would cost too much. */
const maxExamined = 100;

export type Text = Pick<CollectedRecord, 'text'>;

/** True if the record shows the field with a value that is not empty. A key inside a text has its quotation marks escaped. */
export function shows({ text }: Text, field: WatchedField): boolean {
  const key = `"${field}"`;
  for (let at = text.indexOf(key); at !== -1; at = text.indexOf(key, at + key.length)) {
    const value = text.slice(at + key.length, at + key.length + 24).trimStart();
    // A colon follows a key. If the same text is a value, no colon follows it.
    if (value.startsWith(':')) return !/^:\s*(?:null\b|""|\{\s*\})/.test(value);
  }
  return false;
}

/** The watched fields that the record shows, as bits. `text` is decoded at each access, so it is read once. */
function fieldsOf({ text }: Text): number {
  return watchedFields.reduce((bits, field, bit) => bits | (shows({ text }, field) ? 1 << bit : 0), 0);
}

/** The fields that each of the last 1,000 records showed. */
export class Shares {
  /** One character a record: its fields as the bits of a digit in base 32; the newest last. */
  #recent: string;
  /** Computed when needed. */
  #usual: readonly WatchedField[] | undefined;

  /** @param recent  what `profile` returned before a restart */
  constructor(recent = '') {
    this.#recent = /^[0-9a-v]*$/.test(recent) ? recent.slice(-recordsBack) : '';
  }

  /** Survives a restart. */
  profile(): string {
    return this.#recent;
  }

  add(records: readonly Text[]): void {
    const step = Math.max(1, Math.ceil(records.length / maxExamined));
    let seen = '';
    for (let i = 0; i < records.length; i += step) {
      const record = records[i];
      if (record) seen += fieldsOf(record).toString(32);
    }
    if (seen === '') return;
    this.#recent = (this.#recent + seen).slice(-recordsBack);
    this.#usual = undefined;
  }

  /** Between 0 and 1; 0 before the first record. */
  shareOf(field: WatchedField): number {
    const bit = 1 << watchedFields.indexOf(field);
    let having = 0;
    for (let at = 0; at < this.#recent.length; at += 1) if (((digits[this.#recent.charCodeAt(at)] ?? 0) & bit) !== 0) having += 1;
    return this.#recent === '' ? 0 : having / this.#recent.length;
  }

  /** The usual fields that none of these records shows; empty if there are no records. */
  missingIn(records: readonly Text[]): WatchedField[] {
    if (records.length === 0) return [];
    this.#usual ??= watchedFields.filter((field) => this.shareOf(field) >= usualShare);
    return this.#usual.filter((field) => !records.some((record) => shows(record, field)));
  }
}

/** The value of each digit in base 32 by its code. */
const digits = new Uint8Array(128);
for (let value = 0; value < 32; value += 1) digits[value.toString(32).charCodeAt(0)] = value;
