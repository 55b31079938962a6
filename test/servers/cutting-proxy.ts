/** A TCP proxy on loopback before a real receiver: it can cut the answer to what the receiver has taken already. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/**
 * `answers`: what the receiver says is kept back, then the connection is reset. `shut`: the same, and nobody comes through after it.
 * `end`: everything passes but the receiver's end, a reset comes for it.
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

  /** How often something was cut. */
  get cuts(): number {
    return this.#cuts;
  }

  /** The next answer does not come through; those after it do. */
  cutNext(cut: Cut): void {
    this.#cut = cut;
  }

  /** Whether nobody comes through: connections are reset as they come. */
  get isShut(): boolean {
    return this.#isShut;
  }

  /** Everybody comes through again. */
  open(): void {
    this.#isShut = false;
  }

  /** From now on nothing is read from the sender. */
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
      // Once the receiver has said all, it has taken all.
      clearTimeout(quiet);
      quiet = setTimeout(reset, 200);
      return false;
    });
    receiver.on('end', () => {
      // A connection that ends for itself, such as that of a sender which has gone, is not the one to cut.
      if (isHeld || this.#cut === 'end') reset();
      else client.end();
    });
  }
}
