/** One request and its complete response in memory, with limits on time, received and decompressed bytes. Redirects are not followed. */
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { WaybillError, messageOf } from '../errors/errors.ts';
import type { Clock } from '../model/time.ts';
import type { Connection } from '../connect/connection.ts';
import { quote } from '../errors/quote.ts';
import type { Header } from './headers.ts';

interface Question {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Maximum bytes of a response with status 200, before and after decompression. */
  readonly bytesMax: number;
  /** Maximum time until the last byte, ms. */
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, Header>>;
  /** Complete when `status` is 200; otherwise up to the first 64 KiB. */
  readonly body: Uint8Array;
}

/** A response with status 200 whose body is truncated, too large or wrongly encoded. */
export class BrokenAnswer extends Error {}

/** The abort reason of a finished timer. Shared, because each new error would record a stack. */
const ended = new WaybillError('aborted', 'the exchange is over');

/** @throws WaybillError of the connection; `source_unreachable` after the timeout; BrokenAnswer; or the signal's reason */
export async function exchange(connection: Connection, question: Question, clock: Clock, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  const over = new AbortController();
  const finished = new AbortController();
  const timer = clock.sleep(question.timeoutMs, finished.signal).then(
    () => over.abort(),
    () => undefined, // the exchange was finished first
  );
  let stage = 'no answer';
  try {
    const head = await connection.request(question.url, {
      method: question.method,
      headers: { ...question.headers, 'accept-encoding': 'gzip' },
      body: question.body ?? null,
      signal: AbortSignal.any([signal, over.signal]),
    });
    stage = 'no complete response';
    const body =
      head.statusCode === 200
        ? await readWhole(head.body, head.headers['content-encoding'], question.bytesMax)
        : await readBegin(head.body, head.headers['content-encoding']);
    // The signal or the timeout ended the exchange early, so this is no response.
    if (signal.aborted || over.signal.aborted) throw new Error(stage);
    return { status: head.statusCode, headers: head.headers, body };
  } catch (thrown) {
    signal.throwIfAborted();
    if (over.signal.aborted) throw connection.unreachable(`${stage} within ${question.timeoutMs} ms`);
    throw thrown instanceof BrokenAnswer ? thrown : connection.translate(thrown);
  } finally {
    finished.abort(ended);
    await timer;
  }
}

/** The kept part of a response other than 200: enough for its error text. */
const maxQuotedLength = 64 * 1024;

async function readWhole(body: AsyncIterable<Buffer>, encoding: Header, max: number): Promise<Uint8Array> {
  const read = new Chunks(max);
  try {
    await decoded(body, encoding, max, read);
  } catch (thrown) {
    if (thrown instanceof BrokenAnswer) throw thrown;
    throw new BrokenAnswer(`the response is truncated after ${read.size} bytes: ${messageOf(thrown)}`, { cause: thrown });
  }
  return read.bytes();
}

async function readBegin(body: AsyncIterable<Buffer>, encoding: Header): Promise<Uint8Array> {
  const read = new Chunks(maxQuotedLength);
  try {
    await decoded(body, encoding, maxQuotedLength, read);
  } catch {
    // The status alone decides what to do; an unreadable error text is cut off.
  }
  return read.bytes();
}

async function decoded(body: AsyncIterable<Buffer>, encoding: Header, max: number, read: Chunks): Promise<void> {
  const names = [encoding ?? []].flat().flatMap((list) => list.toLowerCase().split(/\s*,\s*/));
  // Quoted as received: a secret in base64 is not recognized in lower case.
  if (names.some((name) => foreign.has(name.trim())))
    throw new BrokenAnswer(`the response is encoded as "${quote(String(encoding), 60)}", not gzip`);
  // Text as it is, whatever else the header says: `UTF-8` and `none` are no codings (RFC 9110 section 8.4.1).
  if (!names.some((name) => /^(x-)?gzip$/.test(name.trim()))) return read.take(body);
  const received = new Chunks(max, false);
  return pipeline(
    body,
    (chunks: AsyncIterable<Buffer>) => received.pass(chunks),
    createGunzip(),
    (chunks: AsyncIterable<Buffer>) => read.take(chunks),
  );
}

/** Codings that were not requested. */
const foreign = new Set(['br', 'compress', 'dcb', 'dcz', 'deflate', 'x-compress', 'zstd']);

/** Counts the received bytes, and keeps them if requested. */
class Chunks {
  readonly #max: number;
  readonly #keep: boolean;
  readonly #chunks: Buffer[] = [];
  size = 0;

  constructor(max: number, keep = true) {
    this.#max = max;
    this.#keep = keep;
  }

  async take(chunks: AsyncIterable<Buffer>): Promise<void> {
    for await (const chunk of chunks) this.#add(chunk);
  }

  async *pass(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.#add(chunk);
      yield chunk;
    }
  }

  bytes(): Uint8Array {
    return this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks);
  }

  #add(chunk: Buffer): void {
    this.size += chunk.length;
    if (this.size > this.#max) throw new BrokenAnswer(`the response is larger than ${this.#max} bytes`);
    if (this.#keep) this.#chunks.push(chunk);
  }
}
