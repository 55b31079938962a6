/**
 * The data view, searches and dashboards of content/kibana, from which `vitest run test/unit/content/kibana-objects.test.ts --update` writes
 * saved-objects.ndjson.
 */
import { bars, dataView, events, files, last, lensOf, mapOf, newest, table, terms, users } from './kibana-panels.ts';
import type { Column, Drilldown, Panel, Reference } from './kibana-panels.ts';
import { auditPattern } from '../../../tools/content/esql.ts';

/** The lowest versions of Kibana's formats that have these attributes; later Kibanas migrate from them. */
const versions = { coreMigrationVersion: '8.8.0' };

const denied = 'dpas.result: "AccessDenied"';
const changes = 'dpas.action_attempted: "Audit"';
const [half, full] = [24, 48];

interface Search {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly query: string;
  readonly columns: readonly string[];
}

const who = ['user.id', 'user.email', 'file.name', 'dpas.payload.id'];
const place = ['source.ip', 'host.name'];
const searches: readonly Search[] = [
  {
    id: 'dpas-search-denied-opens',
    title: 'Protected files: denied opens without access or from an excluded country',
    description: 'The newest first.',
    query: 'event.code: ("Decrypt:AccessDenied:UserPayloadNoAccess" or "Decrypt:AccessDenied:GeoValidationCountryExclusionFailed")',
    columns: ['event.reason', ...who, ...place],
  },
  {
    id: 'dpas-search-unexpected',
    title: 'Protected files: unexpected records',
    description: 'Records with unknown values, missing fields or other types; event.original is the record as received.',
    query: 'tags: ("unknown_combination" or "missing_field" or "unexpected_type" or "not_an_object" or "invalid_timestamp")',
    columns: ['tags', 'event.code', 'event.original'],
  },
  {
    id: 'dpas-search-events',
    title: 'Protected files: events',
    description: 'Every event, newest first.',
    query: '',
    columns: ['event.code', ...who, ...place, 'message'],
  },
  {
    id: 'dpas-search-owner-changes',
    title: 'Protected files: owner changes',
    description: 'Each change of owner; the owner of an event is the current one.',
    query: 'event.code: "Audit:AuthorChanged:Changed"',
    columns: [...who, 'file.uid', 'file.owner'],
  },
];

interface Dashboard {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly controls: readonly (readonly [field: string, title: string])[];
  readonly panels: readonly Panel[];
  /** The search below the panels. */
  readonly search: string;
}

const userOrFile: Drilldown = { name: 'Open this user or file', dashboard: 'dpas-dashboard-user-or-file' };

const controls = [
  ['user.id', 'User'],
  ['dpas.payload.id', 'File'],
] as const;

const dashboards: readonly Dashboard[] = [
  {
    id: 'dpas-dashboard-overview',
    title: 'Protected files: overview',
    description: 'Activity, denials by reason, and the users and files with most denials. Leaves out test events.',
    controls: [['observer.hostname', 'Service']],
    search: 'dpas-search-denied-opens',
    panels: [
      bars('Events by action', '', terms('event.action', 'Action'), { x: 0, y: 0, w: half, h: 12 }),
      bars('Denials by reason', denied, terms('event.reason', 'Reason'), { x: half, y: 0, w: half, h: 12 }),
      table('Outcomes', '', [terms('event.code', 'Outcome', 20), events, users, files], { x: 0, y: 12, w: half, h: 14 }),
      table('Users with most denials', denied, [terms('user.id', 'User'), last('user.email', 'E-mail'), events, files, newest], {
        x: half,
        y: 12,
        w: half,
        h: 14,
      }),
      table('Files with most denials', denied, [terms('dpas.payload.id', 'File id'), last('file.name', 'File'), events, users, newest], { x: 0, y: 26, w: half, h: 14 }), // prettier-ignore
      {
        title: 'Places of denials',
        query: denied,
        grid: { x: half, y: 26, w: half, h: 14 },
        kind: 'map',
        geoField: 'source.geo.location',
      },
    ],
  },
  {
    id: userOrFile.dashboard,
    title: 'Protected files: one user or file',
    description: 'Choose a user or a file: its timeline, opens, denials, changes, places and machines. Leaves out test events.',
    controls: [...controls, ['user.email', 'E-mail'], ['file.name', 'File name']],
    search: 'dpas-search-events',
    panels: [
      bars('Timeline', '', terms('event.code', 'Outcome', 17), { x: 0, y: 0, w: full, h: 12 }),
      table('Outcomes', '', [terms('event.code', 'Outcome', 20), events, files, users, newest], { x: 0, y: 12, w: half, h: 14 }),
      table('Files', '', [terms('dpas.payload.id', 'File id', 20), last('file.name', 'File'), events, newest], {
        x: half,
        y: 12,
        w: half,
        h: 14,
      }),
      table('Places', '', [terms('source.ip', 'Address'), last('source.as.organization.name', 'Provider'), events, newest], { x: 0, y: 26, w: half, h: 14 }), // prettier-ignore
      table('Machines', '', [terms('host.name', 'Machine'), last('host.type', 'Type'), events, users, newest], { x: half, y: 26, w: half, h: 14 }), // prettier-ignore
    ],
  },
  {
    id: 'dpas-dashboard-control-changes',
    title: 'Protected files: control changes',
    description: 'Changes of owners, authorizations, access windows and revocations: by whom and on what. Leaves out test events.',
    controls,
    search: 'dpas-search-owner-changes',
    panels: [
      bars('Changes', changes, terms('event.action', 'Change'), { x: 0, y: 0, w: full, h: 12 }),
      table('Changes by user', changes, [terms('user.id', 'User', 20), terms('event.action', 'Change'), events, files], {
        x: 0,
        y: 12,
        w: half,
        h: 14,
      }),
      table('Files with most changes', changes, [terms('dpas.payload.id', 'File id', 20), last('file.name', 'File'), events, users, newest], { x: half, y: 12, w: half, h: 14 }), // prettier-ignore
    ],
  },
];

