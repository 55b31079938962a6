/**
 * What clients of the admin server may hold at once. Each connection serves one request: a second one before the answer closes it, so that no
 * client can have answers pile up. Connections are bounded; a new one takes the place of the oldest whose request is not there yet, with its body.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

const connectionsMax = 512;
/** How long a connection may be open before its first byte. */
const silenceMs = 5_000;

/** A quarter of the files that this process may open: sinks and journal need theirs. */
export function connectionBudget(): number {
  return Math.max(8, Math.min(connectionsMax, Math.floor(openFilesMax() / 4)));
}

interface Connection {
  /** As accepted: under TLS, what carries it. */
  readonly socket: Socket;
  /** Its request, once the head of it is there. */
  request: IncomingMessage | undefined;
  /** It keeps its place although the body of its request is not there yet. */
  isKept: boolean;
}

export class Connections {
  readonly #most: number;
  /** Oldest first. */
  readonly #open = new Set<Connection>();
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Watches every connection of a server. Called before it listens, once it has the listeners of Node. */
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

  /** Passes the first request of each connection on. */
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

  /** A client that may send this body is not displaced while it does. */
  keep(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection) connection.isKept = true;
  }

  #secured(secure: Socket): void {
    const isCarrier = ({ socket }: Connection): boolean =>
      socket.remotePort === secure.remotePort && socket.remoteAddress === secure.remoteAddress;
    const carrier = [...this.#open].find(isCarrier);
    if (carrier) this.#bySocket.set(secure, carrier);
  }

  #opened(socket: Socket): void {
    if (this.#open.size >= this.#most) {
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
 * Serves a connection once its first bytes are there, and closes it when they hold more than one request: a parser would read thousands of
 * them, one after the other, before anybody else gets a turn.
 */
function oneRequest(socket: Socket, serve: () => void): void {
  const late = (): void => void socket.destroy();
  const silence = AbortSignal.timeout(silenceMs);
  silence.addEventListener('abort', late, { once: true });
  const close = (): void => silence.removeEventListener('abort', late);
  socket.once('close', close);
  // The HTTP server adds its own error listener once it serves the connection.
  socket.on('error', late);
  socket.once('data', (first: Buffer) => {
    close();
    socket.pause();
    socket.off('error', late);
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

/** The soft limit (proc(5), getrlimit(2)), which Node raises to the hard one at its start; elsewhere than on Linux what is usual at least. */
function openFilesMax(): number {
  if (process.platform !== 'linux') return 256;
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return soft === undefined ? Infinity : Number(soft);
}
