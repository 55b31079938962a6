/** Deadlines around the calls of a sink: one that does not come back must not hold up its loop. */
import { WaybillError } from '../errors.ts';
import type { Clock } from '../model/time.ts';

/** Why a timer ends early; made once, since an error made for each would record the stack each time. */
export const ended = new WaybillError('aborted', 'what was waited for has come');

/**
 * Runs one call, which is told when its time is over or `abandon` is aborted. Throws what `late` gives when it has neither come back by then nor said
 * that it goes on (`goesOn`), which gives it all of its time again.
 */
export async function within<Result>(
  call: (signal: AbortSignal, goesOn: () => void) => Promise<Result>,
  ms: number,
  late: () => WaybillError,
  clock: Pick<Clock, 'sleep' | 'monotonic'>,
  abandon?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const signal = abandon === undefined ? over.signal : AbortSignal.any([abandon, over.signal]);
  let since = clock.monotonic();
  const goesOn = (): void => {
    since = clock.monotonic();
  };
  const passed = async (): Promise<never> => {
    for (let left = ms; left > 0; left = since + ms - clock.monotonic()) await clock.sleep(left, signal);
    throw late();
  };
  const timer = passed();
  try {
    return await Promise.race([call(signal, goesOn), timer]);
  } finally {
    over.abort(ended);
    timer.catch(() => undefined);
  }
}
