/**
 * The daemon as a program whose log is not read: it continues to collect and deliver, and stops on
 * request.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { ChildProcess } from 'node:child_process';
import { expect, test } from 'vitest';
import { ago, configure, sourceOf } from '../support/e2e-daemon.ts';
import { endOf, inPlace, pause, until, patience } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const graceMs = 5_000;

/** A daemon that collects ten records a second into a file; nothing reads its standard error yet. */
async function started(place: Place): Promise<{ daemon: ChildProcess; delivered: () => number; grows: () => Promise<void> }> {
  const service = await Service.start(place, '--rate', '10');
  configure(place, [sourceOf(service, ago(5_000))], [{ id: 'out', type: 'file', path: './out.ndjson' }]);
  const daemon = place.spawnWaybill(['run', '--config', 'waybill.yaml']);
  const delivered = (): number => {
    const path = place.path('out.ndjson');
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
  };
  const grows = async (): Promise<void> => {
    const before = delivered();
    await until(
      () => `more than ${before} records; exit code ${daemon.exitCode ?? 'none'}`,
      patience,
      () => (delivered() > before ? true : undefined),
    );
  };
  await grows();
  return { daemon, delivered, grows };
}

/** With an invalid configuration each SIGHUP is a line of the log, of 20 KiB with these problems; a pipe holds 64 KiB (pipe(7)). */
async function chatter(place: Place, daemon: ChildProcess, lines: number): Promise<void> {
  const unknown = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`noSuchSetting${i}`, i]));
  configure(place, [], [], unknown);
  for (let i = 0; i < lines; i += 1) {
    daemon.kill('SIGHUP');
    await pause(50);
  }
}

async function stopped(daemon: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null; ms: number }> {
  const began = performance.now();
  daemon.kill('SIGTERM');
  // 'close' would wait for pipes that this test does not read.
  const code = await new Promise<number | null>((resolve) => daemon.once('exit', resolve));
  return { code, signal: daemon.signalCode, ms: performance.now() - began };
}

test('the daemon continues when the reader of the log exits', async () => {
  await inPlace('log-reader-gone', async (place) => {
    const { daemon, grows } = await started(place);
    daemon.stderr?.destroy();
    await chatter(place, daemon, 20);
    await grows();
    await grows();
    expect(daemon.exitCode).toBeNull();
    const ended = endOf(daemon);
    daemon.kill('SIGTERM');
    expect(await ended).toEqual({ code: 0, signal: null });
  });
});

// promise: A reader of the log that stops does not stop the daemon.
test('the daemon continues when the reader of the log stops reading, and ends within shutdownTimeout', async () => {
  await inPlace('log-reader-stuck', async (place) => {
    const { daemon, grows } = await started(place);
    await chatter(place, daemon, 60);
    await grows();
    const { code, signal, ms } = await stopped(daemon);
    expect([code, signal]).toEqual([0, null]);
    expect(ms).toBeLessThan(graceMs + 2_000);
    daemon.stderr?.destroy();
    daemon.stdout?.destroy();
  });
});
