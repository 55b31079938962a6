/**
 * The unbounded query, without times, and queries with one time. A service may refuse them, or fail on a large log while it answers queries
 * with times. Then the start time is 1970, and if that fails too, the previous day. A service that demands both times also gets an end
 * time: a day ahead. Calibration, counts and visibility checks work with these results. A total that covers only a part makes more windows
 * look capped, which is safe (docs/guarantees.md, "The proof").
 */
import { codeOf, WaybillError } from '../errors/errors.ts';
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
  /** Failures in a row before another query is tried; default 3. A refusal is handled at once if another query succeeds. */
  readonly maxFailures?: number;
}

/** No window can hold an older record. */
const epoch = { startTime: '1970-01-01T00:00:00.00' };
const dayMs = 86_400_000;
const maxFailures = 3;
/**
 * The end time added to a query with one time, ms after the present: none; a day, for records of a node whose clock is ahead; or 0 for a
 * service that refuses an end in the future.
 */
const aheads: readonly (number | undefined)[] = [undefined, dayMs, 0];
/** After no form of a query with one time was answered, the others are tried again after this time. */
const retryMs = 60_000;

export class UnboundedQuery implements Source {
  readonly #parts: UnboundedQueryParts;
  #query: WindowQuery;
  #failures = 0;
  /** One of `aheads`. */
  #ahead: number | undefined;
  #retryAt = 0;

  constructor(parts: UnboundedQueryParts) {
    this.#parts = parts;
    this.#query = parts.query ?? {};
  }

  /** The query in use. */
  get query(): WindowQuery {
    return this.#query;
  }

  /** For `check` and `status`: how queries differ from the usual ones, because the service refuses these. */
  get forms(): readonly string[] {
    const { startTime, endTime } = this.#query;
    const until = endTime === undefined ? '' : ' until a day ahead';
    return [
      ...(startTime === undefined
        ? []
        : [
            `unbounded query rejected; counting records since ${startTime}${until} instead, so a total of that size may be mistaken for a cap`,
          ]),
      ...(this.#ahead === undefined
        ? []
        : [`query with only one time rejected; live polls add an endTime, ${this.#ahead === 0 ? 'the present' : 'a day ahead'}`]),
    ];
  }

  /** True if the response covers all records, and not only recent ones. */
  get isWhole(): boolean {
    return this.#query.startTime === undefined || this.#query.startTime === epoch.startTime;
  }

  /** Requests one page, with the query in use in place of one without times, and a second time where needed. @throws as the source */
  async page(request: PageRequest, signal: AbortSignal): Promise<Page> {
    const { startTime, endTime } = request.query;
    if (startTime !== undefined && endTime !== undefined) return this.#parts.source.page(request, signal);
    if (startTime !== undefined || endTime !== undefined) return this.#withOneTime(request, signal);
    try {
      const page = await this.#ask(request, this.#present, signal);
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

  /** A query that demands one time, in the form in use; in another one when the service refuses that. */
  async #withOneTime(request: PageRequest, signal: AbortSignal): Promise<Page> {
    const { id, clock, log } = this.#parts;
    try {
      return await this.#ask(request, this.#closed(request.query, this.#ahead), signal);
    } catch (thrown) {
      if (codeOf(thrown) !== 'page_refused' || (request.page ?? 0) > 1 || clock.now() < this.#retryAt) throw thrown;
      for (const ahead of aheads) {
        const answer = ahead === this.#ahead ? undefined : await this.#tried(request, this.#closed(request.query, ahead), signal);
        if (!answer) continue;
        this.#ahead = ahead;
        if (ahead !== undefined)
          log.write('source.open_query_rejected', { source: id, ...this.#closed(request.query, ahead), error: thrown });
        return answer;
      }
      this.#retryAt = clock.now() + retryMs;
      throw thrown;
    }
  }

  #closed(query: WindowQuery, ahead: number | undefined): WindowQuery {
    if (ahead === undefined) return query;
    if (query.endTime !== undefined) return { ...epoch, ...query };
    const start = Date.parse(`${query.startTime ?? ''}Z`);
    return { ...query, endTime: textOf(Math.max(this.#parts.clock.now() + ahead, start + 1_000)) };
  }

  /** True if the failure concerns the query: a later page may be refused for its depth, and a `Retry-After` asks to repeat the same one. */
  #isOfTheQuery({ page }: PageRequest, thrown: unknown): boolean {
    const code = codeOf(thrown);
    if (page !== undefined && page > 1) return false;
    if (code === 'page_refused') return true;
    if (code !== 'source_unreachable' && code !== 'source_busy') return false;
    if (thrown instanceof WaybillError && thrown.retryAfterMs !== undefined) return false;
    this.#failures += 1;
    return this.#failures % (this.#parts.maxFailures ?? maxFailures) === 0;
  }

  /** The first other query that succeeds. If the present query now succeeds as well, the outage was temporary and the query stays. */
  async #other(request: PageRequest, thrown: unknown, signal: AbortSignal): Promise<Page> {
    const { startTime, endTime } = this.#query;
    const lastDay = { startTime: textOf(this.#parts.clock.now() - dayMs) };
    const all: WindowQuery[] = [{}, epoch, this.#closed(epoch, dayMs), lastDay, this.#closed(lastDay, dayMs)];
    for (const query of all) {
      // An end time helps only against a refusal.
      if (query.endTime !== undefined && codeOf(thrown) !== 'page_refused') continue;
      if (query.startTime === startTime && (query.endTime === undefined) === (endTime === undefined)) continue;
      const answer = await this.#tried(request, query, signal);
      if (!answer) continue;
      const repeated = await this.#tried(request, this.#present, signal);
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
    if (this.isWhole) return [{}];
    return this.#query.endTime === undefined ? [{}, epoch] : [{}, epoch, this.#closed(epoch, dayMs)];
  }

  get #present(): WindowQuery {
    const { startTime, endTime } = this.#query;
    return startTime === undefined || endTime === undefined ? this.#query : this.#closed({ startTime }, dayMs);
  }

  #use(query: WindowQuery, thrown: unknown): void {
    const { id, log } = this.#parts;
    this.#query = query;
    if (query.startTime === undefined) log.write('source.unbounded_query_accepted', { source: id });
    else log.write('source.unbounded_query_rejected', { source: id, ...query, error: thrown });
  }
}

/** `YYYY-MM-DDTHH:MM:SS.00`, the form of the specification (4.6). */
function textOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}.00`;
}
