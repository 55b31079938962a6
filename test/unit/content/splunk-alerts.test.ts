/** content/splunk: the searches fire as the rules that they are written from. */
import { describe, expect, test } from 'vitest';
import { evaluate } from '../../../src/detections/evaluate.ts';
import type { Rule } from '../../../src/detections/rule.ts';
import { rules } from '../../../tools/content/rules.ts';
import type { Row } from '../../support/content/events.ts';
import { documentOf } from '../../support/content/kibana-runs.ts';
import { spl } from '../../support/content/spl.ts';
import { atSearchTime, conf, expanded, savedSearch } from '../../support/content/splunk-app.ts';
import { msOf, splunkAlertsOf } from '../../support/content/splunk-runs.ts';
import { eventsOf } from '../../support/detections/samples.ts';

const [minute, hour] = [60_000, 3_600_000];
const nameOf = ({ id, dataset }: Rule): string => `DPAS${dataset === 'ledger' ? ' ledger' : ''}: ${id.replaceAll('-', '_')}`;
const keysOf = (rule: Rule): ReadonlyMap<string, string> => conf('savedsearches').get(nameOf(rule)) ?? new Map<string, string>();
const lists = { 'service-accounts': new Map([['batch', { hours: { from: 1, to: 5 }, hosts: ['batch-1', 'batch-2'] }]]) };
const lookups = { dpas_service_accounts: [{ user_id: 'batch', from_hour: 1, to_hour: 5, hosts: 'batch-1,batch-2' }] };
const soon = 12_000;

/** A test that one of the rules does not promise is not there. */
const unless = (isLeftOut: boolean): ((name: string, run: () => void) => void) => (isLeftOut ? () => undefined : test);

describe.each(rules)('$id', (rule) => {
  const alertsOf = (rows: readonly Row[]): readonly Row[] => splunkAlertsOf(nameOf(rule), rows, lookups);
  const samples = [
    ...rule.fires.map((acts, i) => ({ acts, name: `fires ${i}` })),
    ...rule.quiet.map((acts, i) => ({ acts, name: `quiet ${i}` })),
  ];

  // promise: Each Splunk search fires as the rule that it is written from, on time, 20 hours late and for records received twice, and not for a backfill.
  test.each(samples)('gives the alerts of the rule for its sample "$name", with each record received twice', ({ acts }) => {
    const events = eventsOf(acts, rule);
    const expected = evaluate(rule, events, lists, events.at(-1)?.at ?? 0).map(({ group }) => group.join(':'));
    const groupOf = (alert: Row): string => {
      const fields = (keysOf(rule).get('alert.suppress.fields') ?? '').split(',');
      return fields.map((field) => String(alert[field])).join(':');
    };
    const twice = events.flatMap((event) => [documentOf(event, event.at + soon), documentOf(event, event.at + 2 * soon)]);
    expect(alertsOf(twice).map(groupOf)).toEqual(expected);
  });

  const [attack = []] = rule.fires;
  const events = eventsOf(attack, rule);
  const end = events.at(-1)?.at ?? 0;

  // A silence ends when its events arrive.
  unless(rule.detect.kind === 'silence')('finds an attack that arrives 20 hours late', () => {
    expect(alertsOf(events.map((event) => documentOf(event, event.at + 20 * hour)))).toHaveLength(1);
  });

  test('ignores a backfill of 30 days that arrives in four minutes', () => {
    const arrives = (at: number): number => end + 30 * 24 * hour + (Math.abs(at - end) % (4 * minute));
    expect(alertsOf(events.map((event) => documentOf(event, arrives(event.at))))).toEqual([]);
  });
});

describe('a burst', () => {
  const ofBuckets = rules.filter(({ detect }) => detect.kind === 'count' || detect.kind === 'distinct');
  test.each(ofBuckets)('of $id fires once wherever it begins in the buckets', (rule) => {
    const window = 'window' in rule.detect ? rule.detect.window : 0;
    const [acts = []] = rule.fires;
    const { run } = spl(savedSearch(nameOf(rule)));
    for (let offset = 0; offset < 2 * window; offset += window / 4) {
      const rows = eventsOf(acts, rule).map((event) =>
        atSearchTime('dpas:audit', documentOf({ ...event, at: event.at + offset }, event.at)),
      );
      const [found, ...others] = run(rows);
      expect(others).toEqual([]);
      expect(Date.parse(`${String(found?.['started'])}Z`)).toBeGreaterThanOrEqual((eventsOf(acts, rule)[0]?.at ?? 0) + offset - 1_000);
    }
  });
});

