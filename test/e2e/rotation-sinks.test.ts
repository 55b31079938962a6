/**
 * The HEC token, the Kafka password and the client certificates of a Kafka and of a syslog sink are
 * replaced in their files while records flow. The receivers are the models of the contract tests.
 * Each accepts the previous token and certificates until the next rotation. Kafka has one password
 * for a user; its connections are closed when password and certificate change.
 */
import { X509Certificate } from 'node:crypto';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { StreamReceiver } from '../support/sinks/syslog-receivers.ts';
import { createAuthority } from '../support/certificates.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { KafkaModel } from '../support/kafka-model.ts';
import { HecModel } from '../support/splunk-hec-model.ts';

const rotations = 5;

/** Credentials that a receiver accepts: the newest, and the previous ones. */
class Accepted {
  #values: readonly string[] = [];
  /** Uses of the newest since the last rotation. */
  renewed = 0;
  refused = 0;

  rotate(value: string): void {
    this.#values = [value, ...this.#values.slice(0, 1)];
    this.renewed = 0;
  }

  accepts(value: string): boolean {
    if (value === this.#values[0]) this.renewed += 1;
    const isAccepted = this.#values.includes(value);
    if (!isAccepted) this.refused += 1;
    return isAccepted;
  }
}

class SecureReceiver extends StreamReceiver {
  readonly certificates = new Accepted();

  protected override connected(socket: Socket): void {
    const fingerprint = socket instanceof TLSSocket ? socket.getPeerCertificate().fingerprint256 : '';
    if (this.certificates.accepts(fingerprint)) super.connected(socket);
    else socket.destroy();
  }
}

/** Replaces the files of a directory together, as a Kubernetes volume does. @returns the directory */
function publish(place: Place, name: string, version: number, files: Readonly<Record<string, string>>): string {
  const directory = place.path(`${name}-${version}`);
  mkdirSync(directory);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text);
  symlinkSync(directory, `${directory}.link`);
  renameSync(`${directory}.link`, place.path(name));
  return place.path(name);
}

test('token, password and certificates of sinks rotate while records flow: no record is lost or duplicated', { timeout: 300_000 }, () =>
  inPlace('rotation-sinks', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m', '--rate', '100');
    const authority = await createAuthority('rotation');
    const own = await authority.issue({ name: 'receiver', hosts: ['127.0.0.1'] });
    await using splunk = await new HecModel().listen();
    await using syslog = new SecureReceiver('octet-counting', { ...own, ca: authority.cert, requestCert: true, rejectUnauthorized: true });
    await syslog.listen();
    const user = { name: 'waybill', password: '' };
    await using kafka = await new KafkaModel({ user }).create('audit').listen();
    const certificates = new Accepted();
    await using secureKafka = await new KafkaModel({
      tls: { ...own, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
      admits: (fingerprint) => certificates.accepts(fingerprint),
    })
      .create('audit')
      .listen();
    const tokens = new Accepted();
    splunk.tokens.get = (value) => (tokens.accepts(value) ? { indexes: ['audit'] } : undefined);

    const rotate = async (version: number): Promise<void> => {
      const [token, password] = [`hec-secret-${version}-x7Qk2mVd`, `kafka-secret-${version}-x7Qk2mVd`];
      const { cert, key } = await authority.issue({ name: `waybill ${version}` });
      tokens.rotate(token);
      const { fingerprint256 } = new X509Certificate(cert);
      for (const accepted of [syslog.certificates, certificates]) accepted.rotate(fingerprint256);
      publish(place, 'credentials', version, { token, password, crt: cert, key });
      user.password = password;
      for (const each of [kafka, secureKafka]) each.cutConnections();
    };
    await rotate(0);
    const ca = place.path('ca.pem');
    writeFileSync(ca, authority.cert);
    const file = (name: string): string => place.path(`credentials/${name}`);
    const tls = { ca, cert: file('crt'), key: file('key') };
    const sasl = { mechanism: 'PLAIN', username: user.name, password: `\${file:${file('password')}}` };
    const sinks = [
      {
        id: 'splunk',
        type: 'splunk-hec',
        url: `http://127.0.0.1:${splunk.port}`,
        token: `\${file:${file('token')}}`,
        includeOriginal: true,
      },
      { id: 'kafka', type: 'kafka', brokers: [`127.0.0.1:${kafka.port}`], topic: 'audit', sasl },
      { id: 'secure-kafka', type: 'kafka', brokers: [`127.0.0.1:${secureKafka.port}`], topic: 'audit', tls },
      { id: 'syslog', type: 'syslog', address: `tls://127.0.0.1:${syslog.port}`, format: 'ecs', maxBytes: 65_536, tls },
    ];
    configure(
      place,
      [sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] })],
      sinks.map((sink) => ({ ...sink, batch: { maxWait: '100ms' } })),
    );
    const daemon = new Daemon(place);
    const authenticated = (): number => kafka.requests('SaslAuthenticate');
    let before = 0;
    const renewed = (): boolean =>
      tokens.renewed >= 3 && syslog.certificates.renewed >= 3 && certificates.renewed > 0 && authenticated() > before;
    for (let version = 1; version <= rotations + 1; version += 1) {
      await until(
        () =>
          `new credentials ${version - 1} in use: ${tokens.renewed}, ${syslog.certificates.renewed}, ${certificates.renewed}, ${authenticated()}\n${daemon.words()}`,
        90_000,
        () => renewed() || undefined,
      );
      if (version > rotations) break;
      before = authenticated();
      await rotate(version);
    }
    await service.set({ rate: 0 });
    await caughtUp(daemon, service, 90_000);
    const truth = await service.truth();
    const values = (model: KafkaModel) => model.committed('audit').flatMap((partition) => partition.map(({ value }) => value));
    const delivered = {
      splunk: splunk.events.map(({ text }) => text),
      kafka: values(kafka),
      'secure-kafka': values(secureKafka),
      syslog: syslog.messages.map(({ text }) => text),
    };
    for (const [sink, texts] of Object.entries(delivered)) expect(compare(texts, truth, originalOf), sink).toEqual(exactlyOnce);
    expect([tokens, certificates, syslog.certificates].map(({ refused }) => refused)).toEqual([0, 0, 0]);
    process.stderr.write(`rotation of sinks: ${truth.length} records, ${rotations} rotations\n`);
    expect(daemon.words()).not.toMatch(/(?:hec|kafka)-secret-/);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  }),
);
