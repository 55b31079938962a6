/** Checks that consecutive segments contain consecutive entries of the journal. */
import type { PositionLine } from '../line.ts';
import type { Findings } from './findings.ts';
import type { SegmentFacts } from './segment-facts.ts';

export class Order {
  readonly #findings: Findings;
  #position: PositionLine | undefined;

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
      this.#findings.unproven(path, `journal "${position.journal}" follows "${before.journal}"`);
    else if (before && before.seq < position.after)
      this.#findings.unproven(
        path,
        `the archive lacks the entries ${before.seq + 1} to ${position.after} of the journal: an operator continued it without them`,
      );
    else if (before && before.seq !== position.after)
      this.#findings.altered(
        path,
        `it continues after entry ${position.after} of the journal, and the segment before ends with ${before.seq}`,
      );
    let last = position.after;
    for (let line = 0; line < facts.lines; line += 1) {
      const seq = facts.seq(line);
      if (seq < last || (seq === last && facts.other(line)?.kind !== 'position'))
        this.#findings.altered(path, `entry ${seq} follows entry ${last}`);
      last = seq;
    }
    this.#position = position;
  }

  /** Lines of the log are lost. */
  lacksLines(): void {
    this.#position = undefined;
  }
}
