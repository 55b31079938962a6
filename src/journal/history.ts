/**
 * What a person changes in what a source covers: ranges of history are added, paused, cut off; a source that is gone is retired. Each act is
 * one transaction with its row in `operations`, and that row is a line of the ledger too, so that it is archived like a proof.
 */
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import type { BackfillOrder, BackfillProgress, Hold, Window } from '../model/ledger.ts';
import type { Unread, Wanted } from '../model/snapshot.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { RangeRow } from './ledger.ts';
import type { Operations } from './operations.ts';
import { isBackfill, rangeOf, uncovered } from './sources.ts';
import type { Sources, SourceState } from './sources.ts';
import type { Store } from './store.ts';
import { storedJson } from './damage.ts';

/** Who acts, as he claims, and why. */
export interface Act {
  readonly who: string;
  readonly why: string | undefined;
}

/** One row of `operations`. */
export interface OperationRow {
  readonly n: number;
  readonly at: Micros;
  readonly who: string | undefined;
  readonly what: string;
  /** JSON. */
  readonly detail: string | undefined;
}

type Reach = Pick<BackfillProgress, 'from' | 'until' | 'reached' | 'order'>;

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
  add(id: string, span: Window, order: Omit<BackfillOrder, 'asked' | 'paused'>, act: Act): Window[] {
    const source = this.#known(id);
    const parts = uncovered(source.ranges, span);
    if (parts.length === 0) return [];
    const whole = parts.reduce((sum, part) => sum + part.until - part.from, 0);
    this.#act(source, 'backfill', { ...span, parts, ...order }, act, (at) => {
      for (const part of parts) {
        // What was counted for the whole is told of each part by its length: an estimate of an estimate.
        const expected = order.expected === undefined ? undefined : Math.round((order.expected * (part.until - part.from)) / whole);
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
  pause(id: string, from: Micros, paused: boolean, act: Act): void {
    const { source, range } = this.#unfinished(id, from);
    if (range.order.paused === paused)
      throw new WaybillError('usage', `this backfill of "${id}" ${paused ? 'is paused already' : 'is not paused'}`);
    this.#act(source, paused ? 'backfill pause' : 'backfill resume', { from, until: range.until }, act, () =>
      this.#sources.changeRange(source, range, range.until, { ...range.order, paused }),
    );
  }

  /**
   * Cuts a range of history off. What was collected of it stays in the ledger, so the range ends behind the last record that was collected,
   * which may belong to a window that is not closed yet: that one is still read.
   * @param least  the end of the window that is being read at this moment
   * @returns where it ends now; its begin when nothing of it was collected
   */
  cancel(id: string, from: Micros, least: Micros | undefined, act: Act): Micros {
    const { source, range } = this.#unfinished(id, from);
    const begun = collectedThrough(range);
    const until = Math.min(range.until, /* mutant: cancelled-history */ Math.max(begun, least ?? range.reached));
    this.#act(source, 'backfill cancel', { from, until: range.until, ends: until }, act, () =>
      this.#sources.changeRange(source, range, until, { ...range.order, paused: false }),
    );
    return until;
  }

  /** A source that is not configured any more is no trouble from now on; its ledger stays. */
  retire(id: string, act: Act): void {
    const source = this.#known(id);
    if (source.row.mode === 'retired') throw new WaybillError('usage', `source "${id}" is retired already`);
    if (source.row.mode !== 'orphaned')
      throw new WaybillError(
        'usage',
        `cannot retire the source "${id}": the daemon that runs was started with it; start it again with a configuration without it`,
      );
    const before = source.row.mode;
    this.#act(source, 'sources retire', { reached: this.#sources.marks(id).live.reached }, act, () => {
      this.#store.db.prepare("UPDATE sources SET mode = 'retired' WHERE n = ?").run(source.row.n);
      this.#store.undo(() => (source.row.mode = before));
      this.#store.after(() => (source.row.mode = 'retired'));
    });
  }

  /** One transaction: what `change` does, its row in `operations`, and the same as a line of the ledger. */
  #act(source: SourceState, what: string, detail: object, { who, why }: Act, change: (at: Micros) => void): void {
    const at = this.#clock.now() * 1000;
    const { id, n } = source.row;
    this.#store.transaction(() => {
      change(at);
      this.#operations.write({ at, who, what, detail: { source: id, ...detail, ...(why !== undefined && { why }) }, source: id }, n);
    });
    this.#wake();
  }

  #known(id: string): SourceState {
    if (!this.#sources.has(id)) throw new WaybillError('usage', `cannot find the source "${id}" in the state: its ledger has not begun`);
    return this.#sources.get(id);
  }

  #unfinished(id: string, from: Micros): { source: SourceState; range: RangeRow & { until: Micros; order: BackfillOrder } } {
    const source = this.#known(id);
    const range = source.ranges.filter(isBackfill).find((each) => each.from === from && each.reached < each.until);
    if (!range)
      throw new WaybillError(
        'usage',
        `cannot find a backfill of "${id}" that begins there and is not done; "waybill backfill list" has them`,
      );
    return { source, range };
  }
}

/** A whole second behind the newest record of a range that was collected, or where its ledger ends. */
function collectedThrough({ reached, collected }: RangeRow): Micros {
  return collected === undefined ? reached : Math.max(reached, (Math.floor(collected / 1e6) + 1) * 1e6);
}

