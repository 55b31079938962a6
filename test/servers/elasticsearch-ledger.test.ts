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
import { actionsOf, columnsOf } from '../support/kibana-ledger.ts';
import type { Column } from '../support/kibana-ledger.ts';
import { Elasticsearch, elasticsearchMissing } from './elasticsearch.ts';
import { notAsked } from './programs.ts';
import { waybill } from './three-receivers.ts';

const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
const stream = 'logs-dpas.ledger-default';

interface LedgerEvent {
  readonly '@timestamp': string;
  readonly event: { readonly action: string; readonly end: string };
  readonly data_stream: { readonly dataset: string };
  readonly dpas: { readonly uid: string; readonly ledger: { readonly source?: string } };
}

/** The aggregation that Kibana sends for one column of a table. */
function aggregationOf({ operationType, sourceField, filter }: Column): object {
  const value = operationType === 'max' ? { aggs: { value: { max: { field: sourceField } } } } : {};
  return { filter: filter ? { terms: { 'event.action': actionsOf(filter.query) } } : { match_all: {} }, ...value };
}

/** The same value, computed from the events. */
function cellOf({ operationType, sourceField, filter }: Column, events: readonly LedgerEvent[]): number | null {
  const counted = events.filter(({ event }) => !filter || actionsOf(filter.query).includes(event.action));
  if (operationType === 'count') return counted.length;
  const times = counted.map((event) => Date.parse(sourceField === '@timestamp' ? event['@timestamp'] : event.event.end));
  return times.length === 0 ? null : Math.max(...times);
}

async function tableOf(server: Elasticsearch): Promise<unknown> {
  const [source, ...columns] = columnsOf('sources');
  const aggs = Object.fromEntries(columns.map((column) => [column.label, aggregationOf(column)]));
  const query = { size: 0, aggs: { rows: { terms: { field: source?.sourceField, size: 100 }, aggs } } };
  const { status, body } = await server.ask('POST', `/${stream}/_search`, query);
  expect(status, JSON.stringify(body)).toBe(200);
  interface Cell {
    readonly doc_count: number;
    readonly value?: { readonly value: number | null };
  }
  type Row = { readonly key: string } & Readonly<Record<string, Cell>>;
  const { buckets } = (body as { aggregations: { rows: { buckets: readonly Row[] } } }).aggregations.rows;
  const cells = (row: Row) => columns.map(({ label }) => (row[label]?.value ? row[label].value.value : row[label]?.doc_count));
  return Object.fromEntries(buckets.map((row) => [row.key, cells(row)]));
}

test('each ledger event is stored once, and the dashboard counts them', { timeout: 900_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
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

    const [, ...columns] = columnsOf('sources');
    const row = columns.map((column) =>
      cellOf(
        column,
        ledger.filter(({ dpas }) => dpas.ledger.source === 'production'),
      ),
    );
    expect(await tableOf(server)).toEqual({ production: row });
  });
});
