/** The status of a loop: its lag, its state, and its counters. */
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import type { SinkSnapshot } from '../../../src/model/snapshot.ts';
import { append } from '../../support/model-journal.ts';
import { plain, Rig } from '../../support/deliver/rig.ts';
import type { Loop } from '../../support/deliver/rig.ts';

/** The sink as `status` and the metrics show it. */
function shown({ journal, clock }: Rig, { delivery }: Loop): SinkSnapshot | undefined {
  const live = {
    source: () => undefined,
    sink: () => delivery.view(),
    closeDelaySeconds: () => 900,
    paused: undefined,
    maxSize: 1,
    configured: undefined,
  };
  return snapshotOf(journal.db, '0.1.0', clock.now() * 1000, live).sinks[0];
}

test('the lag is the age of the oldest unacknowledged entry', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2 });
  loop.receiver.answer = async (batch, signal) => {
    await rig.clock.sleep(10_000, signal);
    return loop.receiver.take(batch);
  };
  await append(rig.journal, 2, undefined, rig.clock.now());
  await rig.clock.advance(4_000);
  await append(rig.journal, 4, undefined, rig.clock.now());
  loop.run();
  await rig.clock.advance(1_000);
  expect(shown(rig, loop)).toMatchObject({ acknowledged: 0, lagEntries: 6, lagSeconds: 5, state: 'active', lastSuccess: undefined });
  await rig.clock.advance(10_000);
  expect(shown(rig, loop)).toMatchObject({
    acknowledged: 2,
    lagEntries: 4,
    lagSeconds: 11,
    lastSuccess: (rig.clock.now() - 1_000) * 1000,
  });
  await rig.clock.advance(20_000);
  expect(shown(rig, loop)).toMatchObject({ acknowledged: 6, lagEntries: 0, lagSeconds: 0 });
});

test('the lag starts at the oldest waiting record, not at the last delivery', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 10, waitMs: 5_000 }).run();
  await append(rig.journal, 1, undefined, rig.clock.now());
  await rig.clock.advance(86_400_000);
  await append(rig.journal, 1, undefined, rig.clock.now());
  await rig.clock.advance(3_000);
  expect(shown(rig, loop)).toMatchObject({ lagEntries: 1, lagSeconds: 3 });
});

test('a sink with a filter lags only by entries that it has to send', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 10, waitMs: 5_000, pipeline: (entry) => (entry.seq % 2 === 0 ? plain(entry) : undefined) }).run();
  for (let minute = 0; minute < 5; minute += 1) {
    await append(rig.journal, 1, undefined, rig.clock.now());
    await rig.clock.advance(30_000);
    expect(shown(rig, loop)).toMatchObject({ lagEntries: 0, lagSeconds: 0 });
    await append(rig.journal, 1, undefined, rig.clock.now());
    await rig.clock.advance(2_000);
    expect(shown(rig, loop)).toMatchObject({ lagEntries: 1, lagSeconds: 2 });
    await rig.clock.advance(30_000);
  }
});

test('a sink that was never opened lags by the age of its first waiting record', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2 });
  loop.receiver.opening = () => {
    throw new WaybillError('sink_unavailable', 'connect ECONNREFUSED');
  };
  loop.run();
  await rig.clock.advance(60_000);
  expect(shown(rig, loop)).toMatchObject({ state: 'retrying', lagEntries: 0, lagSeconds: 0 });
  await append(rig.journal, 2, undefined, rig.clock.now());
  await rig.clock.advance(700_000);
  await append(rig.journal, 1, undefined, rig.clock.now());
  expect(shown(rig, loop)).toMatchObject({ state: 'retrying', lagEntries: 3, lagSeconds: 700, hasDelivered: false });
});

test('after a restart, a sink that cannot be opened lags by the age of its first waiting record', async () => {
  await using rig = await Rig.make();
  const before = rig.loop({ records: 2 }).run();
  await append(rig.journal, 2, undefined, rig.clock.now());
  await rig.clock.advance(5_000);
  await before.end();
  await append(rig.journal, 1, undefined, rig.clock.now());
  await rig.clock.advance(840_000);
  const after = rig.loop({ receiver: before.receiver });
  after.receiver.opening = () => {
    throw new WaybillError('sink_unavailable', 'connect ECONNREFUSED');
  };
  after.run();
  await rig.clock.advance(60_000);
  expect(shown(rig, after)).toMatchObject({ state: 'retrying', acknowledged: 2, lagEntries: 1, lagSeconds: 900 });
});

test('a failing sink is active again when it reports that it has all entries', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2, keepsPosition: true, failReadinessAfter: 60_000 });
  loop.receiver.answer = (batch) => {
    loop.receiver.take(batch);
    throw new WaybillError('sink_outcome_unknown', 'the answer was cut');
  };
  await append(rig.journal, 2);
  loop.run();
  await rig.clock.advance(600_000);
  expect(loop.receiver.attempts.length).toBe(1);
  expect(loop.delivery.view()).toMatchObject({ state: 'active', trouble: undefined, acknowledged: 2, lastError: 'the answer was cut' });
});

