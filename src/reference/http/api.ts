/**
 * The API behind `{base_url}`: who calls, whether he may, and which endpoint answers. The checks come in this order: limits, subscription
 * key (401), token (401), endpoint (404, 405), permission (403), parameters (400).
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from './problem.ts';
import type { Answer } from './faults.ts';
import type { IdentityProvider } from '../people/identity-provider.ts';
import type { Limits } from './limits.ts';
import type { Logs } from '../logs/logs.ts';
import type { Organisation, Person } from '../people/organisation.ts';

interface Endpoint {
  readonly method: string;
  readonly path: string;
  answer(caller: Person, query: string): Answer;
}

/** The path at which the API begins; `{base_url}` ends with it (specification 4, 9). */
export const apiRoot = '/v2/api';

export class Api {
  readonly #organisation: Organisation;
  readonly #provider: IdentityProvider;
  readonly #limits: Limits;
  readonly #endpoints: readonly Endpoint[];

  constructor(organisation: Organisation, provider: IdentityProvider, limits: Limits, logs: Logs) {
    this.#organisation = organisation;
    this.#provider = provider;
    this.#limits = limits;
    this.#endpoints = [
      { method: 'GET', path: '/logs/payload', answer: (caller, query) => json(logs.answer(caller, false, query)) },
      { method: 'GET', path: '/logs/full-payload', answer: (caller, query) => json(logs.answer(caller, true, query)) },
    ];
  }

  owns(path: string): boolean {
    return path.startsWith(`${apiRoot}/`);
  }

  /** How the figures name a request: `GET /logs/payload`, or `other`. */
  nameOf(method: string, path: string): string {
    const endpoint = this.#endpoints.find((each) => each.method === method && apiRoot + each.path === path);
    return endpoint ? `${method} ${endpoint.path}` : 'other';
  }

  /** @throws Problem for every refusal */
  async answer(request: IncomingMessage, path: string, query: string): Promise<Answer> {
    this.#limits.take();
    const key = request.headers['ocp-apim-subscription-key'];
    if (key !== this.#organisation.subscriptionKey) {
      throw new Problem(401, `The subscription key is ${key === undefined ? 'missing' : 'not valid'}: header Ocp-Apim-Subscription-Key`);
    }
    const caller = await this.#callerOf(request.headers.authorization);
    const named = this.#endpoints.filter((endpoint) => apiRoot + endpoint.path === path);
    if (named.length === 0) throw new Problem(404, 'There is no such endpoint');
    const endpoint = named.find((each) => each.method === request.method);
    if (!endpoint) {
      const allow = named.map((each) => each.method).join(', ');
      throw new Problem(405, `This endpoint takes ${allow}`, { headers: { allow } });
    }
    return endpoint.answer(caller, query);
  }

  async #callerOf(authorization: string | undefined): Promise<Person> {
    const token = /^Bearer +([A-Za-z0-9._~+/=-]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new Problem(401, 'A bearer token is needed', { headers: { 'www-authenticate': 'Bearer' } });
    const caller = this.#provider.rememberedHolderOf(token) ?? (await this.#provider.holderOf(token));
    if (!caller) {
      throw new Problem(401, 'The token is not valid, or not any more', {
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      });
    }
    return caller;
  }
}

function json(body: Buffer): Answer {
  return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body };
}
