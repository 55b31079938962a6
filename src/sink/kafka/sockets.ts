/**
 * The connections of one Kafka client, created here and not by kafkajs: they verify certificates like every other connection; errors keep
 * the reason for a rejected certificate; and an ended client cannot send, because it has no connections and gets no new ones.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import { Trust, onPeer, type Peer, type Shown, type TlsSettings } from '../../connect/trust.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import type { SinkContext } from '../define.ts';
import { AnswerLengths, maxAnswerBytes } from './responses.ts';

const keepAliveMs = 60_000;
/** Timeout of the very first response, including TLS. The client tries another connection after 10 s. */
const silenceMs = 8_000;
const responded = new WaybillError('aborted', 'the broker has responded, or the connection has ended');
/** The first byte of a TLS alert (RFC 8446 section 5.1). A Kafka response that begins with it would have 352 MB. */
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
  /** `host:port` of the last connection that ended without a response; undefined after any response. */
  silent: string | undefined;
  #hasResponded = false;
  peer: Peer | undefined;

  /** @param refused  called when a certificate is rejected: the broker's, or the client's */
  constructor({ id, ca, shown, clock }: SinkContext, tls: TlsSettings | undefined, refused: (reason: WaybillError) => void) {
    this.#id = id;
    this.#shown = shown;
    this.#clock = clock;
    this.#trust = tls === undefined ? undefined : new Trust(`sinks.${id}`, tls, ca);
    this.#refused = refused;
  }

  readonly connect = ({ host, port, onConnect }: Target): Socket => {
    // The client retries this error for a while, then fails.
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
      this.#hasResponded = true;
      this.silent = undefined;
      waiting.abort(responded);
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
      waiting.abort(responded);
      this.#open.delete(socket);
      if (isMade && !this.#hasResponded && !this.#isOver) this.silent = `${host}:${port}`;
    });
    return socket;
  };

  /** Cuts every connection with an error: without one, the client would wait for its responses. */
  end(): void {
    this.#isOver = true;
    for (const socket of this.#open) socket.destroy(new Error('this client has ended'));
  }

  /** The likely cause if every connection ends without a response. */
  mismatch(): string {
    const expected =
      this.#trust === undefined
        ? 'does it require TLS (set tls) or SASL, or is it down behind a proxy?'
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
        host,
        port,
        secureContext: this.#contextOf(trust),
        minVersion: 'TLSv1.2',
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

  /** Reads the TLS files before connecting: the client would retry an unusable file like an unreachable broker. */
  #contextOf(trust: Trust): SecureContext {
    try {
      return trust.context();
    } catch (thrown) {
      this.#refuse(messageOf(thrown), thrown as Error);
      throw thrown;
    }
  }

  /** Limits the wait for a server that accepts connections and sends nothing, so that the error names it. */
  async #listen(address: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#clock.sleep(silenceMs, signal);
    } catch (thrown) {
      if (signal.aborted) return;
      throw thrown;
    }
    if (this.#hasResponded || this.#isOver) return;
    const message = `accepted the connection but did not respond within ${silenceMs / 1000} s: does it speak Kafka, with or without TLS as the settings say?`;
    this.#refuse(`sinks.${this.#id}.brokers: "${address}" ${message}`, undefined, 'sink_unavailable');
  }

  #refuse(message: string, cause?: Error, code: 'sink_blocked' | 'sink_unavailable' = 'sink_blocked'): void {
    this.#refused(new WaybillError(code, `cannot connect sink "${this.#id}": ${message}`, { cause }));
  }
}
