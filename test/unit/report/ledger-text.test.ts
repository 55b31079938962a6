import { describe, expect, test } from 'vitest';
import { ledgerText as textPieces } from '../../../src/report/ledger/text.ts';
import { ledgerCsv as csvPieces } from '../../../src/report/ledger/csv.ts';
import { ledgerHtml as htmlPieces } from '../../../src/report/ledger/html.ts';
import type { LedgerReport } from '../../../src/model/ledger-report.ts';
import { byPeriod } from '../../../src/report/ledger/periods.ts';
import { paddingSentence } from '../../../src/report/ledger/sentences.ts';
import { mixed as report, reportOf, reportSource, window, withLoss } from '../../support/report/reports.ts';

const ledgerCsv = (...given: Parameters<typeof csvPieces>): string => [...csvPieces(...given)].join('');
const ledgerHtml = (...given: Parameters<typeof htmlPieces>): string => [...htmlPieces(...given)].join('');
const ledgerText = (...given: Parameters<typeof textPieces>): string => [...textPieces(...given)].join('');

const windows = report.sources[0]?.windows ?? [];

test('by window: a paragraph, an aligned table, sums over the records of the windows', () => {
  expect(ledgerText(report, { by: 'window', tz: 'UTC' }).split('\n')).toEqual([
    'INCOMPLETE: 1 gap, 1 accepted gap',
    '2 of 4 windows are proven, 1 of them final. 1,431 records collected, each once; 3 of them late. 1 gap, 1 gap accepted by an operator.',
    '',
    'Source production: complete until 2026-11-19 22:30 UTC, read until 2026-11-20 00:15 UTC (the windows between wait for a gap)',
    'FROM (UTC)        TO                STATE             COUNTED = RECEIVED  RECORDS IN WINDOW            LATE  siem                    lake  PASSES  RECOUNTS  NEXT RECOUNT',
    '2026-11-19 22:15  22:30             final                      420 = 420                412               0  all but 2               all        1    7 of 7  -',
    '2026-11-19 22:30  23:30             gap (total)                - ≠ 1,009              1,000               0  all                     all        6         1  2026-11-20 05:30',
    '2026-11-19 23:30  2026-11-20 00:00  accepted (count)           420 = 420                 17               0  all                     all        1    7 of 7  -',
    '2026-11-20 00:00  00:00:01          proven                         3 = 3                  2  3 (6 h 12 min)  not yet, 1 dead letter  -          1    2 of 7  2026-11-20 06:00:01',
    'Sum: 4 windows, 1,431 records, 3 late; siem has 3 of 4 windows, without 3 dead letters; lake has each of 3 windows that it owes',
    'Late: 2 within 1h, 1 within 1d; the longest by 6 h 12 min',
    'Collected since the ledger started: 5,000 records = 1,431 in windows + 3,569 outside (window not closed yet, found after the last count, or without a readable time)',
    '',
    paddingSentence,
  ]);
});

