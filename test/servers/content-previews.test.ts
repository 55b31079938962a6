/**
 * The pictures of Kibana's dashboards in docs/images, drawn from the aggregations and searches of
 * each panel on a real Elasticsearch. `npm run content:previews` draws them again; without
 * `--update` the test compares, and a panel without data fails.
 */
import { expect, test } from 'vitest';
import component from '../../content/elasticsearch/component-template.json' with { type: 'json' };
import { encoder } from '../../src/encode/index.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import type { BarsData, MapData, PanelPicture, TableData } from '../unit/content/dashboard-svg.ts';
import { dashboardSvg } from '../unit/content/dashboard-svg.ts';
import { kql } from '../unit/content/kql.ts';
import type { DashboardPanel, LensPanel, MapPanel, SearchPanel } from '../unit/content/lens.ts';
import { aggregationsOf, clustersOf, columnsOf, dashboardPanels, shippedObjects } from '../unit/content/lens.ts';
import { weekEnd, weekOfRecords, weekStart } from '../unit/content/preview-week.ts';
import { recordOf, settings } from '../unit/normalize/records.ts';
import { Elasticsearch, elasticsearchMissing } from './elasticsearch.ts';
import { notAsked } from './programs.ts';

/** The interval that Kibana chooses for seven days. */
const interval = { text: '3h', ms: 3 * 3_600_000 };

interface Bucket {
  readonly key: string | number;
  readonly key_as_string?: string;
  readonly doc_count: number;
  readonly [name: string]: unknown;
}
type Buckets = { readonly buckets: readonly Bucket[] } | undefined;

type Ask = (body: object) => Promise<{
  readonly aggregations?: Readonly<Record<string, Buckets>>;
  readonly hits: {
    readonly total: { readonly value: number };
    readonly hits: readonly { readonly fields: Readonly<Record<string, readonly unknown[]>> }[];
  };
}>;

test('the dashboards in docs/images show the results of Elasticsearch', { timeout: 300_000 }, async ({ skip }) => {
  const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
  if (missing !== undefined) return skip(missing);
  await using server = await Elasticsearch.start('elasticsearch-9.5.3');
  await store(server);
  const ask: Ask = async (body) => {
    const answer = await server.ask('POST', '/week/_search', body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body as Awaited<ReturnType<Ask>>;
  };
  const objects = shippedObjects();
  const panels = dashboardPanels(objects);
  for (const object of objects) {
    if (object.type !== 'dashboard') continue;
    const { title, description, controlGroupInput } = object.attributes;
    const pictures: PanelPicture[] = [];
    for (const panel of panels.filter(({ dashboard }) => dashboard === title)) pictures.push(await pictureOf(panel, ask));
    const controls = Object.values(controlGroupInput.panelsJSON).map(({ explicitInput }) => explicitInput.title);
    const svg = dashboardSvg({ title, description: String(description), controls, panels: pictures });
    await expect(svg).toMatchFileSnapshot(`../../docs/images/${object.id.replace(/^dpas-/, 'kibana-')}.svg`);
  }
});

async function store(server: Elasticsearch): Promise<void> {
  const { mappings } = component.template;
  const properties = { ...mappings.properties, '@timestamp': { type: 'date' } };
  expect(await server.ask('PUT', '/week', { mappings: { ...mappings, properties } })).toMatchObject({ status: 200 });
  const [encode, normalize] = [encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } }), normalizer(settings)];
  const documents = weekOfRecords().map((text) => JSON.parse(encode(normalize(recordOf(text))).toString()) as object);
  for (let at = 0; at < documents.length; at += 50) {
    const answers = documents.slice(at, at + 50).map((document) => server.ask('POST', '/week/_doc', document));
    for (const { status } of await Promise.all(answers)) expect(status).toBe(201);
  }
  await server.ask('POST', '/week/_refresh');
}

async function pictureOf(panel: DashboardPanel, ask: Ask): Promise<PanelPicture> {
  const query = { bool: { filter: panel.queries.map((text) => kql(text).query) } };
  const data =
    panel.kind === 'lens' ? await lensData(panel, query, ask) : panel.kind === 'map' ? await mapData(panel, query, ask) : await searchData(panel, query, ask); // prettier-ignore
  const { title, grid } = panel;
  const size = data.kind === 'bars' ? data.series.length : data.kind === 'table' ? data.rows.length : data.clusters.length;
  expect(size, `${panel.dashboard}: ${title} has data`).toBeGreaterThan(0);
  return { title, grid, data };
}

