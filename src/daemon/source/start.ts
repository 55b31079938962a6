/** Where the ledger of a source begins that is not in the state yet. */
import type { Requester } from '../../collect/requester.ts';
import { earliest } from '../../collect/earliest.ts';
import type { Paging } from '../../collect/page-cursor.ts';
import { wholeSecond } from '../../collect/windows.ts';
import type { SourceConfig } from '../../config/load.ts';
import type { ServerClock } from '../../model/source.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { UnboundedQuery } from '../../source/unbounded-query.ts';

interface StartParts {
  readonly settings: Pick<SourceConfig, 'id' | 'start' | 'closeDelay'>;
  readonly requester: Requester;
  readonly paging: Paging;
  readonly unboundedQuery: Pick<UnboundedQuery, 'isWhole' | 'widen'>;
  readonly serverClock: Pick<ServerClock, 'now' | 'agreed'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what is awaited, for status and probes; undefined once nothing is. */
  readonly awaits: (message: string | undefined) => void;
}

const againMs = 60_000;
/** Further apart than this one of the two clocks is wrong. */
const maxApart: Micros = 3_600_000_000;
/** A service that says the same for so long is believed, since its records are dated by that clock. The bound keeps one wrong `Date` for half of it. */
const waitMs = 600_000;
const askMs = 2_000;

/** A whole second. Asks and waits as long as it cannot be known. */
export async function startOf(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { settings, requester, paging, log } = parts;
  const { id, start, closeDelay } = settings;
  switch (start.kind) {
    case 'instant':
      return wholeSecond(start.at);
    case 'now':
      return wholeSecond(await present(parts, signal));
    case 'ago':
      return wholeSecond((await present(parts, signal)) - start.ms * 1000);
    case 'earliest': {
      await untilWhole(parts, signal);
      const found = await earliest(requester, paging, await present(parts, signal), closeDelay * 1000, signal);
      log.write('source.ledger_started', { source: id, start: microsToIso(found.start), reason: found.message });
      return found.start;
    }
  }
}

/**
 * Server time when this was asked. One answer says it, where it is within an hour of our own clock; otherwise that answer may come from one node that is
 * wrong, and others are asked. A ledger that begins a little early lacks nothing, one that begins in the future of a clock that is ahead would.
 */
async function present(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { settings, requester, paging, serverClock, clock, log, awaits } = parts;
  const began = clock.monotonic();
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  let isTold = false;
  while (Math.abs(now() - clock.now() * 1000) > maxApart && clock.monotonic() - began < waitMs) {
    const message = `cannot begin yet: the service says that it is ${microsToIso(now())}, this machine ${microsToIso(clock.now() * 1000)}; it is asked for ten minutes, or until they agree within an hour`;
    awaits(message);
    if (!isTold) log.write('source.start_pending', { source: settings.id, detail: message });
    isTold = true;
    await clock.sleep(askMs, signal);
    await requester.count({}, paging.first, signal);
  }
  awaits(undefined);
  const waited = (clock.monotonic() - began) * 1000;
  return Math.max(serverClock.agreed() ?? now(), now() - maxApart) - waited;
}

/** The first of some records is not the first of all: a ledger that began there would lack the others, and say that it is whole. */
async function untilWhole({ settings, unboundedQuery, clock, log, awaits }: StartParts, signal: AbortSignal): Promise<void> {
  if (unboundedQuery.isWhole) return;
  const message =
    'cannot begin at the earliest record: the service answers no question for all of its records, only for those of the last day; it begins once it does, or give sources[].start a time';
  awaits(message);
  log.write('source.start_unknown', { source: settings.id, detail: message });
  while (!unboundedQuery.isWhole) {
    await clock.sleep(againMs, signal);
    await unboundedQuery.widen(signal);
  }
  awaits(undefined);
}
