/**
 * The two logs endpoints: a page of records for a query and the
 * permissions of the caller. Applies the switches for bounds, page size, pages past the end, order,
 * totals, permissions and retention.
 */
import type { ServiceClock } from '../clock.ts';
import { floorDivide } from '../instant.ts';
import type { User } from '../people/users.ts';
import { badParameter, Problem } from '../http/problem.ts';
import { logsQueryOf, type LogsQuery } from './query.ts';
import { below, randomOf, type Random } from '../random.ts';
import { allows } from '../people/roles.ts';
import type { Selection } from './selection.ts';
import type { Order, Shape, Store } from './store.ts';
import type { SwitchValues } from '../switches.ts';

const nanosOfPrecision = { exact: 1n, '10ms': 10_000_000n, '1s': 1_000_000_000n };

export class Logs {
  readonly #clock: ServiceClock;
  readonly #store: Store;
  readonly #values: SwitchValues;
  readonly #ties: Random;
  /** The number of responses, for `pageSizeMaxThen`. */
  answers = 0;

  constructor(clock: ServiceClock, store: Store, values: SwitchValues, seed: string) {
    this.#clock = clock;
    this.#store = store;
    this.#values = values;
    this.#ties = randomOf(`${seed}/ties`);
  }

  /**
   * A page as UTF-8 JSON. `personal`: true for full-payload, false for payload.
   * @throws Problem 403 without the permission, 400 for a parameter, 404 past the end with that
   * switch
   */
  answer(caller: User, personal: boolean, queryText: string): Buffer {
    const rights = this.#rightsOf(caller, personal);
    const query = logsQueryOf(queryText, this.#values.barePlus);
    this.#store.reveal(this.#clock.now());
    const selection = this.#selectionOf(query, rights.ownOf);
    const total = this.#store.count(selection);
    const { size, page, number } = this.#pageOf(query, total);
    const items = Math.min(size, Math.max(0, total - page * size));
    const pagination = { totalRecords: this.#totalOf(selection, total), pageSize: size, itemsInPage: items, page: number };
    const around = [`{"pagination":${JSON.stringify(pagination)},"data":[`, ']}'] as const;
    const answer = this.#store.page(selection, rights.shape, this.#orderOf(query), size, page * size, around);
    this.answers += 1;
    return answer;
  }

  /** All visible records, oldest first, as JSON texts in portions. */
  truth(): Generator<string[]> {
    this.#store.reveal(this.#clock.now());
    return this.#store.all({ from: this.#retained(), until: undefined, equal: {}, ownOf: undefined });
  }

  /** The numbers of visible and pending records. */
  counts(): { visible: number; total: number } {
    this.#store.reveal(this.#clock.now());
    const visible = this.#store.count({ from: this.#retained(), until: undefined, equal: {}, ownOf: undefined });
    return {
      visible,
      total: this.#store.count({ from: undefined, until: undefined, equal: {}, ownOf: undefined }) + this.#store.pendingCount(),
    };
  }

  /**
   * `logs.read`: own records without network data, only on /logs/payload; `logs.read.all`:
   * everything (section 5).
   */
  #rightsOf(caller: User, personal: boolean): { shape: Shape; ownOf: string | undefined } {
    const all = allows(caller.roles, 'logs.read.all');
    const { permissions } = this.#values;
    const allowed = all || (!personal && allows(caller.roles, 'logs.read'));
    if (!allowed || permissions === 'none') {
      throw new Problem(403, `The permission ${personal ? 'logs.read.all' : 'logs.read or logs.read.all'} is required`);
    }
    const fields = permissions !== 'fields';
    return {
      shape: { network: all && fields, personal: personal && fields },
      ownOf: all && permissions !== 'rows' ? undefined : caller.userId,
    };
  }

  #selectionOf(query: LogsQuery, ownOf: string | undefined): Selection {
    const { startBound, endBound, timePrecision } = this.#values;
    const unit = nanosOfPrecision[timePrecision];
    const cut = (instant: bigint): bigint => floorDivide(instant, unit) * unit;
    const start = query.startTime === undefined ? undefined : cut(query.startTime) + (startBound === 'inclusive' ? 0n : unit);
    const end = query.endTime === undefined ? undefined : cut(query.endTime) + (endBound === 'inclusive' ? unit : 0n);
    const retained = this.#retained();
    const from = start !== undefined && retained !== undefined ? (start > retained ? start : retained) : (start ?? retained);
    return { from, until: end, equal: query.filters, ownOf };
  }

  #retained(): bigint | undefined {
    const { retention } = this.#values;
    return retention === 'off' ? undefined : BigInt(Math.floor(this.#clock.now() - retention)) * 1_000_000n;
  }

  /** The size of the page, its index from 0, and its number as the service counts. */
  #pageOf(query: LogsQuery, total: number): { size: number; page: number; number: number } {
    const { firstPage, pagePast, pageSizeAbove, pageSizeMaxThen } = this.#values;
    const max = pageSizeMaxThen !== 'off' && this.answers >= pageSizeMaxThen.answers ? pageSizeMaxThen.max : this.#values.pageSizeMax;
    if (query.pageSize > max && pageSizeAbove === 'refused') throw badParameter('pageSize', `must not be more than ${max}`);
    const size = Math.min(query.pageSize, max);
    const asked = (query.page ?? firstPage) - firstPage;
    if (asked < 0) throw badParameter('page', `must be a whole number of at least ${firstPage}`);
    const last = Math.max(0, Math.ceil(total / size) - 1);
    if (asked > last && pagePast === '404')
      throw new Problem(404, `The page ${asked + firstPage} does not exist; the last is ${last + firstPage}`);
    const shown = asked > last && pagePast === 'last' ? last : asked;
    // All pages past the end are alike; the limit keeps the offset within the range of SQLite.
    return { size, page: Math.min(shown, last + 1), number: shown + firstPage };
  }

  #orderOf(query: LogsQuery): Order {
    const { sort } = this.#values;
    if (sort === 'ignored') return { by: 'arrival', descending: false, tiesBy: undefined };
    return { ...query.sort, tiesBy: sort === 'unstable-ties' ? 2 * below(this.#ties, 500_000) + 1 : undefined };
  }

  #totalOf(selection: Selection, total: number): number | string | undefined {
    const values = this.#values;
    switch (values.total) {
      case 'missing':
        return undefined;
      case 'capped':
        return Math.min(total, values.totalCap);
      case 'lagging':
        return this.#store.count(selection, this.#clock.now() - values.totalLag);
      case 'text':
        return String(total);
      case 'right':
        return total;
    }
  }
}
