/** Where the ledger of a source begins that is not in the state yet. */
import type { Asker } from '../collect/ask.ts';
import { earliest } from '../collect/earliest.ts';
import type { Paging } from '../collect/pass.ts';
import { wholeSecond } from '../collect/windows.ts';
import type { SourceConfig } from '../config/load.ts';
import type { Clock, Log, Micros } from '../model.ts';
import { microsToIso } from '../record/timestamp.ts';
import type { Everything } from '../source/everything.ts';

export interface StartParts {
  readonly settings: Pick<SourceConfig, 'id' | 'start' | 'settle'>;
  readonly asker: Asker;
  readonly paging: Paging;
  readonly everything: Pick<Everything, 'isWhole' | 'widen'>;
  /** Server time. */
  readonly present: () => Micros;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what is awaited, for status and probes; undefined once nothing is. */
  readonly awaits: (words: string | undefined) => void;
}

const againMs = 60_000;

/** A whole second. Asks and waits as long as it cannot be known. */
export async function startOf(parts: StartParts, signal: AbortSignal): Promise<Micros> {
  const { settings, asker, paging, log } = parts;
  const { id, start, settle } = settings;
  switch (start.kind) {
    case 'instant':
      return wholeSecond(start.at);
    case 'now':
      return wholeSecond(parts.present());
    case 'ago':
      return wholeSecond(parts.present() - start.ms * 1000);
    case 'earliest': {
      await untilWhole(parts, signal);
      const found = await earliest(asker, paging, parts.present(), settle * 1000, signal);
      log.info({ source: id, start: microsToIso(found.start), reason: found.words }, 'ledger begins at the earliest record');
      return found.start;
    }
  }
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
