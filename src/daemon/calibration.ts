/**
 * When a service is calibrated, at the first start and then weekly, and what follows: its paging is what was found, and a service that answers
 * otherwise than it did is told and counted. Whether its total is true is counted by hand when there is time for it: nothing waits for that.
 */
import type { Paging } from '../collect/pass.ts';
import type { HandCount } from '../collect/hand-count.ts';
import type { Caps } from '../collect/read-window.ts';
import type { Log, Meters, Micros } from '../model.ts';
import { microsToIso } from '../record/timestamp.ts';
import { changesOf } from '../source/calibrate.ts';
import type { Calibration } from '../source/calibrate.ts';
import type { ProfileKeeper } from './profile.ts';

export interface CalibratorParts {
  readonly id: string;
  readonly keeper: Pick<ProfileKeeper, 'profile' | 'calibrated' | 'handCounted'>;
  readonly paging: Paging;
  readonly caps: Caps;
  /** Server time. */
  readonly now: () => Micros;
  /** Asks the service, until there is an answer. */
  readonly ask: (signal: AbortSignal) => Promise<Calibration>;
  /** Counts one small window by hand, of so many records in all; undefined when there is nothing to count. */
  readonly count: (total: number, signal: AbortSignal) => Promise<HandCount | undefined>;
  /** The page size to ask for, by what the service grants. */
  readonly sizeOf: (calibration: Calibration) => number;
  readonly log: Log;
  readonly meters: Pick<Meters, 'calibrationChanged'>;
}

const dayMicros = 86_400_000_000;
const weekMicros = 7 * dayMicros;

export class Calibrator {
  readonly #parts: CalibratorParts;

  constructor(parts: CalibratorParts) {
    this.#parts = parts;
  }

  /** Calibrates when it is due; false when it is not. */
  async whenDue(signal: AbortSignal): Promise<boolean> {
    const { keeper, now } = this.#parts;
    const { calibration: before, calibrated = 0 } = keeper.profile;
    if (before && now() - calibrated <= weekMicros) return false;
    await keeper.calibrated(await this.ask(signal), now());
    return true;
  }

  /** Calibrates, and uses what is found from now on. For a source without a place in the state, which cannot keep it yet. */
  async ask(signal: AbortSignal): Promise<Calibration> {
    const { id, keeper, paging, caps, ask, sizeOf, log, meters } = this.#parts;
    const { calibration: before } = keeper.profile;
    const found = await ask(signal);
    const changes = before ? changesOf(before, found) : [];
    if (changes.length > 0) {
      meters.calibrationChanged(id);
      log.warn({ source: id, ...found, fields: changes }, 'source answers otherwise than when it was calibrated before');
    } else log.info({ source: id, ...found }, 'source calibrated');
    paging.first = found.firstPage;
    paging.size = sizeOf(found);
    caps.largest = Math.max(caps.largest, found.total ?? 0);
    return found;
  }

  /** Counts a window by hand when it is due: weekly, and daily while there was nothing to count. False when it is not. */
  async countWhenDue(signal: AbortSignal): Promise<boolean> {
    const { id, keeper, caps, now, count, log, meters } = this.#parts;
    const { calibration, handCount: before, handCounted } = keeper.profile;
    // Without a usable total there is nothing to compare; that itself was said.
    if (calibration?.total === undefined) return false;
    if (handCounted !== undefined && now() - handCounted <= (before ? weekMicros : dayMicros)) return false;
    const found = await count(Math.max(caps.largest, calibration.total), signal);
    await keeper.handCounted(found, now());
    if (!found) return true;
    const { from, until, read, counted, agrees } = found;
    const fields = { source: id, from: microsToIso(from), until: microsToIso(until), received: read, total: counted };
    if (before && before.agrees !== agrees) meters.calibrationChanged(id);
    if (agrees) log.info(fields, 'total agrees with a hand count');
    else log.error(fields, 'total does not agree with a hand count: such windows cannot be proven');
    return true;
  }
}
