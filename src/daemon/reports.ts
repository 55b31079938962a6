/**
 * The completeness report as the running daemon gives it: made by a thread of its own, one at a time, and sent in pieces. No turn of the daemon's
 * thread grows with the length of the ledger, and a report that is too large for its thread ends that thread alone.
 */
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { WaybillError } from '../errors.ts';
import type { ReportAnswer, ReportOrder } from './report-thread.ts';

/** A report that is ready to be sent. */
export interface ReportStream {
  readonly type: string;
  readonly text: Readable;
}

const program = new URL(`./report-thread${extname(import.meta.url)}`, import.meta.url);
const pieceBytes = 65_536;

export class Reports {
  readonly #heapMiB: number;
  /** Resolves when the report before is made. */
  #turn: Promise<unknown> = Promise.resolve();

  /** @param heapMiB  memory that the thread may use */
  constructor(heapMiB = 256) {
    this.#heapMiB = heapMiB;
  }

  /** @throws WaybillError `usage` when the report is too large, or what the report throws */
  async make(order: ReportOrder): Promise<ReportStream> {
    const before = this.#turn;
    const mine = before.then(() => inThread(order, this.#heapMiB));
    this.#turn = mine.catch(() => undefined);
    const { type, bytes } = await mine;
    return { type, text: Readable.from(pieces(bytes), { objectMode: false }) };
  }
}

async function inThread(order: ReportOrder, heapMiB: number): Promise<{ type: string; bytes: Uint8Array }> {
  const worker = new Worker(program, {
    workerData: order,
    resourceLimits: { maxOldGenerationSizeMb: heapMiB, maxYoungGenerationSizeMb: 4 },
  });
  const answer = await new Promise<ReportAnswer>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', (thrown: Error & { code?: unknown }) => {
      if (thrown.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve({ isTooLarge: true });
      else reject(thrown);
    });
    worker.once('exit', () => reject(new Error('the thread of the report has ended without an answer')));
  });
  if ('bytes' in answer) return answer;
  if ('isTooLarge' in answer)
    throw new WaybillError('usage', 'cannot give the report: it is too large; ask for a shorter period with "from" and "to"');
  throw answer.code === undefined ? new Error(answer.words) : new WaybillError(answer.code, answer.words);
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
