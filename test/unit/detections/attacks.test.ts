import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { evaluate } from '../../../src/detections/evaluate.ts';
import type { CompanyAction } from '../../../src/reference/activity/company.ts';
import { attacksOn, type Attack } from '../../support/detections/attacks.ts';
import { day, eventOfAction, eventsOfRecords, recordOf, rules, weeksOf } from '../../support/detections/company.ts';

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
function alertsOf(rule: (typeof rules)[number], actions: readonly CompanyAction[], ledger: Attack['ledger'] = []): readonly number[] {
  const added = own(actions);
  const uids = new Set(added.map(({ uid }) => uid));
  const audit = [...background, ...added].sort((a, b) => a.at - b.at);
  if (rule.dataset === 'ledger') return evaluate(rule, ledger, weeks.lists, morning + 3 * 3_600_000).map(({ at }) => at);
  return evaluate(rule, audit, weeks.lists, morning + day)
    .filter(({ events }) => events.some(({ uid }) => uids.has(uid)))
    .map(({ at }) => at);
}

// promise: Each of twenty attacks on protected files raises an alert amid everyday work, and what nearly is one raises none.
describe.each(attacks)('$name', ({ name, rule: id, severity, actions, near, nearMiss, ledger, nearLedger }) => {
  const rule = rules.find((each) => each.id === id);
  test('raises its alert, of its severity', () => {
    if (!rule) throw new Error(`no rule ${id}`);
    const [at] = alertsOf(rule, actions, ledger);
    expect(rule.severity).toBe(severity);
    expect(at).toBeDefined();
    const from = Math.min(...actions.map((action) => action.at), ...(ledger ?? []).map((event) => event.at), Infinity);
    rows.push(`| ${name} | \`${id}\` | ${severity} | ${String(Math.round(((at ?? 0) - from) / 1000))} | ${nearMiss} |`);
  });
  test('stays quiet for the near miss', () => {
    if (!rule) throw new Error(`no rule ${id}`);
    expect(alertsOf(rule, near, nearLedger)).toEqual([]);
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
  const head = '| attack | rule | severity | seconds to the alert | near miss, without an alert |\n|---|---|---|---|---|\n';
  const text = readFileSync(path, 'utf8');
  const found = text.split(head)[1]?.split('\n\n')[0];
  process.stdout.write(`${head}${rows.join('\n')}\n`);
  expect(rows).toHaveLength(attacks.length);
  expect(found).toBe(rows.join('\n'));
});
