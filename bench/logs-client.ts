/**
 * A client of the reference service for the benchmark of its log: it may read everything, and
 * compares each response with the truth.
 */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import type { Expected, Truth } from './logs-truth.ts';

/** The line that the service prints when it listens. */
export interface StartLine {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly tenantId: string;
  readonly scopeAddress: string;
  readonly subscriptionKey: string;
  readonly ca: string;
  readonly control: string;
  readonly clients: readonly { readonly clientId: string; readonly clientSecret: string; readonly roles: readonly string[] }[];
}

export class Client implements AsyncDisposable {
  readonly line: StartLine;
  readonly headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;

  private constructor(line: StartLine, agent: Agent, token: string) {
    this.line = line;
    this.#agent = agent;
    this.headers = { authorization: `Bearer ${token}`, 'ocp-apim-subscription-key': line.subscriptionKey };
  }

  static async of(line: StartLine): Promise<Client> {
    const agent = new Agent({ connect: { ca: readFileSync(line.ca, 'utf8') } });
    return new Client(line, agent, await tokenOf(line, agent));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.close();
  }

  /** The number of full-payload pages that the service reports. */
  async answers(): Promise<number> {
    const { requests } = (await (await fetch(`${this.line.control}/stats`)).json()) as { requests: Record<string, Record<string, number>> };
    return requests['GET /logs/full-payload']?.['200'] ?? 0;
  }

  /** The response, and its latency in ms. */
  async ask(url: string): Promise<{ text: string; ms: number }> {
    const begin = performance.now();
    const { body } = await request(url, { headers: this.headers, dispatcher: this.#agent });
    const text = await body.text();
    return { text, ms: performance.now() - begin };
  }

  /** Requests the page and compares it with the truth. @returns the latency in ms */
  async check(truth: Truth, expected: Expected): Promise<number> {
    const { text, ms } = await this.ask(this.line.baseUrl + expected.path);
    const { pagination, data } = JSON.parse(text) as { pagination: { totalRecords: number }; data: { logId: number }[] };
    const ids = truth.ids(expected);
    const isRight =
      pagination.totalRecords === expected.total && data.length === ids.length && data.every(({ logId }, i) => logId === ids[i]);
    if (!isRight) throw new Error(`the answer is wrong: ${expected.path}`);
    return ms;
  }
}

async function tokenOf({ authUrl, tenantId, scopeAddress, clients }: StartLine, dispatcher: Agent): Promise<string> {
  const client = clients.find(({ roles }) => roles.includes('Security Administrator'));
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client?.clientId ?? '',
    client_secret: client?.clientSecret ?? '',
    scope: `api://${scopeAddress}/.default`,
  });
  const { body } = await request(`${authUrl}/${tenantId}/oauth2/v2.0/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
    dispatcher,
  });
  return ((await body.json()) as { access_token: string }).access_token;
}
