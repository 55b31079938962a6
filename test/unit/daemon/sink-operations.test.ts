/**
 * Operations on a sink while its loop runs, and refused ones; test/unit/cli/sinks.test.ts tests
 * commands without a daemon.
 */
import { expect, test } from 'vitest';
import type { Collector } from '../../../src/collect/scheduler.ts';
import { perform } from '../../../src/daemon/operations/perform.ts';
import type { OperationResult, ConfiguredSinks } from '../../../src/daemon/operations/requests.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Replay } from '../../../src/model/journal.ts';
import { append, committed, deadLetters, range, storeReplay } from '../../support/model-journal.ts';
import { Rig } from '../../support/deliver/rig.ts';
import type { Loop } from '../../support/deliver/rig.ts';

const actor = 'j.doe';

/** Sends operations as the daemon does; `definition` is the sink type's. */
function asking(rig: Rig, loop: Loop, definition: object): (request: object) => Promise<OperationResult> {
  const configured: ConfiguredSinks = (id) =>
    id === loop.id
      ? ({ definition, settings: {}, loop: loop.delivery, testMessages: () => [] } as unknown as ReturnType<ConfiguredSinks>)
      : undefined;
  return (request) => perform({ sink: loop.id, actor, ...request }, rig.journal, rig.clock.now() * 1000, () => undefined, configured);
}

async function delivered(rig: Rig, count = 8): Promise<Loop> {
  const loop = rig.loop({ records: 4, keepsPosition: true });
  await append(rig.journal, count);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === count);
  return loop;
}

test('adopt requires a blocked sink that stores its position; the request is stored until the sink is opened with it', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { keepsPosition: () => true, resolvable: () => true });
  await expect(ask({ operation: 'sinks adopt' })).rejects.toThrow('it is not blocked, and its position matches this state');
  // The open sink is blocked for another reason (401): there is nothing to adopt.
  loop.receiver.answer = () => {
    throw new WaybillError('sink_blocked', '401');
  };
  await append(rig.journal, 4);
  await rig.clock.advance(1);
  expect(loop.delivery.view().state).toBe('blocked');
  await expect(ask({ operation: 'sinks adopt' })).rejects.toThrow('it is not blocked');
  loop.receiver.answer = () => {
    throw new WaybillError('sink_outcome_unknown', 'reset');
  };
  let fits = false;
  loop.receiver.opening = () => {
    if (!fits) throw new WaybillError('sink_blocked', 'it belongs to another state');
  };
  await rig.clock.advance(180_000);
  expect(rig.journal.sinkProgress('sink').orders).toEqual({});
  fits = true;
  loop.receiver.answer = (batch) => loop.receiver.take(batch);
  expect(await ask({ operation: 'sinks adopt', reason: 'volume lost' })).toEqual({});
  await rig.clock.advance(10);
  expect(rig.journal.sinkProgress('sink').orders).toEqual({});
  expect(loop.lines.map(({ event }) => event)).toContain('sink.adopted');
  await expect(asking(rig, loop, { resolvable: () => true })({ operation: 'sinks adopt' })).rejects.toThrow(
    'stores no position; adopt does not apply',
  );
});

test('retry ends the pause of a retrying or blocked sink; an active sink, or one without a daemon, is rejected', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  await expect(ask({ operation: 'sinks retry' })).rejects.toThrow('it is neither retrying nor blocked');
  for (const [code, state] of [
    ['sink_blocked', 'blocked'],
    ['sink_unavailable', 'retrying'],
    ['sink_outcome_unknown', 'retrying'],
  ] as const) {
    loop.receiver.answer = () => {
      throw new WaybillError(code, 'not now', { retryAfterMs: 900_000 });
    };
    await append(rig.journal, 4);
    await rig.clock.advance(1_000);
    expect(loop.delivery.view().state).toBe(state);
    loop.receiver.answer = (batch) => loop.receiver.take(batch);
    const { acknowledged: before } = committed(rig.journal, 'sink');
    const began = rig.clock.now();
    // A fix is not noticed before the pause ends.
    await rig.clock.advance(60_000);
    expect(committed(rig.journal, 'sink').acknowledged).toBe(before);
    expect(await ask({ operation: 'sinks retry', reason: 'disk replaced' })).toEqual({});
    await rig.clock.advance(2_000);
    expect(loop.delivery.view().state).toBe('active');
    await rig.clock.advance(2_000);
    expect(loop.delivery.view().acknowledged).toBe(rig.journal.head().seq);
    expect(rig.clock.now() - began).toBeLessThan(900_000);
  }
  const rows = rig.journal.db.prepare("SELECT operation FROM operations WHERE operation = 'sinks retry'").all();
  expect(rows).toHaveLength(3);
  const alone: ConfiguredSinks = () =>
    ({ definition: {}, settings: {}, loop: undefined, testMessages: () => [] }) as unknown as ReturnType<ConfiguredSinks>;
  await expect(perform({ operation: 'sinks retry', sink: 'sink', actor }, rig.journal, 1, () => undefined, alone)).rejects.toThrow(
    'no daemon is running',
  );
});

