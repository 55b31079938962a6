/** Builds the overview of the status page from snapshots and from reads of the state, in the thread of the admin server. */
import { messageOf } from '../../errors/errors.ts';
import { History } from '../../admin/page/history.ts';
import { overviewOf, windowsWanted, type Overview } from '../../admin/page/overview.ts';
import { progressOf, recentWindows, recordsSince, type Progress } from '../../journal/queries/recent.ts';
import type { StateReader } from '../../journal/state.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock } from '../../model/time.ts';

/** Rates are averages over a minute: this interval gives at least six samples. */
const maxSampleMs = 10_000;

export class Overviews {
  readonly #state: StateReader | undefined;
  readonly #clock: Clock;
  readonly #history = new History();

  /** @param state  undefined: each snapshot is of a fleet, and also a sample */
  constructor(state: StateReader | undefined, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Takes samples until the signal is aborted, at the interval of the history. Does not use the daemon's main thread. */
  async sample(isOpen: () => boolean, log: Log, signal: AbortSignal): Promise<void> {
    const state = this.#state;
    while (state) {
      await this.#clock.sleep(Math.min(this.#history.interval / 1000, maxSampleMs), signal);
      if (!isOpen()) continue;
      try {
        this.#add(state.read((db) => progressOf(db, this.#clock.now() * 1000)));
      } catch (thrown) {
        // The chart lacks this sample. If the state is unreadable, the thread that writes it reports that.
        log.write('admin.sample_failed', { detail: messageOf(thrown) });
      }
    }
  }

  #add({ at, sources, sinks }: Progress): void {
    const lagOf = (frontier: number): number | null => (frontier === 0 ? null : Math.max(0, (at - frontier) / 1e6));
    const lags = [...sources].map(([id, { frontier, collected }]) => [id, { lagSeconds: lagOf(frontier), collected }] as const);
    this.#history.add({ at, sources: new Map(lags), sinks });
  }

  /** @param snapshot  with the coverage of each ledger */
  make(snapshot: Snapshot): Overview {
    const { fleet, now: at } = snapshot;
    if (fleet) this.#add({ at, sources: byId(snapshot.sources), sinks: byId(snapshot.sinks) });
    const page =
      fleet?.page ??
      this.#state?.read((db) => ({
        windows: recentWindows(db, windowsWanted(snapshot.sources.length)),
        today: recordsSince(db, at - (at % 86_400_000_000)),
      }));
    return overviewOf(snapshot, page?.windows ?? new Map(), this.#history, page?.today);
  }
}

function byId<Item extends { readonly id: string }>(items: readonly Item[]): ReadonlyMap<string, Item> {
  return new Map(items.map((item) => [item.id, item]));
}
