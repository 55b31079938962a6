/**
 * The question for everything, which has no times. A service may refuse it, and a large log may make it fail where questions with times are answered.
 * Then everything is asked for since 1970, and where that fails as well since the day before: what calibration, counts and tests of a suspension want to
 * know is learned from that too, and a total of less than everything only makes more windows look capped (docs/guarantees.md, "The proof").
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
  /** What was asked before a restart. */
  readonly query?: WindowQuery | undefined;
  /** After so many failures in a row another question is tried; 3 unless given. A refusal is told at once from another question that is answered. */
  readonly maxFailures?: number;
}

/** Nothing that a service keeps is dated before. */
const epoch: WindowQuery = { startTime: '1970-01-01T00:00:00.00' };
const dayMs = 86_400_000;
/** So many failures in a row are no hiccup. */
const maxFailures = 3;

export class UnboundedQuery implements Source {
  readonly #parts: UnboundedQueryParts;
  #query: WindowQuery;
  #failures = 0;

  constructor(parts: UnboundedQueryParts) {
    this.#parts = parts;
    this.#query = parts.query ?? {};
  }

  /** What is asked for everything at present. */
  get query(): WindowQuery {
    return this.#query;
  }

  /** Whether its answer holds all that there is, and not only what is new. */
  get isWhole(): boolean {
    return this.#query.startTime === undefined || this.#query.startTime === epoch.startTime;
  }

  /** One page; a question without times becomes the one that is answered. @throws WaybillError what the source throws */
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

  /** Tries the wider questions again, once each, where a narrower one is in use. @throws the signal's reason */
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

  /** A page further behind may be refused for its depth, and who is asked to come back comes back. */
  #isOfTheQuery({ page }: PageRequest, thrown: unknown): boolean {
    const code = codeOf(thrown);
    if (page !== undefined && page > 1) return false;
    if (code === 'page_refused') return true;
    if (code !== 'source_unreachable' && code !== 'source_busy') return false;
    if (thrown instanceof WaybillError && thrown.retryAfterMs !== undefined) return false;
    this.#failures += 1;
    return this.#failures % (this.#parts.maxFailures ?? maxFailures) === 0;
  }

  /** The first of the other questions that is answered, unless it is again only now that anything is: then this one is too. */
  async #other(request: PageRequest, thrown: unknown, signal: AbortSignal): Promise<Page> {
    const others: WindowQuery[] = [{}, epoch, this.#lastDay()].filter(({ startTime }) => startTime !== this.#query.startTime);
    for (const query of others) {
      const answer = await this.#tried(request, query, signal);
      if (!answer) continue;
      const retry = await this.#tried(request, this.#query, signal);
      this.#failures = 0;
      if (retry) return retry;
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
