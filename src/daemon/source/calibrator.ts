/**
 * Schedules calibration: at the first start, then weekly, or hourly while the service shows too little. Each result replaces the paging parameters; the log and a metric show a change.
 * Only the first calibration delays the source.
 */
import type { SourcePaging } from '../../collect/page-size.ts';
import type { Caps } from '../../collect/read-window.ts';
import { codeOf, isFinal, messageOf } from '../../errors/errors.ts';
import type { Log, Meters } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import { changesOf, type Calibration } from '../../collect/calibrate.ts';
import type { ProfileStore } from './profile.ts';

interface CalibratorParts {
  readonly id: string;
  readonly store: Pick<ProfileStore, 'profile' | 'setCalibration'>;
  readonly paging: Pick<SourcePaging, 'calibrated'>;
  readonly caps: Caps;
  /** Server time. */
  readonly now: () => Micros;
  /** Retries until the service responds. */
  readonly calibrate: (signal: AbortSignal) => Promise<Calibration>;
  /** One attempt. Throws its error. */
  readonly calibrateOnce: (signal: AbortSignal) => Promise<Calibration>;
  readonly sizeOf: (calibration: Calibration) => number;
  readonly log: Log;
  readonly meters: Pick<Meters, 'calibrationChanged'>;
}

const weekMicros = 7 * 86_400_000_000;
const minuteMicros = 60_000_000;
const hourMicros = 60 * minuteMicros;
/** Minutes until the next attempt after each failed calibration; later ones follow once an hour. */
const retryMinutes = [1, 5, 15];

export class Calibrator {
  readonly #parts: CalibratorParts;
  #failures = 0;
  #retryAt: Micros = 0;
  #trouble: string | undefined;

  constructor(parts: CalibratorParts) {
    this.#parts = parts;
  }

  /** The error of the last attempt; undefined after a success. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Calibrates when it is due; returns false when it is not. After a failure the earlier calibration stays in use until a retry. */
  async whenDue(signal: AbortSignal): Promise<boolean> {
    const { id, store, now, log } = this.#parts;
    const { calibration, calibrated = 0 } = store.profile;
    if (!calibration) {
      await store.setCalibration(await this.calibrate(signal), now());
      return true;
    }
    // Without a usable total nothing is proven, so its return is noticed soon.
    const valid = calibration.preliminary || /* mutant: total-returns */ calibration.total === undefined ? hourMicros : weekMicros;
    if (now() - calibrated <= valid || now() < this.#retryAt) return false;
    try {
      await store.setCalibration(this.#use(await this.#parts.calibrateOnce(signal)), now());
      this.#failures = 0;
      this.#trouble = undefined;
    } catch (thrown) {
      signal.throwIfAborted();
      if (codeOf(thrown) === undefined || isFinal(thrown)) throw thrown;
      this.#retryAt = now() + (retryMinutes[this.#failures] ?? 60) * minuteMicros;
      this.#failures += 1;
      this.#trouble = messageOf(thrown);
      const fields = { source: id, code: codeOf(thrown), next: microsToIso(this.#retryAt), error: thrown };
      log.write('source.calibration_failed', fields);
    }
    return true;
  }

  /** Calibrates and uses the result, without storing it: a new source has no row in the state yet. */
  async calibrate(signal: AbortSignal): Promise<Calibration> {
    return this.#use(await this.#parts.calibrate(signal));
  }

  #use(found: Calibration): Calibration {
    const { id, store, paging, caps, sizeOf, log, meters } = this.#parts;
    const { firstPage, pageSize, total, dated } = found;
    const fields = { source: id, pageSize, total, dated, ...(firstPage !== undefined && { firstPage }) };
    const { calibration: before } = store.profile;
    const changes = before ? changesOf(before, found) : [];
    if (changes.length > 0) {
      meters.calibrationChanged(id);
      log.write('source.behaviour_changed', { ...fields, fields: changes });
    } else log.write('source.calibrated', fields);
    paging.calibrated(found, sizeOf(found));
    caps.largest = Math.max(caps.largest, total ?? 0);
    return found;
  }
}
