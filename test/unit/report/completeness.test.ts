/**
 * The summary of a period, case by case: collected time, due time, delivered entries, in numbers
 * that a reader can follow.
 */
import { describe, expect, test } from 'vitest';
import type { Coverage, SinkCoverage } from '../../../src/model/snapshot.ts';
import { completeness, dueAfterSeconds } from '../../../src/report/completeness.ts';
import { statusCompleteness } from '../../../src/report/status-summary.ts';
import { summaryOf } from '../../../src/report/summary.ts';
import type { Facts } from '../../../src/report/completeness.ts';
import { coverage as sound, now as snapshotNow, sink, snapshot, source } from '../../support/report/snapshots.ts';

/** µs of a time of day on 20 November 2026. */
function at(clock: string): number {
  return Date.parse(`2026-11-20T${clock}Z`) * 1_000;
}

/**
 * A ledger that starts at 00:00 with a close delay of 15 min: at 12:00 everything up to 11:15 is
 * due.
 */
function covered(until: string, change: Partial<Coverage> = {}): Coverage {
  return {
    ...{ startsAt: at('00:00:00'), liveFrom: at('00:00:00'), history: [], sinks: [] },
    read: [{ from: at('00:00:00'), to: at(until) }],
    windows: { all: 45, proven: 45, final: 40, gap: 0, accepted: 0, inDoubt: 0 },
    ...change,
  };
}

type SourceFacts = Facts['sources'][number];

function polled(change: Partial<SourceFacts> = {}): SourceFacts {
  return {
    id: 'production',
    state: 'active',
    closeDelaySeconds: 900,
    serverNow: undefined,
    trouble: undefined,
    held: undefined,
    ...change,
  };
}

function facts(coverage: Coverage, change: Partial<Facts> = {}): Facts {
  return {
    ...{ now: at('12:00:00'), from: undefined, to: undefined, stopped: undefined, paused: undefined, sinks: [], sources: [polled()] },
    coverage: new Map([['production', coverage]]),
    ...change,
  };
}

function textOf(given: Facts): string {
  return summaryOf(completeness(given), 'UTC');
}

function lacking(id: string, windows: number, missing: number, deadLetters = 0, losses: Partial<SinkCoverage> = {}): SinkCoverage {
  return { id, windows, lacking: missing, lost: 0, deadLetters, ...losses };
}

test('a ledger read up to the due time is complete so far, and complete for a period that it covers', () => {
  expect(textOf(facts(covered('11:15:00')))).toBe('COMPLETE SO FAR AND DELIVERED');
  expect(textOf(facts(covered('11:15:00'), { to: at('11:15:00') }))).toBe('COMPLETE AND DELIVERED');
  expect(textOf(facts(covered('11:15:00'), { to: at('11:15:01') }))).toBe('COMPLETE SO FAR AND DELIVERED');
  // Time proven before it is due counts as proven.
  expect(textOf(facts(covered('11:30:00'), { to: at('11:30:00') }))).toBe('COMPLETE AND DELIVERED');
});

test('time is due after two close delays and a window, which is 10 s to 1 h wide', () => {
  expect([0, 5, 10, 300, 900, 3_600, 7_200].map(dueAfterSeconds)).toEqual([10, 20, 30, 900, 2_700, 10_800, 18_000]);
  expect(textOf(facts(covered('11:14:59')))).toBe('INCOMPLETE: not covered: 2026-11-20 11:14:59–11:15 UTC, collection is behind');
  // The clock that is behind applies, as for closing windows.
  const behind = facts(covered('11:14:59'), { sources: [polled({ serverNow: at('11:59:59') })] });
  expect(completeness(behind)).toMatchObject({ complete: true, uncovered: [], soFar: true });
  const ahead = facts(covered('11:14:59'), { sources: [polled({ serverNow: at('13:00:00') })] });
  expect(completeness(ahead).uncovered).toMatchObject([{ from: at('11:14:59'), to: at('11:15:00') }]);
});

