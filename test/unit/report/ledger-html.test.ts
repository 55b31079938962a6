/** The report as a page and as CSV, parsed by independent code of the tests. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { ledgerCsv as csvPieces, reportDigest } from '../../../src/report/ledger/csv.ts';
import { ledgerHtmlPolicy } from '../../../src/report/ledger/html-style.ts';
import { ledgerHtml as htmlPieces } from '../../../src/report/ledger/html.ts';
import { delayText } from '../../../src/report/ledger/sentences.ts';
import { mixed, reportOf, reportSource, window, withLoss } from '../../support/report/reports.ts';

const ledgerCsv = (...given: Parameters<typeof csvPieces>): string => [...csvPieces(...given)].join('');
const ledgerHtml = (...given: Parameters<typeof htmlPieces>): string => [...htmlPieces(...given)].join('');

const options = { by: 'window', tz: 'UTC', version: '0.1.0' } as const;

/** RFC 4180, character by character. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charAt(i);
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text.charAt(i + 1) === '"') {
        cell += c;
        i += 1;
      } else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ',' || c === '\r') {
      row.push(cell);
      cell = '';
      if (c === '\r') {
        expect(text.charAt(i + 1)).toBe('\n');
        i += 1;
        rows.push(row);
        row = [];
      }
    } else cell += c;
  }
  expect([cell, row]).toEqual(['', []]);
  return rows;
}

function objects(text: string): Record<string, string>[] {
  const [comment, ...lines] = text.split(/(?<=\r\n)/);
  expect(comment).toMatch(/^# [^"]*\r\n$/);
  const [head = [], ...rows] = parseCsv(lines.join(''));
  return rows.map((row) => {
    expect(row).toHaveLength(head.length);
    return Object.fromEntries(head.map((name, i) => [name, row[i] ?? '']));
  });
}

/** The cells of each table by its caption, without tags and entities. */
function tables(html: string): Map<string, string[][]> {
  const textOf = (part: string): string =>
    part.replace(/<[^>]*>/g, '').replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
  return new Map(
    [...html.matchAll(/<table>([^]*?)<\/table>/g)].map(([, table = '']) => [
      textOf(/<caption>([^]*?)<\/caption>/.exec(table)?.[1] ?? ''),
      [...table.matchAll(/<tr>([^]*?)<\/tr>/g)].map(([, row = '']) =>
        [...row.matchAll(/<(th|td)[^>]*>([^]*?)<\/\1>/g)].map(([, , cell = '']) => textOf(cell)),
      ),
    ]),
  );
}

test('csv by window: each number under its name, in UTC, and without sums that a script would count twice', () => {
  const rows = objects(ledgerCsv(mixed, 'window', 'Europe/Berlin'));
  expect(rows).toHaveLength(4);
  expect(rows[1]).toEqual({
    ...{ source: 'production', from: '2026-11-19T22:30:00Z', to: '2026-11-19T23:30:00Z', state: 'gap', reason: 'total' },
    ...{ message: 'the service gave no usable total', total: '', received: '1009', records: '1000', late: '0', late_longest_seconds: '' },
    ...{ passes: '6', recounts: '1', recounts_due: '', next_recount: '2026-11-20T05:30:00Z', closed_at: '' },
    ...{ start_time: '2026-11-19T22:14:59.00', end_time: '2026-11-19T22:30:01.00', digest: 'ab'.repeat(32) },
    ...{ 'siem.complete': 'true', 'siem.dead_letters': '0', 'lake.complete': 'true', 'lake.dead_letters': '0' },
  });
  expect(rows[3]).toMatchObject({
    late: '3',
    late_longest_seconds: '22320.5',
    recounts_due: '5',
    'siem.complete': 'false',
    'lake.complete': '',
  });
  expect(rows.reduce((sum, { records }) => sum + Number(records), 0)).toBe(1_431);
});

test('csv by day and month: the same sums, grouped in the zone', () => {
  const days = objects(ledgerCsv(mixed, 'day', 'Europe/Berlin'));
  expect(
    days.map(({ day, windows, records, late, gaps, accepted, proven, final, in_doubt: inDoubt }) => [
      day,
      windows,
      records,
      late,
      gaps,
      accepted,
      proven,
      final,
      inDoubt,
    ]),
  ).toEqual([
    ['2026-11-19', '2', '1412', '0', '1', '0', '1', '1', '0'],
    ['2026-11-20', '2', '19', '3', '0', '1', '1', '0', '0'],
  ]);
  expect(objects(ledgerCsv(mixed, 'month', 'UTC')).map(({ month, records, reasons }) => [month, records, reasons])).toEqual([
    ['2026-11', '1431', 'total count'],
  ]);
});

