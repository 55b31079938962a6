/**
 * What clients of the admin server may hold at once. Each connection serves one request: a second one before the answer closes it, so that no
 * client can have answers pile up. Connections are bounded; a new one takes the place of the oldest that still waits for its request.
 */
import { readFileSync } from 'node:fs';
import type { RequestListener, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

const connectionsMax = 512;

/** A quarter of the files that this process may open: sinks and journal need theirs. */
export function connectionBudget(): number {
  return Math.max(8, Math.min(connectionsMax, Math.floor(openFilesMax() / 4)));
}

interface Connection {
  /** As accepted: under TLS, what carries it. */
  readonly socket: Socket;
  isServing: boolean;
}

export class Connections {
  readonly #most: number;
  /** Oldest first. */
  readonly #open = new Set<Connection>();
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Watches every connection of a server. */
  watch(server: Server | TlsServer): void {
    server.on('connection', (socket: Socket) => this.#opened(socket));
    server.on('secureConnection', (secure: Socket) => {
      const carrier = [...this.#open].find(
        ({ socket }) => socket.remotePort === secure.remotePort && socket.remoteAddress === secure.remoteAddress,
      );
      if (carrier) this.#bySocket.set(secure, carrier);
    });
  }

  /** Passes the first request of each connection on. */
  oneEach(handler: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      const connection = this.#bySocket.get(socket);
      if (socket.destroyed || !connection || connection.isServing) {
        socket.destroy();
        return;
      }
      connection.isServing = true;
      response.setHeader('connection', 'close');
      handler(request, response);
    };
  }

  #opened(socket: Socket): void {
    if (this.#open.size >= this.#most) {
      const oldest = [...this.#open].find(({ isServing }) => !isServing);
      if (!oldest) {
        socket.destroy();
        return;
      }
      this.#open.delete(oldest);
      oldest.socket.destroy();
    }
    const connection = { socket, isServing: false };
    this.#open.add(connection);
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#open.delete(connection));
  }
}

/** The soft limit (proc(5), getrlimit(2)), which Node raises to the hard one at its start; elsewhere than on Linux what is usual at least. */
function openFilesMax(): number {
  if (process.platform !== 'linux') return 256;
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return soft === undefined ? Infinity : Number(soft);
}
