/**
 * What a person changes in what a source covers: ranges of history are added, paused, cut off; a source that is gone is retired. Each operation is
 * one transaction with its row in `operations`, and that row is a line of the ledger too, so that it is archived like a proof.
 */
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import type { BackfillOrder, BackfillProgress, Suspension, Window } from '../model/ledger.ts';
import type { Unread, RequestedStart } from '../model/snapshot.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { RangeRow } from './ledger.ts';
import type { Operations } from './operations.ts';
import { isBackfill, rangeOf, uncovered } from './sources.ts';
import type { Sources, SourceState } from './sources.ts';
import type { Store } from './store.ts';
import { storedJson } from './damage.ts';

/** Who acts, as he claims, and why. */
interface GapOperation {
  readonly actor: string;
  readonly reason: string | undefined;
}

/** One row of `operations`. */
interface OperationRow {
  readonly n: number;
  readonly at: Micros;
  readonly actor: string | undefined;
  readonly operation: string;
  /** JSON. */
  readonly detail: string | undefined;
}

type Reach = Pick<BackfillProgress, 'from' | 'to' | 'closedUntil' | 'order'>;

export class History {
  readonly #store: Store;
  readonly #sources: Sources;
  readonly #operations: Operations;
  readonly #clock: Clock;
  readonly #wake: () => void;

  /** `wake` is called when something was appended to the journal. */
  constructor(store: Store, sources: Sources, operations: Operations, clock: Clock, wake: () => void) {
    this.#store = store;
    this.#sources = sources;
    this.#operations = operations;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** The parts of a stretch of time that a source's ledger does not cover yet. */
  uncovered(id: string, span: Window): Window[] {
    return uncovered(this.#known(id).ranges, span);
  }

  /** Adds what the ledger does not cover of a stretch of time, as ranges of their own. @returns them; none when the ledger has it all */
  add(id: string, span: Window, order: Omit<BackfillOrder, 'asked' | 'paused'>, operation: GapOperation): Window[] {
    const source = this.#known(id);
    const parts = uncovered(source.ranges, span);
    if (parts.length === 0) return [];
    const whole = parts.reduce((sum, part) => sum + part.to - part.from, 0);
    this.#operation(source, 'backfill', { ...span, parts, ...order }, operation, (at) => {
      for (const part of parts) {
        // What was counted for the whole is told of each part by its length: an estimate of an estimate.
        const expected = order.expected === undefined ? undefined : Math.round((order.expected * (part.to - part.from)) / whole);
        this.#sources.addRange(source, part, { ...order, expected, asked: at, paused: false });
      }
    });
    return parts;
  }

  /** Whether a source's records of a time are not for a sink: they are of a range of history that was asked for others alone. */
  withheld(sink: string, id: string, time: () => Micros | undefined): boolean {
    const ranges = this.#sources.has(id) ? this.#sources.get(id).ranges : [];
    if (!ranges.some(({ order }) => order?.sinks !== undefined && !order.sinks.includes(sink))) return false;
    const at = time();
    const range = at === undefined ? undefined : rangeOf(ranges, at);
    return range?.order?.sinks !== undefined && !range.order.sinks.includes(sink);
  }

