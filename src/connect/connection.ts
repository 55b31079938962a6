/**
 * The connections to one server: TCP or a tunnel through a proxy, TLS, and a keep-alive pool for undici. Every connection error is a
 * WaybillError that names the cause: the unreachable host, the setting of an untrusted certificate, or the refusal of the proxy.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Dispatcher, buildConnector } from 'undici';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { Agent, type Exchange } from './agent.ts';
import { attemptOf } from './names.ts';
import { openTunnel, proxyFor, type Proxy, type ProxySettings } from './proxy.ts';
import { certificateText, Trust, onPeer, type Peer, type Pem, type Shown, type TlsSettings } from './trust.ts';

interface ConnectionSettings {
  /** The setting that contains `tls`: `sources.production`, `sources.production.auth`. */
  readonly setting: string;
  /** `https:`, or `http:` on a loopback address. */
  readonly url: string;
  /** The setting of `url`, for messages; default none. */
  readonly urlSetting?: string;
  readonly tls?: TlsSettings | undefined;
  /** The top-level `tls.ca`, trusted in addition to the built-in roots unless `tls.ca` is set. */
  readonly sharedCa?: Pem | undefined;
  /** Undefined: direct. */
  readonly proxy?: ProxySettings | undefined;
  readonly shown?: Shown | undefined;
  /** Concurrent connections; default 1. */
  readonly connections?: number;
  /** Timeout for TCP, proxy and TLS together, ms. */
  readonly timeoutMs: number;
  /** Age at which a connection gets no further request, ms; default 5 minutes. */
  readonly maxAgeMs?: number;
}

const maxAgeMs = 5 * 60_000;

/** The route to the server, for `check` and the metric of certificates. */
export interface Route {
  readonly target: string;
  /** The setting that names the proxy; undefined when the connection is direct. */
  readonly proxy: string | undefined;
  /** The server's certificate; undefined before the first connection and without TLS. */
  readonly peer: Peer | undefined;
}

/** `connected to siem.example directly, certificate of 'siem.example' issued by 'Example root' until 2027-03-01`. */
export function wayOf({ target, proxy, peer }: Route): string {
  const certificate = peer === undefined ? '' : `, ${certificateText(peer)}`;
  return `connected to ${target} ${proxy === undefined ? 'directly' : `through ${proxy}`}${certificate}`;
}

