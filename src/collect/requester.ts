/**
 * Repeats a request to a source until a usable answer arrives. An unreachable source makes no gap: the request waits. The caller handles
 * what a retry cannot help: a page that stays unreadable, or a refused page size.
 */
import { backoff } from '../time/backoff.ts';
import { codeOf, WaybillError, messageOf, type ErrorCode } from '../errors/errors.ts';
import type { CollectedRecord } from '../model/journal.ts';
import type { SourceFailure } from '../model/snapshot.ts';
import type { Page, PageRequest, ServerClock, Source } from '../model/source.ts';
import { noTracer, type Log, type Span, type Tracer } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import type { Notes, RecordFields } from '../model/record.ts';
import type { Handoff } from './handoff.ts';
import { firstGranted, sizesAbove, usualSize, type Paging } from './page-size.ts';
import { freshAttempts, waitsFor, type Suspensions, type Waits } from './suspension.ts';
import { futureQuery } from './windows.ts';

/** A page whose records have been read: identity and time of each. */
export interface Answer {
  /** For a second request of the same page. */
  readonly request: PageRequest;
  readonly records: readonly CollectedRecord[];
  readonly page: number | undefined;
  readonly pageSize: number | undefined;
  readonly total: number | undefined;
  readonly received: Micros;
  /** Server time of the answer. */
  readonly serverNow: Micros;
  /** The span of the page, from the request until the answer is stored; absent if nothing is stored. */
  readonly span?: Span;
}

/** The health of the connection to a source, for status and probes. */
interface SourceHealth {
  /** The last failure, until an answer arrives. */
  trouble: (SourceFailure & { readonly code: ErrorCode | undefined }) | undefined;
  lastSuccess: Micros | undefined;
  lastError: string | undefined;
  requests: number;
}

const cachedMs = 1_000;
/** The first wait after the failure of every request: its backoff begins as after this many failures. */
const failuresOfAll = 4;

/** How long a comparison with other requests holds, ms: a page may be unreadable in several sizes. */
const comparedMs = 5_000;
/** The requests that fail: this one alone, this one and some others at first, or all. */
type Failing = 'this' | 'some' | 'all';

interface RetryPolicy {
  /**
   * A request fails after `failures` failures if `others` other requests were answered in the meantime: it may be too much for the service.
   */
  readonly failures: number;
  readonly others: number;
  /** Attempts at an unreadable page before the request fails. */
  readonly malformed: number;
  /** A request that is refused or unreadable fails only if others are answered; else it waits. */
  readonly isCompared: boolean;
}

const usual: RetryPolicy = { failures: 8, others: 3, malformed: 3, isCompared: true };
/** For a caller that can request less instead. */
export const attemptsWhereSmallerWorks: RetryPolicy = { ...usual, failures: 4, others: 2 };
/** For a request that only classifies the failure of another. */
const brief: RetryPolicy = { failures: 2, others: 1, malformed: 1, isCompared: false };
/** While nothing else is requested: after every four failures, one attempt sends the unbounded query instead. */
const unboundedEvery = 4;
const defaultCloseDelayMs = 900_000;
const textDecoder = new TextDecoder('utf-8');

/** A record of a page. The journal stores its bytes; the text is decoded when needed. */
class ReceivedRecord implements CollectedRecord {
  readonly bytes: Uint8Array;
  readonly uid: string;
  readonly time: Micros | undefined;
  readonly isObject: boolean;
  readonly notes: Notes | undefined;

  constructor({ received, bytes, isObject, notes }: RecordFields, uid: string, time: Micros | undefined) {
    this.bytes = received;
    this.uid = uid;
    this.time = time;
    this.isObject = isObject;
    // The notes of a record with invalid UTF-8 are about its replacement.
    this.notes = bytes === received ? notes : undefined;
  }

  get text(): string {
    return textDecoder.decode(this.bytes);
  }
}

export class Requester {
  readonly health: SourceHealth = { trouble: undefined, lastSuccess: undefined, lastError: undefined, requests: 0 };
  readonly #source: Source;
  readonly sourceId: string;
  readonly #uidOf: (record: RecordFields) => string;
  readonly #serverClock: ServerClock;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Log;
  readonly #tracer: Tracer;
  readonly #handoff: Pick<Handoff, 'offer'> | undefined;
  readonly #suspensions: Suspensions | undefined;
  readonly #waits: Waits;
  /** Requests that are refused with fresh tokens too: the suspension ends when the last of them is answered. */
  #refusals = 0;
  #woken = new AbortController();
  /** Number of usable responses so far. */
  #answers = 0;
  /** The smallest page size that the service is known to grant. */
  #minSize = 1;
  /** Until then no failure is compared with other requests, ms of the monotonic clock. */
  #comparedUntil = 0;
  readonly #paging: Pick<Paging, 'hasTotals'>;

