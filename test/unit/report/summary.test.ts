import { describe, expect, test } from 'vitest';
import type { Snapshot, SourceSnapshot } from '../../../src/model/snapshot.ts';
import { ago, rfc3339, span } from '../../../src/report/format-time.ts';
import { statusSummary } from '../../../src/report/status-summary.ts';
import { statusJson } from '../../../src/report/status-json.ts';
import { coverage, delayCounts, micros, now, replay, sink, snapshot, source } from '../../support/report/snapshots.ts';

/** A source that is closed up to a time of 20 November. */
function readTo(clock: string, change: Partial<SourceSnapshot> = {}): SourceSnapshot {
  const until = micros(`2026-11-20T${clock}Z`);
  const { startsAt = 0 } = coverage();
  return source({ frontier: until, closedUntil: until, coverage: coverage({ read: [{ from: startsAt, to: until }] }), ...change });
}

const none = { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 };
const three = micros('2026-11-20T03:00:00Z');
const begins = source({
  ...{ id: 'test', frontier: three, closedUntil: three },
  coverage: coverage({ startsAt: three, liveFrom: three, read: [], windows: none }),
});
const well = 'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago)';

test.each([
  ['02:45:00', '18 min ago'],
  ['03:02:59.5', '0 s ago'],
  // The clocks of two machines differ by parts of a second.
  ['03:03:00.5', '0 s ago'],
  ['05:03:00', '2 h after now'],
])('at 03:03:00, %s is %s', (clock, text) => {
  expect(ago(micros(`2026-11-20T${clock}Z`), micros('2026-11-20T03:03:00Z'))).toBe(text);
});

