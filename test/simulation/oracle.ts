/**
 * The properties that must hold. The oracle trusts only the list of records and the contents of the
 * receivers; it reads the state file with its own SQL after every commit. It shares no code with
 * the program. docs/testing.md names the properties.
 */
import { createHash } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';
import type Database from 'better-sqlite3';
import type { Window } from '../../src/model/ledger.ts';
import type { PageRequest, WindowQuery } from '../../src/model/source.ts';
import { faultsOf, seenFaults, tilingFaults } from '../support/journal/recompute.ts';
import { firstSource } from './environment.ts';
import type { Environment } from './environment.ts';
import type { Receiver } from './receiver.ts';
import type { Service } from './service.ts';
import type { Sometimes } from './sometimes.ts';
import type { Truth } from './truth.ts';
import type { World } from './world.ts';

interface Marks {
  readonly seq: number;
  readonly number: number;
  readonly pruned: number;
  readonly epoch: number;
}

interface SourceRow {
  readonly n: number;
  readonly frontier: number;
  readonly polledUntil: number;
  readonly collected: number;
  readonly late: number;
  readonly from: number;
  readonly closedUntil: number;
  readonly uidsKeptSince: number;
  /** active | suspended | unconfigured | retired */
  readonly state: string;
  /** 1 while suspended, also while the source is unconfigured. */
  readonly isSuspended: number;
  /** The start times of the windows that a suspension lists, as JSON. */
  readonly held: string | null;
  /** The start times of the other windows that showed fewer records, as JSON. */
  readonly shrunk: string | null;
  /** The reason of a suspension, and its message. */
  readonly reason: string | null;
  readonly message: string | null;
  /** The sentence on a record outside of every window. */
  readonly outside: string | null;
  /** 1 if the first answers had totals that count their page: no total is used until the next calibration, a week later. */
  readonly hasWrongTotal: number | null;
  /** The start time of the query that replaces the one without times. */
  readonly unboundedFrom: string | null;
  /** The stored statistics of the fields in records, as JSON. */
  readonly fields: string | null;
}

/** A range of history, as the file stores it. */
interface RangeRow {
  readonly from: number;
  readonly to: number;
  readonly closedUntil: number;
  readonly uidsKeptSince: number;
  readonly isPaused: number;
  /** The ids of the sinks that receive it, as JSON; null: all. */
  readonly sinks: string | null;
}

/** A range, with the time at which the oracle first saw it. */
interface History extends Omit<RangeRow, 'isPaused' | 'sinks'> {
  readonly isPaused: boolean;
  readonly isDone: boolean;
  readonly sinks: readonly string[] | undefined;
  /** True time of its first commit. */
  readonly added: number;
}

interface SegmentRow {
  /** The id of its source; null: an entry on the daemon. */
  readonly source: string | null;
  readonly seq: number;
  readonly n: number;
  readonly kind: number;
  readonly flags: Buffer;
  readonly uids: Buffer;
  /** Of a ledger entry: its period, and its text, compressed if the second byte of `kind` is 1. */
  readonly from: number | null;
  readonly to: number | null;
  readonly body: Buffer | null;
}

/** A ledger entry of the journal. */
interface LedgerEntry {
  /** 32 hex digits. */
  readonly uid: string;
  readonly from: number;
  readonly text: string;
}

interface WindowRow {
  readonly from: number;
  readonly to: number;
  readonly query: string;
  readonly state: string;
  readonly total: number | null;
  readonly records: number;
  readonly received: number;
  readonly digest: Buffer | null;
  readonly proof: string | null;
  readonly next: number | null;
  readonly reason: string | null;
  readonly recounts: number;
  readonly seq: number;
}

interface SinkRow {
  readonly id: string;
  readonly state: string;
  readonly acknowledged: number;
  readonly delivered: number;
  /** The number of unfinished ones. */
  readonly replays: number;
}

const second = 1_000_000;
/** The flag of a late record in a segment. */
const flagLate = 1;

/** One oracle per source. It trusts other oracles only for the entries of their sources. */
export class Oracle {
  /** The violations, one line each. */
  readonly faults: string[] = [];
  /** The windows of the ledger by start time, in order. */
  readonly windows = new Map<number, WindowRow>();
  readonly #world: World;
  readonly #environment: Environment;
  readonly #service: Service;
  readonly #receivers: readonly Receiver[];
  readonly #sometimes: Sometimes;
  readonly #byUid = new Map<string, Truth>();
  /** Pairs of records with the same identity. */
  readonly #twins: (readonly [Truth, Truth])[] = [];
  /** The uids of other sources, and the entries of other sources. */
  readonly #foreignUids: ReadonlySet<string>;
  readonly #foreign = new Set<number>();
  readonly #id: string;
  /** The record of each entry; undefined: a ledger entry, or an entry of another source. */
  readonly #entries: (Truth | undefined)[] = [undefined];
  /** Ledger entries by sequence number. */
  readonly #ledger = new Map<number, LedgerEntry>();
  readonly #stored = new Set<string>();
  #marks: Marks = { seq: 0, number: 0, pruned: 0, epoch: 0 };
  #source: SourceRow | undefined;
  #sinks = new Map<string, SinkRow>();
  #late = 0;
  /** By the start of a gap: the highest count or number of records received for it. */
  readonly #most = new Map<number, number>();
  /**
   * Ranges of history by start time, the requested windows, and the starts of ranges that may be
   * cut off.
   */
  readonly #history = new Map<number, History>();
  readonly #asked: Window[] = [];
  readonly #cut = new Set<number>();
  /** The last request to the service was for a window of history. */
  isReadingHistory = false;
  /** The settings of the current life. */
  settings: { readonly closeDelayMs: number; readonly pollMs: number; readonly retired: string | undefined; readonly isAbsent: boolean };
  /** The previous life had no source. */
  #isBack = false;
  /** Pruning has kept a segment that only an unconfigured sink still needed. */
  #hasHeldPruning = false;
  /** Pruning has removed entries that a retired sink had not received. */
  #hasPassed = false;
  /** The last message of a suspension for the filter, and the last sentence on a record outside of every window. */
  #zoneMessage = '';
  #outside: string | undefined;
  /** True time at which the last poll since the start of the daemon began. */
  #polledAt: number | undefined;
  /** When polling started after other requests, and when other requests started again. */
  #polls: { readonly began: number; ended: number | undefined } = { began: 0, ended: 0 };
  #overdue = 0;
  #silentSince: number | undefined;
  #statements = new WeakMap<Database.Database, ReturnType<typeof prepare>>();

  /** @param source  its id, and the uids of all other sources */
  constructor(
    world: World,
    environment: Environment,
    service: Service,
    receivers: readonly Receiver[],
    sometimes: Sometimes,
    source: { readonly id: string; readonly foreignUids: ReadonlySet<string> },
  ) {
    this.#world = world;
    this.#id = source.id;
    this.#foreignUids = source.foreignUids;
    this.#environment = environment;
    this.#service = service;
    this.#receivers = receivers;
    this.#sometimes = sometimes;
    this.settings = { ...environment.daemon, retired: undefined, isAbsent: false };
    for (const truth of service.truths) {
      const other = this.#byUid.get(truth.uid);
      if (other) this.#twins.push([other, truth]);
      else this.#byUid.set(truth.uid, truth);
    }
  }

