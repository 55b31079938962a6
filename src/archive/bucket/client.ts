/**
 * The S3 client of an archive. Its requests use the connection of all sinks, with their trust, proxy and
 * certificate metric, and each response is read to its end within one time limit.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { Connection } from '../../connect/connection.ts';
import type { ProxySettings } from '../../connect/proxy.ts';
import type { Pem, Secret, Shown, TlsSettings } from '../../connect/trust.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';

export interface BucketTarget {
  readonly bucket: string;
  /** Empty, or ends with `/`. */
  readonly prefix: string;
  readonly region: string;
  readonly endpoint: string;
  readonly pathStyle: boolean;
  /** Undefined: the default credentials of the AWS SDK. */
  readonly credentials:
    { readonly accessKeyId: Secret; readonly secretAccessKey: Secret; readonly sessionToken?: Secret | undefined } | undefined;
  readonly retention: Retention | undefined;
  readonly tls: TlsSettings | undefined;
  readonly proxy: ProxySettings | undefined;
}

/** Object Lock of everything that an archive creates and never replaces. */
interface Retention {
  readonly mode: 'COMPLIANCE' | 'GOVERNANCE';
  readonly ms: number;
}

export interface BucketContext {
  /** The setting of the bucket: `sinks.archive.s3`. */
  readonly setting: string;
  readonly clock: Clock;
  readonly ca?: Pem | undefined;
  readonly shown?: Shown | undefined;
  /** Time limit of one request, ms. */
  readonly requestMs?: number;
  /** Ends requests, and the pauses between them: the caller then throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

const requestMs = 20_000;
/** The tiles and bundles of a segment are stored at the same time. */
const connections = 16;
/** The SDK calls the provider again when credentials end within five minutes, so a replaced secret applies to the next request. */
const credentialsMs = 60_000;

/** A page of a list has 1,000 keys of at most 1,024 bytes, and XML may need six times as many. */
const maxAnswerBytes = 16_000_000;

/** A response is longer than the limit of its request. */
export class LongAnswerError extends WaybillError {
  constructor(bytes: number) {
    super('sink_blocked', `the response has more than ${bytes} bytes`);
  }
}

/** A success that lacks what S3 sends with it. A proxy before the server sends such pages. */
export class ForeignAnswerError extends Error {
  readonly status: number;

  constructor(reason: string, status = 200) {
    super(reason);
    this.status = status;
  }
}

/** S3 has one of the first two in each response, Google Cloud Storage the last one. Some servers have none, such as Cloudflare R2. */
const requestIds = ['x-amz-request-id', 'x-amz-id-2', 'x-guploader-uploadid'] as const;

interface SendOptions {
  /** Of the response; default `maxAnswerBytes`. */
  readonly maxBytes?: number;
  /** The root element of a successful response. */
  readonly root?: string;
  /** A successful PUT has an ETag; default true. */
  readonly hasTag?: boolean;
  readonly abortSignal?: AbortSignal;
}

/** The options of a command whose response has at most this number of bytes. */
export function answeredWithin(maxBytes: number): SendOptions {
  return { maxBytes };
}

/** The options of a command whose response has this root element. Without the check, a page of a proxy reads as an empty response. */
export function answeredBy(root: string): SendOptions {
  return { root };
}

/** The options of a PUT that stores no object. */
export const answeredWithoutTag: SendOptions = { hasTag: false };

type Handler = Extract<NonNullable<S3ClientConfig['requestHandler']>, { readonly handle: unknown }>;
/** A signed request of the SDK. */
interface Sent {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  /** Escaped. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
  readonly body?: Uint8Array | string;
}

export class BucketClient implements AsyncDisposable {
  readonly connection: Connection;
  readonly s3: S3Client;
  readonly #clock: Clock;
  readonly #requestMs: number;
  readonly #signal: AbortSignal | undefined;
  /** How far the clock of the server is ahead of the local one, ms. */
  #ahead = 0;

