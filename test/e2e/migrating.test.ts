/**
 * docs/migrating.md: its commands run unchanged, in parallel with an old collector that lost
 * records.
 */
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bash, commandsOf, installWaybill } from '../support/e2e-commands.ts';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { delivered, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const document = 'docs/migrating.md';

test('Waybill starts at T, compare lists the records that the old collector lost, and a backfill delivers them', { timeout: 300_000 }, () =>
  inPlace('migrating', async (place) => {
    const service = await Service.start(place, '--records', '600', '--span', '20m');
    const records = await service.truth();
    const [FROM, T, END] = [ago(1_260_000), ago(600_000), ago(60_000)];
    const env = { FROM, T, END, WAYBILL_CONFIG: 'waybill.yaml' };
    const run = (heading: string): ReturnType<typeof bash> => bash(place, `set -e\n${commandsOf(document, heading)}`, env);
    installWaybill(place);
    configure(place, [sourceOf(service, T, { closeDelay: '1s', recountAfter: [] })], [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);

    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    await until(
      () => `windows closed until ${END}\n${daemon.words()}`,
      120_000,
      async () => ((await daemon.ledger()).sources.every(({ readUntil }) => Date.parse(readUntil) >= Date.parse(END)) ? true : undefined),
    );
    // Delivery may still be in progress when the last window is closed.
    let output = '';
    await until(
      () => `delivered after T\n${output}`,
      patience,
      async () => {
        const { code, stdout, stderr } = await run('Check the time after T');
        output = stdout + stderr;
        return code === 0 ? true : undefined;
      },
    );

    // The old collector lost three records, and has one twice.
    const timeOf = (record: string): number => Date.parse(`${/"logTimestamp":"([^"]{1,23})/.exec(record)?.[1] ?? ''}Z`);
    const before = records.filter((record) => timeOf(record) >= Date.parse(FROM) && timeOf(record) < Date.parse(T));
    const lost = before.slice(10, 13);
    const old = before.filter((record) => !lost.includes(record));
    writeFileSync(place.path('old.ndjson'), [...old, old[0], ''].join('\n'));
    const idOf = (record: string): string => /"logId":(\d+)/.exec(record)?.[1] ?? '';
    const compared = await run('Find what the old collector lost');
    expect(compared, compared.stdout + compared.stderr).toMatchObject({ code: 3 });
    for (const record of lost) expect(compared.stdout).toContain(idOf(record));
    expect(compared.stdout).toContain(idOf(old[0] ?? ''));
    expect(compared.stdout).not.toContain(idOf(old[1] ?? ''));

    const filled = await run('Fill the gaps of the old collector');
    expect(filled, filled.stdout + filled.stderr).toMatchObject({ code: 0 });
    await delivered(service, [place.path('siem.ndjson')]);
    expect(new Set(linesOf(place.path('siem.ndjson')).map(originalOf))).toEqual(new Set(records));
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  }),
);
