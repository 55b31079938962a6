/** A log and meters that discard everything, for commands that print their findings. */
import type { Log, Meters } from '../model/telemetry.ts';

export const silentLog: Log = { write: () => undefined };

export const unmetered: Pick<Meters, 'sourceRequest'> = { sourceRequest: () => undefined };
