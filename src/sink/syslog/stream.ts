/**
 * Syslog over TCP and TLS. With `confirm: close`, each batch has a separate connection, and is delivered when the receiver keeps it open
 * until the client ends it, and then ends it too. With `confirm: none`, a batch is delivered when it is in the send buffer of the local
 * kernel.
 */
import { certificateText } from '../../connect/trust.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Batch, OnProgress, Sink, DeliveryResult } from '../../model/sink.ts';
import { error, ok, type Finding, type SinkContext } from '../define.ts';
import { frame, Header } from './message.ts';
import { dialerOf, headerOf, type SyslogSettings } from './settings.ts';
import { endOf, hangUp, happened, sendQueueEmpty, written, type Dialer, type Line } from './socket.ts';

/** ms until the receiver closes its side after the client has closed its own: its kernel may still hold unread data. */
const closeMs = 60_000;
/** The maximum wait for a connection without data, ms. */
const closeEmptyMs = 10_000;
/** How long a receiver must keep a connection open once it has all bytes, ms. Some proxies give up after half a second or a whole one. */
const usualWatchMs = 600;
/**
 * Limits of that time after a connection that confirmed nothing, ms: 1.5 times the time after which that one ended. A proxy ends a connection
 * by itself when the receiver behind it is down: nginx at once, HAProxy at once or after 3 s, others after the timeout of their own connection.
 */
const minDoubtMs = 1_250;
const maxDoubtMs = 24_000;
/** A receiver that has read a batch ends the connection within this time, ms. A slow one may take as long as for reading. */
const promptMs = 300;

/** What the connections of a sink have shown: kept while the sink is closed and opened again. */
interface Experience {
  /** ms that the next connection must stay open. */
  watchMs: number;
  hasDelivered: boolean;
}

const experiences = new WeakMap<SinkContext, Experience>();

export class StreamSink implements Sink {
  readonly #settings: SyslogSettings;
  readonly #context: SinkContext;
  readonly #dialer: Dialer;
  readonly #header: Header;
  readonly #experience: Experience;
  /** The connection for all batches, with `confirm: none`. */
  #line: Line | undefined;

  /** Opens and closes one connection: an unreachable receiver is detected before the first batch. */
  static async open(settings: SyslogSettings, context: SinkContext, signal: AbortSignal): Promise<StreamSink> {
    const sink = new StreamSink(settings, context);
    const line = await sink.#dialer.connectKept(signal, context.clock);
    if (settings.confirm === 'none') sink.#keep(line);
    else hangUp(line);
    return sink;
  }

