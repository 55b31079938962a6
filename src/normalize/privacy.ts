/**
 * Privacy rules. They apply to the record before normalization: an event copies one value to many fields and derives others from it. A
 * field that a rule names is hidden whatever its type, and the text is serialized again.
 */
import { createHmac } from 'node:crypto';
import { WaybillError } from '../errors/errors.ts';
import type { JsonValue, RecordFields } from '../model/record.ts';
import type { FieldPath } from '../record/fields.ts';
import { masked } from '../record/document.ts';
import { isAbsent, objectOf, textOf } from '../record/json.ts';
import { readText } from '../record/read.ts';

export type PrivacyAction = 'drop' | 'mask' | 'pseudonymize';

interface PrivacyRule {
  readonly fields: readonly FieldPath[];
  readonly action: PrivacyAction;
}

export interface Privacy {
  readonly rules: readonly PrivacyRule[];
  /** The HMAC key; only `pseudonymize` needs it. */
  readonly key?: string | undefined;
}

/** Returns the record unchanged, or redacted and serialized again. */
type Redact = (record: RecordFields) => RecordFields;

/**
 * Compiles the rules; undefined without rules. A rule for `userNetwork` applies to all its fields without a rule of their own. A record
 * that is not an object is hidden completely.
 * @throws WaybillError `config_invalid` when the key is missing
 */
export function redactor(privacy: Privacy): Redact | undefined {
  const actions = new Map<string, PrivacyAction>();
  for (const rule of privacy.rules) for (const field of rule.fields) actions.set(field, rule.action);
  if (actions.size === 0) return undefined;
  if (keyMissing(privacy)) throw new WaybillError('config_invalid', 'cannot pseudonymize: the setting "privacy.key" is missing');

  const network = 'userNetwork';
  const inside = new Map(
    [...actions].flatMap(([field, action]) => (field.includes('.') ? [[field.slice(network.length + 1), action] as const] : [])),
  );
  const whole = actions.get(network);
  const top = [...actions].filter(([field]) => field !== network && !field.includes('.'));
  const namesNetwork = whole !== undefined || inside.size > 0;
  const hide = hider(privacy.key);

  return (received) => {
    const record = objectOf(received.tree());
    if (record === undefined) return readText(JSON.stringify(masked));
    // A key that is present counts even if its value is null: the text may have the key twice, with another value.
    const touched = top.filter(([field]) => Object.hasOwn(record, field));
    const touchesNetwork = namesNetwork && Object.hasOwn(record, network);
    if (touched.length === 0 && !touchesNetwork) return received;
    const redacted: Record<string, JsonValue> = { ...record };
    for (const [field, action] of touched) replace(redacted, field, hide(action, record[field] ?? null));
    if (touchesNetwork) replace(redacted, network, redactNetwork(record[network] ?? null, whole, inside, hide));
    return readText(JSON.stringify(redacted));
  };
}

export function keyMissing({ rules, key }: Privacy): boolean {
  return key === undefined && rules.some(({ action }) => action === 'pseudonymize');
}

/** The fields that rules drop; their absence is not unexpected. */
export function droppedFields(privacy: Privacy): ReadonlySet<string> {
  return new Set(privacy.rules.filter((rule) => rule.action === 'drop').flatMap((rule) => rule.fields));
}

type Hide = (action: PrivacyAction, value: JsonValue) => JsonValue | undefined;

/** `pn_` and the first 22 characters of the base64url of HMAC-SHA-256(key, value as text). Equal values give equal pseudonyms. */
function hider(key: string | undefined): Hide {
  return (action, value) => {
    if (action === 'drop') return undefined;
    if (isAbsent(value)) return value;
    if (action === 'mask' || key === undefined) return masked;
    const text = textOf(value) ?? JSON.stringify(value);
    return `pn_${createHmac('sha256', key).update(text).digest('base64url').slice(0, 22)}`;
  };
}

function redactNetwork(
  value: JsonValue,
  whole: PrivacyAction | undefined,
  inside: ReadonlyMap<string, PrivacyAction>,
  hide: Hide,
): JsonValue | undefined {
  const network = objectOf(value);
  // Without an object the value may hold any of the fields, so their strictest rule (dropping, if there is one) applies to all of it.
  if (network === undefined) return hide(whole ?? strictest(inside), value);
  if (whole === 'drop' && inside.size === 0) return undefined;
  const redacted: Record<string, JsonValue> = { ...network };
  for (const field of Object.keys(network)) {
    const action = inside.get(field) ?? whole;
    if (action !== undefined) replace(redacted, field, hide(action, network[field] ?? null));
  }
  return redacted;
}

function strictest(inside: ReadonlyMap<string, PrivacyAction>): PrivacyAction {
  const actions = new Set(inside.values());
  return actions.has('drop') ? 'drop' : actions.has('mask') ? 'mask' : 'pseudonymize';
}

function replace(object: Record<string, JsonValue>, field: string, value: JsonValue | undefined): void {
  if (value === undefined) {
    Reflect.deleteProperty(object, field);
  } else {
    Object.defineProperty(object, field, { value, writable: true, enumerable: true, configurable: true });
  }
}
