/** The detection rules, and the exception lists that they name, in the form that Kibana imports. */
import { suppressionOf } from '../../src/detections/evaluate.ts';
import type { Condition, Detection, Rule } from '../../src/detections/rule.ts';
import { tacticsOf } from './attack.ts';
import { ageOf, auditPattern, countedReachOf, esqlOf, ledgerPattern, lookupIndexOf, reachOf } from './esql.ts';
import { mappedFields } from './mapped-fields.ts';
import { isOneDenial, riskScores } from './rules.ts';

const minute = 60_000;
const hour = 60 * minute;

/** @returns texts of NDJSON, by the names of their files in content/kibana */
export function kibanaFiles(rules: readonly Rule[]): Readonly<Record<string, string>> {
  const audit = rules.filter(({ dataset }) => dataset === 'audit');
  return {
    'detection-rules.ndjson': ndjson(audit.map(ruleOf)),
    'detection-rules-threshold.ndjson': ndjson(audit.flatMap(thresholdOf)),
    'detection-rules-ledger.ndjson': ndjson(rules.filter(({ dataset }) => dataset === 'ledger').map(ruleOf)),
    'exception-lists.ndjson': ndjson(exceptionLists),
  };
}

const ndjson = (objects: readonly object[]): string => objects.map((object) => `${JSON.stringify(object)}\n`).join('');
const literal = (text: string): string => JSON.stringify(text);
const idOf = (list: string): string => `dpas-${list}`;

/** Shared exception lists, empty: an operator adds items to them. */
const exceptionLists = [
  ['trusted-users', 'Protected files: trusted users', 'Users whose events no rule on users counts: add an item "user.id is one of".'],
  ['offices', 'Protected files: offices', 'Addresses of offices, VPNs and proxies: add an item "source.ip is one of".'],
  ['help-desk', 'Protected files: help desk', 'Users who change the control of files for others: add an item "user.id is one of".'],
  [
    'known-providers',
    'Protected files: known providers',
    'Providers of your VPNs and networks: add an item "source.as.organization.name is one of".',
  ],
].map(([list = '', name, description]) => ({
  list_id: idOf(list),
  name,
  description,
  type: 'detection',
  namespace_type: 'single',
  tags: ['Waybill'],
  os_types: [],
  version: 1,
}));

type Form = Readonly<Record<string, unknown>>;

function ruleOf(rule: Rule): object {
  return { ...commonOf(rule), ...formOf(rule), required_fields: requiredFields(rule), ...alertSuppressionOf(rule) };
}

/** The language of a rule, its query, and the events that a run reads. */
export function formOf(rule: Rule): Form {
  const { detect, dataset } = rule;
  const index = [dataset === 'audit' ? auditPattern : ledgerPattern];
  const reach = `now-${reachOf(rule) / minute}m`;
  if (detect.kind === 'single' && !hasList(detect.where)) {
    // Kibana hides the alerts of a building block, which may therefore record every denial, however late.
    const filters = rule.id === 'any-denied' || dataset === 'ledger' ? {} : { filters: [newerThan(24 * hour)] };
    return { type: 'query', language: 'kuery', index, query: kqlOf(detect.where), from: reach, ...filters };
  }
  if (detect.kind === 'sequence' && !isEsql(detect))
    return { type: 'eql', language: 'eql', index, query: eqlOf(detect), from: reach, filters: [newerThan(ageOf(detect.window))] };
  return { type: 'esql', language: 'esql', query: esqlOf(rule), from: reach };
}

const hasList = (where: readonly Condition[]): boolean => where.some(({ outside }) => outside !== undefined);
/** EQL compares no two fields of an event, and counts no sequences. */
const isEsql = ({ steps, across }: Extract<Detection, { kind: 'sequence' }>): boolean =>
  across !== undefined || steps.some(({ where }) => where.some(({ differ }) => differ));

/** KQL and EQL have no present time; Kibana adds a filter to the request. Without it, a backfill would fire. @param ms at least an hour */
const newerThan = (ms: number): object => ({
  meta: { alias: `Last ${ms / hour} hours`, disabled: false, negate: false },
  query: { range: { '@timestamp': { gte: `now-${ms / hour}h` } } },
});

function kqlOf(where: readonly Condition[]): string {
  const all = where.map(({ fields }) =>
    Object.entries(fields)
      .map(([field, values]) => {
        const listed = values.map((value) => (value === '*' ? value : literal(value)));
        return `${field}: ${listed.length === 1 ? (listed[0] ?? '') : `(${listed.join(' or ')})`}`;
      })
      .join(' and '),
  );
  return all.length === 1 ? (all[0] ?? '') : all.map((one) => `(${one})`).join(' or ');
}

