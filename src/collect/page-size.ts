/**
 * How a service pages, and which page size to request: the largest that it grants for reading, the smallest for a
 * request that needs no records. Only the requester asks for more than the smallest, of a service that refuses it.
 */
import { codeOf } from '../errors/errors.ts';
import type { Clock } from '../model/time.ts';

/** The paging of a service, as far as its answers show. */
export interface Paging {
  /** The number of the first page; undefined until the service has enough records to show it: the first page is requested without a number. */
  first: number | undefined;
  size: number;
  /** False if totals depend on the page size: then no total is used. */
  hasTotals?: boolean;
}

const sizes = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1];
export const largestSize = 1000;
/** A size that a service refuses neither as too small nor as too large. */
export const usualSize = 100;

/** The sizes to request after this one is refused, descending. */
export function sizesBelow(refused: number): readonly number[] {
  return sizes.filter((size) => size < refused);
}

/** The same for a service that refuses small pages, ascending. */
export function sizesAbove(refused: number): readonly number[] {
  return sizes.filter((size) => size > refused).reverse();
}

/**
 * Sends a request with one size after another until a size is granted.
 * @throws WaybillError the last refusal; any other error at once
 */
export async function firstGranted<Result>(
  tried: readonly number[],
  ask: (size: number) => Promise<Result>,
): Promise<{ readonly size: number; readonly result: Result }> {
  let refused: unknown = new RangeError('there is no page size to try');
  for (const size of tried) {
    try {
      return { size, result: await ask(size) };
    } catch (thrown) {
      if (codeOf(thrown) !== 'page_refused') throw thrown;
      refused = thrown;
    }
  }
  throw refused;
}

/** True if a page has fewer records than requested although more follow: the service grants no more, or omits rows. */
export function isCapped(records: number, size: number, total: number | undefined, before = 0): boolean {
  return records > 0 && records < size && total !== undefined && total > before + records;
}

const growMs = 600_000;

/** The paging of a running source. A size that became smaller is tried again after ten minutes: the service may grant it again. */
export class SourcePaging implements Paging {
  first: number | undefined;
  hasTotals = true;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #size = 0;
  #largest = 0;
  #growAt = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get size(): number {
    if (this.#size < this.#largest && this.#clock.monotonic() >= this.#growAt) this.#size = this.#largest;
    return this.#size;
  }

  set size(size: number) {
    this.#size = size;
    this.#growAt = this.#clock.monotonic() + growMs;
  }

  calibrated({ firstPage, wrongTotal }: { readonly firstPage?: number | undefined; readonly wrongTotal?: true }, size: number): void {
    this.first = firstPage;
    this.hasTotals = wrongTotal === undefined;
    this.#largest = this.#size = size;
  }
}
