/**
 * The thread that creates one report for the admin server, chunk by chunk on request, with a separate read-only connection: a long report
 * takes seconds, and the main thread of the daemon continues to collect and deliver. Started by report-maker.ts.
 */
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf, type ErrorCode } from '../../errors/errors.ts';
import { gapsOf } from '../../journal/queries/gaps.ts';
import { openLedgerReport, type ReportQuery } from '../../journal/queries/ledger.ts';
import { operationList } from '../../journal/queries/operations.ts';
import { openReadOnly } from '../../journal/state.ts';
import type { Micros } from '../../model/time.ts';
import { ledgerDocument, zoneOfWords } from '../../report/ledger/document.ts';
import type { LedgerDocument, LedgerDocumentOptions, LedgerFormat } from '../../report/ledger/document.ts';
import { gathered, jsonChunks, joined } from '../../report/chunks.ts';
import { assessed } from '../../report/summary.ts';
import type { Present } from '../../report/completeness.ts';

export type ReportOrder = {
  /** The state directory. */
  readonly state: string;
} & (
  | {
      readonly kind: 'ledger';
      readonly query: ReportQuery & { readonly now: Micros };
      /** The sources and sinks of the daemon at the time of the request. */
      readonly present: Present;
      readonly format: LedgerFormat;
      readonly options: LedgerDocumentOptions;
    }
  | { readonly kind: 'gaps'; readonly source: string | undefined }
  /** `[from, to)` */
  | { readonly kind: 'operations'; readonly from: Micros; readonly to: Micros }
);

/** The response to each request: the next chunk, or the end. The thread transfers the bytes instead of copying them. */
export type ReportAnswer =
  | { readonly type: string; readonly bytes: Uint8Array }
  | { readonly isEnd: true }
  | { readonly code: ErrorCode | undefined; readonly message: string };

type Connection = ReturnType<typeof openReadOnly>;

const chunkLength = 32_768;

function* answers(order: ReportOrder): Generator<ReportAnswer, ReportAnswer, void> {
  const db = openReadOnly(order.state);
  try {
    yield* order.kind === 'ledger' ? ledger(db, order) : chunks(list(db, order));
  } finally {
    db.close();
  }
  return { isEnd: true };
}

function* ledger(
  db: Connection,
  { query, present, format, options }: Extract<ReportOrder, { kind: 'ledger' }>,
): Generator<ReportAnswer, void, void> {
  using reading = openLedgerReport(db, query);
  const { report } = assessed(reading, { now: query.now, from: query.from, to: query.to }, present, zoneOfWords(format, options.tz));
  yield* chunks(ledgerDocument(report, format, options));
}

function list(db: Connection, order: Exclude<ReportOrder, { kind: 'ledger' }>): LedgerDocument {
  const value = order.kind === 'gaps' ? gapsOf(db, order.source) : { operations: operationList(db, order.from, order.to) };
  return { type: 'application/json; charset=utf-8', chunks: joined([jsonChunks(value), '\n'], '') };
}

function* chunks({ type, chunks }: LedgerDocument): Generator<ReportAnswer, void, void> {
  for (const chunk of gathered(chunks, chunkLength)) yield { type, bytes: new TextEncoder().encode(chunk) };
}

function next(): ReportAnswer {
  try {
    return responses.next().value;
  } catch (thrown) {
    return { code: codeOf(thrown), message: messageOf(thrown) };
  }
}

// Every other thread has priority. Only Linux has a priority for each thread.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_LOW);

const responses = answers(workerData as ReportOrder);
parentPort?.on('message', () => {
  const answer = next();
  parentPort?.postMessage(answer, 'bytes' in answer ? [answer.bytes.buffer as ArrayBuffer] : []);
});
