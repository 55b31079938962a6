/** The JSON of the status page: the summary of `status`, problems first, and a bounded size. */
import { describe, expect, test } from 'vitest';
import { History } from '../../../src/admin/page/history.ts';
import { overviewOf, windowsWanted } from '../../../src/admin/page/overview.ts';
import type { OverviewJson } from '../../../src/admin/page/overview.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { statusText } from '../../../src/report/status-text.ts';
import { statusSummary } from '../../../src/report/status-summary.ts';
import { windowStates, coverage, micros, now, sink, snapshot, source } from '../../support/report/snapshots.ts';

const window = { from: micros('2026-11-20T02:30:00Z'), to: micros('2026-11-20T02:45:00Z'), records: 38, total: 41 };

function json(
  given: Snapshot,
  id?: string,
  states: readonly { state: 'proven' | 'final' | 'gap' | 'accepted'; isInDoubt: boolean }[] = [],
) {
  const windows = states.map((state, i) => ({ ...window, from: window.from + i, ...state }));
  return JSON.parse(overviewOf(given, new Map([['production', windows]]), new History()).text(id)) as OverviewJson;
}

describe('the tone', () => {
  const nothingRead = coverage({ read: [], windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 }, sinks: [] });
  const begins = micros('2026-11-20T02:50:00Z');
  const fresh = source({
    frontier: begins,
    coverage: { ...nothingRead, startsAt: begins, liveFrom: begins },
    windows: { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 },
  });
  const lacking = coverage({ sinks: [{ id: 'siem', windows: 412, lacking: 3, lost: 0, deadLetters: 0 }] });
  const windows = windowStates({ gap: 1 });
  const gap = coverage({ windows });
  test.each([
    ['good', 'COMPLETE SO FAR AND DELIVERED', snapshot()],
    ['waiting', 'NOTHING DUE YET', snapshot({ sources: [fresh] })],
    ['warning', 'COMPLETE SO FAR, NOT ALL DELIVERED', snapshot({ sources: [source({ coverage: lacking })] })],
    ['warning', 'COMPLETE SO FAR AND DELIVERED', snapshot({ sinks: [sink({ deadLetters: 2 })] })],
    ['bad', 'INCOMPLETE', snapshot({ sources: [source({ coverage: gap, windows })] })],
    ['warning', 'NO SOURCE', snapshot({ sources: [] })],
  ])('is %s for "%s"', (tone, words, given) => {
    const made = json(given);
    expect(made.tone).toBe(tone);
    expect(made.summary).toBe(statusSummary(given));
    expect(made.summary.startsWith(words)).toBe(true);
  });
});

test('the problems are those of status', () => {
  const given = snapshot({ sinks: [sink({ state: 'blocked', lastError: '403 Invalid token', trouble: '403 Invalid token' })] });
  const [advice] = json(given).problems;
  const text = statusText(given, { color: false, tz: 'UTC', width: 1_000 });
  for (const part of [advice?.what, advice?.lost, advice?.operation]) expect(text).toContain(part);
});

test('sources and sinks with trouble come first, retired ones last', () => {
  const made = json(
    snapshot({
      sources: [
        source({ id: 'a', state: 'retired' }),
        source({ id: 'b' }),
        source({ id: 'c', trouble: '401' }),
        source({ id: 'd', windows: windowStates({ gap: 1 }) }),
      ],
      sinks: [sink({ id: 'a', state: 'retired' }), sink({ id: 'b' }), sink({ id: 'c', state: 'blocked' })],
    }),
  );
  expect(made.sources.map(({ id }) => id)).toEqual(['c', 'd', 'b', 'a']);
  expect(made.sinks.map(({ id }) => id)).toEqual(['c', 'b', 'a']);
  // The chart shows the first source.
  expect(made.detail?.source).toBe('c');
});

test('windows are letters by state, and one in doubt is not shown as proven', () => {
  const made = json(snapshot(), 'production', [
    { state: 'final', isInDoubt: false },
    { state: 'proven', isInDoubt: false },
    { state: 'proven', isInDoubt: true },
    { state: 'gap', isInDoubt: false },
    { state: 'accepted', isInDoubt: false },
  ]);
  expect(made.sources[0]?.strip).toBe('fpdga');
  expect(made.detail?.windows[3]).toEqual([window.from / 1e6, window.to / 1e6, 'g', 38, 41]);
});

test('an unknown source is a usage error, and no source selects none', () => {
  const made = overviewOf(snapshot(), new Map(), new History());
  expect(() => made.text('other')).toThrow(expect.objectContaining({ code: 'usage' }));
  expect(json(snapshot({ sources: [] })).detail).toBeNull();
});

test('a hundred sources with an hour of history stay below 128 KiB', () => {
  const ids = Array.from({ length: 100 }, (_, i) => `tenant-${i}`);
  const history = new History();
  for (let at = 0; at < 3_600; at += 2) {
    const lags = ids.map((id) => [id, { lagSeconds: 1_234.5 + at, collected: at }] as const);
    history.add({ at: now + at * 1e6, sources: new Map(lags), sinks: new Map([['siem', { lagSeconds: 123.4, acknowledged: at }]]) });
  }
  const windows = Array.from({ length: windowsWanted(100) }, (_, i) => ({
    ...window,
    from: window.from + i,
    state: 'final' as const,
    isInDoubt: false,
  }));
  const given = snapshot({ sources: ids.map((id) => source({ id, trouble: 'x'.repeat(200), lastError: 'y'.repeat(200) })) });
  const text = overviewOf(given, new Map(ids.map((id) => [id, windows])), history).text('tenant-50');
  expect(text.length).toBeLessThan(128 * 1_024);
  expect((JSON.parse(text) as OverviewJson).detail?.source).toBe('tenant-50');
});
