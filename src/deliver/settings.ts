/** The settings common to every type of sink. The definition of a type adds its own settings, its formats and its default batch. */
import { z } from 'zod';
import { durationText, parseInstant, sizeText } from '../settings/units.ts';
import { duration, facts, shortName, size } from '../settings/values.ts';
import type { Micros } from '../model/time.ts';
import type { Format } from '../encode/index.ts';
import type { BatchDefaults } from '../sink/define.ts';

type Start =
  | { readonly kind: 'journal' }
  | { readonly kind: 'now' }
  | { readonly kind: 'instant'; readonly at: Micros }
  | { readonly kind: 'archive'; readonly archive: string };

const startExpects = 'journal, now, archive:ID, or a time such as 2026-11-21T00:00:00Z';
const start = z
  .string()
  .transform((given, context): Start => {
    if (given === 'journal' || given === 'now') return { kind: given };
    const archive = /^archive:([a-z0-9][a-z0-9-]{0,31})$/.exec(given)?.[1];
    if (archive !== undefined) return { kind: 'archive', archive };
    const at = parseInstant(given);
    if (at !== undefined) return { kind: 'instant', at };
    context.addIssue({ code: 'custom', message: `is not ${startExpects}` });
    return z.NEVER;
  })
  .register(facts, { expects: startExpects });

const unready = z
  .union([z.literal('never').transform(() => undefined), duration({ min: '1s' })])
  .register(facts, { expects: 'a duration such as 15m, or never' });

/** @param formats  of the type; the first is the default */
export function deliverSettings(formats: readonly [Format, ...Format[]], batch: BatchDefaults) {
  return {
    id: shortName().describe('Name of the sink'),
    sources: z
      .array(shortName())
      .min(1, 'is an empty list; name a source, or omit it for all')
      .optional()
      .describe('Sources to deliver; default all'),
    format: z.enum(formats).default(formats[0]).describe('Format of messages'),
    ledger: z
      .boolean()
      .default(false)
      .describe('Also deliver each proof, gap, suspension and operation as an event of the dataset `dpas.ledger` (ecs, ocsf, raw)'),
    start: start
      .prefault('journal')
      .describe(
        'Where a new sink starts: `journal` (the oldest record in the journal), `now`, a time (skips records dated before it), ' +
          'or `archive:ID` (first the records of the archive that the sink ID writes)',
      ),
    batch: z
      .strictObject({
        maxRecords: z.int().min(1).max(10_000).default(batch.records).describe('Maximum records per batch'),
        maxBytes: size().prefault(sizeText(batch.bytes)).describe('Maximum bytes of messages per batch'),
        maxWait: duration({ max: '10m' }).prefault(durationText(batch.wait)).describe('Maximum wait for a batch to fill'),
      })
      .prefault({})
      .describe('Limits of a batch'),
    failReadinessAfter: unready.prefault('15m').describe('`/readyz` fails when delivery has failed for this long; `never` disables this'),
  };
}
