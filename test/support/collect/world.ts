/**
 * The environment of collect: a model of the source, a journal on real SQLite and a clock of the
 * test. The oracle uses the list of records.
 */
import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { Handoff } from '../../../src/collect/handoff.ts';
import { Requester } from '../../../src/collect/requester.ts';
import { WindowCloser } from '../../../src/collect/close.ts';
import { LivePoll } from '../../../src/collect/live-poll.ts';
import type { Resume } from '../../../src/collect/live-poll.ts';
import { PollOverlap } from '../../../src/collect/poll-overlap.ts';
import { PageStore } from '../../../src/collect/page-store.ts';
import { VisibilityCheck } from '../../../src/collect/visibility.ts';
import { Suspensions, waitsFor } from '../../../src/collect/suspension.ts';
import { SourcePaging } from '../../../src/collect/page-size.ts';
import type { Caps, Reading } from '../../../src/collect/read-window.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import type { CollectedPage } from '../../../src/model/journal.ts';
import type { Window } from '../../../src/model/ledger.ts';
import type { ServerClock } from '../../../src/model/source.ts';
import type { Log } from '../../../src/model/telemetry.ts';
import { logEvents } from '../../../src/model/log-events.ts';
import type { LogEventCode } from '../../../src/model/log-events.ts';
import type { Micros } from '../../../src/model/time.ts';
import { ModelSource } from '../model-source.ts';
import type { Served, Switches } from '../model-source.ts';
import { base, day, hour, minute, second, uidOf, uidOfRecord } from '../records.ts';
import { VirtualClock } from '../virtual-clock.ts';
import { opened, source as sourceId } from '../journal/opening.ts';
import { note } from '../telemetry/written-events.ts';

export const ages: readonly Micros[] = [hour, 6 * hour, day, 3 * day, 7 * day, 14 * day, 30 * day];
export const closeDelay = 15 * minute;

export class Lines implements Log {
  readonly lines: { readonly level: string; readonly event: string; readonly fields: object }[] = [];
  write(event: LogEventCode, fields: object = {}): void {
    note(event, fields);
    this.lines.push({ level: logEvents[event].level, event, fields });
  }
}

export interface World {
  readonly clock: VirtualClock;
  readonly source: ModelSource;
  readonly journal: Journal;
  readonly directory: string;
  readonly requester: Requester;
  readonly paging: SourcePaging;
  readonly caps: Caps;
  readonly reading: Reading;
  readonly pageStore: PageStore;
  /** One live poll. @returns where the next one continues */
  readonly poll: () => Promise<Resume | undefined>;
  readonly suspensions: Suspensions;
  readonly visibility: VisibilityCheck;
  readonly closer: WindowCloser;
  /** A closer as after a restart: it has nothing from the memory of the first one. */
  readonly anotherCloser: () => WindowCloser;
  /** Counted for the metrics. */
  readonly reported: { readonly suspensions: readonly string[]; readonly vanished: number };
  readonly log: Lines;
  /** The appended pages. */
  readonly pages: CollectedPage[];
  readonly signal: AbortSignal;
  readonly abort: AbortController;
  readonly beside: () => Database;
}

export interface Options {
  readonly switches?: Partial<Switches>;
  readonly pageSize?: number;
  /** How far the clock is past the start of the ledger. */
  readonly after?: Micros;
  readonly reading?: Partial<Reading>;
}