test.each<[string, Partial<Facts>, Partial<Coverage>, string]>([
  [
    'before the start of the ledger',
    { from: Date.parse('2026-11-01') * 1_000 },
    {},
    '2026-11-01 00:00–2026-11-20 00:00 UTC, before the start of the ledger',
  ],
  [
    'the service fails',
    { sources: [polled({ trouble: 'no answer yet', lastSuccess: 1 })] },
    { read: [] },
    '2026-11-20 00:00–11:15 UTC, the source fails: no answer yet',
  ],
  [
    'collection is suspended',
    { sources: [polled({ state: 'suspended', held: { reason: 'rows', message: 'fewer' }, trouble: 'suspended (rows)' })] },
    { read: [{ from: at('00:00:00'), to: at('09:00:00') }] },
    '2026-11-20 09:00–11:15 UTC, collection is suspended (rows): fewer',
  ],
  [
    'the daemon is not running',
    { stopped: { since: at('08:00:00') }, sources: [polled({ trouble: 'the daemon does not run' })] },
    { read: [{ from: at('00:00:00'), to: at('07:45:00') }] },
    '2026-11-20 07:45–11:15 UTC, the daemon is not running',
  ],
  [
    'the journal is full',
    { paused: 'journal_full', sources: [polled({ trouble: 'x' })] },
    { read: [{ from: at('00:00:00'), to: at('07:45:00') }] },
    '2026-11-20 07:45–11:15 UTC, collection is paused (journal_full)',
  ],
  [
    'the source is not in the configuration',
    { sources: [polled({ state: 'unconfigured', closeDelaySeconds: 0, trouble: 'x' })] },
    {},
    '2026-11-20 11:15–11:59:50 UTC, the source is not in the configuration',
  ],
  [
    'the source was retired within the period',
    { from: at('11:00:00'), sources: [polled({ state: 'retired', closeDelaySeconds: 0 })] },
    {},
    '2026-11-20 11:15–11:59:50 UTC, the source was retired',
  ],
  [
    'history between two ranges was not requested',
    {},
    {
      startsAt: at('00:00:00'),
      liveFrom: at('06:00:00'),
      history: [{ from: at('00:00:00'), to: at('02:00:00'), paused: false }],
      read: [
        { from: at('00:00:00'), to: at('02:00:00') },
        { from: at('06:00:00'), to: at('11:15:00') },
      ],
    },
    '2026-11-20 02:00–06:00 UTC, no backfill was requested',
  ],
  [
    'history that is being read',
    {},
    {
      startsAt: at('00:00:00'),
      liveFrom: at('06:00:00'),
      history: [{ from: at('00:00:00'), to: at('06:00:00'), paused: false }],
      read: [
        { from: at('00:00:00'), to: at('02:00:00') },
        { from: at('06:00:00'), to: at('11:15:00') },
      ],
    },
    '2026-11-20 02:00–06:00 UTC, the backfill is not finished',
  ],
  [
    'history that is paused',
    { from: at('01:00:00'), to: at('05:00:00') },
    {
      startsAt: at('00:00:00'),
      liveFrom: at('06:00:00'),
      history: [{ from: at('00:00:00'), to: at('06:00:00'), paused: true }],
      read: [],
    },
    '2026-11-20 01:00–05:00 UTC, the backfill is paused',
  ],
])('due but unproven time is named with its reason: %s', (_, change, part, hole) => {
  const given = facts(covered('11:15:00', part), change);
  expect(textOf(given)).toBe(`INCOMPLETE: not covered: ${hole}`);
  expect(completeness(given)).toMatchObject({ complete: false, delivered: true, final: false });
});

