/**
 * `content/elasticsearch/`: every written field has its ECS type, and the objects suit each server
 * version.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { elasticsearchSettings } from '../../../src/sink/elasticsearch/settings.ts';
import { stepsFor } from '../../../src/sink/elasticsearch/templates.ts';
import type { ServerFacts } from '../../../src/sink/elasticsearch/templates.ts';
import ecs from '../../fixtures/ecs-9.4.0-fields.json' with { type: 'json' };
import { recordOf, settings, shapes } from '../../support/normalize/records.ts';
import { encoder } from '../../support/encode/texts.ts';
import { ledgerEvents } from '../../support/content/ledger-events.ts';

interface Field {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Field>>;
  readonly fields?: Readonly<Record<string, Field>>;
  readonly ignore_above?: number;
  readonly index?: boolean;
  readonly doc_values?: boolean;
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../content/elasticsearch/${name}.json`, import.meta.url), 'utf8'));
const component = read('component-template') as { template: { mappings: { properties: Readonly<Record<string, Field>> } } };

/** Paths of all leaves, sub-fields included. */
function mapped(properties: Readonly<Record<string, Field>>, before = ''): Map<string, Field> {
  return new Map(
    Object.entries(properties).flatMap(([name, field]): [string, Field][] => {
      const path = `${before}${name}`;
      if (field.properties) return [...mapped(field.properties, `${path}.`)];
      return [[path, field], ...mapped(field.fields ?? {}, `${path}.`)];
    }),
  );
}

function leaves(value: unknown, path: string, found: Set<string>): Set<string> {
  if (path === 'source.geo.location' || typeof value !== 'object' || value === null || Array.isArray(value)) return found.add(path);
  for (const [name, inner] of Object.entries(value)) leaves(inner, path === '' ? name : `${path}.${name}`, found);
  return found;
}

/** Counts of a ledger entry are numbers. */
const ownTypeOf = (path: string): string => (/^dpas\.ledger\.(revision|total|records|late|recounts)$/.test(path) ? 'long' : 'keyword');

const fields = mapped(component.template.mappings.properties);
const types = ecs.fields as unknown as Readonly<Record<string, readonly [type: string, arity: string]>>;

describe('the mapping', () => {
  test('has every field that any event has', () => {
    const written = new Set<string>();
    const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    for (const { text } of shapes) leaves(JSON.parse(encode(normalizer(settings)(recordOf(text)))), '', written);
    for (const event of ledgerEvents) leaves(event, '', written);
    // `@timestamp` comes from Elasticsearch's own component, or from the template.
    expect([...written].filter((path) => path !== '@timestamp' && !fields.has(path))).toEqual([]);
    expect(written.size).toBeGreaterThan(60);
  });

  test('gives each field its ECS type, and maps our own fields as keyword', () => {
    const wrong = [...fields].filter(([path, { type }]) => {
      const expected =
        types[path]?.[0] ?? (path.startsWith('dpas.') ? (path.endsWith('.text') ? 'match_only_text' : ownTypeOf(path)) : 'nothing');
      return type !== expected;
    });
    expect(wrong).toEqual([]);
  });

  test('stores events with long values', () => {
    const unindexed = ['event.original', 'dpas.ledger.checkpoint'];
    const keywords = [...fields].filter(([path, { type }]) => type === 'keyword' && !unindexed.includes(path));
    expect(keywords.filter(([, { ignore_above }]) => ignore_above !== 1024)).toEqual([]);
    for (const path of unindexed) expect(fields.get(path)).toEqual({ type: 'keyword', index: false, doc_values: false });
  });
});

test('the pipeline writes the time of arrival, which detection rules look for, into a field that is mapped as a date', () => {
  expect(read('ingest-pipeline')).toMatchObject({ processors: [{ set: { field: 'event.ingested', value: '{{{_ingest.timestamp}}}' } }] });
  expect(fields.get('event.ingested')).toMatchObject({ type: 'date' });
});

test('the lifecycle policy rolls over at 30 days or 50 GB, as content/README.md says', () => {
  const readme = readFileSync(new URL('../../../content/README.md', import.meta.url), 'utf8');
  expect(readme).toContain('rolls over at 30 days or 50 GB');
  const rollover = { max_age: '30d', max_primary_shard_size: '50gb' };
  expect(read('ilm-policy')).toMatchObject({ policy: { phases: { hot: { actions: { rollover } } } } });
});

