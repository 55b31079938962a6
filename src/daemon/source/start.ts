/** Where the ledger of a source begins that is not in the state yet. */
import type { Asker } from '../../collect/ask.ts';
import { earliest } from '../../collect/earliest.ts';
import type { Paging } from '../../collect/pass.ts';
import { wholeSecond } from '../../collect/windows.ts';
import type { SourceConfig } from '../../config/load.ts';
import type { ServerClock } from '../../model/source.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { Everything } from '../../source/everything.ts';

export interface StartParts {
  readonly settings: Pick<SourceConfig, 'id' | 'start' | 'settle'>;
  readonly asker: Asker;
  readonly paging: Paging;
  readonly everything: Pick<Everything, 'isWhole' | 'widen'>;
  readonly serverClock: Pick<ServerClock, 'now' | 'agreed'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what is awaited, for status and probes; undefined once nothing is. */
  readonly awaits: (words: string | undefined) => void;
}

const againMs = 60_000;
/** Further apart than this one of the two clocks is wrong. */
const apartMost: Micros = 3_600_000_000;
/** A service that says the same for so long is believed, since its records are dated by that clock. The bound keeps one wrong `Date` for half of it. */
const patienceMs = 600_000;
const askMs = 2_000;

/** A whole second. Asks and waits as long as it cannot be known. */
export async function startOf(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { settings, asker, paging, log } = parts;
  const { id, start, settle } = settings;
  switch (start.kind) {
    case 'instant':
      return wholeSecond(start.at);
    case 'now':
      return wholeSecond(await present(parts, signal));
    case 'ago':
      return wholeSecond((await present(parts, signal)) - start.ms * 1000);
    case 'earliest': {
      await untilWhole(parts, signal);
      const found = await earliest(asker, paging, await present(parts, signal), settle * 1000, signal);
      log.info({ source: id, start: microsToIso(found.start), reason: found.words }, 'ledger begins at the earliest record');
      return found.start;
    }
  }
}

/**
 * Server time when this was asked. One answer says it, where it is within an hour of our own clock; otherwise that answer may come from one node that is
 * wrong, and others are asked. A ledger that begins a little early lacks nothing, one that begins in the future of a clock that is ahead would.
 */
async function present(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { settings, asker, paging, serverClock, clock, log, awaits } = parts;
  const began = clock.monotonic();
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  let isTold = false;
  while (Math.abs(now() - clock.now() * 1000) > apartMost && clock.monotonic() - began < patienceMs) {
    const words = `cannot begin yet: the service says that it is ${microsToIso(now())}, this machine ${microsToIso(clock.now() * 1000)}; it is asked for ten minutes, or until they agree within an hour`;
    awaits(words);
    if (!isTold) log.warn({ source: settings.id, words }, 'start is not known yet');
    isTold = true;
    await clock.sleep(askMs, signal);
    await asker.count({}, paging.first, signal);
  }
  awaits(undefined);
  const waited = (clock.monotonic() - began) * 1000;
  return Math.max(serverClock.agreed() ?? now(), now() - apartMost) - waited;
}

/** The first of some records is not the first of all: a ledger that began there would lack the others, and say that it is whole. */
async function untilWhole({ settings, everything, clock, log, awaits }: StartParts, signal: AbortSignal): Promise<void> {
  if (everything.isWhole) return;
  const words =
    'cannot begin at the earliest record: the service answers no question for all of its records, only for those of the last day; it begins once it does, or give sources[].start a time';
  awaits(words);
  log.error({ source: settings.id, words }, 'start is not known yet');
  while (!everything.isWhole) {
    await clock.sleep(againMs, signal);
    await everything.widen(signal);
  }
  awaits(undefined);
}
