/** The checks of `waybill check` for Elasticsearch: authentication, version, privileges, and settings that weaken the guarantee. */
import { wayOf } from '../../connect/connection.ts';
import { quote } from '../../errors/quote.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import { error, ok, warning, type Finding, type SinkContext } from '../define.ts';
import { ElasticClient, understood, type Answer } from './client.ts';
import { authenticate } from './identify.ts';
import { plainText } from './items.ts';
import { membersOf } from '../../record/json-object.ts';
import { simulatePipelines } from './pipelines.ts';
import { credentialsOf, patternOf, patternsOf, type ElasticsearchSettings } from './settings.ts';
import { mappingOf, templateOf, versionOf } from './templates.ts';

/** The default of `index.mapping.total_fields.limit`. */
const usualFieldLimit = 1_000;
/** Maximum number of conflicting fields in a message. */
const conflictsShown = 5;

/** Privileges on the target, and the effect of a missing one. */
const rights: readonly (readonly [privilege: string, level: Finding['level'], cost: string])[] = [
  ['create_doc', 'error', 'nothing can be written'],
  ['auto_configure', 'error', 'the data stream cannot be created'],
  ['read', 'warning', 'an unknown outcome cannot be resolved: one batch may be stored twice around a rollover'],
  ['maintenance', 'warning', 'recent documents may not be visible when an unknown outcome is resolved'],
  ['view_index_metadata', 'warning', 'mapping and settings of the index are not checked'],
];

export async function check(settings: ElasticsearchSettings, context: SinkContext, signal: AbortSignal): Promise<Finding[]> {
  const { id } = context;
  await using client = await ElasticClient.make(settings, context);
  const findings: Finding[] = [];
  const ask = async (): Promise<void> => {
    const greeting = await authenticate(client, settings, context, signal);
    findings.push(...ways(client), ...actor(greeting, settings, id));
    findings.push(await server(client, id, signal));
    if (greeting.status === 200)
      for (const pattern of context.ledger ? patternsOf(settings) : [patternOf(settings)])
        findings.push(...(await privileges(client, settings, pattern, id, signal)));
    findings.push(...(await mapping(client, settings, id, signal)), ...(await indexSettings(client, settings, id, signal)));
    findings.push(
      ...(settings.index === undefined ? await failureStore(client, settings, id, signal) : await aliases(client, settings, id, signal)),
    );
  };
  try {
    await understood(id, 'sink_unavailable', signal, ask);
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof WaybillError)) throw thrown;
    findings.push(error(messageOf(thrown), `sinks.${id}.nodes`));
  }
  return findings;
}

function ways(client: ElasticClient): Finding[] {
  return client
    .routes()
    .filter(({ proxy, peer }) => peer !== undefined || proxy !== undefined)
    .map((route) => ok(wayOf(route)));
}

function actor({ status, body }: Answer, settings: ElasticsearchSettings, id: string): Finding[] {
  if (status === 200) {
    const { username = '' } = body;
    const { name } = membersOf(body.api_key);
    const named = (given: unknown): string => (typeof given === 'string' ? quote(given, 100) : '');
    return [ok(name === undefined ? `authenticated as the user "${named(username)}"` : `authenticated with the API key "${named(name)}"`)];
  }
  const message = 'the server does not authenticate clients: its security is off';
  return [warning(message, `sinks.${id}.${credentialsOf(settings)}`)];
}

async function server(client: ElasticClient, id: string, signal: AbortSignal): Promise<Finding> {
  const found = await versionOf(client, signal);
  if (found === undefined)
    return ok('cannot read the version of the server: the key lacks the privilege monitor; the sink does not need it');
  const major = Number(found.number.split('.')[0]);
  const message = `the server is Elasticsearch ${found.number}${found.isServerless ? ', serverless' : ''}`;
  if (major === 8 || major === 9) return ok(message);
  return (major < 8 ? error : warning)(`${message}; supported are versions 8 and 9`, `sinks.${id}.nodes`);
}

