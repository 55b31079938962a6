/** Snapshots of a daemon for unit tests: a healthy one, which each test changes. */
import type { ReplayProgress } from '../../../src/model/journal.ts';
import type { WindowStates } from '../../../src/model/ledger.ts';
import type { Coverage, SinkSnapshot, Snapshot, SourceSnapshot } from '../../../src/model/snapshot.ts';

/** µs of a time in RFC 3339. */
export function micros(text: string): number {
  return Date.parse(text) * 1_000;
}

export const now = micros('2026-11-20T03:03:00Z');

/** 412 windows, of which some are not proven. */
export function windowStates({ gap = 0, accepted = 0, inDoubt = 0 }: Partial<WindowStates> = {}): WindowStates {
  return { all: 412, proven: 412 - gap - accepted - inDoubt, final: 300, gap, accepted, inDoubt };
}

/** The coverage of a ledger of two days without a gap, delivered completely to every sink. */
export function coverage(change: Partial<Coverage> = {}): Coverage {
  const from = micros('2026-11-18T00:00:00Z');
  return {
    ...{ startsAt: from, liveFrom: from, history: [], read: [{ from, to: micros('2026-11-20T02:45:00Z') }] },
    windows: windowStates(),
    sinks: [{ id: 'siem', windows: 412, lacking: 0, lost: 0, deadLetters: 0 }],
    ...change,
  };
}

export function source(change: Partial<SourceSnapshot> = {}): SourceSnapshot {
  return {
    id: 'production',
    state: 'active',
    trouble: undefined,
    liveFrom: change.coverage?.liveFrom ?? micros('2026-11-18T00:00:00Z'),
    frontier: micros('2026-11-20T02:45:00Z'),
    // Without a gap.
    closedUntil: change.frontier ?? micros('2026-11-20T02:45:00Z'),
    polledUntil: micros('2026-11-20T03:02:55Z'),
    collected: 12_345,
    late: 7,
    windows: windowStates(),
    recountsOverdue: 0,
    closeDelaySeconds: 900,
    lastSuccess: micros('2026-11-20T03:02:58Z'),
    lastRecord: micros('2026-11-20T03:02:41.25Z'),
    lastError: undefined,
    serverNow: micros('2026-11-20T03:03:01Z'),
    coverage: coverage(),
    clockOffsetSeconds: 1,
    ...change,
  };
}

/** A third of an archive was sent. */
export function replay(change: Partial<ReplayProgress> = {}): ReplayProgress {
  return {
    state: 'running',
    archive: 'evidence',
    first: 1,
    last: 3_000,
    times: undefined,
    at: 1_000,
    passed: 1_000,
    expected: 3_000,
    sent: 900,
    rejected: 0,
    began: micros('2026-11-20T03:02:00Z') / 1_000,
    ended: undefined,
    ...change,
  };
}

export function sink(change: Partial<SinkSnapshot> = {}): SinkSnapshot {
  return {
    id: 'siem',
    type: 'elasticsearch',
    state: 'active',
    trouble: undefined,
    acknowledged: 12_345,
    lagEntries: 0,
    lagRecords: 0,
    lagSeconds: 0,
    deadLetters: 0,
    lastSuccess: micros('2026-11-20T03:02:59Z'),
    lastError: undefined,
    hasDelivered: true,
    ...change,
  };
}

export function snapshot(change: Partial<Snapshot> = {}): Snapshot {
  return {
    version: '0.1.0',
    created: micros('2026-11-01T00:00:00Z'),
    now,
    journal: { bytes: 52_428_800, maxSize: 10_737_418_240, head: 12_345, paused: undefined, directory: '/var/lib/waybill/state' },
    sources: [source()],
    sinks: [sink()],
    certificates: [{ target: 'sources.production', at: micros('2027-01-01T00:00:00Z') }],
    ...change,
  };
}

/** Counts of 21 buckets of delays: the given ones by index, 0 elsewhere. */
export function delayCounts(some: Readonly<Record<number, number>>): number[] {
  return Array.from({ length: 21 }, (_, i) => some[i] ?? 0);
}
