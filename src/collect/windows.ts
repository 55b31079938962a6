/**
 * The arithmetic of windows, pure: the next window, its query, its next recount or retry. Edges are whole seconds, so that a service that
 * truncates times moves no record over an edge. They align with the clock in UTC, so that days and hours of the ledger are also days and
 * hours of the service and of a SIEM.
 */
import type { Window } from '../model/ledger.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Micros } from '../model/time.ts';

export const secondMicros = 1_000_000;
const minuteMicros = 60 * secondMicros;
const hourMicros = 60 * minuteMicros;
export const dayMicros = 24 * hourMicros;
const quarterMicros = 15 * minuteMicros;

/** The widths of windows, ascending: each divides the day, and divides the quarter of an hour or is a multiple of it. */
const widths: readonly Micros[] = Array.from({ length: dayMicros / secondMicros }, (_, i) => (i + 1) * secondMicros).filter(
  (width) => dayMicros % width === 0 && (quarterMicros % width === 0 || width % quarterMicros === 0),
);

/** A window with more records is split if it can be: this stays below the usual caps of 10,000 on deep paging and on counting. */
export const recordsMax = 9_900;
/** The width of a window is chosen for this many records: below `recordsMax`, because their density varies. */
export const recordsAimed = 9_000;
/** A window of one second cannot be split: with more records it is a gap (`size`). */
export const recordsOfSecondMax = 500_000;
/** A record further outside the window shows that the service ignores the time filter. */
export const filterSlack = 2 * secondMicros;

/**
 * The query of a window: one more second on both sides, because a service may truncate times to 10 ms or to seconds, and may exclude either
 * bound. `owns` decides exactly which window owns a record, and not the service (its specification does not define the bounds).
 */
export function queryOf(window: Window): WindowQuery {
  return {
    startTime: boundText(/* mutant: padding-before */ window.from - secondMicros),
    endTime: boundText(/* mutant: padding-after */ window.to + secondMicros),
  };
}

/** The query of the live poll: no upper bound, so that it returns records of a node whose clock is ahead. */
export function queryFrom(from: Micros): WindowQuery {
  return { startTime: boundText(Math.max(0, wholeSecond(from))) };
}

/** No record is that new: the answer is a page without records. */
export const futureQuery = queryFrom(Date.UTC(2200, 0) * 1000);

/** The query for all records with an earlier time; `to` is a whole second. */
export function queryUntil(to: Micros): WindowQuery {
  return { endTime: boundText(to) };
}

/** `YYYY-MM-DDTHH:MM:SS.00`, the form of the specification (4.6). */
function boundText(us: Micros): string {
  return `${new Date(Math.max(0, us) / 1000).toISOString().slice(0, 19)}.00`;
}

export function wholeSecond(us: Micros): Micros {
  return Math.floor(us / secondMicros) * secondMicros;
}

export function owns(window: Window, time: Micros): boolean {
  return window.from <= time && time < window.to;
}

/**
 * The largest width of a window that keeps up with the present: `closeDelay` between 10 s and 1 h,
 * so that the frontier lags about twice `closeDelay` at most.
 */
export function steadyWidth(closeDelay: Micros): Micros {
  return Math.min(Math.max(closeDelay, 10 * secondMicros), hourMicros);
}

/**
 * The largest width of a window: the steady width, or the time between `closedUntil` and `closeDue`
 * if that is more, so that history needs few requests; at most one day.
 */
export function widestMicros(closedUntil: Micros, closeDue: Micros, closeDelay: Micros): Micros {
  return Math.min(Math.max(steadyWidth(closeDelay), wholeSecond(closeDue - closedUntil)), dayMicros);
}

/** The largest allowed width up to `max`; at least one second. */
export function widthWithin(max: Micros): Micros {
  return widths.findLast((width) => width <= max) ?? secondMicros;
}

/**
 * The end of a window that begins at `from`: the next multiple of its width, counted from midnight
 * UTC. So no window crosses midnight, and a window that begins between two edges ends at the next.
 */
export function endOf(from: Micros, maxWidth: Micros): Micros {
  const width = widthWithin(maxWidth);
  return (Math.floor(from / width) + 1) * width;
}

/**
 * The next window to close; undefined before its close delay has passed. `width` is the largest width, µs; `end` ends a range of history.
 */
export function nextWindow(
  closedUntil: Micros,
  width: Micros,
  serverNow: Micros,
  closeDelay: Micros,
  end: Micros | null = null,
): Window | undefined {
  const closeDue = serverNow - closeDelay;
  const to = Math.min(endOf(closedUntil, Math.min(width, widestMicros(closedUntil, closeDue, closeDelay))), end ?? Infinity);
  return to <= closeDue ? { from: closedUntil, to } : undefined;
}

/**
 * The width for the next window: as wide as its records fit at the density of the last window, but
 * at most twice the width chosen before, because the next records may be denser.
 * @param total  the records of the last window, with the padding of its query
 * @param width  the width of the last window, which may have ended earlier than chosen
 */
export function nextWidth(chosen: Micros, total: number, width: Micros = chosen): Micros {
  const padding = 2 * secondMicros;
  const fitting = wholeSecond((recordsAimed * (width + padding)) / Math.max(1, total) - padding);
  return Math.min(Math.max(secondMicros, fitting), 2 * chosen, dayMicros);
}

/**
 * The first part of a window: at most half of it, at most `widest`, and up to an edge of windows of
 * that width. Undefined for a window of one second.
 */
export function lowerHalf({ from, to }: Window, widest: Micros = Infinity): Window | undefined {
  if (to - from <= secondMicros) return undefined;
  return { from, to: endOf(from, Math.min(widest, (to - from) / 2)) };
}

/** The rest of a window after `lowerHalf`. */
export function upperHalf(window: Window, lower: Window): Window {
  return { from: lower.to, to: window.to };
}

/** The first and the last second of a window. */
export function endsOf({ from, to }: Window): readonly [Window, Window] {
  return [
    { from, to: from + secondMicros },
    { from: to - secondMicros, to },
  ];
}

/** The next recount of a window: at the first age that server time has not reached; undefined after the last. Ages in µs, ascending. */
export function nextRecount(to: Micros, ages: readonly Micros[], serverNow: Micros): Micros | undefined {
  // mutant: recount-ages
  for (const age of ages) if (to + age > serverNow) return to + age;
  return undefined;
}

/** The next retry of a gap: after 1, 5 and 15 minutes, then at the ages of recount, then once a day. */
export function nextTry(to: Micros, attempts: number, ages: readonly Micros[], serverNow: Micros): Micros {
  const wait = [1, 5, 15][attempts - 1];
  if (wait !== undefined) return serverNow + wait * minuteMicros;
  return nextRecount(to, ages, serverNow) ?? serverNow + dayMicros;
}
