/**
 * Reads the Sigma files under content/sigma, and evaluates a rule over records: one selection of
 * exact values, and correlations that count events or values in any window of their timespan, or
 * require an order.
 */
import { globSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Row } from './events.ts';
import { valuesOf } from './events.ts';

interface Correlation {
  readonly type: 'event_count' | 'value_count' | 'temporal_ordered';
  readonly rules: readonly string[];
  readonly 'group-by': readonly string[];
  readonly timespan: string;
  readonly condition?: { readonly gte: number; readonly field?: string };
}

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
  readonly detection?: { readonly selection: Readonly<Record<string, string | readonly string[]>>; readonly condition: string };
  readonly correlation?: Correlation;
}

const folder = new URL('../../../content/sigma/', import.meta.url);
export const readSigma = (path: string): unknown => parse(readFileSync(new URL(path, folder), 'utf8'));

export const sigmaRules: readonly SigmaRule[] = globSync('{rules,correlations}/**/*.yml', { cwd: folder })
  .toSorted()
  .map((path) => ({ path, ...(readSigma(path) as Omit<SigmaRule, 'path'>) }));

export function sigmaRule(name: string): SigmaRule {
  const found = sigmaRules.find((rule) => rule.name === name);
  if (!found) throw new Error(`no Sigma rule has the name "${name}"`);
  return found;
}

/** The record fields that a rule itself uses. */
export function fieldsOf({ detection, correlation }: SigmaRule): readonly string[] {
  const counted = correlation?.condition?.field;
  return [...Object.keys(detection?.selection ?? {}), ...(correlation?.['group-by'] ?? []), ...(counted === undefined ? [] : [counted])];
}

/** The detection rules that a rule builds on. */
export function basesOf(name: string): readonly string[] {
  const { correlation } = sigmaRule(name);
  return correlation ? correlation.rules.flatMap(basesOf) : [name];
}

/** The last record of each match, ordered by time. */
export function matchesOf(rule: SigmaRule, records: readonly Row[]): readonly Row[] {
  if (rule.detection) {
    if (rule.detection.condition !== 'selection') throw new Error(`cannot evaluate the condition "${rule.detection.condition}"`);
    const selection = Object.entries(rule.detection.selection);
    return records.filter((record) => selection.every(([field, wanted]) => [wanted].flat().some((value) => valuesOf(record, field).some((found) => isEqual(value, found))))); // prettier-ignore
  }
  if (!rule.correlation) throw new Error(`"${rule.name}" has neither a detection nor a correlation`);
  const { correlation } = rule;
  const parts = correlation.rules.map((name) => matchesOf(sigmaRule(name), records));
  const groups = (events: readonly Row[]): Map<string, Row[]> =>
    Map.groupBy(events.toSorted((a, b) => timeOf(a) - timeOf(b)), (row) => JSON.stringify(correlation['group-by'].map((field) => row[field]))); // prettier-ignore
  const span = secondsOf(correlation.timespan);
  if (correlation.type === 'temporal_ordered') {
    const [first = [], second = [], ...more] = parts;
    if (more.length > 0) throw new Error('cannot evaluate an order of more than two rules');
    const before = groups(first);
    return [...groups(second)].flatMap(([key, found]) =>
      found.filter((row) => before.get(key)?.some((earlier) => timeOf(earlier) < timeOf(row) && timeOf(row) - timeOf(earlier) <= span)),
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