test('adjacent holes with one reason are merged, and more than three are counted', () => {
  const hours = ['01', '03', '05', '07', '09'].map((hour) => ({ from: at(`${hour}:00:00`), to: at(`${hour}:30:00`), paused: false }));
  const read = [...hours, { from: at('10:00:00'), to: at('11:15:00') }].map(({ from, to }) => ({ from, to }));
  const given = facts(covered('11:15:00', { startsAt: at('01:00:00'), liveFrom: at('10:00:00'), history: hours, read }));
  expect(completeness(given).uncovered.map(({ from, to }) => [from, to])).toEqual([
    [at('01:30:00'), at('03:00:00')],
    [at('03:30:00'), at('05:00:00')],
    [at('05:30:00'), at('07:00:00')],
    [at('07:30:00'), at('09:00:00')],
    [at('09:30:00'), at('10:00:00')],
  ]);
  expect(textOf(given)).toMatch(/; 2026-11-20 05:30–07:00 UTC, no backfill was requested; and 2 more$/);
  const twoRanges = [
    { from: at('00:00:00'), to: at('01:00:00'), paused: false },
    { from: at('01:00:00'), to: at('02:00:00'), paused: false },
  ];
  const beside = facts(
    covered('11:15:00', { liveFrom: at('02:00:00'), history: twoRanges, read: [{ from: at('02:00:00'), to: at('11:15:00') }] }),
  );
  expect(completeness(beside).uncovered).toMatchObject([{ from: at('00:00:00'), to: at('02:00:00') }]);
});

test('time is divided where its reason changes: at the start of the ledger, and where requested history ends', () => {
  const late = covered('11:15:00', { read: [{ from: at('01:00:00'), to: at('11:15:00') }] });
  expect(completeness(facts(late, { from: at('00:00:00') - 3_600_000_000 })).uncovered).toMatchObject([
    { from: at('00:00:00') - 3_600_000_000, to: at('00:00:00'), reason: 'before_ledger' },
    { from: at('00:00:00'), to: at('01:00:00'), reason: 'behind' },
  ]);
  const history = [{ from: at('00:00:00'), to: at('04:00:00'), paused: false }];
  const live = { liveFrom: at('06:00:00'), history, read: [{ from: at('06:00:00'), to: at('11:15:00') }] };
  expect(completeness(facts(covered('11:15:00', live))).uncovered).toMatchObject([
    { from: at('00:00:00'), to: at('04:00:00'), reason: 'history_unread' },
    { from: at('04:00:00'), to: at('06:00:00'), reason: 'not_requested' },
  ]);
});

test('a period that ends before the ledger starts names that start', () => {
  const none = { windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 }, read: [] };
  const before = facts(covered('11:15:00', none), { to: at('00:00:00') - 3_600_000_000 });
  expect(textOf(before)).toBe('INCOMPLETE: nothing is proven; the ledger starts after this period, at 2026-11-20 00:00:00 UTC');
});

test('a long error of the source is shortened in the summary', () => {
  const failing = facts(covered('09:00:00'), { sources: [polled({ trouble: 'x'.repeat(500), lastSuccess: 1 })] });
  expect(textOf(failing)).toMatch(/, the source fails: x{160}…$/);
});

test('the time of the first proof is a whole number of microseconds after a close delay that was measured', () => {
  const none = { windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 } };
  const measured = polled({ closeDelaySeconds: 900.000_000_75 });
  const { nothingDue } = completeness(facts(covered('11:15:00', none), { from: at('11:59:40'), to: undefined, sources: [measured] }));
  expect(nothingDue?.firstProof).toSatisfy(Number.isInteger);
});

