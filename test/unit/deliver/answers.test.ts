/**
 * The reaction of the loop to each response of a sink, and to none (docs/guarantees.md, the three
 * responses).
 */
import { describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Batch, DeliveryResult } from '../../../src/model/sink.ts';
import { append, committed, deadLetters, numberOf, range, record } from '../../support/model-journal.ts';
import { Rig } from '../../support/deliver/rig.ts';

const again = (retryAfterMs?: number) => new WaybillError('sink_unavailable', 'busy', { retryAfterMs });
const blocked = () => new WaybillError('sink_blocked', 'the key is not accepted');
const refused = (words: string) => new WaybillError('sink_refused', words);

test('messages that the receiver drops are counted each time, and logged once', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2 });
  loop.receiver.answer = (batch) => ({ ...loop.receiver.take(batch), dropped: 1 });
  await append(rig.journal, 6);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 6);
  expect(loop.counted.dropped).toBe(3);
  expect(loop.lines.filter(({ event }) => event === 'sink.records_dropped')).toEqual([
    { level: 'warn', event: 'sink.records_dropped', fields: { sink: 'sink' } },
  ]);
});

describe('retry', () => {
  test('resends the same messages in order, before later messages', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === 2 || attempt === 3) throw again();
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 9);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 9);
    expect(loop.receiver.attempts.map(({ batch }) => batch.messages.map(numberOf))).toEqual([
      [1, 2, 3],
      ...Array.from({ length: 3 }, () => [4, 5, 6]),
      [7, 8, 9],
    ]);
    expect(loop.receiver.opens).toBe(1);
    expect(deadLetters(rig.journal)).toEqual([]);
  });

  test.each([
    [0, 1_000],
    [7_500, 7_500],
    [3_600_000, 900_000],
  ])('waits %i ms when asked to, but never less than a second nor more than 15 minutes', async (asked, waited) => {
    await using rig = await Rig.make();
    const loop = rig.loop();
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === 1) throw again(asked);
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 4);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([0, waited]);
  });

  test('doubles the wait after each attempt, up to a minute, and resets it after a success', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ random: () => 0.999999 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt <= 12 || attempt === 14) throw again();
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 8);
    const at = loop.receiver.attempts.map((attempt) => attempt.at);
    const waits = at.slice(1).map((time, i) => Math.round(time - (at[i] ?? 0)));
    const steep = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000];
    expect(waits).toEqual([...steep, 0, 250]);
  });

  test('spreads its waits over the whole interval', async () => {
    await using rig = await Rig.make();
    const chances = [0.9, 0.25, 0.5];
    const loop = rig.loop({ random: () => chances.shift() ?? 0 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt <= 3) throw again();
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 4);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([0, 225, 225 + 125, 225 + 125 + 500]);
  });
});

