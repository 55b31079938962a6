/**
 * The position and the dead letters of each sink. An acknowledgement never goes back. Sinks that can report their position after a crash
 * acknowledge with the next transaction; the others commit each acknowledgement at once.
 */
import type { Database, Statement } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import type { Acknowledgement, DeadLetter, Replay, Replays, SinkProgress, SinkOrders } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { ResumePosition } from '../model/sink.ts';
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';
import { isSame, selectionOf, widened, type Selection, type StoredSelection } from './selection.ts';
import { kindLedger, kindRecords } from './segment.ts';
import type { Store } from './store.ts';

export interface SinkState extends SinkProgress {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
  state: string;
  acknowledged: number;
  delivered: Position;
  resumeNote: string | undefined;
  fromTime: Micros | undefined;
  completeSince: Micros;
  deadLetters: number;
  orders: SinkOrders;
  replays: Replays;
  selection: StoredSelection | undefined;
}

export interface SinkRow {
  id: string;
  type: string;
  destination: string;
  state: string;
  acknowledged: number;
  delivered: number;
  delivered_chain: Buffer;
  resume_note: string | null;
  from_us: number | null;
  begun_us: number;
  orders: string | null;
  selection: string | null;
}

/**
 * Dead letters may fill `maxSize` up to this share. The rest is reserved for dead letters of the slowest sink. Otherwise a sink that
 * rejects many records could use the last page, and nothing could be pruned while another sink waits.
 */
const deadLettersBelow = 0.985;
/** A record that is dated further ahead has a wrong date: it does not move the time since which a sink is complete. */
const maxAheadUs = 86_400_000_000;

export class SinkPositions {
  readonly #store: Store;
  readonly #sourceNumbers: ReadonlyMap<string, number>;
  readonly #write: Statement;
  readonly #resumeNote: Statement;
  readonly #deadLetter: Statement;
  readonly #replay: Statement;
  readonly #sinks = new Map<string, SinkState>();
  readonly #pending = new Map<string, Acknowledgement>();

