/** Handles the requests of one listener: finds the route, checks the credential, and sends the response or the error. */
import type { IncomingMessage, RequestListener } from 'node:http';
import { codeOf, messageOf } from '../errors/errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Access } from './authorizer.ts';
import { json, send, type AdminResponse } from './response.ts';

export interface AdminRequest {
  readonly query: URLSearchParams;
  readonly contentType: string;
  /** @throws RequestError when the body is incomplete, too long or not JSON */
  readonly json: (maxBytes: number) => Promise<unknown>;
}

export interface Route {
  /** Without it, the route needs no credential. */
  readonly access?: Access;
  readonly respond: (request: AdminRequest) => AdminResponse | Promise<AdminResponse>;
}

/** By method and path, such as `GET /status`; a GET route serves HEAD too. */
export type Routes = ReadonlyMap<string, Route>;

/** Undefined: the request has the required access. */
export type Guard = (access: Access, request: IncomingMessage) => Promise<AdminResponse | undefined>;

export const unreadable = { error: 'cannot read this request' };

/** A request that the client has to correct. */
class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: 400 | 413;

  constructor(status: RequestError['status'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export function createHandler(routes: Routes, guard: Guard, log: Log): RequestListener {
  return (request, response) => {
    respond(request)
      .then((answer) => send(answer, response))
      .catch((thrown: unknown) => {
        response.destroy();
        // The client closed the connection before the end of a report.
        if ((thrown as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE') return;
        log.write('admin.request_failed', { error: thrown, url: request.url });
      });
  };

  /** Rejects an unknown route or a missing credential before the body arrives: its sender could otherwise hold the connection. */
  async function respond(request: IncomingMessage): Promise<AdminResponse> {
    const target = targetOf(request.url ?? '');
    if (!target) return json(unreadable, 400);
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const route = routes.get(`${method} ${target.path}`);
    if (!route) return unknownRoute(routes, target.path);
    try {
      const denied = route.access && (await guard(route.access, request));
      if (denied) return denied;
      const contentType = request.headers['content-type'] ?? '';
      return await route.respond({ query: target.query, contentType, json: (maxBytes) => readJson(request, maxBytes) });
    } catch (thrown) {
      return failure(thrown, target.path);
    }
  }

  /** Hides the text of an internal error from the client. */
  function failure(thrown: unknown, url: string): AdminResponse {
    const code = codeOf(thrown);
    if (code === 'usage') return json({ error: messageOf(thrown) }, 400);
    if (code === 'database_unreachable' || code === 'database_refused' || code === 'state_missing')
      return json({ error: messageOf(thrown), code }, 503);
    if (code === 'admin_busy') return json({ error: messageOf(thrown) }, 503, { 'retry-after': '1' });
    if (thrown instanceof RequestError) return json(unreadable, thrown.status);
    log.write('admin.request_failed', { error: thrown, url });
    return json({ error: 'internal error; see the log' }, 500);
  }
}

/** A known path with another method names the allowed ones (RFC 9110 section 15.5.6). */
function unknownRoute(routes: Routes, path: string): AdminResponse {
  const methods = [...routes.keys()].flatMap((key) => (key.endsWith(` ${path}`) ? [key.slice(0, -path.length - 1)] : []));
  if (methods.length === 0) return json({ error: 'not found' }, 404);
  const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  return json({ error: `method not allowed: use ${allow}` }, 405, { allow });
}

/** Scheme and host in the target of a request (absolute form, RFC 9112 section 3.2.2). */
const origin = /^https?:\/\/[^/?#]*/i;

function targetOf(url: string): { readonly path: string; readonly query: URLSearchParams } | undefined {
  const [, path = '', query = ''] = /^([^?#]*)\??([^#]*)/.exec(url.replace(origin, '')) ?? [];
  try {
    // RFC 9110 section 4.2.3: after a host, an empty path is "/".
    return { path: decodeURIComponent(path || '/'), query: new URLSearchParams(query) };
  } catch {
    // The path has a percent sign without two hex digits, or encodes bytes that are not UTF-8.
    return undefined;
  }
}

/** @throws RequestError */
async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of request as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > maxBytes) throw new RequestError(413, `the body has more than ${maxBytes} bytes`);
      parts.push(part);
    }
    return JSON.parse(Buffer.concat(parts).toString()) as unknown;
  } catch (thrown) {
    if (thrown instanceof RequestError) throw thrown;
    throw new RequestError(400, `cannot read the body: ${messageOf(thrown)}`, { cause: thrown });
  }
}
