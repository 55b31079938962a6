/** Runs a detection rule of content/kibana by its schedule, every five minutes, as Kibana does, with the evaluators of KQL, EQL and ES|QL. */
import { readFileSync } from 'node:fs';
import type { DetectionEvent } from '../../../src/detections/evaluate.ts';
import { eql } from './eql.ts';
import { esql } from './esql.ts';
import type { Row } from './events.ts';
import { kql } from './kql.ts';

export interface KibanaRule {
  readonly rule_id: string;
  readonly type: string;
  readonly query: string;
  readonly from: string;
  readonly filters?: readonly { readonly query: { readonly range: { readonly '@timestamp': { readonly gte: string } } } }[];
  readonly alert_suppression?: {
    readonly group_by: readonly string[];
    readonly duration: { readonly value: number; readonly unit: string };
  };
  readonly threshold?: {
    readonly field: readonly string[];
    readonly value: number;
    readonly cardinality: readonly { readonly field: string; readonly value: number }[];
  };
}

/** The rule of content/kibana that is written from a rule of content/rules. */
export function kibanaForm(id: string): KibanaRule {
  const found = ['detection-rules', 'detection-rules-ledger']
    .flatMap((name) =>
      readFileSync(new URL(`../../../content/kibana/${name}.ndjson`, import.meta.url), 'utf8')
        .trimEnd()
        .split('\n'),
    )
    .map((line) => JSON.parse(line) as KibanaRule)
    .find(({ rule_id }) => rule_id === `dpas-${id}`);
  if (!found) throw new Error(`no form of ${id} for Kibana`);
  return found;
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000 };
const interval = 5 * 60_000;
/** Before the last day of a long sample, whose events are hours apart, every twelfth run is enough. */
const coarse = 12;
const day = 26 * 3_600_000;

/** @param text `now-65m` @returns ms */
export function msOf(text: string): number {
  const [, count, unit = ''] = /^now-(\d+)([mh])$/.exec(text) ?? [];
  return Number(count) * (units[unit] ?? NaN);
}

/** The document of an event of a sample, with the names of its people and things, and the time of its arrival. */
export function documentOf({ at, uid, fields }: DetectionEvent, arrived: number): Row {
  const [user, file] = [fields['user.id'], fields['dpas.payload.id']];
  const { 'source.geo.location.lat': latitude, 'source.geo.location.lon': longitude } = fields;
  return {
    ...fields,
    '@timestamp': new Date(at).toISOString(),
    'event.ingested': new Date(arrived).toISOString(),
    'dpas.uid': uid,
    'dpas.owner.id': fields['file.uid'],
    _id: uid,
    ...(user === undefined ? {} : { 'user.name': `Name of ${user}`, 'user.email': `${user}@example.com`, 'source.ip': '192.0.2.1' }),
    ...(file === undefined ? {} : { 'file.name': `${file}.docx`, 'host.name': fields['host.hostname'] }),
    ...(latitude === undefined || longitude === undefined ? {} : { 'source.geo.location': `POINT (${longitude} ${latitude})` }),
  };
}

type Lists = Readonly<Record<string, readonly Row[]>>;
type Find = (rows: readonly Row[], run: number, lists: Lists) => readonly Row[];

/** What a run finds: rows of alerts. */
function finderOf(rule: KibanaRule): Find {
  const ages = (rule.filters ?? []).map(({ query }) => msOf(query.range['@timestamp'].gte));
  const recent = (rows: readonly Row[], run: number): readonly Row[] =>
    rows.filter((row) => ages.every((age) => Date.parse(String(row['@timestamp'])) >= run - age));
  switch (rule.type) {
    case 'query': {
      const { matches } = kql(rule.query);
      return (rows, run) => recent(rows, run).filter(matches);
    }
    case 'eql': {
      const query = eql(rule.query);
      return (rows, run) => query.matches(recent(rows, run));
    }
    case 'esql': {
      const query = esql(rule.query);
      return (rows, run, lists) => query.run(rows, run, lists);
    }
    case 'threshold':
      return (rows, run) => overThreshold(rule, recent(rows, run));
    default:
      throw new Error(`no evaluator of ${rule.type}`);
  }
}

/** A row of each group with at least as many events, and distinct values, as the threshold. */
function overThreshold({ query, threshold }: KibanaRule, rows: readonly Row[]): readonly Row[] {
  if (!threshold) throw new Error('a threshold rule without its threshold');
  const keyed = rows.filter(kql(query).matches).filter((row) => threshold.field.every((field) => row[field] !== undefined));
  const groups = Map.groupBy(keyed, (row) => JSON.stringify(threshold.field.map((field) => row[field])));
  return [...groups.values()].flatMap((group) => {
    const isOver = threshold.cardinality.every(({ field, value }) => new Set(group.map((row) => row[field])).size >= value);
    const [first] = group;
    return first && group.length >= threshold.value && isOver ? [first] : [];
  });
}

/**
 * The alerts of all runs, with the time of the run as `run`, ms. Kibana makes one alert of an event or a sequence that several runs find, and suppresses further alerts of a group.
 * @param rows  with `event.ingested`
 * @param isLicensed  whether alert suppression, a paid function, is active
 * @param runs  the times of the runs, ms, if they are not those of the schedule
 */
export function alertsOf(
  rule: KibanaRule,
  rows: readonly Row[],
  lists: Lists,
  { isLicensed = true, runs }: { readonly isLicensed?: boolean; readonly runs?: Iterable<number> } = {},
): readonly Row[] {
  const arrivals = rows.map((row) => ({ row, arrived: Date.parse(String(row['event.ingested'])) }));
  const { group_by: groups = [], duration } = rule.alert_suppression ?? {};
  const suppressMs = isLicensed && duration ? duration.value * (units[duration.unit] ?? NaN) : 0;
  const find = finderOf(rule);
  const opened = new Map<string, number>();
  const known = new Set<unknown>();
  const alerts: Row[] = [];
  for (const run of runs ?? runTimes(arrivals, interval, rule.query.includes('Esql.newest'))) {
    const seen = arrivals.filter(({ arrived }) => arrived <= run && arrived > run - msOf(rule.from)).map(({ row }) => row);
    for (const alert of find(seen, run, lists)) {
      if (alert['_id'] !== undefined && rule.type !== 'threshold' && known.has(alert['_id'])) continue;
      known.add(alert['_id']);
      const key = JSON.stringify(groups.map((field) => alert[field]));
      if (run - (opened.get(key) ?? -Infinity) < suppressMs) continue;
      opened.set(key, run);
      alerts.push({ ...alert, run });
    }
  }
  return alerts;
}

/**
 * The times of the runs from the first arrival until shortly after the last one, ms. Those that nothing arrived before are left out.
 * @param isOfSilence  whether a run may find something without an arrival
 */
export function* runTimes(arrivals: readonly { readonly arrived: number }[], every: number, isOfSilence: boolean): Generator<number> {
  const times = arrivals.map(({ arrived }) => arrived);
  const last = Math.max(...times) + 3 * every;
  for (let run = Math.ceil(Math.min(...times) / every) * every; run <= last; run += run < last - day ? coarse * every : every)
    if (isOfSilence || times.some((arrived) => arrived <= run && arrived > run - 6 * every)) yield run;
}
