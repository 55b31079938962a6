/**
 * Ledger events in a real Elasticsearch: each one once, equal to the output of the file sink, and
 * the counts of the dashboard in content/kibana agree with them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { linesOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { flat } from '../support/content/events.ts';
import { kql } from '../support/content/kql.ts';
import type { LensColumn } from '../support/content/lens.ts';
import { columnsOf, lensPanels, shippedObjects } from '../support/content/lens.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { dataOf, timeOf } from '../support/servers/panel-data.ts';
import { notAsked } from '../support/servers/programs.ts';
import { waybill } from '../support/servers/three-receivers.ts';

const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
const stream = 'logs-dpas.ledger-default';
const sources = lensPanels(shippedObjects('saved-objects-ledger')).find(({ title }) => title === 'Sources');

interface LedgerEvent {
  readonly '@timestamp': string;
  readonly event: { readonly action: string; readonly end: string };
  readonly data_stream: { readonly dataset: string };
  readonly dpas: { readonly uid: string; readonly ledger: { readonly source?: string } };
}

/** The value that the dashboard shows in a column, computed from the events. */
function cellOf({ operationType, sourceField, filter }: LensColumn, events: readonly LedgerEvent[]): string {
  const counted = events.filter((event) => !filter || kql(filter.query).matches(flat(event, '')));
  if (operationType === 'count') return String(counted.length);
  const times = counted.map((event) => Date.parse(sourceField === '@timestamp' ? event['@timestamp'] : event.event.end));
  return times.length === 0 ? '-' : timeOf(Math.max(...times));
}

test('each ledger event is stored once, and the dashboard counts them', { timeout: 900_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  if (!sources) throw new Error('the dashboard has no table of sources');
  await using server = await Elasticsearch.start('elasticsearch-9.5.3', true);
  await inPlace('elasticsearch-ledger', async (place) => {
    const service = await Service.start(place, '--seed', '9', '--records', '300', '--span', '2m');
    writeFileSync(place.path('ca.pem'), server.authority?.cert ?? '');
    writeFileSync(place.path('key'), 'bm90aGluZzpjYW5hcnk=');
    const tls = { ca: place.path('ca.pem') };
    const siem = { id: 'siem', type: 'elasticsearch', nodes: server.url, apiKey: `\${file:${place.path('key')}}`, tls, ledger: true };
    const file = { id: 'file', type: 'file', path: './events.ndjson', ledger: true };
    configure(place, [sourceOf(service, ago(180_000))], [siem, file]);
    writeFileSync(place.path('key'), (await waybill(place, 'setup', 'elasticsearch', '--sink', 'siem', '--key', '--yes')).trim());
    expect(JSON.parse(await waybill(place, 'check', '--sink', 'siem', '--json'))).toMatchObject({ ok: true });

    await service.set({ total: 'missing' });
    const first = new Daemon(place);
    await first.logged('window.not_proven', 120_000);
    await first.kill();
    await service.set({ total: 'right' });
    const second = new Daemon(place);
    await waybill(place, 'gaps', 'retry', '--all', '--yes', '--actor', 'j.doe');
    await second.logged('window.first_proven', 120_000);
    await until('no gap is left', 120_000, async () => {
      const { sources } = JSON.parse((await second.get('/status')).text) as { sources: readonly { gaps: number }[] };
      return sources[0]?.gaps === 0 || undefined;
    });
    await caughtUp(second, service, 120_000);
    await until('a recount', 120_000, () => readFileSync(place.path('events.ndjson'), 'utf8').includes('"window-recounted"') || undefined);
    expect(await second.stop()).toMatchObject({ code: 0 });
    // The next start delivers entries that a recount appended during the shutdown.
    const third = new Daemon(place);
    await caughtUp(third, service, 120_000);
    expect(await third.stop()).toMatchObject({ code: 0 });

    const all = linesOf(place.path('events.ndjson')).map((line) => JSON.parse(line) as LedgerEvent);
    const stored = (await server.documents(stream)).map((text) => JSON.parse(text) as LedgerEvent);
    const uids = (list: readonly LedgerEvent[]): string[] => list.map(({ dpas }) => dpas.uid).sort();
    const ledger = all.filter(({ data_stream }) => data_stream.dataset === 'dpas.ledger');
    expect(new Set(uids(stored)).size).toBe(stored.length);
    expect(uids(stored)).toEqual(uids(ledger));
    expect(new Set(stored.map(({ event }) => event.action))).toEqual(
      new Set(['window-gap', 'window-proven', 'window-recounted', 'operation']),
    );

    const ofSource = ledger.filter(({ dpas }) => dpas.ledger.source === 'production');
    const [, ...columns] = columnsOf(sources.lens).map(([, column]) => column);
    const now = Date.now();
    const range = { from: now - 86_400_000, to: now + 60_000, interval: { text: '30m', ms: 1_800_000 } };
    expect(await dataOf(sources, { server, name: stream, range })).toMatchObject({
      rows: [['production', ...columns.map((column) => cellOf(column, ofSource))]],
    });
  });
});
