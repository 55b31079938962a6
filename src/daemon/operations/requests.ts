/** The operations that an operator may request of the daemon, and their results. */
import { z } from 'zod';
import type { ReplayProgress } from '../../model/journal.ts';
import type { SourceMove, Window } from '../../model/ledger.ts';
import type { Rejection } from '../../model/sink.ts';
import type { Micros } from '../../model/time.ts';
import { outcomeCodes } from '../../normalize/outcomes.ts';
import { caseName, lineRanges } from '../../archive/parse-line.ts';
import { instant } from '../../settings/values.ts';
import type { Collector } from '../../collect/scheduler.ts';
import type { ConfiguredSink } from '../open-delivery.ts';

const id = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/);
/** RFC 3339, read as µs. */
const time = instant();
const origin = z.string().min(1).max(200);
const seq = z.int().min(1);
const maxTestEvents = 1_000;
export const maxDeadLetters = 1_000;
const actor = { actor: z.string().min(1).max(200), reason: z.string().max(2_000).optional() };

/** The body of a request to the socket and to `POST /operations`: times in RFC 3339. */
export const operationSchema = z.discriminatedUnion('operation', [
  z.strictObject({
    operation: z.literal('backfill'),
    source: id,
    from: time,
    to: time,
    rate: z.number().positive().max(1_000).optional(),
    sinks: z.array(id).min(1).optional(),
    expected: z.int().min(0).optional(),
    ...actor,
  }),
  z.strictObject({ operation: z.enum(['backfill pause', 'backfill resume', 'backfill cancel']), source: id, from: time, ...actor }),
  z.strictObject({ operation: z.literal('gaps retry'), source: id, from: time, ...actor }),
  z.strictObject({
    operation: z.literal('gaps accept'),
    source: id,
    from: time,
    evidence: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
    ...actor,
    reason: z.string().min(1).max(2_000),
  }),
  z.strictObject({ operation: z.enum(['sources retire', 'sources retry']), source: id, ...actor }),
  /** `destination`: of the configuration of the command; see destinationOf. */
  z.strictObject({
    operation: z.literal('sources move'),
    source: id,
    destination: z.string().min(1).max(4_000),
    ...actor,
    reason: z.string().min(1).max(2_000),
  }),
  z.strictObject({ operation: z.literal('sinks retire'), sink: id, ...actor }),
  z.strictObject({ operation: z.literal('sinks adopt'), sink: id, ...actor }),
  z.strictObject({ operation: z.literal('sinks retry'), sink: id, ...actor }),
  z.strictObject({ operation: z.literal('sinks reconcile'), sink: id, from: time, ...actor }),
  z.strictObject({
    operation: z.literal('sinks test'),
    sink: id,
    as: z.enum(outcomeCodes as [string, ...string[]]).optional(),
    count: z.int().min(1).max(maxTestEvents).optional(),
    ...actor,
  }),
  z.strictObject({ operation: z.literal('dead-letters retry'), sink: id, seqs: z.array(seq).min(1).max(maxDeadLetters), ...actor }),
  z.strictObject({
    operation: z.literal('dead-letters discard'),
    sink: id,
    seqs: z.union([z.array(seq).min(1).max(maxDeadLetters), z.literal('all')]),
    ...actor,
  }),
  z.strictObject({
    operation: z.literal('replay'),
    sink: id,
    /** The archive sink whose records are sent; default the journal. */
    archive: id.optional(),
    // Each end is a position or a time; for an archive only a time.
    first: seq.optional(),
    last: seq.optional(),
    from: time.optional(),
    to: time.optional(),
    ...actor,
  }),
  z.strictObject({ operation: z.literal('replay cancel'), sink: id, ...actor }),
  // `archive`: the origin of the archive whose lines the command counted.
  z.strictObject({
    operation: z.literal('archive prune'),
    sink: id,
    archive: origin,
    before: time,
    lines: lineRanges,
    ...actor,
    reason: z.string().min(1).max(2_000),
  }),
  z.strictObject({
    operation: z.literal('archive hold'),
    sink: id,
    archive: origin,
    case: caseName,
    from: time.nullable(),
    to: time.nullable(),
    lines: lineRanges,
    ...actor,
  }),
  z.strictObject({ operation: z.literal('archive release'), sink: id, archive: origin, case: caseName, ...actor }),
]);

/** Before parsing: times in RFC 3339. */
export type OperationRequest = z.input<typeof operationSchema>;
/** After parsing: times in µs. */
type Operation = z.output<typeof operationSchema>;
export type SinkOperation = Exclude<Operation, { source: string }>;

/** Times in µs. */
export interface OperationResult {
  readonly added?: readonly Window[];
  readonly ends?: Micros;
  /** The result of an on-demand send. */
  readonly sent?: { readonly delivered: number; readonly rejected: readonly Rejection[] };
  readonly discarded?: number;
  readonly moved?: SourceMove;
  readonly replay?: ReplayProgress | undefined;
}

export type ConfiguredSinks = (id: string) => Omit<ConfiguredSink, 'id'> | undefined;

/** The collection that runs for a source; undefined without one. */
export type Collecting = (source: string) => Pick<Collector, 'backfiller' | 'retry'> | undefined;
