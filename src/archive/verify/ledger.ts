/**
 * Checks the archived ledger against the archived records: a proven window has as many records
 * before its line as the line states, with the digest that it states.
 */
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import { uidBytes } from '../entry.ts';
import type { PositionLine } from '../line.ts';
import { sha256 } from '../merkle.ts';
import type { LedgerFacts } from '../parse-line.ts';
import type { Turns } from './turns.ts';
import type { Findings } from './findings.ts';
import { RecordIndex, rowBytes } from './record-index.ts';
import type { SegmentFacts } from './segment-facts.ts';

interface Period {
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
}

/** Counts for one source. */
export interface SourceWindows {
  readonly source: string;
  /** Those that were checked. */
  readonly windows: number;
  /** Those that their last line proves. */
  readonly proven: number;
  /** Of the proven windows: their records, and SHA-256 in hexadecimal over a line for each: `<from> <to> <records> <digest>`, times in µs. */
  readonly records: number;
  readonly digest: string;
  /** More windows, which may lack records of missing segments. */
  readonly notChecked: number;
  readonly from: Micros;
  /** Undefined: no window was checked. */
  readonly to: Micros | undefined;
}

/** The last line of a window, and the reason why it is not proven. */
interface Verdict {
  readonly line: LedgerFacts;
  readonly open: string | undefined;
  /** The records contradict the line. */
  readonly isAltered: boolean;
  /** Records that repeat another one of the window. */
  readonly repeated: number;
  /** `countAround` of the record index at the last count: an equal number means that the result of the count still holds. */
  readonly around: number;
}

export class LedgerCheck implements Disposable {
  readonly #findings: Findings;
  readonly #period: Period;
  readonly #turns: Turns;
  #beginsAt = -Infinity;
  readonly #records = new RecordIndex();
  /** By source, then by the start of the window. */
  readonly #windows = new Map<string, Map<Micros, Verdict>>();
  /** Every source of the archive. */
  readonly #sources = new Set<string>();
  /** Windows that start before `#beginsAt`, by source. */
  readonly #skipped = new Map<string, Set<Micros>>();
  /** Lines that prove a window and do not state what the service was asked, or how many records it counted. */
  #unstated = 0;
  /**
   * The position lines at which the sink's `sources` changed. The first is the line since which no entry of the present journal
   * is missing.
   */
  #selections: PositionLine[] = [];
  /** The sequence number of the last position line. */
  #through = 0;
  #isFiltered = false;
  #lacksLines = false;

  constructor(findings: Findings, period: Period, turns: Turns) {
    this.#findings = findings;
    this.#period = period;
    this.#turns = turns;
  }

  /** The lines of the next segment. */
  async add(facts: SegmentFacts): Promise<void> {
    const { position } = facts;
    if (position) {
      const before = this.#selections.at(-1);
      const isContinued = before?.journal === position.journal && this.#through === position.after;
      if (!isContinued) this.#selections = [position];
      else if (JSON.stringify(before.sources) !== JSON.stringify(position.sources)) this.#selections.push(position);
      this.#through = position.seq;
      this.#isFiltered ||= position.filtered;
    }
    for (let line = 0; line < facts.lines; line += 1) {
      const other = facts.other(line);
      const time = facts.time(line);
      if (other === undefined || other.kind === 'ledger') this.#sources.add(other?.source ?? facts.source(line));
      if (other === undefined && time !== undefined) this.#records.add(facts.source(line), time, facts.uids, line * uidBytes);
      if (other?.kind === 'ledger' && other.from < other.to) await this.#checkInPeriod(other);
    }
  }

  /** Lines before are missing: windows that start earlier are not checked. The clock may have been set back since the last call. */
  beginAt(at: Micros): void {
    this.#beginsAt = Math.max(this.#beginsAt, at);
    this.#selections = [];
  }

  /**
   * Lines of the log are lost: a window that lacks records is then not reported as a contradiction.
   */
  lacksLines(): void {
    this.#lacksLines = true;
  }

