/** TCP and TLS connections of the sink `syslog`: connecting, errors, and detecting that the receiver has read everything. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type PeerCertificate, type SecureContext, type TLSSocket } from 'node:tls';
import { plainPort } from '../../connect/plain-port.ts';
import { Trust, onPeer, type Peer, type Pem, type Shown, type TlsSettings } from '../../connect/trust.ts';
import { WaybillError, codeOf, messageOf } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';

interface Target {
  readonly id: string;
  /** The setting, for messages: `tls://siem.example:6514`. */
  readonly address: string;
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  readonly framing: 'octet-counting' | 'newline';
  readonly tls: TlsSettings | undefined;
  /** SHA-256 of the only trusted certificate: 64 hex digits in lower case. */
  readonly fingerprint: string | undefined;
  readonly ca: Pem | undefined;
  readonly shown: Shown | undefined;
}

/** A receiver that accepts the client closes no new connection within this time, ms. */
const quietMs = 250;
/** How long after the end of a connection the TLS alert with its reason may arrive, ms. */
const refusalMs = 250;
/** Timeout of the TLS handshake: a server answers the first flight at once. */
const handshakeMs = 10_000;

/** A connection: the stream to write to, and the TCP socket below it (the same without TLS). */
export interface Line {
  readonly stream: Socket;
  readonly tcp: Socket;
}

export function hangUp({ stream, tcp }: Line): void {
  stream.destroy();
  tcp.destroy();
}

/**
 * Connects to one receiver; each connection resumes the TLS session of the previous one. Changed certificates need a full handshake: a
 * resumed session keeps the earlier ones on both sides.
 */
export class Dialer {
  readonly target: Target;
  readonly #trust: Trust;
  #session: { readonly context: SecureContext; readonly ticket: Buffer } | undefined;
  #peer: Peer | undefined;
  /** The receiver has accepted data: the settings are correct. */
  hasDelivered = false;
  /** The longest frame of the batch that is sent. */
  longestBytes = 0;
  /** The error that ended the last connection after its handshake. */
  #failure: Error | undefined;

  constructor(target: Target) {
    this.target = target;
    this.#trust = new Trust(`sinks.${target.id}`, target.tls, target.ca);
  }

  get peer(): Peer | undefined {
    return this.#peer;
  }

