/**
 * The profile of a source in the journal: facts about its service that a restart needs. Written at most once a minute, and at the stop.
 * Written at once when a field gets its first reference record, and when the server clock is first established: a daemon that is often
 * killed must not measure the clock again at each start.
 */
import type { Pace } from '../../collect/close.ts';
import type { VisibilityProfile } from '../../collect/scheduler.ts';
import { codeOf } from '../../errors/errors.ts';
import { storedJson } from '../../journal/damage.ts';
import type { Journal } from '../../journal/journal.ts';
import type { WindowQuery } from '../../model/source.ts';
import type { DelayMeasure } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';
import type { Calibration } from '../../collect/calibrate.ts';
import type { ClockProfile } from '../../source/server-clock.ts';
import type { ServiceFacts } from '../../config/service-facts.ts';

/** All times are server time. */
interface Profile {
  readonly calibration?: Calibration;
  readonly calibrated?: Micros;
  /** Replaces the unbounded query, for a service that rejects it. */
  readonly unboundedQuery?: WindowQuery | undefined;
  readonly clock?: ClockProfile;
  readonly visibility?: VisibilityProfile;
  /** For normalizing the remaining records after the source is removed from the configuration. */
  readonly service?: ServiceFacts;
  readonly delays?: DelayMeasure;
  /** The time of the earliest record at the last request for it, for `start: earliest`. */
  readonly earliest?: Micros;
  readonly pace?: Pace;
}

/** Values that a running source measures. */
export interface Measured {
  /** Undefined: the earlier one stays. */
  readonly clock: ClockProfile | undefined;
  /** The largest number of records that a response reported. */
  readonly largest: number;
  readonly unboundedQuery: WindowQuery;
  readonly visibility: VisibilityProfile;
  readonly delays: DelayMeasure;
}

export function profileOf(text: string | undefined): Profile {
  return text === undefined ? {} : (storedJson(text) as Profile);
}

const writeMs = 60_000;
const firstWriteMs = 500;

export class ProfileStore {
  readonly #id: string;
  readonly #journal: Journal;
  #profile: Profile;
  #written: string;

  constructor(id: string, journal: Journal) {
    this.#id = id;
    this.#journal = journal;
    this.#written = (journal.hasSource(id) ? journal.progress(id).profile : undefined) ?? '{}';
    this.#profile = profileOf(this.#written);
  }

  get profile(): Profile {
    return this.#profile;
  }

  /** @param at  server time */
  async setCalibration(calibration: Calibration, at: Micros): Promise<void> {
    this.#profile = { ...this.#profile, calibration, calibrated: at };
    await this.#write();
  }

  async setEarliest(earliest: Micros): Promise<void> {
    this.#profile = { ...this.#profile, earliest };
    await this.#write();
  }

  async setPace(pace: Pace): Promise<void> {
    this.#profile = { ...this.#profile, pace };
    await this.#write();
  }

  async setService(service: ServiceFacts): Promise<void> {
    this.#profile = { ...this.#profile, service };
    await this.#write();
  }

  /**
   * Saves the measured values periodically until the signal is aborted, and then once more.
   * @param measure  undefined until the server clock is established
   */
  async run(measure: () => Measured | undefined, clock: Clock, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(measure() ? writeMs : firstWriteMs, signal);
      } finally {
        await this.save(measure());
      }
    }
  }

  async save(measured: Measured | undefined): Promise<void> {
    if (!measured) return;
    const { largest, visibility, delays, unboundedQuery } = measured;
    const { calibration } = this.#profile;
    const clock = measured.clock ?? this.#profile.clock;
    // An undefined total is a result: the service reports no usable total.
    const withLargest = calibration && {
      ...calibration,
      total: calibration.total === undefined ? undefined : Math.max(largest, calibration.total),
    };
    const changed = {
      ...(withLargest && { calibration: withLargest }),
      ...(clock && { clock }),
      visibility,
      delays,
    };
    const query = unboundedQuery.startTime === undefined ? undefined : unboundedQuery;
    this.#profile = { ...this.#profile, ...changed, unboundedQuery: query };
    await this.#write();
  }

  async #write(): Promise<void> {
    const text = JSON.stringify(this.#profile);
    if (text === this.#written) return;
    try {
      await this.#journal.setProfile(this.#id, text);
    } catch (thrown) {
      // The journal reports that it is full. The profile stays in memory; the next save tries again.
      if (codeOf(thrown) !== 'journal_full') throw thrown;
      return;
    }
    this.#written = text;
  }
}
