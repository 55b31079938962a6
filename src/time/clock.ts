/** The system clock and randomness, which the daemon passes to each user of a `Clock` or a `Random`; the simulation passes its own. */
import type { Clock, Random } from '../model/time.ts';

/** The maximum delay of a Node timer; longer sleeps use several. */
const timerMax = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    if (ms <= 0) return turn(signal);
    for (let left = ms; ; left -= timerMax) {
      await timer(Math.min(Math.max(left, 0), timerMax), signal);
      if (left <= timerMax) return;
    }
  },
};

export const systemRandom: Random = () => Math.random();

/** Lets waiting callbacks run; a timer would wait a millisecond. */
function turn(signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve) => setImmediate(resolve));
}

function timer(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = () => {
      clearTimeout(running);
      reject(signal.reason as Error);
    };
    const running = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal.addEventListener('abort', abort, { once: true });
  });
}