  /** Sends no message. @throws WaybillError `sink_unavailable`, or `sink_blocked` for a certificate */
  async connect(signal: AbortSignal): Promise<Line> {
    signal.throwIfAborted();
    const { host, port, isSecure, address, id } = this.target;
    // `allowHalfOpen`: the end of the other side must be observed and not answered automatically.
    const tcp = connectTcp({ host, port, noDelay: true, allowHalfOpen: true });
    let stream = tcp;
    try {
      await happened(tcp, 'connect', signal);
      if (isSecure) {
        const secure = (stream = this.#secure(tcp));
        onPeer(secure, (peer) => {
          this.#peer = peer;
          this.target.shown?.(`${host}:${port}`, peer);
        });
        await this.#handshake(secure, signal);
        this.#pinned(secure);
      }
      this.#failure = undefined;
      stream.on('error', (cause: Error) => (this.#failure ??= cause));
      return { stream, tcp };
    } catch (thrown) {
      hangUp({ stream, tcp });
      signal.throwIfAborted();
      throw (
        this.#refusal(thrown) ??
        new WaybillError('sink_unavailable', `cannot reach "${address}" for sink "${id}": ${messageOf(thrown)}`, { cause: thrown })
      );
    }
  }

  /**
   * A connection that the receiver keeps open. A receiver that rejects a client certificate may close it without an alert (rsyslog with
   * gtls), with TLS 1.3 only after the client has finished the handshake: no message is sent before that is known.
   * @throws WaybillError as `connect`; `sink_blocked` when the receiver ends two connections in a row right after the handshake
   */
  async connectKept(signal: AbortSignal, clock: Clock): Promise<Line> {
    if (!this.target.isSecure) return this.connect(signal);
    for (let hasEnded = false; ; hasEnded = true) {
      const line = await this.connect(signal);
      const thrown = await endOf(line, clock, signal);
      if (thrown === undefined) return line;
      const cause = await this.ended(thrown, line, clock);
      hangUp(line);
      signal.throwIfAborted();
      if (cause.code === 'sink_blocked') throw cause;
      if (hasEnded)
        throw new WaybillError('sink_blocked', `cannot use "${this.target.address}" for sink "${this.target.id}": ${this.endedEarly}`, {
          cause,
        });
    }
  }

  /** The likely cause when a connection ends right after the TLS handshake. */
  get endedEarly(): string {
    const { cert } = this.target.tls ?? {};
    const requested = cert === undefined ? 'a client certificate' : 'another client certificate';
    return `the receiver ends the connection right after the TLS handshake: it may require ${requested} (sinks.${this.target.id}.tls.cert)`;
  }

  /** A receiver without TLS reads the handshake as the start of a long message, and waits. */
  async #handshake(secure: TLSSocket, signal: AbortSignal): Promise<void> {
    const timeout = AbortSignal.timeout(handshakeMs);
    const handshake = happened(secure, 'secureConnect', AbortSignal.any([signal, timeout]));
    const isLate = await handshake.then(
      () => false,
      (thrown: unknown) => {
        if (!timeout.aborted || signal.aborted) throw thrown;
        return true;
      },
    );
    if (!isLate) return;
    const { id, address } = this.target;
    const message = `no TLS response within ${handshakeMs / 1000} s: perhaps the port does not speak TLS (sinks.${id}.address)`;
    throw new WaybillError('sink_unavailable', `cannot reach "${address}" for sink "${id}": ${message}`);
  }

  /**
   * The error for a connection that ended. With TLS 1.3 the client finishes its handshake before the server verifies the client certificate
   * (RFC 8446 section 4.4.2.4), so the alert for a rejected one arrives on an open connection. It gives `sink_blocked`: the server has read
   * nothing. Any other end leaves the outcome unknown.
   */
  async ended(thrown: unknown, { stream }: Line, clock: Clock): Promise<WaybillError> {
    if (this.target.isSecure && !stream.destroyed) {
      const over = new AbortController();
      const late = clock.sleep(refusalMs, over.signal).catch(() => undefined);
      await Promise.race([happened(stream, 'close', over.signal).catch(() => undefined), late]);
      over.abort(new Error('enough'));
    }
    return this.translate(this.#failure ?? thrown);
  }

  translate(thrown: unknown): WaybillError {
    if (thrown instanceof WaybillError) return thrown;
    const { id, address } = this.target;
    return (
      this.#refusal(thrown) ??
      new WaybillError('sink_outcome_unknown', `connection to "${address}" of sink "${id}" ended: ${messageOf(thrown)}${this.#hint()}`, {
        cause: thrown,
      })
    );
  }

  /** A receiver ends a connection without an error message for many reasons. */
  #hint(): string {
    const { id, isSecure, address, framing } = this.target;
    const size = sizeHint(id, this.longestBytes);
    if (this.hasDelivered) return size;
    const other = `it may expect framing: ${framing === 'newline' ? 'octet-counting' : 'newline'} (sinks.${id}.framing)`;
    if (isSecure) return `; ${this.endedEarly}, or ${other}${size}`;
    return `; sinks.${id}.address begins with ${address.split(':')[0] ?? ''}: perhaps the port speaks TLS, or ${other}${size}`;
  }

  #secure(tcp: Socket): TLSSocket {
    const { host, fingerprint } = this.target;
    const servername = this.#trust.serverName ?? host;
    const secureContext = this.#trust.context();
    const session = this.#session?.context === secureContext ? this.#session.ticket : undefined;
    const socket = connectTls({
      socket: new Wire(tcp),
      host,
      ...(isIP(servername) === 0 ? { servername } : {}),
      ...(session === undefined ? {} : { session }),
      secureContext,
      minVersion: 'TLSv1.2',
      // A pinned certificate needs no trusted issuer and no matching name (RFC 5425 section 5.1).
      rejectUnauthorized: fingerprint === undefined,
    });
    socket.on('session', (ticket: Buffer) => (this.#session = { context: secureContext, ticket }));
    return socket;
  }

  #pinned(socket: TLSSocket): void {
    const { fingerprint, id, address } = this.target;
    if (fingerprint === undefined) return;
    // A resumed session has no certificate: an earlier connection verified it.
    const { raw } = socket.getPeerCertificate() as Partial<PeerCertificate>;
    if (raw === undefined && socket.isSessionReused()) return;
    const found = raw === undefined ? 'none' : createHash('sha256').update(raw).digest('hex');
    if (found === fingerprint) return;
    this.#session = undefined;
    throw new WaybillError('sink_blocked', `sinks.${id}.fingerprint: "${address}" shows a certificate with another fingerprint: ${found}`);
  }

  #refusal(thrown: unknown): WaybillError | undefined {
    if (codeOf(thrown) === 'sink_blocked' || codeOf(thrown) === 'sink_unavailable') return thrown as WaybillError;
    const plain = plainPort(thrown);
    if (plain !== undefined) {
      const { id, address } = this.target;
      return new WaybillError('sink_blocked', `cannot connect sink "${id}" to "${address}": ${plain}; see sinks.${id}.address`);
    }
    const reason = thrown instanceof WaybillError ? thrown : this.#trust.explain(thrown, this.target.host, this.#peer);
    if (reason === undefined) return undefined;
    return new WaybillError('sink_blocked', `cannot connect sink "${this.target.id}": ${messageOf(reason)}`, { cause: thrown });
  }
}

/** The error with which the receiver ended a connection without messages; undefined when it keeps the connection open for `quietMs`. */
export async function endOf({ stream, tcp }: Line, clock: Clock, signal: AbortSignal): Promise<Error | undefined> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const closed = (): Error => new Error('the receiver closed the connection');
  // Only a reader detects the end. The stream has no data: a syslog receiver does not send first.
  stream.resume();
  const ends = [happened(stream, 'end', either), happened(tcp, 'end', either)].map((end) =>
    end.then(closed, (thrown: unknown) => thrown as Error),
  );
  const quiet = clock.sleep(quietMs, either).then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  );
  try {
    return await Promise.race([...ends, quiet]);
  } finally {
    over.abort(new WaybillError('aborted', 'the connection was watched long enough'));
  }
}

