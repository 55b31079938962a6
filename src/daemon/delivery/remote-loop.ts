/** The main thread's interface to delivery loops in another thread. */
import { addAbortListener } from 'node:events';
import type { LoopView, SinkLoop } from '../../deliver/sink-loop.ts';
import type { OnDemandResult } from '../../deliver/send-queue.ts';
import { messageOf } from '../../errors.ts';
import type { Journal } from '../../journal/journal.ts';
import { noTracer } from '../../model/telemetry.ts';
import { withoutSecrets } from '../../secrets.ts';
import { carriedSettings } from '../../settings/carried.ts';
import type { Channel, Notified, Remote } from '../channel.ts';
import type { HostService, LoopService } from './host.ts';
import { factsOf, journalService, withoutKnownSecrets } from './journal-access.ts';
import type { LoopParts } from './loop.ts';
import type { SinkPlan } from './plan.ts';
import { archiveService } from './remote-archives.ts';
import { SpanService } from './remote-tracer.ts';
import { reportService } from './reports.ts';

export class RemoteLoops {
  readonly #channel: Channel;
  readonly #journal: Journal;
  readonly #abandoned: () => void;
  readonly #loops = new Map<string, Notified<LoopService>>();
  #isClosed = false;

  /** @param abandoned  called at each request to a loop to abandon its batch */
  constructor(channel: Channel, journal: Journal, abandoned: () => void = () => undefined) {
    this.#channel = channel;
    this.#journal = journal;
    this.#abandoned = abandoned;
    void this.#follow();
  }

  /** Creates a loop in the other thread. It reports to `log`, `meters`, `tracer` and `shown`, and uses the clock and randomness of its thread. */
  create(plan: SinkPlan, { archive, log, meters, tracer = noTracer, shown }: LoopParts): SinkLoop {
    const { id } = plan.sink;
    const channel = this.#channel;
    const notified = channel.notified<LoopService>(`loop/${id}`);
    const spans = new SpanService(tracer);
    channel.serve(`journal/${id}`, journalService(this.#journal, id, notified));
    channel.serve(`reports/${id}`, reportService({ log, meters, shown }, spans));
    channel.serve(`spans/${id}`, spans);
    channel.serve(`archives/${id}`, archiveService(archive));
    const facts = factsOf(this.#journal, id);
    const created = channel.remote<HostService>('host').create(carriedSettings(plan), facts, tracer !== noTracer);
    this.#loops.set(id, notified);
    const ended = (): void => {
      if (this.#loops.get(id) === notified) this.#loops.delete(id);
    };
    const { acknowledged } = facts.progress;
    const first: LoopView = {
      id,
      type: plan.sink.type,
      state: 'active',
      acknowledged,
      trouble: undefined,
      lastSuccess: undefined,
      lastError: undefined,
    };
    return new RemoteLoop(channel.remote<LoopService>(`loop/${id}`), notified, { created, ended, first, abandoned: this.#abandoned });
  }

  /** Call before the journal closes: ends the reads of the journal. */
  close(): void {
    this.#isClosed = true;
  }

  /** Sends the facts after each change of the journal. `changed()` comes first, so that no change is missed. */
  async #follow(): Promise<void> {
    while (!this.#isClosed) {
      const changed = this.#journal.changed();
      for (const [id, loop] of this.#loops) loop.facts(factsOf(this.#journal, id), true);
      await changed;
    }
  }
}

interface RemoteLoopParts {
  /** Rejects with the reason why the loop could not be created. */
  readonly created: Promise<void>;
  /** Called when the loop has ended. */
  readonly ended: () => void;
  /** Called after the request to the loop to abandon its batch. */
  readonly abandoned: () => void;
  /** The view until the loop is created, while the other thread starts. */
  readonly first: LoopView;
}

class RemoteLoop implements SinkLoop {
  readonly #loop: Remote<LoopService>;
  readonly #notified: Notified<LoopService>;
  readonly #parts: RemoteLoopParts;
  readonly onDemand: SinkLoop['onDemand'];
  #isCreated = false;

  constructor(loop: Remote<LoopService>, notified: Notified<LoopService>, parts: RemoteLoopParts) {
    this.#loop = loop;
    this.#notified = notified;
    this.#parts = parts;
    this.onDemand = {
      retry: async (...args) => clean(await loop.retry(...args)),
      test: async (...args) => clean(await loop.test(...args)),
      replay: (...args) => loop.replay(...args),
      replayArchive: (...args) => loop.replayArchive(...args),
      cancelReplay: () => loop.cancelReplay(),
    };
    // `run` reports the error.
    parts.created.then(() => (this.#isCreated = true)).catch(() => undefined);
  }

  async run(stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    using _stopped = addAbortListener(stop, () => this.#notified.stop(messageOf(stop.reason)));
    using _abandoned = addAbortListener(abandon, () => {
      this.#notified.abandon(messageOf(abandon.reason));
      this.#parts.abandoned();
    });
    try {
      await this.#parts.created;
      await this.#loop.run();
    } finally {
      this.#parts.ended();
    }
  }

  wake(): void {
    this.#notified.wake();
  }

  get isOpen(): boolean | Promise<boolean> {
    return this.#isCreated && this.#loop.isOpen();
  }

  view(): LoopView | Promise<LoopView> {
    return this.#isCreated ? this.#view() : this.#parts.first;
  }

  async #view(): Promise<LoopView> {
    const view = await this.#loop.view();
    const shown = (text: string | undefined): string | undefined => (text === undefined ? undefined : withoutSecrets(text, false));
    const { trouble, lastError, replay, timeStamp } = view;
    return {
      ...view,
      trouble: shown(trouble),
      lastError: shown(lastError),
      replay: replay && { ...replay, error: shown(replay.error) },
      timeStamp: timeStamp && { ...timeStamp, lastError: shown(timeStamp.lastError) },
    };
  }
}

function clean(result: OnDemandResult): OnDemandResult {
  return { ...result, rejected: result.rejected.map(withoutKnownSecrets) };
}
