/**
 * A sink is down for an hour while 200 records a second arrive, and then catches up: its rate, and
 * the effect on another sink. In virtual time, in which each message takes CPU time that delays
 * everything else, as in one process.
 */
import { expect, test } from 'vitest';
import { Delivery } from '../../../src/deliver/delivery.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Acknowledgement, DeliverJournal, Entry, Limit } from '../../../src/model/journal.ts';
import type { Position, Window } from '../../../src/model/ledger.ts';
import type { Batch } from '../../../src/model/sink.ts';
import type { Log, Meters } from '../../../src/model/telemetry.ts';
import { DeliveryClock } from '../../support/delivery-clock.ts';
import { plain } from '../../support/deliver/rig.ts';

const perSecond = 200;
const pollMs = 1_000;
const hourMs = 3_600_000;
/** The time to encode one message: 10,000 a second would be the limit of this machine. */
const messageMs = 0.1;
/** From the request to the response. */
const answerMs = 100;
const batch = { maxRecords: 500, maxBytes: 1_000_000, maxWait: 1_000 };
const chain = new Uint8Array(32);

/** A journal in memory that contains only numbers. */
class Numbers implements DeliverJournal {
  readonly id = 'numbers';
  readonly #clock: DeliveryClock;
  readonly #acked = new Map<string, number>();
  #seq = 0;
  #changed = Promise.withResolvers<undefined>();

  constructor(clock: DeliveryClock) {
    this.#clock = clock;
  }

  append(count: number): void {
    this.#seq += count;
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve(undefined);
  }

  /** Entries come in equal pages, `pollMs` apart. */
  receivedMs(seq: number): number {
    return Math.ceil(seq / ((perSecond * pollMs) / 1_000)) * pollMs;
  }

  head = (): Position => ({ seq: this.#seq, chain });
  changed = (): Promise<unknown> => this.#changed.promise;
  chainAt = async (): Promise<Uint8Array> => chain;
  read = async (after: number, { records }: Limit): Promise<readonly Entry[]> =>
    Array.from({ length: Math.max(0, Math.min(records, this.#seq - after)) }, (_, i): Entry => {
      const seq = after + 1 + i;
      const received = (this.#clock.now() - this.#clock.monotonic() + this.receivedMs(seq)) * 1_000;
      return {
        kind: 'record',
        seq,
        number: seq,
        source: 's',
        bytes: Buffer.from('text'),
        text: 'text',
        uid: '',
        received,
        time: received,
        late: false,
        chain,
      };
    });
  sinkProgress = (sink: string) => {
    const acked = this.#acked.get(sink) ?? 0;
    return {
      acknowledged: acked,
      delivered: { seq: acked, chain },
      resumeNote: undefined,
      fromTime: undefined,
      completeSince: 0,
      deadLetters: 0,
      orders: {},
      replays: {},
    };
  };
  acknowledge = async (sink: string, { acknowledged: acked }: Acknowledgement): Promise<void> => void this.#acked.set(sink, acked);
  acknowledgeLater = (sink: string, { acknowledged: acked }: Acknowledgement): void => void this.#acked.set(sink, acked);
  flush = async (): Promise<void> => undefined;
  commitResumeNote = async (): Promise<void> => undefined;
  deadLetter = async (): Promise<undefined> => undefined;
  resolveDeadLetter = async (): Promise<void> => undefined;
  found = async (): Promise<void> => undefined;
  adopted = async (): Promise<void> => undefined;
  archiveCheckpoint = async (): Promise<void> => undefined;
  rejected = async (): Promise<ReadonlySet<number>> => new Set();
  replayed = async (): Promise<void> => undefined;
  lost = async (): Promise<void> => undefined;
  restored = async (): Promise<void> => undefined;
  replayedFrom = (): undefined => undefined;
  withheld = (): readonly Window[] => [];
  readRange = async (after: number): Promise<{ after: number; entries: readonly Entry[] }> => ({ after, entries: [] });
}

test('after an hour of outage the sink catches up at 4,000 records a second or more, and the other sink is hardly delayed', async () => {
  const clock = new DeliveryClock();
  const journal = new Numbers(clock);
  const stop = new AbortController();
  const quiet = (): void => undefined;
  const log: Log = { write: quiet };
  const meters = { eventsDelivered: quiet, deliveryDelay: quiet, sinkRetried: quiet } as unknown as Meters;
  const bytes = Buffer.from('message');
  const loopTo = (id: string, answer: (given: Batch) => void): Delivery =>
    new Delivery({
      settings: { id, type: 'model', batch, deadline: 30_000, resolvable: false, failReadinessAfter: Infinity },
      journal,
      pipeline: (entry) => {
        clock.spend(messageMs);
        return { ...plain(entry), bytes };
      },
      open: async () => ({
        send: async (given, signal) => {
          await clock.sleep(answerMs, signal);
          answer(given);
          return { rejections: [] };
        },
        [Symbol.asyncDispose]: async () => undefined,
      }),
      clock,
      random: () => 0.5,
      log,
      meters,
    });

  /** The delay of each record, while the other sink was down and while it caught up; ms. */
  const delays = { down: [] as number[], catchingUp: [] as number[] };
  const outage = { backMs: 0, doneMs: 0, caughtUp: 0 };
  const down = loopTo('down', ({ messages }) => {
    const now = clock.monotonic();
    if (now < hourMs) throw new WaybillError('sink_unavailable', 'connection refused');
    outage.backMs ||= now;
    if (outage.doneMs === 0) outage.caughtUp += messages.length;
  });
  const beside = loopTo('beside', ({ messages }) => {
    const now = clock.monotonic();
    const those = outage.backMs > 0 ? delays.catchingUp : delays.down;
    for (const { seq } of messages) those.push(now - journal.receivedMs(seq));
  });
  const feed = async (): Promise<void> => {
    for (let at = pollMs; ; at += pollMs) {
      await clock.sleep(at - clock.monotonic(), stop.signal);
      journal.append((perSecond * pollMs) / 1_000);
    }
  };
  const running = [down.run(stop.signal, stop.signal), beside.run(stop.signal, stop.signal), feed().catch(() => undefined)];
  await clock.until(() => down.view().state !== 'active', hourMs);
  await clock.until(() => outage.backMs > 0 && journal.head().seq - down.view().acknowledged <= batch.maxRecords, 2 * hourMs);
  outage.doneMs = clock.monotonic();
  stop.abort(new Error('stop'));
  await Promise.all(running);

  // The loop waits at most a minute between two attempts.
  expect(outage.backMs).toBeLessThan(hourMs + 61_000);
  expect(outage.caughtUp).toBeGreaterThan(720_000);
  expect(outage.caughtUp / ((outage.doneMs - outage.backMs) / 1_000)).toBeGreaterThan(4_000);
  for (const those of [delays.down, delays.catchingUp]) {
    const sorted = Float64Array.from(those).sort();
    expect(sorted.length).toBeGreaterThan(20_000);
    expect(sorted[Math.floor(sorted.length * 0.99)]).toBeLessThan(batch.maxWait + 1_000);
  }
}, 60_000);