test('a period without due time states when the first proof is due, and is not complete', () => {
  const none = { windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 } };
  const of = (from: string, to: string | undefined, change: Partial<SourceFacts> = {}): string =>
    textOf(facts(covered('11:15:00', none), { from: at(from), to: to === undefined ? undefined : at(to), sources: [polled(change)] }));
  expect(of('11:30:00', undefined)).toBe('NOTHING DUE YET: first proof now');
  expect(of('11:59:40', undefined)).toBe('NOTHING DUE YET: first proof about 12:15 UTC');
  expect(of('11:30:00', undefined, { nextProof: at('12:04:00') })).toBe('NOTHING DUE YET: first proof about 12:04 UTC');
  // Entirely in the future, with and without an end.
  expect(of('13:00:00', '14:00:00')).toBe('NOTHING DUE YET: first proof about 13:30 UTC');
  expect(of('13:00:00', undefined)).toBe('NOTHING DUE YET: first proof about 13:30 UTC');
  expect(of('11:59:40', undefined, { undated: { known: undefined } })).toBe('NOTHING DUE YET: first proof with its first record');
  const { complete } = completeness(facts(covered('11:15:00', none), { from: at('11:59:40') }));
  expect(complete).toBe(false);
  // Due and unproven time makes no such period.
  expect(of('11:14:59', undefined)).not.toContain('NOTHING DUE YET');
});

test('a gap, an accepted gap and a window in doubt each make it incomplete', () => {
  const of = (windows: Partial<Coverage['windows']>): string =>
    textOf(facts(covered('11:15:00', { windows: { all: 45, proven: 45, final: 0, gap: 0, accepted: 0, inDoubt: 0, ...windows } })));
  expect(of({ gap: 1 })).toBe('INCOMPLETE: 1 gap');
  expect(of({ accepted: 2 })).toBe('INCOMPLETE: 2 accepted gaps');
  expect(of({ inDoubt: 1 })).toBe('INCOMPLETE: 1 window in doubt');
  expect(of({ gap: 6, accepted: 1, inDoubt: 2 })).toBe('INCOMPLETE: 6 gaps, 1 accepted gap, 2 windows in doubt');
  expect(of({ all: 0 })).toBe('INCOMPLETE: nothing is proven');
  const all = {
    windows: { all: 45, proven: 44, final: 0, gap: 1, accepted: 0, inDoubt: 0 },
    read: [{ from: at('00:00:00'), to: at('09:00:00') }],
  };
  expect(textOf(facts(covered('09:00:00', all)))).toBe('INCOMPLETE: 1 gap; not covered: 2026-11-20 09:00–11:15 UTC, collection is behind');
});

test('missing entries of sinks are named with the last error and the dead letters', () => {
  const of = (sinks: readonly SinkCoverage[], change: Partial<Facts> = {}): string => textOf(facts(covered('11:15:00', { sinks }), change));
  const errors = {
    sinks: [
      { id: 'splunk', lastError: '503 code 9 Server is busy' },
      { id: 'lake', lastError: undefined },
    ],
  };
  expect(of([lacking('splunk', 46, 46), lacking('lake', 46, 0)], errors)).toBe(
    'COMPLETE SO FAR, NOT ALL DELIVERED: splunk lacks 46 of 46 windows (503 code 9 Server is busy)',
  );
  expect(of([lacking('splunk', 46, 2, 3)], { ...errors, to: at('11:15:00') })).toBe(
    'COMPLETE, NOT ALL DELIVERED: splunk lacks 2 of 46 windows (503 code 9 Server is busy; 3 dead letters)',
  );
  expect(of([lacking('lake', 1, 1, 1)], errors)).toBe('COMPLETE SO FAR, NOT ALL DELIVERED: lake lacks 1 of 1 window (1 dead letter)');
  expect(of([lacking('lake', 2, 1)], errors)).toBe(
    'COMPLETE SO FAR, NOT ALL DELIVERED: lake lacks 1 of 2 windows (delivery is in progress)',
  );
  expect(of([lacking('lake', 2, 1)], { ...errors, stopped: { since: at('11:59:00') } })).toBe(
    'COMPLETE SO FAR, NOT ALL DELIVERED: lake lacks 1 of 2 windows (the daemon is not running)',
  );
  expect(of(['a', 'b', 'c', 'd', 'e'].map((id) => lacking(id, 1, 1)))).toMatch(/; c lacks 1 of 1 window \([^)]*\); and 2 more$/);
  const incomplete = facts(covered('09:00:00', { sinks: [lacking('lake', 2, 1)] }));
  expect(completeness(incomplete)).toMatchObject({ complete: false, delivered: false });
  expect(textOf(incomplete)).toMatch(/^INCOMPLETE: not covered/);
});