test('a source is retried by the daemon that polls it, which records the operation; without one the request is refused', async () => {
  await using rig = await Rig.make();
  let retried = 0;
  const collector = { retry: () => (retried += 1), backfiller: undefined } as unknown as Collector;
  const request = { operation: 'sources retry', source: 'production', actor, reason: 'new secret' };
  expect(await perform(request, rig.journal, 5, (id) => (id === 'production' ? collector : undefined))).toEqual({});
  expect(retried).toBe(1);
  const rows = rig.journal.db.prepare("SELECT actor, detail FROM operations WHERE operation = 'sources retry'").all();
  expect(rows).toEqual([{ actor, detail: JSON.stringify({ source: 'production', reason: 'new secret' }) }]);
  await expect(perform(request, rig.journal, 5, () => undefined)).rejects.toThrow('no daemon polls it');
});

test('a configured sink cannot be retired; an unconfigured one gets no sends', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  await expect(ask({ operation: 'sinks retire' })).rejects.toThrow('it is configured');
  rig.journal.sinkPositions.register('old', 'stdout', 'stdout', rig.journal.positionFor('now'), undefined);
  for (const request of [
    { operation: 'replay', first: 1 },
    { operation: 'dead-letters retry', seqs: [1] },
    { operation: 'sinks test' },
    { operation: 'sinks reconcile', from: '1970-01-01T00:00:00.000001Z' },
  ])
    await expect(ask({ ...request, sink: 'old' }), request.operation).rejects.toMatchObject({ code: 'usage' });
  await expect(ask({ operation: 'sinks retire', sink: 'none' })).rejects.toThrow('cannot find the sink "none"');
  rig.journal.sinkPositions.markUnconfigured(new Set(['sink']));
  await ask({ operation: 'sinks retire', sink: 'old' });
  expect(rig.journal.sinkPositions.sink('old').state).toBe('retired');
});

test('one replay at a time, and none for a sink that accepts each record once', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  await expect(asking(rig, loop, { takesOnce: true })({ operation: 'replay', first: 1 })).rejects.toThrow('accepts each record only once');
  loop.receiver.answer = async (batch, signal) => {
    await rig.clock.sleep(1_000, signal);
    return loop.receiver.take(batch);
  };
  expect(await ask({ operation: 'replay', first: 1, last: 1_000_000 })).toMatchObject({
    replay: { state: 'running', first: 1, last: 8, expected: 8 },
  });
  await expect(ask({ operation: 'replay', first: 1 })).rejects.toThrow('a replay is already running');
  await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'done');
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ sent: 8 });
  await expect(ask({ operation: 'replay', first: 9_000 })).rejects.toThrow('nothing delivered in this range is still in the journal');
});

test('replay cancel ends a running replay, and an unfinished replay from an archive', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { resolvable: () => true });
  const cancel = { operation: 'replay cancel', reason: 'wrong range' };
  await expect(ask(cancel)).rejects.toThrow('cannot cancel a replay to the sink "sink": none is under way');
  loop.receiver.answer = async (batch, signal) => {
    await rig.clock.sleep(1_000, signal);
    return loop.receiver.take(batch);
  };
  await ask({ operation: 'replay', first: 1 });
  await rig.clock.advance(1_500);
  await ask(cancel);
  await rig.clock.advance(60_000);
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ state: 'cancelled', sent: 4 });
  expect(loop.lines.at(-1)).toMatchObject({ event: 'sink.replay_cancelled', fields: { from: 5, through: 8, sent: 4 } });
  // The last two entries are the operations.
  expect(loop.receiver.has.map(({ seq }) => seq)).toEqual([...range(1, 8), ...range(1, 4), 9, 10]);
  // Without a daemon.
  await loop.end();
  const progress = { through: 8, began: 1, at: 230, sent: 115, rejected: 0 };
  storeReplay(rig.journal, 'sink', { kind: 'archive', archive: 'evidence', times: undefined, ...progress });
  await perform({ ...cancel, sink: 'sink', actor }, rig.journal, 1, () => undefined);
  expect(rig.journal.sinkProgress('sink').replays).toEqual({});
  await expect(perform({ ...cancel, sink: 'sink', actor }, rig.journal, 1, () => undefined)).rejects.toThrow('none is under way');
  const rows = rig.journal.db.prepare("SELECT detail FROM operations WHERE operation = 'replay cancel'").all() as { detail: string }[];
  expect(rows.map(({ detail }) => JSON.parse(detail) as unknown)).toEqual([
    { sink: 'sink', after: 4, reason: 'wrong range' },
    { sink: 'sink', archive: 'evidence', after: 230, reason: 'wrong range' },
  ]);
});

