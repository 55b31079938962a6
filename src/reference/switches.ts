/**
 * The switches: behaviour that other implementations may have. The command line, the help, the
 * control port and the table in docs/reference-service.md follow from this table. All are off by
 * default.
 */
import { act, BadValue, budget, choice, duration, offOr, perNode, share, wait, whole, type Kind } from './values.ts';

interface Switch<T> {
  readonly kind: Kind<T>;
  readonly initial: T;
  readonly group: string;
  readonly meaning: string;
}

/** The value of every switch, read at each request. */
export type SwitchValues = { -readonly [Name in keyof typeof table]: (typeof table)[Name] extends Switch<infer T> ? T : never };

export type SwitchName = keyof SwitchValues;

const times = of('Times');
const paging = of('Paging');
const arrival = of('Arrival of records');
const limits = of('Limits');
const tokens = of('Tokens');
const faults = of('Faults: the share of API requests with each fault');
const records = of('Odd records: the share of new records with each oddity');
const rights = of('Rights and retention');

const pageSize = whole(1, 1_000_000);
const count = whole(0, Number.MAX_SAFE_INTEGER);

const table = {
  startBound: times(choice('inclusive', 'exclusive'), 'inclusive', 'whether a record exactly at startTime is returned'),
  endBound: times(choice('inclusive', 'exclusive'), 'inclusive', 'whether a record exactly at endTime is returned'),
  timePrecision: times(
    choice('exact', '10ms', '1s'),
    'exact',
    'bounds and times of records are truncated to this before they are compared',
  ),

  pageSizeMax: paging(pageSize, 1000, 'maximum page size'),
  pageSizeAbove: paging(choice('clamped', 'refused'), 'clamped', 'response to a larger pageSize: a page of the maximum size, or 400'),
  pageSizeMaxThen: paging(offOr(changeLater()), 'off', 'N@K: after K responses of the logs endpoints the maximum page size is N'),
  pagePast: paging(choice('empty', 'last', '404'), 'empty', 'response to a page past the end: no items, the last page, or 404'),
  firstPage: paging(whole(0, 1), 1, 'the number of the first page'),
  sort: paging(
    choice('honoured', 'ignored', 'unstable-ties'),
    'honoured',
    'ignored: the order in which records become visible; unstable-ties: the order of equal values changes with each request',
  ),
  barePlus: paging(
    choice('accepted', 'refused'),
    'accepted',
    'response to "sort=+field" with an unencoded +, which decodes to a space: ascending order, or 400',
  ),
  total: paging(choice('right', 'missing', 'capped', 'lagging', 'text'), 'right', 'totalRecords; text: the number as a string'),
  totalCap: paging(count, 10_000, 'maximum total with "capped"'),
  totalLag: paging(duration, 30_000, 'with "lagging", records that became visible within this time are not counted'),

  rate: arrival(share(100_000), 0, 'new records per second, logTimestamp = now'),
  activity: arrival(share(1000), 0, 'actions per second of simulated people who protect, share and open files through the API'),
  attack: arrival(
    choice('none', 'harvest', 'weakened', 'search'),
    'none',
    'one of these people opens many files; ends the embargo of files of others and opens some; tries files of another team',
  ),
  nodes: arrival(whole(1, 1000), 1, 'number of nodes that collect records'),
  lateShare: arrival(perNode(share()), [0], 'share of the records that become visible later than their logTimestamp'),
  lateDelay: arrival(perNode(duration), [30_000], 'delay of late records: the maximum if bounded, the median with a long tail'),
  lateTail: arrival(
    perNode(choice('bounded', 'long')),
    ['bounded'],
    'bounded: uniform from 0 to lateDelay; long: Pareto, one in a hundred beyond 35 times lateDelay, at most 30d',
  ),

  rateLimit: limits(offOr(budget), 'off', 'requests per interval; above that 429'),
  quota: limits(offOr(budget), 'off', 'requests per interval; above that 403 with Retry-After'),
  retryAfter: limits(choice('seconds', 'date', 'none'), 'seconds', 'form of Retry-After with 429, and with 403 for the quota'),

  fileMax: limits(whole(1, 2 ** 28), 2 ** 24, 'maximum size of a file in bytes; above that 413'),
  bodyPatience: limits(wait, 30_000, 'time limit for the body of a request; then 408'),

  tokenLifetime: tokens(duration, 3_600_000, 'lifetime of an access token'),
  revokeTokens: tokens(act, 0, 'revokes every issued token'),
  rotateKeys: tokens(act, 0, 'new tokens are signed with a new key; tokens of the previous key stay valid, older ones do not'),
  identityProvider: tokens(
    choice('up', 'down', 'unavailable', 'stalled'),
    'up',
    'down: connections are reset; unavailable: 503; stalled: no response',
  ),

  fault500: faults(share(), 0, '500 with problem details'),
  fault502: faults(share(), 0, '502 with problem details'),
  fault503: faults(share(), 0, '503 with problem details'),
  fault504: faults(share(), 0, '504 with problem details'),
  faultHtml200: faults(share(), 0, 'an HTML page with 200 instead of the response'),
  faultHtml502: faults(share(), 0, 'an HTML page with 502 instead of the response'),
  faultReset: faults(share(), 0, 'the connection is reset before the response'),
  faultTruncated: faults(share(), 0, 'the connection ends in the middle of the body'),
  faultCut: faults(share(), 0, 'the body is truncated, and Content-Length is the length of the truncated body'),
  faultSlow: faults(share(), 0, 'the body is sent in small parts over slowFor'),
  faultStalled: faults(share(), 0, 'headers and half of the body are sent, then nothing more'),
  slowFor: faults(wait, 3000, 'time that faultSlow takes to send the body'),

  oddNoFraction: records(share(), 0, 'logTimestamp without a fraction'),
  oddMissing: records(share(), 0, 'one field is missing'),
  oddNull: records(share(), 0, 'one field is null'),
  oddUnknown: records(share(), 0, 'a field that is not in the specification'),
  oddType: records(share(), 0, 'one field has another type'),
  oddHuge: records(share(), 0, 'payloadName is 64 KiB long'),
  oddControl: records(share(), 0, 'control characters in payloadName and machineName'),
  oddSurrogate: records(share(), 0, 'unpaired surrogates in payloadName, as escapes'),
  oddValue: records(share(), 0, 'action, result or reason that is not in the specification'),
  oddBigId: records(share(), 0, 'logId above 2^53'),
  oddRepeatedId: records(share(), 0, 'the logId of a record of another node (needs --nodes of 2 or more)'),

  permissions: rights(
    choice('full', 'fields', 'rows', 'none'),
    'full',
    'fields: no caller sees personal data and userNetwork; rows: callers see only their own records; none: 403',
  ),
  retention: rights(offOr(duration), 'off', 'older records are deleted'),
};

