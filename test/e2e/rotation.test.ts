/**
 * API keys and client certificates are replaced in their files while records flow. A gateway with
 * TLS protects the service and the sink. It also accepts the key and the certificate from before
 * the last rotation, and closes a connection with an older certificate.
 */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { request as forward } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as forwardSecurely } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import type { Authority, KeyPair } from '../support/certificates.ts';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { ModelElasticsearch } from '../support/model-elasticsearch.ts';

const rotations = 6;

/** Headers and CA for the requests that the gateway forwards to the protected server. */
interface BackOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly ca?: string;
}

interface Credentials {
  readonly key: string;
  readonly fingerprint: string;
}

/** Checks client certificate and key, and forwards the request to the server, which has another key. */
class Gateway implements AsyncDisposable {
  readonly #server: Server;
  /** Newest first. */
  #accepted: readonly Credentials[] = [];
  /** Requests with the newest key and certificate since the last rotation. */
  renewed = 0;
  /** Requests since the start whose key or certificate was not accepted. */
  rejected = 0;

  constructor(own: KeyPair, ca: string, header: string, target: URL, options: BackOptions) {
    this.#server = createServer({ ...own, ca, requestCert: true, rejectUnauthorized: true }, (request, response) => {
      const { socket } = request;
      const fingerprint256 = socket instanceof TLSSocket ? socket.getPeerCertificate().fingerprint256 : undefined;
      const key = request.headers[header];
      const [newest] = this.#accepted;
      const isAccepted =
        this.#accepted.some(({ fingerprint }) => fingerprint === fingerprint256) && this.#accepted.some((each) => each.key === key);
      const isNewest = newest !== undefined && newest.fingerprint === fingerprint256;
      if (!isNewest) response.setHeader('connection', 'close');
      else if (newest.key === key) this.renewed += 1;
      if (!isAccepted) {
        this.rejected += 1;
        response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"replaced"}');
        return;
      }
      pass(request, response, target, header, options);
    });
    this.#server.on('tlsClientError', () => undefined);
  }

  /** Accepts these credentials, and the previous ones until the next rotation. */
  rotate(credentials: Credentials): void {
    this.#accepted = [credentials, ...this.#accepted.slice(0, 1)];
    this.renewed = 0;
  }

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

function pass(request: IncomingMessage, response: ServerResponse, target: URL, header: string, { headers, ca }: BackOptions): void {
  const send = target.protocol === 'https:' ? forwardSecurely : forward;
  const path = `${target.pathname.replace(/\/$/, '')}${request.url ?? ''}`;
  const options = { ca, method: request.method, path, headers: { ...without(request.headers, header, 'host'), ...headers } };
  const passed = send(target, options, (answer) => {
    // These headers describe the connection to the server, not the connection to the client.
    response.writeHead(answer.statusCode ?? 502, without(answer.headers, 'connection', 'keep-alive'));
    answer.pipe(response);
  });
  passed.on('error', () => response.destroy());
  request.pipe(passed);
}

function without(headers: IncomingHttpHeaders, ...names: readonly string[]): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}

/** The files of one client, `NAME/secret`, `NAME/crt` and `NAME/key`. A symlink publishes new ones together, as a Kubernetes volume does. */
class Client {
  readonly #place: Place;
  readonly #authority: Authority;
  readonly #name: string;
  readonly #gateway: Gateway;
  readonly #keyOf: (secret: string) => string;
  #turn = 0;

  constructor(place: Place, authority: Authority, name: string, gateway: Gateway, keyOf: (secret: string) => string) {
    this.#place = place;
    this.#authority = authority;
    this.#name = name;
    this.#gateway = gateway;
    this.#keyOf = keyOf;
  }

  path(kind: 'secret' | 'crt' | 'key'): string {
    return this.#place.path(`${this.#name}/${kind}`);
  }

