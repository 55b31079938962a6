/** The weeks of the simulated company as events of the rules: records of the service, normalized as the sinks get them. */
import { encoder } from '../../../src/encode/index.ts';
import { cefSettings } from '../../../src/encode/settings.ts';
import { eventOf, fieldsOf } from '../../../src/detections/event.ts';
import { evaluate, type DetectionEvent } from '../../../src/detections/evaluate.ts';
import { readRules } from '../../../src/detections/rule.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { mappingSettings, observerSettings, privacySettings } from '../../../src/normalize/settings.ts';
import { identify } from '../../../src/record/identity.ts';
import { readText } from '../../../src/record/read.ts';
import { parseLists } from '../../../src/detections/trial.ts';
import { Company, type CompanyAction } from '../../../src/reference/activity/company.ts';
import { randomOf } from '../../../src/reference/random.ts';

export const rules = readRules(new URL('../../../content/rules/', import.meta.url));
const fields = fieldsOf(rules);

export const day = 86_400_000;
/** A Monday. The quarter ends in the last shown week. */
const shownFrom = Date.parse('2026-03-09T00:00:00Z');
const shownDays = 28;
/** What is known of the people before the first shown day. */
const knownDays = 35;

const normalize = normalizer({
  tenantId: undefined,
  baseUrl: undefined,
  observer: observerSettings.parse({}),
  dataset: 'dpas.audit',
  namespace: 'default',
  mapping: mappingSettings.parse({}),
  privacy: privacySettings.parse({}),
});
const encode = encoder('ecs', { includeOriginal: false, cef: cefSettings.parse({}) });
const uidOf = identify('production');

/** The record of an action, as the service writes it. */
export function recordOf({ at, combination: [action, result, reason], user, payload, network }: CompanyAction, logId: number): string {
  return JSON.stringify({
    logId,
    userId: user.userId,
    payloadId: payload.id,
    payloadName: payload.name,
    currentPayloadOwnerId: payload.owner.userId,
    actionAttempted: action,
    result,
    resultReason: reason,
    logTimestamp: new Date(at).toISOString().slice(0, -1),
    userNetwork: network,
    userLastNameFirstName: user.name,
    userEmailAddress: user.email,
    currentOwnerLastNameFirstName: payload.owner.name,
    currentOwnerEmailAddress: payload.owner.email,
  });
}

/** The fields of `eventsOfRecords`, without the way over the documents: a month takes seconds, not minutes. */
export function eventOfAction({ at, combination, user, payload, network }: CompanyAction, logId: number): DetectionEvent {
  const [, result] = combination;
  const [latitude, longitude] = network.latLong.split(',').map((degrees) => String(Number(degrees)));
  return {
    at,
    uid: String(logId),
    fields: {
      'event.code': combination.join(':'),
      'dpas.result': result,
      'user.id': user.userId,
      'user.email': user.email,
      'dpas.payload.id': payload.id,
      'file.name': payload.name,
      'file.uid': payload.owner.userId,
      'host.hostname': network.machineName,
      'source.ip': network.ipAddress,
      'source.as.organization.name': network.serviceProvider,
      'source.geo.location.lat': latitude,
      'source.geo.location.lon': longitude,
    },
  };
}

/** @param records  texts of records, each once */
export function eventsOfRecords(records: readonly string[]): readonly DetectionEvent[] {
  const events = records.flatMap((text) => {
    const record = readText(text);
    const line = encode(normalize({ record, uid: uidOf(record), received: 0 })).toString();
    return eventOf(JSON.parse(line), fields) ?? [];
  });
  return events.sort((a, b) => a.at - b.at);
}

interface Weeks {
  readonly company: Company;
  readonly actions: readonly CompanyAction[];
  readonly events: readonly DetectionEvent[];
  readonly ledger: readonly DetectionEvent[];
  readonly lists: Parameters<typeof evaluate>[2];
  readonly from: number;
  readonly to: number;
}

