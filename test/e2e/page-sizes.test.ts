/**
 * A service that refuses all but very small pages with 400: the size is found, and no record is
 * missing.
 */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { delivered } from '../support/e2e-oracle.ts';
import { inPlace, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const sizes = [
  [17, 'auto', 10, 400],
  [17, 50, 10, 400],
  [1, 'auto', 1, 60],
] as const;

test.each(sizes)(
  'with at most %i records a page and pageSize %s, pages have %i records',
  { timeout: 300_000 },
  async (most, pageSize, granted, records) => {
    await inPlace('page-sizes', async (place) => {
      const options = ['--page-size-max', String(most), '--page-size-above', 'refused'];
      const service = await Service.start(place, '--records', String(records), '--span', '10m', ...options);
      const source = sourceOf(service, ago(660_000), { pageSize, recountAfter: [] });
      configure(place, [source], [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);
      const end = Math.floor(Date.now() / 1000) * 1000;
      const daemon = new Daemon(place);
      expect(await daemon.logged('source.calibrated')).toMatchObject({ pageSize: granted });
      await settled(daemon, end, patience);
      await delivered(service, [place.path('siem.ndjson')]);
      expect((await service.stats()).requests['GET /logs/full-payload']?.['400'] ?? 0).toBeGreaterThan(2);
      const check = await place.waybill('check', '--config', 'waybill.yaml', '--source', 'production');
      expect(check.stdout).toContain(`pages of ${granted}, ${records} records counted`);
      expect(check.stdout).toMatch(/totalRecords equals the records returned: \d+/);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
    });
  },
);
