/** Reads content/kibana/saved-objects.ndjson, and translates each panel into its aggregations. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Written after elastic/kibana 9.x: src/platform/plugins/shared/dashboard, data_views and x-pack/platform/plugins/shared/{lens,maps}. */
const json = <Schema extends z.ZodType>(schema: Schema) => z.string().transform((text) => schema.parse(JSON.parse(text)));
const reference = z.strictObject({ type: z.enum(['index-pattern', 'search']), id: z.string(), name: z.string() });
const query = z.strictObject({ language: z.literal('kuery'), query: z.string() });
const versioned = {
  id: z.string().regex(/^dpas-/),
  references: z.array(reference),
  coreMigrationVersion: z.string(),
  typeMigrationVersion: z.string(),
};

const column = z.looseObject({
  label: z.string(),
  isBucketed: z.boolean(),
  dataType: z.enum(['string', 'date', 'number']),
  operationType: z.enum(['terms', 'date_histogram', 'count', 'unique_count', 'max', 'last_value']),
  sourceField: z.string(),
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
    datasourceStates: z.strictObject({ formBased: z.strictObject({ layers: z.strictObject({ layer }) }) }),
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
const panel = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('lens'),
    title: z.string(),
    panelIndex: z.string(),
    gridData: grid,
    embeddableConfig: z.strictObject({ attributes: lens, enhancements: z.strictObject({}) }),
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
    panelIndex: z.string(),
    panelRefName: z.string(),
    gridData: grid,
    embeddableConfig: z.strictObject({ enhancements: z.strictObject({}) }),
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
    attributes: z.strictObject({ title: z.string(), name: z.string(), timeFieldName: z.literal('@timestamp') }),
  }),
  z.strictObject({
    type: z.literal('search'),
    ...versioned,
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
    attributes: z.looseObject({
      title: z.string(),
      panelsJSON: json(z.array(panel)),
      optionsJSON: json(z.record(z.string(), z.boolean())),
      kibanaSavedObjectMeta: z.strictObject({ searchSourceJSON: json(z.strictObject({ query, filter: z.array(z.never()) })) }),
      controlGroupInput: z.looseObject({
        panelsJSON: json(z.record(z.string(), control)),
        ignoreParentSettingsJSON: json(z.looseObject({})),
      }),
    }),
  }),
]);

export type SavedObject = z.output<typeof savedObject>;
export type PanelJson = z.output<typeof panel>;
type Lens = z.output<typeof lens>;
type LensColumn = z.output<typeof column>;

export function readSavedObjects(text: string): readonly SavedObject[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => savedObject.parse(JSON.parse(line)));
}

export const shippedObjects = (): readonly SavedObject[] =>
  readSavedObjects(readFileSync(new URL('../../../content/kibana/saved-objects.ndjson', import.meta.url), 'utf8'));

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
export type DashboardPanel = LensPanel | MapPanel | SearchPanel;

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
      const {
        title,
        columns,
        kibanaSavedObjectMeta: meta,
      } = searchOf(objects, object.references, `${each.panelIndex}:${each.panelRefName}`);
      return { ...placed(title, meta.searchSourceJSON.query.query), kind: 'search', columns };
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
  const { columnOrder, columns } = state.datasourceStates.formBased.layers.layer;
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
  const metrics = columns.filter(([, { isBucketed, operationType }]) => !isBucketed && operationType !== 'count');
  const own = Object.fromEntries(metrics.map(([id, { operationType, sourceField }]) => [id, metricOf(operationType, sourceField)]));
  return columns
    .filter(([, { isBucketed }]) => isBucketed)
    .reduceRight<object>((inner, [id, { operationType, sourceField, params }]) => {
      const ordered = columns.find(([each]) => each === params.orderBy?.columnId)?.[1].operationType;
      const bucket =
        operationType === 'terms'
          ? {
              terms: {
                field: sourceField,
                size: params.size,
                order: { [ordered === 'count' ? '_count' : (params.orderBy?.columnId ?? '_count')]: 'desc' },
              },
            }
          : { date_histogram: { field: sourceField, fixed_interval: interval } };
      return { [id]: { ...bucket, aggs: { ...own, ...inner } } };
    }, own);
}

function metricOf(operationType: string, field: string): object {
  switch (operationType) {
    case 'max':
      return { max: { field } };
    case 'last_value': {
      const newest = { size: 1, sort: [{ '@timestamp': 'desc' }], docvalue_fields: [field], _source: false };
      return { filter: { exists: { field } }, aggs: { hit: { top_hits: newest } } };
    }
    default:
      return { cardinality: { field } };
  }
}