async function privileges(
  client: ElasticClient,
  settings: ElasticsearchSettings,
  pattern: string,
  id: string,
  signal: AbortSignal,
): Promise<Finding[]> {
  const asked = { index: [{ names: [pattern], privileges: rights.map(([privilege]) => privilege) }] };
  const answer = await client.request({ method: 'POST', path: '/_security/user/_has_privileges', json: asked }, signal);
  const has = (answer.body as { readonly index?: Readonly<Record<string, Readonly<Record<string, boolean>>>> }).index?.[pattern];
  const setting = `sinks.${id}.${credentialsOf(settings)}`;
  if (has === undefined) return [warning(`cannot read the privileges: ${answer.status} ${plainText(answer.error)}`, setting)];
  const missing = rights.filter(([privilege]) => has[privilege] !== true);
  const granted = rights.filter(([privilege]) => has[privilege] === true).map(([privilege]) => privilege);
  return [
    ...(granted.length > 0 ? [ok(`privileges on "${pattern}": ${granted.join(', ')}`)] : []),
    ...missing.map(([privilege, level, cost]) => ({
      level,
      message: `the privilege ${privilege} on "${pattern}" is missing: ${cost}`,
      setting,
    })),
  ];
}

async function mapping(client: ElasticClient, settings: ElasticsearchSettings, id: string, signal: AbortSignal): Promise<Finding[]> {
  if (settings.templates === 'ignore') return [];
  const { isOurs, exists, conflicts } = await mappingOf(client, settings, signal);
  const pattern = patternOf(settings);
  const setting = `sinks.${id}.templates`;
  if (conflicts.length > 0) {
    const list = conflicts.map(({ field, type, requested }) => `${field} is ${type}, not ${requested}`);
    const shown = `${list.slice(0, conflictsShown).join('; ')}${list.length > conflictsShown ? `; and ${list.length - conflictsShown} more` : ''}`;
    const refuses = conflicts.some((conflict) => conflict.refuses);
    const effect = refuses ? 'records whose values do not fit that type become dead letters' : 'searches and dashboards may not find them';
    const message = `"${conflicts[0]?.index}" maps fields differently: ${shown}: ${effect}; correct the template (often logs-…@custom) and roll over`;
    return [(refuses ? error : warning)(message, setting)];
  }
  if (isOurs === true) return [ok(`"${pattern}" has the mapping of waybill setup elasticsearch`)];
  if (isOurs === undefined && !exists)
    return [ok(`"${pattern}" does not exist yet; the first record creates it; the key cannot read its templates`)];
  if (isOurs === undefined) return [warning(`cannot read the mapping of "${pattern}" with this key`, setting)];
  if (settings.templates === 'install') return [ok(`the sink installs the mapping of "${pattern}" when it opens`)];
  const message = `"${pattern}" does not have the mapping of Waybill: run waybill setup elasticsearch --sink ${id}, and roll over an existing data stream`;
  return [warning(message, setting)];
}

interface IndexSettings {
  readonly settings?: {
    readonly index?: {
      readonly translog?: { readonly durability?: string };
      readonly blocks?: Readonly<Record<string, string>>;
      readonly default_pipeline?: string;
      readonly final_pipeline?: string;
      readonly mapping?: { readonly total_fields?: { readonly limit?: string } };
    };
  };
}

async function indexSettings(client: ElasticClient, settings: ElasticsearchSettings, id: string, signal: AbortSignal): Promise<Finding[]> {
  const pattern = patternOf(settings);
  const setting = `sinks.${id}.${settings.index === undefined ? 'namespace' : 'index'}`;
  const names = ['translog.durability', 'blocks', 'default_pipeline', 'final_pipeline', 'mapping.total_fields.limit'];
  const query = { filter_path: names.map((name) => `*.settings.index.${name}`).join(',') };
  const { status, body } = await client.request({ method: 'GET', path: `/${encodeURIComponent(pattern)}/_settings`, query }, signal);
  if (status !== 200) return simulatePipelines(client, settings, id, [], signal);
  // The last index of a data stream is its write index.
  const indices = Object.entries(body as Record<string, IndexSettings>).sort(([a], [b]) => (a < b ? -1 : 1));
  const isAsync = indices.some(([, { settings: each }]) => each?.index?.translog?.durability === 'async');
  const blocked = indices.filter(([, { settings: each }]) =>
    Object.entries(each?.index?.blocks ?? {}).some(
      ([name, on]) => /^(write|read_only|read_only_allow_delete)$/.test(name) && on === 'true',
    ),
  );
  const newest = indices.at(-1)?.[1].settings?.index;
  const own = `${templateOf(settings, id)}@ingested`;
  const pipelines = [newest?.default_pipeline, newest?.final_pipeline].filter(
    (name) => name !== undefined && name !== '_none' && name !== own,
  );
  const limit = Number(newest?.mapping?.total_fields?.limit ?? usualFieldLimit);
  const fields = await fieldsIn(client, pattern, indices.at(-1)?.[0], signal);
  const last = blocked.find(([name]) => name === indices.at(-1)?.[0]);
  return [
    ...(isAsync
      ? [
          warning(
            `index.translog.durability is async on "${pattern}": a killed server loses the last seconds of acknowledged records`,
            setting,
          ),
        ]
      : []),
    ...(last === undefined ? [] : [error(`"${last[0]}" has a write block (index.blocks)`, setting)]),
    ...(fields > 0.9 * limit
      ? [
          warning(
            `"${indices.at(-1)?.[0]}" maps ${fields} of ${limit} fields (index.mapping.total_fields.limit): at the limit the sink is blocked`,
            setting,
          ),
        ]
      : []),
    ...(await simulatePipelines(client, settings, id, pipelines as string[], signal)),
  ];
}