describe('the attributes', () => {
  test.each(rules)('of $id: disabled, scheduled, throttled by what the results have, for longer than a run looks back', (rule) => {
    const keys = keysOf(rule);
    const { limits } = spl(savedSearch(nameOf(rule)));
    expect(Object.fromEntries(keys)).toMatchObject({
      disabled: '1',
      enableSched: '1',
      'dispatch.latest_time': '+5m',
      quantity: '0',
      'alert.digest_mode': '0',
      'alert.suppress': '1',
      'alert.severity': { low: '2', medium: '3', high: '4' }[rule.severity],
    });
    const look = limits['_index_earliest'] === undefined ? -24 * hour : msOf(limits['_index_earliest']);
    expect(msOf(`+${keys.get('alert.suppress.period') ?? ''}`)).toBeGreaterThanOrEqual(-look);
    expect(-look).toBeGreaterThanOrEqual(10 * minute);
    expect(limits['_index_latest']).toBe('@m');
  });

  // The form of Splunk's own security content: contentctl writes these keys.
  test.each(rules)('of $id: risk, ATT&CK and, except for a building block, a notable with values that the results have', (rule) => {
    const keys = keysOf(rule);
    const [object = {}] = JSON.parse(keys.get('action.risk.param._risk') ?? '[]') as Record<string, unknown>[];
    expect(object['risk_score']).toBe({ low: 21, medium: 47, high: 73 }[rule.severity]);
    expect(['user', 'system', 'other']).toContain(object['risk_object_type']);
    const annotations = JSON.parse(keys.get('action.correlationsearch.annotations') ?? '') as { mitre_attack?: string[] };
    expect(annotations.mitre_attack ?? []).toEqual(rule.attack);
    expect(keys.get('action.notable')).toBe(rule.isBuildingBlock ? undefined : '1');
    expect(keys.get('alert.track')).toBe(rule.isBuildingBlock ? '0' : '1');

    const [acts = []] = rule.fires;
    const documents = eventsOf(acts, rule).map((event) => ({ ...documentOf(event, event.at + soon), 'observer.hostname': 'service' }));
    const [alert = {}] = splunkAlertsOf(nameOf(rule), documents, lookups);
    const drilldowns = JSON.parse(keys.get('action.notable.param.drilldown_searches') ?? '[]') as { name: string; search: string }[];
    expect(drilldowns.length > 0).toBe(!rule.isBuildingBlock);
    const tokens = [...keys.values()].flatMap((value) => [...value.matchAll(/\$(\w+)(?:\|s)?\$/g)].map(([, token = '']) => token));
    expect(tokens).toContain(object['risk_object_field']);
    for (const token of tokens) expect(alert[token], token).toBeTypeOf('string');
    const searches = drilldowns.map(({ search }) => search);
    const fields = searches.map((search) => /\$(user_id|object_id|dest)\|s\$/.exec(search)?.[1] ?? '');
    for (const [i, search] of searches.entries()) expect(drilledDown(search, alert, documents).length, fields[i]).toBeGreaterThan(0);
    // Ids are texts of the service: one that is no UUID shows its own events, and never those of others.
    for (const id of ['*', 'ann*', 'ann" OR user_id="*', '" OR object_id=* OR dest="', '| where true()', '(', 'a=b', "it's", 'ann ']) {
      const own = { 'user.id': id, 'dpas.payload.id': id, 'observer.hostname': id, 'dpas.uid': 'own' };
      for (const [i, search] of searches.entries()) {
        const token = fields[i] ?? '';
        const shown = drilledDown(search, { [token]: id }, [...documents, { ...documents[0], ...own }]);
        expect(shown, `${id} in ${search}`).toHaveLength(1);
      }
    }
  });
});

/** What the search of a notable shows, after Splunk put the values of the notable in place of its tokens. */
function drilledDown(search: string, alert: Row, documents: readonly Row[]): readonly Row[] {
  const quoted = (value: unknown): string => `"${String(value).replaceAll(/["\\]/g, '\\$&')}"`;
  const filled = search.replaceAll(/\$(\w+)\|s\$/g, (_, token: string) => quoted(alert[token]));
  const { run, limits } = spl(expanded(filled));
  const sourcetype = limits['sourcetype'] === 'dpas:ledger' ? 'dpas:ledger' : 'dpas:audit';
  return run(documents.map((document) => ({ ...atSearchTime(sourcetype, document), sourcetype })));
}

test('an alert names its people, addresses and files: ten, and how many more', () => {
  const rule = rules.find(({ id }) => id === 'opened-many');
  if (!rule) throw new Error('no rule');
  const [acts = []] = rule.fires;
  // They arrive at once: the first run sees all 30.
  const events = eventsOf(acts, rule);
  const documents = events.map((event) => documentOf(event, (events.at(-1)?.at ?? 0) + soon));
  const [alert] = splunkAlertsOf('DPAS: opened_many', documents, {});
  expect(alert).toMatchObject({
    ...{ user_id: 'ann', user: 'ann@example.com', user_name: 'Name of ann', user_email: 'ann@example.com' },
    ...{ src: '192.0.2.1', src_host: 'laptop', counted: 30, more_objects: 20 },
  });
  expect(alert?.['object']).toHaveLength(10);
});

