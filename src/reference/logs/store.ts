/**
 * The stored log records. `records` holds exactly the visible records, and `pending` the records
 * that become visible later: no query checks visibility. A record is stored as JSON text, split by
 * permission, with columns for filters and order. SQLite assembles a page as bytes.
 */
import { setImmediate } from 'node:timers/promises';
import type { Statement } from 'better-sqlite3';
import type { DataFile } from '../data-file.ts';
import { Columns } from './columns.ts';
import type { Keys, Selection } from './selection.ts';
import { Tally } from './tally.ts';

/**
 * One record. Its JSON text is head + network + personal + tail; the shapes leave out network,
 * personal or both.
 */
export interface StoredRecord extends Keys {
  /** Nanoseconds since 1970. */
  readonly at: bigint;
  readonly head: string;
  readonly network: string;
  readonly personal: string;
  readonly tail: string;
}

/** A record, and the time at which it becomes visible, ms since 1970. */
export interface Arrival {
  readonly record: StoredRecord;
  readonly shownAt: number;
}

export type SortField = 'logTimestamp' | keyof Keys;

export interface Order {
  /** `arrival` is the order of becoming visible. */
  readonly by: SortField | 'arrival';
  readonly descending: boolean;
  /** Orders equal values by this odd number; without it by age, then by time of visibility. */
  readonly tiesBy: number | undefined;
}

/** The parts of the text of a record that are served. */
export interface Shape {
  readonly network: boolean;
  readonly personal: boolean;
}

const columnOfKey: Readonly<Record<keyof Keys, string>> = {
  userId: 'user_id',
  payloadId: 'payload_id',
  payloadName: 'payload_name',
  currentPayloadOwnerId: 'owner_id',
  actionAttempted: 'action',
  result: 'result',
  resultReason: 'reason',
  userLastNameFirstName: 'user_name',
};
const columnOf: Readonly<Record<SortField, string>> = { logTimestamp: 'at', ...columnOfKey };
const keyFields = Object.keys(columnOfKey) as (keyof Keys)[];
const columns = ['at', 'shown_at', ...keyFields.map((field) => columnOf[field]), 'head', 'network', 'personal', 'tail'];
const tableOf = (name: string): string =>
  `CREATE TABLE IF NOT EXISTS ${name} (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, shown_at REAL NOT NULL,
   ${keyFields.map((field) => `${columnOf[field]} TEXT`).join(', ')},
   head TEXT NOT NULL, network TEXT NOT NULL, personal TEXT NOT NULL, tail TEXT NOT NULL) STRICT`;
const breathEach = 5000;

export class Store {
  readonly #data: DataFile;
  readonly #tally: Tally;
  readonly #columns: Columns;
  readonly #indexed = new Set<keyof Keys>();
  #nextShown = Infinity;

  constructor(data: DataFile) {
    this.#data = data;
    data.exec(`${tableOf('records')}; ${tableOf('pending')};
      CREATE INDEX IF NOT EXISTS records_at ON records (at);
      CREATE INDEX IF NOT EXISTS pending_shown_at ON pending (shown_at)`);
    this.#tally = new Tally(data);
    this.#columns = new Columns(data, columnOfKey);
    this.#nextShown = this.#soonest();
  }

  /** Loads the data file, so that no query waits for it. */
  load(signal: AbortSignal): Promise<void> {
    return this.#columns.load(signal);
  }

