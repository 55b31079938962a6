/**
 * A model of the Kibana APIs that `waybill setup kibana` calls, written after Kibana's API reference: import of saved objects and of
 * detection rules, reading a rule by `rule_id`, and the bulk action `enable`. It keeps what it was sent, space by space.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Body = Readonly<Record<string, unknown>>;
type Line = Readonly<Record<string, unknown>>;

interface ImportRequest {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly file: string;
  readonly lines: readonly Line[];
}

/** A detection rule as Kibana stores it, with its id. */
interface StoredRule extends Line {
  readonly id: string;
  readonly rule_id: string;
  readonly enabled: boolean;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export class KibanaModel implements AsyncDisposable {
  readonly imports: ImportRequest[] = [];
  /** `POST /s/soc/api/…`, in the order of arrival. */
  readonly requests: string[] = [];
  /** Responses to the next requests, which then change nothing. */
  readonly answers: Answer[] = [];
  /** Responds to a request instead of the model; false: the model responds. */
  fault: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Existing spaces, by the prefix of their paths, with the rules in each. */
  readonly spaces = new Map<string, StoredRule[]>([['', []]]);
  /** The only accepted header; undefined: any. */
  authorization: string | undefined;
  /** The exception lists of each space. */
  readonly #lists = new Map<string, Set<unknown>>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => void this.#respond(request, response, Buffer.concat(chunks)));
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stores a rule as an earlier import does, or changes it as an operator does. */
  store(rule: Line & { readonly rule_id: string }, prefix = ''): void {
    const rules = this.#rulesOf(prefix);
    const at = rules.findIndex(({ rule_id }) => rule_id === rule.rule_id);
    const stored = { id: crypto.randomUUID(), enabled: false, ...rules[at], ...rule };
    if (at < 0) rules.push(stored);
    else rules[at] = stored;
  }

  rule(ruleId: string, prefix = ''): StoredRule | undefined {
    return this.#rulesOf(prefix).find(({ rule_id }) => rule_id === ruleId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #rulesOf(prefix: string): StoredRule[] {
    const rules = this.spaces.get(prefix);
    if (!rules) throw new Error(`the model has no space "${prefix}"`);
    return rules;
  }

  async #respond(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    this.requests.push(`${request.method ?? ''} ${request.url ?? ''}`);
    const isImport = request.url?.includes('/_import') === true;
    if (isImport) this.imports.push({ url: request.url ?? '', headers: request.headers, ...(await fileIn(request, body)) });
    if (this.fault?.(request, response) === true) return;
    const { status, body: answer, headers = {} } = this.answers.shift() ?? this.#answerTo(request, body);
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  }

  #answerTo({ method, url = '', headers }: IncomingMessage, body: Buffer): Answer {
    if (this.authorization !== undefined && headers.authorization !== this.authorization) return refusal(401, 'Unauthorized');
    const [, prefix = '', path = '', search = ''] = /^(\/s\/[^/]+)?(\/api\/[^?]+)(\?.*)?$/.exec(url) ?? [];
    const rules = this.spaces.get(prefix);
    if (!rules) return refusal(404, `Saved object [space/${prefix.slice(3)}] not found`);
    if (method === 'POST' && headers['kbn-xsrf'] === undefined) return refusal(400, 'Request must contain a kbn-xsrf header.');
    const lines = this.imports.at(-1)?.lines ?? [];
    if (method === 'POST' && path === '/api/saved_objects/_import')
      return { status: 200, body: { success: true, successCount: lines.length } };
    if (method === 'POST' && path === '/api/detection_engine/rules/_import') return { status: 200, body: this.#importRules(lines, prefix) };
    if (method === 'POST' && path === '/api/exception_lists/_import') return { status: 200, body: this.#importLists(lines, prefix) };
    if (method === 'GET' && path === '/api/detection_engine/rules') {
      const ruleId = new URLSearchParams(search).get('rule_id') ?? '';
      const rule = this.rule(ruleId, prefix);
      return rule ? { status: 200, body: rule } : refusal(404, `rule_id: "${ruleId}" not found`);
    }
    if (method === 'POST' && path === '/api/detection_engine/rules/_bulk_action') return this.#bulkAction(JSON.parse(body.toString()) as Body, rules); // prettier-ignore
    return refusal(404, 'Not Found');
  }

  /** An existing list stays unchanged: `overwrite` is off. */
  #importLists(lines: readonly Line[], prefix: string): Body {
    const known = this.#lists.get(prefix) ?? new Set();
    this.#lists.set(prefix, known);
    const errors = lines
      .filter(({ list_id }) => known.has(list_id))
      .map(({ list_id }) => ({
        list_id,
        error: { status_code: 409, message: `Found that list_id: "${String(list_id)}" already exists.` },
      }));
    for (const { list_id } of lines) known.add(list_id);
    return { success: errors.length === 0, success_count: lines.length - errors.length, errors };
  }

  /** An existing rule stays unchanged: `overwrite` is off. */
  #importRules(lines: readonly Line[], prefix: string): Body {
    const given = lines.map((line) => line as Line & { readonly rule_id: string });
    const errors = given
      .filter(({ rule_id }) => this.rule(rule_id, prefix))
      .map(({ rule_id }) => ({ rule_id, error: { status_code: 409, message: `rule_id: "${rule_id}" already exists` } }));
    for (const rule of given) if (!this.rule(rule.rule_id, prefix)) this.store(rule, prefix);
    return { success: errors.length === 0, success_count: lines.length - errors.length, rules_count: lines.length, errors };
  }

  #bulkAction({ action, ids, ...others }: Body, rules: StoredRule[]): Answer {
    if (action !== 'enable' || !Array.isArray(ids) || Object.keys(others).length > 0) return refusal(400, '[request body]: invalid');
    const results = { updated: [] as StoredRule[], created: [], deleted: [], skipped: [] };
    for (const [at, rule] of rules.entries())
      if (ids.includes(rule.id)) {
        rules[at] = { ...rule, enabled: true };
        results.updated.push(rules[at]);
      }
    const succeeded = results.updated.length;
    const summary = { failed: ids.length - succeeded, skipped: 0, succeeded, total: ids.length };
    return { status: 200, body: { success: true, rules_count: ids.length, attributes: { results, summary } } };
  }
}

function refusal(status: number, message: string): Answer {
  return { status, body: { statusCode: status, message } };
}

/** Parses the multipart form with the parser of Node, which is independent of the program. The form is small enough for it. */
async function fileIn({ headers }: IncomingMessage, body: Buffer): Promise<Pick<ImportRequest, 'file' | 'lines'>> {
  const parser = new Response(new Uint8Array(body), { headers: { 'content-type': headers['content-type'] ?? '' } });
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const file = (await parser.formData()).get('file') as File;
  const lines = (await file.text()).trimEnd().split('\n').map((line) => JSON.parse(line) as Line); // prettier-ignore
  return { file: file.name, lines };
}
