/**
 * The access token of a login (specification section 5; RFC 6749 sections 4.3, 4.4 and 5). All sources with this login share one: at some
 * servers a new token ends the one before. It is renewed at 80 % of its lifetime, or when a service rejects it (source-token.ts), once for
 * all waiting requests. Each renewal reads the secrets again. No error contains a secret, a token, or a part of a response that may hold
 * one.
 */
import { orAborted } from '../time/deadline.ts';
import { decodeJwt } from 'jose/jwt/decode';
import {
  ClientSecretPost,
  Configuration,
  None,
  allowInsecureRequests,
  clientCredentialsGrant,
  customFetch,
  genericGrantRequest,
} from 'openid-client';
import { Headers } from 'undici/lib/web/fetch/headers.js';
import { Response } from 'undici/lib/web/fetch/response.js';
import { WaybillError, codeOf } from '../errors/errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { Connection } from '../connect/connection.ts';
import { BrokenAnswer, exchange } from './exchange.ts';
import type { Answer } from './exchange.ts';
import { parseHttpDate, parseRetryAfter } from './headers.ts';
import { objectIn } from '../record/json-object.ts';
import { quote } from '../errors/quote.ts';
import { remember } from '../errors/secrets.ts';
import type { Secret, TlsSettings } from '../connect/trust.ts';

// openid-client constructs the global `Headers` and `Response`: for its own ones Node would load another undici, 14 MiB and 90 ms of CPU.
Object.assign(globalThis, { Headers, Response });

/** `auth` of a source. */
export interface AuthSettings {
  /** The base address of the identity provider, without a path; the token endpoint is `{authUrl}/{tenantId}/oauth2/v2.0/token`. */
  readonly authUrl: string;
  readonly tenantId: string;
  readonly clientId: string;
  readonly clientSecret?: Secret | undefined;
  readonly scopeAddress: string;
  readonly grantType: 'client_credentials' | 'password';
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  readonly tls?: TlsSettings | undefined;
}

export class TokenStore implements AsyncDisposable {
  /** The id of the source whose settings are used and named. */
  readonly source: string;
  readonly connection: Connection;
  /** The present sources of the login. */
  readonly sharers = new Set<object>();
  /** Sources that replaced a token that may have been too new, and have not been accepted since. */
  readonly doubters = new Set<object>();
  current: Token | undefined;
  /** A replaced token that serves while no other can be obtained. */
  doubted: Token | undefined;
  /** The earliest time of the next limited replacement, ms of the monotonic clock. */
  replaceAt = -Infinity;
  /** The path of `auth`: `sources.production.auth`. */
  readonly #setting: string;
  readonly #auth: AuthSettings;
  readonly clock: Clock;
  readonly #timeoutMs: number;
  readonly log: Log | undefined;
  /** The secrets as last sent, by setting. */
  readonly #sent = new Map<string, string>();
  readonly #stop = new AbortController();
  #renewal: Promise<Token> | undefined;

  /** @param source  the id of a source @param timeoutMs  the limit for one token request */
  constructor(source: string, auth: AuthSettings, connection: Connection, clock: Clock, timeoutMs: number, log?: Log) {
    this.source = source;
    this.#setting = `sources.${source}.auth`;
    this.#auth = auth;
    this.connection = connection;
    this.clock = clock;
    this.#timeoutMs = timeoutMs;
    this.log = log;
  }

