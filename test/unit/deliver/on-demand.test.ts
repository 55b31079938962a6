/**
 * On-demand sends, in addition to batches: retried dead letters, a replayed range of the journal,
 * test events.
 */
import { describe, expect, test } from 'vitest';
import { codeOf, WaybillError } from '../../../src/errors/errors.ts';
import type { Entry, Operation } from '../../../src/model/journal.ts';
import type { Batch } from '../../../src/model/sink.ts';
import { append, committed, deadLetters, numberOf, range, rangeReplay, storeReplay } from '../../support/model-journal.ts';
import { plain, Rig } from '../../support/deliver/rig.ts';
import type { Loop } from '../../support/deliver/rig.ts';

const operation: Operation = { at: 7, actor: 'j.doe', operation: 'dead-letters retry', detail: { reason: 'repaired' } };
const operations = ({ journal }: Rig): { operation: string; detail: unknown }[] =>
  (
    journal.db.prepare('SELECT operation, detail FROM operations ORDER BY operation_no').all() as { operation: string; detail: string }[]
  ).map((row) => ({
    ...row,
    detail: JSON.parse(row.detail) as unknown,
  }));
const sentOnDemand = ({ receiver }: Loop): Batch[] => receiver.attempts.flatMap(({ batch }) => (batch.feed === undefined ? [] : [batch]));

/** A loop with entries 1 to 6, of which the sink rejected 3; `repaired`: accepts it now. */
async function refused(rig: Rig, given: Parameters<Rig['loop']>[0] = {}): Promise<{ loop: Loop; repaired: { is: boolean } }> {
  const repaired = { is: false };
  const loop = rig.loop({ records: 4, ...given });
  loop.receiver.answer = (batch) => {
    if (!repaired.is && batch.messages.some(({ seq }) => seq === 3)) throw new WaybillError('sink_refused', 'field seven');
    return loop.receiver.take(batch);
  };
  await append(rig.journal, 6);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 6);
  return { loop, repaired };
}

