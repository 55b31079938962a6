/**
 * The ledger and a sink that lost delivered records: the windows of their time are not delivered,
 * all others are.
 */
import { expect, test } from 'vitest';
import type { Journal } from '../../../src/journal/journal.ts';
import type { Selection } from '../../../src/journal/selection.ts';
import { snapshotOf, withCoverage } from '../../../src/journal/queries/snapshot.ts';
import type { RangeReplay } from '../../../src/model/journal.ts';
import { presentOf } from '../../../src/report/completeness.ts';
import { statusSummary } from '../../../src/report/status-summary.ts';
import { statusJson } from '../../../src/report/status-json.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { rangeReplay, storeReplay } from '../../support/model-journal.ts';
import { base, collected, second } from '../../support/records.ts';
import { lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';

/** Three windows of ten seconds with a record each, all delivered to both sinks. */
async function delivered() {
  const { journal } = await opened();
  for (const id of ['siem', 'lake']) journal.sinkPositions.register(id, 'file', id, journal.positionFor('journal'), undefined);
  const first: number[] = [];
  for (const from of [0, 10, 20]) {
    await journal.append(pageOf([collected(from + 1, base + (from + 5) * second)]));
    first.push(journal.head().seq);
    await journal.close(source, span(from, from + 10), proven(1), lastAge);
  }
  const { seq, chain } = journal.head();
  for (const id of ['siem', 'lake'])
    await journal.acknowledge(id, { acknowledged: seq, delivered: { position: { seq, chain }, resumeNote: undefined } }, []);
  const complete = (sink: string): boolean[] =>
    (ledgerReport(journal.db).sources[0]?.windows ?? []).map(({ sinks }) => sinks[sink]?.complete === true);
  return { journal, first, complete };
}

// promise: The windows of records that a sink lost count as not delivered to that sink.
test('the windows of lost records count as not delivered to that sink alone, and the note is committed with it', async () => {
  const { journal, first, complete } = await delivered();
  expect([complete('siem'), complete('lake')]).toEqual([
    [true, true, true],
    [true, true, true],
  ]);
  const [, second_ = 0] = first;
  await journal.lost('siem', { first: second_, last: second_, message: 'was truncated' }, 'a new note');
  expect([complete('siem'), complete('lake')]).toEqual([
    [true, false, true],
    [true, true, true],
  ]);
  expect(journal.sinkProgress('siem').resumeNote).toBe('a new note');
});

test('lost entries that were pruned may be from any time up to the newest remaining one', async () => {
  const { journal, first, complete } = await delivered();
  journal.db.prepare('UPDATE head SET pruned_seq = ?').run(first[0]);
  await journal.lost('siem', { first: 1, last: first[1] ?? 0, message: 'was deleted' }, 'a new note');
  expect(complete('siem')).toEqual([false, false, true]);
});

test('status and the report agree about a sink that lost records', async () => {
  const { journal, first } = await delivered();
  const [, second_ = 0] = first;
  const now = base + 30 * second;
  const live = {
    source: () => undefined,
    sink: () => undefined,
    closeDelaySeconds: () => 10,
    paused: undefined,
    maxSize: 1,
    configured: [source],
  };
  const both = (): unknown => {
    const snapshot = withCoverage(journal.db, snapshotOf(journal.db, '0.1.0', now, live), {});
    const report = ledgerReport(journal.db, { now }, presentOf(snapshot));
    const { complete, delivered: isDelivered } = statusJson(snapshot);
    expect({ complete, delivered: isDelivered }).toEqual({ complete: report.complete, delivered: report.delivered });
    // The headline is shorter: without the reason of a loss.
    const head = (summary: string): string => summary.split(/:|, complete until/)[0] ?? '';
    expect(head(statusSummary(snapshot))).toBe(head(report.summary));
    return [report.summary, report.sources[0]?.sinks.map(({ id, windows, complete: all, lost }) => [id, windows, all, lost])];
  };
  expect(both()).toEqual([
    'COMPLETE AND DELIVERED',
    [
      ['lake', 3, 3, 0],
      ['siem', 3, 3, 0],
    ],
  ]);
  await journal.lost('siem', { first: second_, last: second_, message: 'file was truncated' }, 'a new note');
  expect(both()).toEqual([
    'COMPLETE, NOT ALL DELIVERED: siem lacks 1 of 3 windows (lost 1: file was truncated)',
    [
      ['lake', 3, 3, 0],
      ['siem', 3, 2, 1],
    ],
  ]);
});

const later = base + 3_600 * second;
async function replayed(journal: Journal, { first = 1, last = journal.head().seq, ...more }: Partial<RangeReplay> = {}): Promise<void> {
  const replay = rangeReplay(first, last, { began: later / 1000, ...more });
  storeReplay(journal, 'siem', replay);
  await journal.replayed('siem', replay);
}

test.each<[string, Partial<RangeReplay>, [boolean, boolean, boolean]]>([
  ['all of it', {}, [true, true, true]],
  ['its first two entries', { last: 2 }, [true, false, false]],
  ['its end', { first: 2 }, [false, true, true]],
  ['the two entries in its middle', { first: 3, last: 4 }, [false, true, false]],
  ['the time of its first window', { times: { from: base, to: base + 10 * second } }, [true, false, false]],
  ['the time of its last window', { times: { from: base + 20 * second, to: later } }, [false, false, true]],
  ['the time of its middle window', { times: { from: base + 10 * second, to: base + 20 * second } }, [false, false, false]],
  ['all of it, before it was lost', { began: base / 1000 - 1 }, [false, false, false]],
])('a replay of %s ends the loss of the entries it sent', async (_, sent, expected) => {
  const { journal, complete } = await delivered();
  const { seq } = journal.head();
  for (const id of ['siem', 'lake']) await journal.lost(id, { first: 1, last: seq, message: 'was truncated' }, 'a new note');
  expect(complete('siem')).toEqual([false, false, false]);
  await replayed(journal, sent);
  expect(complete('siem')).toEqual(expected);
  expect(complete('lake')).toEqual([false, false, false]);
});

test.each([
  ['from its beginning', [1, 3, 5]],
  ['from its end', [5, 3, 1]],
])('replays of two entries each, %s, clear a loss', async (_, begins) => {
  const { journal, complete } = await delivered();
  await journal.lost('siem', { first: 1, last: journal.head().seq, message: 'was truncated' }, 'a new note');
  for (const first of begins) await replayed(journal, { first, last: first + 1 });
  expect(complete('siem')).toEqual([true, true, true]);
  expect(journal.db.prepare('SELECT count(*) AS n FROM sink_losses').get()).toEqual({ n: 0 });
});

const denied = { result: ['AccessDenied'] };

test.each<[string, Selection, Selection, number]>([
  ['a filter that came later', {}, { filter: denied }, 1],
  ['sources that no longer include it', {}, { sources: ['another'] }, 1],
  ['sources that were fewer before', { sources: ['another'] }, {}, 0],
  ['the filter that it always had', { filter: denied }, { filter: denied }, 0],
])('after a replay with %s, %j and %j, the ledger has %i losses', async (_, before, after, losses) => {
  const { journal } = await delivered();
  journal.sinkPositions.select('siem', before);
  await journal.lost('siem', { first: 1, last: journal.head().seq, message: 'was truncated' }, 'a new note');
  journal.sinkPositions.select('siem', after);
  await replayed(journal);
  expect(journal.db.prepare('SELECT count(*) AS n FROM sink_losses').get()).toEqual({ n: losses });
});

test('a replay that continues with another selection clears the loss of what it sends afterwards', async () => {
  const { journal } = await delivered();
  const last = journal.head().seq;
  journal.sinkPositions.select('siem', { filter: denied });
  await journal.lost('siem', { first: 1, last, message: 'was truncated' }, 'a new note');
  storeReplay(journal, 'siem', rangeReplay(1, last, { began: later / 1000, at: 2 }));
  journal.sinkPositions.select('siem', {});
  const replay = journal.sinkProgress('siem').replays.range;
  if (!replay) throw new Error('the replay is gone');
  await journal.replayed('siem', { ...replay, at: last });
  expect(journal.db.prepare('SELECT first, last FROM sink_losses').all()).toEqual([{ first: 1, last: 2 }]);
  expect(journal.sinkProgress('siem').replays.range).toBeUndefined();
});
