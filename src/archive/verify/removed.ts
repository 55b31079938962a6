/**
 * Segments that are missing. A signed operation may have ordered their removal. Without one, retention may have removed them: they were
 * archived before a given time, and so was every older segment, which is missing too. A lifecycle rule of a bucket deletes what was due
 * on neighbouring days in any order.
 */
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { ArchiveOrder, LineRange } from '../line.ts';
import { holdsAfter } from '../line-ranges.ts';
import type { OperationFacts } from '../parse-line.ts';
import type { Findings } from './findings.ts';
import type { SegmentFacts } from './segment-facts.ts';
import type { LostSegment } from './segments.ts';

/** The next segment that is there was archived at `next`, the oldest that is there and before the missing ones at `oldest`. */
interface Missing extends LostSegment {
  readonly oldest: Micros | undefined;
  next: Micros | undefined;
}

interface Order extends OperationFacts {
  readonly order: ArchiveOrder;
}

const maxDisorder = 3 * 86_400_000_000;

export class RemovedSegments {
  readonly #findings: Findings;
  readonly #before: Micros | undefined;
  readonly #missing: Missing[] = [];
  readonly #orders: Order[] = [];
  #oldest: Micros | undefined;

  /** @param before  undefined: retention removed nothing */
  constructor(findings: Findings, before: Micros | undefined) {
    this.#findings = findings;
    this.#before = before;
  }

  /** The number of lines of missing segments. */
  get lines(): number {
    return this.#missing.reduce((sum, { lines }) => sum + lines.last + 1 - lines.first, 0);
  }

  add(lost: LostSegment): void {
    this.#missing.push({ ...lost, oldest: this.#oldest, next: undefined });
  }

  /**
   * @param before  the number of lines before this segment
   * @returns the time since which the archive is complete, if segments before this one are missing
   */
  next(facts: SegmentFacts, before: number, origin: string): Micros | undefined {
    for (let line = 0; line < facts.lines; line += 1) {
      const other = facts.other(line);
      if (other?.kind !== 'operation' || other.order?.archive !== origin) continue;
      // Nobody can have decided to remove lines that did not exist yet.
      const isEarly = other.order.operation === 'archive prune' && other.order.lines.some(({ last }) => last > before + line);
      if (!isEarly) this.#orders.push({ ...other, order: other.order });
    }
    const { position } = facts;
    if (!position) return undefined;
    this.#oldest = Math.min(this.#oldest ?? Infinity, position.at);
    // The missing ranges after the last segment that exists.
    const latest = this.#missing.slice(this.#missing.findLastIndex(({ next }) => next !== undefined) + 1);
    for (const each of latest) each.next = position.at;
    return latest.length === 0 ? undefined : newestTime(facts, position.at);
  }

  /** Reports the missing segments. Adjacent segments that are missing for the same reason share one finding. */
  finish(): void {
    let last: { severity: 'altered' | 'unproven' | 'note'; first: Missing; reason: string; count: number; end: number } | undefined;
    const report = (): void => {
      if (!last) return;
      const { severity, first, reason, count } = last;
      this.#findings[severity](first.object, count === 1 ? reason : `${reason}; the same for the next ones, ${count} in total`);
    };
    for (const segment of this.#missing) {
      const [severity, reason] = this.#judge(segment);
      if (last?.reason === reason && last.end === segment.lines.first - 1 && severity !== 'altered') {
        last.count += 1;
        last.end = segment.lines.last;
        continue;
      }
      report();
      last = { severity, first: segment, reason, count: 1, end: segment.lines.last };
    }
    report();
  }

  #judge({ lines, oldest, next, message }: Missing): readonly ['altered' | 'unproven' | 'note', string] {
    const isPruned = ({ order }: Order): boolean =>
      order.operation === 'archive prune' && order.lines.some((range) => contains(range, lines));
    const pruned = this.#orders.findIndex(isPruned);
    const held = this.#hold(lines, pruned < 0 ? this.#orders : this.#orders.slice(0, pruned));
    const { seq, at = 0, actor, order } = this.#orders[pruned] ?? {};
    if (order?.operation === 'archive prune') {
      const removed = `operation ${seq} removed it: ${actor ?? 'no actor'}, ${microsToIso(at)}, ${order.reason}`;
      return held === undefined ? ['note', removed] : ['unproven', `${held}, and ${removed}`];
    }
    if (this.#before === undefined || next === undefined || next >= this.#before) return ['altered', message];
    if (held !== undefined) return ['unproven', held];
    if (oldest !== undefined && next - oldest > maxDisorder)
      return ['unproven', 'it is missing although older ones are there, and no operation removed it'];
    return ['note', 'retention removed it, without an operation'];
  }

  /** The reason for which some of these lines are held after these orders; undefined without one. */
  #hold(lines: LineRange, orders: readonly Order[]): string | undefined {
    const hold = holdsAfter(orders.map(({ order }) => order)).find((each) =>
      each.lines.some((range) => range.first <= lines.last && range.last >= lines.first),
    );
    const operation = orders.find(({ order }) => order === hold)?.seq;
    return hold && `it is missing although an operation holds it for the case ${hold.case}: operation ${operation}`;
  }
}

function contains(outer: LineRange, inner: LineRange): boolean {
  return outer.first <= inner.first && inner.last <= outer.last;
}

/** Clocks of collectors and services differ less. A record with a later time has a wrong one. */
export const maxClockDifference = 2 * 86_400_000_000;

/** By the clock of the service. The clock of the collector, which dates position lines, may be behind it. */
function newestTime(facts: SegmentFacts, archivedAt: Micros): Micros {
  let newest = archivedAt;
  for (let line = 0; line < facts.lines; line += 1) {
    const other = facts.other(line);
    // A window whose line is in this segment may have all its records in the missing one.
    const time = other?.kind === 'ledger' ? other.from + 1 : facts.time(line);
    if (time !== undefined && time < archivedAt + maxClockDifference) newest = Math.max(newest, time);
  }
  return newest;
}
