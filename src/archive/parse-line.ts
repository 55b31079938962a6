/** Reads the facts of an archived line that `archive verify` checks. Pure. */
import { z } from 'zod';
import type { Micros } from '../model/time.ts';
import { parseTimestamp } from '../record/timestamp.ts';
import { maxOtherBytes } from './line.ts';
import type { ArchiveOrder, LedgerLine, LineRange, OperationLine, PositionLine, RecordLine } from './line.ts';
import { readContent, UsualRecords, type RecordContent } from './record-text.ts';

/** A line of a record. */
interface RecordFacts extends Pick<RecordLine, 'kind' | 'seq' | 'uid' | 'source'> {
  /** `logTimestamp`; undefined when it is unreadable. */
  readonly time: Micros | undefined;
  /** RFC 3339 in UTC, always with the same number of digits. */
  readonly received: string;
  /** The uid is that of the record; undefined: it cannot be computed from the record. */
  readonly isUidTrue: boolean | undefined;
  /** A key that an object of the record has twice. */
  readonly repeated: string | undefined;
}
export interface LedgerFacts extends Pick<
  LedgerLine,
  'kind' | 'seq' | 'source' | 'from' | 'to' | 'state' | 'records' | 'digest' | 'reason'
> {
  /** When it was written; undefined: the line does not state it. */
  readonly at?: Micros | undefined;
  /** What the service counted, and for which time; undefined: the line does not state it. */
  readonly total?: number | undefined;
  readonly query?: { readonly startTime: Micros; readonly endTime: Micros } | undefined;
}
export interface OperationFacts extends Pick<OperationLine, 'kind' | 'seq' | 'at' | 'actor'> {
  /** Undefined for an operation on something else than an archive. */
  readonly order: ArchiveOrder | undefined;
}
export type LineFacts = RecordFacts | LedgerFacts | OperationFacts | PositionLine;

const count = z.int().nonnegative();
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.string().transform((text, context) => {
  const at = parseTimestamp(text)?.us;
  if (at === undefined) context.addIssue({ code: 'custom', message: 'is not a time' });
  return at ?? z.NEVER;
});

/** Ranges of lines: ascending, without overlap. */
export const lineRanges = z
  .array(z.object({ first: z.int().positive(), last: z.int() }))
  .refine((all) => all.every(({ first, last }, i) => first <= last && first > (all[i - 1]?.last ?? 0)))
  .transform((all): readonly LineRange[] => all);
export const caseName = z.string().min(1).max(200);
/** `operation` and `detail` of an operation on an archive. */
export const archiveOrder = z.discriminatedUnion('operation', [
  z.object({ operation: z.literal('archive prune'), archive: z.string(), lines: lineRanges, before: time, reason: z.string() }),
  z.object({
    operation: z.literal('archive hold'),
    archive: z.string(),
    case: z.string(),
    lines: lineRanges,
    from: time.nullable(),
    to: time.nullable(),
  }),
  z.object({ operation: z.literal('archive release'), archive: z.string(), case: z.string() }),
]);

/** The fields of a record's line as they are written, in this order. An id of a source needs no escape. */
const recordHead =
  /^\{"kind":"record","seq":(0|[1-9]\d{0,14}),"uid":"([\w-]{21}[AQgw])","source":"([ !#-[\]-~]*)","received":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)","late":(true|false),"salt":"[\w-]{22}","record":/;
/** The fields before a record have fewer bytes than this. */
const headBytes = 256;
/** With an id of a source of this length, they have. */
const usualIdLength = 64;
const closingBrace = 0x7d;

