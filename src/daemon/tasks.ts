/** The loops of the daemon, which run concurrently until a signal or a fatal error stops all of them. */
import { ended } from '../time/deadline.ts';
import { codeOf, messageOf, WaybillError } from '../errors/errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

/** The part of the shutdown that is kept for releasing what the daemon holds, at most half of it, ms. */
const releaseMs = 4_000;
/** A shutdown may take at least this long, ms. */
const endMinMs = 3_000;

export interface Task {
  /** Stops only this loop, and resolves when it has ended. Abandons a batch in flight after `timeout` ms. */
  readonly end: (timeout: number) => Promise<void>;
}

export class Tasks {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #failure = new AbortController();
  readonly #abandon = new AbortController();
  readonly #stop: AbortSignal;
  readonly #running = new Map<Promise<void>, string>();

  constructor(signal: AbortSignal, clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#stop = AbortSignal.any([signal, this.#failure.signal]);
  }

  /** `stop` asks the loop to end; `abandon` interrupts a batch that outlasts the shutdown timeout. */
  start(name: string, loop: (stop: AbortSignal, abandon: AbortSignal) => Promise<void>): Task {
    const [own, ownAbandon] = [new AbortController(), new AbortController()];
    const stop = AbortSignal.any([this.#stop, own.signal]);
    const running = this.#run(name, loop(stop, AbortSignal.any([this.#abandon.signal, ownAbandon.signal])), stop);
    this.#running.set(running, name);
    const removed = running.finally(() => this.#running.delete(running));
    return {
      end: async (timeout) => {
        own.abort(new WaybillError('aborted', 'the configuration has changed'));
        await this.#abandonAfter(timeout, ownAbandon, removed);
      },
    };
  }

  /**
   * Resolves when every loop has ended. Batches in flight are abandoned `releaseMs` before the end of the time.
   * @param shutdownTimeout  ms from the stop until the end of the process; read at the stop
   * @returns the fatal error, which is in the log; undefined after the signal
   */
  async ended(shutdownTimeout: () => number): Promise<unknown> {
    await this.#stopped();
    this.#log.write('daemon.stopping', { reason: messageOf(this.#stop.reason) });
    const timeout = shutdownTimeout();
    await this.#abandonAfter(timeout - Math.min(releaseMs, timeout / 2), this.#abandon, this.#allEnded());
    return this.#failure.signal.aborted ? this.#failure.signal.reason : undefined;
  }

  /**
   * The result of the whole daemon. When something hangs until the end of `shutdownTimeout`, the log names it, and the result is that of
   * `ended`: the caller then ends the process.
   * @param others  what else may hang: the names that are being looked up
   */
  async limited(daemon: Promise<unknown>, shutdownTimeout: () => number, others: () => readonly string[]): Promise<unknown> {
    const over = new AbortController();
    const late = async (): Promise<unknown> => {
      await this.#stopped();
      const timeout = Math.max(shutdownTimeout(), endMinMs);
      await this.#clock.sleep(timeout, over.signal);
      this.#log.write('daemon.hung', { shutdownTimeoutMs: timeout, waitsFor: [...this.#running.values(), ...others()] });
      return this.#failure.signal.reason;
    };
    return /* mutant: shutdown-limit */ Promise.race([daemon, late()]).finally(() => over.abort(ended));
  }

  /** A loop that ends may have started another one. */
  async #allEnded(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  /** Waits for `ended`, and interrupts batches in flight after the timeout. */
  async #abandonAfter(timeout: number, abandon: AbortController, ended: Promise<void>): Promise<void> {
    const hasEnded = new AbortController();
    const timer = this.#clock.sleep(timeout, hasEnded.signal).then(
      () => {
        this.#log.write('daemon.batch_abandoned', { shutdownTimeoutMs: timeout });
        abandon.abort(new WaybillError('aborted', 'the shutdown timeout has expired'));
      },
      () => undefined,
    );
    await ended;
    hasEnded.abort();
    await timer;
  }

  /** One fatal error stops all loops: the orchestrator restarts the process, and a restart is always safe. */
  async #run(name: string, ended: Promise<void>, stop: AbortSignal): Promise<void> {
    try {
      await ended;
    } catch (thrown) {
      if (stop.aborted && thrown === stop.reason) return;
      if (stop.aborted && codeOf(thrown) === 'journal_full') {
        // After a reload, the next loop of the sink writes the acknowledgements when it opens the sink.
        if (this.#stop.aborted) this.#log.write('daemon.acknowledgements_unsaved', { name, code: 'journal_full', error: thrown });
        return;
      }
      if (this.#failure.signal.aborted) return;
      this.#log.write('daemon.failed', { name, code: codeOf(thrown), error: thrown });
      this.#failure.abort(thrown);
    }
  }

  async #stopped(): Promise<void> {
    if (this.#stop.aborted) return;
    await new Promise<void>((resolve) => this.#stop.addEventListener('abort', () => resolve(), { once: true }));
  }
}
