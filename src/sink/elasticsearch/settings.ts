/** The settings of the sink `elasticsearch`, and values derived from them: addresses, the target of a record, credentials. */
import { z } from 'zod';
import { httpsUrl, line, oneOrMany, secret, text } from '../../settings/values.ts';
import { remember } from '../../errors/secrets.ts';
import { proxySettings, tlsSettings } from '../../connect/settings.ts';
import { ledgerDataset } from '../../model/event.ts';
import type { Message } from '../../model/sink.ts';
import type { SettingFault, WrittenSink } from '../define.ts';

const part = String.raw`[a-z0-9_.][a-z0-9_.]*`;

export const elasticsearchSettings = z.strictObject({
  nodes: oneOrMany(httpsUrl())
    .optional()
    .describe('Addresses of the cluster, one or a list: `https://es.example:9200`; requests rotate among them'),
  cloudId: text(/^[^:]*:[A-Za-z0-9+/=]+$/, 'a cloud id such as name:base64')
    .optional()
    .describe('The cloud id of a deployment, in place of `nodes`'),
  apiKey: secret().optional().describe('API key: the encoded form, or `id:key`'),
  username: line().optional().describe('User, in place of an API key; needs `password`'),
  password: secret().optional().describe('Password of `username`'),
  tls: tlsSettings.optional(),
  proxy: proxySettings.optional(),
  dataset: text(new RegExp(`^${part}$`), 'a dataset such as dpas.audit: small letters, digits, dot and underscore')
    .max(100)
    .default('dpas.audit')
    .describe('Dataset of the data stream `logs-{dataset}-{namespace}`, without a hyphen'),
  namespace: text(/^(?:[a-z0-9_.]|\{source\})+$/, 'a namespace such as default: small letters, digits, dot and underscore, or {source}')
    .max(100)
    .default('default')
    .describe('Namespace of the data stream; `{source}` stands for the id of the source, with `_` for a hyphen'),
  index: text(
    /^[a-z0-9](?:[a-z0-9_.-]|\{source\}|\{yyyy\}|\{yyyy\.MM\}|\{yyyy\.MM\.dd\})+$/,
    'the name of an index such as dpas-audit-{yyyy.MM}',
  )
    .optional()
    .describe(
      'Ordinary indices in place of a data stream: `dpas-audit-{yyyy.MM}`. `{yyyy}`, `{yyyy.MM}` and `{yyyy.MM.dd}` come from the time of the event; `{source}` is the id of its source',
    ),
  dropped: z
    .enum(['deadLetter', 'count'])
    .default('deadLetter')
    .describe(
      'A record that an ingest pipeline drops: `deadLetter` keeps it as a dead letter, `count` counts it as delivered (for pipelines that drop on purpose)',
    ),
  templates: z
    .enum(['check', 'install', 'ignore'])
    .default('check')
    .describe(
      'The mapping that `waybill setup elasticsearch` installs: `check` warns where it is missing, `install` installs it when the sink is opened, `ignore` does neither',
    ),
});

export type ElasticsearchSettings = z.output<typeof elasticsearchSettings>;

/** The addresses of the cluster. A cloud id is `name:base64(domain$elasticsearch$kibana)`. */
export function nodesOf({ nodes, cloudId }: ElasticsearchSettings): readonly string[] {
  if (nodes !== undefined) return nodes;
  const [domain = '', id = ''] = Buffer.from(cloudId?.split(':')[1] ?? '', 'base64')
    .toString()
    .split('$');
  const [host = '', port = '443'] = domain.split(':');
  return [`https://${id.split(':')[0] ?? ''}.${host}:${port}`];
}

export function dataStreamOf({ dataset, namespace }: ElasticsearchSettings, source: string): { dataset: string; namespace: string } {
  return { dataset, namespace: namespace.replaceAll('{source}', source.replaceAll('-', '_')) };
}

/** The data stream or index of a message: from its source and its own time, not the present time. Ledger entries have a separate data stream. */
export function targeting(settings: ElasticsearchSettings): (message: Pick<Message, 'source' | 'time' | 'isLedger'>) => string {
  const { index } = settings;
  const known = new Map<string, string>();
  if (index === undefined) {
    return ({ source, isLedger }) => {
      const key = isLedger ? `ledger ${source}` : source;
      const found = known.get(key);
      if (found !== undefined) return found;
      const { dataset, namespace } = dataStreamOf(settings, source);
      const target = `logs-${isLedger ? ledgerDataset(dataset) : dataset}-${namespace}`;
      known.set(key, target);
      return target;
    };
  }
  return ({ source, time }) => {
    const day = new Date(time / 1000).toISOString().slice(0, 10).replaceAll('-', '.');
    return index
      .replaceAll('{source}', source)
      .replaceAll('{yyyy}', day.slice(0, 4))
      .replaceAll('{yyyy.MM}', day.slice(0, 7))
      .replaceAll('{yyyy.MM.dd}', day);
  };
}

/** The patterns of everything that the sink may write to. */
export function patternsOf(settings: ElasticsearchSettings): readonly string[] {
  const { index, dataset } = settings;
  return [patternOf(settings), ...(index === undefined ? [patternOf({ ...settings, dataset: ledgerDataset(dataset) })] : [])];
}

export function patternOf({ index, dataset, namespace }: ElasticsearchSettings): string {
  return (index ?? `logs-${dataset}-${namespace}`).replace(/\{[^}]+\}/g, '*');
}

/** The authorization header, from the current secrets; undefined without credentials. */
export function authorizationOf({ apiKey, username, password }: ElasticsearchSettings): string | undefined {
  if (apiKey !== undefined) {
    const key = apiKey.read();
    // A server may show the decoded form: logs must hide it too.
    if (!key.includes(':')) remember(apiKey, Buffer.from(key, 'base64').toString());
    return `ApiKey ${key.includes(':') ? Buffer.from(key).toString('base64') : key}`;
  }
  if (username === undefined) return undefined;
  const pair = `${username}:${password?.read() ?? ''}`;
  if (password !== undefined) remember(password, pair);
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

export function credentialsOf({ apiKey, username }: ElasticsearchSettings): 'apiKey' | 'password' {
  return apiKey === undefined && username !== undefined ? 'password' : 'apiKey';
}

/** A sink has one kind of address, one kind of credentials and one destination. */
export function targetFaults(own: readonly WrittenSink[]): readonly SettingFault[] {
  return own.flatMap((sink) => {
    const has = (setting: string): boolean => sink.settings[setting] !== undefined;
    const fault = (setting: string, message: string): SettingFault => ({ sink, setting, message });
    return [
      ...(has('nodes') || has('cloudId') ? [] : [fault('nodes', 'is missing: expected the addresses of the cluster, or "cloudId"')]),
      ...(has('nodes') && has('cloudId') ? [fault('cloudId', 'is not used: "nodes" has the addresses')] : []),
      ...(has('apiKey') && has('username') ? [fault('username', 'is not used: "apiKey" authenticates the client')] : []),
      ...(has('username') && !has('password') ? [fault('password', 'is missing: "username" needs it')] : []),
      ...(has('password') && !has('username') ? [fault('username', 'is missing: "password" needs it')] : []),
      ...(has('index') ? ['dataset', 'namespace'].filter(has).map((key) => fault(key, 'has no effect: "index" is set')) : []),
    ];
  });
}
