/**
 * In-memory columns, sorted by time, by which the logs endpoints filter and sort: any filter and
 * order takes one or two passes over arrays of numbers, whatever the page. They follow the table
 * `records`, and read its new rows before each query.
 */
import { setImmediate } from 'node:timers/promises';
import type { DataFile } from '../data-file.ts';
import type { Keys, Selection } from './selection.ts';

type Row = readonly [id: bigint, at: bigint, ...texts: (string | null)[]];

/**
 * Rows of the columns: `positions[0]` to `positions[count - 1]`; without positions, all from
 * `first`.
 */
interface Found {
  readonly first: number;
  readonly count: number;
  readonly positions: Int32Array | undefined;
}

/** True for rows with this code. */
interface Condition {
  readonly codes: Int32Array;
  readonly code: number;
}

const rowsAtOnce = 10_000;
const fewNewTexts = 500;

export class Columns {
  readonly #data: DataFile;
  readonly #select: string;
  readonly #fields: readonly (keyof Keys)[];
  readonly #dictionaries: Readonly<Record<keyof Keys, Dictionary>>;
  /** For each field, the code of the text of each row. */
  #codes: Record<keyof Keys, Int32Array>;
  #at = new BigInt64Array(rowsAtOnce);
  #ids = new Float64Array(rowsAtOnce);
  #scratch = new Int32Array(0);
  #size = 0;
  #newestId = 0n;
  #last: { readonly selection: Selection; readonly size: number; readonly found: Found } | undefined;

  /** @param columnOf  the column of the table `records` for each field */
  constructor(data: DataFile, columnOf: Readonly<Record<keyof Keys, string>>) {
    this.#data = data;
    this.#fields = Object.keys(columnOf) as (keyof Keys)[];
    const names = this.#fields.map((field) => columnOf[field]).join();
    this.#select = `SELECT id, at, ${names} FROM records WHERE id > ? ORDER BY id LIMIT ${rowsAtOnce}`;
    this.#dictionaries = this.#each(() => new Dictionary());
    this.#codes = this.#each(() => new Int32Array(rowsAtOnce));
  }

