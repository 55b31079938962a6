/**
 * Reads the saved objects of content/kibana, and translates each panel into its aggregations and
 * their results into values.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { kql } from './kql.ts';

/** Written after elastic/kibana 9.x: src/platform/plugins/shared/dashboard, data_views and x-pack/platform/plugins/shared/{lens,maps}. */
const json = <Schema extends z.ZodType>(schema: Schema) => z.string().transform((text) => schema.parse(JSON.parse(text)));
const reference = z.strictObject({ type: z.enum(['index-pattern', 'search', 'dashboard']), id: z.string(), name: z.string() });
const query = z.strictObject({ language: z.literal('kuery'), query: z.string() });
const versioned = {
  id: z.string().regex(/^dpas-/),
  references: z.array(reference),
  coreMigrationVersion: z.literal('8.8.0'),
};

const column = z.looseObject({
  label: z.string(),
  isBucketed: z.boolean(),
  dataType: z.enum(['string', 'date', 'number']),
  operationType: z.enum(['terms', 'date_histogram', 'count', 'unique_count', 'max', 'last_value']),
  sourceField: z.string(),
  /** The column counts only the events that match. */
  filter: query.optional(),
  params: z.looseObject({
    size: z.int().optional(),
    orderBy: z.strictObject({ type: z.literal('column'), columnId: z.string() }).optional(),
  }),
});
const layer = z.looseObject({ columnOrder: z.array(z.string()), columns: z.record(z.string(), column) });
const lens = z.strictObject({
  title: z.string(),
  type: z.literal('lens'),
  visualizationType: z.enum(['lnsXY', 'lnsDatatable']),
  references: z.array(reference),
  state: z.strictObject({
    datasourceStates: z.strictObject({
      formBased: z.strictObject({ layers: z.record(z.string(), layer) }),
      textBased: z.strictObject({ layers: z.strictObject({}) }).optional(),
    }),
    visualization: z.looseObject({}),
    query,
    filters: z.array(z.never()),
    internalReferences: z.array(z.never()),
    adHocDataViews: z.strictObject({}),
  }),
});
const layerOfMap = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('EMS_VECTOR_TILE') }),
  z.looseObject({
    type: z.literal('GEOJSON_VECTOR'),
    query,
    sourceDescriptor: z.strictObject({
      type: z.literal('ES_GEO_GRID'),
      id: z.string(),
      geoField: z.string(),
      requestType: z.literal('point'),
      resolution: z.enum(['COARSE', 'FINE', 'MOST_FINE', 'SUPER_FINE']),
      metrics: z.tuple([z.strictObject({ type: z.literal('count') })]),
      applyGlobalQuery: z.literal(true),
      applyGlobalTime: z.literal(true),
      applyForceRefresh: z.literal(true),
      indexPatternRefName: z.string(),
    }),
  }),
]);
const map = z.strictObject({
  title: z.string(),
  description: z.string(),
  layerListJSON: json(z.tuple([layerOfMap, layerOfMap])),
  mapStateJSON: json(z.looseObject({ zoom: z.number(), center: z.strictObject({ lon: z.number(), lat: z.number() }) })),
  uiStateJSON: json(z.strictObject({ isLayerTOCOpen: z.boolean(), openTOCDetails: z.array(z.string()) })),
});
const grid = z.strictObject({ x: z.int().min(0), y: z.int().min(0), w: z.int().max(48), h: z.int(), i: z.string() });
/** A drill-down from a value of a panel to a dashboard that a reference names. */
const enhancements = z.strictObject({
  dynamicActions: z
    .strictObject({
      events: z.tuple([
        z.strictObject({
          eventId: z.string().regex(/^[\w-]+$/),
          triggers: z.tuple([z.literal('FILTER_TRIGGER')]),
          action: z.strictObject({
            factoryId: z.literal('DASHBOARD_TO_DASHBOARD_DRILLDOWN'),
            name: z.string().min(1),
            config: z.strictObject({ useCurrentFilters: z.literal(true), useCurrentDateRange: z.literal(true), openInNewTab: z.boolean() }),
          }),
        }),
      ]),
    })
    .optional(),
});
const panel = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('lens'),
    title: z.string(),
    panelIndex: z.string(),
    gridData: grid,
    embeddableConfig: z.strictObject({ attributes: lens, enhancements }),
  }),
  z.strictObject({
    type: z.literal('map'),
    title: z.string(),
    panelIndex: z.string(),
    gridData: grid,
    embeddableConfig: z.looseObject({ attributes: map }),
  }),
  z.strictObject({
    type: z.literal('search'),
    /** Default: the title of the search. */
    title: z.string().optional(),
    panelIndex: z.string(),
    panelRefName: z.string(),
    gridData: grid,
    embeddableConfig: z.strictObject({ enhancements: z.strictObject({}) }),
  }),
  z.strictObject({
    type: z.literal('visualization'),
    title: z.literal(''),
    panelIndex: z.string(),
    gridData: grid,
    embeddableConfig: z.looseObject({
      hidePanelTitles: z.literal(true),
      savedVis: z.looseObject({ type: z.literal('markdown'), params: z.looseObject({ markdown: z.string() }) }),
    }),
  }),
]);
const control = z.strictObject({
  type: z.literal('optionsListControl'),
  order: z.int(),
  width: z.enum(['small', 'medium', 'large']),
  grow: z.boolean(),
  explicitInput: z.looseObject({ fieldName: z.string(), title: z.string() }),
});

