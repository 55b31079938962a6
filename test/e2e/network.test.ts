/**
 * The connection to the service: through a real CONNECT proxy with a password, and with a private
 * CA. Only the proxy resolves the names, so no connection can bypass it.
 */
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { delivered } from '../support/e2e-oracle.ts';
import { inPlace } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { startProxy } from '../support/proxy.ts';

test(
  'all connections use the proxy with a password, and a wrong password is reported as a refusal of the proxy',
  { timeout: 300_000 },
  () =>
    inPlace('proxy', async (place) => {
      const service = await Service.start(place, '--records', '3000', '--span', '2m', '--fault-reset', '0.05');
      const port = Number(new URL(service.line.baseUrl).port);
      const names = { 'service.test:443': port, 'login.test:443': port };
      await using proxy = await startProxy({ names, user: 'waybill', password: 'p:ss/w@rd' });
      writeFileSync(place.path('password'), 'wrong');
      const source = sourceOf(service, ago(150_000), { closeDelay: '1s', recountAfter: [], baseUrl: 'https://service.test/v2/api' });
      const { auth, tls } = source as { auth: object; tls: object };
      const through = {
        ...source,
        auth: { ...auth, authUrl: 'https://login.test' },
        tls: { ...tls, serverName: 'localhost' },
        proxy: { url: `http://waybill:\${file:${place.path('password')}}@127.0.0.1:${proxy.port}` },
      };
      configure(place, [through], [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);
      const refused = await place.waybill('check', '--config', 'waybill.yaml');
      expect(refused.code).toBe(1);
      expect(refused.stdout).toMatch(/407/);
      expect(refused.stdout).toMatch(/proxy\.url/);

      const daemon = new Daemon(place);
      await daemon.ready(503, /407/);
      // Percent-encoded, as in a URL.
      writeFileSync(place.path('password'), encodeURIComponent('p:ss/w@rd'));
      await daemon.ready(200, undefined, 75_000);
      await delivered(service, [place.path('siem.ndjson')]);
      expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
      expect(new Set(proxy.asked)).toEqual(new Set(Object.keys(names)));

      // `check` sends each request once; the test must not depend on random faults of the service.
      await service.set({ faultReset: 0 });
      const checked = await place.waybill('check', '--config', 'waybill.yaml');
      expect(checked.code, checked.stdout).toBe(0);
      // Without the proxy's URL, which contains the password.
      for (const name of Object.keys(names))
        expect(checked.stdout.replace(/\s+/g, ' ')).toContain(
          `connected to ${new URL(`https://${name}`).hostname} through sources.production.proxy.url (file ${place.path('password')}), certificate of '127.0.0.1' issued by `,
        );
      expect(checked.stdout + refused.stdout + daemon.words()).not.toMatch(/p:ss|p%3Ass/);
    }),
);