test('an unfinished replay of a range continues in the next loop; the same request continues it, and another one is refused', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  loop.receiver.answer = async (batch, signal) => {
    await rig.clock.sleep(1_000, signal);
    return loop.receiver.take(batch);
  };
  await asking(rig, loop, { resolvable: () => true })({ operation: 'replay', first: 2, last: 1_000_000 });
  await rig.clock.advance(1_500);
  await loop.end();
  expect(rig.journal.sinkProgress('sink').replays.range).toMatchObject({ first: 2, last: 8, at: 5, sent: 4, passed: 4, expected: 7 });
  // As a command without a daemon does.
  const alone = rig.loop({ records: 4, receiver: loop.receiver });
  const ask = asking(rig, alone, { resolvable: () => true });
  loop.receiver.answer = (batch) => loop.receiver.take(batch);
  const { signal } = new AbortController();
  const unfinished = 'the replay from the entries 2 to 8 is unfinished: the same request continues it';
  await expect(ask({ operation: 'replay', first: 3, last: 1_000_000 })).rejects.toThrow(unfinished);
  await expect(ask({ operation: 'replay', first: 2, to: '2026-11-21T00:00:00Z' })).rejects.toThrow(unfinished);
  const done = alone.delivery.runOnDemand(() => ask({ operation: 'replay', first: 2, last: 1_000_000 }), signal);
  await rig.clock.until(() => alone.delivery.view().replays?.[0]?.state === 'done');
  await done;
  expect(alone.delivery.view().replays?.[0]).toMatchObject({ sent: 7, passed: 7 });
  expect(loop.receiver.has.slice(8).map(({ seq }) => seq)).toEqual(range(2, 8));
  expect(rig.journal.sinkProgress('sink').replays).toEqual({});
});

test('another replay from an archive waits for the end of an unfinished one, which the same request continues', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const configured: ConfiguredSinks = (id) =>
    ({
      definition: { type: id === 'sink' ? 'model' : 'archive' },
      settings: {},
      loop: loop.delivery,
    }) as unknown as ReturnType<ConfiguredSinks>;
  const ask = (request: object): Promise<OperationResult> =>
    perform({ operation: 'replay', sink: 'sink', actor, ...request }, rig.journal, 1, () => undefined, configured);
  const stored = { times: undefined, through: 8, began: 1, at: 230, sent: 115, rejected: 0 };
  const whole: Replay = { ...stored, kind: 'archive', archive: 'evidence' };
  storeReplay(rig.journal, 'sink', whole);
  const instead = 'the same request continues it, and "waybill replay cancel --sink sink" ends it';
  const refused = (name: string) => ({
    code: 'usage',
    message: `cannot replay to the sink "sink": the replay from the archive ${name} is unfinished: ${instead}`,
  });
  await expect(ask({ archive: 'evidence', from: '2026-11-20T00:00:00Z' })).rejects.toMatchObject(refused('evidence'));
  await expect(ask({ archive: 'other' })).rejects.toMatchObject(refused('evidence'));
  expect(rig.journal.sinkProgress('sink').replays.archive).toEqual(whole);
  expect(await ask({ archive: 'evidence' })).toMatchObject({ replay: { archive: 'evidence', at: 230, sent: 115 } });
  await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'failed');
  // Lines that cannot be read are left out; lines that were sent are not sent again.
  const order = () => rig.journal.sinkProgress('sink').replays.archive;
  for (const first of [1, 230]) await expect(ask({ archive: 'evidence', first })).rejects.toThrow('the replay continues after line 230');
  await expect(ask({ archive: 'other', first: 250 })).rejects.toMatchObject(refused('evidence'));
  for (const range of [{ last: 250 }, { first: 250, last: 260 }, { first: 250, to: '2026-11-20T00:00:00Z' }])
    await expect(ask({ archive: 'evidence', ...range })).rejects.toMatchObject({ code: 'usage' });
  expect(order()).toEqual(whole);
  expect(await ask({ archive: 'evidence', first: 251 })).toMatchObject({ replay: { at: 250, sent: 115, leftOut: 20 } });
  await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'failed');
  await ask({ archive: 'evidence', first: 261 });
  expect(order()).toEqual({ ...whole, at: 260, leftOut: 30 });
  const last = rig.journal.db.prepare("SELECT detail FROM operations WHERE operation = 'replay' ORDER BY rowid DESC LIMIT 1").get() as {
    detail: string;
  };
  expect(JSON.parse(last.detail)).toEqual({ sink: 'sink', archive: 'evidence', line: 261 });
  await ask({ operation: 'replay cancel' });
  await ask({ archive: 'evidence', first: 63 });
  expect(order()).toMatchObject({ at: 62, leftOut: 62, sent: 0 });
  await ask({ operation: 'replay cancel' });
  const period = { archive: 'evidence', from: '2026-11-20T00:00:00Z', to: '2026-11-21T00:00:00Z' };
  await ask(period);
  await rig.clock.until(() => loop.delivery.view().replays?.[0]?.state === 'failed');
  await expect(ask({ archive: 'evidence' })).rejects.toMatchObject(refused('evidence from 2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z'));
  expect(await ask(period)).toMatchObject({ replay: { archive: 'evidence' } });
});

