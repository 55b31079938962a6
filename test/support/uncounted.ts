/** Meters that count nothing. */
import type { Meters } from '../../src/model/telemetry.ts';

const nothing = (): void => undefined;

export const uncounted: Meters = {
  recordsCollected: nothing,
  recordsLate: nothing,
  recordDelay: nothing,
  sourceRequest: nothing,
  sourceSuspended: nothing,
  windowShrunk: nothing,
  calibrationChanged: nothing,
  recordsUnexpected: nothing,
  eventsDelivered: nothing,
  deliveryDelay: nothing,
  sinkRetried: nothing,
  sinkDropped: nothing,
  sinkDuplicates: nothing,
  sinkLoss: nothing,
  messageTruncated: nothing,
  databaseCommit: nothing,
  leaseLost: nothing,
};
