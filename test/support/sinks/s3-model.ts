/**
 * A server of the S3 protocol for one bucket: versions, conditional writes, checksums, Object Lock, and
 * faults by request. Written from the API reference of Amazon S3, never from the client.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { pipeline, Readable } from 'node:stream';

interface Version {
  readonly bytes: Buffer;
  readonly lockedUntil: number | undefined;
}

/**
 * `lost`: executed, and the connection ends without a response. `dropped`: not executed, no response. `cut`: a
 * response that ends before its length. `late`: the response is an error, and the request is executed when `runLate`
 * is called. `stalled`: no response, and the connection stays open. `halted`: the beginning of a response, and
 * nothing after it. `endless`: a response without an end. `repeated`: a page of a list that continues with the same
 * token as every other page. `growing`: each page has one more object, and a token. `text`, `xhtml`, `tagged`, `blank`: a response of a proxy with status 200, as text, as
 * XML, with an ETag, or without a body, not executed. `unequal`: the ETag and checksum of other bytes, not executed.
 * `created`: status 201, as of a WebDAV server, not executed. `untokened`: an incomplete page of a list, and no token
 * to continue with. A number: a response with this status, not executed.
 */
type Fault =
  | ('lost' | 'dropped' | 'cut' | 'late' | 'stalled' | 'halted' | 'endless' | 'repeated' | 'emptied' | 'growing' | 'outside' | 'untokened')
  | ('text' | 'xhtml' | 'tagged' | 'blank' | 'created' | 'unequal' | 'proxy')
  | number;

/** Responses of a proxy, without the headers of S3. */
const foreignFaults: ReadonlySet<Fault | undefined> = new Set(['text', 'xhtml', 'tagged', 'blank', 'created', 'unequal', 'proxy'] as const);

interface Asked {
  readonly method: string;
  /** Without the bucket. */
  readonly key: string;
}

export class S3Model implements AsyncDisposable {
  /** The versions of each key, the newest last. */
  readonly versions = new Map<string, Version[]>();
  /** The fault of a request; undefined: none. */
  fault: (asked: Asked) => Fault | undefined = () => undefined;
  readonly asked: Asked[] = [];
  /** Bytes of endless responses. */
  sent = 0;
  isVersioned = true;
  hasLock = true;
  isConditional = true;
  checksChecksums = true;
  /** False: it accepts signatures of any time. */
  checksTime = true;
  /** ms by which its clock is ahead. */
  ahead = 0;
  /** False: its responses have no `x-amz-request-id`. */
  hasIds = true;
  /** The `Date` of the responses of a proxy. */
  foreignDate: string | undefined;
  /** False: objects were put into the server's storage without its help, so it knows no ETag of them. */
  hasTags = true;
  /** The ETag of each object, if it is not its MD5: objects that were uploaded in parts have another one. */
  tag: string | undefined;
  /** A token in the last page of a list, too. */
  lastToken: string | undefined;
  defaultDays: number | undefined;
  denied: readonly string[] = [];
  mayDelete = false;
  readonly #server: Server;
  readonly #late: (() => void)[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<S3Model> {
    const server = createServer();
    const model = new S3Model(server);
    server.on('request', (request, response) => void model.#serve(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return model;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The newest bytes of each key below a prefix. */
  files(prefix: string): Map<string, Buffer> {
    return new Map(
      [...this.versions].flatMap(([key, versions]) =>
        key.startsWith(prefix) ? [[key.slice(prefix.length), versions.at(-1)?.bytes ?? Buffer.alloc(0)] as const] : [],
      ),
    );
  }

  runLate(): void {
    for (const work of this.#late.splice(0)) work();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://model');
    const [, bucket, ...rest] = decodeURIComponent(pathname).split('/');
    const asked = { method: request.method ?? '', key: rest.join('/') };
    this.asked.push(asked);
    const fault = this.fault(asked);
    if (fault === 'dropped') return void request.socket.destroy();
    if (fault === 'stalled') return;
    if (fault === 'halted') return void response.writeHead(200).write('x');
    if (fault === 'endless') {
      this.#sendForever(response);
      return;
    }
    const run = (): Answer => {
      if (fault === 'repeated') return endlessPage('again');
      if (fault === 'emptied') return endlessPage(String(this.asked.length));
      if (fault === 'growing') return endlessPage(String(this.asked.length), `${searchParams.get('prefix') ?? ''}${this.asked.length}`);
      if (fault === 'outside')
        return xml('<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>../../elsewhere</Key></Contents></ListBucketResult>');
      if (fault === 'untokened') return xml('<ListBucketResult><IsTruncated>true</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>');
      if (fault === 'text') return { status: 200, body: 'It works!' };
      if (fault === 'xhtml') return xml('<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Back soon</p></body></html>');
      if (fault === 'tagged') return { status: 200, headers: { etag: '"2aa6-5d"' }, body: 'It works!' };
      if (fault === 'blank') return { status: 200 };
      if (fault === 'created') return { status: 201, headers: { etag: '"2aa6-5d"' } };
      if (fault === 'unequal') return { status: 200, headers: proofOf(Buffer.from('other bytes')) };
      if (fault === 'proxy') return { status: 503, body: '<html><body>503 Service Unavailable<br></body></html>' };
      return this.#answer(request, { ...asked, bucket: bucket ?? '' }, searchParams, Buffer.concat(chunks));
    };
    if (fault === 'late') this.#late.push(run);
    const answer =
      fault === 'late' ? refusal(500, 'InternalError') : typeof fault === 'number' ? refusal(fault, namesOf[fault] ?? 'Refused') : run();
    if (fault === 'lost') return void request.socket.destroy();
    const body = Buffer.from(answer.body ?? '');
    const isForeign = foreignFaults.has(fault);
    response.writeHead(answer.status, {
      'content-length': body.length,
      date: (isForeign && this.foreignDate) || new Date(Date.now() + this.ahead).toUTCString(),
      ...(!isForeign && this.hasIds && { 'x-amz-request-id': String(this.asked.length) }),
      ...answer.headers,
    });
    if (fault === 'cut') {
      response.write(body.subarray(0, body.length >> 1));
      setImmediate(() => request.socket.destroy());
    } else response.end(body);
  }

  #sendForever(response: ServerResponse): void {
    const chunk = Buffer.alloc(1_048_576, 'x');
    const send = function* (this: S3Model): Generator<Buffer> {
      for (;;) {
        this.sent += chunk.length;
        yield chunk;
      }
    };
    // The client closes the connection.
    pipeline(Readable.from(send.call(this)), response, () => undefined);
  }

  #answer(request: IncomingMessage, { method, key, bucket }: Asked & { bucket: string }, query: URLSearchParams, bytes: Buffer): Answer {
    const { headers } = request;
    if (headers.authorization?.includes('Credential=model-key/') !== true) return refusal(403, 'InvalidAccessKeyId');
    if (bucket !== 'audit') return refusal(404, 'NoSuchBucket');
    const skew = Math.abs(signedAt(headers['x-amz-date']) - Date.now() - this.ahead);
    if (this.checksTime && skew > 900_000) return refusal(403, 'RequestTimeTooSkewed');
    const right = method === 'GET' && key === '' ? [...query.keys()][0] : `${method} ${key}`;
    if (this.denied.some((each) => right?.startsWith(each))) return refusal(403, 'AccessDenied');
    if (method === 'PUT') return this.#put(key, headers, bytes);
    if (method === 'DELETE') return this.mayDelete ? { status: 204 } : refusal(403, 'AccessDenied');
    if (key !== '') {
      const found = this.versions.get(key)?.at(-1);
      if (!found) return refusal(404, 'NoSuchKey');
      return { status: 200, headers: this.hasTags ? { etag: this.tag ?? etagOf(found.bytes) } : {}, body: found.bytes };
    }
    if (query.has('versioning'))
      return xml(`<VersioningConfiguration>${this.isVersioned ? '<Status>Enabled</Status>' : ''}</VersioningConfiguration>`);
    if (query.has('object-lock')) return this.#lockConfiguration();
    return this.#list(query.get('prefix') ?? '', query.get('continuation-token') ?? '');
  }

