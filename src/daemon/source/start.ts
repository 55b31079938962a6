/** The start of the ledger of a new source. */
import { earliest } from '../../collect/earliest.ts';
import type { SourceAccess } from '../../collect/source-access.ts';
import { wholeSecond } from '../../collect/windows.ts';
import type { SourceConfig } from '../../config/load.ts';
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { UnboundedQuery } from '../../source/unbounded-query.ts';

interface StartParts extends SourceAccess {
  readonly settings: Pick<SourceConfig, 'start'>;
  readonly unboundedQuery: Pick<UnboundedQuery, 'isWhole' | 'widen'>;
  /** Called with the condition that delays the start, for status and probes; with undefined when nothing delays it. */
  readonly awaits: (message: string | undefined) => void;
}

const widenMs = 60_000;
/** A larger difference means that one of the two clocks is wrong. */
const maxDifference: Micros = 3_600_000_000;
/**
 * After this time without a contradiction, the server clock is trusted despite the difference:
 * records have dates of the same clock. A single wrong `Date` does not stay consistent so long.
 */
const trustMs = 600_000;
const pollMs = 2_000;

/** Waits until the start is known. @returns a whole second, µs */
export async function startOf(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { settings, sourceId, requester, paging, closeDelay, log } = parts;
  const { start } = settings;
  switch (start.kind) {
    case 'instant':
      return wholeSecond(start.at);
    case 'now':
      return wholeSecond(await serverTime(parts, signal));
    case 'ago':
      return wholeSecond((await serverTime(parts, signal)) - start.ms * 1000);
    case 'earliest': {
      await untilUnbounded(parts, signal);
      const found = await earliest(requester, paging, await serverTime(parts, signal), closeDelay, signal);
      log.write('source.ledger_started', { source: sourceId, start: microsToIso(found.start), reason: found.message });
      return found.start;
    }
  }
}

/**
 * Server time at the call. One response is enough when it differs from the clock of this machine by less than an hour. Otherwise one node
 * of the service may be wrong, and the function requests more responses. A ledger that starts slightly early misses nothing; a start in the
 * future misses records.
 */
async function serverTime(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { sourceId, requester, paging, serverClock, clock, log, awaits } = parts;
  const startedAt = clock.monotonic();
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  let isLogged = false;
  while (Math.abs(now() - clock.now() * 1000) > maxDifference && clock.monotonic() - startedAt < trustMs) {
    const message =
      `cannot start the ledger yet: the time of the service is ${microsToIso(now())}, of this machine ` +
      `${microsToIso(clock.now() * 1000)}; waiting up to ten minutes for a difference below one hour`;
    awaits(message);
    if (!isLogged) log.write('source.start_pending', { source: sourceId, detail: message });
    isLogged = true;
    await clock.sleep(pollMs, signal);
    await requester.count({}, paging.first, signal);
  }
  awaits(undefined);
  const waited = (clock.monotonic() - startedAt) * 1000;
  return Math.max(serverClock.agreed() ?? now(), now() - maxDifference) - waited;
}

/** Waits until the service answers the unbounded query: otherwise a ledger from the earliest record would miss older records. */
async function untilUnbounded({ sourceId, unboundedQuery, clock, log, awaits }: StartParts, signal: AbortSignal): Promise<void> {
  if (unboundedQuery.isWhole) return;
  const message =
    'cannot start the ledger at the earliest record: the service does not answer a query for all records, only a query for the last day; ' +
    'trying again every minute; or set sources[].start to a time';
  awaits(message);
  log.write('source.start_unknown', { source: sourceId, detail: message });
  while (!unboundedQuery.isWhole) {
    await clock.sleep(widenMs, signal);
    await unboundedQuery.widen(signal);
  }
  awaits(undefined);
}
