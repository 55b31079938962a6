/**
 * An in-memory receiver and the sink that sends to it. The receiver outlives the sink, as a server
 * does. Each test sets its answers.
 */
import type { Batch, ResumePosition, Message, Sink, DeliveryResult } from '../../src/model/sink.ts';
import type { Clock } from '../../src/model/time.ts';

interface Attempt {
  /** Monotonic ms. */
  readonly at: number;
  readonly batch: Batch;
}

/** The response of a receiver to one batch; `take` is the normal one. */
type Answer = (batch: Batch, signal: AbortSignal, attempt: number) => DeliveryResult | Promise<DeliveryResult>;

export class ModelReceiver {
  /** Every accepted message, in order. */
  readonly has: Message[] = [];
  readonly attempts: Attempt[] = [];
  opens = 0;
  closes = 0;
  positionsAsked = 0;
  mostUnderWay = 0;
  /** The position stored for the sender, if the receiver stores one. */
  kept: ResumePosition | undefined;
  answer: Answer = (batch) => this.take(batch);
  /** Runs at each opening; may throw. */
  opening: (signal: AbortSignal, open: number) => void | Promise<void> = () => undefined;
  closing: () => void | Promise<void> = () => undefined;
  readonly #clock: Clock;
  readonly #keeps: boolean;
  #underWay = 0;

  constructor(clock: Clock, { keepsPosition = false } = {}) {
    this.#clock = clock;
    this.#keeps = keepsPosition;
  }

  /** Accepts a batch except the rejected messages. */
  take(batch: Batch, refused: Readonly<Record<number, string>> = {}): DeliveryResult {
    this.has.push(...batch.messages.filter(({ seq }) => !(seq in refused)));
    const note = `through ${batch.through.seq}`;
    if (this.#keeps) this.kept = { position: batch.through, resumeNote: note, sink: 'sink', feed: batch.feed };
    const rejections = Object.entries(refused).map(([seq, words]) => ({ seq: Number(seq), code: 'bad_document', message: words }));
    return { rejections: rejections.filter(({ seq }) => batch.messages.some((message) => message.seq === seq)), resumeNote: note };
  }

  readonly open = async (signal: AbortSignal): Promise<Sink> => {
    this.opens += 1;
    await this.opening(signal, this.opens);
    const send = async (given: Batch, sending: AbortSignal): Promise<DeliveryResult> => {
      // The sender reuses the bytes after this call.
      const messages = given.messages.map((message) => ({ ...message, bytes: Uint8Array.from(message.bytes) }));
      const batch = { ...given, messages };
      this.attempts.push({ at: this.#clock.monotonic(), batch });
      this.#underWay += 1;
      this.mostUnderWay = Math.max(this.mostUnderWay, this.#underWay);
      try {
        return await this.answer(batch, sending, this.attempts.length);
      } finally {
        this.#underWay -= 1;
      }
    };
    const position = async () => {
      this.positionsAsked += 1;
      return this.kept;
    };
    const close = async (): Promise<void> => {
      this.closes += 1;
      await this.closing();
    };
    return { send, ...(this.#keeps && { position }), [Symbol.asyncDispose]: close };
  };
}
