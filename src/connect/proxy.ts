/** Selects the proxy of a connection and opens the tunnel through it (CONNECT, RFC 9110 section 9.3.6). Messages tell whose error it is. */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps, type RequestOptions as SecureRequestOptions } from 'node:https';
import { BlockList, isIP, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { unescaped } from '../errors/escape.ts';
import { isLoopback } from '../settings/loopback.ts';
import { request as requestHttp } from './node-http.ts';
import { quote } from '../errors/quote.ts';
import { attemptOf } from './names.ts';
import { onPeer, type Peer, type Secret, type Trust } from './trust.ts';

/** The `proxy` of a connection, from its own setting, the top-level setting or the environment. */
export interface ProxySettings {
  readonly url: Secret;
  readonly noProxy?: readonly string[] | undefined;
}

/** `http://` or `https://`, optionally with user and password. */
export type Proxy = Secret;

/** The proxy for a target. Undefined: the connection is direct, because it uses no TLS, no proxy is set, or the host bypasses it. */
export function proxyFor(target: URL, settings: ProxySettings | undefined): Proxy | undefined {
  const host = bare(target.hostname);
  if (settings === undefined || target.protocol !== 'https:' || isLocal(host)) return undefined;
  return excludes(settings.noProxy ?? [], host, target.port === '' ? '443' : target.port) ? undefined : settings.url;
}

/** Also a name below `localhost` (RFC 6761 section 6.3). */
function isLocal(host: string): boolean {
  const name = host.replace(/\.$/, '');
  return isLoopback(name) || name.toLowerCase().endsWith('.localhost');
}

interface Tunnel {
  readonly socket: Socket;
  /** The certificate of an `https://` proxy. */
  readonly peer: Peer | undefined;
}

/**
 * Opens a tunnel to `host:port`. The proxy resolves the name.
 * @throws WaybillError `proxy_refused` (401, 403, 407 and other statuses below 500), `source_unreachable` (no response, or 5xx),
 *   `tls_untrusted`
 */
export function openTunnel(proxy: Proxy, trust: Trust, host: string, port: number, timeoutMs: number): Promise<Tunnel> {
  const url = readUrl(proxy);
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const secure = url.protocol === 'https:';
  const options: RequestOptions & { readonly autoSelectFamilyAttemptTimeout: number } = {
    method: 'CONNECT',
    host: bare(url.hostname),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: authority,
    headers: { host: authority, ...authorization(url) },
    agent: false,
    timeout: timeoutMs,
    autoSelectFamilyAttemptTimeout: attemptOf(timeoutMs),
  };
  return new Promise((resolve, reject) => {
    let peer: Peer | undefined;
    const request = secure ? requestHttps(secured(options, trust.context())) : requestHttp(options);
    const refuse = (response: IncomingMessage) => {
      response.destroy();
      reject(refusal(response.statusCode ?? 0, quote(response.statusMessage ?? '', 100), proxy, url, authority));
    };
    request.on('socket', (socket) => {
      onPeer(socket, (found) => (peer = found));
    });
    request.on('connect', (response, socket, head) => {
      if (response.statusCode === undefined || response.statusCode < 200 || response.statusCode > 299) {
        socket.destroy();
        refuse(response);
        return;
      }
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve({ socket, peer });
    });
    request.on('response', refuse);
    request.on('timeout', () => request.destroy(new Error(`no response within ${timeoutMs} ms`)));
    request.on('error', (cause) => {
      const reason = trust.explain(cause, url.hostname, peer, Date.now());
      reject(
        reason ??
          new WaybillError('source_unreachable', `cannot reach the proxy "${url.host}" of ${proxy.describe()}: ${messageOf(cause)}`, {
            cause,
          }),
      );
    });
    request.end();
  });
}

/** Node passes `secureContext` on to `tls.connect`; its types omit it. */
function secured(options: RequestOptions, secureContext: SecureContext): SecureRequestOptions & { readonly secureContext: SecureContext } {
  return { ...options, secureContext, rejectUnauthorized: true, minVersion: 'TLSv1.2' };
}

function readUrl(proxy: Proxy): URL {
  proxy.refresh();
  const text = proxy.read();
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The message omits the value: it may contain a password.
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new WaybillError('config_invalid', `cannot use "${proxy.describe()}": expected http://host:port or https://host:port`);
}

function authorization(url: URL): Record<string, string> {
  if (url.username === '' && url.password === '') return {};
  const pair = Buffer.concat([unescaped(url.username), Buffer.from(':'), unescaped(url.password)]);
  return { 'proxy-authorization': `Basic ${pair.toString('base64')}` };
}

function refusal(status: number, message: string, proxy: Proxy, url: URL, authority: string): WaybillError {
  const begin = `cannot reach "${authority}" through the proxy "${url.host}"`;
  const response = `${status} ${message}`.trim();
  if (status >= 500) return new WaybillError('source_unreachable', `${begin} of ${proxy.describe()}: the proxy responded ${response}`);
  const reason =
    status === 407
      ? `the proxy rejected the user and password of ${proxy.describe()}`
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

/** Without the brackets of an IPv6 literal. */
function bare(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host;
}
