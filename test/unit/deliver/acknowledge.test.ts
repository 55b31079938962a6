/**
 * When an acknowledgement is committed, how far the loop may run ahead of it, and how the loop ends and
 * starts again.
 */
import { describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Acknowledgement, DeadLetter, DeliverJournal } from '../../../src/model/journal.ts';
import type { DeliveryResult } from '../../../src/model/sink.ts';
import { append, committed, copyState, deadLetters, numberOf, range } from '../../support/model-journal.ts';
import { quiet } from '../../support/delivery-clock.ts';
import { Rig } from '../../support/deliver/rig.ts';

describe('an acknowledgement', () => {
  test('of a sink that cannot report its position is committed before the next send', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2, resolvable: false });
    const atSend: number[] = [];
    loop.receiver.answer = (batch) => {
      atSend.push(committed(rig.journal, 'sink').acknowledged);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.advance(0);
    expect(atSend).toEqual([0, 2, 4, 6]);
    expect(committed(rig.journal, 'sink')).toEqual({ acknowledged: 8, delivered: 8, resumeNote: 'through 8' });
  });

  test('is never committed before the sink has responded', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(5_000, signal);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(4_999);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
    await rig.clock.advance(2);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(2);
  });

  test('of a sink that reports its position is committed together with others, within a second', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2, resolvable: true }).run();
    await append(rig.journal, 2);
    await rig.clock.advance(600);
    const commits = rig.journal.usage().commits;
    expect(loop.receiver.has.length).toBe(2);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
    // Another batch does not delay it. (An append would commit the first acknowledgement, so it is
    // already done.)
    await rig.clock.advance(399);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
    await rig.clock.advance(2);
    expect(committed(rig.journal, 'sink')).toEqual({ acknowledged: 2, delivered: 2, resumeNote: 'through 2' });
    expect(rig.journal.usage().commits).toBe(commits + 1);
  });

  test('is not delayed by later acknowledgements', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2, resolvable: true });
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(300, signal);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 40);
    loop.run();
    await rig.clock.advance(1_700);
    expect(loop.receiver.has.length).toBe(10);
    expect(committed(rig.journal, 'sink').acknowledged).toBeGreaterThanOrEqual(8);
  });

  test('never passes the batch in flight, and no entry is sent more than 10,000 entries after the committed position', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3_000, bytes: 1e9, resolvable: true });
    const ahead: number[] = [];
    const beyond: boolean[] = [];
    loop.receiver.answer = (batch) => {
      const { acknowledged: acked } = committed(rig.journal, 'sink');
      ahead.push(batch.through.seq - acked);
      beyond.push(acked >= (batch.messages[0]?.seq ?? 0));
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 30_000);
    loop.run();
    await rig.clock.advance(0);
    expect(loop.receiver.has.length).toBe(30_000);
    expect(Math.max(...ahead)).toBeLessThanOrEqual(10_000);
    // Grouping works: several batches share one transaction.
    expect(Math.max(...ahead)).toBeGreaterThan(3_000);
    expect(beyond).not.toContain(true);
  });

  test('that a full disk refuses is retried, and the batch is not sent again', async () => {
    await using rig = await Rig.make();
    let failures = 3;
    const loop = rig.loop({
      records: 2,
      journal: (journal) =>
        wrapped(journal, {
          acknowledge: async (sink, acknowledgement, letters) => {
            failures -= 1;
            if (failures >= 0) throw new WaybillError('journal_full', 'the disk is full');
            await journal.acknowledge(sink, acknowledgement, letters);
          },
        }),
    });
    loop.receiver.answer = (batch) => loop.receiver.take(batch, { 1: 'bad' });
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(0);
    expect(loop.receiver.attempts.length).toBe(1);
    expect(loop.delivery.view()).toMatchObject({ state: 'retrying', lastError: 'the disk is full' });
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4, 10_000);
    expect(loop.receiver.attempts.map(({ batch }) => batch.messages.map(numberOf))).toEqual([[1, 2], [3, 4]]); // prettier-ignore
    expect(deadLetters(rig.journal).map(({ seq }) => seq)).toEqual([1]);
    expect(loop.delivery.view()).toMatchObject({ state: 'active', trouble: undefined });
    expect(loop.receiver.opens).toBe(1);
  });

  test('of filtered entries is stored a second later, within another transaction if the journal has one', async () => {
    await using rig = await Rig.make();
    rig.loop({ records: 10, pipeline: () => undefined }).run();
    await append(rig.journal, 3);
    await rig.clock.advance(1_000);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(3);
    const before = rig.journal.usage().commits;
    for (let i = 0; i < 20; i += 1) {
      await append(rig.journal, 1);
      await rig.clock.advance(100);
    }
    // Twenty of the journal, and at most one per second.
    expect(rig.journal.usage().commits - before).toBeLessThanOrEqual(22);
  });

  test('of a message that was not sent blocks the sink', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = () => ({ rejections: [{ seq: 77, code: 'bad', message: 'no such thing' }] });
    await append(rig.journal, 2);
    loop.run();
    await rig.clock.advance(10);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked', acknowledged: 0 });
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
  });
});

