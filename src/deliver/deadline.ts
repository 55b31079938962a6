/** Deadlines around the calls of a sink: one that does not come back must not hold up its loop. */
import { WaybillError } from '../errors.ts';
import type { Clock } from '../model.ts';

/** Why a timer ends early; made once, since an error made for each would record the stack each time. */
export const ended = new WaybillError('aborted', 'what was waited for has come');

/** Runs one call, which is told when its time is over or `abandon` is aborted. Throws what `late` gives when it has not come back by then. */
export async function within<Result>(
  call: (signal: AbortSignal) => Promise<Result>,
  ms: number,
  late: () => WaybillError,
  clock: Pick<Clock, 'sleep'>,
  abandon?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const signal = abandon === undefined ? over.signal : AbortSignal.any([abandon, over.signal]);
  const timer = clock.sleep(ms, signal).then(() => {
    throw late();
  });
  try {
    return await Promise.race([call(signal), timer]);
  } finally {
    over.abort(ended);
    timer.catch(() => undefined);
  }
}