  constructor(store: Store, sourceNumbers: ReadonlyMap<string, number>) {
    this.#store = store;
    this.#sourceNumbers = sourceNumbers;
    this.#write = store.db.prepare('UPDATE sinks SET acknowledged = ?, delivered = ?, delivered_chain = ?, resume_note = ? WHERE id = ?');
    this.#resumeNote = store.db.prepare('UPDATE sinks SET resume_note = ? WHERE id = ?');
    this.#replay = store.db.prepare('UPDATE replays SET progress = ? WHERE sink = ? AND kind = ? AND began_ms = ?');
    this.#deadLetter = store.db.prepare(
      `INSERT INTO dead_letters (sink, seq, source, uid, time_us, received_us, body, code, message, attempts, at_us, state, kind)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'stored', ?) ON CONFLICT (sink, seq) DO NOTHING`,
    );
    const replays = replaysOf(store.db);
    for (const row of store.db.prepare<[], SinkRow>('SELECT * FROM sinks').all())
      this.#sinks.set(row.id, { ...stateOf(row), replays: replays.get(row.id) ?? {} });
    const counts = store.db.prepare<[], { sink: string; n: number }>(
      "SELECT sink, count(*) AS n FROM dead_letters WHERE state = 'stored' GROUP BY sink",
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

  /** The last entry that every configured sink has acknowledged; infinite without a sink. */
  leastAcknowledged(): number {
    let least = Number.MAX_SAFE_INTEGER;
    for (const sink of this.#sinks.values()) {
      if (sink.state === 'active') least = Math.min(least, this.#pending.get(sink.id)?.acknowledged ?? sink.acknowledged);
    }
    return least;
  }

  /**
   * Registers a configured sink. A new sink starts after `from`. A known sink continues, and its destination must be unchanged. A retired
   * sink starts at `from` like a new one, but never before its last position.
   * @param replay  with which a new sink starts
   */
  register(id: string, type: string, destination: string, from: Position, fromTime: Micros | undefined, replay?: Replay): SinkState {
    const known = this.#sinks.get(id);
    const moved = known && movedMessage(known, type, destination);
    if (moved !== undefined) throw new WaybillError('config_invalid', `cannot use sinks.${id}: ${moved}`);
    const state = known ?? {
      id,
      type,
      destination,
      state: 'active',
      acknowledged: from.seq,
      delivered: from,
      resumeNote: undefined,
      fromTime,
      completeSince: fromTime ?? this.#completeAfter(from.seq),
      deadLetters: 0,
      orders: {},
      replays: {},
      selection: undefined,
    };
    this.#store.transaction(() => {
      if (known?.state === 'retired') this.#begin(known, from, fromTime);
      this.#store.db
        .prepare(
          `INSERT INTO sinks (id, type, destination, state, from_seq, acknowledged, delivered, delivered_chain, from_us, begun_us)
           VALUES (?, ?, ?, 'active', ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = 'active', reason = NULL`,
        )
        .run(id, type, destination, from.seq, from.seq, from.seq, from.chain, fromTime ?? null, state.completeSince);
      if (!known && replay) this.writeReplay(state, replay);
      this.#store.after(() => {
        state.state = 'active';
        this.#sinks.set(id, state);
      });
    });
    return state;
  }

  /**
   * Stores the selection of a configured sink. A changed selection applies to entries after the position of the sink; for newly selected
   * sources the sink receives nothing earlier. The first stored selection counts from the start of the sink.
   * @returns whether the selection changed, and the sources of which the sink receives additional records
   */
  select(id: string, { sources, filter }: Selection): { readonly isChanged: boolean; readonly widened: readonly string[] } {
    const sink = this.sink(id);
    const { selection: before } = sink;
    const isChanged = before !== undefined && !isSame(before, { sources, filter });
    if (before && !isChanged) return { isChanged, widened: [] };
    const wider = before ? widened(before, { sources, filter }, [...this.#sourceNumbers.keys()]) : [];
    const at = wider.length === 0 ? 0 : this.#completeAfter(sink.acknowledged);
    const since = { ...before?.since, ...Object.fromEntries(wider.map((source) => [source, at])) };
    const changedAfter = before && sink.acknowledged;
    const selection: StoredSelection = { sources, filter, since, ...(changedAfter !== undefined && { changedAfter }) };
    this.#store.transaction(() => {
      this.#store.db.prepare('UPDATE sinks SET selection = ? WHERE id = ?').run(JSON.stringify(selection), id);
      this.#store.after(() => Object.assign(sink, { selection, completeSince: Math.max(sink.completeSince, at) }));
      // A replay sent its earlier entries under the previous selection, so they clear no losses of the new one.
      const { range } = sink.replays;
      // mutant: replay-reselected
      if (range && isChanged) this.updateReplay(id, { ...range, completeFrom: Math.max(range.completeFrom, range.at + 1) });
    });
    return { isChanged, widened: wider };
  }

  /**
   * Acknowledges what the sink has by its own position. What another sink stored there, or this one under a selection
   * that changed while the state did not know this position, was not selected for it: it is complete only after that.
   */
  found(id: string, found: ResumePosition, at: Micros): void {
    const sink = this.sink(id);
    const { seq } = found.position;
    if (seq <= sink.acknowledged) return;
    const { selection, completeSince: begun } = sink;
    const isForeign = /* mutant: foreign-position */ found.sink !== id;
    const isReselected = /* mutant: unknown-selection */ selection?.changedAfter === sink.acknowledged;
    const widened = isReselected ? Object.keys(selection.since ?? {}) : [];
    const completeSince = isForeign || widened.length > 0 ? Math.max(begun, this.#completeAfter(seq)) : begun;
    const since = Object.fromEntries(widened.map((source) => [source, completeSince]));
    const present = selection && { ...selection, since: { ...selection.since, ...since }, changedAfter: seq };
    this.now(id, { acknowledged: seq, delivered: found }, [], at, () => {
      if (isForeign) this.#store.db.prepare('UPDATE sinks SET begun_us = ? WHERE id = ?').run(completeSince, id);
      if (!present || !(isForeign || isReselected)) return;
      this.#store.db.prepare('UPDATE sinks SET selection = ? WHERE id = ?').run(JSON.stringify(present), id);
      this.#store.after(() => Object.assign(sink, { completeSince, selection: present }));
    });
  }

  /**
   * Within a transaction: configures a retired sink again. It skips the entries since its retirement: the journal did not keep them for it.
   * The resume note is deleted, because the receiver may hold messages of another sender by now. `from_seq` stays: it is below the
   * positions of the dead letters.
   */
  #begin(sink: SinkState, from: Position, fromTime: Micros | undefined): void {
    const isAhead = from.seq > sink.acknowledged;
    const acknowledged = isAhead ? from.seq : sink.acknowledged;
    const delivered = isAhead ? from : sink.delivered;
    this.#write.run(acknowledged, delivered.seq, delivered.chain, null, sink.id);
    this.#store.db.prepare('UPDATE sinks SET from_us = ?, orders = NULL WHERE id = ?').run(fromTime ?? null, sink.id);
    const completeSince = isAhead ? (fromTime ?? this.#completeAfter(acknowledged)) : sink.completeSince;
    if (isAhead) this.#store.db.prepare('UPDATE sinks SET begun_us = ? WHERE id = ?').run(completeSince, sink.id);
    this.#store.after(() => Object.assign(sink, { acknowledged, delivered, resumeNote: undefined, fromTime, completeSince, orders: {} }));
  }

  /** Within a transaction: retires an unconfigured sink, so that it no longer prevents pruning. */
  retire(sink: SinkState): void {
    this.#store.db.prepare("UPDATE sinks SET state = 'retired' WHERE id = ?").run(sink.id);
    this.removeReplay(sink);
    this.#store.after(() => (sink.state = 'retired'));
  }

  /** Within a transaction: stores a replay as an operator requests it. */
  writeReplay(sink: SinkState, replay: Replay): void {
    this.#store.db
      .prepare('INSERT OR REPLACE INTO replays (sink, kind, began_ms, progress) VALUES (?, ?, ?, ?)')
      .run(sink.id, replay.kind, replay.began, JSON.stringify(replay));
    this.#store.after(() => (sink.replays = { ...sink.replays, [replay.kind]: replay }));
  }

  /** Within a transaction: stores the progress of a replay that was not removed. */
  updateReplay(id: string, replay: Replay): void {
    const { kind, began } = replay;
    const { changes } = this.#replay.run(JSON.stringify(replay), id, kind, began);
    const sink = this.sink(id);
    if (changes > 0) this.#store.after(() => (sink.replays = { ...sink.replays, [kind]: replay }));
  }

  /** Within a transaction: removes a replay, default all of the sink. @returns false when there was none */
  removeReplay(sink: SinkState, replay?: Replay): boolean {
    const { changes } = replay
      ? this.#store.db.prepare('DELETE FROM replays WHERE sink = ? AND kind = ? AND began_ms = ?').run(sink.id, replay.kind, replay.began)
      : this.#store.db.prepare('DELETE FROM replays WHERE sink = ?').run(sink.id);
    if (changes > 0) this.#store.after(() => (sink.replays = replay ? { ...sink.replays, [replay.kind]: undefined } : {}));
    return changes > 0;
  }

  /** Within a transaction: stores requests of an operator until they are carried out. */
  writeOrders(sink: SinkState, orders: SinkOrders): void {
    this.#store.db.prepare('UPDATE sinks SET orders = ? WHERE id = ?').run(ordersText(orders), sink.id);
    this.#store.after(() => (sink.orders = orders));
  }

  adopted(id: string): void {
    const sink = this.sink(id);
    this.#store.transaction(() => this.writeOrders(sink, { ...sink.orders, adopt: undefined }));
  }

  /**
   * Sets the state of each sink that the configuration lacks to `unconfigured`. Such a sink keeps its
   * position, and prevents pruning until an operator retires it.
   */
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

  /** Keeps an acknowledgement for the next transaction; a later one replaces it. */
  later(id: string, acknowledgement: Acknowledgement): void {
    this.#assertForward(this.sink(id), acknowledgement);
    const delivered = acknowledgement.delivered ?? this.#pending.get(id)?.delivered;
    this.#pending.set(id, { acknowledged: acknowledgement.acknowledged, delivered });
  }

  /** Commits an acknowledgement with its dead letters, and all pending acknowledgements. */
  now(
    id: string,
    acknowledgement: Acknowledgement,
    deadLetters: readonly DeadLetter[],
    at: Micros,
    alsoWrite: () => void = () => undefined,
  ): void {
    const before = this.#pending.get(id);
    this.later(id, acknowledgement);
    const write = (): void => {
      this.writePending();
      alsoWrite();
      let added = 0;
      for (const { entry, rejection, attempts } of deadLetters) {
        const source = this.#sourceNumbers.get(entry.source) ?? 0;
        const uid = Buffer.from(entry.uid, 'base64url');
        const body = /* mutant: dead-letter-copy */ Buffer.from(entry.text, 'utf8');
        const { changes } = this.#deadLetter.run(
          id, entry.seq, source, uid, entry.time ?? null, entry.received, body, rejection.code, rejection.message, attempts, at,
          entry.kind === 'record' ? kindRecords : kindLedger,
        ); // prettier-ignore
        added += changes;
      }
      this.#store.after(() => (this.sink(id).deadLetters += added));
    };
    try {
      this.#store.transaction(write, deadLetters.length === 0 || this.#isLast(id) ? undefined : deadLettersBelow);
    } catch (thrown) {
      // Withdraws the acknowledgement: the next transaction would store it without its dead letters, which would be lost.
      if (before) this.#pending.set(id, before);
      else this.#pending.delete(id);
      throw thrown;
    }
  }

  flush(): void {
    if (this.#pending.size === 0) return;
    this.#store.transaction(() => this.writePending());
  }

  /** Within a transaction: writes pending acknowledgements. Memory follows after COMMIT. */
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

  commitResumeNote(id: string, resumeNote: string): void {
    this.#store.transaction(() => this.writeResumeNote(id, resumeNote));
  }

  /** Within a transaction: writes pending acknowledgements and the new note. */
  writeResumeNote(id: string, resumeNote: string): void {
    this.writePending();
    this.#resumeNote.run(resumeNote, id);
    this.#store.after(() => (this.sink(id).resumeNote = resumeNote));
  }

  /**
   * The time from which a sink that starts after `seq` receives every record: 0 for the start of the journal. Otherwise it is later than
   * the date (service time) and than the receipt of each entry up to `seq`. If those entries were pruned, the receipt of the first entry
   * that remains is used; if the journal is empty, the start of this process.
   */
  #completeAfter(seq: number): Micros {
    if (seq === 0) return 0;
    const sql = `WITH edge AS (SELECT coalesce((SELECT received_us FROM segments WHERE seq <= @seq ORDER BY seq DESC LIMIT 1),
                                       (SELECT received_us FROM segments ORDER BY seq LIMIT 1), (SELECT since_us FROM owner)) AS received,
                              (SELECT max(max_us) + 1 FROM segments WHERE seq <= @seq AND kind & 255 = ${kindRecords}) AS dated,
                              (SELECT max(polled_until_us) FROM sources) AS polled)
         SELECT max(received, min(coalesce(dated, 0), max(received, coalesce(polled, 0)) + @ahead)) AS at FROM edge`;
    const found = this.#store.db.prepare<[{ seq: number; ahead: number }], { at: number | null }>(sql).get({ seq, ahead: maxAheadUs });
    return found?.at ?? 0;
  }

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