describe('on a terminal', () => {
  const at = (width: number, change: Partial<Parameters<typeof ledgerText>[1]> = {}): string[] =>
    ledgerText(report, { by: 'window', tz: 'UTC', width, ...change }).split('\n');

  test('from 120 columns on, the recounts go first; then the longest delays, and the sinks share a column', () => {
    expect(at(180)[4]).toMatch(/ {2}siem +lake {2}PASSES {2}RECOUNTS {2}NEXT RECOUNT$/);
    const tableAt = (width: number): string[] => {
      const lines = at(width);
      return lines.slice(
        lines.findIndex((line) => line.startsWith('FROM')) - 1,
        lines.findIndex((line) => line.startsWith('Sum')),
      );
    };
    expect(tableAt(130).map((line) => line.slice(54)).slice(0, 2)).toEqual([
      'COUNTED =    RECORDS',
      ' RECEIVED  IN WINDOW            LATE  siem                    lake',
    ]); // prettier-ignore
    expect(tableAt(105)).toEqual([
      '                                              COUNTED =    RECORDS',
      'FROM (UTC)        TO        STATE              RECEIVED  IN WINDOW  LATE  siem                    lake',
      '2026-11-19 22:15  22:30     final             420 = 420        412     0  all but 2               all',
      '2026-11-19 22:30  23:30     gap (total)       - ≠ 1,009      1,000     0  all                     all',
      '2026-11-19 23:30  00:00     accepted (count)  420 = 420         17     0  all                     all',
      '2026-11-20 00:00  00:00:01  proven                3 = 3          2     3  not yet, 1 dead letter  -',
    ]);
    expect(tableAt(80).slice(-2)).toEqual([
      '2026-11-20 00:00  00:00:01  proven                3 = 3          2     3',
      '  siem: not yet, 1 dead letter',
    ]); // prettier-ignore
  });

  test('no line is wider than the terminal, and no number is lost', () => {
    const operations = ['22:30', '22:45'].map((clock) => ({
      ...{ at: '2026-11-19T23:00:00Z', actor: 'j.doe', operation: 'gaps retry' },
      detail: { source: 'production', from: `2026-11-19T${clock}:00Z`, to: '2026-11-19T23:00:00Z', gapReason: 'reread', reason: '' },
    }));
    for (const by of ['window', 'day', 'month'] as const)
      for (const width of [80, 90, 119]) {
        const lines = ledgerText({ ...report, operations }, { by, tz: 'UTC', width }).split('\n');
        expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
        const text = lines.join(' ').replace(/ +/g, ' ');
        expect(text).toContain(by === 'month' ? 'not ' : 'not yet, 1 dead letter');
        // Both retries share a row.
        expect(lines.filter((line) => line.includes('gaps retry'))).toHaveLength(1);
        expect(text).toContain('between 2026-11-19T22:30:00Z and 2026-11-19T23:00:00Z');
      }
  });

  test('the newest windows are listed, and the summary and the sums count all', () => {
    const lines = at(Infinity, { newest: 1 });
    expect(lines[1]).toMatch(/^2 of 4 windows are proven/);
    expect(lines.slice(5, 8)).toEqual([
      expect.stringMatching(/^2026-11-20 00:00 /),
      '(the last 1 of 4 windows; the sums count all)',
      expect.stringMatching(/^Sum: 4 windows, 1,431 records/),
    ]);
    expect(at(Infinity, { newest: 4 }).join('\n')).not.toContain('(the last');
  });
});

test('numbers of the whole ledger are not printed beside a period', () => {
  const period = { ...report, from: '2026-11-19T22:15:00Z' };
  expect(ledgerText(period, { by: 'window', tz: 'UTC' })).not.toContain('Collected since');
  const page = (of: LedgerReport): string => ledgerHtml(of, { by: 'window', tz: 'UTC', version: '0.1.0' });
  expect(page(report)).toMatch(/Collected since[^]*outside the counts of windows/);
  expect(page(period)).not.toMatch(/Collected since|outside the counts of windows/);
});

test('a final window without a recount was too old for one', () => {
  const old = [window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { recounts: 0, recountsDue: 0 })];
  expect(ledgerText(reportOf([reportSource(old)]), { by: 'window', tz: 'UTC' }).split('\n')[5]).toMatch(/ final .* none due {2}-$/);
});

test('a lost window is lost, not in transit; so is its day', () => {
  const cells = (by: 'window' | 'day'): string[] =>
    ledgerText(withLoss, { by, tz: 'UTC' })
      .split('\n')
      .filter((line) => line.startsWith('2026-'))
      .map((line) => line.split(/ {2,}/).at(-4) ?? '');
  expect([cells('window'), cells('day')]).toEqual([
    ['all', 'lost, 1 dead letter', 'not yet'],
    ['lost, 1 dead letter', 'not yet'],
  ]);
  expect(ledgerText(withLoss, { by: 'window', tz: 'UTC' })).toContain('; siem has 1 of 3 windows (1 lost), without 1 dead letter\n');
});

