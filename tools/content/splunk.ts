/** The searches of the Splunk app: the detection rules with risk and notables of Enterprise Security, which Splunk ignores without it. */
import type { Rule } from '../../src/detections/rule.ts';
import { riskScores } from './rules.ts';
import { ageOf, groupOf, intervalOf, splOf, throttleOf } from './spl.ts';

const minute = 60_000;
const hour = 60 * minute;

/** @returns texts by the paths of their files in content/splunk/waybill_dpas */
export function splunkFiles(rules: readonly Rule[]): Readonly<Record<string, string>> {
  const stanzas = [...rules.map((rule) => stanza(nameOf(rule), keysOf(rule))), ...maintenance.map(([name, keys]) => stanza(name, keys))];
  return { 'default/savedsearches.conf': [...heading, ...stanzas].join('\n') };
}

const heading = [
  '# Written by npm run content from content/rules: do not edit. All searches are disabled. Each selects events by the time of indexing',
  '# and counts in event time, so a backfill fires nothing and a late burst fires; throttling removes repetitions.',
  '',
];

const nameOf = ({ id, dataset }: Rule): string => `DPAS${dataset === 'ledger' ? ' ledger' : ''}: ${id.replaceAll('-', '_')}`;
const stanza = (name: string, keys: Keys): string =>
  [`[${name}]`, ...Object.entries(keys).map(([key, value]) => `${key} = ${String(value)}`), ''].join('\n');

type Keys = Readonly<Record<string, string | number>>;

function keysOf(rule: Rule): Keys {
  const { title, meaning, severity } = rule;
  const { fields, period } = throttleOf(rule);
  return {
    description: `${title}. ${meaning.trim()}`,
    search: splOf(rule),
    disabled: 1,
    enableSched: 1,
    cron_schedule: intervalOf(rule) === hour ? '7 * * * *' : '*/5 * * * *',
    'dispatch.earliest_time': `-${ageOf(rule) / hour}h`,
    'dispatch.latest_time': '+5m',
    counttype: 'number of events',
    relation: 'greater than',
    quantity: 0,
    // A building block adds risk, and is no alert by itself.
    'alert.track': rule.isBuildingBlock ? 0 : 1,
    'alert.severity': { low: 2, medium: 3, high: 4 }[severity],
    'alert.digest_mode': 0,
    'alert.suppress': 1,
    'alert.suppress.fields': fields.join(','),
    'alert.suppress.period': `${period / hour}h`,
    'action.correlationsearch.enabled': 1,
    'action.correlationsearch.label': title,
    'action.correlationsearch.annotations': JSON.stringify(rule.attack.length === 0 ? {} : { mitre_attack: rule.attack }),
    ...riskOf(rule),
    ...(rule.isBuildingBlock ? {} : notableOf(rule)),
  };
}

/** What an alert is about: the user if it has one, else the file, else the service. */
function subjectOf({ detect, dataset }: Rule): { readonly field: string; readonly type: string } {
  if (dataset === 'ledger') return { field: 'dest', type: 'system' };
  return groupOf(detect).includes('user.id') ? { field: 'user', type: 'user' } : { field: 'object', type: 'other' };
}

function riskOf(rule: Rule): Keys {
  const { field, type } = subjectOf(rule);
  const objects = [
    { risk_object_field: field, risk_object_type: type, risk_score: riskScores[rule.severity] },
    ...(rule.dataset === 'ledger' ? [] : [{ threat_object_field: 'src', threat_object_type: 'ip_address' }]),
  ];
  return {
    'action.risk': 1,
    'action.risk.param._risk': JSON.stringify(objects),
    'action.risk.param._risk_message': `${rule.title}: $${field}$`,
    'action.risk.param._risk_score': 0,
    'action.risk.param.verbose': 0,
  };
}

function notableOf(rule: Rule): Keys {
  const { title, meaning, next, severity, dataset } = rule;
  return {
    'action.notable': 1,
    'action.notable.param.rule_title': `${title}: $${subjectOf(rule).field}$`,
    'action.notable.param.rule_description': meaning.trim(),
    'action.notable.param.security_domain': dataset === 'ledger' ? 'audit' : 'access',
    'action.notable.param.severity': severity,
    'action.notable.param.next_steps': JSON.stringify({ version: 1, data: next.join('\n') }),
    'action.notable.param.drilldown_searches': JSON.stringify(drilldownsOf(rule)),
  };
}

/** Two weeks of the user or of the file, or a day of the ledger. */
function drilldownsOf({ detect, dataset }: Rule): readonly object[] {
  // The filter |s puts a value into quotation marks and escapes those in it. The first search takes "*" for any text, where does not.
  const drilldown = (name: string, macro: string, field: string, days: number, columns: string): object => ({
    name,
    search: `\`${macro}\` ${field}=$${field}|s$ \`dpas_dedup\` | where ${field}=$${field}|s$ | table _time ${columns}`,
    earliest_offset: `${days * 86_400}`,
    latest_offset: '0',
  });
  if (dataset === 'ledger')
    return [
      drilldown('Ledger of $dest$ in a day', 'dpas_ledger_index', 'dest', 1, 'event.action event.reason event.start event.end message'),
    ];
  const has = (field: string): boolean => detect.kind === 'single' || groupOf(detect).includes(field);
  const ofEvents = (name: string, field: string): object =>
    drilldown(name, 'dpas_index', field, 14, 'user signature_id object owner src src_host');
  return [
    ...(has('user.id') ? [ofEvents('Events of $user$ in two weeks', 'user_id')] : []),
    ...(has('dpas.payload.id') ? [ofEvents('Events of $object$ in two weeks', 'object_id')] : []),
  ];
}

/** Searches that look at the delivery, and not at people. */
const maintenance: readonly (readonly [string, Keys])[] = [
  [
    'DPAS: events received twice',
    {
      description:
        'Uids that Splunk indexed more than once. The collector delivers at least once, so some are normal; dpas_dedup removes them from every search.',
      search: "`dpas_index` | eval id=coalesce(id, 'dpas.uid') | stats count AS copies BY id | where copies >= 2",
      disabled: 1,
      'dispatch.earliest_time': '-24h',
      'dispatch.latest_time': 'now',
    },
  ],
  [
    'DPAS: events without id',
    {
      description:
        'Events without the indexed field id, by source type. A sink splunk-hec and the parser of SC4S set it; other inputs do not. Searches then use dpas.uid, which an event can lack as well.',
      search: '`dpas_index` NOT id=* | stats count AS events BY sourcetype',
      disabled: 1,
      'dispatch.earliest_time': '-24h',
      'dispatch.latest_time': 'now',
    },
  ],
  [
    'DPAS: missing numbers',
    {
      description:
        'Numbers of records that Splunk did not index: each is a lost event or a dead letter of the sink. For one sink splunk-hec without filter and sources: the search reports holes between the lowest and the highest number that it finds.',
      search:
        '`dpas_index` number=* | stats count AS copies BY number | sort 0 number | streamstats current=f last(number) AS previous | eval missing = number - previous - 1 | where missing >= 1 | table previous number missing',
      disabled: 1,
      'dispatch.earliest_time': 0,
      'dispatch.latest_time': 'now',
    },
  ],
];
