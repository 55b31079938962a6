/**
 * Wrong settings and faults at real receivers: for each one line that names the sink and the
 * setting, no dead letter, no delay of other sinks, and delivery that resumes by itself once the
 * cause is fixed. One daemon, with a separate sink for each fault.
 */
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { LogLine, Settings } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { mounted } from '../support/e2e-tmpfs.ts';
import { Elasticsearch, elasticsearchMissing, password as elasticPassword } from '../support/servers/elasticsearch.ts';
import { allow, createTopic } from '../support/servers/kafka-admin.ts';
import { KafkaBroker, kafkaMissing, password as kafkaPassword } from '../support/servers/kafka-broker.ts';
import { notAsked } from '../support/servers/programs.ts';
import { waybill } from '../support/servers/three-receivers.ts';

const missing =
  notAsked() ?? kafkaMissing('4.4.0') ?? elasticsearchMissing('elasticsearch-9.5.3') ?? elasticsearchMissing('opensearch-3.8.0');
const patient = 600_000;
const dayMs = 86_400_000;
const expired = { notBefore: new Date(Date.now() - 9 * dayMs), notAfter: new Date(Date.now() - dayMs) };
const ofBroker = { name: 'broker', hosts: ['127.0.0.1', 'localhost'] };

/** The message that the log must contain for each sink with a fault from the start. */
const words: Readonly<Record<string, RegExp>> = {
  'kafka-user': /\(sinks\.kafka-user\.sasl\): /,
  'kafka-authority': /sinks\.kafka-authority\.tls\.ca: certificate of .* issued by 'Kafka root' is not trusted/,
  'kafka-plain': /sinks\.kafka-plain\.tls: "127\.0\.0\.1:\d+" speaks TLS: set tls/,
  'kafka-topic': /\(sinks\.kafka-topic\.topic\): .*the topic is not there|topic "kafka-topic" does not exist/,
  'kafka-right': /\(sinks\.kafka-right\.topic\): .*TOPIC_AUTHORIZATION_FAILED/,
  'es-user': /401 security_exception: .*\(sinks\.es-user\.password\)$/,
  'es-authority': /sinks\.es-authority\.tls\.ca: certificate of 127\.0\.0\.1 issued by 'Test root' is not trusted/,
  'es-plain': /sinks\.es-plain\.nodes begins with http: perhaps the port speaks TLS/,
  'es-right': /403 security_exception: .*sinks\.es-right\.password needs create_doc/,
  'es-other': /the server at sinks\.es-other\.nodes is not Elasticsearch 8 or later; this sink does not support OpenSearch/,
};
/** Faults that only the configuration can fix, which is read at the start. */
const ofConfiguration = ['kafka-plain', 'es-plain', 'es-other'];

