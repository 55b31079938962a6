import { describe, expect, test } from 'vitest';
import { statusText, type StatusTextOptions } from '../../../src/report/status-text.ts';
import { statusJson } from '../../../src/report/status-json.ts';
import type { Snapshot, SourceSnapshot } from '../../../src/model/snapshot.ts';
import { windowStates, coverage, delayCounts, micros, now, replay, sink, snapshot, source } from '../../support/report/snapshots.ts';

const plain: StatusTextOptions = { color: false, tz: 'UTC', width: 80 };

function lines(change: Partial<Snapshot>, options: Partial<StatusTextOptions> = {}): string[] {
  return statusText(snapshot(change), { ...plain, ...options }).split('\n');
}

/** The lines of a table: from its head to the next blank line. */
function block(all: readonly string[], head: string): string[] {
  const at = all.findIndex((line) => line.startsWith(head));
  const rest = all.slice(at);
  return rest.slice(0, rest.indexOf(''));
}

test('summary, sources, sinks, journal, and advice, in this order', () => {
  expect(lines({})).toEqual([
    'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago)',
    '',
    'SOURCE      STATE   COMPLETE UNTIL       LAST SUCCESS  RECORDS  LATE  GAPS',
    'production  active  02:45Z (18 min ago)  2 s ago        12,345     7     0',
    '',
    'SINK  TYPE           STATE   LAG      LAST DELIVERY  DEAD LETTERS',
    'siem  elasticsearch  active  nothing  1 s ago                   0',
    '',
    'JOURNAL  50 MiB of 10 GiB used, 12,345 records and 0 ledger lines in 19 d',
    '  waybill 0.1.0',
    '',
    'Nothing to do.',
  ]);
});

test('the delay of records is shown next to a source once it is measured', () => {
  const delays = { since: 1, to: 2, recent: delayCounts({ 2: 50, 5: 49, 12: 1 }), before: delayCounts({}), longest: 3_000 };
  const all = lines({ sources: [source({ delays }), source({ id: 'new' })] }, { width: 120 });
  expect(block(all, 'SOURCE')).toEqual([
    'SOURCE      STATE   COMPLETE UNTIL       LAST SUCCESS  RECORDS  LATE  GAPS  DELAY p50, p99',
    'production  active  02:45Z (18 min ago)  2 s ago        12,345     7     0  ≤ 5 s, ≤ 30 s',
    'new         active  02:45Z (18 min ago)  2 s ago        12,345     7     0  -',
  ]);
});

test('every cell of a table is aligned with its head', () => {
  const all = lines(
    {
      sources: [source(), source({ id: 'a-name-of-twenty-four-let', state: 'suspended', collected: 1_204_311, lastSuccess: undefined })],
      sinks: [sink({ lagEntries: 1_000_000, lagSeconds: 7_000 }), sink({ id: 'x', type: 'file', deadLetters: 12 })],
    },
    { width: 200 },
  );
  for (const [head, leftColumns, rightColumns] of [
    ['SOURCE', ['SOURCE', 'STATE', 'COMPLETE UNTIL', 'LAST SUCCESS'], ['RECORDS', 'LATE', 'GAPS']],
    ['SINK', ['SINK', 'TYPE', 'STATE', 'LAG', 'LAST DELIVERY'], ['DEAD LETTERS']],
  ] as const) {
    const [first = '', ...rows] = block(all, head);
    expect(rows).toHaveLength(2);
    for (const row of rows) {
      for (const column of leftColumns) {
        const at = first.indexOf(column);
        expect(row.slice(Math.max(0, at - 2), at + 1), `${column} in "${row}"`).toMatch(at === 0 ? /^\S/ : /^ {2}\S$/);
      }
      for (const column of rightColumns) {
        const end = first.indexOf(column) + column.length;
        expect(row.slice(end - 1, end), `${column} in "${row}"`).toMatch(/\d/);
        expect(row.charAt(end), `${column} in "${row}"`).toMatch(/^ ?$/);
      }
    }
  }
});

