/**
 * The loop of one source: what is asked next, one request at a time. Right of way: tip when due, close, what is due for a recount or another
 * try, history that was asked for; but after ten windows of close one that is due further down gets its turn.
 */
import { codeOf } from '../errors.ts';
import type { Appended, CollectedPage, CollectJournal } from '../model/journal.ts';
import type { Hold } from '../model/ledger.ts';
import type { SourceSnapshot } from '../model/snapshot.ts';
import type { ServerClock, Source } from '../model/source.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import { Asker } from './ask.ts';
import type { Answer } from './ask.ts';
import { Backfiller } from './backfill.ts';
import { Closer } from './close.ts';
import { Gate } from './gate.ts';
import type { FieldsProfile } from './gate.ts';
import { Holds, waitsFor } from './hold.ts';
import type { Paging } from './pass.ts';
import type { Caps } from './read-window.ts';
import { steppedMicros } from './recount.ts';
import { beginOf, pollTip } from './tip.ts';
import type { Resume } from './tip.ts';
import { endOf, widestMicros } from './windows.ts';

export interface CollectSettings {
  readonly id: string;
  /** ms */
  readonly poll: number;
  readonly settle: number;
  /** Ages of recount, ms, ascending. */
  readonly recount: readonly number[];
}

export interface CollectorParts {
  readonly settings: CollectSettings;
  readonly source: Source;
  readonly serverClock: ServerClock;
  readonly journal: CollectJournal;
  readonly uidOf: ConstructorParameters<typeof Asker>[0]['uidOf'];
  readonly paging: Paging;
  readonly caps: Caps;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Meters;
  /** What `sight` gave before a restart. */
  readonly sight?: SightProfile | undefined;
  /** See GateParts. */
  readonly learned?: () => Promise<void>;
  /** What is asked of the service besides its records, when it is due; false when nothing was. */
  readonly upkeep?: (signal: AbortSignal) => Promise<boolean>;
  /** The same, for what may wait until no window is due. */
  readonly whenIdle?: (signal: AbortSignal) => Promise<boolean>;
}

/** What a collector knows about what its source shows, to be known again after a restart; plain JSON. */
export interface SightProfile {
  readonly fields: FieldsProfile;
  /** See Holds.sound. */
  readonly sound?: Micros | undefined;
  /** How far back the first poll reached: what is dated before is history, and was not awaited. */
  readonly polledFrom?: Micros | undefined;
}

/** What the collector knows of a source's snapshot. */
export interface SourceView extends Pick<
  SourceSnapshot,
  'trouble' | 'lastSuccess' | 'lastError' | 'serverNow' | 'clockOffsetSeconds' | 'clock' | 'nextProof'
> {
  readonly hold: boolean;
}

/** Windows of close in a row before something further down gets its turn. */
const closesInARow = 10;
/** A poll that ended at its 20th page is followed at once, but at least this long after its own beginning. */
const resumeMs = 1_000;
/** Within a window a poll waits as long as the last one took, but no longer than this: one that met an outage says nothing about the next. */
const cutInMostMs = 60_000;
const pausedMs = 1_000;
const idleMostMs = 1_000;
const growMs = 600_000;
const giveWayMs = 4;
const giveWayTurns = 5;
/**
 * What is settled so long before both clocks is read before the clock of the service is known; less where `settle` is short. It only saves reading
 * twice what still changes: proofs do not rest on it.
 */
const earlyMost: Micros = 3_600_000_000;
const earlySettles = 4;
/** For waits so short that nobody needs to end them. */
const unstoppable = new AbortController().signal;

