/**
 * What changes its place or its id is asked about. The path of one source and the path of one sink change: these two are held, each with its
 * reason, and all others go on. An operator moves the source, which keeps its uids: each sink has each record exactly once. A sink gets another
 * id: it claims nothing that the one before it received.
 */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { LogLine, Settings } from '../support/e2e-daemon.ts';
import { archivedRecords } from '../support/archive-files.ts';
import { delivered, linesOf, originalOf } from '../support/e2e-oracle.ts';
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

test('a sink with a new id at an old file or archive is asked, and claims nothing that it never received', { timeout: 300_000 }, () =>
  inPlace('renamed', async (place) => {
    const service = await Service.start(place, '--records', '200', '--span', '2m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const source = sourceOf(service, ago(150_000), { recountAfter: [] });
    const sinks = (name: string, more: Settings = {}): Settings[] => [
      { id: `${name}-file`, type: 'file', path: './siem.ndjson', ...more },
      {
        id: `${name}-archive`,
        type: 'archive',
        directory: './archive',
        signingKey: '${file:./key.pem}',
        batch: { maxWait: '50ms' },
        ...more,
      },
    ];
    const records = await service.truth();
    const denied = records.filter((record) => record.includes('"result":"AccessDenied"'));
    configure(place, [source], sinks('old', { filter: { result: ['AccessDenied'] } }));
    const daemon = new Daemon(place);
    await until(
      () => `the denied records in both\n${daemon.words()}`,
      patience,
      () => {
        const inFile = existsSync(place.path('siem.ndjson')) ? linesOf(place.path('siem.ndjson')).length : 0;
        return (inFile === denied.length && archivedRecords(place.path('archive')).length === denied.length) || undefined;
      },
    );
    expect(denied.length).toBeGreaterThan(0);
    expect(denied.length).toBeLessThan(records.length);

    configure(place, [source], sinks('new'));
    daemon.signal('SIGHUP');
    const ids = ['new-file', 'new-archive'];
    for (const id of ids) {
      const { error } = await logged(daemon, 'sink.delivery_blocked', ({ sink }) => sink === id);
      expect(JSON.stringify(error)).toContain(`the sink \\"old-${id.slice(4)}\\" wrote it`);
    }
    expect(await place.waybill('ledger')).toMatchObject({ code: 3 });
    for (const id of ids) expect(await place.waybill('sinks', 'adopt', '--sink', id, '--yes')).toMatchObject({ code: 0 });
    for (const id of ids) await logged(daemon, 'sink.adopted', ({ sink }) => sink === id);
    const isFull = (): true | undefined => linesOf(place.path('siem.ndjson')).length === denied.length + records.length || undefined;
    await until(() => `everything in the file\n${daemon.words()}`, patience, isFull);
    const held = linesOf(place.path('siem.ndjson')).map((line) => originalOf(line));
    expect(held.toSorted()).toEqual([...denied, ...records].toSorted());
    const claims = (id: string): Promise<boolean[]> =>
      daemon
        .ledger()
        .then(({ sources }) =>
          sources.flatMap(({ windows }) => windows.filter((each) => each.records > 0).map(({ sinks: by }) => id in by)),
        );
    // The archive has the denied records alone.
    expect([new Set(await claims('new-file')), new Set(await claims('new-archive'))]).toEqual([new Set([true]), new Set([false])]);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect(await place.waybill('archive', 'verify', '--sink', 'new-archive')).toMatchObject({ code: 3 });
  }),
);