test('with many sources and sinks the tables leave room for a problem in 24 lines, problems first, the rest counted', () => {
  const all = lines({
    sources: Array.from({ length: 100 }, (_, i) => source({ id: `acme-${i}`, ...(i === 70 && { trouble: 'no answer for 2 min' }) })),
    sinks: Array.from({ length: 30 }, (_, i) => sink({ id: `siem-${i}`, ...(i % 3 === 0 && { state: 'blocked' }) })),
  });
  // The first problem has room for seven lines.
  expect(all.findIndex((line) => line.startsWith('JOURNAL'))).toBeLessThanOrEqual(16);
  const sources = block(all, 'SOURCE');
  expect(sources[1]).toMatch(/^acme-70 /);
  expect(sources.at(-1)).toBe(`and ${100 - (sources.length - 2)} more, all healthy`);
  const sinks = block(all, 'SINK');
  expect(sinks[1]).toMatch(/^siem-0 +elasticsearch +blocked/);
  const shown = sinks.length - 2;
  expect(sinks.at(-1)).toBe(`and ${30 - shown} more, ${10 - shown} with problems`);
});

test('space that one kind does not need goes to the other, and no row is omitted without need', () => {
  const all = lines({ sources: Array.from({ length: 13 }, (_, i) => source({ id: `acme-${i}` })) });
  expect(block(all, 'SOURCE')).toHaveLength(14);
  expect(all.join('\n')).not.toContain('more');
});

test('the progress of a replay, and why it cannot read its archive', () => {
  const lineOf = (change: object): string[] => lines({ sinks: [sink({ replays: [replay(change)] })] }, { width: 200 });
  expect(lineOf({})).toContain('siem: replay from the archive evidence, 33 %, 900 records sent');
  expect(lineOf({ archive: undefined })).toContain('siem: replay, 33 %, 900 records sent');
  for (const state of ['done', 'cancelled']) expect(lineOf({ state }).join()).not.toContain('replay');
  expect(lineOf({ leftOut: 36 })).toContain('siem: replay from the archive evidence, 33 %, 900 records sent, 36 lines left out by --from');
  expect(lineOf({ passed: 0, expected: 0, sent: 0 })).toContain(
    'siem: replay from the archive evidence, waits for the first checkpoint of the archive, 0 records sent',
  );
  expect(lineOf({ state: 'stopped' })).toContain('siem: replay from the archive evidence, stopped after line 1,000, 900 records sent');
  const failed = lineOf({ state: 'failed', error: 'cannot read "checkpoint"' });
  expect(failed).toContain(
    'siem: replay from the archive evidence, failed after line 1,000, 900 records sent; last attempt: cannot read "checkpoint"',
  );
  expect(failed[0]).toBe('COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago), a replay fails');
  expect(failed.slice(-4)).toEqual([
    'Sink siem: the replay from the archive evidence failed after 900 records: cannot read "checkpoint".',
    'Nothing else is lost: new records are delivered, and the replay continues by itself when the archive can be read.',
    'To do: waybill check --sink evidence; waybill archive verify --sink evidence --key FILE. To go on without lines that the archive has lost: waybill replay --sink siem --archive evidence --from LINE,',
    '  behind the lines named above. If the archive is lost: waybill replay cancel --sink siem. More: waybill explain replay',
  ]);
});

test('the newest time stamp of an archive, and why there is none of today', () => {
  const newest = micros('2026-11-19T03:00:00Z');
  const archive = (timeStamp: { newest: number | undefined; lastError: string | undefined }): string[] =>
    lines({ sinks: [sink({ id: 'archive', timeStamp })] }, { width: 200 });
  expect(archive({ newest, lastError: undefined })).toContain('archive: newest time stamp 24 h ago');
  expect(archive({ newest: undefined, lastError: 'no answer' })).toContain('archive: no time stamp yet; last attempt: no answer');
});

