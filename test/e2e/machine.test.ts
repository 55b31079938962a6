/**
 * "Move to another machine" of docs/operations.md: two directories are the two machines. The state moves as a verified copy, the file of
 * the sink with its folder `.waybill`, and a link stands at the old path.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, patience, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

test(
  'a state and its file move to another machine: a changed path is refused, with the old path nothing is lost or doubled',
  { timeout: 300_000 },
  () =>
    inPlace('old-machine', (old) =>
      inPlace('new-machine', async (place) => {
        const service = await Service.start(old, '--records', '200', '--span', '2m', '--rate', '20');
        const source = sourceOf(service, ago(150_000), { closeDelay: '1s', recountAfter: [] });
        const sinkAt = (path: string): object => ({ id: 'siem', type: 'file', path });
        const path = old.path('out/siem.ndjson');
        mkdirSync(old.path('out'));
        configure(old, [source], [{ ...sinkAt(path) }]);
        const first = new Daemon(old);
        await first.logged('window.first_proven');
        await until('a hundred lines in the file', patience, () => (existsSync(path) && linesOf(path).length > 100) || undefined);
        expect(await first.stop()).toMatchObject({ code: 0 });
        const before = linesOf(path).length;

        const backup = await old.waybill('backup', '--to', place.path('state'));
        expect(backup.code, backup.stderr).toBe(0);
        expect(readdirSync(place.path('state'))).toEqual(['waybill.db']);
        const modes = ['state', 'state/waybill.db'].map((name) => statSync(place.path(name)).mode & 0o777);
        expect(modes).toEqual([0o700, 0o600]);
        renameSync(old.path('out'), place.path('out'));
        rmSync(old.path('state'), { recursive: true });

        configure(place, [source], [{ ...sinkAt(place.path('out/siem.ndjson')) }]);
        const check = await place.waybill('check');
        expect(check.code).toBe(1);
        expect(check.stdout.replace(/\s+/g, ' ')).toContain(
          'keep the path, with a link at it if the files moved, or give the new destination a new id',
        );
        symlinkSync(place.path('out'), old.path('out'));
        configure(place, [source], [{ ...sinkAt(path) }]);
        expect(await place.waybill('check')).toMatchObject({ code: 0 });

        const second = new Daemon(place, '--require-state');
        await service.set({ rate: 0 });
        await delivered(service, [path]);
        await settled(second, Math.floor(Date.now() / 1000) * 1000 - 5_000, 180_000);
        expect(second.log.filter(({ level }) => level === 'error')).toEqual([]);
        expect(await place.waybill('ledger')).toMatchObject({ code: 0 });
        expect(await second.stop()).toMatchObject({ code: 0 });
        const lines = linesOf(path);
        expect(lines.length).toBeGreaterThan(before);
        expect(compare(lines, await service.truth(), originalOf)).toEqual(exactlyOnce);
      }),
    ),
);