  add(records: Iterable<Arrival>, now: number): void {
    this.#data.transaction(() => {
      const insert = this.#insert(now);
      for (const arrival of records) insert(arrival);
    });
  }

  /**
   * Adds many records, all or none; yields for signals in between.
   * @throws the reason of an aborted signal
   */
  async addMany(records: Iterable<Arrival>, now: number, signal: AbortSignal): Promise<void> {
    const insert = this.#insert(now);
    let added = 0;
    this.#data.exec('BEGIN');
    try {
      for (const arrival of records) {
        insert(arrival);
        added += 1;
        if (added % breathEach === 0) await setImmediate();
        signal.throwIfAborted();
      }
      this.#data.exec('COMMIT');
    } catch (error) {
      this.#data.exec('ROLLBACK');
      throw error;
    }
  }

  reveal(now: number): void {
    if (this.#nextShown > now) return;
    const names = columns.join();
    this.#data.transaction(() => {
      this.#data.prepared(`INSERT INTO records (${names}) SELECT ${names} FROM pending WHERE shown_at <= ? ORDER BY shown_at, id`).run(now);
      this.#data.prepared('DELETE FROM pending WHERE shown_at <= ?').run(now);
    });
    this.#nextShown = this.#soonest();
  }

  /** Counts a selection; with `shownBefore` (ms since 1970) only records that were visible then. */
  count(selection: Selection, shownBefore?: number): number {
    if (shownBefore === undefined) return isSpan(selection) ? this.#tally.count(selection) : this.#columns.count(selection);
    this.#indexFor(selection);
    const { where, values } = conditionOf(selection);
    const lagging = `${where === '' ? 'WHERE' : 'AND'} shown_at <= ?`;
    return this.#one<number>(`SELECT count(*) FROM records ${where} ${lagging}`, [...values, shownBefore]);
  }

  /** A page as UTF-8: the JSON texts with commas in between, and the two surrounding texts. */
  page(
    selection: Selection,
    shape: Shape,
    order: Order,
    limit: number,
    offset: number,
    [before, behind]: readonly [string, string],
  ): Buffer {
    const text = `head${shape.network ? ' || network' : ''}${shape.personal ? ' || personal' : ''} || tail`;
    const { by, descending, tiesBy } = order;
    if (by !== 'arrival' && tiesBy === undefined && !(by === 'logTimestamp' && isSpan(selection))) {
      const ids = this.#columns.page(selection, by, descending, limit, offset);
      return this.#one<Buffer>(
        `SELECT CAST(? || ifnull(group_concat(text, ','), '') || ? AS BLOB)
         FROM (SELECT ${text} AS text FROM json_each(?) AS page CROSS JOIN records ON records.id = page.value ORDER BY page.key)`,
        [before, behind, JSON.stringify(ids)],
      );
    }
    this.#indexFor(selection, order);
    const near =
      order.by === 'logTimestamp' && isSpan(selection)
        ? this.#tally.near(selection, offset, order.descending)
        : { span: selection, offset };
    const { where, values } = conditionOf({ ...selection, ...near.span });
    // SQLite does not reorder the rows of the inner query, because that query has a LIMIT.
    return this.#one<Buffer>(
      `SELECT CAST(? || ifnull(group_concat(text, ','), '') || ? AS BLOB)
       FROM (SELECT ${text} AS text FROM records ${where} ORDER BY ${orderOf(order, selection)} LIMIT ? OFFSET ?)`,
      [before, behind, ...values, limit, near.offset],
    );
  }

  /** The selected records at the time of the call, as JSON texts in portions, oldest first. */
  *all(selection: Selection): Generator<string[]> {
    const newest = this.#one<number | null>('SELECT max(id) FROM records') ?? 0;
    const { where, values } = conditionOf(selection);
    let after: [bigint, bigint] | undefined;
    do {
      const more = `${where === '' ? 'WHERE' : 'AND'} id <= ? ${after ? 'AND (at, id) > (?, ?)' : ''}`;
      const rows = this.#data
        .prepared(`SELECT at, id, head || network || personal || tail AS text FROM records ${where} ${more} ORDER BY at, id LIMIT 5000`)
        .safeIntegers(true)
        .all([...values, newest, ...(after ?? [])]) as { at: bigint; id: bigint; text: string }[];
      const last = rows.at(-1);
      after = last && [last.at, last.id];
      if (rows.length > 0) yield rows.map((row) => row.text);
    } while (after);
  }

  isEmpty(): boolean {
    return this.pendingCount() === 0 && this.#one<number>('SELECT count(*) FROM (SELECT 1 FROM records LIMIT 1)') === 0;
  }

  pendingCount(): number {
    return this.#one<number>('SELECT count(*) FROM pending');
  }

  /**
   * Creates the index of a field at its first query: filters are rare, and each index slows every
   * insert.
   */
  #indexFor(selection: Selection, order?: Order): void {
    const fields = [
      ...Object.keys(selection.equal),
      ...(selection.ownOf === undefined ? [] : ['userId', 'currentPayloadOwnerId']),
      order?.by,
    ];
    for (const field of keyFields) {
      if (!fields.includes(field) || this.#indexed.has(field)) continue;
      this.#data.exec(`CREATE INDEX IF NOT EXISTS records_${columnOf[field]} ON records (${columnOf[field]}, at)`);
      this.#indexed.add(field);
    }
  }

  #insert(now: number): (arrival: Arrival) => void {
    const into = (table: string): Statement =>
      this.#data.prepared(`INSERT INTO ${table} (${columns.join()}) VALUES (${columns.map(() => '?').join()})`);
    const visible = into('records');
    const pending = into('pending');
    return ({ record, shownAt }) => {
      const keys = keyFields.map((field) => record[field]);
      (shownAt <= now ? visible : pending).run([record.at, shownAt, ...keys, record.head, record.network, record.personal, record.tail]);
      if (shownAt > now) this.#nextShown = Math.min(this.#nextShown, shownAt);
    };
  }

  #soonest(): number {
    return this.#one<number | null>('SELECT min(shown_at) FROM pending') ?? Infinity;
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows the type of the one column
  #one<T>(sql: string, values: unknown[] = []): T {
    return this.#data.prepared(sql).pluck().get(values) as T;
  }
}

/** True if only the time selects. */
function isSpan({ equal, ownOf }: Selection): boolean {
  return ownOf === undefined && Object.keys(equal).length === 0;
}

function conditionOf(selection: Selection): { where: string; values: unknown[] } {
  const parts: string[] = [];
  const values: unknown[] = [];
  const add = (part: string, ...more: unknown[]): void => {
    parts.push(part);
    values.push(...more);
  };
  for (const [field, value] of Object.entries(selection.equal)) add(`${columnOf[field as keyof Keys]} = ?`, value);
  if (selection.ownOf !== undefined) add('(user_id = ? OR owner_id = ?)', selection.ownOf, selection.ownOf);
  if (selection.from !== undefined) add('at >= ?', selection.from);
  if (selection.until !== undefined) add('at < ?', selection.until);
  return { where: parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`, values };
}

function orderOf(order: Order, selection: Selection): string {
  const direction = order.descending ? 'DESC' : 'ASC';
  if (order.by === 'arrival') return 'id';
  // A unary plus keeps SQLite from walking a whole index in order when the conditions select
  // little.
  const narrow = Object.keys(selection.equal).length > 0 || (selection.from !== undefined && selection.until !== undefined);
  const column = columnOf[order.by];
  const first = `${narrow && column !== 'at' ? '+' : ''}${column} ${direction}`;
  if (order.tiesBy !== undefined) return `${first}, (id * ${order.tiesBy}) % 1000003`;
  return [first, ...(column === 'at' ? [] : [`at ${direction}`]), `id ${direction}`].join(', ');
}
