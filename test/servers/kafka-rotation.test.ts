/**
 * The password and the client certificate of a real Kafka change with a restart of the broker, and
 * in the files of the daemon, while records flow. The broker trusts only the newest CA, so a
 * delivery proves that the new certificate is in use. kcat counts the records that consumers with
 * read_committed see.
 */
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { createTopic } from '../support/servers/kafka-admin.ts';
import { KafkaBroker, kafkaMissing, password } from '../support/servers/kafka-broker.ts';
import { notAsked } from '../support/servers/programs.ts';

const missing = notAsked() ?? kafkaMissing('4.4.0');
const topic = 'audit';
const rotations = 3;
const patient = 150_000;

/** A credential in files of the daemon. */
interface Credential {
  readonly brokers: readonly string[];
  readonly settings: object;
  /** Switches daemon and broker to the next one while the broker is down. */
  readonly rotate: (turn: number) => Promise<void>;
}

function publish(place: Place, name: string, text: string): void {
  writeFileSync(place.path(`${name}.new`), text);
  renameSync(place.path(`${name}.new`), place.path(name));
}

function passwordOf(broker: KafkaBroker, place: Place): Credential {
  publish(place, 'password', password);
  return {
    brokers: [broker.address('SASL')],
    settings: { sasl: { mechanism: 'PLAIN', username: 'alice', password: `\${file:${place.path('password')}}` } },
    rotate: async (turn) => {
      const next = `kafka-secret-${turn}`;
      const line = `listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="${next}";`;
      appendFileSync(join(broker.directory, 'server.properties'), `\n${line}\n`);
      publish(place, 'password', next);
    },
  };
}

async function certificateOf(broker: KafkaBroker, place: Place): Promise<Credential> {
  const rotate = async (turn: number): Promise<void> => {
    const authority = await createAuthority(`clients ${turn}`);
    const { cert, key } = await authority.issue({ name: 'waybill' });
    writeFileSync(join(broker.directory, 'truststore.pem'), authority.cert);
    publish(place, 'client.pem', `${key}\n${cert}`);
  };
  const { cert, key } = await broker.authority.issue({ name: 'waybill' });
  publish(place, 'client.pem', `${key}\n${cert}`);
  publish(place, 'ca.pem', broker.authority.cert);
  const file = place.path('client.pem');
  return { brokers: [broker.address('MTLS')], settings: { tls: { ca: place.path('ca.pem'), cert: file, key: file } }, rotate };
}

test.for([
  ['password', passwordOf],
  ['client certificate', certificateOf],
] as const)('the %s rotates three times: no record is lost or duplicated', { timeout: 900_000 }, async ([name, credentialOf], { skip }) => {
  if (missing !== undefined) return skip(missing);
  await using broker = await KafkaBroker.start('4.4.0');
  await inPlace('kafka-rotation', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m', '--rate', '100');
    await createTopic(broker, { topic });
    const { brokers, settings, rotate } = await credentialOf(broker, place);
    const lake = { id: 'lake', type: 'kafka', brokers, topic, ...settings, batch: { maxWait: '100ms' } };
    configure(place, [sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] })], [lake]);
    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    const acknowledged = async (): Promise<number> => {
      const { sinks } = JSON.parse((await daemon.get('/status')).text) as { sinks: readonly { acknowledged: number }[] };
      return sinks[0]?.acknowledged ?? 0;
    };
    for (let turn = 1; turn <= rotations; turn += 1) {
      await broker.end('SIGKILL');
      await rotate(turn);
      const before = await acknowledged();
      await broker.run();
      await until(
        () => `delivery with ${name} ${turn}\n${daemon.words()}`,
        patient,
        async () => (await acknowledged()) > before + 500 || undefined,
      );
    }
    await service.set({ rate: 0 });
    await caughtUp(daemon, service, patient);
    const truth = await service.truth();
    const values = await broker.values(topic, (value) => value);
    expect(compare(values, truth, originalOf)).toEqual(exactlyOnce);
    process.stderr.write(`kafka rotation, ${name}: ${truth.length} records, ${rotations} rotations\n`);
    const blocked = daemon.log.filter(({ event }) => event === 'sink.delivery_blocked');
    expect(blocked, `the next connection reads the new ${name}`).toEqual([]);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  });
});
