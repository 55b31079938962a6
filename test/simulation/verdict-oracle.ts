/**
 * The expected verdict at a moment, second by second. The oracle knows the service's list of
 * records, the messages that receivers hold, reject and lost, where sinks start by the
 * configuration, when the daemon ran and which history was requested. It reads the state with its
 * own SQL, and shares no code with the program.
 */
import type Database from 'better-sqlite3';
import type { Receiver } from './receiver.ts';
import type { Truth } from './truth.ts';

interface Moment {
  readonly db: Database.Database;
  /** True time, and the time of the service as the daemon estimates it; µs. */
  readonly now: number;
  readonly serverNow: number | undefined;
  /** The period; undefined: from the start of the ledger, until now. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly isRunning: boolean;
  /** The service has not answered for longer than three polls. */
  readonly isSilent: boolean;
}

/** A second of the period that was due and was not read, with the possible reasons. */
interface Missed {
  readonly second: number;
  readonly reasons: readonly string[];
}

export interface Expected {
  readonly complete: boolean;
  readonly soFar: boolean;
  /** No window, and every second of the period is in the future or not due. */
  readonly nothingDue: boolean;
  /** No window, and the state is younger than the measurement of the clock plus a window: CATCHING UP is permitted. */
  readonly isNew: boolean;
  /** Null: no sink lacks anything, but some windows are for none of them. */
  readonly delivered: boolean | null;
  readonly final: boolean;
  readonly gaps: number;
  readonly accepted: number;
  readonly inDoubt: number;
  readonly missed: readonly Missed[];
  /**
   * By sink: the windows it is to get, the windows it lacks, and how many of these have records
   * that the sink lost.
   */
  readonly sinks: ReadonlyMap<
    string,
    { readonly windows: number; readonly lacking: number; readonly lost: number; readonly waits: boolean }
  >;
}

interface Row {
  readonly a: number;
  readonly b: number;
  readonly state: string;
  readonly reason: string | null;
  readonly next: number | null;
  readonly seq: number;
  readonly closed: number;
}

const second = 1_000_000;

export class VerdictOracle {
  readonly #truths: readonly Truth[];
  readonly #receivers: readonly Receiver[];
  readonly #start: number;
  readonly #closeDelay: number;
  readonly #filtered: ReadonlySet<string>;
  /** Requested history, [a, b) in µs, and the time of the request. */
  readonly #requested: { readonly a: number; readonly b: number; readonly asked: number }[] = [];

  readonly #begins: ReadonlyMap<string, number>;
  readonly #created: number;
  /** Times [a, b] of records that a sink may have lost. */
  readonly #losses: { readonly sink: string; readonly a: number; readonly b: number }[] = [];

  /**
   * `start` and `closeDelay` as configured, µs; `filtered`: sinks that get only some records;
   * `begins`: `start` of sinks configured with an instant, µs; `created`: when the state was created.
   */
  constructor(
    truths: readonly Truth[],
    receivers: readonly Receiver[],
    start: number,
    closeDelay: number,
    filtered: ReadonlySet<string>,
    begins: ReadonlyMap<string, number>,
    created: number,
  ) {
    this.#truths = truths;
    this.#receivers = receivers;
    this.#start = start;
    this.#closeDelay = closeDelay;
    this.#filtered = filtered;
    this.#begins = begins;
    this.#created = created;
  }

  /**
   * A sink reports these entries as lost: any record between the first and the last time on their
   * pages may be gone.
   */
  lost(db: Database.Database, sink: string, first: number, last: number): void {
    const pages = db
      .prepare<[number, number], { a: number | null; b: number | null }>(
        'SELECT min(min_us) AS a, max(max_us) AS b FROM segments WHERE seq <= ? AND seq + n > ? AND kind % 256 = 1',
      )
      .get(last, first);
    if (pages && pages.a !== null && pages.b !== null) this.#losses.push({ sink, a: pages.a, b: pages.b });
  }

  requested(a: number, b: number, asked: number): void {
    this.#requested.push({ a, b, asked });
  }