describe('a retried dead letter', () => {
  test.each([true, false])(
    'that is delivered is removed, with a row in operations; the position stays (stored by the sink: %s)',
    async (keepsPosition) => {
      await using rig = await Rig.make();
      const { loop, repaired } = await refused(rig, { keepsPosition });
      repaired.is = true;
      const before = committed(rig.journal, 'sink');
      const done = loop.delivery.retry([3], operation);
      await rig.clock.until(() => loop.receiver.has.length === 6);
      expect(await done).toEqual([]);
      const [batch] = sentOnDemand(loop);
      expect(batch).toMatchObject({ feed: { feed: 'dead-letters', at: 3 }, uncertain: true, through: { seq: before.delivered } });
      expect(batch?.messages.map((message) => [numberOf(message), message.seq, message.number])).toEqual([[3, 3, 3]]);
      expect(deadLetters(rig.journal)).toEqual([]);
      expect(rig.journal.sinkProgress('sink').deadLetters).toBe(0);
      expect(operations(rig)).toEqual([
        { operation: 'dead-letters retry', detail: { sink: 'sink', seq: 3, delivered: true, reason: 'repaired' } },
      ]);
      expect(committed(rig.journal, 'sink')).toMatchObject({ delivered: before.delivered, resumeNote: `through ${before.delivered}` });
      // Later entries are delivered as usual.
      await append(rig.journal, 4);
      await rig.clock.until(() => loop.receiver.has.length === 10);
      expect(loop.receiver.has.slice(6).map(numberOf)).toEqual(expect.arrayContaining([8, 9, 10]) as number[]);
    },
  );

  test('leaves the list when it is delivered, and stays when it is rejected or not sent, at any batch size', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    let isRepaired = false;
    loop.receiver.answer = (batch) => {
      if (!isRepaired) return { rejections: batch.messages.map(({ seq }) => ({ seq, code: 'bad', message: 'mapping' })) };
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 12);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 12);
    const all = range(1, 12);
    expect(deadLetters(rig.journal)).toHaveLength(12);
    isRepaired = true;
    const sizes: number[] = [];
    loop.receiver.answer = (batch) => {
      // The rows of operations arrive as separate entries.
      if (batch.feed === undefined) return loop.receiver.take(batch);
      sizes.push(batch.messages.length);
      // Accepts the first batch in part. Rejects the second as a whole, until its invalid message is sent alone.
      const seqs = batch.messages.map(({ seq }) => seq);
      if (seqs.includes(6)) throw new WaybillError('sink_refused', 'too large');
      const taken = loop.receiver.take(batch);
      return seqs.includes(2) ? { ...taken, rejections: [{ seq: 2, code: 'bad', message: 'still' }] } : taken;
    };
    const done = loop.delivery.retry(all, operation);
    await rig.clock.until(() => sizes.length >= 6);
    const left = await done;
    expect(sizes).toEqual([4, 4, 2, 1, 1, 2, 4]);
    expect(left.map(({ seq, code }) => [seq, code])).toEqual([
      [2, 'bad'],
      [6, 'rejected'],
    ]);
    expect(rig.journal.deadLetters.stored('sink')).toEqual([2, 6]);
    // Busy for one of them: the other is resolved, and the result is not a success.
    loop.receiver.answer = (batch) => {
      if (batch.feed === undefined) return loop.receiver.take(batch);
      const taken = loop.receiver.take({ ...batch, messages: batch.messages.slice(0, 1) });
      return { ...taken, retryable: { code: 'sink_unavailable', seqs: [6], message: '429 busy' } };
    };
    const busy = loop.delivery.retry([2, 6], operation).catch((thrown: unknown) => thrown);
    await rig.clock.until(() => rig.journal.deadLetters.stored('sink').length === 1);
    expect(await busy).toMatchObject({ code: 'sink_unavailable', message: '429 busy' });
    expect(rig.journal.deadLetters.stored('sink')).toEqual([6]);
  });

  test('that is rejected again stays, with its last message', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    const done = loop.delivery.retry([3], operation);
    await rig.clock.advance(0);
    expect(await done).toMatchObject([{ seq: 3, message: 'field seven' }]);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, attempts: 2, message: 'field seven' }]);
    expect(operations(rig)[0]?.detail).toMatchObject({ delivered: false });
    expect(rig.journal.sinkProgress('sink').deadLetters).toBe(1);
  });

  test('stays when its outcome is unknown, and the sink is reopened', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    loop.receiver.answer = (batch) => {
      loop.receiver.take(batch);
      throw new WaybillError('sink_outcome_unknown', 'reset');
    };
    const done = loop.delivery.retry([3], operation).catch(codeOf);
    await rig.clock.advance(0);
    expect(await done).toBe('sink_outcome_unknown');
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, attempts: 1 }]);
    expect(operations(rig)).toEqual([]);
    await rig.clock.advance(1_000);
    expect(loop.receiver.opens).toBe(2);
  });

  test('is sent once, however often it was requested before its turn', async () => {
    await using rig = await Rig.make();
    const { loop, repaired } = await refused(rig);
    repaired.is = true;
    const asked = [1, 2, 3].map(() => loop.delivery.retry([3], operation));
    await rig.clock.advance(10);
    expect(await Promise.all(asked)).toEqual([[], [], []]);
    expect(sentOnDemand(loop)).toHaveLength(1);
  });

  test('is not sent again if the reopened sink reports that it stored the record', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig, { keepsPosition: true });
    loop.receiver.answer = (batch) => {
      loop.receiver.take(batch);
      throw new WaybillError('sink_outcome_unknown', 'reset');
    };
    const done = loop.delivery.retry([3], operation).catch(codeOf);
    await rig.clock.advance(0);
    expect(await done).toBe('sink_outcome_unknown');
    await rig.clock.advance(1_000);
    expect(loop.receiver.opens).toBe(2);
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(operations(rig)).toEqual([{ operation: 'dead-letters retry', detail: { sink: 'sink', seq: 3, delivered: true, found: true } }]);
    // A repeated request reports the result of the first.
    expect(await loop.delivery.retry([3], operation)).toEqual([]);
    expect(loop.receiver.has.map(numberOf).filter((n) => n === 3)).toHaveLength(1);
  });

  test('fails at once while the sink is unavailable', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    const busy = () => {
      throw new WaybillError('sink_unavailable', 'queue full');
    };
    loop.receiver.answer = busy;
    const first = loop.delivery.retry([3], operation).catch((thrown: unknown) => String(thrown));
    await rig.clock.advance(0);
    expect(await first).toContain('queue full');
    await append(rig.journal, 4);
    await rig.clock.advance(0);
    expect(loop.delivery.view().state).toBe('retrying');
    await expect(loop.delivery.retry([3], operation)).rejects.toMatchObject({
      code: 'sink_unavailable',
      message: expect.stringContaining('queue full') as string,
    });
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, attempts: 1 }]);
  });

  test('must be stored: an unknown or discarded one is refused', async () => {
    await using rig = await Rig.make();
    const { loop, repaired } = await refused(rig);
    repaired.is = true;
    await expect(loop.delivery.retry([4], operation)).rejects.toMatchObject({ code: 'usage' });
    await rig.journal.discardDeadLetters('sink', [3], { ...operation, operation: 'dead-letters discard' });
    await expect(loop.delivery.retry([3], operation)).rejects.toMatchObject({ code: 'usage' });
    expect(sentOnDemand(loop)).toEqual([]);
  });

  test('is sent from its copy after the journal was pruned', async () => {
    await using rig = await Rig.make();
    const { loop, repaired } = await refused(rig);
    rig.journal.db.pragma('max_page_count = 100000');
    rig.journal.db.exec('DELETE FROM segments; UPDATE head SET pruned_seq = seq, pruned_chain = chain');
    repaired.is = true;
    const done = loop.delivery.retry([3], operation);
    await rig.clock.advance(0);
    await done;
    expect(sentOnDemand(loop)[0]?.messages.map((message) => [numberOf(message), message.number])).toEqual([[3, undefined]]);
  });
});

