/** How often a quiet source is asked, from its settings alone: what `check` prints and a test of the collector measures. Pure. */
import { widestMicros, widthWithin } from '../collect/windows.ts';

interface RestSettings {
  /** ms */
  readonly pollInterval: number;
  readonly closeDelay: number;
  /** Ages of recount. */
  readonly recountAfter: readonly number[];
}

const dayMs = 86_400_000;
/** One closed window is counted at random when none with records was counted for five minutes. */
const sampleRecountADay = 288;

/** Requests a day at most: tip once a poll, close and its count once a window, every recount once a window, and the guard. */
export function requestsADay({ pollInterval: poll, closeDelay, recountAfter: recount }: RestSettings): number {
  const windows = dayMs / (widthWithin(widestMicros(0, 0, closeDelay * 1000)) / 1000);
  return Math.round(dayMs / poll + windows * (2 + recount.length) + sampleRecountADay);
}