describe('the first 10,000 entries after a start', () => {
  test('are sent as uncertain, later entries are not', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2_500, bytes: 1e9, resolvable: true });
    await append(rig.journal, 20_000);
    loop.run();
    await rig.clock.advance(0);
    expect(loop.receiver.attempts.map(({ batch }) => batch.uncertain)).toEqual([true, true, true, true, false, false, false, false]);
  });
});

describe('the position stored in a sink', () => {
  const chain = (byte: number): Buffer => Buffer.alloc(32, byte);

  test('is acknowledged if this journal has it, and no entry up to it is sent', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2, keepsPosition: true });
    await append(rig.journal, 6);
    loop.receiver.kept = { position: { seq: 4, chain: (await rig.journal.chainAt(4)) ?? chain(0) }, resumeNote: 'kept', sink: 'sink' };
    loop.run();
    await rig.clock.advance(0);
    expect(loop.receiver.has.map(numberOf)).toEqual([5, 6]);
  });

  test.each([
    ['with another chain', 4, 9],
    ['beyond the head', 100, 9],
  ])('blocks the sink %s, and nothing is sent or acknowledged', async (_name, seq, byte) => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2, keepsPosition: true });
    await append(rig.journal, 6);
    loop.receiver.kept = { position: { seq, chain: chain(byte) }, resumeNote: undefined, sink: 'sink' };
    loop.run();
    await rig.clock.advance(130_000);
    expect(loop.receiver.attempts).toEqual([]);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked', acknowledged: 0 });
    expect(loop.delivery.view().lastError).toContain(`it has entry ${seq}, which this state does not know`);
  });

  test('blocks the sink if it precedes the last delivery', async () => {
    await using rig = await Rig.make();
    await append(rig.journal, 6);
    const first = rig.loop({ records: 2, keepsPosition: true }).run();
    await rig.clock.advance(0);
    await first.end();
    first.receiver.kept = { position: { seq: 2, chain: (await rig.journal.chainAt(2)) ?? chain(0) }, resumeNote: undefined, sink: 'sink' };
    await append(rig.journal, 2);
    const second = rig.loop({ records: 2, receiver: first.receiver, resolvable: true }).run();
    await rig.clock.advance(1_000);
    expect(second.delivery.view()).toMatchObject({ state: 'blocked', acknowledged: 6 });
    expect(second.delivery.view().lastError).toContain('entry 6 was delivered to it, but it now ends at entry 2');
    expect(first.receiver.has.map(numberOf)).toEqual(range(1, 6));
  });
});

describe('stopping', () => {
  test('completes and commits the batch in flight, and sends no other', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2, resolvable: true });
    loop.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(5_000, signal);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 6);
    loop.run();
    await rig.clock.advance(1_000);
    loop.stop.abort(new Error('stop'));
    await rig.clock.advance(3_999);
    expect(loop.hasEnded).toBe(false);
    await rig.clock.advance(1);
    expect([loop.hasEnded, loop.failed]).toEqual([true, undefined]);
    expect(loop.receiver.has.map(numberOf)).toEqual([1, 2]);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(2);
    expect(loop.receiver.closes).toBe(1);
  });

  test('abandons it after the shutdown timeout: the next start sends it again, as uncertain', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    let reason: unknown;
    loop.receiver.answer = (_batch, signal) => {
      signal.addEventListener('abort', () => (reason = signal.reason as unknown));
      return new Promise<DeliveryResult>(() => undefined);
    };
    await append(rig.journal, 2);
    loop.run();
    await rig.clock.advance(10);
    loop.stop.abort(new Error('stop'));
    await rig.clock.advance(1_000);
    expect(loop.hasEnded).toBe(false);
    loop.abandon.abort(new Error('grace is over'));
    await quiet();
    expect([loop.hasEnded, loop.failed, loop.receiver.closes]).toEqual([true, undefined, 1]);
    expect(String(reason)).toContain('grace is over');
    const next = rig.loop({ records: 2 }).run();
    await rig.clock.advance(10);
    expect(next.receiver.attempts.map(({ batch }) => [batch.messages.map(numberOf), batch.uncertain])).toEqual([[[1, 2], true]]);
  });

  test('sends the rest of a partly delivered batch within the shutdown timeout', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt > 2) return loop.receiver.take(batch);
      if (attempt === 2) throw new WaybillError('sink_unavailable', 'busy', { retryAfterMs: 3_000 });
      loop.receiver.has.push(...batch.messages.filter(({ seq }) => seq !== 2));
      return { rejections: [], retryable: { code: 'sink_unavailable', seqs: [2], message: 'queue full', retryAfterMs: 3_000 } };
    };
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.advance(1_000);
    loop.stop.abort(new Error('stop'));
    await rig.clock.advance(4_999);
    expect(loop.hasEnded).toBe(false);
    await rig.clock.advance(1);
    expect([loop.hasEnded, loop.failed]).toEqual([true, undefined]);
    expect(loop.receiver.has.map(numberOf)).toEqual([1, 3, 4, 2]);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(4);
  });

  test.each(['busy', 'idle', 'blocked at opening'])('is immediate while the loop only waits (%s)', async (why) => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = () => {
      throw new WaybillError('sink_unavailable', 'busy', { retryAfterMs: 600_000 });
    };
    if (why === 'blocked at opening') {
      loop.receiver.opening = () => {
        throw new WaybillError('sink_blocked', 'no directory');
      };
    }
    if (why !== 'idle') await append(rig.journal, 2);
    loop.run();
    await rig.clock.advance(5_000);
    loop.stop.abort(new Error('stop'));
    await quiet();
    expect([loop.hasEnded, loop.failed]).toEqual([true, undefined]);
  });
});

