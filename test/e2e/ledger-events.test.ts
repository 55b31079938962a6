/** A sink with `ledger: true`: its events and the ledger report must state the same of each window. */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

interface LedgerEvent {
  readonly data_stream: { readonly dataset: string };
  readonly event: { readonly action: string; readonly start: string; readonly end: string };
  readonly dpas: { readonly uid: string; readonly ledger: Readonly<Record<string, unknown>> };
}

test('each window of the report has its proof as an event, also after a restart, and every record arrives once', { timeout: 300_000 }, () =>
  inPlace('ledger-events', async (place) => {
    const service = await Service.start(place, '--records', '600', '--span', '1m');
    const file = { id: 'siem', type: 'file', path: './siem.ndjson', ledger: true };
    const plain = { id: 'plain', type: 'file', path: './plain.ndjson' };
    configure(place, [sourceOf(service, ago(80_000))], [file, plain]);
    const first = new Daemon(place);
    await first.logged('window.first_proven');
    await first.kill();
    const second = new Daemon(place);
    const end = Math.floor(Date.now() / 1000) * 1000 - 20_000;
    await settled(second, end, 120_000);
    const test = ['sinks', 'test', '--sink', 'plain', '--yes', '--actor', 'j.doe'];
    expect((await place.waybill(...test, '--config', 'waybill.yaml')).code).toBe(0);
    await until('the operation in the file', patience, () =>
      linesOf(place.path('siem.ndjson')).some((line) => line.includes('"operation":"sinks test"')) ? true : undefined,
    );
    expect(await second.stop()).toMatchObject({ code: 0 });

    const lines = linesOf(place.path('siem.ndjson'));
    const isLedger = (line: string): boolean => (JSON.parse(line) as LedgerEvent).data_stream.dataset === 'dpas.ledger';
    const truth = await service.truth();
    const records = lines.filter((line) => !isLedger(line));
    expect(compare(records, truth, originalOf)).toEqual(exactlyOnce);
    expect(linesOf(place.path('plain.ndjson')).filter(isLedger)).toEqual([]);

    const events = lines.filter(isLedger).map((line) => JSON.parse(line) as LedgerEvent);
    expect(new Set(events.map(({ dpas }) => dpas.uid)).size).toBe(events.length);
    expect(events.find(({ event }) => event.action === 'operation')?.dpas.ledger).toMatchObject({
      operation: 'sinks test',
      actor: 'j.doe',
    });
    const [source] = (await readLedgerOf(place)).ledger.sources;
    // Later windows may be recounted while the daemon stops.
    const windows = source?.windows.filter(({ from }) => Date.parse(from) < end) ?? [];
    expect(windows.length).toBeGreaterThan(1);
    for (const { from, to, total, records: count, recounts } of windows) {
      const own = events.filter(({ event }) => Date.parse(event.start) === Date.parse(from) && Date.parse(event.end) === Date.parse(to));
      expect(own[0]?.event.action, from).toBe('window-proven');
      expect(own.at(-1)?.dpas.ledger, from).toMatchObject({ source: 'production', state: 'proven', total, records: count, recounts });
    }
  }),
);
