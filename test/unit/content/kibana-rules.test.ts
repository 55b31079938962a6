/** content/kibana: the rules match the attributes of Kibana, and fire as the rules that they are written from. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { evaluate } from '../../../src/detections/evaluate.ts';
import type { Rule } from '../../../src/detections/rule.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';
import { rules } from '../../../tools/content/rules.ts';
import { eql } from '../../support/content/eql.ts';
import { esql } from '../../support/content/esql.ts';
import type { Row } from '../../support/content/events.ts';
import { alertsOf, documentOf, kibanaForm, msOf, type KibanaRule } from '../../support/content/kibana-runs.ts';
import { kql } from '../../support/content/kql.ts';
import { sized } from '../../support/long-run.ts';
import { eventsOf } from '../../support/detections/samples.ts';

const shipped = (name: string): string => readFileSync(new URL(`../../../content/kibana/${name}`, import.meta.url), 'utf8');

/**
 * Attributes of a rule, written after elastic/kibana 9.x, x-pack/solutions/security/plugins/security_solution/common/api/detection_engine/
 * model/rule_schema/{rule_schemas,common_attributes}.schema.yaml and specific_attributes/threshold_attributes.schema.yaml.
 */
const reference = { id: z.string(), name: z.string(), reference: z.url() };
const common = {
  rule_id: z.string().regex(/^dpas-[a-z-]+$/),
  name: z.string().min(1),
  description: z.string().min(1),
  severity: z.enum(['low', 'medium', 'high', 'critical']),
  severity_mapping: z
    .array(
      z.strictObject({
        field: z.string(),
        operator: z.literal('equals'),
        value: z.string(),
        severity: z.enum(['low', 'medium', 'high', 'critical']),
      }),
    ) // prettier-ignore
    .optional(),
  risk_score: z.int().min(0).max(100),
  enabled: z.literal(false),
  version: z.int().min(1),
  author: z.array(z.string()),
  license: z.string(),
  tags: z.array(z.string()),
  interval: z.literal('5m'),
  from: z.string().regex(/^now-\d+[smh]$/),
  to: z.literal('now'),
  timestamp_override: z.literal('event.ingested'),
  max_signals: z.int(),
  false_positives: z.array(z.string()).min(1),
  note: z.string().min(1),
  setup: z.string().min(1),
  references: z.array(z.url()),
  investigation_fields: z.strictObject({ field_names: z.array(z.string()).min(1) }).optional(),
  exceptions_list: z
    .array(z.strictObject({ id: z.string(), list_id: z.string(), type: z.literal('detection'), namespace_type: z.literal('single') }))
    .optional(),
  required_fields: z.array(z.strictObject({ name: z.string(), type: z.string() })).optional(),
  building_block_type: z.literal('default').optional(),
  threat: z.array(
    z.strictObject({
      framework: z.literal('MITRE ATT&CK'),
      tactic: z.strictObject(reference),
      technique: z.array(z.strictObject({ ...reference, subtechnique: z.array(z.strictObject(reference)).optional() })),
    }),
  ),
};
const index = z.array(z.string().regex(/^logs-dpas\.(audit|ledger)-\*$/));
const suppression = z.strictObject({
  group_by: z.array(z.string()).min(1).max(3),
  duration: z.strictObject({ value: z.int().min(1), unit: z.enum(['s', 'm', 'h']) }),
  missing_fields_strategy: z.enum(['doNotSuppress', 'suppress']),
});
const threshold = z.strictObject({
  field: z.array(z.string()).max(5),
  value: z.int().min(1),
  cardinality: z.array(z.strictObject({ field: z.string(), value: z.int().min(0) })).max(1),
});
const filters = z.tuple([
  z.strictObject({
    meta: z.strictObject({ alias: z.string(), disabled: z.literal(false), negate: z.literal(false) }),
    query: z.strictObject({ range: z.strictObject({ '@timestamp': z.strictObject({ gte: z.string().regex(/^now-\d+[mh]$/) }) }) }),
  }),
]);
const ofKql = { ...common, language: z.literal('kuery'), index, query: z.string() };
const ruleSchema = z.discriminatedUnion('type', [
  z.strictObject({ ...ofKql, type: z.literal('query'), filters: filters.optional(), alert_suppression: suppression.optional() }),
  z.strictObject({ ...ofKql, type: z.literal('threshold'), filters, threshold }),
  z.strictObject({ ...common, type: z.literal('eql'), language: z.literal('eql'), index, query: z.string(), filters }),
  z.strictObject({ ...common, type: z.literal('esql'), language: z.literal('esql'), query: z.string(), alert_suppression: suppression }),
]);
const rulesIn = (name: string): readonly z.output<typeof ruleSchema>[] =>
  shipped(name)
    .trimEnd()
    .split('\n')
    .map((line) => ruleSchema.parse(JSON.parse(line)));