/** Receivers should accept this size (RFC 5424 section 6.1). */
const usualBytes = 2_048;

/** A hint at the limit of the receiver, for a connection that ended at a message of this size. */
export function sizeHint(id: string, bytes: number): string {
  return bytes > usualBytes ? `; a message of ${bytes} bytes may be longer than the receiver accepts (sinks.${id}.maxBytes)` : '';
}

/** Resolves at the event. Rejects when the connection ends first, or with the signal's reason. */
export function happened(socket: Socket, event: 'connect' | 'secureConnect' | 'end' | 'close', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      socket.off(event, take).off('error', fail).off('close', closed);
      signal.removeEventListener('abort', abort);
    };
    const take = (): void => {
      done();
      resolve();
    };
    const fail = (cause: Error): void => {
      done();
      reject(cause);
    };
    const closed = (): void => fail(new Error('connection closed'));
    const abort = (): void => {
      fail(signal.reason as Error);
    };
    // A later error without a listener would end the process.
    socket.on('error', () => undefined);
    socket.once(event, take).once('error', fail);
    if (event !== 'close') socket.once('close', closed);
    signal.addEventListener('abort', abort, { once: true });
  });
}

/** Bytes of one write: less than a slow receiver reads within a deadline. */
const pieceBytes = 256 * 1024;

/** Writes all bytes as fast as the other side reads. Resolves when the kernel has all of them. Calls `reads` after each write. */
export async function written(socket: Socket, chunks: readonly Uint8Array[], signal: AbortSignal, reads: () => void): Promise<void> {
  let pending: Uint8Array[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    pending.push(chunk);
    if ((bytes += chunk.length) < pieceBytes) continue;
    await writtenAtOnce(socket, pending, signal);
    reads();
    [pending, bytes] = [[], 0];
  }
  await writtenAtOnce(socket, pending, signal);
}

function writtenAtOnce(socket: Socket, chunks: readonly Uint8Array[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (cause?: Error | null): void => {
      socket.off('close', closed);
      signal.removeEventListener('abort', abort);
      if (cause) reject(cause);
      else resolve();
    };
    const closed = (): void => done(new Error('connection closed'));
    const abort = (): void => done(signal.reason as Error);
    socket.once('close', closed);
    signal.addEventListener('abort', abort, { once: true });
    socket.cork();
    for (const chunk of chunks.slice(0, -1)) socket.write(chunk);
    socket.write(chunks.at(-1) ?? new Uint8Array(), done);
    socket.uncork();
  });
}

/** Interval of polling the kernel's send queue, ms. */
const lookMs = 5;

/**
 * Resolves when the other machine has acknowledged all bytes: the send queue is empty. Only Linux shows it (proc(5), /proc/net/tcp:
 * `tx_queue`); elsewhere it resolves at once. Calls `reads` when the queue has become shorter.
 */
export async function sendQueueEmpty(tcp: Socket, clock: Clock, signal: AbortSignal, reads: () => void): Promise<void> {
  const { localAddress, localPort, remotePort } = tcp;
  if (process.platform !== 'linux' || localAddress === undefined || localPort === undefined || remotePort === undefined) return;
  const file = isIP(localAddress) === 6 ? '/proc/net/tcp6' : '/proc/net/tcp';
  const line = new RegExp(`^ *\\d+: [0-9A-F]+:${hex(localPort)} [0-9A-F]+:${hex(remotePort)} [0-9A-F]{2} ([0-9A-F]{8}):`, 'm');
  for (let before = Infinity; ;) {
    const table = await readFile(file, 'latin1').catch(() => '');
    const queue = Number.parseInt(line.exec(table)?.[1] ?? '0', 16);
    if (queue === 0) return;
    if (queue < before) reads();
    before = queue;
    await clock.sleep(lookMs, signal);
  }
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}

/**
 * A TCP connection as a stream below TLS that outlives TLS. A receiver that closes with unread bytes first ends TLS and then resets TCP. By
 * then the socket of `node:tls` is closed, and nothing would detect the reset.
 */
class Wire extends Duplex {
  readonly #tcp: Socket;

  constructor(tcp: Socket) {
    super({ allowHalfOpen: true });
    this.#tcp = tcp;
    tcp.on('data', (bytes: Buffer) => {
      if (!this.push(bytes)) tcp.pause();
    });
    tcp.on('end', () => this.push(null));
    tcp.on('error', (cause) => this.destroy(cause));
    tcp.on('close', () => this.destroy());
  }

  override _read(): void {
    this.#tcp.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (cause?: Error | null) => void): void {
    this.#tcp.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#tcp.end(done);
  }

  /** Keeps reading: only a reader detects the end of the stream. */
  override _destroy(cause: Error | null, done: (cause: Error | null) => void): void {
    this.#tcp.removeAllListeners('data').resume();
    done(cause);
  }
}
