/**
 * Decides what one source does next, one request at a time. The order: a live poll that is due, closing windows, recounts and retries that
 * are due, requested history. After ten closed windows in a row, one item of lower priority gets a turn.
 */
import { codeOf } from '../errors/errors.ts';
import type { CollectJournal } from '../model/journal.ts';
import type { Suspension } from '../model/ledger.ts';
import type { SourceSnapshot } from '../model/snapshot.ts';
import type { ServerClock } from '../model/source.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Answer, Requester } from './requester.ts';
import type { SourceAccess } from './source-access.ts';
import type { Handoff } from './handoff.ts';
import { Backfiller } from './backfill.ts';
import { WindowCloser, type Pace } from './close.ts';
import { ContradictionCheck, type ContradictionProfile } from './contradiction-check.ts';
import { PageStore } from './page-store.ts';
import type { Sample } from './contradictions.ts';
import { VisibilityCheck, type FieldsProfile } from './visibility.ts';
import type { Suspensions } from './suspension.ts';
import type { Paging } from './page-size.ts';
import type { Caps } from './read-window.ts';
import { ClockLost, steppedMicros } from './recount.ts';
import { LivePoll } from './live-poll.ts';
import { PollOverlap } from './poll-overlap.ts';
import { endOf, widestMicros } from './windows.ts';

export interface CollectSettings {
  readonly id: string;
  /** ms */
  readonly pollInterval: number;
  readonly closeDelay: number;
  /** Ages of recount, ms, ascending. */
  readonly recountAfter: readonly number[];
  readonly start?: { readonly kind: string };
}

export interface CollectorParts {
  readonly settings: CollectSettings;
  readonly access: SourceAccess;
  readonly serverClock: ServerClock;
  readonly journal: CollectJournal;
  readonly paging: Paging;
  readonly caps: Caps;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Meters;
  /** What `visibilityProfile` gave before a restart. */
  readonly visibility?: VisibilityProfile | undefined;
  /** Default: the full overlap, until the delays of enough records are known. */
  readonly pollOverlap?: PollOverlap | undefined;
  /** Saves the profile at once: see VisibilityParts. */
  readonly learned?: (profile: VisibilityProfile) => Promise<void>;
  /** See Pace: the last one that `keepPace` got before a restart. */
  readonly pace?: Pace | undefined;
  readonly keepPace?: (pace: Pace) => Promise<void>;
  /** Requests that are not about records, such as calibration. @returns false when none is due */
  readonly maintenance?: (signal: AbortSignal) => Promise<boolean>;
  /** The same for requests that may wait until no window is due. */
  readonly whenIdle?: (signal: AbortSignal) => Promise<boolean>;
}

/** Facts that a collector has learned about its source; they survive a restart; plain JSON. */
export interface VisibilityProfile {
  readonly fields: FieldsProfile;
  /** See Suspensions.lastFullVisibility. */
  readonly lastFullVisibility?: Micros | undefined;
  /** See PageStore.polledFrom. */
  readonly polledFrom?: Micros | undefined;
  readonly contradictions?: ContradictionProfile;
}

/** The part of a source's snapshot that the collector knows. */
interface SourceView extends Pick<
  SourceSnapshot,
  'trouble' | 'failing' | 'lastSuccess' | 'lastError' | 'serverNow' | 'clockOffsetSeconds' | 'clock' | 'nextProof'
> {
  readonly suspension: boolean;
}

/** After this many closed windows in a row, work of lower priority gets a turn. */
const closesInARow = 10;
/** A poll that stopped at its 20th page is continued without waiting for the poll interval. Two polls start at least this far apart. */
const resumeMs = 1_000;
/**
 * While a window is read, the pause between two polls is as long as the last poll took, but no longer than
 * this: an outage may have made that poll long.
 */
const maxCutInMs = 60_000;
const pausedMs = 1_000;
const maxIdleMs = 1_000;
/**
 * Before the clock of the service is known, only windows that ended this long ago by both clocks are read; less if `closeDelay` is short.
 * Windows that still change would have to be read twice. No proof relies on this age.
 */
const maxEarlyAge: Micros = 3_600_000_000;
const earlyCloseDelays = 4;

