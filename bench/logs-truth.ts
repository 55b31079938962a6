/**
 * The reference service's records from `GET /truth`, reduced to the data needed to predict every
 * page.
 */
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';

/** A time window as in a query, and its records: `total` of them, starting with number `first`. */
interface Window {
  readonly startTime: string;
  readonly endTime: string;
  readonly first: number;
  readonly total: number;
}

/** One request of the logs endpoint under `{base_url}`, and its expected response. */
export interface Expected {
  readonly path: string;
  readonly total: number;
  readonly page: number;
  /** The records on the page: `items` of them, starting with number `first`. */
  readonly first: number;
  readonly items: number;
  /** Of the whole response. */
  readonly bytes: number;
}

/**
 * Queries have times in hundredths of a second; comparisons use units of 100 ns since the first
 * record's second.
 */
const hundredthMs = 10;
const unitsPerMs = 10_000;

export class Truth {
  readonly #times: number[] = [];
  readonly #ids: number[] = [];
  /** The bytes of all earlier records, each with its comma. */
  readonly #bytesBefore: number[] = [0];
  #beginMs = 0;

  /** Reads the truth of the service with this control port. */
  static async of(control: string): Promise<Truth> {
    const truth = new Truth();
    const { body } = await fetch(`${control}/truth`);
    if (!body) throw new Error('the control port tells no records');
    for await (const line of createInterface({ input: Readable.fromWeb(body) })) truth.#add(line);
    return truth;
  }

  get records(): number {
    return this.#ids.length;
  }

  /** From the first record's second to the last record. */
  get spanMs(): number {
    return (this.#times.at(-1) ?? 0) / unitsPerMs;
  }

  /**
   * The window that starts so many ms after the first record's second; both bounds are inclusive.
   */
  window(startMs: number, lengthMs: number): Window {
    const start = Math.floor(startMs / hundredthMs) * hundredthMs;
    const end = start + Math.ceil(lengthMs / hundredthMs) * hundredthMs;
    const first = this.#firstAt(start * unitsPerMs);
    const text = (ms: number): string => new Date(this.#beginMs + ms).toISOString().slice(0, 22);
    return { startTime: text(start), endTime: text(end), first, total: this.#firstAt(end * unitsPerMs + 1) - first };
  }

  page({ startTime, endTime, first, total }: Window, page: number, pageSize: number): Expected {
    const from = first + Math.min(total, (page - 1) * pageSize);
    const until = Math.min(first + total, from + pageSize);
    const head = `{"pagination":${JSON.stringify({ totalRecords: total, pageSize, itemsInPage: until - from, page })},"data":[`;
    const commaOfLast = until > from ? 1 : 0;
    const bytes = head.length + (this.#bytesBefore[until] ?? 0) - (this.#bytesBefore[from] ?? 0) - commaOfLast + ']}'.length;
    const path = `/logs/full-payload?startTime=${startTime}&endTime=${endTime}&page=${page}&pageSize=${pageSize}&sort=%2BlogTimestamp`;
    return { path, total, page, first: from, items: until - from, bytes };
  }

  ids({ first, items }: Expected): number[] {
    return this.#ids.slice(first, first + items);
  }

  #add(line: string): void {
    const [, id = '', time = '', fraction = ''] = /^\{"logId":(\d+),.*?"logTimestamp":"([^".]+)(?:\.(\d{1,7}))?"/.exec(line) ?? [];
    const ms = Date.parse(`${time}Z`);
    if (Number.isNaN(ms)) throw new Error(`not a record: ${line.slice(0, 200)}`);
    if (this.records === 0) this.#beginMs = ms;
    this.#times.push((ms - this.#beginMs) * unitsPerMs + Number(fraction.padEnd(7, '0')));
    this.#ids.push(Number(id));
    this.#bytesBefore.push((this.#bytesBefore.at(-1) ?? 0) + Buffer.byteLength(line) + 1);
  }

  /** The number of the first record at this time or later. */
  #firstAt(time: number): number {
    let [low, high] = [0, this.records];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#times[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
