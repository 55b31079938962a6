/** One record that a receiver cannot take never holds the others, whatever the answer (docs/adding-a-sink.md, "One rule for every sink"). */
import { describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Batch, DeliveryResult } from '../../../src/model/sink.ts';
import { Rig, type Loop } from '../../support/deliver/rig.ts';
import { append, committed, deadLetters, numberOf, range } from '../../support/model-journal.ts';

/** The connection ends at a message of `poison`: earlier messages are stored, and their answers are lost. */
const endingAt =
  (loop: Loop, poison: readonly number[]) =>
  (batch: Batch): DeliveryResult => {
    const at = batch.messages.findIndex(({ seq }) => poison.includes(seq));
    if (at < 0) return loop.receiver.take(batch);
    loop.receiver.has.push(...batch.messages.slice(0, at));
    throw new WaybillError('sink_outcome_unknown', 'the receiver closed the connection');
  };

const without = (count: number, poison: readonly number[]): number[] => range(1, count).filter((n) => !poison.includes(n));

describe('the connection ends at a message', () => {
  test.each([{ poison: [1] }, { poison: [5] }, { poison: [20] }, { poison: [4, 5] }, { poison: [3, 17, 18, 19] }, { poison: [40] }])(
    'at $poison: it becomes a dead letter with the reason, and every other message arrives',
    async ({ poison }) => {
      await using rig = await Rig.make();
      const loop = rig.loop({ records: 16 });
      loop.receiver.answer = endingAt(loop, poison);
      await append(rig.journal, 41);
      loop.run();
      await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 41);
      expect([...new Set(loop.receiver.has.map(numberOf))].sort((a, b) => a - b)).toEqual(without(41, poison));
      expect(deadLetters(rig.journal)).toMatchObject(
        poison.map((seq) => ({ seq, code: 'no_answer', message: 'the receiver closed the connection' })),
      );
      expect(loop.delivery.view()).toMatchObject({ state: 'active' });
    },
  );

  // promise: An outage of hours makes no dead letter, and then each message arrives once.
  test('never while no later message is accepted: an outage of hours makes no dead letter, and then each message arrives once', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 16 });
    let isDown = true;
    loop.receiver.answer = (batch) => {
      if (isDown) throw new WaybillError('sink_outcome_unknown', 'connection reset');
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 40);
    loop.run();
    await rig.clock.advance(4 * 3_600_000);
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(loop.delivery.view()).toMatchObject({ state: 'retrying', lastError: 'connection reset' });
    isDown = false;
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 40);
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(loop.receiver.has.map(numberOf).sort((a, b) => a - b)).toEqual(range(1, 40));
  });

  test('the last message of the journal waits for a later one', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 16 });
    loop.receiver.answer = endingAt(loop, [3]);
    await append(rig.journal, 3);
    loop.run();
    await rig.clock.advance(600_000);
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(2);
    await append(rig.journal, 1);
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3 }]);
    expect(loop.receiver.has.map(numberOf)).toContain(4);
  });

  test('a sink that stores its position gets no message out of order', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, keepsPosition: true });
    let isDown = true;
    loop.receiver.answer = (batch) => {
      if (isDown) throw new WaybillError('sink_outcome_unknown', 'the disk does not answer');
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.advance(600_000);
    expect(new Set(loop.receiver.attempts.map(({ batch }) => batch.messages[0]?.seq))).toEqual(new Set([1]));
    isDown = false;
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8);
    expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 8));
  });
});

describe('a single message is refused', () => {
  /** Refuses some messages, as a pipeline of the receiver does, and accepts the others. */
  const refusing =
    (loop: Loop, poison: readonly number[]) =>
    (batch: Batch): DeliveryResult => {
      const left = batch.messages.filter(({ seq }) => poison.includes(seq));
      const taken = batch.messages.filter(({ seq }) => !poison.includes(seq));
      loop.receiver.has.push(...taken.filter((message) => !loop.receiver.has.some(({ seq }) => seq === message.seq)));
      if (left.length === 0) return { rejections: [] };
      const last = taken.at(-1)?.seq ?? 0;
      const reasons = left.map(({ seq }) => ({ seq, code: '400', message: `no field in ${seq}` }));
      const suspects = left.map(({ seq }) => seq).filter((seq) => seq < last);
      return {
        rejections: [],
        retryable: { code: 'sink_blocked', seqs: left.map(({ seq }) => seq), message: 'a pipeline fails', suspects, reasons },
      };
    };

  test.each([{ poison: [1] }, { poison: [4] }, { poison: [3, 4] }, { poison: [8] }])(
    'at $poison, also as the last one of its batch: a dead letter with its reason, and the others arrive once',
    async ({ poison }) => {
      await using rig = await Rig.make();
      const loop = rig.loop({ records: 4 });
      loop.receiver.answer = refusing(loop, poison);
      await append(rig.journal, 9);
      loop.run();
      await rig.clock.advance(50_000);
      expect(committed(rig.journal, 'sink').acknowledged).toBe(9);
      expect(loop.receiver.has.map(numberOf)).toEqual(without(9, poison));
      expect(deadLetters(rig.journal)).toMatchObject(poison.map((seq) => ({ seq, code: '400', message: `no field in ${seq}` })));
    },
  );

  test('one message alone is retried; after six refusals the sink is blocked until the next message arrives', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = refusing(loop, [1]);
    await append(rig.journal, 1);
    loop.run();
    await rig.clock.until(() => loop.receiver.attempts.length === 5);
    expect(loop.delivery.view()).toMatchObject({ state: 'retrying', lastError: 'a pipeline fails' });
    await rig.clock.advance(600_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked' });
    expect(deadLetters(rig.journal)).toEqual([]);
    await append(rig.journal, 1);
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 2);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 1, code: '400' }]);
    expect(loop.receiver.has.map(numberOf)).toEqual([2]);
  });

  test('all messages of a batch: blocked after six refusals, and no dead letter', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = refusing(loop, range(1, 8));
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.advance(30_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked', lastError: 'a pipeline fails' });
    await rig.clock.advance(3_600_000);
    expect(deadLetters(rig.journal)).toEqual([]);
    loop.receiver.answer = (batch) => loop.receiver.take(batch);
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8);
    expect(loop.receiver.has.map(numberOf).sort((a, b) => a - b)).toEqual(range(1, 8));
  });
});

