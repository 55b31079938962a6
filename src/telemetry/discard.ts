/** A log and meters that drop what they get, for commands that print their findings themselves. */
import type { Log, Meters } from '../model/telemetry.ts';

export const silentLog: Log = { write: () => undefined };

export const unmetered: Pick<Meters, 'sourceRequest'> = { sourceRequest: () => undefined };