const written = [...rulesIn('detection-rules.ndjson'), ...rulesIn('detection-rules-ledger.ndjson')];
const thresholds = rulesIn('detection-rules-threshold.ndjson');

describe('the attributes', () => {
  test('are those of one form of each rule, with its severity and risk', () => {
    expect(written.map(({ rule_id }) => rule_id).toSorted()).toEqual(rules.map(({ id }) => `dpas-${id}`).toSorted());
    expect(new Set([...written, ...thresholds].map(({ rule_id }) => rule_id)).size).toBe(written.length + thresholds.length);
    for (const { severity, risk_score } of [...written, ...thresholds])
      expect(risk_score).toBe({ low: 21, medium: 47, high: 73, critical: 99 }[severity]);
  });

  test('take the severity from the record only where the alert is one denial', () => {
    const mapped = written.filter(({ severity_mapping }) => severity_mapping).map(({ rule_id }) => rule_id);
    expect(mapped).toEqual(['dpas-any-denied', 'dpas-open-denied-geo', 'dpas-open-denied-no-access', 'dpas-protect-denied-geo']);
  });

  test('use only mapped fields, and require those that they use', () => {
    for (const rule of [...written, ...thresholds]) {
      const used = fieldsOf(rule);
      const known = used.filter((field) => mappedFields.has(field));
      // The index of the list of accounts, and metadata; known_0 is a column.
      const ofList = rule.rule_id === 'dpas-service-account-outside' ? ['_id', '_version', '_index', 'from_hour', 'to_hour', 'hosts'] : [];
      expect(
        used.filter((field) => !known.includes(field) && !ofList.includes(field)),
        rule.rule_id,
      ).toEqual([]);
      if (rule.type !== 'threshold') expect(rule.required_fields?.map(({ name }) => name)).toEqual(expect.arrayContaining(known));
    }
  });

  test('name exception lists that the file of lists has', () => {
    const lists = shipped('exception-lists.ndjson').trimEnd().split('\n').map((line) => (JSON.parse(line) as { list_id: string }).list_id); // prettier-ignore
    const used = new Set(written.flatMap(({ exceptions_list = [] }) => exceptions_list.map(({ list_id }) => list_id)));
    expect([...used].toSorted()).toEqual(lists.toSorted());
  });

  test('have guides whose buttons read a value that the alert has', () => {
    for (const rule of written) {
      const buttons = [...rule.note.matchAll(/^!\{investigate(\{.*\})\}$/gm)].map(([, json = '']) => JSON.parse(json) as { providers: { field: string; value: string }[][] }); // prettier-ignore
      const fields = buttons.flatMap(({ providers }) => providers.flat()).map(({ field, value }) => {
        expect(value).toBe(`{{${field}}}`);
        return field;
      }); // prettier-ignore
      expect(fields.length > 0, rule.rule_id).toBe(rule.tags.includes('Data Source: DPAS audit'));
      for (const field of fields) if (rule.type === 'esql') expect(rule.query.split('| KEEP ')[1]?.split(', ')).toContain(field);
    }
  });
});