export class Collector {
  readonly #parts: CollectorParts;
  readonly #requester: Requester;
  readonly #handoff: Handoff;
  readonly #suspensions: Suspensions;
  readonly #visibility: VisibilityCheck;
  readonly #pages: PageStore;
  readonly #poll: LivePoll;
  readonly #closer: WindowCloser;
  readonly #contradictions: ContradictionCheck;
  readonly backfiller: Backfiller;
  readonly #closeDelay: Micros;
  #pollAt = 0;
  /** When a poll may interrupt the reading of a window. */
  #cutInAt = 0;
  /** Before the loop begins, the source may not be in the journal yet. */
  #isRunning = false;
  #closes = 0;
  /** When collecting paused, ms of the monotonic clock. */
  #pausedAt: number | undefined;
  /** The time that both clocks had reached at the last check. */
  #latest: Micros = Number.MAX_SAFE_INTEGER;
  /** True once the log has a line about the measurement of the service's clock. */
  #isMeasuring = false;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    const { settings, serverClock, clock, random, journal, log, meters, paging, caps } = parts;
    const { requester, suspensions, handoff, waits } = parts.access;
    const sourceId = settings.id;
    this.#closeDelay = settings.closeDelay * 1000;
    this.#suspensions = suspensions;
    this.#requester = requester;
    this.#handoff = handoff;
    const { learned: save } = parts;
    const learned = save && (() => save(this.visibilityProfile()));
    const seeing = { profile: parts.visibility?.fields, learned };
    this.#visibility = new VisibilityCheck({ sourceId, requester, paging, journal, suspensions, log, ...seeing });
    const { polledFrom } = parts.visibility ?? {};
    this.#contradictions = new ContradictionCheck({
      sourceId,
      journal,
      suspensions,
      clock,
      waits,
      log,
      closeDelay: this.#closeDelay,
      learned,
      looking: { requester, paging, log, handoff, pauseMs: waits.fresh, sleep: (ms, signal) => clock.sleep(ms, signal) },
      isFromEarliest: settings.start?.kind === 'earliest',
      store: (answer, signal) => this.store(answer, signal),
      remember: (record, request) => this.#pages.remember(record, request),
      recount: (window, signal) => this.#closer.recounter.recount(window, signal),
      profile: parts.visibility?.contradictions,
    });
    const suspect = (sample: Sample): void => this.#contradictions.suspect(sample);
    const storing = {
      suspect,
      sourceId,
      journal,
      visibility: this.#visibility,
      meters,
      clock,
      log,
      closeDelay: this.#closeDelay,
      polledFrom,
    };
    this.#pages = new PageStore(storing);
    const polling = { sourceId, requester, paging, journal, visibility: this.#visibility, pages: this.#pages, clock, log };
    this.#poll = new LivePoll({ ...polling, closeDelay: this.#closeDelay, overlap: parts.pollOverlap ?? new PollOverlap() });
    const reading = {
      requester,
      paging,
      pages: this.#pages,
      caps,
      clock,
      log,
      visibility: this.#visibility,
      // 2 s with the default closeDelay, and in proportion to a shorter one.
      pauseMs: Math.min(2_000, Math.max(50, settings.closeDelay / 30)),
      handoff,
    };
    const ages = settings.recountAfter.map((ms) => ms * 1000);
    const closing = { sourceId, reading, requester, journal, suspensions, serverClock, clock, random, waits, log, meters };
    const { pace, keepPace } = parts;
    this.#closer = new WindowCloser({ ...closing, closeDelay: this.#closeDelay, ages, pace, keepPace });
    const { health } = requester;
    this.backfiller = new Backfiller({ source: sourceId, closer: this.#closer, pages: this.#pages, journal, health, clock, log });
  }

  /** To be saved for a restart. */
  visibilityProfile(): VisibilityProfile {
    return {
      fields: this.#visibility.profile(),
      lastFullVisibility: this.#suspensions.lastFullVisibility,
      polledFrom: this.#pages.polledFrom,
      contradictions: this.#contradictions.profile,
    };
  }

  /**
   * Runs until the signal is aborted.
   * @throws the reason of the signal; any other error is final, and the process must end
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    this.#suspensions.open();
    await this.#closer.checkTimeFilter();
    for (;;) {
      signal.throwIfAborted();
      try {
        if (await this.#pause(signal)) continue;
        const isBusy = await this.#turn(signal);
        if (this.#parts.journal.refuses() === undefined) this.#resumed();
        if (!isBusy) await this.#idle(signal);
      } catch (thrown) {
        signal.throwIfAborted();
        if (thrown instanceof ClockLost) continue;
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        this.#pauses({ code: 'journal_full', reason: await this.#parts.journal.paused(), error: thrown });
        await this.#parts.clock.sleep(pausedMs, signal);
      }
    }
  }

  /** Stores records that were read for another purpose: a new record must not be lost. */
  async store(answer: Answer, signal: AbortSignal): Promise<void> {
    const { settings, log } = this.#parts;
    if (!(await this.#visibility.admits(answer, signal))) return;
    const { late } = await this.#pages.store(answer);
    if (late > 0) log.write('source.late_records_found', { source: settings.id, records: late });
  }

  /** See Requester.retry. */
  retry(): void {
    this.#requester.retry();
  }

  view(): SourceView {
    const { serverClock, settings, clock } = this.#parts;
    const { health } = this.#requester;
    const now = clock.now() * 1000;
    const isRecent = health.lastSuccess !== undefined && now - health.lastSuccess < Math.max(3 * settings.pollInterval, 5_000) * 1000;
    const bound = serverClock.now();
    const agreed = serverClock.agreed();
    const stood = serverClock.stoodSince();
    const still = stood === undefined ? undefined : `the clock of the service has not moved since ${microsToIso(stood)}`;
    const trouble = isRecent ? undefined : (health.trouble?.message ?? 'no answer yet');
    return {
      trouble: this.#suspensions.message ?? trouble ?? still ?? this.#closer.trouble ?? this.#contradictions.profile.outside,
      suspension: this.#suspensions.current !== undefined,
      lastSuccess: health.lastSuccess,
      lastError: health.lastError,
      failing: health.trouble,
      serverNow: serverClock.expected(),
      clockOffsetSeconds: bound === undefined ? undefined : (bound - now) / 1e6,
      clock: serverClock.measuring(),
      nextProof: this.#nextProof(agreed ?? now),
    };
  }

  #nextProof(now: Micros): Micros | undefined {
    const { settings, journal, serverClock } = this.#parts;
    if (!this.#isRunning || this.#suspensions.current) return undefined;
    const { closedUntil } = journal.progress(settings.id).live;
    const end = endOf(closedUntil, widestMicros(closedUntil, now - this.#closeDelay, this.#closeDelay));
    return Math.max(end + this.#closeDelay, now + (serverClock.measuring()?.remainingMs ?? 0) * 1000);
  }

  /** @returns false when nothing is due */
  async #turn(signal: AbortSignal): Promise<boolean> {
    if (this.#livePollIsDue()) {
      await this.#livePoll(signal);
      // After a poll that ended at its 20th page, or took longer than the poll interval, one other item gets a turn.
      if (this.#poll.resume === undefined && !this.#livePollIsDue()) return true;
    }
    let isBusy = false;
    const steps = this.#handoff.run(
      () => this.#livePollMayCutIn(),
      async () => {
        isBusy = await this.#next(signal);
      },
    );
    // Live polls run between the requests of this work, also while it waits to repeat a request: new records are not delayed.
    try {
      while ((await steps.next()).done !== true) await this.#livePoll(signal);
    } finally {
      await steps.return();
    }
    return isBusy;
  }

  /** Does the first item that is due, other than the live poll. */
  async #next(signal: AbortSignal): Promise<boolean> {
    const { serverClock } = this.#parts;
    if (!serverClock.established()) return this.#measure(signal);
    const serverNow = serverClock.agreed();
    if (serverNow === undefined) return false;
    await this.#checkTimeWentBack(serverNow);
    await this.#checkClockAhead();
    if (this.#suspensions.current) return this.#test(this.#suspensions.current, serverNow, signal);
    if (await this.#parts.maintenance?.(signal)) return true;
    if (await this.#contradictions.whenDue(serverNow, signal)) return true;
    if (this.#closes >= closesInARow) {
      this.#closes = 0;
      if (await this.#retry(serverNow, signal)) return true;
    }
    if (await this.#closer.closeNext(serverNow, signal)) {
      this.#closes += 1;
      return true;
    }
    this.#closes = 0;
    return this.#retry(serverNow, signal);
  }

  /**
   * Closes nothing until the clock of the service is known. First obtains the answers that confirm the clock measured before a restart.
   * Then reads old windows. Then sends count requests for the answers that the live polls will not bring in time.
   */
  async #measure(signal: AbortSignal): Promise<boolean> {
    const { serverClock, paging, settings, clock, log } = this.#parts;
    if (serverClock.missing(0) === 0) {
      if (!this.#isMeasuring) {
        const remainingMs = Math.round(serverClock.remainingMs());
        const to = microsToIso(Math.round(clock.now() + remainingMs) * 1000);
        log.write('source.clock_measuring', { source: settings.id, to, remainingMs });
      }
      this.#isMeasuring = true;
      const agreed = serverClock.agreed();
      if (
        agreed !== undefined &&
        !this.#suspensions.current &&
        (await this.#closer.readEarly(agreed - Math.min(maxEarlyAge, earlyCloseDelays * this.#closeDelay), signal))
      )
        return true;
      if (serverClock.missing(settings.pollInterval) === 0) return false;
    }
    await this.#requester.count({}, paging.first, signal);
    return true;
  }

  /** After closing: recounts and retries that are due, samples, requests for idle times, then requested history. */
  async #retry(serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    if (await this.#closer.retry(serverNow, signal)) return true;
    if (await this.#closer.recounter.checkSamples(serverNow, signal)) return true;
    if (await this.#parts.whenIdle?.(signal)) return true;
    return this.backfiller.turn(serverNow, signal);
  }

  /** When the clock went back, windows that were closed by the later time are checked again. The same check runs when the loop starts. */
  async #checkTimeWentBack(serverNow: Micros): Promise<void> {
    const before = this.#latest;
    this.#latest = serverNow;
    if (serverNow >= before) return;
    this.#suspensions.wentBack(serverNow);
    if (serverNow < before - steppedMicros) await this.#closer.recounter.closedAhead(serverNow);
  }

  /** While the clock of the service is impossibly far ahead, nothing is closed. */
  async #checkClockAhead(): Promise<void> {
    const message = 'the clock of the service is more than an hour ahead; nothing is closed';
    if (this.#parts.serverClock.ahead()) await this.#suspensions.begin({ reason: 'clock', message });
    else await this.#suspensions.end('clock');
  }

  /** While the source is suspended nothing is closed; once a minute a test shows whether the suspension may end. */
  async #test(suspension: Suspension, serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { reason, fields = [] } = suspension;
    const { recounter } = this.#closer;
    // A wrong clock and pages without a readable time show in the answers to live polls.
    if (reason === 'clock' || reason === 'timestamp') return false;
    if (!this.#suspensions.testIsDue()) return reason === 'rows' && recounter.sampleRecount(suspension, signal);
    switch (reason) {
      case 'fields':
        if (await this.#visibility.test(fields, signal)) await this.#suspensions.end(reason);
        break;
      case 'rows':
        if (await recounter.test(suspension, signal)) await this.#suspensions.end(reason);
        break;
      case 'filter':
        if (await this.#contradictions.passes(serverNow, signal)) await this.#suspensions.end(reason);
        break;
      case 'forbidden':
        // The refused request is not known after a restart: any answer ends the suspension.
        await this.#requester.count({}, this.#parts.paging.first, signal);
        await this.#suspensions.end(reason);
        break;
    }
    return true;
  }

  /**
   * A poll that continues the previous one waits until the window is read, so that a burst does not delay the proof. After a poll that took
   * longer than the poll interval, the window gets as much time as the poll took.
   */
  #livePollMayCutIn(): boolean {
    return this.#poll.resume === undefined && this.#livePollIsDue() && this.#parts.clock.monotonic() >= this.#cutInAt;
  }

  #livePollIsDue(): boolean {
    return this.#parts.clock.monotonic() >= this.#pollAt;
  }

  async #livePoll(signal: AbortSignal): Promise<void> {
    const { settings, clock, serverClock } = this.#parts;
    const began = clock.monotonic();
    this.#pollAt = began + settings.pollInterval;
    try {
      await this.#poll.poll(serverClock.now() ?? clock.now() * 1000, signal);
    } finally {
      const ended = clock.monotonic();
      this.#cutInAt = ended + Math.min(ended - began, maxCutInMs);
    }
    if (this.#poll.resume !== undefined) this.#pollAt = began + Math.min(resumeMs, settings.pollInterval);
  }

  async #pause(signal: AbortSignal): Promise<boolean> {
    const reason = await this.#parts.journal.paused();
    if (reason === undefined) return false;
    this.#pauses({ reason });
    await this.#parts.clock.sleep(pausedMs, signal);
    return true;
  }

  #pauses(fields: { reason: string | undefined; code?: string; error?: unknown }): void {
    const { log, settings, clock } = this.#parts;
    if (this.#pausedAt === undefined) log.write('source.paused', { source: settings.id, ...fields });
    this.#pausedAt ??= clock.monotonic();
  }

  /** The journal has room again. */
  #resumed(): void {
    const { log, settings, clock } = this.#parts;
    if (this.#pausedAt === undefined) return;
    const seconds = Math.round((clock.monotonic() - this.#pausedAt) / 1000);
    this.#pausedAt = undefined;
    log.write('source.resumed', { source: settings.id, seconds });
  }

  /** Sleeps until the next poll or until the clock of the service is known, at most a second, because windows and recounts become due. */
  async #idle(signal: AbortSignal): Promise<void> {
    const { clock, serverClock } = this.#parts;
    const measuredMs = serverClock.remainingMs() || Infinity;
    await clock.sleep(Math.min(maxIdleMs, Math.max(10, Math.min(this.#pollAt - clock.monotonic(), measuredMs))), signal);
  }
}
