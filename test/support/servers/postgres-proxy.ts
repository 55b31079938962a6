/**
 * A proxy before PostgreSQL that fails as networks do: it loses the answer to a commit, delivers a commit after its client has given up, or cuts
 * a connection.
 */
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

type Fault = 'answer lost' | 'late' | 'cut';

export class PostgresProxy implements AsyncDisposable {
  /** How often each fault happened. */
  readonly counts: Record<Fault, number> = { 'answer lost': 0, late: 0, cut: 0 };
  /** The share of commits whose answer is lost, and of those that arrive late. A quarter of it: the share of other packets that end their connection. */
  rate = 0;
  readonly #server: Server;
  readonly #target: () => number;
  readonly #chance: () => number;
  readonly #sockets = new Set<Socket>();

  /**
   * @param target  the port of the server for the next connection
   * @param chance  the next number from 0 to 1
   */
  static async start(target: () => number, chance: () => number): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target, chance);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  private constructor(target: () => number, chance: () => number) {
    this.#target = target;
    this.#chance = chance;
    this.#server = createServer({ noDelay: true }, (client) => this.#connect(client));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #connect(client: Socket): void {
    const server = connect({ port: this.#target(), host: '127.0.0.1', noDelay: true });
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', end).on('close', () => this.#sockets.delete(socket));
    }
    /** Set once the client is cut off: what it sent so far reaches the server later. */
    let late: Buffer[] | undefined;
    client.on('data', (data: Buffer) => {
      if (late) {
        late.push(data);
        return;
      }
      const fault = this.#faultOf(data);
      if (fault !== undefined) this.counts[fault] += 1;
      if (fault === 'late') {
        late = [data];
        setTimeout(() => client.destroy(), 30);
        setTimeout(() => server.write(Buffer.concat(late ?? [])), 300 + this.#chance() * 2_500);
        setTimeout(end, 5_000);
      } else if (fault === 'cut') end();
      else {
        if (fault === 'answer lost') server.removeAllListeners('data').once('data', end);
        server.write(data);
      }
    });
    client.on('close', () => late ?? server.destroy());
    server.on('data', (data: Buffer) => client.write(data)).on('close', () => client.destroy());
  }

  #faultOf(data: Buffer): Fault | undefined {
    const drawn = this.#chance();
    if (!data.includes('fence AS')) return drawn < this.rate / 4 ? 'cut' : undefined;
    return drawn < this.rate ? 'answer lost' : drawn < this.rate * 2 ? 'late' : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }
}
