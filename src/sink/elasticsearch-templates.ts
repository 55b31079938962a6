/**
 * The mapping, the pipeline and the templates of `content/elasticsearch/`, fitted to a sink and to the line of its server. What a line does not
 * know is left out; what remains stands by itself.
 */
import { readFileSync } from 'node:fs';
import { quote } from '../connect/quote.ts';
import { WaybillError } from '../errors.ts';
import type { ElasticClient } from './elasticsearch-client.ts';
import { membersOf, plainWords } from './elasticsearch-items.ts';
import { credentialsOf, patternOf } from './elasticsearch-settings.ts';
import type { ElasticsearchSettings } from './elasticsearch-settings.ts';

/** What is known of a server before anything is installed. */
export interface ServerFacts {
  /** `[8, 19]`; undefined when the key may not ask. */
  readonly version: readonly [major: number, minor: number] | undefined;
  readonly isServerless: boolean;
  /** Component templates of Elasticsearch itself that are there. */
  readonly builtIn: ReadonlySet<string>;
}

export interface Retention {
  /** As Elasticsearch writes it: `365d`. */
  readonly after: string;
  /** By the policy `waybill-audit`, or by the lifecycle of the data stream. */
  readonly by: 'ilm' | 'lifecycle';
}

/** One request of the installation. */
export interface Step {
  readonly path: string;
  readonly body: object;
}

const builtIn = ['logs@mappings', 'logs@settings', 'ecs@mappings'];
const policyName = 'waybill-audit';

interface Templates {
  readonly component: { readonly template: { readonly mappings: { readonly properties: object } } };
  readonly index: {
    readonly index_patterns: readonly string[];
    readonly composed_of: readonly string[];
    readonly template: { readonly settings: object; readonly data_stream_options: object };
  };
  readonly pipeline: object;
  readonly policy: { readonly policy: { readonly phases: { readonly delete: object } } };
}

function contents(): Templates {
  const read = (name: string): never =>
    JSON.parse(readFileSync(new URL(`../../content/elasticsearch/${name}.json`, import.meta.url), 'utf8')) as never;
  return {
    component: read('component-template'),
    index: read('index-template'),
    pipeline: read('ingest-pipeline'),
    policy: read('ilm-policy'),
  };
}

/** What is to be put, in this order. Pure but for the files of `content/`. */
export function stepsFor(settings: ElasticsearchSettings, id: string, server: ServerFacts, retention?: Retention): Step[] {
  const { component, index, pipeline, policy } = contents();
  const { dataset } = settings;
  const name = settings.index === undefined ? `logs-${dataset}` : `waybill-${id}`;
  const [mappings, ingested, custom] = [`${name}@mappings`, `${name}@ingested`, `${name}@custom`];
  const knows = (major: number, minor: number): boolean => isFrom(server.version, major, minor);
  const ignoresMissing = knows(8, 7);
  const composed = [...builtIn.filter((each) => server.builtIn.has(each)), mappings, ...(ignoresMissing ? [custom] : [])];
  // The failure store came with 8.19 and, of line 9, with 9.1.
  const hasFailureStore = server.version?.[0] === 9 ? knows(9, 1) : knows(8, 19);
  const isStream = settings.index === undefined;
  const lifecycle = retention?.by === 'lifecycle' ? { lifecycle: { data_retention: retention.after } } : {};
  const common = {
    ...index,
    index_patterns: isStream && dataset === 'dpas.audit' ? index.index_patterns : [isStream ? `logs-${dataset}-*` : patternOf(settings)],
    composed_of: composed,
    ignore_missing_component_templates: ignoresMissing ? [custom] : undefined,
    data_stream: isStream ? {} : undefined,
    template: {
      settings: {
        'index.final_pipeline': ingested,
        ...(retention?.by === 'ilm' && { 'index.lifecycle.name': policyName }),
        // `logs@settings` names a policy, which would go before the lifecycle of the stream.
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

/** Version and kind of the server; undefined where the key may not ask. */
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
 * Puts templates and pipeline; may be run again.
 * @returns what was put
 * @throws WaybillError `sink_blocked` where a right is missing or the server refuses; `sink_again`
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
    const words = `cannot install "${path}" for sink "${id}": ${status} ${plainWords(error)}${error?.reason === undefined ? '' : `: ${error.reason}`}`;
    const hint =
      status === 401 || status === 403
        ? ` (sinks.${id}.${credentialsOf(settings)}: templates need manage_index_templates and manage_ingest_pipelines)`
        : '';
    throw new WaybillError(status === 429 || status >= 500 ? 'sink_again' : 'sink_blocked', `${words}${hint}`);
  }
  return steps;
}

/** Rights that a sink needs on what it writes to; the last three may be missing, and cost what docs/guarantees.md says. */
export const neededRights = ['create_doc', 'auto_configure', 'read', 'maintenance', 'view_index_metadata'] as const;

/** Makes an API key with the rights of the sink alone. @returns its encoded form, which the server tells once */
export async function makeKey(client: ElasticClient, settings: ElasticsearchSettings, id: string, signal: AbortSignal): Promise<string> {
  const writer = { cluster: [], index: [{ names: [patternOf(settings)], privileges: neededRights }] };
  const json = { name: `waybill-${id}`, role_descriptors: { writer }, metadata: { managed_by: 'waybill' } };
  const answer = await client.request({ method: 'POST', path: '/_security/api_key', json }, signal);
  const { encoded } = answer.body;
  const { error } = answer;
  if (answer.status === 200 && typeof encoded === 'string') return encoded;
  throw new WaybillError(
    'sink_blocked',
    `cannot make an API key for sink "${id}": ${answer.status} ${plainWords(error)}${error?.reason === undefined ? '' : `: ${error.reason}`}`,
  );
}

/** Whether what the sink writes to has our mapping, or will have it once it is made; undefined where the key may not ask. */
export async function isOurs(client: ElasticClient, settings: ElasticsearchSettings, signal: AbortSignal): Promise<boolean | undefined> {
  const pattern = patternOf(settings);
  const mapping = await client.request(
    { method: 'GET', path: `/${encodeURIComponent(pattern)}/_mapping`, query: { filter_path: '*.mappings._meta' } },
    signal,
  );
  if (mapping.status === 200) {
    const indices = Object.entries(mapping.body as Record<string, { readonly mappings?: { readonly _meta?: Meta } }>).sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
    if (indices.length > 0) return isMeta(indices.at(-1)?.[1].mappings?._meta);
    const all = await client.request(
      { method: 'GET', path: `/${encodeURIComponent(pattern)}/_settings`, query: { filter_path: '*.settings.index.uuid' } },
      signal,
    );
    if (all.status === 200 && Object.keys(all.body).length > 0) return false;
  } else if (mapping.status !== 404) return undefined;
  const name = pattern.replaceAll('*', 'x');
  const simulated = await client.request({ method: 'POST', path: `/_index_template/_simulate_index/${encodeURIComponent(name)}` }, signal);
  if (simulated.status !== 200) return undefined;
  return isMeta((simulated.body as { readonly template?: { readonly mappings?: { readonly _meta?: Meta } } }).template?.mappings?._meta);
}

interface Meta {
  readonly managed_by?: string;
}

function isMeta(meta: Meta | undefined): boolean {
  return meta?.managed_by === 'waybill';
}
