/**
 * The client of a simulated person: signs in at the identity provider and calls the API over HTTPS.
 */
import { request, type Agent } from 'node:https';
import type { Account } from '../people/users.ts';

/** The addresses of the service, and the settings of every client. */
export interface Service {
  readonly baseUrl: string;
  readonly tokenUrl: string;
  readonly scope: string;
  /** The client application through which people sign in. */
  readonly clientId: string;
  readonly subscriptionKey: string;
  /** Trusts the authority of the service. */
  readonly agent: Agent;
}

/** A response; the body is undefined if it is not JSON, as with some faults. */
interface Reply {
  readonly status: number;
  readonly json: Record<string, unknown> | undefined;
}

const timeoutMs = 10_000;

export class Caller {
  readonly userId: string;
  readonly #account: Account;
  readonly #service: Service;
  #token: Promise<string> | undefined;

  constructor(account: Account, service: Service) {
    this.userId = account.userId;
    this.#account = account;
    this.#service = service;
  }

  /**
   * POST with a body, else GET. Renews an expired token once.
   * @throws without a response or token
   */
  async call(path: string, body: unknown, signal: AbortSignal): Promise<Reply> {
    const reply = await this.#call(path, body, signal);
    if (reply.status !== 401) return reply;
    this.#token = undefined;
    return this.#call(path, body, signal);
  }

  async #call(path: string, body: unknown, signal: AbortSignal): Promise<Reply> {
    this.#token ??= this.#signIn(signal);
    let token: string;
    try {
      token = await this.#token;
    } catch (error) {
      this.#token = undefined;
      throw error;
    }
    const headers = {
      authorization: `Bearer ${token}`,
      'ocp-apim-subscription-key': this.#service.subscriptionKey,
      'x-api-caller-id': this.userId,
      'content-type': 'application/json',
    };
    return this.#send(this.#service.baseUrl + path, headers, body === undefined ? undefined : JSON.stringify(body), signal);
  }

  async #signIn(signal: AbortSignal): Promise<string> {
    const { tokenUrl, scope, clientId } = this.#service;
    const { username, password } = this.#account;
    const form = new URLSearchParams({ grant_type: 'password', client_id: clientId, scope, username, password });
    const reply = await this.#send(tokenUrl, { 'content-type': 'application/x-www-form-urlencoded' }, form.toString(), signal);
    const token = reply.json?.['access_token'];
    if (typeof token !== 'string') throw new Error(`no token: ${reply.status}`);
    return token;
  }

  #send(url: string, headers: Record<string, string>, body: string | undefined, signal: AbortSignal): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const options = { method: body === undefined ? 'GET' : 'POST', headers, agent: this.#service.agent, signal, timeout: timeoutMs };
      const sent = request(url, options, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.once('error', reject);
        response.once('end', () => resolve({ status: response.statusCode ?? 0, json: jsonOf(Buffer.concat(parts).toString()) }));
      });
      sent.once('timeout', () => sent.destroy(new Error('no response in time')));
      sent.once('error', reject);
      sent.end(body);
    });
  }
}

function jsonOf(text: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    // A fault may replace the JSON; the status is enough.
    return undefined;
  }
}
