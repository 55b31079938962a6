/**
 * The query parameters of the logs endpoints (specification 4.6): every one is read here, and what does not fit is refused with a text
 * that names it. Nothing here knows how records are stored.
 */
import { badParameter } from '../http/problem.ts';
import { instantOf } from '../instant.ts';

export type FilterName = (typeof filterNames)[number];
export type SortName = (typeof sortNames)[number];

/** What one request asks for; undefined where it does not say. Times in nanoseconds since 1970. */
export interface LogsQuery {
  readonly filters: Partial<Record<FilterName, string>>;
  readonly startTime: bigint | undefined;
  readonly endTime: bigint | undefined;
  readonly page: number | undefined;
  readonly pageSize: number;
  readonly sort: { readonly by: SortName; readonly descending: boolean };
}

const filterNames = ['actionAttempted', 'currentPayloadOwnerId', 'payloadId', 'payloadName', 'result', 'resultReason', 'userId'] as const;
const sortNames = ['logTimestamp', 'userLastNameFirstName', 'result', 'resultReason', 'actionAttempted', 'payloadName'] as const;
const known: readonly string[] = [...filterNames, 'startTime', 'endTime', 'page', 'pageSize', 'sort'];
const pageSizeDefault = 100;

/** The values that section 4.6 lists for its filters; a filter that is not here takes any text. */
const listed: Partial<Record<FilterName, readonly string[]>> = {
  actionAttempted: ['Decrypt', 'Audit', 'Encrypt'],
  result: ['AccessGranted', 'AccessDenied', 'AccessWindow', 'RevokeAccess', 'AuthorisedGroupAccess', 'AuthorisedUserAccess'],
  resultReason: [
    'Success',
    'GeoValidationCountryExclusionFailed',
    'TimeEmbargoFailed',
    'UserPayloadNoAccess',
    'GeoValidationFailed',
    'Changed',
    'Created',
  ],
};

/** @throws Problem 400 that names the first parameter that does not fit */
export function logsQueryOf(text: string): LogsQuery {
  const given = parametersOf(text);
  const filters: LogsQuery['filters'] = {};
  for (const name of filterNames) {
    const value = given.get(name);
    if (value === undefined) continue;
    const allowed = listed[name];
    if (value === '') throw badParameter(name, 'must not be empty');
    if (allowed && !allowed.includes(value)) throw badParameter(name, `must be one of ${allowed.join(', ')}`);
    filters[name] = value;
  }
  return {
    filters,
    startTime: timeOf(given, 'startTime'),
    endTime: timeOf(given, 'endTime'),
    page: wholeOf(given, 'page', 0),
    pageSize: wholeOf(given, 'pageSize', 1) ?? pageSizeDefault,
    sort: sortOf(given.get('sort')),
  };
}

function parametersOf(text: string): Map<string, string> {
  const given = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (!known.includes(name)) throw badParameter(name, `is not known; the parameters are ${known.join(', ')}`);
    if (given.has(name)) throw badParameter(name, 'is given more than once');
    given.set(name, value);
  }
  return given;
}

function timeOf(given: ReadonlyMap<string, string>, name: string): bigint | undefined {
  const text = given.get(name);
  if (text === undefined) return undefined;
  const instant = instantOf(text);
  if (instant === undefined) throw badParameter(name, 'must be a UTC time of the form YYYY-MM-DDTHH:MM:SS.ss');
  return instant;
}

function wholeOf(given: ReadonlyMap<string, string>, name: string, least: number): number | undefined {
  const text = given.get(name);
  if (text === undefined) return undefined;
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least)) throw badParameter(name, `must be a whole number of at least ${least}`);
  return value;
}

/** `+` is ascending, `-` descending, neither ascending. A bare `+` in a query is a blank, and a blank is refused: clients must notice. */
function sortOf(text: string | undefined): LogsQuery['sort'] {
  if (text === undefined) return { by: 'logTimestamp', descending: false };
  const by = sortNames.find((name) => name === text.replace(/^[+-]/, ''));
  const hint = text.startsWith(' ') ? ' (a plus sign must be sent as %2B)' : '';
  if (by === undefined) throw badParameter('sort', `must be one of ${sortNames.join(', ')} with + or - in front${hint}`);
  return { by, descending: text.startsWith('-') };
}
