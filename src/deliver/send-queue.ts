/** Sends on demand that wait for their turn between two batches. Each is sent once, and its caller waits for the result. */
import type { WaybillError } from '../errors.ts';
import type { Message, Rejection } from '../model/sink.ts';

/** All messages are delivered except the messages in `rejected` and `left`. */
export interface OnDemandResult {
  readonly rejected: readonly Rejection[];
  readonly resumeNote: string | undefined;
  /** Messages that were not delivered but may be later; `error` gives the reason. */
  readonly left?: readonly number[];
  readonly error?: WaybillError;
}

export interface OnDemandSend {
  readonly onDemand: 'retry' | 'test';
  readonly messages: readonly Message[];
  /** Commits the result before the caller learns of it. */
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

  /** Rejects every send that waits, and later ones: the loop has ended. */
  close(cause: WaybillError): void {
    this.#closed = cause;
    this.fail(cause);
  }

  /** Rejects every send that waits. */
  fail(cause: WaybillError): void {
    for (const { reject } of this.#sends.splice(0)) reject(cause);
  }
}
