/**
 * Generates log records of the people of the organization: every combination of combinations.ts,
 * payloads with changing owners, users with their devices. Until it is stored, a record is a list
 * of fields with JSON texts, in the order of the specification.
 */
import { combinations, type Combination } from './combinations.ts';
import type { Person } from '../people/organization.ts';
import { networkOf, type UserNetwork } from './network.ts';
import { below, oneOf, randomOf, uuidOf, type Random } from '../random.ts';
import type { StoredRecord } from './store.ts';
import { floorDivide, instantText } from '../instant.ts';

/** A field and its value as JSON text. */
type Field = [name: string, json: string];

/** The values that the store needs. */
export interface GeneratedRecord {
  fields: Field[];
  /** ns since 1970 */
  at: bigint;
}

/** A person in a record. */
type Named = Pick<Person, 'userId' | 'name' | 'email'>;

/** An action or attempt. */
export interface LoggedAction {
  readonly combination: Combination;
  readonly user: Named;
  readonly payload: { readonly id: string; readonly name: string; readonly owner: Named };
  readonly network: UserNetwork;
}

interface Payload {
  readonly id: string;
  readonly name: string;
  owner: Person;
}

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
/**
 * Numbers of digits after the decimal point of a timestamp, each as often as it is drawn. At least
 * one: section 2.7 of the specification requires a fraction.
 */
const digitsByWeight = [7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 3, 3, 3, 3, 2, 2, 5, 4, 1, 1];
/** Records of calls have seven digits. */
const digitsOfCalls = 7;
const payloadsMax = 20_000;
const networksMax = 2_000;

export class RecordGenerator {
  readonly #people: readonly Person[];
  readonly #random: Random;
  readonly #payloads: Payload[] = [];
  readonly #networks: string[];
  #generated = 0;
  #nextId: number;

  /** @param firstId  the logId of the first record */
  constructor(people: readonly Person[], seed: string, firstId: number) {
    this.#people = people;
    this.#random = randomOf(`${seed}/records/${firstId}`);
    this.#nextId = firstId;
    this.#networks = Array.from({ length: networksMax }, () => JSON.stringify(networkOf(this.#random)));
  }

  /** The logId of the next record. */
  get nextId(): number {
    return this.#nextId;
  }

  /** The record of an action at this instant (ns since 1970). */
  ofAction({ combination, user, payload, network }: LoggedAction, instant: bigint): GeneratedRecord {
    const at = cut(instant, digitsOfCalls);
    const logId = this.#nextId;
    this.#nextId += 1;
    return { at, fields: fieldsOf(logId, combination, user, payload, instantText(at, digitsOfCalls), JSON.stringify(network)) };
  }

  /**
   * A random record of this instant (ns since 1970); its logTimestamp may have fewer digits. The
   * first records have one of each combination.
   */
  next(instant: bigint): GeneratedRecord {
    const random = this.#random;
    const [action, result, reason] = combinations[this.#generated] ?? oneOf(random, byWeight);
    this.#generated += 1;
    const logId = this.#nextId;
    this.#nextId += 1 + (random() < 0.05 ? below(random, 3) : 0);

    const payload = this.#payload(action === 'Encrypt');
    const user = action === 'Decrypt' ? oneOf(random, this.#people) : payload.owner;
    if (action === 'Audit' && result === 'AuthorChanged') payload.owner = oneOf(random, this.#people);

    const digits = oneOf(random, digitsByWeight);
    const at = cut(instant, digits);
    const network = oneOf(random, this.#networks);
    return { at, fields: fieldsOf(logId, [action, result, reason] as Combination, user, payload, instantText(at, digits), network) };
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

/** In the order of the specification. */
function fieldsOf(
  logId: number,
  [action, result, reason]: Combination,
  user: Named,
  payload: LoggedAction['payload'],
  timestamp: string,
  networkJson: string,
): Field[] {
  return [
    ['logId', String(logId)],
    ['userId', JSON.stringify(user.userId)],
    ['payloadId', JSON.stringify(payload.id)],
    ['payloadName', JSON.stringify(payload.name)],
    ['currentPayloadOwnerId', JSON.stringify(payload.owner.userId)],
    ['actionAttempted', `"${action}"`],
    ['result', `"${result}"`],
    ['resultReason', `"${reason}"`],
    ['logTimestamp', `"${timestamp}"`],
    ['userNetwork', networkJson],
    ['userLastNameFirstName', JSON.stringify(user.name)],
    ['userEmailAddress', JSON.stringify(user.email)],
    ['currentOwnerLastNameFirstName', JSON.stringify(payload.owner.name)],
    ['currentOwnerEmailAddress', JSON.stringify(payload.owner.email)],
  ];
}

/** The instant, truncated to a number of digits in the fraction. */
export function cut(instant: bigint, digits: number): bigint {
  const unit = 10n ** BigInt(9 - digits);
  return floorDivide(instant, unit) * unit;
}

/** The stored form of a record: its text, split by permission, and its keys. */
export function storedFrom(generated: GeneratedRecord): StoredRecord {
  let head = '';
  let network = '';
  let personal = '';
  const keys: Record<string, string> = {};
  for (const [name, json] of generated.fields) {
    const text = `${JSON.stringify(name)}:${json}`;
    if (name === 'userNetwork') network += `,${text}`;
    else if (personalFields.has(name)) personal += `,${text}`;
    else head += head === '' ? `{${text}` : `,${text}`;
    if (json.startsWith('"')) keys[name] = json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1);
  }
  return { ...keysOf(keys), at: generated.at, head, network, personal, tail: '}' };
}

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
