/** Counts the dead letters of sinks by the time of their records. */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';

/** Counts the dead letters of a sink in a range of time by binary search. */
export class DeadLetterTimes {
  readonly #times = new Map<string, number[]>();

  constructor(db: Database) {
    const rows = db
      .prepare<[], { sink: string; source: number; time_us: number }>(
        'SELECT sink, source, time_us FROM dead_letters WHERE time_us IS NOT NULL ORDER BY time_us',
      )
      .iterate();
    for (const { sink, source, time_us: time } of rows) {
      const key = `${sink} ${source}`;
      const times = this.#times.get(key);
      if (times) times.push(time);
      else this.#times.set(key, [time]);
    }
  }

  count(sink: string, source: number, from: Micros, to: Micros): number {
    const times = this.#times.get(`${sink} ${source}`);
    return times === undefined ? 0 : before(times, to) - before(times, from);
  }
}

/** The number of sorted times before `at`. */
function before(times: readonly number[], at: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
