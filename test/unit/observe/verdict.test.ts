import { describe, expect, test } from 'vitest';
import type { Snapshot } from '../../../src/model.ts';
import { rfc3339, span } from '../../../src/observe/time-words.ts';
import { statusJson, verdict } from '../../../src/observe/verdict.ts';
import { micros, now, sink, snapshot, source, delayCounts } from './snapshots.ts';

const fresh = { closed: 0, gap: 0, accepted: 0 };
const begins = source({ id: 'test', windows: fresh, frontier: micros('2026-11-20T03:00:00Z'), reached: micros('2026-11-20T03:00:00Z') });

// now is 03:03:00 UTC here and 03:03:01 at the service.
test.each<[string, Partial<Snapshot>, string]>([
  ['all is well', {}, 'TRAIL WHOLE up to 02:45 UTC (18 min ago)'],
  ['a blocked sink', { sinks: [sink({ state: 'blocked' })] }, 'TRAIL WHOLE up to 02:45 UTC (18 min ago), 1 sink needs you'],
  [
    'two sinks, one of them only in trouble, and a source',
    {
      sources: [source({ trouble: 'no token' })],
      sinks: [sink({ trouble: 'x' }), sink({ id: 'b', state: 'orphaned' }), sink({ id: 'c' })],
    },
    'TRAIL WHOLE up to 02:45 UTC (18 min ago), 1 source needs you, 2 sinks need you',
  ],
  ['a sink that waits for a while', { sinks: [sink({ state: 'waiting', lagRecords: 10 })] }, 'TRAIL WHOLE up to 02:45 UTC (18 min ago)'],
  ['a retired sink', { sinks: [sink({ state: 'retired', trouble: 'x' })] }, 'TRAIL WHOLE up to 02:45 UTC (18 min ago)'],
  [
    'dead letters',
    { sinks: [sink({ deadLetters: 1 }), sink({ deadLetters: 1_233 })] },
    'TRAIL WHOLE up to 02:45 UTC (18 min ago), 1,234 dead letters',
  ],
  [
    'the oldest frontier of several sources counts',
    { sources: [source(), source({ id: 'b', frontier: micros('2026-11-20T02:30:00Z') })] },
    'TRAIL WHOLE up to 02:30 UTC (33 min ago)',
  ],
  [
    'one gap',
    { sources: [source({ gaps: 1, windows: { closed: 3, gap: 1, accepted: 0 }, frontier: micros('2026-11-19T23:45:00Z') })] },
    'TRAIL HAS 1 GAP, whole up to 2026-11-19 23:45 UTC (3 h ago)',
  ],
  [
    'gaps of two sources and an accepted one',
    { sources: [source({ gaps: 1 }), source({ gaps: 2, windows: { closed: 3, gap: 2, accepted: 1 } })] },
    'TRAIL HAS 3 GAPS, whole but for 1 accepted gap up to 02:45 UTC (18 min ago)',
  ],
  [
    'an accepted gap is never forgotten',
    { sources: [source({ windows: { closed: 3, gap: 0, accepted: 2 } })] },
    'TRAIL WHOLE but for 2 accepted gaps up to 02:45 UTC (18 min ago)',
  ],
  [
    'hold',
    { sources: [source({ mode: 'hold' }), source({ id: 'b' })] },
    'TRAIL ON HOLD at production, whole up to 02:45 UTC (18 min ago), 1 source needs you',
  ],
  [
    'the frontier stands still',
    { sources: [source({ frontier: micros('2026-11-20T02:17:59Z') })] },
    'TRAIL BEHIND, whole up to 02:17 UTC (45 min ago)',
  ],
  [
    'the last second before that is late',
    { sources: [source({ frontier: micros('2026-11-20T02:18:01Z') })] },
    'TRAIL WHOLE up to 02:18 UTC (45 min ago)',
  ],
  [
    'without a Date and a record nobody knows when the first proof is due',
    { sources: [{ ...begins, serverNow: undefined, undated: { known: undefined } }] },
    'TRAIL BEGINS, first proof due with its first record, as its answers carry no Date',
  ],
  ['the beginning', { sources: [begins] }, 'TRAIL BEGINS, first proof due about 03:30 UTC'],
  [
    'the beginning of a new state',
    { sources: [begins], created: micros('2026-11-20T03:00:00Z') },
    'TRAIL BEGINS, first proof due about 03:30 UTC, ledger begins 3 min ago',
  ],
  [
    'a start in the past is due at once',
    { sources: [{ ...begins, frontier: micros('2026-11-13T00:00:00Z') }] },
    'TRAIL BEGINS, first proof due now',
  ],
  [
    'before the first answer',
    { sources: [{ ...begins, frontier: 0, reached: 0, tip: 0, lastSuccess: undefined }] },
    'TRAIL BEGINS, first answer awaited',
  ],
  [
    'while its answers do not tell where it begins',
    { sources: [{ ...begins, frontier: 0, reached: 0, tip: 0 }] },
    'TRAIL BEGINS, where it begins is not known yet',
  ],
  [
    'a source that is added later',
    { sources: [source(), begins] },
    'TRAIL WHOLE up to 02:45 UTC (18 min ago), first proof due about 03:30 UTC of test',
  ],
  [
    'a state as old as 59 minutes, and one of an hour',
    { created: micros('2026-11-20T02:04:00Z') },
    'TRAIL WHOLE up to 02:45 UTC (18 min ago), ledger begins 59 min ago',
  ],
  ['a state of an hour', { created: now - 3_600_000_000 }, 'TRAIL WHOLE up to 02:45 UTC (18 min ago)'],
  [
    'paused',
    { journal: { bytes: 97, quota: 100, head: 1, paused: 'quota', directory: '/state' } },
    'TRAIL WHOLE up to 02:45 UTC (18 min ago), collecting is paused (quota)',
  ],
  ['no source', { sources: [] }, 'NO SOURCE is configured'],
  ['a source gone from the configuration', { sources: [source({ mode: 'orphaned' })] }, 'NO SOURCE is polled any more, 1 source needs you'],
  [
    'an orphaned source does not hold the verdict back',
    { sources: [source(), source({ id: 'old', mode: 'orphaned', frontier: micros('2026-01-01T00:00:00Z') })] },
    'TRAIL WHOLE up to 02:45 UTC (18 min ago), 1 source needs you',
  ],
])('%s', (_, change, sentence) => {
  expect(verdict(snapshot(change))).toBe(sentence);
});