  get head(): number {
    return this.#marks.seq;
  }

  get source(): SourceRow | undefined {
    return this.#source;
  }

  sink(id: string): SinkRow | undefined {
    return this.#sinks.get(id);
  }

  fault(message: string): void {
    const named = this.#isFirst ? message : `${this.#id}: ${message}`;
    this.#world.note(`fault: ${named}`);
    if (this.faults.length < 20) this.faults.push(named);
  }

  get #isFirst(): boolean {
    return this.#id === firstSource;
  }

  /** After every commit: checks all properties of the new state. */
  readonly committed = (db: Database.Database): void => {
    let read = this.#statements.get(db);
    if (!read) this.#statements.set(db, (read = prepare(db, this.#id)));
    const marks = read.progress.get();
    if (!marks) return;
    const before = this.#marks;
    // A page that exceeds the quota ends a pass too. The pass then restarts, and the window may not
    // be proven before its end.
    if (this.#environment.daemon.quotaPages === undefined) for (const query of this.#service.asked.unread.keys()) this.#ranToItsEnd(query);
    for (const key of ['seq', 'number', 'pruned', 'epoch'] as const) {
      if (marks[key] < before[key]) this.fault(`${key} went back from ${before[key]} to ${marks[key]}`);
    }
    this.#marks = marks;
    const source = read.source.get();
    let isLedger = false;
    if (marks.seq > before.seq) isLedger = this.#newEntries(read.segments.all(before.seq), source);
    if (isLedger && source) this.#newWindows(read.windows.all(source.n, before.seq), source);
    if (source) this.#newMarks(source, isLedger);
    if (source) this.#newState(source);
    if (source && this.#environment.history) this.#newRanges(db.prepare<[number], RangeRow>(rangesSql).all(source.n), source);
    for (const sink of read.sinks.iterate()) {
      if (marks.pruned > before.pruned) this.#newlyPruned(sink, marks.pruned);
      this.#newAcknowledgement(sink, read.deadLetter);
    }
    if (marks.seq !== before.seq && this.#isFirst) this.#world.note(`head ${marks.seq}`);
  };

  /**
   * After pruning: no segment old enough to prune remains that every sink has acknowledged, and
   * segments that only an unconfigured sink still needs remain.
   */
  readonly afterPruning = (db: Database.Database, before: number): void => {
    const { state } = this.#source ?? {};
    if (this.settings.isAbsent && state !== 'unconfigured' && state !== 'retired')
      this.fault(`a removed source has the state ${state ?? 'unknown'}`);
    const oldest = (behind: string, upTo: string): number | undefined =>
      db
        .prepare<[number], { seq: number }>(
          `SELECT seq FROM segments WHERE received_us < ? AND seq + n - 1 > (${behind}) AND seq + n - 1 <= (${upTo}) ORDER BY seq LIMIT 1`,
        )
        .get(before)?.seq;
    const least = (states: string): string => `SELECT min(acknowledged) FROM sinks WHERE state IN (${states})`;
    const useless = oldest('SELECT 0', least("'active', 'blocked', 'unconfigured'"));
    if (useless !== undefined) this.fault(`P8: entry ${useless} is not pruned although no sink needs it`);
    if (this.#hasHeldPruning || !this.#environment.changes) return;
    this.#hasHeldPruning = oldest(least("'unconfigured'"), least("'active', 'blocked'")) !== undefined;
    if (this.#hasHeldPruning) this.#sometimes.count('unconfigured sink blocks pruning');
  };

  /**
   * Nothing is pruned that a sink still needs, configured or not. A retired sink needs nothing.
   */
  #newlyPruned({ id, state, acknowledged: acked }: SinkRow, pruned: number): void {
    if (pruned <= acked) return;
    if (state !== 'retired') this.fault(`pruned up to ${pruned}, ${id} (${state}) is acknowledged up to ${acked}`);
    else if (!this.#hasPassed) {
      this.#hasPassed = true;
      this.#sometimes.count('pruned past a retired sink');
    }
  }

  /** Another life of the daemon starts, with these settings. */
  begins(settings: Oracle['settings']): void {
    this.#isBack = this.settings.isAbsent && !settings.isAbsent;
    this.settings = settings;
    this.#polledAt = undefined;
    this.#polls = { began: 0, ended: 0 };
    this.#overdue = 0;
    this.isReadingHistory = false;
  }

  /** Before each request to the service: new records go before history. */
  readonly asks = ({ query, page, pageSize }: PageRequest): void => {
    const { state } = this.#source ?? {};
    if (this.settings.isAbsent) this.fault('a request to a source that is not configured');
    else if (state === 'unconfigured' || state === 'retired') this.fault(`a request to a source that is ${state}`);
    else if (this.#isBack) this.#sometimes.count('source removed and restored');
    this.#isBack = false;
    if (!this.#environment.history) return;
    const { firstPage } = this.#environment.service;
    const isPoll = query.endTime === undefined && query.startTime !== undefined;
    if (isPoll && page === firstPage) this.#polledAt = this.#world.ms;
    if (!isPoll) this.#polls.ended ??= this.#world.ms;
    else if (this.#polls.ended !== undefined) this.#polls = { began: this.#world.ms, ended: undefined };
    const begin = query.endTime === undefined ? Infinity : Date.parse(`${query.startTime ?? ''}Z`) * 1_000 + second;
    this.isReadingHistory = this.#rangeOf(begin) !== undefined;
    // A poll limited to 20 pages continues differently.
    if (!this.isReadingHistory || pageSize === 1 || this.#polledAt === undefined || this.#service.truths.length >= 20 * 7) return;
    // Polls that take longer than `pollInterval` leave windows as much time as they take, else no
    // window would ever be proven.
    const { began, ended = began } = this.#polls;
    const due = Math.max(this.#polledAt + this.settings.pollMs, ended + Math.min(ended - began, 60_000));
    const late = this.#world.ms - due;
    // After the pause that follows a pass, the next pass may start although a poll is due; its
    // second page may not.
    this.#overdue = late > 1 ? this.#overdue + 1 : 0;
    if (this.#overdue > 1) this.fault(`history is read although a poll has been due for ${late} ms`);
  };

  history(): History[] {
    return [...this.#history.values()];
  }

  /** An operator requests a range of history. */
  mayAdd(window: Window): void {
    this.#asked.push(window);
  }

  /** An operator cuts a range of history off. */
  mayCut(from: number): void {
    this.#cut.add(from);
  }

  /** After the daemon has confirmed a request: the ledger must contain every part of the range. */
  covers({ from, to: until }: Window): void {
    let at = from;
    for (const range of this.history().sort((a, b) => a.from - b.from)) if (range.from <= at) at = Math.max(at, range.to);
    if (at < Math.min(until, this.#source?.from ?? 0)) this.fault(`history from ${from} was added, but no range starts at ${at}`);
  }

  /**
   * At the end of a run, with nothing in progress: uids, chain and windows of the whole file, and the
   * contents of the receivers.
   */
  finish(db: Database.Database): void {
    if (this.#isFirst) {
      for (const message of faultsOf(db)) this.fault(message);
      for (const message of tilingFaults(db)) this.fault(message);
    }
    // The uid of a pruned record is known but in no segment; a forgotten uid is in a segment but
    // not known.
    for (const message of seenFaults(db)) {
      if (this.#foreignUids.has(message.slice(0, 32))) continue;
      const truth = this.#byUid.get(message.slice(0, 32));
      const mayBeForgotten = truth?.time === undefined || truth.time < this.#rememberedAt(truth.time);
      if (message.endsWith('is not known') && !mayBeForgotten) this.fault(message);
      if (message.endsWith('appended twice')) this.fault(message);
      if (message.endsWith('was not appended') && !(truth && this.#stored.has(truth.uid))) this.fault(message);
    }
    for (const message of [...this.uncollected(), ...this.undelivered()]) this.fault(`L: ${message}`);
    for (const receiver of this.#receivers) this.#holdings(receiver);
    this.#ledgerOfTruth();
    this.#countedSinceMove(db);
    this.#countLate();
  }

  /** P10: each window that counts as proven was counted at the present host. */
  #countedSinceMove(db: Database.Database): void {
    const isMove = ({ text }: LedgerEntry): boolean => text.includes('"operation":"sources move"');
    const moved = Math.max(0, ...[...this.#ledger].filter(([, entry]) => isMove(entry)).map(([seq]) => seq));
    if (moved === 0) return;
    const rows = db
      .prepare<[string], { from: number; seq: number }>(
        `SELECT from_us AS "from", seq FROM windows JOIN sources ON source_no = source
         WHERE id = ? AND windows.state = 'proven' AND reason IS NULL`,
      )
      .all(this.#id);
    for (const { from, seq } of rows) {
      if (seq < moved) this.fault(`P10: window ${from} counts as proven, and was not counted since the source moved`);
      else this.#sometimes.count('window counted since its source moved');
    }
  }

  /** The sources answer no more: what they must have collected by now does not grow. */
  silence(): void {
    this.#silentSince = this.#world.now;
  }

  /** The time at which the sources answered for the last time, or now, µs. */
  get #answeredUntil(): number {
    return this.#silentSince ?? this.#world.now;
  }

  /**
   * The records and windows that the journal still lacks once faults have ended, one line each.
   * Liveness means that this list and `undelivered` become empty.
   */
  uncollected(): string[] {
    const source = this.#source;
    if (!source) return ['the source is not registered'];
    const found: string[] = [];
    const { closeDelayMs } = this.#environment.daemon;
    const width = Math.max(closeDelayMs, 10_000) * 1_000;
    // The frontier may lag by the close delay, two widths of a window, and the time of one poll and its requests.
    const lag = this.#answeredUntil - source.frontier - closeDelayMs * 1_000 - 2 * width - 10 * second;
    if (source.isSuspended === 1) found.push('the source is suspended');
    const gaps = [...this.windows.values()].filter((row) => this.isOpen(row));
    for (const { from, reason } of gaps) found.push(`window ${from} is open (${reason ?? ''})`);
    if (gaps.length === 0 && lag > 0 && ![...this.windows.values()].some(({ state }) => state === 'gap')) {
      found.push(`the frontier is ${lag / second} s behind`);
    }
    for (const { from, to: until, closedUntil: reached, isDone, isPaused } of this.#history.values()) {
      if (!isDone) found.push(`history from ${from} until ${until} is read up to ${reached}${isPaused ? ', and paused' : ''}`);
    }
    // A query without times that was replaced by one since 1970 does not show older records.
    if (this.#outside === undefined && this.#placeholders().length > 0 && source.unboundedFrom === null)
      found.push('P9: no record outside of every window is named, and the service shows one');
    const missing = this.#missing();
    if (missing.length > 0)
      found.push(`P1: ${missing.length} records are not in the journal, the first is ${missing[0]?.text.slice(0, 150) ?? ''}`);
    return found;
  }

  /** What the sinks still lack of the journal, one line each. */
  undelivered(): string[] {
    const found: string[] = [];
    for (const receiver of this.#receivers) {
      const { id } = receiver.settings;
      if (id === this.settings.retired) continue;
      const { acknowledged: acked = 0, replays = 0 } = this.#sinks.get(id) ?? {};
      if (replays > 0) found.push(`a replay to ${id} is not complete`);
      for (let seq = acked + 1; seq < this.#entries.length; seq += 1) {
        const isForIt = this.#entries[seq] !== undefined || (receiver.settings.ledger && this.#ledger.has(seq));
        if (!isForIt) continue;
        found.push(`${id} is acknowledged up to ${acked}, entry ${seq} is still to be delivered`);
        break;
      }
    }
    for (const { settings, pardoned, has } of this.#receivers) {
      if (settings.id === this.settings.retired || pardoned.size === 0) continue;
      const held = new Set(has.map(({ uid }) => uid));
      for (const uid of pardoned) if (!held.has(uid)) found.push(`${settings.id} lacks ${uid}, which it would accept now`);
    }
    return found;
  }

  /** True when every window with a record is final, and no work is left. */
  isIdle(): boolean {
    const last = this.#service.truths.reduce((most, { at }) => (at <= this.#world.now ? Math.max(most, at) : most), 0);
    if ((this.#source?.closedUntil ?? 0) <= last) return false;
    for (const row of this.windows.values()) if (row.from <= last && row.next !== null && !this.#hasTwins(row)) return false;
    return this.uncollected().length === 0 && this.undelivered().length === 0;
  }

  /** True for a window that can be proven and is not: none of its records share an identity. */
  isOpen(row: WindowRow): boolean {
    const isListed = row.state === 'gap' || (row.state === 'proven' && row.reason === 'reread');
    const isWithoutTotal = row.reason === 'total' && this.#source?.hasWrongTotal === 1;
    return isListed && !isWithoutTotal && !this.#hasTwins(row) && !this.#isTooOld(row);
  }

  /**
   * The time of the next attempt at a window that must still be proven or read, µs; Infinity: a
   * window without a next attempt; undefined: no such window.
   */
  nextTry(): number | undefined {
    // Two records with one identity keep a window from being proven; the next attempt still reads
    // other records that become visible in it.
    const missing = this.#missing();
    const isLacking = ({ from, to: until, state, reason }: WindowRow): boolean =>
      (state === 'gap' || reason === 'reread') && missing.some(({ at }) => from <= at && at < until);
    const awaited = [...this.windows.values()].filter((row) => this.isOpen(row) || isLacking(row));
    return awaited.length === 0 ? undefined : awaited.reduce((least, { next }) => Math.min(least, next ?? Infinity), Infinity);
  }

  /**
   * True for a window that a suspension recounted after its last recount, when more records had
   * become visible. Its uids are forgotten, so a second read would take delivered records for new
   * ones. The window is listed for an operator. No guarantee covers records that become visible so
   * late; the records that were in time are proven.
   */
  #isTooOld({ from, to: until, state, reason, next, query, total }: WindowRow): boolean {
    if (state !== 'proven' || reason !== 'reread' || next !== null || from >= this.#rememberedAt(from)) return false;
    const promised = until + this.#lastRecount();
    const found = this.#service.matching(JSON.parse(query) as WindowQuery, this.#world.now).filter(({ visible }) => visible <= promised);
    return found.length <= (total ?? 0);
  }

  /** The age of the last recount of a window, µs; a total that lags describes an earlier moment. */
  #lastRecount(): number {
    const { daemon, service } = this.#environment;
    return (daemon.agesMs.at(-1) ?? 0) * 1_000 - (service.total === 'lagging' ? service.totalLagMs * 1_000 : 0);
  }

  /** Every record that was visible by the last recount of its window, and still exists. */
  #required(): Truth[] {
    const { daemon, records, beginMs, rights, service } = this.#environment;
    const lastAge = (daemon.agesMs.at(-1) ?? 0) * 1_000;
    const start = (beginMs - daemon.historyMs) * 1_000;
    // If one record is deleted and another becomes visible before the same recount, the total stays
    // equal. No recount sees records that arrive while nothing is shown, or while a count shows its page only.
    const isBlind = records.purge || rights === 'rows' || service.total === 'items';
    const delay = isBlind ? daemon.closeDelayMs * 1_000 : this.#lastRecount();
    const end = this.#answeredUntil - 30 * second;
    return this.#service.truths.filter(({ at, visible, gone }) => {
      if (visible > end || gone !== Infinity) return false;
      if (at < start) return this.#isOfHistory(at, visible, delay);
      // A record with a future time arrives by the live poll, long before its window is closed.
      return at > this.#answeredUntil + second || (visible <= at + delay && at + lastAge < end);
    });
  }

  /** The required records that the journal lacks. */
  #missing(): Truth[] {
    return this.#required().filter(({ uid }) => !this.#stored.has(uid));
  }

  /**
   * True if the record was visible before its range of history was added, or by the last recount of
   * a window of its time.
   */
  #isOfHistory(at: number, visible: number, delay: number): boolean {
    const range = this.#rangeOf(at);
    return range !== undefined && (visible <= range.added || visible <= at + delay);
  }

  #rangeOf(time: number): History | undefined {
    for (const range of this.#history.values()) if (range.from <= time && time < range.to) return range;
    return undefined;
  }

  /**
   * True if the record belongs to no range of the ledger, or to a time whose uids are forgotten.
   */
  #isOutside({ time }: Truth, source: SourceRow): boolean {
    return time !== undefined && ((time < source.from && !this.#rangeOf(time)) || time < this.#rememberedAt(time));
  }

  /** The time before which the range of `time` has forgotten its uids. */
  #rememberedAt(time: number): number {
    return this.#rangeOf(time)?.uidsKeptSince ?? this.#source?.uidsKeptSince ?? 0;
  }

  /**
   * Ranges of history start where an operator requested, do not overlap, and end early only
   * where an operator requested it and nothing was collected.
   */
  #newRanges(rows: readonly RangeRow[], source: SourceRow): void {
    const found = new Set(rows.map(({ from }) => from));
    for (const { from, to: until } of this.#history.values()) {
      if (!found.has(from)) this.#cutOff(from, from, until);
    }
    for (const { isPaused, sinks, ...row } of rows) {
      const { from, to: until, closedUntil: reached, uidsKeptSince: remembered } = row;
      const before = this.#history.get(from);
      const isDone = reached >= until;
      if (!before) {
        if (!this.#asked.some((window) => window.from <= from && until <= window.to))
          this.fault(`no operator requested history from ${from}`);
        const isTwice = this.history().some((other) => from < other.to && other.from < until) || until > source.from;
        if (isTwice || until <= from) this.fault(`history from ${from} until ${until} is in the ledger already`);
      } else {
        if (reached < before.closedUntil || remembered < before.uidsKeptSince) this.fault(`the progress of history from ${from} went back`);
        if (until !== before.to) this.#cutOff(from, until, before.to);
        if (isDone && !before.isDone) this.#sometimes.count(until === before.to ? 'history read to its end' : 'history cut off');
      }
      if (reached > until || remembered > reached) this.fault(`history from ${from} until ${until} is read up to ${reached}`);
      const order = sinks === null ? undefined : (JSON.parse(sinks) as string[]);
      this.#history.set(from, { ...row, isPaused: isPaused === 1, isDone, sinks: order, added: before?.added ?? this.#world.now });
    }
  }

  /** Checks a range that started at `from` and ended at `before`, and now ends at `until`. */
  #cutOff(from: number, until: number, before: number): void {
    if (!this.#cut.has(from) || until > before)
      this.fault(`history from ${from} ended at ${before} and ends at ${until} without a request`);
    const [lost] = [...this.#stored].flatMap((uid) => this.#byUid.get(uid) ?? []).filter(({ time = 0 }) => until <= time && time < before);
    if (lost) this.fault(`history from ${from} ends at ${until}, and ${lost.text.slice(0, 150)} was collected`);
    if (until > from) return;
    this.#sometimes.count('history cut off');
    this.#history.delete(from);
  }

  #newEntries(rows: readonly SegmentRow[], source: SourceRow | undefined): boolean {
    let isLedger = false;
    if (this.#isFirst && new Set(rows.flatMap((row) => row.source ?? [])).size > 1)
      this.#sometimes.count('sources stored in one transaction');
    for (const row of rows) {
      if (row.seq !== this.#entries.length) this.fault(`segment ${row.seq} does not follow entry ${this.#entries.length - 1}`);
      if ((row.source ?? firstSource) !== this.#id) {
        for (let i = 0; i < row.n; i += 1) this.#foreign.add(row.seq + i);
        this.#entries.push(...Array.from({ length: row.n }, () => undefined));
        continue;
      }
      if ((row.kind & 255) === 2) {
        isLedger = true;
        this.#newLedgerEntry(row);
        this.#entries.push(undefined);
        continue;
      }
      if (this.settings.isAbsent) this.fault(`entry ${row.seq} belongs to a removed source`);
      for (let i = 0; i < row.n; i += 1) {
        const uid = row.uids.toString('hex', i * 16, i * 16 + 16);
        const truth = this.#byUid.get(uid);
        if (!truth) this.fault(`entry ${row.seq + i} is not a record of the service`);
        else this.#newRecord(truth, row.seq + i, ((row.flags[i] ?? 0) & flagLate) !== 0, source);
        this.#entries.push(truth);
      }
    }
    return isLedger;
  }

  #newLedgerEntry({ seq, kind, from, to, body }: SegmentRow): void {
    const text = (kind >> 8 === 1 ? zstdDecompressSync(body ?? '') : (body ?? '')).toString('utf8');
    const { source, revision } = JSON.parse(text) as { source: string; revision: number };
    const uid = ledgerUidOf([source, String(from), String(to), String(revision)]);
    if ([...this.#ledger.values()].some((other) => other.uid === uid)) this.fault(`ledger entry ${seq} has the identity of another one`);
    this.#ledger.set(seq, { uid, from: from ?? 0, text });
  }

  #newRecord(truth: Truth, seq: number, isLate: boolean, source: SourceRow | undefined): void {
    const { uid, time, visible } = truth;
    if (this.#stored.has(uid)) this.fault(`entry ${seq} was appended before: ${truth.text.slice(0, 150)}`);
    this.#stored.add(uid);
    // Of two records with one identity, one may become visible long before the other.
    const twins = this.#twins.filter(([one]) => one.uid === uid).map(([, other]) => other.visible);
    if (Math.min(visible, ...twins) > this.#world.now) this.fault(`entry ${seq} is not visible yet`);
    if (isLate) this.#late += 1;
    if (time === undefined || !source) return;
    if (time < source.from && !this.#rangeOf(time)) this.fault(`entry ${seq} lies before the ledger begins`);
    if (time < this.#rememberedAt(time)) this.fault(`entry ${seq} is older than the stored uids`);
    const owner = this.#ownerOf(time);
    if (isLate !== (owner !== undefined && owner.state !== 'gap')) this.fault(`entry ${seq} is ${isLate ? '' : 'not '}marked late`);
  }

  /**
   * True if one node of the service and the local clock are both ahead: only the lower bound of the service's clock then ensures that no window is closed early.
   */
  get #isTimeAhead(): boolean {
    return !this.#service.isCalm && this.#environment.service.dates === 'a node ahead' && this.#world.skew > 0;
  }

  #newWindows(rows: readonly WindowRow[], source: SourceRow): void {
    this.#divide(rows);
    for (const row of rows) {
      const before = this.windows.get(row.from);
      this.windows.set(row.from, row);
      this.#world.note(`window ${row.from} ${row.to - row.from} ${row.state} ${row.reason ?? ''} ${row.total ?? ''}`);
      if (before && before.to !== row.to) this.fault(`window ${row.from} ended at ${before.to} and ends at ${row.to} now`);
      if (!before) {
        const range = this.#rangeOf(row.from);
        if (row.from !== (range ?? this.#source)?.closedUntil && (range || this.#source || row.from !== source.from))
          this.fault(`window ${row.from} does not start where another window ended`);
        const early = row.to + this.settings.closeDelayMs * 1_000 - this.#world.now;
        if (early > 0) this.fault(`window ${row.from} is ${early / second} s early`);
        if (row.to - row.from === second) this.#sometimes.count('window of one second');
        if (!range && this.#isTimeAhead) this.#sometimes.count('window closed while a node and the local clock are ahead');
      }
      if (row.state === 'proven' && (row.digest === null || row.proof === null)) this.fault(`window ${row.from} is closed without a proof`);
      if (row.state === 'gap' && row.reason === null) this.fault(`window ${row.from} is a gap without a reason`);
      if (before?.state === 'proven' && row.state === 'gap') this.fault(`window ${row.from} was proven and is a gap now`);
      const isLess = before?.state === 'proven' && (row.total ?? 0) < (before.total ?? 0);
      if (isLess && row.reason !== 'shrunk')
        this.fault(`the total of window ${row.from} fell from ${before.total ?? 0} to ${row.total ?? 0} without a report`);
      const most = Math.max(this.#most.get(row.from) ?? 0, row.total ?? 0, row.received);
      if (row.state === 'gap') this.#most.set(row.from, most);
      if (before?.state === 'gap' && row.state === 'proven' && row.reason !== 'shrunk' && (row.total ?? 0) < most)
        this.fault(`window ${row.from} was a gap with ${most} and is proven with ${row.total ?? 0} without a report`);
      // A remark is a ledger entry too, but claims nothing new.
      const isClaim = before?.state !== 'proven' || before.proof !== row.proof || before.recounts !== row.recounts;
      const isSuspended = source.isSuspended === 1 && this.#source?.isSuspended === 1;
      if (row.state === 'proven' && row.reason === null && isClaim && isSuspended)
        this.fault(`H: window ${row.from} is proven during a suspension`);
      if (row.state === 'proven' && row.reason === null && isClaim && source.hasWrongTotal === 1)
        this.fault(`P10: window ${row.from} is proven by totals that count their page`);
      if (row.reason === 'shrunk' && before?.reason !== 'shrunk') this.#sometimes.count('window shrunk');
      // If one record is deleted and another becomes visible, the count still equals the proven total
      // and hides the new record: a limit of the proof (docs/guarantees.md).
      const isEqualCount = before?.state === 'proven' && before.proof === row.proof;
      const isProof = isClaim && !(isEqualCount && this.#environment.records.purge);
      if (row.state === 'proven' && row.reason === null && isProof) this.#proven(row, before, source);
    }
  }

  /** A gap whose query is too much for the service becomes two gaps: together they are the gap. */
  #divide(rows: readonly WindowRow[]): void {
    for (const lower of rows) {
      const whole = this.windows.get(lower.from);
      const upper = rows.find(({ from }) => from === lower.to);
      if (whole?.state !== 'gap' || lower.state !== 'gap' || upper?.state !== 'gap' || upper.to !== whole.to || lower.to >= whole.to)
        continue;
      this.#most.delete(whole.from);
      const others = [...this.windows.values()].filter((row) => row !== whole);
      this.windows.clear();
      for (const row of [...others, lower, upper].sort((a, b) => a.from - b.from)) this.windows.set(row.from, row);
    }
  }

  /** The theorem of the proof: if a true count equals the records received, each counted record is in the journal. */
  #proven(row: WindowRow, before: WindowRow | undefined, source: SourceRow): void {
    const { asked } = this.#service;
    const counted = asked.counted.get(row.query);
    // A cached answer is not a count.
    if (!counted && this.#environment.service.total === 'true') this.fault(`P10: window ${row.from} is proven without a count`);
    for (const truth of counted ?? []) {
      // The record belongs to a neighbouring range, which may have been added while this window was read.
      const range = this.#rangeOf(row.from);
      const isNeighbours = truth.time !== undefined && this.#rangeOf(truth.time) !== range;
      // A range of history collects a record after its `closedUntil` only when it reads the window of that record.
      const isAhead = range !== undefined && truth.time !== undefined && truth.time >= Math.max(range.closedUntil, row.to);
      if (!isNeighbours && !isAhead && !this.#isOutside(truth, source) && !this.#stored.has(truth.uid))
        this.fault(`P10: window ${row.from} is proven without ${truth.text.slice(0, 150)}`);
    }
    if (counted && row.total !== counted.length)
      this.fault(`P10: window ${row.from} is proven with ${row.total ?? 0}, the service counted ${counted.length}`);
    if (counted && counted.length < 300) {
      const uids = [
        ...new Set(counted.filter(({ time }) => time !== undefined && row.from <= time && time < row.to).map(({ uid }) => uid)),
      ];
      const digest = createHash('sha256')
        .update(Buffer.from(uids.sort().join(''), 'hex'))
        .digest('hex');
      if (row.records !== uids.length || row.digest?.toString('hex') !== digest)
        this.fault(`P10: window ${row.from} has ${row.records} records, its proof should be over ${uids.length}`);
    }
    this.#ranToItsEnd(row.query);
    const uncut = asked.capped.get(row.query);
    if (uncut !== undefined)
      this.fault(`P10: window ${row.from} is proven with ${row.total ?? 0}, which is a cap: the service has ${uncut}`);
    asked.counted.delete(row.query);
    if (asked.drifted.delete(row.query)) this.#sometimes.count('records shifted between pages of a proven window');
    if (asked.lagged.delete(row.query)) this.#sometimes.count('total lagged, then proven');
    if (before?.state === 'gap') this.#sometimes.count('gap opened, then closed');
    if (before && this.#service.wasHidden(counted ?? [])) this.#sometimes.count('hidden row shown, then proven');
    const { lowerBound } = this.#environment.service;
    if (!before && lowerBound === 'excluded' && counted?.some(({ time }) => time === row.from)) {
      this.#sometimes.count('record exactly on an edge, bound excluded');
    }
  }

  /** The last count of a query was requested after its last page. */
  #ranToItsEnd(query: string): void {
    const { unread } = this.#service.asked;
    const message = unread.get(query);
    if (message !== undefined) this.fault(`a pass ended too early: ${message}`);
    unread.delete(query);
  }

  /**
   * The windows that a suspension lists and whose records the service has deleted. Only an operator
   * can end that suspension.
   */
  lacking(): WindowRow[] {
    if (this.#source?.isSuspended !== 1) return [];
    return listedBy(this.#source).flatMap((from) => {
      const row = this.windows.get(from);
      if (row?.state !== 'proven' || row.reason === 'shrunk') return [];
      const { length } = this.#service.matching(JSON.parse(row.query) as WindowQuery, this.#world.now);
      return length < (row.total ?? 0) ? [row] : [];
    });
  }

  get isSuspended(): boolean {
    return this.#source?.isSuspended === 1;
  }

  /**
   * True if the daemon could detect now that permissions shrink, even after an immediate kill: the
   * state file holds what it needs.
   */
  mayShrink(): boolean {
    if (this.#environment.rights === 'rows') {
      const has = (row: WindowRow): boolean => row.state === 'proven' && row.reason === null && (row.total ?? 0) > 0;
      return !this.isSuspended && [...this.windows.values()].some(has);
    }
    const { recent = '', referenceRecords = {} } = JSON.parse(this.#source?.fields ?? '{}') as {
      recent?: string;
      referenceRecords?: Readonly<Record<string, unknown>>;
    };
    // A field is usual if nine of ten records have it, both in the stored statistics and in all
    // records since.
    const written = recent.replaceAll('0', '').length / recent.length;
    const stored = [...this.#stored].filter((uid) => this.#byUid.get(uid)?.poor !== undefined).length / this.#stored.size;
    return !this.isSuspended && Object.keys(referenceRecords).length > 0 && written > 0.93 && stored > 0.93;
  }

  /**
   * The state file stores a suspension separately from the state of the source: a suspended source that leaves
   * the configuration becomes `unconfigured`, and is still suspended when it returns.
   */
  #newState(source: SourceRow): void {
    const { state, isSuspended } = source;
    this.#namesZone(source);
    this.#namesOutside(source);
    if (state !== 'unconfigured' && state !== 'retired' && (state === 'suspended') !== (isSuspended === 1))
      this.fault(`the state of the source is ${state}, and ${isSuspended === 1 ? 'a' : 'no'} suspension is stored`);
  }

  /** A suspension for the filter of the service names the zone in which the filter reads times. */
  #namesZone({ reason, message }: SourceRow): void {
    if (reason !== 'filter' || message === this.#zoneMessage) return;
    this.#zoneMessage = message ?? '';
    const { zone } = this.#environment.service;
    if (!zone) this.fault(`H: a suspension says "${message ?? ''}", and the filter reads all times in UTC`);
    else if (!message?.startsWith(`the time filter reads times ${offsetWords(zone.offsetMicros)} UTC: it finds record `))
      this.fault(`H: the filter reads times ${offsetWords(zone.offsetMicros)} UTC, and a suspension says "${message ?? ''}"`);
    else this.#sometimes.count('zone of the filter named');
  }

  /** The state names a record with a placeholder for its date, and no other record, as outside of every window. */
  #namesOutside({ outside }: SourceRow): void {
    if (outside === null || outside === this.#outside) return;
    this.#outside = outside;
    const [, logId, time] = /^record (\d+) of (\S+) is outside of every window$/.exec(outside) ?? [];
    const { dates, nodeOffMs } = this.#environment.service;
    // The time of the service is a lower bound, which a node that is a day behind lowers as much.
    if (dates === 'a node behind' && nodeOffMs > 86_400_000) return;
    const named = this.#placeholders().find(({ text }) => text.includes(`"logId":${logId ?? ''},`) && text.includes(`"${time ?? ''}"`));
    if (named) this.#sometimes.count('record outside of every window named');
    else this.fault(`P9: the state says "${outside}", and a window can hold that record`);
  }

  /** The visible records that no window can hold. */
  #placeholders(): Truth[] {
    const day = 86_400 * second;
    return this.#service.truths.filter(
      ({ at, visible }) => visible <= this.#answeredUntil && (at < day || at > this.#answeredUntil + 365 * day),
    );
  }

  #newMarks(source: SourceRow, isLedger: boolean): void {
    const before = this.#source;
    this.#source = source;
    if (before?.isSuspended === 1 && source.isSuspended === 0) this.#suspensionEnded(before);
    if (before) {
      for (const key of ['frontier', 'closedUntil', 'uidsKeptSince', 'collected'] as const) {
        if (source[key] < before[key]) this.fault(`${key} went back from ${before[key]} to ${source[key]}`);
      }
    }
    if (source.collected !== this.#stored.size)
      this.fault(`P6: ${source.collected} records are counted, ${this.#stored.size} were appended`);
    if (source.late !== this.#late) this.fault(`P6: ${source.late} late records are counted, ${this.#late} were appended`);
    if (isLedger) {
      let frontier = source.from;
      for (const { from, to: until, state } of this.windows.values()) {
        if (from < source.from) continue;
        if (from !== frontier || state === 'gap') break;
        frontier = until;
      }
      if (frontier !== source.frontier)
        this.fault(`P9: the frontier is ${source.frontier}, the unbroken run of windows ends at ${frontier}`);
    }
    if (before && source.polledUntil !== before.polledUntil) this.#polledUntilMoved(source);
    // The time assumed for the service before its clock is known may be wrong, and polledUntil, a
    // hint, follows a clock that is ahead.
    const { machine, service } = this.#environment;
    const isKnown =
      machine.skew === 'off' && machine.aheadMs === 0 && service.dates !== 'a node ahead' && service.dates !== 'none' && !service.lead;
    if (isKnown && source.polledUntil > this.#world.now)
      this.fault(`polledUntil lies ${(source.polledUntil - this.#world.now) / second} s ahead`);
  }

  /**
   * H: a window that showed fewer records during a suspension is in doubt until its recount. No
   * recount happens during the suspension.
   */
  #suspensionEnded(before: SourceRow): void {
    this.#sometimes.count('suspension started and ended');
    for (const from of listedBy(before)) {
      const row = this.windows.get(from);
      if (row?.state !== 'proven' || row.reason === 'shrunk') continue;
      this.#sometimes.count('listed window recounted');
      if (row.reason === null || row.next === null)
        this.fault(`H: a suspension ended that lists window ${from}, which is ${row.reason === null ? 'proven' : 'not due'}`);
    }
  }

  /** P10: polledUntil moves only over records that were read. It stops before the page where a poll ended. */
  #polledUntilMoved(source: SourceRow): void {
    for (const { uid, at, time, text } of this.#service.asked.livePoll ?? []) {
      if (at > source.polledUntil) continue;
      const isOutside = time !== undefined && (time < source.from || time < source.uidsKeptSince);
      if (!isOutside && !this.#stored.has(uid)) this.fault(`P10: polledUntil moved over ${text.slice(0, 150)}`);
    }
    this.#service.asked.livePoll = undefined;
  }

  #newAcknowledgement(sink: SinkRow, deadLetter: ReturnType<typeof prepare>['deadLetter']): void {
    const before = this.#sinks.get(sink.id);
    if (before && before.acknowledged === sink.acknowledged && before.delivered === sink.delivered) return;
    this.#sinks.set(sink.id, sink);
    const { seq, pruned } = this.#marks;
    if (before && (sink.acknowledged < before.acknowledged || sink.delivered < before.delivered))
      this.fault(`${sink.id} went back from ${before.acknowledged} to ${sink.acknowledged}`);
    if (pruned > sink.acknowledged || sink.acknowledged > seq || sink.delivered > sink.acknowledged) {
      this.fault(`pruned ${pruned}, ${sink.id} accepted ${sink.delivered} and is acknowledged up to ${sink.acknowledged} of ${seq}`);
    }
    const receiver = this.#receivers.find(({ settings }) => settings.id === sink.id);
    if (!receiver) return;
    if (this.settings.isAbsent && sink.delivered > (before?.delivered ?? 0))
      this.#sometimes.count('delivered while its source is not configured');
    for (let at = (before?.acknowledged ?? 0) + 1; at <= sink.acknowledged; at += 1) {
      const truth = this.#entries[at];
      const entry = this.#ledger.get(at);
      if (receiver.seqs.has(at)) continue;
      if (entry && this.#isLedgerFor(receiver, entry)) this.#rejected(receiver, at, entry, deadLetter.get(sink.id, at)?.body);
      if (!truth || !this.#isFor(receiver, truth)) continue;
      const letter = deadLetter.get(sink.id, at);
      if (receiver.drops(truth.uid)) {
        if (letter) this.fault(`entry ${at} is a dead letter of ${sink.id}, which dropped it on purpose`);
      } else if (!letter) this.fault(`${sink.id} is acknowledged over entry ${at}, which it never accepted`);
      else if (!this.#texts(truth).includes(letter.body))
        this.fault(`the dead letter of entry ${at} holds another record: ${letter.body.slice(0, 150)}`);
      else if (!receiver.refuses(truth.uid)) this.fault(`entry ${at} is a dead letter of ${sink.id}, which never rejected it`);
    }
  }

  /** A ledger entry that a receiver never accepted is a dead letter with its text, and was rejected. */
  #rejected(receiver: Receiver, seq: number, { uid, text }: LedgerEntry, letter: string | undefined): void {
    const { id } = receiver.settings;
    if (receiver.drops(uid)) {
      if (letter !== undefined) this.fault(`ledger entry ${seq} is a dead letter of ${id}, which dropped it on purpose`);
    } else if (letter === undefined) this.fault(`${id} is acknowledged over ledger entry ${seq}, which it never accepted`);
    else if (letter !== text) this.fault(`the dead letter of ledger entry ${seq} holds another text: ${letter.slice(0, 150)}`);
    else if (!receiver.refuses(uid)) this.fault(`ledger entry ${seq} is a dead letter of ${id}, which never rejected it`);
    else this.#sometimes.count('ledger entry rejected');
  }

  /** P1, P2, P4 of one receiver. */
  #holdings(receiver: Receiver): void {
    const { id, kind } = receiver.settings;
    const counts = new Map<string, number>();
    let last = 0;
    for (const { seq, uid, text, behind, isOnDemand } of receiver.has) {
      // The oracle of another source checks its entries. All entries are in order, without duplicates.
      if (!this.#foreign.has(seq)) this.#holding(receiver, seq, uid, text);
      const count = (counts.get(uid) ?? 0) + 1;
      counts.set(uid, count);
      // A delayed request may deliver a message that the receiver rejected at first and accepts
      // now.
      if (count > 1 || isOnDemand || receiver.pardoned.has(uid)) continue;
      // A retried message comes after others of its batch, and before everything that follows the
      // batch.
      if (seq < last && last > behind) this.fault(`P4: ${id} got entry ${seq} after ${last}`);
      last = Math.max(last, seq);
    }
    const twice = receiver.has.length - counts.size;
    if (kind !== 'plain' && twice > (kind === 'position' ? receiver.replayed : 0)) this.fault(`P2: ${id} holds ${twice} duplicates`);
    if (kind === 'plain' && twice > receiver.allowance)
      this.fault(`P2: ${id} holds ${twice} duplicates, at most ${receiver.allowance} are allowed`);
    if (id === this.settings.retired) return;
    for (const [seq, entry] of this.#ledger) {
      if (!this.#isLedgerFor(receiver, entry)) continue;
      if (counts.has(entry.uid)) this.#sometimes.count('ledger entry delivered');
      else if (!receiver.refuses(entry.uid)) this.fault(`P1: ${id} lacks ledger entry ${seq}: ${entry.text.slice(0, 150)}`);
    }
    for (const truth of this.#required()) {
      if (this.#isFor(receiver, truth) && !counts.has(truth.uid) && !receiver.refuses(truth.uid))
        this.fault(`P1: ${id} lacks ${truth.text.slice(0, 150)}`);
    }
  }

  /** P1, P4 of one entry that a receiver holds. */
  #holding(receiver: Receiver, seq: number, uid: string, text: string): void {
    const { id, format } = receiver.settings;
    const truth = this.#entries[seq];
    const entry = this.#ledger.get(seq);
    if (entry) {
      if (entry.uid !== uid) this.fault(`P4: ${id} holds ledger entry ${seq} under another identity`);
      else if (!this.#isLedgerFor(receiver, entry)) this.fault(`P1: ${id} holds ledger entry ${seq}, which it should not receive`);
      else if (originalOf(format, text) !== entry.text) this.fault(`P4: ${id} holds ledger entry ${seq} as ${text.slice(0, 300)}`);
    } else if (truth?.uid !== uid) this.fault(`P4: ${id} holds entry ${seq} under another identity`);
    else if (!this.#isFor(receiver, truth)) this.fault(`P1: ${id} holds entry ${seq}, which it should not receive`);
    else if (!this.#isWhole(truth, format, text)) this.fault(`P4: ${id} holds entry ${seq} as ${text.slice(0, 300)}`);
  }

  /**
   * True if a receiver is to get a record: its filter matches, and its history was requested for
   * this sink.
   */
  #isFor(receiver: Receiver, { result, time }: Truth): boolean {
    const { filter, id } = receiver.settings;
    const range = time === undefined ? undefined : this.#rangeOf(time);
    return (filter === undefined || result === filter) && (range?.sinks?.includes(id) ?? true);
  }

  /**
   * True if a receiver is to get a ledger entry. Filters do not apply to ledger entries; the sinks
   * of a backfill do.
   */
  #isLedgerFor({ settings: { ledger, id } }: Receiver, { from }: LedgerEntry): boolean {
    return ledger && (this.#rangeOf(from)?.sinks?.includes(id) ?? true);
  }

  /** P9: every window that could not be proven is a gap, and no other window is. */
  #ledgerOfTruth(): void {
    const { closeDelayMs } = this.#environment.daemon;
    for (const row of this.windows.values()) {
      const twins = this.#twins.filter((both) =>
        both.every(
          ({ at, visible, gone }) => row.from <= at && at < row.to && visible <= row.to + closeDelayMs * 1_000 && gone === Infinity,
        ),
      );
      if (twins.length > 0 && row.state === 'proven' && row.reason === null)
        this.fault(`P9: window ${row.from} contains records with one identity and is proven`);
      const { length } = this.#service.matching(JSON.parse(row.query) as WindowQuery, this.#world.now);
      if (row.state === 'proven' && row.reason === null && row.next === null && length < (row.total ?? 0) && this.#wasCountedSince(row)) {
        this.fault(`window ${row.from} was proven with ${row.total ?? 0}, the service has ${length}, without a report`);
      }
      if (row.reason === 'shrunk' && !this.#environment.records.purge)
        this.fault(`P9: window ${row.from} reports deleted records, but none were deleted`);
    }
  }

  /** True if the last recount came after all deletions of records of the window. */
  #wasCountedSince(row: WindowRow): boolean {
    const last = row.to + this.#lastRecount();
    return this.#service.truths.every(
      ({ at, gone }) => at < row.from - 3 * second || at > row.to + 3 * second || gone < last || gone === Infinity,
    );
  }

  #countLate(): void {
    const [first = 0, middle = 0] = this.#environment.daemon.agesMs;
    for (const { time, visible, uid } of this.#service.truths) {
      if (time === undefined || !this.#stored.has(uid)) continue;
      const owner = this.#ownerOf(time);
      // A window of history has another closing time.
      if (this.#rangeOf(time)) continue;
      if (!owner || visible <= owner.to + this.#environment.daemon.closeDelayMs * 1_000 + 5 * second) continue;
      const age = (visible - owner.to) / 1_000;
      this.#sometimes.count(`late record found at the ${age < first ? 'first' : age < middle ? 'second' : 'last'} age`);
    }
  }

  /** The texts of a record and its twin: either may have arrived first. */
  #texts({ uid, text }: Truth): string[] {
    return [text, ...this.#twins.flat().flatMap((twin) => (twin.uid === uid ? [twin.text] : []))];
  }

  #isWhole(truth: Truth, format: string, text: string): boolean {
    const original = originalOf(format, text);
    return format === 'cef'
      ? original === Buffer.from(truth.uid, 'hex').toString('base64url')
      : this.#texts(truth).includes(original ?? '');
  }

  #hasTwins(row: WindowRow): boolean {
    return this.#twins.some(([{ at }]) => row.from - 3 * second <= at && at <= row.to + 3 * second);
  }

  #ownerOf(time: number): WindowRow | undefined {
    for (const row of this.windows.values()) if (row.from <= time && time < row.to) return row;
    return undefined;
  }
}

/** `5 h 30 min ahead of`. */
function offsetWords(offset: number): string {
  const minutes = Math.abs(offset) / (60 * second);
  const hours = Math.floor(minutes / 60);
  const words = [hours > 0 ? `${hours} h` : '', minutes % 60 > 0 ? `${minutes % 60} min` : ''].filter(Boolean).join(' ');
  return `${words} ${offset < 0 ? 'behind' : 'ahead of'}`;
}

/** The start times of the windows that showed fewer records during a suspension. */
function listedBy({ held, shrunk }: SourceRow): number[] {
  return [held, shrunk].flatMap((froms) => JSON.parse(froms ?? '[]') as number[]);
}

/** The identity of a ledger entry: docs/formats.md, "Ledger events". */
function ledgerUidOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of ['waybill/ledger/1', ...parts]) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(Buffer.byteLength(part));
    hash.update(length).update(part);
  }
  return hash.digest('hex').slice(0, 32);
}

/** The original record in a message; for CEF its uid. */
function originalOf(format: string, text: string): string | undefined {
  switch (format) {
    case 'raw':
      return text;
    case 'ecs':
      return (JSON.parse(text) as { event: { original: string } }).event.original;
    default:
      return /WaybillDpasUid=(\S+)/.exec(text)?.[1];
  }
}

/** A migration adds the column: the statement is prepared only when a source is registered already. */
const rangesSql = `SELECT from_us AS "from", to_us AS "to", closed_until_us AS closedUntil, uids_kept_since_us AS uidsKeptSince,
  json_extract(backfill, '$.paused') AS isPaused, json_extract(backfill, '$.sinks') AS sinks
  FROM ranges WHERE source = ? AND to_us IS NOT NULL ORDER BY from_us`;

function prepare(db: Database.Database, id: string) {
  return {
    progress: db.prepare<[], Marks>('SELECT seq, number, pruned_seq AS pruned, epoch FROM head, owner'),
    source: db.prepare<[], SourceRow>(
      `SELECT source_no AS n, frontier_us AS frontier, polled_until_us AS polledUntil, collected, late, from_us AS "from", closed_until_us AS closedUntil, uids_kept_since_us AS uidsKeptSince,
       state, json_extract(profile, '$.suspension') IS NOT NULL AS isSuspended, json_extract(profile, '$.suspension.windows') AS held,
       json_extract(profile, '$.suspension.shrunk') AS shrunk,
       json_extract(profile, '$.suspension.reason') AS reason, json_extract(profile, '$.suspension.message') AS message,
       json_extract(profile, '$.visibility.contradictions.outside') AS outside,
       json_extract(profile, '$.unboundedQuery.startTime') AS unboundedFrom, json_extract(profile, '$.calibration.wrongTotal') AS hasWrongTotal,
       json_extract(profile, '$.visibility.fields') AS fields
       FROM sources JOIN ranges ON ranges.source = sources.source_no WHERE id = '${id}' AND to_us IS NULL`,
    ),
    segments: db.prepare<[number], SegmentRow>(
      `SELECT (SELECT id FROM sources WHERE source_no = source) AS source, seq, n, kind, flags, uids, min_us AS "from", max_us AS "to", iif(kind & 255 = 2, body, NULL) AS body
       FROM segments WHERE seq > ? ORDER BY seq`,
    ),
    windows: db.prepare<[number, number], WindowRow>(
      `SELECT from_us AS "from", to_us AS "to", query, state, total, records, received, digest, proof, next_us AS next, reason, recounts, seq
       FROM windows WHERE source = ? AND seq > ? ORDER BY seq`,
    ),
    sinks: db.prepare<[], SinkRow>(
      'SELECT id, state, acknowledged, delivered, (SELECT count(*) FROM replays WHERE sink = id) AS replays FROM sinks',
    ),
    deadLetter: db.prepare<[string, number], { body: string }>(
      'SELECT CAST(body AS TEXT) AS body FROM dead_letters WHERE sink = ? AND seq = ?',
    ),
  };
}
