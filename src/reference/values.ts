/**
 * The kinds of values of switches: each parses a value from the command line or JSON, formats it,
 * and explains invalid values.
 */

/**
 * `read` parses text or a JSON value, and throws a BadValue with the allowed values; `show` returns
 * the JSON form.
 */
export interface Kind<T> {
  /** Placeholder in the help, such as `DURATION`. */
  readonly placeholder: string;
  read(given: unknown, before: T): T;
  show(value: T): unknown;
}

export class BadValue extends Error {
  override readonly name = 'BadValue';
}

/** A number of requests per interval. */
export interface Budget {
  readonly count: number;
  readonly intervalMs: number;
}

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** ms: a hundred years. Times so far from now still fit in nanoseconds and in a date. */
const longest = 36_500 * 86_400_000;
/** ms: a timer of Node has 31 bits, and fires at once above that. */
const longestWait = 24 * 86_400_000;

/** Parses a duration such as `250ms`, `10s`, `1.5h`, `30d` to ms. */
export function durationOf(given: unknown, max = longest): number {
  const match = typeof given === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(given) : null;
  const ms = Number(match?.[1]) * (unitMs[match?.[2] ?? ''] ?? Number.NaN);
  if (!Number.isFinite(ms)) throw new BadValue(`${quoted(given)} is not a duration such as 250ms, 10s, 5m, 2h, 30d`);
  if (ms > max) throw new BadValue(`${quoted(given)} is longer than ${durationText(max)}`);
  return ms;
}

/** The shortest text that parses to the same duration. */
function durationText(ms: number): string {
  const unit = ['d', 'h', 'm', 's'].find((each) => ms >= (unitMs[each] ?? 0) && ms % (unitMs[each] ?? 1) === 0) ?? 'ms';
  return `${ms / (unitMs[unit] ?? 1)}${unit}`;
}

export function choice<T extends string>(...allowed: readonly T[]): Kind<T> {
  return {
    placeholder: allowed.join('|'),
    read(given) {
      const found = allowed.find((each) => each === given);
      if (found === undefined) throw new BadValue(`${quoted(given)} is not one of ${allowed.join(', ')}`);
      return found;
    },
    show: (value) => value,
  };
}

export function whole(min: number, max: number): Kind<number> {
  return {
    placeholder: 'N',
    read(given) {
      const value = numberOf(given);
      if (!Number.isInteger(value) || value < min || value > max) {
        throw new BadValue(`${quoted(given)} is not a whole number from ${min} to ${max}`);
      }
      return value;
    },
    show: (value) => value,
  };
}

/** A number from 0 to `max`, by default a share from 0 to 1. */
export function share(max = 1): Kind<number> {
  return {
    placeholder: max === 1 ? 'SHARE' : 'N',
    read(given) {
      const value = numberOf(given);
      if (!(value >= 0 && value <= max)) throw new BadValue(`${quoted(given)} is not a number from 0 to ${max}`);
      return value;
    },
    show: (value) => value,
  };
}

export const duration: Kind<number> = { placeholder: 'DURATION', read: (given) => durationOf(given), show: durationText };

/** A duration within the limit of a timer. */
export const wait: Kind<number> = { ...duration, read: (given) => durationOf(given, longestWait) };

export function offOr<T>(kind: Kind<T>): Kind<T | 'off'> {
  return {
    placeholder: `off|${kind.placeholder}`,
    read: (given, before) => (given === 'off' ? 'off' : kind.read(given, before as T)),
    show: (value) => (value === 'off' ? 'off' : kind.show(value)),
  };
}

/** Comma-separated values, one for each node; they repeat if there are more nodes. */
export function perNode<T>(kind: Kind<T>): Kind<readonly T[]> {
  return {
    placeholder: `${kind.placeholder}[,…]`,
    read(given, before) {
      const parts: unknown[] = Array.isArray(given) ? given : typeof given === 'string' ? given.split(',') : [given];
      if (parts.length === 0) throw new BadValue('the list is empty');
      return parts.map((part) => kind.read(part, before[0] as T));
    },
    show: (value) => (value.length === 1 ? kind.show(value[0] as T) : value.map((each) => kind.show(each))),
  };
}

/** `100/1s`: requests per interval. */
export const budget: Kind<Budget> = {
  placeholder: 'N/DURATION',
  read(given) {
    const [count, interval, more] = typeof given === 'string' ? given.split('/') : [];
    if (!/^\d+$/.test(count ?? '') || interval === undefined || more !== undefined) {
      throw new BadValue(`${quoted(given)} is not a number of requests per interval such as 100/1s`);
    }
    return { count: whole(0, Number.MAX_SAFE_INTEGER).read(count, 0), intervalMs: durationOf(interval) };
  },
  show: (value) => `${value.count}/${durationText(value.intervalMs)}`,
};

/** An action: each `now` performs it once. The value is the number of times. */
export const act: Kind<number> = {
  placeholder: 'now',
  read(given, before) {
    if (given !== 'now') throw new BadValue(`${quoted(given)} is not "now"`);
    return before + 1;
  },
  show: (value) => value,
};

function numberOf(given: unknown): number {
  return typeof given === 'number' ? given : typeof given === 'string' && given.trim() !== '' ? Number(given) : Number.NaN;
}

function quoted(given: unknown): string {
  return typeof given === 'string' ? `"${given}"` : JSON.stringify(given);
}
