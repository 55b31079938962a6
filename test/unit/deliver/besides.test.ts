/** What a person has a sink get besides its batches: dead letters once more, a range of the journal again, events to try it out. */
import { describe, expect, test } from 'vitest';
import { codeOf, WaybillError } from '../../../src/errors.ts';
import type { Entry, Operation } from '../../../src/model/journal.ts';
import type { Batch } from '../../../src/model/sink.ts';
import { append, committed, deadLetters, numberOf, range } from '../../support/model-journal.ts';
import { plain, Rig } from './rig.ts';
import type { Loop } from './rig.ts';

const operation: Operation = { at: 7, who: 'j.doe', what: 'dead-letters retry', detail: { why: 'mended' } };
const operations = ({ journal }: Rig): { what: string; detail: unknown }[] =>
  (journal.db.prepare('SELECT what, detail FROM operations ORDER BY n').all() as { what: string; detail: string }[]).map((row) => ({
    ...row,
    detail: JSON.parse(row.detail) as unknown,
  }));
const sentBesides = ({ receiver }: Loop): Batch[] => receiver.attempts.flatMap(({ batch }) => (batch.besides === undefined ? [] : [batch]));
const every = { first: 1, last: 1_000_000, times: undefined };
const none = (): boolean => false;

/** A loop with entries 1 to 6, of which the sink refused 3; `mended`: no more. */
async function refused(rig: Rig, wish: Parameters<Rig['loop']>[0] = {}): Promise<{ loop: Loop; mended: { is: boolean } }> {
  const mended = { is: false };
  const loop = rig.loop({ records: 4, ...wish });
  loop.receiver.answer = (batch) => {
    if (!mended.is && batch.messages.some(({ seq }) => seq === 3)) throw new WaybillError('sink_refused', 'field seven');
    return loop.receiver.take(batch);
  };
  await append(rig.journal, 6);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acked === 6);
  return { loop, mended };
}

