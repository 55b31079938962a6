/**
 * A record that one of several real receivers rejects, because it conflicts with the mapping of
 * Elasticsearch. The others receive it without delay, the dead letter contains the reason of the
 * server, and after a fix of the mapping a retry delivers it, once.
 */
import { expect, test } from 'vitest';
import { ago, caughtUp, Daemon } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { KafkaBroker, kafkaMissing } from '../support/servers/kafka-broker.ts';
import { notAsked } from '../support/servers/programs.ts';
import { allOnce, differences, setUp, stream, waybill } from '../support/servers/three-receivers.ts';

const missing = notAsked() ?? kafkaMissing('4.4.0') ?? elasticsearchMissing('elasticsearch-9.5.3');
const patient = 600_000;

test(
  'a record that the mapping rejects: others receive it, the dead letter has the reason, a retry delivers it once',
  { timeout: 1_800_000 },
  async ({ skip }) => {
    if (missing !== undefined) return skip(missing);
    await using broker = await KafkaBroker.start('4.4.0', { acls: true });
    await using server = await Elasticsearch.start('elasticsearch-9.5.3', true);
    await inPlace('refused', async (place) => {
      const start = ago(600_000);
      const service = await Service.start(place, '--seed', '3', '--records', '1000', '--span', '9m');
      const servers = { broker, server };
      await setUp(place, service, start, servers);
      // The administrator's addition to the mapping: a type that nearly every record fits.
      const custom = (properties: object): Promise<unknown> =>
        server.ask('PUT', '/_component_template/logs-dpas.audit@custom', { template: { mappings: { properties } } });
      expect(await custom({ source: { properties: { address: { type: 'ip' } } } })).toMatchObject({ status: 200 });

      const daemon = new Daemon(place);
      await caughtUp(daemon, service, patient);
      const [sample = ''] = await service.truth();
      const odd = oddOne(sample, Date.now() - 1_000);
      await service.add([odd, ...othersLike(sample, Date.now() - 500)]);
      await caughtUp(daemon, service, patient);

      const truth = await service.truth();
      const found = await differences(place, truth, servers);
      expect(found).toEqual({ ...allOnce, siem: { ...exactlyOnce, missing: [odd] } });
      const list = JSON.parse(await waybill(place, 'dead-letters', 'list', '--sink', 'siem', '--json')) as unknown;
      expect(JSON.stringify(list)).toMatch(/document_parsing_exception/);
      const shown = await place.waybill('dead-letters', 'show', '--all', '--sink', 'siem', '--config', 'waybill.yaml');
      expect(shown.stdout).toBe(`${odd}\n`);
      expect(shown.stderr).toMatch(/failed to parse field \[source\.address\] of type \[ip\].*is not an IP string literal/);
      // Only the document is rejected: neither the sink nor the daemon has a problem.
      await daemon.ready(200, undefined, patient);
      expect(daemon.log.filter(({ event }) => event === 'sink.delivery_blocked')).toEqual([]);

      // While the mapping is unchanged, a retry changes nothing.
      const again = ['dead-letters', 'retry', '--all', '--sink', 'siem', '--yes', '--config', 'waybill.yaml'];
      expect(await place.waybill(...again)).toMatchObject({ code: 1 });
      expect((await differences(place, truth, servers)).siem).toEqual({ ...exactlyOnce, missing: [odd] });

      expect(await custom({ source: { properties: { address: { type: 'keyword' } } } })).toMatchObject({ status: 200 });
      await server.rollover(stream);
      expect(await place.waybill(...again)).toMatchObject({ code: 0 });
      expect(await differences(place, truth, servers)).toEqual(allOnce);
      expect(await place.waybill('dead-letters', 'list', '--sink', 'siem', '--config', 'waybill.yaml')).toMatchObject({ code: 0 });
      expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
      expect(compare(linesOf(place.path('siem.ndjson')), truth, originalOf)).toEqual(exactlyOnce);
    });
  },
);

function stamp(at: number): string {
  return new Date(at).toISOString().slice(0, 23);
}

/** A record with an invalid address: Elasticsearch cannot store it in a field of type ip. */
function oddOne(sample: string, at: number): string {
  return sample
    .replace(/"logId":\d+/, '"logId":900000001')
    .replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${stamp(at)}"`)
    .replace(/"ipAddress":"[^"]*"/, '"ipAddress":"behind the gateway"');
}

function othersLike(sample: string, at: number): string[] {
  return Array.from({ length: 20 }, (_, i) =>
    sample.replace(/"logId":\d+/, `"logId":${910_000_000 + i}`).replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${stamp(at)}"`),
  );
}
