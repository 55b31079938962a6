/**
 * content/kibana: the detection rules match Kibana's attributes, use only mapped fields, and fire
 * on the sequences of their Sigma form.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { poorest } from '../../support/normalize/records.ts';
import { eql } from '../../support/content/eql.ts';
import type { Happening, Row } from '../../support/content/events.ts';
import { eventOf, recordFor, start } from '../../support/content/events.ts';
import { esql } from '../../support/content/esql.ts';
import { auditPattern, detectionRules, thresholdRules } from '../../support/content/kibana-rules.ts';
import { kql } from '../../support/content/kql.ts';
import { mappedFields } from '../../support/content/mapped-fields.ts';
import { allCodes, bursts, burstSequences, deniedThenAllowed, singleEvents, spread } from '../../support/content/sequences.ts';

/**
 * Attributes of a rule, written after elastic/kibana 9.x, x-pack/solutions/security/plugins/security_solution/common/api/detection_engine/
 * model/rule_schema/{rule_schemas,common_attributes}.schema.yaml and specific_attributes/threshold_attributes.schema.yaml.
 */
const reference = z.strictObject({ id: z.string(), name: z.string(), reference: z.url() });
const common = {
  rule_id: z.string().regex(/^dpas-[a-z-]+$/),
  name: z.string().min(1),
  description: z.string().min(1),
  severity: z.enum(['low', 'medium', 'high', 'critical']),
  risk_score: z.int().min(0).max(100),
  enabled: z.literal(false),
  version: z.int().min(1),
  author: z.array(z.string()),
  license: z.string(),
  tags: z.array(z.string()),
  interval: z.string().regex(/^\d+[smh]$/),
  from: z.string().regex(/^now-\d+[smh]$/),
  to: z.literal('now'),
  timestamp_override: z.literal('event.ingested'),
  false_positives: z.array(z.string()).min(1),
  note: z.string().min(1),
  building_block_type: z.literal('default').optional(),
  threat: z.array(z.strictObject({ framework: z.literal('MITRE ATT&CK'), tactic: reference, technique: z.array(reference) })),
};
const index = z.array(z.literal(auditPattern));
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
const timeFilter = z.strictObject({
  meta: z.strictObject({ alias: z.string(), disabled: z.literal(false), negate: z.literal(false) }),
  query: z.strictObject({ range: z.strictObject({ '@timestamp': z.strictObject({ gte: z.string().regex(/^now-\d+[mh]$/) }) }) }),
});
const ruleSchema = z.discriminatedUnion('type', [
  z.strictObject({
    ...common,
    type: z.literal('query'),
    language: z.literal('kuery'),
    index,
    query: z.string(),
    filters: z.tuple([timeFilter]).optional(),
  }),
  z.strictObject({
    ...common,
    type: z.literal('eql'),
    language: z.literal('eql'),
    index,
    query: z.string(),
    filters: z.tuple([timeFilter]),
  }),
  z.strictObject({ ...common, type: z.literal('esql'), language: z.literal('esql'), query: z.string(), alert_suppression: suppression }),
  z.strictObject({
    ...common,
    type: z.literal('threshold'),
    language: z.literal('kuery'),
    index,
    query: z.string(),
    filters: z.tuple([timeFilter]),
    threshold,
  }),
]);
type Rule = z.output<typeof ruleSchema>;

const pathOf = (name: string): string => fileURLToPath(new URL(`../../../content/kibana/${name}`, import.meta.url));
const rulesIn = (text: string): readonly Rule[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => ruleSchema.parse(JSON.parse(line)));

test('the files match the table', async () => {
  await expect(detectionRules).toMatchFileSnapshot(pathOf('detection-rules.ndjson'));
  await expect(thresholdRules).toMatchFileSnapshot(pathOf('detection-rules-threshold.ndjson'));
});

const rules = rulesIn(detectionRules);
const thresholds = rulesIn(thresholdRules);
const named = (name: string): Rule => {
  const found = rules.find(({ rule_id }) => rule_id === `dpas-${name.replaceAll('_', '-')}`);
  if (!found) throw new Error(`no rule ${name}`);
  return found;
};

