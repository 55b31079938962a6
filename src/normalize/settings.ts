/** The settings that say what becomes of a record: which records are wanted, what is hidden, what it is called and how it is weighed. */
import { z } from 'zod';
import { fieldPaths, meaningFields } from '../record/fields.ts';
import type { Where } from './filter.ts';
import { outcomeCodes } from './outcomes.ts';

const hidable = fieldPaths.filter((field) => !(meaningFields as readonly string[]).includes(field));

const privacyField = z.enum(fieldPaths).refine((field) => hidable.includes(field), {
  error: ({ input }) => `a privacy rule cannot name "${String(input)}": identity and meaning of a record hang on it`,
});

const privacyRule = z.strictObject({
  fields: z
    .array(privacyField)
    .min(1)
    .describe('Fields of the record, e.g. `userEmailAddress`, `userNetwork.ipAddress`; `userNetwork` is everything inside it'),
  action: z
    .enum(['drop', 'mask', 'pseudonymize'])
    .describe('`drop`: the field is gone; `mask`: it reads `***`; `pseudonymize`: a keyed hash, equal for equal values'),
});

/**
 * `privacy`, of everything, of a source or of a sink: applied to the record before any encoding. Rules and key may come from different
 * places, so whether a key is missing (`keyMissing` of privacy.ts) is known only when they are put together.
 */
export const privacySettings = z
  .strictObject({
    rules: z.array(privacyRule).default([]).describe('What is hidden, field by field; no field may stand in two rules'),
    key: z
      .string()
      .min(16, 'must be at least 16 characters long, better 32 random ones')
      .optional()
      .describe('Secret key of `pseudonymize`: at least 16 characters. With another key, the same value gets another pseudonym'),
  })
  .superRefine((privacy, context) => {
    const seen = new Set<string>();
    privacy.rules.forEach((rule, at) => {
      rule.fields.forEach((field, index) => {
        if (seen.has(field)) {
          context.addIssue({ code: 'custom', path: ['rules', at, 'fields', index], message: `"${field}" stands in more than one rule` });
        }
        seen.add(field);
      });
    });
  })
  .describe('What is hidden from every message, whatever its format');

const headerText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\u2028\u2029]+$/u, 'must not hold line breaks or other control characters');

/** `sources[].observer`: how the source is called in CEF and LEEF headers, OCSF and ECS. */
export const observerSettings = z
  .strictObject({
    vendor: headerText(63).default('Waybill').describe('Vendor in CEF and LEEF headers and `observer.vendor`, at most 63 characters'),
    product: headerText(63)
      .default('Data Protection and Audit Service')
      .describe('Product in CEF and LEEF headers and `observer.product`, at most 63 characters'),
    version: headerText(31)
      .default('1.0')
      .describe('Version of the mapping, at most 31 characters; it does not move with releases, because parsers match on it'),
  })
  .prefault({})
  .describe('How the source is named in messages; vendor and product together must be unique among the products that a SIEM receives');

const severity = z.int().min(0).max(10);

/** `mapping` */
export const mappingSettings = z
  .strictObject({
    severity: z
      .partialRecord(z.enum(outcomeCodes as [string, ...string[]]), severity)
      .default({})
      .describe('Overrides the severity (0 to 10) of single outcomes, by code, e.g. `Decrypt:AccessDenied:TimeEmbargoFailed`'),
    hostIdFromUuid: z
      .boolean()
      .default(true)
      .describe('Whether `userNetwork.uuid` names the machine, and so becomes `host.id` and part of `related.hosts`'),
  })
  .prefault({})
  .describe('How records are mapped to events');

const values = z
  .array(z.union([z.string().min(1), z.number(), z.boolean()]).transform(String))
  .min(1)
  .describe('Any of these values, exactly as the record has it');

/** `sinks[].where`: the record's fields by name, with `not` and `any`. */
export const whereSettings: z.ZodType<Where> = z
  .strictObject({
    ...Object.fromEntries(fieldPaths.filter((field) => field !== 'userNetwork').map((field) => [field, values.optional()])),
    get not() {
      return whereSettings.optional().describe('Records that match this are not wanted');
    },
    get any() {
      return z.array(whereSettings).min(1).optional().describe('At least one of these must match too');
    },
  })
  .refine((filter) => Object.keys(filter).length > 0, 'names no field')
  .describe('Which records the sink gets: any of the values of every field named; a field that is absent never matches');

export type PrivacySettings = z.output<typeof privacySettings>;
export type ObserverSettings = z.output<typeof observerSettings>;