  constructor(parts: {
    source: Source;
    sourceId: string;
    uidOf: (record: RecordFields) => string;
    serverClock: ServerClock;
    clock: Clock;
    random: Random;
    log: Log;
    /** Hands control back after each wait between two attempts. */
    handoff?: Pick<Handoff, 'offer'>;
    /** Suspended when the right to read is missing. */
    suspensions?: Suspensions;
    waits?: Waits;
    tracer?: Tracer | undefined;
    paging?: Pick<Paging, 'hasTotals'>;
  }) {
    this.#source = parts.source;
    this.sourceId = parts.sourceId;
    this.#uidOf = parts.uidOf;
    this.#serverClock = parts.serverClock;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#log = parts.log;
    this.#tracer = parts.tracer ?? noTracer;
    this.#handoff = parts.handoff;
    this.#paging = parts.paging ?? {};
    this.#suspensions = parts.suspensions;
    this.#waits = parts.waits ?? waitsFor(defaultCloseDelayMs);
  }

  /**
   * Requests a page until a well-formed answer arrives that is not cached, and reads its records. While every request fails it waits, so an
   * error concerns this request alone.
   * @throws WaybillError `page_malformed` (three times unreadable), `page_refused`, `page_not_found`; or the signal's reason
   */
  async ask(request: PageRequest, signal: AbortSignal, retryPolicy?: RetryPolicy): Promise<Answer> {
    return this.#repeat(request, (page) => this.#read(request, page), signal, retryPolicy);
  }

  /** Ends the present waits between attempts; the next one obtains a new token. */
  retry(): void {
    this.#source.renew?.();
    this.#woken.abort();
    this.#woken = new AbortController();
  }

  startPage(): Span {
    return this.#tracer.start('collect page', { 'waybill.source.id': this.sourceId });
  }

  /**
   * True if the service answers the request, readable or not, and does not refuse it. Outages are waited for. Default size: the smallest.
   */
  async isAnswered(request: Omit<PageRequest, 'pageSize'> & { readonly pageSize?: number }, signal: AbortSignal): Promise<boolean> {
    try {
      await this.ask({ pageSize: this.#minSize, ...request }, signal, brief);
      return true;
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === 'page_refused' || code === 'page_not_found') return false;
      if (code === 'page_malformed') return !isUnanswered(thrown);
      throw thrown;
    }
  }

  /** The same as `ask` for calibration, which needs the page as received, and compares no requests. */
  async page(request: PageRequest, signal: AbortSignal): Promise<Page> {
    return this.#repeat(
      request,
      (page) => {
        this.#observe(page, undefined);
        return page;
      },
      signal,
      { ...usual, isCompared: false },
    );
  }

