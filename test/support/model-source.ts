/**
 * A model of a source at its boundary, small enough to check by reading: a list of records with the
 * time from which each is visible, the answer to a page of a query, and a switch for each
 * unexpected behaviour of a service. It shares no code with the forwarder.
 */
import { WaybillError } from '../../src/errors/errors.ts';
import type { Page, PageRequest, Source } from '../../src/model/source.ts';
import type { Clock, Micros } from '../../src/model/time.ts';
import { readText } from '../../src/record/read.ts';
import { recordText, second } from './records.ts';

export interface Served {
  readonly time: Micros;
  readonly text: string;
  /** Server times at which answers start and stop to include it, µs. */
  readonly visible: Micros;
  readonly gone?: Micros;
}

export interface Switches {
  firstPage: number;
  /** Page numbers of answers minus those of requests. */
  toldShift: number;
  /** The answer to a page number before the first page: 400, or the first page. */
  beforeFirst: 'refused' | 'first';
  /** The largest page, and whether the answer states the reduced size. */
  pageCap: number;
  admitsCap: boolean;
  refuseAbove: number;
  /** A smaller page size gets 400. */
  refuseBelow: number;
  /** A page that ends after more than this many records gets 400. */
  deepest: number;
  /** A query with both times further apart gets 400, or 504 if `slow` is set. */
  widest: Micros;
  slow: boolean;
  /** A query that starts earlier gets 400. */
  oldest: Micros;
  /** A query with times and no match gets 404. */
  emptyIs404: boolean;
  /** Records (by `logId`) that totals count and pages omit. */
  hidden: ReadonlySet<number>;
  /**
   * The page number in answers: the real one (`page`), none (`nothing`), the requested one
   * (`asked`), or always the first (`first`). `stuck`: every answer is the first page.
   */
  echo: 'page' | 'nothing' | 'asked' | 'first' | 'stuck';
  order: 'ascending' | 'ignored' | 'unstable ties';
  /** `cap`: at most `totalCap`; `lagging`: the total of `totalLag` ago; `items`: the number of items on the page. */
  total: 'true' | 'missing' | 'cap' | 'lagging' | 'one more' | 'one less' | 'items' | 'pages';
  totalCap: number;
  /** The most records served for a query, over all its pages. */
  servedMost: number;
  totalLag: Micros;
  lowerBound: 'included' | 'excluded';
  upperBound: 'included' | 'excluded';
  /** The resolution of record times in comparisons; bounds keep theirs. */
  cut: Micros;
  pastEnd: 'empty' | 'last' | '404';
  /** Records (by `logId`) that make every page with them unreadable. */
  unreadable: ReadonlySet<number>;
  /** A page with larger records is unreadable: the client refuses bodies over 16 MiB. */
  bytesMax: number;
  noFilter: boolean;
  /**
   * The time with which the filter compares the bounds of a query, in place of the time of a record: another zone, or whole
   * minutes. A bound is cut as the time is.
   */
  reads: (time: Micros) => Micros;
  cutsBounds: Micros;
  /** False: every order is ascending. */
  sortsDescending: boolean;
  age: number;
}