describe('a dead letter that is sent again', () => {
  test.each([true, false])(
    'and taken is gone, with its row in operations; the position stays (kept by the sink: %s)',
    async (keepsPosition) => {
      await using rig = await Rig.make();
      const { loop, mended } = await refused(rig, { keepsPosition });
      mended.is = true;
      const before = committed(rig.journal, 'sink');
      const done = loop.delivery.besides.retry([3], operation);
      await rig.clock.until(() => loop.receiver.has.length === 6);
      expect(await done).toMatchObject({ refused: [] });
      const [batch] = sentBesides(loop);
      expect(batch).toMatchObject({ besides: 'retry', uncertain: true, through: { seq: before.taken } });
      expect(batch?.messages.map((message) => [numberOf(message), message.seq, message.number])).toEqual([[3, 3, 3]]);
      expect(deadLetters(rig.journal)).toEqual([]);
      expect(rig.journal.sinkMarks('sink').deadLetters).toBe(0);
      expect(operations(rig)).toEqual([{ what: 'dead-letters retry', detail: { sink: 'sink', seq: 3, taken: true, why: 'mended' } }]);
      expect(committed(rig.journal, 'sink')).toMatchObject({ taken: before.taken, note: `through ${before.taken}` });
      // And what comes next is delivered as ever.
      await append(rig.journal, 4);
      await rig.clock.until(() => loop.receiver.has.length === 10);
      expect(loop.receiver.has.slice(6).map(numberOf)).toEqual(expect.arrayContaining([8, 9, 10]) as number[]);
    },
  );

  test('of many, a batch at a time: what is taken is gone, what is refused or left stays, whatever the size of the batch', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    let isMended = false;
    loop.receiver.answer = (batch) => {
      if (!isMended) return { rejections: batch.messages.map(({ seq }) => ({ seq, code: 'bad', words: 'mapping' })) };
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 12);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 12);
    const all = range(1, 12);
    expect(deadLetters(rig.journal)).toHaveLength(12);
    isMended = true;
    const sizes: number[] = [];
    loop.receiver.answer = (batch) => {
      // The rows of operations come as entries of their own.
      if (batch.besides === undefined) return loop.receiver.take(batch);
      sizes.push(batch.messages.length);
      // The first batch in part, the second refused whole until its one bad message is alone.
      const seqs = batch.messages.map(({ seq }) => seq);
      if (seqs.includes(6)) throw new WaybillError('sink_refused', 'too large');
      const taken = loop.receiver.take(batch);
      return seqs.includes(2) ? { ...taken, rejections: [{ seq: 2, code: 'bad', words: 'still' }] } : taken;
    };
    const done = loop.delivery.besides.retry(all, operation);
    await rig.clock.until(() => sizes.length >= 6);
    const { refused: left } = await done;
    expect(sizes).toEqual([4, 4, 2, 1, 1, 2, 4]);
    expect(left.map(({ seq, code }) => [seq, code])).toEqual([
      [2, 'bad'],
      [6, 'refused'],
    ]);
    expect(rig.journal.letters.kept('sink')).toEqual([2, 6]);
    // Busy for one of them: the other is settled, and nobody is told that all is well.
    loop.receiver.answer = (batch) => {
      if (batch.besides === undefined) return loop.receiver.take(batch);
      const taken = loop.receiver.take({ ...batch, messages: batch.messages.slice(0, 1) });
      return { ...taken, again: { code: 'sink_again', seqs: [6], words: '429 busy' } };
    };
    const busy = loop.delivery.besides.retry([2, 6], operation).catch((thrown: unknown) => thrown);
    await rig.clock.until(() => rig.journal.letters.kept('sink').length === 1);
    expect(await busy).toMatchObject({ code: 'sink_again', message: '429 busy' });
    expect(rig.journal.letters.kept('sink')).toEqual([6]);
  });

  test('and refused again stays, with what was said last', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    const done = loop.delivery.besides.retry([3], operation);
    await rig.clock.advance(0);
    expect((await done).refused).toMatchObject([{ seq: 3, words: 'field seven' }]);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, tries: 2, words: 'field seven' }]);
    expect(operations(rig)[0]?.detail).toMatchObject({ taken: false });
    expect(rig.journal.sinkMarks('sink').deadLetters).toBe(1);
  });

  test('is kept when nobody knows whether it was taken, and the sink is opened anew', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    loop.receiver.answer = (batch) => {
      loop.receiver.take(batch);
      throw new WaybillError('sink_unknown', 'reset');
    };
    const done = loop.delivery.besides.retry([3], operation).catch(codeOf);
    await rig.clock.advance(0);
    expect(await done).toBe('sink_unknown');
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, tries: 1 }]);
    expect(operations(rig)).toEqual([]);
    await rig.clock.advance(1_000);
    expect(loop.receiver.opens).toBe(2);
  });

  test('is sent once, however often it was asked for before its turn', async () => {
    await using rig = await Rig.make();
    const { loop, mended } = await refused(rig);
    mended.is = true;
    const asked = [1, 2, 3].map(() => loop.delivery.besides.retry([3], operation));
    await rig.clock.advance(10);
    expect(await Promise.all(asked)).toMatchObject([{ refused: [] }, { refused: [] }, { refused: [] }]);
    expect(sentBesides(loop)).toHaveLength(1);
  });

  test('is not sent a second time where the sink, opened anew, says that it took it', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig, { keepsPosition: true });
    loop.receiver.answer = (batch) => {
      loop.receiver.take(batch);
      throw new WaybillError('sink_unknown', 'reset');
    };
    const done = loop.delivery.besides.retry([3], operation).catch(codeOf);
    await rig.clock.advance(0);
    expect(await done).toBe('sink_unknown');
    await rig.clock.advance(1_000);
    expect(loop.receiver.opens).toBe(2);
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(operations(rig)).toEqual([{ what: 'dead-letters retry', detail: { sink: 'sink', seq: 3, taken: true, found: true } }]);
    // Whoever asks once more is told what became of it.
    expect(await loop.delivery.besides.retry([3], operation)).toEqual({ refused: [], note: undefined });
    expect(loop.receiver.has.map(numberOf).filter((n) => n === 3)).toHaveLength(1);
  });

  test('waits for no sink that is away: the person is told', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    const busy = () => {
      throw new WaybillError('sink_again', 'queue full');
    };
    loop.receiver.answer = busy;
    const first = loop.delivery.besides.retry([3], operation).catch((thrown: unknown) => String(thrown));
    await rig.clock.advance(0);
    expect(await first).toContain('queue full');
    await append(rig.journal, 4);
    await rig.clock.advance(0);
    expect(loop.delivery.view().state).toBe('waiting');
    await expect(loop.delivery.besides.retry([3], operation)).rejects.toMatchObject({
      code: 'sink_again',
      message: expect.stringContaining('queue full') as string,
    });
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, tries: 1 }]);
  });

  test('must be one that is kept: neither one that never was, nor one that was discarded', async () => {
    await using rig = await Rig.make();
    const { loop, mended } = await refused(rig);
    mended.is = true;
    await expect(loop.delivery.besides.retry([4], operation)).rejects.toMatchObject({ code: 'usage' });
    await rig.journal.discardLetters('sink', [3], { ...operation, what: 'dead-letters discard' });
    await expect(loop.delivery.besides.retry([3], operation)).rejects.toMatchObject({ code: 'usage' });
    expect(sentBesides(loop)).toEqual([]);
  });

  test('has its own copy: the journal may be pruned meanwhile', async () => {
    await using rig = await Rig.make();
    const { loop, mended } = await refused(rig);
    rig.journal.db.pragma('max_page_count = 100000');
    rig.journal.db.exec('DELETE FROM segments; UPDATE head SET pruned_seq = seq, pruned_chain = chain');
    mended.is = true;
    const done = loop.delivery.besides.retry([3], operation);
    await rig.clock.advance(0);
    await done;
    expect(sentBesides(loop)[0]?.messages.map((message) => [numberOf(message), message.number])).toEqual([[3, undefined]]);
  });
});

