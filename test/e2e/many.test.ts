/**
 * Many sources in one daemon: within a minute each has sent a request and proven a window, with
 * separate budgets or a shared one. WAYBILL_E2E_SOURCES=100 runs 100 of them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, pause, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const count = Number(process.env['WAYBILL_E2E_SOURCES'] ?? 10);
const startMs = 60_000;

interface Status {
  readonly sources: readonly { readonly id: string; readonly completeUntil: string | null; readonly lastError: string | null }[];
}

test(`${count} sources start within ${startMs / 1000} s; half of them share one budget and do not exceed it`, { timeout: 240_000 }, () =>
  inPlace('many', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m');
    const shared = 40;
    const start = ago(70_000);
    const sources = Array.from({ length: count }, (_, i) => ({
      ...sourceOf(service, start, { closeDelay: '1s', recountAfter: [], pollInterval: '10s' }),
      id: `tenant-${i}`,
      requests: i % 2 === 0 ? { perSecond: 10, timeout: '10s' } : { perSecond: shared, timeout: '10s', group: 'gateway' },
    }));
    configure(place, sources, [{ id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw' }]);
    const began = performance.now();
    const daemon = new Daemon(place);
    await daemon.logged('admin.listening', startMs);
    let last = '';
    // Started: the token is obtained, the service is calibrated, its clock is known, and the first
    // window is proven.
    const takenMs = await until(
      () => `all sources have a proof: ${last}\n${daemon.words()}`,
      startMs * 2,
      async () => {
        await pause(250);
        const { sources: found } = JSON.parse((await daemon.get('/status')).text) as Status;
        const open = found.filter(({ completeUntil }) => completeUntil === null || Date.parse(completeUntil) <= Date.parse(start));
        last = `${open.length} have none, such as ${JSON.stringify(open[0])}`;
        return found.length === count && open.length === 0 ? performance.now() - began : undefined;
      },
    );
    const memory = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1];
    const { requests } = await service.stats();
    const asked = Object.values(requests['GET /logs/full-payload'] ?? {}).reduce((sum, each) => sum + each, 0);
    process.stderr.write(
      `${count} sources started in ${(takenMs / 1000).toFixed(1)} s, ${asked} requests, at most ${Math.round(Number(memory) / 1024)} MiB\n`,
    );
    expect(takenMs).toBeLessThan(startMs);

    // When idle, with a poll every 10 s, the group stays within its budget.
    const metric = async (): Promise<number> => {
      const { text } = await daemon.get('/metrics');
      return [...text.matchAll(/^waybill_source_requests_total\{[^}]*source="tenant-(\d+)"[^}]*\} (\d+)/gm)]
        .filter(([, id]) => Number(id) % 2 === 1)
        .reduce((sum, [, , value]) => sum + Number(value), 0);
    };
    const before = await metric();
    const from = performance.now();
    await pause(2_000);
    const perSecond = (((await metric()) - before) / (performance.now() - from)) * 1000;
    expect(perSecond).toBeLessThanOrEqual(shared * 1.25);
    expect(before).toBeGreaterThan(0);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  }),
);

test(`${count} sources that share the default budget of one source collect within ${startMs / 1000} s`, { timeout: 240_000 }, () =>
  inPlace('many-shared', async (place) => {
    const service = await Service.start(place, '--records', '30', '--span', '1m');
    const start = ago(3_600_000);
    // pollInterval, closeDelay and recountAfter are the defaults.
    const sources = Array.from({ length: count }, (_, i) => ({
      ...sourceOf(service, start, { id: `tenant-${i}` }),
      ...{
        closeDelay: '15m',
        pollInterval: '10s',
        recountAfter: ['1h', '1d'],
        requests: { perSecond: 10, timeout: '30s', group: 'gateway' },
      },
    }));
    configure(place, sources, [{ id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw' }]);
    const began = performance.now();
    const daemon = new Daemon(place);
    await daemon.logged('admin.listening', startMs);
    let last = '';
    // Each source has the same records under its own identities.
    const records = 30;
    const lines = (): number =>
      existsSync(place.path('siem.ndjson')) ? readFileSync(place.path('siem.ndjson'), 'utf8').split('\n').length - 1 : 0;
    const takenMs = await until(
      () => `records of all sources at the sink, and all ready: ${last}\n${daemon.words()}`,
      startMs * 2,
      async () => {
        await pause(500);
        const have = lines();
        const { status, text } = await daemon.get('/readyz');
        last = `${have} are there, /readyz says ${status} ${text.slice(0, 300)}`;
        return have === count * records && status === 200 ? performance.now() - began : undefined;
      },
    );
    const { requests } = await service.stats();
    const asked = Object.values(requests['GET /logs/full-payload'] ?? {}).reduce((sum, each) => sum + each, 0);
    process.stderr.write(
      `${count} sources under one budget of 10/s collect after ${(takenMs / 1000).toFixed(1)} s and ${asked} requests\n`,
    );
    expect(takenMs).toBeLessThan(startMs);
    // No window is proven before the clock of the service is known.
    const { sources: found } = JSON.parse((await daemon.get('/status')).text) as Status;
    expect(found.map(({ completeUntil }) => completeUntil)).toEqual(found.map(() => null));
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  }),
);
