/** The periodic work on the journal, by its log. */
import { expect, test } from 'vitest';
import { maintainJournal } from '../../../src/daemon/maintenance.ts';
import { lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';
import { base, collected, second } from '../../support/records.ts';
import { noting } from '../../support/telemetry/written-events.ts';

test('old entries are pruned after a minute, and each hour the log tells until when a source is complete', async () => {
  const { journal, clock } = await opened({ retention: 0 });
  await journal.append(pageOf([collected(1, base + 5 * second), collected(2, base + 6 * second)]));
  await journal.close(source, span(0, 10), proven(2, base + 20 * second), lastAge);
  const { seq } = journal.head();
  const lines: unknown[] = [];
  const stop = new AbortController();
  const minutes = (): number => Math.floor(clock.monotonic() / 60_000);
  const log = noting({
    write: (event, ...[fields]) => {
      if (event !== 'state.checked') lines.push([minutes(), event, fields]);
    },
  });
  const ended = maintainJournal(journal, () => [source, 'not-in-the-state'], clock, log, stop.signal);
  await clock.sleep(130 * 60_000, stop.signal);
  stop.abort(new Error('the test is over'));
  await expect(ended).rejects.toThrow('the test is over');
  const complete = { source, completeUntil: new Date((base + 10 * second) / 1000).toISOString() };
  expect(lines).toEqual([
    [1, 'journal.pruned', { entries: seq }],
    [60, 'source.complete_until', complete],
    [120, 'source.complete_until', complete],
  ]);
});
