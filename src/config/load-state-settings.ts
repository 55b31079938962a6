/** Loads the part of a configuration that a report on the state needs. */
import { z } from 'zod';
import { trustSettings } from '../connect/settings.ts';
import { fleetSettings } from '../fleet/settings.ts';
import { journalSettings } from '../journal/settings.ts';
import type { Environment } from '../settings/reference.ts';
import { unresolved } from '../settings/values.ts';
import { sourceSettings } from '../source/settings.ts';
import { crossFaults } from './cross-checks.ts';
import type { Fault } from './document.ts';
import { withIncluded } from './include.ts';
import { parse, readConfigured, refusal } from './load.ts';
import { orderOf, problem, schemaFaults } from './problems.ts';
import { configSchema, stateDirectory } from './schema.ts';
import type { StateSettings } from './state-settings.ts';

/**
 * Tolerates unresolved references in all other settings: the command may run without the daemon's environment and secrets.
 * @param path  as for `loadConfig`
 * @returns `warnings`: one line for each unresolved setting of this part, which is omitted or has its default
 * @throws WaybillError `config_invalid`, with every problem in `problems`
 */
export async function loadStateSettings(
  path: string | undefined,
  environment: Environment,
): Promise<{ readonly settings: StateSettings; readonly warnings: readonly string[] }> {
  const { file, text } = readConfigured(path, environment);
  const { sinks } = await import('../sink/index.ts');
  const { document } = withIncluded(parse(text, environment), file, (included) => parse(included, environment));
  if (document.errors.length > 0) throw refusal(file, document.errors);
  const schema = configSchema(sinks);
  const known = (fault: Fault): boolean => fault.missing !== true || fault.path[0] === 'dataDir';
  const result = schema.safeParse(document.value);
  const faults = [
    ...document.faults.filter(known),
    ...schemaFaults(schema, document, result.error?.issues ?? []),
    ...crossFaults(document, [file], sinks),
  ];
  faults.sort((a, b) => orderOf(document, a.path) - orderOf(document, b.path));
  if (faults.length > 0) throw refusal(file, [...new Set(faults.map((fault) => problem(document, fault)))]);
  const unknown = document.faults.filter(
    ({ path: [list, , key = ''] }) => list === 'journal' || list === 'fleet' || reportKeys.has(String(key)),
  );
  return {
    settings: reportSchema.parse(withoutUnresolved(document.value)),
    warnings: unknown.map((fault) => `${problem(document, fault)}; the report ignores it`),
  };
}

/** The state directory that a file names which is not valid as a whole; undefined if the file does not tell. */
export function directoryIn(path: string | undefined, environment: Environment): string | undefined {
  const { text } = readConfigured(path, environment);
  const { errors, value } = parse(text, environment);
  const written = /^[\s{]*["']?dataDir["']?:[ \t]*["']?([^"'#\s,]+)/m.exec(text)?.[1];
  const given = errors.length > 0 ? written : typeof value === 'object' && value !== null && 'dataDir' in value ? value.dataDir : undefined;
  const { data } = stateDirectory.safeParse(given);
  return data?.includes('${') ? undefined : data;
}

const reportKeys = new Set(['id', 'start', 'closeDelay', 'recountAfter', 'sources', 'filter']);
const serviceKeys = { baseUrl: z.string().optional(), auth: z.object({ tenantId: z.string().optional() }).optional() };
const reportSchema = z.object({
  dataDir: stateDirectory,
  journal: journalSettings,
  fleet: fleetSettings.optional(),
  tls: trustSettings,
  sources: z
    .array(sourceSettings.pick({ id: true, start: true, closeDelay: true, recountAfter: true }).extend(serviceKeys).strip())
    .default([]),
  sinks: z.array(z.object({ id: z.string(), sources: z.array(z.string()).optional(), filter: z.unknown().optional() })).default([]),
});

/** Removes unresolved settings and list items; an item with an unresolved id is removed entirely. */
function withoutUnresolved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUnresolved).filter((item) => item !== undefined);
  if (typeof value !== 'object' || value === null) return value === unresolved ? undefined : value;
  const entries = Object.entries(value).map(([key, item]) => [key, withoutUnresolved(item)] as const);
  if (entries.some(([key, item]) => key === 'id' && item === undefined)) return undefined;
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}