test('the age of the newest cosignature by each witness of an archive, and why there is none', () => {
  const cosignatures = [
    { witness: 'witness.example/a', newest: micros('2026-11-19T03:00:00Z'), lastError: undefined },
    { witness: 'witness.example/b', newest: undefined, lastError: 'no answer' },
  ];
  expect(lines({ sinks: [sink({ id: 'archive', cosignatures })] }, { width: 200 })).toEqual(
    expect.arrayContaining([
      'archive: witness witness.example/a cosigned 24 h ago',
      'archive: witness witness.example/b has not cosigned yet; last attempt: no answer',
    ]),
  );
});

describe('at any width', () => {
  test.each([40, 60, 80, 120])('no line is longer than %i, and one problem leaves at most 24 lines', (width) => {
    const all = lines(
      {
        sources: Array.from({ length: 50 }, (_, i) =>
          source({ id: `tenant-with-a-long-name-${i}`, trouble: 'word '.repeat(60), lastError: 'x'.repeat(300) }),
        ),
        sinks: [sink({ state: 'blocked', deadLetters: 1 })],
        journal: { bytes: 1, maxSize: 2, head: 3, paused: 'journal_full: 97 % of it are used', directory: '/state' },
        created: micros('2026-11-20T03:00:00Z'),
      },
      { width },
    );
    expect(Math.max(...all.map((line) => line.length))).toBeLessThanOrEqual(width);
    expect(all.findIndex((line) => line.startsWith('JOURNAL'))).toBeLessThanOrEqual(16);
  });
});