const savedObject = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('index-pattern'),
    ...versioned,
    typeMigrationVersion: z.literal('8.0.0'),
    attributes: z.strictObject({ title: z.string(), name: z.string(), timeFieldName: z.literal('@timestamp') }),
  }),
  z.strictObject({
    type: z.literal('search'),
    ...versioned,
    typeMigrationVersion: z.literal('8.0.0'),
    attributes: z.looseObject({
      title: z.string(),
      columns: z.array(z.string()),
      sort: z.array(z.tuple([z.string(), z.enum(['asc', 'desc'])])),
      kibanaSavedObjectMeta: z.strictObject({
        searchSourceJSON: json(z.strictObject({ query, filter: z.array(z.never()), indexRefName: z.string() })),
      }),
    }),
  }),
  z.strictObject({
    type: z.literal('dashboard'),
    ...versioned,
    typeMigrationVersion: z.enum(['8.9.0', '10.2.0']),
    attributes: z.looseObject({
      title: z.string(),
      description: z.string(),
      timeFrom: z.enum(['now-24h', 'now-7d']),
      panelsJSON: json(z.array(panel)),
      optionsJSON: json(z.record(z.string(), z.boolean())),
      kibanaSavedObjectMeta: z.strictObject({ searchSourceJSON: json(z.strictObject({ query, filter: z.array(z.never()) })) }),
      controlGroupInput: z
        .looseObject({ panelsJSON: json(z.record(z.string(), control)), ignoreParentSettingsJSON: json(z.looseObject({})) })
        .optional(),
    }),
  }),
]);

export type SavedObject = z.output<typeof savedObject>;
export type Reference = z.output<typeof reference>;
export type PanelJson = z.output<typeof panel>;
type Lens = z.output<typeof lens>;
export type LensColumn = z.output<typeof column>;

export function readSavedObjects(text: string): readonly SavedObject[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => savedObject.parse(JSON.parse(line)));
}

export const shippedObjects = (name: 'saved-objects' | 'saved-objects-ledger' = 'saved-objects'): readonly SavedObject[] =>
  readSavedObjects(readFileSync(new URL(`../../../content/kibana/${name}.ndjson`, import.meta.url), 'utf8'));

type SavedSearch = Extract<SavedObject, { type: 'search' }>['attributes'];
type MapLayer = Extract<z.output<typeof layerOfMap>, { type: 'GEOJSON_VECTOR' }>;

interface PlacedPanel {
  readonly dashboard: string;
  readonly title: string;
  readonly grid: z.output<typeof grid>;
  /** KQL of the dashboard and of the panel, without empty ones. */
  readonly queries: readonly string[];
}

export type LensPanel = PlacedPanel & { readonly kind: 'lens'; readonly lens: Lens };
export type MapPanel = PlacedPanel & { readonly kind: 'map'; readonly geoField: string };
export type SearchPanel = PlacedPanel & { readonly kind: 'search'; readonly columns: readonly string[] };
type TextPanel = PlacedPanel & { readonly kind: 'text'; readonly markdown: string };
export type DashboardPanel = LensPanel | MapPanel | SearchPanel | TextPanel;

/** The panels of all dashboards, in their order. */
export function dashboardPanels(objects: readonly SavedObject[]): readonly DashboardPanel[] {
  return objects.flatMap((object) => {
    if (object.type !== 'dashboard') return [];
    const { title: dashboard, panelsJSON, kibanaSavedObjectMeta } = object.attributes;
    const shared = kibanaSavedObjectMeta.searchSourceJSON.query.query;
    return panelsJSON.map((each): DashboardPanel => {
      const placed = (title: string, own: string): PlacedPanel => ({
        dashboard,
        title,
        grid: each.gridData,
        queries: [shared, own].filter((text) => text !== ''),
      });
      if (each.type === 'lens') {
        const { attributes } = each.embeddableConfig;
        return { ...placed(each.title, attributes.state.query.query), kind: 'lens', lens: attributes };
      }
      if (each.type === 'map') {
        const layer = each.embeddableConfig.attributes.layerListJSON.find((found): found is MapLayer => found.type === 'GEOJSON_VECTOR');
        if (!layer) throw new Error(`the map "${each.title}" has no layer of events`);
        return { ...placed(each.title, layer.query.query), kind: 'map', geoField: layer.sourceDescriptor.geoField };
      }
      if (each.type === 'visualization')
        return { ...placed(each.title, ''), kind: 'text', markdown: each.embeddableConfig.savedVis.params.markdown };
      const {
        title,
        columns,
        kibanaSavedObjectMeta: meta,
      } = searchOf(objects, object.references, `${each.panelIndex}:${each.panelRefName}`);
      return { ...placed(each.title ?? title, meta.searchSourceJSON.query.query), kind: 'search', columns };
    });
  });
}

