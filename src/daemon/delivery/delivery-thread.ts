/**
 * Runs delivery loops in a second thread, in parallel to collection and the journal. A thread that
 * ends also ends the daemon: a restart is always safe, and messages sent without an acknowledgement
 * are uncertain, as after a kill.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../clock.ts';
import type { SinkLoop } from '../../deliver/sink-loop.ts';
import { atMost, within } from '../../deadline.ts';
import { codeOf, messageOf, WaybillError } from '../../errors.ts';
import { programFile } from '../../files.ts';
import type { Journal } from '../../journal/journal.ts';
import type { DaemonOptions } from '../options.ts';
import { Channel, portOf } from '../channel.ts';
import type { HostService } from './host.ts';
import type { LoopParts } from './loop.ts';
import type { SinkPlan } from './plan.ts';
import { RemoteLoops } from './remote-loop.ts';

const program = programFile('daemon/delivery/thread');

/** For JournalOptions: with the default, collection would wait for this thread after each page. */
export const threadHandOver = 8 * 1024 * 1024;

/** How long the thread may take to respond once a batch is abandoned, and then to end: a look-up of a name holds it. */
const responseMs = 1_000;

/** A second thread needs a second core. It uses the system clock, so a simulation runs without it. */
export function usesDeliveryThread({ config, clock }: Pick<DaemonOptions, 'config' | 'clock'>): boolean {
  return config.deliveryThread === 'auto' && availableParallelism() > 1 && clock === systemClock;
}

export class DeliveryThread implements AsyncDisposable {
  readonly #journal: Journal;
  #hasStarted = false;
  #running: { readonly worker: Worker; readonly loops: RemoteLoops; readonly channel: Channel } | undefined;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Creates a loop without starting it. The first loop starts the thread. */
  create(plan: SinkPlan, parts: LoopParts): SinkLoop {
    if (!this.#running) {
      this.#running = this.#start();
      void this.#ping().then(() => (this.#hasStarted = true));
    }
    return this.#running.loops.create(plan, parts);
  }

  /** Resolves when the thread responds. Resolves at once while the thread starts, and after its end, which also ends the daemon. */
  async responded(): Promise<void> {
    if (this.#hasStarted) await this.#ping();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#running) return;
    const { worker, loops, channel } = this.#running;
    loops.close();
    channel.close(new WaybillError('aborted', 'the delivery thread was stopped'));
    await atMost(responseMs, worker.terminate(), systemClock);
  }

  async #ping(): Promise<void> {
    await this.#running?.channel
      .remote<HostService>('host')
      .ping()
      .catch(() => undefined);
  }

  /** A thread that does not respond never abandons its batch: the shutdown would wait for it without end. */
  async #endUnlessResponding(): Promise<void> {
    await within(
      () => this.#ping(),
      responseMs,
      () => failure(new Error(`no response within ${responseMs / 1000} s`)),
      systemClock,
    ).catch((thrown: unknown) => this.#running?.channel.close(thrown as Error));
  }

  #start() {
    const worker = new Worker(program, { name: 'deliver' });
    const channel = new Channel(portOf(worker), (thrown) => channel.close(failure(thrown)));
    worker.once('error', (thrown) => channel.close(failure(thrown)));
    worker.once('exit', (code) => channel.close(failure(new Error(`exit code ${code}`))));
    return { worker, channel, loops: new RemoteLoops(channel, this.#journal, () => void this.#endUnlessResponding()) };
  }
}

/** The runs of all loops end with this error. */
function failure(thrown: unknown): WaybillError {
  if (thrown instanceof WaybillError && codeOf(thrown) === 'internal_error') return thrown;
  return new WaybillError('internal_error', `the delivery thread ended: ${messageOf(thrown)}`, { cause: thrown });
}
