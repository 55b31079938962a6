/**
 * A model of the service, small enough to check by reading: the list of records with the time from
 * which each is visible, the answer to a page of a query at this moment, and a switch for each way
 * to count, page, truncate or fail. It knows nothing of the program but the boundary.
 */
import { WaybillError } from '../../src/errors/errors.ts';
import type { Page, PageRequest } from '../../src/model/source.ts';
import type { Micros } from '../../src/model/time.ts';
import { readRecord } from '../../src/record/read.ts';
import { Chance } from './chance.ts';
import { probability } from './environment.ts';
import type { Environment } from './environment.ts';
import type { Sometimes } from './sometimes.ts';
import type { Truth } from './truth.ts';
import type { World } from './world.ts';

/** Data about requests that the oracle needs. */
interface Asked {
  /** The records in the last honest count of each query, by query text. */
  readonly counted: Map<string, readonly Truth[]>;
  /** Queries whose matching records changed between two pages. */
  readonly drifted: Set<string>;
  /** Queries answered with a total below the real one. */
  readonly lagged: Set<string>;
  /**
   * The number of matching records, by the text of each query whose last total was cut at a cap:
   * such a total proves nothing.
   */
  readonly capped: Map<string, number>;
  /**
   * The records that the current poll must return, as it began: `polledUntil` may not move before.
   * Undefined if unknown.
   */
  livePoll: readonly Truth[] | undefined;
  /**
   * Queries counted although the last page was full and more records followed, with a message: the
   * pass would prove a window without them.
   */
  readonly unread: Map<string, string>;
}

export class Service {
  readonly truths: readonly Truth[];
  readonly asked: Asked = {
    counted: new Map(),
    drifted: new Set(),
    lagged: new Set(),
    capped: new Map(),
    livePoll: undefined,
    unread: new Map(),
  };
  requests = 0;
  /** The permissions have shrunk: a field is in no record, or no record is shown. */
  isShrunk = false;
  /** The last page had records, but none with the field. */
  #wasWithoutField = false;
  /** Faults have ended: every answer is correct from now on. */
  isCalm = false;
  /** No request is answered from now on. */
  isSilent = false;
  readonly #world: World;
  readonly #environment: Environment;
  readonly #chance: Chance;
  readonly #sometimes: Sometimes;
  #pageCap: number;
  #outageUntil = 0;
  #gateway: { readonly untilMs: number; readonly failure: WaybillError } | undefined;
  readonly #gatewayChance: Chance;
  /** Consecutive answers with a date in the future. */
  #ahead = 0;
  #salt = 0;
  /** Records that totals count and pages omit until faults end. */
  readonly #hidden: ReadonlySet<Truth>;
  /**
   * The query in progress, the number of records that matched at its last page, the last page
   * itself, and whether more records follow.
   */
  #under: { query: string; matching: number; page: number; isMore: boolean; items: readonly Truth[] } | undefined;
  /** The query and number of the last page that lacked a field. */
  #lacking = '';

  constructor(world: World, environment: Environment, truths: readonly Truth[], sometimes: Sometimes) {
    this.#world = world;
    this.#environment = environment;
    this.#chance = new Chance(environment.seed, 'service');
    this.#gatewayChance = new Chance(environment.seed, 'refusing gateway');
    this.#sometimes = sometimes;
    this.#pageCap = environment.service.pageCap;
    this.truths = [...truths].sort((a, b) => a.at - b.at);
    const hides = new Chance(environment.seed, 'hidden rows');
    const share = probability(environment.service.hidden, 0.02, 0.1);
    this.#hidden = new Set(this.truths.filter(({ always }) => hides.is(share) && !always));
  }

  get firstPage(): number {
    return this.#environment.service.firstPage;
  }

  /** True while no name server answers for the host of the service. */
  get hasDeadName(): boolean {
    return !this.isCalm && this.#environment.service.hasDeadName;
  }

  /** ms until a look-up of the name ends without an answer. */
  deadNameMs(): number {
    return this.#chance.between(5_000, 60_000);
  }

