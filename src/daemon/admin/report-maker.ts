/**
 * Creates the reports of the admin server, one at a time, in a separate thread and as fast as the client reads. The length of the ledger
 * affects neither the memory nor the speed of the other threads.
 */
import { Readable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { WaybillError } from '../../errors/errors.ts';
import { programFile } from '../../disk/files.ts';
import type { Clock } from '../../model/time.ts';
import type { ReportAnswer, ReportOrder } from './report-thread.ts';

/** A report that has its first chunk. The stream creates the others as the client reads. */
interface ReportStream {
  readonly type: string;
  readonly text: Readable;
}

const program = programFile('daemon/admin/report-thread');
/** The thread's memory does not grow with the ledger, except for accepted gaps and dead letters. */
const heapMiB = 128;
const waitingMax = 8;

export class Reports {
  readonly #clock: Clock;
  readonly #stallMs: number;
  /** Resolves when the client of the previous report has read or abandoned it. */
  #previous: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** @param stallMs  abandons a report whose client reads nothing for this long */
  constructor(clock: Clock, stallMs = 60_000) {
    this.#clock = clock;
    this.#stallMs = stallMs;
  }

  /** @throws WaybillError `admin_busy` when too many reports are waiting; an error before the first chunk. A later error ends the stream */
  async make(order: ReportOrder): Promise<ReportStream> {
    if (this.#waiting >= waitingMax) throw new WaybillError('admin_busy', `${waitingMax} reports are waiting already`);
    const previous = this.#previous;
    const { promise: over, resolve: end } = Promise.withResolvers<undefined>();
    this.#previous = over;
    this.#waiting += 1;
    await previous;
    this.#waiting -= 1;
    const thread = new Thread(order);
    try {
      const first = await thread.next();
      if (!first) throw new Error('the report is empty');
      const text = thread.stream(first.bytes, this.#clock, this.#stallMs);
      text.once('close', () => end(undefined));
      return { type: first.type, text };
    } catch (thrown) {
      await thread[Symbol.asyncDispose]();
      end(undefined);
      throw thrown;
    }
  }
}

class Thread implements AsyncDisposable {
  readonly #worker: Worker;
  #failed: Error | undefined;
  #fail: (thrown: Error) => void = () => undefined;

  constructor(order: ReportOrder) {
    const end = (thrown: Error): void => this.#fail((this.#failed ??= thrown));
    this.#worker = new Worker(program, {
      workerData: order,
      resourceLimits: { maxOldGenerationSizeMb: heapMiB, maxYoungGenerationSizeMb: 4 },
    })
      .once('error', end)
      .once('exit', () => end(new Error('the report thread ended without an answer')));
  }

  /** The next chunk; undefined at the end. */
  async next(): Promise<{ readonly type: string; readonly bytes: Uint8Array } | undefined> {
    // `Promise.race` with the end of the thread would keep every chunk in memory until the end.
    const answer = await new Promise<ReportAnswer>((resolve, reject) => {
      if (this.#failed) throw this.#failed;
      this.#fail = reject;
      this.#worker.once('message', resolve).postMessage('next');
    });
    if ('bytes' in answer) return answer;
    if ('isEnd' in answer) return undefined;
    throw answer.code === undefined ? new Error(answer.message) : new WaybillError(answer.code, answer.message);
  }

  /** Streams the first and all further chunks. Ends the thread when the stream ends, is destroyed or stalls. */
  stream(first: Uint8Array, clock: Clock, stallMs: number): Readable {
    let reading = new AbortController();
    const push = (bytes: Uint8Array | null): void => {
      reading = new AbortController();
      const giveUp = (): unknown => text.destroy(new Error(`the client has read nothing for ${stallMs / 1000} s`));
      clock.sleep(stallMs, reading.signal).then(giveUp, () => undefined);
      text.push(bytes);
    };
    const text = new Readable({
      highWaterMark: 1,
      read: () => {
        reading.abort();
        this.next().then(
          (chunk) => push(chunk?.bytes ?? null),
          (thrown: unknown) => text.destroy(thrown instanceof Error ? thrown : new Error(String(thrown))),
        );
      },
      destroy: (thrown, done) => {
        reading.abort();
        this[Symbol.asyncDispose]().then(() => done(thrown), done);
      },
    });
    push(first);
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
