/** How often a quiet source is asked, from its settings alone: what `check` prints and a test of the collector measures. Pure. */
import { widestMicros, widthWithin } from '../collect/windows.ts';

export interface RestSettings {
  /** ms */
  readonly poll: number;
  readonly settle: number;
  /** Ages of recount. */
  readonly recount: readonly number[];
}

const dayMs = 86_400_000;
/** One closed window is counted at random when none with records was counted for five minutes. */
const guardADay = 288;

/** Requests a day at most: tip once a poll, close and its count once a window, every recount once a window, and the guard. */
export function requestsADay({ poll, settle, recount }: RestSettings): number {
  const windows = dayMs / (widthWithin(widestMicros(0, 0, settle * 1000)) / 1000);
  return Math.round(dayMs / poll + windows * (2 + recount.length) + guardADay);
}
