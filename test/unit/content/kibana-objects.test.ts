/**
 * The saved objects of content/kibana: they match Kibana's formats, references resolve, fields are
 * mapped, and panels find events.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { rows } from '../../support/normalize/records.ts';
import { eventOf, flat, recordFor } from '../../support/content/events.ts';
import { savedObjects } from '../../support/content/kibana-objects.ts';
import { kql } from '../../support/content/kql.ts';
import { ledgerEvents } from '../../support/content/ledger-events.ts';
import { columnsOf, dashboardPanels, lensPanels, readSavedObjects, shippedObjects } from '../../support/content/lens.ts';
import type { PanelJson, Reference, SavedObject } from '../../support/content/lens.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';

const path = fileURLToPath(new URL('../../../content/kibana/saved-objects.ndjson', import.meta.url));

test('the file matches the table', async () => {
  await expect(savedObjects).toMatchFileSnapshot(path);
});

/** Each file is imported without the other, where a sink has no ledger events. */
const [audit, ledger] = [readSavedObjects(savedObjects), shippedObjects('saved-objects-ledger')];
const objects = [...audit, ...ledger];
const panels = dashboardPanels(objects);

test('ids are fixed and unique', () => {
  expect(new Set(objects.map(({ id }) => id)).size).toBe(objects.length);
  expect(audit.map(({ type }) => type).toSorted()).toEqual(['dashboard', 'dashboard', 'dashboard', 'index-pattern', 'search', 'search', 'search', 'search']); // prettier-ignore
  expect(ledger.map(({ type }) => type).toSorted()).toEqual(['dashboard', 'index-pattern', 'search', 'search']);
});

test.each([audit, ledger].flatMap((file) => file.map((object) => [object.id, object, file] as const)))(
  '%s: each reference resolves in its file, and each name in it is used',
  (_, object, file) => {
    const inner = object.type === 'dashboard' ? object.attributes.panelsJSON.flatMap(ownReferencesOf) : [];
    for (const { type, id } of [...object.references, ...inner])
      expect(file.some((each) => each.type === type && each.id === id)).toBe(true);
    expect(object.references.map(({ name }) => name).toSorted()).toEqual(namesIn(object).toSorted());
  },
);

/** The names of references that the attributes of an object use. */
function namesIn(object: SavedObject): readonly string[] {
  switch (object.type) {
    case 'index-pattern':
      return [];
    case 'search':
      return [object.attributes.kibanaSavedObjectMeta.searchSourceJSON.indexRefName];
    case 'dashboard':
      return [
        ...object.attributes.panelsJSON.flatMap((panel) => referencesOf(panel).map((name) => `${panel.panelIndex}:${name}`)),
        ...Object.keys(object.attributes.controlGroupInput?.panelsJSON ?? {}).map((id) => `controlGroup_${id}:optionsListDataView`),
      ];
  }
}

const ownReferencesOf = (panel: PanelJson): readonly Reference[] =>
  panel.type === 'lens' ? panel.embeddableConfig.attributes.references : [];

/** The names of the references that Kibana looks for: src/platform/plugins/shared/embeddable_enhanced of elastic/kibana 9. */
const drilldownsOf = (panel: PanelJson): readonly string[] =>
  panel.type === 'lens'
    ? (panel.embeddableConfig.enhancements.dynamicActions?.events ?? []).map(
        ({ eventId, action: { factoryId } }) => `drilldown:${factoryId}:${eventId}:dashboardId`,
      )
    : [];

test('each table of users or files opens the dashboard of one user or file, which has a control for the value', () => {
  const opened = audit.flatMap((object) => {
    if (object.type !== 'dashboard' || object.id === 'dpas-dashboard-user-or-file') return [];
    return object.attributes.panelsJSON.flatMap((panel) => {
      if (panel.type !== 'lens' || panel.embeddableConfig.attributes.visualizationType !== 'lnsDatatable') return [];
      const columns = columnsOf(panel.embeddableConfig.attributes).map(([, { operationType, sourceField }]) => `${operationType} ${sourceField}`); // prettier-ignore
      const [drilldown] = drilldownsOf(panel);
      const { id } = object.references.find(({ name }) => name === `${panel.panelIndex}:${drilldown}`) ?? {};
      const fields = columns.filter((column) => ['terms user.id', 'terms dpas.payload.id'].includes(column));
      return [[panel.title, fields.join(), id]];
    });
  });
  const target = 'dpas-dashboard-user-or-file';
  expect(opened).toEqual([
    ['Outcomes', '', undefined],
    ['Users with most denials', 'terms user.id', target],
    ['Files with most denials', 'terms dpas.payload.id', target],
    ['Changes by user', 'terms user.id', target],
    ['Files with most changes', 'terms dpas.payload.id', target],
  ]);
  const { controlGroupInput } = audit.flatMap((object) => (object.type === 'dashboard' && object.id === target ? [object.attributes] : []))[0] ?? {}; // prettier-ignore
  const controls = Object.values(controlGroupInput?.panelsJSON ?? {}).map(({ explicitInput }) => explicitInput.fieldName);
  expect(controls).toEqual(expect.arrayContaining(['user.id', 'dpas.payload.id']));
});