  finish(): readonly SourceWindows[] {
    const sources = [...new Set([...this.#windows.keys(), ...this.#skipped.keys()])].sort();
    const summaries = sources.map((source) => this.#summarize(source, [...(this.#windows.get(source)?.values() ?? [])]));
    const notChecked = summaries.reduce((sum, each) => sum + each.notChecked, 0);
    if (notChecked > 0)
      this.#findings.note(
        'ledger',
        `windows not checked, because records of them may be in missing segments: ${notChecked}, all before ${microsToIso(this.#beginsAt)}`,
      );
    if (this.#period.from === undefined && this.#period.to === undefined && notChecked === 0) this.#noteRecordsOutside();
    const verdicts = [...this.#windows.values()].flatMap((windows) => [...windows.values()]);
    const repeated = verdicts.reduce((sum, each) => sum + each.repeated, 0);
    if (repeated > 0) this.#findings.note('ledger', `${repeated} records in windows are copies of earlier records, and count once`);
    if (this.#unstated > 0)
      this.#findings.note('ledger', `${this.#unstated} lines prove a window without the query and the total of the service`);
    if (this.#period.from !== undefined || this.#period.to !== undefined) this.#reportSourcesWithoutWindows();
    for (const windows of this.#windows.values())
      for (const { line, open } of windows.values()) if (open !== undefined) this.#findings.unproven(nameOf(line), open);
    return summaries;
  }

  [Symbol.dispose](): void {
    this.#records[Symbol.dispose]();
  }

  async #checkInPeriod(line: LedgerFacts): Promise<void> {
    if (line.to <= (this.#period.from ?? -Infinity) || line.from >= (this.#period.to ?? Infinity)) return;
    if (line.from >= this.#beginsAt) return this.#check(line);
    const skipped = this.#skipped.get(line.source) ?? new Set();
    this.#skipped.set(line.source, skipped.add(line.from));
  }

  /** In the period that the caller gave. */
  #reportSourcesWithoutWindows(): void {
    const silent = [...this.#sources].filter((source) => !this.#windows.has(source)).sort();
    for (const source of silent) this.#findings.unproven(source, 'no window lies in the period');
    if (this.#sources.size === 0) this.#findings.unproven('ledger', 'no window lies in the period');
  }

  async #check(line: LedgerFacts): Promise<void> {
    const windows = this.#windows.get(line.source) ?? new Map<Micros, Verdict>();
    this.#windows.set(line.source, windows);
    const around = this.#records.countAround(line.source, line.from, line.to);
    if (this.#turns.isDue(around * rowBytes)) await this.#turns.next();
    const before = windows.get(line.from);
    const isCounted = before?.open === undefined && before?.around === around && isSameProof(before.line, line);
    const open = openReason(line);
    const counted = isCounted ? before : open === undefined ? await this.#count(line) : { open, isAltered: false, repeated: 0 };
    const isAltered = counted.isAltered || (open === undefined && this.#contradictsQuery(line));
    windows.set(line.from, { line, around, open: open ?? counted.open, isAltered, repeated: counted.repeated });
  }

  /** Reports a line that proves more than the service was asked, or counted. */
  #contradictsQuery(line: LedgerFacts): boolean {
    const { total, query, records, from, to } = line;
    if (total === undefined || query === undefined) this.#unstated += 1;
    const isSmall = total !== undefined && total < records;
    const isNarrow = query !== undefined && (query.startTime > from || query.endTime < to);
    const reason = isSmall ? `it proves ${records} records, and the service counted ${total}` : 'its query does not span the window';
    if (isSmall || isNarrow) this.#findings.altered(nameOf(line), `its line proves more than the service was asked, or counted: ${reason}`);
    return isSmall || isNarrow;
  }

  async #count(line: LedgerFacts): Promise<Pick<Verdict, 'open' | 'isAltered' | 'repeated'>> {
    const { uids, repeated } = await this.#records.uidsIn(line.source, line.from, line.to, this.#turns);
    const count = uids.length / uidBytes;
    const left = (open: string | undefined): Pick<Verdict, 'open' | 'isAltered' | 'repeated'> => ({ open, isAltered: false, repeated });
    if (count > line.records)
      return left(`the service withdrew records: the archive has ${count}, and the service counted ${line.records}`);
    if (count === line.records && sha256(uids).toString('hex') === line.digest) return left(undefined);
    const missing = count < line.records ? `: ${line.records - count} of ${line.records} are missing` : '';
    const reason = `its records differ from its proof${missing}`;
    const excuse = this.#excuse(line);
    if (excuse !== undefined) return left(`${reason}: ${excuse}`);
    this.#findings.altered(nameOf(line), reason);
    return { open: undefined, isAltered: true, repeated };
  }

  /** The permitted reason why records are missing; undefined without one. */
  #excuse({ source, from }: LedgerFacts): string | undefined {
    if (this.#lacksLines) return 'lines of the archive are lost';
    if (this.#isFiltered) return 'the filter of the sink excluded records';
    const excluded = this.#selections.findLastIndex(({ sources }) => sources !== null && !sources.includes(source));
    const begin = this.#selections[excluded + 1];
    return begin && begin.after > 0 && from < begin.completeSince
      ? `the archive has every record of the source since ${microsToIso(begin.completeSince)}, after entry ${begin.after} of the journal`
      : undefined;
  }

  /** Also reports the times and records that no window covers. */
  #summarize(source: string, verdicts: readonly Verdict[]): SourceWindows {
    const lines = verdicts.map(({ line }) => line).sort((a, b) => a.from - b.from);
    const isPeriod = this.#period.from !== undefined || this.#period.to !== undefined;
    let covered = this.#period.from ?? lines[0]?.from ?? 0;
    const end = this.#period.to ?? 0;
    for (const window of lines.length === 0 ? [] : [...lines, { from: end, to: end }]) {
      if (window.from > covered) {
        const object = `${source} ${microsToIso(covered)}/${microsToIso(window.from)}`;
        this.#findings[isPeriod ? 'unproven' : 'note'](object, 'no window covers this time');
      }
      covered = Math.max(covered, window.to);
    }
    const skipped = this.#skipped.get(source) ?? new Set<Micros>();
    const proven = verdicts.filter(({ open, isAltered }) => open === undefined && !isAltered).map(({ line }) => line);
    const texts = proven.sort((a, b) => a.from - b.from).map(({ from, to, records, digest }) => `${from} ${to} ${records} ${digest}\n`);
    return {
      source,
      windows: lines.length,
      proven: proven.length,
      records: proven.reduce((sum, line) => sum + line.records, 0),
      digest: sha256(Buffer.from(texts.join(''))).toString('hex'),
      notChecked: [...skipped].filter((from) => this.#windows.get(source)?.has(from) !== true).length,
      from: lines[0]?.from ?? Math.min(...skipped),
      to: lines.length === 0 ? undefined : lines.reduce((latest, line) => Math.max(latest, line.to), 0),
    };
  }

  /** A record of the newest windows lies in none until they are closed. */
  #noteRecordsOutside(): void {
    for (const source of [...this.#sources].sort()) {
      const windows = [...(this.#windows.get(source)?.values() ?? [])].map(({ line }) => line).sort((a, b) => a.from - b.from);
      const outside = this.#records.countOutside(source, windows);
      if (outside > 0) this.#findings.note(source, `no window covers the times of ${outside} records`);
    }
  }
}

function isSameProof(a: LedgerFacts, b: LedgerFacts): boolean {
  return a.to === b.to && a.records === b.records && a.digest === b.digest && b.state === 'proven';
}

function openReason({ state, reason }: LedgerFacts): string | undefined {
  if (state === 'accepted') return 'an operator accepted the window without a proof';
  if (state !== 'proven') return `it is a gap${reason === null ? '' : ` (${reason})`}`;
  return reason === null ? undefined : `a later count did not confirm its proof (${reason})`;
}

function nameOf({ source, from, to }: LedgerFacts): string {
  return `${source} ${microsToIso(from)}/${microsToIso(to)}`;
}
