/**
 * Slow receivers: confirmed messages are resolved, a batch with progress gets more time, and an
 * oversized batch is reduced.
 */
import { describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Batch, OnProgress, Sink, DeliveryResult } from '../../../src/model/sink.ts';
import { append, committed, numberOf, range } from '../../support/model-journal.ts';
import { Rig } from '../../support/deliver/rig.ts';

/**
 * A receiver that accepts one message after the other, each in so many ms, and reports each one if
 * it can.
 */
class Slow {
  readonly taken: number[] = [];
  readonly sizes: number[] = [];
  readonly #rig: Rig;
  readonly #answers: boolean;
  eachMs: number;
  /** After this many messages it breaks the connection. */
  breaksAfter = Infinity;

  constructor(rig: Rig, eachMs: number, answers: boolean) {
    this.#rig = rig;
    this.eachMs = eachMs;
    this.#answers = answers;
  }

  readonly open = async (): Promise<Sink> => ({
    send: async (batch: Batch, signal: AbortSignal, onProgress: OnProgress = () => undefined): Promise<DeliveryResult> => {
      this.sizes.push(batch.messages.length);
      for (const [i, message] of batch.messages.entries()) {
        if (i === this.breaksAfter) throw new WaybillError('sink_outcome_unknown', 'read ECONNRESET');
        await this.#rig.clock.sleep(this.eachMs, signal);
        this.taken.push(numberOf(message));
        if (this.#answers) onProgress(i + 1);
      }
      return { rejections: [] };
    },
    [Symbol.asyncDispose]: async () => undefined,
  });
}

test('a receiver that responds is not interrupted, however long a batch takes', async () => {
  await using rig = await Rig.make();
  const slow = new Slow(rig, 20_000, true);
  const loop = rig.loop({ records: 8, deadline: 30_000, open: slow.open });
  await append(rig.journal, 16);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 16);
  expect(slow.taken).toEqual(range(1, 16));
  expect(slow.sizes).toEqual([8, 8]);
});

describe('a receiver that never responds within the deadline', () => {
  test('receives smaller batches until it responds, and each message is acknowledged', async () => {
    await using rig = await Rig.make();
    const slow = new Slow(rig, 7_000, false);
    const loop = rig.loop({ records: 16, deadline: 30_000, open: slow.open });
    await append(rig.journal, 200);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 200);
    // 16 need 112 s, 8 need 56 s. Four, which need 28 s, are no reason to try eight again.
    expect(slow.sizes).toEqual([16, 8, ...Array.from({ length: 50 }, () => 4)]);
    expect(
      Math.max(
        ...Map.groupBy(slow.taken, (n) => n)
          .values()
          .map(({ length }) => length),
      ),
    ).toBe(3);
  });

  test('receives larger batches again when it is fast', async () => {
    await using rig = await Rig.make();
    const slow = new Slow(rig, 40_000, false);
    const loop = rig.loop({ records: 16, deadline: 30_000, open: slow.open });
    await append(rig.journal, 64);
    loop.run();
    await rig.clock.until(() => slow.sizes.at(-1) === 1);
    slow.eachMs = 10;
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 64);
    expect(slow.sizes.slice(-6)).toEqual([2, 4, 8, 16, 16, 16]);
  });
});

test('messages that the receiver confirmed before the connection broke are acknowledged and not resent', async () => {
  await using rig = await Rig.make();
  const slow = new Slow(rig, 10, true);
  slow.breaksAfter = 3;
  const loop = rig.loop({ records: 8, open: slow.open });
  await append(rig.journal, 8);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8);
  expect(slow.taken).toEqual(range(1, 8));
  expect(slow.sizes).toEqual([8, 5, 2]);
  expect(loop.counted.sent).toBe(8);
});

test('a batch too large for the receiver is halved after three responses in a row until it fits; no message is a dead letter', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 16 });
  const sizes: number[] = [];
  loop.receiver.answer = (batch) => {
    sizes.push(batch.messages.length);
    if (batch.messages.length > 4) throw new WaybillError('sink_unavailable', '429 too large for indexing_pressure', { isCrowded: true });
    return loop.receiver.take(batch);
  };
  await append(rig.journal, 16);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 16);
  expect(sizes.slice(0, 7)).toEqual([16, 16, 16, 8, 8, 8, 4]);
  expect(rig.journal.sinkPositions.sink('sink').deadLetters).toBe(0);
});

test('with another response between, or with a single message, no batch is halved and no message rejected', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 8 });
  const sizes: number[] = [];
  loop.receiver.answer = (batch) => {
    sizes.push(batch.messages.length);
    if (sizes.length > 8) return loop.receiver.take(batch);
    throw new WaybillError('sink_unavailable', 'busy', { isCrowded: sizes.length % 3 !== 0 });
  };
  await append(rig.journal, 8);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8);
  expect(new Set(sizes)).toEqual(new Set([8]));
  loop.receiver.answer = (batch) => {
    if (sizes.push(batch.messages.length) < 20) throw new WaybillError('sink_unavailable', 'busy', { isCrowded: true });
    return loop.receiver.take(batch);
  };
  await append(rig.journal, 1);
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 9);
  expect(rig.journal.sinkPositions.sink('sink').deadLetters).toBe(0);
});
