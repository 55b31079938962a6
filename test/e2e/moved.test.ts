/**
 * The path of one source and the path of one sink change: these two are held, each with its reason, and all others go on. An operator moves the
 * source, which keeps its uids: each sink has each record exactly once.
 */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { LogLine, Settings } from '../support/e2e-daemon.ts';
import { delivered } from '../support/e2e-oracle.ts';
import { inPlace, patience, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const fileSink = (id: string, source: string, path = `./${id}.ndjson`): Settings => ({ id, type: 'file', path, sources: [source] });

async function logged(daemon: Daemon, event: LogLine['event'], matches: (line: LogLine) => boolean): Promise<LogLine> {
  return until(
    () => `a "${event}" in the log\n${daemon.words()}`,
    patience,
    () => daemon.log.find((line) => line.event === event && matches(line)),
  );
}

test(
  'a source with another path and a sink with another file are held alone; sources move continues the source',
  { timeout: 300_000 },
  () =>
    inPlace('moved', async (place) => {
      const service = await Service.start(place, '--records', '200', '--span', '2m');
      const [start, origin] = [ago(150_000), new URL(service.line.baseUrl).origin];
      const sources = (path: string): Settings[] => [
        sourceOf(service, start, { baseUrl: `${origin}${path}` }),
        sourceOf(service, start, { id: 'other' }),
      ];
      const [siem, second, third] = [fileSink('siem', 'production'), fileSink('second', 'other'), fileSink('third', 'other')];
      const files = ['siem', 'second', 'third'].map((name) => place.path(`${name}.ndjson`));
      configure(place, sources('/v2/api'), [siem, second, third]);
      const first = new Daemon(place);
      await delivered(service, files);
      expect(await first.stop()).toMatchObject({ code: 0 });

      configure(place, sources('/v3/api'), [siem, second, fileSink('third', 'other', './elsewhere.ndjson')]);
      const check = await place.waybill('check');
      expect(check).toMatchObject({ code: 1 });
      expect(check.stdout).toMatch(/would now\s+poll/);
      const daemon = new Daemon(place);
      await logged(daemon, 'source.suspended', ({ source, reason }) => source === 'production' && reason === 'moved');
      await logged(daemon, 'sink.delivery_blocked', ({ sink, code }) => sink === 'third' && code === 'config_invalid');
      const [record = ''] = await service.truth();
      const stamp = new Date(Date.now() - 500).toISOString().slice(0, 23);
      await service.add([
        record.replace(/"logId":\d+/, '"logId":900000001').replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${stamp}"`),
      ]);
      await delivered(service, [place.path('second.ndjson')]);
      expect((await daemon.get('/readyz?source=other')).status).toBe(200);
      expect(await daemon.get('/readyz?source=production')).toMatchObject({
        status: 503,
        text: expect.stringContaining('suspended (moved)') as string,
      });
      const refused = await place.waybill('sinks', 'adopt', '--sink', 'third', '--yes');
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('would now deliver to') as string });

      const move = (): ReturnType<typeof place.waybill> =>
        place.waybill('sources', 'move', '--source', 'production', '--reason', 'ticket 4711', '--yes');
      expect(await move()).toMatchObject({ code: 0 });
      await logged(daemon, 'source.moved', ({ present }) => String(present).includes('/v3/api'));
      await logged(daemon, 'source.suspension_ended', ({ reason }) => reason === 'moved');
      // The service has no such path after all: the operator moves the source back, by a reload.
      configure(place, sources('/v2/api'), [siem, second, third]);
      daemon.signal('SIGHUP');
      await logged(daemon, 'config.reloaded', () => true);
      await until(
        () => `the second suspension\n${daemon.words()}`,
        patience,
        () => daemon.log.filter(({ event, reason }) => event === 'source.suspended' && reason === 'moved').length === 2 || undefined,
      );
      expect(await move()).toMatchObject({ code: 0 });
      await delivered(service, files);
      const { stdout } = await place.waybill('operations', 'list', '--json');
      const { operations } = JSON.parse(stdout) as { operations: { operation: string; source: string; reason: string; detail: object }[] };
      expect(operations.map(({ operation, source, reason }) => [operation, source, reason])).toEqual(
        Array.from({ length: 2 }, () => ['sources move', 'production', 'ticket 4711']),
      );
      await until(
        () => `every window counted again\n${daemon.words()}`,
        patience,
        async () => {
          const windows = (await daemon.ledger()).sources.flatMap((each) => each.windows);
          return (windows.length > 0 && windows.every(({ reason }) => reason === null)) || undefined;
        },
      );
      expect(await daemon.stop()).toMatchObject({ code: 0 });
    }),
);
