/**
 * Reads the Sigma files under content/sigma, and evaluates a rule over records: selections of exact values and two fields that are equal,
 * and correlations that count events or values in any window of their timespan, or require an order.
 */
import { globSync, readFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import type { DetectionEvent } from '../../../src/detections/evaluate.ts';
import type { Row } from './events.ts';
import { valuesOf } from './events.ts';

interface Correlation {
  readonly type: 'event_count' | 'value_count' | 'temporal_ordered';
  readonly rules: readonly string[];
  readonly 'group-by': readonly string[];
  readonly timespan: string;
  readonly condition?: { readonly gte: number; readonly field?: string };
}

type Values = Readonly<Record<string, string | readonly string[] | null>>;

interface SigmaRule {
  readonly path: string;
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly falsepositives: readonly string[];
  readonly level: string;
  readonly tags?: readonly string[];
  readonly logsource?: { readonly product: string; readonly service: string };
  /** Searches by their names, and the condition. */
  readonly detection?: Readonly<Record<string, Values | readonly Values[] | string>>;
  readonly correlation?: Correlation;
}

const folder = new URL('../../../content/sigma/', import.meta.url);
export const readSigma = (path: string): unknown => parse(readFileSync(new URL(path, folder), 'utf8'));

/** A correlation is followed by the detections of its file. */
export const sigmaRules: readonly SigmaRule[] = globSync('{rules,correlations,ordered}/*.yml', { cwd: folder })
  .toSorted()
  .flatMap((path) =>
    parseAllDocuments(readFileSync(new URL(path, folder), 'utf8')).map((document) => ({
      path,
      ...(document.toJS() as Omit<SigmaRule, 'path'>),
    })),
  );

export function sigmaRule(name: string): SigmaRule {
  const found = sigmaRules.find((rule) => rule.name === name);
  if (!found) throw new Error(`no Sigma rule has the name "${name}"`);
  return found;
}

/** The maps of the searches of a detection. */
const mapsOf = ({ detection = {} }: SigmaRule): readonly Values[] =>
  Object.values(detection).flatMap((search) => (typeof search === 'string' ? [] : search));

/** The record fields that a rule itself uses. */
export function fieldsOf(rule: SigmaRule): readonly string[] {
  const { correlation } = rule;
  const counted = correlation?.condition?.field;
  const own = mapsOf(rule).flatMap((map) => Object.keys(map).map((key) => key.replace('|fieldref', '')));
  return [...own, ...(correlation?.['group-by'] ?? []), ...(counted === undefined ? [] : [counted])];
}

/** The values that a rule looks for, with their fields. */
export const wantedOf = (rule: SigmaRule): readonly (readonly [field: string, value: unknown])[] =>
  mapsOf(rule).flatMap((map) => Object.entries(map).flatMap(([field, values]) => [values].flat().map((value) => [field, value] as const)));

/** The record of an event, with the fields that the rules use. */
export function recordOfEvent({ at, fields }: DetectionEvent): Row {
  return {
    ...{ actionAttempted: fields['dpas.action_attempted'], result: fields['dpas.result'], resultReason: fields['event.reason'] },
    ...{ userId: fields['user.id'], payloadId: fields['dpas.payload.id'], currentPayloadOwnerId: fields['file.uid'] },
    logTimestamp: new Date(at).toISOString().slice(0, -1),
  };
}

/** The last record of each match, ordered by time. */
export function matchesOf(rule: SigmaRule, records: readonly Row[]): readonly Row[] {
  if (rule.detection) return records.filter((record) => isDetected(rule, record));
  if (!rule.correlation) throw new Error(`"${rule.name}" has neither a detection nor a correlation`);
  const { correlation } = rule;
  const span = secondsOf(correlation.timespan);
  const parts = correlation.rules.map((name) => matchesOf(sigmaRule(name), records));
  const groups = (events: readonly Row[]): Map<string, Row[]> =>
    Map.groupBy(events.toSorted((a, b) => timeOf(a) - timeOf(b)), (row) => JSON.stringify(correlation['group-by'].map((field) => row[field]))); // prettier-ignore
  if (correlation.type === 'temporal_ordered') {
    const steps = parts.map(groups);
    return [...(steps.at(-1) ?? new Map<string, Row[]>())].flatMap(([key, lasts]) =>
      lasts.filter((last) => {
        // The latest event of each step before that of the next step.
        let at: number | undefined = timeOf(last);
        for (const step of steps.slice(0, -1).toReversed()) {
          const before: number = at ?? -Infinity;
          at = step.get(key)?.map(timeOf).findLast((each) => each < before); // prettier-ignore
        }
        return at !== undefined && timeOf(last) - at <= span;
      }),
    );
  }
  const { gte = Infinity, field } = correlation.condition ?? {};
  return [...groups(parts.flat()).values()].flatMap((events) =>
    events.filter((last, index) => {
      const within = events.slice(0, index + 1).filter((row) => timeOf(last) - timeOf(row) <= span);
      return (field === undefined ? within.length : new Set(within.map((row) => row[field])).size) >= gte;
    }),
  );
}

/** `name`, `name and not 1 of prefix_*`, and these in brackets joined by `or`. */
function isDetected({ detection = {} }: SigmaRule, record: Row): boolean {
  const holds = (name: string): boolean => {
    const search = detection[name];
    if (search === undefined || typeof search === 'string') throw new Error(`no search "${name}"`);
    return [search].flat().some((map) => isMatch(map, record));
  };
  const { condition } = detection;
  if (typeof condition !== 'string') throw new Error('a detection without a condition');
  return condition.split(' or ').some((part) => {
    const [, name = '', prefix] = /^\(?(\w+)(?: and not 1 of (\w+)\*)?\)?$/.exec(part) ?? [];
    const filters = prefix === undefined ? [] : Object.keys(detection).filter((each) => each.startsWith(prefix));
    return holds(name) && !filters.some(holds);
  });
}

function isMatch(map: Values, record: Row): boolean {
  return Object.entries(map).every(([key, wanted]) => {
    const [field = '', modifier] = key.split('|');
    const found = valuesOf(record, field);
    if (wanted === null) return found.length === 0;
    if (modifier === 'fieldref') return found.some((value) => valuesOf(record, String(wanted)).includes(value));
    return [wanted].flat().some((value) => found.some((each) => isEqual(value, each)));
  });
}

/** Sigma compares texts case-insensitively. */
function isEqual(wanted: string, found: unknown): boolean {
  return wanted.toLowerCase() === String(found).toLowerCase();
}

function timeOf(record: Row): number {
  return Date.parse(`${String(record['logTimestamp'])}Z`) / 1000;
}

function secondsOf(timespan: string): number {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(timespan) ?? [];
  const seconds = { s: 1, m: 60, h: 3600, d: 86_400 }[unit];
  if (seconds === undefined) throw new Error(`cannot read the timespan "${timespan}"`);
  return Number(count) * seconds;
}
