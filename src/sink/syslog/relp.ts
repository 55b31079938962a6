/** Syslog by RELP: the receiver acknowledges each message. */
import { atMost } from '../../time/deadline.ts';
import { addAbortListener } from 'node:events';
import { quote } from '../../errors/quote.ts';
import { codeOf, WaybillError, messageOf } from '../../errors/errors.ts';
import type { Batch, OnProgress, Message, Rejection, Sink, DeliveryResult } from '../../model/sink.ts';
import type { Clock } from '../../model/time.ts';
import type { SinkContext } from '../define.ts';
import { Header } from './message.ts';
import { firstLine, RelpSession } from './session.ts';
import { dialerOf, headerOf, type SyslogSettings } from './settings.ts';
import { hangUp, sizeHint, type Line } from './socket.ts';

/** Timeout of the response to `close`, ms. Every message was acknowledged before. */
const closeSessionMs = 1_000;

export class RelpSink implements Sink {
  readonly #id: string;
  readonly #clock: Clock;
  readonly #header: Header;
  readonly #line: Line;
  readonly #session: RelpSession;

  static async open(settings: SyslogSettings, context: SinkContext, signal: AbortSignal): Promise<RelpSink> {
    const dialer = dialerOf(settings, context);
    const line = await dialer.connectKept(signal, context.clock);
    const session = new RelpSession(line.stream, `"${settings.address}" of sink "${context.id}"`);
    using _listener = addAbortListener(signal, () => hangUp(line));
    try {
      // mutant: open-session
      await session.open();
    } catch (thrown) {
      hangUp(line);
      signal.throwIfAborted();
      if (codeOf(thrown) === 'sink_blocked') throw thrown;
      // Before the first message, the receiver cannot have accepted any.
      const cause = dialer.translate(thrown instanceof WaybillError && thrown.cause !== undefined ? thrown.cause : thrown);
      const plainHint = `sinks.${context.id}.address begins with relp: perhaps the port speaks TLS`;
      const hint = session.isOver ? `; ${dialer.target.isSecure ? dialer.endedEarly : plainHint}` : '';
      throw cause.code === 'sink_blocked' ? cause : new WaybillError('sink_unavailable', `${messageOf(thrown)}${hint}`, { cause });
    }
    return new RelpSink(settings, context, line, session);
  }

  private constructor(settings: SyslogSettings, { id, clock }: SinkContext, line: Line, session: RelpSession) {
    this.#id = id;
    this.#clock = clock;
    this.#header = new Header(headerOf(settings));
    this.#line = line;
    this.#session = session;
  }

  async send({ messages }: Batch, signal: AbortSignal, onProgress: OnProgress = () => undefined): Promise<DeliveryResult> {
    using _listener = addAbortListener(signal, () => hangUp(this.#line));
    const data = messages.map((message) => ({ header: this.#header.of(message), bytes: message.bytes }));
    let certain = 0;
    const progressed = (count: number): void => onProgress((certain = count));
    try {
      return this.#resultOf(messages, await this.#session.send(data, progressed));
    } catch (thrown) {
      // Some receivers end the session at a message above their limit.
      const { header = '', bytes } = data[certain] ?? {};
      const hint = sizeHint(this.#id, header.length + (bytes?.length ?? 0));
      if (hint === '' || !(thrown instanceof WaybillError)) throw thrown;
      throw new WaybillError('sink_outcome_unknown', `${messageOf(thrown)}${hint}`, { cause: thrown });
    }
  }

  /** The result of a fully answered batch: the loop sends rejected messages again. */
  #resultOf(messages: readonly Message[], answers: readonly { code: number; message: string }[]): DeliveryResult {
    const reasons = messages.flatMap(({ seq }, i): Rejection[] => {
      const { code, message } = answers[i] ?? { code: 0, message: '' };
      if (code === 200) return [];
      return [
        { seq, code: String(code), message: `the receiver of sink "${this.#id}" responded ${code} ${quote(firstLine(message), 200)}` },
      ];
    });
    const [first] = reasons;
    if (!first) return { rejections: [] };
    const lastDelivered = messages[answers.findLastIndex(({ code }) => code === 200)]?.seq ?? 0;
    const seqs = reasons.map(({ seq }) => seq);
    const suspects = seqs.filter((seq) => seq < lastDelivered);
    return {
      rejections: [],
      retryable: { code: 'sink_unavailable', seqs, message: first.message, suspects, reasons },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#session.isOver) return;
    await atMost(closeSessionMs, this.#session.close(), this.#clock);
    hangUp(this.#line);
  }
}