test('a reopened sink with only filtered entries left is active, and accepts on-demand sends', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ failReadinessAfter: 60_000, pipeline: () => undefined });
  loop.receiver.opening = (_signal, open) => {
    if (open < 12) throw new WaybillError('sink_unavailable', '429');
  };
  await append(rig.journal, 3);
  loop.run();
  await rig.clock.advance(70_000);
  expect(loop.delivery.view()).toMatchObject({ state: 'retrying', trouble: '429' });
  await rig.clock.advance(600_000);
  expect(loop.receiver.opens).toBe(12);
  expect(loop.delivery.view()).toMatchObject({ state: 'active', trouble: undefined, acknowledged: 3 });
  const [entry] = await rig.journal.read(0, { records: 1, bytes: 1 });
  if (!entry) throw new Error('the journal has three records');
  const asked = loop.delivery.test([plain(entry)]);
  await rig.clock.advance(1_000);
  expect(await asked).toEqual([]);
});

test('a sink that opens but never responds counts as failing', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2, failReadinessAfter: 300_000 });
  loop.receiver.answer = () => {
    throw new WaybillError('sink_outcome_unknown', 'reset');
  };
  await append(rig.journal, 2);
  loop.run();
  await rig.clock.advance(299_000);
  expect(loop.delivery.view()).toMatchObject({ state: 'retrying', trouble: undefined });
  await rig.clock.advance(2_000);
  expect(loop.delivery.view()).toMatchObject({ state: 'retrying', trouble: 'reset' });
});

test('the live status has the start of the failure, the failed attempts in a row, and the time of the next attempt', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2, random: () => 0.5 });
  const refuse = (): never => {
    throw new WaybillError('sink_unavailable', 'connect ECONNREFUSED', { retryAfterMs: 10_000 });
  };
  const accept = loop.receiver.answer;
  loop.receiver.answer = refuse;
  await append(rig.journal, 2);
  const began = rig.clock.now();
  loop.run();
  await rig.clock.advance(25_000);
  const failing = loop.delivery.view();
  expect(failing).toMatchObject({ attempts: 3, failingSince: began * 1000, nextAttempt: (began + 30_000) * 1000 });
  loop.receiver.answer = accept;
  await rig.clock.advance(10_000);
  expect(loop.delivery.view()).toMatchObject({ attempts: 0, failingSince: undefined, nextAttempt: undefined });
});

test('the time of the next attempt is a whole number of microseconds after a pause of a fraction', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 2, random: () => 0.73001 });
  loop.receiver.answer = () => {
    throw new WaybillError('sink_unavailable', 'connect ECONNREFUSED');
  };
  await append(rig.journal, 2);
  loop.run();
  await rig.clock.advance(10);
  expect(loop.delivery.view().nextAttempt).toSatisfy(Number.isInteger);
});

test('the metrics count delivered events and their delay since the time of the record', async () => {
  await using rig = await Rig.make();
  const at = rig.clock.now() * 1000 - 90_000_000;
  const loop = rig.loop({ records: 2, pipeline: (entry) => ({ ...plain(entry), time: at + entry.seq * 1_000_000 }) });
  await append(rig.journal, 4);
  loop.run();
  await rig.clock.advance(0);
  expect(loop.counted).toEqual({ sent: 4, dropped: 0, delays: [89, 87] });
  expect(loop.lines.map(({ event }) => event)).toEqual(['sink.first_delivery']);
});

test('a sink that wants a beat gets one when it is due, also with nothing to send, and a failed one opens it again', async () => {
  await using rig = await Rig.make();
  const beats: number[] = [];
  let failures = 0;
  const loop = rig.loop({
    open: async (signal) => {
      const sink = {
        ...(await loop.receiver.open(signal)),
        beatAt: rig.clock.monotonic() + 3_600_000,
        beat: async (): Promise<void> => {
          if (failures > 0) {
            failures -= 1;
            throw new WaybillError('archive_broken', 'it was replaced');
          }
          beats.push(rig.clock.monotonic());
          sink.beatAt = rig.clock.monotonic() + 3_600_000;
        },
      };
      return sink;
    },
  });
  loop.run();
  const began = rig.clock.monotonic();
  await rig.clock.advance(3 * 3_600_000 + 60_000);
  expect(beats.map((at) => Math.round((at - began) / 3_600_000))).toEqual([1, 2, 3]);
  failures = 1;
  await rig.clock.advance(3_600_000 - 60_000);
  expect(loop.delivery.view()).toMatchObject({ state: 'blocked', lastError: 'it was replaced' });
  await rig.clock.advance(120_000);
  expect(loop.receiver.opens).toBe(2);
  expect(loop.delivery.view().state).toBe('active');
});
