/** How often a rule fires in a history, and how often it would with another threshold. Pure, except for the text of the lists. */
import { parse } from 'yaml';
import { z } from 'zod';
import { WaybillError } from '../errors/errors.ts';
import { evaluating, type Alert, type DetectionEvent, type Lists, type Steps } from './evaluate.ts';
import type { Detection, Rule } from './rule.ts';

export interface Trial {
  readonly rule: Rule;
  readonly alerts: readonly Alert[];
  /** What the rule counts up to, and the alerts at this and at other values. Empty: the rule has no threshold. */
  readonly thresholds: readonly { readonly threshold: number; readonly alerts: number }[];
}

/** @param events  in the order of their times, each record once @param now  the end of the history, ms */
export function* tryRule(rule: Rule, events: readonly DetectionEvent[], lists: Lists, now: number): Steps<Trial> {
  const alerts = yield* evaluating(rule, events, lists, now);
  const present = thresholdOf(rule.detect);
  const others = present === undefined ? [] : [present / 2, present * 0.75, present, present * 1.5, present * 2];
  const thresholds = [];
  for (const threshold of new Set(others.map((each) => Math.max(Math.min(2, present ?? 2), Math.round(each))))) {
    const changed = { ...rule, detect: withThreshold(rule.detect, threshold) };
    const found = threshold === present ? alerts : yield* evaluating(changed, events, lists, now);
    thresholds.push({ threshold, alerts: found.length });
  }
  return { rule, alerts, thresholds };
}

/** Events or values, kilometres, or minutes of silence. Undefined: the rule compares with none. */
export function thresholdOf(detect: Detection): number | undefined {
  if (detect.kind === 'sequence') {
    const times = detect.steps[0]?.times ?? 1;
    return detect.across?.threshold ?? (times > 1 ? times : undefined);
  }
  if (detect.kind === 'distance') return detect.km;
  if (detect.kind === 'silence') return detect.window / 60_000;
  return 'threshold' in detect ? detect.threshold : undefined;
}

function withThreshold(detect: Detection, threshold: number): Detection {
  if (detect.kind === 'sequence') {
    if (detect.across) return { ...detect, across: { ...detect.across, threshold } };
    return { ...detect, steps: detect.steps.map((step, i) => (i === 0 ? { ...step, times: threshold } : step)) };
  }
  if (detect.kind === 'distance') return { ...detect, km: threshold };
  if (detect.kind === 'silence') return { ...detect, window: threshold * 60_000 };
  return 'threshold' in detect ? { ...detect, threshold } : detect;
}

/** The distinct values of fields in the events of an alert, in the order of the events; of each event the first field that it has. */
export function valuesOf({ events }: Pick<Alert, 'events'>, ...fields: readonly string[]): readonly string[] {
  return [...new Set(events.flatMap((event) => fields.map((field) => event.fields[field]).find((value) => value !== undefined) ?? []))];
}

const hours = z
  .string()
  .regex(/^([01]?\d|2[0-4])-([01]?\d|2[0-4])$/, 'two hours in UTC such as 22-5')
  .transform((text) => {
    const [from = 0, to = 0] = text.split('-').map(Number);
    return { from, to };
  });
const account = z.strictObject({ hours: hours.optional(), hosts: z.array(z.string()).optional() });
// A list of values is short for values without hours and hosts.
const accounts = z.preprocess(
  (value) => (Array.isArray(value) ? Object.fromEntries(value.map((each) => [String(each), {}])) : value),
  z.record(z.string(), account),
);
const lists = z.record(
  z.string(),
  accounts.transform((entries) => new Map(Object.entries(entries))),
);

/**
 * Reads exception lists: by the name of a list, its values, or for service accounts the hours and hosts of each.
 * @param rules  use the lists
 * @throws WaybillError `usage` for other text, and for a list that no rule uses
 */
export function parseLists(text: string, path: string, rules: readonly Rule[]): Lists {
  const failed = (reason: string): WaybillError => new WaybillError('usage', `cannot use --lists "${path}": ${reason}`);
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    throw failed(cause instanceof Error ? cause.message : String(cause));
  }
  const read = lists.safeParse(value);
  if (!read.success) throw failed(read.error.issues.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; '));
  const used = new Set(rules.flatMap(listsOf));
  const unused = Object.keys(read.data).find((name) => !used.has(name));
  if (unused !== undefined) throw failed(`no rule uses a list "${unused}"; they use ${[...used].sort().join(', ')}`);
  return read.data;
}

function listsOf({ detect, exceptions }: Rule): readonly string[] {
  const conditions = detect.kind === 'sequence' ? detect.steps.flatMap(({ where }) => where) : detect.where;
  return [...Object.values(exceptions), ...conditions.flatMap(({ outside }) => outside ?? [])];
}
