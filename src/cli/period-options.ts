/** Options of the commands that report on a period. */
import { WaybillError } from '../errors.ts';
import type { Micros } from '../model/time.ts';
import { text, toggle } from './option.ts';

export const jsonOption = { json: toggle('print the result as JSON') };

export const timeOptions = {
  from: text('T', 'start: a time, a date, a month, 2026-Q3, -7d or -6h'),
  to: text('T', 'end, in the same forms; a date or month is included'),
};

/**
 * @param given  both ends as the user typed them.
 * @throws WaybillError `usage` unless the period is longer than 0
 */
export function assertForward(
  verb: string,
  from: Micros,
  to: Micros,
  given: { readonly from?: string | undefined; readonly to?: string | undefined },
): void {
  if (from < to) return;
  throw new WaybillError('usage', `cannot ${verb} from "${given.from ?? ''}" to "${given.to ?? 'now'}": the end is not after the start`);
}