export class Collector {
  readonly #parts: CollectorParts;
  readonly #asker: Asker;
  readonly #holds: Holds;
  readonly #gate: Gate;
  readonly #closer: Closer;
  readonly backfiller: Backfiller;
  readonly #journal: CollectJournal;
  readonly #settle: Micros;
  #pollAt = 0;
  /** When a poll may be between two questions about a window. */
  #cutInAt = 0;
  #resume: Resume | undefined;
  /** Before the loop begins the source may have no place in the journal yet. */
  #isRunning = false;
  #inTip = false;
  /** The largest page size that was in use, and when it is tried again. */
  #sizeMost = 0;
  #growAt = 0;
  #closes = 0;
  /** When collecting paused, ms of the monotonic clock. */
  #pausedAt: number | undefined;
  /** What both clocks had reached when it was last looked at. */
  #latest: Micros = Number.MAX_SAFE_INTEGER;
  #records = false;
  /** See SightProfile. */
  #polledFrom: Micros | undefined;
  /** Whether the log says that the clock of the service is being measured. */
  #isMeasuring = false;
  /** Where the slowest sink stood when it was last waited for in vain. */
  #stoodAt: number | undefined;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    const { settings, source, serverClock, clock, random, log, meters, paging, caps } = parts;
    const sourceId = settings.id;
    const waits = waitsFor(settings.settle);
    this.#settle = settings.settle * 1000;
    this.#polledFrom = parts.sight?.polledFrom;
    this.#holds = new Holds({
      sourceId,
      source,
      journal: parts.journal,
      serverClock,
      clock,
      waits,
      log,
      meters,
      sound: parts.sight?.sound,
    });
    this.#asker = new Asker({ ...parts, sourceId, holds: this.#holds, waits, meanwhile: (signal) => this.between(signal) });
    const asker = this.#asker;
    const seeing = { profile: parts.sight?.fields, learned: parts.learned };
    this.#gate = new Gate({ sourceId, asker, paging, journal: parts.journal, holds: this.#holds, log, ...seeing });
    this.#journal = counted(parts.journal, async (page, appended) => {
      this.#count(page, appended);
      await this.#gate.appended(page.records, appended);
      if (page.window !== undefined && appended.appended > 0) await this.#giveWay();
    });
    const journal = this.#journal;
    const reading = {
      ...{ sourceId, asker, paging, journal, caps, clock, log, gate: this.#gate },
      // 2 s with the default settle; in proportion where everything is shortened.
      pauseMs: Math.min(2_000, Math.max(50, settings.settle / 30)),
      tipIsDue: () => this.#tipMayCutIn(),
      between: (signal: AbortSignal) => this.between(signal),
    };
    const ages = settings.recount.map((ms) => ms * 1000);
    const closing = { reading, asker, journal, holds: this.#holds, serverClock, clock, random, waits, log, meters };
    this.#closer = new Closer({ ...closing, settle: this.#settle, ages });
    const { health } = asker;
    this.backfiller = new Backfiller({ source: settings.id, closer: this.#closer, journal, health, clock, log });
  }

  /** For calibration, which asks before the loop begins. */
  get asker(): Asker {
    return this.#asker;
  }

  /** What is to be known again after a restart. */
  sight(): SightProfile {
    return { fields: this.#gate.profile(), sound: this.#holds.sound, polledFrom: this.#polledFrom };
  }

  /** Runs until the signal is aborted. What it throws besides the signal's reason is final: the process must end. */
  async run(signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    this.#holds.open();
    this.#closer.lookBack();
    for (;;) {
      signal.throwIfAborted();
      try {
        if (await this.#pause(signal)) continue;
        const isBusy = await this.#turn(signal);
        this.#resumed();
        if (!isBusy) await this.#idle(signal);
      } catch (thrown) {
        signal.throwIfAborted();
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        this.#pauses({ code: 'journal_full', reason: this.#parts.journal.paused(), error: thrown });
        await this.#parts.clock.sleep(pausedMs, signal);
      }
    }
  }

  /** Appends what was read for another purpose than to collect it. A record of it that is new belongs to the journal like any other. */
  async store(answer: Answer, signal: AbortSignal): Promise<void> {
    const { settings, log } = this.#parts;
    if (!(await this.#gate.admits(answer, signal))) return;
    const { records, received, serverNow } = answer;
    const { late } = await this.#journal.append({ source: settings.id, records, received, serverNow });
    if (late > 0)
      log.warn({ event: 'source.late_records_found', source: settings.id, records: late }, 'stored late records that the hand count found');
  }

  view(): SourceView {
    const { serverClock, settings, clock } = this.#parts;
    const { health } = this.#asker;
    const now = clock.now() * 1000;
    const isRecent = health.lastSuccess !== undefined && now - health.lastSuccess < Math.max(3 * settings.poll, 5_000) * 1000;
    const bound = serverClock.now();
    const agreed = serverClock.agreed();
    const stood = serverClock.stoodSince();
    const still = stood === undefined ? undefined : `the clock of the service stands still since ${microsToIso(stood)}`;
    const trouble = isRecent ? undefined : (health.trouble?.words ?? 'no answer yet');
    return {
      trouble: this.#holds.words ?? trouble ?? still ?? this.#closer.trouble,
      hold: this.#holds.current !== undefined,
      lastSuccess: health.lastSuccess,
      lastError: health.lastError,
      serverNow: serverClock.expected(),
      clockOffsetSeconds: bound === undefined ? undefined : (bound - now) / 1e6,
      clock: serverClock.measuring(),
      nextProof: this.#nextProof(agreed ?? now),
    };
  }

  #nextProof(now: Micros): Micros | undefined {
    const { settings, journal, serverClock } = this.#parts;
    if (!this.#isRunning || this.#holds.current) return undefined;
    const { reached } = journal.marks(settings.id).live;
    const end = endOf(reached, widestMicros(reached, now - this.#settle, this.#settle));
    return Math.max(end + this.#settle, now + (serverClock.measuring()?.remainingMs ?? 0) * 1000);
  }

  /** One piece of work; false when none is due. */
  async #turn(signal: AbortSignal): Promise<boolean> {
    this.#grow();
    if (this.#tipIsDue()) {
      await this.#tip(signal);
      // After a poll that was cut at its 20th page, or took longer than polls are apart, close gets one turn before the next.
      if (this.#resume === undefined && !this.#tipIsDue()) return true;
    }
    const { serverClock } = this.#parts;
    if (!serverClock.established()) return this.#measure(signal);
    const serverNow = serverClock.agreed();
    if (serverNow === undefined) return false;
    await this.#lookAtTime(serverNow);
    await this.#lookAtClock();
    if (this.#holds.current) return this.#test(this.#holds.current, signal);
    if (await this.#parts.upkeep?.(signal)) return true;
    if (this.#closes >= closesInARow) {
      this.#closes = 0;
      if (await this.#again(serverNow, signal)) return true;
    }
    if (await this.#closer.closeNext(serverNow, signal)) {
      this.#closes += 1;
      return true;
    }
    this.#closes = 0;
    return this.#again(serverNow, signal);
  }

  /**
   * Until the clock of the service is known nothing is closed. The answers that confirm a clock that was kept come first; then history is read that
   * is settled by any clock; then the answers are asked for by counts that polls will not bring in time.
   */
  async #measure(signal: AbortSignal): Promise<boolean> {
    const { serverClock, paging, settings, clock, log } = this.#parts;
    if (serverClock.missing(0) === 0) {
      if (!this.#isMeasuring) {
        const remainingMs = Math.round(serverClock.remainingMs());
        const until = microsToIso(Math.round(clock.now() + remainingMs) * 1000);
        log.info(
          { event: 'source.clock_measuring', source: settings.id, until, remainingMs },
          'measuring the clock of the service: records are collected, the first window is proven afterwards',
        );
      }
      this.#isMeasuring = true;
      const agreed = serverClock.agreed();
      if (
        agreed !== undefined &&
        !this.#holds.current &&
        (await this.#closer.readEarly(agreed - Math.min(earlyMost, earlySettles * this.#settle), signal))
      )
        return true;
      if (serverClock.missing(settings.poll) === 0) return false;
    }
    await this.#asker.count({}, paging.first, signal);
    return true;
  }

  /** What stands below close: recounts and further tries that are due, the guard of quiet times, then history that was asked for. */
  async #again(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    if (await this.#closer.again(serverNow, signal)) return true;
    if (await this.#closer.recounter.guard(serverNow, signal)) return true;
    if (await this.#parts.whenIdle?.(signal)) return true;
    return this.backfiller.turn(serverNow, signal);
  }

  /** Time that went back was ahead: what was closed by it is looked at again. So is what the ledger says when the loop begins. */
  async #lookAtTime(serverNow: Micros): Promise<void> {
    const before = this.#latest;
    this.#latest = serverNow;
    if (serverNow >= before) return;
    this.#holds.wentBack(serverNow);
    if (serverNow < before - steppedMicros) await this.#closer.recounter.closedAhead(serverNow);
  }

  /** A clock that is further ahead than it can be closes nothing. */
  async #lookAtClock(): Promise<void> {
    const words = 'the clock of the service is more than an hour ahead; nothing is closed';
    if (this.#parts.serverClock.ahead()) await this.#holds.begin({ reason: 'clock', words });
    else await this.#holds.end('clock');
  }

  /** In hold nothing is closed: once a minute it is tested whether it has passed. */
  async #test(hold: Hold, signal: AbortSignal): Promise<boolean> {
    const { reason, fields = [] } = hold;
    const { recounter } = this.#closer;
    // A wrong clock, and pages without a readable time, are told by what arrives.
    if (reason === 'clock' || reason === 'timestamp') return false;
    if (!this.#holds.testIsDue()) return reason === 'rows' && recounter.survey(hold, signal);
    switch (reason) {
      case 'fields':
        if (await this.#gate.test(fields, signal)) await this.#holds.end(reason);
        break;
      case 'rows':
        if (await recounter.test(hold, signal)) await this.#holds.end(reason);
        break;
      case 'forbidden':
        // The question that was refused before a restart is not known any more: any answer will do.
        await this.#asker.count({}, this.#parts.paging.first, signal);
        await this.#holds.end(reason);
        break;
    }
    return true;
  }

  /** A page size that shrank, because of refusals that may have passed, is not kept for ever. */
  #grow(): void {
    const { paging, clock } = this.#parts;
    this.#sizeMost = Math.max(this.#sizeMost, paging.size);
    if (paging.size === this.#sizeMost) this.#growAt = clock.monotonic() + growMs;
    else if (clock.monotonic() >= this.#growAt) paging.size = this.#sizeMost;
  }

  /** What is new is read between two questions about a window too, also while one of them is answered by failures alone. */
  async between(signal: AbortSignal): Promise<void> {
    // mutant: poll-between-pages
    if (!this.#isRunning || this.#inTip || !this.#tipMayCutIn()) return;
    await this.#tip(signal);
  }

  /**
   * A poll that goes on where the last was cut waits until the window is read: a burst must not hold up its proof. Nor must polls that take longer
   * than they are apart: what they leave to the window is as much time as they take.
   */
  #tipMayCutIn(): boolean {
    return this.#resume === undefined && this.#tipIsDue() && this.#parts.clock.monotonic() >= this.#cutInAt;
  }

  #tipIsDue(): boolean {
    return this.#parts.clock.monotonic() >= this.#pollAt;
  }

  async #tip(signal: AbortSignal): Promise<void> {
    const { settings, clock, serverClock, log, paging } = this.#parts;
    const began = clock.monotonic();
    // A poll within a poll would not end: from here on tip is not due.
    this.#pollAt = began + settings.poll;
    const wall = clock.now() * 1000;
    const serverNow = serverClock.now() ?? wall;
    const tip = {
      sourceId: settings.id,
      asker: this.#asker,
      paging,
      journal: this.#journal,
      gate: this.#gate,
      settle: this.#settle,
      // A clock of the service that is hours ahead would have the first poll ask for a time that has not come.
      begin: Math.min(serverNow, wall),
      log,
    };
    this.#polledFrom ??= beginOf(tip, serverNow);
    this.#inTip = true;
    try {
      this.#resume = await pollTip(tip, serverNow, this.#resume, signal);
    } finally {
      this.#inTip = false;
      const ended = clock.monotonic();
      this.#cutInAt = ended + Math.min(ended - began, cutInMostMs);
    }
    if (this.#resume !== undefined) this.#pollAt = began + Math.min(resumeMs, settings.poll);
  }

  /** How late records become visible is measured where that can be told: not while history is read for the first time. */
  #count(page: CollectedPage, { appended, late, fresh }: Appended): void {
    const { settings, meters, log } = this.#parts;
    if (appended === 0) return;
    meters.recordsCollected(settings.id, appended);
    if (late > 0) meters.recordsLate(settings.id, late);
    if (page.window !== undefined) this.backfiller.appended(appended);
    const { reached } = this.#parts.journal.marks(settings.id).live;
    const isHistory =
      page.window !== undefined &&
      (this.backfiller.isReading || page.serverNow - reached > this.#settle + 2 * widestMicros(reached, reached, this.#settle));
    const polledFrom = this.#polledFrom ?? Infinity;
    if (!isHistory)
      for (const { time } of fresh)
        if (time !== undefined && time >= polledFrom) meters.recordDelay(settings.id, Math.max(0, page.received - time) / 1e6);
    if (this.#records) return;
    this.#records = true;
    log.info({ source: settings.id, records: appended }, 'first record');
  }

  /**
   * History is read no faster than sinks that move take it from memory: reading it back from the file costs more than waiting a moment. The
   * wait is bounded, and a sink that stands still is not waited for: it delays itself alone.
   */
  async #giveWay(): Promise<void> {
    const { journal, clock } = this.#parts;
    for (let turn = 0; turn < giveWayTurns; turn += 1) {
      const behind = journal.behind();
      if (behind === undefined || behind === this.#stoodAt) return;
      await clock.sleep(giveWayMs, unstoppable);
    }
    this.#stoodAt = journal.behind();
  }

  async #pause(signal: AbortSignal): Promise<boolean> {
    const reason = this.#parts.journal.paused();
    if (reason === undefined) return false;
    this.#pauses({ reason });
    await this.#parts.clock.sleep(pausedMs, signal);
    return true;
  }

  #pauses(fields: object): void {
    const { log, settings, clock } = this.#parts;
    if (this.#pausedAt === undefined) log.error({ source: settings.id, ...fields }, 'collecting pauses');
    this.#pausedAt ??= clock.monotonic();
  }

  /** What was due could be stored. */
  #resumed(): void {
    const { log, settings, clock } = this.#parts;
    if (this.#pausedAt === undefined) return;
    const seconds = Math.round((clock.monotonic() - this.#pausedAt) / 1000);
    this.#pausedAt = undefined;
    log.info({ source: settings.id, seconds }, `collection resumed after ${seconds} s`);
  }

  /**
   * Sleeps until the next poll or until the clock of the service is known, at most a second: windows and recounts that become due in between need
   * nobody to wake this loop.
   */
  async #idle(signal: AbortSignal): Promise<void> {
    const { clock, serverClock } = this.#parts;
    const measuredMs = serverClock.remainingMs() || Infinity;
    await clock.sleep(Math.min(idleMostMs, Math.max(10, Math.min(this.#pollAt - clock.monotonic(), measuredMs))), signal);
  }
}

/** The journal, with what each page added told to `count`. */
function counted(journal: CollectJournal, count: (page: CollectedPage, appended: Appended) => Promise<void>): CollectJournal {
  return {
    marks: (id) => journal.marks(id),
    close: (...args) => journal.close(...args),
    confirm: (...args) => journal.confirm(...args),
    due: (...args) => journal.due(...args),
    backfills: (id) => journal.backfills(id),
    timeless: (...args) => journal.timeless(...args),
    remembers: (...args) => journal.remembers(...args),
    window: (...args) => journal.window(...args),
    richest: (...args) => journal.richest(...args),
    closedSince: (...args) => journal.closedSince(...args),
    latest: (...args) => journal.latest(...args),
    remark: (...args) => journal.remark(...args),
    divide: (...args) => journal.divide(...args),
    setHold: (...args) => journal.setHold(...args),
    sound: (...args) => journal.sound(...args),
    setProfile: (...args) => journal.setProfile(...args),
    paused: () => journal.paused(),
    behind: () => journal.behind(),
    append: async (page) => {
      const appended = await journal.append(page);
      await count(page, appended);
      return appended;
    },
  };
}
