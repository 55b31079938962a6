/**
 * The thread that makes one completeness report for the admin server, with a connection of its own that only reads, and ends: a year of windows
 * takes seconds, in which the daemon's own thread collects and delivers. Started by reports.ts.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, wordsOf } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { ledgerReport } from '../journal/ledger-report.ts';
import type { ReportQuery } from '../journal/ledger-report.ts';
import { openReadOnly } from '../journal/state.ts';
import { ledgerDocument } from '../observe/ledger-document.ts';
import type { LedgerDocumentOptions, LedgerFormat } from '../observe/ledger-document.ts';

/** What is asked of the thread. */
export interface ReportOrder {
  /** The state directory. */
  readonly state: string;
  readonly query: ReportQuery;
  readonly format: LedgerFormat;
  readonly options: LedgerDocumentOptions;
}

/** Its one message. The bytes change hands, they are not copied. */
export type ReportAnswer =
  | { readonly isTooLarge: true }
  | { readonly type: string; readonly bytes: Uint8Array }
  | { readonly code: ErrorCode | undefined; readonly words: string };

function answer({ state, query, format, options }: ReportOrder): ReportAnswer {
  const db = openReadOnly(state);
  try {
    const { type, text } = ledgerDocument(ledgerReport(db, query), format, options);
    return { type, bytes: new TextEncoder().encode(text) };
  } catch (thrown) {
    // A text of more than half a gigabyte.
    if (thrown instanceof RangeError) return { isTooLarge: true };
    return { code: codeOf(thrown), words: wordsOf(thrown) };
  } finally {
    db.close();
  }
}

const made = answer(workerData as ReportOrder);
parentPort?.postMessage(made, 'bytes' in made ? [made.bytes.buffer as ArrayBuffer] : []);
