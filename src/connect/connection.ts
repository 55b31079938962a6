/**
 * The way to one server: TCP or a proxy's tunnel, TLS on top, and a pool of kept connections for undici. Every failure on the way is already
 * the WaybillError that the caller reports: what cannot be reached, which certificate is not trusted by which setting, which proxy refuses.
 */
import { connect as connectTcp, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Agent } from 'undici';
import type { Dispatcher, buildConnector } from 'undici';
import { WaybillError, messageOf } from '../errors.ts';
import { openTunnel, proxyFor } from './proxy.ts';
import type { Proxy, ProxySettings } from './proxy.ts';
import { Trust, onPeer } from './trust.ts';
import type { Peer, Pem, Shown, TlsSettings } from './trust.ts';

interface ConnectionSettings {
  /** Where `tls` of the connection stands in the configuration: `sources.production`, `sources.production.auth`. */
  readonly setting: string;
  /** `https:`, or `http:` on a loopback address. */
  readonly url: string;
  readonly tls?: TlsSettings | undefined;
  /** The top-level `tls.ca`, trusted besides the built-in roots unless `tls.ca` is set. */
  readonly sharedCa?: Pem | undefined;
  /** Undefined: direct. */
  readonly proxy?: ProxySettings | undefined;
  readonly shown?: Shown | undefined;
  /** Connections at once; default one. */
  readonly connections?: number;
  /** The longest time for TCP, proxy and TLS together, ms. */
  readonly timeoutMs: number;
}

/** The way that was taken, for `check` and the metric of certificates. */
export interface Route {
  readonly target: string;
  /** The setting that names the proxy; undefined when the connection is direct. */
  readonly proxy: string | undefined;
  /** The server's certificate; undefined before the first connection and without TLS. */
  readonly peer: Peer | undefined;
}

/** The way in words: `siem.example is reached directly, certificate of 'siem.example' issued by 'Example root'`. */
export function wayOf({ target, proxy, peer }: Route): string {
  const issuer = peer === undefined ? '' : `, certificate of '${peer.subject}' issued by '${peer.issuer}'`;
  return `${target} is reached ${proxy === undefined ? 'directly' : `through ${proxy}`}${issuer}`;
}

export class Connection implements AsyncDisposable {
  /** For undici; it follows no redirect and speaks HTTP/1.1. */
  readonly dispatcher: Dispatcher;
  readonly #settings: ConnectionSettings;
  readonly #target: URL;
  readonly #trust: Trust;
  readonly #proxy: Proxy | undefined;
  readonly #opening = new Set<Socket>();
  #peer: Peer | undefined;
  /** What the connection ended with after its handshake; undici says only that it ended. */
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
      // Who asks one thing at a time needs one.
      connections: settings.connections ?? 1,
      // Longer than a poll, so that a quiet source needs no handshake each time; a server that hints at less is obeyed.
      keepAliveTimeout: 30_000,
      // The caller limits the request as a whole.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 64 * 1024,
    });
  }

  route(): Route {
    return { target: this.#target.host, proxy: this.#proxy?.describe(), peer: this.#peer };
  }

  /**
   * The error of a request that got no answer. A refused client certificate shows only now: TLS 1.3 ends its handshake before the server
   * has looked at it (RFC 8446 section 4.4.2.4).
   */
  translate(thrown: unknown): WaybillError {
    if (thrown instanceof WaybillError) return thrown;
    return (
      this.#trust.explain(thrown, this.#target.hostname, this.#peer, Date.now()) ??
      this.#trust.explain(this.#ended, this.#target.hostname, this.#peer, Date.now()) ??
      new WaybillError('source_unreachable', `cannot reach "${this.#target.origin}": ${messageOf(thrown)}`, { cause: thrown })
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#opening) socket.destroy();
    await this.dispatcher.destroy();
  }

  async #open(options: buildConnector.Options, delivered: (socket: Socket) => void): Promise<void> {
    const secure = options.protocol === 'https:';
    const host = options.hostname.startsWith('[') ? options.hostname.slice(1, -1) : options.hostname;
    const port = options.port === '' ? (secure ? 443 : 80) : Number(options.port);
    // Whatever cannot be read stands here, before anything is opened.
    const context = secure ? this.#trust.context() : undefined;
    const to = performance.now() + this.#settings.timeoutMs;
    const tunnel = this.#proxy === undefined ? undefined : await openTunnel(this.#proxy, this.#trust, host, port, this.#settings.timeoutMs);
    const servername = this.#trust.serverName ?? host;
    const socket =
      context === undefined
        ? connectTcp({ host, port, noDelay: true })
        : connectTls({
            ...(tunnel === undefined ? { host, port } : { socket: tunnel.socket, host }),
            // An address is no server name (RFC 6066 section 3); it is checked against the certificate through `host`.
            ...(isIP(servername) === 0 ? { servername } : {}),
            secureContext: context,
            minVersion: 'TLSv1.2',
            rejectUnauthorized: true,
            ALPNProtocols: ['http/1.1'],
          });
    await this.#ready(socket, context === undefined ? 'connect' : 'secureConnect', to, delivered);
  }

  /** Hands the socket over within its own event, so that no error of it can fall between two listeners. */
  #ready(socket: Socket, event: 'connect' | 'secureConnect', to: number, delivered: (socket: Socket) => void): Promise<void> {
    this.#opening.add(socket);
    this.#ended = undefined;
    return new Promise((resolve, reject) => {
      let peer: Peer | undefined;
      const limit = Math.max(to - performance.now(), 1);
      const timer = setTimeout(() => {
        socket.destroy(new Error(`no connection within ${this.#settings.timeoutMs} ms`));
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
        reject(reason ?? new WaybillError('source_unreachable', `cannot reach "${this.#target.origin}": ${messageOf(cause)}`, { cause }));
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
