/**
 * The completeness report as the running daemon gives it: made by a thread of its own as fast as it is read, one at a time. Neither memory nor a
 * turn of the daemon's thread grows with the length of the ledger.
 */
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { WaybillError } from '../../errors.ts';
import type { Clock } from '../../model/time.ts';
import type { ReportAnswer, ReportOrder } from './report-thread.ts';

/** A report whose begin is made; the rest follows as it is read. */
interface ReportStream {
  readonly type: string;
  readonly text: Readable;
}

const program = new URL(`./report-thread${extname(import.meta.url)}`, import.meta.url);
/** What the thread needs does not grow with the ledger, but for gaps that a person accepted and dead letters. */
const heapMiB = 128;
const waitingMax = 8;

export class Reports {
  readonly #clock: Clock;
  readonly #stallMs: number;
  /** Resolves when the report before is read, or given up. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** @param stallMs  how long a reader may take nothing before the next one gets its turn */
  constructor(clock: Clock, stallMs = 60_000) {
    this.#clock = clock;
    this.#stallMs = stallMs;
  }

  /**
   * Throws what the report throws before its first piece; what it throws later ends the stream.
   * @throws WaybillError `admin_busy` when too many wait for their turn
   */
  async make(order: ReportOrder): Promise<ReportStream> {
    if (this.#waiting >= waitingMax) throw new WaybillError('admin_busy', `${waitingMax} reports are waiting already`);
    const before = this.#turn;
    const { promise: over, resolve: end } = Promise.withResolvers<undefined>();
    this.#turn = over;
    this.#waiting += 1;
    await before;
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
  /** What ended it before it was asked to end. */
  #failed: Error | undefined;
  #fail: (thrown: Error) => void = () => undefined;

  constructor(order: ReportOrder) {
    const end = (thrown: Error): void => this.#fail((this.#failed ??= thrown));
    this.#worker = new Worker(program, {
      workerData: order,
      resourceLimits: { maxOldGenerationSizeMb: heapMiB, maxYoungGenerationSizeMb: 4 },
    })
      .once('error', end)
      .once('exit', () => end(new Error('the thread of the report has ended without an answer')));
  }

  /** The next piece; undefined at the end. */
  async next(): Promise<{ readonly type: string; readonly bytes: Uint8Array } | undefined> {
    // Not raced against a promise of its end: that would hold every piece until then.
    const answer = await new Promise<ReportAnswer>((resolve, reject) => {
      if (this.#failed) throw this.#failed;
      this.#fail = reject;
      this.#worker.once('message', resolve).postMessage('next');
    });
    if ('bytes' in answer) return answer;
    if ('isEnd' in answer) return undefined;
    throw answer.code === undefined ? new Error(answer.message) : new WaybillError(answer.code, answer.message);
  }

  /** The first piece and all that follow. Ends the thread when it ends, is destroyed, or nobody reads on. */
  stream(first: Uint8Array, clock: Clock, stallMs: number): Readable {
    let reading = new AbortController();
    const push = (bytes: Uint8Array | null): void => {
      reading = new AbortController();
      const giveUp = (): unknown => text.destroy(new Error(`nobody has read on for ${stallMs / 1000} s`));
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
