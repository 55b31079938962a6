/** Ranges of lines of an archive: ascending, without overlap. The holds in force on them. Pure. */
import type { ArchiveOrder, HoldOrder, LineRange } from './line.ts';

/** @param ranges  in any order. @returns ranges with the same lines, as few as possible */
export function joined(ranges: readonly LineRange[]): readonly LineRange[] {
  const found: LineRange[] = [];
  for (const { first, last } of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = found.at(-1);
    if (before && first <= before.last + 1) found[found.length - 1] = { first: before.first, last: Math.max(before.last, last) };
    else found.push({ first, last });
  }
  return found;
}

/** The lines of `ranges` that are not in `taken`. */
export function without(ranges: readonly LineRange[], taken: readonly LineRange[]): readonly LineRange[] {
  let left = ranges;
  for (const { first, last } of taken)
    left = left.flatMap((range) =>
      [
        { first: range.first, last: Math.min(range.last, first - 1) },
        { first: Math.max(range.first, last + 1), last: range.last },
      ].filter((part) => part.first <= part.last),
    );
  return left;
}

export function hasLine(ranges: readonly LineRange[], line: number): boolean {
  return ranges.some(({ first, last }) => first <= line && line <= last);
}

/** The number of lines. */
export function lengthOf(ranges: readonly LineRange[]): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

/** The holds that no later order ended. @param orders  on one archive, in their order */
export function holdsAfter(orders: Iterable<ArchiveOrder>): readonly HoldOrder[] {
  let holds: readonly HoldOrder[] = [];
  for (const order of orders) {
    if (order.operation === 'archive hold') holds = [...holds, order];
    if (order.operation === 'archive release') holds = holds.filter((hold) => hold.case !== order.case);
  }
  return holds;
}
