/**
 * The detection rules of `content/rules`: one YAML file a rule, the only source of the rules for Kibana, Splunk and Sigma. A rule reads the
 * ECS documents of docs/formats.md, counts by the time of the event, and counts each record once.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { WaybillError } from '../errors/errors.ts';

const field = z.string().regex(/^[@a-z][\w.]*$/);
const sentence = z.string().trim().min(1);
const name = z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/);
const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30s`, `15m`, `1h`, `14d`; becomes milliseconds. */
const duration = z
  .string()
  .regex(/^\d+[smhd]$/, 'a number with s, m, h or d')
  .transform((text) => Number(text.slice(0, -1)) * units[text.at(-1) as keyof typeof units]);

/** All members of a condition hold. A field has one of its values; `*` stands for any value. */
const condition = z.strictObject({
  fields: z.record(field, z.array(z.string()).min(1)).default({}),
  /** Two fields whose values differ. Both are present. */
  differ: z.tuple([field, field]).optional(),
  /** The user is in this list of accounts, and the entry permits neither the hour nor the host of the event. */
  outside: name.optional(),
});

/** One of the conditions holds. */
const where = z.union([condition.transform((one) => [one]), z.array(condition).min(1)]);

/** Distinct values of a field, or events, of a group within the window. */
const counting = { group: z.array(field).min(1), window: duration, threshold: z.int().min(2) };

const kinds = [
  /** Each event is an alert, but within an hour one for the group. */
  z.strictObject({ kind: z.literal('single'), where, group: z.array(field).min(1).default(['user.id', 'dpas.payload.id']) }),
  z.strictObject({ kind: z.literal('count'), where, ...counting }),
  z.strictObject({ kind: z.literal('distinct'), where, ...counting, distinct: field }),
  /** As `distinct`, and more than `factor` times the events of an average window of the history before it. */
  z.strictObject({ kind: z.literal('baseline'), where, ...counting, distinct: field, history: duration, factor: z.number().min(1) }),
  /**
   * Steps in their order, the first one `times` times. `across` counts the distinct groups in which one user took the last step, and makes
   * one alert of them.
   */
  z.strictObject({
    kind: z.literal('sequence'),
    group: z.array(field).min(1),
    window: duration,
    /** The name is a verb, such as `denied`: an alert lists who did it. */
    steps: z.array(z.strictObject({ name: z.string().regex(/^[a-z]+$/), where, times: z.int().min(1).default(1) })).min(2),
    across: z.strictObject({ by: field, distinct: field, threshold: z.int().min(1) }).optional(),
  }),
  /** Every field of `of` has a value that the group did not have within the history. The history of the group is longer than `known`. */
  z.strictObject({
    kind: z.literal('first-seen'),
    where,
    group: z.array(field).min(1),
    of: z.array(field).min(1),
    history: duration,
    known: duration,
  }),
  /** Two events of a group within the window, more than `km` kilometres apart, and farther than one gets at `kmPerHour`. */
  z.strictObject({
    kind: z.literal('distance'),
    where,
    group: z.array(field).min(1),
    window: duration,
    km: z.int().min(1),
    kmPerHour: z.int().min(1),
  }),
  /** No event of a group for longer than the window. */
  z.strictObject({ kind: z.literal('silence'), where, group: z.array(field).min(1), window: duration }),
] as const;

/** Events of a sample. `each` for a user, a file or an owner: another one for every repetition. */
const act = z.strictObject({
  code: z.string(),
  /** After the start of the sample. */
  at: duration.default(0),
  times: z.int().min(1).default(1),
  every: duration.default(0),
  user: z.string().default('ann'),
  file: z.string().default('plan'),
  owner: z.string().default('olga'),
  host: z.string().default('laptop'),
  provider: z.string().default('Example Net'),
  /** `latitude,longitude`. */
  place: z.string().optional(),
});

const rule = z.strictObject({
  id: name,
  title: sentence,
  dataset: z.enum(['audit', 'ledger']).default('audit'),
  /** The risk score follows from it: 21, 47 or 73. */
  severity: z.enum(['low', 'medium', 'high']),
  /** Techniques of MITRE ATT&CK, to the sub-technique. */
  attack: z.array(z.string().regex(/^T\d{4}(\.\d{3})?$/)).default([]),
  /** A basis for other rules, which alone is too frequent for an alert. */
  isBuildingBlock: z.boolean().default(false),
  meaning: sentence,
  next: z.array(sentence).min(1),
  falsePositives: z.array(sentence).min(1),
  /** Lists of values that do not count, by field. */
  exceptions: z.record(field, name).default({}),
  detect: z.discriminatedUnion('kind', kinds),
  /** Each list is one sample. */
  fires: z.array(z.array(act).min(1)).min(1),
  quiet: z.array(z.array(act).min(1)).min(1),
});

export type Rule = z.output<typeof rule>;
export type Detection = Rule['detect'];
export type DetectionOf<Kind extends Detection['kind']> = Extract<Detection, { kind: Kind }>;
export type Condition = z.output<typeof condition>;
export type Act = z.output<typeof act>;

/** The rules of the files `*.yaml` of a directory, in the order of their ids. @throws WaybillError as `parseRule` does, and for an id that two rules have */
export function readRules(directory: URL): readonly Rule[] {
  const rules = new Map<string, Rule>();
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.yaml'))) {
    const read = parseRule(readFileSync(new URL(file, directory), 'utf8'), file);
    if (rules.has(read.id)) throw new WaybillError('config_invalid', `"${file}" has the id "${read.id}" of another detection rule`);
    rules.set(read.id, read);
  }
  return [...rules.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Reads a rule.
 * @param path  for messages
 * @throws WaybillError `config_invalid` with the file and each wrong member
 */
function parseRule(text: string, path: string): Rule {
  const read = rule.safeParse(parse(text));
  if (read.success) return read.data;
  const wrong = read.error.issues.map(({ path: at, message }) => `${at.join('.')}: ${message}`);
  throw new WaybillError('config_invalid', `"${path}" is no detection rule: ${wrong.join('; ')}`);
}
