/**
 * Counts what the passes over the query of one window received, and decides by the total after each
 * pass. It sends nothing: read-window.ts reads the pages and requests the totals.
 */
import { createHash } from 'node:crypto';
import type { Proof, Verdict, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { Answer } from './requester.ts';
import { filterSlack, owns, recordsMax, recordsOfSecondMax } from './windows.ts';

/** The consequence of a page or of a count. */
export type Step =
  | { readonly kind: 'read_again' }
  | { readonly kind: 'suspended' }
  /** As many records were received as the service counts. */
  | { readonly kind: 'complete'; readonly total: number; readonly serverNow: Micros | undefined }
  | Split
  | Gap;

/** The window is too much to be proven in one piece. */
export interface Split {
  readonly kind: 'split';
  /** Records in the window; undefined if the query is refused, or not answered in time, and a narrower one is answered. */
  readonly records: number | undefined;
  /** For the operator. */
  readonly message: string;
}

export interface Gap {
  readonly kind: 'gap';
  readonly reason: Extract<Verdict, { proven: false }>['reason'];
  readonly message: string;
}

const maxPasses = 6;
/** Without a usable total no pass proves anything. More than one pass finds records that moved between pages during an earlier pass. */
const passesWithoutTotal = 3;
/** With an unreadable place: after this many passes without a new record there is nothing else to find. */
const maxFruitlessPasses = 2;
/** A pass that found a new record does not count as one of `maxPasses`; in all there are no more than these. */
const maxPassesWithFinds = 40;
/** A total below this is no sign of a cap, although it equals the largest that the source has ever given. */
export const minCap = 100;

export class WindowTally {
  readonly #window: Window;
  readonly #mayBeSplit: boolean;
  /** Each uid received since the tally was cleared, and whether the window itself owns the record. */
  readonly #seen = new Map<string, boolean>();
  /** Received before the tally was cleared: a gap reports all of it. */
  readonly #dropped = new Map<string, boolean>();
  /** Identities that one answer held twice. */
  readonly #collisions = new Set<string>();
  // mutant: window-count
  #outOfRange = 0;
  /** The places of this pass that could not be read. */
  #unreadable: number[] = [];
  #unreadableMessage = '';
  /** Server time of the first answer. */
  #first: Micros | undefined;
  /** The total of the last page. */
  #shown: number | undefined;
  /** The total that the service counted after the last pass. */
  #total: number | undefined;
  /** The largest number of records received. */
  #maxReceived = 0;
  /** Passes in all. */
  #passes = 0;
  /** Passes that brought no new record. */
  #fruitlessPasses = 0;
  /** The same, in a row, of passes with an unreadable place. */
  #fruitlessInARow = 0;
  /** Passes in a row after which the service counted fewer records than were received. */
  #exceeded = 0;

  constructor(window: Window, mayBeSplit: boolean) {
    this.#window = window;
    this.#mayBeSplit = mayBeSplit;
  }

  /** Distinct records received. */
  get received(): number {
    return this.#seen.size;
  }

  has(uid: string): boolean {
    return this.#seen.has(uid);
  }

  /** True if the pass has met a place that cannot be read. */
  get isUnreadable(): boolean {
    return this.#unreadable.length > 0;
  }

  beginPass(): void {
    this.#unreadable = [];
  }

  /** Adds a page that is stored. @returns what ends the reading of the window at once */
  page({ records, total, serverNow }: Answer, isFirst: boolean): Split | Gap | undefined {
    const { from, to } = this.#window;
    this.#first ??= serverNow;
    // mutant: page-total
    this.#shown = total;
    const before = this.#seen.size;
    for (const { uid, time } of records) {
      // mutant: count-record
      if (time !== undefined && (time < from - filterSlack || time >= to + filterSlack)) this.#outOfRange += 1;
      else this.#seen.set(uid, time !== undefined && owns(this.#window, time));
    }
    // If every record is new, no two of them share an identity.
    if (this.#seen.size - before < records.length) this.#findCollisions(records);
    if (isFirst && total !== undefined && total > recordsMax && this.#mayBeSplit) return splitFor(total);
    if (this.#seen.size > recordsOfSecondMax) return gap('size', `more than ${recordsOfSecondMax} records`);
    // Otherwise Waybill would read all records for each window of a service that ignores the time filter.
    return this.#outOfRange > recordsMax ? this.endPass() : undefined;
  }

  #findCollisions(records: Answer['records']): void {
    const inAnswer = new Set<string>();
    for (const { uid } of records) {
      if (inAnswer.has(uid)) this.#collisions.add(uid);
      inAnswer.add(uid);
    }
  }

  unreadable(page: number, pageSize: number, reason: string): void {
    this.#unreadable.push(page);
    this.#unreadableMessage = `with pageSize ${pageSize} cannot be read: ${reason}`;
  }

  /**
   * A page of the query is refused, and a narrower window may be answered.
   * @param isDeep  pages before it were answered
   */
  refused(message: string, isDeep: boolean): Split {
    return { kind: 'split', records: isDeep ? (this.#shown ?? this.#seen.size) : undefined, message };
  }

  /**
   * The pass has read all that the service serves.
   * @returns a gap if that includes records far outside the window
   */
  endPass(): Gap | undefined {
    if (this.#outOfRange === 0) return undefined;
    return gap('out_of_range', `${this.#outOfRange} records of the answers are dated more than 2 s outside the window`);
  }

  /**
   * Decides after a pass with unreadable places. Such a pass proves nothing, but records of one
   * time in another order may be found by the next.
   * @param total  undefined if nothing was received, or the service gave none
   */
  countedUnreadable(total: number | undefined): Step {
    this.#passes += 1;
    this.#fruitlessInARow = this.#seen.size > this.#maxReceived ? 0 : this.#fruitlessInARow + 1;
    this.#maxReceived = Math.max(this.#maxReceived, this.#seen.size);
    this.#total = total ?? this.#total;
    const isRest = this.#seen.size === 0 || (total !== undefined && this.#seen.size >= total - 1);
    if (!isRest && this.#fruitlessInARow < maxFruitlessPasses && this.#passes < maxPassesWithFinds) return { kind: 'read_again' };
    return gap('unreadable', `page ${this.#unreadable.slice(0, 5).join(', ')} ${this.#unreadableMessage}`);
  }

  /**
   * Decides after a pass, by the total of an answer that the service sent after the last page.
   *
   * The theorem: a total that equals the number of distinct records received for the same query proves that every matching record was
   * received. The records received are a subset of the matching records, because an answer to the query held each of them. A finite set has
   * no proper subset of its own size, so equal numbers mean equal sets. This needs three properties of the service: matching records only
   * become more, totals are true, and a record keeps its identity. Nothing is assumed about order, page numbers, retries or restarts: a
   * record that a pass misses makes the number smaller, so the window is read again. If one answer holds an identity twice there are fewer
   * identities than records, and equal numbers prove nothing.
   *
   * The total of the last page itself does not serve, although it saves a request: the service may count before it reads the page. A record
   * that becomes visible in between is on the page and not in the total. It would hide another record that is in the total and not on the
   * page.
   * @param largestTotal  the largest total that the source has ever given: a total that equals it may be a cap
   */
  counted(total: number | undefined, serverNow: Micros | undefined, largestTotal: number): Step {
    // mutant: window-total
    this.#total = total;
    this.#passes += 1;
    const hasNew = this.#seen.size > this.#maxReceived;
    if (/* mutant: proof */ this.#total === this.#seen.size) {
      if (this.#collisions.size === 0) return { kind: 'complete', total: this.#total, serverNow };
      return gap('count', `${this.#numbers(this.#total)}${this.#sharedIdentities()}`);
    }
    this.#maxReceived = Math.max(this.#maxReceived, this.#seen.size);
    if (this.#total !== undefined && this.#seen.size > this.#total) {
      this.#exceeded += 1;
      // After two passes in a row this is no record that vanished, but a capped total.
      if (this.#exceeded >= 2 && this.#mayBeSplit) return splitFor(this.#seen.size);
      this.#clear();
    } else this.#exceeded = 0;
    if (!hasNew) this.#fruitlessPasses += 1;
    return this.#afterUnequal(largestTotal);
  }

  #afterUnequal(largestTotal: number): Step {
    const total = this.#total;
    const isLast = this.#fruitlessPasses >= (total === undefined ? passesWithoutTotal : maxPasses);
    if (!isLast && this.#passes < maxPassesWithFinds) return { kind: 'read_again' };
    if (total === undefined) return gap('total', 'the service gave no usable total');
    const message = this.#numbers(total, this.#maxReceived);
    if (largestTotal >= minCap && total >= largestTotal) return gap('total', message);
    return gap('count', message + (total > this.#maxReceived ? this.#sharedIdentities() : ''));
  }

  /** Names up to five identities that one answer held twice. */
  #sharedIdentities(): string {
    const all = [...this.#collisions];
    if (all.length === 0) return '';
    return `; records share the identity ${all.slice(0, 5).join(', ')}${all.length > 5 ? ', …' : ''} and count as one here`;
  }

  #numbers(total: number, received = this.#seen.size): string {
    return `received ${received}, the service counted ${total}`;
  }

  /** A record that was received may have disappeared from the service: only records received from now on count for the proof. */
  #clear(): void {
    for (const [uid, isInWindow] of this.#seen) this.#dropped.set(uid, isInWindow);
    this.#seen.clear();
  }

  /** The proof, once the tally is complete. @param last  server time of the count */
  proof(total: number, last: Micros | undefined): Omit<Proof, 'query' | 'requests'> {
    const end = last ?? this.#first ?? 0;
    return { total, ...inWindowOf(this.#seen), passes: this.#passes, first: this.#first ?? end, last: end };
  }

  /** All that was received, for a gap. */
  all(): Pick<Extract<Verdict, { proven: false }>, 'total' | 'inWindow' | 'seen' | 'digest' | 'passes'> {
    const all = new Map([...this.#dropped, ...this.#seen]);
    return { total: this.#total, ...inWindowOf(all), seen: all.size, passes: this.#passes };
  }
}

export function splitFor(records: number): Split {
  return { kind: 'split', records, message: `the window holds ${records} records or more` };
}

export function gap(reason: Gap['reason'], message: string): Gap {
  return { kind: 'gap', reason, message };
}

function inWindowOf(seen: ReadonlyMap<string, boolean>): { inWindow: number; digest: Buffer } {
  const uids = [...seen].flatMap(([uid, isInWindow]) => (isInWindow ? [uid] : []));
  return { inWindow: uids.length, digest: digestOf(uids) };
}

/** SHA-256 over the uids, 16 bytes each, sorted as bytes. */
function digestOf(uids: readonly string[]): Buffer {
  const bytes = Buffer.allocUnsafe(uids.length * 16);
  uids.forEach((uid, i) => bytes.write(uid, i * 16, 16, 'base64url'));
  // One character a byte: the order of such strings is the order of the bytes.
  const text = bytes.toString('latin1');
  const sorted = uids.map((_, i) => text.slice(i * 16, i * 16 + 16)).sort();
  return createHash('sha256').update(sorted.join(''), 'latin1').digest();
}
