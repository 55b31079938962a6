/** The waits of one delivery loop: after a failure, until work is due, or until another part wakes it. */
import { codeOf, WaybillError } from '../errors/errors.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { ended } from '../time/deadline.ts';
import type { RetryPolicy } from './retry-policy.ts';

/** A loop reads the journal at least this often. */
const maxIdleMs = 60_000;

interface PausesParts {
  readonly id: string;
  readonly retryPolicy: RetryPolicy;
  /** Called after each failed attempt: requests whose callers wait fail while the sink is unavailable. */
  readonly failed: (unavailable: WaybillError) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Pick<Meters, 'sinkRetried'>;
}

export class Pauses {
  readonly #parts: PausesParts;
  #wake: () => void = () => undefined;

  constructor(parts: PausesParts) {
    this.#parts = parts;
  }

  wake(): void {
    this.#wake();
  }

  /** Records a failed attempt and waits for the next, at most until `until` resolves. Throws when `stop` is aborted. */
  async afterFailure(thrown: unknown, stop: AbortSignal, until?: Promise<unknown>): Promise<void> {
    const { id, retryPolicy, failed, log, meters } = this.#parts;
    const waitMs = retryPolicy.failed(thrown);
    meters.sinkRetried(id);
    const { state, attempts: { attempts } } = retryPolicy; // prettier-ignore
    const fields = { sink: id, code: codeOf(thrown), attempts, retryInMs: Math.round(waitMs), error: thrown };
    log.write(state === 'blocked' ? 'sink.delivery_blocked' : 'sink.delivery_failed', fields);
    const unavailable = this.unavailable();
    if (unavailable) failed(unavailable);
    await this.rest(waitMs, stop, until);
  }

  /** The reason why the sink accepts nothing now; undefined while delivery succeeds. */
  unavailable(): WaybillError | undefined {
    const { id, retryPolicy } = this.#parts;
    const { state, attempts: { lastError } } = retryPolicy; // prettier-ignore
    if (state === 'active') return undefined;
    const message = `cannot send to sink "${id}" while it is ${state}: ${lastError ?? ''}`;
    return new WaybillError(state === 'blocked' ? 'sink_blocked' : 'sink_unavailable', message);
  }

  /** Sleeps until the time is over, `until` resolves or `wake` is called. Throws when `stop` is aborted. */
  async rest(ms: number, stop: AbortSignal, until?: Promise<unknown>): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort(ended);
    const sleepMs = until === undefined ? ms : Math.min(ms, maxIdleMs);
    const slept = this.#parts.clock.sleep(sleepMs, AbortSignal.any([stop, woken.signal])).catch(() => undefined);
    await (until === undefined ? slept : Promise.race([until, slept]));
    this.#wake = () => undefined;
    woken.abort(ended);
    await slept;
    stop.throwIfAborted();
  }
}
