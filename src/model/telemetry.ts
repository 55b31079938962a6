/** The boundaries to the log and the metrics. */
import type { LogEventCode, LogFields, UnlistedFields } from './log-events.ts';
import type { Micros } from './time.ts';

/** The log, by the events of log-events.ts. Fields never hold a secret or a part of a record. */
export interface Log {
  /** A field that the table does not list for the event is a type error, also in a spread object. */
  write<Code extends LogEventCode, Fields extends object>(
    event: Code,
    fields?: Fields & LogFields<Code> & UnlistedFields<Code, Fields>,
  ): void;
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
  /** A sink lost delivered records. */
  sinkLoss(sink: string): void;
  /** A message was truncated to the maximum size of the receiver. */
  messageTruncated(sink: string): void;
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
