/**
 * Commits what several sources store in one turn of the event loop in one transaction, because each commit costs a sync of the disk. Each
 * operation has the result that it would have in a transaction of its source alone.
 */
import { WaybillError } from '../errors/errors.ts';
import type { Clock } from '../model/time.ts';
import type { Store } from './store.ts';

interface Waiting {
  readonly source: string | undefined;
  /** Runs the operation. Returns the function that reports its result to the caller. */
  readonly run: () => () => void;
  readonly reject: (thrown: unknown) => void;
}

/** The wait for other operations always ends, so no caller needs to end it. */
const unstoppable = new AbortController().signal;

export class SharedTransactions {
  readonly #store: Store;
  readonly #clock: Clock;
  #waiting: Waiting[] = [];

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * The loop of a source awaits each operation: memory shows an operation only after its commit.
   * @param source  undefined for an operation that does not depend on others of its source
   */
  run<Result>(source: string | undefined, operation: () => Result): Promise<Result> {
    if (source !== undefined && this.#waiting.some((each) => each.source === source))
      throw new WaybillError('internal_error', `source "${source}" stores a second time before the first has ended`);
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const run = (): (() => void) => {
      const result = operation();
      return () => resolve(result);
    };
    this.#waiting.push({ source, run, reject });
    if (this.#waiting.length === 1) void this.#clock.sleep(0, unstoppable).then(() => this.#commit());
    return promise;
  }

  #commit(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length > 1) {
      try {
        const results = this.#store.together(() => waiting.map(({ run }) => run()));
        for (const report of results) report();
        // mutant: stored-together
        return;
      } catch {
        // Nothing is stored. In separate transactions only the operation that fails has the error.
      }
    }
    for (const { run, reject } of waiting) {
      try {
        run()();
      } catch (thrown) {
        reject(thrown);
      }
    }
  }
}
