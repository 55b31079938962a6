/**
 * Repeats a request to a source until a usable answer comes. A source that cannot be reached makes no gap: the request waits. What repeating cannot
 * help (a page that is never readable, a page size that is refused) is for the caller.
 */
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { CollectedRecord } from '../model/journal.ts';
import type { JsonValue } from '../model/record.ts';
import type { Page, PageRequest, ServerClock, Source } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { scanFields } from '../record/field-scan.ts';
import { objectOf, parseRecord } from '../record/json.ts';
import { timeOfRecord } from '../record/time-of.ts';
import type { Handoff } from './handoff.ts';
import { freshAttempts, waitsFor } from './suspension.ts';
import type { Suspensions, Waits } from './suspension.ts';

/** A page whose records have been read: identity and time of each. */
export interface Answer {
  /** What was asked, to be asked again. */
  readonly request: PageRequest;
  readonly records: readonly CollectedRecord[];
  readonly page: number | undefined;
  readonly pageSize: number | undefined;
  readonly total: number | undefined;
  readonly received: Micros;
  /** Server time when it was taken. */
  readonly serverNow: Micros;
}

/** The health of the connection to a source, for status and probes. */
export interface SourceHealth {
  /** The last failure, in words, until an answer comes. */
  trouble: { readonly code: ErrorCode | undefined; readonly message: string; readonly since: Micros } | undefined;
  lastSuccess: Micros | undefined;
  lastError: string | undefined;
  requests: number;
}

const backoffFirstMs = 250;
const maxBackoffMs = 60_000;
/** How often a page that cannot be read is asked for before the question is given back. */
const malformedAttempts = 3;
const cachedMs = 1_000;
/** Page sizes for a question whose records are not wanted: some services refuse very small ones. */
const minSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
/** A count that is refused so often is told apart from a service that refuses everything. */
const maxRefusals = 3;
/** A question that failed so often while so many others were answered is given back: it may be too much for a service to put together. */
interface RetryPolicy {
  readonly failures: number;
  readonly others: number;
}

const usual: RetryPolicy = { failures: 8, others: 3 };
/** Where less can be asked for instead. */
export const attemptsWhereSmallerWorks: RetryPolicy = { failures: 4, others: 2 };
/** For a question that only tells others apart. */
const brief: RetryPolicy = { failures: 2, others: 1 };
/** While nothing else is asked the plainest question stands in for the others, after so many failures again. */
const plainEvery = 4;
const settleUsualMs = 900_000;
const textDecoder = new TextDecoder('utf-8');

/** A record of a page. Its text is made when somebody asks: what is stored are its bytes. */
class ReceivedRecord implements CollectedRecord {
  readonly bytes: Uint8Array;
  readonly uid: string;
  readonly time: Micros | undefined;
  readonly isObject: boolean;

  constructor(bytes: Uint8Array, uid: string, time: Micros | undefined, isObject: boolean) {
    this.bytes = bytes;
    this.uid = uid;
    this.time = time;
    this.isObject = isObject;
  }

  get text(): string {
    return textOf(this.bytes);
  }
}

function textOf(bytes: Uint8Array): string {
  return textDecoder.decode(bytes);
}

export class Requester {
  readonly health: SourceHealth = { trouble: undefined, lastSuccess: undefined, lastError: undefined, requests: 0 };
  readonly #source: Source;
  readonly #sourceId: string;
  readonly #uidOf: (value: JsonValue, text: () => string) => string;
  readonly #serverClock: ServerClock;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Log;
  readonly #handoff: Pick<Handoff, 'offer'> | undefined;
  readonly #suspensions: Suspensions | undefined;
  readonly #waits: Waits;
  /** Questions that are refused although fresh tokens were tried: the suspension ends when the last of them is answered. */
  #refusals = 0;
  /** Answers that counted, of all questions. */
  #answers = 0;
  /** The least page size that is known to be granted. */
  #least = 1;

  constructor(parts: {
    source: Source;
    sourceId: string;
    uidOf: (value: JsonValue, text: () => string) => string;
    serverClock: ServerClock;
    clock: Clock;
    random: Random;
    log: Log;
    /** Control is handed back after each wait for an answer that has not come yet. */
    handoff?: Pick<Handoff, 'offer'>;
    /** Told when the right to read is missing. */
    suspensions?: Suspensions;
    waits?: Waits;
  }) {
    this.#source = parts.source;
    this.#sourceId = parts.sourceId;
    this.#uidOf = parts.uidOf;
    this.#serverClock = parts.serverClock;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#log = parts.log;
    this.#handoff = parts.handoff;
    this.#suspensions = parts.suspensions;
    this.#waits = parts.waits ?? waitsFor(settleUsualMs);
  }