test('windows that overlap an end of the period count whole, and the report states the time they cover', () => {
  const cut = { ...report, from: '2026-11-19T22:20:00Z', to: '2026-11-20T00:00:00Z' };
  const sentence = 'Windows that overlap the ends of the period count whole: the numbers are for 2026-11-19 22:15–2026-11-20 00:00:01 UTC.';
  expect(ledgerText(cut, { by: 'window', tz: 'UTC' }).split('\n')[1]).toContain(sentence);
  expect(ledgerHtml(cut, { by: 'window', tz: 'UTC', version: '0.1.0' })).toContain(sentence);
  const whole = { ...report, from: '2026-11-19T22:15:00Z', to: '2026-11-20T00:00:01Z' };
  expect(ledgerText(whole, { by: 'window', tz: 'UTC' })).not.toContain('overlap');
});

test('by day in a zone where windows cross midnight: the report states how many', () => {
  const days = [window('2026-10-23T00:00:00Z', '2026-10-24T00:00:00Z'), window('2026-10-24T00:00:00Z', '2026-10-25T00:00:00Z')];
  const history = reportOf([reportSource(days)]);
  const sentence = '2 windows cross midnight at the end of a day in America/New_York: each counts for the day in which it starts.';
  for (const render of [ledgerText, (...given: Parameters<typeof ledgerText>) => ledgerHtml(given[0], { ...given[1], version: '0.1.0' })]) {
    expect(render(history, { by: 'day', tz: 'America/New_York' })).toContain(sentence);
    expect(render(history, { by: 'day', tz: 'UTC' })).not.toContain('midnight');
  }
  expect(byPeriod(days, 'day', 'America/New_York').map(({ name, crossing }) => [name, crossing])).toEqual([
    ['2026-10-22', 1],
    ['2026-10-23', 1],
  ]);
});

test('by day in another zone: a window belongs to the day in which it starts there', () => {
  // Berlin is one hour ahead in November: 22:15Z is still the 19th, 23:30Z is the 20th.
  expect(ledgerText(report, { by: 'day', tz: 'Europe/Berlin' }).split('\n').slice(4, 7)).toEqual([
    'DAY (Europe/Berlin)  FROM   TO                STATE               WINDOWS  RECORDS            LATE  siem                    lake     PASSES  RECOUNTS  NEXT RECOUNT',
    '2026-11-19           23:15  2026-11-20 00:30  1 gap (total)             2    1,412               0  all but 2               all           7         8  2026-11-20 06:30',
    '2026-11-20           00:30  01:00:01          1 accepted (count)        2       19  3 (6 h 12 min)  not yet, 1 dead letter  not yet       2   9 of 14  2026-11-20 07:00:01',
  ]);
});

