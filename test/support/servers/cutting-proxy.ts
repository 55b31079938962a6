/**
 * A TCP proxy on loopback to a real receiver: it can drop the response to data that the receiver
 * has accepted.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/**
 * `answers`: holds the response back, then resets the connection. `shut`: the same, and resets
 * every later connection. `end`: passes everything but the receiver's end of the connection, and
 * resets instead.
 */
type Cut = 'answers' | 'shut' | 'end';

export class CuttingProxy implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut: Cut | undefined;
  #cuts = 0;
  #isStalled = false;
  #isShut = false;

  static async start(port: number): Promise<CuttingProxy> {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new CuttingProxy(server);
    server.on('connection', (client: Socket) => {
      if (proxy.#isShut) client.resetAndDestroy();
      else proxy.#pass(client, connect({ port, host: '127.0.0.1', allowHalfOpen: true }));
    });
    return proxy;
  }

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  /** The number of cuts. */
  get cuts(): number {
    return this.#cuts;
  }

  /** Drops the next response only. */
  cutNext(cut: Cut): void {
    this.#cut = cut;
  }

  /** True while all connections are reset on arrival. */
  get isShut(): boolean {
    return this.#isShut;
  }

  /** Accepts connections again. */
  open(): void {
    this.#isShut = false;
  }

  /** Stops reading from the sender. */
  stall(): void {
    this.#isStalled = true;
    for (const socket of this.#sockets) socket.pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #pass(client: Socket, receiver: Socket): void {
    const reset = (): void => {
      this.#isShut ||= this.#cut === 'shut';
      this.#cut = undefined;
      this.#cuts += 1;
      client.resetAndDestroy();
      receiver.destroy();
      if (this.#isShut) for (const socket of this.#sockets) socket.destroy();
    };
    let quiet: NodeJS.Timeout | undefined;
    let isHeld = false;
    for (const socket of [client, receiver]) {
      this.#sockets.add(socket);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        clearTimeout(quiet);
        (socket === client ? receiver : client).destroy();
      });
      socket.on('error', () => undefined);
    }
    client.on('data', (bytes) => receiver.write(bytes));
    if (this.#isStalled) client.pause();
    client.on('end', () => receiver.end());
    receiver.on('data', (bytes) => {
      if (this.#cut !== 'answers' && this.#cut !== 'shut') return client.write(bytes);
      isHeld = true;
      // When the receiver has sent its whole response, it has accepted all data.
      clearTimeout(quiet);
      quiet = setTimeout(reset, 200);
      return false;
    });
    receiver.on('end', () => {
      // A connection that ends by itself, for example because its sender exited, is not the one to
      // cut.
      if (isHeld || this.#cut === 'end') reset();
      else client.end();
    });
  }
}
