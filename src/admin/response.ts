/** Creates and sends the responses of the admin server. */
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface AdminResponse {
  readonly status: number;
  /** Override the headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | Readable;
}

const securityHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export function ok(type: string, body: AdminResponse['body'], headers: AdminResponse['headers'] = {}): AdminResponse {
  return { status: 200, headers: { 'content-type': type, ...headers }, body };
}

export function json(value: unknown, status = 200, headers: AdminResponse['headers'] = {}): AdminResponse {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body: JSON.stringify(value) };
}

/** Node omits the body for HEAD. */
export async function send({ status, headers, body }: AdminResponse, response: ServerResponse): Promise<void> {
  const all = { ...securityHeaders, ...headers };
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    response.writeHead(status, { ...all, 'content-length': Buffer.byteLength(body) }).end(body);
  } else {
    response.writeHead(status, all);
    await pipeline(body, response);
  }
}
