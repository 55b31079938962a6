/** One POST whose response is limited in time and bytes. */
import type { Connection } from './connection.ts';

interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Of the response. */
  readonly maxBytes: number;
  /** Time limit until the end of the response. */
  readonly requestMs: number;
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
}

/** @throws an error with the reason when there is no complete response; the reason of the signal when it is aborted */
export async function post(connection: Connection, { url, headers, body, maxBytes, requestMs }: Post, signal: AbortSignal): Promise<Reply> {
  const limit = AbortSignal.timeout(requestMs);
  try {
    const answer = await connection.request(url, { method: 'POST', headers, body, signal: AbortSignal.any([signal, limit]) });
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw new Error(`the response has more than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return { status: answer.statusCode, type: String(answer.headers['content-type'] ?? 'no media type'), bytes: Buffer.concat(chunks) };
  } catch (thrown) {
    signal.throwIfAborted();
    if (limit.aborted) throw new Error(`no complete response within ${requestMs / 1_000} s`, { cause: thrown });
    throw thrown instanceof Error && 'code' in thrown ? connection.translate(thrown) : thrown;
  }
}
