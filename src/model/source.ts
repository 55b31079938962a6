/** The boundary to the polled service: queries, pages, and its clock. */
import type { Micros } from './time.ts';

/** The two bounds of a query, exactly as they are sent (specification 4.6), e.g. `2026-11-20T02:00:00.00`. */
export interface WindowQuery {
  readonly startTime?: string;
  readonly endTime?: string;
}

/** One request for one page. `page` undefined: asked without the parameter, to learn the number of the first page. */
export interface PageRequest {
  readonly query: WindowQuery;
  readonly page: number | undefined;
  readonly pageSize: number;
}

/** One well-formed answer of a logs endpoint. */
export interface Page {
  /** The exact bytes of each item of `data`, in the order received. */
  readonly items: readonly Uint8Array[];
  /** `pagination.page`, when it is an integer (decimal text counts). */
  readonly page: number | undefined;
  /** `pagination.pageSize`: the size granted. */
  readonly pageSize: number | undefined;
  /** `pagination.totalRecords`, when it is usable: a non-negative integer (decimal text counts). */
  readonly total: number | undefined;
  /** The `Date` header, ms since 1970. */
  readonly date: number | undefined;
  /** The `Age` header in seconds, 0 when there is none. Above 0 the answer is cached and proves nothing. */
  readonly age: number;
  /** When the answer had arrived: wall clock in µs, and the monotonic clock in ms. */
  readonly received: Micros;
  readonly receivedMonotonic: number;
}

/**
 * Where records come from. One call is one request (a rejected token is renewed once within it); the source keeps no state between windows
 * and repeats nothing by itself: that is for the one who asks.
 *
 * Throws WaybillError: `source_unreachable`, `source_busy` (perhaps with `retryAfterMs`), `source_unauthorized`, `source_forbidden`,
 * `tls_untrusted`, `proxy_refused`, `token_refused`, `token_unreachable`, `page_malformed`, `page_refused`, `page_not_found`; or the signal's
 * reason.
 */
export interface Source extends AsyncDisposable {
  page(request: PageRequest, signal: AbortSignal): Promise<Page>;
  /** The next request carries a fresh token, where there are tokens. */
  renew?(): void;
}

/** A lower bound of the service's clock: windows are planned on it, never on ours (docs/guarantees.md, "Server time"). */
export interface ServerClock {
  /**
   * Takes an answer into account; `newest` is the newest readable `logTimestamp` of the page. `cached`: the answer is older than what was
   * known, and does not count.
   */
  observe(page: Page, newest?: Micros): 'accepted' | 'cached';
  /** Undefined before the first answer. Never goes back once established. */
  now(): Micros | undefined;
  /**
   * What both clocks have reached: `now()`, or our own clock where that is behind it. Windows are closed and counted again by it, and so forgotten;
   * it may go back when the clock of the service is set right.
   */
  agreed(): Micros | undefined;
  /** As `agreed()`, but it goes on with our own clock while the clock of the service stands still: what is due follows from it. */
  expected(): Micros | undefined;
  /** The `Date` that the service repeats for longer than `closeDelay`; undefined while its clock moves on. */
  stoodSince(): Micros | undefined;
  /** Until then nothing is closed, recounted, tried again or forgotten. */
  established(): boolean;
  /**
   * How many answers are missing before it is established and will not come by themselves, one every `everyMs`; they are asked for by counts.
   */
  missing(everyMs: number): number;
  /** The time that it still takes at least to establish it, ms; 0 once it is established. */
  remainingMs(): number;
  /** What it still needs; undefined once it is established. */
  measuring(): ClockMeasurement | undefined;
  /**
   * Whether it is more than an hour ahead of our own clock, as far as that ever was: a gateway that sticks to one wrong node cannot be told by `Date`
   * alone.
   */
  ahead(): boolean;
}

/** What is still needed before the clock of a service is known: until then no window is proven. */
export interface ClockMeasurement {
  /** At least so much time from now, ms. */
  readonly remainingMs: number;
  /** At least so many answers. */
  readonly answersMissing: number;
}