  /** ms until the answer to a request arrives. */
  latency(): number {
    return this.#chance.distance(Math.min(this.#environment.service.latencyMs, this.isCalm ? 200 : Infinity));
  }

  /**
   * The answer at this moment, or the error that the client would throw. `received`: wall clock in
   * µs, monotonic clock in ms. `isFormer`: the client has lost its journal, so the oracle need not know of this request.
   */
  answer(request: PageRequest, received: Micros, receivedMonotonic: number, isFormer = false): Page {
    this.requests += 1;
    if (!this.isCalm) this.#fail(request);
    const { service } = this.#environment;
    const { query, pageSize } = request;
    if (!this.isCalm && service.refusedForm === formOf(query)) {
      this.#sometimes.count('query form refused');
      throw new WaybillError('page_refused', '400: the gateway refuses this query');
    }
    if (pageSize > service.refuseAbove) throw new WaybillError('page_refused', '400: pageSize is too large');
    if (widthOf(query) > service.widestMicros) {
      this.#sometimes.count('window too wide for the service');
      throw new WaybillError('page_refused', '400: the period is too long');
    }
    const age = !this.isCalm && this.#chance.is(probability(service.cached, 0.01, 0.08)) ? this.#chance.whole(1, 30) : 0;
    // A cached answer shows an earlier moment.
    const now = this.#world.now - age * 1_000_000;
    const isSamePass = !isFormer && this.#under?.query === JSON.stringify(query);
    if (query.endTime !== undefined && pageSize > 1 && isSamePass) this.#surprise(query, now);
    const matching = this.matching(query, now);
    const served = this.#lies('served') ? matching.slice(0, service.totalCap) : matching;
    if (!this.isCalm && this.#chance.is(probability(service.capChanges, 0.02, 0.1))) this.#changeCap();
    const size = Math.min(pageSize, this.#pageCap);
    const pages = Math.max(1, Math.ceil(served.length / size));
    let index = (request.page ?? service.firstPage) - service.firstPage;
    if (index < 0 && service.beforeFirst === 'refused') throw new WaybillError('page_refused', '400: page');
    if (index < 0 && service.beforeFirst === 'first') index = 0;
    if (index >= pages && service.pastEnd === '404') {
      if (age > 0) throw new WaybillError('source_busy', '404: the response is cached', { retryAfterMs: 1_000 });
      throw new WaybillError('page_not_found', '404: no such page');
    }
    if (index >= pages && service.pastEnd === 'last') index = pages - 1;
    const items = served.slice(index * size, (index + 1) * size).filter((truth) => !this.isHidden(truth));
    const total = this.#total(query, matching, now, items.length);
    if (this.isOffZone && matching.length > 0) this.#sometimes.count('records found by the times of another zone');
    const date = this.#date();
    const lacksField = this.isShrunk && this.#environment.rights === 'fields';
    if (age === 0 && !isFormer) this.#remember(request, matching, served, items, index, size, total, lacksField);
    // An earlier moment may have fewer pages: without a `Date` the program takes that for the end.
    else if (isSamePass && this.#under && pageSize > 1) this.#under = { ...this.#under, isMore: false };
    if (!isFormer) this.#countReferenceRecord(request, items);
    if (lacksField && this.#environment.returns && pageSize > 1 && items.some(({ poor }) => poor !== undefined)) {
      this.isShrunk = false;
      this.#world.note('rights are restored behind a page');
    }
    const hasNumbers = service.empties === 'page' || matching.length > 0;
    return {
      items: items.map(({ bytes, poor }) => readRecord(lacksField ? (poor ?? bytes) : bytes)),
      page: hasNumbers ? this.#numberOf(request, index) : undefined,
      pageSize: service.admitsCap && hasNumbers ? size : undefined,
      total,
      date,
      age,
      received,
      receivedMonotonic,
    };
  }

  /** The page number that an answer states. */
  #numberOf({ page }: PageRequest, index: number): number {
    const { firstPage, numbers } = this.#environment.service;
    if (numbers === 'asked') return page ?? firstPage;
    if (numbers === 'shifted') return index + 1 - firstPage;
    return numbers === 'first' ? firstPage : index + firstPage;
  }

  /** The client has gone: no pass continues. */
  forget(): void {
    this.#under = undefined;
    this.#lacking = '';
    this.asked.livePoll = undefined;
  }

  /** True if totals count a record and no page shows it. */
  isHidden(truth: Truth): boolean {
    return !this.isCalm && this.#hidden.has(truth);
  }

  /** True if one of the records was hidden until faults ended. */
  wasHidden(truths: readonly Truth[]): boolean {
    return truths.some((truth) => this.#hidden.has(truth));
  }

  /** True while the filter reads the times of queries in another zone. */
  get isOffZone(): boolean {
    const { service, beginMs } = this.#environment;
    return !this.isCalm && service.zone !== undefined && this.#world.ms >= beginMs + service.zone.fromMs;
  }

  /** The records that match a query at a moment, in the order of the answers. */
  matching(
    query: PageRequest['query'],
    now: Micros,
    offset = this.isOffZone ? (this.#environment.service.zone?.offsetMicros ?? 0) : 0,
  ): Truth[] {
    const { lowerBound, upperBound, cutMicros, order } = this.#environment.service;
    if (this.#hidesRows) return [];
    const from = boundOf(query.startTime, -Infinity);
    const until = boundOf(query.endTime, Infinity);
    const found = this.truths.filter(({ at, visible, gone, always }) => {
      if (visible > now || gone <= now) return false;
      if (always) return true;
      const cut = (cutMicros === 1 ? at : Math.floor(at / cutMicros) * cutMicros) + offset;
      return (lowerBound === 'included' ? cut >= from : cut > from) && (upperBound === 'included' ? cut <= until : cut < until);
    });
    if (this.isCalm || order === 'ascending') return found;
    if (order === 'ignored') return found.sort((a, b) => a.index - b.index);
    this.#salt += 1;
    const salt = this.#salt;
    return found.sort((a, b) => a.at - b.at || ((a.index * 7919 + salt * 104_729) % 1_009) - ((b.index * 7919 + salt * 104_729) % 1_009));
  }

  /** Between two pages of a window, more of its records become visible. */
  #surprise(query: PageRequest['query'], now: Micros): void {
    const from = boundOf(query.startTime, -Infinity);
    const until = boundOf(query.endTime, Infinity);
    for (const truth of this.truths) {
      if (truth.isSurprise && truth.visible > now && truth.at >= from && truth.at <= until && truth.at <= now && this.#chance.is(0.5))
        truth.visible = now;
    }
  }

  /** Deletes the records of a range, at a moment without a request in progress. */
  purge(from: Micros, until: Micros): void {
    const { now } = this.#world;
    this.#world.note(`deleted from ${from} until ${until}`);
    for (const truth of this.truths)
      if (from <= truth.at && truth.at < until && truth.visible <= now) truth.gone = Math.min(truth.gone, now);
  }

  /**
   * After a page of records that lack the field by nature, the daemon reads a reference record: a
   * query of one second, padded by a second on both sides.
   */
  #countReferenceRecord({ query, pageSize }: PageRequest, items: readonly Truth[]): void {
    if (this.#environment.rights !== 'fields' || this.isShrunk || pageSize === 1) return;
    const isReferenceRecord = boundOf(query.endTime, Infinity) - boundOf(query.startTime, 0) === 3_000_000;
    if (this.#wasWithoutField && isReferenceRecord && items.some(({ poor }) => poor !== undefined))
      this.#sometimes.count('reference record still shown');
    this.#wasWithoutField = items.length > 0 && items.every(({ poor }) => poor === undefined);
  }

  get #hidesRows(): boolean {
    return this.isShrunk && this.#environment.rights === 'rows';
  }

  #lies(how: Environment['service']['total']): boolean {
    return !this.isCalm && this.#environment.service.total === how;
  }

  #total(query: PageRequest['query'], matching: readonly Truth[], now: Micros, items: number): number | undefined {
    const { totalCap, totalLagMs } = this.#environment.service;
    if (this.#lies('missing')) return undefined;
    if (this.#lies('items')) {
      if (items < matching.length) this.#sometimes.count('total of the page only');
      return items;
    }
    if (this.#lies('capped') || this.#lies('served')) return Math.min(matching.length, totalCap);
    if (this.#lies('lagging')) return this.matching(query, now - totalLagMs * 1_000).length;
    return matching.length;
  }

  /**
   * A `Date` has whole seconds. One of four nodes has the wrong clock. With a local clock that is
   * ahead, it is one of two: then several consecutive responses come from it, and a window can be
   * read too early.
   */
  #date(): number | undefined {
    const { dates, nodeOffMs } = this.#environment.service;
    const nodes = this.#environment.machine.aheadMs > 0 ? 2 : 4;
    // Without `Date` headers, only the newest record shows the time of the service.
    if (dates === 'none' && !this.isCalm) return undefined;
    const isWrong = !this.isCalm && dates !== 'right' && this.#chance.is(1 / nodes);
    const off = isWrong ? (dates === 'a node ahead' ? nodeOffMs : -nodeOffMs) : this.#leadMs();
    return Math.floor((this.#world.ms + off) / 1_000) * 1_000;
  }

  /** The offset of the whole service's clock at this moment. */
  #leadMs(): number {
    const { service, beginMs } = this.#environment;
    if (service.lead === undefined) return 0;
    const { ms, fromMs, untilMs } = service.lead;
    const isAhead = !this.isCalm && this.#world.ms >= beginMs + fromMs && this.#world.ms < beginMs + untilMs;
    // After this many equal answers the daemon believes the wrong date.
    if (!isAhead && this.#ahead >= believed) this.#sometimes.count('clock of the service ahead, then corrected');
    this.#ahead = isAhead ? this.#ahead + 1 : 0;
    return isAhead ? ms : 0;
  }

  #fail({ query, page }: PageRequest): void {
    const { transport, unauthorized, outages, firstPage } = this.#environment.service;
    const chance = this.#chance;
    this.#passGateway();
    if (this.#world.ms < this.#outageUntil) throw new WaybillError('source_unreachable', 'connect ECONNREFUSED');
    if (chance.is(probability(outages, 0.001, 0.006))) {
      this.#outageUntil = this.#world.ms + chance.distance(20_000);
      throw new WaybillError('source_unreachable', 'read ECONNRESET');
    }
    if (chance.is(probability(unauthorized, 0.01, 0.06))) {
      if (query.endTime !== undefined && (page ?? firstPage) > firstPage) this.#sometimes.count('401 half-way through a window');
      throw new WaybillError('source_unauthorized', '401');
    }
    if (!chance.is(probability(transport, 0.01, 0.08))) return;
    switch (chance.whole(0, 5)) {
      case 0:
        throw new WaybillError('source_unreachable', 'read ECONNRESET');
      case 1:
        throw new WaybillError('source_busy', '429', { retryAfterMs: chance.whole(1, 8) * 1_000 });
      case 2:
        throw new WaybillError('source_busy', '503');
      case 3:
        throw new WaybillError('source_forbidden', '403');
      default:
        // Truncated, or an HTML page.
        throw new WaybillError('page_malformed', 'expected JSON');
    }
  }

  #passGateway(): void {
    const chance = this.#gatewayChance;
    if (this.#gateway === undefined && chance.is(probability(this.#environment.service.gateway, 0.001, 0.006))) {
      const code = chance.pick(['page_refused', 'page_not_found', 'page_malformed'] as const);
      this.#gateway = { untilMs: this.#world.ms + chance.distance(20_000), failure: new WaybillError(code, 'the gateway refuses') };
      this.#sometimes.count('every request refused by a gateway');
    }
    if (this.#gateway && this.#world.ms < this.#gateway.untilMs) throw this.#gateway.failure;
    this.#gateway = undefined;
  }

  /**
   * If totals are true, pages keep their size and the order is honoured, only an error of the
   * program can make a poll miss a record.
   */
  #rememberLivePoll(matching: readonly Truth[], index: number): void {
    const { total, order, capChanges, pastEnd } = this.#environment.service;
    const isSound = this.#hidden.size === 0 && total === 'true' && order === 'ascending' && capChanges === 'off' && pastEnd !== 'last';
    if (index === 0 && this.asked.livePoll === undefined && isSound && matching.length < 20 * 7) this.asked.livePoll = matching;
  }

  #changeCap(): void {
    if (this.#under && this.#under.page > 0) this.#sometimes.count('cap changed half-way');
    this.#pageCap = this.#chance.pick([7, 9, 10, 20, 50]);
  }

  #remember(
    { query, pageSize }: PageRequest,
    matching: readonly Truth[],
    served: readonly Truth[],
    items: readonly Truth[],
    index: number,
    size: number,
    total: number | undefined,
    lacksField: boolean,
  ): void {
    const text = JSON.stringify(query);
    if (query.endTime === undefined) {
      // A query for all times since 1970 is no poll: it is counted.
      if (query.startTime !== undefined && !query.startTime.startsWith('1970-')) this.#rememberLivePoll(matching, index);
      return;
    }
    if (total !== undefined && total < matching.length) this.asked.lagged.add(text);
    const under = this.#under;
    if (under?.query === text && under.matching !== matching.length) this.asked.drifted.add(text);
    if (pageSize === 1) {
      // While rows are hidden, the pages after this one are empty. A query of one second may have been a search, which ends at its record.
      const isSecond = widthOf(query) === 3_000_000;
      if (under?.query === text && under.isMore && !isSecond && !this.#hidesRows)
        this.asked.unread.set(text, `page ${under.page} of ${text} was full, and none after it was asked for`);
      else this.asked.unread.delete(text);
      this.#under = undefined;
      const isCut = (this.#lies('capped') || this.#lies('served')) && total !== undefined && total < matching.length;
      if (isCut) this.#sometimes.count('window counted up to a cap');
      if (isCut) this.asked.capped.set(text, matching.length);
      else this.asked.capped.delete(text);
      if (matching.some((truth) => this.isHidden(truth))) this.#sometimes.count('window with a row counted but not shown');
      // A false total proves nothing, and the theorem does not apply to it.
      // With another zone the records of these times are others than the counted ones.
      if (total === matching.length && served.length === matching.length)
        this.asked.counted.set(text, this.isOffZone ? this.matching(query, this.#world.now, 0) : matching);
      else this.asked.counted.delete(text);
      return;
    }
    // A page with the same records as the page before it also ends a pass: in the meantime, a page of new
    // records became visible before them.
    const isSame = under?.query === text && under.items.length === items.length && under.items.every((item, i) => item === items[i]);
    // The program requests a page again that lacked a field. If it has the field now, the program gives the
    // pass up, and may begin the next one with a count.
    const page = `${text} ${index}`;
    const isGivenUp = !lacksField && this.#lacking === page;
    if (lacksField) this.#lacking = page;
    else if (isGivenUp) this.#lacking = '';
    this.#under = {
      query: text,
      matching: matching.length,
      page: index,
      isMore: items.length === pageSize && served.length > (index + 1) * size && !isSame && !isGivenUp,
      items,
    };
    const [last, next] = [items.at(-1), served[(index + 1) * size]];
    if (items.length === size && last && next && last.at === next.at) this.#sometimes.count('tie across a page boundary');
    if (items.length > 0 && index === 0 && matching.length % size === 0) this.#sometimes.count('total a multiple of the page size');
  }
}

/** Twice the number of answers from which the program estimates the time of the service. */
const believed = 40;
const bounds = new Map<string, number>();

function formOf({ startTime, endTime }: PageRequest['query']): Environment['service']['refusedForm'] {
  if (startTime === undefined) return 'no times';
  return endTime === undefined ? 'start' : 'both times';
}

function widthOf({ startTime, endTime }: PageRequest['query']): Micros {
  return startTime === undefined || endTime === undefined ? 0 : boundOf(endTime, 0) - boundOf(startTime, 0);
}

function boundOf(text: string | undefined, none: number): number {
  if (text === undefined) return none;
  let at = bounds.get(text);
  if (at === undefined) {
    if (bounds.size > 50_000) bounds.clear();
    at = Date.parse(`${text}Z`) * 1_000;
    bounds.set(text, at);
  }
  return at;
}
