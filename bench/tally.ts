/** Counts how often each record of a log arrived. */
import { firstLogId } from './record.ts';

export class Tally {
  readonly #copies: Uint8Array;

  constructor(records: number) {
    this.#copies = new Uint8Array(records);
  }

  /** @returns false if the log has no record with this `logId` */
  add(logId: number): boolean {
    const i = logId - firstLogId;
    if (!(i in this.#copies)) return false;
    this.#copies[i] = Math.min(255, (this.#copies[i] ?? 0) + 1);
    return true;
  }

  /** Records that did not arrive. @param isExpected  by the number of a record; by default all are */
  lost(isExpected: (i: number) => boolean = () => true): number {
    return this.#copies.reduce((sum, count, i) => sum + Number(count === 0 && isExpected(i)), 0);
  }

  /** Copies after the first. */
  get doubled(): number {
    return this.#copies.reduce((sum, count) => sum + Math.max(0, count - 1), 0);
  }
}
