/**
 * The identity provider of specification section 5: token endpoint with both grants, keys and
 * discovery document, so that any standard client can get a token and verify it. The API uses it to
 * identify the holder of a token.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { jwtVerify, SignJWT } from 'jose';
import type { ServiceClock } from '../clock.ts';
import type { DataFile } from '../data-file.ts';
import { wholeOf } from '../http/body.ts';
import { Problem } from '../http/problem.ts';
import { Grants, OAuthError, openIdScopes } from './grants.ts';
import type { Organization } from './organization.ts';
import { algorithm, SigningKeys, type SigningKey } from './signing-keys.ts';
import type { SwitchValues } from '../switches.ts';
import type { User, Users } from './users.ts';

interface Issued {
  readonly userId: string;
  readonly expiresAt: number;
  /** The value of `revokeTokens` when it was issued. */
  readonly generation: number;
  /** The rotation of the key that signed it. */
  readonly rotation: number;
}

/** Switches with counts, which the data file stores. */
const countedSwitches = ['revokeTokens', 'rotateKeys'] as const;
const bodyBytesMax = 64 * 1024;
const rememberedMax = 10_000;

export class IdentityProvider {
  readonly #clock: ServiceClock;
  readonly #organization: Organization;
  readonly #data: DataFile;
  readonly #users: Users;
  readonly #values: SwitchValues;
  readonly #authUrl: string;
  readonly #keys: SigningKeys;
  readonly #grants: Grants;
  readonly #verified = new Map<string, Issued>();
  /** Public documents. */
  readonly #documents = new Map<string, () => unknown>([
    ['v2.0/.well-known/openid-configuration', () => this.#discovery()],
    ['discovery/v2.0/keys', async () => ({ keys: (await this.#goodKeys()).map((key) => key.jwk) })],
  ]);

  /**
   * Rotations and revocations of earlier processes with this data file continue to apply.
   * @param authUrl  the address below which the tenant's endpoints are, without a slash at the end
   */
  constructor(clock: ServiceClock, organization: Organization, data: DataFile, users: Users, values: SwitchValues, authUrl: string) {
    this.#clock = clock;
    this.#organization = organization;
    this.#data = data;
    this.#users = users;
    this.#values = values;
    this.#authUrl = authUrl;
    this.#keys = new SigningKeys(data);
    this.#grants = new Grants(organization, users);
    for (const name of countedSwitches) values[name] += Number(data.fact(name) ?? 0);
    this.keepCounts();
  }

  /**
   * Stores the numbers of rotations and revocations after a switch was set, so that a restart
   * undoes neither.
   */
  keepCounts(): void {
    this.#data.transaction(() => {
      for (const name of countedSwitches) this.#data.setFact(name, String(this.#values[name]));
    });
  }

  get issuer(): string {
    return `${this.#authUrl}/${this.#organization.tenantId}/v2.0`;
  }

  owns(path: string): boolean {
    return path.startsWith(`/${this.#organization.tenantId}/`);
  }

  async serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const endpoint = path.slice(this.#organization.tenantId.length + 2);
    if (endpoint === 'oauth2/v2.0/token') return this.#token(request, response);
    const document = this.#documents.get(endpoint);
    if (!document) answer(response, 404, { error: 'not_found' });
    else if (!['GET', 'HEAD'].includes(request.method ?? '')) answer(response, 405, { error: 'invalid_request' }, { allow: 'GET, HEAD' });
    else answer(response, 200, await document());
  }

  /**
   * The holder of an access token; undefined if it is unknown, expired or revoked. Caches verified
   * tokens.
   */
  async holderOf(token: string): Promise<User | undefined> {
    return this.rememberedHolderOf(token) ?? (await this.#verify(token));
  }

  /** The synchronous form of holderOf, for a token that was verified before. */
  rememberedHolderOf(token: string): User | undefined {
    const issued = this.#verified.get(token);
    if (!issued || issued.expiresAt <= this.#clock.now() || issued.generation !== this.#values.revokeTokens) return undefined;
    return this.#goodRotations().includes(issued.rotation) ? this.#users.find(issued.userId) : undefined;
  }

  async #verify(token: string): Promise<User | undefined> {
    const keys = await this.#goodKeys();
    try {
      const keyOf = (kid: string | undefined): SigningKey => {
        const key = keys.find((each) => each.kid === kid);
        if (!key) throw new Error('unknown key');
        return key;
      };
      const { payload, protectedHeader } = await jwtVerify(token, (header) => keyOf(header.kid).publicKey, {
        issuer: this.issuer,
        audience: this.#grants.audience,
        algorithms: [algorithm],
        requiredClaims: ['exp'],
        currentDate: new Date(this.#clock.now()),
      });
      const user = this.#users.find(String(payload['oid']));
      if (!user || payload['generation'] !== this.#values.revokeTokens) return undefined;
      if (this.#verified.size >= rememberedMax) this.#verified.clear();
      const issued = {
        userId: user.userId,
        expiresAt: (payload.exp ?? 0) * 1000,
        generation: this.#values.revokeTokens,
        rotation: keyOf(protectedHeader.kid).rotation,
      };
      this.#verified.set(token, issued);
      return user;
    } catch {
      // The API responds with 401 to any invalid token.
      return undefined;
    }
  }

  async #token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (request.method !== 'POST') throw new OAuthError('invalid_request', 'The token endpoint takes POST', 405, { allow: 'POST' });
      const grant = this.#grants.grant(await formOf(request, this.#values.bodyPatience), request.headers.authorization);
      const lifetime = Math.max(1, Math.round(this.#values.tokenLifetime / 1000));
      const key = await this.#keys.of(this.#values.rotateKeys);
      const now = Math.floor(this.#clock.now() / 1000);
      const signed = (audience: string, claims: Readonly<Record<string, unknown>>): Promise<string> =>
        new SignJWT(claims)
          .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: key.kid })
          .setIssuer(this.issuer)
          .setAudience(audience)
          .setSubject(grant.user.userId)
          .setIssuedAt(now)
          .setNotBefore(now)
          .setExpirationTime(now + lifetime)
          .setJti(crypto.randomUUID())
          .sign(key.privateKey);
      answer(response, 200, {
        token_type: 'Bearer',
        expires_in: lifetime,
        scope: grant.scopes.join(' '),
        access_token: await signed(this.#grants.audience, { ...grant.claims, generation: this.#values.revokeTokens }),
        ...(grant.identity && { id_token: await signed(grant.clientId, grant.identity) }),
      });
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const basic: Record<string, string> = error.status === 401 ? { 'www-authenticate': 'Basic realm="token endpoint"' } : {};
      answer(response, error.status, { error: error.code, error_description: error.message }, { ...basic, ...error.headers });
    }
  }

  #discovery(): unknown {
    const tenant = `${this.#authUrl}/${this.#organization.tenantId}`;
    return {
      issuer: this.issuer,
      token_endpoint: `${tenant}/oauth2/v2.0/token`,
      jwks_uri: `${tenant}/discovery/v2.0/keys`,
      // No grant uses an authorization endpoint, so neither it nor response types exist (RFC 8414
      // section 2).
      response_types_supported: ['none'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [algorithm],
      grant_types_supported: ['client_credentials', 'password'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic', 'none'],
      scopes_supported: [...openIdScopes, `${this.#grants.audience}/.default`, `${this.#grants.audience}/access_as_user`],
      claims_supported: 'iss sub aud exp nbf iat jti oid tid azp roles scp ver name given_name family_name preferred_username email'.split(
        ' ',
      ),
    };
  }

  /** The rotations whose keys are published, and whose tokens are valid. */
  #goodRotations(): number[] {
    const now = this.#values.rotateKeys;
    return now === 0 ? [0] : [now, now - 1];
  }

  async #goodKeys(): Promise<SigningKey[]> {
    return Promise.all(this.#goodRotations().map((rotation) => this.#keys.of(rotation)));
  }
}

async function formOf(request: IncomingMessage, patienceMs: number): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new OAuthError('invalid_request', 'The body must be application/x-www-form-urlencoded');
  }
  try {
    return new URLSearchParams((await wholeOf(request, { bytesMax: bodyBytesMax, patienceMs })).toString('utf8'));
  } catch (error) {
    if (error instanceof Problem) throw new OAuthError('invalid_request', error.message, error.status, error.headers);
    throw error;
  }
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    pragma: 'no-cache',
    ...headers,
  });
  response.end(text);
}
