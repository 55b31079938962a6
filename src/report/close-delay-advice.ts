/** Advice on the setting `closeDelay`, from the measured delays of records. Pure. */
import type { DelayMeasure } from '../model/telemetry.ts';
import { delayBounds, samples, seenLater, seenWithin } from '../telemetry/delays.ts';
import { counted, span } from './format-time.ts';

interface CloseDelayAdvice {
  readonly level: 'ok' | 'warning';
  readonly message: string;
}

/** Fewer records are too few for advice. */
const minSamples = 1_000;
/** The accepted share of late records: with the present close delay, and with a shorter one. */
const shareLate = 1 / 1_000;
const shareSure = 1 / 10_000;
/**
 * Below the first, the many windows of a quiet source cause over 0.15 requests per second. With the
 * last, the frontier already lags by about half a day.
 */
const closeDelays = [300, 600, 900, 1_800, 3_600, 7_200, 21_600] as const;

/** Proposes a better close delay if the measured delays suggest one (docs/operations.md, "How late records are"). */
export function closeDelayAdvice(measure: DelayMeasure, closeDelay: number): CloseDelayAdvice | undefined {
  const all = samples(measure);
  if (all === 0) return undefined;
  const seen = `of ${counted(all, 'record')} 99 % were first seen within ${bound(seenWithin(measure, 0.99))}, 99.9 % within ${bound(seenWithin(measure, 0.999))}`;
  if (all < minSamples) return { level: 'ok', message: `${seen}; too few for advice on closeDelay` };
  const late = seenLater(measure, closeDelay);
  if (late > all * shareLate) {
    const better =
      closeDelays.find((one) => one > closeDelay && seenLater(measure, one) <= all * shareLate) ?? closeDelays.at(-1) ?? closeDelay;
    if (better <= closeDelay)
      return { level: 'ok', message: `${seen}; closeDelay is ${bound(closeDelay)}, and recounts find later records` };
    const message = `${seen}; ${percent(late / all)} were later than closeDelay (${bound(closeDelay)}), with closeDelay: ${setting(better)} it would be ${percent(seenLater(measure, better) / all)}`;
    return { level: 'warning', message };
  }
  const shorter = closeDelays.find((one) => one <= closeDelay / 2 && seenLater(measure, one) <= all * shareSure);
  if (shorter === undefined) return { level: 'ok', message: `${seen}; closeDelay (${bound(closeDelay)}) is appropriate` };
  return {
    level: 'ok',
    message: `${seen}; closeDelay: ${setting(shorter)} would be enough: each record would be proven about ${bound((closeDelay - shorter) * 2)} sooner`,
  };
}

/** `15 min`; `more than 30 d` beyond the last bound. */
export function bound(seconds: number | undefined): string {
  if (seconds === undefined) return 'nothing';
  return Number.isFinite(seconds) ? span(seconds) : `more than ${span(delayBounds.at(-1) ?? 0)}`;
}

/** A duration as written in the configuration. */
function setting(seconds: number): string {
  return seconds % 3_600 === 0 ? `${seconds / 3_600}h` : `${seconds / 60}m`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
