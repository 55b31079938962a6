/**
 * Limits the connections of the admin server. Each serves one request; a second one closes it, so that a client cannot queue responses. At
 * the limit, a new connection replaces the oldest whose request is not complete.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

const maxConnections = 512;
/** ms until a connection that has sent nothing is closed. */
const silenceMs = 5_000;

/** At most a quarter of the files that this process may open: sinks and journal need the rest. */
export function connectionBudget(): number {
  return Math.max(8, Math.min(maxConnections, Math.floor(maxOpenFiles() / 4)));
}

interface Connection {
  /** The accepted TCP or Unix socket, below TLS. */
  readonly socket: Socket;
  /** Set when the header of the request has arrived. */
  request: IncomingMessage | undefined;
  /** True: no new connection replaces it, even while the body of its request is incomplete. */
  isKept: boolean;
}

export class Connections {
  readonly #max: number;
  /** Oldest first. */
  readonly #open = new Set<Connection>();
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Call after Node has added its listeners, and before the server listens. */
  watch(server: Server | TlsServer): void {
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection';
    const serve = server.listeners(event);
    server.removeAllListeners(event);
    server.prependListener('connection', (socket: Socket) => this.#opened(socket));
    server.on(event, (socket: Socket) => {
      if (event === 'secureConnection') this.#secured(socket);
      oneRequest(socket, () => {
        for (const listener of serve) listener.call(server, socket);
      });
    });
  }

  /** A second request on a connection closes it. */
  oneEach(handler: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      const connection = this.#bySocket.get(socket);
      if (socket.destroyed || !connection || connection.request) {
        socket.destroy();
        return;
      }
      connection.request = request;
      response.setHeader('connection', 'close');
      handler(request, response);
    };
  }

  /** No new connection replaces this one while its authorized client sends a body. */
  keep(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection) connection.isKept = true;
  }

  #secured(secure: Socket): void {
    const carries = ({ socket }: Connection): boolean =>
      socket.remotePort === secure.remotePort && socket.remoteAddress === secure.remoteAddress;
    const carrier = [...this.#open].find(carries);
    if (carrier) this.#bySocket.set(secure, carrier);
  }

  #opened(socket: Socket): void {
    if (this.#open.size >= this.#max) {
      const oldest = this.#open.values().find(({ request, isKept }) => !isKept && request?.complete !== true);
      if (!oldest) {
        socket.destroy();
        return;
      }
      this.#open.delete(oldest);
      oldest.socket.destroy();
    }
    const connection = { socket, request: undefined, isKept: false };
    this.#open.add(connection);
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#open.delete(connection));
  }
}

/**
 * Serves a connection once its first bytes arrive, and closes it when they hold more than one request: the parser would read thousands of
 * pipelined ones before it serves another client.
 */
function oneRequest(socket: Socket, serve: () => void): void {
  const destroy = (): void => void socket.destroy();
  const timeout = AbortSignal.timeout(silenceMs);
  timeout.addEventListener('abort', destroy, { once: true });
  const stopTimeout = (): void => timeout.removeEventListener('abort', destroy);
  socket.once('close', stopTimeout);
  // The HTTP server adds its own error listener once it serves the connection.
  socket.on('error', destroy);
  socket.once('data', (first: Buffer) => {
    stopTimeout();
    socket.pause();
    socket.off('error', destroy);
    const end = first.indexOf('\r\n\r\n') + 4;
    if (end >= 4 && end < first.length && !hasBody.test(first.toString('latin1', 0, end))) {
      socket.destroy();
      return;
    }
    socket.unshift(first);
    serve();
    socket.resume();
  });
}

const hasBody = /\r\n(content-length|transfer-encoding):/i;

/** The soft limit (proc(5), getrlimit(2)), which Node raises to the hard limit at its start. 256 is the lowest usual limit elsewhere. */
function maxOpenFiles(): number {
  if (process.platform !== 'linux') return 256;
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return soft === undefined ? Infinity : Number(soft);
}
