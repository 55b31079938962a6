/** Successes and failures of one sink, and the wait before the next attempt: exponential with jitter, or as long as the sink requests. */
import { backoff } from '../time/backoff.ts';
import { codeOf, WaybillError, messageOf } from '../errors/errors.ts';
import type { SinkSnapshot } from '../model/snapshot.ts';
import type { Clock, Micros, Random } from '../model/time.ts';

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

/** For the status of the sink; times in µs of the wall clock. */
type Attempts = Pick<SinkSnapshot, 'lastSuccess' | 'lastError' | 'lastCode' | 'recoveredAt' | 'attempts' | 'failingSince' | 'nextAttempt'>;

export class RetryPolicy {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #random: Random;
  #state: 'active' | 'retrying' | 'blocked' = 'active';
  /** The first failure in a row, by the monotonic clock. */
  #since: number | undefined;
  #attempts: Attempts & { readonly attempts: number } = { lastSuccess: undefined, lastError: undefined, attempts: 0 };

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** `blocked`: an operator must act. */
  get state(): 'active' | 'retrying' | 'blocked' {
    return this.#state;
  }

  get attempts(): Attempts & { readonly attempts: number } {
    return this.#attempts;
  }

  /** ms since the first failure in a row; undefined: the last attempt succeeded. */
  get troubleMs(): number | undefined {
    return this.#since === undefined ? undefined : this.#clock.monotonic() - this.#since;
  }

  /** @param isRecovered  false: other messages still wait for their next attempt */
  delivered(isRecovered: boolean): void {
    if (isRecovered) this.recovered();
    this.#attempts = { ...this.#attempts, lastSuccess: this.#now() };
  }

  /** No failed attempt is left to repeat, and nothing was delivered. */
  recovered(): void {
    const ended = { attempts: 0, failingSince: undefined, nextAttempt: undefined };
    this.#attempts = { ...this.#attempts, ...ended, ...(this.#attempts.attempts > 0 && { recoveredAt: this.#now() }) };
    this.#state = 'active';
    this.#since = undefined;
  }

  /** @returns ms to wait before the next attempt */
  failed(thrown: unknown): number {
    const { attempts, failingSince = this.#now() } = this.#attempts;
    const isBlocked = blockingCodes.has(codeOf(thrown));
    const waitMs = this.#waitAfter(thrown, isBlocked, attempts);
    this.#state = isBlocked ? 'blocked' : 'retrying';
    this.#since ??= this.#clock.monotonic();
    const last = { lastError: messageOf(thrown), lastCode: codeOf(thrown), attempts: attempts + 1 };
    const nextAttempt = Math.round(this.#clock.now() + waitMs) * 1000;
    this.#attempts = { ...this.#attempts, ...last, failingSince, nextAttempt };
    return waitMs;
  }

  #waitAfter(thrown: unknown, isBlocked: boolean, failures: number): number {
    const requestedMs = thrown instanceof WaybillError ? thrown.retryAfterMs : undefined;
    if (requestedMs !== undefined) return Math.min(maxRetryAfterMs, Math.max(minRetryAfterMs, requestedMs));
    return isBlocked ? blockedMs : backoff(failures, this.#random);
  }

  #now(): Micros {
    return this.#clock.now() * 1000;
  }
}