// promise: A wrong setting or a fault at a real receiver: one log line names it, no dead letter, no delay of other sinks, and delivery resumes once it is fixed.
test('wrong settings, permissions, certificates, a write-blocked index and a full disk', { timeout: 3_600_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  await using broker = await KafkaBroker.start('4.4.0', { acls: true });
  await using server = await Elasticsearch.start('elasticsearch-9.5.3', true);
  await using other = await Elasticsearch.start('opensearch-3.8.0');
  await inPlace('wrong', async (place) => {
    await using disk = mounted(place, 'disk', 'size=8m');
    const service = await Service.start(place, '--seed', '5', '--records', '300', '--span', '9m');
    const start = ago(600_000);
    const wrong = (await createAuthority('Another root')).cert;
    const client = await broker.authority.issue({ name: 'collector' });
    const files = {
      ...{
        'kafka.pem': broker.authority.cert,
        'es.pem': server.authority?.cert ?? '',
        'client.crt': client.cert,
        'client.key': client.key,
      },
      ...{ 'kafka-user': 'not it', 'kafka-authority.pem': wrong, 'es-user': 'not it', 'es-authority.pem': wrong },
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(place.path(name), text);
    const secret = (name: string): string => `\${file:${place.path(name)}}`;
    const role = (privileges: readonly string[]): Promise<unknown> =>
      server.ask('PUT', '/_security/role/few', { cluster: ['monitor'], indices: [{ names: ['logs-dpas.audit-*'], privileges }] });
    await role(['read']);
    await server.ask('PUT', '/_security/user/few', { password: 'few-password', roles: ['few'] });
    await allow(broker, 'alice');
    await allow(broker, 'ANONYMOUS');
    for (const topic of Object.keys(words).filter((id) => id.startsWith('kafka') && id !== 'kafka-topic'))
      await createTopic(broker, { topic });

    const batch = { maxWait: '100ms' };
    const kafka = (id: string, more: Settings): Settings => ({ id, type: 'kafka', topic: id, batch, ...more });
    const tls = { ca: place.path('kafka.pem') };
    const elastic = { username: 'elastic', password: elasticPassword };
    // Each sink has a separate data stream.
    const es = (id: string, more: Settings): Settings => ({
      ...{ id, type: 'elasticsearch', nodes: server.url, namespace: namespaceOf(id), batch, tls: { ca: place.path('es.pem') }, ...elastic },
      ...more,
    });
    const sinks = (isRepaired: boolean): Settings[] => [
      { id: 'good', type: 'file', path: './good.ndjson', batch },
      ...(disk ? [{ id: 'disk', type: 'file', path: `${disk.path}/disk.ndjson`, batch }] : []),
      kafka('kafka-user', {
        ...{ brokers: [broker.address('SASLTLS')], tls },
        sasl: { mechanism: 'SCRAM-SHA-512', username: 'alice', password: secret('kafka-user') },
      }),
      kafka('kafka-authority', { brokers: [broker.address('TLS')], tls: { ca: place.path('kafka-authority.pem') } }),
      kafka('kafka-plain', { brokers: [broker.address('TLS')], ...(isRepaired ? { tls } : {}) }),
      kafka('kafka-topic', { brokers: [broker.address()] }),
      kafka('kafka-right', {
        brokers: [broker.address('MTLS')],
        tls: { ...tls, cert: place.path('client.crt'), key: place.path('client.key') },
      }),
      es('es-user', { password: secret('es-user') }),
      es('es-authority', { tls: { ca: place.path('es-authority.pem') } }),
      es('es-plain', isRepaired ? {} : { nodes: server.url.replace('https', 'http') }),
      es('es-right', { username: 'few', password: 'few-password' }),
      es('es-other', isRepaired ? {} : { nodes: other.url, tls: undefined }),
    ];
    configure(place, [sourceOf(service, start)], sinks(false));
    await waybill(place, 'setup', 'elasticsearch', '--sink', 'es-right', '--yes');

    const daemon = new Daemon(place);
    for (const [id, pattern] of Object.entries(words)) expect(await troubleOf(daemon, id, 0), id).toMatch(pattern);
    // The failing sinks delay no other sink.
    await caughtUp(daemon, service, patient, Object.keys(words));

    // Fixed, each at its cause.
    writeFileSync(place.path('kafka-user'), kafkaPassword);
    writeFileSync(place.path('kafka-authority.pem'), broker.authority.cert);
    await createTopic(broker, { topic: 'kafka-topic' });
    await allow(broker, 'CN=collector');
    writeFileSync(place.path('es-user'), elasticPassword);
    writeFileSync(place.path('es-authority.pem'), server.authority?.cert ?? '');
    await role(['create_doc', 'auto_configure', 'read', 'maintenance', 'view_index_metadata']);
    await caughtUp(daemon, service, patient, ofConfiguration);

    // During delivery: a write-blocked index, and a full disk.
    const closed = `/logs-dpas.audit-${namespaceOf('es-user')}/_settings`;
    expect(await server.ask('PUT', closed, { 'index.blocks.write': true })).toMatchObject({ status: 200 });
    let at = daemon.log.length;
    if (disk) fill(`${disk.path}/filler`);
    await moreRecords(service);
    expect(await troubleOf(daemon, 'es-user', at)).toMatch(/403 cluster_block_exception: .*FORBIDDEN\/8.*sinks\.es-user\.nodes/);
    if (disk) expect(await troubleOf(daemon, 'disk', at)).toMatch(/sink "disk" \(sinks\.disk\.path\): .*ENOSPC/);
    await caughtUp(daemon, service, patient, [...ofConfiguration, 'es-user', 'disk']);
    await server.ask('PUT', closed, { 'index.blocks.write': null });
    if (disk) rmSync(`${disk.path}/filler`);
    await caughtUp(daemon, service, patient, ofConfiguration);

    // During delivery: expired certificates.
    broker.showCertificate(await broker.authority.issue({ ...ofBroker, ...expired }));
    await server.showCertificate(expired);
    at = daemon.log.length;
    await Promise.all([broker.end('SIGTERM'), server.kill()]);
    await Promise.all([broker.run(), server.run()]);
    await moreRecords(service);
    for (const id of ['kafka-user', 'kafka-authority', 'kafka-right', 'es-user', 'es-authority', 'es-right'])
      await until(
        () => `${id} says that the certificate has expired\n${daemon.words()}`,
        patient,
        () =>
          linesOfSink(daemon, id, at).some((text) => new RegExp(`sinks\\.${id}\\.tls\\.ca: certificate of .* has expired`).test(text)) ||
          undefined,
      );
    broker.showCertificate(await broker.authority.issue(ofBroker));
    await server.showCertificate();
    await Promise.all([broker.end('SIGTERM'), server.kill()]);
    await Promise.all([broker.run(), server.run()]);
    await caughtUp(daemon, service, patient, ofConfiguration);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });

    // The next start fixes faults of the configuration.
    configure(place, [sourceOf(service, start)], sinks(true));
    const repaired = new Daemon(place);
    await caughtUp(repaired, service, patient);
    const { text } = await repaired.get('/status');
    for (const { id, deadLetters } of (JSON.parse(text) as { sinks: readonly { id: string; deadLetters: number }[] }).sinks)
      expect({ id, deadLetters }).toEqual({ id, deadLetters: 0 });
    expect(await repaired.stop()).toMatchObject({ code: 0, signal: null });

    const truth = await service.truth();
    for (const id of Object.keys(words)) {
      const found = id.startsWith('kafka')
        ? await broker.values(id, (value) => originalOf(value) ?? value)
        : await server.originals(`logs-dpas.audit-${namespaceOf(id)}`);
      expect({ id, found: compare(found, truth, (record) => record) }).toEqual({ id, found: exactlyOnce });
    }
    for (const path of [place.path('good.ndjson'), ...(disk ? [`${disk.path}/disk.ndjson`] : [])])
      expect(compare(linesOf(path), truth, originalOf)).toEqual(exactlyOnce);
  });
});

