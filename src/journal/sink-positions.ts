/**
 * How far each sink is, and what it refused. An acknowledgement never goes back; those of sinks whose outcome can be found out afterwards wait
 * in memory for the next transaction, all others are committed at once.
 */
import type { Database, Statement } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import type { Acknowledgement, DeadLetter, SinkProgress, SinkOrders } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';
import { isSame, selectionOf, widened } from './selection.ts';
import type { Selection, StoredSelection } from './selection.ts';
import type { Store } from './store.ts';

/** A sink as the state knows it. */
export interface SinkState extends SinkProgress {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
  state: string;
  acknowledged: number;
  delivered: Position;
  resumeNote: string | undefined;
  fromTime: Micros | undefined;
  deadLetters: number;
  orders: SinkOrders;
  selection: StoredSelection | undefined;
}

interface SinkRow {
  id: string;
  type: string;
  destination: string;
  state: string;
  acknowledged: number;
  delivered: number;
  delivered_chain: Buffer;
  resume_note: string | null;
  from_us: number | null;
  orders: string | null;
  selection: string | null;
}

/**
 * Dead letters fill `maxSize` up to here. What is left is for those of the sink that is furthest behind: else one that refuses much could take
 * the last page, and where another stands nothing could ever be pruned again.
 */
const deadLettersBelow = 0.985;

export class SinkPositions {
  readonly #store: Store;
  readonly #sourceNumbers: ReadonlyMap<string, number>;
  readonly #write: Statement;
  readonly #resumeNote: Statement;
  readonly #deadLetter: Statement;
  readonly #sinks = new Map<string, SinkState>();
  readonly #pending = new Map<string, Acknowledgement>();

