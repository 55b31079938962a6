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

/** What is counted while it happens; gauges are read from a Snapshot when asked for. Durations in seconds. */
export interface Meters {
  recordsCollected(source: string, count: number): void;
  recordsLate(source: string, count: number): void;
  /** First seen minus logTimestamp. */
  recordDelay(source: string, seconds: number): void;
  sourceRequest(source: string, outcome: string, seconds: number): void;
  /** A suspension began, for this reason. */
  sourceSuspended(source: string, reason: string): void;
  /** The service shows fewer records of a proven window, or of a gap, than it did. */
  windowShrunk(source: string): void;
  /** Another first page, page size, total or `Date` than at the calibration before. */
  calibrationChanged(source: string): void;
  recordsUnexpected(source: string, tag: string): void;
  eventsDelivered(sink: string, count: number): void;
  /** logTimestamp to taken. */
  deliveryDelay(sink: string, seconds: number): void;
  sinkDuplicates(sink: string, count: number): void;
  /** A sink has lost delivered records. */
  sinkLoss(sink: string): void;
  /** A message was cut to what the receiver's frames can carry. */
  messageTruncated(sink: string): void;
}

/** How long after their time records were first seen, by the bounds of src/telemetry/ (seconds), the last what is beyond. */
export interface DelayMeasure {
  /** When `recent` began, and the last answer of the source; wall clock, µs. */
  readonly since: Micros;
  readonly to: Micros;
  /** Of at most a week, and of the week before it. */
  readonly recent: readonly number[];
  readonly before: readonly number[];
  /** Seconds, ever. */
  readonly longest: number;
}
