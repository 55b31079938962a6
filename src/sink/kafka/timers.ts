/**
 * kafkajs 2.2.4 asks for a timer after each answer, whether or not a request waits, with a delay that is negative when nothing is throttled: Node 24
 * prints a warning, and since each of these timers asks for the next one the process wakes up a thousand times a second for nothing. A timer is needed
 * only while a request waits.
 */
import { createRequire } from 'node:module';

interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests: (this: RequestQueue) => void;
}

const require = createRequire(import.meta.url);

/** Once for the process. */
export function quietTimers(): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as { readonly prototype: RequestQueue & { isQuiet?: boolean } };
  if (prototype.isQuiet) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) schedule.call(this);
  };
  prototype.isQuiet = true;
}