describe('a replay', () => {
  test('that has ended ends the loss of what it sent, and no loss before that', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 20);
    const { note = '' } = rig.journal.sinkMarks('sink');
    await rig.journal.lost('sink', { first: 3, last: 12, words: 'was truncated' }, note);
    await rig.journal.lost('sink', { first: 14, last: 20, words: 'was truncated' }, note);
    const losses = (): unknown => rig.journal.db.prepare('SELECT first, last FROM sink_losses ORDER BY first').all();
    loop.delivery.besides.replay({ first: 3, last: 16, times: undefined }, 14, none);
    expect(losses()).toHaveLength(2);
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done', 10_000);
    expect(losses()).toEqual([{ first: 14, last: 20 }]);
  });

  test('sends a range again, in order, as uncertain, with the position that the sink has (D42)', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, keepsPosition: true });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 20);
    loop.delivery.besides.replay({ first: 3, last: 12, times: undefined }, 10, none);
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done', 10_000);
    const batches = sentBesides(loop);
    expect(batches.map(({ messages }) => messages.map(numberOf))).toEqual([range(3, 6), range(7, 10), [11, 12]]);
    for (const batch of batches) expect(batch).toMatchObject({ besides: 'replay', uncertain: true, through: { seq: 20 } });
    expect(loop.delivery.view().replay).toMatchObject({ state: 'done', sent: 10, refused: 0, passed: 10, at: 12 });
    await rig.clock.advance(2_000);
    expect(committed(rig.journal, 'sink')).toMatchObject({ acked: 20, taken: 20 });
    expect(loop.counted.delays.length).toBe(5);
  });

  test('lets what is new go in between, and none of it twice', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 10 });
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(100, signal);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 200);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 200);
    loop.delivery.besides.replay(every, 200, none);
    await append(rig.journal, 50);
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 250);
    const { replay } = loop.delivery.view();
    // Five batches of what is new, and hardly more of the others between them.
    expect(replay?.state).toBe('running');
    expect(replay?.sent).toBeLessThanOrEqual(60);
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done');
    const counts = new Map<number, number>();
    for (const message of loop.receiver.has) counts.set(numberOf(message), (counts.get(numberOf(message)) ?? 0) + 1);
    expect(range(1, 200).every((n) => counts.get(n) === 2)).toBe(true);
    expect(range(201, 250).every((n) => counts.get(n) === 1)).toBe(true);
  });

  test('of times sends what is dated there, and nothing without a readable time', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 10);
    await append(rig.journal, 10, (n) => (n % 2 === 0 ? { logTimestamp: 'yesterday' } : {}));
    await append(rig.journal, 10);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 30);
    // Record n is dated n seconds after midnight.
    const midnight = Date.UTC(2026, 10, 20) * 1000;
    const times = { from: midnight + 8_000_000, until: midnight + 24_000_000 };
    expect(rig.journal.countOf(1, 30, times)).toBe(30);
    loop.delivery.besides.replay({ ...every, times }, 30, none);
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done', 10_000);
    const timed = range(8, 23).filter((n) => n <= 10 || n > 20 || n % 2 === 1);
    expect(sentBesides(loop).flatMap(({ messages }) => messages.map(numberOf))).toEqual(timed);
  });

  test('goes on over a lost answer, and over an outage', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 5 });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 20);
    const begun = loop.receiver.attempts.length;
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === begun + 2) throw new WaybillError('sink_unknown', 'reset');
      if (attempt === begun + 4) throw new WaybillError('sink_again', 'busy');
      return loop.receiver.take(batch);
    };
    loop.delivery.besides.replay(every, 20, none);
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done');
    expect(sentBesides(loop).map(({ messages }) => messages.map(numberOf))).toEqual([
      range(1, 5),
      range(6, 10),
      range(6, 10),
      range(11, 15),
      range(11, 15),
      range(16, 20),
    ]);
    expect(loop.delivery.view().replay).toMatchObject({ sent: 20, passed: 20 });
    expect(committed(rig.journal, 'sink')).toMatchObject({ acked: 20 });
  });

  test('finds the one that is refused, which becomes a dead letter; those that are dead letters are left out', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    loop.receiver.answer = (batch) => {
      if (batch.messages.some(({ seq }) => seq === 5 || seq === 3)) throw new WaybillError('sink_refused', 'field nine');
      return loop.receiver.take(batch);
    };
    const letters = rig.journal.letters.refused('sink');
    loop.delivery.besides.replay(every, 6, (seq) => letters.has(seq));
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done');
    expect(loop.receiver.has.slice(5).map(numberOf)).toEqual([1, 2, 4, 6]);
    expect(loop.delivery.view().replay).toMatchObject({ sent: 4, refused: 1 });
    expect(deadLetters(rig.journal).map(({ seq, words }) => [seq, words])).toEqual([
      [3, 'field seven'],
      [5, 'field nine'],
    ]);
    expect(rig.journal.sinkMarks('sink').deadLetters).toBe(2);
    expect(committed(rig.journal, 'sink').acked).toBe(6);
  });

  test('passes over what is pruned, ends with what was acknowledged, and there is one at a time', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 4);
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 12);
    rig.journal.db.exec('DELETE FROM segments WHERE seq = 1; UPDATE head SET pruned_seq = 4');
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(1_000, signal);
      return loop.receiver.take(batch);
    };
    loop.delivery.besides.replay(every, 12, none);
    expect(() => loop.delivery.besides.replay(every, 12, none)).toThrow(expect.objectContaining({ code: 'usage' }) as Error);
    await append(rig.journal, 3);
    await rig.clock.until(() => loop.delivery.view().replay?.state === 'done');
    expect(sentBesides(loop).flatMap(({ messages }) => messages.map(numberOf))).toEqual(range(5, 12));
  });
});