  /**
   * Asks until a well-formed answer comes that is not cached, and reads its records.
   * @throws WaybillError `page_malformed` (three times unreadable), `page_refused`, `page_not_found`; or the signal's reason
   */
  async ask(request: PageRequest, signal: AbortSignal, retryPolicy?: RetryPolicy): Promise<Answer> {
    return this.#repeat(request, (page) => this.#read(request, page), signal, retryPolicy);
  }

  /** Whether a question is answered, with whatever, and not refused; of the least page unless a size is given. What would be waited for is waited for. */
  async isAnswered(request: Omit<PageRequest, 'pageSize'> & { readonly pageSize?: number }, signal: AbortSignal): Promise<boolean> {
    try {
      await this.ask({ pageSize: this.#least, ...request }, signal, brief);
      return true;
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === 'page_refused' || code === 'page_not_found') return false;
      if (code === 'page_malformed') return !isUnanswered(thrown);
      throw thrown;
    }
  }

  /** The same for calibration, which wants the page as it is. */
  async page(request: PageRequest, signal: AbortSignal): Promise<Page> {
    return this.#repeat(
      request,
      (page) => {
        this.#observe(page, undefined);
        return page;
      },
      signal,
    );
  }

  /**
   * The total that the service counts for a query; undefined when it gives none that is usable, its answer cannot be read, or it refuses this
   * query while it answers others. What would end a pass is waited for.
   */
  async count(
    query: PageRequest['query'],
    page: number | undefined,
    signal: AbortSignal,
  ): Promise<{ total: number | undefined; serverNow: Micros | undefined }> {
    const none = { total: undefined, serverNow: undefined };
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#small(query, page, signal);
      } catch (thrown) {
        const code = codeOf(thrown);
        if (code === 'page_malformed') return none;
        // mutant: count-failure
        if (code !== 'page_refused' && code !== 'page_not_found') throw thrown;
        if (failures >= maxRefusals && (await this.isOfTheQuery(query, signal))) return none;
        await this.wait(thrown, failures, signal);
      }
    }
  }

  /**
   * Whether a refusal is a matter of the query: the question without times is answered. A refusal of that one cannot be told from a service that
   * refuses everything.
   */
  async isOfTheQuery(query: PageRequest['query'], signal: AbortSignal): Promise<boolean> {
    if (query.startTime === undefined && query.endTime === undefined) return false;
    try {
      await this.#small({}, undefined, signal);
      return true;
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === 'page_refused' || code === 'page_not_found') return false;
      if (code === 'page_malformed') return true;
      throw thrown;
    }
  }

  /** Asks with the least page size that the service grants. */
  async #small(query: PageRequest['query'], page: number | undefined, signal: AbortSignal): Promise<Answer> {
    let refused: unknown;
    for (const pageSize of minSizes) {
      if (pageSize < this.#least) continue;
      try {
        const answer = await this.ask({ query, page, pageSize }, signal);
        this.#least = pageSize;
        return answer;
      } catch (thrown) {
        if (codeOf(thrown) !== 'page_refused') throw thrown;
        refused ??= thrown;
      }
    }
    this.#least = 1;
    throw refused;
  }

  /** Says what went wrong, and waits: as long as the other side asked, else with full jitter, longer each time. */
  async wait(thrown: unknown, failures: number, signal: AbortSignal, ms?: number): Promise<void> {
    this.#failed(thrown);
    const asked = ms ?? (thrown instanceof WaybillError ? thrown.retryAfterMs : undefined);
    const most = Math.min(maxBackoffMs, backoffFirstMs * 2 ** Math.min(failures, 10));
    const waitMs = asked ?? Math.max(50, this.#random() * most);
    const fields = { source: this.#sourceId, code: codeOf(thrown), retryInMs: Math.round(waitMs), error: thrown };
    // A person must replace what is refused; a server that rotates its secrets may take a moment to accept the new one.
    if (codeOf(thrown) === 'token_refused') {
      if (failures < 3) this.#log.write('source.token_retried', fields);
      else this.#log.write('source.token_refused', fields);
    } else if (failures < 3) this.#log.write('source.request_retried', fields);
    else this.#log.write('source.request_failing', fields);
    await this.#clock.sleep(waitMs, signal);
  }

  async #repeat<Result>(
    request: PageRequest,
    read: (page: Page) => Result,
    signal: AbortSignal,
    retryPolicy: RetryPolicy = usual,
  ): Promise<Result> {
    let malformed = 0;
    let forbidden = 0;
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
        if (code === undefined || code === 'page_not_found' || code === 'page_refused') throw thrown;
        if (code === 'page_malformed' && (malformed += 1) >= malformedAttempts) {
          this.#failed(thrown);
          throw thrown;
        }
        const isEnough = (): boolean => this.#answers - answersBefore >= retryPolicy.others;
        if (
          failures + 1 >= retryPolicy.failures &&
          isOfThePage(thrown) &&
          (isEnough() || (await this.#isPlainAnswered(request, failures, signal)))
        ) {
          this.#failed(thrown);
          // Not the way is broken but this question: a smaller page may be answered.
          throw new WaybillError('page_malformed', `${messageOf(thrown)}; other questions are answered meanwhile`, { cause: thrown });
        }
        if (code === 'source_forbidden') await this.wait(thrown, failures, signal, await this.#refused((forbidden += 1), thrown));
        else await this.wait(thrown, failures, signal);
        await this.#handoff?.offer();
      }
    } finally {
      if (forbidden > freshAttempts) await this.#granted(signal);
    }
  }

  /** Whether the question without times is answered while another fails and nothing else is asked; now and then. */
  async #isPlainAnswered({ query }: PageRequest, failures: number, signal: AbortSignal): Promise<boolean> {
    if ((failures + 1) % plainEvery !== 0 || (query.startTime === undefined && query.endTime === undefined)) return false;
    this.health.requests += 1;
    try {
      return (await this.#source.page({ query: {}, page: undefined, pageSize: this.#least }, signal)).age === 0;
    } catch {
      signal.throwIfAborted();
      // It fails too: the way is broken, and the question waits.
      return false;
    }
  }

  /** The right to read is missing: a fresh token is tried three times in a minute, and then once a minute while suspended. Returns how long to wait, ms. */
  async #refused(times: number, thrown: unknown): Promise<number> {
    this.#source.renew?.();
    if (times <= freshAttempts) return this.#waits.fresh;
    if (times === freshAttempts + 1) {
      this.#refusals += 1;
      await this.#suspensions?.begin({ reason: 'forbidden', message: messageOf(thrown) });
    }
    return this.#waits.test;
  }

  /** The question was answered, or is given up. */
  async #granted(signal: AbortSignal): Promise<void> {
    this.#refusals -= 1;
    if (this.#refusals === 0 && !signal.aborted) await this.#suspensions?.end('forbidden');
  }

  #succeeded(): void {
    this.#answers += 1;
    if (this.health.trouble) this.#log.write('source.recovered', { source: this.#sourceId, after: this.health.trouble.code });
    this.health.trouble = undefined;
    this.health.lastSuccess = this.#clock.now() * 1000;
  }

  #failed(thrown: unknown): void {
    const message = messageOf(thrown);
    this.health.lastError = message;
    const since = this.health.trouble?.since ?? this.#clock.now() * 1000;
    this.health.trouble = { code: codeOf(thrown), message, since };
  }

  /** Each item is parsed alone: what is odd about it is one odd record. What is not JSON at all makes the page unreadable. */
  #read(request: PageRequest, page: Page): Answer {
    let newest: Micros | undefined;
    const records = page.items.map((bytes, i): CollectedRecord => {
      try {
        // Identity and time need five fields; text and whole value are made where they are used, by each sink.
        const text = (): string => textOf(bytes);
        const value = scanFields(bytes) ?? parseRecord(text());
        const time = timeOfRecord(value);
        if (time !== undefined && (newest === undefined || time > newest)) newest = time;
        return new ReceivedRecord(bytes, this.#uidOf(value, text), time, objectOf(value) !== undefined);
      } catch (cause) {
        // The message of JSON.parse quotes the record.
        const message = cause instanceof SyntaxError ? 'expected JSON' : messageOf(cause);
        throw new WaybillError('page_malformed', `cannot read record ${i + 1} of a page of "${this.#sourceId}": ${message}`);
      }
    });
    this.#observe(page, newest);
    const { page: number, pageSize, total, received } = page;
    return { request, records, page: number, pageSize, total, received, serverNow: this.#serverClock.now() ?? received };
  }

  #observe(page: Page, newest: Micros | undefined): void {
    // mutant: cached-answer
    if (this.#serverClock.observe(page, newest) === 'accepted') return;
    throw new WaybillError('source_busy', `answer of "${this.#sourceId}" is cached: it is older than an answer before it`, {
      // Not longer each time: so many that agree with each other have the bound built anew.
      retryAfterMs: cachedMs,
    });
  }
}

/** Whether a question was given back because it failed while others were answered, and not for what an answer held. */
export function isUnanswered(thrown: unknown): boolean {
  return codeOf(thrown) === 'page_malformed' && thrown instanceof Error && isOfThePage(thrown.cause);
}

/** 5xx without a time to come back, and answers that do not come in time: what a smaller page may mend. */
function isOfThePage(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return (code === 'source_busy' && thrown instanceof WaybillError && thrown.retryAfterMs === undefined) || code === 'source_unreachable';
}