function eqlOf({ group, window, steps }: Extract<Detection, { kind: 'sequence' }>): string {
  const items = steps.map(({ where, times }) => {
    const conditions = where.map(({ fields }) =>
      Object.entries(fields)
        .map(([field, values]) =>
          values.length === 1 ? `${field} == ${literal(values[0] ?? '')}` : `${field} in (${values.map(literal).join(', ')})`,
        )
        .join(' and '),
    );
    return `  [any where ${conditions.join(' or ')}]${times === 1 ? '' : ` with runs=${times}`}`;
  });
  return [`sequence by ${group.join(', ')} with maxspan=${window / hour}h`, ...items].join('\n');
}

function groupOf(detect: Detection): readonly string[] {
  return detect.kind === 'sequence' && detect.across ? [detect.across.by] : detect.group;
}

/** Kibana does not suppress sequences of EQL in every version. */
function alertSuppressionOf({ detect, dataset }: Rule): Form {
  if (detect.kind === 'sequence' && !isEsql(detect)) return {};
  // Each gap and suspension of the trail is an alert.
  if (detect.kind === 'single' && dataset === 'ledger') return {};
  return {
    alert_suppression: {
      group_by: groupOf(detect),
      duration: { value: Math.ceil(suppressionOf(detect) / hour), unit: 'h' },
      missing_fields_strategy: 'doNotSuppress',
    },
  };
}

/** The fields of a query that the mapping has, with their types. */
function requiredFields(rule: Rule): readonly object[] {
  const query = String(formOf(rule)['query']).replaceAll(/"(?:[^"\\]|\\.)*"/g, '');
  const read = new Set(query.match(/[@a-z][\w.]*/g));
  return [...mappedFields].filter(([field]) => read.has(field)).map(([name, type]) => ({ name, type }));
}

function commonOf(rule: Rule): Form {
  const { id, title, dataset, severity, attack, isBuildingBlock, falsePositives, exceptions } = rule;
  const tactics = tacticsOf(attack);
  const lists = [...new Set(Object.values(exceptions))].map(idOf);
  const fields = [
    'user.id',
    'user.name',
    'user.email',
    'file.name',
    'Esql.file_name_values',
    'source.ip',
    'host.name',
    'dpas.payload.id',
    'event.reason',
  ];
  return {
    rule_id: idOf(id),
    name: title,
    description: [rule.meaning.trim(), ...limitsOf(rule)].join(' '),
    severity,
    risk_score: riskScores[severity],
    ...(isOneDenial(rule) ? { severity_mapping: severitiesOfRecords } : {}),
    enabled: false,
    version: 2,
    author: ['Waybill'],
    license: 'Apache-2.0',
    tags: [
      'Waybill',
      'Data protection',
      `Data Source: DPAS ${dataset}`,
      ...tactics.map(({ tactic }) => `Tactic: ${tactic.name}`),
      'Resources: Investigation Guide',
    ],
    interval: '5m',
    to: 'now',
    timestamp_override: 'event.ingested',
    false_positives: falsePositives,
    note: guideOf(rule),
    setup: setupOf(rule),
    references: tactics
      .flatMap(({ technique }) => technique.map(({ reference }) => reference))
      .filter((one, i, all) => all.indexOf(one) === i),
    threat: tactics.map((tactic) => ({ framework: 'MITRE ATT&CK', ...tactic })),
    max_signals: 100,
    ...(dataset === 'audit' ? { investigation_fields: { field_names: fields } } : {}),
    ...(lists.length === 0
      ? {}
      : { exceptions_list: lists.map((list) => ({ id: list, list_id: list, type: 'detection', namespace_type: 'single' })) }),
    ...(isBuildingBlock ? { building_block_type: 'default' } : {}),
  };
}

/** The severity of an alert follows that of its record, which `mapping.severity` sets. The grades are those of OCSF in docs/formats.md. */
const severitiesOfRecords = Array.from({ length: 11 }, (_, value) => ({
  field: 'event.severity',
  operator: 'equals',
  value: String(value),
  severity: value >= 9 ? 'critical' : value >= 7 ? 'high' : value >= 5 ? 'medium' : 'low',
}));

const lateEvents = 'It ignores events that arrive more than 24 hours late.';

function limitsOf({ id, detect }: Rule): readonly string[] {
  switch (detect.kind) {
    case 'count':
    case 'distinct':
    case 'distance':
      return [
        `The rule counts in buckets of ${spanOf(2 * detect.window)}: it fires for all that happens within ${spanOf(detect.window)}, and may fire for what takes up to twice as long. ${lateEvents}`,
      ];
    case 'silence':
      return [];
    case 'single':
      return id === 'any-denied' || id === 'trail-broken' ? [] : [lateEvents];
    default:
      return [lateEvents];
  }
}

function spanOf(ms: number): string {
  return ms >= hour ? `${ms / hour} hours`.replace(/^1 hours$/, 'an hour') : `${ms / minute} minutes`;
}