test.each<[string, Partial<Snapshot>, RegExp, RegExp, string]>([
  [
    'a paused journal before all',
    {
      journal: { bytes: 16_400_000, maxSize: 16_777_216, head: 1, paused: 'journal_full', directory: '/state' },
      sources: [source({ state: 'suspended' })],
      sinks: [sink({ id: 'archive', lagEntries: 3 }), sink({ lagEntries: 40 }), sink({ id: 'old', state: 'retired', lagEntries: 99 })],
    },
    /^Collection is paused: the journal in \/state uses 15\.6 MiB of journal\.maxSize 16 MiB\.$/,
    /^Nothing is lost while the service keeps its log\. Delivery continues\.$/,
    'fix sink siem, which lags most, or raise journal.maxSize; collection resumes below 90 % of it.',
  ],
  [
    'a paused journal that every sink has acknowledged',
    { journal: { bytes: 1, maxSize: 1, head: 1, paused: 'journal_full', directory: '/state' } },
    /^Collection is paused/,
    /Delivery continues\.$/,
    'raise journal.maxSize; ',
  ],
  [
    'a full disk of the state: which one, and that it goes on by itself',
    {
      journal: { bytes: 1, maxSize: 9, head: 1, paused: 'disk', directory: '/var/lib/waybill/state' },
      sources: [source({ state: 'suspended' })],
    },
    /^The disk is full: cannot write to \/var\/lib\/waybill\/state\.$/,
    /^Nothing is lost while the service keeps its log\. Collection and delivery wait\.$/,
    'free space on the disk of /var/lib/waybill/state; collection and delivery then resume.',
  ],
  [
    'a full disk of a sink',
    {
      sinks: [sink({ state: 'retrying', trouble: 'cannot write "/out/a.ndjson" for sink "siem": ENOSPC: no space left on device, write' })],
    },
    /^Sink siem fails: cannot write "\/out\/a\.ndjson" for sink "siem": ENOSPC/,
    /^Nothing is lost until the journal is full: it keeps what siem has not accepted/,
    'free space there; siem then resumes',
  ],
  [
    'a suspension before a blocked sink',
    { sources: [source({ state: 'suspended', trouble: 'fewer rows' })], sinks: [sink({ state: 'blocked' })] },
    /^Source production is suspended: fewer rows/,
    /cannot be collected/,
    'Restore the rights of the client',
  ],
  [
    'a suspension whose reason the state knows, of a daemon that does not run',
    {
      sources: [
        source({ state: 'suspended', trouble: 'the daemon does not run', held: { reason: 'fields', message: 'userNetwork is not shown' } }),
      ],
    },
    /^Source production is suspended \(fields\): userNetwork is not shown; the daemon does not run\.$/,
    /cannot be collected/,
    'Restore the rights of the client of production; collection',
  ],
  [
    'a suspension of a running daemon, whose reason is printed once',
    { sources: [source({ state: 'suspended', trouble: 'suspended (forbidden): 403', held: { reason: 'forbidden', message: '403' } })] },
    /^Source production is suspended \(forbidden\): 403\.$/,
    /^Nothing is lost while/,
    'Restore the right of the client of production to read logs',
  ],
  [
    'a suspension for a clock is not about rights',
    { sources: [source({ state: 'suspended', held: { reason: 'clock', message: 'an hour ahead' } })] },
    /suspended \(clock\): an hour ahead\.$/,
    /^Nothing is lost: records are collected/,
    'Correct the wrong clock',
  ],
  [
    'nor is one for times that cannot be read',
    { sources: [source({ state: 'suspended', held: { reason: 'timestamp', message: 'none of 100' } })] },
    /suspended \(timestamp\): none of 100\.$/,
    /^Nothing is lost: records are collected/,
    'Ask the operator of the service of production',
  ],
  [
    'a silent source',
    { sources: [source({ trouble: 'no token', lastError: 'invalid_client' })] },
    /^Source production fails: no token \(invalid_client\)/,
    /^Nothing is lost while/,
    'waybill check --source production',
  ],
  [
    'an unreachable source whose last failure is already printed',
    { sources: [source({ trouble: 'cannot read: 503 down', lastError: 'cannot read: 503 down' })] },
    /^Source production fails: cannot read: 503 down\.$/,
    /^Nothing is lost while/,
    'waybill check --source production',
  ],
  [
    'a source that is not in the configuration',
    { sources: [source(), source({ id: 'old', state: 'unconfigured', trouble: 'the daemon does not run' })] },
    /^Source old is not in the configuration/,
    /^Collected records are delivered/,
    'restore sources.old in the configuration, or waybill sources retire --source old if it was removed on purpose',
  ],
  [
    'a blocked sink before a gap',
    { sources: [source({ windows: windowStates({ gap: 1 }) })], sinks: [sink({ state: 'blocked', lastError: '403' })] },
    /^Sink siem is blocked: 403/,
    /^Nothing is lost until the journal is full/,
    'waybill check --sink siem',
  ],
  [
    'a start that the ledger does not reach back to',
    {
      sources: [
        source({
          unread: { from: micros('2026-11-18T00:00:00Z'), to: micros('2026-11-19T00:00:00Z'), startsAt: micros('2026-11-19T00:00:00Z') },
        }),
      ],
    },
    /^Source production: start is before 2026-11-19T00:00:00Z, where its ledger starts\.$/,
    /^Earlier records are not collected/,
    'waybill backfill --source production --from 2026-11-18T00:00:00Z --to 2026-11-19T00:00:00Z',
  ],
  [
    'a gap',
    { sources: [source({ windows: windowStates({ gap: 2, inDoubt: 1 }) })] },
    /^2 windows of production could not be proven\. 1 proven window of production is in doubt\./,
    /records may be missing/,
    'waybill gaps list',
  ],
  [
    'a proven window in doubt, which is no gap',
    { sources: [source({ windows: windowStates({ inDoubt: 1 }) })] },
    /^1 proven window of production is in doubt\.$/,
    /records may be missing/,
    'waybill gaps list',
  ],
  [
    'dead letters',
    { sinks: [sink({ deadLetters: 1 })] },
    /^Sink siem rejected 1 record permanently/,
    /^Nothing is lost/,
    'waybill dead-letters show --all --sink siem; then "retry" after fixing the cause, or "discard"',
  ],
])('what to do: %s', (_, change, what, lost, act) => {
  const all = lines(change, { width: 200 });
  const [tail = []] = problemsOf(all);
  expect(tail[0]).toMatch(what);
  expect(tail[1]).toMatch(lost);
  expect(tail[2]).toContain(`To do: ${act}`);
});

