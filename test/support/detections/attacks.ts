/** Attacks on protected files as records of the service, and on the trail itself, each with what nearly is one. */
import type { DetectionEvent } from '../../../src/detections/evaluate.ts';
import type { Combination } from '../../../src/reference/logs/combinations.ts';
import type { Company, CompanyAction, Employee } from '../../../src/reference/activity/company.ts';

export interface Attack {
  readonly name: string;
  readonly rule: string;
  readonly severity: 'medium' | 'high';
  readonly actions: readonly CompanyAction[];
  readonly near: readonly CompanyAction[];
  /** In what `near` differs. */
  readonly nearMiss: string;
  /** Of an attack on the trail itself. */
  readonly ledger?: readonly DetectionEvent[];
  readonly nearLedger?: readonly DetectionEvent[];
}

const minute = 60_000;
const hour = 60 * minute;

const opened: Combination = ['Decrypt', 'AccessGranted', 'Success'];
const noAccess: Combination = ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess'];
const inExcluded: Combination = ['Decrypt', 'AccessDenied', 'GeoValidationCountryExclusionFailed'];
const shared: Combination = ['Audit', 'AuthorisedUserAccess', 'Created'];
const sharedWithGroup: Combination = ['Audit', 'AuthorisedGroupAccess', 'Created'];
const windowChanged: Combination = ['Audit', 'AccessWindow', 'Changed'];
const revocation: Combination = ['Audit', 'RevokeAccess', 'Changed'];
const ownerChanged: Combination = ['Audit', 'AuthorChanged', 'Changed'];
const protectedFile: Combination = ['Encrypt', 'AccessGranted', 'Success'];

