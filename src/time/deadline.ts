/** Limits for waits: a call that never returns must not block its caller. */
import { addAbortListener } from 'node:events';
import { WaybillError } from '../errors/errors.ts';
import type { Clock } from '../model/time.ts';

/** The reason of a timer that ends early. One shared error: creating one records a stack each time. */
export const ended = new WaybillError('aborted', 'the wait ended early');

/** Aborts the call's signal after `ms` or with `abandon`; `onProgress` restarts the time. @throws `late()` if it has not returned then */
export async function within<Result>(
  call: (signal: AbortSignal, onProgress: () => void) => Promise<Result>,
  ms: number,
  late: () => Error,
  clock: Pick<Clock, 'sleep' | 'monotonic'>,
  abandon?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const signal = abandon === undefined ? over.signal : AbortSignal.any([abandon, over.signal]);
  let since = clock.monotonic();
  const onProgress = (): void => {
    since = clock.monotonic();
  };
  const passed = async (): Promise<never> => {
    for (let left = ms; left > 0; left = since + ms - clock.monotonic()) await clock.sleep(left, signal);
    throw late();
  };
  const timer = passed();
  try {
    return await Promise.race([call(signal, onProgress), timer]);
  } finally {
    over.abort(ended);
    timer.catch(() => undefined);
  }
}

/** Waits for work, successful or not, at most `ms`. */
export async function atMost(ms: number, work: Promise<unknown>, clock: Pick<Clock, 'sleep' | 'monotonic'>): Promise<void> {
  await within(
    () => work,
    ms,
    () => ended,
    clock,
  ).catch(() => undefined);
}

/** Waits for a promise or for the signal, whichever settles first. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // The caller of an aborted signal does not learn how the promise ends.
  if (signal.aborted) promise.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  using _listener = addAbortListener(signal, () => aborted.reject(signal.reason));
  return await Promise.race([promise, aborted.promise]);
}
