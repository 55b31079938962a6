/**
 * The Kibana content for ledger events: its objects, and the parts of its queries that a test
 * evaluates.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const kql = z.strictObject({ language: z.literal('kuery'), query: z.string() });
const reference = z.strictObject({ id: z.string(), name: z.string(), type: z.string() });
const column = z.object({
  label: z.string().min(1),
  operationType: z.enum(['count', 'max', 'terms', 'date_histogram']),
  sourceField: z.string(),
  isBucketed: z.boolean(),
  filter: kql.optional(),
  params: z.object({ orderBy: z.object({ columnId: z.string() }).optional() }),
});
const layer = z.strictObject({
  columnOrder: z.array(z.string()),
  columns: z.record(z.string(), column),
  incompleteColumns: z.strictObject({}),
});
const lens = z.object({
  references: z.array(reference),
  state: z.object({ query: kql, datasourceStates: z.object({ formBased: z.object({ layers: z.record(z.string(), layer) }) }) }),
});
const panel = z.strictObject({
  type: z.enum(['lens', 'search', 'visualization']),
  gridData: z.strictObject({ x: z.int(), y: z.int(), w: z.int(), h: z.int(), i: z.string() }),
  panelIndex: z.string(),
  panelRefName: z.string().optional(),
  title: z.string(),
  embeddableConfig: z.looseObject({ attributes: lens.optional() }),
});
const searchSource = z.object({ query: kql, indexRefName: z.string().optional() });
const json = <Shape extends z.ZodType>(shape: Shape) => z.string().transform((text) => shape.parse(JSON.parse(text)));
const saved = { id: z.string().startsWith('dpas-'), references: z.array(reference), coreMigrationVersion: z.literal('8.8.0') };
const kibanaSavedObjectMeta = z.strictObject({ searchSourceJSON: json(searchSource) });
const savedObject = z.discriminatedUnion('type', [
  z.strictObject({
    ...saved,
    type: z.literal('index-pattern'),
    typeMigrationVersion: z.literal('8.0.0'),
    attributes: z.strictObject({ name: z.string(), title: z.string(), timeFieldName: z.literal('@timestamp') }),
  }),
  z.strictObject({
    ...saved,
    type: z.literal('search'),
    typeMigrationVersion: z.literal('8.0.0'),
    attributes: z.looseObject({ title: z.string(), columns: z.array(z.string()), kibanaSavedObjectMeta }),
  }),
  z.strictObject({
    ...saved,
    type: z.literal('dashboard'),
    typeMigrationVersion: z.literal('8.9.0'),
    attributes: z.looseObject({ title: z.string(), panelsJSON: json(z.array(panel)), kibanaSavedObjectMeta }),
  }),
]);

/** Attributes of a rule of the detection engine, as `_import` reads them. */
const ruleCommon = {
  rule_id: z.enum(['dpas-no-proof', 'dpas-trail-broken']),
  name: z.string(),
  description: z.string(),
  author: z.array(z.string()),
  license: z.string(),
  from: z.string().regex(/^now-\d+[mh]$/),
  to: z.literal('now'),
  interval: z.literal('5m'),
  timestamp_override: z.literal('event.ingested'),
  enabled: z.literal(false),
  version: z.int().positive(),
  tags: z.array(z.string()),
  threat: z.array(z.never()),
  references: z.array(z.url()),
  max_signals: z.int(),
  severity: z.literal('high'),
  risk_score: z.literal(73),
  note: z.string(),
  false_positives: z.array(z.string()),
};
const rule = z.discriminatedUnion('type', [
  z.strictObject({
    ...ruleCommon,
    type: z.literal('query'),
    language: z.literal('kuery'),
    index: z.array(z.string()),
    query: z.string(),
  }),
  z.strictObject({
    ...ruleCommon,
    type: z.literal('esql'),
    language: z.literal('esql'),
    query: z.string(),
    alert_suppression: z.strictObject({
      group_by: z.array(z.string()),
      duration: z.strictObject({ value: z.int(), unit: z.enum(['m', 'h']) }),
      missing_fields_strategy: z.enum(['suppress', 'doNotSuppress']),
    }),
  }),
]);

export type Column = z.infer<typeof column>;

const lines = (name: string): unknown[] =>
  readFileSync(new URL(`../../content/kibana/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));

export const objects = lines('saved-objects-ledger').map((line) => savedObject.parse(line));
export const rules = lines('detection-rules-ledger').map((line) => rule.parse(line));

type SavedObject = (typeof objects)[number];

/** The only object of a type. */
export function objectOf<Type extends SavedObject['type']>(type: Type): Extract<SavedObject, { type: Type }> {
  const found = objects.filter((object): object is Extract<SavedObject, { type: Type }> => object.type === type);
  const [object] = found;
  if (!object || found.length > 1) throw new Error(`content/kibana has ${found.length} objects of type ${type}`);
  return object;
}

export const dashboard = objectOf('dashboard');

/** The columns of a panel of the dashboard, in their order. */
export const columnsOf = (panelIndex: string): Column[] => {
  const found = dashboard.attributes.panelsJSON.find((each) => each.panelIndex === panelIndex);
  const layers = found?.embeddableConfig.attributes?.state.datasourceStates.formBased.layers ?? {};
  return Object.values(layers).flatMap(({ columns, columnOrder }) => columnOrder.flatMap((id) => columns[id] ?? []));
};

/**
 * The values of `event.action` that a query lists; the queries of this content have no other form.
 */
export function actionsOf(query: string): string[] {
  const [, values = ''] = /^event\.action: (?:\((.+)\)|(?="))/.exec(query) ?? [];
  const listed = (values === '' ? query.replace(/^event\.action: /, '') : values).split(' or ');
  return listed.map((value) => {
    const [, action] = /^"([a-z-]+)"$/.exec(value) ?? [];
    if (action === undefined) throw new Error(`cannot read "${query}": ${value} is not a quoted action`);
    return action;
  });
}
