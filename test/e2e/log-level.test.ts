/**
 * `waybill log level` on a running daemon: lines of another level appear, and stop by themselves.
 */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

test(
  'a start logs its first token, record, delivery and proof; debug for twelve seconds, and then the configured level again',
  { timeout: 300_000 },
  () =>
    inPlace('log-level', async (place) => {
      const service = await Service.start(place, '--records', '200', '--span', '1m', '--rate', '5');
      configure(place, [sourceOf(service, ago(60_000), { closeDelay: '1s' })], [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);
      const level = (...args: string[]) => place.waybill('log', 'level', ...args, '--config', 'waybill.yaml');
      expect(await level('debug')).toMatchObject({ code: 2, stderr: expect.stringContaining('no daemon runs') as string });
      const daemon = new Daemon(place);
      await daemon.logged('window.first_proven');
      expect(await level('debug', '--component', 'nothing')).toMatchObject({ code: 2 });
      expect(await level('debug', '--for', '12s', '--actor', 'j.doe')).toMatchObject({ code: 0 });
      expect(await daemon.logged('log.level_changed')).toMatchObject({ minimum: 'debug', seconds: 12, actor: 'j.doe' });
      await daemon.logged('log.level_restored');
      const [from, to] = ['log.level_changed', 'log.level_restored'].map((event) => daemon.log.findIndex((line) => line.event === event));
      const debugLines = daemon.log.flatMap(({ level: each }, at) => (each === 'debug' ? [at] : []));
      expect(debugLines.some((at) => at > (from ?? 0))).toBe(true);
      expect(debugLines.filter((at) => at < (from ?? 0) || at > (to ?? 0))).toEqual([]);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
      const firsts = ['source.first_token', 'source.first_record', 'sink.first_delivery', 'window.first_proven'];
      const found = daemon.log.flatMap(({ event }) => (firsts.includes(event) ? [event] : []));
      // The first proof and the first delivery can come in either order.
      expect([found.slice(0, 2), found.slice(2).toSorted()]).toEqual([firsts.slice(0, 2), firsts.slice(2)]);
    }),
);