describe('the steps', () => {
  const builtIn = new Set(['logs@mappings', 'logs@settings', 'ecs@mappings']);
  const at = (version: ServerFacts['version'], overrides: Partial<ServerFacts> = {}): ServerFacts => ({
    version,
    isServerless: false,
    builtIn,
    ...overrides,
  });
  const given = (overrides: object = {}) => elasticsearchSettings.parse({ nodes: 'https://es.example', ...overrides });
  const template = (...asked: Parameters<typeof stepsFor>) => stepsFor(...asked).find(({ path }) => path.startsWith('/_index_template'));

  test('are pipeline, mapping and template, in this order', () => {
    const steps = stepsFor(given(), 'siem', at([9, 5]));
    expect(steps.map(({ path }) => path)).toEqual([
      '/_ingest/pipeline/logs-dpas.audit@ingested',
      '/_component_template/logs-dpas.audit@mappings',
      '/_index_template/logs-dpas.audit',
    ]);
    expect(steps[2]?.body).toMatchObject({
      index_patterns: ['logs-dpas.audit-*', 'logs-dpas.ledger-*'],
      priority: 250,
      data_stream: {},
      composed_of: ['logs@mappings', 'logs@settings', 'ecs@mappings', 'logs-dpas.audit@mappings', 'logs-dpas.audit@custom'],
      ignore_missing_component_templates: ['logs-dpas.audit@custom'],
      template: {
        settings: { 'index.final_pipeline': 'logs-dpas.audit@ingested' },
        data_stream_options: { failure_store: { enabled: false } },
      },
    });
  });

  test.each([
    [[8, 19], true],
    [[8, 18], false],
    [[9, 0], false],
    [[9, 1], true],
  ] as const)('for version %j disable the failure store: %s', (version, isKnown) => {
    expect(JSON.stringify(template(given(), 'siem', at(version))).includes('data_stream_options')).toBe(isKnown);
  });

  test('for an old cluster have no newer options', () => {
    const { body } = template(given(), 'siem', at([8, 5], { builtIn: new Set() })) ?? {};
    expect(JSON.parse(JSON.stringify(body))).toMatchObject({ composed_of: ['logs-dpas.audit@mappings'] });
    expect(JSON.stringify(body)).not.toMatch(/ignore_missing|data_stream_options|@custom|lifecycle/);
  });

  test('delete nothing by default, and otherwise in one way', () => {
    expect(JSON.stringify(stepsFor(given(), 'siem', at([9, 5])))).not.toMatch(/lifecycle|delete/);
    expect(template(given(), 'siem', at([9, 5]), { after: '90d', by: 'lifecycle' })?.body).toMatchObject({
      template: { lifecycle: { data_retention: '90d' }, settings: { 'index.lifecycle.prefer_ilm': false } },
    });
    const ilm = stepsFor(given(), 'siem', at([9, 5]), { after: '90d', by: 'ilm' });
    expect(ilm[0]).toMatchObject({
      path: '/_ilm/policy/waybill-audit',
      body: { policy: { phases: { hot: { actions: { rollover: { max_age: '30d' } } }, delete: { min_age: '90d' } } } },
    });
    expect(ilm.at(-1)?.body).toMatchObject({ template: { settings: { 'index.lifecycle.name': 'waybill-audit' } } });
    expect(JSON.stringify(ilm.at(-1))).not.toContain('data_retention');
  });

  test('suit another dataset, and ordinary indices', () => {
    expect(template(given({ dataset: 'x.y' }), 'siem', at([9, 5]))).toMatchObject({
      path: '/_index_template/logs-x.y',
      body: {
        index_patterns: ['logs-x.y-*', 'logs-x.y.ledger-*'],
        template: { settings: { 'index.final_pipeline': 'logs-x.y@ingested' } },
      },
    });
    const { path, body } = template(given({ index: 'audit-{yyyy.MM}' }), 'siem', at([9, 5])) ?? {};
    expect(path).toBe('/_index_template/waybill-siem');
    expect(body).toMatchObject({
      index_patterns: ['audit-*'],
      template: { mappings: { properties: { '@timestamp': { type: 'date' } } } },
    });
    expect(JSON.stringify(body)).not.toMatch(/"data_stream|failure_store/);
  });
});
