/**
 * When others confirmed the lines: time stamps of authorities, and cosignatures of a quorum of witnesses. Whoever writes an archive anew can have its
 * lines dated only now, later than they say that they were archived.
 */
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { Findings } from './findings.ts';
import { maxClockDifference } from './removed.ts';

/** The first `lines` lines existed at this time. */
interface Dated {
  readonly lines: number;
  readonly time: Micros;
}

const minuteUs = 60_000_000;
const hourUs = 60 * minuteUs;
const usualWithinUs = 48 * hourUs;

export class Dates {
  /** When each segment was archived, and the lines up to its end. */
  readonly #segments: { readonly lines: number; readonly at: Micros }[] = [];
  readonly #dated: Dated[] = [];

  addSegment(lines: number, at: Micros): void {
    this.#segments.push({ lines, at });
  }

  add(dated: Dated): void {
    this.#dated.push(dated);
  }

  /** When the newest segment was archived. */
  get archivedAt(): Micros | undefined {
    return this.#segments.at(-1)?.at;
  }

  /** The lines that existed before this time. */
  linesBefore(time: Micros): number {
    return this.#dated.reduce((most, dated) => (dated.time < time ? Math.max(most, dated.lines) : most), 0);
  }

  /**
   * @param most  in µs; default 48 h. A longer time is unproven
   * @param object  of the finding
   * @returns the longest time, in µs, from the archiving of a line to its first date; undefined if no line has one
   */
  within(most = usualWithinUs, object: string, findings: Findings): number | undefined {
    const dated = this.#dated.toSorted((a, b) => a.lines - b.lines);
    if (dated.length === 0) return undefined;
    let [longest, archived, confirmed, first, early] = [0, 0, 0, Infinity, 0];
    let waiting = this.archivedAt ?? 0;
    for (const { lines, at } of this.#segments.toReversed()) {
      for (; (dated.at(-1)?.lines ?? 0) >= lines; dated.pop()) first = Math.min(first, dated.at(-1)?.time ?? first);
      early = Math.max(early, at - first);
      if (first === Infinity) waiting = Math.min(waiting, at);
      else if (first - at > longest) [longest, archived, confirmed] = [first - at, at, first];
    }
    if (early > minuteUs)
      findings[early > maxClockDifference ? 'unproven' : 'note'](
        object,
        `lines were stamped or cosigned ${Math.floor(early / minuteUs)} min before they were archived`,
      );
    if (longest > most)
      findings.unproven(
        object,
        `lines were first stamped or cosigned ${Math.floor(longest / hourUs)} h after they were archived: on ${microsToIso(confirmed)}, and archived on ${microsToIso(archived)} (--stamped-within)`,
      );
    if ((this.archivedAt ?? 0) - waiting > most)
      findings.unproven(
        object,
        `no time stamp or cosignature covers the lines that were archived since ${microsToIso(waiting)} (--stamped-within)`,
      );
    return first === Infinity ? undefined : longest;
  }
}
