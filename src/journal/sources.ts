/** The sources in the state: their ranges and progress in memory, equal to the file. Only transactions change them. */
import type { Statement } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import type { CollectedRecord } from '../model/journal.ts';
import type { Backfill, BackfillOrder, Suspension, SourceProgress, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { RangeRow, SourceRow } from './ledger.ts';
import type { Store } from './store.ts';
import { storedJson } from './damage.ts';

export interface SourceState {
  readonly row: SourceRow;
  /** The service that it polls: host, path and tenant. */
  destination: string | undefined;
  readonly ranges: RangeRow[];
  collected: number;
  late: number;
  lastRecord: Micros | undefined;
}

export class Sources {
  readonly #store: Store;
  readonly #setCollected: Statement<[number, number, number]>;
  readonly #setPolledUntil: Statement<[number, number]>;
  readonly #setCounts: Statement<[number, number, number | null, number]>;
  readonly #byId = new Map<string, SourceState>();
  readonly ids = new Map<number, string>();
  readonly numbers = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
    this.#setCollected = store.db.prepare('UPDATE ranges SET collected_us = ? WHERE source = ? AND from_us = ?');
    this.#setPolledUntil = store.db.prepare('UPDATE sources SET polled_until_us = ? WHERE source_no = ?');
    this.#setCounts = store.db.prepare('UPDATE sources SET collected = ?, late = ?, last_record_us = ? WHERE source_no = ?');
    this.#load();
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /**
   * Registers a configured source. `start` is the start of the ledger of a new source. A known source
   * continues where it was, and its path and tenant must be the same.
   * @throws WaybillError `config_invalid` when they differ
   */
  register(id: string, destination: string, start: Micros | undefined): void {
    const known = this.#byId.get(id);
    const { db } = this.#store;
    if (known) {
      const moved = movedSourceMessage(known.destination, destination);
      if (moved !== undefined) throw new WaybillError('config_invalid', `cannot use sources.${id}: ${moved}`);
      // A retired source that returns continues where it ended, like an unconfigured one.
      // mutant: source-returns
      if (known.row.state === 'unconfigured' || known.row.state === 'retired')
        this.setState(id, known.row.suspension === undefined ? 'active' : 'suspended');
      return;
    }
    if (start === undefined) throw new WaybillError('internal_error', `source "${id}" is new and has no start`);
    this.#store.transaction(() => {
      db.prepare('INSERT INTO sources (id, destination, frontier_us, polled_until_us) VALUES (?, ?, ?, ?)').run(id, destination, start, 0);
      const { n } = db.prepare<[string], { n: number }>('SELECT source_no AS n FROM sources WHERE id = ?').get(id) ?? { n: 0 };
      const sql = 'INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us) VALUES (?, ?, NULL, ?, ?)';
      db.prepare(sql).run(n, start, start, start);
    });
    this.#load();
  }

  /** Backfills that are not complete, newest first. */
  backfills(id: string): readonly Backfill[] {
    return this.get(id)
      .ranges.filter((range): range is RangeRow & Backfill => isBackfill(range) && range.closedUntil < range.to)
      .toReversed();
  }

  /** Within a transaction: adds a backfill. It must not overlap another range. */
  addRange(source: SourceState, { from, to }: Window, order: BackfillOrder): void {
    if (to <= from || source.ranges.some((range) => from < (range.to ?? Infinity) && to > range.from))
      throw new WaybillError('internal_error', `range of "${source.row.id}" from ${from} to ${to} overlaps another range`);
    const sql = 'INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us, backfill) VALUES (?, ?, ?, ?, ?, ?)';
    this.#store.db.prepare(sql).run(source.row.n, from, to, from, from, JSON.stringify(order));
    this.#store.after(() => {
      source.ranges.push({ from, to, closedUntil: from, uidsKeptSince: from, order, collected: undefined });
      source.ranges.sort((a, b) => a.from - b.from);
    });
  }

  writeCounts(source: SourceState, fresh: readonly CollectedRecord[], lateCount: number): void {
    const collected = source.collected + fresh.length;
    const late = source.late + lateCount;
    const lastRecord = fresh.reduce<number | undefined>(
      (max, { time }) => (time === undefined ? max : Math.max(max ?? time, time)),
      source.lastRecord,
    );
    this.#setCounts.run(collected, late, lastRecord ?? null, source.row.n);
    this.#store.after(() => Object.assign(source, { collected, late, lastRecord }));
  }

  writePolledUntil({ row }: SourceState, polledUntil: Micros): void {
    this.#setPolledUntil.run(polledUntil, row.n);
    this.#store.after(() => (row.polledUntil = polledUntil));
  }

  /**
   * Within a transaction: stores the time of the newest collected record of a backfill. Its segment may be pruned before the backfill ends.
   */
  writeCollected(source: SourceState, range: RangeRow, time: Micros): void {
    this.#setCollected.run(time, source.row.n, range.from);
    this.#store.after(() => (range.collected = time));
  }

  /** Within a transaction: changes the end or the options of a backfill. An empty backfill is deleted. */
  changeRange(source: SourceState, range: RangeRow, to: Micros, order: BackfillOrder): void {
    const { db } = this.#store;
    const { n } = source.row;
    const sql = 'UPDATE ranges SET to_us = ?, backfill = ? WHERE source = ? AND from_us = ?';
    if (to === range.from) db.prepare('DELETE FROM ranges WHERE source = ? AND from_us = ?').run(n, range.from);
    else db.prepare(sql).run(to, JSON.stringify(order), n, range.from);
    this.#store.after(() => {
      if (to === range.from) source.ranges.splice(source.ranges.indexOf(range), 1);
      range.to = to;
      range.order = order;
    });
  }

  /** Sets the state of each source that the configuration lacks to `unconfigured`, and keeps its ledger. @returns their ids */
  markUnconfigured(configured: ReadonlySet<string>): string[] {
    const unconfigured = [...this.#byId.keys()].filter((id) => !configured.has(id));
    for (const id of unconfigured) if (this.get(id).row.state !== 'retired') this.setState(id, 'unconfigured');
    return unconfigured;
  }

  /** Within a transaction. */
  writeDestination(source: SourceState, destination: string): void {
    this.#store.db.prepare('UPDATE sources SET destination = ? WHERE source_no = ?').run(destination, source.row.n);
    this.#store.after(() => (source.destination = destination));
  }

  setState(id: string, state: string): void {
    const { row } = this.get(id);
    this.#store.transaction(() => {
      this.#store.db.prepare('UPDATE sources SET state = ? WHERE source_no = ?').run(state, row.n);
      this.#store.after(() => (row.state = state));
    });
  }

  /** Stores facts about the service (calibration, clock offset) as JSON of the caller. The column also holds the suspension. */
  setProfile(id: string, profile: string): void {
    const { row } = this.get(id);
    this.#store.transaction(() => this.#writeProfile(row, profile, row.suspension));
  }

  /** Within a transaction: starts or ends a suspension. */
  writeSuspension(row: SourceRow, suspension: Suspension | undefined): void {
    const state = suspension === undefined ? 'active' : 'suspended';
    this.#store.db.prepare('UPDATE sources SET state = ? WHERE source_no = ?').run(state, row.n);
    this.#writeProfile(row, row.profile, suspension);
    this.#store.after(() => {
      row.state = state;
      row.suspension = suspension;
    });
  }

  #writeProfile(row: SourceRow, profile: string | undefined, suspension: Suspension | undefined): void {
    const kept = profile === undefined ? {} : (storedJson(profile) as Record<string, unknown>);
    const text = JSON.stringify(suspension === undefined ? kept : { ...kept, suspension });
    this.#store.db.prepare('UPDATE sources SET profile = ? WHERE source_no = ?').run(text, row.n);
    this.#store.after(() => (row.profile = profile));
  }

  get(id: string): SourceState {
    const source = this.#byId.get(id);
    if (!source) throw new WaybillError('internal_error', `source "${id}" is not in the state`);
    return source;
  }

  progress(id: string): SourceProgress {
    const { row, ranges, collected, late, lastRecord } = this.get(id);
    const live = ranges.find((range) => range.to === null);
    if (!live) throw new WaybillError('internal_error', `source "${id}" has no live range`);
    return {
      id,
      frontier: row.frontier,
      polledUntil: row.polledUntil,
      state: row.state,
      suspension: row.suspension,
      profile: row.profile,
      collected,
      late,
      lastRecord,
      live,
    };
  }

  #load(): void {
    const { db } = this.#store;
    const ranges = db.prepare<[number], Omit<RangeRow, 'order' | 'collected'> & { backfill: string | null; collected: Micros | null }>(
      `SELECT from_us AS "from", to_us AS "to", closed_until_us AS closedUntil, uids_kept_since_us AS uidsKeptSince, backfill,
              collected_us AS collected FROM ranges WHERE source = ? ORDER BY from_us`,
    );
    type Stored = Pick<SourceRow, 'n' | 'id' | 'frontier' | 'polledUntil' | 'state'> & Pick<SourceState, 'collected' | 'late'>;
    const sources = db.prepare<[], Stored & { destination: string | null; profile: string | null; lastRecord: Micros | null }>(
      `SELECT source_no AS n, id, destination, frontier_us AS frontier, polled_until_us AS polledUntil, state, profile, collected, late,
              last_record_us AS lastRecord FROM sources`,
    );
    for (const { destination, profile, collected, late, lastRecord, ...row } of sources.all()) {
      if (this.#byId.has(row.id)) continue;
      this.ids.set(row.n, row.id);
      this.numbers.set(row.id, row.n);
      this.#byId.set(row.id, {
        destination: destination ?? undefined,
        row: { ...row, lastFullVisibility: Number.MAX_SAFE_INTEGER, ...profileOf(profile) },
        ranges: ranges.all(row.n).map(({ backfill, collected: newest, ...range }) => ({
          ...range,
          order: backfill === null ? undefined : (storedJson(backfill) as BackfillOrder),
          collected: newest ?? undefined,
        })),
        collected,
        late,
        lastRecord: lastRecord ?? undefined,
      });
    }
  }
}

