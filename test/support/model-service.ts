/**
 * A model of the polled service, small enough to check by reading: a list of records with the time
 * from which each is visible, and the answer to a query (specification 2.6, 4.6). It contains no
 * HTTP; `model-service-server.ts` serves it.
 */

interface ModelRecord {
  /** `logTimestamp`: UTC without offset. */
  readonly time: string;
  /** ms since 1970; from then on answers include it. */
  readonly visibleAt: number;
  /** The record in the answer, one JSON value. */
  readonly text: string;
}

export interface ModelLimits {
  readonly firstPage: number;
  readonly pageSizeDefault: number;
  /** The largest page size; the service reduces a larger one, or refuses it with 400. */
  readonly pageSizeMax: number;
  readonly refuseGreater: boolean;
}

export interface ModelAnswer {
  readonly status: number;
  readonly body: string;
}

export class ModelService {
  readonly records: ModelRecord[] = [];
  readonly limits: ModelLimits;

  constructor(limits: Partial<ModelLimits> = {}) {
    this.limits = { firstPage: 1, pageSizeDefault: 100, pageSizeMax: 1000, refuseGreater: false, ...limits };
  }

  /** Adds `count` records, one a second from `time` on, visible at once. */
  fill(count: number, time: number): void {
    for (let index = 0; index < count; index += 1) {
      const at = new Date(time + index * 1000).toISOString().slice(0, -1);
      this.records.push({
        time: at,
        visibleAt: 0,
        text: JSON.stringify({ logId: index + 1, logTimestamp: at, actionAttempted: 'Decrypt' }),
      });
    }
  }

  /** The records visible at `now` within the bounds, both included, ascending. */
  matching(now: number, startTime: string | null, endTime: string | null): readonly ModelRecord[] {
    const bounds = [startTime ?? '0000', endTime ?? '9999'] as const;
    return this.records
      .filter((record) => record.visibleAt <= now && record.time >= bounds[0] && record.time <= `${bounds[1]}9`)
      .sort((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0));
  }

  answer(parameters: URLSearchParams, now: number): ModelAnswer {
    const { firstPage, pageSizeDefault, pageSizeMax, refuseGreater } = this.limits;
    const sort = parameters.get('sort');
    // In a URL, `+` means a space.
    if (sort !== null && sort !== '+logTimestamp')
      return { status: 400, body: JSON.stringify({ title: 'unknown sort field', detail: sort }) };
    const wanted = Number(parameters.get('pageSize') ?? pageSizeDefault);
    if (wanted > pageSizeMax && refuseGreater) return { status: 400, body: JSON.stringify({ title: 'pageSize is too large' }) };
    const pageSize = Math.min(wanted, pageSizeMax);
    const page = Number(parameters.get('page') ?? firstPage);
    const all = this.matching(now, parameters.get('startTime'), parameters.get('endTime'));
    const begin = (page - firstPage) * pageSize;
    const items = all.slice(Math.max(begin, 0), Math.max(begin + pageSize, 0));
    const pagination = JSON.stringify({ totalRecords: all.length, pageSize, itemsInPage: items.length, page });
    return { status: 200, body: `{"pagination":${pagination},"data":[${items.map((item) => item.text).join(',')}]}` };
  }
}
