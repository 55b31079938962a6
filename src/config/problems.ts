/**
 * Describes the errors of a configuration: a line each, with the setting, the line of the file, the value (never of a secret) and the
 * allowed values. Knows the types of the schema, not single settings.
 */
import { z } from 'zod';
import { recordFields } from '../normalize/event-names.ts';
import { type Document, type Fault, keyOf, type Path, type Place, referenceAt } from './document.ts';
import { nearestOrAll } from '../settings/nearest.ts';
import { type Found, isSecretAt, keysAt, memberOf, typesAt } from './schema-walk.ts';
import { correctedValue, shortNamePattern } from '../settings/values.ts';

type Issue = z.core.$ZodIssue;
type Root = z.core.$ZodType;

/** The faults that the schema finds, except those caused by an unresolved reference. */
export function schemaFaults(root: Root, document: Document, issues: readonly Issue[]): readonly Fault[] {
  const known = document.faults.map((fault) => keyOf(fault.path));
  const follows = (path: Path): boolean => known.some((key) => keyOf(path.slice(0, (JSON.parse(key) as Path).length)) === key);
  return issues.flatMap((issue) => faultsOf(root, document, issue, [])).filter((fault) => !follows(fault.path));
}

/** `sources.production.pollInterval (line 12): "15 minuts" is not a duration such as 10s, 5m, 2h` */
export function problem(document: Document, { path, message }: Fault): string {
  return `${settingName(document, path)}${lineAt(document, path)}: ${message}`;
}

/** `sources.production.pollInterval` if the id is known, else `sources[0].pollInterval`. */
export function settingName(document: Document, path: Path): string {
  if (path.length === 0) return 'the configuration';
  let at = document.value;
  let name = '';
  for (const [depth, key] of path.entries()) {
    const list = at;
    at = memberOf(at, key);
    const named = depth === 1 && typeof key === 'number' && referenceAt(document, [...path.slice(0, 2), 'id']) === undefined;
    const id = named ? memberOf(at, 'id') : undefined;
    const unique = Array.isArray(list) && list.filter((item) => memberOf(item, 'id') === id).length === 1;
    if (typeof key === 'number' && !(typeof id === 'string' && unique && shortNamePattern.test(id))) name += `[${key}]`;
    else name += `${name && '.'}${typeof key === 'number' ? String(id) : plainKey(key)}`;
  }
  return name;
}

function lineAt(document: Document, path: Path): string {
  const place = placeOf(document, path);
  if (!place) return '';
  return place.file ? ` (${place.file.name}, line ${place.line})` : ` (line ${place.line})`;
}

/** Sorts problems by line; problems of included files follow. */
export function orderOf(document: Document, path: Path): number {
  const place = placeOf(document, path);
  return (place?.file?.turn ?? 0) * 1e9 + (place?.line ?? 0);
}

/** The place of a setting, or of its group if the setting is missing; undefined for the whole file. */
function placeOf(document: Document, path: Path): Place | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    const place = document.places.get(keyOf(path.slice(0, length)));
    if (place) return place;
  }
  return undefined;
}

function faultsOf(root: Root, document: Document, issue: Issue, above: Path): readonly Fault[] {
  const path = [...above, ...(issue.path as Path)];
  const own = faultOf(root, document, issue, path);
  const isUnknownType = issue.code === 'invalid_union' && issue.discriminator !== undefined;
  return isUnknownType ? [...own, ...faultsOfAnyType(root, document, path.slice(0, -1))] : own;
}

/** The faults of a group of unknown type that it would have with every type. */
function faultsOfAnyType(root: Root, document: Document, group: Path): readonly Fault[] {
  const value = group.reduce(memberOf, document.value);
  if (typeof value !== 'object' || value === null) return [];
  const shapes = typesAt(root, group, document.value).flatMap(({ schema }) => (schema instanceof z.ZodObject ? [schema.shape] : []));
  const known = [...new Set(shapes.flatMap((shape) => Object.keys(shape)))];
  const unknown = Object.keys(value).filter((key) => !known.includes(key));
  return [
    ...unknown.map((key) => ({ path: [...group, key], message: unknownKey(key, known) })),
    ...known.flatMap((key) => {
      const [first, ...others] = shapes.map((shape) =>
        Object.hasOwn(shape, key) ? issuesOf(shape[key] as Root, memberOf(value, key)) : [],
      );
      const isAlwaysWrong = first !== undefined && [first, ...others].every((issues) => issues.length > 0);
      return isAlwaysWrong && key !== 'type' ? first.flatMap((issue) => faultsOf(root, document, issue, [...group, key])) : [];
    }),
  ];
}

function issuesOf(schema: Root, value: unknown): readonly Issue[] {
  return z.safeParse(schema, value).error?.issues ?? [];
}

