/** A copy that `waybill backup` makes under load, and a daemon that starts from it. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

/** An upper bound of the entries of the journal that are not records. */
const entriesOfTheLedger = 50;

test(
  'after a restore from the backup the file sink is blocked, and after adopt it receives only records newer than the backup',
  { timeout: 300_000 },
  () =>
    inPlace('backup', async (place) => {
      const service = await Service.start(place, '--records', '2000', '--span', '2m', '--rate', '200');
      const file = { id: 'siem', type: 'file', path: './siem.ndjson', failReadinessAfter: '1s' };
      const source = sourceOf(service, ago(150_000), { closeDelay: '1s', recountAfter: [] });
      configure(place, [source], [file]);
      const first = new Daemon(place);
      await first.logged('window.first_proven');
      const before = linesOf(place.path('siem.ndjson')).length;
      // A copy holds the acknowledgements that the state stores; the daemon stores them at least once a second.
      await until('the acknowledgement of these lines in the state', patience, async () => {
        const { stdout } = await place.waybill('sinks', 'list', '--json');
        const [siem] = (JSON.parse(stdout) as { sinks: readonly { acknowledged: number }[] }).sinks;
        return siem && siem.acknowledged > before + entriesOfTheLedger ? true : undefined;
      });

      const backup = await place.waybill('backup', '--to', 'copy', '--json');
      expect(backup.code, backup.stderr).toBe(0);
      const { head } = JSON.parse(backup.stdout) as { head: number };
      expect(head).toBeGreaterThanOrEqual(before);
      expect(readdirSync(place.path('copy'))).toEqual(['waybill.db']);
      expect((await place.waybill('backup', '--to', 'copy')).code).toBe(2);
      // The daemon continues to deliver records newer than the copy.
      await until('records after the copy', 180_000, () => (linesOf(place.path('siem.ndjson')).length > head + 200 ? true : undefined));
      await service.set({ rate: 0 });
      await delivered(service, [place.path('siem.ndjson')]);
      expect(first.log.filter(({ level }) => level === 'error')).toEqual([]);
      expect(await first.stop()).toMatchObject({ code: 0 });
      const truth = await service.truth();
      expect(compare(linesOf(place.path('siem.ndjson')), truth, originalOf)).toEqual(exactlyOnce);

      configure(place, [source], [file, { id: 'other', type: 'file', path: './other.ndjson' }], { dataDir: './copy' });
      const second = new Daemon(place);
      expect(await second.logged('sink.delivery_blocked')).toMatchObject({ sink: 'siem', code: 'sink_blocked' });
      await delivered(service, [place.path('other.ndjson')]);
      expect(linesOf(place.path('siem.ndjson'))).toHaveLength(truth.length);
      expect((await place.waybill('sinks', 'adopt', '--sink', 'siem', '--yes')).code).toBe(0);
      await settled(second, Math.floor(Date.now() / 1000) * 1000 - 5_000, 180_000);
      expect(await second.stop()).toMatchObject({ code: 0 });
      // No record is lost, and none outside the copy comes more than twice.
      const lines = linesOf(place.path('siem.ndjson'));
      expect(compare(lines, truth, originalOf)).toMatchObject({ missing: [], unknown: [], torn: [] });
      expect(lines.length).toBeGreaterThan(truth.length);
      expect(lines.length - truth.length).toBeLessThanOrEqual(truth.length - before);
      expect((await readLedgerOf(place)).ledger.complete).toBe(true);
    }),
);