/** Without events of `waybill sinks test`, and without ledger events, which a sink with `index` stores beside records. */
const records = 'not tags: "waybill_test" and not event.kind: "state"';

function searchOf({ id, title, description, query, columns }: Search): object {
  const index = 'kibanaSavedObjectMeta.searchSourceJSON.index';
  const searchSource = { query: { language: 'kuery', query }, filter: [], indexRefName: index };
  return {
    type: 'search',
    id,
    attributes: { title, description, columns, sort: [['@timestamp', 'desc']], grid: {}, hideChart: false, isTextBasedQuery: false, kibanaSavedObjectMeta: { searchSourceJSON: JSON.stringify(searchSource) } }, // prettier-ignore
    references: [{ type: 'index-pattern', id: dataView, name: index }],
    ...versions,
    typeMigrationVersion: '8.0.0',
  };
}

const isUserOrFile = ({ operationType, sourceField }: Column): boolean =>
  operationType === 'terms' && controls.some(([field]) => field === sourceField);

function dashboardOf(plan: Dashboard): object {
  const references: Reference[] = [];
  const panels = plan.panels.map((panel, position) => {
    const id = `panel-${position}`;
    const names = panel.kind === 'table' && panel.columns.some(isUserOrFile) && plan.id !== userOrFile.dashboard;
    const { config, references: inner } = panel.kind === 'map' ? mapOf(panel) : lensOf(panel, names ? userOrFile : undefined);
    references.push(...inner.map((reference) => ({ ...reference, name: `${id}:${reference.name}` })));
    const type = panel.kind === 'map' ? 'map' : 'lens';
    return { type, title: panel.title, panelIndex: id, gridData: { ...panel.grid, i: id }, embeddableConfig: config };
  });
  const below = Math.max(...plan.panels.map(({ grid }) => grid.y + grid.h));
  const search = { type: 'search', panelIndex: 'search', panelRefName: 'panel_search', gridData: { x: 0, y: below, w: full, h: 18, i: 'search' }, embeddableConfig: { enhancements: {} } }; // prettier-ignore
  references.push({ type: 'search', id: plan.search, name: 'search:panel_search' });
  const group = plan.controls.map(([fieldName, title], order) => {
    const id = `control-${order}`;
    references.push({ type: 'index-pattern', id: dataView, name: `controlGroup_${id}:optionsListDataView` });
    return [id, { type: 'optionsListControl', order, width: 'medium', grow: true, explicitInput: { id, fieldName, title, searchTechnique: 'prefix', selectedOptions: [] } }]; // prettier-ignore
  });
  return {
    type: 'dashboard',
    id: plan.id,
    attributes: {
      title: plan.title,
      description: plan.description,
      version: 1,
      timeRestore: true,
      timeFrom: 'now-7d',
      timeTo: 'now',
      optionsJSON: JSON.stringify({ useMargins: true, syncColors: true, syncCursor: true, syncTooltips: false, hidePanelTitles: false }),
      panelsJSON: JSON.stringify([...panels, search]),
      kibanaSavedObjectMeta: { searchSourceJSON: JSON.stringify({ query: { language: 'kuery', query: records }, filter: [] }) },
      controlGroupInput: {
        chainingSystem: 'HIERARCHICAL',
        controlStyle: 'oneLine',
        showApplySelections: false,
        ignoreParentSettingsJSON: JSON.stringify({
          ignoreFilters: false,
          ignoreQuery: false,
          ignoreTimerange: false,
          ignoreValidations: false,
        }),
        panelsJSON: JSON.stringify(Object.fromEntries(group)),
      },
    },
    references,
    ...versions,
    typeMigrationVersion: '10.2.0',
  };
}

const view = {
  type: 'index-pattern',
  id: dataView,
  attributes: { title: auditPattern, name: 'Protected files (Waybill)', timeFieldName: '@timestamp' },
  references: [],
  ...versions,
  typeMigrationVersion: '8.0.0',
};

export const savedObjects = [view, ...searches.map(searchOf), ...dashboards.map(dashboardOf)]
  .map((object) => `${JSON.stringify(object)}\n`)
  .join('');