test('a reconcile request is stored until the next one replaces it; one request discards all dead letters', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 4 });
  await append(rig.journal, 4);
  loop.receiver.answer = (batch) => loop.receiver.take(batch, { 2: 'bad', 3: 'bad' });
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
  const ask = asking(rig, loop, { resolvable: () => true });
  await ask({ operation: 'sinks reconcile', from: '1970-01-01T00:00:00.000005Z' });
  await ask({ operation: 'sinks reconcile', from: '1970-01-01T00:00:00.000007Z' });
  expect(rig.journal.sinkProgress('sink').orders.reconcile?.from).toBe(7);
  expect(await ask({ operation: 'dead-letters discard', seqs: 'all' })).toEqual({ discarded: 2 });
  expect(await ask({ operation: 'dead-letters discard', seqs: 'all' })).toEqual({ discarded: 0 });
  // The message of a sink may quote the record.
  expect(deadLetters(rig.journal).map(({ body, message }) => ({ body, message }))).toEqual([
    { body: null, message: '' },
    { body: null, message: '' },
  ]);
  await expect(ask({ operation: 'dead-letters discard', seqs: [2] })).rejects.toMatchObject({ code: 'usage' });
  // Each operation is a row, unless it changed nothing.
  const rows = rig.journal.db.prepare('SELECT operation FROM operations ORDER BY operation_no').all() as { operation: string }[];
  expect(rows.map(({ operation }) => operation)).toEqual(['sinks reconcile', 'sinks reconcile', 'dead-letters discard']);
});

test('an order to prune an archive is refused for lines that a case holds, until the case is released; replays from the archive are known', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig);
  const ask = asking(rig, loop, { type: 'archive' });
  const archive = 'waybill/a';
  const prune = { operation: 'archive prune', archive, before: '2026-11-01T00:00:00Z', reason: '13 months' };
  const lines = [{ first: 1, last: 10 }, { first: 21, last: 30 }]; // prettier-ignore
  await ask({ operation: 'archive hold', archive, case: 'x', from: '2026-01-01T00:00:00Z', to: null, lines: [{ first: 30, last: 40 }] });
  await ask({ operation: 'archive hold', archive: 'waybill/other', case: 'y', from: null, to: null, lines: [{ first: 1, last: 99 }] });
  await expect(ask({ ...prune, lines })).rejects.toThrow('cannot prune the archive "sink": the case "x" holds some of the lines');
  await expect(ask({ ...prune, reason: '', lines })).rejects.toMatchObject({ code: 'usage' });
  await expect(ask({ ...prune, lines: lines.toReversed() })).rejects.toMatchObject({ code: 'usage' });
  await expect(asking(rig, loop, { type: 'file' })({ ...prune, lines })).rejects.toThrow('it is not an archive');
  await ask({ ...prune, lines: [{ first: 1, last: 29 }] });
  await ask({ operation: 'archive release', archive, case: 'x' });
  await ask({ ...prune, lines });
  const rows = rig.journal.db
    .prepare<[], { operation: string; detail: string }>("SELECT operation, detail FROM operations WHERE operation LIKE 'archive %'")
    .all();
  expect(rows.map(({ operation }) => operation)).toEqual([
    ...['archive hold', 'archive hold', 'archive prune', 'archive release', 'archive prune'],
  ]);
  expect(JSON.parse(rows[0]?.detail ?? '')).toEqual({
    ...{ sink: 'sink', archive, case: 'x', from: '2026-01-01T00:00:00Z', to: null, lines: [{ first: 30, last: 40 }] },
  });
  expect(JSON.parse(rows[4]?.detail ?? '')).toEqual({ sink: 'sink', archive, before: '2026-11-01T00:00:00Z', lines, reason: '13 months' });

  expect(rig.journal.replayedFrom('evidence')).toBeUndefined();
  const progress = { through: 300, began: 1, at: 230, sent: 115, rejected: 0 };
  storeReplay(rig.journal, 'sink', { kind: 'archive', archive: 'evidence', times: undefined, ...progress });
  expect(rig.journal.replayedFrom('evidence')).toBe(231);
  expect(rig.journal.replayedFrom('other')).toBeUndefined();
});
