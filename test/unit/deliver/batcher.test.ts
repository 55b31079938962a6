/**
 * The contents of batches and the time of sending: order, count, bytes, delay, and entries that are
 * not for this sink.
 */
import { describe, expect, test } from 'vitest';
import type { Pipeline } from '../../../src/deliver/pipeline.ts';
import { append, committed, numberOf, range } from '../../support/model-journal.ts';
import { plain, Rig } from '../../support/deliver/rig.ts';
import type { Loop } from '../../support/deliver/rig.ts';

const batchesOf = ({ receiver }: Loop): number[][] => receiver.attempts.map(({ batch }) => batch.messages.map(numberOf));

describe('a batch', () => {
  test('is sent at once when it is full, else after batch.maxWait', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, waitMs: 1_000 });
    await append(rig.journal, 10);
    loop.run();
    await rig.clock.advance(999);
    expect(batchesOf(loop)).toEqual([range(1, 4), range(5, 8)]);
    await rig.clock.advance(1);
    expect(batchesOf(loop)).toEqual([range(1, 4), range(5, 8), [9, 10]]);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([0, 0, 1_000]);
    expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 10));
  });

  test('waits from its first entry on, and includes later entries', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 100, waitMs: 1_000 }).run();
    await rig.clock.advance(5_000);
    await append(rig.journal, 1);
    await rig.clock.advance(600);
    await append(rig.journal, 1);
    await rig.clock.advance(600);
    await append(rig.journal, 1);
    await rig.clock.advance(3_000);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([6_000, 7_200]);
    expect(batchesOf(loop)).toEqual([[1, 2], [3]]);
  });

  test('holds at most batch.maxBytes in UTF-8; a longer message is sent alone', async () => {
    await using rig = await Rig.make();
    const lengths = [300, 300, 300, 300, 1_200, 10, 10];
    const loop = rig.loop({
      records: 100,
      bytes: 1_000,
      // Two bytes per character: by characters, six of the seven would fit.
      pipeline: (entry) => ({ ...plain(entry), bytes: Buffer.from('é'.repeat((lengths[entry.seq - 1] ?? 0) / 2)) }),
    });
    await append(rig.journal, lengths.length);
    loop.run();
    await rig.clock.advance(60_000);
    expect(loop.receiver.attempts.map(({ batch }) => batch.messages.map(({ seq }) => seq))).toEqual([[1, 2, 3], [4], [5], [6, 7]]);
    expect(loop.receiver.attempts.map(({ batch }) => batch.bytes)).toEqual([900, 300, 1_200, 20]);
    expect(loop.receiver.attempts.map(({ batch }) => batch.through.seq)).toEqual([3, 4, 5, 7]);
  });

  test('that is full by bytes is sent at once', async () => {
    await using rig = await Rig.make();
    const loop = rig
      .loop({ records: 100, bytes: 1_000, waitMs: 60_000, pipeline: (entry) => ({ ...plain(entry), bytes: Buffer.alloc(400) }) })
      .run();
    await append(rig.journal, 2);
    await rig.clock.advance(1_000);
    expect(loop.receiver.attempts).toEqual([]);
    await append(rig.journal, 3);
    await rig.clock.advance(0);
    expect(loop.receiver.attempts.map(({ at, batch }) => [at, batch.messages.map(({ seq }) => seq)])).toEqual([
      [1_000, [1, 2]],
      [1_000, [3, 4]],
    ]);
    // The fifth has waited since its arrival.
    await rig.clock.advance(60_000);
    expect(loop.receiver.attempts.at(-1)).toMatchObject({ at: 61_000, batch: { bytes: 400 } });
  });

  test('acknowledges the position of its last entry with the chain value of the journal', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3 });
    await append(rig.journal, 3);
    await append(rig.journal, 3);
    loop.run();
    await rig.clock.advance(10);
    const [first, second] = loop.receiver.attempts.map(({ batch }) => batch.through);
    expect(first).toEqual({ seq: 3, chain: await rig.journal.chainAt(3) });
    expect(second).toEqual({ seq: 6, chain: await rig.journal.chainAt(6) });
    expect(Buffer.compare(first?.chain ?? Buffer.alloc(0), second?.chain ?? Buffer.alloc(0))).not.toBe(0);
  });

  test('is the only one in flight, also when the next is ready', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(5_000, signal);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 20);
    expect(loop.receiver.mostUnderWay).toBe(1);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual(range(0, 9).map((i) => i * 5_000));
    expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 20));
  });

  test('is made in parts: other work runs after each 64 entries', async () => {
    await using rig = await Rig.make();
    let encoded = 0;
    const pipeline: Pipeline = (entry) => {
      encoded += 1;
      return plain(entry);
    };
    const loop = rig.loop({ records: 200, waitMs: 1_000, pipeline });
    await append(rig.journal, 200);
    const seen: number[] = [];
    const look = async (): Promise<void> => {
      while (encoded < 200) {
        seen.push(encoded);
        await rig.clock.sleep(0, loop.stop.signal);
      }
    };
    loop.run();
    const looking = look();
    await rig.clock.advance(0);
    await looking;
    expect([...new Set(seen)]).toEqual(expect.arrayContaining([64, 128, 192]));
    expect(batchesOf(loop)).toEqual([range(1, 200)]);
  });
});

