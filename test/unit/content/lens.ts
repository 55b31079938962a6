/** Reads content/kibana/saved-objects.ndjson, and turns each Lens panel into the search that it stands for. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Written after elastic/kibana 9.x: src/platform/plugins/shared/dashboard, data_views and x-pack/platform/plugins/shared/lens. */
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
  operationType: z.enum(['terms', 'date_histogram', 'count', 'unique_count', 'max']),
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

interface LensPanel {
  readonly dashboard: string;
  readonly title: string;
  readonly lens: Lens;
  /** The query of the dashboard and of the panel. */
  readonly queries: readonly string[];
}

export function lensPanels(objects: readonly SavedObject[]): readonly LensPanel[] {
  return objects.flatMap((object) => {
    if (object.type !== 'dashboard') return [];
    const { title, panelsJSON, kibanaSavedObjectMeta } = object.attributes;
    return panelsJSON.flatMap((each) =>
      each.type === 'lens'
        ? [
            {
              dashboard: title,
              title: each.title,
              lens: each.embeddableConfig.attributes,
              queries: [kibanaSavedObjectMeta.searchSourceJSON.query.query, each.embeddableConfig.attributes.state.query.query],
            },
          ]
        : [],
    );
  });
}

export function columnsOf({ state }: Lens): readonly (readonly [id: string, column: LensColumn])[] {
  const { columnOrder, columns } = state.datasourceStates.formBased.layers.layer;
  return columnOrder.map((id) => {
    const found = columns[id];
    if (!found) throw new Error(`a panel lacks the column ${id}`);
    return [id, found];
  });
}

/** The aggregations of a panel: buckets within buckets, with the metrics in each. */
export function aggregationsOf(panelLens: Lens, interval: string): object {
  const columns = columnsOf(panelLens);
  const metrics = columns.filter(([, { isBucketed, operationType }]) => !isBucketed && operationType !== 'count');
  const own = Object.fromEntries(
    metrics.map(([id, { operationType, sourceField }]) => [
      id,
      operationType === 'max' ? { max: { field: sourceField } } : { cardinality: { field: sourceField } },
    ]),
  );
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