function fieldsOf(rule: z.output<typeof ruleSchema>): readonly string[] {
  if (rule.type === 'esql') return [...esql(rule.query).fields, ...rule.alert_suppression.group_by];
  if (rule.type === 'eql') return [...eql(rule.query).keys, 'event.code'];
  const { field = [], cardinality = [] } = rule.type === 'threshold' ? rule.threshold : {};
  return [...kql(rule.query).fields, ...field, ...cardinality.map((each) => each.field)];
}

const minute = 60_000;
const hour = 60 * minute;
const accounts = new Map([['batch', { hours: { from: 1, to: 5 }, hosts: ['batch-1', 'batch-2'] }]]);
const lists = { 'service-accounts': accounts };
const indices = {
  'dpas-service-accounts': [...accounts].map(([id, { hours, hosts }]): Row => ({
    'user.id': id,
    from_hour: hours.from,
    to_hour: hours.to,
    hosts,
  })),
};
const groupsOf = (alerts: readonly Row[], { alert_suppression }: KibanaRule): readonly unknown[] =>
  alerts.map((alert) => alert_suppression?.group_by.map((field) => alert[field]));

/** A test that one of the rules does not promise is not there. */
const unless = (isLeftOut: boolean): ((name: string, run: () => void) => void) => (isLeftOut ? () => undefined : test);

describe.each(rules)('$id', (rule) => {
  const form = kibanaForm(rule.id);
  const samples = [
    ...rule.fires.map((acts, i) => ({ acts, name: `fires ${i}` })),
    ...rule.quiet.map((acts, i) => ({ acts, name: `quiet ${i}` })),
  ];

  // promise: Each Kibana rule fires as the rule that it is written from, on time, 20 hours late and for records received twice, and not for a backfill.
  test.each(samples)('gives the alerts of the rule for its sample "$name"', ({ acts }) => {
    const events = eventsOf(acts, rule);
    const expected = evaluate(rule, events, lists, events.at(-1)?.at ?? 0);
    const alerts = alertsOf(form, events.map((event) => documentOf(event, event.at + 12_000)), indices); // prettier-ignore
    expect(alerts).toHaveLength(expected.length);
    if (form.alert_suppression) expect(groupsOf(alerts, form)).toEqual(expected.map(({ group }) => group));
  });

  const [attack = []] = rule.fires;
  const events = eventsOf(attack, rule);
  const received = (delay: number): readonly Row[] => events.map((event) => documentOf(event, event.at + delay));
  const end = events.at(-1)?.at ?? 0;

  const isSilence = rule.detect.kind === 'silence';
  unless(isSilence)('finds an attack that arrives 20 hours late', () => {
    expect(alertsOf(form, received(20 * hour), indices)).toHaveLength(1);
  });

  unless(rule.dataset === 'ledger' || rule.id === 'any-denied')('ignores a backfill of 30 days that arrives in four minutes', () => {
    const arrives = (at: number): number => end + 30 * 24 * hour + ((at - end) % (4 * minute));
    expect(alertsOf(form, events.map((event) => documentOf(event, arrives(event.at))), indices)).toEqual([]); // prettier-ignore
  });

  // Kibana makes an alert of each document, and EQL counts documents: content/README.md says so.
  unless(form.type !== 'esql')('counts records received twice once', () => {
    for (const acts of [attack, ...rule.quiet].slice(0, sized(1, Infinity))) {
      const own = eventsOf(acts, rule);
      const twice = own.flatMap((event) => [documentOf(event, event.at + 12_000), documentOf(event, event.at + 30_000)]);
      expect(alertsOf(form, twice, indices)).toHaveLength(evaluate(rule, own, lists, own.at(-1)?.at ?? 0).length);
    }
  });
});

