/**
 * Starts the reference service and sends HTTPS requests that trust only its CA; and a second
 * implementation of the logs endpoints' responses, computed from `GET /truth`. The service runs in
 * the process of the tests, because the start of a program takes longer than most tests; they know
 * it by its addresses alone.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { inject } from 'vitest';
import { optionsOf } from '../../../src/reference/options.ts';
import { serve } from '../../../src/reference/serve.ts';
import { referenceProgram } from '../programs.ts';
import { Description } from './description.ts';
import type { Told } from './description.ts';

export type { Told } from './description.ts';

interface StartLine {
  baseUrl: string;
  authUrl: string;
  tenantId: string;
  scopeAddress: string;
  subscriptionKey: string;
  ca: string;
  control: string;
  clients: { clientId: string; clientSecret: string; userId: string; roles: string[] }[];
  users: { userId: string; username: string; password: string; clientId: string; roles: string[] }[];
}

/** A record of the truth, and its text. */
export interface TruthRecord extends Record<string, unknown> {
  logId: number;
  userId: string;
  currentPayloadOwnerId: string;
  logTimestamp: string;
  userNetwork: Record<string, string>;
}

interface Page {
  pagination: { totalRecords?: number | string; pageSize: number; itemsInPage: number; page: number };
  data: TruthRecord[];
}

interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** The caller: a client or a signed-in user. */
export interface Caller {
  userId: string;
  token: string;
}

export class Service implements AsyncDisposable {
  readonly line: StartLine;
  readonly #end: (signal: NodeJS.Signals) => Promise<number | null>;
  #ended: Promise<number | null> | undefined;
  readonly #agent: Agent;
  readonly #tokens = new Map<string, string>();
  #description: Promise<Description> | undefined;

  private constructor(end: (signal: NodeJS.Signals) => Promise<number | null>, line: string) {
    this.#end = end;
    this.line = JSON.parse(line) as StartLine;
    this.#agent = new Agent({ connect: { ca: readFileSync(this.line.ca, 'utf8') }, connections: 8 });
  }

  /** Starts in this process with these options, and resolves when it listens. */
  static async start(...args: string[]): Promise<Service> {
    const end = new AbortController();
    const options = optionsOf(['--json', ...withCertificates(args)]);
    const listening = Promise.withResolvers<string>();
    const ended = serve(options, end.signal, listening.resolve);
    ended.catch(listening.reject);
    const line = await listening.promise;
    return new Service(async () => {
      end.abort();
      await ended;
      return 0;
    }, line);
  }

  /** The same as a program, which can be killed. */
  static startProgram(...args: string[]): Promise<Service> {
    return Service.startAlone(...withCertificates(args));
  }