test('an alert with a severity of its own has no column that replaces it', () => {
  const replaced = rules
    .filter((rule) => / severity \| eval alert_key| severity alert_key/.test(savedSearch(nameOf(rule))))
    .map(({ id }) => id);
  expect(replaced).toEqual(['any-denied', 'open-denied-geo', 'open-denied-no-access', 'protect-denied-geo']);
});

const alertsOn = (id: string, change: (row: Row) => Row = (row) => row): readonly Row[] => {
  const rule = rules.find((each) => each.id === id);
  if (!rule) throw new Error('no rule');
  const events = eventsOf(rule.fires[0] ?? [], rule);
  const documents = events.map((event) => change(documentOf(event, (events.at(-1)?.at ?? 0) + soon)));
  return splunkAlertsOf(nameOf(rule), documents, {}).map((alert) => ({
    ...alert,
    // Seconds from the first event.
    begins: Date.parse(`${String(alert['started'])}Z`) / 1_000 - Math.floor((events[0]?.at ?? 0) / 1_000),
  }));
};

test('an alert on a sequence names who took each step, from where, and begins with the first step', () => {
  const ann = 'Name of ann, ann@example.com, ann, laptop, 192.0.2.1';
  const root = 'Name of root, root@example.com, root, laptop, 192.0.2.1';
  expect(alertsOn('denied-changed-opened')).toMatchObject([{ denied_by: ann, changed_by: root, opened_by: ann, begins: 0 }]);
  expect(alertsOn('open-denied-then-allowed')).toMatchObject([{ denied_by: ann, opened_by: ann, begins: 0 }]);
  expect(alertsOn('revoked-then-denied')).toMatchObject([
    { user_id: 'ann', revoked_by: 'Name of boss, boss@example.com, boss, laptop, 192.0.2.1', begins: 0 },
  ]);
  expect(alertsOn('control-changed-then-opened')).toMatchObject([{ user_id: 'root', changed_by: root, more_objects: 10, begins: 0 }]);
});

test('an alert counts the files by their ids: several may have one name', () => {
  expect(alertsOn('opened-many', (row) => ({ ...row, 'file.name': 'same.docx' }))).toMatchObject([
    { object: 'same.docx', more_objects: 29 },
  ]);
});

test.each([
  [4, 'low'],
  [8, 'high'],
])('an alert on one denial of severity %s is %s, as its record', (level, word) => {
  const rule = rules.find(({ id }) => id === 'open-denied-no-access');
  if (!rule) throw new Error('no rule');
  const documents = eventsOf(rule.fires[0] ?? [], rule).map((event) => ({
    ...documentOf(event, event.at + soon),
    ...{ 'event.outcome': 'failure', 'event.severity': level },
  }));
  expect(splunkAlertsOf(nameOf(rule), documents, lookups)[0]).toHaveProperty('severity', word);
});

test.each([
  ['trusted-users', 'opened-many', { user_id: 'ann' }],
  ['help-desk', 'denied-changed-opened', { user_id: 'root' }],
  ['offices', 'open-denied-country', { address: '192.0.2.1' }],
  ['known-providers', 'new-machine-and-provider', { provider: 'Strange Net' }],
])('the lookup of %s excepts from %s', (list, id, line) => {
  const rule = rules.find((each) => each.id === id);
  const [acts = []] = rule?.fires ?? [];
  if (!rule) throw new Error('no rule');
  const documents = eventsOf(acts, rule).map((event) => documentOf(event, event.at + soon));
  const lookup = `dpas_${list.replaceAll('-', '_')}`;
  expect(splunkAlertsOf(nameOf(rule), documents, { [lookup]: [line] })).toEqual([]);
  expect(splunkAlertsOf(nameOf(rule), documents, { [lookup]: [] })).toHaveLength(1);
});

test('every list is a collection of the KV store, with the columns that the searches read', () => {
  const collections = conf('collections');
  const searches = rules.map((rule) => savedSearch(nameOf(rule))).join('\n');
  const used = [...searches.matchAll(/\| lookup local=true (\w+) (\w+)(?: AS \S+)? OUTPUT ([^|]*)/g)];
  expect(new Set(used.map(([, name]) => name))).toEqual(new Set(collections.keys()));
  for (const [, name = '', key = '', output = ''] of used) {
    const keys = conf('transforms').get(name);
    expect([keys?.get('external_type'), keys?.get('collection'), keys?.get('case_sensitive_match')]).toEqual(['kvstore', name, 'true']);
    const columns = keys?.get('fields_list')?.split(', ') ?? [];
    expect(columns.slice(1)).toEqual([...(collections.get(name)?.keys() ?? [])].map((field) => field.replace('field.', '')));
    for (const column of [key, ...output.trim().split(/ AS \w+ ?| /).filter(Boolean)]) expect(columns).toContain(column); // prettier-ignore
  }
});