function referencesOf(panel: PanelJson): readonly string[] {
  switch (panel.type) {
    case 'lens':
      return [...ownReferencesOf(panel).map(({ name }) => name), ...drilldownsOf(panel)];
    case 'map':
      return panel.embeddableConfig.attributes.layerListJSON.flatMap((layer) =>
        layer.type === 'GEOJSON_VECTOR' ? [layer.sourceDescriptor.indexPatternRefName] : [],
      );
    case 'search':
      return [panel.panelRefName];
    case 'visualization':
      return [];
  }
}

test('every field is mapped, and has a type that its operation can aggregate', () => {
  const fields = [
    ...panels.flatMap(({ queries }) => queries.flatMap((query) => kql(query).fields)),
    ...lensPanels(objects).flatMap(({ lens }) => columnsOf(lens).flatMap(([, { filter }]) => (filter ? kql(filter.query).fields : []))),
    ...panels.flatMap((panel) => (panel.kind === 'search' ? panel.columns : [])),
    ...objects.flatMap((object) =>
      object.type === 'search'
        ? [...object.attributes.columns, ...kqlFields(object.attributes.kibanaSavedObjectMeta.searchSourceJSON.query.query)]
        : object.type === 'dashboard'
          ? Object.values(object.attributes.controlGroupInput?.panelsJSON ?? {}).map(({ explicitInput }) => explicitInput.fieldName)
          : [],
    ),
  ];
  expect(fields.length).toBeGreaterThan(40);
  expect(fields.filter((field) => !mappedFields.has(field))).toEqual([]);
  for (const { title, lens } of lensPanels(objects))
    for (const [, { operationType, sourceField, dataType }] of columnsOf(lens)) {
      if (operationType === 'count') continue;
      const type = mappedFields.get(sourceField) ?? 'not mapped';
      const expected = dataType === 'date' ? ['date'] : ['keyword', 'ip'];
      expect(expected, `${title}: ${sourceField}`).toContain(type);
    }
  const maps = panels.flatMap((panel) => (panel.kind === 'map' ? [panel.geoField] : []));
  expect(maps.map((field) => mappedFields.get(field))).toEqual(['geo_point']);
});

const kqlFields = (query: string): readonly string[] => (query === '' ? [] : kql(query).fields);

describe('the layout', () => {
  test.each(objects.flatMap((object) => (object.type === 'dashboard' ? [[object.attributes.title, object] as const] : [])))(
    '%s has no panels that overlap or exceed the page',
    (_, { attributes }) => {
      const cells = attributes.panelsJSON.flatMap(({ gridData: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_each, cell) => `${x + (cell % w)}/${y + Math.floor(cell / w)}`),
      );
      expect(new Set(cells).size).toBe(cells.length);
      for (const { gridData, panelIndex } of attributes.panelsJSON) {
        expect(gridData.x + gridData.w).toBeLessThanOrEqual(48);
        expect(gridData.i).toBe(panelIndex);
      }
    },
  );
});

test('the queries of the panels for records find events, and exclude test events and ledger events', () => {
  const events = rows.map(({ triple }, at) => eventOf(recordFor({ code: triple.join(':'), at })));
  for (const { title, queries } of dashboardPanels(audit)) {
    const tests = queries.map((query) => kql(query).matches);
    expect(
      events.some((event) => tests.every((matches) => matches(event))),
      title,
    ).toBe(true);
    const marked = events.map((event) => ({ ...event, tags: ['forwarded', 'waybill_test'] }));
    const others = [...marked, ...ledgerEvents.map((event) => flat(event, ''))];
    expect(
      others.some((event) => tests.every((matches) => matches(event))),
      title,
    ).toBe(false);
  }
});
