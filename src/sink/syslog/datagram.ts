/** Syslog over UDP, which has no acknowledgements. */
import { createSocket, type Socket } from 'node:dgram';
import { isIP } from 'node:net';
import { orAborted } from '../../time/deadline.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { Batch, Sink, DeliveryResult } from '../../model/sink.ts';
import type { Clock } from '../../model/time.ts';
import type { SinkContext } from '../define.ts';
import { frame, Header } from './message.ts';
import { headerOf, partsOf, type SyslogSettings } from './settings.ts';

/** Datagrams a millisecond. */
const maxBurst = 20;

export class DatagramSink implements Sink {
  readonly #id: string;
  readonly #address: string;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #header: Header;
  #count = 0;

  static async open(settings: SyslogSettings, context: SinkContext, signal: AbortSignal): Promise<DatagramSink> {
    const { host, port } = partsOf(settings.address);
    signal.throwIfAborted();
    const socket = createSocket({ type: isIP(host) === 6 ? 'udp6' : 'udp4' });
    try {
      const connected = new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        // Only the callback reports a name that does not resolve.
        socket.connect(port, host, (cause?: Error | null) => (cause ? reject(cause) : resolve()));
      });
      // The look-up of the name may hang.
      await orAborted(connected, signal);
    } catch (cause) {
      socket.close();
      signal.throwIfAborted();
      throw new WaybillError('sink_unavailable', `cannot reach "${settings.address}" for sink "${context.id}": ${messageOf(cause)}`, {
        cause,
      });
    }
    return new DatagramSink(settings, context, socket);
  }

  private constructor(settings: SyslogSettings, { id, clock }: SinkContext, socket: Socket) {
    this.#id = id;
    this.#clock = clock;
    this.#address = settings.address;
    this.#socket = socket;
    this.#header = new Header(headerOf(settings));
    // "Port unreachable" may arrive at any time; the next send reports it.
    socket.on('error', () => undefined);
  }

  async send({ messages }: Batch, signal: AbortSignal): Promise<DeliveryResult> {
    for (const message of messages) {
      // A burst overflows the receiver's buffer without an error.
      if ((this.#count += 1) % maxBurst === 0) await this.#clock.sleep(1, signal);
      await this.#sent(frame('datagram', this.#header.of(message), message.bytes));
    }
    return { rejections: [] };
  }

  #sent(datagram: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(datagram, (cause) => {
        if (cause === null) resolve();
        else
          reject(
            new WaybillError('sink_outcome_unknown', `cannot send to "${this.#address}" of sink "${this.#id}": ${messageOf(cause)}`, {
              cause,
            }),
          );
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      try {
        this.#socket.close(() => resolve());
      } catch {
        // The socket is closed already.
        resolve();
      }
    });
  }
}