  private constructor(settings: SyslogSettings, context: SinkContext) {
    this.#settings = settings;
    this.#context = context;
    this.#dialer = dialerOf(settings, context);
    this.#header = new Header(headerOf(settings));
    this.#experience = experiences.get(context) ?? { watchMs: usualWatchMs, hasDelivered: false };
    experiences.set(context, this.#experience);
    this.#dialer.hasDelivered = this.#experience.hasDelivered;
  }

  async send({ messages }: Batch, signal: AbortSignal, onProgress: OnProgress = () => undefined): Promise<DeliveryResult> {
    const { framing, confirm } = this.#settings;
    const frames = messages.map((message) => frame(framing, this.#header.of(message), message.bytes));
    // Reports progress without messages: none is certain before the end, but the receiver still reads.
    const reads = (): void => onProgress(0);
    if (confirm === 'close') await this.#confirmed(frames, signal, reads);
    else await this.#written(frames, signal, reads);
    return { rejections: [] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#line) hangUp(this.#line);
    this.#line = undefined;
  }

  /**
   * Sends a batch on a separate connection. It is delivered when the kernel has sent everything, the receiver kept the connection open for
   * a while, the client ended first, and the receiver then soon ended its side in TLS and TCP without an error. A receiver that closes with
   * unread bytes causes a reset. One that ends first, or late, may be a proxy whose receiver has read nothing.
   */
  async #confirmed(frames: readonly Uint8Array[], signal: AbortSignal, reads: () => void): Promise<void> {
    const { clock } = this.#context;
    const began = clock.monotonic();
    this.#dialer.longestBytes = frames.reduce((longest, { length }) => Math.max(longest, length), 0);
    const line = await this.#dialer.connect(signal);
    const { stream, tcp } = line;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    let isEnding = false;
    let readAt = Infinity;
    const result = new Promise<void>((resolve, reject) => {
      stream.once('error', /* mutant: stream-error */ reject);
      tcp.once('error', /* mutant: tcp-error */ reject);
      stream.once('end', () => {
        // mutant: stream-end
        if (!isEnding) reject(new Error('the receiver closed the connection before the end of the batch'));
      });
      // The end of TCP, not of TLS alone: a close with unread bytes appears as a reset here.
      tcp.once('end', () => {
        // mutant: tcp-end
        if (isEnding) resolve();
        else reject(new Error('the receiver closed the connection before the end of the batch'));
      });
      tcp.once('close', () => reject(new Error('connection closed')));
    });
    result.catch(() => undefined);
    // Ignores received data, but only a reader detects the end.
    stream.resume();
    try {
      await Promise.race([written(stream, frames, signal, reads), result]);
      await Promise.race([sendQueueEmpty(tcp, clock, either, reads), result]);
      readAt = clock.monotonic();
      // mutant: watch
      await Promise.race([clock.sleep(this.#experience.watchMs, either), result]);
      isEnding = true;
      const endedAt = clock.monotonic();
      stream.end();
      const late = clock.sleep(closeMs, either).then(() => {
        const message = `the receiver of "${this.#settings.address}" of sink "${this.#context.id}" did not end the connection within ${closeMs / 1_000} s`;
        throw new WaybillError('sink_outcome_unknown', message, { isLate: true });
      });
      late.catch(() => undefined);
      await Promise.race([result, late]);
      this.#prompt(clock.monotonic() - endedAt, Math.max(promptMs, readAt - began));
      this.#learn(usualWatchMs, true);
    } catch (thrown) {
      signal.throwIfAborted();
      // mutant: longer-watch
      this.#learn(this.#watchAfter(clock.monotonic() - readAt), this.#experience.hasDelivered);
      throw await this.#dialer.ended(thrown, line, clock);
    } finally {
      over.abort(new WaybillError('aborted', 'the connection is closed'));
      hangUp(line);
    }
  }

  /** @throws WaybillError `sink_outcome_unknown` when the receiver ended the connection later than one that only had to close it */
  #prompt(afterMs: number, maxMs: number): void {
    // mutant: late-end
    if (afterMs <= maxMs) return;
    const message =
      `the receiver of "${this.#settings.address}" of sink "${this.#context.id}" ended the connection ${Math.round(afterMs)} ms after Waybill did: ` +
      'that confirms nothing, because a proxy whose receiver is down does the same; through a proxy, only relp:// confirms messages';
    throw new WaybillError('sink_outcome_unknown', message, { isLate: true });
  }

  /** @param tookMs  time until the receiver ended the connection, since it had all bytes */
  #watchAfter(tookMs: number): number {
    const { watchMs } = this.#experience;
    return Math.min(Math.max(minDoubtMs, tookMs < watchMs ? Math.min(watchMs, 1.5 * tookMs) : 1.5 * tookMs), maxDoubtMs);
  }

  #learn(watchMs: number, hasDelivered: boolean): void {
    Object.assign(this.#experience, { watchMs, hasDelivered });
    this.#dialer.hasDelivered = hasDelivered;
  }

  async #written(frames: readonly Uint8Array[], signal: AbortSignal, reads: () => void): Promise<void> {
    const line = this.#line ?? this.#keep(await this.#dialer.connect(signal));
    try {
      await written(line.stream, frames, signal, reads);
    } catch (thrown) {
      this.#line = undefined;
      const cause = signal.aborted ? thrown : await this.#dialer.ended(thrown, line, this.#context.clock);
      hangUp(line);
      signal.throwIfAborted();
      throw cause;
    }
  }

  /** The next batch replaces a connection that ended between two batches. */
  #keep(line: Line): Line {
    const forget = (): void => {
      if (this.#line === line) this.#line = undefined;
      hangUp(line);
    };
    line.stream.resume().on('error', forget).on('end', forget).on('close', forget);
    this.#line = line;
    return line;
  }
}

/** Opens and ends a connection without a message. @returns how the receiver ended its side */
export async function checkStream(settings: SyslogSettings, context: SinkContext, signal: AbortSignal): Promise<Finding> {
  const dialer = dialerOf(settings, context);
  const line = await dialer.connect(signal);
  const { address, confirm, framing } = settings;
  const { clock, id } = context;
  const { isSecure } = dialer.target;
  const shown = dialer.peer === undefined ? '' : `, ${certificateText(dialer.peer)}`;
  const again = '; with "confirm" set to "close", Waybill would send every batch again';
  const over = new AbortController();
  try {
    const early = await endOf(line, clock, signal);
    if (early !== undefined) {
      const message = `"${address}" is reachable${shown}, but ends the connection before Waybill sends anything`;
      const cause = await dialer.ended(early, line, clock);
      if (isSecure && cause.code === 'sink_blocked') throw cause;
      if (isSecure) return error(`${message}: ${dialer.endedEarly}`, `sinks.${id}.tls.cert`);
      return confirm === 'none' ? error(message, `sinks.${id}.address`) : error(`${message}${again}`, `sinks.${id}.confirm`);
    }
    if (framing === 'newline') {
      // No message: a receiver that expects lines skips an empty one, and a receiver that counts octets ends the connection.
      line.stream.write('\n');
      if ((await endOf(line, clock, signal)) !== undefined) {
        const message = `"${address}" is reachable${shown}, but ends the connection at a line break: it expects "framing" to be "octet-counting"`;
        return error(message, `sinks.${id}.framing`);
      }
    }
    const from = clock.monotonic();
    const ended = happened(line.tcp, 'end', signal).then(() => true);
    line.stream.end();
    const late = clock.sleep(closeEmptyMs, AbortSignal.any([signal, over.signal])).then(() => false);
    const isEnded = await Promise.race([ended, late]);
    const tookMs = Math.round(clock.monotonic() - from);
    if (confirm === 'none') return ok(`"${address}" is reachable${shown}`);
    if (isEnded && tookMs <= promptMs)
      return ok(`"${address}" is reachable, and ends a connection that Waybill ended${shown}; ${caveat(isSecure)}`);
    const took = isEnded ? `ended a connection only ${tookMs} ms` : `does not close a connection within ${closeEmptyMs / 1_000} s`;
    return error(
      `"${address}" is reachable${shown}, but ${took} after Waybill ended it, as a proxy does whose receiver is down${again}`,
      `sinks.${id}.confirm`,
    );
  } catch (thrown) {
    throw await dialer.ended(thrown, line, clock);
  } finally {
    over.abort(new WaybillError('aborted', 'the connection is closed'));
    hangUp(line);
  }
}

function caveat(isSecure: boolean): string {
  const where = isSecure ? 'ends TLS before the receiver' : 'stands before the receiver';
  return `this confirms that the receiver read a batch only if no proxy or load balancer ${where}; relp:// confirms each message`;
}
