/** The advice of `status` that no other test covers. */
import { expect, test } from 'vitest';
import { worst } from '../../../src/report/advice.ts';
import { presentOf } from '../../../src/report/completeness.ts';
import { statusSummary } from '../../../src/report/status-summary.ts';
import { statusJson } from '../../../src/report/status-json.ts';
import { coverage, sink, snapshot, source } from '../../support/report/snapshots.ts';

const loss = { loss: '"a.ndjson" was truncated: entries 3 to 9 may be lost', lostEntries: { first: 1, last: 9 } };
const short = { id: 'siem', windows: 4, lacking: 4, lost: 4, ...loss, deadLetters: 0 };

test('the summary and the advice report a loss of delivered records, with the command that sends them again', () => {
  const other = { ...short, lostEntries: { first: 5, last: 12 } };
  const sources = [short, other].map((lacking, i) => source({ id: `s${i}`, coverage: coverage({ sinks: [lacking] }) }));
  const lost = snapshot({ sources });
  const advice = worst(lost);
  expect(advice?.what).toBe(`Sink siem lost delivered records: ${short.loss}.`);
  expect(advice?.operation).toContain('waybill replay --sink siem --from 1 --to 12;');
  expect(statusSummary(lost)).toContain(`siem lacks 8 of 8 windows (lost 8: ${short.loss})`);
  expect(statusJson(lost).delivered).toBe(false);
  expect(worst(snapshot())).toBeUndefined();
});

test.each([
  [{ state: 'active', attempts: 0 }, undefined],
  [{ state: 'stopped' }, undefined],
  [{ state: 'active', attempts: 1 }, 'refused'],
  [{ state: 'retrying', attempts: 2 }, 'refused'],
  [{ state: 'blocked' }, 'refused'],
])('an error is the reason only while the sink fails: %j', (change, lastError) => {
  expect(presentOf(snapshot({ sinks: [sink({ ...change, lastError: 'refused' })] })).sinks).toEqual([{ id: 'siem', lastError }]);
});

test('missing records without a window are named', () => {
  const summaryOf = (change: object): string =>
    statusSummary(snapshot({ sources: [source({ coverage: coverage({ sinks: [{ ...short, lacking: 0, lost: 0, ...change }] }) })] }));
  expect(summaryOf({ undated: 2 })).toContain('NOT ALL DELIVERED: siem lacks 2 records without a readable time, proven');
  expect(summaryOf({ waits: true })).toContain('NOT ALL DELIVERED: siem lacks records that are waiting (delivery is in progress), proven');
});