function faultOf(root: Root, document: Document, issue: Issue, path: Path): readonly Fault[] {
  const value = path.reduce(memberOf, document.value);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      // A filter compares records as received; the user may know only the fields of events.
      const field = path.includes('filter') ? recordFields.get(key) : undefined;
      const message =
        field === undefined
          ? unknownKey(key, keysAt(root, path, document.value))
          : `is a field of events; use ${field}, the field of records`;
      return { path: [...path, key], message };
    });
  }
  if (issue.code === 'invalid_key')
    return [{ path, message: unknownKey(String(path.at(-1)), keysAt(root, path.slice(0, -1), document.value)) }];
  if (issue.code === 'invalid_union' && issue.discriminator === undefined) {
    const branch = issue.errors.find((issues) => !issues.some((inside) => inside.path.length === 0 && isMismatch(inside)));
    if (branch) return branch.flatMap((inside) => faultsOf(root, document, inside, path));
  }
  const shown = shownValue(root, document, path, value);
  if (/^(must|is|names) /.test(issue.message) && value !== undefined) {
    // The message never shows the value of a reference, not even corrected.
    const isShown = referenceAt(document, path) === undefined && !isSecretAt(root, path, document.value);
    const corrected = isShown && typeof value === 'string' ? correctedValue(value, issue.message) : undefined;
    return [{ path, message: `${shown} ${issue.message}${corrected === undefined ? '' : `; write ${corrected}`}` }];
  }
  if (issue.code === 'custom') return [{ path, message: issue.message }];
  if (issue.code === 'too_small' && (Array.isArray(value) || value === '')) return [{ path, message: `${shown} is too short` }];
  if (issue.code === 'too_big' && typeof value === 'string')
    return [{ path, message: `${shown} is too long: at most ${issue.maximum} characters` }];
  const types = typesAt(root, path, document.value);
  const expected = expectation(types);
  if (value === undefined) return [{ path, message: `is missing: expected ${expected}` }];
  if (value === null) return [{ path, message: `has no value: expected ${expected}` }];
  const names = [...new Set(types.flatMap(({ schema }) => choicesOf(schema)))];
  if (typeof value === 'string' && names.length > 8) return [{ path, message: `${shown} is not known; ${nearestOrAll(value, names)}` }];
  const remedy =
    expected === 'a list'
      ? listRemedy(value)
      : expected === 'a group of settings' && typeof value !== 'object'
        ? '; indent its settings below it'
        : '';
  const isUnquoted = typeof value !== 'object' && typeof value !== 'string' && expected.startsWith('text');
  return [{ path, message: `${shown} is not ${expected}${isUnquoted ? '; write it in quotes' : remedy}` }];
}

function listRemedy(value: unknown): string {
  return typeof value === 'object' ? '; begin each item with "- "' : '; write it in square brackets';
}

/** True if the value has another type: the message then names the alternatives. */
function isMismatch(issue: Issue): boolean {
  return issue.code === 'invalid_type' || issue.code === 'invalid_value' || issue.message.startsWith('is not ');
}

function unknownKey(key: string, known: readonly string[]): string {
  if (known.includes('ca') && /^(ssl_?)?(verify|insecure|rejectUnauthorized)/i.test(key))
    return 'is not a setting: certificates are always verified; name the file of the CA in "ca"';
  return `is not a setting${known.length === 0 ? '' : `; ${nearestOrAll(key, known)}`}`;
}

function shownValue(root: Root, document: Document, path: Path, value: unknown): string {
  if (isSecretAt(root, path, document.value)) return 'its value (not shown)';
  const reference = referenceAt(document, path);
  if (reference !== undefined) return `the value of ${reference}`;
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object' && value !== null) return 'a group of settings';
  if (typeof value !== 'string') return String(value);
  if (value.includes('-----BEGIN')) return 'PEM text';
  const isAddress =
    (path[0] === 'sources' || path[0] === 'sinks') &&
    typesAt(root, path, document.value).some(({ facts }) => /^(an address|host:port)/.test(facts.expects ?? ''));
  // A secret may have been written in the wrong line.
  if (isAddress && value !== '' && !addressLike.test(value))
    return `${JSON.stringify(`${value.slice(0, Math.min(4, value.length / 2))}…`)} (${value.length} characters)`;
  const harmless = value.replace(/\/\/[^/@]*@/g, '//…@').replace(/[?#].*$/s, isAddress ? '…' : '$&');
  return JSON.stringify(harmless.length > 80 ? `${harmless.slice(0, 80)}…` : harmless);
}

/** Begins with a scheme, or ends with a port. */
const addressLike = /^[a-z][a-z0-9+.-]{1,15}:\/\/|^[A-Za-z0-9.[\]:-]+:\d{1,5}$|^[a-z]*\/\//;

function plainKey(key: string): string {
  return /^[\w:/-]{1,80}$/.test(key) ? key : JSON.stringify(key.slice(0, 80));
}

/** The expected value, as it follows "is not": `a duration such as 10s, 5m, 2h`. */
export function expectation(types: readonly Found[]): string {
  const choices = [
    ...new Set(types.flatMap(({ schema, facts }) => (facts.expects === undefined && isChoice(schema) ? choicesOf(schema) : []))),
  ];
  const kinds = types.flatMap(({ schema, facts }) =>
    facts.expects !== undefined || !isChoice(schema) ? [facts.expects ?? kindOf(schema)] : [],
  );
  const oneOf = choices.length > 1 ? [`one of ${choices.join(', ')}`] : choices;
  return [...new Set([...oneOf, ...kinds])].join(' or ') || 'a setting of another kind';
}

function isChoice(schema: Root): boolean {
  return schema instanceof z.ZodEnum || schema instanceof z.ZodLiteral;
}

function choicesOf(schema: Root): readonly string[] {
  if (schema instanceof z.ZodEnum) return schema.options.map(String);
  return schema instanceof z.ZodLiteral ? [...schema.values].map(String) : [];
}

function kindOf(schema: Root): string {
  if (schema instanceof z.ZodNumber) {
    const { minValue, maxValue } = schema;
    return `a ${schema.format === 'safeint' ? 'whole number' : 'number'} from ${minValue ?? 0}${maxValue === null ? '' : ` to ${maxValue}`}`;
  }
  if (schema instanceof z.ZodString) return 'text';
  if (schema instanceof z.ZodBoolean) return 'true or false';
  if (schema instanceof z.ZodArray) return 'a list';
  return 'a group of settings';
}
