/** Completeness reports for unit tests. */
import type { LedgerReport, LedgerReportSource, LedgerReportWindow } from '../../../src/model/ledger-report.ts';

export function window(from: string, until: string, change: Partial<LedgerReportWindow> = {}): LedgerReportWindow {
  return {
    ...{
      from,
      to: until,
      state: 'final',
      reason: null,
      message: null,
      total: 420,
      received: 420,
      records: 412,
      late: 0,
      lateLongestSeconds: null,
    },
    ...{ passes: 1, recounts: 7, recountsDue: 0, nextRecount: null, closedAt: '2026-11-20T03:00:02Z', digest: 'ab'.repeat(32) },
    query: { startTime: '2026-11-19T22:14:59.00', endTime: '2026-11-19T22:30:01.00' },
    sinks: { siem: { complete: true, deadLetters: 0 }, lake: { complete: true, deadLetters: 0 } },
    ...change,
  };
}

const noDelays = { longestSeconds: null, within: { '1h': 0, '6h': 0, '1d': 0, '3d': 0, '7d': 0, '14d': 0, '30d': 0, later: 0 } };

export function reportSource(windows: readonly LedgerReportWindow[], change: Partial<LedgerReportSource> = {}): LedgerReportSource {
  const collected = windows.reduce((sum, { records }) => sum + records, 0);
  return {
    ...{
      id: 'production',
      state: 'active',
      startsAt: '2026-11-19T22:15:00Z',
      completeUntil: '2026-11-19T22:30:00Z',
      readUntil: '2026-11-19T22:30:00Z',
    },
    ...{ collected, late: windows.reduce((sum, { late }) => sum + late, 0), lateDelays: noDelays },
    ...{ lifetime: { collected, inWindows: collected, outside: 0 }, covered: coveredBy(windows), sinks: [], suspensions: [] },
    windows,
    ...change,
  };
}

/** Windows of these tests are contiguous. */
function coveredBy(windows: readonly LedgerReportWindow[]): { from: string; to: string }[] {
  const [first, last] = [windows[0], windows.at(-1)];
  return first && last ? [{ from: first.from, to: last.to }] : [];
}

export function reportOf(sources: readonly LedgerReportSource[], change: Partial<LedgerReport> = {}): LedgerReport {
  return {
    ...{ summary: 'COMPLETE AND DELIVERED', complete: true, delivered: true, final: true, uncovered: [] },
    ...{ generatedAt: '2026-11-20T03:03:00Z', from: null, to: null, sources, operations: [] },
    ...change,
  };
}

/**
 * Three windows, of which `siem` lost the second and has not received the third yet; the first two
 * start on the same day.
 */
export const withLoss: LedgerReport = reportOf(
  [
    reportSource(
      [
        window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', { sinks: { siem: { complete: true, deadLetters: 0 } } }),
        window('2026-11-19T22:30:00Z', '2026-11-19T22:45:00Z', { sinks: { siem: { complete: false, lost: true, deadLetters: 1 } } }),
        window('2026-11-20T00:00:00Z', '2026-11-20T00:15:00Z', { sinks: { siem: { complete: false, deadLetters: 0 } } }),
      ],
      {
        sinks: [
          {
            ...{ id: 'siem', type: 'file', state: 'active', since: null, filtered: false, windows: 3, complete: 1, lost: 1 },
            ...{ records: 412, deadLetters: 1 },
          },
        ],
      },
    ),
  ],
  { summary: 'COMPLETE, NOT ALL DELIVERED: siem lacks 2 of 3 windows (lost 1: was deleted)', delivered: false },
);

/** Four windows, one in each state; all numbers differ, so that none can replace another. */
export const mixed: LedgerReport = reportOf(
  [
    reportSource(
      [
        window('2026-11-19T22:15:00Z', '2026-11-19T22:30:00Z', {
          sinks: { siem: { complete: true, deadLetters: 2 }, lake: { complete: true, deadLetters: 0 } },
        }),
        window('2026-11-19T22:30:00Z', '2026-11-19T23:30:00Z', {
          ...{ state: 'gap', reason: 'total', message: 'the service gave no usable total', total: null, received: 1_009, records: 1_000 },
          ...{ passes: 6, recounts: 1, recountsDue: null, nextRecount: '2026-11-20T05:30:00Z', closedAt: null },
        }),
        window('2026-11-19T23:30:00Z', '2026-11-20T00:00:00Z', { state: 'accepted', reason: 'count', records: 17 }),
        window('2026-11-20T00:00:00Z', '2026-11-20T00:00:01Z', {
          ...{ state: 'proven', total: 3, received: 3, records: 2, late: 3, lateLongestSeconds: 22_320.5 },
          ...{ recounts: 2, recountsDue: 5, nextRecount: '2026-11-20T06:00:01.5Z' },
          sinks: { siem: { complete: false, deadLetters: 1 } },
        }),
      ],
      {
        readUntil: '2026-11-20T00:15:00Z',
        lateDelays: { longestSeconds: 22_320.5, within: { ...noDelays.within, '1h': 2, '1d': 1 } },
        lifetime: { collected: 5_000, inWindows: 1_431, outside: 3_569 },
        sinks: [
          {
            ...{ id: 'siem', type: 'file', state: 'active', since: null, filtered: false, windows: 4, complete: 3, records: 1_427 },
            ...{ lost: 0, deadLetters: 3 },
          },
          {
            ...{ id: 'lake', type: 'file', state: 'active', since: '2026-11-19T22:00:00Z', filtered: true, windows: 3, complete: 3 },
            ...{ lost: 0, records: null, deadLetters: 0 },
          },
        ],
      },
    ),
  ],
  { summary: 'INCOMPLETE: 1 gap, 1 accepted gap', complete: false, delivered: false, final: false },
);
