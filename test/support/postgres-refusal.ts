/** A server that speaks as much of PostgreSQL's protocol as it takes to ask for the password and to refuse. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';

export class PostgresRefusal implements AsyncDisposable {
  readonly #server: Server;
  /** The last password that it got. */
  password: string | undefined;
  /** SQLSTATE, and the text in every field of the error. */
  says = { code: '28P01', text: 'no' };

  constructor() {
    this.#server = createServer((socket) => {
      let isAsked = false;
      socket.on('error', () => undefined);
      socket.on('data', (data: Buffer) => {
        if (!isAsked) {
          isAsked = true;
          // AuthenticationCleartextPassword.
          socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
          return;
        }
        this.password = data.subarray(5, -1).toString();
        socket.end(errorOf(this.says));
      });
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `postgres://waybill@127.0.0.1:${(this.#server.address() as AddressInfo).port}/audit`;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

/** ErrorResponse: severity, code, message, detail, hint, context and names. */
function errorOf({ code, text }: PostgresRefusal['says']): Buffer {
  const fields = { S: 'ERROR', V: 'ERROR', C: code, M: text, D: text, H: text, W: text, q: text, s: text, t: text };
  const body = Buffer.from(`${Object.entries(fields).map(([name, value]) => `${name}${value.replaceAll('\0', ' ')}\0`).join('')}\0`); // prettier-ignore
  const head = Buffer.alloc(5, 'E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
