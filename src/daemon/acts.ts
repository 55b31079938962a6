/**
 * What a person may change while the daemon runs, or while it does not: one function for both. The request comes from a command, through the
 * socket in the state directory or with the lock in hand; whatever it asks is checked here, against the state as it is.
 */
import { z } from 'zod';
import { WaybillError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { Micros, Rejection, ReplayProgress, Window } from '../model.ts';
import type { ConfiguredSink } from './sink.ts';
import { performOnSink } from './sink-acts.ts';
import { outcomeCodes } from './test-events.ts';

const id = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/);
const micros = z.int().min(0);
const seq = z.int().min(1);
/** Events of one test; more is no test. */
const testsMost = 1_000;
/** Dead letters of one request. */
export const lettersMost = 1_000;
const who = { by: z.string().min(1).max(200), why: z.string().max(2_000).optional() };

const actSchema = z.discriminatedUnion('act', [
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

/** What the log says of a request that was done. */
export function operationOf(given: unknown): {
  action: string;
  source?: string;
  sink?: string;
  operator: string;
  reason: string | undefined;
} {
  const parsed = actSchema.parse(given);
  const { act: action, by: operator, why: reason } = parsed;
  return { action, ...('source' in parsed ? { source: parsed.source } : { sink: parsed.sink }), operator, reason };
}

/** Does what is asked, in one transaction. @throws WaybillError `usage` when it cannot be done, `journal_full` when it cannot be stored */
export async function perform(
  given: unknown,
  journal: Journal,
  now: Micros,
  reading: Reading,
  configured: ConfiguredSinks = () => undefined,
): Promise<ActResult> {
  const parsed = actSchema.safeParse(given);
  if (!parsed.success)
    throw new WaybillError('usage', `cannot read what is asked: ${parsed.error.issues.map(({ message }) => message).join(', ')}`);
  const asked = parsed.data;
  if (!('source' in asked)) return performOnSink(asked, journal, now, configured);
  const act = { who: asked.by, why: asked.why };
  const { history } = journal;
  switch (asked.act) {
    case 'backfill': {
      const { source, from, until, rate, sinks, expected } = asked;
      const known = [...journal.progress.sinks()].map((sink) => sink.id);
      const unknown = sinks?.filter((sink) => !known.includes(sink)) ?? [];
      if (unknown.length > 0)
        throw new WaybillError('usage', `cannot find the sink "${unknown.join('", "')}" in the state: there are ${known.join(', ')}`);
      return { added: history.add(source, { from, until }, { rate, sinks, expected }, act) };
    }
    case 'backfill pause':
    case 'backfill resume':
      history.pause(asked.source, asked.from, asked.act === 'backfill pause', act);
      return {};
    case 'backfill cancel':
      return { ends: history.cancel(asked.source, asked.from, reading(asked.source, asked.from)?.until, act) };
    case 'gaps retry':
    case 'gaps accept': {
      known(journal, asked.source);
      const gapAct = { at: now, who: asked.by, why: asked.why ?? '' };
      if (asked.act === 'gaps retry') await journal.retryGap(asked.source, asked.from, gapAct);
      else await journal.acceptGap(asked.source, asked.from, { ...gapAct, evidence: asked.evidence });
      return {};
    }
    case 'sources retire':
      history.retire(asked.source, act);
      return {};
  }
}

function known(journal: Journal, source: string): void {
  if (!journal.hasSource(source)) throw new WaybillError('usage', `cannot find the source "${source}" in the state`);
}
