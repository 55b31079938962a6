/**
 * Receivers of syslog for tests: TCP and TLS with either framing, RELP, UDP. Each can misbehave as
 * real ones do.
 */
import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createSecureServer, TLSSocket } from 'node:tls';
import type { TlsOptions } from 'node:tls';
import { readFrames, readRelp, readSyslog } from './syslog-reader.ts';
import type { RelpFrame, SyslogMessage } from './syslog-reader.ts';

/**
 * How a connection ends after all received data was read. `swallow`: like a proxy whose receiver is down, which has read nothing, and
 * ends the connection when `StreamReceiver.swallow` is called, or after the sender.
 */
type Ending = 'end' | 'reset' | 'end before the sender' | 'end at once' | 'never' | 'swallow';

/**
 * Closes like a process that dies with unread bytes: with a TCP reset, and without a TLS close
 * alert.
 */
function cut(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

abstract class TcpReceiver implements AsyncDisposable {
  readonly #server: Server;
  protected readonly sockets = new Set<Socket>();
  readonly errors: unknown[] = [];
  isStalled = false;
  connections = 0;
  /** The number of connections to end as soon as they are open. */
  endsAtOnce = 0;
  port = 0;

  constructor(tls?: TlsOptions) {
    const options = { allowHalfOpen: true, pauseOnConnect: false };
    const taken = (socket: Socket): void => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => undefined);
      if (this.endsAtOnce > 0) {
        this.endsAtOnce -= 1;
        socket.resume().end();
        return;
      }
      if (this.isStalled) socket.pause();
      this.connected(socket);
    };
    this.#server = tls ? createSecureServer({ ...tls, ...options }, taken) : createServer(options, taken);
    this.#server.on('tlsClientError', () => undefined);
  }

  protected abstract connected(socket: Socket): void;

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Stops reading. */
  stall(): void {
    this.isStalled = true;
    for (const socket of this.sockets) socket.pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }
}

export class StreamReceiver extends TcpReceiver {
  readonly messages: SyslogMessage[] = [];
  readonly frames: Buffer[] = [];
  ending: Ending = 'end';
  /** Called before the receiver ends a connection with data after the sender. */
  onEnd: () => void = () => undefined;
  readonly #framing: 'octet-counting' | 'newline';

  constructor(framing: 'octet-counting' | 'newline' = 'octet-counting', tls?: TlsOptions) {
    super(tls);
    this.#framing = framing;
  }

  /** The proxy gives up the connections to its receiver. */
  swallow(): void {
    for (const socket of this.sockets) socket.end();
  }

  /** Its connections break. */
  reset(): void {
    for (const socket of this.sockets) cut(socket);
  }

  protected connected(socket: Socket): void {
    let rest: Buffer = Buffer.alloc(0);
    const { ending } = this;
    if (ending === 'end at once') socket.end();
    socket.on('data', (bytes: Buffer) => {
      if (ending === 'swallow') return;
      try {
        const read = readFrames(this.#framing, Buffer.concat([rest, bytes]));
        rest = read.rest;
        for (const frame of read.frames) {
          this.frames.push(frame);
          this.messages.push(readSyslog(frame));
        }
      } catch (thrown) {
        this.errors.push(thrown);
        socket.destroy();
      }
      if (ending === 'end before the sender' && this.messages.length > 0) socket.end();
    });
    socket.on('end', () => {
      if (socket.bytesRead > 0) this.onEnd();
      if (rest.length > 0) this.errors.push(new Error(`${rest.length} bytes are no whole frame`));
      if (ending === 'reset' && this.messages.length > 0) cut(socket);
      else if (ending !== 'never') socket.end();
    });
  }
}

export class RelpReceiver extends TcpReceiver {
  readonly messages: SyslogMessage[] = [];
  readonly numbers: number[] = [];
  /** The response to a frame; undefined: no response, and the connection is closed. */
  answer: (frame: RelpFrame, message: SyslogMessage) => string | undefined = () => '200 OK';
  opening = '200 OK\nrelp_version=0\nrelp_software=model,1,http://model.invalid\ncommands=syslog';
  /** Delays responses until there are this many, then sends them last to first. */
  reversed = 1;
  /** Ends the session at a longer message, like librelp with `oversizeMode="abort"`. */
  maxBytes = Infinity;
  /** Data arrived before the response to `open` was sent. */
  isEager = false;

  protected connected(socket: Socket): void {
    let rest: Buffer = Buffer.alloc(0);
    let held: string[] = [];
    let last = 0;
    const respond = (number: number, text: string): void => void socket.write(`${number} rsp ${Buffer.byteLength(text)} ${text}\n`);
    const release = (): void => {
      for (const text of held.reverse()) socket.write(text);
      held = [];
    };
    const take = (frame: RelpFrame): void => {
      // librelp ends the session if a number does not follow the last one.
      if (last !== 0 && frame.number !== (last === 999_999_999 ? 1 : last + 1)) throw new Error(`${frame.number} behind ${last}`);
      last = frame.number;
      this.numbers.push(frame.number);
      if (frame.command === 'open') {
        setTimeout(() => {
          this.isEager ||= rest.length > 0;
          respond(frame.number, this.opening);
        }, 30);
      } else if (frame.command === 'close') {
        release();
        socket.write(`${frame.number} rsp 0\n0 serverclose 0\n`);
        socket.end();
      } else if (frame.command === 'syslog' && frame.data.length > this.maxBytes) {
        release();
        socket.end('0 serverclose 0\n');
        socket.removeAllListeners('data').resume();
      } else if (frame.command === 'syslog') {
        const message = readSyslog(frame.data);
        const answer = this.answer(frame, message);
        if (answer === undefined) {
          this.messages.push(message);
          cut(socket);
          return;
        }
        if (answer.startsWith('200')) this.messages.push(message);
        held.push(`${frame.number} rsp ${Buffer.byteLength(answer)} ${answer}\n`);
        if (held.length >= this.reversed) release();
      } else throw new Error(`an unknown command: ${frame.command}`);
    };
    let timer: NodeJS.Timeout | undefined;
    socket.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      try {
        for (let read = readRelp(rest); read && !socket.destroyed; read = readRelp(rest)) {
          rest = rest.subarray(read.length);
          take(read.frame);
        }
      } catch (thrown) {
        this.errors.push(thrown);
        socket.destroy();
      }
      clearTimeout(timer);
      timer = setTimeout(release, 20);
    });
    socket.on('end', () => socket.end());
  }
}

export class UdpReceiver implements AsyncDisposable {
  readonly messages: SyslogMessage[] = [];
  readonly sizes: number[] = [];
  readonly #socket: UdpSocket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });

  async listen(): Promise<this> {
    this.#socket.on('message', (bytes) => {
      this.sizes.push(bytes.length);
      this.messages.push(readSyslog(bytes));
    });
    this.#socket.bind(0, '127.0.0.1');
    await once(this.#socket, 'listening');
    return this;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}
