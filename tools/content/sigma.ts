/**
 * Detection rules in Sigma 2.1, with the field names of the records of the service: pipelines rename them. A detection stands alone. A
 * correlation is one file with the detections that it builds on, as SigmaHQ combines them.
 */
import { createHash } from 'node:crypto';
import { stringify } from 'yaml';
import type { Condition, DetectionOf, Rule } from '../../src/detections/rule.ts';
import { sigmaTagsOf } from './attack.ts';

/** The names of the service for the fields of ECS that rules read. */
const fieldNames: Readonly<Record<string, string>> = {
  'user.id': 'userId',
  'dpas.payload.id': 'payloadId',
  'file.uid': 'currentPayloadOwnerId',
  'dpas.result': 'result',
};

type Document = Readonly<Record<string, unknown>>;

/** @returns texts by the paths of their files in content/sigma */
export function sigmaFiles(rules: readonly Rule[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    rules
      .filter((rule) => sigmaLimit(rule) === undefined)
      .map((rule) => {
        const documents = documentsOf(rule);
        const path = rule.detect.kind === 'single' ? `rules/${nameOf(rule)}.yml` : `${folderOf(rule)}/correlation_${nameOf(rule)}.yml`;
        return [path, documents.map((document) => stringify(document, { lineWidth: 0, singleQuote: true })).join('---\n')];
      }),
  );
}

/** Few backends know an order of events, and one such rule ends the conversion of all. */
const folderOf = ({ detect }: Rule): string => (detect.kind === 'sequence' ? 'ordered' : 'correlations');
const nameOf = ({ id }: Rule): string => `dpas_${id.replaceAll('-', '_')}`;

/** Why Sigma cannot say a rule. */
export function sigmaLimit({ dataset, detect }: Rule): string | undefined {
  if (dataset === 'ledger') return 'the service has no ledger: Waybill writes these events';
  switch (detect.kind) {
    case 'baseline':
      return 'a correlation does not compare with earlier counts';
    case 'first-seen':
      return 'a correlation has no memory of known values';
    case 'distance':
      return 'Sigma does not calculate';
    case 'silence':
      return 'a correlation needs an event';
    case 'sequence':
      return detect.across && detect.across.threshold > 1 ? 'the result of a correlation by file has no user' : undefined;
    case 'single':
      if (detect.where.some(({ outside }) => outside !== undefined)) return 'Sigma has no list with hours and hosts of an account';
      return detect.where.some(({ fields }) => 'tags' in fields) ? 'the record has no tags: Waybill sets them' : undefined;
    default:
      return undefined;
  }
}

function documentsOf(rule: Rule): readonly Document[] {
  const { detect } = rule;
  switch (detect.kind) {
    case 'single':
      return [{ ...headOf(rule, nameOf(rule), rule.title), ...detectionOf(detect.where), ...tailOf(rule) }];
    case 'count':
    case 'distinct':
      return [
        correlation(rule, detect.kind === 'count' ? 'event_count' : 'value_count', ['base'], detect.group, detect.window, {
          gte: detect.threshold,
          ...(detect.kind === 'distinct' ? { field: serviceName(detect.distinct) } : {}),
        }),
        base(rule, 'base', 'Event', detect.where),
      ];
    case 'sequence':
      return sequence(rule, detect);
    default:
      throw new Error(`Sigma does not say ${detect.kind}`);
  }
}

function sequence(rule: Rule, { group, window, steps }: DetectionOf<'sequence'>): readonly Document[] {
  const repeats = steps.flatMap(({ times }, i) =>
    times === 1 ? [] : [correlation(rule, 'event_count', [`step_${i + 1}`], group, window, { gte: times }, `step_${i + 1}_repeated`)],
  );
  const names = steps.map(({ times }, i) => (times === 1 ? `step_${i + 1}` : `step_${i + 1}_repeated`));
  return [
    correlation(rule, 'temporal_ordered', names, group, window),
    ...repeats,
    ...steps.map(({ where }, i) => base(rule, `step_${i + 1}`, `Step ${i + 1}`, where)),
  ];
}

function correlation(
  rule: Rule,
  type: string,
  bases: readonly string[],
  group: readonly string[],
  window: number,
  condition?: object,
  part?: string,
): Document {
  const name = part === undefined ? nameOf(rule) : `${nameOf(rule)}_${part}`;
  return {
    ...headOf(rule, name, part === undefined ? rule.title : `${rule.title} - Step 1 Repeated`),
    correlation: {
      type,
      rules: bases.map((each) => `${nameOf(rule)}_${each}`),
      'group-by': group.map(serviceName),
      timespan: timespan(window),
      ...(condition === undefined ? {} : { condition }),
    },
    ...(part === undefined ? tailOf(rule) : { falsepositives: rule.falsePositives, level: 'informational' }),
  };
}