  constructor(store: Store, sourceNumbers: ReadonlyMap<string, number>) {
    this.#store = store;
    this.#sourceNumbers = sourceNumbers;
    this.#write = store.db.prepare('UPDATE sinks SET acknowledged = ?, delivered = ?, delivered_chain = ?, resume_note = ? WHERE id = ?');
    this.#resumeNote = store.db.prepare('UPDATE sinks SET resume_note = ? WHERE id = ?');
    this.#deadLetter = store.db.prepare(
      `INSERT INTO dead_letters (sink, seq, source, uid, time_us, received_us, body, code, message, attempts, at_us, state)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'kept') ON CONFLICT (sink, seq) DO NOTHING`,
    );
    for (const row of store.db.prepare<[], SinkRow>('SELECT * FROM sinks').all()) this.#sinks.set(row.id, stateOf(row));
    const counts = store.db.prepare<[], { sink: string; n: number }>(
      "SELECT sink, count(*) AS n FROM dead_letters WHERE state = 'kept' GROUP BY sink",
    );
    for (const row of counts.all()) {
      const sink = this.#sinks.get(row.sink);
      if (sink) sink.deadLetters = row.n;
    }
  }

  sinks(): Iterable<SinkState> {
    return this.#sinks.values();
  }

  sink(id: string): SinkState {
    const sink = this.#sinks.get(id);
    if (!sink) throw new WaybillError('internal_error', `sink "${id}" is not in the state`);
    return sink;
  }

  /** Up to where every sink that is delivered to has taken what there is; without a sink, everything. */
  delivered(): number {
    let least = Number.MAX_SAFE_INTEGER;
    for (const sink of this.#sinks.values()) {
      if (sink.state === 'active') least = Math.min(least, this.#pending.get(sink.id)?.acknowledged ?? sink.acknowledged);
    }
    return least;
  }

  /**
   * A sink of the configuration: a new one begins behind `from`; one that is known goes on, and its destination must be what it was. One that was
   * retired begins at `from` like a new one, but never before what it had.
   */
  register(id: string, type: string, destination: string, from: Position, fromTime: Micros | undefined): SinkState {
    const known = this.#sinks.get(id);
    const moved = known && movedMessage(known, type, destination);
    if (moved !== undefined) throw new WaybillError('config_invalid', `cannot use sinks.${id}: ${moved}`);
    const state = known ?? {
      ...{
        id,
        type,
        destination,
        state: 'active',
        acknowledged: from.seq,
        delivered: from,
        resumeNote: undefined,
        fromTime,
        deadLetters: 0,
        orders: {},
        selection: undefined,
      },
    };
    this.#store.transaction(() => {
      if (known?.state === 'retired') this.#begin(known, from, fromTime);
      this.#store.db
        .prepare(
          `INSERT INTO sinks (id, type, destination, state, from_seq, acknowledged, delivered, delivered_chain, from_us, begun_us)
           VALUES (?, ?, ?, 'active', ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = 'active', reason = NULL`,
        )
        .run(id, type, destination, from.seq, from.seq, from.seq, from.chain, fromTime ?? null, fromTime ?? this.#begunBehind(from.seq));
      this.#store.after(() => {
        state.state = 'active';
        this.#sinks.set(id, state);
      });
    });
    return state;
  }

  /**
   * Keeps which records a sink of the configuration takes. With another selection than last time it takes what lies behind its position: of what is
   * new to it, it owes nothing from before that. The first selection that is kept counts from the start of the sink.
   *
   * @returns whether it is another selection, and the sources of which the sink takes records that it did not take before
   */
  select(id: string, { sources, filter }: Selection): { readonly isChanged: boolean; readonly widened: readonly string[] } {
    const sink = this.sink(id);
    const { selection: before } = sink;
    const isChanged = before !== undefined && !isSame(before, { sources, filter });
    if (before && !isChanged) return { isChanged, widened: [] };
    const wider = before ? widened(before, { sources, filter }, [...this.#sourceNumbers.keys()]) : [];
    const at = this.#begunBehind(sink.acknowledged);
    const since = { ...before?.since, ...Object.fromEntries(wider.map((source) => [source, at])) };
    const selection: StoredSelection = { sources, filter, since };
    this.#store.transaction(() => {
      this.#store.db.prepare('UPDATE sinks SET selection = ? WHERE id = ?').run(JSON.stringify(selection), id);
      this.#store.after(() => (sink.selection = selection));
    });
    return { isChanged, widened: wider };
  }

  /**
   * Within a transaction: one that was retired begins anew. What lay between was not kept for it, and what it wrote since its last acknowledgement is
   * not ours any more: its note goes. `from_seq` stays, for its dead letters lie behind that.
   */
  #begin(sink: SinkState, from: Position, fromTime: Micros | undefined): void {
    const isAhead = from.seq > sink.acknowledged;
    const acknowledged = isAhead ? from.seq : sink.acknowledged;
    const delivered = isAhead ? from : sink.delivered;
    this.#write.run(acknowledged, delivered.seq, delivered.chain, null, sink.id);
    this.#store.db.prepare('UPDATE sinks SET from_us = ?, orders = NULL WHERE id = ?').run(fromTime ?? null, sink.id);
    if (isAhead)
      this.#store.db.prepare('UPDATE sinks SET begun_us = ? WHERE id = ?').run(fromTime ?? this.#begunBehind(acknowledged), sink.id);
    this.#store.after(() => Object.assign(sink, { acknowledged, delivered, resumeNote: undefined, fromTime, orders: {} }));
  }

  /** Within a transaction: one that is gone from the configuration for good holds back nothing any more. */
  retire(sink: SinkState): void {
    this.#store.db.prepare("UPDATE sinks SET state = 'retired' WHERE id = ?").run(sink.id);
    this.#store.after(() => (sink.state = 'retired'));
  }

  /** Within a transaction: what a person orders of a sink, kept until it is done. */
  writeOrders(sink: SinkState, orders: SinkOrders): void {
    const text = JSON.stringify(orders);
    this.#store.db.prepare('UPDATE sinks SET orders = ? WHERE id = ?').run(text === '{}' ? null : text, sink.id);
    this.#store.after(() => (sink.orders = orders));
  }

  /** What was to be adopted is adopted. */
  adopted(id: string): void {
    const sink = this.sink(id);
    const { reconcile } = sink.orders;
    this.#store.transaction(() => this.writeOrders(sink, { reconcile }));
  }

  /** Sinks that are in the state but not in the configuration keep their place, and hold back pruning, until they are retired. */
  markUnconfigured(configured: ReadonlySet<string>): SinkState[] {
    const unconfigured = [...this.#sinks.values()].filter((sink) => !configured.has(sink.id) && sink.state !== 'retired');
    if (unconfigured.length === 0) return [];
    this.#store.transaction(() => {
      const set = this.#store.db.prepare("UPDATE sinks SET state = 'unconfigured' WHERE id = ?");
      for (const sink of unconfigured) set.run(sink.id);
    });
    for (const sink of unconfigured) sink.state = 'unconfigured';
    return unconfigured;
  }

  /** Keeps an acknowledgement for the next transaction. A later one replaces an earlier one. */
  later(id: string, acknowledgement: Acknowledgement): void {
    this.#assertForward(this.sink(id), acknowledgement);
    const delivered = acknowledgement.delivered ?? this.#pending.get(id)?.delivered;
    this.#pending.set(id, { acknowledged: acknowledgement.acknowledged, delivered });
  }

  get waiting(): boolean {
    return this.#pending.size > 0;
  }

  /** Commits one acknowledgement with its dead letters, and whatever else is waiting. */
  now(id: string, acknowledgement: Acknowledgement, deadLetters: readonly DeadLetter[], at: Micros): void {
    const before = this.#pending.get(id);
    this.later(id, acknowledgement);
    const write = (): void => {
      this.writePending();
      let added = 0;
      for (const { entry, rejection, attempts } of deadLetters) {
        const source = this.#sourceNumbers.get(entry.source) ?? 0;
        const uid = Buffer.from(entry.uid, 'base64url');
        const body = /* mutant: dead-letter-copy */ Buffer.from(entry.text, 'utf8');
        const { changes } = this.#deadLetter.run(
          id, entry.seq, source, uid, entry.time ?? null, entry.received, body, rejection.code, rejection.message, attempts, at,
        ); // prettier-ignore
        added += changes;
      }
      this.#store.after(() => (this.sink(id).deadLetters += added));
    };
    try {
      this.#store.transaction(write, deadLetters.length === 0 || this.#isLast(id) ? undefined : deadLettersBelow);
    } catch (thrown) {
      // Without its dead letters it must not go with the next transaction: they would be lost.
      if (before) this.#pending.set(id, before);
      else this.#pending.delete(id);
      throw thrown;
    }
  }

  /** Commits what waits. */
  flush(): void {
    if (this.#pending.size === 0) return;
    this.#store.transaction(() => this.writePending());
  }

  /** Within a transaction: writes what waits; memory follows after COMMIT. */
  writePending(): void {
    for (const [id, waiting] of this.#pending) {
      const sink = this.sink(id);
      const delivered = waiting.delivered?.position ?? sink.delivered;
      const resumeNote = waiting.delivered?.resumeNote ?? sink.resumeNote;
      this.#write.run(waiting.acknowledged, delivered.seq, delivered.chain, resumeNote ?? null, id);
      this.#store.after(() => {
        sink.acknowledged = waiting.acknowledged;
        sink.delivered = delivered;
        sink.resumeNote = resumeNote;
        if (this.#pending.get(id) === waiting) this.#pending.delete(id);
      });
    }
  }

  /** A new note for the same position (file: the begin of another file), committed before this returns. */
  commitResumeNote(id: string, resumeNote: string): void {
    this.#store.transaction(() => this.writeResumeNote(id, resumeNote));
  }

  /** Within a transaction: what waits, and a new note for the position that is taken then. */
  writeResumeNote(id: string, resumeNote: string): void {
    this.writePending();
    this.#resumeNote.run(resumeNote, id);
    this.#store.after(() => (this.sink(id).resumeNote = resumeNote));
  }

  /**
   * The time from which on a sink that begins behind `seq` gets every record: 0 when that is the beginning; else when the last entry that it
   * does not get had arrived (what is dated later came later), or this process began.
   */
  #begunBehind(seq: number): Micros {
    if (seq === 0) return 0;
    const found = this.#store.db
      .prepare<[number], { at: number | null }>(
        `SELECT coalesce((SELECT received_us FROM segments WHERE seq <= ? ORDER BY seq DESC LIMIT 1),
                         (SELECT received_us FROM segments ORDER BY seq LIMIT 1), (SELECT since_us FROM owner)) AS at`,
      )
      .get(seq);
    return found?.at ?? 0;
  }

  /** Whether no sink is further behind. */
  #isLast(id: string): boolean {
    const { acknowledged } = this.sink(id);
    return [...this.#sinks.values()].every((other) => other.state === 'retired' || other.acknowledged >= acknowledged);
  }

  #assertForward(sink: SinkState, acknowledgement: Acknowledgement): void {
    const at = this.#pending.get(sink.id)?.acknowledged ?? sink.acknowledged;
    if (acknowledgement.acknowledged < at) {
      throw new WaybillError(
        'internal_error',
        `acknowledgement of sink "${sink.id}" goes back from ${at} to ${acknowledgement.acknowledged}`,
      );
    }
  }
}

