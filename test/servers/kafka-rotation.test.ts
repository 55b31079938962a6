/**
 * The password of a real Kafka changes with a restart of the broker, and in the file of the
 * daemon, while records flow. kcat counts what consumers see that read committed.
 */
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { createTopic } from './kafka-admin.ts';
import { KafkaBroker, kafkaMissing, password } from './kafka-broker.ts';
import { notAsked } from './programs.ts';

const missing = notAsked() ?? kafkaMissing('4.4.0');
const topic = 'audit';
const rotations = 3;
const patient = 150_000;

test('the password rotates three times: nothing lost, nothing twice', { timeout: 900_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  await using broker = await KafkaBroker.start('4.4.0');
  await inPlace('kafka-rotation', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m', '--rate', '100');
    await createTopic(broker, { topic });
    const publish = (text: string): void => {
      writeFileSync(place.path('password.new'), text);
      renameSync(place.path('password.new'), place.path('password'));
    };
    publish(password);
    const sasl = { mechanism: 'PLAIN', username: 'alice', password: `\${file:${place.path('password')}}` };
    const lake = { id: 'lake', type: 'kafka', brokers: [broker.address('SASL')], topic, sasl, batch: { maxWait: '100ms' } };
    configure(place, [sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] })], [lake]);
    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    const acknowledged = async (): Promise<number> => {
      const { sinks } = JSON.parse((await daemon.get('/status')).text) as { sinks: readonly { acknowledged: number }[] };
      return sinks[0]?.acknowledged ?? 0;
    };
    for (let turn = 1; turn <= rotations; turn += 1) {
      const next = `kafka-secret-${turn}`;
      const line = `listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="${next}";`;
      await broker.end('SIGKILL');
      appendFileSync(join(broker.directory, 'server.properties'), `\n${line}\n`);
      publish(next);
      const before = await acknowledged();
      await broker.run();
      await until(
        () => `delivery with password ${turn}\n${daemon.words()}`,
        patient,
        async () => (await acknowledged()) > before + 500 || undefined,
      );
    }
    await service.set({ rate: 0 });
    await caughtUp(daemon, service, patient);
    const truth = await service.truth();
    const values = await broker.values(topic, (value) => value);
    expect(compare(values, truth, originalOf)).toEqual(exactlyOnce);
    process.stderr.write(`kafka rotation: ${truth.length} records, ${rotations} rotations\n`);
    const blocked = daemon.log.filter(({ event }) => event === 'sink.delivery_blocked');
    expect(blocked, 'the new password is read for the next connection').toEqual([]);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  });
});
