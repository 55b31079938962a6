/**
 * The journal across a connection: data that a loop has without a request, their order relative to
 * results, and errors that end the loop.
 */
import { expect, test } from 'vitest';
import { Channel } from '../../../../src/daemon/channel.ts';
import { factsOf, journalService, remoteJournal } from '../../../../src/daemon/delivery/journal-access.ts';
import type { FactsReceiver, JournalService } from '../../../../src/daemon/delivery/journal-access.ts';
import { WaybillError } from '../../../../src/errors.ts';
import type { Journal } from '../../../../src/journal/journal.ts';
import { quiet } from '../../../support/delivery-clock.ts';
import { memoryPorts } from '../../../support/memory-ports.ts';
import { append, committed, deadLetters, numberOf, range } from '../../../support/model-journal.ts';
import { Rig } from '../../../support/deliver/rig.ts';

function across(journal: Journal): ReturnType<typeof remoteJournal> {
  const unexpected = (thrown: unknown): never => {
    throw thrown;
  };
  const [main, thread] = memoryPorts().map((port) => new Channel(port, unexpected)) as [Channel, Channel];
  main.serve('journal', journalService(journal, 'sink', main.notified<FactsReceiver>('loop')));
  const remote = remoteJournal(
    factsOf(journal, 'sink'),
    thread.remote<JournalService>('journal'),
    thread.notified<JournalService>('journal'),
  );
  thread.serve('loop', { facts: (...facts: Parameters<FactsReceiver['facts']>) => remote.facts(...facts) });
  const loop = main.notified<FactsReceiver>('loop');
  const follow = async (): Promise<void> => {
    for (;;) {
      await journal.changed();
      loop.facts(factsOf(journal, 'sink'), true);
    }
  };
  void follow();
  return remote;
}

test('delivers every record once, with the dead letter that the sink rejects, and a retry and a replay of it', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ records: 4, journal: across });
  loop.receiver.answer = (batch) => loop.receiver.take(batch, { 5: 'bad' });
  loop.run();
  await append(rig.journal, 7);
  await append(rig.journal, 1_300);
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 1_307);
  expect(loop.receiver.has.map(numberOf)).toEqual(range(1, 1_307).filter((n) => n !== 5));
  expect(deadLetters(rig.journal)).toMatchObject([{ seq: 5, message: 'bad' }]);
  loop.receiver.answer = (batch) => loop.receiver.take(batch);
  const done = loop.delivery.onDemand.retry([5], { at: 1, actor: 'j.doe', operation: 'dead-letters retry', detail: {} });
  await rig.clock.advance(10);
  expect(await done).toMatchObject({ rejected: [] });
  expect(deadLetters(rig.journal)).toEqual([]);
  loop.delivery.onDemand.replay({ first: 2, last: 9, times: undefined }, 8, new Set([3]));
  await rig.clock.until(() => loop.delivery.view().replay?.state === 'done');
  expect(loop.receiver.has.slice(1_307).map(numberOf)).toEqual([2, 4, 5, 6, 7, 8, 9]);
});

test("after a result, the loop knows what its call has committed; after an operation, the operator's request", async () => {
  await using rig = await Rig.make();
  await append(rig.journal, 6);
  rig.loop();
  const remote = across(rig.journal);
  const delivered = { position: { seq: 4, chain: new Uint8Array(32) }, resumeNote: 'note' };
  await remote.acknowledge('sink', { acknowledged: 4, delivered }, []);
  expect(remote.sinkProgress('sink')).toMatchObject({ acknowledged: 4, resumeNote: 'note', delivered: { seq: 4 } });
  remote.acknowledgeLater('sink', { acknowledged: 5, delivered: undefined });
  await remote.flush();
  expect(remote.sinkProgress('sink').acknowledged).toBe(5);
  const changed = remote.changed();
  const state = rig.journal.sinkPositions.sink('sink');
  await rig.journal.operate({ at: 1, actor: 'j.doe', operation: 'sinks reconcile', detail: {} }, () =>
    rig.journal.sinkPositions.writeOrders(state, { reconcile: { from: 1, to: 2 } }),
  );
  await changed;
  expect(remote.sinkProgress('sink').orders).toEqual({ reconcile: { from: 1, to: 2 } });
});

test('reads the same entries as the journal, with any limit', async () => {
  await using rig = await Rig.make();
  rig.loop();
  for (const size of [1, 40, 3, 1_200]) await append(rig.journal, size, (n) => ({ payloadName: 'ü'.repeat(n % 90) }));
  const remote = across(rig.journal);
  for (const limit of [
    { records: 7, bytes: 1e6 },
    { records: 1_000, bytes: 2_000 },
    { records: 1e4, bytes: 1e9 },
  ]) {
    for (let after = 0; ;) {
      const [own, other] = [await rig.journal.read(after, limit), await remote.read(after, limit)];
      const shown = (entries: typeof own) =>
        entries.map(({ seq, number, kind, uid, text, source, received, time, late, chain }) => [
          ...[seq, number, kind, uid, text, source, received, time, late],
          Buffer.from(chain).toString('hex'),
        ]);
      expect(shown(other)).toEqual(shown(own));
      after = own.at(-1)?.seq ?? Infinity;
      if (own.length === 0) break;
    }
  }
});

test('a fatal error of the journal ends the loop; a full disk delays it', async () => {
  await using rig = await Rig.make();
  const loop = rig.loop({ journal: across });
  const acknowledge = rig.journal.acknowledge.bind(rig.journal);
  let error: WaybillError | undefined = new WaybillError('journal_full', 'the disk is full');
  rig.journal.acknowledge = async (...args) => {
    if (error) throw error;
    return acknowledge(...args);
  };
  await append(rig.journal, 4);
  loop.run();
  await rig.clock.advance(5_000);
  expect(loop.receiver.attempts).toHaveLength(1);
  error = undefined;
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 4);
  expect(loop.receiver.attempts).toHaveLength(1);
  error = new WaybillError('state_corrupt', 'a page is damaged');
  await append(rig.journal, 4);
  await rig.clock.until(() => loop.hasEnded);
  await quiet();
  expect(loop.failed).toMatchObject({ code: 'state_corrupt' });
});
