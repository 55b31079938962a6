/** What may be asked of a sink while its loop runs, and what is refused; what a command does alone is in test/unit/cli/sinks.test.ts. */
import { expect, test } from 'vitest';
import { perform } from '../../../src/daemon/operations/acts.ts';
import type { ActResult, ConfiguredSinks } from '../../../src/daemon/operations/requests.ts';
import { WaybillError } from '../../../src/errors.ts';
import { append, committed, deadLetters } from '../../support/model-journal.ts';
import { Rig } from '../deliver/rig.ts';
import type { Loop } from '../deliver/rig.ts';

const by = 'j.doe';

/** Asks as the daemon does; `definition` is what the type of the sink says of itself. */
function asking(rig: Rig, loop: Loop, definition: object): (request: object) => Promise<ActResult> {
  const configured: ConfiguredSinks = (id) =>
    id === loop.id
      ? ({ definition, settings: {}, loop: loop.delivery, testMessages: () => [] } as unknown as ReturnType<ConfiguredSinks>)
      : undefined;
  return (request) => perform({ sink: loop.id, by, ...request }, rig.journal, rig.clock.now() * 1000, () => undefined, configured);
}

async function delivered(rig: Rig, count = 8): Promise<Loop> {
  const loop = rig.loop({ records: 4, keepsPosition: true });
  await append(rig.journal, count);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acked === count);
  return loop;
}

test('adopt: only one that keeps our position and cannot be opened for it; the order is kept until it was opened so', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { keepsPosition: () => true, resolvable: () => true });
  await expect(ask({ act: 'sinks adopt' })).rejects.toThrow('it is not blocked, its position fits this state');
  // Blocked for another reason while it is open: there is nothing to adopt.
  loop.receiver.answer = () => {
    throw new WaybillError('sink_blocked', '401');
  };
  await append(rig.journal, 4);
  await rig.clock.advance(1);
  expect(loop.delivery.view().state).toBe('blocked');
  await expect(ask({ act: 'sinks adopt' })).rejects.toThrow('it is not blocked');
  loop.receiver.answer = () => {
    throw new WaybillError('sink_unknown', 'reset');
  };
  let fits = false;
  loop.receiver.opening = () => {
    if (!fits) throw new WaybillError('sink_blocked', 'it belongs to another state');
  };
  await rig.clock.advance(180_000);
  expect(rig.journal.sinkMarks('sink').orders).toEqual({});
  fits = true;
  loop.receiver.answer = (batch) => loop.receiver.take(batch);
  expect(await ask({ act: 'sinks adopt', why: 'volume lost' })).toEqual({});
  await rig.clock.advance(10);
  expect(rig.journal.sinkMarks('sink').orders).toEqual({});
  expect(loop.lines.map(({ phrase }) => phrase)).toContain('sink is adopted');
  await expect(asking(rig, loop, { resolvable: () => true })({ act: 'sinks adopt' })).rejects.toThrow('keeps no position');
});

test('retry: a waiting or blocked sink is tried at once, in the middle of its pause; an active one, or one without a daemon, is refused', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  await expect(ask({ act: 'sinks retry' })).rejects.toThrow('it is neither waiting nor blocked');
  for (const [code, state] of [
    ['sink_blocked', 'blocked'],
    ['sink_again', 'waiting'],
    ['sink_unknown', 'waiting'],
  ] as const) {
    loop.receiver.answer = () => {
      throw new WaybillError(code, 'not now', { retryAfterMs: 900_000 });
    };
    await append(rig.journal, 4);
    await rig.clock.advance(1_000);
    expect(loop.delivery.view().state).toBe(state);
    loop.receiver.answer = (batch) => loop.receiver.take(batch);
    const { acked } = committed(rig.journal, 'sink');
    const before = rig.clock.now();
    // What was mended is not noticed before the pause ends.
    await rig.clock.advance(60_000);
    expect(committed(rig.journal, 'sink').acked).toBe(acked);
    expect(await ask({ act: 'sinks retry', why: 'disk replaced' })).toEqual({});
    await rig.clock.advance(2_000);
    expect(loop.delivery.view().state).toBe('active');
    await rig.clock.advance(2_000);
    expect(loop.delivery.view().lagRecords).toBe(0);
    expect(rig.clock.now() - before).toBeLessThan(900_000);
  }
  const rows = rig.journal.db.prepare("SELECT what FROM operations WHERE what = 'sinks retry'").all();
  expect(rows).toHaveLength(3);
  const alone: ConfiguredSinks = () =>
    ({ definition: {}, settings: {}, loop: undefined, testMessages: () => [] }) as unknown as ReturnType<ConfiguredSinks>;
  await expect(perform({ act: 'sinks retry', sink: 'sink', by }, rig.journal, 1, () => undefined, alone)).rejects.toThrow(
    'no daemon is running',
  );
});