// now is 03:03:00 UTC here and 03:03:01 at the service; time before 02:18:00 is due.
test.each<[string, Partial<Snapshot>, string]>([
  ['all is well', {}, well],
  ['a blocked sink', { sinks: [sink({ state: 'blocked' })] }, 'DELIVERY BLOCKED at siem; the rest is complete until 02:45 UTC'],
  [
    'two sinks whose receivers are down',
    { sinks: ['a', 'b'].map((id) => sink({ id, state: 'retrying', hasDelivered: true, attempts: 3 })) },
    '2 of 2 sinks do not deliver; the rest is complete until 02:45 UTC',
  ],
  ['one failed attempt', { sinks: [sink({ state: 'retrying', hasDelivered: true, attempts: 1 })] }, well],
  [
    'an unconfigured sink',
    { sinks: [sink({ state: 'unconfigured' })] },
    'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago)',
  ],
  [
    'a blocked sink before the first proof',
    { sources: [begins], sinks: [sink({ state: 'blocked' })] },
    'DELIVERY BLOCKED at siem; first proof about 03:30 UTC',
  ],
  [
    'a blocked sink in an incomplete trail',
    { sources: [source({ coverage: coverage({ windows: { ...none, all: 4, gap: 1 } }) })], sinks: [sink({ state: 'blocked' })] },
    'DELIVERY BLOCKED at siem; the rest is incomplete: 1 gap',
  ],
  [
    'a source that fails, and an unconfigured sink',
    {
      sources: [source({ trouble: 'no token' })],
      sinks: [sink(), sink({ id: 'b', state: 'unconfigured' }), sink({ id: 'c' })],
    },
    'COLLECTION FAILS at production; complete until 02:45 UTC',
  ],
  ['a retired sink', { sinks: [sink({ state: 'retired', trouble: 'x' })] }, well],
  ['dead letters', { sinks: [sink({ deadLetters: 1 }), sink({ deadLetters: 1_233 })] }, `${well}, 1,234 dead letters`],
  [
    'a sink that lacks windows',
    {
      sources: [source({ coverage: coverage({ sinks: [{ id: 'siem', windows: 412, lacking: 46, lost: 0, deadLetters: 0 }] }) })],
      sinks: [sink({ state: 'retrying', attempts: 2, lastError: '503 busy' })],
    },
    'COMPLETE SO FAR, NOT ALL DELIVERED: siem lacks 46 of 412 windows (delivery is in progress)',
  ],
  [
    'the oldest frontier of several sources counts',
    { sources: [source(), readTo('02:30:00', { id: 'b' })] },
    'COMPLETE SO FAR AND DELIVERED, complete until 02:30 UTC (33 min ago)',
  ],
  [
    'a gap',
    {
      sources: [
        readTo('02:45:00', { frontier: micros('2026-11-19T23:45:00Z'), coverage: coverage({ windows: { ...none, all: 4, gap: 1 } }) }),
      ],
    },
    'INCOMPLETE: 1 gap, complete until 2026-11-19 23:45 UTC',
  ],
  [
    'an accepted gap is never forgotten',
    { sources: [source({ coverage: coverage({ windows: { ...none, all: 4, accepted: 2 } }) })] },
    'INCOMPLETE: 2 accepted gaps, read until 02:45 UTC',
  ],
  [
    'collection is suspended',
    { sources: [source({ state: 'suspended' }), source({ id: 'b' })] },
    'COLLECTION SUSPENDED at production; the rest is complete until 02:45 UTC',
  ],
  [
    'collection is suspended before the first proof',
    { sources: [{ ...begins, state: 'suspended' }] },
    'COLLECTION SUSPENDED at test; nothing is proven',
  ],
  [
    'the frontier stands still',
    { sources: [readTo('02:17:59')] },
    'INCOMPLETE: not covered: 2026-11-20 02:17:59–02:18 UTC, collection is behind',
  ],
  [
    'the last second before that',
    { sources: [readTo('02:18:00')] },
    'COMPLETE SO FAR AND DELIVERED, complete until 02:18 UTC (45 min ago)',
  ],
  [
    'a daemon that stopped a while ago',
    { stopped: { since: micros('2026-11-20T02:50:30Z') }, sources: [source({ trouble: 'the daemon does not run' })] },
    'DAEMON NOT RUNNING since about 02:50 UTC (12 min ago); COMPLETE SO FAR AND DELIVERED',
  ],
  [
    'a daemon that stopped so long ago that time is not covered',
    { stopped: { since: micros('2026-11-20T01:20:00Z') }, sources: [readTo('01:03:00')] },
    'DAEMON NOT RUNNING since about 01:20 UTC (1 h ago); INCOMPLETE: 1 range not covered',
  ],
  [
    'without a Date and a record the time of the first proof is unknown',
    { sources: [{ ...begins, serverNow: undefined, undated: { known: undefined } }] },
    'NOTHING DUE YET: first proof with its first record',
  ],
  ['the start', { sources: [begins] }, 'NOTHING DUE YET: first proof about 03:30 UTC'],
  [
    'the beginning of a new state',
    { sources: [begins], created: now - 32_000_000 },
    'NOTHING DUE YET: first proof about 03:30 UTC, state created 32 s ago',
  ],
  [
    'before the first answer',
    { sources: [{ ...begins, frontier: 0, closedUntil: 0, polledUntil: 0, lastSuccess: undefined, coverage: undefined }] },
    'INCOMPLETE: nothing is proven; nothing is known of test: its ledger has not started',
  ],
  ['a source that is added later', { sources: [source(), begins] }, 'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago)'],
  [
    'a state as old as 59 minutes',
    { created: micros('2026-11-20T02:04:00Z') },
    'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC, state created 59 min ago',
  ],
  ['a state of an hour', { created: now - 3_600_000_000 }, well],
  [
    'paused',
    { journal: { bytes: 97, maxSize: 100, head: 1, paused: 'journal_full', directory: '/state' } },
    'COLLECTION PAUSED: the journal is full; complete until 02:45 UTC',
  ],
  ['no source', { sources: [] }, 'NO SOURCE is configured'],
  [
    'a source that is not in the configuration',
    { sources: [source({ state: 'unconfigured' })] },
    'NO SOURCE is polled; COMPLETE SO FAR AND DELIVERED',
  ],
  [
    'an unconfigured source owes its time as in the report',
    { sources: [source(), readTo('00:00:00', { id: 'old', state: 'unconfigured' })] },
    'INCOMPLETE: 1 range not covered, read until 02:45 UTC',
  ],
  [
    'a retired source owes the time up to its retirement',
    { sources: [source(), readTo('00:00:00', { id: 'old', state: 'retired', retiredAt: micros('2026-11-20T01:00:00Z') })] },
    'INCOMPLETE: not covered: old 2026-11-20 00:00–01:00 UTC, the source was retired',
  ],
  [
    'a retired source that was read up to its retirement',
    { sources: [source(), readTo('01:00:00', { id: 'old', state: 'retired', retiredAt: micros('2026-11-20T01:00:00Z') })] },
    well,
  ],
  [
    'the clock of the service is being measured, so the proof is not due before it is known',
    {
      sources: [
        readTo('02:00:00', {
          ...{ frontier: micros('2026-11-20T00:00:00Z'), nextProof: micros('2026-11-20T03:07:00Z') },
          ...{ clock: { remainingMs: 240_000, answersMissing: 0 }, coverage: coverage({ read: [], windows: none }) },
        }),
      ],
    },
    'INCOMPLETE: nothing is proven, 1 range not covered, read until 02:00 UTC',
  ],
])('%s', (_, change, sentence) => {
  expect(statusSummary(snapshot(change))).toBe(sentence);
});