describe('without a licence for alert suppression', () => {
  const isLicensed = false;
  const day = 24 * hour;
  /** The times of runs from the first event until after the last one. */
  function* runsEvery(rows: readonly Row[], every: number, offset = 0): Generator<number> {
    const arrived = rows.map((row) => Date.parse(String(row['event.ingested'])));
    for (let run = Math.min(...arrived) + offset; run <= Math.max(...arrived) + 20 * minute; run += every) yield run;
  }
  const joined = rules.filter(({ id, detect }) => !['single', 'silence'].includes(detect.kind) && kibanaForm(id).type === 'esql');
  const received = (rule: Rule, acts: Rule['fires'][number], delay = 12_000): readonly Row[] =>
    eventsOf(acts, rule).map((event) => documentOf(event, event.at + delay));

  // promise: Without a licence for alert suppression, an attack is an alert in two runs of its Kibana rule, and in one if the other run is left out.
  test.each(joined)('$id: an attack is an alert in two runs, and a run that is left out loses none', (rule) => {
    // Of what the rule knows of earlier days, the last hours are enough.
    const end = Math.max(...eventsOf(rule.fires[0] ?? [], rule).map(({ at }) => at));
    const isLate = (run: number): boolean => run > end - day;
    for (const acts of rule.fires) {
      const rows = received(rule, acts);
      for (const offset of [minute, 3 * minute, 4 * minute]) {
        const runs = (every: number): readonly number[] => [...runsEvery(rows, every, offset)].filter(isLate);
        expect(alertsOf(kibanaForm(rule.id), rows, indices, { isLicensed, runs: runs(5 * minute) })).toHaveLength(2);
        expect(alertsOf(kibanaForm(rule.id), rows, indices, { isLicensed, runs: runs(10 * minute) })).toHaveLength(1);
      }
    }
  });

  // An alert for two runs at the beginning, and at each multiple of the suppression, which is twice the window.
  test.each([
    ['opened-many-day', [{ times: 1_440, every: 3 * minute, file: 'each' }], 4],
    ['far-apart', [{ times: 72, every: hour / 3, place: '47.37,8.54' }, { at: hour / 6, times: 72, every: hour / 3, place: '-23.55,-46.63' }], 4], // prettier-ignore
  ])('%s: what continues for days is an alert again when the time of the suppression is over', (id, acts, expected) => {
    const rule = ruleOf(id);
    const [[like]] = rule.fires as [[Rule['fires'][number][number]]];
    const rows = received(rule, acts.map((act) => ({ ...like, ...act }))); // prettier-ignore
    const alerts = alertsOf(kibanaForm(id), rows, indices, { isLicensed, runs: runsEvery(rows, 5 * minute, minute) });
    expect(alerts).toHaveLength(expected);
  });
});

test('an alert names its people, addresses and files: ten, and how many more', () => {
  const rule = rules.find(({ id }) => id === 'opened-many');
  if (!rule) throw new Error('no rule');
  const [acts = []] = rule.fires;
  // They arrive at once: the first run sees all 30.
  const events = eventsOf(acts, rule);
  const documents = events.map((event) => documentOf(event, (events.at(-1)?.at ?? 0) + 12_000));
  const [alert] = alertsOf(kibanaForm(rule.id), documents, indices);
  expect(alert).toMatchObject({
    ...{ 'user.id': 'ann', 'user.name': 'Name of ann', 'user.email': 'ann@example.com', 'host.name': 'laptop', 'source.ip': '192.0.2.1' },
    'Esql.counted': 30,
    'Esql.file_name_more': 20,
  });
  expect(alert?.['Esql.file_name_values']).toHaveLength(10);
});

const ruleOf = (id: string): Rule => {
  const rule = rules.find((each) => each.id === id);
  if (!rule) throw new Error(`no rule ${id}`);
  return rule;
};
const arriving = (rule: Rule, change: (row: Row, i: number) => Row): readonly Row[] =>
  eventsOf(rule.fires[0] ?? [], rule).map((event, i) => change(documentOf(event, event.at + 12_000), i));

