/**
 * A proxy between a client and a Kafka broker. It can drop the response to one kind of request, cut
 * connections, or refuse new ones.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { freePort } from './ports.ts';

const keys = { Produce: 0, EndTxn: 26 } as const;

export class KafkaProxy {
  target = 0;
  port = 0;
  #server: Server | undefined;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #losing: number | undefined;
  #mustShut = false;
  #isShut = false;
  #isStalled = false;

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The same port each time: the broker advertises it. */
  async listen(): Promise<this> {
    if (this.#server) return this;
    this.port ||= await freePort();
    this.#server = createServer((client) => {
      this.#carry(client);
    }).listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  /**
   * The broker executes the next request of this kind, but its response is lost: the connection
   * ends instead.
   * @param mustShut  refuses all later connections
   */
  loseAnswer(request: keyof typeof keys, mustShut = false): void {
    this.#losing = keys[request];
    this.#mustShut = mustShut;
  }

  /** True if a response was lost, and all connections are refused since. */
  get isShut(): boolean {
    return this.#isShut;
  }

  /** Ends every connection now. */
  cut(): void {
    for (const [client, broker] of this.#pairs) {
      client.resetAndDestroy();
      broker.destroy();
    }
  }

  stall(): void {
    this.#isStalled = true;
    for (const [client] of this.#pairs) client.pause();
  }

  heal(): void {
    this.#losing = undefined;
    this.#isShut = false;
    this.#isStalled = false;
  }

  async close(): Promise<void> {
    this.cut();
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.close();
    await once(server, 'close');
  }

  #carry(client: Socket): void {
    if (this.#isShut) {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const broker = connect(this.target, '127.0.0.1');
    const pair = [client, broker] as const;
    this.#pairs.add(pair);
    let isLost = false;
    let rest: Buffer = Buffer.alloc(0);
    let skip = 0;
    client.on('data', (chunk: Buffer) => {
      if (this.#isStalled) return;
      broker.write(chunk);
      // Lengths and kinds of the requests, however they are split into chunks.
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        const step = Math.min(skip, rest.length);
        rest = rest.subarray(step);
        skip -= step;
        if (skip > 0 || rest.length < 6) return;
        skip = 4 + rest.readInt32BE(0);
        if (rest.readInt16BE(4) !== this.#losing) continue;
        this.#losing = undefined;
        isLost = true;
      }
    });
    broker.on('data', (chunk: Buffer) => {
      if (isLost) {
        this.#isShut ||= this.#mustShut;
        if (this.#isShut) this.cut();
        else client.resetAndDestroy();
      } else if (!this.#isStalled) client.write(chunk);
    });
    const end = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      broker.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end).on('end', end);
  }
}