test('in another zone the time is in that zone, which is named', () => {
  expect(statusSummary(snapshot(), 'Asia/Kolkata')).toBe('COMPLETE SO FAR AND DELIVERED, complete until 08:15 Asia/Kolkata (18 min ago)');
});

test('the first window is as wide as the close delay, within 10 s and 1 h', () => {
  const at = (closeDelaySeconds: number): string => statusSummary(snapshot({ sources: [{ ...begins, closeDelaySeconds }] }));
  expect(at(7_200)).toBe('NOTHING DUE YET: first proof about 06:00 UTC');
  expect(at(180)).toBe('NOTHING DUE YET: first proof about 03:06 UTC');
});

test('status as JSON has exactly the shape of the contract', () => {
  // 90 records within 1 s, 9 within 20 s, one above 30 days.
  const delays = { since: 1, to: 2, recent: delayCounts({ 0: 40, 4: 9 }), before: delayCounts({ 0: 50, 20: 1 }), longest: 2_600_000 };
  const asked = snapshot({
    sources: [
      source({ polledUntil: micros('2026-11-20T03:02:55.25Z'), lastError: 'reset', delays }),
      source({ id: 'new', frontier: 0, closedUntil: 0, polledUntil: 0, coverage: undefined }),
    ],
    sinks: [
      sink({ lagEntries: 3, lagSeconds: 1.5, deadLetters: 2, attempts: 2, failingSince: now - 60e6, nextAttempt: now + 1e6 }),
      sink({ replays: [replay({ state: 'stopped', leftOut: 36 })] }),
    ],
    stopped: { since: now },
  });
  expect(JSON.parse(JSON.stringify(statusJson(asked)))).toEqual({
    ...{ generatedAt: '2026-11-20T03:03:00Z', created: '2026-11-01T00:00:00Z', version: '0.1.0' },
    ...{ summary: statusSummary(asked), tone: 'bad', complete: false, delivered: true, lacking: [], firstProof: null, waits: [] },
    ...{ host: null, rejected: null, nextCertificateEnd: { target: 'sources.production', at: '2027-01-01T00:00:00Z' }, problemCount: 2 },
    problems: [
      {
        what: 'No daemon runs; the state was last written 0 s ago.',
        lost: 'Nothing is lost while the service keeps its log. The daemon collects it after the next start.',
        operation: 'start it (waybill run, or your service manager); the end of its log shows why it ended.',
      },
      {
        ...{ sink: 'siem', what: 'Sink siem rejected 2 records permanently.', code: 'a dead letter' },
        lost: 'Nothing is lost: each record is kept with the message of the receiver.',
        operation: 'waybill dead-letters show --all --sink siem; then "retry" after fixing the cause, or "discard"',
      },
    ],
    journal: { bytes: 52_428_800, reserved: 0, maxSize: 10_737_418_240, head: 12_345, paused: null, forecast: null },
    sources: [
      {
        id: 'production',
        ...{ state: 'stopped', message: null, failingSince: null, nextAttempt: null, inDoubt: 0 },
        ...{ dueAfterSeconds: 2_700, lastSuccess: '2026-11-20T03:02:58Z', records: 12_345, late: 7, recountsOverdue: 0 },
        completeUntil: '2026-11-20T02:45:00Z',
        readUntil: '2026-11-20T02:45:00Z',
        polledUntil: '2026-11-20T03:02:55.25Z',
        lagSeconds: 1_081,
        gaps: 0,
        inDoubt: 0,
        lastError: 'reset',
        delays: { records: 100, p50: 1, p90: 1, p99: 20, p999: null },
      },
      {
        ...{ id: 'new', state: 'stopped', message: null, failingSince: null, nextAttempt: null, inDoubt: 0, lastError: null },
        ...{ completeUntil: null, readUntil: null, polledUntil: null, lagSeconds: null, gaps: 0 },
        ...{ dueAfterSeconds: 2_700, lastSuccess: '2026-11-20T03:02:58Z', records: 12_345, late: 7, recountsOverdue: 0 },
        delays: { records: 0, p50: null, p90: null, p99: null, p999: null },
      },
    ],
    sinks: [
      {
        id: 'siem',
        type: 'elasticsearch',
        ...{ state: 'stopped', message: null, lastSuccess: '2026-11-20T03:02:59Z', recoveredAt: null },
        acknowledged: 12_345,
        lagEntries: 3,
        lagRecords: 0,
        lagSeconds: 1.5,
        deadLetters: 2,
        unselected: null,
        lastError: null,
        ...{ hasDelivered: true, failedAttempts: 2, failingSince: '2026-11-20T03:02:00Z', nextAttempt: '2026-11-20T03:03:01Z' },
      },
      expect.objectContaining({
        replay: { archive: 'evidence', state: 'stopped', sent: 900, rejected: 0, leftOut: 36, error: null },
      }),
    ],
    stoppedSince: '2026-11-20T03:03:00Z',
  });
});

