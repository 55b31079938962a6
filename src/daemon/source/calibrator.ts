/**
 * When a service is calibrated, at the first start and then weekly, and what follows: its paging is what was found, and a service that answers
 * otherwise than it did is told and counted. Only the first one is waited for. Whether its total is true is counted by hand when there is time for it: nothing waits for that.
 */
import type { Paging } from '../../collect/page-cursor.ts';
import type { Counting, HandCount } from '../../collect/hand-count.ts';
import type { Caps } from '../../collect/read-window.ts';
import { codeOf, isFinal, messageOf } from '../../errors.ts';
import type { Log, Meters } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import { changesOf } from '../../source/calibrate.ts';
import type { Calibration } from '../../source/calibrate.ts';
import type { ProfileStore } from './profile.ts';

/** Stores what a hand count read. */
type Store = Counting['store'];

interface CalibratorParts {
  readonly id: string;
  readonly store: Pick<ProfileStore, 'profile' | 'calibrated' | 'handCounted'>;
  readonly paging: Paging;
  readonly caps: Caps;
  /** Server time. */
  readonly now: () => Micros;
  /** Asks the service, until there is an answer. */
  readonly ask: (signal: AbortSignal) => Promise<Calibration>;
  /** Asks it once: throws what it is answered with. */
  readonly askOnce: (signal: AbortSignal) => Promise<Calibration>;
  /** Counts one small window by hand, of so many records in all; undefined when there is nothing to count. */
  readonly count: (total: number, store: Store, signal: AbortSignal) => Promise<HandCount | undefined>;
  /** The page size to ask for, by what the service grants. */
  readonly sizeOf: (calibration: Calibration) => number;
  readonly log: Log;
  readonly meters: Pick<Meters, 'calibrationChanged'>;
}

const dayMicros = 86_400_000_000;
const weekMicros = 7 * dayMicros;
const minuteMicros = 60_000_000;
/** When a calibration that failed is tried again, minutes; then once an hour. */
const againMinutes = [1, 5, 15];

export class Calibrator {
  readonly #parts: CalibratorParts;
  #failures = 0;
  #againAt: Micros = 0;
  #trouble: string | undefined;

  constructor(parts: CalibratorParts) {
    this.#parts = parts;
  }

  /** Why the last one that was due could not be made; undefined when it was. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Calibrates when it is due; false when it is not. One that fails is tried again later: until then what is known holds. */
  async whenDue(signal: AbortSignal): Promise<boolean> {
    const { id, store, now, log } = this.#parts;
    const { calibration: before, calibrated = 0 } = store.profile;
    if (!before) {
      await store.calibrated(await this.ask(signal), now());
      return true;
    }
    if (now() - calibrated <= weekMicros || now() < this.#againAt) return false;
    try {
      await store.calibrated(this.#use(await this.#parts.askOnce(signal)), now());
      this.#failures = 0;
      this.#trouble = undefined;
    } catch (thrown) {
      signal.throwIfAborted();
      if (codeOf(thrown) === undefined || isFinal(thrown)) throw thrown;
      this.#againAt = now() + (againMinutes[this.#failures] ?? 60) * minuteMicros;
      this.#failures += 1;
      this.#trouble = messageOf(thrown);
      const fields = { source: id, code: codeOf(thrown), next: microsToIso(this.#againAt), error: thrown };
      log.write('source.calibration_failed', fields);
    }
    return true;
  }

  /** Calibrates, and uses what is found from now on. For a source without a place in the state, which cannot keep it yet. */
  async ask(signal: AbortSignal): Promise<Calibration> {
    return this.#use(await this.#parts.ask(signal));
  }

  #use(found: Calibration): Calibration {
    const { id, store, paging, caps, sizeOf, log, meters } = this.#parts;
    const { calibration: before } = store.profile;
    const changes = before ? changesOf(before, found) : [];
    if (changes.length > 0) {
      meters.calibrationChanged(id);
      log.write('source.behaviour_changed', { source: id, ...found, fields: changes });
    } else log.write('source.calibrated', { source: id, ...found });
    paging.first = found.firstPage;
    paging.size = sizeOf(found);
    caps.largest = Math.max(caps.largest, found.total ?? 0);
    return found;
  }

  /** Counts a window by hand when it is due: weekly, and daily while there was nothing to count. False when it is not. */
  async countWhenDue(store: Store, signal: AbortSignal): Promise<boolean> {
    const { id, store: profiles, caps, now, count, log, meters } = this.#parts;
    const { calibration, handCount: before, handCounted } = profiles.profile;
    // Without a usable total there is nothing to compare; that itself was said.
    if (calibration?.total === undefined) return false;
    if (handCounted !== undefined && now() - handCounted <= (before ? weekMicros : dayMicros)) return false;
    const found = await count(Math.max(caps.largest, calibration.total), store, signal);
    await profiles.handCounted(found, now());
    if (!found) return true;
    const { from, to, read, counted, agrees } = found;
    const fields = { source: id, from: microsToIso(from), to: microsToIso(to), received: read, total: counted };
    if (before && before.agrees !== agrees) meters.calibrationChanged(id);
    if (agrees) log.write('source.total_correct', fields);
    else log.write('source.total_wrong', fields);
    return true;
  }
}
