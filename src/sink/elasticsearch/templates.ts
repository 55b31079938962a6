/** The mapping, pipeline and templates of `content/elasticsearch/` for a sink, without features that its server's version lacks. */
import { ledgerDataset } from '../../model/event.ts';
import { readFileSync } from 'node:fs';
import { quote } from '../../errors/quote.ts';
import { WaybillError } from '../../errors/errors.ts';
import { packageFile } from '../../disk/files.ts';
import type { ElasticClient } from './client.ts';
import { plainText } from './items.ts';
import { membersOf } from '../../record/json-object.ts';
import { credentialsOf, patternOf, patternsOf, type ElasticsearchSettings } from './settings.ts';

export interface ServerFacts {
  /** `[8, 19]`; undefined when the key lacks the privilege. */
  readonly version: readonly [major: number, minor: number] | undefined;
  readonly isServerless: boolean;
  /** Existing built-in component templates. */
  readonly builtIn: ReadonlySet<string>;
}

export interface Retention {
  /** In the format of Elasticsearch: `365d`. */
  readonly after: string;
  /** By the policy `waybill-audit`, or by the lifecycle of the data stream. */
  readonly by: 'ilm' | 'lifecycle';
}

interface Step {
  readonly path: string;
  readonly body: object;
}

const builtIn = ['logs@mappings', 'logs@settings', 'ecs@mappings'];
const policyName = 'waybill-audit';

interface Templates {
  readonly component: { readonly template: { readonly mappings: { readonly properties: Properties } } };
  readonly index: {
    readonly index_patterns: readonly string[];
    readonly composed_of: readonly string[];
    readonly template: { readonly settings: object; readonly data_stream_options: object };
  };
  readonly pipeline: object;
  readonly policy: { readonly policy: { readonly phases: { readonly delete: object } } };
}

function contents(): Templates {
  const read = (name: string): never => JSON.parse(readFileSync(packageFile(`content/elasticsearch/${name}.json`), 'utf8')) as never;
  return {
    component: read('component-template'),
    index: read('index-template'),
    pipeline: read('ingest-pipeline'),
    policy: read('ilm-policy'),
  };
}

/** The name of the index template of a sink. The names of its pipeline and components start with it. */
export function templateOf({ index, dataset }: ElasticsearchSettings, id: string): string {
  return index === undefined ? `logs-${dataset}` : `waybill-${id}`;
}

/** The requests to send, in this order. Pure, except that it reads the files of `content/`. */
export function stepsFor(settings: ElasticsearchSettings, id: string, server: ServerFacts, retention?: Retention): Step[] {
  const { component, index, pipeline, policy } = contents();
  const { dataset } = settings;
  const name = templateOf(settings, id);
  const [mappings, ingested, custom] = [`${name}@mappings`, `${name}@ingested`, `${name}@custom`];
  const knows = (major: number, minor: number): boolean => isFrom(server.version, major, minor);
  const ignoresMissing = knows(8, 7);
  const composed = [...builtIn.filter((each) => server.builtIn.has(each)), mappings, ...(ignoresMissing ? [custom] : [])];
  // Versions 8.19 and 9.1 introduced the failure store.
  const hasFailureStore = server.version?.[0] === 9 ? knows(9, 1) : knows(8, 19);
  const isStream = settings.index === undefined;
  const lifecycle = retention?.by === 'lifecycle' ? { lifecycle: { data_retention: retention.after } } : {};
  const common = {
    ...index,
    index_patterns: isStream ? [dataset, ledgerDataset(dataset)].map((each) => `logs-${each}-*`) : [patternOf(settings)],
    composed_of: composed,
    ignore_missing_component_templates: ignoresMissing ? [custom] : undefined,
    data_stream: isStream ? {} : undefined,
    template: {
      settings: {
        'index.final_pipeline': ingested,
        ...(retention?.by === 'ilm' && { 'index.lifecycle.name': policyName }),
        // `logs@settings` names a policy, which would take precedence over the lifecycle of the stream.
        ...(retention?.by === 'lifecycle' && !server.isServerless && knows(8, 11) && { 'index.lifecycle.prefer_ilm': false }),
      },
      ...(isStream ? lifecycle : { mappings: { properties: { '@timestamp': { type: 'date' } } } }),
      ...(isStream && hasFailureStore && { data_stream_options: index.template.data_stream_options }),
    },
  };
  const { delete: last } = policy.policy.phases;
  const phases = { ...policy.policy.phases, delete: { ...last, min_age: retention?.after } };
  return [
    ...(retention?.by === 'ilm' ? [{ path: `/_ilm/policy/${policyName}`, body: { policy: { ...policy.policy, phases } } }] : []),
    { path: `/_ingest/pipeline/${ingested}`, body: pipeline },
    { path: `/_component_template/${mappings}`, body: component },
    { path: `/_index_template/${name}`, body: common },
  ];
}

