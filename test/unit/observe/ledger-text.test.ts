import { describe, expect, test } from 'vitest';
import { ledgerText } from '../../../src/commands/ledger-text.ts';
import type { LedgerReport, LedgerReportWindow } from '../../../src/model.ts';
import { byDay } from '../../../src/observe/ledger-days.ts';

function window(from: string, until: string, change: Partial<LedgerReportWindow> = {}): LedgerReportWindow {
  return {
    ...{ from, until, state: 'final', reason: null, total: 420, own: 412, late: 0, passes: 1, recounts: 7, nextRecount: null },
    closed: '2026-11-20T03:00:02Z',
    sinks: { siem: { complete: true, deadLetters: 0 }, lake: { complete: true, deadLetters: 0 } },
    ...change,
  };
}

const report: LedgerReport = {
  complete: false,
  sources: [
    {
      id: 'production',
      frontier: '2026-11-19T22:30:00Z',
      reached: '2026-11-20T00:15:00Z',
      collected: 5_000,
      late: 3,
      windows: [
        window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', {
          sinks: { siem: { complete: true, deadLetters: 2 }, lake: { complete: true, deadLetters: 0 } },
        }),
        window('2026-11-19T22:30:00Z', '2026-11-19T23:30:00Z', {
          state: 'gap',
          reason: 'total',
          total: null,
          own: 1_000,
          passes: 6,
          recounts: 1,
          nextRecount: '2026-11-20T05:30:00Z',
        }),
        window('2026-11-19T23:30:00Z', '2026-11-20T00:00:00Z', { state: 'accepted', reason: 'count', own: 17 }),
        window('2026-11-20T00:00:00Z', '2026-11-20T00:00:01Z', {
          ...{ state: 'proven', total: 3, own: 2, late: 3, recounts: 2, nextRecount: '2026-11-20T06:00:01.5Z' },
          sinks: { siem: { complete: false, deadLetters: 1 } },
        }),
      ],
    },
  ],
};

test('by window: a paragraph, an aligned table, sums over what the windows own', () => {
  expect(ledgerText(report, { by: 'window', tz: 'UTC' }).split('\n')).toEqual([
    'NOT COMPLETE. 2 of 4 windows are proven, 1 of them final. 1,431 records collected, each once; 3 of them late. 1 gap, 1 gap accepted by a person.',
    '',
    'Source production: frontier 2026-11-19 22:30 UTC, read up to 2026-11-20 00:15 UTC (what lies between waits for a gap)',
    'FROM (UTC)        UNTIL             STATE     REASON  TOTAL    OWN  LATE  PASSES  RECOUNTS  NEXT RECOUNT         siem             lake',
    '2026-11-19 22:15  22:30             final     -         420    412     0       1         7  -                    all but 2        complete',
    '2026-11-19 22:30  23:30             gap       total       -  1,000     0       6         1  2026-11-20 05:30     complete         complete',
    '2026-11-19 23:30  2026-11-20 00:00  accepted  count     420     17     0       1         7  -                    complete         complete',
    '2026-11-20 00:00  00:00:01          proven    -           3      2     3       1         2  2026-11-20 06:00:01  not yet, 1 dead  -',
    'Sum: 4 windows, 1,431 records, 3 late; siem has 3 of 4 windows but for 3 dead letters; lake has 3 of 4 windows',
  ]);
});

test('by day in another zone: a window belongs to the day in which it begins there', () => {
  // Berlin is one hour ahead in November: 22:15Z is still the 19th, 23:30Z is the 20th.
  expect(ledgerText(report, { by: 'day', tz: 'Europe/Berlin' }).split('\n').slice(3, 6)).toEqual([
    'DAY (Europe/Berlin)  FROM   UNTIL             STATE       REASON  WINDOWS    OWN  LATE  PASSES  RECOUNTS  NEXT RECOUNT         siem             lake',
    '2026-11-19           23:15  2026-11-20 00:30  1 gap       total         2  1,412     0       7         8  2026-11-20 06:30     all but 2        complete',
    '2026-11-20           00:30  01:00:01          1 accepted  count         2     19     3       2         9  2026-11-20 07:00:01  not yet, 1 dead  not yet',
  ]);
});

describe('days', () => {
  test('add up to the windows, whatever the zone', () => {
    for (const tz of ['UTC', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe']) {
      const [source] = byDay(report, tz);
      const total = (what: 'windows' | 'own' | 'late' | 'passes' | 'recounts'): number =>
        (source?.days ?? []).reduce((sum, day) => sum + day[what], 0);
      expect([total('windows'), total('own'), total('late'), total('passes'), total('recounts')]).toEqual([4, 1_431, 3, 9, 17]);
    }
  });

  test('the day on which clocks go back has 25 hours and one row', () => {
    const hours = Array.from({ length: 26 }, (_, i) =>
      window(new Date(Date.UTC(2026, 9, 24, 22 + i)).toISOString(), new Date(Date.UTC(2026, 9, 24, 23 + i)).toISOString(), { own: 1 }),
    );
    const [source] = byDay(
      { complete: true, sources: [{ id: 'a', frontier: null, reached: null, collected: 0, late: 0, windows: hours }] },
      'Europe/Berlin',
    );
    expect(source?.days.map(({ date, own }) => [date, own])).toEqual([
      ['2026-10-25', 25],
      ['2026-10-26', 1],
    ]);
  });

  test('the earliest recount wins, compared as instants and not as text', () => {
    const windows = ['2026-11-20T06:00:00.5Z', '2026-11-20T06:00:00Z', '2026-11-20T07:00:00Z'].map((nextRecount) =>
      window('2026-11-20T00:00:00Z', '2026-11-20T00:15:00Z', { nextRecount, state: 'proven' }),
    );
    const [source] = byDay({ complete: true, sources: [{ id: 'a', frontier: null, reached: null, collected: 0, late: 0, windows }] });
    expect(source?.days[0]).toMatchObject({ nextRecount: '2026-11-20T06:00:00Z', state: 'proven', windows: 3 });
  });
});

test('a complete report says so, without colour unless asked', () => {
  const [source] = report.sources;
  if (!source) throw new Error('the report has a source');
  const complete: LedgerReport = {
    complete: true,
    sources: [{ ...source, reached: source.frontier, windows: source.windows.slice(0, 1) }],
  };
  const text = ledgerText(complete, { by: 'window', tz: 'UTC' });
  expect(text.split('\n')[0]).toBe(
    'COMPLETE. 1 of 1 window is proven, 1 of them final. 412 records collected, each once; 0 of them late. No gap.',
  );
  expect(text).toContain('Source production: frontier 2026-11-19 22:30 UTC\n');
  expect(text).not.toContain('\u001b');
  expect(ledgerText(complete, { by: 'window', tz: 'UTC', color: true })).toMatch(/^\u001b\[32;1mCOMPLETE\u001b\[0m\./);
});

test('a proven window that changed since is pointed out', () => {
  const windows = [window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { reason: 'vanished' })];
  const text = ledgerText(
    { complete: false, sources: [{ id: 'a', frontier: null, reached: null, collected: 1, late: 0, windows }] },
    { by: 'window', tz: 'UTC' },
  );
  expect(text).toContain('1 proven window changed since (reread, vanished): see the reasons.');
  expect(text).toContain('Source a: frontier not begun');
});
