/** The operations that an operator may request of the daemon, and their results. */
import { z } from 'zod';
import type { ReplayProgress } from '../../model/journal.ts';
import type { Window } from '../../model/ledger.ts';
import type { Rejection } from '../../model/sink.ts';
import type { Micros } from '../../model/time.ts';
import { outcomeCodes } from '../../normalize/outcomes.ts';
import type { ConfiguredSink } from '../sink.ts';

const id = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/);
const micros = z.int().min(0);
const seq = z.int().min(1);
/** Events of one test; more is no test. */
const testsMost = 1_000;
/** Dead letters of one request. */
export const lettersMost = 1_000;
const who = { by: z.string().min(1).max(200), why: z.string().max(2_000).optional() };

/** A request as the socket and `POST /operations` carry it. Times in µs. */
export const actSchema = z.discriminatedUnion('act', [
  z.strictObject({
    act: z.literal('backfill'),
    source: id,
    from: micros,
    until: micros,
    rate: z.number().positive().max(1_000).optional(),
    sinks: z.array(id).min(1).optional(),
    expected: z.int().min(0).optional(),
    ...who,
  }),
  z.strictObject({ act: z.enum(['backfill pause', 'backfill resume', 'backfill cancel']), source: id, from: micros, ...who }),
  z.strictObject({ act: z.literal('gaps retry'), source: id, from: micros, ...who }),
  z.strictObject({
    act: z.literal('gaps accept'),
    source: id,
    from: micros,
    evidence: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
    ...who,
    why: z.string().min(1).max(2_000),
  }),
  z.strictObject({ act: z.literal('sources retire'), source: id, ...who }),
  z.strictObject({ act: z.literal('sinks retire'), sink: id, ...who }),
  z.strictObject({ act: z.literal('sinks adopt'), sink: id, ...who }),
  z.strictObject({ act: z.literal('sinks retry'), sink: id, ...who }),
  z.strictObject({ act: z.literal('sinks verify'), sink: id, from: micros, ...who }),
  z.strictObject({
    act: z.literal('sinks test'),
    sink: id,
    as: z.enum(outcomeCodes as [string, ...string[]]).optional(),
    count: z.int().min(1).max(testsMost).optional(),
    ...who,
  }),
  z.strictObject({ act: z.literal('dead-letters retry'), sink: id, seqs: z.array(seq).min(1).max(lettersMost), ...who }),
  z.strictObject({
    act: z.literal('dead-letters discard'),
    sink: id,
    seqs: z.union([z.array(seq).min(1).max(lettersMost), z.literal('all')]),
    ...who,
  }),
  z.strictObject({
    act: z.literal('replay'),
    sink: id,
    // A position, or a time; each end for itself.
    first: seq.optional(),
    last: seq.optional(),
    from: micros.optional(),
    until: micros.optional(),
    ...who,
  }),
]);

export type ActRequest = z.infer<typeof actSchema>;
/** Those that concern a sink. */
export type SinkActRequest = Exclude<ActRequest, { source: string }>;

/** What came of it: the ranges that were added, or where one that was cancelled ends; times in µs. */
export interface ActResult {
  readonly added?: readonly Window[];
  readonly ends?: Micros;
  /** What the sink made of what was sent to it: how many it took, and which it refused with what words. */
  readonly sent?: { readonly taken: number; readonly refused: readonly Rejection[] };
  readonly discarded?: number;
  /** A replay that has begun. */
  readonly replay?: ReplayProgress | undefined;
}

/** The sinks that are configured, by id. */
export type ConfiguredSinks = (id: string) => Omit<ConfiguredSink, 'id'> | undefined;

/** What only the running daemon knows of a range of history: the window that is being read. */
export type Reading = (source: string, from: Micros) => Window | undefined;