/** The lines of each problem. */
function problemsOf(all: readonly string[]): string[][] {
  const text = all.slice(all.findIndex((line) => line.startsWith('JOURNAL'))).join('\n');
  return text
    .split('\n\n')
    .slice(1)
    .map((paragraph) => paragraph.split('\n'));
}

const refused = 'cannot reach "https://splunk.example:8088": connect ECONNREFUSED 192.0.2.7:8088';
const failing = sink({
  ...{ id: 'splunk', type: 'splunk-hec', state: 'retrying', attempts: 9, lagEntries: 349, lagSeconds: 64, lastError: refused },
  ...{ lastSuccess: now - 73e6, failingSince: now - 73e6, nextAttempt: now + 34e6 },
});

test('a sink that failed three times in a row comes first, with its last error and its next attempt, and needs attention', () => {
  const all = lines({ sinks: [sink(), sink({ id: 'archive', deadLetters: 2 }), failing] }, { width: 100 });
  expect(block(all, 'SINK')).toEqual([
    'SINK     TYPE           STATE                 LAG                 LAST DELIVERY  DEAD LETTERS',
    'splunk   splunk-hec     retrying, 9 attempts  349 entries (64 s)  73 s ago                  0',
    'archive  elasticsearch  active                nothing             1 s ago                   2',
    'siem     elasticsearch  active                nothing             1 s ago                   0',
  ]);
  expect(problemsOf(all)[0]?.join(' ').replace(/ +/g, ' ')).toBe(
    `Sink splunk has failed for 73 s (9 attempts): ${refused}. Next attempt in 34 s. ` +
      'Nothing is lost until the journal is full: it keeps what splunk has not accepted. ' +
      'To do: waybill check --sink splunk; at once after a repair: waybill sinks retry --sink splunk. More: waybill explain sink_unavailable',
  );
});

test('two consecutive failures need no operator yet', () => {
  const all = lines({ sinks: [sink({ ...failing, attempts: 2 })] }, { width: 120 });
  expect(block(all, 'SINK').at(-1)).toMatch(/^splunk +splunk-hec +retrying, 2 attempts +349/);
  expect(all.at(-1)).toBe('Nothing to do.');
});

test('a sink that has never delivered is marked, and fails with its first attempt', () => {
  const fresh = { hasDelivered: false, lastSuccess: undefined };
  expect(block(lines({ sinks: [sink(fresh)] }), 'SINK')[1]).toMatch(/ never +0$/);
  expect(lines({ sinks: [sink(fresh)] }).at(-1)).toBe('Nothing to do.');
  const all = lines({ sinks: [sink({ ...fresh, state: 'retrying', attempts: 1, lastError: '401' })] });
  expect(all).toContain('Sink siem has never delivered (1 attempt): 401.');
});

test('after a start, the text tells whether a sink has delivered before', () => {
  expect(block(lines({ sinks: [sink({ lastSuccess: undefined })] }), 'SINK')[1]).toContain('  before this start  ');
});

test('a stopped daemon is the first advice; rows keep the known state', () => {
  const all = lines(
    {
      stopped: { since: now - 960e6 },
      sources: [source({ windows: windowStates({ gap: 1 }) })],
      sinks: [sink({ state: 'stopped', lastSuccess: undefined })],
    },
    { width: 120 },
  );
  expect(block(all, 'SOURCE')[1]).toBe('production  stopped  02:45Z (18 min ago)  2 s ago        12,345     7     1');
  expect(block(all, 'SINK')[1]).toMatch(/^siem +elasticsearch +stopped +nothing +not known +0$/);
  expect(problemsOf(all)[0]).toEqual([
    'No daemon runs; the state was last written 16 min ago.',
    'Nothing is lost while the service keeps its log. The daemon collects it after the next start.',
    'To do: start it (waybill run, or your service manager); the end of its log shows why it ended.',
  ]);
});

