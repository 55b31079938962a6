/** The lines of an archive that a replay skipped, because their segments were missing. Pure. */
import { skippedLines, type ArchiveReplay, type LineRange } from '../model/journal.ts';

/** The state is written with each batch: a replay looks again for this many ranges of lines, the longest ones. */
const maxRanges = 256;
/** At most this many ranges are stored, including ranges not yet checked again since the archive was opened. */
const maxStored = 4 * maxRanges;

/** Up to where a replay from an archive is, and what it skipped. */
export type Reached = Pick<ArchiveReplay, 'at' | 'skipped' | 'abandoned'>;

/**
 * The lines after `read.after`, up to `read.through`, were read.
 * @param missing  lines without a segment, also some that follow `read.through`
 */
export function reached({ at, skipped = [], abandoned = 0 }: Reached, read: LineRange, missing: readonly LineRange[]): Reached {
  const others = skipped.flatMap(({ after, through }) => [
    { after, through: Math.min(through, read.after) },
    { after: Math.max(after, read.through), through },
  ]);
  const ranges = merged([...others, ...missing.filter(({ after }) => after < read.through)]);
  const looked = ranges.filter(({ through }) => through <= read.through);
  const dropped = new Set([...shortestBeyond(looked, maxRanges), ...shortestBeyond(ranges, maxStored)]);
  return {
    at: Math.max(at, read.through),
    skipped: ranges.filter((range) => !dropped.has(range)),
    abandoned: skippedLines({ skipped: [...dropped], abandoned }),
  };
}

/** @returns as many of the shortest ranges as there are beyond `max` */
function shortestBeyond(ranges: readonly LineRange[], max: number): readonly LineRange[] {
  return ranges.toSorted((a, b) => countOf(a) - countOf(b)).slice(0, Math.max(0, ranges.length - max));
}

/** Ascending, and adjacent ranges as one. */
export function merged(ranges: readonly LineRange[]): readonly LineRange[] {
  const all: LineRange[] = [];
  for (const range of ranges.filter((each) => countOf(each) > 0).sort((a, b) => a.after - b.after)) {
    const last = all.at(-1);
    if (last && range.after <= last.through) all[all.length - 1] = { after: last.after, through: Math.max(last.through, range.through) };
    else all.push(range);
  }
  return all;
}

function countOf({ after, through }: LineRange): number {
  return through - after;
}
