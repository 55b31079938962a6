/**
 * Calls between two threads. Each end serves objects whose methods the other end calls, with a result
 * (`remote`) or without (`notified`). All calls and answers arrive in the order of sending. The
 * channel posts the messages of one turn of the event loop together, because posting is expensive.
 */
import { carried, revived, type CarriedError } from './carried-error.ts';

/** One end of a connection that clones messages, such as a MessagePort. */
export interface Port {
  post(message: unknown, transfer: readonly ArrayBuffer[]): void;
  /** Called once, before the first message arrives. */
  receive(handler: (message: unknown) => void): void;
}

/** @param end  a worker, or the port to the thread that started it */
export function portOf(end: {
  postMessage(message: unknown, transfer: readonly ArrayBuffer[]): void;
  on(event: 'message', handler: (message: unknown) => void): unknown;
}): Port {
  return { post: (message, transfer) => end.postMessage(message, transfer), receive: (handler) => end.on('message', handler) };
}

/** An answer that transfers its buffers: this end loses them. */
export class Transferred<Value> {
  readonly value: Value;
  readonly buffers: readonly ArrayBuffer[];

  constructor(value: Value, buffers: readonly ArrayBuffer[]) {
    this.value = value;
    this.buffers = buffers;
  }
}

type Message =
  /** Without `id`, the caller expects no answer. */
  | { readonly kind: 'call'; readonly id?: number; readonly to: string; readonly method: string; readonly args: readonly unknown[] }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly thrown: CarriedError };

type Method = (...args: readonly unknown[]) => unknown;
type Answer = PromiseWithResolvers<unknown>;

/** The methods of an object at the other end. */
type Remote<Served> = {
  readonly [Name in keyof Served]: Served[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result> extends Transferred<infer Value> ? Value : Awaited<Result>>
    : never;
};

/** The methods of an object at the other end, without results. */
type Notified<Served> = {
  readonly [Name in keyof Served]: Served[Name] extends (...args: infer Args) => unknown ? (...args: Args) => void : never;
};

export class Channel {
  readonly #port: Port;
  readonly #failed: (thrown: unknown) => void;
  readonly #served = new Map<string, Readonly<Record<string, Method>>>();
  readonly #waiting = new Map<number, Answer>();
  #closed: Error | undefined;
  #calls = 0;
  #messages: Message[] = [];
  #transfer: ArrayBuffer[] = [];

  /** @param failed  called with the error of a call without an answer */
  constructor(port: Port, failed: (thrown: unknown) => void) {
    this.#port = port;
    this.#failed = failed;
    port.receive((messages) => (messages as readonly Message[]).forEach((message) => this.#receive(message)));
  }

  /** Lets the other end call the methods of an object. A later object replaces an earlier one of the same name. */
  serve(name: string, served: object): void {
    this.#served.set(name, served as Readonly<Record<string, Method>>);
  }

  /** The object that the other end serves under this name. */
  remote<Served extends object>(name: string): Remote<Served> {
    return new Proxy({}, { get: (_, method) => this.#caller(name, String(method)) }) as Remote<Served>;
  }

  /** The object that the other end serves under this name, for calls without an answer. */
  notified<Served extends object>(name: string): Notified<Served> {
    const get =
      (_: object, method: string | symbol) =>
      (...args: readonly unknown[]) =>
        this.#send({ kind: 'call', to: name, method: String(method), args });
    return new Proxy({}, { get }) as Notified<Served>;
  }

  /** Call when the other end has closed: every pending and later call fails with this error. */
  close(thrown: Error): void {
    this.#closed ??= thrown;
    for (const { reject } of this.#waiting.values()) reject(this.#closed);
    this.#waiting.clear();
  }

  #caller(to: string, method: string): Method {
    return (...args) => {
      if (this.#closed) return Promise.reject(this.#closed);
      const id = (this.#calls += 1);
      const answer = Promise.withResolvers<unknown>();
      this.#waiting.set(id, answer);
      this.#send({ kind: 'call', id, to, method, args });
      return answer.promise;
    };
  }

  #send(message: Message, transfer: readonly ArrayBuffer[] = []): void {
    if (this.#closed) return;
    if (this.#messages.length === 0) queueMicrotask(() => this.#post());
    this.#messages.push(message);
    this.#transfer.push(...transfer);
  }

  #post(): void {
    const [messages, transfer] = [this.#messages, this.#transfer];
    [this.#messages, this.#transfer] = [[], []];
    if (!this.#closed) this.#port.post(messages, transfer);
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

  #perform({ id, to, method, args }: Extract<Message, { kind: 'call' }>): void {
    // Starts now, so that calls start in the order in which they were sent.
    const result = (async () => {
      const served = this.#served.get(to);
      if (!served) throw new Error(`cannot call "${method}": this thread does not serve "${to}"`);
      return served[method]?.(...args);
    })();
    if (id === undefined) result.catch(this.#failed);
    else
      result.then(
        (value) =>
          value instanceof Transferred
            ? this.#send({ kind: 'answer', id, value: value.value }, value.buffers)
            : this.#send({ kind: 'answer', id, value }),
        (thrown: unknown) => this.#send({ kind: 'failed', id, thrown: carried(thrown) }),
      );
  }
}