/** How far a range is, from the file alone. */
function progressOf(db: Database, source: number, { from, until, reached, order }: Reach): BackfillProgress {
  const sums = db
    .prepare<[number, number, number], { windows: number; records: number | null; gaps: number }>(
      "SELECT count(*) AS windows, sum(own) AS records, count(*) FILTER (WHERE state = 'gap') AS gaps FROM windows WHERE source = ? AND from_us >= ? AND from_us < ?",
    )
    .get(source, from, until);
  const state = reached >= until ? 'done' : order.paused ? 'paused' : 'running';
  return { from, until, reached, state, windows: sums?.windows ?? 0, records: sums?.records ?? 0, gaps: sums?.gaps ?? 0, order };
}

/** The ranges of history of every source, oldest first; with `all` those that were read to their end as well. */
export function backfillsOf(db: Database, all: boolean): (BackfillProgress & { readonly source: string })[] {
  // A state that no daemon of this release has opened yet has no such column, and no such range.
  if (!db.prepare("SELECT 1 FROM pragma_table_info('ranges') WHERE name = 'backfill'").get()) return [];
  return db
    .prepare<[], { n: number; id: string; from_us: number; until_us: number; reached_us: number; backfill: string }>(
      'SELECT n, id, from_us, until_us, reached_us, backfill FROM ranges JOIN sources ON n = source WHERE backfill IS NOT NULL ORDER BY id, from_us',
    )
    .all()
    .filter((row) => all || row.reached_us < row.until_us)
    .map((row) => ({
      source: row.id,
      ...progressOf(db, row.n, {
        from: row.from_us,
        until: row.until_us,
        reached: row.reached_us,
        order: storedJson(row.backfill) as BackfillOrder,
      }),
    }));
}

/** The changes that people made, oldest first; times in µs, the end open. */
export function operationsOf(db: Database, from: Micros, to: Micros): OperationRow[] {
  return db
    .prepare<[number, number], { n: number; at_us: number; who: string | null; what: string; detail: string | null }>(
      'SELECT n, at_us, who, what, detail FROM operations WHERE at_us >= ? AND at_us < ? ORDER BY n',
    )
    .all(from, to)
    .map((row) => ({ n: row.n, at: row.at_us, who: row.who ?? undefined, what: row.what, detail: row.detail ?? undefined }));
}

/** The parts of a stretch of time that a source's ledger does not cover yet, from the file alone; undefined when the state has no such source. */
export function uncoveredOf(db: Database, id: string, span: Window): Window[] | undefined {
  const source = db.prepare<[string], { n: number }>('SELECT n FROM sources WHERE id = ?').get(id);
  if (!source) return undefined;
  const ranges = db
    .prepare<[number], { from_us: number; until_us: number | null }>('SELECT from_us, until_us FROM ranges WHERE source = ?')
    .all(source.n);
  return uncovered(
    ranges.map((row) => ({ from: row.from_us, until: row.until_us })),
    span,
  );
}

/** What the ledger of a source does not cover from a time on up to its begin, from the file alone; undefined when it covers all of it. */
export function unreadOf(db: Database, id: string, wanted: Wanted): Unread | undefined {
  const live = db
    .prepare<[string], { from_us: number }>('SELECT from_us FROM ranges JOIN sources ON n = source WHERE id = ? AND until_us IS NULL')
    .get(id);
  if (!live || wanted.from >= live.from_us - wanted.apart) return undefined;
  const parts = uncoveredOf(db, id, { from: wanted.from, until: live.from_us }) ?? [];
  const [first, last] = [parts[0], parts.at(-1)];
  return first && last && { from: first.from, until: last.until, begins: live.from_us };
}

/** By source the windows of a hold for `rows`, which shrank by the same event: where they begin. */
export function heldTogether(db: Database): ReadonlyMap<string, ReadonlySet<Micros>> {
  const rows = db.prepare<[], { id: string; hold: string }>(
    "SELECT id, json_extract(profile, '$.hold') AS hold FROM sources WHERE json_extract(profile, '$.hold') IS NOT NULL",
  );
  return new Map(
    rows.all().map(({ id, hold }) => {
      const { windows = [], shrunk = [] } = storedJson(hold) as Hold;
      return [id, new Set([...windows, ...shrunk])];
    }),
  );
}

/** A source as the state knows it, for lists. */
export interface KnownSource {
  readonly id: string;
  readonly mode: string;
  /** Where its ledger begins, is whole up to, and ends. */
  readonly begins: Micros;
  readonly frontier: Micros;
  readonly reached: Micros;
  readonly records: number;
}

/** Every source that the state knows, by id. */
export function sourcesOf(db: Database): KnownSource[] {
  return db
    .prepare<[], { id: string; mode: string; from_us: number; frontier_us: number; reached_us: number; collected: number }>(
      `SELECT id, mode, (SELECT min(from_us) FROM ranges WHERE source = n) AS from_us, frontier_us, reached_us, collected
       FROM sources JOIN ranges ON source = n AND until_us IS NULL ORDER BY id`,
    )
    .all()
    .map((row) => ({
      id: row.id,
      mode: row.mode,
      begins: row.from_us,
      frontier: row.frontier_us,
      reached: row.reached_us,
      records: row.collected,
    }));
}