  /**
   * All callers during a renewal wait for the same one; aborting a caller does not stop it.
   * @throws WaybillError `token_refused`, `token_unreachable`, `tls_untrusted`, `proxy_refused`, `secret_missing`
   */
  async get(signal: AbortSignal): Promise<Token> {
    if (this.#isFresh(this.current)) return this.current;
    this.#renewal ??= this.#renew()
      .catch((thrown: unknown) => {
        if (!this.#isFresh(this.doubted)) throw thrown;
        return (this.current = this.doubted);
      })
      .finally(() => (this.#renewal = this.doubted = undefined));
    return orAborted(this.#renewal, signal);
  }

  #isFresh(token: Token | undefined): token is Token {
    return token !== undefined && this.clock.monotonic() < token.since + token.lifeMs * 0.8;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new WaybillError('aborted', `cannot obtain a token for "${this.#setting}": shutting down`));
    await this.#renewal?.catch(() => undefined);
    await this.connection[Symbol.asyncDispose]();
  }

  async #renew(): Promise<Token> {
    const { grantType, authUrl, tenantId, clientId, scopeAddress, username } = this.#auth;
    const secrets = this.#secrets();
    const base = authUrl.replace(/\/+$/, '');
    const endpoint = `${base}/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`;
    const authentication = grantType === 'password' ? None() : ClientSecretPost(secrets.clientSecret);
    const configuration = new Configuration({ issuer: base, token_endpoint: endpoint }, clientId, undefined, authentication);
    // The configuration allows plain HTTP for loopback addresses only. The timeout is enforced here.
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- deprecated only as a warning
    if (base.startsWith('http:')) allowInsecureRequests(configuration);
    configuration.timeout = 0;
    let failure: Error | undefined;
    configuration[customFetch] = async (_url, { headers, body }) => {
      try {
        const answer = await this.#ask(endpoint, headers, String(body as URLSearchParams));
        return new Response(this.#essence(answer), { status: 200, headers: { 'content-type': 'application/json' } });
      } catch (thrown) {
        failure = thrown instanceof Error ? thrown : new Error(String(thrown));
        throw failure;
      }
    };
    const scope = `api://${scopeAddress}/${grantType === 'password' ? 'access_as_user' : '.default'}`;
    try {
      const granted =
        grantType === 'password'
          ? await genericGrantRequest(configuration, grantType, { scope, username: username ?? '', password: secrets.password })
          : await clientCredentialsGrant(configuration, { scope });
      const token = granted.access_token;
      remember(this, token);
      // An invalid character would fail every request, with the token in the error message.
      if (!/^[\x21-\x7e]+$/.test(token)) throw this.#unreachable('the response has no usable access_token');
      const times = timesOf(token);
      const life = lifeMs(granted.expires_in, times, this.clock.now());
      this.current = { token, since: this.clock.monotonic(), lifeMs: life, validFrom: times.validFrom, acceptedBy: new Set() };
      return this.current;
    } catch (thrown) {
      if (failure !== undefined) throw failure;
      if (thrown instanceof WaybillError) throw thrown;
      // Without a cause: errors of the client library contain the whole response.
      throw this.#unreachable('the response is not that of a token endpoint (RFC 6749 section 5.1)');
    }
  }

  /**
   * The members of a token response that are used here: the client library rejects a response for any other member. A missing `token_type`,
   * which RFC 6749 requires but the specification does not name, means a bearer token.
   */
  #essence(answer: Answer): string {
    const response = objectIn(new TextDecoder().decode(answer.body));
    const { access_token, token_type, expires_in } = response;
    if (typeof access_token !== 'string' || access_token === '') {
      const reason = Object.keys(response).length === 0 ? 'the response is not JSON, or empty' : 'the response has no access_token';
      throw this.#unreachable(`${reason} (RFC 6749 section 5.1)`);
    }
    const type = typeof token_type === 'string' && token_type.trim() !== '' ? token_type.trim() : 'Bearer';
    if (type.toLowerCase() !== 'bearer') throw this.#unreachable(`expected a token of the type Bearer, got "${quote(type, 60)}"`);
    const seconds = Number(typeof expires_in === 'string' ? expires_in.trim() || Number.NaN : (expires_in ?? Number.NaN));
    return JSON.stringify({ access_token, token_type: type, ...(seconds > 0 && Number.isFinite(seconds) && { expires_in: seconds }) });
  }

  #secrets(): { readonly clientSecret: string; readonly password: string } {
    const read = (name: 'clientSecret' | 'password'): string => {
      const secret = this.#auth[name];
      secret?.refresh();
      const value = secret?.read() ?? '';
      const setting = `${this.#setting}.${name}`;
      if ((this.#sent.get(setting) ?? value) !== value) this.log?.write('source.setting_reread', { setting });
      this.#sent.set(setting, value);
      return value;
    };
    return { clientSecret: read('clientSecret'), password: read('password') };
  }

  async #ask(url: string, headers: Record<string, string>, body: string): Promise<Answer> {
    let answer: Answer;
    try {
      const question = { method: 'POST', url, headers, body, bytesMax: tokenBytesMax, timeoutMs: this.#timeoutMs } as const;
      answer = await exchange(this.connection, question, this.clock, this.#stop.signal);
    } catch (thrown) {
      if (thrown instanceof BrokenAnswer) throw this.#unreachable(thrown.message);
      if (codeOf(thrown) !== 'source_unreachable' || !(thrown instanceof WaybillError)) throw thrown;
      throw new WaybillError('token_unreachable', `${this.#begin()}: ${thrown.message}`, { cause: thrown.cause });
    }
    const refusal = readRefusal(answer);
    // Some endpoints refuse with status 200.
    if (answer.status === 200 && refusal.error === '') return answer;

    const message = [refusal.error, refusal.description].filter(Boolean).join(': ') || `status ${answer.status}`;
    if (refusal.error === '' || answer.status === 429 || answer.status >= 500 || transient.has(refusal.error)) {
      const now = this.clock.now();
      const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], parseHttpDate(answer.headers['date'], now) ?? now);
      const status = answer.status >= 300 && answer.status < 400 ? `status ${answer.status}, redirects are not followed` : message;
      throw this.#unreachable(status, retryAfterMs, answer.status === 404 ? this.#address() : 'authUrl');
    }
    const at = answer.status === 404 ? this.#address() : this.#at(refusal);
    throw new WaybillError('token_refused', `${this.#begin()}: ${message}; see ${this.#setting}.${at}`);
  }

  #unreachable(message: string, retryAfterMs?: number, at = 'authUrl'): WaybillError {
    return new WaybillError('token_unreachable', `${this.#begin()}: ${message}; see ${this.#setting}.${at}`, { retryAfterMs });
  }

  #address(): string {
    return `authUrl and ${this.#setting}.tenantId`;
  }