  /** Stops or continues a range of history. */
  pause(id: string, from: Micros, paused: boolean, operation: GapOperation): void {
    const { source, range } = this.#unfinished(id, from);
    if (range.order.paused === paused)
      throw new WaybillError('usage', `this backfill of "${id}" ${paused ? 'is paused already' : 'is not paused'}`);
    this.#operation(source, paused ? 'backfill pause' : 'backfill resume', { from, to: range.to }, operation, () =>
      this.#sources.changeRange(source, range, range.to, { ...range.order, paused }),
    );
  }

  /**
   * Cuts a range of history off. What was collected of it stays in the ledger, so the range ends behind the last record that was collected,
   * which may belong to a window that is not closed yet: that one is still read.
   * @param least  the end of the window that is being read at this moment
   * @returns where it ends now; its begin when nothing of it was collected
   */
  cancel(id: string, from: Micros, least: Micros | undefined, operation: GapOperation): Micros {
    const { source, range } = this.#unfinished(id, from);
    const begun = collectedThrough(range);
    const to = Math.min(range.to, /* mutant: cancelled-history */ Math.max(begun, least ?? range.closedUntil));
    this.#operation(source, 'backfill cancel', { from, to: range.to, ends: to }, operation, () =>
      this.#sources.changeRange(source, range, to, { ...range.order, paused: false }),
    );
    return to;
  }

  /** A source that is not configured any more is no trouble from now on; its ledger stays. */
  retire(id: string, operation: GapOperation): void {
    const source = this.#known(id);
    if (source.row.state === 'retired') throw new WaybillError('usage', `source "${id}" is retired already`);
    if (source.row.state !== 'unconfigured')
      throw new WaybillError(
        'usage',
        `cannot retire the source "${id}": the daemon that runs was started with it; start it again with a configuration without it`,
      );
    const before = source.row.state;
    this.#operation(source, 'sources retire', { closedUntil: this.#sources.progress(id).live.closedUntil }, operation, () => {
      this.#store.db.prepare("UPDATE sources SET state = 'retired' WHERE source_no = ?").run(source.row.n);
      this.#store.undo(() => (source.row.state = before));
      this.#store.after(() => (source.row.state = 'retired'));
    });
  }

  /** One transaction: what `change` does, its row in `operations`, and the same as a line of the ledger. */
  #operation(source: SourceState, what: string, detail: object, { actor, reason }: GapOperation, change: (at: Micros) => void): void {
    const at = this.#clock.now() * 1000;
    const { id, n } = source.row;
    this.#store.transaction(() => {
      change(at);
      this.#operations.write(
        { at, actor, operation: what, detail: { source: id, ...detail, ...(reason !== undefined && { reason }) }, source: id },
        n,
      );
    });
    this.#wake();
  }

  #known(id: string): SourceState {
    if (!this.#sources.has(id)) throw new WaybillError('usage', `cannot find the source "${id}" in the state: its ledger has not begun`);
    return this.#sources.get(id);
  }

  #unfinished(id: string, from: Micros): { source: SourceState; range: RangeRow & { to: Micros; order: BackfillOrder } } {
    const source = this.#known(id);
    const range = source.ranges.filter(isBackfill).find((each) => each.from === from && each.closedUntil < each.to);
    if (!range)
      throw new WaybillError(
        'usage',
        `cannot find a backfill of "${id}" that begins there and is not done; "waybill backfill list" has them`,
      );
    return { source, range };
  }
}

/** A whole second behind the newest record of a range that was collected, or where its ledger ends. */
function collectedThrough({ closedUntil, collected }: RangeRow): Micros {
  return collected === undefined ? closedUntil : Math.max(closedUntil, (Math.floor(collected / 1e6) + 1) * 1e6);
}

/** How far a range is, from the file alone. */
function progressOf(db: Database, source: number, { from, to, closedUntil, order }: Reach): BackfillProgress {
  const sums = db
    .prepare<[number, number, number], { windows: number; records: number | null; gaps: number }>(
      "SELECT count(*) AS windows, sum(records) AS records, count(*) FILTER (WHERE state = 'gap') AS gaps FROM windows WHERE source = ? AND from_us >= ? AND from_us < ?",
    )
    .get(source, from, to);
  const state = closedUntil >= to ? 'done' : order.paused ? 'paused' : 'running';
  return { from, to, closedUntil, state, windows: sums?.windows ?? 0, records: sums?.records ?? 0, gaps: sums?.gaps ?? 0, order };
}

/** The ranges of history of every source, oldest first; with `all` those that were read to their end as well. */
export function backfillsOf(db: Database, all: boolean): (BackfillProgress & { readonly source: string })[] {
  // A state that no daemon of this release has opened yet has no such column, and no such range.
  if (!db.prepare("SELECT 1 FROM pragma_table_info('ranges') WHERE name = 'backfill'").get()) return [];
  return db
    .prepare<[], { n: number; id: string; from_us: number; to_us: number; closed_until_us: number; backfill: string }>(
      'SELECT source_no AS n, id, from_us, to_us, closed_until_us, backfill FROM ranges JOIN sources ON source_no = source WHERE backfill IS NOT NULL ORDER BY id, from_us',
    )
    .all()
    .filter((row) => all || row.closed_until_us < row.to_us)
    .map((row) => ({
      source: row.id,
      ...progressOf(db, row.n, {
        from: row.from_us,
        to: row.to_us,
        closedUntil: row.closed_until_us,
        order: storedJson(row.backfill) as BackfillOrder,
      }),
    }));
}

