/**
 * Reports a `start` before the ledger of a source, until a backfill covers the difference. A ledger keeps its start: the report gives the
 * `backfill` command that reads the records in between.
 */
import type { SourceConfig } from '../../config/load.ts';
import { requestedStartOf } from '../../config/report-settings.ts';
import { codeOf } from '../../errors/errors.ts';
import { unreadOf } from '../../journal/queries/backfills.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';
import { unreadText } from '../../report/backfills.ts';
import { microsToIso } from '../../record/timestamp.ts';
import type { ProfileStore } from './profile.ts';

export interface UnreadStartParts {
  readonly settings: Pick<SourceConfig, 'id' | 'start'>;
  readonly journal: Pick<Journal, 'db'>;
  readonly store: Pick<ProfileStore, 'profile' | 'setEarliest'>;
  readonly earliest: (signal: AbortSignal) => Promise<Micros>;
  readonly now: () => Micros;
  readonly log: Log;
}

export class UnreadStart {
  readonly #parts: UnreadStartParts;
  #isDue: boolean;

  /** @param hasLedger  the source had a ledger before this start of the daemon */
  constructor(parts: UnreadStartParts, hasLedger: boolean) {
    this.#parts = parts;
    this.#isDue = hasLedger;
  }

  /** With `start: earliest`, once after each start of the daemon: requests the earliest record, and reports. Returns false when not due. */
  async whenDue(signal: AbortSignal): Promise<boolean> {
    const { settings, store, earliest } = this.#parts;
    if (!this.#isDue || settings.start.kind !== 'earliest') return false;
    this.#isDue = false;
    try {
      await store.setEarliest(await earliest(signal));
    } catch (thrown) {
      // The live poll reports an unreadable first page. The next start of the daemon requests it again.
      if (!['page_malformed', 'page_refused', 'page_not_found'].includes(codeOf(thrown) ?? '')) throw thrown;
      return true;
    }
    this.report();
    return true;
  }

  report(): void {
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