describe('days', () => {
  test('add up to the windows, whatever the zone', () => {
    for (const tz of ['UTC', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe']) {
      for (const by of ['day', 'month'] as const) {
        const periods = byPeriod(windows, by, tz);
        const total = (what: 'windows' | 'records' | 'late' | 'passes' | 'recounts'): number =>
          periods.reduce((sum, period) => sum + period[what], 0);
        expect([total('windows'), total('records'), total('late'), total('passes'), total('recounts')]).toEqual([4, 1_431, 3, 9, 17]);
      }
    }
  });

  test('the day on which clocks go back has 25 hours and one row', () => {
    const hours = Array.from({ length: 26 }, (_, i) =>
      window(new Date(Date.UTC(2026, 9, 24, 22 + i)).toISOString(), new Date(Date.UTC(2026, 9, 24, 23 + i)).toISOString(), { records: 1 }),
    );
    expect(byPeriod(hours, 'day', 'Europe/Berlin').map(({ name, records }) => [name, records])).toEqual([
      ['2026-10-25', 25],
      ['2026-10-26', 1],
    ]);
  });

  test('the earliest recount wins, compared as instants and not as text', () => {
    const windows = ['2026-11-20T06:00:00.5Z', '2026-11-20T06:00:00Z', '2026-11-20T07:00:00Z'].map((nextRecount) =>
      window('2026-11-20T00:00:00Z', '2026-11-20T00:15:00Z', { nextRecount, state: 'proven' }),
    );
    expect(byPeriod(windows, 'day')[0]).toMatchObject({ nextRecount: '2026-11-20T06:00:00Z', state: 'proven', windows: 3 });
  });
});

test('a window that a later count contradicts is in doubt, not proven, in each row', () => {
  const at = (hour: number, change: object) =>
    window(`2026-11-20T0${hour}:00:00Z`, `2026-11-20T0${hour + 1}:00:00Z`, { reason: null, ...change });
  const doubted = [0, 1].map((hour) => at(hour, { state: 'proven', reason: 'reread' }));
  const statesOf = (windows: ReturnType<typeof window>[], by: 'window' | 'day'): (string | undefined)[] =>
    ledgerText(reportOf([reportSource(windows)]), { by, tz: 'UTC' })
      .split('\n')
      .filter((line) => line.startsWith('2026-11-20'))
      .map((line) => line.split(/ {2,}/)[by === 'day' ? 3 : 2]);
  expect(statesOf(doubted, 'window')).toEqual(['in doubt (reread)', 'in doubt (reread)']);
  expect(byPeriod(doubted, 'day')).toMatchObject([{ state: 'in doubt', counts: { proven: 0, inDoubt: 2 } }]);
  expect(statesOf(doubted, 'day')).toEqual(['in doubt (reread)']);
  const others = [at(2, { state: 'gap', reason: 'count' }), at(3, { state: 'accepted', reason: 'count' }), at(4, { state: 'final' })];
  expect(statesOf([...doubted, ...others], 'day')).toEqual(['1 gap, 1 accepted, 2 in doubt (reread, count)']);
  expect(statesOf([...doubted, at(4, { state: 'final' })], 'day')).toEqual(['2 in doubt (reread)']);
});

test('a month starts in the requested zone, and shows the longest delay of its windows', () => {
  const edge = [
    window('2026-10-31T22:45:00Z', '2026-10-31T23:00:00Z', { records: 1, late: 1, lateLongestSeconds: 5 }),
    window('2026-10-31T23:00:00Z', '2026-10-31T23:15:00Z', { records: 10, late: 2, lateLongestSeconds: 70 }),
    window('2026-11-01T00:00:00Z', '2026-11-01T00:15:00Z', { records: 100, late: 1, lateLongestSeconds: 60 }),
  ];
  const rows = (tz: string) =>
    byPeriod(edge, 'month', tz).map(({ name, records, late, lateLongestSeconds }) => [name, records, late, lateLongestSeconds]);
  expect(rows('UTC')).toEqual([
    ['2026-10', 11, 3, 70],
    ['2026-11', 100, 1, 60],
  ]);
  expect(rows('Europe/Berlin')).toEqual([
    ['2026-10', 1, 1, 5],
    ['2026-11', 110, 3, 70],
  ]);
});

test('a complete report is marked as complete, with colour only on request', () => {
  const complete = reportOf([reportSource(windows.slice(0, 1))]);
  const text = ledgerText(complete, { by: 'window', tz: 'UTC' });
  expect(text.split('\n').slice(0, 2)).toEqual([
    'COMPLETE AND DELIVERED',
    '1 of 1 window is proven, 1 of them final. 412 records collected, each once; 0 of them late. No gap.',
  ]);
  expect(text).toContain('Source production: complete until 2026-11-19 22:30 UTC\n');
  expect(text).not.toContain('\u001b');
  const painted = (change: Partial<LedgerReport>): string =>
    ledgerText({ ...complete, ...change }, { by: 'window', tz: 'UTC', color: true }).split('\n')[0] ?? '';
  expect(painted({})).toBe('\u001b[32;1mCOMPLETE AND DELIVERED\u001b[0m');
  expect(painted({ delivered: false })).toContain('\u001b[33;1m');
  expect(painted({ complete: false })).toContain('\u001b[31;1m');
});

test('if days replace many windows, the last line says so', () => {
  const text = ledgerText(report, { by: 'day', tz: 'UTC', isShortened: true });
  expect(text.split('\n').at(-1)).toBe('4 windows, shown by day; --by window lists each one.');
  expect(ledgerText(report, { by: 'day', tz: 'UTC' })).not.toContain('--by window');
});

test('a proven window that changed since is marked', () => {
  const changed = [window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { reason: 'shrunk' })];
  const text = ledgerText(reportOf([reportSource(changed, { id: 'a', completeUntil: null, readUntil: null })]), {
    by: 'window',
    tz: 'UTC',
  });
  expect(text).toContain('1 proven window changed later (reread, shrunk); see STATE.');
  expect(text).toContain('Source a: nothing is proven yet');
});

