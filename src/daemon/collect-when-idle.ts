/**
 * Returns unused memory to the system while the daemon is idle: after the start, a backfill or a delivered backlog. V8 would keep this
 * memory, because it lets the heap double before a full collection (bin/waybill.js).
 */

const intervalMs = 30_000;
/**
 * The longest pause between two collections, in intervals. Each collection also discards compiled code: at 100 records a second, one every four
 * minutes took a tenth of the CPU.
 */
const maxPause = 64;
const pauseGrowth = 4;
/** A thread that uses less than this share of a core is idle. */
const idleShare = 0.05;
/**
 * Minimum growth of the heap for a collection. At a steady rate of records V8 keeps the growth below this amount by collections of its own,
 * which keep compiled code.
 */
const grownBytes = 12 * 1024 * 1024;

/** Collects the garbage of the calling thread while it is idle: about 80 ms of CPU each time. Does nothing without `--expose-gc`. */
export function collectWhenIdle(everyMs = intervalMs): void {
  const { gc } = globalThis;
  if (!gc) return;
  let before = process.threadCpuUsage();
  let kept = 0;
  // Intervals between two collections, longer each time until the thread works again, and how many of them are left.
  let pause = 1;
  let left = 0;
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    const isWorking = user + system > everyMs * 1_000 * idleShare;
    if (isWorking) [pause, left] = [1, 0];
    else if (left > 0) left -= 1;
    if (isWorking || left > 0 || process.memoryUsage().heapTotal < kept + grownBytes) return;
    // Unlike a normal collection, this also returns the free pages of the heap.
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    kept = process.memoryUsage().heapTotal;
    left = pause;
    pause = Math.min(pauseGrowth * pause, maxPause);
  }, everyMs).unref();
}