export async function world(options: Options = {}): Promise<World> {
  const clock = new VirtualClock((base + (options.after ?? 2 * hour)) / 1000);
  const { journal, directory, beside } = await opened({ clock });
  // No power fails here: the tests of the journal cover that.
  journal.db.pragma('synchronous = OFF');
  const source = new ModelSource(clock);
  Object.assign(source.switches, options.switches);
  const serverClock: ServerClock = {
    observe: ({ age }) => (age > 0 ? 'cached' : 'accepted'),
    now: () => source.now(),
    agreed: () => source.now(),
    expected: () => source.now(),
    stoodSince: () => undefined,
    established: () => true,
    missing: () => 0,
    remainingMs: () => 0,
    measuring: () => undefined,
    ahead: () => false,
  };
  const log = new Lines();
  const paging = new SourcePaging(clock);
  paging.calibrated({ firstPage: source.switches.firstPage }, options.pageSize ?? 10);
  const caps: Caps = { largest: 0 };
  const abort = new AbortController();
  const pages: CollectedPage[] = [];
  const append = journal.append.bind(journal);
  journal.append = async (page) => {
    pages.push(page);
    return append(page);
  };
  const waits = waitsFor(closeDelay / 1000);
  const reported: { suspensions: string[]; vanished: number } = { suspensions: [], vanished: 0 };
  const meters = {
    recordsCollected: () => undefined,
    recordsLate: () => undefined,
    recordDelay: () => undefined,
    sourceSuspended: (_source: string, reason: string) => void reported.suspensions.push(reason),
    windowShrunk: () => void (reported.vanished += 1),
  };
  const suspensions = new Suspensions({ sourceId, source, journal, serverClock, clock, waits, log, meters });
  suspensions.open();
  const requester = new Requester({
    source,
    sourceId,
    uidOf: uidOfRecord,
    paging,
    serverClock,
    clock,
    random: () => 0.5,
    log,
    suspensions,
    waits,
  });
  const visibility = new VisibilityCheck({ sourceId, requester, paging, journal, suspensions, log });
  const pageStore = new PageStore({ sourceId, journal, visibility, meters, clock, log, closeDelay });
  const livePoll = new LivePoll({
    sourceId,
    requester,
    paging,
    journal,
    visibility,
    pages: pageStore,
    closeDelay,
    overlap: new PollOverlap(),
    clock,
    log,
  });
  const poll = async (): Promise<Resume | undefined> => {
    await livePoll.poll(source.now(), abort.signal);
    return livePoll.resume;
  };
  const reading: Reading = {
    requester,
    paging,
    pages: pageStore,
    caps,
    visibility,
    clock,
    log,
    pauseMs: 2_000,
    handoff: new Handoff(),
    ...options.reading,
  };
  const shared = {
    sourceId,
    requester,
    paging,
    journal,
    suspensions,
    serverClock,
    clock,
    random: () => 0.5,
    waits,
    log,
    meters,
    closeDelay,
  };
  const anotherCloser = (): WindowCloser => new WindowCloser({ ...shared, reading, ages });
  const closer = anotherCloser();
  return {
    clock,
    source,
    journal,
    directory,
    requester,
    paging,
    caps,
    reading,
    pageStore,
    poll,
    suspensions,
    visibility,
    closer,
    anotherCloser,
    reported,
    log,
    pages,
    signal: abort.signal,
    abort,
    beside,
  };
}

/** The uids of the records that a window owns, in hex, sorted. */
export function owned(records: readonly Served[], window: Window): string[] {
  return records
    .filter(({ time }) => window.from <= time && time < window.to)
    .map(({ text }) => Buffer.from(uidOf(text), 'base64url').toString('hex'))
    .sort();
}

/** The digest of a proof, computed a second time. */
export function digest(uids: readonly string[]): string {
  return createHash('sha256')
    .update(Buffer.from(uids.join(''), 'hex'))
    .digest('hex');
}

/** All appended uids, in hex, sorted; a uid appended twice occurs twice. */
export function appended(db: Database): string[] {
  return db
    .prepare<[], { uids: Buffer }>('SELECT uids FROM segments WHERE kind & 255 = 1')
    .all()
    .flatMap(({ uids }) => Array.from({ length: uids.length / 16 }, (_, i) => uids.toString('hex', i * 16, i * 16 + 16)))
    .sort();
}

export function span(from: number, until: number): Window {
  return { from: base + from * second, to: base + until * second };
}
