/**
 * Decides what one source does next, one request at a time. The order: a live poll that is due, closing windows, recounts and retries that
 * are due, requested history. After ten closed windows in a row, one item of lower priority gets a turn.
 */
import { codeOf } from '../errors/errors.ts';
import type { Suspension } from '../model/ledger.ts';
import type { SourceSnapshot } from '../model/snapshot.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Answer } from './requester.ts';
import type { SourceAccess } from './source-access.ts';
import { Backfiller } from './backfill.ts';
import { WindowCloser, type Pace } from './close.ts';
import { ContradictionCheck, type ContradictionProfile } from './contradiction-check.ts';
import { PageStore } from './page-store.ts';
import type { Sample } from './contradictions.ts';
import { VisibilityCheck, type FieldsProfile } from './visibility.ts';
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
  readonly caps: Caps;
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
  readonly #access: SourceAccess;
  readonly #visibility: VisibilityCheck;
  readonly #pages: PageStore;
  readonly #poll: LivePoll;
  readonly #closer: WindowCloser;
  readonly #contradictions: ContradictionCheck;
  readonly backfiller: Backfiller;
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
    this.#access = parts.access;
    const { settings, meters, caps, pace, keepPace, learned: save, visibility: before, pollOverlap = new PollOverlap() } = parts;
    const shared = { ...parts.access, meters };
    const learned = save && (() => save(this.visibilityProfile()));
    const visibility = new VisibilityCheck({ ...shared, profile: before?.fields, learned });
    this.#visibility = visibility;
    this.#contradictions = new ContradictionCheck({
      ...shared,
      learned,
      isFromEarliest: settings.start?.kind === 'earliest',
      store: (answer, signal) => this.store(answer, signal),
      remember: (record, request) => this.#pages.remember(record, request),
      recount: (window, signal) => this.#closer.recounter.recount(window, signal),
      profile: before?.contradictions,
    });
    const suspect = (sample: Sample): void => this.#contradictions.suspect(sample);
    const pages = new PageStore({ ...shared, suspect, visibility, polledFrom: before?.polledFrom });
    this.#pages = pages;
    this.#poll = new LivePoll({ ...shared, visibility, pages, overlap: pollOverlap });
    // 2 s with the default closeDelay, and in proportion to a shorter one.
    const pauseMs = Math.min(2_000, Math.max(50, settings.closeDelay / 30));
    const ages = settings.recountAfter.map((ms) => ms * 1000);
    this.#closer = new WindowCloser({ ...shared, reading: { ...shared, pages, caps, visibility, pauseMs }, ages, pace, keepPace });
    this.backfiller = new Backfiller({ ...shared, closer: this.#closer, pages });
  }

  visibilityProfile(): VisibilityProfile {
    return {
      fields: this.#visibility.profile(),
      lastFullVisibility: this.#access.suspensions.lastFullVisibility,
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
    this.#access.suspensions.open();
    await this.#closer.checkTimeFilter();
    for (;;) {
      signal.throwIfAborted();
      try {
        if (await this.#pause(signal)) continue;
        const isBusy = await this.#turn(signal);
        if (this.#access.journal.refuses() === undefined) this.#resumed();
        if (!isBusy) await this.#idle(signal);
      } catch (thrown) {
        signal.throwIfAborted();
        if (thrown instanceof ClockLost) continue;
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        this.#pauses({ code: 'journal_full', reason: await this.#access.journal.paused(), error: thrown });
        await this.#access.clock.sleep(pausedMs, signal);
      }
    }
  }

  /** Stores records that were read for another purpose: a new record must not be lost. */
  async store(answer: Answer, signal: AbortSignal): Promise<void> {
    const { sourceId, log } = this.#access;
    if (!(await this.#visibility.admits(answer, signal))) return;
    const { late } = await this.#pages.store(answer);
    if (late > 0) log.write('source.late_records_found', { source: sourceId, records: late });
  }

  retry(): void {
    this.#access.requester.retry();
  }

  view(): SourceView {
    const { settings } = this.#parts;
    const { serverClock, clock } = this.#access;
    const { health } = this.#access.requester;
    const now = clock.now() * 1000;
    const isRecent = health.lastSuccess !== undefined && now - health.lastSuccess < Math.max(3 * settings.pollInterval, 5_000) * 1000;
    const bound = serverClock.now();
    const agreed = serverClock.agreed();
    const stood = serverClock.stoodSince();
    const still = stood === undefined ? undefined : `the clock of the service has not moved since ${microsToIso(stood)}`;
    const trouble = isRecent ? undefined : (health.trouble?.message ?? 'no answer yet');
    return {
      trouble: this.#access.suspensions.message ?? trouble ?? still ?? this.#closer.trouble ?? this.#contradictions.profile.outside,
      suspension: this.#access.suspensions.current !== undefined,
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
    const { sourceId, journal, serverClock } = this.#access;
    if (!this.#isRunning || this.#access.suspensions.current) return undefined;
    const { closedUntil } = journal.progress(sourceId).live;
    const end = endOf(closedUntil, widestMicros(closedUntil, now - this.#access.closeDelay, this.#access.closeDelay));
    return Math.max(end + this.#access.closeDelay, now + (serverClock.measuring()?.remainingMs ?? 0) * 1000);
  }

  /** @returns false when nothing is due */
  async #turn(signal: AbortSignal): Promise<boolean> {
    if (this.#livePollIsDue()) {
      await this.#livePoll(signal);
      // After a poll that ended at its 20th page, or took longer than the poll interval, one other item gets a turn.
      if (this.#poll.resume === undefined && !this.#livePollIsDue()) return true;
    }
    let isBusy = false;
    const steps = this.#access.handoff.run(
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
    const { serverClock } = this.#access;
    if (!serverClock.established()) return this.#measure(signal);
    const serverNow = serverClock.agreed();
    if (serverNow === undefined) return false;
    await this.#checkTimeWentBack(serverNow);
    await this.#checkClockAhead();
    if (this.#access.suspensions.current) return this.#test(this.#access.suspensions.current, serverNow, signal);
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
    const { settings } = this.#parts;
    const { sourceId, serverClock, paging, clock, log } = this.#access;
    if (serverClock.missing(0) === 0) {
      if (!this.#isMeasuring) {
        const remainingMs = Math.round(serverClock.remainingMs());
        const to = microsToIso(Math.round(clock.now() + remainingMs) * 1000);
        log.write('source.clock_measuring', { source: sourceId, to, remainingMs });
      }
      this.#isMeasuring = true;
      const agreed = serverClock.agreed();
      if (
        agreed !== undefined &&
        !this.#access.suspensions.current &&
        (await this.#closer.readEarly(agreed - Math.min(maxEarlyAge, earlyCloseDelays * this.#access.closeDelay), signal))
      )
        return true;
      if (serverClock.missing(settings.pollInterval) === 0) return false;
    }
    await this.#access.requester.count({}, paging.first, signal);
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
    this.#access.suspensions.wentBack(serverNow);
    if (serverNow < before - steppedMicros) await this.#closer.recounter.closedAhead(serverNow);
  }

  /** While the clock of the service is impossibly far ahead, nothing is closed. */
  async #checkClockAhead(): Promise<void> {
    const message = 'the clock of the service is more than an hour ahead; nothing is closed';
    if (this.#access.serverClock.ahead()) await this.#access.suspensions.begin({ reason: 'clock', message });
    else await this.#access.suspensions.end('clock');
  }

  /** While the source is suspended nothing is closed; once a minute a test shows whether the suspension may end. */
  async #test(suspension: Suspension, serverNow: Micros, signal: AbortSignal): Promise<boolean> {
    const { reason, fields = [] } = suspension;
    const { recounter } = this.#closer;
    // A wrong clock and pages without a readable time show in the answers to live polls.
    if (reason === 'clock' || reason === 'timestamp') return false;
    if (!this.#access.suspensions.testIsDue()) return reason === 'rows' && recounter.sampleRecount(suspension, signal);
    switch (reason) {
      case 'fields':
        if (await this.#visibility.test(fields, signal)) await this.#access.suspensions.end(reason);
        break;
      case 'rows':
        if (await recounter.test(suspension, signal)) await this.#access.suspensions.end(reason);
        break;
      case 'filter':
        if (await this.#contradictions.passes(serverNow, signal)) await this.#access.suspensions.end(reason);
        break;
      case 'forbidden':
        // The refused request is not known after a restart: any answer ends the suspension.
        await this.#access.requester.count({}, this.#access.paging.first, signal);
        await this.#access.suspensions.end(reason);
        break;
    }
    return true;
  }

  /**
   * A poll that continues the previous one waits until the window is read, so that a burst does not delay the proof. After a poll that took
   * longer than the poll interval, the window gets as much time as the poll took.
   */
  #livePollMayCutIn(): boolean {
    return this.#poll.resume === undefined && this.#livePollIsDue() && this.#access.clock.monotonic() >= this.#cutInAt;
  }

  #livePollIsDue(): boolean {
    return this.#access.clock.monotonic() >= this.#pollAt;
  }

  async #livePoll(signal: AbortSignal): Promise<void> {
    const { settings } = this.#parts;
    const { clock, serverClock } = this.#access;
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
    const reason = await this.#access.journal.paused();
    if (reason === undefined) return false;
    this.#pauses({ reason });
    await this.#access.clock.sleep(pausedMs, signal);
    return true;
  }

  #pauses(fields: { reason: string | undefined; code?: string; error?: unknown }): void {
    const { sourceId, log, clock } = this.#access;
    if (this.#pausedAt === undefined) log.write('source.paused', { source: sourceId, ...fields });
    this.#pausedAt ??= clock.monotonic();
  }

  #resumed(): void {
    const { sourceId, log, clock } = this.#access;
    if (this.#pausedAt === undefined) return;
    const seconds = Math.round((clock.monotonic() - this.#pausedAt) / 1000);
    this.#pausedAt = undefined;
    log.write('source.resumed', { source: sourceId, seconds });
  }

  /** Sleeps until the next poll or until the clock of the service is known, at most a second, because windows and recounts become due. */
  async #idle(signal: AbortSignal): Promise<void> {
    const { clock, serverClock } = this.#access;
    const measuredMs = serverClock.remainingMs() || Infinity;
    await clock.sleep(Math.min(maxIdleMs, Math.max(10, Math.min(this.#pollAt - clock.monotonic(), measuredMs))), signal);
  }
}
