/** Whether a sink takes, since when it does not, and how long to wait before it is tried again: growing with jitter, or what the sink asks for. */
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { Clock, Random } from '../model/time.ts';

const backoffFirstMs = 250;
const maxBackoffMs = 60_000;
const minBackoffMs = 50;
const blockedMs = 60_000;
/** What a sink asks us to wait is obeyed within these. */
const minRetryAfterMs = 1_000;
const maxRetryAfterMs = 900_000;

export class RetryPolicy {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #random: Random;
  #state: 'active' | 'retrying' | 'blocked' = 'active';
  #since: number | undefined;
  #lastError: string | undefined;
  #failures = 0;
  /** Wall clock, ms. */
  #failingSince: number | undefined;
  #nextAttempt: number | undefined;

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** `blocked`: a person must act. */
  get state(): 'active' | 'retrying' | 'blocked' {
    return this.#state;
  }

  /** What went wrong last, also when it is well again. */
  get lastError(): string | undefined {
    return this.#lastError;
  }

  /** How long it has not taken, in ms; undefined: it does. */
  get troubleMs(): number | undefined {
    return this.#since === undefined ? undefined : this.#clock.monotonic() - this.#since;
  }

  /** How often it was tried in vain since it took last. */
  get attempts(): number {
    return this.#failures;
  }

  /** When the first of the failed attempts in a row ended, in ms of the wall clock; undefined: the last attempt succeeded. */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /** When the next attempt begins, in ms of the wall clock. */
  get nextAttempt(): number | undefined {
    return this.#nextAttempt;
  }

  recovered(): void {
    this.#state = 'active';
    this.#since = undefined;
    this.#failures = 0;
    this.#failingSince = undefined;
    this.#nextAttempt = undefined;
  }

  /** It did not take. @returns how long to wait, in ms */
  failed(thrown: unknown): number {
    const waitMs = this.#waitAfter(thrown);
    const now = this.#clock.now();
    this.#failingSince ??= now;
    this.#nextAttempt = now + waitMs;
    return waitMs;
  }

  #waitAfter(thrown: unknown): number {
    const isBlocked = codeOf(thrown) === 'sink_blocked' || codeOf(thrown) === 'file_truncated';
    this.#state = isBlocked ? 'blocked' : 'retrying';
    this.#since ??= this.#clock.monotonic();
    this.#lastError = messageOf(thrown);
    const asked = thrown instanceof WaybillError ? thrown.retryAfterMs : undefined;
    const most = Math.min(maxBackoffMs, backoffFirstMs * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    if (asked !== undefined) return Math.min(maxRetryAfterMs, Math.max(minRetryAfterMs, asked));
    return isBlocked ? blockedMs : Math.max(minBackoffMs, this.#random() * most);
  }
}