describe('windows for which no sink answers', () => {
  const period = { to: at('11:15:00') };
  const changed = { since: { at: at('03:00:05'), reason: 'selection' } } as const;
  const starts = { since: { at: at('11:00:00'), reason: 'start' } } as const;
  const of = (unanswered: number, ...sinks: SinkCoverage[]): Facts => facts(covered('11:15:00', { sinks, unanswered }), period);

  test('no sink has a window of the period: nothing is called delivered, and each sink says since when it answers', () => {
    const none = of(45, lacking('file', 0, 0, 0, changed));
    expect(textOf(none)).toBe('COMPLETE; file: no window of this period, its filter or sources changed at 2026-11-20 03:00:05 UTC');
    expect(completeness(none)).toMatchObject({ complete: true, delivered: null });
    expect(textOf(of(45, lacking('file', 0, 0, 0, changed), lacking('new', 0, 0, 0, starts)))).toBe(
      'COMPLETE; file: no window of this period, its filter or sources changed at 2026-11-20 03:00:05 UTC; new: no window of this period, it starts at 2026-11-20 11:00:00 UTC',
    );
    expect(textOf(of(45))).toBe('COMPLETE; no sink receives production');
  });

  test('some windows are before the start of every sink', () => {
    const some = of(5, lacking('file', 40, 0, 0, changed), lacking('new', 1, 0, 0, starts));
    expect(textOf(some)).toBe(
      'COMPLETE; no sink answers for 5 of 45 windows (file: its filter or sources changed at 2026-11-20 03:00:05 UTC; new: it starts at 2026-11-20 11:00:00 UTC)',
    );
    expect(completeness(some).delivered).toBe(null);
    expect(textOf(of(2, lacking('file', 43, 0)))).toBe(
      'COMPLETE; no sink answers for 2 of 45 windows (file: it does not receive this history)',
    );
  });

  test('what a sink lacks comes first; an incomplete period says nothing of sinks', () => {
    const lacks = of(5, lacking('file', 40, 1, 0, changed));
    expect(textOf(lacks)).toMatch(/^COMPLETE, NOT ALL DELIVERED: file lacks 1 of 40 windows \(.*\); no sink answers for 5 of 45 windows/);
    expect(completeness(lacks).delivered).toBe(false);
    expect(textOf(facts(covered('09:00:00', { unanswered: 45 })))).toBe(
      'INCOMPLETE: not covered: 2026-11-20 09:00–11:15 UTC, collection is behind',
    );
    expect(textOf(of(0, lacking('file', 45, 0), lacking('new', 0, 0, 0, starts)))).toBe('COMPLETE AND DELIVERED');
  });
});

test('lost windows of a sink are named before its other problems, with the reason', () => {
  const of = (...sinks: SinkCoverage[]): string => textOf(facts(covered('11:15:00', { sinks }), { to: at('11:15:00') }));
  const loss = '"siem.ndjson" was truncated from 900 to 0 bytes';
  expect(of(lacking('siem', 96, 3, 0, { lost: 3, loss }))).toBe(
    `COMPLETE, NOT ALL DELIVERED: siem lacks 3 of 96 windows (lost 3: ${loss})`,
  );
  expect(of(lacking('siem', 96, 5, 2, { lost: 1_200, loss }))).toBe(
    `COMPLETE, NOT ALL DELIVERED: siem lacks 5 of 96 windows (lost 1,200: ${loss}; 2 dead letters)`,
  );
});

