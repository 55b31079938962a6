/** Schemas that several endpoints share. */
import { z } from 'zod';

/**
 * A non-empty, well-formed text of limited length: an unpaired surrogate could not be stored
 * unchanged.
 */
export function text(longest: number): z.ZodString {
  return z
    .string()
    .min(1)
    .max(longest)
    .refine((given) => given.isWellFormed(), 'must be well-formed Unicode');
}

/** Control characters, which would affect lists and terminals that show the text. */
export function hasControls(given: string): boolean {
  return /[\p{Cc}\u2028\u2029]/u.test(given);
}

/** Section 2.6, with totalPages as in the users list. */
export const pagination = z
  .strictObject({ totalRecords: z.int(), totalPages: z.int(), pageSize: z.int(), itemsInPage: z.int(), page: z.int() })
  .meta({ id: 'Pagination' });

/** RFC 9457, with the invalid parameter and the reason for which access is denied. */
export const problem = z
  .strictObject({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    parameter: z.string().optional(),
    reason: z.string().optional(),
  })
  .meta({ id: 'Problem' });

/**
 * An integer in a query, as text; the OpenAPI document describes it as an integer with its minimum.
 * A larger integer than JavaScript can represent becomes the largest one.
 */
export function asInteger(form: RegExp, description: string): z.ZodType<number, string> {
  return z
    .string()
    .regex(form, 'must be a whole number of at least 1')
    .transform((digits) => Math.min(Number(digits), Number.MAX_SAFE_INTEGER))
    .meta({ described: { type: 'integer', minimum: 1, description } });
}

export const pageNumber = asInteger(/^0*[1-9]\d*$/, 'Number of the page, 1 by default');

export function paginationOf(totalRecords: number, pageSize: number, itemsInPage: number, page: number): z.infer<typeof pagination> {
  return { totalRecords, totalPages: Math.ceil(totalRecords / pageSize), pageSize, itemsInPage, page };
}

/** ISO 8601 with the offset of UTC, the form of section 2.1. */
export function dateText(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '+00:00');
}
