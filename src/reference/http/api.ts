/**
 * The API behind `{base_url}`: authenticates and authorizes the caller, and selects the endpoint.
 * The order of the checks: limits, subscription key (401), token (401), endpoint (404, 405),
 * permission (403), x-api-caller-id (400, 403), parameters (400), body (408, 413, 415, 400); after
 * a body, token and permission again. From then on an endpoint runs synchronously, so that nothing
 * changes in between.
 */
import type { IncomingMessage } from 'node:http';
import type { IdentityProvider } from '../people/identity-provider.ts';
import type { Organization } from '../people/organization.ts';
import { allows } from '../people/roles.ts';
import type { User } from '../people/users.ts';
import type { SwitchValues } from '../switches.ts';
import { fileCarrierBytes } from './base64.ts';
import { jsonOf, type BodyLimits, type JsonBody } from './body.ts';
import { BodyBudget } from './body-budget.ts';
import { bodyOf, noQuery, type Endpoint } from './endpoint.ts';
import type { Answer } from './faults.ts';
import type { Limits } from './limits.ts';
import { Problem } from './problem.ts';
import { Routes, type Route } from './routes.ts';

interface ApiParts {
  readonly organization: Organization;
  readonly provider: IdentityProvider;
  readonly limits: Limits;
  readonly values: SwitchValues;
  readonly endpoints: readonly Endpoint[];
}

/** The path at which the API begins; `{base_url}` ends with it. */
export const apiRoot = '/v2/api';
const plainBodyBytesMax = 64 * 1024;
/** Space for three incoming files of 16 MiB. */
const largeBodiesBytesMax = 72 * 1024 * 1024;

export class Api {
  readonly #parts: ApiParts;
  readonly #routes: Routes;
  readonly #bodies = new BodyBudget(largeBodiesBytesMax);

  constructor(parts: ApiParts) {
    this.#parts = parts;
    this.#routes = new Routes(parts.endpoints);
  }

  owns(path: string): boolean {
    return path.startsWith(`${apiRoot}/`);
  }

  /** The name of a request in the statistics: `GET /logs/payload`, or `other`. */
  nameOf(method: string, path: string): string {
    try {
      const route = this.#routes.at(path.slice(apiRoot.length)).find(({ endpoint }) => endpoint.method === method);
      return route ? `${method} ${route.endpoint.path}` : 'other';
    } catch (error) {
      if (error instanceof Problem) return 'other';
      throw error;
    }
  }

  /** @throws Problem for a refused request */
  async answer(request: IncomingMessage, path: string, queryText: string): Promise<Answer> {
    const { limits, organization } = this.#parts;
    limits.take();
    const key = request.headers['ocp-apim-subscription-key'];
    if (key !== organization.subscriptionKey) {
      const parameter = 'Ocp-Apim-Subscription-Key';
      throw new Problem(401, `The subscription key is ${key === undefined ? 'missing' : 'not valid'}: header ${parameter}`, { parameter });
    }
    const caller = await this.#callerOf(request.headers.authorization);
    const { endpoint, params } = this.#routeOf(request.method ?? '', path.slice(apiRoot.length));
    checkPermission(endpoint, caller);
    if (endpoint.method !== 'GET') checkCallerId(request.headers['x-api-caller-id'], caller);
    const query = (endpoint.query ?? noQuery).read(queryText);
    const call = { caller, params, query, body: undefined, files: new Map(), peer: request.socket.remoteAddress ?? '' };
    if (!endpoint.body) return endpoint.answer(call);
    const { json, files } = await this.#jsonOf(request, this.#bodyLimitsOf(endpoint));
    const body = await bodyOf(endpoint.body, json);
    // While the body arrived, the token may have been revoked, or a role of the caller.
    const still = await this.#callerOf(request.headers.authorization);
    checkPermission(endpoint, still);
    return endpoint.answer({ ...call, caller: still, body, files });
  }

  /** A large body waits for space; its time limit begins after that. */
  async #jsonOf(request: IncomingMessage, limits: BodyLimits): Promise<JsonBody> {
    const length = request.headers['content-length'];
    const bytes = length === undefined ? limits.bytesMax : Number(length);
    if (bytes <= plainBodyBytesMax || bytes > limits.bytesMax) return jsonOf(request, limits);
    const gone = new AbortController();
    const leave = (): void => gone.abort(new Error('the client has disconnected'));
    request.once('close', leave);
    const space = await this.#bodies.reserve(bytes, gone.signal);
    request.off('close', leave);
    try {
      gone.signal.throwIfAborted();
      return await jsonOf(request, limits);
    } finally {
      space[Symbol.dispose]();
    }
  }

  #routeOf(method: string, path: string): Route {
    const routes = this.#routes.at(path);
    if (routes.length === 0) throw new Problem(404, 'The endpoint does not exist');
    // Node sends the headers of the answer to HEAD, and no body (RFC 9110 section 9.3.2).
    const route = routes.find(({ endpoint }) => endpoint.method === (method === 'HEAD' ? 'GET' : method));
    if (route) return route;
    const allow = routes.flatMap(({ endpoint }) => (endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method])).join(', ');
    throw new Problem(405, `This endpoint accepts ${allow}`, { headers: { allow } });
  }

  #bodyLimitsOf(endpoint: Endpoint): BodyLimits {
    const { fileMax, bodyPatience } = this.#parts.values;
    const bytesMax = plainBodyBytesMax + (endpoint.carriesFile === true ? fileCarrierBytes(fileMax) : 0);
    return { bytesMax, patienceMs: bodyPatience };
  }

  async #callerOf(authorization: string | undefined): Promise<User> {
    const { provider } = this.#parts;
    const parameter = 'Authorization';
    const token = /^Bearer +([A-Za-z0-9._~+/=-]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new Problem(401, 'A bearer token is required', { parameter, headers: { 'www-authenticate': 'Bearer' } });
    const caller = provider.rememberedHolderOf(token) ?? (await provider.holderOf(token));
    if (!caller) {
      throw new Problem(401, 'The token is invalid, expired or revoked', {
        parameter,
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      });
    }
    return caller;
  }
}

function checkPermission({ permissions }: Endpoint, caller: User): void {
  if (permissions.some((permission) => allows(caller.roles, permission))) return;
  throw new Problem(403, `The permission ${permissions.join(' or ')} is required`);
}

/** Calls that create or update must name their caller (section 4.1). */
function checkCallerId(given: string | string[] | undefined, caller: User): void {
  const parameter = 'x-api-caller-id';
  if (given === undefined || given === '')
    throw new Problem(400, `The header ${parameter} is missing: it must be the user id of the caller`, { parameter });
  // Node joins repeated headers with a comma, which no user id contains.
  if (given.includes(',')) throw new Problem(400, `The header ${parameter} is given more than once`, { parameter });
  if (given !== caller.userId) throw new Problem(403, `The header ${parameter} names another user than the token`, { parameter });
}
