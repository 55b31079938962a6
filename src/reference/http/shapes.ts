/** The shapes that several endpoints have in common. */
import { z } from 'zod';

/** Text that is there, not longer than is said, and well formed: an unpaired surrogate could not be stored as it came. */
export function text(longest: number): z.ZodString {
  return z
    .string()
    .min(1)
    .max(longest)
    .refine((given) => given.isWellFormed(), 'must be well-formed Unicode');
}

/** Line breaks, NUL, ESC and the like, which lists and terminals of those who read the text would obey. */
export function hasControls(given: string): boolean {
  return /[\p{Cc}\u2028\u2029]/u.test(given);
}

/** Section 2.6, with totalPages as in the users list. */
export const pagination = z
  .strictObject({ totalRecords: z.int(), totalPages: z.int(), pageSize: z.int(), itemsInPage: z.int(), page: z.int() })
  .meta({ id: 'Pagination' });

/** RFC 9457, with what is at fault and why access is denied. */
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
 * A whole number as a query has it: text of this form. The description says what it means, an integer of at least so much. One that no number
 * of JavaScript holds is the largest that one does.
 */
export function asInteger(form: RegExp, least: number, description: string): z.ZodType<number, string> {
  return z
    .string()
    .regex(form, `must be a whole number of at least ${least}`)
    .transform((digits) => Math.min(Number(digits), Number.MAX_SAFE_INTEGER))
    .meta({ described: { type: 'integer', minimum: least, description } });
}

/** The number of a page of users or groups. */
export const pageNumber = asInteger(/^0*[1-9]\d*$/, 1, 'Number of the page, 1 by default');

/** The pagination object of one page out of so many records. */
export function paginationOf(totalRecords: number, pageSize: number, itemsInPage: number, page: number): z.infer<typeof pagination> {
  return { totalRecords, totalPages: Math.ceil(totalRecords / pageSize), pageSize, itemsInPage, page };
}

/** ISO 8601 with the offset of UTC, as section 2.1 has its dates. */
export function dateText(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '+00:00');
}
