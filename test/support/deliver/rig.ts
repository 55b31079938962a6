/**
 * One loop on a test clock, between the real journal and a receiver in memory, with all its log
 * lines and counts.
 */
import { rmSync } from 'node:fs';
import { Delivery } from '../../../src/deliver/delivery.ts';
import { logEvents } from '../../../src/model/log-events.ts';
import type { DeliverSettings } from '../../../src/deliver/delivery.ts';
import type { OpenArchive } from '../../../src/deliver/archive-source.ts';
import type { Pipeline } from '../../../src/deliver/pipeline.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import type { DeliverJournal, Entry } from '../../../src/model/journal.ts';
import type { Message, Sink } from '../../../src/model/sink.ts';
import type { Meters } from '../../../src/model/telemetry.ts';
import type { Random } from '../../../src/model/time.ts';
import { DeliveryClock, quiet } from '../delivery-clock.ts';
import { openJournal, registerSink, temporary } from '../model-journal.ts';
import { ModelReceiver } from '../model-sink.ts';
import { noting } from '../telemetry/written-events.ts';

interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Wish extends Partial<DeliverSettings> {
  readonly records?: number;
  readonly bytes?: number;
  readonly waitMs?: number;
  readonly keepsPosition?: boolean;
  readonly random?: Random;
  readonly pipeline?: Pipeline;
  readonly receiver?: ModelReceiver;
  /** Replaces the receiver's. */
  readonly open?: (signal: AbortSignal) => Promise<Sink>;
  readonly journal?: (journal: Journal) => DeliverJournal;
  readonly openArchive?: OpenArchive;
}

/** The record unchanged. */
export const plain = ({ seq, number, uid, source, received, late, text }: Entry): Message => ({
  ...{ seq, number, uid, source, time: received, received, late, severity: 1, action: 'Open', key: undefined, bytes: Buffer.from(text) },
});

export class Loop {
  readonly id: string;
  readonly receiver: ModelReceiver;
  readonly delivery: Delivery;
  readonly lines: Line[] = [];
  readonly counted = { sent: 0, dropped: 0, delays: [] as number[] };
  readonly stop = new AbortController();
  readonly abandon = new AbortController();
  ended: Promise<void> = Promise.resolve();
  /** The error of `run`. */
  failed: unknown;
  hasEnded = false;

  constructor(clock: DeliveryClock, journal: Journal, wish: Wish) {
    this.id = wish.id ?? 'sink';
    this.receiver = wish.receiver ?? new ModelReceiver(clock, wish);
    const log = noting({
      write: (event, ...[fields]) => void this.lines.push({ level: logEvents[event].level, event, fields: fields ?? {} }),
    });
    const meters = {
      eventsDelivered: (_sink: string, count: number) => (this.counted.sent += count),
      sinkDropped: (_sink: string, count: number) => (this.counted.dropped += count),
      sinkRetried: () => undefined,
      deliveryDelay: (_sink: string, seconds: number) => this.counted.delays.push(seconds),
    } as unknown as Meters;
    this.delivery = new Delivery({
      settings: {
        id: this.id,
        type: 'model',
        batch: { maxRecords: wish.records ?? 4, maxBytes: wish.bytes ?? 1e6, maxWait: wish.waitMs ?? 1_000 },
        deadline: wish.deadline ?? 30_000,
        resolvable: wish.resolvable ?? wish.keepsPosition ?? false,
        failReadinessAfter: wish.failReadinessAfter ?? 900_000,
      },
      journal: wish.journal?.(journal) ?? journal,
      pipeline: wish.pipeline ?? plain,
      open: wish.open ?? this.receiver.open,
      ...(wish.openArchive && { openArchive: wish.openArchive }),
      clock,
      random: wish.random ?? (() => 0.5),
      log,
      meters,
    });
  }

  run(): this {
    this.ended = this.delivery
      .run(this.stop.signal, this.abandon.signal)
      .catch((thrown: unknown) => (this.failed = thrown))
      .then(() => void (this.hasEnded = true));
    return this;
  }

  /** Stops the loop at once. */
  async end(): Promise<void> {
    this.stop.abort(new Error('stop'));
    await quiet();
    this.abandon.abort(new Error('grace is over'));
    await this.ended;
  }
}

/** A separate state with loops on it; disposal stops everything. */
export class Rig implements AsyncDisposable {
  readonly clock = new DeliveryClock();
  readonly directory: string;
  readonly #loops: Loop[] = [];
  #journal: Journal | undefined;

  static async make(directory = temporary()): Promise<Rig> {
    const rig = new Rig(directory);
    rig.#journal = await openJournal(directory, rig.clock);
    // Tests cut the power by copying the file, which contains all written data, synced or not.
    rig.#journal.db.pragma('synchronous = OFF');
    return rig;
  }

  private constructor(directory: string) {
    this.directory = directory;
  }

  get journal(): Journal {
    if (!this.#journal) throw new Error('the rig has no journal yet');
    return this.#journal;
  }

  loop(wish: Wish = {}): Loop {
    registerSink(this.journal, wish.id ?? 'sink');
    const loop = new Loop(this.clock, this.journal, wish);
    this.#loops.push(loop);
    return loop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const loop of this.#loops) await loop.end();
    await this.journal[Symbol.asyncDispose]();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
