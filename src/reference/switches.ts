/**
 * The switches: the service as others might have built it. One table holds name, kind of value, default and meaning; the command line, the
 * help, the control port and the table in docs/reference-service.md follow from it. All are off by default.
 */
import { act, BadValue, budget, choice, duration, offOr, perNode, share, wait, whole, type Kind } from './values.ts';

interface Switch<T> {
  readonly kind: Kind<T>;
  readonly initial: T;
  readonly group: string;
  readonly meaning: string;
}

/** The value of every switch, read anew with each request. */
export type SwitchValues = { -readonly [Name in keyof typeof table]: (typeof table)[Name] extends Switch<infer T> ? T : never };

export type SwitchName = keyof SwitchValues;

const times = of('Times');
const paging = of('Paging');
const arrival = of('Arrival of records');
const limits = of('Limits');
const tokens = of('Tokens');
const faults = of('Faults, each the share of the requests to the API that get it');
const records = of('Odd records, each the share of the records made from now on');
const rights = of('Rights and retention');

const pageSize = whole(1, 1_000_000);
const count = whole(0, Number.MAX_SAFE_INTEGER);

const table = {
  startBound: times(choice('inclusive', 'exclusive'), 'inclusive', 'whether a record exactly at startTime is in the answer'),
  endBound: times(choice('inclusive', 'exclusive'), 'inclusive', 'whether a record exactly at endTime is in the answer'),
  timePrecision: times(
    choice('exact', '10ms', '1s'),
    'exact',
    'what both bounds and the times of records are cut to before they are compared',
  ),

  pageSizeMax: paging(pageSize, 1000, 'the largest page'),
  pageSizeAbove: paging(choice('clamped', 'refused'), 'clamped', 'what a larger pageSize gets: the largest page, or 400'),
  pageSizeMaxThen: paging(offOr(changeLater()), 'off', 'N@K: after K answers of the logs endpoints the largest page is N'),
  pagePast: paging(choice('empty', 'last', '404'), 'empty', 'what a page past the end gets: no items, the last page, or 404'),
  firstPage: paging(whole(0, 1), 1, 'the number of the first page'),
  sort: paging(
    choice('honoured', 'ignored', 'unstable-ties'),
    'honoured',
    'ignored: order of becoming visible; unstable-ties: equal values in another order with each request',
  ),
  barePlus: paging(
    choice('accepted', 'refused'),
    'accepted',
    'what "sort=+field" gets whose + is not sent as %2B: ascending order, or 400, since it decodes to a blank',
  ),
  total: paging(choice('right', 'missing', 'capped', 'lagging', 'text'), 'right', 'what totalRecords says; text: the number as a string'),
  totalCap: paging(count, 10_000, 'the largest total that "capped" says'),
  totalLag: paging(duration, 30_000, 'how far "lagging" is behind: records that became visible within it are not counted'),

  rate: arrival(share(100_000), 0, 'records a second that are made while the service runs, logTimestamp = now'),
  activity: arrival(share(1000), 0, 'acts a second of simulated people who protect, share and open files by the API'),
  nodes: arrival(whole(1, 1000), 1, 'how many nodes collect records'),
  lateShare: arrival(perNode(share()), [0], 'share of the records that become visible later than their logTimestamp'),
  lateDelay: arrival(perNode(duration), [30_000], 'how much later: the most when bounded, the median with a long tail'),
  lateTail: arrival(
    perNode(choice('bounded', 'long')),
    ['bounded'],
    'bounded: evenly from 0 to lateDelay; long: Pareto, one in a hundred beyond 35 times lateDelay, at most 30d',
  ),

  rateLimit: limits(offOr(budget), 'off', 'requests granted in each interval; then 429'),
  quota: limits(offOr(budget), 'off', 'requests granted in each interval; then 403 with Retry-After'),
  retryAfter: limits(choice('seconds', 'date', 'none'), 'seconds', 'the form of Retry-After with 429 and with the 403 of the quota'),

  fileMax: limits(whole(1, 2 ** 28), 2 ** 24, 'the largest file in bytes; a larger one is 413'),
  bodyPatience: limits(wait, 30_000, 'how long the body of a request may take to come; then 408'),

  tokenLifetime: tokens(duration, 3_600_000, 'lifetime of an access token'),
  revokeTokens: tokens(act, 0, 'every token issued so far is refused from now on'),
  rotateKeys: tokens(act, 0, 'new tokens are signed with a new key; tokens of the key before stay good, older ones do not'),
  identityProvider: tokens(
    choice('up', 'down', 'unavailable', 'stalled'),
    'up',
    'down: connections to it are reset; unavailable: 503; stalled: no answer comes',
  ),

  fault500: faults(share(), 0, '500 with problem details'),
  fault502: faults(share(), 0, '502 with problem details'),
  fault503: faults(share(), 0, '503 with problem details'),
  fault504: faults(share(), 0, '504 with problem details'),
  faultHtml200: faults(share(), 0, 'an HTML page with 200 instead of the answer'),
  faultHtml502: faults(share(), 0, 'an HTML page with 502 instead of the answer'),
  faultReset: faults(share(), 0, 'the connection is reset before the answer'),
  faultTruncated: faults(share(), 0, 'the connection ends in the middle of the body'),
  faultCut: faults(share(), 0, 'the body is cut in the middle, its length is said to be so'),
  faultSlow: faults(share(), 0, 'the body comes in small parts over slowFor'),
  faultStalled: faults(share(), 0, 'headers and half of the body come, then nothing more'),
  slowFor: faults(wait, 3000, 'how long the body of faultSlow takes'),

  oddNoFraction: records(share(), 0, 'logTimestamp without a fraction'),
  oddMissing: records(share(), 0, 'one field is missing'),
  oddNull: records(share(), 0, 'one field is null'),
  oddUnknown: records(share(), 0, 'a field that the specification does not know'),
  oddType: records(share(), 0, 'one field is of another type'),
  oddHuge: records(share(), 0, 'payloadName is 64 KiB long'),
  oddControl: records(share(), 0, 'control characters in payloadName and machineName'),
  oddSurrogate: records(share(), 0, 'unpaired surrogates in payloadName, as escapes'),
  oddValue: records(share(), 0, 'action, result or reason that the specification does not know'),
  oddBigId: records(share(), 0, 'logId above 2^53'),
  oddRepeatedId: records(share(), 0, 'the logId of a record of another node (needs --nodes of 2 or more)'),

  permissions: rights(
    choice('full', 'fields', 'rows', 'none'),
    'full',
    'fields: nobody gets personal data and userNetwork; rows: everybody gets only own records; none: 403',
  ),
  retention: rights(offOr(duration), 'off', 'records older than this vanish'),
};