function stateOf(row: SinkRow): SinkState {
  return {
    id: row.id,
    type: row.type,
    destination: row.destination,
    state: row.state,
    acknowledged: row.acknowledged,
    delivered: { seq: row.delivered, chain: row.delivered_chain },
    resumeNote: row.resume_note ?? undefined,
    fromTime: row.from_us ?? undefined,
    deadLetters: 0,
    orders: ordersOf(row.orders),
    selection: selectionOf(row.selection),
  };
}

/** Why a sink of the state cannot go on as it is configured now: what it took lies elsewhere. Undefined: it can. */
export function movedMessage(known: Pick<SinkState, 'type' | 'destination'>, type: string, destination: string): string | undefined {
  if (known.type === type && known.destination === destination) return undefined;
  const [before, now] = known.type === type ? ['', ''] : [` by ${known.type}`, ` by ${type}`];
  return `it delivered to "${known.destination}"${before} before and would now deliver to "${destination}"${now}; give the new destination a new id`;
}

/** A sink as the state knows it, for lists. */
export interface KnownSink {
  readonly id: string;
  readonly type: string;
  /** active | unconfigured | retired */
  readonly state: string;
  readonly destination: string;
  readonly acknowledged: number;
  /** Entries after `acknowledged`, and the records among them. */
  readonly lag: number;
  readonly lagRecords: number;
  readonly deadLetters: number;
  /** From when on it gets what is collected; 0: everything. */
  readonly since: Micros;
  readonly orders: SinkOrders;
}