/** A longer record is walked over: a pattern remembers a place for each character. */
const usualBytes = 8_192;
const usualRecords = new UsualRecords(recordHead, 5);

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
    at: time.optional().catch(undefined),
    total: count.optional().catch(undefined),
    query: z.object({ startTime: time, endTime: time }).optional().catch(undefined),
  }),
  z
    .object({
      kind: z.literal('operation'),
      seq: count,
      at: time,
      actor: z.string().nullable().catch(null),
      operation: z.string().optional().catch(undefined),
      detail: z.record(z.string(), z.unknown()).optional().catch(undefined),
    })
    .transform(({ operation, detail, ...line }): OperationFacts => ({
      ...line,
      order: archiveOrder.safeParse({ ...detail, operation }).data,
    })),
  z.object({
    kind: z.literal('position'),
    journal: z.string(),
    sink: z.string().optional(),
    after: count,
    seq: count,
    chain: digest,
    at: time,
    completeSince: time,
    sources: z.array(z.string()).nullable(),
    filtered: z.boolean(),
    timestamp: z.object({ checkpoint: count, sha256: digest }).optional(),
    removing: lineRanges.optional().catch(undefined),
    adopted: z.object({ lines: count, at: time }).optional().catch(undefined),
    former: z.string().optional(),
  }),
]);

/** @returns undefined for bytes that are no line of an archive */
export function parseLine(line: Buffer): LineFacts | undefined {
  const usual = parseUsualLine(line);
  if (usual) return usual;
  const record = parseRecordHead(line);
  if (record) {
    const content = readContent(record.source, record.record);
    if (line.length <= usualBytes && content.uid !== undefined && content.repeated === undefined)
      usualRecords.learn(line.toString('latin1'), record.record);
    return recordFacts(record, content);
  }
  const other = line.length > maxOtherBytes ? undefined : parseJson(line.toString());
  return isDeep(other) ? undefined : otherLine.safeParse(other).data;
}

/** @returns undefined for another line; its texts keep the complete line in memory */
function parseUsualLine(line: Buffer): RecordFacts | undefined {
  const found = line.length > usualBytes ? undefined : usualRecords.match(line.toString('latin1'), 3);
  if (!found) return undefined;
  const [, seq, uid = '', source = '', received = ''] = found.head;
  return source.length > usualIdLength ? undefined : recordFacts({ seq: Number(seq), uid, source, received }, found.content);
}

function recordFacts(
  { seq, uid, source, received }: Pick<RecordHead, 'seq' | 'uid' | 'source' | 'received'>,
  { time, uid: computed, repeated }: RecordContent,
): RecordFacts {
  return { kind: 'record', seq, uid, source, received, time, isUidTrue: computed === undefined ? undefined : computed === uid, repeated };
}

interface RecordHead extends Pick<RecordLine, 'seq' | 'uid' | 'source' | 'late'> {
  readonly record: Buffer;
  readonly received: string;
}

/** @returns undefined for another line */
function parseRecordHead(line: Buffer): RecordHead | undefined {
  const found = recordHead.exec(line.toString('latin1', 0, headBytes));
  if (!found || line.at(-1) !== closingBrace) return undefined;
  const [head, seq, uid = '', source = '', received = '', late] = found;
  return { seq: Number(seq), uid, source, received, late: late === 'true', record: line.subarray(head.length, -1) };
}

/** The fields of a record line that a replay needs. */
export interface ArchivedRecord extends Pick<RecordLine, 'uid' | 'source' | 'received' | 'late'> {
  readonly record: Buffer;
}

/** @param line  the line of a record, by `parseLine` */
export function parseRecordLine(line: Buffer): ArchivedRecord {
  const found = parseRecordHead(line);
  const received = parseTimestamp(found?.received ?? '')?.us;
  if (!found || received === undefined) throw new SyntaxError('it is not the line of a record');
  return { uid: found.uid, source: found.source, received, late: found.late, record: found.record };
}

/** Other readers of JSON limit the depth. */
const maxDepth = 64;

function isDeep(value: unknown): boolean {
  const isNested = (each: unknown): each is object => typeof each === 'object' && each !== null;
  let level = [value].filter(isNested);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === maxDepth) return true;
    level = level.flatMap((each): unknown[] => Object.values(each)).filter(isNested);
  }
  return false;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}