test('csv: texts of a server are one cell, and no formula', () => {
  const texts = [
    ...['=HYPERLINK("http://x","y")', '+1', '-1', '@SUM(A1)', 'two\nlines, "quoted"'],
    // With a decimal comma, a spreadsheet separates at `;` and treats our quotes as text.
    ...['said;=1+1', 'said; "=1+1"', 'said,\t@SUM(A1)', 'a|-1', 'a\n+1', '\uff1d1+1', 'a-b = c; d'],
  ];
  const source = reportSource(
    texts.map((text) => window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { state: 'gap', reason: 'count', message: text })),
  );
  const found = objects(ledgerCsv(reportOf([source]), 'window', 'UTC')).map((row) => row['message']);
  expect(found).toEqual([
    ...[`'=HYPERLINK("http://x","y")`, `'+1`, `'-1`, `'@SUM(A1)`, 'two\nlines, "quoted"'],
    ...[`said;'=1+1`, `said;' "=1+1"`, `said,'\t'@SUM(A1)`, `a|'-1`, `a\n'+1`, `'\uff1d1+1`, 'a-b = c; d'],
  ]);
});

test('csv: with any separator, no cell of a report is a formula', () => {
  const evil = ['=1+1', ';=1+1', '";=1+1', 'a\t=1+1', 'x,"=1+1', "';@x", '\r\n-1', '; \t+1'];
  const source = reportSource(
    evil.map((text) => window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { state: 'gap', reason: 'count', message: text })),
  );
  const summary = `INCOMPLETE: not covered: 22:30–23:00, the source fails: ${evil.join(' ')}`;
  const csv = ledgerCsv(reportOf([source], { summary }), 'window', 'UTC');
  for (const separator of [',', ';', '\t', '|']) {
    const cells = csv.split(/\r\n|\n|\r/).flatMap((line) => line.split(separator));
    expect(cells.filter((cell) => /^[\s"]*[=+@-]/.test(cell) && !/^-?[\d.]+$/.test(cell))).toEqual([]);
  }
});

test('csv: the summary is a comment before the header, on one line', () => {
  const summary = 'COMPLETE, NOT ALL DELIVERED: siem lacks 1 of 4 windows (503 "busy"\nretry)';
  const [first, second] = ledgerCsv({ ...mixed, summary }, 'window', 'UTC').split('\r\n');
  expect(first).toBe('# COMPLETE, NOT ALL DELIVERED: siem lacks 1 of 4 windows (503 "busy"\\u000aretry)');
  expect(second?.startsWith('source,from,to,state,')).toBe(true);
});

test('the digest is that of the csv without the summary, independent of time and command', () => {
  const csv = ledgerCsv(mixed, 'window', 'UTC').replace(/^.*\r\n/, '');
  expect(csv.startsWith('source,')).toBe(true);
  expect(reportDigest({ ...mixed, summary: 'another moment' })).toBe(createHash('sha256').update(csv).digest('hex'));
  expect(ledgerHtml({ ...mixed, generatedAt: '2027-01-01T00:00:00Z' }, { ...options, by: 'day', tz: 'Asia/Kolkata' })).toContain(
    `<code>${reportDigest(mixed)}</code>`,
  );
});

test('the page starts with a quotable paragraph and ends with the limits of the proof', () => {
  const html = ledgerHtml(mixed, options);
  const quote = /<blockquote><p>([^]*?)<\/p>/.exec(html)?.[1] ?? '';
  expect(quote.split(/(?<=\.) (?=[A-Z0-9])/)).toEqual([
    'Source production, 2026-11-19 22:15–2026-11-20 00:00:01 UTC.',
    'Collected: 1,431 records, each once.',
    '2 of 4 windows are proven.',
    'Proven means: the service answered the query of the window with as many records as it counted for it.',
    '1 gap is open: the counted and received numbers of this window differ.',
    '1 gap was accepted by an operator.',
    '3 records were late, the longest by 6 h 12 min.',
    'Delivered: siem 1,427 and 3 dead letters, 1 window pending; lake the records that match its filter in 3 windows, from 2026-11-19T22:00:00Z on.',
  ]);
  expect(html.indexOf('<blockquote>')).toBeLessThan(html.indexOf('<table>'));
  const end = html.slice(html.indexOf('Limits of this report'));
  expect(end).not.toContain('<table>');
  expect(end).toContain('Records that the service never shows to these credentials');
  expect(end).toContain(
    '1 window is proven but not final: recounts are pending; the next recount of the last of these windows is at 2026-11-20 06:00:01 (UTC).',
  );
  expect(end).toContain('3,569 collected records are outside the counts of windows');
});

test('the quote contains the part of the period that the ledger does not cover', () => {
  const source = reportSource([window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z')]);
  const uncovered = [
    {
      source: 'production',
      from: '2026-11-19T22:30:00Z',
      to: '2026-11-20T00:00:00Z',
      reason: 'daemon_stopped',
      message: 'the daemon is not running',
    },
    { source: 'other', from: '2026-11-19T22:00:00Z', to: '2026-11-20T00:00:00Z', reason: 'behind', message: 'collection is behind' },
  ];
  const period = { from: '2026-11-19T22:00:00Z', to: '2026-11-20T00:00:00Z' };
  const html = ledgerHtml(reportOf([source], { ...period, complete: false, final: false, uncovered }), options);
  expect(html).toContain(
    'Source production, 2026-11-19 22:15–22:30 UTC. Collected: 412 records, each once. The one window is proven. Proven means: the service answered the query of the window with as many records as it counted for it. Not covered: 2026-11-19 22:30–2026-11-20 00:00 UTC, the daemon is not running. There is no gap.',
  );
  expect(html).not.toContain('collection is behind');
});

test('the word proven is defined only if a window is proven; a window in doubt is not', () => {
  const quoteOf = (change: Parameters<typeof window>[2]): string => {
    const source = reportSource([window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', change)]);
    return /<blockquote><p>([^]*?)<\/p>/.exec(ledgerHtml(reportOf([source]), options))?.[1] ?? '';
  };
  for (const change of [
    { state: 'gap', reason: 'count' },
    { state: 'accepted', reason: 'count' },
    { state: 'proven', reason: 'reread' },
  ] as const) {
    expect(quoteOf(change)).toContain('0 of 1 window is proven.');
    expect(quoteOf(change)).not.toContain('Proven means');
  }
  expect(quoteOf({ state: 'proven', reason: 'shrunk' })).toContain('The one window is proven. Proven means:');
});

test('the badge shows the summary: green only if everything is delivered too', () => {
  const badge = (complete: boolean, delivered: boolean): string =>
    /<p class="(summary \w+">[^<]*)</.exec(ledgerHtml(reportOf([], { summary: 'S & T', complete, delivered }), options))?.[1] ?? '';
  expect([badge(true, true), badge(true, false), badge(false, true)]).toEqual([
    'summary good">S &#38; T',
    'summary warn">S &#38; T',
    'summary bad">S &#38; T',
  ]);
});

test('the head names the polled service and the settings in effect', () => {
  const service = { host: 'service.example', tenant: 'contoso', closeDelaySeconds: 900, recountSeconds: [3_600, 2_592_000] };
  const html = ledgerHtml(mixed, { ...options, services: { production: service } });
  expect(html).toContain(
    'Service service.example, tenant contoso. Settings: a window is closed 15 min after its end; recounts after 1 h, 30 d.',
  );
  expect(ledgerHtml(mixed, options)).toContain('The source is not in the configuration.');
});

test('sinks come before recounts, the words are explained, and a list of gaps alone is printed once', () => {
  const html = ledgerHtml(mixed, options);
  const [head = []] = tables(html).get('Every window of production') ?? [];
  expect(head.indexOf('siem')).toBeGreaterThan(0);
  expect(head.indexOf('siem')).toBeLessThan(head.indexOf('Recounts'));
  for (const word of ['Counted = received', 'Records in window', 'All (of a sink)', 'Complete until', 'Recounts'])
    expect(html).toContain(`<dt>${word}</dt><dd>`);
  const captions = (report: typeof mixed): string[] => [...tables(ledgerHtml(report, options)).keys()];
  expect(captions(mixed)).toContain('Windows of production to review: gaps, late records, changes after closing');
  const gaps = reportSource(
    ['2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z'].map((at) => window(at, at, { state: 'gap', reason: 'count' })),
  );
  expect(captions(reportOf([gaps]))).toEqual(['Every window of production']);
});

test('an ended suspension does not repeat its reason', () => {
  const message = 'userNetwork is not shown any more';
  const suspensions = [
    { at: '2026-11-19T22:20:00Z', event: 'suspended', reason: 'fields', message },
    { at: '2026-11-19T22:22:00Z', event: 'changed', reason: 'fields', message },
    { at: '2026-11-19T22:25:00Z', event: 'active', reason: 'fields', message },
  ];
  expect(
    tables(ledgerHtml(reportOf([reportSource([], { suspensions })]), options))
      .get('Suspensions of collection')
      ?.slice(1),
  ).toEqual([
    ['2026-11-19 22:20', 'suspension started', 'fields', message],
    ['2026-11-19 22:22', 'suspension changed', 'fields', message],
    ['2026-11-19 22:25', 'suspension ended', 'fields', ''],
  ]);
});

test('the quote states who accepted a gap, when and why; one operation on several gaps is printed once', () => {
  const from = ['2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', '2026-11-19T22:45:00Z', '2026-11-19T23:00:00Z'];
  const source = reportSource(from.map((at) => window(at, at.replace(/5:00|0:00/, '9:00'), { state: 'accepted', reason: 'count' })));
  const accept = (at: string, actor: string | null, detail: Record<string, string>) => ({
    at,
    actor,
    operation: 'gaps accept',
    detail: { source: 'production', ...detail },
  });
  const operations = [
    accept('2026-11-24T23:30:00Z', 'j.doe', { from: from[0] ?? '', reason: 'service outage, ticket 4711' }),
    accept('2026-11-24T23:30:01Z', 'j.doe', { from: from[1] ?? '', reason: 'service outage, ticket 4711' }),
    accept('2026-11-25T10:00:00Z', null, { from: from[2] ?? '' }),
    { ...accept('2026-11-25T10:00:00Z', 'other', { from: from[3] ?? '' }), detail: { source: 'another', from: from[3] ?? '' } },
  ];
  const html = ledgerHtml(reportOf([source], { complete: false, operations }), { ...options, tz: 'Europe/Berlin' });
  expect(html).toContain(
    '2 gaps were accepted by j.doe on 2026-11-25 (&#34;service outage, ticket 4711&#34;). 1 gap was accepted by an operator on 2026-11-25. 1 gap was accepted by an operator.',
  );
});

test('rows add up to the sums, by window, day and month', () => {
  for (const by of ['window', 'day', 'month'] as const) {
    const found = tables(ledgerHtml(mixed, { ...options, by }));
    const table =
      found.get(by === 'window' ? 'Every window of production' : `By ${by}; a window belongs to the ${by} in which it starts`) ?? [];
    const [head = [], ...rows] = table;
    const records = head.findIndex((name) => name.startsWith('Records'));
    const late = head.indexOf('Late');
    const number = (cell: string | undefined): number => Number((cell ?? '').replace(/ .*/, '').replaceAll(',', ''));
    const foot = rows.pop() ?? [];
    expect(foot[0]).toBe('Sum');
    for (const column of [records, late])
      expect(
        rows.reduce((sum, row) => sum + number(row[column]), 0),
        by,
      ).toBe(number(foot[column]));
    expect(number(foot[records])).toBe(1_431);
    expect(rows).toHaveLength({ window: 4, day: 2, month: 1 }[by]);
  }
  const late = tables(ledgerHtml(mixed, options)).get('Late records by delay: first seen minus logTimestamp');
  expect(late).toEqual([
    ['First seen', 'Records'],
    ['within 1h', '2'],
    ['within 1d', '1'],
    ['Sum', '3'],
  ]);
});

test('it is self-contained: no script, no external resource, and only the style that the policy permits', () => {
  const html = ledgerHtml(mixed, options);
  expect(html).not.toMatch(/<(script|link|img|iframe|object|embed|svg|base|form|meta http-equiv="refresh")\b/i);
  expect(html).not.toMatch(/\b(src|href|srcset|action|on\w+)=|url\(|@import|https?:/i);
  expect(html).not.toMatch(/ style=/);
  const style = /<style>([^]*?)<\/style>/.exec(html)?.[1] ?? '';
  expect(ledgerHtmlPolicy).toContain(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  expect(style).toContain('prefers-color-scheme: dark');
  expect(style).toContain('@media print');
});

test('it is accessible: language, title, one first heading, table headers, named regions', () => {
  const html = ledgerHtml(mixed, options);
  expect(html).toMatch(/^<!doctype html>\n<html lang="en">/);
  expect(html).toContain('<title>Completeness report: production</title>');
  expect(html.match(/<h1>/g)).toHaveLength(1);
  const levels = [...html.matchAll(/<h(\d)/g)].map(([, level]) => Number(level));
  levels.forEach((level, i) => expect(level - (levels[i - 1] ?? 0)).toBeLessThanOrEqual(1));
  for (const [, table = ''] of html.matchAll(/<table>([^]*?)<\/table>/g)) {
    for (const [, cell = ''] of (table.split('</thead>')[0] ?? '').matchAll(/<t([hd][^>]*)>/g))
      if (!cell.startsWith('head')) expect(cell).toContain('scope="col"');
    for (const [, row = ''] of (/<tbody>([^]*)<\/tbody>/.exec(table)?.[1] ?? '').matchAll(/<tr>([^]*?)<\/tr>/g))
      expect(row).toMatch(/^<th scope="row"/);
  }
  const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id ?? '');
  expect(new Set(ids).size).toBe(ids.length);
  for (const [, id = ''] of html.matchAll(/aria-labelledby="([^"]+)"/g)) expect(ids).toContain(id);
  for (const [, label = ''] of html.matchAll(/tabindex="0" aria-label="([^"]*)"/g)) expect(label).not.toBe('');
});

test('lost windows of a sink are in the quotable paragraph, in its row and in theirs', () => {
  const html = ledgerHtml(withLoss, options);
  expect(html).toContain('Delivered: siem 412 and 1 dead letter, 1 window lost, 1 window pending.');
  expect(tables(html).get('Delivery of these windows by sink')?.slice(1)).toEqual([
    ['siem', 'file', 'active', 'the start', '1 of 3 (1 lost)', '412', '1'],
  ]);
  const cells = (tables(html).get('Every window of production') ?? []).map((row) => row[6]);
  expect(cells).toEqual(['siem', 'all', 'lost, 1 dead letter', 'not yet', '']);
});

test('the quote says for how many windows no sink answers', () => {
  const [source = reportSource([])] = withLoss.sources;
  const before = window('2026-11-19T22:00:00Z', '2026-11-19T22:15:00Z', { sinks: {} });
  const html = ledgerHtml(reportOf([{ ...source, windows: [before, ...source.windows] }]), options);
  expect(html).toContain('For 1 window no sink answers: nothing is stated about the delivery of their records.');
  expect(ledgerHtml(withLoss, options)).not.toContain('no sink answers');
});

test('all contents are escaped', () => {
  const evil = `"><script>alert('1')</script>&amp;\u001b[31m\u202e\n<!--`;
  const windows = [window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { state: 'gap', reason: evil, message: evil })];
  const source = reportSource(windows, {
    state: evil,
    suspensions: [{ at: '2026-11-19T22:15:00Z', event: evil, reason: evil, message: evil }],
    sinks: [
      { id: evil, type: evil, state: evil, since: null, filtered: false, windows: 1, complete: 1, lost: 0, records: 1, deadLetters: 0 },
    ],
  });
  const operations = [{ at: '2026-11-19T22:15:00Z', actor: evil, operation: evil, detail: { [evil]: evil } }];
  const html = ledgerHtml(reportOf([source], { operations }), { ...options, version: evil });
  expect(html).not.toMatch(/<script|<!--|alert\('|\u001b|\u202e/);
  expect(
    html.match(/&#60;script&#62;alert\(&#39;1&#39;\)&#60;\/script&#62;&#38;amp;\\u001b\[31m\\u202e\\u000a&#60;!--/g)?.length,
  ).toBeGreaterThanOrEqual(10);
});

test('a delay in two units', () => {
  expect([0, 59.4, 60, 125, 3_600, 22_320.5, 86_400, 200_000].map(delayText)).toEqual([
    '0 s',
    '59 s',
    '1 min',
    '2 min 5 s',
    '1 h',
    '6 h 12 min',
    '1 d',
    '2 d 7 h',
  ]);
});
