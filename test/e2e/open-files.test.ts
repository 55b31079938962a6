/** A small limit of open files (`LimitNOFILE`, `ulimit -n`): a flood of connections to the admin server costs no record. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, pause } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const maxFiles = 96;
const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;

test('with 96 open files and 300 connections to the admin server, each record is delivered once', (context) => {
  context.skip(!hasPrlimit, 'prlimit is not installed');
  return inPlace('open-files', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m', '--rate', '50');
    const siem = { id: 'siem', type: 'file', path: './siem.ndjson' };
    configure(place, [sourceOf(service, ago(90_000), { closeDelay: '1s' })], [siem]);
    place.launcher = ['prlimit', `--nofile=${maxFiles}`];
    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    const { addresses } = (await daemon.logged('admin.listening')) as unknown as { addresses: string[] };
    const port = Number(new URL(addresses[0] ?? '').port);
    const sockets = Array.from({ length: 300 }, (): Socket => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write('GET /status HTTP/1.1\r\nhost: localhost\r\n');
      return socket;
    });
    await pause(1_000);
    const open = readdirSync(`/proc/${daemon.pid}/fd`).length;
    expect(open).toBeLessThan(maxFiles);
    expect((await daemon.get('/healthz')).status).toBe(200);
    const before = linesOf(place.path('siem.ndjson')).length;
    await pause(3_000);
    await daemon.ready(200);
    expect(linesOf(place.path('siem.ndjson')).length).toBeGreaterThan(before);
    for (const socket of sockets) socket.destroy();
    await service.set({ rate: 0 });
    await delivered(service, [place.path('siem.ndjson')]);
    expect(compare(linesOf(place.path('siem.ndjson')), await service.truth(), originalOf)).toEqual(exactlyOnce);
    process.stderr.write(`open-files: ${open} of ${maxFiles} files open during the flood\n`);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  });
});
