/**
 * The sources that the state knows, and where each stands: its ranges and marks in memory, as they stand in the file. Only transactions move
 * them.
 */
import type { Statement } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import type { Backfill, BackfillOrder, Hold, SourceMarks, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { RangeRow, SourceRow } from './ledger.ts';
import type { Store } from './store.ts';
import { storedJson } from './damage.ts';

export interface SourceState {
  readonly row: SourceRow;
  readonly ranges: RangeRow[];
  collected: number;
  late: number;
  lastRecord: Micros | undefined;
}

export class Sources {
  readonly #store: Store;
  readonly #setCollected: Statement<[number, number, number]>;
  readonly #byId = new Map<string, SourceState>();
  /** Ids by number, and numbers by id. */
  readonly ids = new Map<number, string>();
  readonly numbers = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
    this.#setCollected = store.db.prepare('UPDATE ranges SET collected_us = ? WHERE source = ? AND from_us = ?');
    this.#load();
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /**
   * A source of the configuration; `start` (where its ledger begins) is asked only for one that the state does not know yet. A known one goes on from where it was; its destination (path of baseUrl, tenant) must be the same.
   * @throws WaybillError `config_invalid` when the same id now names another service
   */
  register(id: string, destination: string, start: Micros | undefined): void {
    const known = this.#byId.get(id);
    const { db } = this.#store;
    if (known) {
      const stored = db
        .prepare<[number], { destination: string | null }>('SELECT destination FROM sources WHERE n = ?')
        .get(known.row.n)?.destination;
      if (stored !== null && stored !== undefined && stored !== destination) {
        throw new WaybillError(
          'config_invalid',
          `cannot use sources.${id}: it polled "${stored}" before and would now poll "${destination}"; give it a new id`,
        );
      }
      // One that was retired and comes back goes on from where it ended, like one that was only gone.
      // mutant: source-returns
      if (known.row.mode === 'orphaned' || known.row.mode === 'retired') this.setMode(id, known.row.hold === undefined ? 'normal' : 'hold');
      return;
    }
    if (start === undefined) throw new WaybillError('invariant', `source "${id}" is new and has no start`);
    this.#store.transaction(() => {
      db.prepare('INSERT INTO sources (id, destination, frontier_us, tip_us) VALUES (?, ?, ?, ?)').run(id, destination, start, 0);
      const { n } = db.prepare<[string], { n: number }>('SELECT n FROM sources WHERE id = ?').get(id) ?? { n: 0 };
      db.prepare('INSERT INTO ranges (source, from_us, until_us, reached_us, remembered_us) VALUES (?, ?, NULL, ?, ?)').run(
        n,
        start,
        start,
        start,
      );
    });
    this.#load();
  }

  /** The ranges of history that are not read to their end, newest first. */
  backfills(id: string): readonly Backfill[] {
    return this.get(id)
      .ranges.filter((range): range is RangeRow & Backfill => isBackfill(range) && range.reached < range.until)
      .toReversed();
  }

  /** Within a transaction: a new range of history. It must not touch what another range covers. */
  addRange(source: SourceState, { from, until }: Window, order: BackfillOrder): void {
    if (until <= from || source.ranges.some((range) => from < (range.until ?? Infinity) && until > range.from))
      throw new WaybillError('invariant', `range of "${source.row.id}" from ${from} to ${until} covers what another range has`);
    this.#store.db
      .prepare('INSERT INTO ranges (source, from_us, until_us, reached_us, remembered_us, backfill) VALUES (?, ?, ?, ?, ?, ?)')
      .run(source.row.n, from, until, from, from, JSON.stringify(order));
    this.#store.after(() => {
      source.ranges.push({ from, until, reached: from, remembered: from, order, collected: undefined });
      source.ranges.sort((a, b) => a.from - b.from);
    });
  }

  /** Within a transaction: the newest record of a range of history that was collected so far. Its segment may be pruned before the range ends. */
  writeCollected(source: SourceState, range: RangeRow, time: Micros): void {
    this.#setCollected.run(time, source.row.n, range.from);
    this.#store.after(() => (range.collected = time));
  }

  /** Within a transaction: a range of history with another end, or another order; one that would be empty is gone. */
  changeRange(source: SourceState, range: RangeRow, until: Micros, order: BackfillOrder): void {
    const { db } = this.#store;
    if (until === range.from) db.prepare('DELETE FROM ranges WHERE source = ? AND from_us = ?').run(source.row.n, range.from);
    else
      db.prepare('UPDATE ranges SET until_us = ?, backfill = ? WHERE source = ? AND from_us = ?').run(
        until,
        JSON.stringify(order),
        source.row.n,
        range.from,
      );
    this.#store.after(() => {
      if (until === range.from) source.ranges.splice(source.ranges.indexOf(range), 1);
      range.until = until;
      range.order = order;
    });
  }

  /** Sources that are in the state but not in the configuration: their ledger says where it ended. */
  orphan(configured: ReadonlySet<string>): string[] {
    const orphans = [...this.#byId.keys()].filter((id) => !configured.has(id));
    for (const id of orphans) if (this.get(id).row.mode !== 'retired') this.setMode(id, 'orphaned');
    return orphans;
  }

  setMode(id: string, mode: string): void {
    const { row } = this.get(id);
    this.#store.transaction(() => {
      this.#store.db.prepare('UPDATE sources SET mode = ? WHERE n = ?').run(mode, row.n);
      this.#store.after(() => (row.mode = mode));
    });
  }

  /** What is kept about the service itself: calibration, offset of its clock. JSON, the business of who writes it; a hold stands beside it. */
  setProfile(id: string, profile: string): void {
    const { row } = this.get(id);
    this.#store.transaction(() => this.#writeProfile(row, profile, row.hold));
  }

  /** Within a transaction: hold, or its end. */
  writeHold(row: SourceRow, hold: Hold | undefined): void {
    const mode = hold === undefined ? 'normal' : 'hold';
    this.#store.db.prepare('UPDATE sources SET mode = ? WHERE n = ?').run(mode, row.n);
    this.#writeProfile(row, row.profile, hold);
    this.#store.after(() => {
      row.mode = mode;
      row.hold = hold;
    });
  }

  #writeProfile(row: SourceRow, profile: string | undefined, hold: Hold | undefined): void {
    const kept = profile === undefined ? {} : (storedJson(profile) as Record<string, unknown>);
    const text = JSON.stringify(hold === undefined ? kept : { ...kept, hold });
    this.#store.db.prepare('UPDATE sources SET profile = ? WHERE n = ?').run(text, row.n);
    this.#store.after(() => (row.profile = profile));
  }

  get(id: string): SourceState {
    const source = this.#byId.get(id);
    if (!source) throw new WaybillError('invariant', `source "${id}" is not in the state`);
    return source;
  }

  marks(id: string): SourceMarks {
    const { row, ranges, collected, late, lastRecord } = this.get(id);
    const live = ranges.find((range) => range.until === null);
    if (!live) throw new WaybillError('invariant', `source "${id}" has no live range`);
    return {
      id,
      frontier: row.frontier,
      tip: row.tip,
      mode: row.mode,
      hold: row.hold,
      profile: row.profile,
      collected,
      late,
      lastRecord,
      live,
    };
  }

  #load(): void {
    const { db } = this.#store;
    interface Row {
      n: number;
      id: string;
      frontier_us: number;
      tip_us: number;
      mode: string;
      profile: string | null;
      collected: number;
      late: number;
      last_record_us: number | null;
    }
    interface RangeDbRow {
      from_us: number;
      until_us: number | null;
      reached_us: number;
      remembered_us: number;
      backfill: string | null;
      collected_us: number | null;
    }
    const ranges = db.prepare<[number], RangeDbRow>('SELECT * FROM ranges WHERE source = ? ORDER BY from_us');
    for (const row of db.prepare<[], Row>('SELECT * FROM sources').all()) {
      if (this.#byId.has(row.id)) continue;
      this.ids.set(row.n, row.id);
      this.numbers.set(row.id, row.n);
      this.#byId.set(row.id, {
        row: {
          n: row.n,
          id: row.id,
          frontier: row.frontier_us,
          tip: row.tip_us,
          mode: row.mode,
          sound: Number.MAX_SAFE_INTEGER,
          ...profileOf(row.profile),
        },
        ranges: ranges.all(row.n).map((r) => ({
          from: r.from_us,
          until: r.until_us,
          reached: r.reached_us,
          remembered: r.remembered_us,
          order: r.backfill === null ? undefined : (storedJson(r.backfill) as BackfillOrder),
          collected: r.collected_us ?? undefined,
        })),
        collected: row.collected,
        late: row.late,
        lastRecord: row.last_record_us ?? undefined,
      });
    }
  }
}