  expect(moment: Moment): Expected {
    const { now, from, to, serverNow = now } = moment;
    const begin = from ?? this.#requested.reduce((least, { a }) => Math.min(least, a), this.#start);
    const end = to ?? now;
    const rows = this.#rows(moment).filter(({ a, b }) => a < end && b > begin);
    // A window is ten seconds to an hour wide; a range is late after twice the close delay and one
    // window.
    const width = this.#closeDelay < 10 * second ? 10 * second : this.#closeDelay > 3_600 * second ? 3_600 * second : this.#closeDelay;
    const due = Math.min(now, serverNow) - this.#closeDelay - this.#closeDelay - width;
    const [first, last] = [Math.floor(begin / second), Math.ceil(end / second)];
    const isRead = new Uint8Array(Math.max(0, last - first));
    for (const { a, b } of rows) isRead.fill(1, Math.max(0, a / second - first), Math.max(0, b / second - first));
    const missed: Missed[] = [];
    let soFar = false;
    for (let i = 0; i < isRead.length; i += 1) {
      const at = first + i;
      if (isRead[i] === 1) continue;
      if ((at + 1) * second > due) soFar = true;
      else missed.push({ second: at, reasons: this.#reasons(at * second, moment) });
    }
    const count = (is: (row: Row) => boolean): number => rows.filter(is).length;
    const [gaps, accepted] = [count(({ state }) => state === 'gap'), count(({ state }) => state === 'accepted')];
    const inDoubt = count(({ state, reason }) => state === 'proven' && reason === 'reread');
    const sinks = this.#sinks(moment, rows, begin, end);
    const isFinal = ({ state, reason, next }: Row): boolean => state === 'proven' && next === null && reason !== 'reread';
    return {
      complete: rows.length > 0 && gaps === 0 && accepted === 0 && inDoubt === 0 && missed.length === 0,
      soFar,
      isNew: rows.length === 0 && moment.isRunning && now - this.#created < 300 * second + width,
      nothingDue: rows.length === 0 && missed.length === 0 && Math.floor(begin / second) * second + second > due,
      delivered: ![...sinks.values()].every(({ lacking, waits }) => lacking === 0 && !waits)
        ? false
        : this.#isForNone(moment, rows)
          ? null
          : true,
      final: rows.length > 0 && rows.every(isFinal) && missed.length === 0 && (to === undefined || !soFar),
      ...{ gaps, accepted, inDoubt, missed, sinks },
    };
  }

  /**
   * Violations of the claim that these windows were delivered: records of the service that the
   * receiver does not hold.
   */
  unheld({ db }: Pick<Moment, 'db'>): string[] {
    const rows = this.#stored(db);
    return this.#receivers.flatMap(({ settings: { id }, has }) => {
      const sink = this.#sink(db, id);
      if (this.#filtered.has(id) || !sink) return [];
      const uids = new Set(has.map(({ uid }) => uid));
      const waits = this.#waiting(db, sink.acknowledged);
      return rows.flatMap((row) => {
        if (row.state !== 'proven' || !this.#owes(row, id, sink.begun) || waits(row) || this.#isLost(row, id)) return [];
        const counted = this.#truths.filter(({ at, visible }) => at >= row.a && at < row.b && visible <= row.closed - 2 * second);
        const lost = counted.filter(({ uid }) => !uids.has(uid) && !this.#isRefused(db, id, uid));
        return lost.length === 0 ? [] : [`${id} lacks ${lost.length} records of the window that begins at ${row.a}`];
      });
    });
  }

  #reasons(at: number, { isRunning, isSilent }: Moment): string[] {
    if (this.#requested.some(({ a, b }) => at >= a && at < b)) return ['history_unread'];
    const begins = this.#requested.reduce((least, { a }) => Math.min(least, a), this.#start);
    if (at < begins) return ['before_ledger'];
    if (at < this.#start) return ['not_requested'];
    if (!isRunning) return ['daemon_stopped'];
    // Just after the service returns, or after one failed answer, either reason is correct.
    return isSilent ? ['source_failing', 'suspended'] : ['source_failing', 'suspended', 'behind'];
  }

  #stored(db: Database.Database): Row[] {
    return db
      .prepare<[], Row>(
        'SELECT from_us AS a, to_us AS b, state, reason, next_us AS next, seq, closed_us AS closed FROM windows ORDER BY from_us',
      )
      .all();
  }

  /** Windows that a suspension lists are in doubt. */
  #rows({ db }: Moment): Row[] {
    const listed = new Set(
      db
        .prepare<[], { at: number }>(
          `SELECT value AS at FROM sources, json_each(json_extract(profile, '$.suspension.windows'))
           UNION SELECT value FROM sources, json_each(json_extract(profile, '$.suspension.shrunk'))`,
        )
        .all()
        .map(({ at }) => at),
    );
    return this.#stored(db).map((row) =>
      listed.has(row.a) && row.state === 'proven' && row.reason === null ? { ...row, reason: 'reread' } : row,
    );
  }

  #sink(db: Database.Database, id: string): { readonly acknowledged: number; readonly begun: number } | undefined {
    return db
      .prepare<[string], { acknowledged: number; begun: number }>('SELECT acknowledged, begun_us AS begun FROM sinks WHERE id = ?')
      .get(id);
  }

