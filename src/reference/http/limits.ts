/**
 * The limits of the gateway: a number of requests per interval. Beyond it, the rate limit responds
 * with 429 and the quota with 403. An interval begins with the first request after the previous
 * interval, or after a change of the limit.
 */
import type { ServiceClock } from '../clock.ts';
import { Problem } from './problem.ts';
import type { SwitchValues } from '../switches.ts';
import type { Budget } from '../values.ts';

export class Limits {
  readonly #clock: ServiceClock;
  readonly #values: SwitchValues;
  readonly #rate = new Meter();
  readonly #quota = new Meter();

  constructor(clock: ServiceClock, values: SwitchValues) {
    this.#clock = clock;
    this.#values = values;
  }

  /** Counts a request. @throws Problem above a limit */
  take(): void {
    const now = this.#clock.now();
    const { rateLimit, quota } = this.#values;
    const quotaWait = quota === 'off' ? 0 : this.#quota.take(quota, now);
    if (quotaWait > 0) throw new Problem(403, 'The quota is used up', { headers: this.#retryAfter(now, quotaWait) });
    const rateWait = rateLimit === 'off' ? 0 : this.#rate.take(rateLimit, now);
    if (rateWait > 0) throw new Problem(429, 'The rate limit is exceeded', { headers: this.#retryAfter(now, rateWait) });
  }

  #retryAfter(now: number, waitMs: number): Record<string, string> {
    switch (this.#values.retryAfter) {
      case 'none':
        return {};
      case 'seconds':
        return { 'retry-after': String(Math.ceil(waitMs / 1000)) };
      case 'date':
        // A date has whole seconds; rounded up, so that a client does not return early.
        return { 'retry-after': new Date(Math.ceil((now + waitMs) / 1000) * 1000).toUTCString() };
    }
  }
}

class Meter {
  #budget: Budget | undefined;
  #endsAt = 0;
  #used = 0;

  /** 0 within the limit, else ms until the next interval. */
  take(budget: Budget, now: number): number {
    if (budget !== this.#budget || now >= this.#endsAt) {
      this.#budget = budget;
      this.#endsAt = now + budget.intervalMs;
      this.#used = 0;
    }
    if (this.#used >= budget.count) return this.#endsAt - now;
    this.#used += 1;
    return 0;
  }
}