describe('a replay', () => {
  test('clears a loss of the entries that it sent, and leaves the rest of a loss', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 20);
    const { resumeNote: note = '' } = rig.journal.sinkProgress('sink');
    await rig.journal.lost('sink', { first: 3, last: 12, message: 'was truncated' }, note);
    await rig.journal.lost('sink', { first: 14, last: 20, message: 'was truncated' }, note);
    const losses = (): unknown => rig.journal.db.prepare('SELECT first, last FROM sink_losses ORDER BY first').all();
    const replay = rangeReplay(3, 16, { began: rig.clock.now() });
    storeReplay(rig.journal, 'sink', replay);
    loop.delivery.replay(replay);
    expect(losses()).toHaveLength(2);
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done', 10_000);
    expect(losses()).toEqual([{ first: 17, last: 20 }]);
  });

  test('resends a range in order, as uncertain, with the position of the sink (D42)', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, keepsPosition: true });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 20);
    loop.delivery.replay(rangeReplay(3, 12));
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done', 10_000);
    const batches = sentOnDemand(loop);
    expect(batches.map(({ messages }) => messages.map(numberOf))).toEqual([range(3, 6), range(7, 10), [11, 12]]);
    for (const batch of batches) expect(batch).toMatchObject({ feed: { feed: 'range 1' }, uncertain: true, through: { seq: 20 } });
    expect(loop.delivery.view().replays?.[0]).toMatchObject({ state: 'done', sent: 10, rejected: 0, passed: 10, at: 12 });
    await rig.clock.advance(2_000);
    expect(committed(rig.journal, 'sink')).toMatchObject({ acknowledged: 20, delivered: 20 });
    expect(loop.counted.delays.length).toBe(5);
  });

  test('continues in the next loop, and ends only when an operator cancels it', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 20);
    loop.receiver.answer = (batch) => {
      if (loop.delivery.view().replays?.[0]?.sent === 4) loop.stop.abort(new Error('stop'));
      return loop.receiver.take(batch);
    };
    storeReplay(rig.journal, 'sink', rangeReplay(3, 16));
    loop.delivery.replay(rangeReplay(3, 16));
    await rig.clock.until(() => loop.hasEnded);
    // Two batches of four were sent: 3 to 6, and 7 to 10 during the stop.
    expect(rig.journal.sinkProgress('sink').replays.range).toMatchObject({ at: 10, sent: 8, passed: 8 });
    const next = rig.loop({ records: 4, receiver: loop.receiver });
    loop.receiver.answer = (batch) => {
      if (batch.feed && batch.messages.some(({ seq }) => seq === 15)) next.delivery.cancelReplays();
      return loop.receiver.take(batch);
    };
    next.run();
    await rig.clock.until(() => next.delivery.view().replays?.[0]?.state === 'cancelled');
    await rig.clock.advance(60_000);
    expect(loop.receiver.has.slice(20).map(numberOf)).toEqual(range(3, 16));
    const reported = [...loop.lines, ...next.lines].filter(({ event }) => event.startsWith('sink.replay'));
    expect(reported).toMatchObject([{ event: 'sink.replay_cancelled', fields: { sink: 'sink', from: 15, through: 16, sent: 12 } }]);
  });

  test('that is complete when the loop stops reports no remaining entries', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 20);
    loop.delivery.replay(rangeReplay(3, 16));
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done', 10_000);
    await loop.end();
    expect(loop.lines.map(({ event }) => event).filter((event) => event.startsWith('sink.replay'))).toEqual(['sink.replay_completed']);
  });

  test('lets the loop deliver new records between its batches, and sends no record twice', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 10 });
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(100, signal);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 200);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 200);
    loop.delivery.replay(rangeReplay(1, 200));
    await append(rig.journal, 50);
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 250);
    const [replay] = loop.delivery.view().replays ?? [];
    // Five batches of new records, and hardly more of the replay between them.
    expect(replay?.state).toBe('running');
    expect(replay?.sent).toBeLessThanOrEqual(60);
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done');
    const counts = new Map<number, number>();
    for (const message of loop.receiver.has) counts.set(numberOf(message), (counts.get(numberOf(message)) ?? 0) + 1);
    expect(range(1, 200).every((n) => counts.get(n) === 2)).toBe(true);
    expect(range(201, 250).every((n) => counts.get(n) === 1)).toBe(true);
  });

  test('of a time range sends records dated in it, and none without a readable time', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 10);
    await append(rig.journal, 10, (n) => (n % 2 === 0 ? { logTimestamp: 'yesterday' } : {}));
    await append(rig.journal, 10);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 30);
    // Record n has the time n seconds after midnight.
    const midnight = Date.UTC(2026, 10, 20) * 1000;
    const times = { from: midnight + 8_000_000, to: midnight + 24_000_000 };
    expect(rig.journal.countOf(1, 30, times)).toBe(30);
    loop.delivery.replay(rangeReplay(1, 30, { times }));
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done', 10_000);
    const timed = range(8, 23).filter((n) => n <= 10 || n > 20 || n % 2 === 1);
    expect(sentOnDemand(loop).flatMap(({ messages }) => messages.map(numberOf))).toEqual(timed);
  });

  test('continues after a lost response and after an outage', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 5 });
    await append(rig.journal, 20);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 20);
    const begun = loop.receiver.attempts.length;
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === begun + 2) throw new WaybillError('sink_outcome_unknown', 'reset');
      if (attempt === begun + 4) throw new WaybillError('sink_unavailable', 'busy');
      return loop.receiver.take(batch);
    };
    loop.delivery.replay(rangeReplay(1, 20));
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done');
    expect(sentOnDemand(loop).map(({ messages }) => messages.map(numberOf))).toEqual([
      range(1, 5),
      range(6, 10),
      range(6, 10),
      range(11, 15),
      range(11, 15),
      range(16, 20),
    ]);
    expect(loop.delivery.view().replays?.[0]).toMatchObject({ sent: 20, passed: 20 });
    expect(committed(rig.journal, 'sink')).toMatchObject({ acknowledged: 20 });
  });

  test('finds the rejected record, which becomes a dead letter, and skips existing dead letters', async () => {
    await using rig = await Rig.make();
    const { loop } = await refused(rig);
    loop.receiver.answer = (batch) => {
      if (batch.messages.some(({ seq }) => seq === 5 || seq === 3)) throw new WaybillError('sink_refused', 'field nine');
      return loop.receiver.take(batch);
    };
    loop.delivery.replay(rangeReplay(1, 6));
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done');
    expect(loop.receiver.has.slice(5).map(numberOf)).toEqual([1, 2, 4, 6]);
    expect(loop.delivery.view().replays?.[0]).toMatchObject({ sent: 4, rejected: 1 });
    expect(deadLetters(rig.journal).map(({ seq, message }) => [seq, message])).toEqual([
      [3, 'field seven'],
      [5, 'field nine'],
    ]);
    expect(rig.journal.sinkProgress('sink').deadLetters).toBe(2);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(6);
  });

  test('skips pruned entries, ends at the acknowledged position, and runs one at a time', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 4);
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 12);
    rig.journal.db.exec('DELETE FROM segments WHERE seq = 1; UPDATE head SET pruned_seq = 4');
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(1_000, signal);
      return loop.receiver.take(batch);
    };
    loop.delivery.replay(rangeReplay(1, 12));
    expect(() => loop.delivery.replay(rangeReplay(1, 12))).toThrow(expect.objectContaining({ code: 'usage' }) as Error);
    await append(rig.journal, 3);
    await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done');
    expect(sentOnDemand(loop).flatMap(({ messages }) => messages.map(numberOf))).toEqual(range(5, 12));
  });
});