  #put(key: string, headers: IncomingMessage['headers'], bytes: Buffer): Answer {
    const stored = this.versions.get(key) ?? [];
    if (this.isConditional && headers['if-none-match'] === '*' && stored.length > 0) return refusal(412, 'PreconditionFailed');
    const proof = proofOf(bytes);
    const isWrong = headers['x-amz-checksum-sha256'] !== proof['x-amz-checksum-sha256'];
    if (this.checksChecksums && isWrong) return refusal(400, 'BadDigest');
    const until = headers['x-amz-object-lock-retain-until-date'];
    if (until !== undefined && !this.hasLock) return refusal(400, 'InvalidRequest');
    const lockedUntil = until === undefined ? undefined : Date.parse(String(until));
    if (lockedUntil !== undefined && lockedUntil <= Date.now() + this.ahead) return refusal(400, 'InvalidArgument');
    this.versions.set(key, [...stored, { bytes, lockedUntil }]);
    return { status: 200, headers: proof };
  }

  #lockConfiguration(): Answer {
    if (!this.hasLock) return refusal(404, 'ObjectLockConfigurationNotFoundError');
    const rule = `<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>${this.defaultDays ?? 0}</Days></DefaultRetention></Rule>`;
    return xml(
      `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>${this.defaultDays === undefined ? '' : rule}</ObjectLockConfiguration>`,
    );
  }

  /** Three keys a page. */
  #list(prefix: string, after: string): Answer {
    const keys = [...this.versions.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    const page = keys.slice(0, 3);
    const isTruncated = keys.length > page.length;
    const token = isTruncated ? (page.at(-1) ?? '') : this.lastToken;
    const next = token === undefined ? '' : `<NextContinuationToken>${token}</NextContinuationToken>`;
    const contents = page.map((key) => `<Contents><Key>${key}</Key></Contents>`).join('');
    const count = `<KeyCount>${page.length}</KeyCount>`;
    return xml(
      `<ListBucketResult><Name>audit</Name>${count}<IsTruncated>${isTruncated}</IsTruncated>${next}${contents}</ListBucketResult>`,
    );
  }
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

const namesOf: Readonly<Record<number, string>> = {
  403: 'AccessDenied',
  409: 'ConditionalRequestConflict',
  500: 'InternalError',
  501: 'NotImplemented',
  503: 'SlowDown',
};

function etagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}

/** The headers of a response to a write. */
function proofOf(bytes: Buffer) {
  return { etag: etagOf(bytes), 'x-amz-checksum-sha256': createHash('sha256').update(bytes).digest('base64') };
}

function xml(body: string, status = 200): Answer {
  return { status, headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0" encoding="UTF-8"?>\n${body}` };
}

function refusal(status: number, code: string): Answer {
  return xml(`<Error><Code>${code}</Code><Message>the model refuses this</Message><RequestId>1</RequestId></Error>`, status);
}

function endlessPage(token: string, key?: string): Answer {
  const next = `<IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>`;
  return xml(`<ListBucketResult>${next}${key === undefined ? '' : `<Contents><Key>${key}</Key></Contents>`}</ListBucketResult>`);
}

/** `20261123T101500Z` */
function signedAt(given: string | string[] | undefined): number {
  return Date.parse(String(given).replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'));
}