describe('several sources', () => {
  const two = (first: Coverage | undefined, second: Coverage | undefined, change: Partial<Facts> = {}): Facts => ({
    ...facts(covered('11:15:00')),
    sources: [polled(), polled({ id: 'test' })],
    coverage: new Map([...(first ? [['production', first] as const] : []), ...(second ? [['test', second] as const] : [])]),
    ...change,
  });

  test('all must be complete; missing time names its source, and sinks are summed', () => {
    expect(textOf(two(covered('11:15:00'), covered('11:15:00')))).toBe('COMPLETE SO FAR AND DELIVERED');
    expect(textOf(two(covered('11:15:00'), covered('11:00:00')))).toBe(
      'INCOMPLETE: not covered: test 2026-11-20 11:00–11:15 UTC, collection is behind',
    );
    const siem = { sinks: [lacking('siem', 10, 1, 1)] };
    expect(textOf(two(covered('11:15:00', siem), covered('11:15:00', { sinks: [lacking('siem', 20, 2)] })))).toBe(
      'COMPLETE SO FAR, NOT ALL DELIVERED: siem lacks 3 of 30 windows (1 dead letter)',
    );
    const lost = { sinks: [lacking('siem', 10, 4, 0, { lost: 4, loss: 'was deleted' })] };
    const more = { sinks: [lacking('siem', 20, 2, 0, { lost: 1, loss: 'was emptied' })] };
    const none = { sinks: [lacking('siem', 5, 0)] };
    expect(textOf(two(covered('11:15:00', lost), covered('11:15:00', more)))).toContain('siem lacks 6 of 30 windows (lost 5: was emptied)');
    expect(textOf(two(covered('11:15:00', lost), covered('11:15:00', none)))).toContain('siem lacks 4 of 15 windows (lost 4: was deleted)');
  });

  test('a source whose ledger starts after the period, or that was retired before it, is not part of it', () => {
    const late = covered('11:15:00', {
      startsAt: at('10:00:00'),
      liveFrom: at('10:00:00'),
      read: [],
      windows: { ...sound().windows, all: 0 },
    });
    expect(textOf(two(covered('11:15:00'), late, { to: at('10:00:00') }))).toBe('COMPLETE AND DELIVERED');
    expect(textOf(two(covered('11:15:00'), late, { to: at('10:00:01') }))).toBe(
      'INCOMPLETE: not covered: test 2026-11-20 10:00–10:00:01 UTC, collection is behind',
    );
    // A source that started in the period must cover all of it. A period that ends where the source started can be final.
    const begun = covered('11:15:00', {
      startsAt: at('10:00:00'),
      liveFrom: at('10:00:00'),
      read: [{ from: at('10:00:00'), to: at('11:15:00') }],
    });
    expect(textOf(two(covered('11:15:00'), begun, { from: at('09:00:00'), to: at('11:00:00') }))).toBe(
      'INCOMPLETE: not covered: test 2026-11-20 09:00–10:00 UTC, before the start of the ledger',
    );
    const final = covered('11:15:00', { windows: { all: 45, proven: 45, final: 45, gap: 0, accepted: 0, inDoubt: 0 } });
    expect(completeness(two(final, late, { to: at('10:00:00') })).final).toBe(true);
    const retired = { sources: [polled(), polled({ id: 'test', state: 'retired', retiredAt: at('05:00:00') })] };
    const old = covered('05:00:00');
    expect(textOf(two(covered('11:15:00'), old, { ...retired, from: at('05:00:00'), to: at('06:00:00') }))).toBe('COMPLETE AND DELIVERED');
    expect(textOf(two(covered('11:15:00'), old, { ...retired, from: at('04:59:59'), to: at('06:00:00') }))).toBe('COMPLETE AND DELIVERED');
    // The time from the last proven window to the retirement stays uncovered, also in a part of it.
    const failed = { sources: [polled(), polled({ id: 'test', state: 'retired', retiredAt: at('07:00:00') })] };
    const within = (from: string, to: string): string => textOf(two(covered('11:15:00'), old, { ...failed, from: at(from), to: at(to) }));
    expect(within('05:30:00', '06:00:00')).toBe('INCOMPLETE: not covered: test 2026-11-20 05:30–06:00 UTC, the source was retired');
    expect(within('06:30:00', '08:00:00')).toBe('INCOMPLETE: not covered: test 2026-11-20 06:30–07:00 UTC, the source was retired');
    expect(within('07:00:00', '08:00:00')).toBe('COMPLETE AND DELIVERED');
    // If no source has a ledger in the period, nothing is proven.
    const none = { ...late, windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 } };
    expect(textOf(facts(none, { from: at('01:00:00'), to: at('02:00:00') }))).toBe(
      'INCOMPLETE: nothing is proven; not covered: 2026-11-20 01:00–02:00 UTC, before the start of the ledger',
    );
  });

  test('a source that has not started is named; if its start is known it owes the time from there', () => {
    expect(textOf(two(covered('11:15:00'), undefined))).toBe('INCOMPLETE: nothing is known of test: its ledger has not started');
    const nothing = { liveFrom: undefined, read: [], windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 } };
    expect(textOf(two(covered('11:15:00'), covered('11:15:00', { ...nothing, startsAt: at('11:30:00') })))).toBe(
      'COMPLETE SO FAR AND DELIVERED',
    );
    expect(textOf(two(covered('11:15:00'), covered('11:15:00', { ...nothing, startsAt: at('11:00:00') })))).toBe(
      'INCOMPLETE: not covered: test 2026-11-20 11:00–11:15 UTC, collection is behind',
    );
    expect(textOf(two(covered('11:15:00'), undefined, { from: at('11:00:00') }))).toBe(
      'INCOMPLETE: not covered: test 2026-11-20 11:00–11:15 UTC, collection is behind',
    );
  });
});

