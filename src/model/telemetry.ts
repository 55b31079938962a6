/** The boundaries to the log, the metrics and the traces. */
import type { LogEventCode, LogFields } from './log-events.ts';
import type { Micros } from './time.ts';

/** The log, by the events of log-events.ts. Fields never hold a secret or a part of a record. */
export interface Log {
  /** A missing field is a type error, and so is a field that the table does not list for the event, also in a spread object. */
  write<Code extends LogEventCode, Given extends object>(event: Code, ...fields: LogFields<Code, Given>): void;
}

/** Counters and histograms. Gauges are read from a Snapshot at each scrape. Durations in seconds. */
export interface Meters {
  recordsCollected(source: string, count: number): void;
  recordsLate(source: string, count: number): void;
  /** First seen minus logTimestamp. */
  recordDelay(source: string, seconds: number): void;
  sourceRequest(source: string, outcome: string, seconds: number): void;
  sourceSuspended(source: string, reason: string): void;
  /** The service shows fewer records of a proven window, or of a gap, than before. */
  windowShrunk(source: string): void;
  /** First page, page size, total or `Date` differ from the previous calibration. */
  calibrationChanged(source: string): void;
  recordsUnexpected(source: string, tag: string): void;
  eventsDelivered(sink: string, count: number): void;
  /** From logTimestamp until the sink accepted the message. */
  deliveryDelay(sink: string, seconds: number): void;
  /** An attempt of the sink failed and is repeated. */
  sinkRetried(sink: string): void;
  sinkDuplicates(sink: string, count: number): void;
  sinkDropped(sink: string, count: number): void;
  sinkLoss(sink: string): void;
  /** A message was truncated to the maximum size of the receiver. */
  messageTruncated(sink: string): void;
  /** From the first attempt of a commit of a shard until its outcome is known. */
  databaseCommit(seconds: number): void;
  /** Another member has taken a shard of this one, or could have taken it. */
  leaseLost(): void;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanOptions {
  /** `client`: a call of another system; `producer`: messages are sent; default: work of this process. */
  readonly kind?: 'client' | 'producer';
  /** Wall clock, ms; default now. */
  readonly startTime?: number;
}

/** A span of a trace. Attributes never hold a secret or a part of a record. */
export interface Span {
  child(name: string, attributes?: SpanAttributes, options?: SpanOptions): Span;
  set(attributes: SpanAttributes): void;
  /** Makes this span the parent of spans that the tracer starts in `work`. Log lines of `work` carry its ids. */
  run<Result>(work: () => Result): Result;
  /** @param thrown  the error that ended the work @param endTime  wall clock, ms; default now */
  end(thrown?: unknown, endTime?: number): void;
}

export interface Tracer {
  /** Starts a span below the current one, or a new trace. */
  start(name: string, attributes?: SpanAttributes, options?: SpanOptions): Span;
}

export const noSpan: Span = { child: () => noSpan, set: () => undefined, run: (work) => work(), end: () => undefined };

export const noTracer: Tracer = { start: () => noSpan };

/** Runs `work` in the span and ends the span with it. */
export async function traced<Result>(span: Span, work: () => Promise<Result>): Promise<Result> {
  try {
    const result = await span.run(work);
    span.end();
    return result;
  } catch (thrown) {
    span.end(thrown);
    throw thrown;
  }
}

/** Delays of records until they were first seen, in the buckets of src/telemetry/delays.ts; the last bucket has no upper bound. */
export interface DelayMeasure {
  /** Start of `recent`, and the last response of the source; wall clock, µs. */
  readonly since: Micros;
  readonly to: Micros;
  /** At most one week, and the week before it. */
  readonly recent: readonly number[];
  readonly before: readonly number[];
  /** Lifetime maximum in seconds. */
  readonly longest: number;
}