test('in another zone the time is that of the zone and says so', () => {
  expect(verdict(snapshot(), 'Asia/Kolkata')).toBe('TRAIL WHOLE up to 08:15 Asia/Kolkata (18 min ago)');
});

test('the first window is as wide as settle, within 10 s and 1 h', () => {
  const at = (settleSeconds: number): string => verdict(snapshot({ sources: [{ ...begins, settleSeconds }] }));
  expect(at(7_200)).toBe('TRAIL BEGINS, first proof due about 06:00 UTC');
  expect(at(180)).toBe('TRAIL BEGINS, first proof due about 03:06 UTC');
});

test('status as JSON has the shape of the contract, to the letter', () => {
  // 90 records within 1 s, 9 within 20 s, one beyond 30 days.
  const delays = { since: 1, until: 2, recent: delayCounts({ 0: 40, 4: 9 }), before: delayCounts({ 0: 50, 20: 1 }), longest: 2_600_000 };
  const asked = snapshot({
    sources: [
      source({ tip: micros('2026-11-20T03:02:55.25Z'), lastError: 'reset', delays }),
      source({ id: 'new', frontier: 0, reached: 0, tip: 0 }),
    ],
    sinks: [sink({ lagRecords: 3, lagSeconds: 1.5, deadLetters: 2, tries: 2, failingSince: now - 60e6, nextAttempt: now + 1e6 })],
    stopped: { since: now },
  });
  expect(JSON.parse(JSON.stringify(statusJson(asked)))).toEqual({
    verdict: verdict(asked),
    version: '0.1.0',
    journal: { bytes: 52_428_800, quota: 10_737_418_240, head: 12_345 },
    sources: [
      {
        id: 'production',
        mode: 'normal',
        frontier: '2026-11-20T02:45:00Z',
        reached: '2026-11-20T02:45:00Z',
        tip: '2026-11-20T03:02:55.25Z',
        lagSeconds: 1_081,
        gaps: 0,
        lastError: 'reset',
        delays: { records: 100, p50: 1, p90: 1, p99: 20, p999: null },
      },
      {
        ...{ id: 'new', mode: 'normal', frontier: null, reached: null, tip: null, lagSeconds: null, gaps: 0, lastError: null },
        delays: { records: 0, p50: null, p90: null, p99: null, p999: null },
      },
    ],
    sinks: [
      {
        id: 'siem',
        type: 'elasticsearch',
        state: 'active',
        acked: 12_345,
        lagRecords: 3,
        lagSeconds: 1.5,
        deadLetters: 2,
        lastError: null,
        ...{ everDelivered: true, failedAttempts: 2, failingSince: '2026-11-20T03:02:00Z', nextAttempt: '2026-11-20T03:03:01Z' },
      },
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