test('an alert on a sequence names who took each step, from where', () => {
  const [alert] = alertsOf(
    kibanaForm('denied-changed-opened'),
    arriving(ruleOf('denied-changed-opened'), (row) => row),
    {},
  );
  const ann = 'Name of ann, ann@example.com, ann, laptop, 192.0.2.1';
  expect(alert).toMatchObject({
    'Esql.denied_by_values': ann,
    'Esql.changed_by_values': 'Name of root, root@example.com, root, laptop, 192.0.2.1',
    'Esql.opened_by_values': ann,
    'file.name': 'plan.docx',
  });
});

test('one alert names the files of a user who changed and opened 20: ten, and how many more', () => {
  const rule = ruleOf('control-changed-then-opened');
  const events = eventsOf(rule.fires[0] ?? [], rule);
  const documents = events.map((event) => documentOf(event, (events.at(-1)?.at ?? 0) + 12_000));
  const [alert, ...others] = alertsOf(kibanaForm(rule.id), documents, {});
  expect(others).toEqual([]);
  expect(alert).toMatchObject({
    'user.id': 'root',
    'host.name': 'laptop',
    'source.ip': '192.0.2.1',
    'Esql.counted': 20,
    'Esql.file_name_more': 10,
  });
  expect(alert?.['Esql.changed_by_values']).toBe('Name of root, root@example.com, root, laptop, 192.0.2.1');
  expect(alert?.['Esql.started']).toBe(events[0]?.at);
});

test.each(['control-changed-then-opened', 'revoked-then-denied', 'new-machine-and-provider'])(
  '%s fires also for fields with a tab',
  (id) => {
    const tabbed = { 'user.name': 'Ann\tExample', 'user.email': 'a\tb@example.com', 'user.id': 'u\t1', 'host.hostname': 'new\thost' };
    const [rule, isOfMachine] = [ruleOf(id), id === 'new-machine-and-provider'];
    const last = eventsOf(rule.fires[0] ?? [], rule).length - 1;
    const documents = arriving(rule, (row, i) => ({
      ...row,
      ...tabbed,
      'host.hostname': isOfMachine && i < last ? row['host.hostname'] : 'new\thost',
    }));
    const alerts = alertsOf(kibanaForm(id), documents, {});
    expect(alerts.map((alert) => alert['user.id'])).toEqual(['u\t1']);
  },
);

test('an alert counts the files by their ids, and names one without a name by its id', () => {
  const rule = ruleOf('opened-many');
  const documents = arriving(rule, (row, i) => ({ ...row, 'file.name': i === 0 ? undefined : 'same.docx' }));
  const ingested = new Date(Math.max(...documents.map((row) => Date.parse(String(row['@timestamp'])))) + 12_000).toISOString();
  const [alert] = alertsOf(kibanaForm(rule.id), documents.map((row) => ({ ...row, 'event.ingested': ingested })), {}); // prettier-ignore
  expect(alert?.['Esql.file_name_values']).toEqual([documents[0]?.['dpas.payload.id'], 'same.docx']);
  expect(alert?.['Esql.file_name_more']).toBe(28);
});

describe('the threshold form', () => {
  test.each(thresholds.map((form) => ({ form, id: form.rule_id.replace(/^dpas-(.*)-threshold$/, '$1') })))('of $id', ({ form, id }) => {
    const rule = rules.find((each) => each.id === id);
    if (!rule) throw new Error('no rule');
    const fires = (acts: Rule['fires'][number]): boolean =>
      alertsOf(form as KibanaRule, eventsOf(acts, rule).map((event) => documentOf(event, event.at + 12_000)), {}).length > 0; // prettier-ignore
    expect(rule.fires.map(fires)).toEqual(rule.fires.map(() => true));
    expect(rule.quiet.map(fires)).toEqual(rule.quiet.map(() => false));
    expect(msOf(form.from)).toBeGreaterThan(0);
  });
});
