/**
 * The connections of one client of Kafka. They are made here, so that trust is that of every other connection, so that a refused certificate keeps its
 * reason, and so that a client that was given up can send nothing more: its connections are cut, and it gets no new ones.
 */
import { connect as connectTcp, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { SecureContext } from 'node:tls';
import { Trust, onPeer } from '../../connect/trust.ts';
import type { Peer, Shown, TlsSettings } from '../../connect/trust.ts';
import { WaybillError, messageOf } from '../../errors.ts';
import type { Clock } from '../../model/time.ts';
import type { SinkContext } from '../define.ts';
import { AnswerLengths, maxAnswerBytes } from './responses.ts';

const keepAliveMs = 60_000;
/** How long the first answer of all may take, TLS included; the client gives a connection up after 10 s, and tries the next. */
const silenceMs = 8_000;
/** One that is being started may look the same. */
const silenceAgainMs = 5_000;
const heard = new WaybillError('aborted', 'it has answered, or ended');
/** The first byte of an alert of TLS (RFC 8446 section 5.1), which no answer of Kafka begins with: it would be 352 MB long. */
const tlsAlert = 21;

interface Target {
  readonly host: string;
  readonly port: number;
  readonly onConnect: () => void;
}

export class Sockets {
  readonly #id: string;
  readonly #shown: Shown | undefined;
  readonly #clock: Clock;
  readonly #trust: Trust | undefined;
  readonly #refused: (reason: WaybillError) => void;
  readonly #open = new Set<Socket>();
  #isOver = false;
  /** `host:port` of the last connection that was made and ended without a byte of the other side, while none has ever brought one. */
  silent: string | undefined;
  #hasHeard = false;
  peer: Peer | undefined;

  /** @param refused  told once a broker's certificate is refused, or it refuses ours */
  constructor({ id, ca, shown, clock }: SinkContext, tls: TlsSettings | undefined, refused: (reason: WaybillError) => void) {
    this.#id = id;
    this.#shown = shown;
    this.#clock = clock;
    this.#trust = tls === undefined ? undefined : new Trust(`sinks.${id}`, tls, ca);
    this.#refused = refused;
  }

  readonly connect = ({ host, port, onConnect }: Target): Socket => {
    // Thrown into the client, which tries again for a while and gives up.
    if (this.#isOver) throw new WaybillError('aborted', 'this client has ended');
    const socket = this.#made(host, port, onConnect);
    socket.setKeepAlive(true, keepAliveMs).setNoDelay(true);
    this.#open.add(socket);
    let isMade = false;
    const waiting = new AbortController();
    socket.once('connect', () => {
      isMade = true;
      void this.#listen(`${host}:${port}`, waiting.signal);
    });
    socket.once('data', (bytes: Buffer) => {
      this.#hasHeard = true;
      this.silent = undefined;
      waiting.abort(heard);
      if (this.#trust === undefined && bytes[0] === tlsAlert && bytes[1] === 3)
        this.#refuse(`sinks.${this.#id}.tls: "${host}:${port}" speaks TLS: set tls`);
    });
    const lengths = new AnswerLengths();
    socket.on('data', (bytes: Buffer) => {
      const length = lengths.read(bytes);
      if (length === undefined || this.#isOver) return;
      this.#refuse(
        `sinks.${this.#id}.brokers: "${host}:${port}" announces a response of ${length} bytes, above the maximum of ${maxAnswerBytes}: does it speak Kafka?`,
      );
    });
    socket.on('close', () => {
      waiting.abort(heard);
      this.#open.delete(socket);
      if (isMade && !this.#hasHeard && !this.#isOver) this.silent = `${host}:${port}`;
    });
    return socket;
  };

  /** Cuts everything. With an error, for a client that hears of an end by nothing else would wait for its answers. */
  end(): void {
    this.#isOver = true;
    for (const socket of this.#open) socket.destroy(new Error('this client has ended'));
  }

  /** What the end of every connection without an answer most likely means. */
  mismatch(): string {
    const expected =
      this.#trust === undefined
        ? 'does it want TLS (set tls) or SASL, or is it down behind a proxy?'
        : 'does it speak TLS on this port, or is it down behind a proxy?';
    return `"${this.silent ?? ''}" ends the connection without a response: ${expected}`;
  }

  #made(host: string, port: number, onConnect: () => void): Socket {
    if (this.#trust === undefined) return connectTcp({ host, port }, onConnect);
    const trust = this.#trust;
    const servername = trust.serverName ?? host;
    let peer: Peer | undefined;
    const socket = connectTls(
      {
        ...{ host, port, secureContext: this.#contextOf(trust), minVersion: 'TLSv1.2' },
        ...(isIP(servername) === 0 ? { servername } : {}),
        rejectUnauthorized: true,
      },
      onConnect,
    );
    onPeer(socket, (found) => {
      this.peer = peer = found;
      this.#shown?.(`${host}:${port}`, found);
    });
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      if (this.#isOver) return;
      const reason = trust.explain(cause, host, peer);
      if (reason !== undefined) this.#refuse(messageOf(reason), cause);
      else if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(cause.code ?? ''))
        this.#refuse(`sinks.${this.#id}.tls: "${host}:${port}" does not speak TLS on this port`, cause);
    });
    return socket;
  }

  /** Thrown into the client, files that cannot be used would be tried again like a broker that is away. */
  #contextOf(trust: Trust): SecureContext {
    try {
      return trust.context();
    } catch (thrown) {
      this.#refuse(messageOf(thrown), thrown as Error);
      throw thrown;
    }
  }

  /** Whoever takes connections and says nothing would be waited for until nobody can tell any more what it was. */
  async #listen(address: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#clock.sleep(silenceMs, signal);
    } catch (thrown) {
      if (signal.aborted) return;
      throw thrown;
    }
    if (this.#hasHeard || this.#isOver) return;
    const message = `accepted the connection but did not respond within ${silenceMs / 1000} s: does it speak Kafka, with or without TLS as the settings say?`;
    this.#refuse(`sinks.${this.#id}.brokers: "${address}" ${message}`, undefined, silenceAgainMs);
  }

  #refuse(message: string, cause?: Error, retryAfterMs?: number): void {
    this.#refused(new WaybillError('sink_blocked', `cannot connect sink "${this.#id}": ${message}`, { cause, retryAfterMs }));
  }
}