function isFrom(version: ServerFacts['version'], major: number, minor: number): boolean {
  if (version === undefined) return true;
  return version[0] > major || (version[0] === major && version[1] >= minor);
}

/** Version and kind of the server; undefined when the key lacks the privilege. */
export async function versionOf(
  client: ElasticClient,
  signal: AbortSignal,
): Promise<{ readonly number: string; readonly isServerless: boolean } | undefined> {
  const { status, body } = await client.request({ method: 'GET', path: '/' }, signal);
  const { number, build_flavor } = membersOf(body.version);
  return status === 200 && typeof number === 'string'
    ? { number: quote(number, 60), isServerless: build_flavor === 'serverless' }
    : undefined;
}

export async function factsOf(client: ElasticClient, signal: AbortSignal): Promise<ServerFacts> {
  const found = await versionOf(client, signal);
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(found?.number ?? '') ?? [];
  const there = new Set<string>();
  for (const name of builtIn) {
    const { status } = await client.request({ method: 'GET', path: `/_component_template/${name}` }, signal);
    if (status === 200) there.add(name);
  }
  return {
    version: major === undefined ? undefined : [Number(major), Number(minor)],
    isServerless: found?.isServerless ?? false,
    builtIn: there,
  };
}

/**
 * Installs templates and pipeline; may be run again. @returns the installed paths
 * @throws WaybillError `sink_blocked` when a privilege is missing or the server rejects a request; `sink_unavailable`
 */
export async function install(
  client: ElasticClient,
  settings: ElasticsearchSettings,
  id: string,
  signal: AbortSignal,
  retention?: Retention,
): Promise<readonly Step[]> {
  const steps = stepsFor(settings, id, await factsOf(client, signal), retention);
  for (const { path, body } of steps) {
    const answer = await client.request({ method: 'PUT', path, json: body }, signal);
    const { status, error } = answer;
    if (status === 200) continue;
    const message = `cannot install "${path}" for sink "${id}": ${status} ${plainText(error)}${error?.reason === undefined ? '' : `: ${error.reason}`}`;
    const hint =
      status === 401 || status === 403
        ? ` (sinks.${id}.${credentialsOf(settings)}: templates need manage_index_templates and manage_ingest_pipelines)`
        : '';
    throw new WaybillError(status === 429 || status >= 500 ? 'sink_unavailable' : 'sink_blocked', `${message}${hint}`);
  }
  return steps;
}

/** Privileges of a sink on its target. The last three are optional; docs/guarantees.md describes the effect of a missing one. */
const neededRights = ['create_doc', 'auto_configure', 'read', 'maintenance', 'view_index_metadata'] as const;

/** Creates an API key with only the privileges of the sink. @returns its encoded form, which the server returns once */
export async function makeKey(client: ElasticClient, settings: ElasticsearchSettings, id: string, signal: AbortSignal): Promise<string> {
  const writer = { cluster: [], index: [{ names: patternsOf(settings), privileges: neededRights }] };
  const json = { name: `waybill-${id}`, role_descriptors: { writer }, metadata: { managed_by: 'waybill' } };
  const answer = await client.request({ method: 'POST', path: '/_security/api_key', json }, signal);
  const { encoded } = answer.body;
  const { error } = answer;
  if (answer.status === 200 && typeof encoded === 'string') return encoded;
  throw new WaybillError(
    'sink_blocked',
    `cannot create an API key for sink "${id}": ${answer.status} ${plainText(error)}${error?.reason === undefined ? '' : `: ${error.reason}`}`,
  );
}

/** The mapping of the target compared with the mapping of Waybill. */
interface MappingFacts {
  /** Undefined when the key lacks the privilege. */
  readonly isOurs: boolean | undefined;
  /** An index exists; the first record creates it. */
  readonly exists: boolean;
  readonly conflicts: readonly MappingConflict[];
}