/** A detection that a correlation counts: alone it is daily work. */
function base(rule: Rule, part: string, title: string, where: readonly Condition[]): Document {
  const isAudit = where.every(({ fields }) => (fields['event.code'] ?? []).every((code) => code.startsWith('Audit:')));
  return {
    ...headOf(rule, `${nameOf(rule)}_${part}`, `${rule.title} - ${title}`, isAudit ? rule.attack : withoutControl(rule.attack)),
    description: `Events of the correlation ${nameOf(rule)}. ${rule.meaning.trim()}`,
    ...detectionOf(where),
    falsepositives: ['Daily work: the correlation counts these events'],
    level: 'informational',
  };
}

/** The pipeline of OCSF selects the records on control by this technique. */
const withoutControl = (attack: readonly string[]): readonly string[] => attack.filter((technique) => technique !== 'T1222');

function headOf(rule: Rule, name: string, title: string, attack: readonly string[] = rule.attack): Document {
  const tags = sigmaTagsOf(attack);
  return {
    title: titleCase(title),
    id: uuidOf(name),
    name,
    status: 'experimental',
    description: rule.meaning.trim(),
    author: 'Waybill',
    license: 'Apache-2.0',
    date: '2026-11-23',
    ...(tags.length === 0 ? {} : { tags }),
  };
}

const tailOf = ({ falsePositives, severity }: Rule): Document => ({ falsepositives: falsePositives, level: severity });

/** The same id in every run. */
function uuidOf(name: string): string {
  const hex = createHash('sha256').update(`waybill ${name}`).digest('hex');
  const [, a = '', b = '', c = '', d = '', e = ''] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(hex) ?? [];
  return `${a}-${b}-4${c}-a${d}-${e}`;
}

/** As SigmaHQ writes titles. */
const small = ['a', 'an', 'and', 'as', 'at', 'by', 'for', 'from', 'in', 'new', 'of', 'on', 'or', 'the', 'to', 'with', 'without'];
const titleCase = (title: string): string =>
  title.split(' ').map((word) => (small.includes(word) ? word : `${word.charAt(0).toUpperCase()}${word.slice(1)}`)).join(' '); // prettier-ignore

function serviceName(field: string): string {
  const name = fieldNames[field];
  if (name === undefined) throw new Error(`tools/content/sigma.ts does not have the field ${field}`);
  return name;
}

const units = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm']] as const; // prettier-ignore
function timespan(ms: number): string {
  const [size, unit] = units.find(([each]) => ms % each === 0) ?? [1_000, 's'];
  return `${ms / size}${unit}`;
}

function detectionOf(where: readonly Condition[]): Document {
  const nameOfSelection = (i: number): string => (where.length === 1 ? 'selection' : `selection_${i + 1}`);
  const selections = where.map(({ fields }, i) => [nameOfSelection(i), selectionOf(fields)]);
  const differ = where.find((each) => each.differ)?.differ;
  const filters = differ && {
    filter_main_same: { [`${serviceName(differ[0])}|fieldref`]: serviceName(differ[1]) },
    filter_main_unknown: { [serviceName(differ[1])]: null },
  };
  const conditions = where.map((each, i) => `${nameOfSelection(i)}${each.differ ? ' and not 1 of filter_main_*' : ''}`);
  const condition = conditions.length === 1 ? conditions[0] : conditions.map((one) => (one.includes(' ') ? `(${one})` : one)).join(' or ');
  return {
    logsource: { product: 'dpas', service: 'audit' },
    detection: { ...Object.fromEntries(selections), ...filters, condition },
  };
}

/** A code joins three fields. Codes with the same action and reasons share a map, and so do results with the same reasons. */
function selectionOf(fields: Condition['fields']): unknown {
  const { 'event.code': codes, ...others } = fields;
  const plain = Object.fromEntries(Object.entries(others).map(([field, values]) => [serviceName(field), one(values)]));
  if (codes === undefined) return plain;
  const reasons = new Map<string, string[]>();
  for (const code of codes) {
    const [action = '', result = '', reason = ''] = code.split(':');
    const key = `${action}:${result}`;
    reasons.set(key, [...(reasons.get(key) ?? []), reason]);
  }
  const maps = new Map<string, { action: string; results: string[]; reasons: string[] }>();
  for (const [key, own] of reasons) {
    const [action = '', result = ''] = key.split(':');
    const map = maps.get(`${action}:${own.join()}`) ?? { action, results: [], reasons: own };
    map.results.push(result);
    maps.set(`${action}:${own.join()}`, map);
  }
  const found = [...maps.values()].map((map) => ({
    actionAttempted: map.action,
    result: one(map.results),
    resultReason: one(map.reasons),
  }));
  return one(found);
}

const one = <T>(values: readonly T[]): T | readonly T[] | undefined => (values.length === 1 ? values[0] : values);
