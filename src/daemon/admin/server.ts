/**
 * Runs the admin server in a separate thread and answers the requests of that thread. Restarts a thread that fails: no client can stop the
 * daemon.
 */
import { Worker } from 'node:worker_threads';
import { atMost } from '../../time/deadline.ts';
import { programFile } from '../../disk/files.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock } from '../../model/time.ts';
import { revived } from '../carried-error.ts';
import { Channel } from '../channel.ts';
import { pulse, type AdminService, type AdminThreadData, type DaemonService, type Listen, type Reported } from './messages.ts';

export type AdminFacts = Omit<DaemonService, 'log'>;

interface AdminOptions extends Omit<AdminThreadData, 'pulse'> {
  readonly facts: AdminFacts;
  readonly clock: Clock;
  readonly log: Log;
}

const program = programFile('daemon/admin/thread');
const beatMs = 500;
const restartMs = 1_000;
/** How long open connections may take to end. */
const closeMs = 1_000;
/** Far more than the thread needs for 512 connections and the text of the metrics. */
const heapMiB = 128;

export class AdminServer implements AsyncDisposable {
  #options: AdminOptions;
  readonly #pulse = new Int32Array(new SharedArrayBuffer(8));
  readonly #end = new AbortController();
  /** A new thread listens on these again, in this order. */
  readonly #listens: Listen[] = [];
  #thread: AdminThread;

  constructor(options: AdminOptions) {
    this.#options = options;
    this.#thread = this.#start();
    this.#beat().catch(() => undefined);
  }

  /** @returns the addresses listened on. @throws WaybillError `admin_listen_failed` */
  async listen(listen: Listen): Promise<readonly string[]> {
    const addresses = await this.#thread.listen(listen);
    this.#listens.push(listen);
    return addresses;
  }

  /** Reports use these settings from now on, also after a restart of the thread. */
  follow({ settings, services }: Reported): void {
    this.#options = { ...this.#options, settings, services };
    this.#thread.follow({ settings, services });
  }

  /** From now on `/healthz` reports `ok`. */
  opened(): void {
    Atomics.store(this.#pulse, pulse.isOpen, 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#thread.close(this.#options.clock);
  }

  #start(): AdminThread {
    const { facts, log, state, version, settings, services } = this.#options;
    return new AdminThread({ state, version, settings, services, pulse: this.#pulse }, facts, log, (thrown) => void this.#restart(thrown));
  }

  async #restart(thrown: unknown): Promise<void> {
    const { clock, log } = this.#options;
    for (let failed = thrown; !this.#end.signal.aborted;) {
      log.write('admin.failed', { error: failed });
      try {
        await clock.sleep(restartMs, this.#end.signal);
        this.#thread = this.#start();
        for (const listen of this.#listens) await this.#thread.listen(listen);
        log.write('admin.restarted');
        return;
      } catch (next) {
        failed = next;
        // A thread that cannot listen keeps running.
        await this.#thread.close(clock);
      }
    }
  }

  /** Advances a counter while this thread and the others respond. */
  async #beat(): Promise<void> {
    for (;;) {
      Atomics.add(this.#pulse, pulse.beat, 1);
      await this.#options.clock.sleep(beatMs, this.#end.signal);
    }
  }
}

class AdminThread {
  readonly #worker: Worker;
  readonly #channel: Channel;
  readonly #gone: Promise<void>;
  #isClosing = false;
  #isListening = false;

  constructor(data: AdminThreadData, facts: AdminFacts, log: Log, failed: (thrown: unknown) => void) {
    this.#worker = new Worker(program, {
      name: 'admin',
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: heapMiB, maxYoungGenerationSizeMb: 6 },
    });
    this.#channel = new Channel(this.#worker, (thrown) => {
      throw thrown;
    });
    this.#channel.serve({
      ...facts,
      // The log of the thread has checked the fields.
      log: (event, fields, error) => log.write(event, { ...fields, error: error && revived(error) } as never),
    } satisfies DaemonService);
    let failure = new Error('the admin server thread ended');
    this.#worker.once('error', (thrown: Error) => {
      failure = thrown;
    });
    this.#gone = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        resolve();
        // A pending `listen` throws the error; otherwise the thread restarts.
        const isPending = this.#isListening;
        this.#channel.close(failure);
        if (!isPending && !this.#isClosing) failed(failure);
      });
    });
  }

  async listen(listen: Listen): Promise<readonly string[]> {
    this.#isListening = true;
    try {
      return await this.#channel.remote<AdminService>().listen(listen);
    } finally {
      this.#isListening = false;
    }
  }

  follow(reported: Reported): void {
    this.#channel.notified<AdminService>().follow(reported);
  }

  /** Gives open responses a moment to end, then terminates the thread. */
  async close(clock: Clock): Promise<void> {
    this.#isClosing = true;
    this.#channel.notified<AdminService>().close();
    await atMost(closeMs, this.#gone, clock);
    await this.#worker.terminate();
  }
}
