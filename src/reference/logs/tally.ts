/**
 * The number of visible records of each minute, for fast counts of wide windows and fast access to
 * late pages. A trigger on `records` updates it.
 */
import type { DataFile } from '../data-file.ts';
import { floorDivide } from '../instant.ts';

/** Nanoseconds since 1970: `from` is in, `until` is not. */
export interface Span {
  readonly from: bigint | undefined;
  readonly until: bigint | undefined;
}

const minute = 60_000_000_000n;
/** Skipping fewer rows is faster than computing the start. */
const fewSkipped = 1000;
/** Rounds towards the past; the division of SQLite rounds towards 0. */
const minuteOf = (at: string): string => `(${at} / ${minute} - (${at} % ${minute} < 0))`;
const schema = `CREATE TABLE IF NOT EXISTS tally (minute INTEGER PRIMARY KEY, records INTEGER NOT NULL) STRICT;
  CREATE TRIGGER IF NOT EXISTS records_tallied AFTER INSERT ON records BEGIN
    INSERT INTO tally VALUES (${minuteOf('new.at')}, 1) ON CONFLICT DO UPDATE SET records = records + 1;
  END`;

export class Tally {
  readonly #data: DataFile;

  /** Requires the table `records`. Counts the records of an older file once. */
  constructor(data: DataFile) {
    this.#data = data;
    data.transaction(() => {
      data.exec(schema);
      const isNew = this.#number('SELECT count(*) FROM tally') === 0;
      if (isNew) data.exec(`INSERT INTO tally SELECT ${minuteOf('at')}, count(*) FROM records GROUP BY 1`);
    });
  }

  count({ from, until }: Span): number {
    const { first, end } = wholeMinutes({ from, until });
    if (first !== undefined && end !== undefined && first >= end) return this.#counted(from, until);
    const before = first === undefined ? 0 : this.#counted(from, first * minute);
    const behind = end === undefined ? 0 : this.#counted(end * minute, until);
    return before + this.#number('SELECT sum(records) FROM tally WHERE minute >= ? AND minute < ?', bounds(first, end)) + behind;
  }

  /** Narrows a span, with a smaller offset for the same record, so that fewer rows are skipped. */
  near(span: Span, offset: number, descending: boolean): { span: Span; offset: number } {
    const { first, end } = wholeMinutes(span);
    if (offset <= fewSkipped || (first !== undefined && end !== undefined && first >= end)) return { span, offset };
    const edge = descending ? end : first;
    const inEdge = edge === undefined ? 0 : descending ? this.#counted(edge * minute, span.until) : this.#counted(span.from, edge * minute);
    const [order, opposite] = descending ? ['DESC', 'ASC'] : ['ASC', 'DESC'];
    const found = this.#data
      .prepared(
        `SELECT minute, skipped FROM
           (SELECT minute, sum(records) OVER (ORDER BY minute ${order}) - records AS skipped FROM tally WHERE minute >= ? AND minute < ?)
         WHERE skipped <= ? ORDER BY minute ${opposite} LIMIT 1`,
      )
      .get([...bounds(first, end), offset - inEdge]) as { minute: number; skipped: number } | undefined;
    // The record is in a partial minute, or the span has no whole minute.
    if (!found) return { span, offset };
    const at = BigInt(found.minute) * minute;
    return { span: descending ? { ...span, until: at + minute } : { ...span, from: at }, offset: offset - inEdge - found.skipped };
  }

  #counted(from: bigint | undefined, until: bigint | undefined): number {
    return this.#number('SELECT count(*) FROM records WHERE at >= ? AND at < ?', [from, until]);
  }

  #number(sql: string, values: unknown[] = []): number {
    return (this.#data.prepared(sql).pluck().get(values) as number | null) ?? 0;
  }
}

/** The whole minutes of the span: from `first`, before `end`. */
function wholeMinutes({ from, until }: Span): { first: bigint | undefined; end: bigint | undefined } {
  return {
    first: from === undefined ? undefined : -floorDivide(-from, minute),
    end: until === undefined ? undefined : floorDivide(until, minute),
  };
}

/** A missing bound becomes one beyond every instant that SQLite can store. */
function bounds(first: bigint | undefined, end: bigint | undefined): [bigint, bigint] {
  const beyond = 2n ** 62n;
  return [first ?? -beyond, end ?? beyond];
}
