/**
 * The thread that creates one report for the admin server, chunk by chunk on request, with a separate read-only connection, or from a copy of
 * each shard of a fleet: a long report takes seconds, and the main thread of the daemon continues to collect and deliver. Started by
 * report-maker.ts.
 */
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf, type ErrorCode } from '../../errors/errors.ts';
import type { DatabaseAccess } from '../../fleet/database.ts';
import { gapsOf } from '../../journal/queries/gaps.ts';
import { openLedgerReports, type ReportQuery } from '../../journal/queries/ledger.ts';
import { operationList } from '../../journal/queries/operations.ts';
import { openStates, type OpenState } from '../../fleet/readers.ts';
import { Secret } from '../../settings/secret.ts';
import type { Micros } from '../../model/time.ts';
import { ledgerDocument, zoneOfWords } from '../../report/ledger/document.ts';
import type { LedgerDocument, LedgerDocumentOptions, LedgerFormat } from '../../report/ledger/document.ts';
import { gathered, jsonChunks, joined } from '../../report/chunks.ts';
import { assessed } from '../../report/summary.ts';
import type { Present } from '../../report/completeness.ts';

export type ReportOrder = {
  /** The state directory, or the database of a fleet. */
  readonly state: string | DatabaseValues;
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

/** The values that connections to the database of a fleet use now. */
export interface DatabaseValues {
  readonly database: string;
  readonly password: string | undefined;
  readonly ca: readonly string[] | undefined;
}

const chunkLength = 32_768;

async function* answers(order: ReportOrder): AsyncGenerator<ReportAnswer, ReportAnswer, void> {
  const { state } = order;
  using opened = await openStates(typeof state === 'string' ? state : accessOf(state));
  const dbs = opened.states.map(({ db }) => db);
  yield* order.kind === 'ledger' ? ledger(dbs, order) : chunks(list(dbs, order));
  return { isEnd: true };
}

/** A secret is removed from the messages of the database. */
function accessOf({ database, password, ca }: DatabaseValues): DatabaseAccess {
  return { database, ...(password !== undefined && { password: new Secret(password) }), ...(ca && { ca: { read: () => ca } }) };
}

function* ledger(
  dbs: readonly OpenState['db'][],
  { query, present, format, options }: Extract<ReportOrder, { kind: 'ledger' }>,
): Generator<ReportAnswer, void, void> {
  using reading = openLedgerReports(dbs, query);
  const { report } = assessed(reading, { now: query.now, from: query.from, to: query.to }, present, zoneOfWords(format, options.tz));
  yield* chunks(ledgerDocument(report, format, options));
}

function list(dbs: readonly OpenState['db'][], order: Exclude<ReportOrder, { kind: 'ledger' }>): LedgerDocument {
  const value = order.kind === 'gaps' ? gapsOf(dbs, order.source) : { operations: operationList(dbs, order.from, order.to) };
  return { type: 'application/json; charset=utf-8', chunks: joined([jsonChunks(value), '\n'], '') };
}

function* chunks({ type, chunks }: LedgerDocument): Generator<ReportAnswer, void, void> {
  for (const chunk of gathered(chunks, chunkLength)) yield { type, bytes: new TextEncoder().encode(chunk) };
}

async function next(): Promise<ReportAnswer> {
  try {
    return (await responses.next()).value;
  } catch (thrown) {
    return { code: codeOf(thrown), message: messageOf(thrown) };
  }
}

// Every other thread has priority. Only Linux has a priority for each thread.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_LOW);

const responses = answers(workerData as ReportOrder);
parentPort?.on('message', () => {
  void next().then((answer) => parentPort?.postMessage(answer, 'bytes' in answer ? [answer.bytes.buffer as ArrayBuffer] : []));
});
