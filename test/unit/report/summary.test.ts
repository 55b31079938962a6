import { describe, expect, test } from 'vitest';
import type { Snapshot, SourceSnapshot } from '../../../src/model/snapshot.ts';
import { rfc3339, span } from '../../../src/report/format-time.ts';
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
const well = 'COMPLETE SO FAR AND DELIVERED, proven up to 02:45 UTC (18 min ago)';

// now is 03:03:00 UTC here and 03:03:01 at the service; time before 02:18:00 is due.
test.each<[string, Partial<Snapshot>, string]>([
  ['all is well', {}, well],
  ['a blocked sink', { sinks: [sink({ state: 'blocked' })] }, `DELIVERY FAILS at siem; ${well}, 1 sink needs attention`],
  [
    'two sinks whose receivers are down',
    { sinks: ['a', 'b'].map((id) => sink({ id, state: 'retrying', hasDelivered: true, attempts: 3 })) },
    `DELIVERY FAILS at 2 sinks; ${well}, 2 sinks need attention`,
  ],
  ['one failed attempt', { sinks: [sink({ state: 'retrying', hasDelivered: true, attempts: 1 })] }, well],
  ['an unconfigured sink', { sinks: [sink({ state: 'unconfigured' })] }, `${well}, 1 sink needs attention`],
  [
    'a blocked sink before the first proof',
    { sources: [begins], sinks: [sink({ state: 'blocked' })] },
    'DELIVERY FAILS at siem; NOTHING DUE YET: first proof about 03:30 UTC, 1 sink needs attention',
  ],
  [
    'a blocked sink in an incomplete trail',
    { sources: [source({ coverage: coverage({ windows: { ...none, all: 4, gap: 1 } }) })], sinks: [sink({ state: 'blocked' })] },
    'INCOMPLETE: 1 gap, proven up to 02:45 UTC (18 min ago), 1 sink needs attention',
  ],
  [
    'two sinks, one of them only in trouble, and a source',
    {
      sources: [source({ trouble: 'no token' })],
      sinks: [sink({ trouble: 'x' }), sink({ id: 'b', state: 'unconfigured' }), sink({ id: 'c' })],
    },
    `DELIVERY FAILS at siem; ${well}, 1 source needs attention, 2 sinks need attention`,
  ],
  ['a retired sink', { sinks: [sink({ state: 'retired', trouble: 'x' })] }, well],
  ['dead letters', { sinks: [sink({ deadLetters: 1 }), sink({ deadLetters: 1_233 })] }, `${well}, 1,234 dead letters`],
  [
    'a sink that lacks windows',
    {
      sources: [source({ coverage: coverage({ sinks: [{ id: 'siem', windows: 412, lacking: 46, lost: 0, deadLetters: 0 }] }) })],
      sinks: [sink({ state: 'retrying', attempts: 2, lastError: '503 busy' })],
    },
    'COMPLETE SO FAR, NOT ALL DELIVERED: siem lacks 46 of 412 windows (503 busy), proven up to 02:45 UTC (18 min ago)',
  ],
  [
    'the oldest frontier of several sources counts',
    { sources: [source(), readTo('02:30:00', { id: 'b' })] },
    'COMPLETE SO FAR AND DELIVERED, proven up to 02:30 UTC (33 min ago)',
  ],
  [
    'a gap',
    {
      sources: [
        readTo('02:45:00', { frontier: micros('2026-11-19T23:45:00Z'), coverage: coverage({ windows: { ...none, all: 4, gap: 1 } }) }),
      ],
    },
    'INCOMPLETE: 1 gap, proven up to 2026-11-19 23:45 UTC (3 h ago)',
  ],
  [
    'an accepted gap is never forgotten',
    { sources: [source({ coverage: coverage({ windows: { ...none, all: 4, accepted: 2 } }) })] },
    'INCOMPLETE: 2 accepted gaps, proven up to 02:45 UTC (18 min ago)',
  ],
  [
    'collection is suspended',
    { sources: [source({ state: 'suspended' }), source({ id: 'b' })] },
    `COLLECTION SUSPENDED at production; ${well}, 1 source needs attention`,
  ],
  [
    'collection is suspended before the first proof',
    { sources: [{ ...begins, state: 'suspended' }] },
    'COLLECTION SUSPENDED at test; NOTHING DUE YET: first proof about 03:30 UTC, 1 source needs attention',
  ],
  [
    'the frontier stands still',
    { sources: [readTo('02:17:59')] },
    'INCOMPLETE: not covered: 2026-11-20 02:17:59–02:18 UTC, collection is behind, proven up to 02:17 UTC (45 min ago)',
  ],
  ['the last second before that', { sources: [readTo('02:18:00')] }, 'COMPLETE SO FAR AND DELIVERED, proven up to 02:18 UTC (45 min ago)'],
  [
    'a daemon that stopped a while ago',
    { stopped: { since: micros('2026-11-20T02:50:30Z') }, sources: [source({ trouble: 'the daemon does not run' })] },
    `DAEMON NOT RUNNING since about 02:50 UTC (12 min ago); ${well}, 1 source needs attention`,
  ],
  [
    'a daemon that stopped so long ago that time is not covered',
    { stopped: { since: micros('2026-11-20T01:20:00Z') }, sources: [readTo('01:03:00')] },
    'DAEMON NOT RUNNING since about 01:20 UTC (1 h ago); INCOMPLETE: not covered: 2026-11-20 01:03–02:18 UTC, the daemon is not running, proven up to 01:03 UTC (2 h ago)',
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
    'INCOMPLETE: nothing is proven; nothing is known of test: its ledger has not started, waiting for the first response',
  ],
  ['a source that is added later', { sources: [source(), begins] }, `${well}, first proof due about 03:30 UTC of test`],
  ['a state as old as 59 minutes', { created: micros('2026-11-20T02:04:00Z') }, `${well}, state created 59 min ago`],
  ['a state of an hour', { created: now - 3_600_000_000 }, well],
  [
    'paused',
    { journal: { bytes: 97, maxSize: 100, head: 1, paused: 'journal_full', directory: '/state' } },
    `${well}, collection is paused (journal_full)`,
  ],
  ['no source', { sources: [] }, 'NO SOURCE is configured'],
  [
    'a source that is not in the configuration',
    { sources: [source({ state: 'unconfigured' })] },
    'NO SOURCE is polled; COMPLETE SO FAR AND DELIVERED, 1 source needs attention',
  ],
  [
    'an unconfigured source owes its time as in the report',
    { sources: [source(), readTo('00:00:00', { id: 'old', state: 'unconfigured' })] },
    'INCOMPLETE: not covered: old 2026-11-20 00:00–02:18 UTC, the source is not in the configuration, proven up to 02:45 UTC (18 min ago), 1 source needs attention',
  ],
  [
    'a retired source owes the time up to its retirement',
    { sources: [source(), readTo('00:00:00', { id: 'old', state: 'retired', retiredAt: micros('2026-11-20T01:00:00Z') })] },
    'INCOMPLETE: not covered: old 2026-11-20 00:00–01:00 UTC, the source was retired, proven up to 02:45 UTC (18 min ago)',
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
    'INCOMPLETE: nothing is proven; not covered: 2026-11-18 00:00–2026-11-20 02:18 UTC, the clock of the service is being measured, first proof due about 03:07 UTC',
  ],
])('%s', (_, change, sentence) => {
  expect(statusSummary(snapshot(change))).toBe(sentence);
});

