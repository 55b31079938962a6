/** The settings for records: filter, privacy, observer, names and severities of outcomes. */
import { z } from 'zod';
import { fieldPaths, meaningFields } from '../record/fields.ts';
import type { Where } from './filter.ts';
import { outcomeCodes } from './outcomes.ts';

const hidable = fieldPaths.filter((field) => !(meaningFields as readonly string[]).includes(field));

const privacyField = z.enum(fieldPaths).refine((field) => hidable.includes(field), {
  error: ({ input }) => `a privacy rule cannot name "${String(input)}": the identity or the meaning of a record depends on it`,
});

const privacyRule = z.strictObject({
  fields: z
    .array(privacyField)
    .min(1)
    .describe('Fields of the record, e.g. `userEmailAddress`, `userNetwork.ipAddress`; `userNetwork` includes all its fields'),
  action: z
    .enum(['drop', 'mask', 'pseudonymize'])
    .describe('`drop` removes the field; `mask` replaces the value by `***`; `pseudonymize` by a keyed hash, equal for equal values'),
});

/** `privacy`, at the top level, of a source or of a sink. Rules and key may have different levels, so `keyMissing` runs after the merge. */
export const privacySettings = z
  .strictObject({
    rules: z.array(privacyRule).default([]).describe('Fields to hide and how; no field may be in two rules'),
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
          context.addIssue({ code: 'custom', path: ['rules', at, 'fields', index], message: `"${field}" is in more than one rule` });
        }
        seen.add(field);
      });
    });
  })
  .describe('Fields to hide in every message, in every format');

const headerText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\u2028\u2029]*$/u, 'must not contain line breaks or other control characters');

/** `sources[].observer`: the name of the source in CEF and LEEF headers, OCSF and ECS. */
export const observerSettings = z
  .strictObject({
    vendor: headerText(63).default('Waybill').describe('Vendor in CEF and LEEF headers and `observer.vendor`, at most 63 characters'),
    product: headerText(63)
      .default('Data Protection and Audit Service')
      .describe('Product in CEF and LEEF headers and `observer.product`, at most 63 characters'),
    version: headerText(31)
      .default('1.0')
      .describe('Version of the mapping, at most 31 characters; releases do not change it, because parsers match on it'),
  })
  .prefault({})
  .describe('Name of the source in messages; vendor and product together must be unique among the products that a SIEM receives');

const outcomeCode = z.enum(outcomeCodes as [string, ...string[]]);

/** `mapping` */
export const mappingSettings = z
  .strictObject({
    severity: z
      .partialRecord(outcomeCode, z.int().min(0).max(10))
      .default({})
      .describe('Severities (0 to 10) that override the built-in ones, by outcome code, e.g. `Decrypt:AccessDenied:TimeEmbargoFailed`'),
    names: z
      .partialRecord(outcomeCode, headerText(512))
      .default({})
      .describe('Names (at most 512 characters) that override the built-in ones, by outcome code: the Name of CEF, the start of `message`'),
    hostIdFromUuid: z
      .boolean()
      .default(true)
      .describe('Use `userNetwork.uuid` as `host.id` and in `related.hosts`; `false` if it does not identify the machine'),
  })
  .prefault({})
  .describe('Mapping of records to events');

const values = z
  .array(z.union([z.string().min(1), z.number(), z.boolean()]).transform(String))
  .min(1)
  .describe('List of values; the field of the record must equal one of them exactly');

/** `sinks[].filter`: the record's fields by name, with `not` and `any`. */
export const whereSettings: z.ZodType<Where> = z
  .strictObject({
    ...Object.fromEntries(fieldPaths.filter((field) => field !== 'userNetwork').map((field) => [field, values.optional()])),
    get not() {
      return whereSettings.optional().describe('Excludes the records that match this');
    },
    get any() {
      return z.array(whereSettings).min(1).optional().describe('At least one of these must match as well');
    },
  })
  .refine((filter) => Object.keys(filter).length > 0, 'names no field')
  .describe('Records to deliver: each named field must have one of its values; an absent field never matches');

export type PrivacySettings = z.output<typeof privacySettings>;
export type ObserverSettings = z.output<typeof observerSettings>;
