/**
 * A sink whose `sources` or `filter` changes owes and reports only entries sent under the new
 * selection.
 */
import { expect, test } from 'vitest';
import type { Journal } from '../../../src/journal/journal.ts';
import type { Selection } from '../../../src/journal/selection.ts';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { base, collected, second } from '../../support/records.ts';
import { lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';

const denied = { result: ['AccessDenied'] };

/**
 * One window of ten seconds from `from` on, with a record that arrives at its end and is
 * acknowledged, or skipped.
 */
async function window(journal: Journal, from: number): Promise<void> {
  await journal.append(pageOf([collected(from + 1, base + (from + 5) * second)], { received: base + (from + 10) * second }));
  await journal.close(source, span(from, from + 10), proven(1, base + (from + 10) * second), lastAge);
  const { seq, chain } = journal.head();
  await journal.acknowledge('siem', { acknowledged: seq, delivered: { position: { seq, chain }, resumeNote: undefined } }, []);
}

async function changed(before: Selection | undefined, after: Selection) {
  const { journal } = await opened();
  journal.sinkPositions.register('siem', 'file', 'siem', journal.positionFor('journal'), undefined);
  if (before) journal.sinkPositions.select('siem', before);
  await window(journal, 0);
  await window(journal, 10);
  const selected = journal.sinkPositions.select('siem', after);
  await window(journal, 20);
  await window(journal, 30);
  const report = ledgerReport(journal.db);
  const [sink] = report.sources[0]?.sinks ?? [];
  const owed = report.sources[0]?.windows.map(({ sinks }) => 'siem' in sinks);
  return { selected, owed, since: sink?.since, claimed: sink && [sink.windows, sink.complete, sink.records], filtered: sink?.filtered };
}

const here = new Date((base + 20 * second) / 1000).toISOString().slice(0, 19);

test.each<[string, Selection, Selection]>([
  ['a filter is lifted', { filter: denied }, {}],
  ['a source is added', { sources: ['another'] }, {}],
  ['a source is added by name', { sources: ['another'] }, { sources: ['another', source] }],
])('when %s, the sink owes and reports later windows', async (_, before, after) => {
  const { selected, owed, since, claimed, filtered } = await changed(before, after);
  expect(selected).toEqual({ isChanged: true, widened: [source] });
  expect(owed).toEqual([false, false, true, true]);
  expect(claimed).toEqual([2, 2, 2]);
  expect(since?.startsWith(here)).toBe(true);
  expect(filtered).toBe(false);
});

test('with another filter the sink owes later windows, without a number of records', async () => {
  const { selected, owed, claimed, filtered } = await changed({ filter: denied }, { filter: { result: ['Failed'] } });
  expect(selected).toEqual({ isChanged: true, widened: [source] });
  expect([owed, claimed, filtered]).toEqual([[false, false, true, true], [2, 2, null], true]);
});

test.each<[string, Selection | undefined, Selection, boolean]>([
  ['nothing changes', { filter: denied, sources: [source] }, { filter: denied, sources: [source] }, false],
  ['the order of sources changes', { sources: [source, 'b'] }, { sources: ['b', source] }, false],
  ['a filter comes to be', {}, { filter: denied }, true],
  ['the list names sources that were selected before', {}, { sources: [source] }, true],
  ['the selection before is not known', undefined, {}, false],
])('when %s, the sink owes the same windows as before', async (_, before, after, isChanged) => {
  const { selected, owed, since } = await changed(before, after);
  expect(selected).toEqual({ isChanged, widened: [] });
  expect(owed).toEqual([true, true, true, true]);
  expect(since).toBeNull();
});

test('while no record has passed a filter, the snapshot has the number of records that it held back', async () => {
  const { journal } = await opened();
  const none = (): undefined => undefined;
  const live = { source: none, sink: none, closeDelaySeconds: () => 1, paused: undefined, maxSize: 0, configured: [source] };
  const shown = (): number | undefined => snapshotOf(journal.db, '0.1.0', base, live).sinks.find(({ id }) => id === 'siem')?.unselected;
  journal.sinkPositions.register('siem', 'file', 'siem', journal.positionFor('journal'), undefined);
  journal.sinkPositions.select('siem', { filter: denied });
  expect(shown()).toBeUndefined();
  for (const id of [101, 102, 103]) await journal.append(pageOf([collected(id, base + second)], { received: base }));
  expect(shown()).toBeUndefined();
  await journal.acknowledge('siem', { acknowledged: journal.head().seq - 1, delivered: undefined }, []);
  expect(shown()).toBe(2);
  await window(journal, 0);
  expect(shown()).toBeUndefined();
  // Another filter has passed nothing yet.
  journal.sinkPositions.select('siem', { filter: { result: ['Failed'] } });
  await journal.append(pageOf([collected(30, base + 30 * second)], { received: base }));
  expect(shown()).toBeUndefined();
  await journal.acknowledge('siem', { acknowledged: journal.head().seq, delivered: undefined }, []);
  expect(shown()).toBe(1);
});

test('the last used selection applies, whatever the configuration says now, and a restart keeps it', async () => {
  const { journal, directory, close } = await opened();
  journal.sinkPositions.register('siem', 'file', 'siem', journal.positionFor('journal'), undefined);
  journal.sinkPositions.select('siem', { filter: denied });
  await window(journal, 0);
  // The configuration has no filter any more, and no daemon has used it.
  expect(ledgerReport(journal.db).sources[0]?.sinks).toMatchObject([{ filtered: true, records: null }]);
  await close();
  const again = await opened({ directory });
  expect(again.journal.sinkPositions.select('siem', {})).toEqual({ isChanged: true, widened: [source] });
  await window(again.journal, 10);
  expect(again.journal.sinkPositions.select('siem', {})).toEqual({ isChanged: false, widened: [] });
  expect(ledgerReport(again.journal.db).sources[0]?.sinks).toMatchObject([{ filtered: false, windows: 1, complete: 1, records: 1 }]);
});
