/** Checks that consecutive segments contain consecutive entries of the journal, at times that do not fall, and records with their uids. */
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { PositionLine } from '../line.ts';
import type { Findings } from './findings.ts';
import { maxClockDifference } from './removed.ts';
import type { SegmentFacts } from './segment-facts.ts';

export class Order {
  readonly #findings: Findings;
  #position: PositionLine | undefined;
  /** The latest time of a position. */
  #latest: Micros = 0;
  #withoutUid = 0;
  #isFiltered = false;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** The lines of the next segment. */
  add(path: string, facts: SegmentFacts): void {
    const { position } = facts;
    if (!position) {
      this.#findings.altered(path, 'its last line is not a position');
      return;
    }
    const before = this.#position;
    if (before && before.journal !== position.journal)
      this.#findings.unproven(path, `it does not continue the segment before: journal "${position.journal}" follows "${before.journal}"`);
    else if (before && before.seq < position.after)
      this.#findings.unproven(
        path,
        `it does not continue the segment before: an operator left out the entries ${before.seq + 1} to ${position.after} of the journal`,
      );
    else if (before && before.seq !== position.after)
      this.#findings.altered(
        path,
        `it does not continue the segment before: that one ends with entry ${before.seq} of the journal, and it begins after ${position.after}`,
      );
    let last = position.after;
    for (let line = 0; line < facts.lines; line += 1) {
      const seq = facts.seq(line);
      if (seq < last || (seq === last && facts.other(line)?.kind !== 'position'))
        this.#findings.altered(path, `entry ${seq} follows entry ${last}`);
      last = seq;
    }
    this.#position = position;
    this.#addTimes(path, position, facts.received);
    this.#addContent(path, facts.content);
  }

  /** Clocks are set, and differ: only more than two days leave something open. */
  #addTimes(path: string, { at, filtered }: PositionLine, received: Micros | undefined): void {
    const fall = this.#latest - at;
    if (fall > 0)
      this.#findings[fall > maxClockDifference ? 'unproven' : 'note'](
        path,
        `a segment before it was archived later: it was archived on ${microsToIso(at)}, and the other one on ${microsToIso(this.#latest)}`,
      );
    this.#latest = Math.max(this.#latest, at);
    if (received !== undefined && received > at + maxClockDifference)
      this.#findings.unproven(
        path,
        `a record in it was received later: on ${microsToIso(received)}, and it was archived on ${microsToIso(at)}`,
      );
    if (filtered && !this.#isFiltered) this.#findings.note(path, 'since then a filter of the sink leaves out records');
    this.#isFiltered = filtered;
  }

  #addContent(path: string, { forged, repeated, withoutUid }: SegmentFacts['content']): void {
    const lines = ({ first, count }: { readonly first: number; readonly count: number }): string =>
      `line ${first}${count === 1 ? '' : ` and ${count - 1} more`}`;
    if (forged.count > 0) this.#findings.altered(path, `${lines(forged)}: the uid is not that of the record`);
    if (repeated.count > 0) this.#findings.noteFile(path, `${lines(repeated)}: the record has a key twice, and the last one counts`);
    this.#withoutUid += withoutUid;
  }

  finish(): void {
    if (this.#withoutUid > 0)
      this.#findings.note(
        'segments/',
        `${this.#withoutUid} records have no logId, or fields of another type: their uids were not computed again`,
      );
  }

  /** Lines of the log are lost. */
  lacksLines(): void {
    this.#position = undefined;
  }
}
