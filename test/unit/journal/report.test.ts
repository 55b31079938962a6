/** Reports from a state that no daemon has open. */
import { expect, test } from 'vitest';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { rangeReplay, storeReplay } from '../../support/model-journal.ts';
import { base, collected, second } from '../../support/records.ts';
import { opened, pageOf, source } from '../../support/journal/opening.ts';
import type { Opened } from '../../support/journal/opening.ts';

function stopped({ beside }: Opened): Snapshot {
  const live = {
    source: () => undefined,
    sink: () => undefined,
    closeDelaySeconds: () => 900,
    paused: undefined,
    maxSize: 1,
    configured: [source],
  };
  return snapshotOf(beside(), '0.1.0', base, live);
}

test('a retired source has the time of its retirement, the last one if there were several', async () => {
  const it = await opened();
  const operation = { actor: 'uid 1000', reason: undefined };
  expect(stopped(it).sources[0]?.retiredAt).toBeUndefined();
  for (const seconds of [60, 60]) {
    await it.clock.advance(seconds * 1_000);
    it.journal.registerSource(source, 'tenant', undefined);
    it.journal.markSourcesUnconfigured(new Set());
    expect(stopped(it).sources[0]?.retiredAt).toBeUndefined();
    it.journal.history.retire(source, operation);
    expect(stopped(it).sources[0]?.retiredAt).toBe(it.clock.now() * 1000);
  }
});

test('a suspended source is shown with the reason, whatever else its profile contains, until the suspension has ended', async () => {
  const it = await opened();
  await it.journal.setProfile(source, '{"calibrated":7}');
  await it.journal.setSuspension(source, { reason: 'rows', message: 'fewer than were proven', since: base, windows: [base] }, base);
  const held = { reason: 'rows', message: 'fewer than were proven', since: base };
  expect(stopped(it).sources).toMatchObject([{ id: source, state: 'suspended', held }]);
  expect(stopped(it).sources[0]?.held).toEqual(held);
  await it.journal.setSuspension(source, undefined, base);
  expect(stopped(it).sources).toMatchObject([{ state: 'active', held: undefined }]);
});

test('the state knows whether a sink has ever accepted a message', async () => {
  const it = await opened();
  it.journal.sinkPositions.register('siem', 'model', 'place', it.journal.positionFor('journal'), undefined);
  await it.journal.append(pageOf([collected(1, base), collected(2, base + second)]));
  const everDelivered = (): unknown => stopped(it).sinks[0]?.hasDelivered;
  expect(everDelivered()).toBe(false);
  // Skipped by a filter: nothing was sent.
  await it.journal.acknowledge('siem', { acknowledged: 1, delivered: undefined }, []);
  expect(everDelivered()).toBe(false);
  await it.journal.acknowledge('siem', { acknowledged: 2, delivered: { position: it.journal.head(), resumeNote: undefined } }, []);
  expect(everDelivered()).toBe(true);
});

test('a replay that the next start continues', async () => {
  const it = await opened();
  it.journal.sinkPositions.register('siem', 'model', 'place', it.journal.positionFor('journal'), undefined);
  const replayOf = (): unknown => stopped(it).sinks[0]?.replays?.[0];
  expect(replayOf()).toBeUndefined();
  const progress = { archive: 'evidence', times: undefined, began: 1, at: 230, sent: 115, rejected: 2 };
  storeReplay(it.journal, 'siem', { ...progress, kind: 'archive', through: 8 });
  expect(replayOf()).toMatchObject({ ...progress, state: 'stopped', leftOut: 0 });
  storeReplay(it.journal, 'siem', rangeReplay(3, 9, { at: 5, passed: 3, sent: 2 }));
  expect(replayOf()).toMatchObject({ state: 'stopped', first: 3, last: 9, at: 5, passed: 3, expected: 7, sent: 2 });
  it.journal.sinkPositions.markUnconfigured(new Set());
  expect(replayOf()).toMatchObject({ state: 'stopped' });
  it.journal.sinkPositions.retire(it.journal.sinkPositions.sink('siem'));
  expect(replayOf()).toBeUndefined();
});