describe('time in words', () => {
  test.each([
    [-5, '0 s'],
    [89.9, '89 s'],
    [90, '1 min'],
    [1_081, '18 min'],
    [5_399, '89 min'],
    [5_400, '1 h'],
    [129_599, '35 h'],
    [129_600, '1 d'],
    [2_592_000, '30 d'],
  ])('%d seconds are %s', (seconds, words) => expect(span(seconds)).toBe(words));

  test.each([
    [0, '1970-01-01T00:00:00Z'],
    [1, '1970-01-01T00:00:00.000001Z'],
    [-1, '1969-12-31T23:59:59.999999Z'],
    [1_795_142_700_120_000, '2026-11-20T02:45:00.12Z'],
    [1_795_142_700_120_000.25, '2026-11-20T02:45:00.12Z'],
    [1_795_142_700_999_999.5, '2026-11-20T02:45:01Z'],
  ])('%d µs are %s', (at, text) => expect(rfc3339(at)).toBe(text));
});

describe('the headline', () => {
  const bad = (ids: readonly string[]) => ids.map((id) => source({ id, trouble: 'x'.repeat(500) }));
  const many = {
    sources: [
      ...bad(['a', 'b', 'c']),
      ...Array.from({ length: 17 }, (_, i) => readTo('02:30:00', { id: `s${i}`, coverage: coverage({ sinks: [] }) })),
    ],
    sinks: [
      sink({ id: 'k', state: 'blocked', lastError: 'y'.repeat(500) }),
      sink({ id: 'l', state: 'retrying', attempts: 3 }),
      ...Array.from({ length: 6 }, (_, i) => sink({ id: `t${i}` })),
    ],
  };
  const since = micros('2026-11-20T02:21:00Z');
  const failing = { code: 'source_busy', message: '503', since };
  test.each<[string, Partial<Snapshot>, string]>([
    ['counts several faults', many, '3 of 20 sources fail, 2 of 8 sinks do not deliver; the rest is complete until 02:30 UTC'],
    [
      'names a single sink with the time',
      { sinks: [sink({ id: 'splunk', state: 'blocked', failingSince: since })] },
      'DELIVERY BLOCKED at splunk since 02:21 UTC; the rest is complete until 02:45 UTC',
    ],
    [
      'names a single source with the time',
      { sources: [source({ failing, trouble: '503' })] },
      'COLLECTION FAILS at production since 02:21 UTC; complete until 02:45 UTC',
    ],
    [
      'names the full disk before its consequences',
      { journal: { ...snapshot().journal, paused: 'disk' }, sinks: [sink({ state: 'retrying', attempts: 9 })] },
      'COLLECTION PAUSED: the disk is full; complete until 02:45 UTC',
    ],
    [
      'says that the configuration on disk is rejected',
      { rejected: { since, problems: ['a', 'b'] } },
      'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC, configuration rejected',
    ],
  ])('%s', (_, change, line) => {
    expect(statusSummary(snapshot(change))).toBe(line);
  });

  test('has the same words while an outage lasts, and whether or not windows lack records by then', () => {
    const lacking = coverage({ sinks: [{ id: 'siem', windows: 412, lacking: 3, lost: 0, deadLetters: 0 }] });
    const lines = [coverage(), lacking].flatMap((covered) =>
      [3, 300].map((attempts) => {
        const sinks = [sink({ state: 'retrying', attempts, failingSince: since, lastError: `503 ${attempts}` })];
        return statusSummary(snapshot({ sources: [source({ coverage: covered })], sinks }));
      }),
    );
    expect(new Set(lines)).toEqual(new Set(['DELIVERY FAILS at siem since 02:21 UTC; the rest is complete until 02:45 UTC']));
  });

  test.each([
    [{ lacking: 0, age: '24 s' }, '11 of 28 sinks do not deliver; the rest is complete, state created 24 s ago'],
    [{ lacking: 9, age: '24 s' }, '11 of 28 sinks do not deliver, state created 24 s ago'],
    [{ lacking: 9, age: '9 d' }, '11 of 28 sinks do not deliver; the rest is complete until 02:45 UTC, not all delivered'],
  ])('does not drop that another sink lacks records to be short: %o', ({ lacking, age }, line) => {
    const sinks = Array.from({ length: 28 }, (_, i) => sink({ id: `t${i}`, ...(i < 11 && { state: 'blocked' }) }));
    const rows = sinks.map(({ id }) => ({ id, windows: 412, lacking: id === 't27' ? lacking : 0, lost: 0, deadLetters: 0 }));
    const created = now - (age === '24 s' ? 24 : 777_600) * 1e6;
    expect(statusSummary(snapshot({ created, sources: [source({ coverage: coverage({ sinks: rows }) })], sinks }))).toBe(line);
  });

  test('has at most 90 characters, whatever fails, in any zone', () => {
    const long = 'a-name-of-thirty-two-letters-aaaa';
    const unknown = source({ id: long, frontier: 0, coverage: undefined });
    const gaps = source({ id: long, coverage: coverage({ windows: { ...none, all: 4, gap: 1_111, accepted: 1_111, inDoubt: 1_111 } }) });
    for (const sources of [[unknown], [gaps, unknown], bad([long]), [source({ id: long, state: 'suspended' })], many.sources])
      for (const sinks of [[sink({ id: long, state: 'blocked', failingSince: since })], many.sinks, []])
        for (const stopped of [undefined, { since }])
          for (const tz of ['UTC', 'America/Argentina/ComodRivadavia'])
            expect(statusSummary(snapshot({ sources, sinks, stopped, created: now - 1e9 }), tz).length).toBeLessThanOrEqual(90);
  });
});