/** A ledger without a window that starts at 02:54. */
function firstHour(change: Partial<SourceSnapshot> = {}): SourceSnapshot {
  const start = micros('2026-11-20T02:54:00Z');
  const windows = { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 };
  return source({
    frontier: start,
    closedUntil: start,
    coverage: coverage({ startsAt: start, liveFrom: start, read: [], windows }),
    ...change,
  });
}

test('the summary and the line on the clock name the same time of the first proof', () => {
  const measuring = firstHour({ clock: { remainingMs: 120_000, answersMissing: 0 }, nextProof: micros('2026-11-20T03:15:00Z') });
  const all = lines({ sources: [measuring] }, { width: 120 });
  expect(all[0]).toContain('first proof about 03:15 UTC');
  expect(block(all, 'SOURCE').at(-1)).toContain('next window proven about 03:15 UTC');
  // Without a running daemon the time follows from the edges of windows: the first ends at 03:00.
  expect(lines({ sources: [firstHour()] }, { width: 120 })[0]).toContain('first proof about 03:15 UTC');
});

test('a sink whose filter has passed no record is named', () => {
  expect(lines({ sinks: [sink({ unselected: 60, hasDelivered: false })] })).toContain('siem: 0 of 60 records passed its filter');
  expect(lines({ sinks: [sink()] }).join('\n')).not.toContain('filter');
});

test('a source without a proven window shows no time of completeness', () => {
  const [, row = ''] = block(lines({ sources: [firstHour()] }, { width: 120 }), 'SOURCE');
  expect(row).toMatch(/^production {2}active {2}not yet {2,}/);
  expect(statusJson(snapshot({ sources: [firstHour()] })).sources[0]?.completeUntil).toBeNull();
  // A first window that is a gap proves nothing either.
  const windows = { all: 1, proven: 0, final: 0, gap: 1, accepted: 0, inDoubt: 0 };
  const gap = firstHour({ closedUntil: micros('2026-11-20T03:00:00Z'), windows });
  const all = lines({ sources: [{ ...gap, coverage: coverage({ startsAt: gap.frontier, liveFrom: gap.frontier, read: [], windows }) }] });
  expect(block(all, 'SOURCE')[1]).toContain('not yet');
  expect(all[0]).not.toContain('complete until');
});

test('while the clock of the service is measured, a line says how long, and when the next window can be proven', () => {
  const waiting = source({ clock: { remainingMs: 180_000, answersMissing: 0 }, nextProof: micros('2026-11-20T03:08:00Z') });
  const all = lines({ sources: [waiting] }, { width: 120 });
  expect(block(all, 'SOURCE').at(-1)).toBe(
    'production waits: the clock of the service is being measured, at least 3 min left; next window proven about 03:08 UTC',
  );
  const few = source({ clock: { remainingMs: 0, answersMissing: 4 } });
  expect(block(lines({ sources: [few] }, { width: 120 }), 'SOURCE').at(-1)).toBe(
    'production waits: the clock of the service is being measured, 4 more responses needed',
  );
  // The time is readable at any width.
  const narrow = block(lines({ sources: [waiting] }, { width: 60 }), 'SOURCE');
  expect(narrow.join(' ').replace(/\s+/g, ' ')).toContain('being measured, at least 3 min left; next window proven about 03:08 UTC');
});

test('at 80 columns a column that does not fit is omitted, and the journal is wrapped', () => {
  const delays = { since: 1, to: 2, recent: delayCounts({ 2: 50 }), before: delayCounts({}), longest: 3_000 };
  const all = lines({
    sources: [source({ delays, id: 'acme-1' })],
    journal: {
      bytes: 65_745_715,
      setAside: 65_536_000,
      maxSize: 10_737_418_240,
      head: 1_234_567,
      paused: 'journal_full: 97 % of it are used',
      directory: '/s',
    },
  });
  expect(all.join('\n')).not.toMatch(/DELAY|…/);
  expect(block(all, 'JOURNAL').join(' ').replace(/ +/g, ' ')).toBe(
    'JOURNAL 205 KiB of 10 GiB used (62.5 MiB more reserved), 12,345 records and 1,222,222 ledger lines in 19 d, PAUSED: journal_full: 97 % of it are used waybill 0.1.0',
  );
});