  /** Reads all rows; yields for signals in between. @throws the reason of an aborted signal */
  async load(signal: AbortSignal): Promise<void> {
    while (this.#readSome()) {
      await setImmediate();
      signal.throwIfAborted();
    }
    for (const field of this.#fields) this.#dictionaries[field].ranks();
  }

  count(selection: Selection): number {
    return this.#found(selection).count;
  }

  /**
   * The ids of one page: by the field, then by time, then by id; descending is the exact reverse.
   */
  page(selection: Selection, by: keyof Keys | 'logTimestamp', descending: boolean, limit: number, offset: number): number[] {
    const found = this.#found(selection);
    const begin = descending ? Math.max(0, found.count - offset - limit) : Math.min(offset, found.count);
    const end = descending ? Math.max(0, found.count - offset) : Math.min(offset + limit, found.count);
    const rows = by === 'logTimestamp' ? slice(found, begin, end) : this.#sliceBy(by, found, begin, end);
    const ids = rows.map((row) => this.#ids[row] ?? 0);
    return descending ? ids.reverse() : ids;
  }

  /** Cached, because the count and the page of a response select the same rows. */
  #found(selection: Selection): Found {
    while (this.#readSome());
    if (this.#last?.selection !== selection || this.#last.size !== this.#size) {
      this.#last = { selection, size: this.#size, found: this.#search(selection) };
    }
    return this.#last.found;
  }

  #search({ from, until, equal, ownOf }: Selection): Found {
    const first = from === undefined ? 0 : this.#firstAt(from);
    const end = until === undefined ? this.#size : Math.max(first, this.#firstAt(until));
    const conditions: Condition[] = Object.entries(equal).map(([field, text]) => this.#condition(field as keyof Keys, text));
    const [condition, ...more] = conditions;
    let found: Found = { first, count: end - first, positions: undefined };
    if (condition) found = keep(found, this.#scratch, condition, condition);
    for (const each of more) found = keep(found, this.#scratch, each, each);
    if (ownOf === undefined) return found;
    return keep(found, this.#scratch, this.#condition('userId', ownOf), this.#condition('currentPayloadOwnerId', ownOf));
  }

  #condition(field: keyof Keys, text: string): Condition {
    return { codes: this.#codes[field], code: this.#dictionaries[field].find(text) };
  }

  /** The rows from `begin` to `end`, ordered by the field, then by time: a counting sort. */
  #sliceBy(field: keyof Keys, { first, count, positions }: Found, begin: number, end: number): number[] {
    if (begin >= end) return [];
    const codes = this.#codes[field];
    const ranks = this.#dictionaries[field].ranks();
    const places = rowsOfRanks({ first, count, positions }, codes, ranks);
    let [before, low, high] = [0, ranks.length, 0];
    for (let rank = 0; rank < places.length; rank += 1) {
      const here = places[rank] ?? 0;
      places[rank] = before;
      before += here;
      if (before > begin && low > rank) low = rank;
      if (here > 0 && before - here < end) high = rank;
    }
    const rows = new Array<number>(end - begin);
    for (let at = 0, left = end - begin; left > 0 && at < count; at += 1) {
      const row = positions ? (positions[at] ?? 0) : first + at;
      const rank = ranks[codes[row] ?? 0] ?? 0;
      if (rank < low || rank > high) continue;
      const place = places[rank] ?? 0;
      places[rank] = place + 1;
      if (place < begin || place >= end) continue;
      rows[place - begin] = row;
      left -= 1;
    }
    return rows;
  }

  /** The first row at this instant or later. */
  #firstAt(instant: bigint, end = this.#size): number {
    let low = 0;
    let high = end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#at[middle] ?? 0n) < instant) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @returns true if there were new rows */
  #readSome(): boolean {
    const statement = this.#data.prepared(this.#select).safeIntegers(true).raw(true);
    const rows = statement.all(this.#newestId) as Row[];
    if (rows.length === 0) return false;
    this.#newestId = rows.at(-1)?.[0] ?? this.#newestId;
    this.#grow(this.#size + rows.length);
    // By time, then by id: the rows arrive in the order of their ids, and the sort is stable.
    rows.sort((one, other) => (one[1] < other[1] ? -1 : one[1] > other[1] ? 1 : 0));
    let end = this.#size;
    for (let left = rows.length - 1; left >= 0; left -= 1) {
      const row = rows[left] as Row;
      const place = (this.#at[end - 1] ?? row[1]) <= row[1] ? end : this.#firstAt(row[1] + 1n, end);
      if (place < end) this.#move(place, end, left + 1);
      this.#write(place + left, row);
      end = place;
    }
    this.#size += rows.length;
    return true;
  }

  #write(place: number, [id, at, ...texts]: Row): void {
    this.#at[place] = at;
    this.#ids[place] = Number(id);
    this.#fields.forEach((field, index) => (this.#codes[field][place] = this.#dictionaries[field].add(texts[index] ?? null)));
  }

  #move(from: number, end: number, by: number): void {
    for (const column of [this.#at, this.#ids, ...Object.values(this.#codes)]) column.copyWithin(from + by, from, end);
  }

  #grow(size: number): void {
    if (size > this.#at.length) {
      const capacity = Math.max(size, Math.ceil(this.#at.length * 1.5));
      const [at, ids, codes] = [this.#at, this.#ids, this.#codes];
      this.#at = new BigInt64Array(capacity);
      this.#at.set(at);
      this.#ids = new Float64Array(capacity);
      this.#ids.set(ids);
      this.#codes = this.#each((field) => {
        const column = new Int32Array(capacity);
        column.set(codes[field]);
        return column;
      });
    }
    if (this.#scratch.length <= this.#at.length) this.#scratch = new Int32Array(this.#at.length + 1);
  }

  #each<T>(make: (field: keyof Keys) => T): Record<keyof Keys, T> {
    return Object.fromEntries(this.#fields.map((field) => [field, make(field)])) as Record<keyof Keys, T>;
  }
}

/**
 * The texts of a column with their codes. Code 0 means no text: no filter matches it, and it sorts
 * first.
 */
class Dictionary {
  readonly #codes = new Map<string, number>();
  readonly #texts: string[] = [''];
  /** The codes sorted by their texts, and for each code its rank in that order. */
  #ordered = [0];
  #ranks = new Int32Array(1);

  add(given: string | null): number {
    if (given === null) return 0;
    let code = this.#codes.get(given);
    if (code === undefined) {
      code = this.#texts.length;
      this.#codes.set(given, code);
      this.#texts.push(given);
    }
    return code;
  }

  /** -1 if no row has the text. */
  find(text: string): number {
    return this.#codes.get(text) ?? -1;
  }

  /** The rank of each code when the texts are sorted by Unicode code point. */
  ranks(): Int32Array {
    const known = this.#ordered.length;
    if (known === this.#texts.length) return this.#ranks;
    if (this.#texts.length - known <= fewNewTexts) {
      for (let code = known; code < this.#texts.length; code += 1) this.#ordered.splice(this.#placeOf(code), 0, code);
    } else {
      for (let code = known; code < this.#texts.length; code += 1) this.#ordered.push(code);
      this.#ordered.sort((one, other) => this.#compare(one, other));
    }
    this.#ranks = new Int32Array(this.#ordered.length);
    this.#ordered.forEach((code, rank) => (this.#ranks[code] = rank));
    return this.#ranks;
  }

  #placeOf(code: number): number {
    let [low, high] = [1, this.#ordered.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(this.#ordered[middle] ?? 0, code) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compare(one: number, other: number): number {
    if (one === 0 || other === 0) return one - other;
    return compareByCodePoint(this.#texts[one] ?? '', this.#texts[other] ?? '');
  }
}

/**
 * Compares like SQLite (UTF-8); JavaScript compares UTF-16, where surrogates sort before U+E000.
 */
function compareByCodePoint(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)];
    if (a !== b) return raised(a) - raised(b);
  }
  return one.length - other.length;
}

function raised(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/**
 * Filters rows by any of the conditions into an array, which may be the input. Branchless, because
 * branches are unpredictable here.
 */
function keep({ first, count, positions }: Found, into: Int32Array, one: Condition, other: Condition): Found {
  const [oneCodes, oneCode, otherCodes, otherCode] = [one.codes, one.code, other.codes, other.code];
  let kept = 0;
  for (let at = 0; at < count; at += 1) {
    const row = positions === undefined ? first + at : (positions[at] ?? 0);
    into[kept] = row;
    kept += Number(oneCodes[row] === oneCode) | Number(otherCodes[row] === otherCode);
  }
  return { first: 0, count: kept, positions: into };
}

/** The number of rows of each rank. */
function rowsOfRanks({ first, count, positions }: Found, codes: Int32Array, ranks: Int32Array): Int32Array {
  const rowsOfCodes = new Int32Array(ranks.length);
  for (let at = 0; at < count; at += 1) {
    const code = codes[positions === undefined ? first + at : (positions[at] ?? 0)] ?? 0;
    rowsOfCodes[code] = (rowsOfCodes[code] ?? 0) + 1;
  }
  const rows = new Int32Array(ranks.length);
  for (let code = 0; code < ranks.length; code += 1) rows[ranks[code] ?? 0] = rowsOfCodes[code] ?? 0;
  return rows;
}

function slice({ first, positions }: Found, begin: number, end: number): number[] {
  return positions ? Array.from(positions.subarray(begin, end)) : Array.from({ length: end - begin }, (_, at) => first + begin + at);
}
