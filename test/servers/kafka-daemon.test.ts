/**
 * The whole daemon with a real Kafka, with help of an operator: a dead letter accepted although its
 * response was lost, and a lost state. kcat counts the records that consumers with read_committed
 * see.
 */
import { rmSync } from 'node:fs';
import kafkajs from 'kafkajs';
import { expect, test } from 'vitest';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { administer, createTopic } from '../support/servers/kafka-admin.ts';
import { KafkaBroker, kafkaMissing } from '../support/servers/kafka-broker.ts';
import { KafkaProxy } from '../support/servers/kafka-proxy.ts';
import { notAsked } from '../support/servers/programs.ts';

const missing = notAsked() ?? kafkaMissing('4.4.0');
const patient = 300_000;
const topic = 'audit';
const records = 100;

// promise: Kafka: a dead letter that was accepted before a kill is not sent twice, and only an operation adopts a topic after a lost state.
test(
  'a dead letter accepted before a kill is not sent twice; a lost state is adopted only by an operation',
  { timeout: 900_000 },
  async ({ skip }) => {
    if (missing !== undefined) return skip(missing);
    const proxy = await new KafkaProxy().listen();
    await using broker = await KafkaBroker.start('4.4.0', { advertised: proxy.address });
    proxy.target = broker.port('PROXIED');
    try {
      await inPlace('kafka', async (place) => {
        const start = ago(600_000);
        const service = await Service.start(place, '--seed', '13', '--records', String(records), '--span', '9m');
        await createTopic(broker, { topic, configEntries: [{ name: 'max.message.bytes', value: '20000' }] });
        const lake = { id: 'lake', type: 'kafka', brokers: [proxy.address], topic, batch: { maxWait: '50ms' } };
        configure(place, [sourceOf(service, start)], [lake]);
        const waybill = (...args: readonly string[]) => place.waybill(...args, '--sink', 'lake', '--config', 'waybill.yaml');
        const deadLetters = async (): Promise<unknown[]> => {
          const { code, stdout, stderr } = await waybill('dead-letters', 'list', '--json');
          expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
          return (JSON.parse(stdout) as { deadLetters: unknown[] }).deadLetters;
        };

        // Longer than the topic permits: a dead letter, until the topic is fixed.
        const first = new Daemon(place);
        await caughtUp(first, service, patient);
        const [sample = ''] = await service.truth();
        const long = longOne(sample, Date.now() - 1_000);
        await service.add([long]);
        await caughtUp(first, service, patient);
        const truth = await service.truth();
        expect(await deadLetters()).toMatchObject([{ sink: 'lake', state: 'stored' }]);
        expect(await copies(broker)).toEqual(times(truth, (record) => (record === long ? 0 : 1)));
        const { TOPIC: type } = kafkajs.ConfigResourceTypes;
        const configEntries = [{ name: 'max.message.bytes', value: '1000000' }];
        await administer(broker, (admin) => admin.alterConfigs({ validateOnly: false, resources: [{ type, name: topic, configEntries }] }));

        // The retry is committed, its response is lost, and the daemon is killed before it can
        // query the outcome.
        proxy.loseAnswer('EndTxn', true);
        const [asked] = await Promise.all([
          waybill('dead-letters', 'retry', '--all', '--yes'),
          until('the answer of the commit is lost', patient, () => proxy.isShut || undefined).then(() => first.kill()),
        ]);
        expect(asked.code).not.toBe(0);
        expect(await deadLetters()).toHaveLength(1);
        expect(await copies(broker)).toEqual(times(truth, () => 1));
        proxy.heal();
        const second = new Daemon(place);
        await until(
          () => `no dead letter\n${second.words()}`,
          patient,
          async () => ((await deadLetters()).length === 0 ? true : undefined),
        );
        // The operator saw that the outcome is unknown, and retries.
        const again = await waybill('dead-letters', 'retry', '--all', '--yes');
        expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('there are no dead letters') as string });
        await service.add([like(sample, 900_000_002, Date.now() - 1_000)]);
        await caughtUp(second, service, patient);
        const more = await service.truth();
        expect(await copies(broker)).toEqual(times(more, () => 1));
        expect(await second.stop()).toMatchObject({ code: 0 });

        // A state other than the one whose position Kafka has: nothing is sent until an operator
        // adopts it, then all records of this state.
        rmSync(place.path('state'), { recursive: true });
        const third = new Daemon(place);
        const line = await third.logged('sink.delivery_blocked', patient);
        expect(JSON.stringify(line)).toMatch(/sinks\.lake\.progressTopic\): .*belongs to another state/);
        await caughtUp(third, service, patient, ['lake']);
        expect(await copies(broker)).toEqual(times(more, () => 1));
        expect(await waybill('sinks', 'adopt', '--yes')).toMatchObject({ code: 0 });
        await caughtUp(third, service, patient);
        expect(third.find('sink.adopted')).toMatchObject({ sink: 'lake' });
        expect(await copies(broker)).toEqual(times(more, () => 2));
        await third.kill();

        // From then on the topic belongs to this state.
        const fourth = new Daemon(place);
        await service.add([like(sample, 900_000_003, Date.now() - 1_000)]);
        await caughtUp(fourth, service, patient);
        const all = await service.truth();
        expect(await copies(broker)).toEqual(times(all, (record) => (more.includes(record) ? 2 : 1)));
        expect(await fourth.stop()).toMatchObject({ code: 0 });
      });
    } finally {
      await proxy.close();
    }
  },
);

/** How often consumers see each record. */
async function copies(broker: KafkaBroker): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const record of await broker.values(topic, (value) => originalOf(value) ?? value)) found.set(record, (found.get(record) ?? 0) + 1);
  return sorted(found);
}

/** The expected number of copies of each record; records with none are left out. */
function times(records: readonly string[], wanted: (record: string) => number): Map<string, number> {
  return sorted(new Map(records.map((record) => [record, wanted(record)] as const).filter(([, count]) => count > 0)));
}

function sorted(counts: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function like(sample: string, logId: number, at: number): string {
  const stamp = new Date(at).toISOString().slice(0, 23);
  return sample.replace(/"logId":\d+/, `"logId":${logId}`).replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${stamp}"`);
}

function longOne(sample: string, at: number): string {
  return like(sample, 900_000_001, at).replace(/"payloadName":"[^"]*"/, `"payloadName":"${'long '.repeat(8_000)}"`);
}
