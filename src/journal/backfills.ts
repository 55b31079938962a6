/**
 * Operations that change the coverage of a source: add, pause or cancel a backfill, retire a
 * source. Each is one transaction with its row in `operations` and a ledger entry, so that the
 * archive receives it like a proof.
 */
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import type { BackfillOrder, BackfillProgress, Suspension, Window } from '../model/ledger.ts';
import type { Unread, RequestedStart } from '../model/snapshot.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { RangeRow } from './ledger.ts';
import type { Operations } from './operations.ts';
import { isBackfill, uncovered } from './sources.ts';
import type { Sources, SourceState } from './sources.ts';
import type { Store } from './store.ts';
import { storedJson } from './damage.ts';

/** The operator as named, not authenticated, and the reason. */
interface GapOperation {
  readonly actor: string;
  readonly reason: string | undefined;
}

/** One row of `operations`. */
interface OperationRow {
  readonly n: number;
  readonly at: Micros;
  readonly actor: string | null;
  readonly operation: string;
  /** JSON. */
  readonly detail: string | null;
}

type Reach = Pick<BackfillProgress, 'from' | 'to' | 'closedUntil' | 'order'>;

export class History {
  readonly #store: Store;
  readonly #sources: Sources;
  readonly #operations: Operations;
  readonly #clock: Clock;
  readonly #wake: () => void;

  /** `wake` is called after an entry was appended to the journal. */
  constructor(store: Store, sources: Sources, operations: Operations, clock: Clock, wake: () => void) {
    this.#store = store;
    this.#sources = sources;
    this.#operations = operations;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** The parts of a period that the ledger of a source does not cover. */
  uncovered(id: string, span: Window): Window[] {
    return uncovered(this.#known(id).ranges, span);
  }

  /**
   * Adds the uncovered parts of a period as backfills. @returns the parts; none when the ledger
   * covers the period
   */
  add(id: string, span: Window, order: Omit<BackfillOrder, 'asked' | 'paused'>, operation: GapOperation): Window[] {
    const source = this.#known(id);
    const parts = uncovered(source.ranges, span);
    if (parts.length === 0) return [];
    const whole = parts.reduce((sum, part) => sum + part.to - part.from, 0);
    this.#operation(source, 'backfill', { ...span, parts, ...order }, operation, (at) => {
      for (const part of parts) {
        // The expected count is for the whole period, so each part gets a share by its length.
        const expected = order.expected === undefined ? undefined : Math.round((order.expected * (part.to - part.from)) / whole);
        this.#sources.addRange(source, part, { ...order, expected, asked: at, paused: false });
      }
    });
    return parts;
  }

  /** See DeliverJournal.withheld. */
  withheld(sink: string, id: string): readonly Window[] {
    if (!this.#sources.has(id)) return [];
    return this.#sources
      .get(id)
      .ranges.filter(isBackfill)
      .filter(({ order: { sinks } }) => sinks !== undefined && !sinks.includes(sink));
  }

  pause(id: string, from: Micros, paused: boolean, operation: GapOperation): void {
    const { source, range } = this.#unfinished(id, from);
    if (range.order.paused === paused)
      throw new WaybillError(
        'usage',
        `cannot ${paused ? 'pause' : 'resume'} this backfill of "${id}": it ${paused ? 'is already paused' : 'is not paused'}`,
      );
    this.#operation(source, paused ? 'backfill pause' : 'backfill resume', { from, to: range.to }, operation, () =>
      this.#sources.changeRange(source, range, range.to, { ...range.order, paused }),
    );
  }

  /**
   * Cancels a backfill. Its collected records stay in the ledger, so the range then ends after the
   * last collected record. The window of that record may not be closed yet and is still read.
   * @param least  the end of the window that is being read
   * @returns the new end; the start of the range when nothing was collected
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

  /** Retires an unconfigured source: it no longer needs attention, and its ledger stays. */
  retire(id: string, operation: GapOperation): void {
    const source = this.#known(id);
    if (source.row.state === 'retired') throw new WaybillError('usage', `cannot retire the source "${id}": it is already retired`);
    if (source.row.state !== 'unconfigured')
      throw new WaybillError(
        'usage',
        `cannot retire the source "${id}": the running daemon collects it; remove it from the configuration first`,
      );
    const before = source.row.state;
    this.#operation(source, 'sources retire', { closedUntil: this.#sources.progress(id).live.closedUntil }, operation, () => {
      this.#store.db.prepare("UPDATE sources SET state = 'retired' WHERE source_no = ?").run(source.row.n);
      this.#store.undo(() => (source.row.state = before));
      this.#store.after(() => (source.row.state = 'retired'));
    });
  }

  /** Runs `change` and writes the row in `operations` and the ledger entry, in one transaction. */
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
    if (!this.#sources.has(id)) throw new WaybillError('usage', `cannot find the source "${id}" in the state: its ledger has not started`);
    return this.#sources.get(id);
  }

  #unfinished(id: string, from: Micros): { source: SourceState; range: RangeRow & { to: Micros; order: BackfillOrder } } {
    const source = this.#known(id);
    const range = source.ranges.filter(isBackfill).find((each) => each.from === from && each.closedUntil < each.to);
    if (!range)
      throw new WaybillError('usage', `cannot find an incomplete backfill of "${id}" with this start; see "waybill backfill list"`);
    return { source, range };
  }
}