/** @param at  a working day, ms */
export function attacksOn(company: Company, at: number): readonly Attack[] {
  // People of different teams, who work all the time.
  const people = company.employees.filter(({ from, to, isOnShifts }) => from === 0 && to > 60 && !isOnShifts);
  const person = (number: number): Employee => {
    const found = people[(number * 37) % people.length];
    if (!found) throw new Error('the company has too few people');
    return found;
  };
  const [mallory, owner, other] = [person(3), person(4), person(5)];
  const files =
    (prefix: string): ((i: number) => string) =>
    (i) =>
      `${prefix}-${String(i)}`;

  interface Repeated {
    readonly times?: number;
    readonly every?: number;
    readonly after?: number;
    readonly file?: (i: number) => string;
    readonly who?: (i: number) => CompanyAction['user'];
    readonly of?: (i: number) => Employee;
    readonly network?: Partial<CompanyAction['network']>;
  }
  const act = (combination: Combination, { times = 1, every = 0, after = 0, file, who, of, network }: Repeated = {}): CompanyAction[] =>
    Array.from({ length: times }, (_, i) => ({
      at: at + after + i * every,
      combination,
      user: who?.(i) ?? mallory,
      payload: { id: file?.(i) ?? 'secret', name: `${file?.(i) ?? 'secret'}.docx`, owner: of?.(i) ?? owner },
      network: { ...home, ...network },
    }));
  const home: CompanyAction['network'] = {
    ...{ ipAddress: '203.0.113.77', networkName: 'home', networkId: 'home', domainName: 'WORKGROUP', deviceType: 'Windows' },
    ...{ machineName: mallory.laptop.name, mac: mallory.laptop.mac, uuid: mallory.laptop.uuid },
    ...{ serviceProvider: mallory.homeProvider, latLong: latLong(mallory), address: 'Example Street' },
  };
  const abroad = { latLong: '-23.5505,-46.6333', ipAddress: '198.51.100.99', serviceProvider: 'Strange Net', machineName: 'UNKNOWN-1' };
  const batch = (): CompanyAction['user'] => company.batch;
  const batchHost = { machineName: 'batch-1' };
  const night = 2 * hour - 10 * hour;
  const each = (i: number): Employee => person(10 + i);
  const ledgerEvent = (action: string, after: number): DetectionEvent => ({
    at: at + after,
    uid: `${action}-${String(after)}`,
    fields: { 'event.action': action, 'dpas.ledger.source': 'production' },
  });
  const proven = [0, 1, 2, 3].map((i) => ledgerEvent('window-proven', i * 15 * minute));

  return [
    {
      name: '1 search: 6 files denied in 5 minutes',
      nearMiss: '4 files',
      rule: 'open-denied-many-files',
      severity: 'high',
      actions: act(noAccess, { times: 6, every: minute, file: files('a') }),
      near: act(noAccess, { times: 4, every: minute, file: files('a') }),
    },
    {
      name: '2 harvest: 30 files opened in 8 minutes',
      nearMiss: '30 files in 20 minutes',
      rule: 'opened-many',
      severity: 'high',
      actions: act(opened, { times: 30, every: 16_000, file: files('a') }),
      near: act(opened, { times: 30, every: 40_000, file: files('a') }),
    },
    {
      name: '3 slow harvest: 200 files in 10 hours',
      nearMiss: '60 files',
      rule: 'opened-many-day',
      severity: 'medium',
      actions: act(opened, { times: 200, every: 3 * minute, file: files('a') }),
      near: act(opened, { times: 60, every: 10 * minute, file: files('a') }),
    },
    {
      name: '3 slow harvest, against the own fortnight',
      nearMiss: '20 files',
      rule: 'opened-above-average',
      severity: 'medium',
      actions: act(opened, { times: 90, every: 6 * minute, file: files('a') }),
      near: act(opened, { times: 20, every: 20 * minute, file: files('a') }),
    },
    {
      name: '4 denied, granted by a stranger, opened',
      nearMiss: 'the owner granted access',
      rule: 'denied-changed-opened',
      severity: 'medium',
      actions: [...act(noAccess), ...act(shared, { after: 10 * minute, who: () => other }), ...act(opened, { after: 20 * minute })],
      near: [...act(noAccess), ...act(shared, { after: 10 * minute, who: () => owner }), ...act(opened, { after: 20 * minute })],
    },
    {
      name: '5 an administrator grants himself access',
      nearMiss: 'another user opens the file',
      rule: 'control-changed-then-opened',
      severity: 'high',
      actions: [...act(shared), ...act(opened, { after: 5 * minute })],
      near: [...act(shared), ...act(opened, { after: 5 * minute, who: () => other })],
    },
    {
      name: '6 takes ownership, and opens',
      nearMiss: 'the new owner does not open it',
      rule: 'control-changed-then-opened',
      severity: 'high',
      actions: [...act(ownerChanged, { of: () => mallory }), ...act(opened, { after: 5 * minute, of: () => mallory })],
      near: act(ownerChanged, { of: () => other }),
    },
    {
      name: '7 access windows of 50 files in 10 minutes',
      nearMiss: '9 files',
      rule: 'access-window-changed-many',
      severity: 'medium',
      actions: act(windowChanged, { times: 50, every: 12_000, file: files('a') }),
      near: act(windowChanged, { times: 9, every: 12_000, file: files('a') }),
    },
    {
      name: '8 revocation of 30 files',
      nearMiss: '15 files',
      rule: 'revocation-changed-many',
      severity: 'medium',
      actions: act(revocation, { times: 30, every: minute, file: files('a') }),
      near: act(revocation, { times: 15, every: minute, file: files('a') }),
    },
    {
      name: '9 ransom: 500 files protected in 10 minutes',
      nearMiss: '80 files',
      rule: 'protected-many',
      severity: 'high',
      actions: act(protectedFile, { times: 500, every: 1_200, file: files('a') }),
      near: act(protectedFile, { times: 80, every: 1_200, file: files('a') }),
    },
    {
      name: '10 service account outside its hours',
      nearMiss: 'within its hours',
      rule: 'service-account-outside',
      severity: 'medium',
      actions: act(opened, { who: batch, network: batchHost }),
      near: act(opened, { who: batch, network: batchHost, after: night }),
    },
    {
      name: '10 service account on another host',
      nearMiss: 'on its own host',
      rule: 'service-account-outside',
      severity: 'medium',
      actions: act(opened, { who: batch, after: night }),
      near: act(opened, { who: batch, network: batchHost, after: night }),
    },
    {
      name: '11 known user, new machine and provider',
      nearMiss: 'new provider, known machine',
      rule: 'new-machine-and-provider',
      severity: 'medium',
      actions: act(opened, { network: { machineName: 'UNKNOWN-1', serviceProvider: 'Strange Net' } }),
      near: act(opened, { network: { serviceProvider: 'Strange Net' } }),
    },
    {
      name: '12 Zürich, 20 minutes later São Paulo',
      nearMiss: '14 hours later',
      rule: 'far-apart',
      severity: 'high',
      actions: [...act(opened), ...act(opened, { after: 20 * minute, network: abroad })],
      near: [...act(opened), ...act(opened, { after: 14 * hour, network: abroad })],
    },
    {
      name: '13 one file opened by 40 users in 10 minutes',
      nearMiss: '15 users',
      rule: 'file-opened-by-many',
      severity: 'medium',
      actions: act(opened, { times: 40, every: 15_000, who: each }),
      near: act(opened, { times: 15, every: 15_000, who: each }),
    },
    {
      name: '14 one file denied to 30 users',
      nearMiss: '8 users',
      rule: 'file-denied-to-many',
      severity: 'medium',
      actions: act(noAccess, { times: 30, every: minute, who: each }),
      near: act(noAccess, { times: 8, every: minute, who: each }),
    },
    {
      name: '15 denied in an excluded country',
      nearMiss: '3 files denied without access',
      rule: 'open-denied-country',
      severity: 'medium',
      actions: act(inExcluded, { times: 3, every: minute, file: files('a') }),
      near: act(noAccess, { times: 3, every: minute, file: files('a') }),
    },
    {
      name: '16 a leaver tries 4 files after the revocation',
      nearMiss: '4 other files',
      rule: 'revoked-then-denied',
      severity: 'medium',
      actions: [
        ...act(revocation, { times: 4, every: minute, file: files('a'), who: () => owner }),
        ...act(noAccess, { times: 4, every: 5 * minute, after: 2 * hour, file: files('a') }),
      ],
      near: [
        ...act(revocation, { times: 4, every: minute, file: files('a'), who: () => owner }),
        ...act(noAccess, { times: 4, every: minute, after: 2 * hour, file: files('b') }),
      ],
    },
    {
      name: '17 25 files shared with a group',
      nearMiss: '15 files',
      rule: 'authorized-many',
      severity: 'medium',
      actions: act(sharedWithGroup, { times: 25, every: minute, file: files('a') }),
      near: act(sharedWithGroup, { times: 15, every: minute, file: files('a') }),
    },
    {
      name: '18 denied three times, then opened',
      nearMiss: 'denied twice',
      rule: 'open-denied-then-allowed',
      severity: 'medium',
      actions: [...act(noAccess, { times: 3, every: minute }), ...act(opened, { after: 10 * minute })],
      near: [...act(noAccess, { times: 2, every: minute }), ...act(opened, { after: 10 * minute })],
    },
    {
      name: '19 owner of 8 files changed',
      nearMiss: '4 files',
      rule: 'owner-changed-many',
      severity: 'high',
      actions: act(ownerChanged, { times: 8, every: 3 * minute, file: files('a') }),
      near: act(ownerChanged, { times: 4, every: 3 * minute, file: files('a') }),
    },
    {
      name: '20 files of 15 owners in an hour',
      nearMiss: '15 files of one owner',
      rule: 'opened-of-many-owners',
      severity: 'medium',
      actions: act(opened, { times: 15, every: 3.9 * minute, file: files('a'), of: each }),
      near: act(opened, { times: 15, every: 3.9 * minute, file: files('a') }),
    },
    {
      name: 'the trail has a gap',
      nearMiss: 'every window proven',
      rule: 'trail-broken',
      severity: 'high',
      actions: [],
      near: [],
      ledger: [...proven, ledgerEvent('window-gap', hour)],
      nearLedger: proven,
    },
    {
      name: 'the trail is silent',
      nearMiss: 'a proof every 15 minutes',
      rule: 'no-proof',
      severity: 'high',
      actions: [],
      near: [],
      ledger: [...proven, ledgerEvent('window-proven', 3 * hour)],
      nearLedger: [...proven, ...[4, 5, 6, 7, 8, 9, 10, 11].map((i) => ledgerEvent('window-proven', i * 15 * minute))],
    },
  ];
}

function latLong({ home }: Employee): string {
  return `${String(home.latitude)},${String(home.longitude)}`;
}
