/**
 * Who may ask the admin server what. A token comes as bearer, or as the password of HTTP Basic under any name, and is compared in constant
 * time; without a token only a loopback address answers everything. The right token is admitted whatever was tried before it: who guesses must
 * not be able to keep its owner out.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

/** Where a request came in: the socket of the state directory (its mode is the credential), a loopback address, or anywhere else. */
export type Place = 'socket' | 'loopback' | 'elsewhere';

/** A secret as it now stands: read for every request, so that a replaced one counts. Throws when it is not there any more. */
interface Secret {
  read(): string | Promise<string>;
}

export interface Tokens {
  readonly token?: Secret | undefined;
  /** For page, status, ledger and metrics alone. */
  readonly readToken?: Secret | undefined;
}

interface Caller {
  readonly place: Place;
  readonly address: string;
  readonly host: string | undefined;
  readonly authorization: string | undefined;
}

type Answer = { readonly admitted: true } | { readonly admitted: false; readonly status: 401 | 429; readonly message: string };

/** @throws what `Secret.read` throws: a token that is set and cannot be read opens nothing */
export type Authorizer = (caller: Caller, what: 'metrics' | 'read' | 'write') => Promise<Answer>;

const failuresMax = 10;
const failuresMs = 60_000;
const addressesMax = 10_000;

export function createAuthorizer({ token, readToken }: Tokens, clock: Clock, log: Log): Authorizer {
  const secrets = [token, readToken].filter((secret) => secret !== undefined);
  const failures = new Map<string, { since: number; count: number }>();

  /** Counts a wrong token. @returns whether there were too many */
  const failed = (from: string): boolean => {
    const now = clock.monotonic();
    const known = failures.get(from);
    const { since, count } = known && now - known.since < failuresMs ? known : { since: now, count: 0 };
    if (!known && failures.size >= addressesMax) failures.delete(failures.keys().next().value ?? '');
    failures.set(from, { since, count: count + 1 });
    if (count === failuresMax) log.write('admin.wrong_tokens', { address: from });
    return count >= failuresMax;
  };

  return async ({ place, address, host, authorization }, what) => {
    if (place === 'socket') return admitted;
    if (what === 'write' && token === undefined) return refused(401, 'set admin.token: without it nothing can be changed here');
    if (secrets.length === 0) {
      if (place === 'elsewhere')
        return what === 'metrics'
          ? admitted
          : refused(401, 'set admin.token (or admin.readToken): without one only the probes and /metrics are answered here');
      // A page on the web may name its own host 127.0.0.1 and so make a browser ask here.
      return host !== undefined && isLoopback(hostOf(host))
        ? admitted
        : refused(401, 'set admin.token: without one this address answers only to the name localhost or a loopback address');
    }
    // A browser sends Basic by itself, also where a foreign page makes it ask; a bearer token it never does.
    const given = what === 'write' && !/^bearer /i.test(authorization ?? '') ? undefined : credential(authorization);
    if (given === undefined && what === 'write') return refused(401, 'send the token of admin.token as a bearer token');
    if (given === undefined)
      return refused(
        401,
        'send the token of admin.token or admin.readToken as a bearer token, or as the password of HTTP Basic with any name',
      );
    const hash = digest(given);
    const requested = await Promise.all((what === 'write' ? [token] : secrets).map(async (secret) => (await secret?.read()) ?? ''));
    // Every one is compared, whichever fits.
    const fits = requested.filter((text) => text !== '').map((text) => timingSafeEqual(digest(text), hash));
    if (fits.includes(true)) return admitted;
    return failed(network(address))
      ? refused(429, 'too many wrong tokens from this address within a minute')
      : refused(401, 'this token is neither that of admin.token nor that of admin.readToken');
  };
}

/** A name or address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || name === '::ffff:127.0.0.1' || (isIP(name) === 4 && name.startsWith('127.'));
}

const admitted: Answer = { admitted: true };

function refused(status: 401 | 429, message: string): Answer {
  return { admitted: false, status, message };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** RFC 6750 section 2.1 (bearer) and RFC 7617 section 2 (Basic: the password is what follows the first colon). */
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

/** An IPv6 host has a whole /64 to guess from. */
function network(address: string): string {
  if (isIP(address) !== 6 || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = tail === undefined ? left : [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return groups.slice(0, 4).join(':');
}
