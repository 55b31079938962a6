/** The boundary to the polled service: queries, pages, and its clock. */
import type { RecordFields } from './record.ts';
import type { Micros } from './time.ts';

/** The bounds of a query, exactly as sent, e.g. `2026-11-20T02:00:00.00`. */
export interface WindowQuery {
  readonly startTime?: string;
  readonly endTime?: string;
}

/** Without `page` the response shows the number of the first page. */
export interface PageRequest {
  readonly query: WindowQuery;
  readonly page: number | undefined;
  readonly pageSize: number;
  /** Requests the newest records first; a service may ignore that. Default: the oldest first. */
  readonly newestFirst?: boolean;
}

/** A well-formed response of a logs endpoint. */
export interface Page {
  /** The items of `data`, in the order received. */
  readonly items: readonly RecordFields[];
  /** `pagination.page`, when it is an integer (decimal text counts). */
  readonly page: number | undefined;
  /** `pagination.pageSize`: the size that the service granted. */
  readonly pageSize: number | undefined;
  /** `pagination.totalRecords`, when it is a non-negative integer (decimal text counts). */
  readonly total: number | undefined;
  /** The `Date` header, ms since 1970. */
  readonly date: number | undefined;
  /** The `Age` header in seconds, 0 without one. A response with an age above 0 comes from a cache and proves nothing. */
  readonly age: number;
  /** When the response had arrived: wall clock in µs, and monotonic clock in ms. */
  readonly received: Micros;
  readonly receivedMonotonic: number;
}

/**
 * Fetches pages. One call sends one request and renews a rejected token once. Keeps no state between windows and never repeats a request:
 * the caller does.
 *
 * @throws WaybillError `source_unreachable`, `source_busy` (perhaps with `retryAfterMs`), `source_unauthorized`, `source_forbidden`,
 *   `tls_untrusted`, `proxy_refused`, `token_refused`, `token_unreachable`, `page_malformed`, `page_refused`, `page_not_found`; or the
 *   signal's reason
 */
export interface Source extends AsyncDisposable {
  page(request: PageRequest, signal: AbortSignal): Promise<Page>;
  /** Makes the next request obtain a new token, if the source uses tokens. */
  renew?(): void;
}

/** A lower bound of the service's clock. Windows are planned with it, never with the local clock (docs/guarantees.md, "Server time"). */
export interface ServerClock {
  /** @param newest  the newest readable `logTimestamp` of the page. @returns `cached` for a response from before the known time: ignored */
  observe(page: Page, newest?: Micros): 'accepted' | 'cached';
  /** Undefined before the first response. Never goes back once established. */
  now(): Micros | undefined;
  /** The earlier of `now()` and the local clock: decides when windows are closed, recounted and forgotten. A correction may decrease it. */
  agreed(): Micros | undefined;
  /** As `agreed()`, but continues with the local clock while the clock of the service stands still. Decides when work is due. */
  expected(): Micros | undefined;
  /** The `Date` that the service has repeated for longer than `closeDelay`; undefined while its clock advances. */
  stoodSince(): Micros | undefined;
  /** True once the bound is established. Until then no window is closed, recounted or tried again, and no uid is deleted. */
  established(): boolean;
  /** The responses that are still needed and that polling every `everyMs` will not deliver in time: counting requests obtain them. */
  missing(everyMs: number): number;
  /** The minimum time until the clock is established, ms; 0 once it is. */
  remainingMs(): number;
  /** Undefined once the clock is established. */
  measuring(): ClockMeasurement | undefined;
  /** True once the clock was over an hour ahead of the local one: `Date` does not reveal a gateway that always routes to one wrong node. */
  ahead(): boolean;
}

/** The time and the responses that are still missing until the clock of a service is known. Until then no window is proven. */
export interface ClockMeasurement {
  /** Minimum time from now, ms. */
  readonly remainingMs: number;
  /** Minimum number of responses. */
  readonly answersMissing: number;
}