/** Whether a range is one of history, which a person asked for. */
export function isBackfill(range: RangeRow): range is RangeRow & { until: Micros; order: BackfillOrder } {
  return range.until !== null && range.order !== undefined;
}

/** The parts of a stretch of time that no range covers, oldest first. */
export function uncovered(ranges: readonly Pick<RangeRow, 'from' | 'until'>[], { from, until }: Window): Window[] {
  const parts: Window[] = [];
  let at = from;
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    if (range.from >= until) break;
    if (range.from > at) parts.push({ from: at, until: range.from });
    at = Math.max(at, range.until ?? Infinity);
  }
  if (at < until) parts.push({ from: at, until });
  return parts;
}

/** The range of a source that a time lies in. */
export function rangeOf(ranges: readonly RangeRow[], time: Micros): RangeRow | undefined {
  for (const range of ranges) if (time >= range.from && (range.until === null || time < range.until)) return range;
  return undefined;
}

/** The range that a window of the ledger lies in. */
export function ownerOf(source: SourceState, window: Window): RangeRow {
  const range = rangeOf(source.ranges, window.from);
  if (!range) throw new WaybillError('invariant', `window of "${source.row.id}" at ${window.from} lies in no range`);
  return range;
}

/** The profile as it was given, and the hold that stands beside it in the same column. */
function profileOf(text: string | null): Pick<SourceRow, 'profile' | 'hold'> {
  if (text === null) return { profile: undefined, hold: undefined };
  const { hold, ...profile } = storedJson(text) as { readonly hold?: Hold };
  return { profile: JSON.stringify(profile), hold };
}
