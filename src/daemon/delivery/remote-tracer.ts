/** Spans of a delivery loop in another thread: the loop numbers them, and the main thread keeps them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Span, SpanAttributes, SpanOptions, Tracer } from '../../model/telemetry.ts';
import type { Clock } from '../../model/time.ts';
import { carried, revived, type CarriedError } from '../carried-error.ts';
import type { Notified } from '../channel.ts';

/** The end in the thread of the loop. Spans start and end by the clock of this thread. */
export class RemoteTracer implements Tracer {
  readonly #spans: Notified<SpanService>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #current = new AsyncLocalStorage<number>();
  #started = 0;

  constructor(spans: Notified<SpanService>, clock: Pick<Clock, 'now'>) {
    this.#spans = spans;
    this.#clock = clock;
  }

  /** The number of the span of the call that runs now. */
  get current(): number | undefined {
    return this.#current.getStore();
  }

  start(name: string, attributes: SpanAttributes = {}, options: SpanOptions = {}): Span {
    return this.#start(this.current, name, attributes, options);
  }

  #start(parent: number | undefined, name: string, attributes: SpanAttributes, options: SpanOptions): Span {
    const number = (this.#started += 1);
    this.#spans.start(number, parent, name, attributes, { startTime: this.#clock.now(), ...options });
    return {
      child: (childName, childAttributes = {}, childOptions = {}) => this.#start(number, childName, childAttributes, childOptions),
      set: (more) => this.#spans.set(number, more),
      run: (work) => this.#current.run(number, work),
      end: (thrown, endTime = this.#clock.now()) => this.#spans.end(number, thrown === undefined ? undefined : carried(thrown), endTime),
    };
  }
}

/** The end in the main thread. */
export class SpanService {
  readonly #tracer: Tracer;
  readonly #open = new Map<number, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  start(number: number, parent: number | undefined, name: string, attributes: SpanAttributes, options: SpanOptions): void {
    const span = parent === undefined ? undefined : this.#open.get(parent);
    this.#open.set(number, span ? span.child(name, attributes, options) : this.#tracer.start(name, attributes, options));
  }

  set(number: number, attributes: SpanAttributes): void {
    this.#open.get(number)?.set(attributes);
  }

  end(number: number, thrown: CarriedError | undefined, endTime: number): void {
    this.#open.get(number)?.end(thrown && revived(thrown), endTime);
    this.#open.delete(number);
  }

  /** Runs `work` in a span that has not ended. */
  within(number: number | undefined, work: () => void): void {
    const span = number === undefined ? undefined : this.#open.get(number);
    if (span) span.run(work);
    else work();
  }
}
