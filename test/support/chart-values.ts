/** The values of the Helm chart: their JSON Schema and their table, from values.yaml with its comments and from the schema of the configuration. */
import { isMap, isScalar, parseDocument, type Pair, type YAMLMap } from 'yaml';
import { configJsonSchema } from '../../src/config/json-schema.ts';
import { sinks } from '../../src/sink/index.ts';

interface Value {
  /** `image.tag` */
  readonly name: string;
  readonly description: string;
  readonly default: unknown;
}

type JsonSchema = Record<string, unknown>;

/** References in the schema of the configuration start at the root. */
const { definitions, ...config } = configuration();
const names = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' };
const size = { type: 'string', pattern: '^\\d+(\\.\\d+)?([KMGTPE]i?)?$' };
const port = { type: 'integer', minimum: 1, maximum: 65_535 };
const texts = { type: 'object', additionalProperties: { type: 'string' } };

/** Values whose default does not fully determine their type. */
const types: Readonly<Record<string, JsonSchema>> = {
  config,
  secrets: { type: 'array', items: names, uniqueItems: true },
  replicas: { const: 1 },
  readiness: { enum: ['process', 'data'] },
  lockWait: { type: 'string', pattern: '^(\\d+(ms|s|m|h|d))+$' },
  'image.digest': { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
  'image.pullPolicy': { enum: ['Always', 'IfNotPresent', 'Never'] },
  'fleet.replicas': { type: 'integer', minimum: 0 },
  'fleet.copies': size,
  'fleet.databasePort': port,
  'fleet.setup.shards': { type: 'integer', minimum: 1 },
  'persistence.size': size,
  'persistence.accessModes': { type: 'array', items: { enum: ['ReadWriteOnce', 'ReadWriteOncePod'] }, minItems: 1, maxItems: 1 },
  'service.type': { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
  'service.port': port,
  'networkPolicy.egressPorts': { type: 'array', items: port },
  'prometheusRule.disabled': { type: 'array', items: { type: 'string', pattern: '^Waybill' } },
  terminationGracePeriodSeconds: { type: 'integer', minimum: 1 },
  resources: { type: 'object' },
  podSecurityContext: { type: 'object' },
  securityContext: { type: 'object' },
  'dashboard.labels': texts,
};

/** Values that accept anything that Kubernetes accepts there. */
const free = /^(affinity|serviceMonitor\.(authorization|tlsConfig))$/;

/**
 * The JSON Schema of the values. It rejects unknown values, because a typing error would otherwise
 * have no effect.
 */
export function valuesSchema(text: string): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the Helm chart of Waybill',
    definitions,
    // `global` is what a parent chart passes to each of its charts.
    ...objectSchema(mapOf(text), '', { global: { type: 'object' } }),
  };
}

/** Every value with its description and default, in the order of values.yaml. */
export function valuesOf(text: string): readonly Value[] {
  return inside(mapOf(text), '');
}

function mapOf(text: string): YAMLMap {
  const { contents, errors } = parseDocument(text);
  if (errors[0] || !isMap(contents)) throw errors[0] ?? new TypeError('values.yaml is not a mapping');
  return contents;
}

function inside(map: YAMLMap, prefix: string): readonly Value[] {
  return map.items.flatMap((pair, i) => {
    const name = `${prefix}${String(pair.key)}`;
    const description = commentOf(pair, i === 0 ? map : undefined);
    const nested = isMap(pair.value) && pair.value.flow !== true && pair.value.items.length > 0;
    const own = description === '' ? [] : [{ name, description, default: plain(pair.value) }];
    if (!nested && description === '') throw new Error(`values.yaml does not explain ${name}`);
    return nested && !isWhole(name) ? [...own, ...inside(pair.value as YAMLMap, `${name}.`)] : own;
  });
}

/** True if Kubernetes defines the members, so that the table shows the value as a whole. */
function isWhole(name: string): boolean {
  return types[name]?.['type'] === 'object' && name !== 'config';
}

function objectSchema(map: YAMLMap, prefix: string, more: JsonSchema = {}): JsonSchema {
  const properties = Object.fromEntries(
    map.items.map((pair, i) => {
      const name = `${prefix}${String(pair.key)}`;
      const description = commentOf(pair, i === 0 ? map : undefined);
      return [String(pair.key), { ...(description === '' ? {} : { description }), ...schemaOf(name, pair) }];
    }),
  );
  return { type: 'object', additionalProperties: false, properties: { ...properties, ...more } };
}

function schemaOf(name: string, { value }: Pair): JsonSchema {
  const type = types[name];
  if (type) return type;
  if (isMap(value) && value.items.length > 0) return objectSchema(value, `${name}.`);
  const usual = plain(value);
  if (Array.isArray(usual)) return { type: 'array' };
  if (typeof usual === 'object') return free.test(name) ? { type: 'object' } : texts;
  return { type: typeof usual };
}

/** The comment above a key. The YAML parser assigns the comment above the first key to the map. */
function commentOf({ key }: Pair, map: YAMLMap | undefined): string {
  const own = isScalar(key) ? key.commentBefore : undefined;
  return (own ?? map?.commentBefore ?? '').replaceAll(/\s*\n\s*/g, ' ').trim();
}

function plain(value: unknown): unknown {
  return (value as { toJSON(): unknown }).toJSON();
}

/**
 * A ConfigMap must hold no secret: each secret in the configuration must be a reference. The chart
 * sets directory and address.
 */
function configuration(): JsonSchema {
  const schema = JSON.parse(JSON.stringify(configJsonSchema(sinks, { literalSecrets: false, target: 'draft-7' }), withoutLookahead)) as {
    properties: { admin: { properties: JsonSchema }; dataDir: JsonSchema };
  } & JsonSchema;
  const { admin, dataDir } = schema.properties;
  return {
    ...schema,
    // Only at the root of a schema.
    $schema: undefined,
    // The chart itself requires a source, with a message that names the value.
    anyOf: undefined,
    properties: {
      ...schema.properties,
      dataDir: { ...dataDir, const: '/var/lib/waybill/state' },
      admin: { ...admin, properties: { ...admin.properties, listen: { enum: ['[::]:9464', '0.0.0.0:9464'] } } },
    },
  };
}

/**
 * Helm uses Go's regular expressions, without lookahead and `\u`. `waybill check` still applies the
 * patterns removed here.
 */
function withoutLookahead(key: string, value: unknown): unknown {
  return key === 'pattern' && typeof value === 'string' && /\(\?[=!<]|\\u/.test(value) ? undefined : value;
}
