/** Time and randomness as parameters, so that tests and the simulation control them. */

/** Microseconds since 1970-01-01T00:00:00Z, an integer; exact to the year 2255. */
export type Micros = number;

export interface Clock {
  /**
   * Wall clock, ms since 1970: for display and for the time of receipt, never for planning windows.
   */
  now(): number;
  /** Milliseconds of a clock that never jumps. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason if it is aborted earlier. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;