test('in another zone the time is in that zone, which is named', () => {
  expect(statusSummary(snapshot(), 'Asia/Kolkata')).toBe('COMPLETE SO FAR AND DELIVERED, proven up to 08:15 Asia/Kolkata (18 min ago)');
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
      sink({ lagRecords: 3, lagSeconds: 1.5, deadLetters: 2, attempts: 2, failingSince: now - 60e6, nextAttempt: now + 1e6 }),
      sink({ replay: replay({ state: 'stopped', skipped: 36 }) }),
    ],
    stopped: { since: now },
  });
  expect(JSON.parse(JSON.stringify(statusJson(asked)))).toEqual({
    ...{ generatedAt: '2026-11-20T03:03:00Z', created: '2026-11-01T00:00:00Z', version: '0.1.0' },
    ...{ summary: statusSummary(asked), tone: 'bad', complete: false, delivered: true, lacking: [], firstProof: null, waits: [] },
    advice: {
      what: 'No daemon runs; the state was last written 0 s ago.',
      lost: 'Nothing is lost while the service keeps its log. The daemon collects it after the next start.',
      operation: 'start it (waybill run, or your service manager); the end of its log shows why it ended.',
    },
    journal: { bytes: 52_428_800, reserved: 0, maxSize: 10_737_418_240, head: 12_345, paused: null, forecast: null },
    sources: [
      {
        id: 'production',
        ...{ state: 'stopped', needsAttention: false, message: null },
        ...{ dueAfterSeconds: 2_700, lastSuccess: '2026-11-20T03:02:58Z', records: 12_345, late: 7, recountsOverdue: 0 },
        frontier: '2026-11-20T02:45:00Z',
        closedUntil: '2026-11-20T02:45:00Z',
        polledUntil: '2026-11-20T03:02:55.25Z',
        lagSeconds: 1_081,
        gaps: 0,
        inDoubt: 0,
        lastError: 'reset',
        delays: { records: 100, p50: 1, p90: 1, p99: 20, p999: null },
      },
      {
        ...{ id: 'new', state: 'stopped', needsAttention: false, message: null, lastError: null },
        ...{ frontier: null, closedUntil: null, polledUntil: null, lagSeconds: null, gaps: 0, inDoubt: 0 },
        ...{ dueAfterSeconds: 2_700, lastSuccess: '2026-11-20T03:02:58Z', records: 12_345, late: 7, recountsOverdue: 0 },
        delays: { records: 0, p50: null, p90: null, p99: null, p999: null },
      },
    ],
    sinks: [
      {
        id: 'siem',
        type: 'elasticsearch',
        ...{ state: 'active', needsAttention: false, message: null, lastSuccess: '2026-11-20T03:02:59Z' },
        acknowledged: 12_345,
        lagRecords: 3,
        lagSeconds: 1.5,
        deadLetters: 2,
        lastError: null,
        ...{ hasDelivered: true, failedAttempts: 2, failingSince: '2026-11-20T03:02:00Z', nextAttempt: '2026-11-20T03:03:01Z' },
      },
      expect.objectContaining({
        replay: { archive: 'evidence', state: 'stopped', sent: 900, rejected: 0, skipped: 36, error: null },
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
  ])('%d µs are %s', (at, text) => expect(rfc3339(at)).toBe(text));
});
