/**
 * Authorizes requests to the admin server by a bearer token, or the password of HTTP Basic under any name, compared in constant time.
 * Without a configured token, only a loopback address may read. Wrong tokens never block the right one: an attacker who guesses must not
 * lock its owner out.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { isLoopback } from '../settings/loopback.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

/** Where a request arrived: on the socket in the state directory (its file mode is the credential), a loopback address, or another one. */
export type Place = 'socket' | 'loopback' | 'elsewhere';

export type Access = 'metrics' | 'read' | 'write';

/** Each request reads it, so that a replaced secret applies at once. */
interface Secret {
  read(): string | Promise<string>;
}

export interface Tokens {
  readonly token?: Secret | undefined;
  /** Allows page, status, reports and metrics, not operations. */
  readonly readToken?: Secret | undefined;
}

interface Caller {
  readonly place: Place;
  readonly address: string;
  readonly host: string | undefined;
  readonly authorization: string | undefined;
}

type Decision = { readonly allowed: true } | { readonly allowed: false; readonly status: 401 | 403 | 429; readonly message: string };

/** @throws the error of `Secret.read` */
export type Authorizer = (caller: Caller, access: Access) => Promise<Decision>;

const maxFailures = 10;
const failuresMs = 60_000;
const maxAddresses = 10_000;

export function createAuthorizer({ token, readToken }: Tokens, clock: Clock, log: Log): Authorizer {
  const secrets = [token, readToken].filter((secret) => secret !== undefined);
  const failures = new Map<string, { since: number; count: number }>();

  /** Counts a wrong token. @returns true when the address has sent too many */
  const countFailure = (from: string): boolean => {
    const now = clock.monotonic();
    const known = failures.get(from);
    const { since, count } = known && now - known.since < failuresMs ? known : { since: now, count: 0 };
    if (!known && failures.size >= maxAddresses) failures.delete(failures.keys().next().value ?? '');
    failures.set(from, { since, count: count + 1 });
    if (count === maxFailures) log.write('admin.wrong_tokens', { address: from });
    return count >= maxFailures;
  };

  return async ({ place, address, host, authorization }, access) => {
    if (place === 'socket') return allowed;
    if (access === 'write' && token === undefined) return denied(401, 'set admin.token: operations over the network require it');
    if (secrets.length === 0) {
      if (place === 'elsewhere')
        return access === 'metrics'
          ? allowed
          : denied(401, 'set admin.token or admin.readToken: without a token, this address serves only the probes and /metrics');
      // DNS rebinding: a web page may resolve its own host name to 127.0.0.1 and make a browser send requests here.
      return host !== undefined && isLoopback(hostOf(host))
        ? allowed
        : denied(401, 'set admin.token: without it, the Host header must be localhost or a loopback address');
    }
    // A browser sends Basic credentials by itself, also when a foreign page triggers the request. It never does so with a bearer token.
    const sent = access === 'write' && !/^bearer /i.test(authorization ?? '') ? undefined : credential(authorization);
    if (sent === undefined && access === 'write') return denied(401, 'send the token of admin.token as a bearer token');
    if (sent === undefined)
      return denied(
        401,
        'send the token of admin.token or admin.readToken as a bearer token, or as the password of HTTP Basic with any name',
      );
    const sentDigest = digest(sent);
    const matches = async (secret: Secret | undefined): Promise<boolean> => {
      const expected = (await secret?.read()) ?? '';
      return expected !== '' && timingSafeEqual(digest(expected), sentDigest);
    };
    // Compares both tokens, so that the time does not depend on which one matches.
    const [isToken, isReadToken] = await Promise.all([matches(token), matches(readToken)]);
    if (isToken || (isReadToken && access !== 'write')) return allowed;
    if (isReadToken) return denied(403, 'admin.readToken allows no operations: send the token of admin.token');
    return countFailure(network(address))
      ? denied(429, 'too many wrong tokens from this address within a minute')
      : denied(401, 'wrong token: it matches neither admin.token nor admin.readToken');
  };
}

const allowed: Decision = { allowed: true };

function denied(status: 401 | 403 | 429, message: string): Decision {
  return { allowed: false, status, message };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** RFC 6750 section 2.1 (bearer) and RFC 7617 section 2 (Basic: the password follows the first colon). */
function credential(authorization: string | undefined): string | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S+) *$/.exec(authorization ?? '') ?? [];
  if (/^bearer$/i.test(scheme)) return value;
  if (!/^basic$/i.test(scheme)) return undefined;
  const pair = Buffer.from(value, 'base64').toString('utf8');
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined;
}

/** The name in a Host header, without port and brackets. */
function hostOf(header: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(header)?.[1] ?? header.replace(/:\d+$/, '');
}

/** The /64 of an IPv6 address: one client can send from all of its addresses. */
function network(address: string): string {
  if (isIP(address) !== 6 || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = tail === undefined ? left : [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return groups.slice(0, 4).join(':');
}
