/** The queue of on-demand sends, which run between two batches. The loop attempts each once, and its caller waits for the result. */
import type { WaybillError } from '../errors/errors.ts';
import type { Message, Rejection } from '../model/sink.ts';

/** All messages are delivered except the messages in `rejected` and `left`. */
export interface OnDemandResult {
  readonly rejected: readonly Rejection[];
  readonly resumeNote: string | undefined;
  /** Messages that were not delivered and can be sent again; `error` has the reason. */
  readonly left?: readonly number[];
  readonly error?: WaybillError;
}

export interface OnDemandSend {
  readonly onDemand: 'retry' | 'test';
  readonly messages: readonly Message[];
  /** Commits the result before the caller receives it. */
  readonly keep: (result: OnDemandResult) => Promise<void>;
  readonly resolve: (result: OnDemandResult) => void;
  readonly reject: (cause: WaybillError) => void;
}

export class SendQueue {
  #sends: OnDemandSend[] = [];
  #closed: WaybillError | undefined;

  /** The reason why the loop has ended. */
  get closed(): WaybillError | undefined {
    return this.#closed;
  }

  get isEmpty(): boolean {
    return this.#sends.length === 0;
  }

  add(send: OnDemandSend): void {
    if (this.#closed) send.reject(this.#closed);
    else this.#sends.push(send);
  }

  next(): OnDemandSend | undefined {
    return this.#sends.shift();
  }

  /** Call when the loop has ended: rejects every waiting send, and every later one. */
  close(cause: WaybillError): void {
    this.#closed = cause;
    this.fail(cause);
  }

  /** Rejects every waiting send. */
  fail(cause: WaybillError): void {
    for (const { reject } of this.#sends.splice(0)) reject(cause);
  }
}
