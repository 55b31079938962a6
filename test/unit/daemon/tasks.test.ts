import { expect, test } from 'vitest';
import { Tasks } from '../../../src/daemon/tasks.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

test('a loop ends alone: its batch is abandoned after the timeout, and the other loop continues until the signal', async () => {
  const clock = new VirtualClock(0);
  const events: string[] = [];
  const whole = new AbortController();
  const tasks = new Tasks(whole.signal, clock, noting({ write: (...[event]) => void events.push(event) }));
  const other: { stop?: AbortSignal; abandon?: AbortSignal } = {};
  tasks.start('deliver', async (stop, abandon) => {
    Object.assign(other, { stop, abandon });
    await aborted(stop);
  });
  const stuck = tasks.start('deliver', async (stop, abandon) => {
    await aborted(stop);
    events.push(`stopped after ${clock.monotonic()} ms`);
    await aborted(abandon);
    events.push(`abandoned after ${clock.monotonic()} ms`);
  });
  await stuck.end(5_000);
  expect(events).toEqual(['stopped after 0 ms', 'daemon.batch_abandoned', 'abandoned after 5000 ms']);
  expect([other.stop?.aborted, other.abandon?.aborted]).toEqual([false, false]);

  whole.abort(new Error('SIGTERM'));
  expect(await tasks.ended(() => 5_000)).toBeUndefined();
  expect(events.slice(3)).toEqual(['daemon.stopping']);
});

test('an error of a loop that is ended by a reload is fatal for all', async () => {
  const clock = new VirtualClock(0);
  const lines: unknown[] = [];
  const tasks = new Tasks(new AbortController().signal, clock, noting({ write: (...line) => void lines.push(line) }));
  const broken = new Error('broken');
  const task = tasks.start('collect', async (stop) => {
    await aborted(stop);
    throw broken;
  });
  tasks.start('deliver', aborted);
  await task.end(1_000);
  expect(await tasks.ended(() => 1_000)).toBe(broken);
  expect(lines).toEqual([
    ['daemon.failed', { name: 'collect', code: undefined, error: broken }],
    ['daemon.stopping', { reason: 'broken' }],
  ]);
});

test('a disk that is full during the shutdown is no failure of the daemon: the log tells which sink is reconciled at the next start', async () => {
  const lines: unknown[] = [];
  const stop = new AbortController();
  const tasks = new Tasks(stop.signal, new VirtualClock(0), noting({ write: (...line) => void lines.push(line) }));
  const full = new WaybillError('journal_full', 'database or disk is full');
  tasks.start('deliver siem', async (signal) => {
    await aborted(signal);
    throw full;
  });
  stop.abort(new Error('SIGTERM'));
  expect(await tasks.ended(() => 1_000)).toBeUndefined();
  expect(lines).toContainEqual(['daemon.acknowledgements_unsaved', { name: 'deliver siem', code: 'journal_full', error: full }]);
});

test('what hangs is named at the end of shutdownTimeout, and the daemon waits no longer', async () => {
  const clock = new VirtualClock(0);
  const lines: unknown[] = [];
  const stop = new AbortController();
  const tasks = new Tasks(
    stop.signal,
    clock,
    noting({ write: (event, ...[fields]) => void lines.push([clock.monotonic(), event, fields]) }),
  );
  const stuck = new Promise<void>(() => undefined);
  tasks.start('deliver siem', () => stuck);
  const daemon = tasks.limited(
    tasks.ended(() => 20_000),
    () => 20_000,
    () => ['the look-up of siem.example'],
  );
  stop.abort(new Error('SIGTERM'));
  expect(await daemon).toBeUndefined();
  expect(lines).toEqual([
    [0, 'daemon.stopping', { reason: 'SIGTERM' }],
    [16_000, 'daemon.batch_abandoned', { shutdownTimeoutMs: 16_000 }],
    [20_000, 'daemon.hung', { shutdownTimeoutMs: 20_000, waitsFor: ['deliver siem', 'the look-up of siem.example'] }],
  ]);
}, 5_000);

test('a daemon that ends in time is not called hung, also with a short shutdownTimeout', async () => {
  const clock = new VirtualClock(0);
  const events: string[] = [];
  const stop = new AbortController();
  const tasks = new Tasks(stop.signal, clock, noting({ write: (...[event]) => void events.push(event) }));
  stop.abort(new Error('SIGTERM'));
  const released = clock.sleep(900, new AbortController().signal).then(() => 'released');
  expect(
    await tasks.limited(
      released,
      () => 0,
      () => [],
    ),
  ).toBe('released');
  await clock.sleep(60_000, new AbortController().signal);
  expect(events).toEqual([]);
});
