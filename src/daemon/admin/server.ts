/**
 * Runs the admin server in a separate thread and answers the requests of that thread. A thread that fails is restarted: a client cannot
 * stop the daemon.
 */
import { Worker } from 'node:worker_threads';
import { programFile } from '../../files.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock } from '../../model/time.ts';
import { carried, revived } from '../carried-error.ts';
import { pulse } from './messages.ts';
import type { AdminThreadData, FromThread, Listen, Question, Reported, ToThread, TokenName } from './messages.ts';

/** The answers to the requests of the thread. */
export interface AdminFacts {
  /** Undefined while the state is not open. */
  readonly snapshot: () => Snapshot | undefined | Promise<Snapshot | undefined>;
  readonly metricsText: () => Promise<string>;
  readonly operate: (request: unknown) => Promise<unknown>;
  /** Resolves when the threads beside the main thread respond; default at once. */
  readonly responded?: () => Promise<void>;
  /** @throws WaybillError `secret_missing` */
  readonly token: (name: TokenName) => string;
}

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
/** Far more than 512 connections and a metrics text need. */
const heapMiB = 128;

export class AdminServer implements AsyncDisposable {
  #options: AdminOptions;
  readonly #pulse = new Int32Array(new SharedArrayBuffer(8));
  readonly #end = new AbortController();
  /** In this order; a new thread listens on them again. */
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

  /** From now on, reports use these settings, also after the thread was restarted. */
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
        // A thread that cannot listen is still running.
        await this.#thread.close(clock);
      }
    }
  }

  /** Advances a counter while this thread and the others respond. */
  async #beat(): Promise<void> {
    for (;;) {
      Atomics.add(this.#pulse, pulse.beat, 1);
      await this.#options.facts.responded?.();
      await this.#options.clock.sleep(beatMs, this.#end.signal);
    }
  }
}

class AdminThread {
  readonly #worker: Worker;
  readonly #facts: AdminFacts;
  readonly #log: Log;
  readonly #gone: Promise<void>;
  #isClosing = false;
  #listening: { resolve: (addresses: readonly string[]) => void; reject: (thrown: unknown) => void } | undefined;
  #failure: unknown;

  constructor(data: AdminThreadData, facts: AdminFacts, log: Log, failed: (thrown: unknown) => void) {
    this.#facts = facts;
    this.#log = log;
    this.#worker = new Worker(program, {
      name: 'admin',
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: heapMiB, maxYoungGenerationSizeMb: 6 },
    });
    this.#worker.on('message', (message: FromThread) => this.#receive(message));
    this.#worker.once('error', (thrown) => {
      this.#failure = thrown;
    });
    this.#gone = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        resolve();
        const thrown = this.#failure ?? new Error('the admin server thread ended');
        // A pending `listen` throws the error; otherwise the thread is restarted.
        if (this.#listening) this.#listening.reject(thrown);
        else if (!this.#isClosing) failed(thrown);
      });
    });
  }

  async listen(listen: Listen): Promise<readonly string[]> {
    try {
      return await new Promise((resolve, reject) => {
        this.#listening = { resolve, reject };
        this.#send({ kind: 'listen', listen });
      });
    } finally {
      this.#listening = undefined;
    }
  }

  follow(reported: Reported): void {
    this.#send({ kind: 'follow', reported });
  }

  /** Gives open responses a moment to end, then terminates the thread. */
  async close(clock: Clock): Promise<void> {
    this.#isClosing = true;
    this.#send({ kind: 'close' });
    const gone = new AbortController();
    await Promise.race([this.#gone, clock.sleep(closeMs, gone.signal).catch(() => undefined)]);
    gone.abort();
    await this.#worker.terminate();
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'question':
        void this.#answer(message.id, message.question);
        break;
      case 'listens':
        this.#listening?.resolve(message.addresses);
        break;
      case 'refused':
        this.#listening?.reject(revived(message.thrown));
        break;
      case 'log':
        this.#log.write(message.event, { ...message.fields, error: message.error && revived(message.error) });
    }
  }

  async #answer(id: number, question: Question): Promise<void> {
    try {
      this.#send({ kind: 'answer', id, value: await this.#fact(question) });
    } catch (thrown) {
      this.#send({ kind: 'failed', id, thrown: carried(thrown) });
    }
  }

  #fact(question: Question): unknown {
    switch (question.what) {
      case 'snapshot':
        return this.#facts.snapshot();
      case 'metrics':
        return this.#facts.metricsText();
      case 'operate':
        return this.#facts.operate(question.request);
      default:
        return this.#facts.token(question.what);
    }
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}
