/** Deadlines for calls of a sink: a call that never returns must not block its loop. */
import { WaybillError } from '../errors.ts';
import type { Clock } from '../model/time.ts';

/** The reason of a timer that ends early. One shared error: creating one records a stack each time. */
export const ended = new WaybillError('aborted', 'the wait ended early');

/**
 * Runs one call. Its signal is aborted after `ms` or with `abandon`. Throws the error of `late` if
 * the call has not returned by then. `onProgress` restarts the time.
 */
export async function within<Result>(
  call: (signal: AbortSignal, onProgress: () => void) => Promise<Result>,
  ms: number,
  late: () => WaybillError,
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