function stateOf(row: SinkRow): Omit<SinkState, 'replays'> {
  const selection = selectionOf(row.selection);
  return {
    id: row.id,
    type: row.type,
    destination: row.destination,
    state: row.state,
    acknowledged: row.acknowledged,
    delivered: { seq: row.delivered, chain: row.delivered_chain },
    resumeNote: row.resume_note ?? undefined,
    fromTime: row.from_us ?? undefined,
    completeSince: Math.max(row.begun_us, ...Object.values(selection?.since ?? {})),
    deadLetters: 0,
    orders: ordersOf(row.orders),
    selection,
  };
}

/** The reason why a known sink cannot continue with this configuration: its destination changed. Undefined when it can. */
export function movedMessage(known: Pick<SinkState, 'type' | 'destination'>, type: string, destination: string): string | undefined {
  if (known.type === type && known.destination === destination) return undefined;
  const [before, now] = known.type === type ? ['', ''] : [` by ${known.type}`, ` by ${type}`];
  const keep = known.destination.startsWith('/') ? 'keep the path, with a link at it if the files moved' : 'keep the setting';
  return `it delivered to "${known.destination}"${before} before and would now deliver to "${destination}"${now}; ${keep}, or give the new destination a new id`;
}

function ordersText(orders: SinkOrders): string | null {
  const text = JSON.stringify(orders);
  return text === '{}' ? null : text;
}

/** The unfinished replays, by the id of the sink. */
export function replaysOf(db: Database): Map<string, Replays> {
  const found = new Map<string, Replays>();
  for (const { sink, progress } of db.prepare<[], { sink: string; progress: string }>('SELECT sink, progress FROM replays').all()) {
    const replay = storedJson(progress) as Replay;
    found.set(sink, { ...found.get(sink), [replay.kind]: replay });
  }
  return found;
}

export function ordersOf(text: string | null | undefined): SinkOrders {
  return typeof text === 'string' ? (storedJson(text) as SinkOrders) : {};
}
