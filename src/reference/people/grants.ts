/** The grants of the token endpoint: checks client, user and scope of a request, and gives the claims of its tokens (RFC 6749). */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Organization } from './organization.ts';
import type { User, Users } from './users.ts';

interface Grant {
  readonly user: User;
  readonly clientId: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly scopes: readonly string[];
  /** Claims of the ID token; undefined without one. */
  readonly identity: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Scopes of OpenID Connect Core (5.4, 11) that clients add to the scope of the API. There are no
 * refresh tokens: offline_access is ignored.
 */
export const openIdScopes = ['openid', 'profile', 'email'];
const ignoredScopes = ['offline_access'];
/** An error response of RFC 6749 section 5.2. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError';
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: string, description: string, status = 400, headers: Readonly<Record<string, string>> = {}) {
    super(description);
    this.code = code;
    this.status = status;
    this.headers = headers;
  }
}

export class Grants {
  readonly #organization: Organization;
  readonly #users: Users;

  constructor(organization: Organization, users: Users) {
    this.#organization = organization;
    this.#users = users;
  }

  get audience(): string {
    return `api://${this.#organization.scopeAddress}`;
  }

  /** @throws OAuthError */
  grant(form: URLSearchParams, authorization: string | undefined): Grant {
    for (const name of new Set(form.keys())) {
      if (form.getAll(name).length > 1) throw new OAuthError('invalid_request', `The parameter "${name}" is given more than once`);
    }
    const field = (name: string): string => {
      const value = form.get(name);
      if (!value) throw new OAuthError('invalid_request', `The parameter "${name}" is missing`);
      return value;
    };
    const kind = field('grant_type');
    if (kind !== 'client_credentials' && kind !== 'password')
      throw new OAuthError('unsupported_grant_type', `The grant "${kind}" is not supported`);
    const basic = basicOf(authorization);
    const clientId = basic?.name ?? field('client_id');
    const secret = basic?.secret ?? form.get('client_secret') ?? '';
    const client = this.#organization.clients.find((each) => each.clientId === clientId);
    const isPublic = clientId === this.#organization.publicClientId;
    if (!client && !isPublic) throw new OAuthError('invalid_client', 'The client is not known', 401);
    if (client && !same(client.clientSecret, secret)) throw new OAuthError('invalid_client', 'The client secret is wrong', 401);

    const scopeName = kind === 'password' ? 'access_as_user' : '.default';
    const scopes = this.#scopesOf(field('scope'), kind, scopeName);
    if (kind === 'client_credentials') {
      if (!client) throw new OAuthError('unauthorized_client', 'A client without a secret cannot use client_credentials');
      const user = this.#known(client.person.userId);
      return { user, clientId, claims: this.#claims(user, clientId, { roles: user.roles }), scopes, identity: undefined };
    }
    const account = this.#users.account(field('username'));
    if (!account || !same(account.password, field('password')))
      throw new OAuthError('invalid_grant', 'The user name or the password is wrong');
    const user = this.#known(account.userId);
    const claims = { scp: scopeName, roles: user.roles, preferred_username: account.username };
    const identity = scopes.includes('openid') ? this.#identity(user, account.username, scopes) : undefined;
    return { user, clientId, claims: this.#claims(user, clientId, claims), scopes, identity };
  }

  /**
   * The requested scopes that are granted. An application has no identity, so it only gets the
   * scope of the API.
   */
  #scopesOf(text: string, kind: string, scopeName: string): string[] {
    const ofApi = `${this.audience}/${scopeName}`;
    const asked = text.split(' ').filter((scope) => scope !== '');
    const known = [ofApi, ...openIdScopes, ...ignoredScopes];
    if (!asked.includes(ofApi) || !asked.every((scope) => known.includes(scope))) {
      const others = [...openIdScopes, ...ignoredScopes].join(', ');
      throw new OAuthError(
        'invalid_scope',
        `The scope of the grant ${kind} is api://<scope_address>/${scopeName}, with or without ${others}`,
      );
    }
    return [...(kind === 'password' ? openIdScopes.filter((scope) => asked.includes(scope)) : []), ofApi];
  }

  /** Claims of an ID token (OpenID Connect Core 2, 5.4), without the claims of every token. */
  #identity(user: User, username: string, scopes: readonly string[]): Record<string, unknown> {
    const name = { name: `${user.firstName} ${user.lastName}`, given_name: user.firstName, family_name: user.lastName };
    return {
      oid: user.userId,
      tid: this.#organization.tenantId,
      ver: '2.0',
      ...(scopes.includes('profile') && { ...name, preferred_username: username }),
      ...(scopes.includes('email') && { email: user.email }),
    };
  }

  #known(userId: string): User {
    const user = this.#users.find(userId);
    if (!user) throw new OAuthError('invalid_grant', 'The user no longer exists');
    return user;
  }

  #claims(user: User, clientId: string, more: Record<string, unknown>): Record<string, unknown> {
    return { oid: user.userId, azp: clientId, tid: this.#organization.tenantId, ver: '2.0', ...more };
  }
}

/**
 * The credentials of RFC 6749 section 2.3.1: both parts are form-urlencoded before they are joined.
 */
function basicOf(authorization: string | undefined): { name: string; secret: string } | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) throw new OAuthError('invalid_client', 'The Authorization header is malformed', 401);
  const decoded = (part: string): string => new URLSearchParams(`v=${part}`).get('v') ?? '';
  return { name: decoded(text.slice(0, colon)), secret: decoded(text.slice(colon + 1)) };
}

function same(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