  /** A program without the shared certificates. */
  static async startAlone(...args: string[]): Promise<Service> {
    const child = spawn(process.execPath, [referenceProgram, '--json', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const line = await new Promise<string>((resolve, reject) => {
      let out = '';
      child.stdout.on('data', (part: Buffer) => {
        out += part.toString();
        if (out.endsWith('\n')) resolve(out);
      });
      child.once('exit', (code) => reject(new Error(`the service ended with ${code ?? 'a signal'} before it listened`)));
    });
    return new Service((signal) => {
      child.kill(signal);
      return ended;
    }, line);
  }

  /** Timeout of a response without data; shorter if a test expects it. */
  patienceMs = 10_000;

  /** Ends it; a program with the signal. @returns the exit code of a program, else 0 */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#ended ??= this.#end(signal);
    await this.#agent.destroy();
    return this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async get(url: string, headers: Record<string, string> = {}, method: 'GET' | 'POST' = 'GET'): Promise<Reply> {
    const {
      statusCode,
      headers: got,
      body,
    } = await request(url, { method, headers, dispatcher: this.#agent, bodyTimeout: this.patienceMs });
    return { status: statusCode, headers: got, text: await body.text() };
  }

  async form(fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Reply> {
    const {
      statusCode,
      headers: got,
      body,
    } = await request(`${this.line.authUrl}/${this.line.tenantId}/oauth2/v2.0/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString(),
      dispatcher: this.#agent,
      headersTimeout: this.patienceMs,
    });
    return { status: statusCode, headers: got, text: await body.text() };
  }

  client(role: string): StartLine['clients'][number] {
    const client = this.line.clients.find((each) => each.roles.includes(role));
    if (!client) throw new Error(`no client for ${role}`);
    return client;
  }

  clientForm(role: string): Record<string, string> {
    const { clientId, clientSecret } = this.client(role);
    const scope = `api://${this.line.scopeAddress}/.default`;
    return { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret, scope };
  }

  userForm(user: Pick<StartLine['users'][number], 'clientId' | 'username' | 'password'>): Record<string, string> {
    const scope = `api://${this.line.scopeAddress}/access_as_user`;
    return { grant_type: 'password', client_id: user.clientId, scope, username: user.username, password: user.password };
  }

  /** A token of the client for this role: the previous one, unless a fresh one is requested. */
  async token(role = 'Security Administrator', fresh = false): Promise<string> {
    const had = fresh ? undefined : this.#tokens.get(role);
    if (had !== undefined) return had;
    const reply = await this.form(this.clientForm(role));
    const { access_token: token } = JSON.parse(reply.text) as { access_token: string };
    this.#tokens.set(role, token);
    return token;
  }

  /** One request to the API; `path` with its query. */
  async api(path: string, role?: string): Promise<Reply> {
    const authorization = `Bearer ${await this.token(role)}`;
    return this.get(this.line.baseUrl + path, { authorization, 'ocp-apim-subscription-key': this.line.subscriptionKey });
  }

  /** The OpenAPI document of the service. */
  description(): Promise<Description> {
    this.#description ??= this.get(`${this.line.authUrl}/openapi.json`).then(({ text }) => new Description(text));
    return this.#description;
  }

  /** The client of this role. */
  async as(role: string): Promise<Caller> {
    return { userId: this.client(role).userId, token: await this.token(role) };
  }

  /** A user of the start line or of `GET /accounts`, signed in. */
  async signIn(account: { userId: string; username: string; password: string; clientId: string }): Promise<Caller> {
    const reply = await this.form(this.userForm(account));
    if (reply.status !== 200) throw new Error(reply.text);
    return { userId: account.userId, token: (JSON.parse(reply.text) as { access_token: string }).access_token };
  }

  /** One call to the API with all required headers; undefined header fields are omitted. */
  async call(
    caller: Caller,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string | undefined> = {},
  ): Promise<Told> {
    const all: Record<string, string | undefined> = {
      authorization: `Bearer ${caller.token}`,
      'ocp-apim-subscription-key': this.line.subscriptionKey,
      ...(method !== 'GET' && { 'x-api-caller-id': caller.userId }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    };
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<string, string>;
    const sent =
      body === undefined
        ? null
        : typeof body === 'string' || Buffer.isBuffer(body) || body instanceof Readable
          ? body
          : JSON.stringify(body);
    const reply = await request(this.line.baseUrl + path, { method, headers: given, body: sent, dispatcher: this.#agent });
    const result = { status: reply.statusCode, headers: reply.headers, json: (await reply.body.json()) as Record<string, unknown> };
    // Every response matches the description of the service.
    (await this.description()).check(method, path, result);
    return result;
  }

  async page(query = '', endpoint = 'full-payload', role?: string): Promise<Page> {
    const reply = await this.api(`/logs/${endpoint}?${query}`, role);
    if (reply.status !== 200) throw new Error(`${query}: ${reply.status} ${reply.text}`);
    return JSON.parse(reply.text) as Page;
  }

  async truth(): Promise<TruthRecord[]> {
    return (await this.truthLines()).map((line) => JSON.parse(line) as TruthRecord);
  }

  async truthLines(): Promise<string[]> {
    const { text } = await this.get(`${this.line.control}/truth`);
    return text.split('\n').slice(0, -1);
  }

  async control(method: 'GET' | 'PATCH' | 'POST', path: string, body?: string): Promise<{ status: number; json: Record<string, unknown> }> {
    // The other side may close an idle connection at the moment of its next use.
    const reply = await request(this.line.control + path, { method, body: body ?? null, reset: true });
    return { status: reply.statusCode, json: (await reply.body.json()) as Record<string, unknown> };
  }

  /** Advances the clock of a service started with `--clock manual`. */
  async advance(duration: string): Promise<void> {
    const { status, json } = await this.control('POST', `/clock?advance=${duration}`);
    if (status !== 200) throw new Error(JSON.stringify(json));
  }

  /** Sets switches; fails if they are refused. */
  async set(switches: Record<string, unknown>): Promise<void> {
    const { status, json } = await this.control('PATCH', '/switches', JSON.stringify(switches));
    if (status !== 200) throw new Error(JSON.stringify(json));
  }
}

/** Timestamps in the specification's format as strings that sort by time: all with nine digits after the decimal point. */
export function comparable(time: string): string {
  const [whole = '', fraction = ''] = time.replace(/Z$/, '').split('.');
  return `${whole}.${fraction.padEnd(9, '0')}`;
}

/**
 * The expected response of the endpoint to the query without paging, from the truth (oldest first):
 * the matching records in order.
 */
export function answerTo(truth: readonly TruthRecord[], query: Record<string, string>): TruthRecord[] {
  const { startTime, endTime, sort = '+logTimestamp', ...filters } = query;
  const found = truth.filter(
    (record) =>
      Object.entries(filters).every(([name, value]) => record[name] === value) &&
      (startTime === undefined || comparable(record.logTimestamp) >= comparable(startTime)) &&
      (endTime === undefined || comparable(record.logTimestamp) <= comparable(endTime)),
  );
  const field = sort.slice(1);
  const key = (record: TruthRecord): string => (field === 'logTimestamp' ? comparable(record.logTimestamp) : String(record[field]));
  found.sort((one, other) => Buffer.compare(Buffer.from(key(one)), Buffer.from(key(other))));
  return sort.startsWith('-') ? found.reverse() : found;
}

function withCertificates(args: readonly string[]): string[] {
  return args.includes('--tls-dir') ? [...args] : ['--tls-dir', inject('tlsDir'), ...args];
}