describe('retry for some messages of a batch', () => {
  const some = (seqs: readonly number[], more: Partial<DeliveryResult> = {}): DeliveryResult => ({
    rejections: [],
    retryable: { code: 'sink_unavailable', seqs, message: 'queue full', retryAfterMs: 2_000 },
    ...more,
  });

  test('resends only these, in order, after the wait; later messages wait', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt > 2) return loop.receiver.take(batch);
      const left = attempt === 1 ? [2, 4] : [4];
      loop.receiver.has.push(...batch.messages.filter(({ seq }) => !left.includes(seq)));
      return some(left);
    };
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 8);
    expect(loop.receiver.attempts.map(({ at, batch }) => [at, batch.messages.map(numberOf)])).toEqual([
      [0, [1, 2, 3, 4]],
      [2_000, [2, 4]],
      [4_000, [4]],
      [4_000, [5, 6, 7, 8]],
    ]);
    expect(loop.receiver.attempts[1]?.batch.bytes).toBe(
      loop.receiver.attempts[1]?.batch.messages.reduce((sum, { bytes }) => sum + bytes.length, 0),
    );
    await rig.clock.until(() => loop.delivery.view().acknowledged === 8);
    expect(loop.counted.sent).toBe(8);
  });

  test('at once: each rejection is a dead letter before the next send, without a wait, and the sink stays active', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 6 });
    const seen: unknown[] = [];
    loop.receiver.answer = (batch) => {
      const letters = deadLetters(rig.journal).map(({ seq }) => seq);
      seen.push([batch.messages.map(({ seq }) => seq), letters, loop.delivery.view().state]);
      const [first, ...rest] = batch.messages;
      if (first === undefined || first.seq > 4) return loop.receiver.take(batch);
      const seqs = rest.map(({ seq }) => seq);
      return {
        rejections: [{ seq: first.seq, code: '6', message: 'invalid data' }],
        retryable: { code: 'sink_unavailable', seqs, message: 'invalid data', isAtOnce: true },
      };
    };
    await append(rig.journal, 6);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 6);
    expect(seen).toEqual([
      [[1, 2, 3, 4, 5, 6], [], 'active'],
      [[2, 3, 4, 5, 6], [1], 'active'],
      [[3, 4, 5, 6], [1, 2], 'active'],
      [[4, 5, 6], [1, 2, 3], 'active'],
      [[5, 6], [1, 2, 3, 4], 'active'],
    ]);
    expect(new Set(loop.receiver.attempts.map(({ at }) => at)).size).toBe(1);
    expect(loop.counted.sent).toBe(2);
    expect(loop.lines.filter(({ event }) => event === 'sink.delivery_failed')).toEqual([]);
  });

  test('at once, after a message with an open outcome: the rejection waits for that outcome', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt > 1) return loop.receiver.take(batch);
      loop.receiver.has.push(...batch.messages.filter(({ seq }) => seq === 2 || seq === 4));
      return some([1], {
        rejections: [{ seq: 3, code: '6', message: 'invalid data' }],
        retryable: { code: 'sink_unavailable', seqs: [1], message: 'invalid data', isAtOnce: true },
      });
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
    expect(loop.receiver.attempts.map(({ at, batch }) => [at, batch.messages.map(numberOf)])).toEqual([
      [0, [1, 2, 3, 4]],
      [0, [1]],
    ]);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, message: 'invalid data' }]);
    expect(loop.counted.sent).toBe(3);
  });

  test('a rejection in the same batch is stored, and acknowledged when every message of the batch has its result', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    const acked: number[] = [];
    loop.receiver.answer = (batch, _signal, attempt) => {
      acked.push(committed(rig.journal, 'sink').acknowledged);
      if (attempt === 1) {
        loop.receiver.has.push(...batch.messages.filter(({ seq }) => seq === 2 || seq === 4));
        return some([1], { rejections: [{ seq: 3, code: 'bad_document', message: 'field seven' }] });
      }
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
    // Nothing is acknowledged before the first message, which is still to be sent.
    expect(acked).toEqual([0, 0]);
    expect(loop.receiver.has.map(numberOf).sort()).toEqual([1, 2, 4]);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, message: 'field seven' }]);
  });

  test('a remainder rejected as a whole is halved down to its cause, and earlier rejections remain', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 6 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === 1) {
        loop.receiver.has.push(...batch.messages.filter(({ seq }) => seq === 1 || seq === 6));
        return some([2, 3, 5], { rejections: [{ seq: 4, code: 'bad_document', message: 'field seven' }] });
      }
      if (batch.messages.some(({ seq }) => seq === 3)) throw refused('no');
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 6);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 6);
    expect(loop.receiver.has.map(numberOf).sort()).toEqual([1, 2, 5, 6]);
    expect(deadLetters(rig.journal).map(({ seq, message: words }) => [seq, words])).toEqual([
      [3, 'no'],
      [4, 'field seven'],
    ]);
  });

  test('six times for a message that is refused while later ones are accepted; then it is a dead letter with its last message', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      const left = batch.messages.map(({ seq }) => seq).filter((seq) => (seq === 2 && attempt < 3) || seq === 3);
      loop.receiver.has.push(...batch.messages.filter(({ seq }) => !left.includes(seq)));
      const reasons = [{ seq: 3, code: '500', message: `disk full, ${attempt}` }];
      const suspects = attempt === 1 ? [2, 3] : [];
      return { rejections: [], retryable: { code: 'sink_unavailable', seqs: left, message: 'busy', suspects, reasons } };
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
    expect(loop.receiver.has.map(numberOf).sort()).toEqual([1, 2, 4]);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 3, code: '500', message: 'disk full, 6', attempts: 6 }]);
    const waits = loop.lines.filter(({ event }) => event === 'sink.delivery_failed');
    expect(waits.map(({ fields }) => fields['attempts'])).toEqual(range(1, 5));
    expect(loop.delivery.view()).toMatchObject({ state: 'active', attempts: 0 });
  });

  test('a message that fails while later ones are accepted counts its attempts, also alone; messages after the last accepted one do not', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      const left = batch.messages.map(({ seq }) => seq).filter((seq) => seq === 2 || (seq === 4 && attempt < 7));
      loop.receiver.has.push(...batch.messages.filter(({ seq }) => !left.includes(seq)));
      return {
        rejections: [],
        retryable: { code: 'sink_unavailable', seqs: left, message: `no, ${attempt}`, suspects: attempt === 1 ? [2] : [] },
      };
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
    expect(loop.receiver.has.map(numberOf)).toEqual([1, 3, 4]);
    expect(deadLetters(rig.journal)).toMatchObject([{ seq: 2, code: 'unavailable', message: 'no, 6', attempts: 6 }]);
  });

  test('is blocked when an operator must act', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt > 1) return loop.receiver.take(batch);
      return { rejections: [], retryable: { code: 'sink_blocked', seqs: [2], message: 'index is read-only' } };
    };
    await append(rig.journal, 2);
    loop.run();
    await rig.clock.advance(30_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked', lastError: 'index is read-only' });
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 2);
    expect(loop.delivery.view()).toMatchObject({ state: 'active' });
  });
});

