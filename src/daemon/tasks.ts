/** The loops of the daemon, which run concurrently until a signal or a fatal error stops all of them. */
import { codeOf, messageOf, WaybillError } from '../errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

export class Tasks {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #failure = new AbortController();
  readonly #abandon = new AbortController();
  readonly #stop: AbortSignal;
  readonly #running: Promise<void>[] = [];

  constructor(signal: AbortSignal, clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#stop = AbortSignal.any([signal, this.#failure.signal]);
  }

  /** `stop` asks the loop to end; `abandon` interrupts a batch that outlasts the shutdown timeout. */
  start(name: string, loop: (stop: AbortSignal, abandon: AbortSignal) => Promise<void>): void {
    this.#running.push(this.#run(name, loop(this.#stop, this.#abandon.signal)));
  }

  /**
   * Resolves when every loop has ended.
   * @param shutdownTimeout  ms from the stop until batches in progress are abandoned
   * @returns the fatal error, which is in the log; undefined after the signal
   */
  async ended(shutdownTimeout: number): Promise<unknown> {
    await this.#stopped();
    this.#log.write('daemon.stopping', { reason: messageOf(this.#stop.reason) });
    const allEnded = new AbortController();
    const timer = this.#clock.sleep(shutdownTimeout, allEnded.signal).then(
      () => {
        this.#log.write('daemon.batch_abandoned', { shutdownTimeoutMs: shutdownTimeout });
        this.#abandon.abort(new WaybillError('aborted', 'the shutdown timeout has expired'));
      },
      () => undefined,
    );
    await Promise.all(this.#running);
    allEnded.abort();
    await timer;
    this.#log.write('daemon.stopped');
    return this.#failure.signal.aborted ? this.#failure.signal.reason : undefined;
  }

  /** One fatal error stops all loops: the orchestrator restarts the process, and a restart is always safe. */
  async #run(name: string, ended: Promise<void>): Promise<void> {
    try {
      await ended;
    } catch (thrown) {
      const isStopping = this.#stop.aborted;
      if (isStopping && thrown === this.#stop.reason) return;
      if (isStopping && codeOf(thrown) === 'journal_full') {
        this.#log.write('daemon.acknowledgements_unsaved', { name, code: 'journal_full', error: thrown });
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
