/** Whether the measured delays of records suggest another close delay (`settle`). Pure. */
import type { DelayMeasure } from '../model/telemetry.ts';
import { delayBounds, samples, seenLater, seenWithin } from '../telemetry/delays.ts';
import { counted, span } from './time-words.ts';

/** What the measured delays say about `settle`. */
export interface SettleAdvice {
  readonly level: 'ok' | 'warning';
  readonly words: string;
}

/** Fewer records than these say nothing. */
const samplesLeast = 1_000;
/** Later than `settle` may be one in a thousand; for a shorter `settle` none in ten thousand. */
const shareLate = 1 / 1_000;
const shareSure = 1 / 10_000;
/** Below the first, windows are so many that a quiet source is asked more than 0.15 times a second; above the last the frontier lags by half a day. */
const settles = [300, 600, 900, 1_800, 3_600, 7_200, 21_600] as const;

/** A better `settle` where the measured delays disagree with the one in use (docs/operations.md, "How late records are"). */
export function settleAdvice(measure: DelayMeasure, settle: number): SettleAdvice | undefined {
  const all = samples(measure);
  if (all === 0) return undefined;
  const seen = `of ${counted(all, 'record')} 99 % were first seen within ${bound(seenWithin(measure, 0.99))}, 99.9 % within ${bound(seenWithin(measure, 0.999))}`;
  if (all < samplesLeast) return { level: 'ok', words: `${seen}; too few to judge settle by` };
  const late = seenLater(measure, settle);
  if (late > all * shareLate) {
    const better = settles.find((one) => one > settle && seenLater(measure, one) <= all * shareLate) ?? settles.at(-1) ?? settle;
    if (better <= settle) return { level: 'ok', words: `${seen}; settle is ${bound(settle)}, and recounts find what comes later` };
    const words = `${seen}; ${percent(late / all)} came later than settle (${bound(settle)}), with settle: ${setting(better)} it would be ${percent(seenLater(measure, better) / all)}`;
    return { level: 'warning', words };
  }
  const shorter = settles.find((one) => one <= settle / 2 && seenLater(measure, one) <= all * shareSure);
  if (shorter === undefined) return { level: 'ok', words: `${seen}; settle (${bound(settle)}) suits that` };
  return {
    level: 'ok',
    words: `${seen}; settle: ${setting(shorter)} would be enough: each record would be proven about ${bound((settle - shorter) * 2)} sooner`,
  };
}

/** `15 min`; `more than 30 d` beyond the last bound. */
export function bound(seconds: number | undefined): string {
  if (seconds === undefined) return 'nothing';
  return Number.isFinite(seconds) ? span(seconds) : `more than ${span(delayBounds.at(-1) ?? 0)}`;
}

/** As a duration of the configuration. */
function setting(seconds: number): string {
  return seconds % 3_600 === 0 ? `${seconds / 3_600}h` : `${seconds / 60}m`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
