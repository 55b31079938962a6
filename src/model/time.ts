/** Time and randomness. Both are parameters everywhere, so that tests and the simulation control them. */

/** Microseconds since 1970-01-01T00:00:00Z, an integer; exact to the year 2255. */
export type Micros = number;

/** Time as the rooms see it: a parameter, so that a simulation can own it. */
export interface Clock {
  /** The machine's wall clock, ms since 1970. For what people read and for the time of receipt; never for planning windows. */
  now(): number;
  /** Milliseconds of a clock that never jumps. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when that is aborted first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;
