/**
 * The detection rules of content/kibana: one table, from which `vitest run test/unit/content/kibana-rules.test.ts --update` writes the two
 * files. Title, description and harmless causes come from the Sigma rule of the same name, if it exists.
 */
import { bursts, singleEvents } from './sequences.ts';
import { sigmaRules } from './sigma.ts';

export const auditPattern = 'logs-dpas.audit-*';

type Level = 'low' | 'medium' | 'high';
const riskScores: Readonly<Record<Level, number>> = { low: 21, medium: 47, high: 73 };

interface Words {
  readonly title: string;
  readonly description: string;
  readonly causes: readonly string[];
  readonly level: Level;
}

interface RulePlan {
  readonly name: string;
  readonly techniques: readonly (keyof typeof techniques)[];
  /** An analyst's first steps. */
  readonly triage: string;
}

/** Tactics as elastic/detection-rules assigns them. */
const tactics = {
  TA0001: 'Initial Access',
  TA0003: 'Persistence',
  TA0004: 'Privilege Escalation',
  TA0005: 'Defense Evasion',
  TA0009: 'Collection',
} as const;
const techniques = {
  T1530: { name: 'Data from Cloud Storage', tactics: ['TA0009'] },
  T1222: { name: 'File and Directory Permissions Modification', tactics: ['TA0005'] },
  T1098: { name: 'Account Manipulation', tactics: ['TA0003', 'TA0004'] },
  T1078: { name: 'Valid Accounts', tactics: ['TA0001'] },
} as const;

const askUser = 'Ask the user about the files and the place. Compare source.ip, host.name and network.name with earlier events of user.id.';
const askOwner = 'Ask the owner of the file (file.owner, else file.uid). List what happened to dpas.payload.id before and after.';

const plans: readonly RulePlan[] = [
  { name: 'any_denied', techniques: [], triage: 'A building block: use it to tune other rules. docs/denials.md explains each reason.' },
  { name: 'open_denied_country', techniques: ['T1530'], triage: askUser },
  { name: 'open_denied_no_access', techniques: ['T1530'], triage: `${askUser} ${askOwner}` },
  { name: 'open_denied_many_files', techniques: ['T1530'], triage: `${askUser} List the files, and how the user learned of them.` },
  { name: 'open_denied_then_allowed', techniques: ['T1530', 'T1078'], triage: `${askOwner} An authorization between denial and open explains the alert.` }, // prettier-ignore
  { name: 'open_outside_time', techniques: ['T1530'], triage: askUser },
  { name: 'owner_changed', techniques: ['T1098', 'T1222'], triage: askOwner },
  { name: 'owner_changed_many', techniques: ['T1098', 'T1222'], triage: `${askOwner} Look for a ticket of a handover or a migration.` },
  { name: 'authorized_many', techniques: ['T1222'], triage: `${askOwner} Look for opens of these files by new users.` },
  { name: 'opened_many', techniques: ['T1530'], triage: `${askUser} Look for copies on host.name: removable media, uploads.` },
  { name: 'revocation_changed_many', techniques: ['T1222'], triage: `${askOwner} The service shows if access is revoked now.` },
  { name: 'protect_denied_geo', techniques: [], triage: askUser },
  { name: 'two_countries', techniques: ['T1078'], triage: `${askUser} A VPN changes the country at once.` },
  { name: 'unexpected', techniques: [], triage: 'Read event.original and the tags. Report new values to the operator of Waybill: a mapping may be missing.' }, // prettier-ignore
];

/** Rules that Sigma cannot express: a field that the record lacks, and one of our tags. */
const ownWords: Readonly<Record<string, Words>> = {
  two_countries: {
    title: 'Protected files: one user in two countries',
    description:
      'Events of one user come from 2 or more countries within an hour. The rule needs source.geo.country_iso_code, which Waybill does not write: create an ingest pipeline with a geoip processor (field source.ip, target_field source.geo), set it as index.default_pipeline in the component template logs-dpas.audit@custom, roll over, then enable the rule.',
    causes: ['A VPN or proxy', 'A mobile network that leaves through another country'],
    level: 'medium',
  },
  unexpected: {
    title: 'Protected files: unexpected record',
    description:
      'The service wrote a record with unknown values, missing fields or other types. The event is complete in event.original, but other rules may not match it.',
    causes: ['A new release of the service'],
    level: 'low',
  },
};

