/**
 * Finds where the history of a service begins (`start: earliest`): at its first record in ascending order if the service counts none before
 * it, else by counts, halving the time. No record that is visible now is dated between 1970 and the result.
 */
import type { Micros } from '../model/time.ts';
import type { Requester } from './requester.ts';
import type { Paging } from './page-size.ts';
import { queryUntil, secondMicros, wholeSecond } from './windows.ts';

interface Earliest {
  /** A whole second. */
  readonly start: Micros;
  readonly message: string;
}

/** Larger than the error of a bound of a query, which is less than a second. */
const slack = 2 * secondMicros;

/** Sends about forty requests at most. For a service without records the result is server time less `closeDelay`. */
export async function earliest(
  requester: Pick<Requester, 'ask' | 'count'>,
  paging: Paging,
  serverNow: Micros,
  closeDelay: Micros,
  signal: AbortSignal,
): Promise<Earliest> {
  // Counts the records dated up to a whole second, and possibly up to a second after it.
  const countUntil = async (to: Micros): Promise<number | undefined> => (await requester.count(queryUntil(to), paging.first, signal)).total;

  const present = wholeSecond(serverNow - closeDelay);
  const page = await requester.ask({ query: {}, page: paging.first, pageSize: 1 }, signal);
  const [first] = page.records;
  if (!first && (page.total ?? 0) === 0) return { start: present, message: 'the service has no record' };
  if (first?.time !== undefined) {
    const start = Math.max(0, wholeSecond(first.time) - slack);
    const before = await countUntil(start + secondMicros);
    if (before === 0) return { start, message: 'the first record in ascending order; the service counts none before it' };
    if (before === undefined)
      return { start, message: 'the first record in ascending order; not verified, because the service gives no usable total' };
  }
  // The service does not sort, or its first record has no readable time.
  // Records dated before 1970 belong to no window (contradictions.ts names them), and some without a readable time match every query.
  const outside = (await countUntil(0)) ?? 0;
  let none = 0;
  let some = wholeSecond(first?.time ?? serverNow);
  const all = await countUntil(some);
  if (all === undefined || all <= outside) {
    const message =
      all !== undefined
        ? 'the service counts no record in a query with times'
        : 'the service gives no usable total, and its first record has no readable time';
    return { start: Math.min(present, some), message };
  }
  while (some - none > secondMicros) {
    const middle = wholeSecond((none + some) / 2);
    // A missing total is treated as a total above 0: a start that is too early loses nothing.
    const count = await countUntil(middle);
    if (count !== undefined && count <= outside) none = middle;
    else some = middle;
  }
  return { start: Math.max(0, some - slack), message: 'found by counting records: the service does not return the earliest record first' };
}
