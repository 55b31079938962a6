/** The settings that every sink has, whatever its type; the type's own stand in its definition, with its formats and its usual batch. */
import { z } from 'zod';
import { duration, durationText, facts, parseInstant, shortName, size, sizeText } from '../settings/values.ts';
import type { Micros } from '../model/time.ts';
import type { BatchDefaults, Format } from '../sink/define.ts';

/** Where a new sink begins. */
export type Start = { readonly kind: 'journal' } | { readonly kind: 'now' } | { readonly kind: 'instant'; readonly at: Micros };

const startExpects = 'journal, now, or a time such as 2026-11-21T00:00:00Z';
const start = z
  .string()
  .transform((given, context): Start => {
    if (given === 'journal' || given === 'now') return { kind: given };
    const at = parseInstant(given);
    if (at !== undefined) return { kind: 'instant', at };
    context.addIssue({ code: 'custom', message: given === 'archive' ? 'is not in this release yet' : `is not ${startExpects}` });
    return z.NEVER;
  })
  .register(facts, { expects: startExpects });

const unready = z
  .union([z.literal('never').transform(() => undefined), duration({ min: '1s' })])
  .register(facts, { expects: 'a duration such as 15m, or never' });

/** The settings of a sink of a type with these formats (the first is its default) and this usual batch. */
export function deliverSettings(formats: readonly [Format, ...Format[]], batch: BatchDefaults) {
  return {
    id: shortName().describe('Name of the sink'),
    sources: z.array(shortName()).min(1, 'names no source').optional().describe('Only the records of these sources; default all'),
    format: z.enum(formats).default(formats[0]).describe('How a record is written'),
    ledger: z
      .boolean()
      .refine((requested) => !requested, 'is not in this release yet')
      .default(false)
      .describe('Whether proofs, gaps and operations are sent too; only `false` in this release'),
    start: start
      .prefault('journal')
      .describe(
        'Where a new sink starts: `journal`, with all that the journal still has; `now`; or a time, without the records dated before it',
      ),
    batch: z
      .strictObject({
        maxRecords: z.int().min(1).max(10_000).default(batch.records).describe('Records a batch at most'),
        maxBytes: size().prefault(sizeText(batch.bytes)).describe('Bytes of messages a batch at most'),
        maxWait: duration({ max: '10m' }).prefault(durationText(batch.wait)).describe('How long a batch waits to be filled'),
      })
      .prefault({})
      .describe('How much is sent at once'),
    failReadinessAfter: unready.prefault('15m').describe('How long the sink may be blocked before `/readyz` fails; `never` for no limit'),
  };
}