describe('in the first minutes', () => {
  const hour = micros('2026-11-20T02:00:00Z');
  const created = now - 40e6;
  const fresh = (change: Partial<SourceSnapshot> = {}): SourceSnapshot =>
    source({
      ...{ frontier: hour, closedUntil: hour, windows: none },
      ...{ clock: { remainingMs: 260_000, answersMissing: 3 }, nextProof: micros('2026-11-20T03:07:20Z') },
      coverage: coverage({ startsAt: hour, liveFrom: hour, read: [], windows: none, sinks: [] }),
      ...change,
    });
  const at = (change: Partial<SourceSnapshot>, whole: Partial<Snapshot> = {}): string =>
    statusSummary(snapshot({ created, sources: [fresh(change)], ...whole }));

  test('a state whose first proof cannot exist yet is catching up, and the page is not red', () => {
    expect(at({})).toBe('CATCHING UP: first proof about 03:07 UTC, state created 40 s ago');
    const shown = statusJson(snapshot({ created, sources: [fresh()] }));
    expect([shown.tone, shown.complete, shown.sources[0]?.state, shown.problems]).toEqual(['waiting', false, 'catching up', []]);
  });

  test('also with a start a day ago, and before the first response', () => {
    const day = micros('2026-11-19T03:00:00Z');
    const back = { frontier: day, coverage: coverage({ startsAt: day, liveFrom: day, read: [], windows: none, sinks: [] }) };
    expect(at(back)).toMatch(/^CATCHING UP: first proof about 03:07 UTC/);
    const silent = { lastSuccess: undefined, serverNow: undefined, clock: undefined, nextProof: undefined, trouble: 'no answer yet' };
    expect(at(silent)).toMatch(/^CATCHING UP: waiting for the first response/);
    expect(at({ ...silent, frontier: 0, coverage: undefined })).toMatch(/^CATCHING UP: waiting for the first response/);
  });

  test.each<[string, Partial<SourceSnapshot>, Partial<Snapshot>, RegExp]>([
    [
      'a request fails',
      { failing: { code: 'source_busy', message: '503', since: created }, trouble: '503' },
      {},
      /^COLLECTION FAILS at production/,
    ],
    ['a request failed once', { failing: { code: 'source_busy', message: '503', since: created } }, {}, /^INCOMPLETE/],
    ['the source is suspended', { held: { reason: 'clock', message: 'ahead' } }, {}, /^COLLECTION SUSPENDED/],
    ['the daemon has stopped', {}, { stopped: { since: now } }, /^DAEMON NOT RUNNING/],
    ['the disk is full', {}, { journal: { ...snapshot().journal, paused: 'disk' } }, /^COLLECTION PAUSED/],
    // The clock takes 5 min, the window of a close delay of 15 min another 15 min.
    ['it lasts too long', {}, { created: now - 1_300e6 }, /^INCOMPLETE: nothing is proven/],
  ])('it is not catching up when %s', (_, change, whole, line) => {
    expect(at(change, whole)).toMatch(line);
  });
});