/** Every sink that the state knows, also those that are gone from the configuration. */
export function sinksOf(db: Database): KnownSink[] {
  interface Row extends SinkRow {
    begun_us: number;
    head: number;
    records: number;
    deadLetters: number;
  }
  return db
    .prepare<[], Row>(
      `SELECT sinks.*, (SELECT seq FROM head) AS head,
              (SELECT coalesce(sum(seq + n - 1 - max(seq - 1, acknowledged)), 0) FROM segments WHERE number IS NOT NULL AND seq + n - 1 > acknowledged) AS records,
              (SELECT count(*) FROM dead_letters WHERE sink = sinks.id AND dead_letters.state = 'kept') AS deadLetters
       FROM sinks ORDER BY id`,
    )
    .all()
    .map((row) => ({
      ...{ id: row.id, type: row.type, state: row.state, destination: row.destination, acknowledged: row.acknowledged },
      ...{ lag: row.head - row.acknowledged, lagRecords: row.records, deadLetters: row.deadLetters, since: row.begun_us },
      orders: ordersOf(row.orders),
    }));
}

/** A state that no daemon of this release has opened yet has no such column. */
function ordersOf(text: string | null | undefined): SinkOrders {
  return typeof text === 'string' ? (storedJson(text) as SinkOrders) : {};
}
