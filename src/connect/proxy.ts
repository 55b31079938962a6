/**
 * Selects the proxy of a connection and opens the tunnel through it (CONNECT, RFC 9110 section 9.3.6). Errors of the proxy differ from
 * errors of the server that it connects to.
 */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { RequestOptions as SecureRequestOptions } from 'node:https';
import { BlockList, isIP } from 'node:net';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { WaybillError, messageOf } from '../errors.ts';
import { request as requestHttp } from '../node-http.ts';
import { quote } from '../quote.ts';
import { onPeer } from './trust.ts';
import type { Peer, Secret, Trust } from './trust.ts';

/** The resolved `proxy` of a connection: its own setting, the top-level setting, or the environment's. */
export interface ProxySettings {
  readonly url: Secret;
  readonly noProxy?: readonly string[] | undefined;
}

/** `http://` or `https://`, optionally with user and password. */
export type Proxy = Secret;

/** The proxy for a target; undefined for a direct connection: no proxy is set, `noProxy` has the host, or the host is this machine. */
export function proxyFor(target: URL, settings: ProxySettings | undefined): Proxy | undefined {
  const host = bare(target.hostname);
  if (settings === undefined || target.protocol !== 'https:' || isLoopback(host)) return undefined;
  return excludes(settings.noProxy ?? [], host, target.port === '' ? '443' : target.port) ? undefined : settings.url;
}

/** `localhost`, 127.0.0.0/8 or ::1. */
export function isLoopback(host: string): boolean {
  const name = bare(host).toLowerCase().replace(/\.$/, '');
  return (
    name === 'localhost' || name.endsWith('.localhost') || (isIP(name) !== 0 && loopback.check(name, isIP(name) === 4 ? 'ipv4' : 'ipv6'))
  );
}

interface Tunnel {
  readonly socket: Socket;
  /** The certificate of an `https://` proxy. */
  readonly peer: Peer | undefined;
}

/**
 * Opens a tunnel to `host:port`. The proxy resolves the name.
 * @throws WaybillError `proxy_refused` (401, 403, 407 and other statuses of the proxy), `source_unreachable` (the proxy does not respond,
 *         or reports that the target does not), `tls_untrusted` (its certificate)
 */
export function openTunnel(proxy: Proxy, trust: Trust, host: string, port: number, timeoutMs: number): Promise<Tunnel> {
  const url = readUrl(proxy);
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const secure = url.protocol === 'https:';
  const options: RequestOptions = {
    method: 'CONNECT',
    host: bare(url.hostname),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: authority,
    headers: { host: authority, ...authorization(url) },
    agent: false,
    timeout: timeoutMs,
  };
  return new Promise((resolve, reject) => {
    let peer: Peer | undefined;
    const asked = secure ? requestHttps(secured(options, trust.context())) : requestHttp(options);
    const refuse = (answer: IncomingMessage) => {
      answer.destroy();
      reject(refusal(answer.statusCode ?? 0, quote(answer.statusMessage ?? '', 100), proxy, url, authority));
    };
    asked.on('socket', (socket) => {
      onPeer(socket, (found) => (peer = found));
    });
    asked.on('connect', (answer, socket, head) => {
      if (answer.statusCode === undefined || answer.statusCode < 200 || answer.statusCode > 299) {
        socket.destroy();
        refuse(answer);
        return;
      }
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve({ socket, peer });
    });
    asked.on('response', refuse);
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    asked.on('error', (cause) => {
      const reason = trust.explain(cause, url.hostname, peer, Date.now());
      reject(
        reason ??
          new WaybillError('source_unreachable', `cannot reach the proxy "${url.host}" of ${proxy.describe()}: ${messageOf(cause)}`, {
            cause,
          }),
      );
    });
    asked.end();
  });
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Node passes `secureContext` on to `tls.connect`; its types omit it. */
function secured(options: RequestOptions, secureContext: SecureContext): SecureRequestOptions & { readonly secureContext: SecureContext } {
  return { ...options, secureContext, rejectUnauthorized: true, minVersion: 'TLSv1.2' };
}

function readUrl(proxy: Proxy): URL {
  proxy.refresh();
  const text = proxy.read();
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // Not quoted: it may hold a password.
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new WaybillError('config_invalid', `cannot use "${proxy.describe()}": expected http://host:port or https://host:port`);
}

function authorization(url: URL): Record<string, string> {
  if (url.username === '' && url.password === '') return {};
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair, 'utf8').toString('base64')}` };
}

function refusal(status: number, message: string, proxy: Proxy, url: URL, authority: string): WaybillError {
  const begin = `cannot reach "${authority}" through the proxy "${url.host}"`;
  const response = `${status} ${message}`.trim();
  if (status >= 500) return new WaybillError('source_unreachable', `${begin} of ${proxy.describe()}: the proxy responded ${response}`);
  const reason =
    status === 407
      ? `the proxy rejected user and password of ${proxy.describe()}`
      : `the proxy refused the tunnel; see ${proxy.describe()}`;
  return new WaybillError('proxy_refused', `${begin}: ${reason}: ${response}`);
}

/** Matches a NO_PROXY list: `*`, a name and its subdomains, a suffix with a leading dot, an address, a network; each optionally with `:port`. */
function excludes(entries: readonly string[], host: string, port: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '');
  const family = isIP(name) === 4 ? 'ipv4' : 'ipv6';
  return entries.some((entry) => {
    const requested = entry.trim().toLowerCase();
    if (requested === '*') return true;
    const [, literal, plainName, entryPort] =
      /^(?:\[([^\]]+)\]|(.*?))(?::(\d+))?$/.exec(isIP(requested) === 6 ? `[${requested}]` : requested) ?? [];
    if (entryPort !== undefined && entryPort !== port) return false;
    const item = (literal ?? plainName ?? '').replace(/^\*(?=\.)/, '');
    if (isIP(name) !== 0) {
      const [network, bits] = item.split('/');
      if (network === undefined || isIP(network) !== isIP(name)) return false;
      const block = new BlockList();
      if (bits === undefined) block.addAddress(network, family);
      else if (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 'ipv4' ? 32 : 128)) block.addSubnet(network, Number(bits), family);
      return block.check(name, family);
    }
    return item.startsWith('.') ? name.endsWith(item) : item !== '' && (name === item || name.endsWith(`.${item}`));
  });
}

/** A host of a URL without the brackets of an IPv6 literal. */
function bare(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host;
}