/** Four shown weeks, and the five before them, which rules with a history know. */
export function weeksOf(seed: string): Weeks {
  const company = new Company(seed, shownFrom - knownDays * day, knownDays + shownDays);
  const actions = company.month();
  const lists = parseLists(JSON.stringify(company.lists()), 'the lists of the company', rules);
  const to = shownFrom + shownDays * day;
  return {
    company,
    actions,
    events: actions.map((action, i) => eventOfAction(action, i + 1)),
    ledger: ledgerOf(seed, to),
    lists,
    from: shownFrom,
    to,
  };
}

/** A window of 15 minutes after the other. In one night, the maintenance of the service takes longer than an hour, and leaves a gap. */
function ledgerOf(seed: string, to: number): readonly DetectionEvent[] {
  const maintenance = shownFrom + Math.floor(randomOf(`${seed}/maintenance`)() * shownDays) * day + 2 * 3_600_000;
  const events: DetectionEvent[] = [];
  for (let at = shownFrom - day; at <= to; at += 900_000) {
    const isDown = at > maintenance && at <= maintenance + 4_500_000;
    const action = isDown ? undefined : at === maintenance ? 'window-gap' : 'window-proven';
    if (action) events.push({ at, uid: `ledger-${String(at)}`, fields: { 'event.action': action, 'dpas.ledger.source': 'production' } });
  }
  return events;
}

/** By rule, the times of its firings in the shown weeks. */
export function firingsOf({ events, ledger, lists, from, to }: Weeks): ReadonlyMap<string, readonly number[]> {
  return new Map(
    rules.map((rule) => {
      const alerts = evaluate(rule, rule.dataset === 'ledger' ? ledger : events, lists, to);
      return [rule.id, alerts.map(({ at }) => at).filter((at) => at >= from && at < to)];
    }),
  );
}

/**
 * What a SOC would call too loud, each with its numbers: a rule of severity high more than twice in the four weeks, one of severity medium
 * more than once in a week, all rules together more than three times on a day.
 */
export function overBars(firings: ReadonlyMap<string, readonly number[]>, from: number): readonly string[] {
  const alerting = rules.filter(({ isBuildingBlock }) => !isBuildingBlock);
  const counts = (times: readonly number[], length: number): number[] =>
    Array.from({ length: shownDays / length }, (_, i) => times.filter((at) => Math.floor((at - from) / (length * day)) === i).length);
  const perRule = alerting.flatMap(({ id, severity }) => {
    const times = firings.get(id) ?? [];
    const weeks = counts(times, 7);
    const isOver = (severity === 'high' && times.length > 2) || (severity === 'medium' && Math.max(...weeks) > 1);
    return isOver ? [`${id} (${severity}): ${weeks.join(', ')} by week`] : [];
  });
  const perDay = counts(
    alerting.flatMap(({ id }) => firings.get(id) ?? []),
    1,
  );
  return [...perRule, ...perDay.flatMap((count, i) => (count > 3 ? [`day ${String(i + 1)}: ${String(count)} alerts`] : []))];
}

/** A row a rule: severity, firings in all, and on each day. */
export function firingsText(firings: ReadonlyMap<string, readonly number[]>, from: number): string {
  const perDay = (times: readonly number[]): number[] =>
    Array.from({ length: shownDays }, (_, i) => times.filter((at) => Math.floor((at - from) / day) === i).length);
  const row = (name: string, kind: string, times: readonly number[]): string =>
    `${name.padEnd(28)} ${kind.padEnd(8)} ${String(times.length).padStart(5)}  ${perDay(times)
      .map((count) => String(count || '.').padStart(3))
      .join('')}`;
  const alerting = rules.filter(({ isBuildingBlock }) => !isBuildingBlock);
  return [
    ...rules.map(({ id, severity, isBuildingBlock }) => row(id, isBuildingBlock ? 'block' : severity, firings.get(id) ?? [])),
    row(
      'all but building blocks',
      '',
      alerting.flatMap(({ id }) => firings.get(id) ?? []),
    ),
  ].join('\n');
}
