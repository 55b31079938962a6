/**
 * The ledger: the windows of each source with their proofs, and the progress that follows from them. Only this file opens and closes
 * windows. Every change of a window writes a ledger entry in the same transaction.
 */
import { WaybillError } from '../errors/errors.ts';
import type { GapOperation } from '../model/journal.ts';
import type { BackfillOrder, GapPart, Suspension, LedgerWindow, Range, Remark, WindowStep, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { withLate } from './late-delays.ts';
import type { Operations } from './operations.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Segments } from './segments.ts';
import type { Store } from './store.ts';
import { ledgerLine, revisedRow } from './window-revision.ts';
import { readable, WindowRows, type WindowDbRow } from './window-rows.ts';

export interface SourceRow {
  readonly n: number;
  readonly id: string;
  frontier: Micros;
  polledUntil: Micros;
  state: string;
  suspension: Suspension | undefined;
  profile: string | undefined;
  /** See CollectJournal.lastFullVisibility. */
  lastFullVisibility: Micros;
}

/** A range in memory. `order` is set for a backfill. */
export interface RangeRow extends Range {
  to: Micros | null;
  closedUntil: Micros;
  uidsKeptSince: Micros;
  order: BackfillOrder | undefined;
  /** The time of the newest record that a backfill collected. */
  collected: Micros | undefined;
}

export class Ledger {
  readonly #store: Store;
  readonly #segments: Segments;
  readonly #operations: Operations;
  readonly #rows: WindowRows;
  readonly #sql: WindowRows['sql'];

  constructor(store: Store, segments: Segments, operations: Operations) {
    this.#store = store;
    this.#segments = segments;
    this.#operations = operations;
    this.#rows = new WindowRows(store.db);
    this.#sql = this.#rows.sql;
  }

  /** The window that contains a time, if the ledger has one. */
  owner(source: number, time: Micros): { from: Micros; state: string } | undefined {
    const row = this.#sql.lastBefore.get(source, time);
    return row && time < row.to_us ? { from: row.from_us, state: row.state } : undefined;
  }

  window(source: number, from: Micros): LedgerWindow | undefined {
    const row = this.#sql.window.get(source, from);
    return row && readable(row);
  }

  /** Proven windows with records in [since, to), the most records first. A window in doubt counts only if a recount of it is pending. */
  richest(source: number, since: Micros, to: Micros, limit: number): LedgerWindow[] {
    return this.#sql.richest.all(source, since, to, limit).map(readable);
  }

  closedSince(source: number, since: Micros): LedgerWindow[] {
    return this.#sql.closedSince.all(source, since).map(readable);
  }

  latest(source: number, since: Micros, to: Micros, limit: number): LedgerWindow[] {
    return this.#sql.latest.all(source, since, to, limit).map(readable);
  }

  /** Within a transaction: adds late records, given by their delays, to a closed window. */
  addLate(source: number, from: Micros, delays: readonly Micros[]): void {
    this.#sql.addLate.run(delays.length, withLate(this.#sql.window.get(source, from)?.late_delays ?? null, delays), source, from);
  }

  /** The window that is due first at `now`, server time. Recounts, one request each, come before attempts of gaps. */
  due(source: number, now: Micros): LedgerWindow | undefined {
    const row = this.#rows.due(source, now);
    return row && readable(row);
  }

  /**
   * Within a transaction with its operation: each proven window is in doubt, and due for a recount. They get no ledger entry each: the entry of
   * the operation stands for all of them. @returns their number
   */
  doubtAll(source: number, message: string): number {
    return this.#rows.doubtAll(source, message);
  }

  /**
   * Stores the verdict on a window. A new window must start at `closedUntil` of its range; an
   * existing one must have the same end. A proof moves the frontier when it is contiguous; a gap
   * stops it. `lastAge` is the last recount age in µs: uids of older records may be deleted.
   */
  record(source: SourceRow, range: RangeRow, window: Window, revision: WindowStep, lastAge: Micros): void {
    this.#store.transaction(() => {
      const before = this.#sql.window.get(source.n, window.from);
      const isNew = before === undefined;
      if (isNew && window.from !== range.closedUntil) {
        throw new WaybillError(
          'internal_error',
          `window of "${source.id}" starts at ${window.from}, but the last closed window of its range ends at ${range.closedUntil}`,
        );
      }
      if (before && before.to_us !== window.to) {
        throw new WaybillError('internal_error', `window of "${source.id}" at ${window.from} ends at ${before.to_us}, not ${window.to}`);
      }
      if (range.to !== null && window.to > range.to) {
        throw new WaybillError('internal_error', `window of "${source.id}" ends at ${window.to}, after the end of its range ${range.to}`);
      }
      // An operator accepted the window while it was read. That is final, and the frontier has passed it.
      if (before?.state === 'accepted') return;
      const row = revisedRow(before, window, revision);
      row.seq = this.#writeEntry(source, before, row, revision.at);
      this.#rows.write(source.n, row, isNew);
      this.#move(source, range, Math.max(range.closedUntil, window.to), lastAge);
    });
  }

  /**
   * Stores a recount that equals the proven total: schedules the next recount, and the window is no longer in doubt. A window that was
   * closed with a clock that was ahead gets the present close time.
   */
  confirm(source: SourceRow, range: RangeRow, window: Window, next: Micros | undefined, at: Micros, lastAge: Micros): void {
    if (this.#isAccepted(source, window)) return;
    const stands = (before: WindowDbRow): WindowDbRow => ({
      ...before,
      recounts: before.recounts + 1,
      next_us: next ?? null,
      ...(before.reason !== 'shrunk' && { attempts: 0, reason: null, message: null }),
      closed_us: Math.min(before.closed_us, at),
    });
    this.#change(source, range, window.from, stands, at, lastAge);
  }

  /** Stores a recount that differs from the proven total. The proof stays, as it was true at its time. */
  remark(source: SourceRow, range: RangeRow, window: Window, remark: Remark, at: Micros, lastAge: Micros): void {
    if (this.#isAccepted(source, window)) return;
    const remarked = (before: WindowDbRow): WindowDbRow => {
      if (before.state !== 'proven')
        throw new WaybillError('internal_error', `window of "${source.id}" at ${window.from} has a remark but is not closed`);
      const { reason = null, message = null, next = null, attempts } = remark;
      return { ...before, reason, message, next_us: next, attempts };
    };
    this.#change(source, range, window.from, remarked, at, lastAge);
  }

  /**
   * Replaces a gap by adjacent parts that are due at once. The counts of the whole gap do not apply
   * to its parts, so they start without any. Progress does not change.
   */
  divide(source: SourceRow, range: RangeRow, gap: Window, parts: readonly GapPart[], message: string, at: Micros, lastAge: Micros): void {
    if (this.#isAccepted(source, gap)) return;
    this.#store.transaction(() => {
      const before = this.#sql.window.get(source.n, gap.from);
      const isTiled =
        parts.length > 1 &&
        parts.every(({ from, to }, i) => from === (parts[i - 1]?.to ?? gap.from) && from < to) &&
        parts.at(-1)?.to === gap.to;
      if (before?.state !== 'gap' || before.to_us !== gap.to || !isTiled)
        throw new WaybillError(
          'internal_error',
          `window of "${source.id}" at ${gap.from} cannot be divided: it is no gap, or the parts do not cover it exactly`,
        );
      for (const part of parts) {
        const isNew = part.from !== gap.from;
        const row: WindowDbRow = {
          ...before,
          from_us: part.from,
          to_us: part.to,
          query: JSON.stringify(part.query),
          total: null,
          records: 0,
          received: 0,
          digest: null,
          proof: null,
          closed_us: at,
          next_us: at,
          attempts: 0,
          message,
          ...(isNew ? { late: 0, late_delays: null, recounts: 0, revision: 1 } : { revision: before.revision + 1 }),
        };
        row.seq = this.#writeEntry(source, before, row, at);
        if (!isNew) this.#sql.narrow.run(row.to_us, row.query, source.n, row.from_us);
        this.#rows.write(source.n, row, isNew);
      }
      this.#move(source, range, range.closedUntil, lastAge);
    });
  }

  /**
   * Accepts a gap for an operator: it stays listed, and the frontier passes it. Writes operator, time and reason to `operations` and the
   * ledger in the same transaction. @throws WaybillError `usage` when the ledger has no such window, or it is proven without doubt
   */
  accept(source: SourceRow, range: RangeRow, from: Micros, operation: GapOperation): LedgerWindow {
    const before = this.#shrunk(source, from) ?? this.#open(source, from, 'accept');
    const { at, actor, reason, evidence } = operation;
    // `uidsKeptSince` moves at the next close.
    const row = this.#change(source, range, from, () => ({ ...before, state: 'accepted', next_us: null }), at, Infinity, {
      operation: { actor, reason, ...(evidence !== undefined && { evidence }), at },
    }, () => this.#operate(source, before, 'gaps accept', operation)); // prettier-ignore
    return readable(row);
  }

  /**
   * Makes a window due at once for an operator, without regard to the clock of the service. @throws WaybillError `usage` as `accept` does
   */
  retry(source: SourceRow, from: Micros, operation: GapOperation): LedgerWindow {
    const before = this.#open(source, from, 'retry');
    const row: WindowDbRow = { ...before, next_us: before.to_us };
    this.#store.transaction(() => {
      this.#rows.write(source.n, row, false);
      this.#operate(source, before, 'gaps retry', operation);
    });
    return readable(row);
  }

  /** A proven window that the current suspension lists as shrunk. */
  #shrunk({ n, suspension }: SourceRow, from: Micros): WindowDbRow | undefined {
    const isListed = suspension?.windows?.includes(from) === true || suspension?.shrunk?.includes(from) === true;
    const row = isListed ? this.#sql.window.get(n, from) : undefined;
    if (row?.state !== 'proven' || row.reason !== null) return undefined;
    return { ...row, reason: 'reread', message: 'the service shows fewer records than the proven total' };
  }

  /** An operator may accept a window while it is read; the result of that reading is ignored. */
  #isAccepted(source: SourceRow, { from }: Window): boolean {
    return this.#sql.window.get(source.n, from)?.state === 'accepted';
  }

  /** A gap, or a window that a later count put in doubt. */
  #open(source: SourceRow, from: Micros, operation: string): WindowDbRow {
    const row = this.#sql.window.get(source.n, from);
    const name = `the window of "${source.id}" that starts at ${microsToIso(from)}`;
    if (!row) throw new WaybillError('usage', `cannot ${operation} ${name}: not found in the ledger`);
    if (row.state === 'gap' || (row.state === 'proven' && row.reason === 'reread')) return row;
    const state = row.state === 'proven' ? `it is proven${row.reason === null ? '' : ` (${row.reason})`}` : 'it is already accepted';
    throw new WaybillError('usage', `cannot ${operation} ${name}: ${state}`);
  }

  #operate(source: SourceRow, row: WindowDbRow, operation: string, { at, actor, reason, evidence }: GapOperation): void {
    const detail = {
      source: source.id,
      from: row.from_us,
      to: row.to_us,
      gapReason: row.reason,
      reason,
      ...(evidence !== undefined && { evidence }),
    };
    this.#operations.write({ at, actor, operation, detail, source: source.id }, source.n);
  }

  /** Rewrites a window with its ledger entry and the progress that follows. */
  #change(
    source: SourceRow,
    range: RangeRow,
    from: Micros,
    change: (before: WindowDbRow) => WindowDbRow,
    at: Micros,
    lastAge: Micros,
    extra: object = {},
    alsoWrite: () => void = () => undefined,
  ): WindowDbRow {
    return this.#store.transaction(() => {
      const before = this.#sql.window.get(source.n, from);
      if (!before) throw new WaybillError('internal_error', `window of "${source.id}" at ${from} is not in the ledger`);
      const row = { ...change(before), revision: before.revision + 1 };
      row.seq = this.#writeEntry(source, before, row, at, extra);
      this.#rows.write(source.n, row, false);
      alsoWrite();
      this.#move(source, range, range.closedUntil, lastAge);
      return row;
    });
  }

  #writeEntry({ n, id }: SourceRow, before: WindowDbRow | undefined, row: WindowDbRow, at: Micros, extra?: object): number {
    return this.#segments.writeLedgerEntry(n, id, ledgerLine(id, before, row, extra), row.from_us, row.to_us, at);
  }

  /** Within a transaction, after the windows are written: moves the progress that follows from them. */
  #move(source: SourceRow, range: RangeRow, closedUntil: Micros, lastAge: Micros): void {
    const frontier = range.to === null ? this.#frontier(source.n, source.frontier) : source.frontier;
    const uidsKeptSince = this.#uidsKeptSince(source, range, closedUntil, lastAge);
    if (closedUntil < range.closedUntil || uidsKeptSince < range.uidsKeptSince || frontier < source.frontier) {
      throw new WaybillError(
        'internal_error',
        `the progress of "${source.id}" goes back: frontier ${source.frontier} to ${frontier}, closed until ${range.closedUntil} to ${closedUntil}`,
      );
    }
    this.#sql.setClosedUntil.run(closedUntil, uidsKeptSince, source.n, range.from);
    if (frontier !== source.frontier) this.#sql.setFrontier.run(frontier, source.n);
    this.#store.after(() => {
      range.closedUntil = closedUntil;
      range.uidsKeptSince = uidsKeptSince;
      source.frontier = frontier;
    });
  }

  /** Deletes the uids of a completed backfill once none of its windows may be read again. */
  forgetWhole(source: SourceRow, range: RangeRow): void {
    const { to, closedUntil, uidsKeptSince } = range;
    if (to === null || closedUntil < to || uidsKeptSince >= to || this.#uidsKeptSince(source, range, closedUntil, Infinity) < to) return;
    this.#store.transaction(() => {
      this.#sql.setClosedUntil.run(closedUntil, to, source.n, range.from);
      this.#store.after(() => (range.uidsKeptSince = to));
    });
  }

  /** The end of the contiguous proven or accepted windows from `from` on. */
  #frontier(source: number, from: Micros): Micros {
    let frontier = from;
    for (const row of this.#sql.since.iterate(source, from)) {
      if (/* mutant: frontier */ row.from_us !== frontier || row.state === 'gap') break;
      frontier = row.to_us;
    }
    return frontier;
  }

  /**
   * Follows `closedUntil` at the distance of the last recount, and stops before the first window that may be read again: a gap, a window
   * with a pending recount or attempt, a window that a suspension lists, or a window closed after `lastFullVisibility`.
   */
  #uidsKeptSince({ n, lastFullVisibility }: SourceRow, range: RangeRow, closedUntil: Micros, lastAge: Micros): Micros {
    const first = this.#sql.unresolved.get(n, range.uidsKeptSince, /* mutant: sound-since */ lastFullVisibility)?.first ?? closedUntil;
    // A completed and resolved backfill keeps no uids.
    if (/* mutant: history-settled */ range.to !== null && closedUntil >= range.to && first >= range.to) return range.to;
    return /* mutant: uids-kept */ Math.max(range.uidsKeptSince, Math.min(closedUntil - lastAge, first));
  }
}
