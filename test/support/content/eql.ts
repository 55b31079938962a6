/**
 * Parses and evaluates the subset of EQL that content uses: `sequence by … with maxspan=…`, items
 * on event codes, `with runs=…` on the first.
 */
import type { Row } from './events.ts';
import { valuesOf } from './events.ts';

interface Item {
  readonly codes: readonly string[];
  readonly runs: number;
}

interface Eql {
  readonly keys: readonly string[];
  /** The last event of each sequence. */
  matches(rows: readonly Row[]): readonly Row[];
}

/** @throws Error for a text outside this subset */
export function eql(text: string): Eql {
  const [, by = '', count = '', unit = '', body = ''] = /^sequence by ([\w., ]+) with maxspan=(\d+)([smh])\s+([^]*)$/.exec(text) ?? [];
  const items = [...body.matchAll(/\[any where event\.code (?:in \(([^)]*)\)|== ("[^"]*"))\](?: with runs=(\d+))?\s*/gy)];
  if (items.length === 0 || items.map(([whole]) => whole).join('') !== body) throw new Error(`cannot read EQL: ${text}`);
  const keys = by.split(',').map((key) => key.trim());
  const span = Number(count) * ({ s: 1e3, m: 60e3, h: 3600e3 }[unit] ?? NaN);
  const steps = items
    .map(([, several, one, runs]): Item => ({ codes: JSON.parse(`[${several ?? one ?? ''}]`) as string[], runs: Number(runs ?? 1) }))
    .flatMap(({ codes, runs }) => Array.from({ length: runs }, () => codes));
  const timeOf = (row: Row): number => Date.parse(String(row['@timestamp']));
  const matches = (rows: readonly Row[]): readonly Row[] => {
    const complete = rows.filter((row) => keys.every((key) => valuesOf(row, key).length > 0)).toSorted((a, b) => timeOf(a) - timeOf(b));
    const groups = Map.groupBy(complete, (row) => JSON.stringify(keys.map((key) => row[key])));
    return [...groups.values()].flatMap((group) => group.filter((last, end) => endsAt(group.slice(0, end + 1), timeOf(last) - span)));
  };
  /** True if the last row completes the steps: backwards, each step matches the nearest row. */
  const endsAt = (rows: readonly Row[], earliest: number): boolean => {
    let step = steps.length - 1;
    for (const row of rows.toReversed()) {
      if (timeOf(row) < earliest) return false;
      if (steps[step]?.includes(String(row['event.code'])) === true) step -= 1;
      else if (step === steps.length - 1) return false;
      if (step < 0) return true;
    }
    return false;
  };
  return { keys, matches };
}