export class Connection implements AsyncDisposable {
  readonly dispatcher: Agent;
  readonly #settings: ConnectionSettings;
  readonly #target: URL;
  readonly #trust: Trust;
  readonly #proxy: Proxy | undefined;
  readonly #opening = new Set<Socket>();
  #peer: Peer | undefined;
  /** The error that ended the connection after its handshake; undici reports only the end. */
  #ended: Error | undefined;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#target = new URL(settings.url);
    this.#trust = new Trust(settings.setting, settings.tls, settings.sharedCa);
    this.#proxy = proxyFor(this.#target, settings.proxy);
    this.dispatcher = new Agent({
      connect: (options, callback) => {
        this.#open(options, (socket) => callback(null, socket)).catch((thrown: unknown) => callback(thrown as Error, null));
      },
      connections: settings.connections ?? 1,
      // Longer than a poll interval, so that an idle source needs no new handshake. A shorter keep-alive hint of the server applies.
      keepAliveTimeout: 30_000,
      // The name of the server may have moved to another address.
      clientTtl: this.#settings.maxAgeMs ?? maxAgeMs,
      // The caller has a deadline for the whole request.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 64 * 1024,
    });
  }

  /** See Agent.suspect. */
  suspect(): void {
    this.dispatcher.suspect();
  }

  async request(url: string, options: Exchange): Promise<Dispatcher.ResponseData> {
    const { origin, pathname, search } = new URL(url);
    return this.dispatcher.request({ ...options, origin, path: `${pathname}${search}` });
  }

  route(): Route {
    return { target: this.#target.host, proxy: this.#proxy?.describe(), peer: this.#peer };
  }

  /**
   * The error of a request without a response. A rejected client certificate appears only here: with TLS 1.3 the client finishes its
   * handshake first (RFC 8446 section 4.4.2.4).
   */
  translate(thrown: unknown): WaybillError {
    if (thrown instanceof WaybillError) return thrown;
    return (
      this.#trust.explain(thrown, this.#target.hostname, this.#peer, Date.now()) ??
      this.#trust.explain(this.#ended, this.#target.hostname, this.#peer, Date.now()) ??
      this.unreachable(thrown)
    );
  }

  /** @param cause  why there is no response */
  unreachable(cause: unknown): WaybillError {
    const see = this.#settings.urlSetting === undefined ? '' : `; see ${this.#settings.urlSetting}`;
    return new WaybillError('source_unreachable', `cannot reach "${this.#target.origin}": ${messageOf(cause)}${see}`, { cause });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#opening) socket.destroy();
    await this.dispatcher.destroy();
  }

  async #open(options: buildConnector.Options, delivered: (socket: Socket) => void): Promise<void> {
    const secure = options.protocol === 'https:';
    const host = options.hostname.startsWith('[') ? options.hostname.slice(1, -1) : options.hostname;
    const port = options.port === '' ? (secure ? 443 : 80) : Number(options.port);
    // Throws for an unreadable file before a connection is opened.
    const context = secure ? this.#trust.context() : undefined;
    const to = performance.now() + this.#settings.timeoutMs;
    const tunnel = this.#proxy === undefined ? undefined : await openTunnel(this.#proxy, this.#trust, host, port, this.#settings.timeoutMs);
    const servername = this.#trust.serverName ?? host;
    const way = { host, port, autoSelectFamilyAttemptTimeout: attemptOf(this.#settings.timeoutMs) };
    const socket =
      context === undefined
        ? connectTcp({ ...way, noDelay: true })
        : connectTls({
            ...(tunnel === undefined ? way : { socket: tunnel.socket, host }),
            // An IP address is not a server name (RFC 6066 section 3); `host` is compared with the certificate.
            ...(isIP(servername) === 0 ? { servername } : {}),
            secureContext: context,
            minVersion: 'TLSv1.2',
            rejectUnauthorized: true,
            ALPNProtocols: ['http/1.1'],
          });
    await this.#ready(socket, context === undefined ? 'connect' : 'secureConnect', to, delivered);
  }

  /** Calls `delivered` in the event handler of the socket: before a later call, an error could occur while the socket has no listener. */
  #ready(socket: Socket, event: 'connect' | 'secureConnect', to: number, delivered: (socket: Socket) => void): Promise<void> {
    this.#opening.add(socket);
    this.#ended = undefined;
    return new Promise((resolve, reject) => {
      let peer: Peer | undefined;
      let isNamed = this.#proxy !== undefined || isIP(this.#target.hostname) !== 0;
      socket.once('lookup', () => (isNamed = true));
      const limit = Math.max(to - performance.now(), 1);
      const timer = setTimeout(() => {
        const waits = isNamed ? 'no connection' : `no name server answers for ${this.#target.hostname}, and no connection`;
        socket.destroy(new Error(`${waits} within ${this.#settings.timeoutMs} ms`));
      }, limit);
      const done = () => {
        clearTimeout(timer);
        this.#opening.delete(socket);
      };
      onPeer(socket, (found) => {
        this.#peer = peer = found;
        this.#settings.shown?.(this.#target.host, found);
      });
      const fail = (cause: unknown) => {
        done();
        const reason = this.#trust.explain(cause, this.#target.hostname, peer, Date.now());
        reject(reason ?? this.unreachable(cause));
      };
      const closed = () => fail(new Error('connection closed'));
      socket.once('error', fail).once('close', closed);
      socket.once(event, () => {
        done();
        socket.off('error', fail).off('close', closed);
        socket.once('error', (ended) => (this.#ended = ended));
        delivered(socket);
        resolve();
      });
    });
  }
}