async function lensData({ lens }: LensPanel, query: object, ask: Ask): Promise<BarsData | TableData> {
  const { aggregations = {} } = await ask({ size: 0, query, aggs: aggregationsOf(lens, interval.text) });
  return lens.visualizationType === 'lnsXY' ? barsData(aggregations) : tableData(lens, aggregations);
}

function barsData(aggregations: Readonly<Record<string, Buckets>>): BarsData {
  const times = Array.from({ length: (weekEnd - weekStart) / interval.ms }, (_, index) => weekStart + index * interval.ms);
  const counts = new Map<string, number[]>();
  for (const bucket of aggregations['column-0']?.buckets ?? [])
    for (const { key, doc_count } of (bucket['column-1'] as Buckets)?.buckets ?? []) {
      const list = counts.get(String(key)) ?? times.map(() => 0);
      counts.set(String(key), list);
      list[times.indexOf(Number(bucket.key))] = doc_count;
    }
  const total = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0);
  const series = [...counts].map(([name, list]) => ({ name, counts: list })).toSorted((a, b) => total(b.counts) - total(a.counts));
  return { kind: 'bars', times, series };
}

/** One row per innermost bucket. */
function tableData(lens: LensPanel['lens'], aggregations: Readonly<Record<string, unknown>>): TableData {
  const columns = columnsOf(lens);
  const keys = columns.filter(([, { isBucketed }]) => isBucketed).map(([id]) => id);
  const leaves = (found: Readonly<Record<string, unknown>>, [id, ...inner]: readonly string[], path: readonly Bucket[]): readonly (readonly Bucket[])[] =>
    id === undefined ? [path] : ((found[id] as Buckets)?.buckets ?? []).flatMap((bucket) => leaves(bucket, inner, [...path, bucket])); // prettier-ignore
  const rows = leaves(aggregations, keys, []).map((path) => {
    const last = path.at(-1);
    return columns.map(([id, { operationType }]) => {
      if (keys.includes(id)) return String(path[keys.indexOf(id)]?.key);
      if (operationType === 'count') return String(last?.doc_count);
      if (operationType === 'last_value') return lastValue(last?.[id]);
      const { value } = last?.[id] as { readonly value: number };
      return operationType === 'max' ? timeOf(value) : String(value);
    });
  });
  const heads = columns.map(([, { label, operationType }]) => ({ label, isNumber: /count/.test(operationType) }));
  return { kind: 'table', columns: heads, rows, total: rows.length };
}

function lastValue(found: unknown): string {
  const { hit } = found as { readonly hit: { readonly hits: { readonly hits: readonly { readonly fields: Readonly<Record<string, readonly unknown[]>> }[] } } }; // prettier-ignore
  const [newest] = hit.hits.hits;
  return newest ? Object.values(newest.fields).flat().join(', ') : '-';
}

async function mapData(panel: MapPanel, query: object, ask: Ask): Promise<MapData> {
  const { aggregations } = await ask({ size: 0, query, aggs: clustersOf(panel) });
  const clusters = (aggregations?.['clusters']?.buckets ?? []).map((bucket) => {
    const { location } = bucket['centre'] as { readonly location: { readonly lat: number; readonly lon: number } };
    return { ...location, count: bucket.doc_count };
  });
  return { kind: 'map', clusters };
}

async function searchData({ columns }: SearchPanel, query: object, ask: Ask): Promise<TableData> {
  const fields = ['@timestamp', ...columns];
  const sort = [{ '@timestamp': 'desc' }, { 'event.id': 'desc' }];
  const { hits } = await ask({ size: 20, query, sort, fields, _source: false });
  const rows = hits.hits.map(({ fields: found }) =>
    fields.map((field) => (field === '@timestamp' ? timeOf(Date.parse(String(found[field]?.[0]))) : (found[field] ?? []).join(', '))),
  );
  return { kind: 'table', columns: fields.map((label) => ({ label, isNumber: false })), rows, total: hits.total.value };
}

const timeOf = (ms: number): string => new Date(ms).toISOString().slice(5, 19).replace('T', ' ');