describe('blocked', () => {
  test('is retried once a minute, fails readiness after failReadinessAfter, and rejects no record', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ failReadinessAfter: 150_000 });
    let isBlocked = true;
    loop.receiver.answer = (batch) => {
      if (isBlocked) throw blocked();
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(149_000);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([0, 60_000, 120_000]);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked', trouble: undefined, lastError: 'the key is not accepted' });
    await rig.clock.advance(2_000);
    expect(loop.delivery.view().trouble).toBe('the key is not accepted');
    isBlocked = false;
    await rig.clock.advance(60_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'active', trouble: undefined, acknowledged: 4 });
    expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 4));
    expect(deadLetters(rig.journal)).toEqual([]);
  });

  test('ends when the sink opens, also without waiting messages', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ failReadinessAfter: 60_000 });
    loop.receiver.opening = (_signal, open) => {
      if (open <= 3) throw blocked();
    };
    loop.run();
    await rig.clock.advance(170_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'blocked', trouble: 'the key is not accepted' });
    await rig.clock.advance(20_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'active', trouble: undefined });
  });
});

describe('a batch rejected as a whole', () => {
  /** Rejects every request with one of these messages, without naming it. */
  const refusing =
    (poison: readonly number[], take: (batch: Batch) => DeliveryResult) =>
    (batch: Batch): DeliveryResult => {
      if (batch.messages.some(({ seq }) => poison.includes(seq))) throw refused('400: something in it is bad');
      return take(batch);
    };

  test.each([{ poison: [1] }, { poison: [5] }, { poison: [8] }, { poison: [3, 4] }, { poison: [1, 6] }, { poison: range(1, 8) }])(
    'is halved down to $poison; the others arrive once, in order',
    async ({ poison }) => {
      await using rig = await Rig.make();
      const loop = rig.loop({ records: 8 });
      loop.receiver.answer = refusing(poison, (batch) => loop.receiver.take(batch));
      await append(rig.journal, 16, (n) => ({ payloadName: `file ${n}` }));
      loop.run();
      await rig.clock.advance(1_000);
      expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 16).filter((n) => !poison.includes(n)));
      expect(deadLetters(rig.journal)).toEqual(
        poison.map((n) => ({
          ...{ sink: 'sink', seq: n, code: 'rejected', message: '400: something in it is bad', attempts: 1 },
          body: record(n, { payloadName: `file ${n}` }).text,
        })),
      );
      expect(committed(rig.journal, 'sink')).toMatchObject({ acknowledged: 16, delivered: 16 });
    },
  );

  test('has halves that may have been delivered before', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, resolvable: true });
    // After the first 10,000 entries nothing is uncertain for another reason.
    await append(rig.journal, 10_008);
    loop.receiver.answer = refusing([10_006], (batch) => loop.receiver.take(batch));
    loop.run();
    await rig.clock.until(() => loop.delivery.view().acknowledged === 10_008);
    const late = loop.receiver.attempts.filter(({ batch }) => batch.through.seq > 10_000);
    expect(late.map(({ batch }) => [batch.messages.map(({ seq }) => seq), batch.uncertain])).toEqual([
      [[10_001, 10_002, 10_003, 10_004], false],
      [[10_005, 10_006, 10_007, 10_008], false],
      [[10_005, 10_006], true],
      [[10_005], true],
      [[10_006], true],
      [[10_007, 10_008], true],
    ]);
  });

  test.each([true, false])('stores its dead letter before any later message is sent (outcome can be resolved: %s)', async (resolvable) => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 8, resolvable });
    const seen: string[] = [];
    loop.receiver.answer = (batch) => {
      const last = deadLetters(rig.journal).map(({ seq }) => seq);
      seen.push(`${batch.messages.map(({ seq }) => seq).join(' ')}: ${last.join(' ')}/${committed(rig.journal, 'sink').acknowledged}`);
      return refusing([2, 4], (taken) => loop.receiver.take(taken))(batch);
    };
    await append(rig.journal, 8);
    loop.run();
    await rig.clock.advance(10);
    const acked = resolvable ? ['0', '2', '2', '4'] : ['1', '2', '3', '4'];
    expect(seen).toEqual([
      '1 2 3 4 5 6 7 8: /0',
      '1 2 3 4: /0',
      '1 2: /0',
      '1: /0',
      `2: /${acked[0] ?? ''}`,
      `3 4: 2/${acked[1] ?? ''}`,
      `3: 2/${acked[1] ?? ''}`,
      `4: 2/${acked[2] ?? ''}`,
      `5 6 7 8: 2 4/${acked[3] ?? ''}`,
    ]);
  });
});