  /** Replaces the secret, the certificate and its key. */
  async rotate(): Promise<void> {
    this.#turn += 1;
    const secret = `${this.#name}-secret-${this.#turn}-x7Qk2mVd`;
    const { cert, key } = await this.#authority.issue({ name: `${this.#name} ${this.#turn}` });
    const credentials = { key: this.#keyOf(secret), fingerprint: new X509Certificate(cert).fingerprint256 };
    // The server knows the new credentials before the client can use them.
    this.#gateway.rotate(credentials);
    const version = this.#place.path(`${this.#name}-${this.#turn}`);
    mkdirSync(version);
    for (const [kind, text] of Object.entries({ secret, crt: cert, key })) writeFileSync(join(version, kind), text);
    symlinkSync(version, `${version}.link`);
    renameSync(`${version}.link`, this.#place.path(this.#name));
  }
}

// promise: Keys and certificates rotate during delivery: each record is delivered once.
test('keys and client certificates of source and sink rotate during delivery: each record once', { timeout: 300_000 }, () =>
  inPlace('rotation', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m', '--rate', '100');
    const authority = await createAuthority('rotation');
    const own = await authority.issue({ name: 'gateway', hosts: ['127.0.0.1'] });
    await using elasticsearch = await new ModelElasticsearch().listen();
    const source = sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] });
    const { auth, baseUrl, subscriptionKey, tls } = source as {
      auth: object;
      baseUrl: string;
      subscriptionKey: string;
      tls: { ca: string };
    };
    await using toService = new Gateway(own, authority.cert, 'ocp-apim-subscription-key', new URL(baseUrl), {
      headers: { 'ocp-apim-subscription-key': subscriptionKey },
      ca: readFileSync(tls.ca, 'utf8'),
    });
    await using toSink = new Gateway(own, authority.cert, 'authorization', new URL(`http://127.0.0.1:${elasticsearch.port}`), {});
    const serviceClient = new Client(place, authority, 'service', toService, (secret) => secret);
    const sinkClient = new Client(place, authority, 'sink', toSink, (secret) => `ApiKey ${secret}`);
    await serviceClient.rotate();
    await sinkClient.rotate();
    const ca = place.path('gateway-ca.pem');
    writeFileSync(ca, authority.cert);
    const clientTls = (client: Client) => ({ ca, cert: client.path('crt'), key: client.path('key') });
    const siem = {
      id: 'siem',
      type: 'elasticsearch',
      nodes: [await toSink.listen()],
      apiKey: `\${file:${sinkClient.path('secret')}}`,
      tls: clientTls(sinkClient),
    };
    const rotating = {
      ...source,
      // No gateway protects the token endpoint.
      auth: { ...auth, tls },
      baseUrl: await toService.listen(),
      subscriptionKey: `\${file:${serviceClient.path('secret')}}`,
      tls: clientTls(serviceClient),
    };
    configure(place, [rotating], [siem]);
    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    for (let turn = 0; turn < rotations; turn += 1) {
      // Together, one alone, the other alone.
      if (turn % 3 !== 1) await serviceClient.rotate();
      if (turn % 3 !== 2) await sinkClient.rotate();
      await until(
        () =>
          `renewed requests after rotation ${turn}: ${toService.renewed} to the service, ${toSink.renewed} to the sink\n${daemon.words()}`,
        90_000,
        () => (toService.renewed >= 3 && toSink.renewed >= 3 ? true : undefined),
      );
    }
    await service.set({ rate: 0 });
    const truth = await service.truth();
    const documents = (): string[] => [...elasticsearch.targets.keys()].flatMap((target) => elasticsearch.texts(target));
    await until(
      () => `${truth.length} documents, but ${documents().length}\n${daemon.words()}`,
      90_000,
      () => (documents().length >= truth.length ? true : undefined),
    );
    expect(compare(documents(), truth, originalOf)).toEqual(exactlyOnce);
    expect([toService.rejected, toSink.rejected]).toEqual([0, 0]);
    process.stderr.write(`rotation: ${truth.length} records, ${rotations} rotations\n`);
    const log = daemon.words();
    for (const secret of ['service-secret-', 'sink-secret-']) expect(log).not.toContain(secret);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  }),
);