function namespaceOf(id: string): string {
  return id.replaceAll('-', '_');
}

/** The log lines about problems of a sink, from this line of the log on. */
function linesOfSink(daemon: Daemon, id: string, at: number): string[] {
  const isTrouble = ({ event }: LogLine): boolean => event === 'sink.delivery_blocked' || event === 'sink.delivery_failed';
  return daemon.log
    .slice(at)
    .filter((line) => isTrouble(line) && line['sink'] === id)
    .map((line) => (line['error'] as { readonly message: string }).message);
}

/** The first of them: one line, which names the sink. */
async function troubleOf(daemon: Daemon, id: string, at: number): Promise<string> {
  const [text = ''] = await until(
    () => `the log says what is wrong with ${id}\n${daemon.words()}`,
    patient,
    () => {
      const found = linesOfSink(daemon, id, at);
      return found.length > 0 ? found : undefined;
    },
  );
  expect(text).toContain(`"${id}"`);
  expect(text).not.toContain('\n');
  return text;
}

/** Creates a few more records. */
async function moreRecords(service: Service): Promise<void> {
  const before = (await service.stats()).records.total;
  await service.set({ rate: 50 });
  await until('more records', patient, async () => ((await service.stats()).records.total >= before + 50 ? true : undefined));
  await service.set({ rate: 0 });
}

/** Writes until the disk is full. */
function fill(path: string): void {
  for (const size of [65_536, 4_096])
    for (;;)
      try {
        appendFileSync(path, Buffer.alloc(size));
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code !== 'ENOSPC') throw thrown;
        break;
      }
}
