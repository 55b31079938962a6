/**
 * Parses the query parameters of the logs endpoints. An invalid parameter is
 * refused by name.
 */
import { z } from 'zod';
import { queryOf } from '../http/endpoint.ts';
import { badParameter } from '../http/problem.ts';
import { asInteger } from '../http/shapes.ts';
import { instantOf } from '../instant.ts';

type FilterName = 'actionAttempted' | 'currentPayloadOwnerId' | 'payloadId' | 'payloadName' | 'result' | 'resultReason' | 'userId';
type SortName = (typeof sortNames)[number];

/** A parsed query; undefined for a missing parameter. Times in nanoseconds since 1970. */
export interface LogsQuery {
  readonly filters: Partial<Record<FilterName, string>>;
  readonly startTime: bigint | undefined;
  readonly endTime: bigint | undefined;
  readonly page: number | undefined;
  readonly pageSize: number;
  readonly sort: { readonly by: SortName; readonly descending: boolean };
}

const sortNames = ['logTimestamp', 'userLastNameFirstName', 'result', 'resultReason', 'actionAttempted', 'payloadName'] as const;
const sorts = sortNames.flatMap((name) => [`+${name}`, `-${name}`, name]);
const pageSizeDefault = 100;

const filter = z.string().min(1);
const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z?$/, 'must be a UTC time of the form YYYY-MM-DDTHH:MM:SS.ss')
  .transform((text, context) => {
    const instant = instantOf(text);
    if (instant !== undefined) return instant;
    context.addIssue({ code: 'custom', message: 'is not a valid date and time' });
    return z.NEVER;
  });

/**
 * `+` or no sign is ascending, `-` descending. Section 4.6 shows an unencoded `+`, which decodes to
 * a space, so a leading space counts as `+`.
 */
const sort = z
  .string()
  .refine((text) => sorts.includes(text.replace(/^ /, '+')), `must be one of ${sortNames.join(', ')} with + or - in front`)
  .transform((text) => ({
    by: sortNames.find((name) => text.endsWith(name)) ?? sortNames[0],
    descending: text.startsWith('-'),
    hasBarePlus: text.startsWith(' '),
  }))
  .meta({ described: { type: 'string', enum: sorts } });

/** The values that section 4.6 lists for its filters; a filter without a list accepts any text. */
export const logsQuery = queryOf(
  z.object({
    actionAttempted: z.enum(['Decrypt', 'Audit', 'Encrypt']).optional(),
    currentPayloadOwnerId: filter.optional(),
    payloadId: filter.optional(),
    payloadName: filter.optional(),
    result: z
      .enum(['AccessGranted', 'AccessDenied', 'AccessWindow', 'RevokeAccess', 'AuthorisedGroupAccess', 'AuthorisedUserAccess'])
      .optional(),
    resultReason: z
      .enum([
        'Success',
        'GeoValidationCountryExclusionFailed',
        'TimeEmbargoFailed',
        'UserPayloadNoAccess',
        'GeoValidationFailed',
        'Changed',
        'Created',
      ])
      .optional(),
    userId: filter.optional(),
    startTime: time.optional(),
    endTime: time.optional(),
    page: asInteger(/^\d+$/, 'Number of the page, 1 by default').optional(),
    pageSize: asInteger(/^0*[1-9]\d*$/, `Records per page, ${pageSizeDefault} by default; a size above 1000 counts as 1000`).optional(),
    sort: sort.optional(),
  }),
);

/**
 * @param barePlus  true: an unencoded `+` in `sort` is accepted
 * @throws Problem 400 that names the first invalid parameter
 */
export function logsQueryOf(text: string, barePlus: 'accepted' | 'refused'): LogsQuery {
  const {
    startTime,
    endTime,
    page,
    pageSize = pageSizeDefault,
    sort: { by, descending, hasBarePlus } = { by: 'logTimestamp', descending: false, hasBarePlus: false },
    ...given
  } = logsQuery.read(text);
  if (hasBarePlus && barePlus === 'refused') throw badParameter('sort', 'begins with a space: encode + as %2B');
  return { filters: given as LogsQuery['filters'], startTime, endTime, page, pageSize, sort: { by, descending } };
}