describe('two loops', () => {
  test('do not delay each other; each has its dead letters and its position', async () => {
    await using rig = await Rig.make();
    const stuck = rig.loop({ id: 'stuck', records: 2 });
    stuck.receiver.answer = (_batch, signal) =>
      new Promise<DeliveryResult>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    const refusing = rig.loop({ id: 'refusing', records: 2 });
    refusing.receiver.answer = (batch) => refusing.receiver.take(batch, { 3: 'bad' });
    const free = rig.loop({ id: 'free', records: 2 });
    for (const loop of [stuck, refusing, free]) loop.run();
    await append(rig.journal, 8);
    await rig.clock.advance(20_000);
    expect(free.receiver.has.map(numberOf)).toEqual(range(1, 8));
    expect(free.receiver.attempts.map(({ at }) => at)).toEqual([0, 0, 0, 0]);
    expect(refusing.receiver.has.length).toBe(7);
    expect(deadLetters(rig.journal).map(({ sink, seq }) => [sink, seq])).toEqual([['refusing', 3]]);
    expect(['stuck', 'refusing', 'free'].map((id) => committed(rig.journal, id).acknowledged)).toEqual([0, 8, 8]);
  });
});

describe('a dead letter', () => {
  // The journal is full at the moment when a dead letter must be written, and the process is killed
  // then.
  test('that cannot be stored blocks later commits, so that it is not lost', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = (batch) => loop.receiver.take(batch, { 1: 'x'.repeat(200_000) });
    await append(rig.journal, 2);
    const pages = rig.journal.db.pragma('page_count', { simple: true }) as number;
    rig.journal.db.pragma(`max_page_count = ${pages}`);
    loop.run();
    await rig.clock.advance(0);
    expect(loop.delivery.view()).toMatchObject({ state: 'retrying' });
    await rig.journal.flush();
    const copy = copyState(rig.directory);
    await using after = await Rig.make(copy);
    expect([committed(after.journal, 'sink').acknowledged, deadLetters(after.journal).length]).toEqual([0, 0]);
    rig.journal.db.pragma('max_page_count = 100000');
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 2, 120_000);
    expect(deadLetters(rig.journal).map(({ seq }) => seq)).toEqual([1]);
  });
});

/** The journal with some of its calls replaced. */
function wrapped(
  journal: DeliverJournal,
  calls: { acknowledge: (sink: string, acknowledgement: Acknowledgement, letters: readonly DeadLetter[]) => Promise<void> },
): DeliverJournal {
  return {
    id: journal.id,
    read: (after, limit) => journal.read(after, limit),
    changed: () => journal.changed(),
    sinkProgress: (sink) => journal.sinkProgress(sink),
    chainAt: (seq) => journal.chainAt(seq),
    acknowledge: calls.acknowledge,
    acknowledgeLater: (sink, acknowledgement) => journal.acknowledgeLater(sink, acknowledgement),
    flush: () => journal.flush(),
    commitResumeNote: (sink, note) => journal.commitResumeNote(sink, note),
    deadLetter: (sink, seq) => journal.deadLetter(sink, seq),
    resolveDeadLetter: (sink, seq, fate, operation) => journal.resolveDeadLetter(sink, seq, fate, operation),
    found: (sink, found) => journal.found(sink, found),
    adopted: (sink) => journal.adopted(sink),
    archiveCheckpoint: (sink, checkpoint) => journal.archiveCheckpoint(sink, checkpoint),
    rejected: (sink) => journal.rejected(sink),
    replayed: (sink, replay) => journal.replayed(sink, replay),
    withheld: (sink, of) => journal.withheld(sink, of),
    restored: (sink) => journal.restored(sink),
    replayedFrom: (sink) => journal.replayedFrom(sink),
    lost: (sink, loss, note) => journal.lost(sink, loss, note),
    readRange: (after, given, limit) => journal.readRange(after, given, limit),
  };
}