/** Every name, in the order of the table. */
export const switchNames = Object.keys(table) as SwitchName[];

/** The state of all switches: one object for the service, so that a change applies at once. */
export class Switches {
  readonly values: SwitchValues;

  constructor() {
    this.values = Object.fromEntries(switchNames.map((name) => [name, table[name].initial])) as unknown as SwitchValues;
  }

  /** Sets all or none. @throws BadValue that names an unknown switch or an invalid value */
  set(given: Readonly<Record<string, unknown>>): void {
    const read = Object.entries(given).map(([key, value]) => {
      const name = switchNames.find((each) => each === key || optionOf(each) === key);
      if (name === undefined) throw new BadValue(`unknown switch "${key}"`);
      try {
        return [name, (table[name].kind as Kind<unknown>).read(value, this.values[name])] as const;
      } catch (error) {
        if (error instanceof BadValue) throw new BadValue(`${key}: ${error.message}`, { cause: error });
        throw error;
      }
    });
    const next = { ...this.values, ...Object.fromEntries(read) };
    const faultsSum = faultNames.reduce((sum, name) => sum + next[name], 0);
    if (faultsSum > 1 + 1e-9) {
      const named = Object.keys(given).find((key) => faultNames.some((name) => name === key || optionOf(name) === key));
      throw new BadValue(`${named ?? ''}: the sum of the shares of all faults exceeds 1`);
    }
    Object.assign(this.values, next);
  }

  show(): Record<string, unknown> {
    return Object.fromEntries(switchNames.map((name) => [name, (table[name].kind as Kind<unknown>).show(this.values[name])]));
  }
}

/** The faults, in the order in which a random number selects one. */
export const faultNames = [
  'fault500',
  'fault502',
  'fault503',
  'fault504',
  'faultHtml200',
  'faultHtml502',
  'faultReset',
  'faultTruncated',
  'faultCut',
  'faultSlow',
  'faultStalled',
] as const satisfies SwitchName[];

/** `page-size-max` for `pageSizeMax`. */
export function optionOf(name: SwitchName): string {
  return name.replaceAll(/([a-z])(\d)/g, '$1-$2').replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** One row for each switch, for the help and the documentation. */
export function describeSwitches(): { name: SwitchName; group: string; value: string; initial: string; meaning: string }[] {
  return switchNames.map((name) => {
    const { kind, initial, group, meaning } = table[name] as Switch<unknown>;
    const shown = kind.show(initial);
    return {
      name,
      group,
      value: kind.placeholder,
      initial: kind === act ? '' : typeof shown === 'string' ? shown : JSON.stringify(shown),
      meaning,
    };
  });
}

function of(group: string) {
  return <T>(kind: Kind<T>, initial: NoInfer<T>, meaning: string): Switch<T> => ({ kind, initial, group, meaning });
}

function changeLater(): Kind<{ readonly max: number; readonly answers: number }> {
  return {
    placeholder: 'N@K',
    read(given) {
      const match = typeof given === 'string' ? /^(\d+)@(\d+)$/.exec(given) : null;
      if (!match) throw new BadValue(`${JSON.stringify(given)} is not a page size and a number of responses such as 50@200`);
      return { max: pageSize.read(match[1], 0), answers: count.read(match[2], 0) };
    },
    show: (value) => `${value.max}@${value.answers}`,
  };
}