describe('events to try a sink out', () => {
  test('move nothing and are in no journal; the note of the sink is kept', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, keepsPosition: true });
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acked === 4);
    const sample = { ...plain({ text: '{"logId":1}', seq: 1 } as Entry), uid: 'test' };
    loop.receiver.answer = (batch) => ({ ...loop.receiver.take(batch, { 2: 'field seven' }), note: 'another note' });
    const done = loop.delivery.besides.test([sample, { ...sample, seq: 2 }]);
    await rig.clock.advance(0);
    expect(await done).toMatchObject({ refused: [{ seq: 2, words: 'field seven' }] });
    expect(sentBesides(loop)[0]).toMatchObject({ besides: 'test', through: { seq: 4 } });
    expect(committed(rig.journal, 'sink')).toEqual({ acked: 4, taken: 4, note: 'another note' });
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(rig.journal.head().seq).toBe(4);
  });
});

describe('without a daemon', () => {
  test('the sink is opened for what is asked, nothing is delivered, and it is closed', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 8);
    await rig.journal.acknowledge(
      'sink',
      { acked: 4, taken: { position: { seq: 4, chain: (await rig.journal.chainAt(4)) ?? Buffer.alloc(0) }, note: undefined } },
      [],
    );
    const { signal } = new AbortController();
    const done = loop.delivery.runBesides(
      async () => loop.delivery.besides.replay({ first: 2, last: 8, times: undefined }, 3, none),
      signal,
    );
    await rig.clock.advance(0);
    await done;
    // Entries 5 to 8 were never sent: that is for the daemon.
    expect(loop.receiver.has.map(numberOf)).toEqual([2, 3, 4]);
    expect([loop.receiver.opens, loop.receiver.closes]).toEqual([1, 1]);
  });

  test('a sink that cannot be opened says why', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop();
    loop.receiver.opening = () => {
      throw new WaybillError('sink_blocked', 'the key is not accepted');
    };
    await expect(loop.delivery.runBesides(async () => undefined, new AbortController().signal)).rejects.toThrow('the key is not accepted');
  });
});