/** A field that the newest index of the target maps as another type. */
interface MappingConflict {
  readonly index: string;
  readonly field: string;
  readonly type: string;
  readonly requested: string;
  /** True: the server rejects records whose values do not parse as that type. */
  readonly refuses: boolean;
}

export async function mappingOf(client: ElasticClient, settings: ElasticsearchSettings, signal: AbortSignal): Promise<MappingFacts> {
  const pattern = patternOf(settings);
  const answer = await client.request({ method: 'GET', path: `/${encodeURIComponent(pattern)}/_mapping` }, signal);
  if (answer.status === 200) {
    const indices = newest(Object.entries(answer.body as Readonly<Record<string, { readonly mappings?: Mapping }>>));
    const conflicts = indices.flatMap(([index, { mappings }]) => conflictsOf(index, mappings));
    if (indices.length > 0) return { isOurs: isMeta(indices.at(-1)?.[1].mappings?._meta), exists: true, conflicts };
  } else if (answer.status !== 404) return { isOurs: undefined, exists: true, conflicts: [] };
  const name = pattern.replaceAll('*', 'x');
  const simulated = await client.request({ method: 'POST', path: `/_index_template/_simulate_index/${encodeURIComponent(name)}` }, signal);
  if (simulated.status !== 200) return { isOurs: undefined, exists: false, conflicts: [] };
  const { mappings } = (simulated.body as { readonly template?: { readonly mappings?: Mapping } }).template ?? {};
  return { isOurs: isMeta(mappings?._meta), exists: false, conflicts: conflictsOf(name, mappings) };
}

interface Mapping {
  readonly _meta?: { readonly managed_by?: string };
  readonly properties?: Properties;
}

type Properties = Readonly<Record<string, { readonly type?: string; readonly properties?: Properties }>>;

function isMeta(meta: Mapping['_meta']): boolean {
  return meta?.managed_by === 'waybill';
}

/** The last index of each data stream, and every other index, by name. */
function newest<Index>(indices: readonly (readonly [name: string, index: Index])[]): (readonly [name: string, index: Index])[] {
  const streams = Map.groupBy(
    indices.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ([name]) => /^\.ds-(.+)-\d{4}\.\d{2}\.\d{2}-\d{6,}$/.exec(name)?.[1] ?? name,
  );
  return [...streams.values()].flatMap((list) => list.slice(-1));
}

/** Types that accept the same values (Elasticsearch, "Field data types"). */
const families: readonly (readonly string[])[] = [
  ['keyword', 'constant_keyword', 'wildcard', 'counted_keyword', 'text', 'match_only_text'],
  ['long', 'integer', 'short', 'byte', 'unsigned_long', 'double', 'float', 'half_float', 'scaled_float'],
  ['date', 'date_nanos'],
];
const takesAnyText = new Set(families[0]);

function conflictsOf(index: string, mapping: Mapping | undefined): MappingConflict[] {
  return fieldsOf(contents().component.template.mappings.properties).flatMap(({ path, type: requested }) => {
    const found = typeAt(mapping?.properties, path);
    if (found === undefined || found.type === requested) return [];
    if (families.some((family) => family.includes(found.type) && family.includes(requested))) return [];
    return [{ index, field: found.path.join('.'), type: found.type, requested, refuses: !takesAnyText.has(found.type) }];
  });
}

function fieldsOf(properties: Properties, above: readonly string[] = []): { readonly path: readonly string[]; readonly type: string }[] {
  return Object.entries(properties).flatMap(([name, { type, properties: below }]) => [
    ...(type === undefined ? [] : [{ path: [...above, name], type }]),
    ...(below === undefined ? [] : fieldsOf(below, [...above, name])),
  ]);
}

/** The mapped type of a field, or of its nearest mapped parent that is not an object; undefined if none is mapped. */
function typeAt(
  properties: Properties | undefined,
  path: readonly string[],
): { readonly path: readonly string[]; readonly type: string } | undefined {
  const [name = '', ...below] = path;
  const found = properties?.[name];
  if (found === undefined) return undefined;
  if (below.length === 0) return { path, type: found.type ?? 'object' };
  if (found.properties === undefined)
    return found.type === undefined || found.type === 'object' ? undefined : { path: [name], type: found.type };
  const inner = typeAt(found.properties, below);
  return inner && { path: [name, ...inner.path], type: inner.type };
}
