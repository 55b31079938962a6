/**
 * `check` on a sink that does not respond or throws: one line that names sink and setting, and the
 * other sinks are checked.
 */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { checkSink } from '../../../src/cli/commands/check/sink.ts';
import type { SinkConfig } from '../../../src/config/load.ts';
import type { Clock } from '../../../src/model/time.ts';
import type { Finding, SinkContext } from '../../../src/sink/define.ts';
import { silentLog } from '../../../src/telemetry/discard.ts';

const context = (clock: Clock = systemClock): SinkContext => ({ id: 'siem', format: 'ecs', log: silentLog, clock });

const never = new AbortController().signal;

function sinkThat(check: (signal: AbortSignal) => Promise<readonly Finding[]>): SinkConfig {
  const definition = {
    guarantees: [{ delivery: 'exactly once', duplicates: '0', losses: '0' }],
    check: (_settings: unknown, _context: unknown, signal: AbortSignal) => check(signal),
  };
  return { id: 'siem', type: 'model', format: 'ecs', settings: { nodes: 'https://es.example' }, definition } as unknown as SinkConfig;
}

const promise = { subject: 'sink siem', level: 'ok', message: 'model, ecs: exactly once; duplicates: 0; losses: 0' };

test('the check of a sink that never responds ends after a minute, with that reason', async () => {
  let isTold = false;
  const sink = sinkThat(async (signal) => {
    await once(signal, 'abort');
    isTold = true;
    return [];
  });
  let waited = 0;
  const clock = { ...systemClock, monotonic: () => waited, sleep: async (ms: number) => void (waited += ms) };
  expect(await checkSink(sink, context(clock), never)).toEqual([
    promise,
    {
      subject: 'sink siem',
      level: 'error',
      message: expect.stringMatching(/^sink "siem" did not respond within 60 s: .* sinks\.siem\.nodes .*TLS/) as string,
      setting: 'sinks.siem.nodes',
    },
  ]);
  expect([waited, isTold]).toEqual([60_000, true]);
});

test('the check of a sink that throws is an error, in one line', async () => {
  const sink = sinkThat(async () => (null as unknown as { readonly version: never }).version);
  expect(await checkSink(sink, context(), never)).toEqual([
    promise,
    {
      subject: 'sink siem',
      level: 'error',
      message: `cannot check sink "siem" (sinks.siem.nodes): Cannot read properties of null (reading 'version')`,
      setting: 'sinks.siem.nodes',
    },
  ]);
});

test('a signal to the command ends the check', async () => {
  const stop = new AbortController();
  const checking = checkSink(
    sinkThat(() => new Promise(() => undefined)),
    context(),
    stop.signal,
  );
  stop.abort(new Error('stopped by SIGINT'));
  await expect(checking).rejects.toThrow('stopped by SIGINT');
});