function wordsOf(name: string): Words {
  const own = ownWords[name];
  if (own) return own;
  const rule = sigmaRules.find((each) => each.name === `dpas_${name}`);
  if (!rule) throw new Error(`no words for the rule "${name}"`);
  return { title: rule.title, description: rule.description.trim(), causes: rule.falsepositives, level: rule.level as Level };
}

const windows: Readonly<
  Record<string, { readonly seconds: number; readonly count: number; readonly codes: readonly string[]; readonly counted: string }>
> = Object.fromEntries([
  ...Object.entries(bursts).map(([name, { window, count, codes, counts }]) => [
    name,
    { seconds: window, count, codes, counted: counts === 'files' ? 'COUNT_DISTINCT(dpas.payload.id)' : 'COUNT(*)' },
  ]),
  ['two_countries', { seconds: 3600, count: 2, codes: [], counted: 'COUNT_DISTINCT(source.geo.country_iso_code)' }],
]) as never;

const minutes = (seconds: number): string => `${seconds / 60} minutes`;
const list = (codes: readonly string[]): string => codes.map((code) => JSON.stringify(code)).join(', ');

/**
 * Each event is in two buckets of twice the window, one window apart, so that one of them contains
 * each burst completely. Grouping by user merges both rows of a burst over an edge.
 */
function burstQuery(name: string): string {
  const { seconds, count, codes, counted } = windows[name] ?? { seconds: 0, count: 0, codes: [], counted: '' };
  const [step, half] = [minutes(2 * seconds), minutes(seconds)];
  const filter = codes.length === 0 ? '' : `event.code IN (${list(codes)}) AND `;
  // ES|QL counts events without a user as one group.
  return [
    `FROM ${auditPattern}`,
    `WHERE ${filter}user.id IS NOT NULL AND @timestamp >= NOW() - 24 hours`,
    `EVAL bucket = MV_APPEND(DATE_TRUNC(${step}, @timestamp), DATE_TRUNC(${step}, @timestamp + ${half}) - ${half})`,
    'MV_EXPAND bucket',
    `STATS counted = ${counted}, started = MIN(@timestamp), ended = MAX(@timestamp) BY user.id, bucket`,
    `WHERE counted >= ${count}`,
    'STATS counted = MAX(counted), started = MIN(started), ended = MAX(ended) BY user.id',
  ].join('\n| ');
}

function kqlOf(name: string): string {
  if (name === 'any_denied') return 'dpas.result: "AccessDenied"';
  if (name === 'unexpected') return 'tags: ("unknown_combination" or "missing_field" or "unexpected_type" or "not_an_object")';
  const codes = singleEvents[name] ?? [];
  return codes.length === 1 ? `event.code: ${list(codes)}` : `event.code: (${codes.map((code) => JSON.stringify(code)).join(' or ')})`;
}

const deniedOpens = [...(bursts['open_denied_many_files']?.codes ?? []), ...(bursts['open_outside_time']?.codes ?? [])];
const deniedThenAllowed = `sequence by user.id, dpas.payload.id with maxspan=1h
  [any where event.code in (${list(deniedOpens)})] with runs=10
  [any where event.code == "Decrypt:AccessGranted:Success"]`;

const lateEvents = 'It ignores events that arrive more than 24 hours late.';
/** KQL and EQL have no present time; Kibana adds a filter to the request. Without it, a backfill would fire. */
const lastDay = {
  meta: { alias: 'Last 24 hours', disabled: false, negate: false },
  query: { range: { '@timestamp': { gte: 'now-24h' } } },
};