describe('some messages rejected', () => {
  test('become dead letters with a copy and the message of the sink, which no log holds', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4, resolvable: true });
    loop.receiver.answer = (batch) => loop.receiver.take(batch, { 2: 'cannot parse [Ann.docx]', 3: 'too long' });
    await append(rig.journal, 8, () => ({ payloadName: 'Ann.docx' }));
    loop.run();
    await rig.clock.advance(0);
    // At once, though other acknowledgements of this sink may wait for a second.
    expect(deadLetters(rig.journal)).toEqual([
      { sink: 'sink', seq: 2, body: record(2, { payloadName: 'Ann.docx' }).text, code: 'bad_document', message: 'cannot parse [Ann.docx]', attempts: 1 },
      { sink: 'sink', seq: 3, body: record(3, { payloadName: 'Ann.docx' }).text, code: 'bad_document', message: 'too long', attempts: 1 },
    ]); // prettier-ignore
    expect(committed(rig.journal, 'sink').acknowledged).toBeGreaterThanOrEqual(4);
    expect(loop.receiver.has.map(numberOf)).toEqual([1, 4, 5, 6, 7, 8]);
    expect(loop.counted.sent).toBe(6);
    expect(loop.lines.filter(({ event }) => event === 'sink.dead_letter').map(({ fields }) => fields['seq'])).toEqual([2, 3]);
    expect(JSON.stringify(loop.lines)).not.toContain('Ann.docx');
  });

  test('are logged with the meaning of a code that is a number', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 1 });
    loop.receiver.answer = () => ({ rejections: [{ seq: 1, code: '6', message: 'Invalid data format' }] });
    await append(rig.journal, 1);
    loop.run();
    await rig.clock.advance(0);
    const logged = loop.lines.filter(({ event }) => event === 'sink.dead_letter').map(({ fields }) => fields['code']);
    expect(logged).toEqual(['6 (Invalid data format)']);
  });

  test('all of them: the sink has responded and accepted none', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 2 });
    loop.receiver.answer = (batch) => loop.receiver.take(batch, { 1: 'bad', 2: 'bad' });
    await append(rig.journal, 2);
    loop.run();
    await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 2);
    expect(deadLetters(rig.journal).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(loop.delivery.view()).toMatchObject({ state: 'active', lastSuccess: undefined });
    expect(loop.lines.map(({ event }) => event)).not.toContain('sink.first_delivery');
    await append(rig.journal, 2);
    await rig.clock.until(() => loop.receiver.has.length === 2);
    expect(loop.lines.find(({ event }) => event === 'sink.first_delivery')?.fields).toMatchObject({ messages: 2 });
    expect(loop.counted).toMatchObject({ sent: 2 });
  });

  test('keep their copies when the journal is pruned', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 4 });
    loop.receiver.answer = (batch) => loop.receiver.take(batch, { 2: 'bad' });
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(10);
    rig.journal.db.exec('DELETE FROM segments');
    expect(deadLetters(rig.journal).map(({ body }) => body)).toEqual([record(2).text]);
  });
});

