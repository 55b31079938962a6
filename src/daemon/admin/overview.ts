/** Makes the overview of the status page from snapshots and from reads of the state, in the thread of the admin server. */
import { messageOf } from '../../errors.ts';
import { History } from '../../admin/page/history.ts';
import { overviewOf, windowsWanted } from '../../admin/page/overview.ts';
import type { Overview } from '../../admin/page/overview.ts';
import { progressOf, recentWindows } from '../../journal/queries/recent.ts';
import { openReadOnly } from '../../journal/state.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock } from '../../model/time.ts';

const sampleMs = 2_000;

export class Overviews {
  readonly #state: string;
  readonly #clock: Clock;
  readonly #history = new History();

  /** @param state  the state directory */
  constructor(state: string, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Takes a sample every few seconds until the signal is aborted. The daemon's own thread does nothing for it. */
  async sample(isOpen: () => boolean, log: Log, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(sampleMs, signal);
      if (!isOpen()) continue;
      try {
        this.#add();
      } catch (thrown) {
        // The picture lacks this sample; a state that cannot be read is reported by the thread that writes it.
        log.write('admin.sample_failed', { detail: messageOf(thrown) });
      }
    }
  }

  #add(): void {
    const db = openReadOnly(this.#state);
    try {
      const { at, sources, sinks } = progressOf(db, this.#clock.now() * 1000);
      const lagOf = (frontier: number): number | null => (frontier === 0 ? null : Math.max(0, (at - frontier) / 1e6));
      const lags = [...sources].map(([id, { frontier, collected }]) => [id, { lagSeconds: lagOf(frontier), collected }] as const);
      this.#history.add({ at, sources: new Map(lags), sinks });
    } finally {
      db.close();
    }
  }

  /** @param snapshot  with what each ledger covers */
  make(snapshot: Snapshot): Overview {
    const db = openReadOnly(this.#state);
    try {
      return overviewOf(snapshot, recentWindows(db, windowsWanted(snapshot.sources.length)), this.#history);
    } finally {
      db.close();
    }
  }
}