describe('test events', () => {
  test('advance no position, are not written to the journal, and leave the resume point of the sink as it is', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, keepsPosition: true });
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
    const sample = { ...plain({ text: '{"logId":1}', seq: 1 } as Entry), uid: 'test' };
    loop.receiver.answer = (batch) => ({ ...loop.receiver.take(batch, { 2: 'field seven' }), resumeNote: 'another note' });
    const done = loop.delivery.test([sample, { ...sample, seq: 2 }]);
    await rig.clock.advance(0);
    expect(await done).toMatchObject([{ seq: 2, message: 'field seven' }]);
    expect(sentOnDemand(loop)[0]).toMatchObject({ feed: { feed: 'test' }, through: { seq: 4 } });
    expect(committed(rig.journal, 'sink')).toEqual({ acknowledged: 4, delivered: 4, resumeNote: 'another note' });
    expect(deadLetters(rig.journal)).toEqual([]);
    expect(rig.journal.head().seq).toBe(4);
  });
});

describe('without a daemon', () => {
  test('the sink is opened for the request, delivers no entry, and is closed', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    await append(rig.journal, 8);
    await rig.journal.acknowledge(
      'sink',
      {
        acknowledged: 4,
        delivered: { position: { seq: 4, chain: (await rig.journal.chainAt(4)) ?? Buffer.alloc(0) }, resumeNote: undefined },
      },
      [],
    );
    const { signal } = new AbortController();
    const done = loop.delivery.runOnDemand(async () => loop.delivery.replay(rangeReplay(2, 4)), signal);
    await rig.clock.advance(0);
    await done;
    // Entries 5 to 8 were never sent: the daemon delivers them.
    expect(loop.receiver.has.map(numberOf)).toEqual([2, 3, 4]);
    expect([loop.receiver.opens, loop.receiver.closes]).toEqual([1, 1]);
  });

  test('a sink that cannot be opened reports the reason', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop();
    loop.receiver.opening = () => {
      throw new WaybillError('sink_blocked', 'the key is not accepted');
    };
    await expect(loop.delivery.runOnDemand(async () => undefined, new AbortController().signal)).rejects.toThrow('the key is not accepted');
  });
});