  #begin(): string {
    return `cannot obtain a token from "${this.#auth.authUrl}" for client "${this.#auth.clientId}"`;
  }

  /** The key of `auth` that the operator should check first. */
  #at({ error, description }: { readonly error: string; readonly description: string }): string {
    // AADSTS90002: tenant not found; AADSTS700016: application not found in the directory.
    if (/AADSTS90002\b|tenant/i.test(description)) return 'tenantId';
    if (/AADSTS700016\b|\b(client|application)\b.*\b(unknown|not (known|found))\b/i.test(description) || error === 'unauthorized_client') {
      return 'clientId';
    }
    if (error === 'invalid_scope' || error === 'invalid_resource' || error === 'invalid_target') return 'scopeAddress';
    if (error === 'unsupported_grant_type') return 'grantType';
    return this.#auth.grantType === 'password' ? (error === 'invalid_client' ? 'clientId' : 'password') : 'clientSecret';
  }
}

export interface Token {
  readonly token: string;
  /** When it was obtained, ms of the monotonic clock. */
  readonly since: number;
  readonly lifeMs: number;
  /** Stated by the token: ms since 1970 by the clock of its issuer. */
  readonly validFrom: number | undefined;
  /** Sources. */
  readonly acceptedBy: Set<object>;
}

const tokenBytesMax = 1024 * 1024;

/** Temporary refusals (RFC 6749 section 4.1.2.1, OpenID Connect). */
const transient = new Set(['temporarily_unavailable', 'server_error', 'slow_down']);

/** Assumed lifetime of a token that states none, ms. */
const lifeUnknownMs = 5 * 60_000;

/** What the token itself states (RFC 7519 section 4.1). An opaque token is valid too. */
function timesOf(token: string): { readonly validFrom?: number; readonly exp?: number | undefined; readonly iat?: number | undefined } {
  try {
    const { exp, iat, nbf } = decodeJwt(token);
    const begin = Math.max(nbf ?? -Infinity, iat ?? -Infinity) * 1000;
    return { exp, iat, ...(Number.isFinite(begin) && { validFrom: begin }) };
  } catch {
    return {};
  }
}

/** In ms: as the response states it, else as the token states it, else five minutes. */
function lifeMs(expiresIn: number | undefined, { exp, iat }: ReturnType<typeof timesOf>, now: number): number {
  if (expiresIn !== undefined) return expiresIn * 1000;
  // With `iat`, both times are of the issuer's clock.
  const life = exp === undefined ? Number.NaN : exp * 1000 - (iat === undefined ? now : iat * 1000);
  return life > 0 ? life : lifeUnknownMs;
}

/** `error` and `error_description` of a refusal (RFC 6749 section 5.2), safe to show; empty when absent. */
function readRefusal(answer: Answer): { readonly error: string; readonly description: string } {
  const { error, error_description } = objectIn(new TextDecoder().decode(answer.body));
  const shown = (text: unknown, max: number): string => (typeof text === 'string' ? quote(text.split(/\r?\n/, 1)[0] ?? '', max) : '');
  return { error: shown(error, 60), description: shown(error_description, 300) };
}
