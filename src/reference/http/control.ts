/**
 * The control port: plain HTTP on loopback. Through it tests read the stored records, change the
 * switches and add records. It is not part of the specification, and needs no credentials.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ServiceClock } from '../clock.ts';
import { createServer } from './node-http.ts';
import { BadLine, type Feed } from '../logs/feed.ts';
import type { Logs } from '../logs/logs.ts';
import { Problem } from './problem.ts';
import type { IdentityProvider } from '../people/identity-provider.ts';
import type { Organization } from '../people/organization.ts';
import type { Users } from '../people/users.ts';
import type { Stats } from './stats.ts';
import type { Switches } from '../switches.ts';
import { BadValue, durationOf } from '../values.ts';

interface ControlParts {
  readonly clock: ServiceClock;
  readonly organization: Organization;
  readonly users: Users;
  readonly provider: IdentityProvider;
  readonly switches: Switches;
  readonly logs: Logs;
  readonly feed: Feed;
  readonly stats: Stats;
}

const bodyBytesMax = 256 * 1024 * 1024;
const advanceMaxMs = 86_400_000;

export class ControlServer {
  readonly #parts: ControlParts;
  readonly #server: Server;
  #port = 0;

  constructor(parts: ControlParts) {
    this.#parts = parts;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Listens on the port, 0 for any free one, and resolves with the port. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', () => {
        this.#port = (this.#server.address() as AddressInfo).port;
        resolve(this.#port);
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      checkBrowser(request, this.#port);
      const url = URL.parse(`http://control${request.url ?? ''}`);
      if (!url) throw new Problem(400, 'The URL is invalid');
      await this.#answer(`${request.method ?? ''} ${url.pathname}`, url.searchParams, request, response);
    } catch (error) {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const problem =
        error instanceof Problem
          ? error
          : new Problem(isGivenWrong(error) ? 400 : 500, error instanceof Error ? error.message : String(error));
      response.writeHead(problem.status, { 'content-type': 'application/problem+json' }).end(problem.body());
    }
  }

  async #answer(endpoint: string, query: URLSearchParams, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, switches, provider, logs, feed, stats, users, organization } = this.#parts;
    switch (endpoint) {
      case 'GET /truth':
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        return pipeline(Readable.from(linesOf(logs.truth())), response);
      case 'GET /stats': {
        sendJson(response, { ...stats.show(), logAnswers: logs.answers, records: logs.counts() });
        return;
      }
      case 'GET /accounts': {
        // The public client application through which people sign in.
        sendJson(
          response,
          users.accounts().map((account) => ({ ...account, clientId: organization.publicClientId })),
        );
        return;
      }
      case 'GET /switches': {
        sendJson(response, switches.show());
        return;
      }
      case 'PATCH /switches':
        switches.set(objectOf(await textOf(request)));
        provider.keepCounts();
        sendJson(response, switches.show());
        return;
      case 'POST /records': {
        const visibleIn = query.get('visibleIn') ?? '0';
        if (!/^\d{1,12}$/.test(visibleIn)) throw new BadValue(`visibleIn: "${visibleIn}" is not a number of milliseconds`);
        const lines = (await textOf(request)).split('\n').filter((line) => line.trim() !== '');
        sendJson(response, { added: feed.addVerbatim(lines, Number(visibleIn)) });
        return;
      }
      case 'POST /clock': {
        if (!clock.isManual) throw new BadValue('the clock is not manual: start the service with --clock manual');
        feed.advance(durationOf(query.get('advance') ?? '', advanceMaxMs));
        sendJson(response, { now: new Date(clock.now()).toISOString() });
        return;
      }
      default:
        throw new Problem(
          404,
          'There are GET /truth, GET /stats, GET /accounts, GET /switches, PATCH /switches, POST /records and POST /clock',
        );
    }
  }
}

/**
 * Because the port has no credentials, a page in a browser must not reach it, neither through DNS
 * rebinding (Host) nor by a cross-origin request.
 */
function checkBrowser({ headers }: IncomingMessage, port: number): void {
  const hosts = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
  if (!hosts.includes((headers.host ?? '').toLowerCase())) throw new Problem(403, `The header Host must be one of ${hosts.join(', ')}`);
  const { origin } = headers;
  if (origin !== undefined && !hosts.includes(origin.toLowerCase().replace(/^http:\/\//, ''))) {
    throw new Problem(403, `The header Origin must not name another origin: ${origin}`);
  }
}

function isGivenWrong(error: unknown): boolean {
  return error instanceof BadValue || error instanceof BadLine;
}

function* linesOf(portions: Iterable<string[]>): Generator<string> {
  for (const texts of portions) yield `${texts.join('\n')}\n`;
}

function objectOf(text: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new BadValue('the body is not JSON', { cause: error });
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new BadValue('the body is not a JSON object of switches');
  return parsed as Record<string, unknown>;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bodyBytesMax) throw new Problem(413, 'The body is too large');
    parts.push(part);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
  } catch (error) {
    throw new BadValue('the body is not UTF-8', { cause: error });
  }
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
