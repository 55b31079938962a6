/**
 * Returns unused memory to the system while the daemon rests: of the start, of history that was read, of a backlog that was delivered. V8
 * would keep it, because it lets the heap double before a full collection (bin/waybill.js).
 */

const intervalMs = 30_000;
/** A thread that uses less of a core rests. */
const restShare = 0.05;
/** Less garbage is not worth a collection. Polling leaves as much in a minute or two. */
const garbageBytes = 2 * 1024 * 1024;

/**
 * Collects the garbage of the calling thread while it rests: about 80 ms of CPU each time. Needs `--expose-gc`, without which it does
 * nothing.
 */
export function collectAtRest(everyMs = intervalMs): void {
  const { gc } = globalThis;
  if (!gc) return;
  let before = process.threadCpuUsage();
  let kept = 0;
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    const isWorking = user + system > everyMs * 1_000 * restShare;
    if (isWorking || process.memoryUsage().heapUsed < kept + garbageBytes) return;
    // Also returns the free pages of the heap, which a usual collection keeps.
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    kept = process.memoryUsage().heapUsed;
  }, everyMs).unref();
}