describe('the attributes', () => {
  test('have unique ids, risk by severity, and a reach of at least interval plus window', () => {
    const all = [...rules, ...thresholds];
    expect(new Set(all.map(({ rule_id }) => rule_id)).size).toBe(all.length);
    for (const { severity, risk_score } of all) expect(risk_score).toBe({ low: 21, medium: 47, high: 73, critical: 99 }[severity]);
    for (const [name, { window }] of Object.entries(bursts)) expect(minutesOf(named(name).from)).toBeGreaterThanOrEqual(5 + window / 60);
    expect(minutesOf(named('open_denied_then_allowed').from)).toBeGreaterThanOrEqual(65);
  });

  test('use only mapped fields', () => {
    const fieldsOf = (rule: Rule): readonly string[] => {
      if (rule.type === 'esql') return esql(rule.query).fields;
      if (rule.type === 'eql') return [...eql(rule.query).keys, 'event.code'];
      const counted = rule.type === 'threshold' ? [...rule.threshold.field, ...rule.threshold.cardinality.map(({ field }) => field)] : [];
      return [...kql(rule.query).fields, ...counted];
    };
    // The field that the operator's pipeline adds, as the description of the rule says.
    const unmapped = [...rules, ...thresholds].flatMap((rule) => fieldsOf(rule).filter((field) => !mappedFields.has(field)));
    expect(new Set(unmapped)).toEqual(new Set(['source.geo.country_iso_code']));
    expect(named('two_countries').description).toContain('source.geo.country_iso_code');
  });
});

const eventsOf = (happenings: readonly Happening[]): readonly Row[] => happenings.map((happening) => eventOf(recordFor(happening)));
const now = start + 4 * 3600_000;

describe('the rules on single events', () => {
  const single = rules.filter(({ type, rule_id }) => type === 'query' && rule_id !== 'dpas-unexpected');
  test.each(single.map((rule) => [rule.rule_id, rule.query] as const))('%s fires on the outcomes of its Sigma form', (id, query) => {
    const found = allCodes.filter((code) => eventsOf([{ code, at: 0 }]).some(kql(query).matches));
    expect(found).toEqual(singleEvents[id.replace(/^dpas-/, '').replaceAll('-', '_')]);
  });

  test('any_denied also finds an unknown denial', () => {
    expect(kql(named('any_denied').query).matches(eventOf({ ...poorest, actionAttempted: 'Print', result: 'AccessDenied' }))).toBe(true);
  });

  test.each([
    [{ ...poorest, resultReason: 'NewReason' }, true],
    [{ ...poorest, userId: undefined }, true],
    [{ ...poorest, payloadName: 7 }, true],
    ['"a text"', true],
    [poorest, false],
  ])('unexpected: %j gives %s', (record, fires) => {
    expect(kql(named('unexpected').query).matches(eventOf(record))).toBe(fires);
  });
});

describe('the rules on bursts', () => {
  const sequences = Object.entries(bursts).flatMap(([name, burst]) =>
    burstSequences(burst, 2 * burst.window).map((sequence) => [name, sequence.name, sequence] as const),
  );
  test.each(sequences)('%s: %s', (name, _, { happenings, fires }) => {
    expect(esql(named(name).query).run(eventsOf(happenings), now)).toHaveLength(fires ? 1 : 0);
  });

  test.each(Object.entries(bursts))('%s does not count all events without a user as one user', (name, burst) => {
    const rows = spread(burst, burst.count, burst.window).map((each) => eventOf({ ...recordFor(each), userId: undefined }));
    expect(esql(named(name).query).run(rows, now)).toEqual([]);
  });

  test.each(Object.entries(bursts))('%s finds a burst at any position relative to bucket edges, and reports it once', (name, burst) => {
    const query = esql(named(name).query);
    for (let offset = 0; offset < 2 * burst.window; offset += 60)
      expect(query.run(eventsOf(spread(burst, burst.count, burst.window, offset)), now), `offset ${offset}`).toHaveLength(1);
  });

  test('two_countries counts the countries of a user', () => {
    const [first = {}, second = {}] = eventsOf(spread({ codes: ['Decrypt:AccessGranted:Success'] }, 2, 3600));
    const query = esql(named('two_countries').query);
    const from = (row: Row, country: string): Row => ({ ...row, 'source.geo.country_iso_code': country });
    expect(query.run([from(first, 'CH'), from(second, 'JP')], now)).toMatchObject([{ 'user.id': 'u-1', counted: 2 }]);
    expect(query.run([from(first, 'CH'), from(second, 'CH')], now)).toEqual([]);
    expect(query.run([from(first, 'CH'), second], now)).toEqual([]);
  });
});

