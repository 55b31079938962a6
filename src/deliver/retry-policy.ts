/** Successes and failures of one sink, and the wait before the next attempt: exponential with jitter, or as long as the sink requests. */
import { codeOf, WaybillError, messageOf, type ErrorCode } from '../errors/errors.ts';
import type { Clock, Random } from '../model/time.ts';

const backoffFirstMs = 250;
const maxBackoffMs = 60_000;
const minBackoffMs = 50;
const blockedMs = 60_000;
/** Error codes that need an operator. */
const blockingCodes: ReadonlySet<unknown> = new Set([
  'sink_blocked',
  'config_invalid',
  'file_truncated',
  'archive_conflict',
  'archive_ahead',
  'archive_broken',
]);
/** Limits of the wait that a sink requests. */
const minRetryAfterMs = 1_000;
const maxRetryAfterMs = 900_000;

export class RetryPolicy {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #random: Random;
  #state: 'active' | 'retrying' | 'blocked' = 'active';
  #since: number | undefined;
  #lastSuccess: number | undefined;
  #lastError: string | undefined;
  #lastCode: ErrorCode | undefined;
  #failures = 0;
  #recoveredAt: number | undefined;
  /** Wall clock, ms. */
  #failingSince: number | undefined;
  #nextAttempt: number | undefined;

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** `blocked`: an operator must act. */
  get state(): 'active' | 'retrying' | 'blocked' {
    return this.#state;
  }

  /** Wall clock, ms: the last delivery. */
  get lastSuccess(): number | undefined {
    return this.#lastSuccess;
  }

  /** Stays after a recovery. */
  get lastError(): string | undefined {
    return this.#lastError;
  }

  /** The code of `lastError`. */
  get lastCode(): ErrorCode | undefined {
    return this.#lastCode;
  }

  /** Wall clock, ms: the end of the last failures. */
  get recoveredAt(): number | undefined {
    return this.#recoveredAt;
  }

  /** ms since the first failure in a row; undefined: the last attempt succeeded. */
  get troubleMs(): number | undefined {
    return this.#since === undefined ? undefined : this.#clock.monotonic() - this.#since;
  }

  /** Failed attempts in a row. */
  get attempts(): number {
    return this.#failures;
  }

  /** Wall clock, ms: the first failure in a row. */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /** Wall clock, ms: the start of the next attempt. */
  get nextAttempt(): number | undefined {
    return this.#nextAttempt;
  }

  /** @param isRecovered  false: other messages still wait for their next attempt */
  delivered(isRecovered: boolean): void {
    if (isRecovered) this.recovered();
    this.#lastSuccess = this.#clock.now();
  }

  /** No failed attempt is left to repeat, and nothing was delivered. */
  recovered(): void {
    if (this.#failures > 0) this.#recoveredAt = this.#clock.now();
    this.#state = 'active';
    this.#since = undefined;
    this.#failures = 0;
    this.#failingSince = undefined;
    this.#nextAttempt = undefined;
  }

  /** @returns ms to wait before the next attempt */
  failed(thrown: unknown): number {
    const waitMs = this.#waitAfter(thrown);
    const now = this.#clock.now();
    this.#failingSince ??= now;
    this.#nextAttempt = Math.round(now + waitMs);
    return waitMs;
  }

  #waitAfter(thrown: unknown): number {
    const isBlocked = blockingCodes.has(codeOf(thrown));
    this.#state = isBlocked ? 'blocked' : 'retrying';
    this.#since ??= this.#clock.monotonic();
    this.#lastError = messageOf(thrown);
    this.#lastCode = codeOf(thrown);
    const requestedMs = thrown instanceof WaybillError ? thrown.retryAfterMs : undefined;
    const maxWaitMs = Math.min(maxBackoffMs, backoffFirstMs * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    if (requestedMs !== undefined) return Math.min(maxRetryAfterMs, Math.max(minRetryAfterMs, requestedMs));
    return isBlocked ? blockedMs : Math.max(minBackoffMs, this.#random() * maxWaitMs);
  }
}
