/**
 * The sequences that each rule of content must find, and near misses by one record or one second:
 * defined once, and run through every form of the rule (Sigma, Kibana, Splunk).
 */
import { rows } from '../normalize/records.ts';
import type { Happening } from './events.ts';

const every = rows.map(({ triple }) => triple.join(':'));
const country = 'GeoValidationCountryExclusionFailed';

/** The codes on which a single-event rule fires; it stays silent on the others of the 17. */
export const singleEvents: Readonly<Record<string, readonly string[]>> = {
  any_denied: every.filter((code) => code.includes(':AccessDenied:')),
  open_denied_country: [`Decrypt:AccessDenied:${country}`],
  open_denied_no_access: ['Decrypt:AccessDenied:UserPayloadNoAccess'],
  open_denied_geo: ['Decrypt:AccessDenied:GeoValidationFailed'],
  open_denied_time: ['Decrypt:AccessDenied:TimeEmbargoFailed'],
  open_allowed: ['Decrypt:AccessGranted:Success'],
  owner_changed: ['Audit:AuthorChanged:Changed'],
  authorized: every.filter((code) => /^Audit:Authorised/.test(code)),
  revocation_changed: ['Audit:RevokeAccess:Changed'],
  protect_denied_geo: every.filter((code) => /^Encrypt\w*:AccessDenied/.test(code)),
};

/** `any_denied` and single-event rules match these too: denials outside the table. */
export const allCodes = every;

interface Burst {
  /** The outcomes to count. */
  readonly codes: readonly string[];
  /** The required number of events, or of distinct files. */
  readonly count: number;
  /** The seconds within which they must occur. */
  readonly window: number;
  readonly counts: 'files' | 'events';
}

const [minute, hour] = [60, 3600];
const opens = [country, 'UserPayloadNoAccess', 'GeoValidationFailed'].map((reason) => `Decrypt:AccessDenied:${reason}`);

export const bursts: Readonly<Record<string, Burst>> = {
  open_denied_many_files: { codes: opens, count: 5, window: 15 * minute, counts: 'files' },
  open_outside_time: { codes: ['Decrypt:AccessDenied:TimeEmbargoFailed'], count: 5, window: hour, counts: 'events' },
  owner_changed_many: { codes: ['Audit:AuthorChanged:Changed'], count: 5, window: hour, counts: 'files' },
  authorized_many: { codes: every.filter((code) => /^Audit:Authorised/.test(code)), count: 20, window: hour, counts: 'files' },
  opened_many: { codes: ['Decrypt:AccessGranted:Success'], count: 25, window: 10 * minute, counts: 'files' },
  revocation_changed_many: { codes: ['Audit:RevokeAccess:Changed'], count: 20, window: hour, counts: 'files' },
};

interface Sequence {
  readonly name: string;
  readonly happenings: readonly Happening[];
  readonly fires: boolean;
  /** Only for a difference that Sigma cannot express. */
  readonly firesInSigma?: boolean;
}

/** Events spread evenly over `seconds`, with the counted outcomes in turn, each on another file. */
export function spread({ codes }: Pick<Burst, 'codes'>, count: number, seconds: number, from = 0): readonly Happening[] {
  return Array.from({ length: count }, (_, index) => ({
    code: codes[index % codes.length] ?? '',
    file: `p-${index}`,
    at: from + Math.round((index * seconds) / (count - 1)),
  }));
}

/**
 * @param reach  seconds over which the form of the rule may count: the window, or the width of its buckets
 */
export function burstSequences(burst: Burst, reach: number): readonly Sequence[] {
  const { codes, count, window, counts } = burst;
  const whole = spread(burst, count, window);
  const last = whole.at(-1);
  if (!last) throw new Error('a burst has no event');
  const other = every.find((code) => code.startsWith('Audit:AccessWindow')) ?? '';
  return [
    { name: 'the count within the window', happenings: whole, fires: true },
    ...codes.map((code) => ({ name: `the count of ${code}`, happenings: whole.map((event) => ({ ...event, code })), fires: true })),
    { name: 'one record less', happenings: whole.slice(1), fires: false },
    { name: 'one record of another outcome', happenings: [...whole.slice(1), { ...last, code: other, file: 'p-0' }], fires: false },
    { name: 'one record of another user', happenings: [...whole.slice(1), { ...last, user: 'u-2', file: 'p-0' }], fires: false },
    { name: 'one second too long', happenings: spread(burst, count, reach + 1), fires: false },
    { name: 'one file twice', happenings: [...whole.slice(1), { ...last, at: last.at - 1 }], fires: counts === 'events' },
  ];
}

const denied = (count: number, reason = 'UserPayloadNoAccess', every = 60): readonly Happening[] =>
  Array.from({ length: count }, (_, index) => ({ code: `Decrypt:AccessDenied:${reason}`, at: index * every }));
const allowed: Omit<Happening, 'at'> = { code: 'Decrypt:AccessGranted:Success' };

/** Ten denied opens of a file, then an allowed one, within an hour. */
export const deniedThenAllowed: readonly Sequence[] = [
  { name: 'ten denials, then an open', happenings: [...denied(10), { ...allowed, at: 3600 }], fires: true },
  {
    name: 'ten denials for several reasons, then an open',
    happenings: [
      ...denied(10).map((event, index) => ({ ...event, code: [...opens, 'Decrypt:AccessDenied:TimeEmbargoFailed'][index % 4] ?? '' })),
      { ...allowed, at: 700 },
    ],
    fires: true,
  },
  { name: 'nine denials, then an open', happenings: [...denied(9), { ...allowed, at: 600 }], fires: false },
  { name: 'an open, then ten denials', happenings: [{ ...allowed, at: -1 }, ...denied(10)], fires: false },
  { name: 'an open of another file', happenings: [...denied(10), { ...allowed, file: 'p-2', at: 600 }], fires: false },
  { name: 'an open by another user', happenings: [...denied(10), { ...allowed, user: 'u-2', at: 600 }], fires: false },
  { name: 'an open one second too late', happenings: [...denied(10), { ...allowed, at: 540 + 3601 }], fires: false },
  {
    name: 'an open one second more than an hour after the first denial',
    happenings: [...denied(10), { ...allowed, at: 3601 }],
    fires: false,
    firesInSigma: true,
  },
  { name: 'only denials', happenings: denied(11), fires: false },
];