export class ModelSource implements Source {
  readonly records: Served[] = [];
  readonly requests: PageRequest[] = [];
  readonly switches: Switches = {
    firstPage: 1,
    toldShift: 0,
    beforeFirst: 'refused',
    pageCap: 1000,
    admitsCap: true,
    refuseAbove: Infinity,
    refuseBelow: 1,
    deepest: Infinity,
    widest: Infinity,
    slow: false,
    oldest: -Infinity,
    emptyIs404: false,
    hidden: new Set(),
    echo: 'page',
    order: 'ascending',
    total: 'true',
    totalCap: Infinity,
    servedMost: Infinity,
    totalLag: 0,
    lowerBound: 'included',
    upperBound: 'included',
    cut: 1,
    pastEnd: 'empty',
    unreadable: new Set(),
    bytesMax: 16 * 1024 * 1024,
    noFilter: false,
    reads: (time) => time,
    cutsBounds: 1,
    sortsDescending: true,
    age: 0,
  };
  /** Called before each response; may add records, set switches, or throw the client's errors. */
  before: (request: PageRequest, count: number) => void = () => undefined;
  /** Requests for a fresh token, and the effect of one. */
  renewed = 0;
  renewing: () => void = () => undefined;
  /** Server time minus wall clock, µs. */
  skew: Micros = 0;
  /** Latency of an answer, ms. */
  delay = 0;
  /** The most requests in progress at once. */
  mostAtOnce = 0;
  #atOnce = 0;
  #salt = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): Micros {
    return this.#clock.now() * 1000 + this.skew;
  }

  add(logId: number, time: Micros, visible: Micros = time, more: Readonly<Record<string, unknown>> = {}): void {
    this.records.push({ time, visible, text: recordText(logId, time, more) });
  }

  /** Adds `count` records, one a second from `time` on, visible at once. */
  fill(count: number, time: Micros): void {
    for (let i = 0; i < count; i += 1) this.add(i + 1, time + i * second, 0);
  }

  /** The requests for a total alone. */
  get counts(): number {
    return this.requests.filter((request) => request.pageSize === 1).length;
  }

  async page(request: PageRequest, signal: AbortSignal): Promise<Page> {
    signal.throwIfAborted();
    this.#atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce);
    try {
      if (this.delay > 0) await this.#clock.sleep(this.delay, signal);
      this.requests.push(request);
      this.before(request, this.requests.length);
      return this.#answer(request);
    } finally {
      this.#atOnce -= 1;
    }
  }

  renew(): void {
    this.renewed += 1;
    this.renewing();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing to release.
  }

  /** The matches of a query at server time `now`, in the order of the answers. */
  matching({ query, newestFirst = false }: Pick<PageRequest, 'query' | 'newestFirst'>, now: Micros): Served[] {
    const { cut, lowerBound, upperBound, noFilter, order, reads, cutsBounds, sortsDescending } = this.switches;
    const from = Math.floor(bound(query.startTime, -Infinity) / cutsBounds) * cutsBounds;
    const until = Math.floor(bound(query.endTime, Infinity) / cutsBounds) * cutsBounds;
    const found = this.records.filter(({ time, visible, gone }) => {
      if (visible > now || (gone !== undefined && gone <= now)) return false;
      const at = Math.floor(reads(time) / cut) * cut;
      return noFilter || ((lowerBound === 'included' ? at >= from : at > from) && (upperBound === 'included' ? at <= until : at < until));
    });
    if (order === 'ignored') return found;
    // Unstable ties change their order with every request.
    if (order === 'unstable ties') {
      this.#salt += 1;
      return rotate(found, this.#salt).sort((a, b) => a.time - b.time);
    }
    return found.sort((a, b) => (newestFirst && sortsDescending ? b.time - a.time : a.time - b.time));
  }

  #answer(request: PageRequest): Page {
    const { firstPage, pageCap, admitsCap, refuseAbove, echo, pastEnd, unreadable, bytesMax, age } = this.switches;
    if (request.pageSize > refuseAbove || request.pageSize < this.switches.refuseBelow)
      throw new WaybillError('page_refused', 'cannot read the page: 400 pageSize');
    const now = this.now();
    const [startTime, endTime] = [bound(request.query.startTime, Infinity), bound(request.query.endTime, Infinity)];
    if (Math.min(endTime, now) - startTime > this.switches.widest) {
      if (this.switches.slow) throw new WaybillError('source_busy', 'cannot read the page: 504 took too long');
      throw new WaybillError('page_refused', 'cannot read the page: 400 the period is too long');
    }
    if (startTime < this.switches.oldest) throw new WaybillError('page_refused', 'cannot read the page: 400 too old');
    const all = this.matching(request, now);
    if (all.length === 0 && this.switches.emptyIs404 && request.query.startTime !== undefined)
      throw new WaybillError('page_not_found', 'cannot read the page: 404 no records');
    const matching = all.slice(0, this.switches.servedMost);
    const size = Math.min(request.pageSize, pageCap);
    const pages = Math.max(1, Math.ceil(matching.length / size));
    let index = echo === 'stuck' ? 0 : (request.page ?? firstPage) - firstPage;
    if (index < 0 && this.switches.beforeFirst === 'refused') throw new WaybillError('page_refused', 'cannot read the page: 400 page');
    index = Math.max(0, index);
    if ((index + 1) * size > this.switches.deepest) throw new WaybillError('page_refused', 'cannot read the page: 400 too deep');
    if (index >= pages && pastEnd === '404') throw new WaybillError('page_not_found', 'cannot read the page: 404');
    if (index >= pages && pastEnd === 'last') index = pages - 1;
    const paged = matching.slice(index * size, (index + 1) * size);
    const served = paged.filter(({ text }) => !this.switches.hidden.has(logIdOf(text)));
    for (const { text } of served) {
      const logId = logIdOf(text);
      if (unreadable.has(logId)) throw new WaybillError('page_malformed', `cannot read the page: item ${logId} is cut`);
    }
    if (served.reduce((sum, { text }) => sum + text.length, 0) > bytesMax)
      throw new WaybillError('page_malformed', 'cannot read the page: the body is too large');
    return {
      items: served.map(({ text }) => readText(text)),
      page:
        echo === 'nothing'
          ? undefined
          : echo === 'first'
            ? firstPage
            : echo === 'asked'
              ? request.page
              : index + firstPage + this.switches.toldShift,
      pageSize: admitsCap && echo !== 'nothing' ? size : undefined,
      total: this.#total(request, all.length, now, served.length, size),
      date: now / 1000,
      age,
      received: this.#clock.now() * 1000,
      receivedMonotonic: this.#clock.monotonic(),
    };
  }

  #total(request: PageRequest, count: number, now: Micros, items: number, size: number): number | undefined {
    switch (this.switches.total) {
      case 'true':
        return count;
      case 'missing':
        return undefined;
      case 'cap':
        return Math.min(count, this.switches.totalCap);
      case 'lagging':
        return this.matching(request, now - this.switches.totalLag).length;
      case 'items':
        return items;
      case 'pages':
        return Math.ceil(count / size);
      case 'one more':
        return count + 1;
      case 'one less':
        return Math.max(0, count - 1);
    }
  }
}

function logIdOf(text: string): number {
  return Number(/"logId":(\d+)/.exec(text)?.[1]);
}

function bound(text: string | undefined, none: number): number {
  return text === undefined ? none : Date.parse(`${text}Z`) * 1000;
}

function rotate<Item>(items: readonly Item[], by: number): Item[] {
  const at = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
}
