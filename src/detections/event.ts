/** Events of the rules from the JSON documents of the format `ecs`, audit and ledger alike. */
import type { DetectionEvent } from './evaluate.ts';
import type { Condition, Rule } from './rule.ts';

/** What an alert names besides the fields that rules read. */
const named = ['event.code', 'event.action', 'user.email', 'file.name'];

/** The fields that rules read or an alert names. */
export function fieldsOf(rules: readonly Rule[]): readonly string[] {
  const inConditions = (where: readonly Condition[]): string[] =>
    where.flatMap(({ fields, differ, outside }) => [
      ...Object.keys(fields),
      ...(differ ?? []),
      ...(outside === undefined ? [] : ['user.id', 'host.hostname']),
    ]);
  const fields = rules.flatMap(({ detect, exceptions }) => [
    ...Object.keys(exceptions),
    ...(detect.kind === 'sequence' ? detect.steps.flatMap(({ where }) => inConditions(where)) : inConditions(detect.where)),
    ...detect.group,
    ...('distinct' in detect ? [detect.distinct] : []),
    ...(detect.kind === 'first-seen' ? detect.of : []),
    ...(detect.kind === 'distance' ? ['source.geo.location.lat', 'source.geo.location.lon'] : []),
    ...(detect.kind === 'sequence' && detect.across ? [detect.across.by, detect.across.distinct] : []),
  ]);
  return [...new Set([...named, ...fields])];
}

/**
 * @param document  a parsed line of the format `ecs`; anything else may come too
 * @param texts  texts of earlier events; the first of several equal texts is kept
 * @returns undefined for what is no event of Waybill: it has no time or no identity
 */
export function eventOf(document: unknown, fields: readonly string[], texts = new Map<string, string>()): DetectionEvent | undefined {
  const kept = (text: string | undefined): string | undefined => {
    if (text === undefined) return undefined;
    const found = texts.get(text) ?? text;
    texts.set(found, found);
    return found;
  };
  const at = Date.parse(textAt(document, '@timestamp') ?? '');
  // A ledger event has no uid of a record: its hash names it.
  const uid = textAt(document, 'dpas.uid') ?? textAt(document, 'event.hash') ?? textAt(document, 'event.id');
  if (Number.isNaN(at) || uid === undefined) return undefined;
  return { at, uid, fields: Object.fromEntries(fields.map((field) => [field, kept(textAt(document, field))])) };
}

function textAt(document: unknown, field: string): string | undefined {
  let value = document;
  for (const name of field.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  // Every event has the tag `forwarded`; the others say what is unexpected.
  if (Array.isArray(value)) value = (value as unknown[]).find((each) => each !== 'forwarded');
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined;
}
