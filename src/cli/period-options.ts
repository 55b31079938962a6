/** What commands that look at a period of a source have in common: their options, and a period that has a length. */
import { WaybillError } from '../errors.ts';
import type { Micros } from '../model/time.ts';

export const periodOptions = {
  config: { type: 'string' },
  source: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

/** @param given  both ends as they were typed. @throws WaybillError `usage` when the end is not behind the begin */
export function assertForward(verb: string, from: Micros, to: Micros, given: { readonly from?: string; readonly to?: string }): void {
  if (from < to) return;
  throw new WaybillError('usage', `cannot ${verb} from "${given.from ?? ''}" to "${given.to ?? ''}": the end is not behind the begin`);
}
