/**
 * Makes log records as the organisation's people would cause them: every combination of specification 2.8, payloads that change hands,
 * users with their devices. A record is a list of fields with their JSON texts, in the order of specification 2.7, until it is stored.
 */
import type { Person } from '../people/organisation.ts';
import { networkOf } from './network.ts';
import { below, oneOf, randomOf, uuidOf, type Random } from '../random.ts';
import type { StoredRecord } from './store.ts';
import { floorDivide, instantText } from '../instant.ts';

/** One field and its value as JSON text. */
export type Field = [name: string, json: string];

/** What the fields say that the store has to know. */
export interface MadeRecord {
  fields: Field[];
  readonly at: bigint;
}

interface Payload {
  readonly id: string;
  readonly name: string;
  owner: Person;
}

/** The table of specification 2.8, each combination with how often it occurs among a thousand records. */
export const combinations = [
  ['Encrypt', 'AccessGranted', 'Success', 180],
  ['Encrypt', 'AccessDenied', 'GeoValidationCountryExclusionFailed', 10],
  ['Decrypt', 'AccessGranted', 'Success', 450],
  ['Decrypt', 'AccessDenied', 'GeoValidationCountryExclusionFailed', 20],
  ['Decrypt', 'AccessDenied', 'TimeEmbargoFailed', 40],
  ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess', 70],
  ['Decrypt', 'AccessDenied', 'GeoValidationFailed', 30],
  ['Audit', 'AccessWindow', 'Changed', 20],
  ['Audit', 'AccessWindow', 'Created', 30],
  ['Audit', 'RevokeAccess', 'Changed', 25],
  ['Audit', 'AuthorisedGroupAccess', 'Changed', 10],
  ['Audit', 'AuthorisedGroupAccess', 'Created', 20],
  ['Audit', 'AuthorisedUserAccess', 'Changed', 20],
  ['Audit', 'AuthorisedUserAccess', 'Created', 45],
  ['Audit', 'AuthorChanged', 'Changed', 10],
  ['EncryptionRequest', 'AccessDenied', 'GeoValidationCountryExclusionFailed', 10],
  ['EncryptionRequest', 'AccessDenied', 'GeoValidationFailed', 10],
] as const;

const byWeight = combinations.flatMap((combination) => Array.from({ length: combination[3] / 5 }, () => combination));
const personalFields = new Set(['userLastNameFirstName', 'userEmailAddress', 'currentOwnerLastNameFirstName', 'currentOwnerEmailAddress']);
const subjects = [
  'Budget',
  'Contract',
  'Blueprint',
  'Payroll',
  'Minutes',
  'Roadmap',
  'Übersicht',
  'Invoice "final"',
  '契約書',
  'Q3 \\ review',
];
const extensions = ['.docx', '.xlsx', '.pdf', '.pptx', '.dwg', '.txt'];
/** How often a timestamp has so many digits in its fraction: the service writes as many as it has. */
const digitsByWeight = [7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 3, 3, 3, 3, 2, 2, 5, 4, 1, 0];
const payloadsMax = 20_000;
const networksMax = 2_000;

export class RecordMaker {
  readonly #people: readonly Person[];
  readonly #random: Random;
  readonly #payloads: Payload[] = [];
  readonly #networks: string[];
  #made = 0;
  #nextId: number;

  /** @param firstId  the logId of the first record */
  constructor(people: readonly Person[], seed: string, firstId: number) {
    this.#people = people;
    this.#random = randomOf(`${seed}/records/${firstId}`);
    this.#nextId = firstId;
    this.#networks = Array.from({ length: networksMax }, () => JSON.stringify(networkOf(this.#random)));
  }

  /** The logId that the next record gets. */
  get nextId(): number {
    return this.#nextId;
  }

  /**
   * One record of this instant (ns since 1970); its logTimestamp may have fewer digits. The first of every service are one of each
   * combination.
   */
  make(instant: bigint): MadeRecord {
    const random = this.#random;
    const [action, result, reason] = combinations[this.#made] ?? oneOf(random, byWeight);
    this.#made += 1;
    const logId = this.#nextId;
    this.#nextId += 1 + (random() < 0.05 ? below(random, 3) : 0);

    const payload = this.#payload(action === 'Encrypt');
    const user = action === 'Decrypt' ? oneOf(random, this.#people) : payload.owner;
    if (action === 'Audit' && result === 'AuthorChanged') payload.owner = oneOf(random, this.#people);
    const owner = payload.owner;

    const digits = oneOf(random, digitsByWeight);
    const unit = 10n ** BigInt(9 - digits);
    const at = floorDivide(instant, unit) * unit;

    return {
      at,
      fields: [
        ['logId', String(logId)],
        ['userId', `"${user.userId}"`],
        ['payloadId', `"${payload.id}"`],
        ['payloadName', JSON.stringify(payload.name)],
        ['currentPayloadOwnerId', `"${owner.userId}"`],
        ['actionAttempted', `"${action}"`],
        ['result', `"${result}"`],
        ['resultReason', `"${reason}"`],
        ['logTimestamp', `"${instantText(at, digits)}"`],
        ['userNetwork', oneOf(random, this.#networks)],
        ['userLastNameFirstName', `"${user.name}"`],
        ['userEmailAddress', `"${user.email}"`],
        ['currentOwnerLastNameFirstName', `"${owner.name}"`],
        ['currentOwnerEmailAddress', `"${owner.email}"`],
      ],
    };
  }

  #payload(fresh: boolean): Payload {
    const random = this.#random;
    if (!fresh && this.#payloads.length > 0) return oneOf(random, this.#payloads);
    const name = `${oneOf(random, subjects)} ${2020 + below(random, 7)}-${1 + below(random, 9999)}${oneOf(random, extensions)}`;
    const payload = { id: uuidOf(random), name, owner: oneOf(random, this.#people) };
    if (this.#payloads.length < payloadsMax) this.#payloads.push(payload);
    else this.#payloads[below(random, payloadsMax)] = payload;
    return payload;
  }
}

/** The record as the store keeps it: text in the three parts that permissions tell apart, and the keys. */
export function storedFrom(made: MadeRecord): StoredRecord {
  let head = '';
  let network = '';
  let personal = '';
  const keys: Record<string, string> = {};
  for (const [name, json] of made.fields) {
    const text = `${JSON.stringify(name)}:${json}`;
    if (name === 'userNetwork') network += `,${text}`;
    else if (personalFields.has(name)) personal += `,${text}`;
    else head += head === '' ? `{${text}` : `,${text}`;
    if (json.startsWith('"')) keys[name] = json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1);
  }
  return { ...keysOf(keys), at: made.at, head, network, personal, tail: '}' };
}

/** The columns of the fields that are texts. */
export function keysOf(fields: Readonly<Record<string, unknown>>): Omit<StoredRecord, 'at' | 'head' | 'network' | 'personal' | 'tail'> {
  const text = (name: string): string | null => (typeof fields[name] === 'string' ? fields[name] : null);
  return {
    userId: text('userId'),
    payloadId: text('payloadId'),
    payloadName: text('payloadName'),
    currentPayloadOwnerId: text('currentPayloadOwnerId'),
    actionAttempted: text('actionAttempted'),
    result: text('result'),
    resultReason: text('resultReason'),
    userLastNameFirstName: text('userLastNameFirstName'),
  };
}
