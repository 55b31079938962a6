/**
 * The pictures of Kibana's dashboards in docs/images, drawn from the aggregations and searches of
 * each panel on a real Elasticsearch. `npm run content:previews` draws them again; without
 * `--update` the test compares, and a panel without data fails.
 */
import { expect, test } from 'vitest';
import component from '../../content/elasticsearch/component-template.json' with { type: 'json' };
import { encoder } from '../../src/encode/index.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import type { PanelPicture } from '../support/content/dashboard-svg.ts';
import { dashboardSvg } from '../support/content/dashboard-svg.ts';
import { dashboardPanels, shippedObjects } from '../support/content/lens.ts';
import { weekEnd, weekOfRecords, weekStart } from '../support/content/preview-week.ts';
import { recordOf, settings } from '../support/normalize/records.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { dayEnd, dayStart, deliverDay } from '../support/servers/ledger-day.ts';
import { dataOf } from '../support/servers/panel-data.ts';
import type { TimeRange } from '../support/servers/panel-data.ts';
import { notAsked } from '../support/servers/programs.ts';

/** By the default of a dashboard's time picker. */
const ranges = {
  'now-7d': { label: 'Last 7 days', from: weekStart, to: weekEnd, interval: { text: '3h', ms: 3 * 3_600_000 } },
  'now-24h': { label: 'Last 24 hours', from: dayStart, to: dayEnd, interval: { text: '30m', ms: 1_800_000 } },
} satisfies Record<string, TimeRange & { readonly label: string }>;

test('the dashboards in docs/images show the results of Elasticsearch', { timeout: 300_000 }, async ({ skip }) => {
  const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
  if (missing !== undefined) return skip(missing);
  await using server = await Elasticsearch.start('elasticsearch-9.5.3');
  await store(server);
  await draw(server, 'week', 'saved-objects');
  await draw(server, await deliverDay(server), 'saved-objects-ledger');
});

async function draw(server: Elasticsearch, name: string, file: 'saved-objects' | 'saved-objects-ledger'): Promise<void> {
  const objects = shippedObjects(file);
  const panels = dashboardPanels(objects);
  for (const object of objects) {
    if (object.type !== 'dashboard') continue;
    const { title, description, timeFrom, controlGroupInput } = object.attributes;
    const range = ranges[timeFrom];
    const pictures: PanelPicture[] = [];
    for (const panel of panels.filter(({ dashboard }) => dashboard === title)) {
      const data = await dataOf(panel, { server, name, range });
      expect(sizeOf(data), `${title}: ${panel.title} has data`).toBeGreaterThan(0);
      pictures.push({ title: panel.title, grid: panel.grid, data });
    }
    const controls = Object.values(controlGroupInput?.panelsJSON ?? {}).map(({ explicitInput }) => explicitInput.title);
    const svg = dashboardSvg({ title, description, range: range.label, controls, panels: pictures });
    await expect(svg).toMatchFileSnapshot(`../../docs/images/${object.id.replace(/^dpas-/, 'kibana-')}.svg`);
  }
}

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

function sizeOf(data: PanelPicture['data']): number {
  switch (data.kind) {
    case 'bars':
      return data.series.length;
    case 'table':
      return data.rows.length;
    case 'map':
      return data.clusters.length;
    case 'text':
      return data.markdown.length;
  }
}
