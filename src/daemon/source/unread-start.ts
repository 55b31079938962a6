/**
 * A ledger that has begun begins where it did: `start` moves nothing then. So an earlier one is told, with the command that reads what lies
 * between, until a backfill has been asked for it.
 */
import { wholeSecond } from '../../collect/windows.ts';
import type { SourceConfig } from '../../config/load.ts';
import { codeOf } from '../../errors.ts';
import { unreadOf } from '../../journal/backfills.ts';
import type { Journal } from '../../journal/journal.ts';
import type { RequestedStart } from '../../model/snapshot.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';
import { unreadText } from '../../report/backfills.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { ProfileStore } from './profile.ts';

/** A duration before now is measured by a clock that may be so far from the one that the ledger began by; further is a suspension. */
const clocksApart: Micros = 3_600_000_000;

/**
 * From when on a source is to be collected, by its `start`; undefined where that says no time: `now`, or `earliest` before the service was asked.
 * @param now  µs
 */
export function requestedStartOf(
  { start }: Pick<SourceConfig, 'start'>,
  { earliest }: { readonly earliest?: Micros },
  now: Micros,
): RequestedStart | undefined {
  switch (start.kind) {
    case 'instant':
      return { from: wholeSecond(start.at), apart: 0 };
    case 'ago':
      return { from: wholeSecond(now - start.ms * 1000), apart: clocksApart };
    case 'earliest':
      return earliest === undefined ? undefined : { from: earliest, apart: 0 };
    case 'now':
      return undefined;
  }
}

export interface UnreadStartParts {
  readonly settings: Pick<SourceConfig, 'id' | 'start'>;
  readonly journal: Pick<Journal, 'db'>;
  readonly store: Pick<ProfileStore, 'profile' | 'began'>;
  /** Asks the service where its history begins. */
  readonly earliest: (signal: AbortSignal) => Promise<Micros>;
  readonly now: () => Micros;
  readonly log: Log;
}

/** Looks once after each start whether `start` lies before the ledger of a source. */
export class UnreadStart {
  readonly #parts: UnreadStartParts;
  #isDue: boolean;

  /** @param known  whether the ledger had begun before this start of the daemon */
  constructor(parts: UnreadStartParts, known: boolean) {
    this.#parts = parts;
    this.#isDue = known;
  }

  /** Asks what `start: earliest` means now, and tells. False when that is not to be asked, or was. */
  async whenDue(signal: AbortSignal): Promise<boolean> {
    const { settings, store, earliest } = this.#parts;
    if (!this.#isDue || settings.start.kind !== 'earliest') return false;
    this.#isDue = false;
    try {
      await store.began(await earliest(signal));
    } catch (thrown) {
      // A first page that cannot be read is told by those who need it; the next start asks again.
      if (!['page_malformed', 'page_refused', 'page_not_found'].includes(codeOf(thrown) ?? '')) throw thrown;
      return true;
    }
    this.tell();
    return true;
  }

  /** Says what is not read, as far as it is known. */
  tell(): void {
    const { settings, journal, store, now, log } = this.#parts;
    const requested = requestedStartOf(settings, store.profile, now());
    const unread = requested === undefined ? undefined : unreadOf(journal.db, settings.id, requested);
    if (unread) {
      const { from, to } = unread;
      log.write('source.start_unread', {
        source: settings.id,
        from: microsToIso(from),
        to: microsToIso(to),
        detail: unreadText(settings.id, unread),
      });
    }
  }
}