describe('no response', () => {
  const unknowns = [
    ['an unknown outcome', () => new WaybillError('sink_outcome_unknown', 'connection reset')],
    ['any other error', () => new TypeError('strange answer')],
  ] as const;

  test.each(unknowns)('%s: the sink is closed and reopened, and receives the batch again as uncertain', async (_name, unknown) => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3 });
    loop.receiver.answer = (batch, _signal, attempt) => {
      const taken = loop.receiver.take(batch);
      if (attempt === 2) throw unknown();
      return taken;
    };
    await append(rig.journal, 9);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 12);
    expect(loop.receiver.has.map(numberOf)).toEqual([1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9]);
    expect([loop.receiver.opens, loop.receiver.closes]).toEqual([2, 1]);
    expect(loop.receiver.attempts.map(({ batch }) => batch.uncertain)).toEqual([true, true, true, true]);
  });

  test('marks the batch uncertain also after the first 10,000 entries', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 500 });
    let hasFailed = false;
    loop.receiver.answer = (batch) => {
      if (batch.through.seq === 11_000 && !hasFailed) {
        hasFailed = true;
        throw new WaybillError('sink_outcome_unknown', 'reset');
      }
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 12_000);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 12_000);
    expect(loop.receiver.attempts.slice(19).map(({ batch }) => [batch.through.seq, batch.uncertain])).toEqual([
      [10_000, true],
      [10_500, false],
      [11_000, false],
      [11_000, true],
      [11_500, false],
      [12_000, false],
    ]);
  });

  test.each([true, false])(
    'a sink that stores the position reports it, and receives only missing messages (it stored the batch: %s)',
    async (had) => {
      await using rig = await Rig.make();
      const loop = rig.loop({ records: 3, keepsPosition: true });
      loop.receiver.answer = (batch, _signal, attempt) => {
        if (attempt !== 2) return loop.receiver.take(batch);
        if (had) loop.receiver.take(batch);
        throw new WaybillError('sink_outcome_unknown', 'connection reset');
      };
      await append(rig.journal, 9);
      loop.run();
      await rig.clock.until(() => loop.receiver.has.length === 9);
      expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 9));
      expect(loop.receiver.positionsAsked).toBe(2);
      await rig.clock.advance(2_000);
      expect(committed(rig.journal, 'sink')).toEqual({ acknowledged: 9, delivered: 9, resumeNote: 'through 9' });
    },
  );

  test('within the deadline is an unknown outcome too: the call is aborted, the sink closed, and the batch resent in halves', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3, deadline: 30_000 });
    let reason: unknown;
    loop.receiver.answer = (batch, signal, attempt) => {
      if (attempt > 1) return loop.receiver.take(batch);
      signal.addEventListener('abort', () => (reason = signal.reason as unknown));
      return new Promise<DeliveryResult>(() => undefined);
    };
    await append(rig.journal, 3);
    loop.run();
    await rig.clock.advance(29_999);
    expect([loop.receiver.closes, reason]).toEqual([0, undefined]);
    await rig.clock.until(() => loop.receiver.has.length === 3, 2_000);
    expect(reason).toBeInstanceOf(Error);
    expect([loop.receiver.opens, loop.receiver.closes]).toEqual([2, 1]);
    expect(loop.delivery.view().lastError).toContain('did not answer within 30 s');
  });

  test('from a sink whose close also fails leaves the message of the first error', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3 });
    loop.receiver.closing = () => Promise.reject(new Error('close failed'));
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === 1) throw new WaybillError('sink_outcome_unknown', 'connection reset');
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 3);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 3);
    expect(loop.delivery.view().lastError).toContain('connection reset');
    expect(loop.lines.filter(({ event }) => event === 'sink.close_failed')).toHaveLength(1);
  });

  test('from a sink whose close never returns delays the loop by at most ten seconds', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ records: 3 });
    loop.receiver.closing = () => (loop.receiver.closes === 1 ? new Promise(() => undefined) : undefined);
    loop.receiver.answer = (batch, _signal, attempt) => {
      if (attempt === 1) throw new WaybillError('sink_outcome_unknown', 'connection reset');
      return loop.receiver.take(batch);
    };
    await append(rig.journal, 3);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 3, 11_000);
    expect(loop.receiver.attempts.map(({ at }) => at)).toEqual([0, 10_125]);
    expect(loop.receiver.attempts[1]?.batch.uncertain).toBe(true);
  });
});

