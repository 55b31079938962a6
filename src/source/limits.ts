/** Rate limits: a token bucket for all requests of a source or group. Requests are served in order of arrival and may leave. */
import { orAborted } from '../time/deadline.ts';
import type { Clock } from '../model/time.ts';

export class Budget {
  readonly #clock: Clock;
  #perSecond: number;
  /** Requests that may be sent now; fractions accumulate. */
  #tokens: number;
  #filledAt: number;
  /** Resolves when every earlier request was served or has left the queue. */
  #turn: Promise<unknown> = Promise.resolve();

  /** @param perSecond  greater than 0; also the burst after an idle second, at least 1 */
  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#tokens = Math.max(perSecond, 1);
    this.#filledAt = clock.monotonic();
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /** Changes the rate for waiting and later requests. */
  set perSecond(rate: number) {
    this.#fill();
    this.#perSecond = rate;
    this.#tokens = Math.min(this.#tokens, Math.max(rate, 1));
  }

  /** Resolves when a request may be sent. Rejects with the signal's reason without using a token. */
  async take(signal: AbortSignal): Promise<void> {
    const before = this.#turn;
    const mine = Promise.withResolvers<undefined>();
    this.#turn = mine.promise;
    try {
      await orAborted(before, signal);
      this.#fill();
      while (this.#tokens < 1) {
        await this.#clock.sleep(((1 - this.#tokens) / this.#perSecond) * 1000, signal);
        this.#fill();
      }
      this.#tokens -= 1;
    } finally {
      // A request that leaves the queue early must still wait for its predecessor before its successor may run.
      void before.then(() => {
        mine.resolve(undefined);
      });
    }
  }

  #fill(): void {
    const now = this.#clock.monotonic();
    const built = ((now - this.#filledAt) / 1000) * this.#perSecond;
    // Sleeping for the time of one token must yield a token in spite of rounding.
    const tokens = Math.min(this.#tokens + built, Math.max(this.#perSecond, 1));
    this.#tokens = Math.abs(tokens - Math.round(tokens)) < 1e-9 ? Math.round(tokens) : tokens;
    this.#filledAt = now;
  }
}

interface SharedBudget {
  readonly budget: Budget;
  /** By source. */
  readonly rates: Map<string, number>;
}

function applyLowest({ budget, rates }: SharedBudget): void {
  const lowest = Math.min(...rates.values());
  if (rates.size > 0 && lowest !== budget.perSecond) budget.perSecond = lowest;
}

/** One for each group, and one for each source without a group. */
export class Budgets {
  readonly #clock: Clock;
  readonly #budgets = new Map<string, SharedBudget>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** If sources of a group have different rates, the lowest applies to all. */
  of(source: string, perSecond: number, group: string | undefined): Budget {
    const key = group === undefined ? `source ${source}` : `group ${group}`;
    let shared = this.#budgets.get(key);
    if (shared === undefined) {
      shared = { budget: new Budget(this.#clock, perSecond), rates: new Map() };
      this.#budgets.set(key, shared);
    }
    shared.rates.set(source, perSecond);
    applyLowest(shared);
    return shared.budget;
  }

  /** The rate of a source that has ended no longer counts in any group. */
  release(source: string): void {
    for (const shared of this.#budgets.values()) if (shared.rates.delete(source)) applyLowest(shared);
  }
}
