/**
 * docs/operations.md, "State lost" and "Older state restored": the records in each sink after each.
 * The daemon and the commands are programs; Elasticsearch, Kafka, Splunk and the syslog receiver
 * are models of the contract tests.
 */
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { archivedRecords, publicKeyPath } from '../support/archive-files.ts';
import { StreamReceiver } from '../support/sinks/syslog-receivers.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { Settings } from '../support/e2e-daemon.ts';
import { linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { KafkaModel } from '../support/kafka-model.ts';
import { ModelElasticsearch } from '../support/model-elasticsearch.ts';
import { HecModel } from '../support/splunk-hec-model.ts';

/** Sinks that store Waybill's position with the data, and so detect another state. */
const withPosition = ['file', 'archive', 'kafka'];
const patient = 120_000;
const stream = 'logs-dpas.audit-default';

/** One receiver of each kind. */
class Receivers implements AsyncDisposable {
  readonly kafka = new KafkaModel().create('once').create('at-least-once');
  readonly elasticsearch = new ModelElasticsearch();
  readonly splunk = new HecModel();
  readonly syslog = new StreamReceiver();
  /** The index of the sink `index`. */
  index = 'audit';
  /** The id and the directory of the sink `archive`. */
  archive = 'archive';
  readonly #place: Place;

  private constructor(place: Place) {
    this.#place = place;
    this.splunk.tokens.set('token', { indexes: ['audit'] });
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
  }

  static async start(place: Place): Promise<Receivers> {
    const receivers = new Receivers(place);
    await Promise.all([receivers.kafka.listen(), receivers.elasticsearch.listen(), receivers.splunk.listen(), receivers.syslog.listen()]);
    return receivers;
  }

  sinks(): readonly Settings[] {
    const brokers = [`127.0.0.1:${this.kafka.port}`];
    const nodes = `http://127.0.0.1:${this.elasticsearch.port}`;
    const sinks: readonly Settings[] = [
      { id: 'file', type: 'file', path: './siem.ndjson' },
      { id: this.archive, type: 'archive', directory: `./${this.archive}`, signingKey: '${file:./key.pem}' },
      { id: 'kafka', type: 'kafka', brokers, topic: 'once' },
      { id: 'kafka-alo', type: 'kafka', brokers, topic: 'at-least-once', exactlyOnce: false },
      { id: 'elasticsearch', type: 'elasticsearch', nodes },
      { id: 'index', type: 'elasticsearch', nodes, index: this.index },
      { id: 'splunk', type: 'splunk-hec', url: `http://127.0.0.1:${this.splunk.port}`, token: 'token', includeOriginal: true },
      { id: 'syslog', type: 'syslog', address: `tcp://127.0.0.1:${this.syslog.port}`, format: 'ecs', maxBytes: 65_536 },
      { id: 'stdout', type: 'stdout', format: 'ecs', includeOriginal: true },
    ];
    return sinks.map((sink) => ({ ...sink, batch: { maxWait: '50ms' } }));
  }

  /** How often each sink holds each record, counted at the receivers. */
  copies(): Record<string, ReadonlyMap<string, number>> {
    const committed = (topic: string): string[] => this.kafka.committed(topic).flatMap((partition) => partition.map(({ value }) => value));
    const lines = (name: string): string[] => (existsSync(this.#place.path(name)) ? linesOf(this.#place.path(name)) : []);
    return Object.fromEntries(
      Object.entries({
        file: lines('siem.ndjson'),
        archive: archivedRecords(this.#place.path(this.archive)),
        kafka: committed('once'),
        'kafka-alo': committed('at-least-once'),
        elasticsearch: this.elasticsearch.texts(stream),
        index: ['audit', 'audit-2'].flatMap((index) => this.elasticsearch.texts(index)),
        splunk: this.splunk.events.map(({ text }) => text),
        syslog: this.syslog.messages.map(({ text }) => text),
        stdout: lines('stdout'),
      }).map(([sink, texts]) => [sink, countsOf(texts)]),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [this.kafka, this.elasticsearch, this.splunk, this.syslog];
    await Promise.all(all.map((receiver) => receiver[Symbol.asyncDispose]()));
  }
}

function countsOf(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) {
    const record = originalOf(text) ?? text;
    counts.set(record, (counts.get(record) ?? 0) + 1);
  }
  return counts;
}

/** For each sink, the numbers of copies that its records have: `{ older: 2, newer: 1 }`. */
function summary(receivers: Receivers, older: readonly string[], newer: readonly string[] = []): Record<string, unknown> {
  const known = new Set([...older, ...newer]);
  const only = (counts: ReadonlyMap<string, number>, records: readonly string[]): unknown => {
    const found = [...new Set(records.map((record) => counts.get(record) ?? 0))];
    return found.length === 1 ? found[0] : found;
  };
  return Object.fromEntries(
    Object.entries(receivers.copies()).map(([sink, counts]) => {
      expect(
        [...counts.keys()].filter((record) => !known.has(record)),
        `${sink}: records that the service does not have`,
      ).toEqual([]);
      return [sink, { older: only(counts, older), ...(newer.length > 0 && { newer: only(counts, newer) }) }];
    }),
  );
}

const each = (common: object, others: Readonly<Record<string, object>> = {}): Record<string, object> =>
  Object.fromEntries(
    ['file', 'archive', 'kafka', 'kafka-alo', 'elasticsearch', 'index', 'splunk', 'syslog', 'stdout'].map((sink) => [
      sink,
      others[sink] ?? common,
    ]),
  );

/** @param archiveCode  of the sink `archive` */
async function blocked(daemon: Daemon, archiveCode = 'sink_blocked'): Promise<void> {
  await until(
    () => `${withPosition.join(' and ')} are blocked\n${daemon.words()}`,
    patient,
    () => {
      const found = daemon.log.filter(({ event }) => event === 'sink.delivery_blocked');
      const codeOf = (id: string): string => (id === 'archive' ? archiveCode : 'sink_blocked');
      return withPosition.every((id) => found.some(({ sink, code }) => sink === id && code === codeOf(id))) || undefined;
    },
  );
}

/** A new record. */
function like(sample: string, logId: number): string {
  const stamp = new Date(Date.now() - 1_000).toISOString().slice(0, 23);
  return sample.replace(/"logId":\d+/, `"logId":${logId}`).replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${stamp}"`);
}

test.concurrent('the state is lost, start is as before', { timeout: 300_000 }, () =>
  inPlace('state-lost', async (place) => {
    await using receivers = await Receivers.start(place);
    const service = await Service.start(place, '--records', '120', '--span', '9m');
    const start = ago(600_000);
    configure(place, [sourceOf(service, start)], receivers.sinks());
    const first = new Daemon(place);
    await caughtUp(first, service, patient);
    expect(await first.stop()).toMatchObject({ code: 0 });
    const records = await service.truth();
    expect(summary(receivers, records)).toEqual(each({ older: 1 }));

    rmSync(place.path('state'), { recursive: true });
    // Uids of a data stream are unique only until it is rolled over.
    receivers.elasticsearch.rollover(stream);
    const second = new Daemon(place);
    expect(await second.logged('state.created')).toMatchObject({ level: 'warn' });
    await blocked(second);
    await caughtUp(second, service, patient, withPosition);
    const unchanged = { older: 1 };
    expect(summary(receivers, records)).toEqual(
      each({ older: 2 }, { file: unchanged, archive: unchanged, kafka: unchanged, elasticsearch: unchanged, index: unchanged }),
    );

    for (const id of withPosition) expect(await place.waybill('sinks', 'adopt', '--sink', id, '--yes')).toMatchObject({ code: 0 });
    await caughtUp(second, service, patient);
    // An archive receives what it lacks: nothing.
    expect(summary(receivers, records)).toEqual(each({ older: 2 }, { archive: unchanged, elasticsearch: unchanged, index: unchanged }));
    expect(await second.stop()).toMatchObject({ code: 0 });

    // Lost once more, with another `index` than before.
    rmSync(place.path('state'), { recursive: true });
    receivers.index = 'audit-2';
    configure(
      place,
      [sourceOf(service, start)],
      receivers.sinks().filter(({ id }) => id === 'index'),
    );
    const third = new Daemon(place);
    await caughtUp(third, service, patient);
    expect(await third.stop()).toMatchObject({ code: 0 });
    expect(summary(receivers, records)['index']).toEqual({ older: 2 });
  }),
);

// promise: After the state is lost, a sink with another target receives everything once.
test.concurrent('the state is lost: a sink with another target is not blocked, and receives everything once', { timeout: 300_000 }, () =>
  inPlace('state-target', async (place) => {
    await using kafka = await new KafkaModel().create('once').create('other').listen();
    const service = await Service.start(place, '--records', '120', '--span', '9m');
    const source = sourceOf(service, ago(600_000));
    const broker = { id: 'kafka', type: 'kafka', brokers: [`127.0.0.1:${kafka.port}`], batch: { maxWait: '50ms' } };
    const file = { id: 'file', type: 'file', batch: { maxWait: '50ms' } };
    configure(
      place,
      [source],
      [
        { ...file, path: './siem.ndjson' },
        { ...broker, topic: 'once' },
      ],
    );
    const first = new Daemon(place);
    await caughtUp(first, service, patient);
    expect(await first.stop()).toMatchObject({ code: 0 });

    rmSync(place.path('state'), { recursive: true });
    configure(
      place,
      [source],
      [
        { ...file, path: './other.ndjson' },
        { ...broker, topic: 'other', progressTopic: 'other-progress' },
      ],
    );
    const second = new Daemon(place);
    await caughtUp(second, service, patient);
    expect(second.find('sink.delivery_blocked')).toBeUndefined();
    expect(await second.stop()).toMatchObject({ code: 0 });
    const once = countsOf(await service.truth());
    expect(countsOf(linesOf(place.path('other.ndjson')))).toEqual(once);
    expect(countsOf(kafka.committed('other').flatMap((partition) => partition.map(({ value }) => value)))).toEqual(once);
  }),
);

test.concurrent('an older state is restored', { timeout: 300_000 }, () =>
  inPlace('state-restored', async (place) => {
    await using receivers = await Receivers.start(place);
    const service = await Service.start(place, '--records', '120', '--span', '9m');
    const start = ago(600_000);
    configure(place, [sourceOf(service, start)], receivers.sinks());
    const first = new Daemon(place);
    await caughtUp(first, service, patient);
    expect(await first.stop()).toMatchObject({ code: 0 });
    const older = await service.truth();
    cpSync(place.path('state'), place.path('copy'), { recursive: true });

    const second = new Daemon(place);
    await service.add(Array.from({ length: 40 }, (_, i) => like(older[i] ?? '', 900_000_000 + i)));
    await caughtUp(second, service, patient);
    expect(await second.stop()).toMatchObject({ code: 0 });
    const newer = (await service.truth()).filter((record) => !older.includes(record));
    expect(newer).toHaveLength(40);
    expect(summary(receivers, older, newer)).toEqual(each({ older: 1, newer: 1 }));
    cpSync(place.path('state'), place.path('right'), { recursive: true });

    const restore = (copy: string): void => {
      rmSync(place.path('state'), { recursive: true });
      cpSync(place.path(copy), place.path('state'), { recursive: true });
    };
    restore('copy');
    receivers.elasticsearch.rollover(stream);
    const reconciled = await place.waybill('sinks', 'reconcile', '--sink', 'elasticsearch', '--from', ago(660_000), '--yes');
    expect(reconciled, reconciled.stderr).toMatchObject({ code: 0 });
    const third = new Daemon(place);
    await blocked(third, 'archive_ahead');
    await caughtUp(third, service, patient, withPosition);
    expect(await third.stop()).toMatchObject({ code: 0 });
    const once = { older: 1, newer: 1 };
    expect(summary(receivers, older, newer)).toEqual(
      each({ older: 1, newer: 2 }, { file: once, archive: once, kafka: once, elasticsearch: once, index: once }),
    );

    // The blocked sinks continue with the right state, and nothing is sent twice.
    restore('right');
    const fourth = new Daemon(place);
    await caughtUp(fourth, service, patient);
    expect(fourth.find('sink.delivery_blocked')).toBeUndefined();
    expect(await fourth.stop()).toMatchObject({ code: 0 });
    expect(summary(receivers, older, newer)).toEqual(
      each({ older: 1, newer: 2 }, { file: once, archive: once, kafka: once, elasticsearch: once, index: once }),
    );

    restore('copy');
    const fifth = new Daemon(place);
    await blocked(fifth, 'archive_ahead');
    for (const id of withPosition) expect(await place.waybill('sinks', 'adopt', '--sink', id, '--yes')).toMatchObject({ code: 0 });
    await caughtUp(fifth, service, patient);
    expect(await fifth.stop()).toMatchObject({ code: 0 });
    // The archive has the newer records from the state that was lost.
    const twice = { older: 1, newer: 2 };
    expect(summary(receivers, older, newer)).toEqual(
      each({ older: 1, newer: 3 }, { file: twice, archive: once, kafka: twice, elasticsearch: once, index: once }),
    );
    const archive = place.path('archive');
    const verified = await place.waybill('archive', 'verify', '--directory', archive, '--key', publicKeyPath(archive), '--json');
    const report = JSON.parse(verified.stdout) as { readonly records: number; readonly findings: readonly { readonly message: string }[] };
    expect(report.records).toBe(older.length + newer.length);
    // Every window is proven, and a signed line tells of the other state.
    expect(report.findings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^it does not continue the segment before: journal "(\w+)\.1" follows "\1"$/),
    ]);
    expect(verified.code).toBe(3);
  }),
);

test.concurrent(
  'an older state is restored, Elasticsearch has more than 10,000 newer records: reconcile before the start',
  { timeout: 300_000 },
  () =>
    inPlace('state-reconcile', async (place) => {
      await using receivers = await Receivers.start(place);
      const service = await Service.start(place, '--records', '10', '--span', '9m');
      const sinks = receivers.sinks().filter(({ id }) => id === 'elasticsearch');
      configure(place, [sourceOf(service, ago(600_000))], sinks);
      const first = new Daemon(place);
      await caughtUp(first, service, patient);
      expect(await first.stop()).toMatchObject({ code: 0 });
      cpSync(place.path('state'), place.path('copy'), { recursive: true });
      const [sample = ''] = await service.truth();
      const second = new Daemon(place);
      await service.add(Array.from({ length: 11_000 }, (_, i) => like(sample, 900_000_000 + i)));
      await caughtUp(second, service, patient);
      expect(await second.stop()).toMatchObject({ code: 0 });

      const copies = async (): Promise<number[]> => {
        const counts = receivers.copies()['elasticsearch'] ?? new Map<string, number>();
        return [...new Set((await service.truth()).map((record) => counts.get(record) ?? 0))];
      };
      const restored = async (reconcile: boolean): Promise<number[]> => {
        rmSync(place.path('state'), { recursive: true });
        cpSync(place.path('copy'), place.path('state'), { recursive: true });
        receivers.elasticsearch.rollover(stream);
        if (reconcile)
          expect(await place.waybill('sinks', 'reconcile', '--sink', 'elasticsearch', '--from', ago(660_000), '--yes')).toMatchObject({
            code: 0,
          });
        const daemon = new Daemon(place);
        await caughtUp(daemon, service, patient);
        expect(await daemon.stop()).toMatchObject({ code: 0 });
        return copies();
      };
      expect(await restored(true)).toEqual([1]);
      // Without it the sink looks up 10,000 records after its start.
      expect((await restored(false)).sort()).toEqual([1, 2]);
    }),
);
