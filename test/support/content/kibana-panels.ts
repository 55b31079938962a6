/**
 * Panels of Kibana's dashboards: Lens (bars over time, tables) and Maps, by value. Shape after elastic/integrations,
 * packages/varonis/kibana/dashboard.
 */

export const dataView = 'dpas-data-view';

export interface Reference {
  readonly id: string;
  readonly name: string;
  readonly type: 'index-pattern' | 'search' | 'dashboard';
}

export interface Column {
  readonly label: string;
  readonly operationType: 'terms' | 'date_histogram' | 'count' | 'unique_count' | 'max' | 'last_value';
  readonly sourceField: string;
  readonly size?: number;
}

interface Grid {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

interface LensPanel {
  readonly title: string;
  readonly grid: Grid;
  /** KQL */
  readonly query: string;
  readonly kind: 'bars' | 'table';
  /** Buckets first, then metrics. */
  readonly columns: readonly Column[];
}

/** A click on a value filters this dashboard by it, and opens it. */
export interface Drilldown {
  readonly name: string;
  readonly dashboard: string;
}

/** Clusters of the positions of events on a map. */
interface MapPanel {
  readonly title: string;
  readonly grid: Grid;
  readonly query: string;
  readonly kind: 'map';
  readonly geoField: string;
}

export type Panel = LensPanel | MapPanel;

export const terms = (sourceField: string, label: string, size = 10): Column => ({ operationType: 'terms', sourceField, label, size });
const time: Column = { operationType: 'date_histogram', sourceField: '@timestamp', label: 'Time' };
export const events: Column = { operationType: 'count', sourceField: '___records___', label: 'Events' };
export const users: Column = { operationType: 'unique_count', sourceField: 'user.id', label: 'Users' };
export const files: Column = { operationType: 'unique_count', sourceField: 'dpas.payload.id', label: 'Files' };
/** The value in the newest event with this field. */
export const last = (sourceField: string, label: string): Column => ({ operationType: 'last_value', sourceField, label });
export const newest: Column = { operationType: 'max', sourceField: '@timestamp', label: 'Newest' };

export const bars = (title: string, query: string, breakdown: Column, grid: Grid): LensPanel => ({ title, query, grid, kind: 'bars', columns: [time, breakdown, events] }); // prettier-ignore
export const table = (title: string, query: string, columns: readonly Column[], grid: Grid): LensPanel => ({
  title,
  query,
  grid,
  kind: 'table',
  columns,
});

const isBucket = ({ operationType }: Column): boolean => operationType === 'terms' || operationType === 'date_histogram';

function columnOf(column: Column, countId: string): object {
  const { operationType, sourceField, label } = column;
  const shared = { label, customLabel: true, operationType, sourceField, isBucketed: isBucket(column) };
  switch (operationType) {
    case 'terms':
      return {
        ...shared,
        dataType: 'string',
        scale: 'ordinal',
        params: {
          size: column.size,
          orderBy: { type: 'column', columnId: countId },
          orderDirection: 'desc',
          otherBucket: false,
          missingBucket: false,
          parentFormat: { id: 'terms' },
        },
      };
    case 'last_value':
      return {
        ...shared,
        dataType: 'string',
        scale: 'ordinal',
        filter: { language: 'kuery', query: `${sourceField}: *` },
        params: { sortField: '@timestamp', showArrayValues: true },
      };
    case 'date_histogram':
      return { ...shared, dataType: 'date', scale: 'interval', params: { interval: 'auto', includeEmptyRows: true, dropPartials: false } };
    default:
      return { ...shared, dataType: operationType === 'max' ? 'date' : 'number', scale: 'ratio', params: { emptyAsNull: false } };
  }
}

export function lensOf(
  { title, query, kind, columns }: LensPanel,
  drilldown?: Drilldown,
): { readonly config: object; readonly references: readonly Reference[] } {
  const ids = columns.map((_, index) => `column-${index}`);
  const metrics = ids.filter((_, index) => !isBucket(columns[index] ?? time));
  const count = ids[columns.indexOf(events)] ?? '';
  const layer = {
    columnOrder: ids,
    columns: Object.fromEntries(columns.map((column, index) => [`column-${index}`, columnOf(column, count)])),
    incompleteColumns: {},
    sampling: 1,
  };
  const [x, split] = ids;
  const visualization =
    kind === 'bars'
      ? {
          legend: { isVisible: true, position: 'right' },
          valueLabels: 'hide',
          preferredSeriesType: 'bar_stacked',
          layers: [
            { layerId: 'layer', layerType: 'data', seriesType: 'bar_stacked', xAccessor: x, splitAccessor: split, accessors: metrics },
          ],
        }
      : {
          layerId: 'layer',
          layerType: 'data',
          columns: ids.map((columnId) => ({ columnId, isTransposed: false, isMetric: metrics.includes(columnId) })),
          paging: { enabled: true, size: 10 },
        };
  const references: readonly Reference[] = [{ type: 'index-pattern', id: dataView, name: 'indexpattern-datasource-layer-layer' }];
  const state = {
    datasourceStates: { formBased: { layers: { layer } } },
    visualization,
    query: { language: 'kuery', query },
    filters: [],
    internalReferences: [],
    adHocDataViews: {},
  };
  const visualizationType = kind === 'bars' ? 'lnsXY' : 'lnsDatatable';
  const { enhancements, target } = drilldown ? drilldownOf(drilldown) : { enhancements: {}, target: [] };
  return {
    config: { attributes: { title, type: 'lens', visualizationType, references, state }, enhancements },
    references: [...references, ...target],
  };
}

/** Shape after elastic/kibana 8 and 9, where a panel names the dashboard by a reference only. Needs no paid licence. */
function drilldownOf({ name, dashboard }: Drilldown): { readonly enhancements: object; readonly target: readonly Reference[] } {
  const factoryId = 'DASHBOARD_TO_DASHBOARD_DRILLDOWN';
  const config = { useCurrentFilters: true, useCurrentDateRange: true, openInNewTab: false };
  const event = { eventId: dashboard, triggers: ['FILTER_TRIGGER'], action: { factoryId, name, config } };
  return {
    enhancements: { dynamicActions: { events: [event] } },
    target: [{ type: 'dashboard', id: dashboard, name: `drilldown:${factoryId}:${event.eventId}:dashboardId` }],
  };
}

/**
 * A map by value: Elastic's base map, and a circle for each cluster of events, sized by their
 * number.
 */
export function mapOf({ title, query, geoField }: MapPanel): { readonly config: object; readonly references: readonly Reference[] } {
  const index = 'layer_1_source_index_pattern';
  const layer = { minZoom: 0, maxZoom: 24, visible: true, includeInFitToBounds: true };
  const circles = {
    fillColor: { type: 'STATIC', options: { color: '#e7664c' } },
    lineColor: { type: 'STATIC', options: { color: '#ffffff' } },
    lineWidth: { type: 'STATIC', options: { size: 1 } },
    iconSize: {
      type: 'DYNAMIC',
      options: { minSize: 6, maxSize: 28, field: { name: 'doc_count', origin: 'source' }, fieldMetaOptions: { isEnabled: true, sigma: 3 } },
    },
    symbolizeAs: { options: { value: 'circle' } },
  };
  const layers = [
    {
      ...layer,
      id: 'base',
      label: null,
      alpha: 1,
      type: 'EMS_VECTOR_TILE',
      style: { type: 'EMS_VECTOR_TILE', color: '' },
      sourceDescriptor: { type: 'EMS_TMS', isAutoSelect: true, lightModeDefault: 'road_map_desaturated' },
    },
    {
      ...layer,
      id: 'events',
      label: title,
      alpha: 0.75,
      type: 'GEOJSON_VECTOR',
      joins: [],
      style: { type: 'VECTOR', isTimeAware: true, properties: circles },
      query: { language: 'kuery', query },
      sourceDescriptor: {
        type: 'ES_GEO_GRID',
        id: 'events-source',
        geoField,
        requestType: 'point',
        resolution: 'COARSE',
        metrics: [{ type: 'count' }],
        applyGlobalQuery: true,
        applyGlobalTime: true,
        applyForceRefresh: true,
        indexPatternRefName: index,
      },
    },
  ];
  const attributes = {
    title,
    description: '',
    layerListJSON: JSON.stringify(layers),
    mapStateJSON: JSON.stringify({ zoom: 1, center: { lon: 0, lat: 20 }, settings: { autoFitToDataBounds: false } }),
    uiStateJSON: JSON.stringify({ isLayerTOCOpen: false, openTOCDetails: [] }),
  };
  const view = { mapCenter: { lat: 20, lon: 0, zoom: 1 }, isLayerTOCOpen: false, openTOCDetails: [], hiddenLayers: [] };
  return { config: { attributes, ...view, enhancements: {} }, references: [{ type: 'index-pattern', id: dataView, name: index }] };
}