describe('opening', () => {
  test('that fails is retried after a wait', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ random: () => 0.999999 });
    loop.receiver.opening = (_signal, open) => {
      if (open <= 2) throw new WaybillError('sink_unavailable', 'connection refused');
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.until(() => loop.receiver.has.length === 4);
    expect(loop.receiver.opens).toBe(3);
    expect(Math.round(loop.receiver.attempts[0]?.at ?? 0)).toBe(750);
  });

  test('that completes after its deadline is closed and never used', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop({ deadline: 30_000 });
    loop.receiver.opening = async (_signal, open) => {
      if (open === 1) await rig.clock.sleep(45_000, new AbortController().signal);
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(44_000);
    expect([loop.receiver.opens, loop.receiver.closes]).toEqual([2, 0]);
    expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 4));
    await rig.clock.advance(2_000);
    expect([loop.receiver.opens, loop.receiver.closes]).toEqual([2, 1]);
  });
});

describe('a fatal error', () => {
  test('ends the loop', async () => {
    await using rig = await Rig.make();
    const loop = rig.loop();
    loop.receiver.answer = () => {
      throw new WaybillError('internal_error', 'two positions for one entry');
    };
    await append(rig.journal, 4);
    loop.run();
    await rig.clock.advance(1);
    expect(loop.failed).toMatchObject({ code: 'internal_error' });
    expect(committed(rig.journal, 'sink').acknowledged).toBe(0);
  });
});

describe('a sink next to another', () => {
  test('is not delayed by a sink that does not respond (D7)', async () => {
    await using rig = await Rig.make();
    const slow = rig.loop({ id: 'slow' });
    const quick = rig.loop({ id: 'quick' });
    slow.receiver.answer = async (batch, signal) => {
      await rig.clock.sleep(20_000, signal);
      return slow.receiver.take(batch);
    };
    await append(rig.journal, 12);
    slow.run();
    quick.run();
    // Three batches each: the fast sink has received them before the slow one has answered the
    // first.
    await rig.clock.until(() => quick.receiver.has.length === 12, 5_000);
    expect([slow.receiver.attempts.length, slow.receiver.has.length]).toEqual([1, 0]);
    expect(committed(rig.journal, 'quick').acknowledged).toBe(12);
    await rig.clock.until(() => slow.receiver.has.length === 12);
    expect(slow.receiver.has.map(numberOf)).toEqual(range(1, 12));
    expect(rig.clock.monotonic()).toBe(60_000);
  });
});