/** The changes that people made, oldest first; times in µs, the end open. */
export function operationsOf(db: Database, from: Micros, to: Micros): OperationRow[] {
  return db
    .prepare<[number, number], { n: number; at_us: number; actor: string | null; operation: string; detail: string | null }>(
      'SELECT operation_no AS n, at_us, actor, operation, detail FROM operations WHERE at_us >= ? AND at_us < ? ORDER BY operation_no',
    )
    .all(from, to)
    .map((row) => ({ n: row.n, at: row.at_us, actor: row.actor ?? undefined, operation: row.operation, detail: row.detail ?? undefined }));
}

/** The parts of a stretch of time that a source's ledger does not cover yet, from the file alone; undefined when the state has no such source. */
export function uncoveredOf(db: Database, id: string, span: Window): Window[] | undefined {
  const source = db.prepare<[string], { n: number }>('SELECT source_no AS n FROM sources WHERE id = ?').get(id);
  if (!source) return undefined;
  const ranges = db
    .prepare<[number], { from_us: number; to_us: number | null }>('SELECT from_us, to_us FROM ranges WHERE source = ?')
    .all(source.n);
  return uncovered(
    ranges.map((row) => ({ from: row.from_us, to: row.to_us })),
    span,
  );
}

/** What the ledger of a source does not cover from a time on up to its begin, from the file alone; undefined when it covers all of it. */
export function unreadOf(db: Database, id: string, requested: RequestedStart): Unread | undefined {
  const live = db
    .prepare<[string], { from_us: number }>('SELECT from_us FROM ranges JOIN sources ON source_no = source WHERE id = ? AND to_us IS NULL')
    .get(id);
  if (!live || requested.from >= live.from_us - requested.apart) return undefined;
  const parts = uncoveredOf(db, id, { from: requested.from, to: live.from_us }) ?? [];
  const [first, last] = [parts[0], parts.at(-1)];
  return first && last && { from: first.from, to: last.to, startsAt: live.from_us };
}

/** By source the windows of a suspension for `rows`, which shrank by the same event: where they begin. */
export function suspendedTogether(db: Database): ReadonlyMap<string, ReadonlySet<Micros>> {
  const rows = db.prepare<[], { id: string; suspension: string }>(
    "SELECT id, json_extract(profile, '$.suspension') AS suspension FROM sources WHERE json_extract(profile, '$.suspension') IS NOT NULL",
  );
  return new Map(
    rows.all().map(({ id, suspension }) => {
      const { windows = [], shrunk = [] } = storedJson(suspension) as Suspension;
      return [id, new Set([...windows, ...shrunk])];
    }),
  );
}

/** A source as the state knows it, for lists. */
interface KnownSource {
  readonly id: string;
  readonly state: string;
  /** Where its ledger begins, is whole up to, and ends. */
  readonly startsAt: Micros;
  readonly frontier: Micros;
  readonly closedUntil: Micros;
  readonly records: number;
}

/** Every source that the state knows, by id. */
export function sourcesOf(db: Database): KnownSource[] {
  return db
    .prepare<[], { id: string; state: string; from_us: number; frontier_us: number; closed_until_us: number; collected: number }>(
      `SELECT id, state, (SELECT min(from_us) FROM ranges WHERE source = source_no) AS from_us, frontier_us, closed_until_us, collected
       FROM sources JOIN ranges ON source = source_no AND to_us IS NULL ORDER BY id`,
    )
    .all()
    .map((row) => ({
      id: row.id,
      state: row.state,
      startsAt: row.from_us,
      frontier: row.frontier_us,
      closedUntil: row.closed_until_us,
      records: row.collected,
    }));
}