describe('filtered entries', () => {
  test('are acknowledged with the next batch, which continues after them', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, pipeline: (entry) => (entry.seq % 4 === 2 ? plain(entry) : undefined) });
    await append(rig.journal, 19);
    loop.run();
    await rig.clock.advance(1);
    // The fourth entry fills the batch; later entries wait.
    expect(batchesOf(loop)).toEqual([[2, 6, 10, 14]]);
    expect(committed(rig.journal, 'sink')).toMatchObject({ acknowledged: 14, delivered: 14 });
    await rig.clock.advance(1_000);
    expect(batchesOf(loop)).toEqual([[2, 6, 10, 14], [18]]);
    expect(committed(rig.journal, 'sink')).toMatchObject({ acknowledged: 19, delivered: 19 });
  });

  test('do not make a batch small, but one never spans more than 10,000 entries', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 500, pipeline: (entry) => (entry.seq % 1_000 === 7 ? plain(entry) : undefined) });
    await append(rig.journal, 30_000);
    loop.run();
    await rig.clock.advance(0);
    expect(batchesOf(loop)).toEqual([0, 10, 20].map((k) => range(k, k + 9).map((i) => i * 1_000 + 7)));
    expect(loop.receiver.attempts.map(({ batch }) => batch.through.seq)).toEqual([10_000, 20_000, 30_000]);
  });

  test('do not block the event loop, at any number', async () => {
    await using rig = await Rig.make();
    const turns: number[] = [];
    let looked = 0;
    const loop = rig.loop({ pipeline: () => void (looked += 1) });
    await append(rig.journal, 40_000);
    const every = setInterval(() => turns.push(looked), 0);
    loop.run();
    await rig.clock.until(() => loop.delivery.view().acknowledged === 40_000);
    clearInterval(every);
    expect(turns.filter((at) => at > 0 && at < 40_000).length).toBeGreaterThan(0);
  });

  test.each([true, false])('are acknowledged alone after a second, without a send (outcome can be resolved: %s)', async (resolvable) => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, resolvable, pipeline: () => undefined }).run();
    await append(rig.journal, 3);
    await rig.clock.advance(900);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
    await rig.clock.advance(200);
    expect(committed(rig.journal, 'sink')).toMatchObject({ acknowledged: 3, delivered: 0 });
    expect(loop.receiver.attempts).toEqual([]);
  });

  test('do not delay their acknowledgement when more follow', async () => {
    await using rig = await Rig.make();
    rig.loop({ records: 4, pipeline: () => undefined }).run();
    for (let second = 0; second < 11; second += 1) {
      await append(rig.journal, 4);
      await rig.clock.advance(1_000);
    }
    expect(committed(rig.journal, 'sink').acknowledged).toBeGreaterThanOrEqual(40);
  });
});
