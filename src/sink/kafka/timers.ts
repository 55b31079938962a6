/**
 * kafkajs 2.2.4 starts a timer after each response, even if no request waits. Without throttling its delay is negative: Node 24 prints a
 * warning, and as each timer starts the next, the process wakes up a thousand times a second. Only a waiting request needs a timer.
 */
import { createRequire } from 'node:module';

interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests: (this: RequestQueue) => void;
}

const require = createRequire(import.meta.url);

/** Patches kafkajs, once for the process: no timer without a waiting request. */
export function quietTimers(): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as { readonly prototype: RequestQueue & { isQuiet?: boolean } };
  if (prototype.isQuiet) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) schedule.call(this);
  };
  prototype.isQuiet = true;
}