describe('open_denied_then_allowed', () => {
  test.each(deniedThenAllowed.map((sequence) => [sequence.name, sequence] as const))('%s', (_, { happenings, fires }) => {
    expect(eql(named('open_denied_then_allowed').query).matches(eventsOf(happenings))).toHaveLength(fires ? 1 : 0);
  });
});

interface Arrival {
  readonly row: Row;
  /** ms */
  readonly arrived: number;
}

/**
 * The alerts of all runs of a rule: each sees the events that arrived within its reach, and
 * suppresses a user for a time.
 */
function alertsOf(rule: Rule & { readonly type: 'esql' }, arrivals: readonly Arrival[], from: number, to: number): number {
  const query = esql(rule.query);
  const { value, unit } = rule.alert_suppression.duration;
  const suppressMs = value * { s: 1e3, m: 60e3, h: 3600e3 }[unit];
  const last = new Map<unknown, number>();
  let alerts = 0;
  for (let run = from; run <= to; run += 300_000) {
    const seen = arrivals.filter(({ arrived }) => arrived <= run && arrived > run - minutesOf(rule.from) * 60_000).map(({ row }) => row);
    for (const { 'user.id': user } of query.run(seen, run)) {
      if (run - (last.get(user) ?? -Infinity) < suppressMs) continue;
      last.set(user, run);
      alerts += 1;
    }
  }
  return alerts;
}

type ThresholdRule = Rule & { readonly type: 'threshold' };

function thresholdOf(name: string): ThresholdRule {
  const found = thresholds.find(({ rule_id }) => rule_id === `dpas-${name.replaceAll('_', '-')}-threshold`);
  if (found?.type !== 'threshold') throw new Error(`no threshold form of ${name}`);
  return found;
}

/** The users with at least as many events, or distinct values, as the threshold. */
function usersOver({ query, threshold }: ThresholdRule, rows: readonly Row[]): readonly unknown[] {
  expect(threshold.field).toEqual(['user.id']);
  const matches = kql(query).matches;
  const groups = Map.groupBy(rows.filter(matches), (row) => row['user.id']);
  return [...groups].flatMap(([user, group]) => {
    const isOver = threshold.cardinality.every(({ field, value }) => new Set(group.map((row) => row[field])).size >= value);
    return group.length >= threshold.value && isOver ? [user] : [];
  });
}

describe('the threshold form', () => {
  const sequences = Object.entries(bursts).flatMap(([name, burst]) =>
    // A threshold rule counts over its reach: the window plus the interval of the rule.
    burstSequences(burst, burst.window + 300).map((sequence) => [name, sequence.name, sequence] as const),
  );
  test.each(sequences)('%s: %s', (name, _, { happenings, fires }) => {
    const rule = thresholdOf(name);
    const reach = minutesOf(rule.from) * 60;
    const arrivals = happenings.map((happening) => ({ row: eventOf(recordFor(happening)), arrived: happening.at + 12 }));
    const last = Math.max(...arrivals.map(({ arrived }) => arrived));
    // With any offset between runs and burst.
    for (let first = 0; first < 300; first += 20) {
      const users = new Set<unknown>();
      for (let run = first; run <= last + 300; run += 300)
        for (const user of usersOver(rule, arrivals.filter(({ arrived }) => arrived <= run && arrived > run - reach).map(({ row }) => row))) users.add(user); // prettier-ignore
      expect(users.size, `runs from second ${first} on`).toBe(fires ? 1 : 0);
    }
  });
});