test('final: every window is, and no time of the period is outside the ledger or in the future', () => {
  const of = (coverage: Partial<Coverage>, change: Partial<Facts> = {}): boolean => {
    const windows = { all: 45, proven: 45, final: 45, gap: 0, accepted: 0, inDoubt: 0 };
    return completeness(facts(covered('11:15:00', { windows, ...coverage }), { to: at('11:15:00'), ...change })).final;
  };
  expect(of({})).toBe(true);
  expect(of({ windows: { all: 45, proven: 45, final: 44, gap: 0, accepted: 0, inDoubt: 0 } })).toBe(false);
  expect(of({ windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 } })).toBe(false);
  expect(of({}, { to: at('11:15:01') })).toBe(false);
  expect(of({}, { to: undefined })).toBe(true);
  expect(of({}, { to: undefined, now: at('12:00:01') })).toBe(false);
  expect(of({}, { from: Date.parse('2026-11-01') * 1_000 })).toBe(false);
  expect(of({ sinks: [lacking('siem', 1, 1)] })).toBe(true);
});

test('status covers the whole ledger until now, and the sources in the report', () => {
  const behind = sound({ read: [{ from: sound().startsAt ?? 0, to: snapshotNow - 3_600_000_000 }] });
  expect(statusCompleteness(snapshot())).toMatchObject({ complete: true, soFar: true, delivered: true });
  expect(statusCompleteness(snapshot({ sources: [source({ coverage: behind })] }))).toMatchObject({ complete: false });
  for (const mode of ['unconfigured', 'retired'])
    expect(statusCompleteness(snapshot({ sources: [source(), source({ id: 'old', state: mode, coverage: behind })] }))?.complete).toBe(
      false,
    );
  expect(statusCompleteness(snapshot({ sources: [] }))).toBeUndefined();
  const short = sound({ sinks: [lacking('siem', 412, 1)] });
  expect(
    statusCompleteness(snapshot({ sources: [source({ coverage: short })], sinks: [sink({ state: 'retrying', lastError: 'busy' })] }))
      ?.shortfalls,
  ).toMatchObject([{ id: 'siem', lacking: 1, lastError: 'busy' }]);
});
