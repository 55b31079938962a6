/** Reads the facts of an archived line that `archive verify` checks. Pure. */
import { z } from 'zod';
import type { Micros } from '../model/time.ts';
import { readRecord } from '../record/read.ts';
import { parseTimestamp } from '../record/timestamp.ts';
import { recordKey } from './line.ts';
import type { LedgerLine, OperationLine, PositionLine, RecordLine } from './line.ts';

/** A line of a record. */
interface RecordFacts extends Pick<RecordLine, 'kind' | 'seq' | 'uid' | 'source'> {
  /** `logTimestamp`; undefined when it is unreadable. */
  readonly time: Micros | undefined;
}
export type LedgerFacts = Pick<LedgerLine, 'kind' | 'seq' | 'source' | 'from' | 'to' | 'state' | 'records' | 'digest' | 'reason'>;
export type LineFacts = RecordFacts | LedgerFacts | Pick<OperationLine, 'kind' | 'seq' | 'at'> | PositionLine;

const count = z.int().nonnegative();
const uid = z.string().regex(/^[\w-]{21}[AQgw]$/);
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.string().transform((text, context) => {
  const at = parseTimestamp(text)?.us;
  if (at === undefined) context.addIssue({ code: 'custom', message: 'is not a time' });
  return at ?? z.NEVER;
});

const recordHead = z.object({ kind: z.literal('record'), seq: count, uid, source: z.string() });
const recordLine = z.object({ uid, source: z.string(), received: time, late: z.boolean() });
const otherLine = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('ledger'),
    seq: count,
    source: z.string(),
    from: time,
    to: time,
    state: z.enum(['proven', 'gap', 'accepted', 'suspended', 'resumed']),
    records: count,
    digest: digest.nullable(),
    reason: z.string().nullable(),
  }),
  z.object({ kind: z.literal('operation'), seq: count, at: time }),
  z.object({
    kind: z.literal('position'),
    journal: z.string(),
    after: count,
    seq: count,
    chain: digest,
    at: time,
    completeSince: time,
    sources: z.array(z.string()).nullable(),
    filtered: z.boolean(),
  }),
]);

/** @returns undefined for bytes that are no line of an archive */
export function parseLine(line: Buffer): LineFacts | undefined {
  const at = line.indexOf(recordKey);
  if (at < 0) return otherLine.safeParse(parseJson(line.toString())).data;
  const head = recordHead.safeParse(parseJson(`${line.toString('utf8', 0, at)}}`)).data;
  const record = line.subarray(at + recordKey.length, -1);
  // No other line has this key at its first level; a detail of an operation may have it further in.
  if (!head) return otherLine.safeParse(parseJson(line.toString())).data;
  return { ...head, time: timeOf(record) };
}

/** What a replay needs of the line of a record. */
export type ArchivedRecord = Pick<RecordLine, 'uid' | 'source' | 'received' | 'late' | 'record'>;

/** @param line  of a record, as `parseLine` says */
export function parseRecordLine(line: Buffer): ArchivedRecord {
  const at = line.indexOf(recordKey);
  const head = recordLine.parse(parseJson(`${line.toString('utf8', 0, at)}}`));
  return { ...head, record: line.subarray(at + recordKey.length, -1) };
}

function timeOf(record: Buffer): Micros | undefined {
  try {
    return readRecord(record).time;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}
