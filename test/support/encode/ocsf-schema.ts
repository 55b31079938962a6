/**
 * Checks an OCSF event against the schema (test/fixtures/ocsf-1.8.0-classes.json): required, known,
 * typed, enumerated and constrained attributes.
 */
import schema from '../../fixtures/ocsf-1.8.0-classes.json' with { type: 'json' };

interface Attribute {
  readonly type: string;
  readonly requirement: string;
  readonly object_type?: string;
  readonly is_array?: boolean;
  readonly profiles?: readonly string[];
  readonly sibling?: string;
  readonly enum?: readonly string[];
  readonly deprecated?: boolean;
}
interface Kind {
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly constraints?: { readonly at_least_one?: readonly string[]; readonly just_one?: readonly string[] };
}
type Values = Readonly<Record<string, unknown>>;

const classes: readonly (Kind & { readonly uid: number; readonly category_uid: number })[] = Object.values(schema.classes);
const objects: Readonly<Record<string, Kind | undefined>> = schema.objects;
const types: Readonly<Record<string, { readonly type?: string; readonly regex?: string; readonly max_len?: number } | undefined>> =
  schema.types;
const integers = new Set(['integer_t', 'long_t', 'timestamp_t', 'port_t']);

/** All violations of the schema; none for a valid event. */
export function faultsOf(text: string): readonly string[] {
  const event = JSON.parse(text) as Values;
  const kind = classes.find(({ uid }) => uid === event['class_uid']);
  if (!kind) return [`class_uid: ${String(event['class_uid'])} is not a class`];
  const profiles = (event['metadata'] as { profiles?: readonly string[] } | undefined)?.profiles ?? [];
  const faults = faultsIn(event, kind, profiles, '');
  if (event['category_uid'] !== kind.category_uid) faults.push('category_uid: of another category');
  if (event['type_uid'] !== kind.uid * 100 + Number(event['activity_id'])) faults.push('type_uid: not class and activity');
  return faults;
}

function faultsIn(values: Values, { attributes, constraints }: Kind, profiles: readonly string[], path: string): string[] {
  const isActive = ({ profiles: own }: Attribute): boolean => own === undefined || own.some((name) => profiles.includes(name));
  const missing = Object.entries(attributes)
    .filter(([name, attribute]) => attribute.requirement === 'required' && isActive(attribute) && values[name] === undefined)
    .map(([name]) => `${path}${name}: is required`);
  const unmet = [
    ...(constraints?.at_least_one?.every((name) => values[name] === undefined) ? ['at least one'] : []),
    ...(constraints?.just_one && constraints.just_one.filter((name) => values[name] !== undefined).length !== 1 ? ['just one'] : []),
  ].map((words) => `${path}: ${words} of its constraint`);
  const wrong = Object.entries(values).flatMap(([name, value]) => {
    const attribute = attributes[name];
    const at = `${path}${name}`;
    if (!attribute) return [`${at}: is unknown`];
    if (!isActive(attribute)) return [`${at}: belongs to the profile ${attribute.profiles?.join() ?? ''}`];
    if (attribute.deprecated) return [`${at}: is deprecated`];
    // `type_uid` is a sum, so 99 does not mean "other" there.
    if (name !== 'type_uid' && String(value) === '99' && attribute.enum && attribute.sibling && values[attribute.sibling] === undefined)
      return [`${at}: 99 needs ${attribute.sibling}`];
    if (Array.isArray(value) !== (attribute.is_array ?? false)) return [`${at}: list or not`];
    return (Array.isArray(value) ? value : [value]).flatMap((each: unknown) => faultsOfValue(each, attribute, profiles, at));
  });
  return [...missing, ...unmet, ...wrong];
}

function faultsOfValue(value: unknown, attribute: Attribute, profiles: readonly string[], at: string): string[] {
  const { type, object_type: objectType } = attribute;
  if (type === 'json_t') return [];
  if (type === 'object_t') {
    if (typeof value !== 'object' || value === null) return [`${at}: is no object`];
    if (Object.keys(value).length === 0) return [`${at}: is empty`];
    if (objectType === 'object') return [];
    const kind = objects[objectType ?? ''];
    return kind ? faultsIn(value as Values, kind, profiles, `${at}.`) : [`${at}: its object ${objectType ?? ''} is not among those in use`];
  }
  if (attribute.enum && !attribute.enum.includes(String(value))) return [`${at}: ${String(value)} is not in its list`];
  if (integers.has(type)) return Number.isSafeInteger(value) ? [] : [`${at}: is no integer`];
  if (type === 'boolean_t') return typeof value === 'boolean' ? [] : [`${at}: is neither true nor false`];
  if (typeof value !== 'string' || value === '') return [`${at}: is no text`];
  const { regex, max_len: longest = Infinity } = types[type] ?? {};
  if (value.length > longest) return [`${at}: is longer than ${longest}`];
  return regex !== undefined && !new RegExp(regex).test(value) ? [`${at}: "${value.slice(0, 60)}" is no ${type}`] : [];
}
