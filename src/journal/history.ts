/**
 * Operations that change the coverage of a source: add, pause or cancel a backfill, retire or move a source. Each is one transaction with
 * its row in `operations` and a ledger entry, so that the archive receives it like a proof.
 */
import { WaybillError } from '../errors/errors.ts';
import type { BackfillOrder, SourceMove, Window } from '../model/ledger.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { Ledger, RangeRow } from './ledger.ts';
import type { Operations } from './operations.ts';
import { isAnotherHost, isBackfill, movedSourceMessage, uncovered, type Sources, type SourceState } from './sources.ts';
import type { Store } from './store.ts';

/** The operator as named, not authenticated, and the reason. */
interface GapOperation {
  /** Null: Waybill itself. */
  readonly actor: string | null;
  readonly reason: string | undefined;
}

export class History {
  readonly #store: Store;
  readonly #sources: Sources;
  readonly #operations: Operations;
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #wake: () => void;

  /** `wake` is called after an entry was appended to the journal. */
  constructor(store: Store, sources: Sources, operations: Operations, ledger: Ledger, clock: Clock, wake: () => void) {
    this.#store = store;
    this.#sources = sources;
    this.#operations = operations;
    this.#ledger = ledger;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Adds the uncovered parts of a period as backfills. @returns the parts; none when the ledger covers the period */
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
   * @param minEnd  the end of the window that is being read
   * @returns the new end; the start of the range when nothing was collected
   */
  cancel(id: string, from: Micros, minEnd: Micros | undefined, operation: GapOperation): Micros {
    const { source, range } = this.#unfinished(id, from);
    const begun = collectedThrough(range);
    const to = Math.min(range.to, /* mutant: cancelled-history */ Math.max(begun, minEnd ?? range.closedUntil));
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

  /**
   * Moves a source to another service for an operator: it keeps its ledger and its uids, and every proven window is in doubt until it was
   * counted once more.
   * @throws WaybillError `usage` when its path and tenant are the same
   */
  move(id: string, destination: string, operation: GapOperation): SourceMove {
    const source = this.#known(id);
    if (movedSourceMessage(source.destination, destination) === undefined)
      throw new WaybillError(
        'usage',
        `cannot move the source "${id}": path and tenant are still those of "${source.destination ?? destination}"`,
      );
    return this.#move(source, destination, operation);
  }

  /** Records the host at which a known source is polled; another host than before is a move. An earlier release stored no host. */
  followHost(id: string, destination: string): SourceMove | undefined {
    const source = this.#known(id);
    const before = source.destination ?? destination;
    // mutant: follow-host
    if (isAnotherHost(before, destination)) return this.#move(source, destination, { actor: null, reason: 'baseUrl has another host' });
    if (source.destination !== destination) this.#store.transaction(() => this.#sources.writeDestination(source, destination));
    return undefined;
  }

  #move(source: SourceState, destination: string, operation: GapOperation): SourceMove {
    const { row, destination: before = destination } = source;
    const moved = { before, present: destination, windows: 0 };
    this.#operation(source, 'sources move', moved, operation, () => {
      this.#sources.writeDestination(source, destination);
      const message = `not counted yet since the source was moved from "${before}" to "${destination}"`;
      // mutant: doubt-moved
      moved.windows = this.#ledger.doubtAll(row.n, message);
    });
    return moved;
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
