/**
 * Calls between two threads. Each end serves one object whose methods the other end calls, with a result (`remote`) or without
 * (`notified`). Calls start in the order of sending.
 */
import { carried, revived, type CarriedError } from './carried-error.ts';

/** A worker, or the port to the thread that started it. */
interface Port {
  postMessage(message: unknown): void;
  on(event: 'message', handler: (message: Message) => void): unknown;
}

type Message =
  /** Without `id`, the caller expects no answer. */
  | { readonly kind: 'call'; readonly id?: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly thrown: CarriedError };

type Method = (...args: readonly unknown[]) => unknown;

type Remote<Served> = {
  readonly [Name in keyof Served]: Served[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

type Notified<Served> = {
  readonly [Name in keyof Served]: Served[Name] extends (...args: infer Args) => unknown ? (...args: Args) => void : never;
};

export class Channel {
  readonly #port: Port;
  readonly #failed: (thrown: unknown) => void;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #served: Readonly<Record<string, Method>> | undefined;
  #closed: Error | undefined;
  #calls = 0;

  /** @param failed  called with the error of a call without an answer */
  constructor(port: Port, failed: (thrown: unknown) => void) {
    this.#port = port;
    this.#failed = failed;
    port.on('message', (message) => this.#receive(message));
  }

  /** Lets the other end call the methods of an object. */
  serve(served: object): void {
    this.#served = served as Readonly<Record<string, Method>>;
  }

  /** The object that the other end serves. */
  remote<Served extends object>(): Remote<Served> {
    return new Proxy({}, { get: (_, method) => this.#caller(String(method)) }) as Remote<Served>;
  }

  /** The object that the other end serves, for calls without an answer. */
  notified<Served extends object>(): Notified<Served> {
    const get = (_: object, method: string | symbol): Method => {
      return (...args) => this.#send({ kind: 'call', method: String(method), args });
    };
    return new Proxy({}, { get }) as Notified<Served>;
  }

  /** Call when the other end has closed: every pending and later call fails with this error. */
  close(thrown: Error): void {
    this.#closed ??= thrown;
    for (const { reject } of this.#waiting.values()) reject(this.#closed);
    this.#waiting.clear();
  }

  #caller(method: string): Method {
    return (...args) => {
      if (this.#closed) return Promise.reject(this.#closed);
      const id = (this.#calls += 1);
      const answer = Promise.withResolvers<unknown>();
      this.#waiting.set(id, answer);
      this.#send({ kind: 'call', id, method, args });
      return answer.promise;
    };
  }

  #send(message: Message): void {
    if (!this.#closed) this.#port.postMessage(message);
  }

  #receive(message: Message): void {
    if (this.#closed) return;
    if (message.kind === 'call') {
      this.#perform(message);
      return;
    }
    const answer = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === 'answer') answer?.resolve(message.value);
    else answer?.reject(revived(message.thrown));
  }

  #perform({ id, method, args }: Extract<Message, { kind: 'call' }>): void {
    // Starts now, so that calls start in the order in which they were sent.
    const result = (async () => {
      if (!this.#served) throw new Error(`cannot call "${method}": this thread serves nothing yet`);
      return this.#served[method]?.(...args);
    })();
    if (id === undefined) result.catch(this.#failed);
    else
      result.then(
        (value) => this.#send({ kind: 'answer', id, value }),
        (thrown: unknown) => this.#send({ kind: 'failed', id, thrown: carried(thrown) }),
      );
  }
}
