/** Finds what somebody meant who mistyped a name. */

/** The name that takes the fewest insertions, deletions and replacements to reach, upper case aside; undefined when there is none. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const wanted = given.slice(0, 100).toLowerCase();
  const ranked = names.map((name) => ({ name, distance: distance(wanted, name.toLowerCase()) }));
  return ranked.sort((a, b) => a.distance - b.distance)[0]?.name;
}

/** The same, but only one that somebody may well have meant: not further away than a third of its letters, or two. */
export function near(given: string, names: readonly string[]): string | undefined {
  const found = nearest(given, names);
  if (found === undefined) return undefined;
  const far = distance(given.slice(0, 100).toLowerCase(), found.toLowerCase());
  return far <= Math.max(2, Math.floor(found.length / 3)) ? found : undefined;
}

/** Levenshtein's distance, row by row. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
