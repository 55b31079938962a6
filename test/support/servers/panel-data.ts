/** The data of a panel of a Kibana dashboard: the results of its aggregation or search on a real Elasticsearch. */
import { expect } from 'vitest';
import type { BarsData, MapData, PanelPicture, TableData } from '../content/dashboard-svg.ts';
import { kql } from '../content/kql.ts';
import type { Bucket, DashboardPanel, LensPanel, MapPanel, SearchPanel } from '../content/lens.ts';
import { aggregationsOf, clustersOf, columnsOf, valueIn } from '../content/lens.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';
import type { Elasticsearch } from './elasticsearch.ts';

/** The time picker, ms, and the interval that Kibana chooses for it. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
  readonly interval: { readonly text: string; readonly ms: number };
}

interface Index {
  readonly server: Elasticsearch;
  readonly name: string;
  readonly range: TimeRange;
}

type Buckets = { readonly buckets: readonly Bucket[] } | undefined;

interface Found {
  readonly aggregations?: Readonly<Record<string, Buckets>>;
  readonly hits: {
    readonly total: { readonly value: number };
    readonly hits: readonly { readonly fields: Readonly<Record<string, readonly unknown[]>> }[];
  };
}

export async function dataOf(panel: DashboardPanel, index: Index): Promise<PanelPicture['data']> {
  switch (panel.kind) {
    case 'lens':
      return lensData(panel, index);
    case 'map':
      return mapData(panel, index);
    case 'search':
      return searchData(panel, index);
    case 'text':
      return panel;
  }
}

/** Sends a search with the queries of a panel and the time range. */
async function search({ queries }: DashboardPanel, { server, name, range }: Index, body: object): Promise<Found> {
  const time = { range: { '@timestamp': { gte: range.from, lt: range.to, format: 'epoch_millis' } } };
  const query = { bool: { filter: [time, ...queries.map((text) => kql(text).query)] } };
  const answer = await server.ask('POST', `/${name}/_search`, { query, ...body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body as Found;
}

async function lensData(panel: LensPanel, index: Index): Promise<BarsData | TableData> {
  const { lens } = panel;
  const { aggregations = {} } = await search(panel, index, { size: 0, aggs: aggregationsOf(lens, index.range.interval.text) });
  return lens.visualizationType === 'lnsXY' ? barsData(lens, aggregations, index.range) : tableData(lens, aggregations);
}

function barsData(lens: LensPanel['lens'], aggregations: NonNullable<Found['aggregations']>, { from, to, interval }: TimeRange): BarsData {
  const [[time], [split], value] = columnsOf(lens) as [LensColumnEntry, LensColumnEntry, LensColumnEntry];
  const times = Array.from({ length: (to - from) / interval.ms }, (_, index) => from + index * interval.ms);
  const counts = new Map<string, number[]>();
  for (const bucket of aggregations[time]?.buckets ?? [])
    for (const part of (bucket[split] as Buckets)?.buckets ?? []) {
      const list = counts.get(String(part.key)) ?? times.map(() => 0);
      counts.set(String(part.key), list);
      list[times.indexOf(Number(bucket.key))] = Number(valueIn(part, value));
    }
  const total = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0);
  const series = [...counts].map(([name, list]) => ({ name, counts: list })).toSorted((a, b) => total(b.counts) - total(a.counts));
  return { kind: 'bars', times, series };
}

type LensColumnEntry = ReturnType<typeof columnsOf>[number];

/** One row per innermost bucket. */
function tableData(lens: LensPanel['lens'], aggregations: Readonly<Record<string, unknown>>): TableData {
  const columns = columnsOf(lens);
  const keys = columns.filter(([, { isBucketed }]) => isBucketed).map(([id]) => id);
  const leaves = (found: Readonly<Record<string, unknown>>, [id, ...inner]: readonly string[], path: readonly Bucket[]): readonly (readonly Bucket[])[] =>
    id === undefined ? [path] : ((found[id] as Buckets)?.buckets ?? []).flatMap((bucket) => leaves(bucket, inner, [...path, bucket])); // prettier-ignore
  const rows = leaves(aggregations, keys, []).map((path) =>
    columns.map((column) => {
      const [id, { dataType }] = column;
      const last = path.at(-1);
      const value = keys.includes(id) ? path[keys.indexOf(id)]?.key : last && valueIn(last, column);
      return dataType === 'date' && typeof value === 'number' ? timeOf(value) : String(value ?? '-');
    }),
  );
  const heads = columns.map(([, { label, operationType }]) => ({ label, isNumber: /count/.test(operationType) }));
  return { kind: 'table', columns: heads, rows, total: rows.length };
}

async function mapData(panel: MapPanel, index: Index): Promise<MapData> {
  const { aggregations } = await search(panel, index, { size: 0, aggs: clustersOf(panel) });
  const clusters = (aggregations?.['clusters']?.buckets ?? []).map((bucket) => {
    const { location } = bucket['centre'] as { readonly location: { readonly lat: number; readonly lon: number } };
    return { ...location, count: bucket.doc_count };
  });
  return { kind: 'map', clusters };
}

async function searchData(panel: SearchPanel, index: Index): Promise<TableData> {
  const fields = ['@timestamp', ...panel.columns];
  const sort = [{ '@timestamp': 'desc' }, { 'event.id': 'desc' }];
  const { hits } = await search(panel, index, { size: 20, sort, fields, _source: false });
  const cell = (field: string, values: readonly unknown[]): string =>
    values.map((value) => (mappedFields.get(field) === 'date' ? timeOf(Date.parse(String(value))) : String(value))).join(', ');
  const rows = hits.hits.map(({ fields: found }) => fields.map((field) => cell(field, found[field] ?? [])));
  return { kind: 'table', columns: fields.map((label) => ({ label, isNumber: false })), rows, total: hits.total.value };
}

export const timeOf = (ms: number): string => new Date(ms).toISOString().slice(5, 19).replace('T', ' ');
