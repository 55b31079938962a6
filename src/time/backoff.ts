/** The wait before the next attempt: exponential, with full jitter. */
import type { Random } from '../model/time.ts';

const firstMs = 250;
const minMs = 50;
const maxMs = 60_000;

/** @param failures  failed attempts in a row before the last one. @returns ms */
export function backoff(failures: number, random: Random): number {
  return Math.max(minMs, random() * Math.min(maxMs, firstMs * 2 ** Math.min(failures, 10)));
}