test('a sink that is configured is not retired; one that is not is sent nothing', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  await expect(ask({ act: 'sinks retire' })).rejects.toThrow('it is configured');
  rig.journal.progress.register('old', 'stdout', 'stdout', rig.journal.positionFor('now'), undefined);
  for (const request of [
    { act: 'replay', first: 1 },
    { act: 'dead-letters retry', seqs: [1] },
    { act: 'sinks test' },
    { act: 'sinks verify', from: 1 },
  ])
    await expect(ask({ ...request, sink: 'old' }), request.act).rejects.toMatchObject({ code: 'usage' });
  await expect(ask({ act: 'sinks retire', sink: 'none' })).rejects.toThrow('cannot find the sink "none"');
  rig.journal.progress.orphan(new Set(['sink']));
  await ask({ act: 'sinks retire', sink: 'old' });
  expect(rig.journal.progress.sink('old').state).toBe('retired');
});

test('one replay at a time, and none of a sink that takes everything once', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  await expect(asking(rig, loop, { takesOnce: true })({ act: 'replay', first: 1 })).rejects.toThrow('once and for all');
  loop.receiver.answer = async (batch, signal) => {
    await rig.clock.sleep(1_000, signal);
    return loop.receiver.take(batch);
  };
  expect(await ask({ act: 'replay', first: 1, last: 1_000_000 })).toMatchObject({
    replay: { state: 'running', first: 1, last: 8, expected: 8 },
  });
  await expect(ask({ act: 'replay', first: 1 })).rejects.toThrow('a replay is under way');
  await rig.clock.until(() => loop.delivery.view().replay?.state === 'done');
  expect(loop.delivery.view().replay).toMatchObject({ sent: 8 });
  await expect(ask({ act: 'replay', first: 9_000 })).rejects.toThrow('the journal holds nothing of that');
});

test('verify is kept, and replaced by the next one; all dead letters are discarded by one request', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 4 });
  await append(rig.journal, 4);
  loop.receiver.answer = (batch) => loop.receiver.take(batch, { 2: 'bad', 3: 'bad' });
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acked === 4);
  const ask = asking(rig, loop, { resolvable: () => true });
  await ask({ act: 'sinks verify', from: 5 });
  await ask({ act: 'sinks verify', from: 7 });
  expect(rig.journal.sinkMarks('sink').orders.verify?.from).toBe(7);
  expect(await ask({ act: 'dead-letters discard', seqs: 'all' })).toEqual({ discarded: 2 });
  expect(await ask({ act: 'dead-letters discard', seqs: 'all' })).toEqual({ discarded: 0 });
  expect(deadLetters(rig.journal).map(({ body }) => body)).toEqual([null, null]);
  await expect(ask({ act: 'dead-letters discard', seqs: [2] })).rejects.toMatchObject({ code: 'usage' });
  // Each is a row in operations, but for what changed nothing.
  const rows = rig.journal.db.prepare('SELECT what FROM operations ORDER BY n').all() as { what: string }[];
  expect(rows.map(({ what }) => what)).toEqual(['sinks verify', 'sinks verify', 'dead-letters discard']);
});
