import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { evaluate } from '../../../src/detections/evaluate.ts';
import type { Rule } from '../../../src/detections/rule.ts';
import type { CompanyAction } from '../../../src/reference/activity/company.ts';
import { sigmaLimit } from '../../../tools/content/sigma.ts';
import type { Row } from '../../support/content/events.ts';
import { alertsOf as kibanaAlertsOf, documentOf, kibanaForm } from '../../support/content/kibana-runs.ts';
import { matchesOf, recordOfEvent, sigmaRule } from '../../support/content/sigma.ts';
import { splunkAlertsOf } from '../../support/content/splunk-runs.ts';
import { attacksOn, type Attack } from '../../support/detections/attacks.ts';
import { isLong } from '../../support/long-run.ts';
import { day, eventOfAction, eventsOfRecords, recordOf, rules, weeksOf } from '../../support/detections/company.ts';
import { fieldsOfCode } from '../../support/detections/samples.ts';

const weeks = weeksOf('shown');
/** A Wednesday. The people are known from the week before it. */
const morning = weeks.from + 9 * day + 10 * 3_600_000;
const begins = morning - 7 * day;
const background = weeks.events.filter(({ at }) => at >= begins && at < morning + day);
const attacks = attacksOn(weeks.company, morning);
const own = (actions: readonly CompanyAction[]): ReturnType<typeof eventsOfRecords> =>
  eventsOfRecords(actions.map((action, i) => recordOf(action, 9_000_000 + i)));
const rows: string[] = [];

/** Alerts that have an event of the attack. */
function alertsOf(rule: Rule, actions: readonly CompanyAction[], ledger: Attack['ledger'] = []): readonly number[] {
  const added = own(actions);
  const uids = new Set(added.map(({ uid }) => uid));
  const audit = [...background, ...added].sort((a, b) => a.at - b.at);
  if (rule.dataset === 'ledger') return evaluate(rule, ledger, weeks.lists, morning + 3 * 3_600_000).map(({ at }) => at);
  return evaluate(rule, audit, weeks.lists, morning + day)
    .filter(({ events }) => events.some(({ uid }) => uids.has(uid)))
    .map(({ at }) => at);
}

/** How long an event is on its way to the SIEM. */
const delay = 12_000;
const { 'service-accounts': accounts = new Map<string, never>() } = weeks.lists;
const listed = [...accounts].map(([id, { hours, hosts }]) => ({ id, from_hour: hours?.from, to_hour: hours?.to, hosts }));
const forKibana = { 'dpas-service-accounts': listed.map(({ id, ...entry }) => ({ 'user.id': id, ...entry })) };
const forSplunk = { dpas_service_accounts: listed.map(({ id, hosts, ...entry }) => ({ user_id: id, ...entry, hosts: hosts?.join(',') })) };
const nameIn = ({ id, dataset }: Rule): string => `${dataset === 'ledger' ? ' ledger: ' : ': '}${id.replaceAll('-', '_')}`;

/** The documents of an attack, after what the rule must know of its people. */
function documentsOf(rule: Rule, actions: readonly CompanyAction[], ledger: Attack['ledger'] = []): readonly Row[] {
  const people = new Set(actions.map(({ user }) => user.userId));
  const hasHistory = rule.detect.kind === 'baseline' || rule.detect.kind === 'first-seen';
  const from = hasHistory ? weeks.from - 21 * day : morning - 2 * 3_600_000;
  const before = weeks.events.filter(({ at, fields }) => at >= from && at < morning && people.has(fields['user.id'] ?? ''));
  const events = rule.dataset === 'ledger' ? ledger : [...before, ...own(actions)].sort((a, b) => a.at - b.at);
  return events.map(({ fields, ...event }) => {
    const code = fields['event.code'];
    return documentOf({ ...event, fields: code === undefined ? fields : { ...fields, ...fieldsOfCode(code) } }, event.at + delay);
  });
}