describe('a part that the receiver cannot take now, such as one shard of an index', () => {
  /** Answers 503 to some messages, and accepts the others. */
  const lacking =
    (loop: Loop, isDown: (seq: number) => boolean) =>
    (batch: Batch): DeliveryResult => {
      const seqs = batch.messages.map(({ seq }) => seq).filter(isDown);
      const taken = batch.messages.filter(({ seq }) => !isDown(seq));
      loop.receiver.has.push(...taken);
      const last = taken.at(-1)?.seq ?? 0;
      const reasons = seqs.map((seq) => ({ seq, code: '503', message: `no shard for ${seq}`, isPassing: true as const }));
      const suspects = seqs.filter((seq) => seq < last);
      if (seqs.length === 0) return { rejections: [] };
      return { rejections: [], retryable: { code: 'sink_unavailable', seqs, message: 'a shard is down', suspects, reasons } };
    };

  test.each([{ poison: [1] }, { poison: [3] }, { poison: [8] }])(
    'at $poison: later messages arrive once meanwhile, and it arrives when it can',
    async ({ poison }) => {
      await using rig = await Rig.make();
      const loop = rig.loop({ records: 100 });
      let isDown = true;
      loop.receiver.answer = lacking(loop, (seq) => isDown && poison.includes(seq));
      await append(rig.journal, 8);
      loop.run();
      await rig.clock.advance(60_000);
      await append(rig.journal, 20);
      await rig.clock.advance(300_000);
      expect(loop.receiver.has.map(numberOf).sort((a, b) => a - b)).toEqual(without(28, poison));
      expect(deadLetters(rig.journal)).toEqual([]);
      expect(loop.delivery.view()).toMatchObject({ state: 'retrying', lastError: 'a shard is down' });
      expect(loop.counted.sent).toBe(27);
      isDown = false;
      await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 28);
      expect(loop.receiver.has.map(numberOf).sort((a, b) => a - b)).toEqual(range(1, 28));
      expect(loop.counted.sent).toBe(28);
      expect(loop.lines.filter(({ event }) => event === 'sink.first_delivery')).toHaveLength(1);
    },
  );

  test('that stays down while others are taken: a dead letter after a quarter of an hour, not before', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 1_000 });
    loop.receiver.answer = lacking(loop, (seq) => seq === 2);
    await append(rig.journal, 4);
    loop.run();
    for (let minute = 0; minute < 14; minute += 1) {
      await rig.clock.advance(60_000);
      await append(rig.journal, 1);
    }
    expect(deadLetters(rig.journal)).toEqual([]);
    for (let minute = 14; minute < 45; minute += 1) {
      await rig.clock.advance(60_000);
      await append(rig.journal, 1);
    }
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 49);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 2, code: '503', message: 'no shard for 2' }]);
    expect(loop.receiver.has.map(numberOf).sort((a, b) => a - b)).toEqual(without(49, [2]));
  });

  test('everything down for hours after that: no dead letter, and each message arrives once', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 16 });
    let [isPart, isAll] = [true, false];
    loop.receiver.answer = lacking(loop, (seq) => isAll || (isPart && seq === 2));
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(60_000);
    isAll = true;
    await append(rig.journal, 36);
    await rig.clock.advance(4 * 3_600_000);
    expect(deadLetters(rig.journal)).toEqual([]);
    [isPart, isAll] = [false, false];
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 40);
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(loop.receiver.has.map(numberOf).sort((a, b) => a - b)).toEqual(range(1, 40));
  });
});

test('a stop does not wait for the rest of a batch that only an operator can help, and says nothing of a recovery', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 4 });
  loop.receiver.answer = (batch) => {
    loop.receiver.has.push(...batch.messages.filter(({ seq }) => seq !== 2));
    return { rejections: [], retryable: { code: 'sink_blocked', seqs: [2], message: 'the key lacks a privilege' } };
  };
  await append(rig.journal, 4);
  loop.run();
  await rig.clock.advance(200_000);
  loop.stop.abort(new Error('stop'));
  await rig.clock.advance(1);
  expect([loop.hasEnded, loop.failed]).toEqual([true, undefined]);
  expect(committed(rig.journal, 'sink').acknowledged).toBe(1);
  expect(loop.lines.map(({ event }) => event)).not.toContain('sink.delivery_resumed');
});
