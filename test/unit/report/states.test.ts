import { expect, test } from 'vitest';
import type { SinkSnapshot, SourceSnapshot } from '../../../src/model/snapshot.ts';
import { isFailing, isStuck, sinkState, sourceState } from '../../../src/report/states.ts';
import { now, sink, snapshot, source } from '../../support/report/snapshots.ts';

// The rule: a sink that never delivered, or whose last three attempts failed, fails.
test.each([
  [{ attempts: 0 }, false],
  [{ attempts: 2, state: 'retrying' }, false],
  [{ attempts: 3, state: 'retrying' }, true],
  [{ hasDelivered: false, attempts: 0 }, false],
  [{ hasDelivered: false, attempts: 1, state: 'retrying' }, true],
  [{ attempts: 0, trouble: 'over its time' }, false],
  [{ attempts: 9, state: 'retired' }, false],
  [{ hasDelivered: false, lagSeconds: 59 }, false],
  [{ hasDelivered: false, lagSeconds: 60 }, true],
  // Attempts of a stopped daemon are unknown.
  [{ hasDelivered: false, state: 'stopped', lagSeconds: 900 }, false],
])('%j', (change, expected) => {
  expect(isFailing(sink(change))).toBe(expected);
});

const running = snapshot();
const ended = snapshot({ stopped: { since: now } });

test.each<[string, Partial<SinkSnapshot>, string, boolean]>([
  ['that delivers', {}, 'active', false],
  ['that failed twice in a row', { state: 'retrying', attempts: 2, lagSeconds: 500, lagEntries: 1 }, 'retrying', false],
  ['that failed three times in a row', { state: 'retrying', attempts: 3 }, 'retrying', true],
  ['that never delivered and failed once', { hasDelivered: false, state: 'retrying', attempts: 1 }, 'retrying', true],
  ['that never delivered while records wait for a minute', { hasDelivered: false, lagEntries: 1, lagSeconds: 60 }, 'retrying', true],
  ['that never delivered, and has had less than a minute', { hasDelivered: false, lagEntries: 1, lagSeconds: 59.9 }, 'waiting', false],
  ['that never delivered, and there is nothing to deliver', { hasDelivered: false }, 'waiting', false],
  ['that was retired', { hasDelivered: false, state: 'retired', attempts: 9 }, 'retired', false],
  ['that is blocked', { state: 'blocked' }, 'blocked', true],
  ['that is not in the configuration', { state: 'unconfigured' }, 'unconfigured', false],
  ['that failed once, over its time', { state: 'retrying', attempts: 1, trouble: 'no answer for 15 min' }, 'retrying', true],
])('a sink %s is %s, and is stuck or not', (_, change, state, stuck) => {
  const given = sink(change);
  expect([sinkState(given, running), isStuck(given, running)]).toEqual([state, stuck]);
});

test('without a daemon a sink is stopped, unless it was removed', () => {
  const states = ['active', 'stopped', 'blocked', 'unconfigured', 'retired'].map((state) => sinkState(sink({ state }), ended));
  expect(states).toEqual(['stopped', 'stopped', 'stopped', 'unconfigured', 'retired']);
});

const failing = { code: 'source_busy', message: '503', since: now };
const none = { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 };
const held = { reason: 'rows', message: '80 windows lost records' } as const;
test.each<[string, Partial<SourceSnapshot>, string]>([
  ['whose requests are answered', {}, 'active'],
  ['whose single request failed', { failing }, 'active'],
  ['whose requests fail', { failing, trouble: '503' }, 'failing'],
  ['that never got a token', { failing, trouble: '401', lastSuccess: undefined, frontier: 0, windows: none }, 'failing'],
  ['whose requests hang', { trouble: 'no answer yet' }, 'failing'],
  [
    'whose first request has not ended',
    { trouble: 'no answer yet', lastSuccess: undefined, windows: none, frontier: now - 1e6 },
    'waiting',
  ],
  ['without a start yet', { lastSuccess: undefined, frontier: 0, windows: none }, 'waiting'],
  ['whose first window is open', { windows: none, frontier: now - 60e6 }, 'waiting'],
  // Due 45 min after the frontier: twice the close delay of 15 min, and the width of a window.
  ['whose first proof is due', { windows: none, frontier: now - 2_703e6 }, 'catching up'],
  ['that is behind', { frontier: now - 3_600e6 }, 'catching up'],
  ['that reads on after a gap', { frontier: now - 3_600e6, closedUntil: now - 60e6 }, 'active'],
  ['that waits for its first dated record', { undated: { known: undefined }, frontier: now - 3_600e6, windows: none }, 'waiting'],
  ['that is suspended', { state: 'suspended', held, trouble: 'suspended (rows): …' }, 'suspended'],
  ['that is retired', { state: 'retired', frontier: 1 }, 'retired'],
  ['that is not in the configuration', { state: 'unconfigured', trouble: 'gone' }, 'unconfigured'],
])('a source %s is %s', (_, change, state) => {
  expect(sourceState(source(change), running)).toBe(state);
});

test('a paused journal pauses every source that is not suspended; without a daemon a source is stopped', () => {
  const paused = snapshot({ journal: { ...running.journal, paused: 'disk' } });
  expect([sourceState(source(), paused), sourceState(source({ held }), paused)]).toEqual(['paused', 'suspended']);
  expect([sourceState(source({ trouble: 'x' }), ended), sourceState(source({ held }), ended)]).toEqual(['stopped', 'suspended']);
});
