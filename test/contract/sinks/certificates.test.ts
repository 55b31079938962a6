/**
 * Certificates in every sink with TLS: the expiry of the server's certificate, and certificate and
 * key files that do not match.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { Server } from 'node:tls';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Certificates } from '../../../src/daemon/certificates.ts';
import type { Config } from '../../../src/config/load.ts';
import { codeOf, messageOf } from '../../../src/errors/errors.ts';
import type { Sink } from '../../../src/model/sink.ts';
import type { SinkContext, SinkDefinition } from '../../../src/sink/define.ts';
import { sinks } from '../../../src/sink/index.ts';
import { createAuthority } from '../../support/certificates.ts';
import { batchOf, contextOf, messages, ModelKept } from '../../support/sinks/sink-batches.ts';

const never = new AbortController().signal;
const pem = (text: string, name = 'a file') => ({ read: () => [text], describe: () => name });

/** The settings of each sink that name the server, with its other required settings. */
const ways: readonly [type: string, settings: (port: number) => object][] = [
  ['elasticsearch', (port) => ({ nodes: [`https://127.0.0.1:${port}`] })],
  ['splunk-hec', (port) => ({ url: `https://127.0.0.1:${port}`, token: 'hush' })],
  ['kafka', (port) => ({ brokers: [`127.0.0.1:${port}`], topic: 'audit' })],
  ['syslog', (port) => ({ address: `tls://127.0.0.1:${port}` })],
  ['syslog', (port) => ({ address: `relp+tls://127.0.0.1:${port}` })],
];

/** The error of a sink that is opened and sends; it must fail. */
async function thrownBy(type: string, settings: object, tls: object, overrides: Partial<SinkContext>): Promise<unknown> {
  const all: readonly SinkDefinition[] = sinks;
  const definition = all.find((each) => each.type === type);
  if (!definition) throw new Error(`no sink ${type}`);
  const parsed = { ...definition.config.parse(settings), tls };
  let sink: Sink | undefined;
  try {
    sink = await definition.open(parsed, contextOf('siem', overrides), new ModelKept(), never);
    await sink.send(batchOf(messages(1, 1)), never);
  } catch (thrown) {
    return thrown;
  } finally {
    await sink?.[Symbol.asyncDispose]();
  }
  return undefined;
}

describe.each(ways)('%s', (type, settingsOf) => {
  let server: Server;
  let shown: { cert: string; key: string };
  let other: { cert: string; key: string };
  let port: number;
  beforeAll(async () => {
    const authority = await createAuthority('Example root');
    [shown, other] = (await Promise.all(['server', 'client'].map((name) => authority.issue({ name, hosts: ['127.0.0.1'] })))) as [
      typeof shown,
      typeof other,
    ];
    server = createServer({ cert: shown.cert, key: shown.key }, (socket) => socket.on('error', () => undefined));
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => {
    server.close();
  });

  test('the metric has the expiry of the server certificate and of our own', async () => {
    const tls = { cert: pem(other.cert), key: pem(other.key) };
    const config = { sources: [], admin: {}, sinks: [{ id: 'siem', type, settings: { tls } }] } as unknown as Config;
    const certificates = new Certificates(config, new Map());
    const endOf = (text: string): number => Date.parse(new X509Certificate(text).validTo) * 1000;
    expect(certificates.ends()).toEqual([{ target: 'sinks.siem.tls.cert', at: endOf(other.cert) }]);
    const context = { shown: (host: string, peer: Parameters<Certificates['shown']>[2]) => certificates.shown('siem', host, peer) };
    await thrownBy(type, settingsOf(port), tls, context);
    expect(certificates.ends()).toEqual([
      { target: 'sinks.siem', at: endOf(shown.cert) },
      { target: 'sinks.siem.tls.cert', at: endOf(other.cert) },
    ]);
  });

  test('the key of another certificate blocks the sink, and the message names both settings', async () => {
    const tls = { cert: pem(other.cert, 'sinks.siem.tls.cert (/c.pem)'), key: pem(shown.key, 'sinks.siem.tls.key (/k.pem)') };
    const thrown = await thrownBy(type, settingsOf(port), tls, {});
    expect(codeOf(thrown)).toBe('sink_blocked');
    expect(messageOf(thrown)).toContain(
      'the key in sinks.siem.tls.key (/k.pem) does not belong to the certificate in sinks.siem.tls.cert (/c.pem)',
    );
  });
});
