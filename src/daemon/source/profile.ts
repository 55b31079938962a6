/**
 * What is kept about a service over a restart, in the profile of its source: calibration, the offset of its clock, which fields it shows. Written
 * when it has changed, at once when the clock stands (a daemon that is killed soon after must not build it anew each time) or a field has its first
 * reference record, and at the end.
 */
import type { VisibilityProfile } from '../../collect/scheduler.ts';
import type { HandCount } from '../../collect/hand-count.ts';
import type { Caps } from '../../collect/read-window.ts';
import { codeOf } from '../../errors.ts';
import { storedJson } from '../../journal/damage.ts';
import type { Journal } from '../../journal/journal.ts';
import type { WindowQuery } from '../../model/source.ts';
import type { DelayMeasure } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';
import type { Calibration } from '../../source/calibrate.ts';
import type { ClockProfile, ServerClock } from '../../source/server-clock.ts';
import type { ServiceFacts } from './service-facts.ts';

interface Profile {
  readonly calibration?: Calibration;
  /** When it was calibrated, server time. */
  readonly calibrated?: Micros;
  /** The last hand count that brought something, and when one was last tried, server time. */
  readonly handCount?: HandCount;
  readonly handCounted?: Micros;
  /** What is asked for everything, where that is not the question without times. */
  readonly unboundedQuery?: WindowQuery | undefined;
  readonly clock?: ClockProfile;
  readonly visibility?: VisibilityProfile;
  /** What its records are normalized with, should it be gone from the configuration one day. */
  readonly service?: ServiceFacts;
  readonly delays?: DelayMeasure;
  /** Where the history of the service began when that was asked last, for `start: earliest`. */
  readonly earliest?: Micros;
}

/** What is told anew each time. */
interface Living {
  readonly serverClock: ServerClock;
  readonly caps: Caps;
  readonly unboundedQuery: { readonly query: WindowQuery };
  readonly visibility: () => VisibilityProfile;
  readonly delays: () => DelayMeasure;
}

/** The profile as the journal keeps it. */
export function profileOf(text: string | undefined): Profile {
  return text === undefined ? {} : (storedJson(text) as Profile);
}

const writeMs = 60_000;
const writeFirstMs = 500;

export class ProfileStore {
  readonly #id: string;
  readonly #journal: Journal;
  #kept: Profile;
  #written: string;

  constructor(id: string, journal: Journal) {
    this.#id = id;
    this.#journal = journal;
    this.#written = (journal.hasSource(id) ? journal.progress(id).profile : undefined) ?? '{}';
    this.#kept = profileOf(this.#written);
  }

  get profile(): Profile {
    return this.#kept;
  }

  /** @param at  server time */
  async calibrated(calibration: Calibration, at: Micros): Promise<void> {
    this.#kept = { ...this.#kept, calibration, calibrated: at };
    await this.#write();
  }

  /** @param found  undefined when there was nothing to count: what was found before stays
   *  @param at  server time */
  async handCounted(found: HandCount | undefined, at: Micros): Promise<void> {
    this.#kept = { ...this.#kept, ...(found && { handCount: found }), handCounted: at };
    await this.#write();
  }

  async began(earliest: Micros): Promise<void> {
    this.#kept = { ...this.#kept, earliest };
    await this.#write();
  }

  async serves(service: ServiceFacts): Promise<void> {
    this.#kept = { ...this.#kept, service };
    await this.#write();
  }

  /** Goes on until the signal is aborted. */
  async run(living: Living, clock: Clock, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(living.serverClock.established() ? writeMs : writeFirstMs, signal);
      } finally {
        await this.keep(living);
      }
    }
  }

  /** Writes down what is known now, once the clock of the service stands. */
  async keep({ serverClock, caps, unboundedQuery, visibility, delays }: Living): Promise<void> {
    if (!serverClock.established()) return;
    const known = serverClock.profile() ?? this.#kept.clock;
    const { calibration } = this.#kept;
    // That there was no usable total is a finding of its own.
    const largest = calibration && {
      ...calibration,
      total: calibration.total === undefined ? undefined : Math.max(caps.largest, calibration.total),
    };
    const changed = {
      ...(largest && { calibration: largest }),
      ...(known && { clock: known }),
      visibility: visibility(),
      delays: delays(),
    };
    const asked = unboundedQuery.query.startTime === undefined ? undefined : unboundedQuery.query;
    this.#kept = { ...this.#kept, ...changed, unboundedQuery: asked };
    await this.#write();
  }

  async #write(): Promise<void> {
    const text = JSON.stringify(this.#kept);
    if (text === this.#written) return;
    try {
      await this.#journal.setProfile(this.#id, text);
    } catch (thrown) {
      // A full journal tells of itself, and is no reason to end: what is not written stays in hand, and is tried again with the next look.
      if (codeOf(thrown) !== 'journal_full') throw thrown;
      return;
    }
    this.#written = text;
  }
}