function searchOf(
  objects: readonly SavedObject[],
  references: readonly { readonly id: string; readonly name: string }[],
  name: string,
): SavedSearch {
  const { id } = references.find((each) => each.name === name) ?? {};
  const found = objects.find((each) => each.id === id);
  if (found?.type !== 'search') throw new Error(`the reference ${name} is not a saved search`);
  return found.attributes;
}

export const lensPanels = (objects: readonly SavedObject[]): readonly LensPanel[] =>
  dashboardPanels(objects).filter((panel) => panel.kind === 'lens');

export function columnsOf({ state }: Lens): readonly (readonly [id: string, column: LensColumn])[] {
  const [layer, ...others] = Object.values(state.datasourceStates.formBased.layers);
  if (!layer || others.length > 0) throw new Error(`a panel has ${others.length} layers more than one`);
  const { columnOrder, columns } = layer;
  return columnOrder.map((id) => {
    const found = columns[id];
    if (!found) throw new Error(`a panel lacks the column ${id}`);
    return [id, found];
  });
}

/** The aggregation of a map: clusters in tiles, each at the centre of its events. */
export const clustersOf = ({ geoField }: MapPanel): object => ({
  clusters: {
    geotile_grid: { field: geoField, precision: 5, size: 1000 },
    aggs: { centre: { geo_centroid: { field: geoField } } },
  },
});

/** The aggregations of a Lens panel: buckets within buckets, with the metrics in each. */
export function aggregationsOf(panelLens: Lens, interval: string): object {
  const columns = columnsOf(panelLens);
  const metrics = columns.filter(([, column]) => !column.isBucketed && !isDocumentCount(column));
  const own = Object.fromEntries(metrics.map(([id, column]) => [id, aggregationOf(column)]));
  return columns
    .filter(([, { isBucketed }]) => isBucketed)
    .reduceRight<object>((inner, [id, { operationType, sourceField, params }]) => {
      const bucket =
        operationType === 'terms'
          ? { terms: { field: sourceField, size: params.size, order: { [orderOf(columns, params.orderBy?.columnId)]: 'desc' } } }
          : { date_histogram: { field: sourceField, fixed_interval: interval } };
      return { [id]: { ...bucket, aggs: { ...own, ...inner } } };
    }, own);
}

/** A bucket of a response, with the results of its aggregations by the ids of their columns. */
export interface Bucket {
  readonly key: string | number;
  readonly doc_count: number;
  readonly [column: string]: unknown;
}

/** The value of a column in a bucket: a number, or for `last_value` the text; null without events. */
export function valueIn(bucket: Bucket, [id, column]: readonly [id: string, column: LensColumn]): number | string | null {
  if (isDocumentCount(column)) return bucket.doc_count;
  const found = bucket[id] as { readonly doc_count: number; readonly value: unknown };
  if (column.operationType === 'count') return found.doc_count;
  const metric = column.filter ? found.value : found;
  if (column.operationType !== 'last_value') return (metric as { readonly value: number | null }).value;
  const { hits } = (metric as { readonly hits: { readonly hits: readonly { readonly fields: Readonly<Record<string, readonly unknown[]>> }[] } }).hits; // prettier-ignore
  return hits[0] ? Object.values(hits[0].fields).flat().join(', ') : null;
}

const isDocumentCount = ({ operationType, filter }: LensColumn): boolean => operationType === 'count' && !filter;

/** A column with a filter is a bucket of the events that match, with the metric as `value` in it. */
function aggregationOf(column: LensColumn): object {
  const { operationType, filter } = column;
  if (!filter) return metricOf(column);
  return { filter: kql(filter.query).query, ...(operationType === 'count' ? {} : { aggs: { value: metricOf(column) } }) };
}

function metricOf({ operationType, sourceField: field }: LensColumn): object {
  switch (operationType) {
    case 'max':
      return { max: { field } };
    case 'last_value':
      return { top_hits: { size: 1, sort: [{ '@timestamp': 'desc' }], docvalue_fields: [field], _source: false } };
    default:
      return { cardinality: { field } };
  }
}

/** The path of a column in the order of buckets. */
function orderOf(columns: ReturnType<typeof columnsOf>, id = '_count'): string {
  const column = columns.find(([each]) => each === id)?.[1];
  if (!column || isDocumentCount(column)) return '_count';
  return column.filter && column.operationType !== 'count' ? `${id}>value` : id;
}
