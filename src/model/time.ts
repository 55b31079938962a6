/** Time and randomness as parameters, so that tests and the simulation control them. */

/** Microseconds since 1970-01-01T00:00:00Z, an integer; exact to the year 2255. */
export type Micros = number;

export interface Timestamp {
  /** Microseconds since 1970; smaller fractions are truncated. */
  readonly us: Micros;
  /** Milliseconds since 1970; smaller fractions are truncated. */
  readonly ms: number;
  /** RFC 3339 in UTC with `Z` and a fraction of 3 to 9 digits: `@timestamp`. */
  readonly iso: string;
  /**
   * In UTC with all digits but no trailing zeros in the fraction, and no `Z`: a part of the record's identity. A leap second keeps its
   * digits, although it counts as the last microsecond of its minute.
   */
  readonly identity: string;
  /** The length of `identity` if the text begins with it, as nearly every text does. */
  readonly identityLength: number | undefined;
}

export interface Clock {
  /** Wall clock, ms since 1970: for display and for the time of receipt, never for planning windows. */
  now(): number;
  /** Milliseconds of a clock that never jumps. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason if it is aborted earlier. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;
