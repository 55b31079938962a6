/**
 * A model of the part of Elasticsearch that the sink uses, over HTTP: data streams with backing
 * indices, in each of which an `_id` is unique; documents that a search sees only after a refresh;
 * items that fail one by one. Statuses, error types and messages come from 9.5.3 and 8.19.5.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import type { KeyPair } from './certificates.ts';

interface Doc {
  readonly id: string;
  text: string;
  isVisible: boolean;
}

interface Index {
  readonly name: string;
  readonly docs: Map<string, Doc>;
}

interface Target {
  readonly isStream: boolean;
  readonly indices: Index[];
}

interface ItemError {
  readonly status: number;
  readonly type: string;
  readonly reason: string;
}

interface Reply {
  readonly status: number;
  readonly body?: unknown;
  /** A body to send as it is. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const product = { 'x-elastic-product': 'Elasticsearch' };
const error = (status: number, type: string, reason: string): Reply => ({
  status,
  body: { error: { root_cause: [{ type, reason }], type, reason }, status },
});
const missingIndex = (name: string): Reply => error(404, 'index_not_found_exception', `no such index [${name}]`);
const noHandler = ({ method, url }: IncomingMessage): Reply => ({
  status: 400,
  body: { error: `no handler found for uri [${url ?? ''}] and method [${method ?? ''}]` },
});

export class ModelElasticsearch implements AsyncDisposable {
  readonly targets = new Map<string, Target>();
  /** Method and path of each request. */
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  port = 0;

  version = '9.5.3';
  /** True if a template matches, so that the first document creates the data stream. */
  hasTemplate = true;
  /** The required authorization; undefined: security is off. */
  authorization: string | undefined;
  /** The client's privileges. */
  rights = new Set(['create_doc', 'auto_configure', 'read', 'maintenance', 'view_index_metadata']);
  /** The largest request, bytes before compression; a larger one gets 413. */
  contentMost = 100 * 1024 * 1024;
  /** Rejects single documents; a stream with a failure store keeps them there. */
  refuse: (text: string, id: string) => ItemError | undefined = () => undefined;
  /** What an ingest pipeline does to a document, before it is stored: drops it, or gives it another `_id`. */
  pipeline: (text: string, id: string) => 'drop' | { readonly id: string } | undefined = () => undefined;
  /** The answer to a simulation of pipelines: by default that of a key without the privilege. */
  simulated: Reply = error(403, 'security_exception', 'action is unauthorized, this action is granted by [read_pipeline]');
  lifecycle: object = {};
  /** Names that stand for indices. */
  aliases: Readonly<Record<string, readonly string[]>> = {};
  hasFailureStore = false;
  readonly aside = new Map<string, ItemError>();
  /** A response to a whole request that replaces the normal one. */
  fault: (method: string, path: string, text: string) => Reply | undefined = () => undefined;
  /** Closes the connection after accepting the next batch. */
  cutsAnswer = false;
  /** Accepts requests and never responds. */
  isStalled = false;
  /** A shard that cannot be searched: searches return partial results. */
  hasDeafShard = false;
  settings: Readonly<Record<string, unknown>> = {};
  meta: object | undefined = { managed_by: 'waybill', version: 1 };
  /** The mapped properties of each index. */
  properties: object = {};
  /** True if the client may read the result of templates (`manage_index_templates`). */
  seesTemplates = true;
  readonly put = new Map<string, unknown>();
  builtIn: readonly string[] = ['logs@mappings', 'logs@settings', 'ecs@mappings'];

  constructor(tls?: KeyPair) {
    const taken = (request: IncomingMessage, response: ServerResponse): void => void this.#serve(request, response);
    this.#server = tls === undefined ? createServer(taken) : createSecureServer({ cert: tls.cert, key: tls.key }, taken);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('tlsClientError', () => undefined);
  }

  async listen(): Promise<this> {
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** The documents of a target in order of arrival, including duplicates. */
  texts(target: string): string[] {
    return (this.targets.get(target)?.indices ?? []).flatMap(({ docs }) => [...docs.values()].map(({ text }) => text));
  }

  /** Starts a new backing index: from now on every `_id` is new. */
  rollover(target: string): void {
    const indices = this.targets.get(target)?.indices;
    indices?.push(this.#index(target, indices.length + 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #index(target: string, number: number): Index {
    return { name: `.ds-${target}-2026.11.21-${String(number).padStart(6, '0')}`, docs: new Map() };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://model');
    const path = decodeURIComponent(pathname);
    this.asked.push(`${request.method ?? ''} ${path}`);
    if (this.isStalled) return;
    const bytes = Buffer.concat(chunks);
    const body = request.headers['content-encoding'] === 'gzip' && bytes.length > 0 ? gunzipSync(bytes) : bytes;
    const {
      status,
      body: content,
      headers,
      text: raw,
    } = this.fault(request.method ?? '', path, body.toString()) ?? this.#reply(request, path, searchParams, body);
    if (path === '/_bulk' && status === 200 && this.cutsAnswer) {
      this.cutsAnswer = false;
      response.writeHead(200, { ...product, 'content-type': 'application/vnd.elasticsearch+json;compatible-with=8' });
      response.write('{"items":[{"create":{"_id"');
      setImmediate(() => response.destroy());
      return;
    }
    const text = raw ?? (content === undefined ? '' : JSON.stringify(content));
    response.writeHead(status, { ...product, 'content-type': 'application/vnd.elasticsearch+json;compatible-with=8', ...headers });
    response.end(text);
  }

  #reply(request: IncomingMessage, path: string, query: URLSearchParams, body: Buffer): Reply {
    const type = request.headers['content-type'] ?? '';
    if (!(request.headers.accept ?? '').includes('compatible-with=8') || (body.length > 0 && !type.includes('compatible-with=8')))
      return error(400, 'media_type_header_exception', 'Invalid media-type value on headers [Accept, Content-Type]');
    if (body.length > this.contentMost) return { status: 413 };
    if (this.authorization !== undefined && request.headers.authorization !== this.authorization)
      return error(401, 'security_exception', 'unable to authenticate user for REST request');
    const { method = '' } = request;
    const [, first = '', second = ''] = path.split('/');
    if (path === '/_bulk') return this.#bulk(body.toString(), query);
    if (path === '/_security/_authenticate')
      return this.authorization === undefined
        ? noHandler(request)
        : { status: 200, body: { username: 'elastic', api_key: { name: 'siem' } } };
    if (path === '/_security/user/_has_privileges') return this.#privileges(JSON.parse(body.toString()) as never);
    if (path === '/_ingest/_simulate') return this.simulated;
    if (path === '/') return { status: 200, body: { version: { number: this.version, build_flavor: 'default' } } };
    if (method === 'PUT') {
      this.put.set(path, JSON.parse(body.toString()));
      return { status: 200, body: { acknowledged: true } };
    }
    if (first === '_component_template')
      return this.builtIn.includes(second) ? { status: 200, body: {} } : error(404, 'resource_not_found_exception', '');
    if (first === '_index_template' && !this.seesTemplates)
      return error(403, 'security_exception', 'action is unauthorized, this action is granted by [manage_index_templates]');
    if (first === '_index_template')
      return { status: 200, body: { template: this.hasTemplate && this.meta ? { mappings: { _meta: this.meta } } : {} } };
    if (first === '_data_stream') {
      const found = this.#matching(second);
      if (found.length === 0) return missingIndex(second);
      return {
        status: 200,
        body: { data_streams: found.map(([name]) => ({ name, failure_store: { enabled: this.hasFailureStore }, ...this.lifecycle })) },
      };
    }
    if (first === '_alias') {
      const named = this.aliases[second];
      if (named === undefined) return { status: 404, body: { error: `alias [${second}] missing`, status: 404 } };
      return { status: 200, body: Object.fromEntries(named.map((index) => [index, { aliases: { [second]: {} } }])) };
    }
    return this.#ofIndex(request, first, second, query, body);
  }

  #ofIndex(request: IncomingMessage, name: string, act: string, query: URLSearchParams, body: Buffer): Reply {
    const needs = { _refresh: 'maintenance', _search: 'read', _mapping: 'view_index_metadata', _settings: 'view_index_metadata' }[act];
    if (needs === undefined) return noHandler(request);
    if (!this.rights.has(needs)) return error(403, 'security_exception', `action is unauthorized, this action is granted by [${needs}]`);
    if (name.endsWith('::failures')) return act === '_search' ? this.#failures(body) : { status: 200, body: {} };
    const found = this.#matching(name);
    if (found.length === 0 && !name.includes('*')) return missingIndex(name);
    const indices = found.flatMap(([, { indices }]) => indices);
    if (act === '_mapping')
      return {
        status: 200,
        body: Object.fromEntries(indices.map((each) => [each.name, { mappings: { _meta: this.meta, properties: this.properties } }])),
      };
    if (act === '_settings')
      return {
        status: 200,
        body: Object.fromEntries(indices.map((each) => [each.name, { settings: { index: { uuid: 'x', ...this.settings } } }])),
      };
    if (act === '_search') return this.#search(indices, query, JSON.parse(body.toString()) as never);
    for (const { docs } of indices) for (const doc of docs.values()) doc.isVisible = true;
    return { status: 200, body: { _shards: { failed: 0 } } };
  }

  #matching(name: string): [string, Target][] {
    const pattern = new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
    return [...this.targets].filter(([each]) => pattern.test(each));
  }

  #bulk(text: string, query: URLSearchParams): Reply {
    const lines = text.split('\n');
    if (lines.pop() !== '') return error(400, 'illegal_argument_exception', 'The bulk request must be terminated by a newline [\\n]');
    const items: unknown[] = [];
    for (let i = 0; i < lines.length; i += 2) {
      const [op = '', { _index = '', _id = '' } = {}] =
        Object.entries(JSON.parse(lines[i] ?? '') as Record<string, { _index?: string; _id?: string }>)[0] ?? [];
      items.push({
        [op]: { _index, _id, ...this.#item(op, _index, _id, lines[i + 1] ?? '', query.get('require_data_stream') === 'true') },
      });
    }
    return { status: 200, body: { errors: false, took: 1, items } };
  }

  #item(op: string, name: string, id: string, text: string, isStream: boolean): object {
    const failed = ({ status, type, reason }: ItemError): object => ({ status, error: { type, reason } });
    const needs = this.targets.has(name) ? ['create_doc'] : ['create_doc', 'auto_configure'];
    if (!needs.every((right) => this.rights.has(right)))
      return failed({
        status: 403,
        type: 'security_exception',
        reason: 'action [indices:data/write/bulk[s]] is unauthorized for API key id [x]',
      });
    let target = this.targets.get(name);
    if (target === undefined) {
      if (isStream && !this.hasTemplate)
        return failed({
          ...{ status: 404, type: 'index_not_found_exception' },
          reason: `no such index [${name}] and the index creation request requires a data stream, but no matching index template with data stream template was found for it`,
        });
      target = { isStream, indices: [isStream ? this.#index(name, 1) : { name, docs: new Map() }] };
      this.targets.set(name, target);
    }
    if (target.isStream && op !== 'create')
      return failed({
        status: 400,
        type: 'illegal_argument_exception',
        reason: 'only write ops with an op_type of create are allowed in data streams',
      });
    const made = this.pipeline(text, id);
    if (made === 'drop') return { _id: id, _version: -4, result: 'noop', _seq_no: -2, status: 200 };
    const refused = this.refuse(text, id);
    if (made) return { _id: made.id, ...(refused ? failed(refused) : this.#create(target, op, made.id, text)) };
    if (refused && this.hasFailureStore) {
      const other = `aside-${this.aside.size}`;
      this.aside.set(other, refused);
      return { _id: other, status: 201, failure_store: 'used' };
    }
    return refused ? failed(refused) : this.#create(target, op, id, text);
  }

  #create(target: Target, op: string, id: string, text: string): object {
    const docs = target.indices.at(-1)?.docs ?? new Map<string, Doc>();
    const known = docs.get(id);
    if (known && op === 'create')
      return {
        status: 409,
        error: {
          type: 'version_conflict_engine_exception',
          reason: `[${id}]: version conflict, document already exists (current version [1])`,
        },
      };
    if (known) known.text = text;
    else docs.set(id, { id, text, isVisible: false });
    return { status: known ? 200 : 201 };
  }

  #search(
    indices: readonly Index[],
    query: URLSearchParams,
    { size, query: wanted, _source: source }: { size: number; query?: { ids?: { values: readonly string[] } }; _source?: unknown },
  ): Reply {
    if (this.hasDeafShard && query.get('allow_partial_search_results') === 'false')
      return error(503, 'search_phase_execution_exception', 'Partial shards failure');
    const asked = wanted?.ids && new Set(wanted.ids.values);
    const heard = this.hasDeafShard ? indices.slice(1) : indices;
    const found = heard.flatMap(({ docs }) => [...docs.values()].filter(({ id, isVisible }) => isVisible && (asked?.has(id) ?? true)));
    const timeOf = ({ text }: Doc): number => Date.parse((JSON.parse(text) as { '@timestamp': string })['@timestamp']);
    const hits = asked ? found : found.sort((a, b) => timeOf(b) - timeOf(a));
    return {
      status: 200,
      body: {
        timed_out: false,
        _shards: { failed: this.hasDeafShard ? 1 : 0 },
        hits: {
          total: { value: found.length },
          hits: hits.slice(0, size).map((doc) => ({
            _id: doc.id,
            ...(asked ? {} : { sort: [timeOf(doc)] }),
            ...(source !== false && { _source: JSON.parse(doc.text) as object }),
          })),
        },
      },
    };
  }

  #failures(body: Buffer): Reply {
    const { query } = JSON.parse(body.toString()) as { query: { ids: { values: readonly string[] } } };
    const hits = query.ids.values.flatMap((id) => this.aside.get(id) ?? []);
    return { status: 200, body: { hits: { hits: hits.map(({ type, reason }) => ({ _source: { error: { type, message: reason } } })) } } };
  }

  #privileges({ index }: { index: readonly { names: readonly string[]; privileges: readonly string[] }[] }): Reply {
    const [{ names, privileges } = { names: [], privileges: [] }] = index;
    const has = Object.fromEntries(privileges.map((name) => [name, this.rights.has(name)]));
    return { status: 200, body: { index: Object.fromEntries(names.map((name) => [name, has])) } };
  }
}
