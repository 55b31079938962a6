/**
 * A daemon with three receivers at once, a real Kafka, a real Elasticsearch and a file, each with
 * its own guarantee. kcat, `_search` and the file give the contents, which are compared with the
 * records of the service.
 */
import { writeFileSync } from 'node:fs';
import { configure, sourceOf } from '../e2e-daemon.ts';
import type { Daemon, Settings } from '../e2e-daemon.ts';
import { compare, exactlyOnce, linesOf, originalOf } from '../e2e-oracle.ts';
import type { Difference } from '../e2e-oracle.ts';
import type { Place } from '../e2e-place.ts';
import type { Service } from '../e2e-service.ts';
import { password as administratorPassword } from './elasticsearch.ts';
import type { Elasticsearch } from './elasticsearch.ts';
import { allow, createTopic } from './kafka-admin.ts';
import { password as kafkaPassword } from './kafka-broker.ts';
import type { KafkaBroker } from './kafka-broker.ts';

export const stream = 'logs-dpas.audit-default';
export const topic = 'audit';
const file = 'siem.ndjson';
export const sinkIds = ['lake', 'siem', 'file'] as const;
export type SinkId = (typeof sinkIds)[number];

interface Servers {
  readonly broker: KafkaBroker;
  readonly server: Elasticsearch;
}

/** Runs `waybill …` with the privileges of an Elasticsearch administrator. @returns its output */
export async function waybill(place: Place, ...args: readonly string[]): Promise<string> {
  const env = { WAYBILL_SETUP_USERNAME: 'elastic', WAYBILL_SETUP_PASSWORD: administratorPassword };
  const { code, stdout, stderr } = await place.waybillWith(env, ...args, '--config', 'waybill.yaml');
  if (code !== 0) throw new Error(`waybill ${args.join(' ')} ended with ${code ?? 'a signal'}: ${stdout}${stderr}`);
  return stdout;
}

/**
 * Topic, permissions, templates and key as the documents tell an administrator to create them, and
 * the configuration: Kafka by SCRAM over TLS, Elasticsearch by an API key over TLS. Batches are
 * small, so that a kill hits one in progress.
 * @param nodes  the address for Elasticsearch, if it differs from its own
 */
export async function setUp(place: Place, service: Service, start: string, { broker, server }: Servers, nodes = server.url): Promise<void> {
  writeFileSync(place.path('kafka.pem'), broker.authority.cert);
  writeFileSync(place.path('elasticsearch.pem'), server.authority?.cert ?? '');
  writeFileSync(place.path('key'), 'none');
  await createTopic(broker, { topic, numPartitions: 3 });
  await allow(broker, 'alice');
  const batch = (records: number): Settings => ({ batch: { maxRecords: records, maxWait: '50ms' } });
  const sinks: readonly Settings[] = [
    {
      ...{ id: 'lake', type: 'kafka', brokers: [broker.address('SASLTLS')], topic, ...batch(50) },
      sasl: { mechanism: 'SCRAM-SHA-512', username: 'alice', password: kafkaPassword },
      tls: { ca: place.path('kafka.pem') },
    },
    {
      ...{ id: 'siem', type: 'elasticsearch', nodes, apiKey: `\${file:${place.path('key')}}`, ...batch(200) },
      tls: { ca: place.path('elasticsearch.pem') },
    },
    { id: 'file', type: 'file', path: `./${file}`, ...batch(50) },
  ];
  configure(place, [sourceOf(service, start)], sinks);
  await waybill(place, 'setup', 'kafka', '--sink', 'lake');
  writeFileSync(place.path('key'), (await waybill(place, 'setup', 'elasticsearch', '--sink', 'siem', '--key', '--yes')).trim());
}

/** A counter of a sink since the start of the daemon (docs/metrics.md). */
export async function counted(daemon: Daemon, name: string, sink: string): Promise<number> {
  const { text } = await daemon.get('/metrics');
  return Number(new RegExp(`^${name}\\{[^}]*sink="${sink}"[^}]*\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);
}

/** The differences between the contents of each receiver and the records of the service. */
export async function differences(
  place: Place,
  truth: readonly string[],
  { broker, server }: Servers,
): Promise<Record<SinkId, Difference> & { readonly repeatedIds: unknown }> {
  const whole = (record: string): string => record;
  return {
    lake: compare(await broker.values(topic, (value) => originalOf(value) ?? value), truth, whole),
    siem: compare(await server.originals(stream), truth, whole),
    file: compare(linesOf(place.path(file)), truth, originalOf),
    repeatedIds: await server.repeated(stream, 'dpas.uid'),
  };
}

export const allOnce = { lake: exactlyOnce, siem: exactlyOnce, file: exactlyOnce, repeatedIds: [] };
