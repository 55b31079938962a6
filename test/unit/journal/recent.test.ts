/** The newest windows and the progress on the status page, as the state has them. */
import { expect, test } from 'vitest';
import { progressOf, recentWindows } from '../../../src/journal/queries/recent.ts';
import { base, collected, day, second } from '../../support/records.ts';
import { gap, lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';

test('the newest windows come oldest first, in the states of the report', async () => {
  const { journal } = await opened();
  await journal.append(pageOf([collected(1, base + second)]));
  await journal.close(source, span(0, 10), proven(1, base + day, base + 2 * day), lastAge);
  await journal.close(source, span(10, 20), gap(), lastAge);
  await journal.close(source, span(20, 30), proven(0), lastAge);
  const windows = recentWindows(journal.db, 2).get(source) ?? [];
  expect(windows.map(({ from, to, state, isInDoubt }) => [(from - base) / second, (to - base) / second, state, isInDoubt])).toEqual([
    [10, 20, 'gap', false],
    [20, 30, 'final', false],
  ]);
  expect(
    recentWindows(journal.db, 9)
      .get(source)
      ?.map(({ state }) => state),
  ).toEqual(['proven', 'gap', 'final']);
});

test('the progress has the frontier and the count of a source, and the age of the oldest entry that a sink has not acknowledged', async () => {
  const { journal } = await opened();
  journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
  const idle = progressOf(journal.db, base);
  expect([idle.sources.get(source), idle.sinks.get('siem')]).toEqual([
    { frontier: base, collected: 0 },
    { acknowledged: 0, lagSeconds: 0 },
  ]);
  await journal.append(pageOf([collected(1, base + second), collected(2, base + 2 * second)], { received: base + 3 * second }));
  await journal.close(source, span(0, 10), proven(2), lastAge);
  const { sources, sinks } = progressOf(journal.db, base + 33 * second);
  expect(sources.get(source)).toEqual({ frontier: base + 10 * second, collected: 2 });
  expect(sinks.get('siem')).toEqual({ acknowledged: 0, lagSeconds: 30 });
});