/** The second after the newest collected record of a range, at least `closedUntil`. */
function collectedThrough({ closedUntil, collected }: RangeRow): Micros {
  return collected === undefined ? closedUntil : Math.max(closedUntil, (Math.floor(collected / 1e6) + 1) * 1e6);
}

/** The progress of a backfill, read only from the database. */
function progressOf(db: Database, source: number, { from, to, closedUntil, order }: Reach): BackfillProgress {
  const sums = db
    .prepare<[number, number, number], { windows: number; records: number | null; gaps: number }>(
      "SELECT count(*) AS windows, sum(records) AS records, count(*) FILTER (WHERE state = 'gap') AS gaps FROM windows WHERE source = ? AND from_us >= ? AND from_us < ?",
    )
    .get(source, from, to);
  const state = closedUntil >= to ? 'done' : order.paused ? 'paused' : 'running';
  return { from, to, closedUntil, state, windows: sums?.windows ?? 0, records: sums?.records ?? 0, gaps: sums?.gaps ?? 0, order };
}

/** The backfills of every source, oldest first; completed ones only with `all`. */
export function backfillsOf(db: Database, all: boolean): (BackfillProgress & { readonly source: string })[] {
  // Column and backfills are missing until a daemon of this release has opened the state.
  if (!db.prepare("SELECT 1 FROM pragma_table_info('ranges') WHERE name = 'backfill'").get()) return [];
  return db
    .prepare<[], Window & { n: number; source: string; closedUntil: Micros; backfill: string }>(
      `SELECT source_no AS n, id AS source, from_us AS "from", to_us AS "to", closed_until_us AS closedUntil, backfill
       FROM ranges JOIN sources ON source_no = source WHERE backfill IS NOT NULL ORDER BY id, from_us`,
    )
    .all()
    .filter(({ to, closedUntil }) => all || closedUntil < to)
    .map(({ n, source, backfill, ...range }) => ({
      source,
      ...progressOf(db, n, { ...range, order: storedJson(backfill) as BackfillOrder }),
    }));
}

/** Operator actions in [from, to), oldest first; times in µs. */
export function operationsOf(db: Database, from: Micros, to: Micros): OperationRow[] {
  return db
    .prepare<[number, number], OperationRow>(
      'SELECT operation_no AS n, at_us AS at, actor, operation, detail FROM operations WHERE at_us >= ? AND at_us < ? ORDER BY operation_no',
    )
    .all(from, to);
}

/**
 * The parts of a period that the ledger of a source does not cover, read from the file; undefined
 * for an unknown source.
 */
export function uncoveredOf(db: Database, id: string, span: Window): Window[] | undefined {
  const source = db.prepare<[string], { n: number }>('SELECT source_no AS n FROM sources WHERE id = ?').get(id);
  if (!source) return undefined;
  const ranges = db.prepare<[number], { from: number; to: number | null }>(
    'SELECT from_us AS "from", to_us AS "to" FROM ranges WHERE source = ?',
  );
  return uncovered(ranges.all(source.n), span);
}

/**
 * The uncovered time between the requested start and the start of the ledger, read from the file;
 * undefined when none.
 */
export function unreadOf(db: Database, id: string, requested: RequestedStart): Unread | undefined {
  const live = db
    .prepare<[string], { from_us: number }>('SELECT from_us FROM ranges JOIN sources ON source_no = source WHERE id = ? AND to_us IS NULL')
    .get(id);
  if (!live || requested.from >= live.from_us - requested.apart) return undefined;
  const parts = uncoveredOf(db, id, { from: requested.from, to: live.from_us }) ?? [];
  const [first, last] = [parts[0], parts.at(-1)];
  return first && last && { from: first.from, to: last.to, startsAt: live.from_us };
}

/** By source: the starts of windows that one `rows` suspension lists. */
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

/** A source in the state, for lists. */
interface KnownSource {
  readonly id: string;
  readonly state: string;
  /** Start, frontier and end of its ledger. */
  readonly startsAt: Micros;
  /** Start of the live range. */
  readonly liveFrom: Micros;
  readonly frontier: Micros;
  readonly closedUntil: Micros;
  readonly records: number;
}

export function sourcesOf(db: Database): KnownSource[] {
  return db
    .prepare<[], KnownSource>(
      `SELECT id, state, (SELECT min(from_us) FROM ranges WHERE source = source_no) AS startsAt, from_us AS liveFrom, frontier_us AS frontier,
              closed_until_us AS closedUntil, collected AS records
       FROM sources JOIN ranges ON source = source_no AND to_us IS NULL ORDER BY id`,
    )
    .all();
}
