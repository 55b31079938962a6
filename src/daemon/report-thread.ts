/**
 * The thread that makes one completeness report for the admin server, with a connection of its own that only reads, piece by piece as it is asked
 * for them: a long report takes seconds, in which the daemon's own thread collects and delivers. Started by reports.ts.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, wordsOf } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { Micros } from '../model.ts';
import { openLedgerReport } from '../journal/ledger-report.ts';
import type { ReportQuery } from '../journal/ledger-report.ts';
import { openReadOnly } from '../journal/state.ts';
import { ledgerDocument, zoneOfWords } from '../observe/ledger-document.ts';
import type { LedgerDocumentOptions, LedgerFormat } from '../observe/ledger-document.ts';
import { gathered } from '../observe/pieces.ts';
import { judged } from '../observe/verdict.ts';
import type { Present } from '../observe/verdict.ts';

/** What is asked of the thread. */
export interface ReportOrder {
  /** The state directory. */
  readonly state: string;
  readonly query: ReportQuery & { readonly now: Micros };
  /** What the daemon knew of sources and sinks when it was asked. */
  readonly present: Present;
  readonly format: LedgerFormat;
  readonly options: LedgerDocumentOptions;
}

/** Its answer each time it is asked: the next piece, with the media type in the first; or the end. The bytes change hands, they are not copied. */
export type ReportAnswer =
  | { readonly type: string; readonly bytes: Uint8Array }
  | { readonly isEnd: true }
  | { readonly code: ErrorCode | undefined; readonly words: string };

const pieceLength = 32_768;

function* answers({ state, query, present, format, options }: ReportOrder): Generator<ReportAnswer, ReportAnswer, void> {
  const db = openReadOnly(state);
  try {
    using reading = openLedgerReport(db, query);
    const { report } = judged(reading, { now: query.now, from: query.from, to: query.to }, present, zoneOfWords(format, options.tz));
    const { type, pieces } = ledgerDocument(report, format, options);
    for (const piece of gathered(pieces, pieceLength)) yield { type, bytes: new TextEncoder().encode(piece) };
  } finally {
    db.close();
  }
  return { isEnd: true };
}

function next(): ReportAnswer {
  try {
    return made.next().value;
  } catch (thrown) {
    return { code: codeOf(thrown), words: wordsOf(thrown) };
  }
}

const made = answers(workerData as ReportOrder);
parentPort?.on('message', () => {
  const answer = next();
  parentPort?.postMessage(answer, 'bytes' in answer ? [answer.bytes.buffer as ArrayBuffer] : []);
});