  constructor(target: BucketTarget, context: BucketContext) {
    this.#clock = context.clock;
    this.#requestMs = context.requestMs ?? requestMs;
    this.#signal = context.signal;
    this.connection = new Connection({
      setting: context.setting,
      url: target.endpoint,
      urlSetting: `${context.setting}.endpoint`,
      tls: target.tls,
      sharedCa: context.ca,
      proxy: target.proxy,
      shown: context.shown,
      connections,
      timeoutMs: this.#requestMs,
    });
    this.s3 = new S3Client({
      region: target.region,
      endpoint: target.endpoint,
      forcePathStyle: target.pathStyle,
      maxAttempts: 1,
      // Each object is sent with its SHA-256, and the archive checks what it reads.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      expectContinueHeader: false,
      requestHandler: {
        handle: (request: Sent, options?: SendOptions) => this.#handle(request, options),
        metadata: { handlerProtocol: 'http/1.1' },
      } as Handler,
      ...(target.credentials && { credentials: () => Promise.resolve(this.#credentials(target.credentials)) }),
    });
  }

  /** The time of the server, so that a wrong local clock does not shorten the retention. */
  now(): number {
    return this.#clock.now() + this.#ahead;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection[Symbol.asyncDispose]();
  }

  #credentials(secrets: BucketTarget['credentials']) {
    return {
      accessKeyId: secrets?.accessKeyId.read() ?? '',
      secretAccessKey: secrets?.secretAccessKey.read() ?? '',
      ...(secrets?.sessionToken && { sessionToken: secrets.sessionToken.read() }),
      expiration: new Date(this.#clock.now() + credentialsMs),
    };
  }

  async #handle(
    { protocol, hostname, port, path, query, headers, method, body }: Sent,
    { maxBytes = maxAnswerBytes, root, hasTag = true }: SendOptions = {},
  ) {
    const timeout = AbortSignal.timeout(this.#requestMs);
    const origin = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
    const answer = await this.connection.dispatcher.request({
      origin,
      path: `${path}${queryText(query)}`,
      method: method,
      headers,
      body: body ?? null,
      signal: this.#signal ? AbortSignal.any([timeout, this.#signal]) : timeout,
    });
    const bytes = await bytesOf(answer.body, maxBytes);
    const tag = answer.statusCode === 200 ? answer.headers['etag'] : undefined;
    // A page of a proxy has the time of the proxy, and may have an ETag.
    const isOfServer =
      requestIds.some((name) => answer.headers[name] !== undefined) ||
      (tag !== undefined && isTagOf(String(tag), method === 'PUT' ? (body ?? '') : bytes));
    if (method === 'GET' && answer.statusCode < 300 && answer.statusCode !== 200)
      throw new ForeignAnswerError('it has another status than 200', answer.statusCode);
    if (method === 'PUT' && hasTag && answer.statusCode < 300 && !(tag !== undefined && bytes.length === 0))
      throw new ForeignAnswerError('it has no ETag, or a body', answer.statusCode);
    if (method === 'GET' && tag !== undefined && !isOfServer)
      throw new ForeignAnswerError('it has no request id, and its ETag is not of its body');
    if (method === 'DELETE' && answer.statusCode === 200) throw new ForeignAnswerError('it has another status than 204');
    if (root !== undefined && answer.statusCode === 200 && !bytes.includes(`<${root}`)) throw new ForeignAnswerError(`it has no ${root}`);
    const date = Date.parse(String(answer.headers['date']));
    if (isOfServer && !Number.isNaN(date)) this.#ahead = date - this.#clock.now();
    return { response: { statusCode: answer.statusCode, headers: flat(answer.headers), body: Readable.from([bytes]) } };
  }
}

/** @throws LongAnswerError; the connection is closed, and the rest is not read */
async function bytesOf(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw new LongAnswerError(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The ETag of an object is its MD5, or of an upload in parts 32 digits, `-` and their number. */
function isTagOf(tag: string, bytes: Uint8Array | string): boolean {
  const [, digest, parts] = /^(?:w\/)?"?([0-9a-f]{32})(-\d+)?"?$/.exec(tag.toLowerCase()) ?? [];
  return parts !== undefined || digest === createHash('md5').update(bytes).digest('hex');
}

function queryText(query: Sent['query'] = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value ?? ''].flat().map((each) => `${escaped(name)}=${escaped(each)}`));
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** RFC 3986, section 2.3: the signature covers the query in this form. */
function escaped(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]));
}
