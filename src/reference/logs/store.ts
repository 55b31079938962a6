/**
 * Where log records are: two tables of the data file, in which `records` holds exactly what is visible now and `pending` what will become visible
 * later, so that no query asks about visibility. A record is kept as its ready-made JSON text, cut where the permissions cut it, and
 * beside it the columns by which it can be found and sorted; a page is put together inside SQLite and leaves it as bytes.
 */
import { setImmediate } from 'node:timers/promises';
import type { Statement } from 'better-sqlite3';
import type { DataFile } from '../data-file.ts';
import { Columns } from './columns.ts';
import type { Keys, Selection } from './selection.ts';
import { Tally } from './tally.ts';

/** One record. Its JSON text is head + network + personal + tail; the shapes leave out network, personal or both. */
export interface StoredRecord extends Keys {
  /** Nanoseconds since 1970. */
  readonly at: bigint;
  readonly head: string;
  readonly network: string;
  readonly personal: string;
  readonly tail: string;
}

/** A record, and when it becomes visible, ms since 1970. */
export interface Arrival {
  readonly record: StoredRecord;
  readonly shownAt: number;
}

export type SortField = 'logTimestamp' | keyof Keys;

export interface Order {
  /** `arrival` is the order of becoming visible. */
  readonly by: SortField | 'arrival';
  readonly descending: boolean;
  /** Puts equal values in an order that depends on this odd number; without it the older, then the earlier visible, comes first. */
  readonly tiesBy: number | undefined;
}

/** Which parts of a record's text are served. */
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

  /** Reads what the data file has, so that no query has to wait for it. */
  load(signal: AbortSignal): Promise<void> {
    return this.#columns.load(signal);
  }

  /** Adds records in one transaction. */
  add(records: Iterable<Arrival>, now: number): void {
    this.#data.transaction(() => {
      const insert = this.#insert(now);
      for (const arrival of records) insert(arrival);
    });
  }

  /** Adds very many, all or none, and lets signals be heard meanwhile. Throws the reason of one that is aborted. */
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

  /** Makes visible what is due. */
  reveal(now: number): void {
    if (this.#nextShown > now) return;
    const names = columns.join();
    this.#data.transaction(() => {
      this.#data.prepared(`INSERT INTO records (${names}) SELECT ${names} FROM pending WHERE shown_at <= ? ORDER BY shown_at, id`).run(now);
      this.#data.prepared('DELETE FROM pending WHERE shown_at <= ?').run(now);
    });
    this.#nextShown = this.#soonest();
  }

  /** How many are selected; with `shownBefore` (ms since 1970) only those that were visible then. */
  count(selection: Selection, shownBefore?: number): number {
    if (shownBefore === undefined) return isSpan(selection) ? this.#tally.count(selection) : this.#columns.count(selection);
    this.#indexFor(selection);
    const { where, values } = conditionOf(selection);
    const lagging = `${where === '' ? 'WHERE' : 'AND'} shown_at <= ?`;
    return this.#one<number>(`SELECT count(*) FROM records ${where} ${lagging}`, [...values, shownBefore]);
  }

  /** The JSON texts of one page, with commas between and the two texts around, as UTF-8: the bytes of an answer are made once. */
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
    // The aggregate takes the rows in the order in which the inner query, limited as it is, gives them.
    return this.#one<Buffer>(
      `SELECT CAST(? || ifnull(group_concat(text, ','), '') || ? AS BLOB)
       FROM (SELECT ${text} AS text FROM records ${where} ORDER BY ${orderOf(order, selection)} LIMIT ? OFFSET ?)`,
      [before, behind, ...values, limit, near.offset],
    );
  }

  /** All selected records as JSON text, oldest first, as they are at the moment of the call, in portions. */
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

  /** Fields are rarely asked for, and each index slows every insert: one is made when a query first names its field. */
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

/** Whether time alone selects. */
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
  // A unary plus keeps SQLite from walking a whole index in order when the conditions select little.
  const narrow = Object.keys(selection.equal).length > 0 || (selection.from !== undefined && selection.until !== undefined);
  const column = columnOf[order.by];
  const first = `${narrow && column !== 'at' ? '+' : ''}${column} ${direction}`;
  if (order.tiesBy !== undefined) return `${first}, (id * ${order.tiesBy}) % 1000003`;
  return [first, ...(column === 'at' ? [] : [`at ${direction}`]), `id ${direction}`].join(', ');
}