test('uncovered time, suspensions and operations follow the windows, each on one escaped line', () => {
  const uncovered = [
    {
      source: 'production',
      from: '2026-11-19T22:30:00Z',
      to: '2026-11-20T00:00:00Z',
      reason: 'daemon_stopped',
      message: 'the daemon is not running',
    },
  ];
  const source = reportSource(windows.slice(0, 1), {
    suspensions: [{ at: '2026-11-19T22:20:00Z', event: 'suspended', reason: 'fields', message: 'userNetwork\nis gone\u001b[31m' }],
  });
  const operations = [
    { at: '2026-11-19T22:25:00Z', actor: 'j.doe', operation: 'gaps accept', detail: { source: 'production', reason: 'ticket\n4711' } },
  ];
  const summary = 'INCOMPLETE: not\u001b[31m covered';
  const lines = ledgerText(reportOf([source], { operations, uncovered, summary }), { by: 'month', tz: 'UTC' }).split('\n');
  expect(lines[0]).toBe('INCOMPLETE: not\\u001b[31m covered');
  expect(lines.slice(8)).toEqual([
    'Not covered: 2026-11-19 22:30–2026-11-20 00:00 UTC, the daemon is not running',
    '2026-11-19 22:20 suspension started, fields, userNetwork\\u000ais gone\\u001b[31m',
    '',
    'CHANGED (UTC)     ACTOR (NOT AUTHENTICATED)  OPERATION    SOURCE OR SINK  COUNT  OUTCOME  REASON            DETAIL',
    '2026-11-19 22:25  j.doe                      gaps accept  production          1  done     ticket\\u000a4711',
  ]);
});

describe('without a window', () => {
  const silent = reportSource([], { id: 'second', startsAt: null, completeUntil: null, readUntil: null });
  const incomplete = { summary: 'INCOMPLETE: nothing is known of second: its ledger has not started', complete: false, final: false };
  const beside = reportOf([reportSource(windows.slice(0, 1)), silent], incomplete);
  const alone = reportOf([silent], incomplete);
  const options = { by: 'window', tz: 'UTC', version: '0' } as const;

  test('a source is named in every format', () => {
    expect(ledgerText(beside, options).split('\n')[1]).toBe(
      '1 of 1 window is proven, 1 of them final. 412 records collected, each once; 0 of them late. No gap. Nothing is proven for second: no window is closed in this period.',
    );
    expect(ledgerText(beside, options)).toContain('Source second: not started');
    for (const by of ['window', 'day', 'month'] as const) {
      const [, head = '', , row, ...others] = ledgerCsv(beside, by, 'UTC').split('\r\n');
      const names = head.split(',');
      const cells = names.map((name) => (name === 'source' ? 'second' : name === 'state' ? 'nothing' : ''));
      expect([row, others]).toEqual([cells.join(','), ['']]);
    }
    const page = ledgerHtml(beside, options);
    expect(page).toContain(`>${incomplete.summary}<`);
    expect(page).toMatch(
      /<h2 [^>]*>Source second<\/h2>\n<p [^>]*>[^<]*<\/p>\n<blockquote><p>[^<]*No window is closed in this period, so nothing is proven\./,
    );
  });

  test('nothing is said of gaps', () => {
    expect(ledgerText(alone, options).split('\n')[1]).toBe('No window is closed in this period, so gaps are unknown.');
    expect(ledgerHtml(alone, options)).not.toContain('no gap');
  });
});