/** Warns of an alias of changing indices: a uid is unique only within one index, and this sink does not search before it creates documents. */
async function aliases(client: ElasticClient, settings: ElasticsearchSettings, id: string, signal: AbortSignal): Promise<Finding[]> {
  const { status, body } = await client.request({ method: 'GET', path: `/_alias/${encodeURIComponent(patternOf(settings))}` }, signal);
  if (status !== 200) return [];
  const indices = Object.entries(body as Readonly<Record<string, { readonly aliases: object }>>);
  const names = new Set(indices.flatMap(([, { aliases: found }]) => Object.keys(found)));
  return [...names].sort().map((name) => {
    const behind = indices.filter(([, { aliases: found }]) => name in found).map(([index]) => index);
    const message = `"${name}" is an alias, of ${behind.toSorted().join(', ')}: after a rollover, a batch with a lost response is stored twice; use a data stream (without index), or a time-based index such as dpas-audit-{yyyy.MM}`;
    return warning(message, `sinks.${id}.index`);
  });
}

/** The number of fields of an index, as `index.mapping.total_fields.limit` counts them; 0: it cannot be read. */
async function fieldsIn(client: ElasticClient, pattern: string, index: string | undefined, signal: AbortSignal): Promise<number> {
  if (index === undefined) return 0;
  const { status, body } = await client.request({ method: 'GET', path: `/${encodeURIComponent(pattern)}/_mapping` }, signal);
  return status === 200 ? fieldCount(membersOf(membersOf(body[index]).mappings).properties) : 0;
}

/** Objects and sub-fields count too. */
function fieldCount(properties: unknown): number {
  return Object.values(membersOf(properties)).reduce((sum: number, field) => {
    const { properties: below, fields } = membersOf(field);
    return sum + 1 + fieldCount(below) + fieldCount(fields);
  }, 0);
}

async function failureStore(client: ElasticClient, settings: ElasticsearchSettings, id: string, signal: AbortSignal): Promise<Finding[]> {
  const pattern = patternOf(settings);
  const { status, body } = await client.request({ method: 'GET', path: `/_data_stream/${encodeURIComponent(pattern)}` }, signal);
  if (status !== 200) return [];
  const { data_streams = [] } = body as {
    readonly data_streams?: readonly {
      readonly name: string;
      readonly failure_store?: { readonly enabled?: boolean };
      readonly lifecycle?: { readonly data_retention?: string };
      readonly ilm_policy?: string;
    }[];
  };
  const deleting = data_streams.flatMap(({ name, lifecycle, ilm_policy: policy }) => {
    const after = lifecycle?.data_retention;
    if (policy !== undefined) return [ok(`the policy "${quote(policy, 100)}" decides when documents of "${name}" are deleted`)];
    if (after === undefined) return [];
    const message = `"${name}" deletes documents after ${quote(after, 20)} (data_retention of its lifecycle)`;
    return [/^(?:[7-9]|\d{2,})d$/.test(after) ? ok(message) : warning(message, `sinks.${id}.templates`)];
  });
  const storing = data_streams
    .filter(({ failure_store }) => failure_store?.enabled === true)
    .map(({ name }) =>
      warning(
        `"${name}" has a failure store: the server stores rejected documents there; they become dead letters too`,
        `sinks.${id}.templates`,
      ),
    );
  return [...deleting, ...storing];
}
