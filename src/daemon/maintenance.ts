/**
 * Periodic work on the journal: checks that its file still exists, verifies it in steps, prunes it, and logs each frontier once an hour,
 * so that the log keeps the frontier when the state is lost.
 */
import type { Journal } from '../journal/journal.ts';
import { completeUntil } from '../model/ledger.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';

const checkMs = 10_000;
const checkPausedMs = 1_000;
const pruneMs = 60_000;
const frontierMs = 3_600_000;
/** Pause between two steps of pruning, for other work of the thread. */
const pruneStepMs = 10;

export async function maintainJournal(
  journal: Journal,
  sources: () => readonly string[],
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let frontierAt = clock.monotonic() + frontierMs;
  let pruneAt = clock.monotonic() + pruneMs;
  for (;;) {
    const isPaused = (await journal.paused()) !== undefined;
    await clock.sleep(isPaused ? checkPausedMs : checkMs, signal);
    journal.assertPresent();
    if (await journal.examine(checkMs)) log.write('state.checked', { head: journal.head().seq });
    // While collection is paused, it waits for pruning: no delay.
    if (!isPaused && clock.monotonic() < pruneAt) continue;
    pruneAt = clock.monotonic() + pruneMs;
    for (let pruned = journal.prune(); pruned > 0; pruned = journal.prune()) {
      log.write('journal.pruned', { entries: pruned });
      await clock.sleep(pruneStepMs, signal);
    }
    while (journal.shrinkCopy() > 0) await clock.sleep(pruneStepMs, signal);
    if (clock.monotonic() < frontierAt) continue;
    frontierAt += frontierMs;
    for (const id of sources().filter((source) => journal.hasSource(source))) {
      const { frontier, live } = journal.progress(id);
      const until = completeUntil({ frontier, liveFrom: live.from });
      if (until !== undefined) log.write('source.complete_until', { source: id, completeUntil: microsToIso(until) });
    }
  }
}
