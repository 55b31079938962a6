/** Suggests a known name for a mistyped one. */

/**
 * The name with the smallest edit distance (insertions, deletions, replacements, swaps of neighbours; ignores case). If that exceeds a
 * third of the longer name: the only name that begins with the given one, else undefined, as a message with all names then helps more.
 */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const requested = given.slice(0, 100).toLowerCase();
  const ranked = names.map((name) => ({ name, distance: distance(requested, name.toLowerCase()) }));
  const [best] = ranked.sort((a, b) => a.distance - b.distance);
  if (best && best.distance <= Math.floor(Math.max(requested.length, best.name.length) / 3)) return best.name;
  const [begins, another] = requested.length < 4 ? [] : names.filter((name) => name.toLowerCase().startsWith(requested));
  return another === undefined ? begins : undefined;
}

/** Follows an error message: `the nearest is "a"`, else `expected one of a, b`. */
export function nearestOrAll(given: string, names: readonly string[]): string {
  const found = nearest(given, names);
  if (found !== undefined) return `the nearest is "${found}"`;
  return `expected ${names.length === 1 ? '' : 'one of '}${names.join(', ')}`;
}

/** Optimal string alignment, row by row. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
