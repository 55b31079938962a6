/** The interface of a delivery loop, which may run in another thread. */
import type { ArchiveReplay, Operation, ReplayRange } from '../model/journal.ts';
import type { Message } from '../model/sink.ts';
import type { SinkSnapshot } from '../model/snapshot.ts';
import type { OnDemandResult } from './send-queue.ts';

/** A promise where the loop runs in another thread. */
type Awaitable<Value> = Value | Promise<Value>;

/** The state of a loop. The journal determines the rest of the snapshot. */
export type LoopView = Omit<SinkSnapshot, 'lagEntries' | 'lagSeconds' | 'deadLetters' | 'hasDelivered'>;

export interface SinkLoop {
  /** See Delivery.run. */
  run(stop: AbortSignal, abandon: AbortSignal): Promise<void>;
  /** Ends the present wait: the loop retries at once. */
  wake(): void;
  /** The sink is open, and its position fits the journal. */
  readonly isOpen: Awaitable<boolean>;
  /** Available even before the sink was opened. */
  view(): Awaitable<LoopView>;
  /** Sends for an operator; see OnDemand. */
  readonly onDemand: {
    retry(seqs: readonly number[], operation: Operation): Promise<OnDemandResult>;
    test(messages: readonly Message[]): Promise<OnDemandResult>;
    replayArchive(replay: ArchiveReplay): Awaitable<void>;
    cancelReplay(): Awaitable<void>;
    replay(range: ReplayRange, expected: number, deadLetters: ReadonlySet<number>): Awaitable<void>;
  };
}
