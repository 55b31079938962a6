/**
 * Segments that the retention of an archive removed: those with lines archived before a given time. The
 * next segment that is there shows the time. A bucket may remove them in any order.
 */
import type { Micros } from '../../model/time.ts';
import type { Findings } from './findings.ts';
import type { SegmentFacts } from './segment-facts.ts';
import type { LostSegment } from './segments.ts';

export class RemovedSegments {
  readonly #findings: Findings;
  readonly #before: Micros | undefined;
  #absent: LostSegment[] = [];

  /** @param before  undefined: no segment may be missing */
  constructor(findings: Findings, before: Micros | undefined) {
    this.#findings = findings;
    this.#before = before;
  }

  /** @returns false if this segment must exist; true if the segments after it decide whether it may be missing */
  add(lost: LostSegment): boolean {
    if (this.#before === undefined || !lost.isAbsent) return false;
    this.#absent.push(lost);
    return true;
  }

  /** @returns the time since which the archive is complete, if segments before this one were removed */
  next(facts: SegmentFacts): Micros | undefined {
    const { position } = facts;
    const [first] = this.#absent;
    if (!first || !position) return undefined;
    if (this.#before === undefined || position.at >= this.#before) this.finish();
    else this.#findings.note(first.object, `retention removed this segment and the next ones, ${this.#absent.length} in total`);
    this.#absent = [];
    return newestTime(facts, position.at);
  }

  /** Reports the absent segments: no later segment shows that they were old enough to be removed. */
  finish(): void {
    for (const { object, message } of this.#absent) this.#findings.altered(object, message);
  }
}

/** Clocks of collectors and services differ less. A record with a later time has a wrong one. */
const maxClockDifference = 2 * 86_400_000_000;

/** By the clock of the service. The clock of the collector, which dates position lines, may be behind it. */
function newestTime(facts: SegmentFacts, archivedAt: Micros): Micros {
  let newest = archivedAt;
  for (let line = 0; line < facts.lines; line += 1) {
    const other = facts.other(line);
    const time = other?.kind === 'ledger' ? other.from : facts.time(line);
    if (time !== undefined && time < archivedAt + maxClockDifference) newest = Math.max(newest, time);
  }
  return newest;
}