type Find = (rule: Rule, actions: readonly CompanyAction[], ledger: Attack['ledger']) => number | 'no' | undefined;
const first = (alerts: readonly Row[]): number | undefined =>
  alerts.map(({ run }) => Number(run)).find((run) => run > morning - 9 * 3_600_000);

/** When each language raises the alert of an attack. Kibana and Splunk do so in a run; a rule of Sigma has none. `no`: the language cannot say the rule. */
const languages: Readonly<Record<string, Find>> = {
  Kibana: (rule, actions, ledger) => first(kibanaAlertsOf(kibanaForm(rule.id), documentsOf(rule, actions, ledger), forKibana)),
  Splunk: (rule, actions, ledger) => first(splunkAlertsOf(`DPAS${nameIn(rule)}`, documentsOf(rule, actions, ledger), forSplunk)),
  Sigma: (rule, actions) => {
    if (sigmaLimit(rule) !== undefined) return 'no';
    const records = own(actions).map(({ fields, ...event }) =>
      recordOfEvent({ ...event, fields: { ...fields, ...fieldsOfCode(fields['event.code'] ?? '') } }),
    );
    const times = matchesOf(sigmaRule(`dpas_${rule.id.replaceAll('-', '_')}`), records).map((record) =>
      Date.parse(`${String(record['logTimestamp'])}Z`),
    );
    return times.length === 0 ? undefined : Math.min(...times);
  },
};

/** The languages take most of the time: the long form tries them. */
const tried = isLong ? Object.entries(languages) : [];

// promise: Each of twenty attacks on protected files raises an alert amid everyday work, and what nearly is one raises none.
describe.each(attacks)('$name', ({ name, rule: id, severity, actions, near, nearMiss, ledger, nearLedger }) => {
  const rule = rules.find((each) => each.id === id);
  if (!rule) throw new Error(`no rule ${id}`);
  const since = (at: number | undefined): string => {
    expect(at).toBeDefined();
    const from = Math.min(...actions.map((action) => action.at), ...(ledger ?? []).map((event) => event.at), Infinity);
    return String(Math.round(((at ?? 0) - from) / 1000));
  };
  test('raises its alert, of its severity, in each language', () => {
    expect(rule.severity).toBe(severity);
    const seconds = [alertsOf(rule, actions, ledger)[0], ...tried.map(([, find]) => find(rule, actions, ledger))];
    const cells = seconds.map((at) => (at === 'no' ? at : since(at)));
    rows.push(`| ${[name, `\`${id}\``, severity, ...cells, nearMiss].join(' | ')} |`);
  });
  test('stays quiet for the near miss, in each language', () => {
    expect(alertsOf(rule, near, nearLedger)).toEqual([]);
    for (const [language, find] of tried) expect([undefined, 'no'], language).toContain(find(rule, near, nearLedger));
  });
});

test('the fields of the background are those of the documents that the sinks get', () => {
  // Only rules on the ledger read `event.action`.
  const actions = weeks.actions.slice(0, 500);
  const documents = eventsOfRecords(actions.map((action, i) => recordOf(action, i + 1)));
  const shown = (events: readonly { readonly at: number; readonly fields: Readonly<Record<string, string | undefined>> }[]): unknown =>
    events.map(({ at, fields }) => ({ at, ...fields, 'event.action': undefined }));
  expect(shown(documents)).toEqual(shown(actions.map((action, i) => eventOfAction(action, i + 1))));
});

test('docs/denials.md has this table of attacks', () => {
  const path = new URL('../../../docs/denials.md', import.meta.url);
  const head = `| attack | rule | severity | seconds | ${Object.keys(languages).join(' | ')} | near miss, without an alert |\n|---|---|---|---|---|---|---|---|\n`;
  const text = readFileSync(path, 'utf8');
  const found = text.split(head)[1]?.split('\n\n')[0]?.split('\n');
  const untried = Object.keys(languages).length - tried.length;
  process.stdout.write(`${head}${rows.join('\n')}\n`);
  expect(rows).toHaveLength(attacks.length);
  expect(found?.map((row) => row.split(' | ').toSpliced(4, untried).join(' | '))).toEqual(rows);
});