describe('arrival', () => {
  const esqlRule = (name: string): Rule & { readonly type: 'esql' } => {
    const rule = named(name);
    if (rule.type !== 'esql') throw new Error(`${name} is not an ES|QL rule`);
    return rule;
  };
  const hour = 3600_000;

  test.each(Object.entries(bursts))('%s: a backfill of 30 days in five minutes fires nothing; by arrival alone it would', (name, burst) => {
    // Normal work: one event in five windows.
    const count = Math.floor((30 * 86_400) / (5 * burst.window));
    const rows = eventsOf(spread(burst, count, 30 * 86_400, -30 * 86_400));
    const arrivals = rows.map((row, index) => ({ row, arrived: start + Math.floor((index / rows.length) * 300_000) }));
    expect(alertsOf(esqlRule(name), arrivals, start, start + 3 * hour)).toBe(0);
    const threshold = thresholdOf(name);
    expect(usersOver(threshold, rows)).toEqual(['u-1']);
    // The threshold form ignores what is older than a day.
    expect(usersOver(threshold, recentOf(threshold.filters, rows, start + 86_400_000))).toEqual([]);
  });

  test('the rules on single events, except the building block, ignore a backfill of 30 days, and find a late event', () => {
    const single = rules.filter((rule) => rule.type === 'query');
    expect(single).toHaveLength(6);
    for (const rule of single) {
      const isBlock = rule.building_block_type !== undefined;
      expect(isBlock).toBe(rule.rule_id === 'dpas-any-denied');
      const rows = [...eventsOf(allCodes.map((code) => ({ code, at: 0 }))), eventOf({ ...recordFor({ code: 'New:New:New', at: 0 }) })];
      const found = (ageHours: number): boolean =>
        recentOf(rule.filters ?? [], rows, start + ageHours * hour).some(kql(rule.query).matches);
      expect([0, 0.5, 20, 25, 30 * 24].map(found), rule.rule_id).toEqual([true, true, true, isBlock, isBlock]);
    }
  });

  test.each(Object.entries(bursts))(
    '%s: a burst that arrives at once, 30 minutes or 20 hours late fires once; after 25 hours not',
    (name, burst) => {
      const rows = eventsOf(spread(burst, burst.count, burst.window));
      const late = (delay: number): readonly Arrival[] =>
        rows.map((row) => ({ row, arrived: Math.max(start + burst.window * 1000 + delay, 0) }));
      for (const delay of [0, hour / 2, 20 * hour])
        expect(alertsOf(esqlRule(name), late(delay), start, start + 30 * hour), `${delay}`).toBe(1);
      expect(alertsOf(esqlRule(name), late(25 * hour), start, start + 30 * hour)).toBe(0);
    },
  );

  test('open_denied_then_allowed: a sequence that arrives 30 minutes or 20 hours late fires; a backfill of 30 days does not', () => {
    const rule = named('open_denied_then_allowed');
    if (rule.type !== 'eql') throw new Error('not an EQL rule');
    const [happenings] = deniedThenAllowed.filter(({ fires }) => fires).map((sequence) => sequence.happenings);
    const rows = eventsOf(happenings ?? []);
    const isFound = (late: number): boolean => eql(rule.query).matches(recentOf(rule.filters, rows, start + hour + late)).length > 0;
    expect([0, hour / 2, 20 * hour, 25 * hour, 30 * 24 * hour].map(isFound)).toEqual([true, true, true, false, false]);
  });

  test.each(Object.entries(bursts))('%s: a burst that arrives as it happens fires once', (name, burst) => {
    const rows = eventsOf(spread(burst, burst.count, burst.window));
    const arrivals = rows.map((row) => ({ row, arrived: Date.parse(String(row['@timestamp'])) + 12_000 }));
    expect(alertsOf(esqlRule(name), arrivals, start, start + 4 * hour)).toBe(1);
  });
});

/** The events that the filters of a rule leave in a run. @param run ms since the epoch */
function recentOf(filters: readonly z.output<typeof timeFilter>[], rows: readonly Row[], run: number): readonly Row[] {
  const earliest = filters.map(({ query }) => run - minutesOf(query.range['@timestamp'].gte) * 60_000);
  return rows.filter((row) => earliest.every((ms) => Date.parse(String(row['@timestamp'])) >= ms));
}

function minutesOf(from: string): number {
  const [, count, unit] = /^now-(\d+)([mh])$/.exec(from) ?? [];
  return Number(count) * (unit === 'h' ? 60 : 1);
}
