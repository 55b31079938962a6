/** What the state says of itself when nobody runs who could add anything. */
import { expect, test } from 'vitest';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { base, collected, second } from '../../support/records.ts';
import { opened, pageOf, source } from './opening.ts';
import type { Opened } from './opening.ts';

function stopped({ beside }: Opened): Snapshot {
  const live = {
    source: () => undefined,
    sink: () => undefined,
    settleSeconds: () => 900,
    paused: undefined,
    quota: 1,
    configured: [source],
  };
  return snapshotOf(beside(), '0.1.0', base, live);
}

test('a source that was retired carries the time of its retirement, the last one where there were several', async () => {
  const it = await opened();
  const act = { who: 'uid 1000', why: undefined };
  expect(stopped(it).sources[0]?.retiredAt).toBeUndefined();
  for (const seconds of [60, 60]) {
    await it.clock.advance(seconds * 1_000);
    it.journal.registerSource(source, 'tenant', undefined);
    it.journal.orphanSources(new Set());
    expect(stopped(it).sources[0]?.retiredAt).toBeUndefined();
    it.journal.history.retire(source, act);
    expect(stopped(it).sources[0]?.retiredAt).toBe(it.clock.now() * 1000);
  }
});

test('a source on hold is shown with the reason, whatever else its profile says, until the hold has ended', async () => {
  const it = await opened();
  await it.journal.setProfile(source, '{"calibrated":7}');
  await it.journal.setHold(source, { reason: 'rows', words: 'fewer than were proven', since: base, windows: [base] }, base);
  const held = { reason: 'rows', words: 'fewer than were proven' };
  expect(stopped(it).sources).toMatchObject([{ id: source, mode: 'hold', held }]);
  expect(stopped(it).sources[0]?.held).toEqual(held);
  await it.journal.setHold(source, undefined, base);
  expect(stopped(it).sources).toMatchObject([{ mode: 'normal', held: undefined }]);
});

test('the state knows whether a sink has ever accepted a message', async () => {
  const it = await opened();
  it.journal.progress.register('siem', 'model', 'place', it.journal.positionFor('journal'), undefined);
  await it.journal.append(pageOf([collected(1, base), collected(2, base + second)]));
  const everDelivered = (): unknown => stopped(it).sinks[0]?.everDelivered;
  expect(everDelivered()).toBe(false);
  // Passed over by a filter: nothing was sent.
  await it.journal.acknowledge('siem', { acked: 1, taken: undefined }, []);
  expect(everDelivered()).toBe(false);
  await it.journal.acknowledge('siem', { acked: 2, taken: { position: it.journal.head(), note: undefined } }, []);
  expect(everDelivered()).toBe(true);
});
