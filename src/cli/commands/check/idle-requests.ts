/** The requests that a source without new records needs, from its settings alone. Pure. */
import { widestMicros, widthWithin } from '../../../collect/windows.ts';

interface IdleSettings {
  /** ms */
  readonly pollInterval: number;
  readonly closeDelay: number;
  /** Ages, ms. */
  readonly recountAfter: readonly number[];
}

const dayMs = 86_400_000;
/** A sample recount reads one closed window in every five minutes without a count of a window with records. */
const sampleRecountsADay = 288;
/** As often the newest records are requested, and the newest one by its time. */
const contradictionRequestsADay = 2 * 288;

/** The maximum: live polls; one read, one count and every recount of each window; sample recounts; checks for contradictions. */
export function requestsADay({ pollInterval: poll, closeDelay, recountAfter: recount }: IdleSettings): number {
  const windows = dayMs / (widthWithin(widestMicros(0, 0, closeDelay * 1000)) / 1000);
  return Math.round(dayMs / poll + windows * (2 + recount.length) + sampleRecountsADay + contradictionRequestsADay);
}
