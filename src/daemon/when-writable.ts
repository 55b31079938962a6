/** Writes that a changed configuration needs. A full disk delays them: it must not end the daemon. */
import { codeOf } from '../errors/errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

const retryMs = 1_000;

/** Repeats `write` until the disk and `journal.maxSize` have space for it. */
export async function whenWritable<Result>(
  write: () => Result | Promise<Result>,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<Result> {
  for (let isLogged = false; ; isLogged = true) {
    try {
      return await write();
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code !== 'journal_full') throw thrown;
      if (!isLogged) log.write('state.write_delayed', { code, error: thrown });
      await clock.sleep(retryMs, signal);
    }
  }
}