describe('what a person has ordered', () => {
  test('a blocked sink is opened at once when somebody has changed what it waits for, not only after its minute', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    let fits = false;
    loop.receiver.opening = () => {
      if (!fits) throw new WaybillError('sink_blocked', 'its position is of another state');
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(1_000);
    expect(loop.delivery.view().state).toBe('blocked');
    fits = true;
    loop.delivery.wake();
    await rig.clock.advance(0);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([1_000]);
  });

  test('a sink that is to be verified gets batches with a record of that time, or without a readable one, as uncertain', async () => {
    await using rig = await Rig.make();
    // The first 10,000 entries behind a start are uncertain anyway.
    const pipeline = (entry: Entry) =>
      entry.kind === 'record' && entry.seq > 10_000 ? { ...plain(entry), time: entry.time ?? entry.received } : undefined;
    const loop = rig.loop({ records: 1, pipeline });
    await append(rig.journal, 10_010);
    await append(rig.journal, 1, () => ({ logTimestamp: 'yesterday' }));
    await append(rig.journal, 1);
    const sink = rig.journal.progress.sink('sink');
    // Record n is dated n seconds after midnight.
    const midnight = Date.UTC(2026, 10, 20) * 1000;
    const verify = { from: midnight + 10_003_000_000, until: midnight + 10_005_000_000 };
    await rig.journal.operate({ ...operation, what: 'sinks verify' }, () => rig.journal.progress.writeOrders(sink, { verify }));
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 12);
    const uncertain = loop.receiver.attempts.filter(({ batch }) => batch.uncertain);
    expect(uncertain.map(({ batch }) => batch.messages[0]?.seq)).toEqual([10_003, 10_004, 10_011]);
  });
});
