/** `waybill log level` on a running daemon: lines of another level appear, and end by themselves. */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

test('debug for four seconds, and then the configured level again', { timeout: 300_000 }, () =>
  inPlace('log-level', async (place) => {
    const service = await Service.start(place, '--records', '200', '--span', '1m', '--rate', '5');
    configure(place, [sourceOf(service, ago(60_000), { closeDelay: '1s' })], [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);
    const level = (...args: string[]) => place.waybill('log', 'level', ...args, '--config', 'waybill.yaml');
    expect(await level('debug')).toMatchObject({ code: 2, stderr: expect.stringContaining('no daemon runs') as string });
    const daemon = new Daemon(place);
    await daemon.logged('window.first_proven');
    expect(daemon.find('window.proven')).toBeUndefined();
    expect(await level('debug', '--component', 'nothing')).toMatchObject({ code: 2 });
    expect(await level('debug', '--for', '4s', '--actor', 'j.doe')).toMatchObject({ code: 0 });
    expect(await daemon.logged('log.level_changed')).toMatchObject({ minimum: 'debug', seconds: 4, actor: 'j.doe' });
    await daemon.logged('window.proven');
    await daemon.logged('log.level_restored');
    const after = daemon.log.slice(daemon.log.findIndex(({ event }) => event === 'log.level_restored') + 1);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect(after.filter((line) => line.level === 'debug')).toEqual([]);
  }),
);
