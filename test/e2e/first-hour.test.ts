/**
 * The first start with the file of `waybill init file` and a start three hours ago: what a new user
 * sees before the clock of the service is known.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, Daemon } from '../support/e2e-daemon.ts';
import { exactlyOnce, compare, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const hourMs = 3_600_000;
const settleMs = 900_000;

test(
  'records of the last three hours are delivered at once, and one line gives the time of the first proof',
  { timeout: 300_000 },
  async () => {
    await inPlace('first-hour', async (place) => {
      const service = await Service.start(place, '--records', '6000', '--span', '4h', '--rate', '5');
      const { line } = service;
      const { clientId, clientSecret } = service.client('Security Administrator');
      const printed = await place.waybill('init', 'file');
      const start = ago(3 * hourMs);
      const values: Record<string, string> = {
        ...{ WAYBILL_BASE_URL: line.baseUrl, WAYBILL_AUTH_URL: line.authUrl, WAYBILL_TENANT_ID: line.tenantId },
        ...{ WAYBILL_CLIENT_ID: clientId, WAYBILL_CLIENT_SECRET: clientSecret, WAYBILL_SCOPE_ADDRESS: line.scopeAddress },
        WAYBILL_SUBSCRIPTION_KEY: line.subscriptionKey,
      };
      // The variables are filled in; settings with a default stay. The test adds only its CA and a
      // free port.
      const filled = printed.stdout
        .replace(/\$\{env:(\w+)\}/g, (_, name: string) => values[name] ?? '')
        .replace(/start: .*/, `start: ${start}`);
      writeFileSync(place.path('waybill.yaml'), `${filled}tls: { ca: '${line.ca}' }\nadmin: { listen: '127.0.0.1:0' }\n`);
      const file = place.path('audit.ndjson');

      const daemon = new Daemon(place);
      const began = await daemon.logged('daemon.starting');
      const firstLine = await until('a line', patience, () => (existsSync(file) && readFileSync(file).length > 0 ? Date.now() : undefined));
      // The first proof waits for five minutes (below); a loaded machine delays the first line by
      // seconds.
      expect(firstLine - Date.parse(String(began['time']))).toBeLessThan(60_000);

      // All closed time until an hour ago, without a proof; a few more windows may be in progress.
      const early = Date.now() - hourMs - settleMs - 1_800_000;
      const timeOf = (record: string): number => Date.parse(`${/"logTimestamp":"([^"]+)/.exec(record)?.[1] ?? ''}Z`);
      const expected = (await service.truth()).filter((record) => timeOf(record) >= Date.parse(start) && timeOf(record) < early);
      expect(expected.length).toBeGreaterThan(1_000);
      const got = (): string[] =>
        linesOf(file).filter((each) => timeOf(originalOf(each) ?? '') >= Date.parse(start) && timeOf(originalOf(each) ?? '') < early);
      await until(
        () => `${expected.length} lines, there are ${got().length}`,
        patience,
        () => (got().length >= expected.length ? true : undefined),
      );
      expect(compare(got(), expected, originalOf)).toEqual(exactlyOnce);

      // The ledger claims nothing: no window is closed, and one log line says that the daemon still
      // measures the clock of the service.
      const [source] = (await daemon.ledger()).sources;
      expect(source?.windows).toEqual([]);
      const waits = daemon.log.filter(({ event }) => event === 'source.clock_measuring');
      expect(waits).toHaveLength(1);
      const awaited = Date.parse(String(waits[0]?.['to']));
      expect(awaited - Date.parse(String(began['time']))).toBeGreaterThan(299_000);
      expect(awaited - Date.parse(String(began['time']))).toBeLessThan(330_000);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
    });
  },
);