test('texts of a server cannot control the terminal or add lines', () => {
  const text = statusText(snapshot({ sources: [source({ trouble: 'a\u001b[2J\nTRAIL WHOLE\u202e' })] }), plain);
  expect(text).toContain('a\\u001b[2J\\u000aTRAIL WHOLE\\u202e');
  expect(text).not.toMatch(/[\u001b\u202e]/);
});

test('colour only on request, and only for the summary', () => {
  expect(statusText(snapshot(), plain)).not.toContain('\u001b');
  const [summary, ...rest] = statusText(snapshot(), { ...plain, color: true }).split('\n');
  expect(summary).toBe('\u001b[32;1mCOMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago)\u001b[0m');
  expect(rest.join('')).not.toContain('\u001b');
});

test('in another zone the head of the column names it', () => {
  const all = lines({}, { tz: 'America/New_York', width: 120 });
  expect(all[0]).toBe('COMPLETE SO FAR AND DELIVERED, complete until 21:45 America/New_York (18 min ago)');
  expect(block(all, 'SOURCE')[0]).toContain('COMPLETE UNTIL (America/New_York)');
  expect(block(all, 'SOURCE')[1]).toContain('  21:45 (18 min ago)  ');
});

test('without a Date in responses ages use the local clock, and the missing time is reported once the ledger is late', () => {
  const undated = (known: string): SourceSnapshot =>
    source({
      ...{ serverNow: undefined, clockOffsetSeconds: undefined, frontier: micros(known), undated: { known: micros(known) } },
      coverage: coverage({ read: [{ from: coverage().startsAt ?? 0, to: micros(known) }] }),
    });
  const late = lines({ sources: [undated('2026-11-20T02:10:00Z')] }, { width: 200 });
  expect(late[0]).toBe('INCOMPLETE: not covered: 2026-11-20 02:10–02:18 UTC, collection is behind');
  expect(late.join('\n')).toContain('Responses of production carry no Date, and its newest record is from 53 min ago.');
  expect(lines({ sources: [undated('2026-11-20T02:20:00Z')] })).toContain('Nothing to do.');
});

test('a failed calibration is reported', () => {
  const all = lines({ sources: [source({ uncalibrated: '504 timeout' })] }, { width: 200 }).join('\n');
  expect(all).toContain('The calibration of production fails: 504 timeout.');
});

test('a service clock hours behind is reported: the present cannot be proven', () => {
  const all = lines({ sources: [source({ clockOffsetSeconds: -7_300 })] }, { width: 200 }).join('\n');
  expect(all).toContain('The clock of the service of production is 2 h behind the clock of this machine.');
  expect(lines({ sources: [source({ clockOffsetSeconds: -3_500 })] })).toContain('Nothing to do.');
  const ahead = lines({ sources: [source({ clockOffsetSeconds: 720 })] }, { width: 200 }).join('\n');
  expect(ahead).toContain('The clock of the service of production is 12 min ahead of the clock of this machine.');
});

test('the journal line states when it is full, and the sink that keeps it growing', () => {
  const journal = { bytes: 200 * 2 ** 20, maxSize: 1_000 * 2 ** 20, head: 3_000, pruned: 1_000, paused: undefined, directory: '/s' };
  const all = lines({ journal, sinks: [sink({ state: 'blocked', lagEntries: 1_000, lagSeconds: 3_600 })] });
  expect(block(all, 'JOURNAL').join(' ').replace(/ +/g, ' ')).toMatch(
    /records and 0 ledger lines in 19 d, full in about 9 h unless siem resumes waybill/,
  );
});