  /**
   * A predicate: true if a page after the last acknowledged entry may contain records of the
   * window.
   */
  #waiting(db: Database.Database, acked: number): (row: Pick<Row, 'a' | 'b'>) => boolean {
    const pages = db
      .prepare<[number, number], { first: number; last: number | null }>(
        'SELECT min_us AS first, max_us AS last FROM segments WHERE seq > ? AND kind % 256 = 1 AND seq + n > ? + 1',
      )
      // No page here is longer.
      .all(acked - 1_000, acked);
    return ({ a, b }) => pages.some(({ first, last }) => last !== null && first < b && last >= a);
  }

  /** The period, divided where the obligations of a sink may start or end. */
  #edges(begin: number, end: number, sink: string, begun: number): { readonly a: number; readonly b: number }[] {
    const least = this.#begins.get(sink) ?? begun;
    const cuts = [begin, end, begun, least, ...this.#requested.flatMap(({ a, b }) => [a, b])].filter((at) => at >= begin && at <= end);
    const sorted = [...new Set(cuts)].sort((one, other) => one - other);
    return sorted.slice(1).map((b, i) => ({ a: sorted[i] ?? b, b }));
  }

  /** True for a window after the sink's start, and for history requested after it; never before an instant configured as its start. */
  #owes({ a }: Pick<Row, 'a'>, sink: string, begun: number): boolean {
    if (a < (this.#begins.get(sink) ?? a)) return false;
    const range = this.#requested.find((each) => a >= each.a && a < each.b);
    return range ? range.asked >= begun : a >= begun;
  }

  #isForNone({ db }: Moment, rows: readonly Row[]): boolean {
    const begun = this.#receivers.flatMap(({ settings: { id } }) => {
      const sink = this.#sink(db, id);
      return sink ? [{ id, begun: sink.begun }] : [];
    });
    return rows.some((row) => !begun.some((sink) => this.#owes(row, sink.id, sink.begun)));
  }

  #isLost({ a, b }: Row, sink: string): boolean {
    return this.#losses.some((loss) => loss.sink === sink && loss.a < b && loss.b >= a);
  }

  #isRefused(db: Database.Database, sink: string, uid: string): boolean {
    return this.#letters(db, sink).some((letter) => letter.uid.toString('hex') === uid);
  }

  #letters(db: Database.Database, sink: string): { readonly uid: Buffer; readonly at: number | null }[] {
    return db.prepare<[string], { uid: Buffer; at: number | null }>('SELECT uid, time_us AS at FROM dead_letters WHERE sink = ?').all(sink);
  }

  #sinks({ db }: Moment, rows: readonly Row[], begin: number, end: number): Expected['sinks'] {
    return new Map(
      this.#receivers.flatMap((receiver) => {
        const { id } = receiver.settings;
        const sink = this.#sink(db, id);
        if (!sink) return [];
        const owed = rows.filter((row) => this.#owes(row, id, sink.begun));
        const letters = this.#filtered.has(id) ? [] : this.#letters(db, id);
        // A dead letter must be a message that the receiver rejects.
        if (letters.some(({ uid }) => !receiver.refuses(uid.toString('hex')))) throw new Error(`${id} never rejected its dead letter`);
        const holds = ({ a, b }: Row): boolean => letters.some(({ at }) => at !== null && at >= a && at < b);
        const waits = this.#waiting(db, sink.acknowledged);
        const lacking = owed.filter((row) => waits(row) || holds(row) || this.#isLost(row, id)).length;
        const lost = owed.filter((row) => this.#isLost(row, id)).length;
        // While the period has no window for the sink, pending records mean that the sink is not
        // done.
        const isOwed = (at: number): boolean => this.#owes({ a: at }, id, sink.begun);
        const parts = (owed.length > 0 ? [] : this.#edges(begin, end, id, sink.begun)).filter(({ a }) => isOwed(a));
        return [[id, { windows: owed.length, lacking, lost, waits: parts.some(waits) }] as const];
      }),
    );
  }
}