  /**
   * Requests the total of a query. It is undefined if the service gives no usable total, if its answer
   * cannot be read, or if it refuses this query but answers others.
   */
  async count(
    query: PageRequest['query'],
    page: number | undefined,
    signal: AbortSignal,
  ): Promise<Answer | { readonly total: undefined; readonly serverNow: undefined }> {
    const none = { total: undefined, serverNow: undefined };
    try {
      return await this.ask({ query, page, pageSize: this.#minSize }, signal);
    } catch (thrown) {
      const code = codeOf(thrown);
      // mutant: count-failure
      if (!isOfRequest(code)) throw thrown;
      if (code === 'page_refused') return (await this.#inLargerPages(query, page, signal)) ?? none;
      return none;
    }
  }

  /** Requests a page of the smallest size that the service grants, after a smaller one was refused. */
  async #inLargerPages(query: PageRequest['query'], page: number | undefined, signal: AbortSignal): Promise<Answer | undefined> {
    const ask = (pageSize: number): Promise<Answer> => this.ask({ query, page, pageSize }, signal, brief);
    try {
      const granted = await firstGranted(sizesAbove(this.#minSize), ask);
      // A gateway may have refused the smaller one, whatever its size, and be gone now.
      const { size, result } = await firstGranted([this.#minSize, granted.size], ask);
      this.#minSize = size;
      return result;
    } catch (thrown) {
      if (!isOfRequest(codeOf(thrown))) throw thrown;
      this.#minSize = 1;
      return undefined;
    }
  }

  /** Logs the failure, and waits: as long as the service requests, else with full jitter and exponential backoff. */
  async wait(thrown: unknown, failures: number, signal: AbortSignal, ms?: number): Promise<void> {
    this.#failed(thrown);
    const requested = ms ?? (thrown instanceof WaybillError ? thrown.retryAfterMs : undefined);
    const waitMs = requested ?? backoff(failures, this.#random);
    const fields = { source: this.sourceId, code: codeOf(thrown), retryInMs: Math.round(waitMs), error: thrown };
    // An operator must replace a refused secret; a server that rotates secrets may need a moment to accept the new one.
    if (codeOf(thrown) === 'token_refused') {
      if (failures < 3) this.#log.write('source.token_retried', fields);
      else this.#log.write('source.token_refused', fields);
    } else if (failures < 3) this.#log.write('source.request_retried', fields);
    else this.#log.write('source.request_failing', fields);
    if (this.health.trouble) this.health.trouble = { ...this.health.trouble, nextAttempt: (this.#clock.now() + waitMs) * 1000 };
    await this.#clock.sleep(waitMs, AbortSignal.any([signal, this.#woken.signal])).catch(() => signal.throwIfAborted());
  }

  async #repeat<Result>(
    request: PageRequest,
    read: (page: Page) => Result,
    signal: AbortSignal,
    retryPolicy: RetryPolicy = usual,
  ): Promise<Result> {
    let malformed = 0;
    let forbidden = 0;
    let allFail = false;
    let isRepeated = false;
    const answersBefore = this.#answers;
    try {
      for (let failures = 0; ; failures += 1) {
        signal.throwIfAborted();
        let thrown: unknown;
        try {
          this.health.requests += 1;
          const result = read(await this.#source.page(request, signal));
          this.#succeeded();
          return result;
        } catch (caught) {
          signal.throwIfAborted();
          thrown = caught;
        }
        const code = codeOf(thrown);
        // mutant: final-failure
        if (code === undefined) throw thrown;
        if (isOfRequest(code) && (code !== 'page_malformed' || (malformed += 1) >= retryPolicy.malformed)) {
          const isCompared = retryPolicy.isCompared && !isEnd(request, code);
          // While all fail, every second failure is compared.
          const failing: Failing = /* mutant: all-fail */ !isCompared
            ? 'this'
            : allFail && failures % 2 === 1
              ? 'all'
              : await this.#failing(signal);
          if (failing !== 'all' && (isRepeated || (failing === 'this' && !allFail))) {
            if (code === 'page_malformed') this.#failed(thrown);
            throw thrown;
          }
          // Others have failed too and are answered now, so this request may be answered now.
          isRepeated = failing !== 'all';
          allFail = !isRepeated;
          if (isRepeated) continue;
        }
        const areOthersAnswered = (): boolean => this.#answers - answersBefore >= retryPolicy.others;
        if (
          failures + 1 >= retryPolicy.failures &&
          isOfThePage(thrown) &&
          (areOthersAnswered() || (await this.#isUnboundedAnsweredNow(request, failures, signal)))
        ) {
          this.#failed(thrown);
          // The service works, and this request is too much for it: a smaller page may be answered.
          throw new WaybillError('page_malformed', `${messageOf(thrown)}; the service answers other requests`, { cause: thrown });
        }
        if (code === 'source_forbidden') await this.wait(thrown, failures, signal, await this.#refused((forbidden += 1), thrown));
        else await this.wait(thrown, allFail ? failures + failuresOfAll : failures, signal);
        await this.#handoff?.offer();
      }
    } finally {
      if (forbidden > freshAttempts) await this.#granted(signal);
    }
  }

  /**
   * Compares a failed request with the unbounded query, and with a query without records: one unreadable record makes
   * every page that holds it unreadable.
   */
  async #failing(signal: AbortSignal): Promise<Failing> {
    if (this.#clock.monotonic() < this.#comparedUntil) return 'this';
    let failing: Failing = 'this';
    const others: readonly Omit<PageRequest, 'page'>[] = [
      ...[this.#minSize, usualSize].map((pageSize) => ({ query: {}, pageSize })),
      { query: futureQuery, pageSize: usualSize },
    ];
    for (const other of others) {
      try {
        await this.ask({ ...other, page: undefined }, signal, brief);
        this.#comparedUntil = this.#clock.monotonic() + comparedMs;
        return failing;
      } catch (thrown) {
        if (!isOfRequest(codeOf(thrown))) throw thrown;
        failing = 'some';
      }
    }
    return 'all';
  }

  /** After every fourth failure: true if the unbounded query is answered at the first attempt. */
  async #isUnboundedAnsweredNow({ query }: PageRequest, failures: number, signal: AbortSignal): Promise<boolean> {
    if ((failures + 1) % unboundedEvery !== 0 || (query.startTime === undefined && query.endTime === undefined)) return false;
    this.health.requests += 1;
    try {
      return (await this.#source.page({ query: {}, page: undefined, pageSize: this.#minSize }, signal)).age === 0;
    } catch {
      signal.throwIfAborted();
      // The unbounded query fails too: the service is unreachable, and the request waits.
      return false;
    }
  }

  /**
   * The right to read is missing: three attempts in a minute with a fresh token, then one a minute while suspended.
   * @returns the wait in ms
   */
  async #refused(times: number, thrown: unknown): Promise<number> {
    this.#source.renew?.();
    if (times <= freshAttempts) return this.#waits.fresh;
    if (times === freshAttempts + 1) {
      this.#refusals += 1;
      await this.#suspensions?.begin({ reason: 'forbidden', message: messageOf(thrown) });
    }
    return this.#waits.test;
  }

  /** The request was answered or has failed. */
  async #granted(signal: AbortSignal): Promise<void> {
    this.#refusals -= 1;
    if (this.#refusals === 0 && !signal.aborted) await this.#suspensions?.end('forbidden');
  }

  #succeeded(): void {
    this.#answers += 1;
    if (this.health.trouble) this.#log.write('source.recovered', { source: this.sourceId, after: this.health.trouble.code });
    this.health.trouble = undefined;
    this.health.lastSuccess = this.#clock.now() * 1000;
  }

  #failed(thrown: unknown): void {
    const message = messageOf(thrown);
    this.health.lastError = message;
    const since = this.health.trouble?.since ?? this.#clock.now() * 1000;
    this.health.trouble = { code: codeOf(thrown), message, since };
  }

  #read(request: PageRequest, page: Page): Answer {
    let newest: Micros | undefined;
    const records = page.items.map((record): CollectedRecord => {
      const { time } = record;
      if (time !== undefined && (newest === undefined || time > newest)) newest = time;
      return new ReceivedRecord(record, this.#uidOf(record), time);
    });
    this.#observe(page, newest);
    const { page: number, pageSize, received } = page;
    const total = this.#paging.hasTotals === false ? undefined : page.total;
    return { request, records, page: number, pageSize, total, received, serverNow: this.#serverClock.now() ?? received };
  }

  #observe(page: Page, newest: Micros | undefined): void {
    // mutant: cached-answer
    if (this.#serverClock.observe(page, newest) === 'accepted') return;
    throw new WaybillError('source_busy', `answer of "${this.sourceId}" is cached: it is older than an answer before it`, {
      // No backoff: the server clock accepts answers again after enough of them agree with each other.
      retryAfterMs: cachedMs,
    });
  }
}

/** Refused or unreadable: a failure that may concern one request alone. */
function isOfRequest(code: ErrorCode | undefined): boolean {
  return code === 'page_refused' || code === 'page_not_found' || code === 'page_malformed';
}

/** A refusal after the first page is the end of the query, or its paging depth. */
function isEnd({ page }: PageRequest, code: ErrorCode): boolean {
  return page !== undefined && page > 1 && code !== 'page_malformed';
}

/** True if a request failed without an answer while others were answered; false if an answer was unreadable. */
export function isUnanswered(thrown: unknown): boolean {
  return codeOf(thrown) === 'page_malformed' && thrown instanceof Error && isOfThePage(thrown.cause);
}

/** 5xx without `Retry-After`, and no answer in time: a smaller page may help. */
function isOfThePage(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return (code === 'source_busy' && thrown instanceof WaybillError && thrown.retryAfterMs === undefined) || code === 'source_unreachable';
}