/** Every name, in the order of the table. */
export const switchNames = Object.keys(table) as SwitchName[];

/** The state of all switches. One object for a whole service: who reads `values` sees each change at once. */
export class Switches {
  readonly values: SwitchValues;

  constructor() {
    this.values = Object.fromEntries(switchNames.map((name) => [name, table[name].initial])) as unknown as SwitchValues;
  }

  /** Sets all of them, or none: an unknown name or a value that does not fit throws a BadValue that names it. */
  set(given: Readonly<Record<string, unknown>>): void {
    const read = Object.entries(given).map(([key, value]) => {
      const name = switchNames.find((each) => each === key || optionOf(each) === key);
      if (name === undefined) throw new BadValue(`there is no switch "${key}"`);
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
      throw new BadValue(`${named ?? ''}: the shares of all faults are more than 1`);
    }
    Object.assign(this.values, next);
  }

  /** Names and values as JSON has them. */
  show(): Record<string, unknown> {
    return Object.fromEntries(switchNames.map((name) => [name, (table[name].kind as Kind<unknown>).show(this.values[name])]));
  }
}

/** The faults in the order in which chance chooses among them. */
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

/** `pageSizeMax` as it stands on the command line: `page-size-max`. */
export function optionOf(name: SwitchName): string {
  return name.replaceAll(/([a-z])(\d)/g, '$1-$2').replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** One row for each switch, for the help and the documents. */
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
      if (!match) throw new BadValue(`${JSON.stringify(given)} is not a page size after a number of answers such as 50@200`);
      return { max: pageSize.read(match[1], 0), answers: count.read(match[2], 0) };
    },
    show: (value) => `${value.max}@${value.answers}`,
  };
}