function common({ name, techniques: used, triage }: RulePlan, { title, description, causes, level }: Words): object {
  const threat = Object.entries(tactics).flatMap(([id, tactic]) => {
    const technique = used.filter((each) => (techniques[each].tactics as readonly string[]).includes(id));
    if (technique.length === 0) return [];
    return [
      {
        framework: 'MITRE ATT&CK',
        tactic: { id, name: tactic, reference: `https://attack.mitre.org/tactics/${id}/` },
        technique: technique.map((each) => ({
          id: each,
          name: techniques[each].name,
          reference: `https://attack.mitre.org/techniques/${each}/`,
        })),
      },
    ];
  });
  return {
    rule_id: `dpas-${name.replaceAll('_', '-')}`,
    name: title,
    description,
    severity: level,
    risk_score: riskScores[level],
    enabled: false,
    version: 1,
    author: ['Waybill'],
    license: 'Apache-2.0',
    tags: ['Waybill', 'Data protection'],
    interval: '5m',
    to: 'now',
    timestamp_override: 'event.ingested',
    false_positives: causes,
    note: `## Triage\n\n${triage}`,
    threat,
  };
}

/** `from` covers the interval and the window, so that no late burst falls between two runs. */
const reach = (seconds: number): string => `now-${5 + seconds / 60}m`;

function ruleOf(plan: RulePlan): object {
  const { name } = plan;
  const words = wordsOf(name);
  const window = windows[name];
  if (name === 'open_denied_then_allowed')
    return {
      ...common(plan, { ...words, description: `${words.description} ${lateEvents}` }),
      type: 'eql',
      language: 'eql',
      index: [auditPattern],
      query: deniedThenAllowed,
      filters: [lastDay],
      from: reach(3600),
    };
  if (!window) {
    const query = { type: 'query', language: 'kuery', index: [auditPattern], query: kqlOf(name), from: 'now-10m' };
    // Kibana hides the alerts of a building block, so this rule may record every denial, however late.
    if (name === 'any_denied') return { ...common(plan, words), building_block_type: 'default', ...query };
    return { ...common(plan, { ...words, description: `${words.description} ${lateEvents}` }), ...query, filters: [lastDay] };
  }
  const span = minutes(window.seconds);
  const limits = `The rule counts in buckets of ${minutes(2 * window.seconds)}: it fires for each burst within ${span}, and may fire for a slower one. ${lateEvents}`;
  return {
    ...common(plan, { ...words, description: `${words.description} ${limits}` }),
    type: 'esql',
    language: 'esql',
    query: burstQuery(name),
    from: reach(window.seconds),
    // A burst stays within the reach of several runs.
    alert_suppression: {
      group_by: ['user.id'],
      duration: { value: window.seconds > 1800 ? 2 : 1, unit: 'h' },
      missing_fields_strategy: 'suppress',
    },
  };
}

/** For stacks without ES|QL rules. A threshold counts by arrival, so the catch-up after an outage may fire it. */
function thresholdOf(plan: RulePlan): readonly object[] {
  const window = windows[plan.name];
  if (!window) return [];
  const words = wordsOf(plan.name);
  const field = /\((?!\*)(.*)\)/.exec(window.counted)?.[1];
  const warning = `This form counts by arrival: the catch-up after an outage, or a backfill of the last 24 hours, may fire it. ${lateEvents} Use the ES|QL form where the stack has it.`;
  return [
    {
      ...common(plan, { ...words, title: `${words.title} (threshold)`, description: `${words.description} ${warning}` }),
      rule_id: `dpas-${plan.name.replaceAll('_', '-')}-threshold`,
      type: 'threshold',
      language: 'kuery',
      index: [auditPattern],
      query: window.codes.length === 0 ? 'user.id: *' : `event.code: (${window.codes.map((code) => JSON.stringify(code)).join(' or ')})`,
      filters: [lastDay],
      threshold: { field: ['user.id'], value: window.count, cardinality: field === undefined ? [] : [{ field, value: window.count }] },
      from: reach(window.seconds),
    },
  ];
}

const ndjson = (objects: readonly object[]): string => objects.map((object) => `${JSON.stringify(object)}\n`).join('');

export const detectionRules = ndjson(plans.map(ruleOf));
export const thresholdRules = ndjson(plans.flatMap(thresholdOf));