/** A button that opens the events of a value of the alert in a timeline. */
function investigate(label: string, field: string): string {
  const provider = { field, excluded: false, queryType: 'phrase', value: `{{${field}}}`, valueType: 'string' };
  return `!{investigate${JSON.stringify({ label, providers: [[provider]], relativeFrom: 'now-14d', relativeTo: 'now' })}}`;
}

function guideOf({ title, dataset, meaning, next, falsePositives, detect }: Rule): string {
  const isSingle = detect.kind === 'single' || (detect.kind === 'sequence' && !isEsql(detect));
  const group = groupOf(detect);
  const has = (field: string): boolean => isSingle || group.includes(field);
  const buttons =
    dataset === 'ledger'
      ? []
      : [
          ...(has('user.id') ? [investigate('Events of this user in two weeks', 'user.id')] : []),
          ...(has('dpas.payload.id') ? [investigate('Events of this file in two weeks', 'dpas.payload.id')] : []),
        ];
  const dashboard =
    dataset === 'ledger'
      ? '[Dashboard: is the audit trail complete?](/app/dashboards#/view/dpas-ledger-dashboard)'
      : '[Dashboard: one user or file](/app/dashboards#/view/dpas-dashboard-user-or-file): choose the user or the file of the alert.';
  return [
    '## Triage and analysis',
    `### Investigating ${title}`,
    meaning.trim(),
    ...buttons,
    dashboard,
    '### False positives',
    falsePositives.map((one) => `- ${one}`).join('\n'),
    '### Response',
    next.map((one) => `- ${one}`).join('\n'),
  ].join('\n\n');
}

function setupOf({ dataset, detect, exceptions }: Rule): string {
  const list = detect.kind === 'single' ? detect.where.find(({ outside }) => outside !== undefined)?.outside : undefined;
  return [
    dataset === 'ledger'
      ? 'The rule reads the ledger events that Waybill sends by a sink of type elasticsearch with "ledger: true".'
      : 'The rule reads the events that Waybill sends by a sink of type elasticsearch.',
    '"waybill setup elasticsearch" installs the mapping, and the pipeline that sets event.ingested.',
    ...(detect.kind === 'distance' ? ['It needs latLong in the records, and Elasticsearch 8.15 or later.'] : []),
    ...(list === undefined ? [] : [listSetup(lookupIndexOf(list))]),
    ...(Object.keys(exceptions).length === 0
      ? []
      : [
          `Exceptions: add items to the shared exception list ${[...new Set(Object.values(exceptions))].map((one) => `"${idOf(one)}"`).join(' or ')}.`,
        ]),
  ].join('\n\n');
}

/** How to create and fill the index of a list of accounts. */
function listSetup(index: string): string {
  const field = (type: string): object => ({ type });
  const properties = {
    user: { properties: { id: field('keyword') } },
    from_hour: field('integer'),
    to_hour: field('integer'),
    hosts: field('keyword'),
  };
  const body = { settings: { 'index.mode': 'lookup' }, mappings: { properties } };
  const entry = { user: { id: 'ID OF THE ACCOUNT' }, from_hour: 1, to_hour: 5, hosts: ['batch-1', 'batch-2'] };
  return [
    `It needs Elasticsearch 8.18 or later, and the index ${index} with one document an account. Create it in Dev Tools before you enable the rule:`,
    `\`\`\`\nPUT ${index}\n${JSON.stringify(body)}\n\nPOST ${index}/_doc/ACCOUNT\n${JSON.stringify(entry)}\n\`\`\``,
    'from_hour and to_hour are hours in UTC: the account may act from the first until before the second. Without them it may act at any hour, without hosts on any host.',
  ].join('\n\n');
}

/** For stacks without ES|QL rules. A threshold counts by arrival, so the catch-up after an outage may fire it. */
function thresholdOf(rule: Rule): readonly object[] {
  const { id, title, meaning, detect } = rule;
  if (detect.kind !== 'count' && detect.kind !== 'distinct') return [];
  const { where, group, window, threshold } = detect;
  const value = threshold;
  const warning = `This form counts by arrival: the catch-up after an outage, or a backfill of the last 24 hours, may fire it. ${lateEvents} Use the ES|QL form where the stack has it.`;
  return [
    {
      ...commonOf(rule),
      rule_id: `${idOf(id)}-threshold`,
      name: `${title} (threshold)`,
      description: `${meaning.trim()} ${warning}`,
      type: 'threshold',
      language: 'kuery',
      index: [auditPattern],
      query: kqlOf(where),
      filters: [newerThan(ageOf(window))],
      threshold: { field: group, value, cardinality: detect.kind === 'distinct' ? [{ field: detect.distinct, value }] : [] },
      from: `now-${countedReachOf(detect) / minute}m`,
    },
  ];
}
