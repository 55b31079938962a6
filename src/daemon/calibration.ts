/**
 * When a service is calibrated, at the first start and then weekly, and what follows: its paging is what was found, and a service that answers
 * otherwise than it did is told and counted.
 */
import type { Paging } from '../collect/pass.ts';
import type { Caps } from '../collect/read-window.ts';
import type { Log, Meters, Micros } from '../model.ts';
import { changesOf } from '../source/calibrate.ts';
import type { Calibration } from '../source/calibrate.ts';
import type { ProfileKeeper } from './profile.ts';

export interface CalibratorParts {
  readonly id: string;
  readonly keeper: Pick<ProfileKeeper, 'profile' | 'calibrated'>;
  readonly paging: Paging;
  readonly caps: Caps;
  /** Server time. */
  readonly now: () => Micros;
  /** Asks the service, until there is an answer. */
  readonly ask: (signal: AbortSignal) => Promise<Calibration>;
  /** The page size to ask for, by what the service grants. */
  readonly sizeOf: (calibration: Calibration) => number;
  readonly log: Log;
  readonly meters: Pick<Meters, 'calibrationChanged'>;
}

const weekMicros = 7 * 86_400_000_000;

export class Calibrator {
  readonly #parts: CalibratorParts;

  constructor(parts: CalibratorParts) {
    this.#parts = parts;
  }

  /** Calibrates when it is due; false when it is not. */
  async whenDue(signal: AbortSignal): Promise<boolean> {
    const { id, keeper, paging, caps, now, ask, sizeOf, log, meters } = this.#parts;
    const { calibration: before, calibrated = 0 } = keeper.profile;
    if (before && now() - calibrated <= weekMicros) return false;
    const found = await ask(signal);
    const changes = before ? changesOf(before, found) : [];
    if (changes.length > 0) {
      meters.calibrationChanged(id);
      log.warn({ source: id, ...found, fields: changes }, 'source answers otherwise than when it was calibrated before');
    } else log.info({ source: id, ...found }, 'source calibrated');
    paging.first = found.firstPage;
    paging.size = sizeOf(found);
    caps.largest = Math.max(caps.largest, found.total ?? 0);
    await keeper.calibrated(found, now());
    return true;
  }
}
