/**
 * The ledger: the windows of each source with their proofs, and the marks that follow from them. Only here is a window opened, closed or
 * left as a gap; every change of a window appends its line to the journal in the same transaction.
 */
import { WaybillError } from '../errors.ts';
import type { GapOperation } from '../model/journal.ts';
import type { BackfillOrder, GapPart, Suspension, LedgerWindow, Range, Remark, WindowStep, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { withLate } from './late-delays.ts';
import type { Operations } from './operations.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Segments } from './segments.ts';
import type { Store } from './store.ts';
import { ledgerLine, revisedRow } from './window-revision.ts';
import { readable, WindowRows } from './window-rows.ts';
import type { WindowDbRow } from './window-rows.ts';

export interface SourceRow {
  readonly n: number;
  readonly id: string;
  frontier: Micros;
  polledUntil: Micros;
  state: string;
  suspension: Suspension | undefined;
  profile: string | undefined;
  /** See CollectJournal.sound. */
  lastFullVisibility: Micros;
}

/** A range whose marks move; `order` where a person asked for it. */
export interface RangeRow extends Range {
  to: Micros | null;
  closedUntil: Micros;
  uidsKeptSince: Micros;
  order: BackfillOrder | undefined;
  /** The time of the newest record that was collected of a range of history. */
  collected: Micros | undefined;
}

export class Ledger {
  readonly #store: Store;
  readonly #segments: Segments;
  readonly #operations: Operations;
  readonly #rows: WindowRows;

  constructor(store: Store, segments: Segments, operations: Operations) {
    this.#store = store;
    this.#segments = segments;
    this.#operations = operations;
    this.#rows = new WindowRows(store.db);
  }

  /** The window that a time lies in, if the ledger has one already. */
  owner(source: number, time: Micros): { from: Micros; state: string } | undefined {
    const row = this.#rows.lastBefore(source, time);
    return row && time < row.to_us ? { from: row.from_us, state: row.state } : undefined;
  }

  /** A window by its begin. */
  window(source: number, from: Micros): LedgerWindow | undefined {
    const row = this.#rows.get(source, from);
    return row && readable(row);
  }

  /** Proven windows with records in [since, to), the most records first; of those in doubt the ones that are tried again. */
  richest(source: number, since: Micros, to: Micros, most: number): LedgerWindow[] {
    return this.#rows.richest(source, since, to, most).map(readable);
  }

  /** Closed windows without a remark that were closed at or after `since`. */
  closedSince(source: number, since: Micros): LedgerWindow[] {
    return this.#rows.closedSince(source, since).map(readable);
  }

  /** The last windows in [since, to), newest first. */
  latest(source: number, since: Micros, to: Micros, most: number): LedgerWindow[] {
    return this.#rows.latest(source, since, to, most).map(readable);
  }

  /** Within a transaction: late records of a closed window, by their delays. */
  addLate(source: number, from: Micros, delays: readonly Micros[]): void {
    this.#rows.addLate(source, from, delays.length, withLate(this.#rows.get(source, from)?.late_delays ?? null, delays));
  }

  /** The window that is due first at `now` (server time): recounts, which are one question each, come before further tries. */
  due(source: number, now: Micros): LedgerWindow | undefined {
    const row = this.#rows.due(source, now);
    return row && readable(row);
  }

  /**
   * Writes what was found about a window: a new one must begin where its range ends, another must be there with the same end. A proof moves the
   * frontier when contiguous; a gap holds it. `lastAge` is the last recount age in µs, behind which uids may be forgotten.
   */
  record(source: SourceRow, range: RangeRow, window: Window, revision: WindowStep, lastAge: Micros): void {
    this.#store.transaction(() => {
      const before = this.#rows.get(source.n, window.from);
      const isNew = before === undefined;
      if (isNew && window.from !== range.closedUntil) {
        throw new WaybillError(
          'internal_error',
          `window of "${source.id}" begins at ${window.from}, its range is closed until ${range.closedUntil}`,
        );
      }
      if (before && before.to_us !== window.to) {
        throw new WaybillError('internal_error', `window of "${source.id}" at ${window.from} ends at ${before.to_us}, not ${window.to}`);
      }
      if (range.to !== null && window.to > range.to) {
        throw new WaybillError(
          'internal_error',
          `window of "${source.id}" ends at ${window.to}, behind its range, which ends at ${range.to}`,
        );
      }
      // A person accepted it while it was being read: that stands for ever, and the frontier has moved over it.
      if (before?.state === 'accepted') return;
      const row = revisedRow(before, window, revision);
      row.seq = this.#segments.writeLedgerEntry(source.n, source.id, ledgerLine(source.id, row), window.from, window.to, revision.at);
      this.#rows.write(source.n, row, isNew);
      this.#move(source, range, Math.max(range.closedUntil, window.to), lastAge);
    });
  }

  /**
   * A recount that found the stored total: the window stands, its next recount is later, and what had put it in doubt is resolved. One that was closed
   * at a time that had not come yet is closed now.
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

  /** What a recount says without a new proof: the old one, true at its time, stays. */
  remark(source: SourceRow, range: RangeRow, window: Window, remark: Remark, at: Micros, lastAge: Micros): void {
    if (this.#isAccepted(source, window)) return;
    const remarked = (before: WindowDbRow): WindowDbRow => {
      if (before.state !== 'proven')
        throw new WaybillError('internal_error', `window of "${source.id}" at ${window.from} is remarked upon and not closed`);
      const { reason = null, message = null, next = null, attempts } = remark;
      return { ...before, reason, message, next_us: next, attempts };
    };
    this.#change(source, range, window.from, remarked, at, lastAge);
  }

  /**
   * A gap becomes several that tile it, each with a query of its own and due at once. Nothing is known of them yet: what the gap has shown as a whole
   * says nothing of its parts. Marks stay where they are.
   */
  divide(source: SourceRow, range: RangeRow, gap: Window, parts: readonly GapPart[], message: string, at: Micros, lastAge: Micros): void {
    if (this.#isAccepted(source, gap)) return;
    this.#store.transaction(() => {
      const before = this.#rows.get(source.n, gap.from);
      const isTiled =
        parts.length > 1 &&
        parts.every(({ from, to }, i) => from === (parts[i - 1]?.to ?? gap.from) && from < to) &&
        parts.at(-1)?.to === gap.to;
      if (before?.state !== 'gap' || before.to_us !== gap.to || !isTiled)
        throw new WaybillError(
          'internal_error',
          `window of "${source.id}" at ${gap.from} is divided and no gap, or its parts do not tile it`,
        );
      for (const part of parts) {
        const isNew = part.from !== gap.from;
        const row: WindowDbRow = {
          ...before,
          from_us: part.from,
          to_us: part.to,
          query: JSON.stringify(part.query),
          ...{ total: null, records: 0, received: 0, digest: null, proof: null, closed_us: at, next_us: at, attempts: 0, message },
          ...(isNew ? { late: 0, late_delays: null, recounts: 0, revision: 1 } : { revision: before.revision + 1 }),
        };
        row.seq = this.#segments.writeLedgerEntry(source.n, source.id, ledgerLine(source.id, row), row.from_us, row.to_us, at);
        if (!isNew) this.#rows.narrow(source.n, row);
        this.#rows.write(source.n, row, isNew);
      }
      this.#move(source, range, range.closedUntil, lastAge);
    });
  }

  /**
   * A person accepts that a window will never be proven: it stays listed, and the frontier moves over it. With who, when and why in `operations`
   * and in the ledger, in the same transaction.
   * @throws WaybillError `usage` when the ledger has no such window, or nothing is open about it
   */
  accept(source: SourceRow, range: RangeRow, from: Micros, operation: GapOperation): LedgerWindow {
    const before = this.#shrunk(source, from) ?? this.#open(source, from, 'accept');
    const { at, actor, reason, evidence } = operation;
    // What is remembered moves with the next close.
    const row = this.#change(source, range, from, () => ({ ...before, state: 'accepted', next_us: null }), at, Infinity, {
      operation: { actor, reason, ...(evidence !== undefined && { evidence }), at },
    }, () => this.#operate(source, before, 'gaps accept', operation)); // prettier-ignore
    return readable(row);
  }

  /**
   * A person wants a window tried again now. It is due at once, whatever the clock of the service says: its end is long past.
   * @throws WaybillError `usage` as `accept` does
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

  /** A closed window that a suspension has found to hold less than was proven. */
  #shrunk({ n, suspension }: SourceRow, from: Micros): WindowDbRow | undefined {
    const isListed = suspension?.windows?.includes(from) === true || suspension?.shrunk?.includes(from) === true;
    const row = isListed ? this.#rows.get(n, from) : undefined;
    if (row?.state !== 'proven' || row.reason !== null) return undefined;
    return { ...row, reason: 'reread', message: 'the service shows fewer records than were proven' };
  }

  /** A person may have accepted a window while it was being asked for: what was found about it then says nothing any more. */
  #isAccepted(source: SourceRow, { from }: Window): boolean {
    return this.#rows.get(source.n, from)?.state === 'accepted';
  }

  /** A window about which something is open: a gap, or one that a later count put in doubt. */
  #open(source: SourceRow, from: Micros, operation: string): WindowDbRow {
    const row = this.#rows.get(source.n, from);
    const name = `the window of "${source.id}" that begins at ${microsToIso(from)}`;
    if (!row) throw new WaybillError('usage', `cannot ${operation} ${name}: the ledger has none`);
    if (row.state === 'gap' || (row.state === 'proven' && row.reason === 'reread')) return row;
    const state =
      row.state === 'proven'
        ? `it is proven${row.reason === null ? '' : `, and its records have ${row.reason}`}`
        : 'it is accepted already';
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

  /** Rewrites a window that is in the ledger, with its line and the marks that follow. */
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
      const before = this.#rows.get(source.n, from);
      if (!before) throw new WaybillError('internal_error', `window of "${source.id}" at ${from} is not in the ledger`);
      const row = { ...change(before), revision: before.revision + 1 };
      row.seq = this.#segments.writeLedgerEntry(source.n, source.id, ledgerLine(source.id, row, extra), row.from_us, row.to_us, at);
      this.#rows.write(source.n, row, false);
      alsoWrite();
      this.#move(source, range, range.closedUntil, lastAge);
      return row;
    });
  }

  /** Within a transaction, once the windows are written: the marks that follow from them. */
  #move(source: SourceRow, range: RangeRow, closedUntil: Micros, lastAge: Micros): void {
    const frontier = range.to === null ? this.#frontier(source.n, source.frontier) : source.frontier;
    const uidsKeptSince = this.#uidsKeptSince(source, range, closedUntil, lastAge);
    if (closedUntil < range.closedUntil || uidsKeptSince < range.uidsKeptSince || frontier < source.frontier) {
      throw new WaybillError(
        'internal_error',
        `marks of "${source.id}" go back: frontier ${source.frontier} to ${frontier}, closed until ${range.closedUntil} to ${closedUntil}`,
      );
    }
    this.#rows.setRangeMarks(source.n, range.from, closedUntil, uidsKeptSince);
    if (frontier !== source.frontier) this.#rows.setFrontier(source.n, frontier);
    this.#store.after(() => {
      range.closedUntil = closedUntil;
      range.uidsKeptSince = uidsKeptSince;
      source.frontier = frontier;
    });
  }

  /** Forgets a range of history that was read to its end, once nothing in it may be read again: its own windows may not change any more. */
  forgetWhole(source: SourceRow, range: RangeRow): void {
    const { to, closedUntil, uidsKeptSince } = range;
    if (to === null || closedUntil < to || uidsKeptSince >= to || this.#uidsKeptSince(source, range, closedUntil, Infinity) < to) return;
    this.#store.transaction(() => {
      this.#rows.setRangeMarks(source.n, range.from, closedUntil, to);
      this.#store.after(() => (range.uidsKeptSince = to));
    });
  }

  /** The end of the unbroken run of closed or accepted windows that begins at `from`. */
  #frontier(source: number, from: Micros): Micros {
    let frontier = from;
    for (const row of this.#rows.since(source, from)) {
      if (/* mutant: frontier */ row.from_us !== frontier || row.state === 'gap') break;
      frontier = row.to_us;
    }
    return frontier;
  }

  /**
   * Follows `closedUntil` at the distance of the last recount, and stops before the first window that may still be read again: a gap, one with a
   * recount or another try ahead of it, one that a suspension lists, and one that was closed since everything was last seen to be shown.
   */
  #uidsKeptSince({ n, lastFullVisibility }: SourceRow, range: RangeRow, closedUntil: Micros, lastAge: Micros): Micros {
    const first = this.#rows.firstUnresolved(n, range.uidsKeptSince, /* mutant: sound-since */ lastFullVisibility) ?? closedUntil;
    // A range of history that is read and resolved is forgotten whole.
    if (/* mutant: history-settled */ range.to !== null && closedUntil >= range.to && first >= range.to) return range.to;
    return /* mutant: uids-kept */ Math.max(range.uidsKeptSince, Math.min(closedUntil - lastAge, first));
  }
}