export function isBackfill(range: RangeRow): range is RangeRow & { to: Micros; order: BackfillOrder } {
  return range.to !== null && range.order !== undefined;
}

/** The parts of a period that no range covers, oldest first. */
export function uncovered(ranges: readonly Pick<RangeRow, 'from' | 'to'>[], { from, to }: Window): Window[] {
  const parts: Window[] = [];
  let at = from;
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    if (range.from >= to) break;
    if (range.from > at) parts.push({ from: at, to: range.from });
    at = Math.max(at, range.to ?? Infinity);
  }
  if (at < to) parts.push({ from: at, to });
  return parts;
}

export function rangeOf(ranges: readonly RangeRow[], time: Micros): RangeRow | undefined {
  for (const range of ranges) if (time >= range.from && (range.to === null || time < range.to)) return range;
  return undefined;
}

export function ownerOf(source: SourceState, window: Window): RangeRow {
  const range = rangeOf(source.ranges, window.from);
  if (!range)
    throw new WaybillError('internal_error', `window of "${source.row.id}" at ${window.from} is outside every range of the ledger`);
  return range;
}

/** Splits the column into the profile and the suspension. */
function profileOf(text: string | null): Pick<SourceRow, 'profile' | 'suspension'> {
  if (text === null) return { profile: undefined, suspension: undefined };
  const { suspension, ...profile } = storedJson(text) as { readonly suspension?: Suspension };
  return { profile: JSON.stringify(profile), suspension };
}

/**
 * The reason why a known source cannot continue with this destination: another path or tenant. Undefined when it can, or when its destination
 * is not known. The id of a tenant may be a GUID, which has no case.
 */
export function movedSourceMessage(stored: string | null | undefined, destination: string): string | undefined {
  if (stored === null || stored === undefined || isSameService(stored, destination)) return undefined;
  return `it polled "${stored}" before and would now poll "${destination}"; restore the setting, or move the source with its uids: waybill sources move`;
}

/** True if two destinations differ in their hosts at most. */
export function isSameService(one: string, other: string): boolean {
  return partsOf(one).service === partsOf(other).service;
}

/** True if both destinations name a host, and another one. */
export function isAnotherHost(one: string, other: string): boolean {
  const [before, now] = [partsOf(one).host, partsOf(other).host];
  return before !== '' && now !== '' && before !== now;
}

/** `https://service.example` and `/v2/api of tenant 00000000-…`. */
function partsOf(destination: string): { readonly host: string; readonly service: string } {
  const [host = ''] = /^https?:\/\/[^/ ]+/.exec(destination) ?? [];
  const guid = / of tenant [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
  return { host, service: destination.slice(host.length).replace(guid, (tenant) => tenant.toLowerCase()) };
}
