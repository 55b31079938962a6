/**
 * A day of the ledger is a day of the service, from midnight to midnight UTC: ten days, each
 * counted by hand as in docs/audit.md.
 */
import { expect, test } from 'vitest';
import { auditor, bash, commandsOf, installWaybill } from '../support/e2e-commands.ts';
import { configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { countByDay, dayMs, ledgerDays, wholeDays } from '../support/e2e-days.ts';
import { inPlace } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

// promise: Each day of the report has the number of records of the service and of a manual count.
test('each of ten days has the number of records of the service and of a manual count', { timeout: 300_000 }, async () => {
  await inPlace('days', async (place) => {
    const days = wholeDays(Date.now());
    const [first = ''] = days;
    const service = await Service.start(place, '--records', '4000', '--span', '12d');
    // An irregular start: 51 s past 13 min past an hour of the day before.
    const start = new Date(Date.parse(first) - 9 * 3_600_000 - 46 * 60_000 - 9_000).toISOString();
    configure(place, [sourceOf(service, start, { recountAfter: [] })], [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);
    const daemon = new Daemon(place);
    await settled(daemon, Date.parse(days.at(-1) ?? '') + dayMs, 90_000);

    const truth = countByDay(await service.truth(), days);
    const found = await ledgerDays(place, days);
    const midnight = (day: string): number => Date.parse(`${day}T00:00:00Z`);
    expect(found.map(({ day, from, to, records }) => [day, Date.parse(from), Date.parse(to), records])).toEqual(
      days.map((day) => [day, midnight(day), midnight(day) + dayMs, truth[day]]),
    );
    expect(Math.min(...Object.values(truth))).toBeGreaterThan(100);

    installWaybill(place);
    const commands = commandsOf('docs/audit.md', 'Counting a day at the service');
    for (const day of days) {
      const counted = await bash(place, commands, auditor(service, day));
      const expected = truth[day] ?? Number.NaN;
      expect(counted).toEqual({ code: 0, stdout: `${expected} at the service, ${expected} in the ledger of ${day}\n`, stderr: '' });
    }
    // Narrow windows divide a quarter of an hour, wide ones are whole quarters; only the first
    // starts with the ledger.
    const [source] = (await daemon.ledger()).sources;
    const windows = (source?.windows ?? []).slice(1).map((one) => ({ from: Date.parse(one.from), to: Date.parse(one.to) }));
    expect(windows.length).toBeGreaterThanOrEqual(10);
    const quarterOf = (at: number): number => Math.floor(at / 900_000);
    const isWhole = ({ from, to: until }: (typeof windows)[number]): boolean => from % 900_000 === 0 && until % 900_000 === 0;
    expect(windows.filter((one) => !isWhole(one) && quarterOf(one.from) !== quarterOf(one.to - 1))).toEqual([]);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  });
});
