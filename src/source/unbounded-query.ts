/**
 * The unbounded query, which has no times. A service may refuse it, or fail on a large log while it
 * answers queries with times. Then the start time is 1970, and if that fails too, the previous day.
 * Calibration, counts and visibility checks work with these results. A total that covers only a
 * part makes more windows look capped, which is safe (docs/guarantees.md, "The proof").
 */
import { codeOf, WaybillError } from '../errors.ts';
import type { Page, PageRequest, Source, WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

interface UnboundedQueryParts {
  readonly id: string;
  readonly source: Source;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** The query in use before a restart. */
  readonly query?: WindowQuery | undefined;
  /**
   * Failures in a row before another query is tried; default 3. A refusal is handled at once if
   * another query succeeds.
   */
  readonly maxFailures?: number;
}

/** No service has an older record. */
const epoch: WindowQuery = { startTime: '1970-01-01T00:00:00.00' };
const dayMs = 86_400_000;
const maxFailures = 3;

export class UnboundedQuery implements Source {
  readonly #parts: UnboundedQueryParts;
  #query: WindowQuery;
  #failures = 0;

  constructor(parts: UnboundedQueryParts) {
    this.#parts = parts;
    this.#query = parts.query ?? {};
  }

  /** The query in use. */
  get query(): WindowQuery {
    return this.#query;
  }

  /** True if the response covers all records, and not only recent ones. */
  get isWhole(): boolean {
    return this.#query.startTime === undefined || this.#query.startTime === epoch.startTime;
  }

  /**
   * Requests one page; replaces a query without times by the query in use.
   * @throws WaybillError of the source
   */
  async page(request: PageRequest, signal: AbortSignal): Promise<Page> {
    if (request.query.startTime !== undefined || request.query.endTime !== undefined) return this.#parts.source.page(request, signal);
    try {
      const page = await this.#ask(request, this.#query, signal);
      this.#failures = 0;
      return page;
    } catch (thrown) {
      if (!this.#isOfTheQuery(request, thrown)) throw thrown;
      return await this.#other(request, thrown, signal);
    }
  }

  /** Tries the wider queries once each while a narrower one is in use. @throws the signal's reason */
  async widen(signal: AbortSignal): Promise<void> {
    for (const query of this.#wider()) {
      if ((await this.#tried({ query, page: undefined, pageSize: 100 }, query, signal)) === undefined) continue;
      this.#use(query, undefined);
      return;
    }
  }

  renew(): void {
    this.#parts.source.renew?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.source[Symbol.asyncDispose]();
  }

  #ask(request: PageRequest, query: WindowQuery, signal: AbortSignal): Promise<Page> {
    return this.#parts.source.page({ ...request, query }, signal);
  }

  /**
   * True if the failure concerns the query. A page after the first may be refused for its depth, and
   * after a `Retry-After` the same request is repeated.
   */
  #isOfTheQuery({ page }: PageRequest, thrown: unknown): boolean {
    const code = codeOf(thrown);
    if (page !== undefined && page > 1) return false;
    if (code === 'page_refused') return true;
    if (code !== 'source_unreachable' && code !== 'source_busy') return false;
    if (thrown instanceof WaybillError && thrown.retryAfterMs !== undefined) return false;
    this.#failures += 1;
    return this.#failures % (this.#parts.maxFailures ?? maxFailures) === 0;
  }

  /**
   * The first other query that succeeds. If the present query now succeeds as well, the outage was
   * temporary and the query stays.
   */
  async #other(request: PageRequest, thrown: unknown, signal: AbortSignal): Promise<Page> {
    const others: WindowQuery[] = [{}, epoch, this.#lastDay()].filter(({ startTime }) => startTime !== this.#query.startTime);
    for (const query of others) {
      const answer = await this.#tried(request, query, signal);
      if (!answer) continue;
      const repeated = await this.#tried(request, this.#query, signal);
      this.#failures = 0;
      if (repeated) return repeated;
      this.#use(query, thrown);
      return answer;
    }
    throw thrown;
  }

  async #tried(request: PageRequest, query: WindowQuery, signal: AbortSignal): Promise<Page | undefined> {
    try {
      return await this.#ask(request, query, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      if (codeOf(thrown) === undefined) throw thrown;
      return undefined;
    }
  }

  #wider(): WindowQuery[] {
    if (this.#query.startTime === undefined) return [];
    return this.isWhole ? [{}] : [{}, epoch];
  }

  #lastDay(): WindowQuery {
    return { startTime: `${new Date(this.#parts.clock.now() - dayMs).toISOString().slice(0, 19)}.00` };
  }

  #use(query: WindowQuery, thrown: unknown): void {
    const { id, log } = this.#parts;
    this.#query = query;
    if (query.startTime === undefined) log.write('source.unbounded_query_accepted', { source: id });
    else log.write('source.unbounded_query_rejected', { source: id, ...query, error: thrown });
  }
}