describe('requests of an operator', () => {
  test('a blocked sink is reopened at once after an operator has resolved the cause', async () => {
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

  test('a sink to be reconciled receives batches with a record of that time, or without a readable time, as uncertain', async () => {
    await using rig = await Rig.make();
    // The first 10,000 entries after a start are uncertain anyway.
    const pipeline = (entry: Entry) =>
      entry.kind === 'record' && entry.seq > 10_000 ? { ...plain(entry), time: entry.time ?? entry.received } : undefined;
    const loop = rig.loop({ records: 1, pipeline });
    await append(rig.journal, 10_010);
    await append(rig.journal, 1, () => ({ logTimestamp: 'yesterday' }));
    await append(rig.journal, 1);
    const sink = rig.journal.sinkPositions.sink('sink');
    // Record n has the time n seconds after midnight.
    const midnight = Date.UTC(2026, 10, 20) * 1000;
    const reconcile = { from: midnight + 10_003_000_000, to: midnight + 10_005_000_000 };
    await rig.journal.operate({ ...operation, operation: 'sinks reconcile' }, () =>
      rig.journal.sinkPositions.writeOrders(sink, { reconcile }),
    );
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 12);
    const uncertain = loop.receiver.attempts.filter(({ batch }) => batch.uncertain);
    expect(uncertain.map(({ batch }) => batch.messages[0]?.seq)).toEqual([10_003, 10_004, 10_011]);
  });
});
