/**
 * The work of an auditor, with the programs: the report in each format, a day counted at the
 * service alone with the commands of docs/audit.md, and the comparison of a SIEM's records with the
 * service's.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { auditor, bash, commandsOf, installWaybill } from '../support/e2e-commands.ts';
import { ago, configure, Daemon, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import { delivered, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, patience } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

/** The exact digits of a record's logId. */
function logId(record: string): string {
  const digits = /"logId"\s*:\s*(-?\d+)/.exec(record)?.[1];
  if (digits === undefined) throw new Error(`no logId in ${record.slice(0, 200)}`);
  return digits;
}

function timeOf(record: string): number {
  return Date.parse(`${/"logTimestamp"\s*:\s*"([^"]+)/.exec(record)?.[1] ?? ''}Z`);
}

/** The expiry of a server's certificate, seconds since 1970, read by a TLS client of the test. */
function certificateEnd(url: string, ca: string): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), ca: readFileSync(ca) }, () => {
      resolve(Date.parse(socket.getPeerCertificate().valid_to) / 1000);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

/**
 * A failure in between ends the commands of docs/audit.md with an error and without a number:
 * a ledger without that day, a jq that fails at the records or omits the total,
 * a service that sends shorter pages.
 */
async function countsFail(place: Place, service: Service, commands: string, env: Readonly<Record<string, string>>): Promise<void> {
  writeFileSync(place.path('waybill'), '#!/bin/sh\nfor last; do :; done; cp given.csv "$last"\n');
  writeFileSync(place.path('given.csv'), readFileSync(place.path('ledger.csv')));
  const fails = async (words: RegExp): Promise<void> => {
    const { code, stdout, stderr } = await bash(place, commands, env);
    expect({ code, stdout, stderr }).toEqual({
      code: expect.any(Number) as number,
      stdout: '',
      stderr: expect.stringMatching(words) as string,
    });
    expect(code).not.toBe(0);
  };
  const program = (name: string, line: string): void => {
    writeFileSync(place.path(name), `#!/bin/sh\n${line}\n`);
    chmodSync(place.path(name), 0o755);
  };
  const jq = execFileSync('bash', ['-c', 'command -v jq'], { encoding: 'utf8' }).trim();
  for (const broken of ['*.data*) exit 5', '*totalRecords*) exit 0', '*access_token*) echo null; exit 1']) {
    program('jq', `case "$*" in ${broken};; esac; exec ${jq} "$@"`);
    await fails(/^NOT COUNTED: line \d+ ended with \d+$/m);
  }
  rmSync(place.path('jq'));
  await service.set({ pageSizeMax: 7 });
  await fails(/^NOT COUNTED: line \d+ ended with 1\n$/);
  await service.set({ pageSizeMax: 1000 });
  program('waybill', 'for last; do :; done; head -2 given.csv > "$last"; exit 3');
  await fails(/^NOT COUNTED: line \d+ ended with 1\n$/);
}

// promise: The report, a manual count of a day and the comparison with a SIEM agree with the service.
test('the report, a manual count of a day, and the comparison with a SIEM agree with the service', { timeout: 300_000 }, async () => {
  await inPlace('report', async (place) => {
    const service = await Service.start(place, '--records', '1500', '--span', '10m');
    const start = ago(660_000);
    configure(
      place,
      [sourceOf(service, start, { closeDelay: '1s', recountAfter: [] })],
      [{ id: 'siem', type: 'file', path: './siem.ndjson' }],
    );
    const daemon = new Daemon(place);
    const end = Math.floor(Date.now() / 1000) * 1000 - 60_000;
    await delivered(service, [place.path('siem.ndjson')]);
    await settled(daemon, end, patience);
    // The delay of records is measured only for records created while polls run.
    const happened = Array.from({ length: 5 }, (_, i) =>
      JSON.stringify({ logId: 88_000_000 + i, logTimestamp: new Date().toISOString().slice(0, -1) }),
    );
    await service.add(happened);
    await delivered(service, [place.path('siem.ndjson')]);
    const metrics = (await daemon.get('/metrics')).text;
    const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
    expect(metric('waybill_record_delay_seconds_count\\{source="production"\\}')).toBe(5);
    const ends = await certificateEnd(service.line.baseUrl, service.line.ca);
    for (const target of ['sources.production', 'sources.production.auth'])
      expect(metric(`waybill_certificate_expiry_timestamp_seconds\\{target="${target}"\\}`), target).toBe(ends);
    const page = await daemon.get('/ledger?format=html&by=day');
    expect([page.status, page.text.slice(0, 15)]).toEqual([200, '<!doctype html>']);
    expect((await daemon.get('/ledger?format=csv')).text).toMatch(/^# COMPLETE .*\r\nsource,from,to,/);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    const truth = await service.truth();
    const status = await place.waybill('status', '--config', 'waybill.yaml', '--json');
    const [{ delays } = { delays: undefined }] = (JSON.parse(status.stdout) as { sources: { delays: unknown }[] }).sources;
    expect(delays).toMatchObject({ records: 5, p50: expect.any(Number) as number });
    const check = await place.waybill('check', '--config', 'waybill.yaml', '--offline');
    expect(check.stdout.replace(/\s+/g, ' ')).toMatch(/of 5 records 99 % were first seen within \d+ s, .*too few for advice on closeDelay/);
    // A poll every second; windows of 10 s closed with two requests; no recount; the sample
    // recounts, and twice as many looks for contradictions.
    expect(check.stdout).toContain(`about ${86_400 + 8_640 * 2 + 288 * 3} requests a day when idle, 1.21 a second`);

    // The ledger is final up to its last window and does not cover a longer period.
    const { code, ledger } = await readLedgerOf(place, '--require-final');
    const [source] = ledger.sources;
    if (!source) throw new Error('the ledger has no source');
    const reached = source.readUntil;
    const inWindows = truth.filter((record) => timeOf(record) < Date.parse(reached));
    expect([code, source.collected]).toEqual([0, inWindows.length]);
    const future = new Date(Date.parse(reached) + 3_600_000).toISOString();
    // A source removed from the configuration keeps its ledger.
    const config = JSON.parse(readFileSync(place.path('waybill.yaml'), 'utf8')) as { sources: object[] };
    const others = { ...config, sources: config.sources.map((one) => ({ ...one, id: 'other' })) };
    writeFileSync(place.path('later.yaml'), JSON.stringify(others));
    const [gone, never, beyond, csv, html] = await Promise.all([
      place.waybill('ledger', '--config', 'later.yaml', '--source', 'production', '--by', 'day', '--to', reached),
      place.waybill('ledger', '--config', 'later.yaml', '--source', 'nobody'),
      place.waybill('ledger', '--config', 'waybill.yaml', '--to', future, '--require-final'),
      place.waybill('ledger', '--config', 'waybill.yaml', '--format', 'csv', '--to', reached),
      place.waybill('ledger', '--config', 'waybill.yaml', '--format', 'html', '--by', 'month', '--out', 'report.html', '--to', reached),
    ]);
    expect(gone).toMatchObject({ code: 0, stderr: '' });
    expect(gone.stdout).toContain(`${inWindows.length.toLocaleString('en')} records`);
    expect(never).toMatchObject({ code: 2, stdout: '', stderr: 'cannot find the source "nobody": expected one of other, production\n' });
    expect(beyond.code).toBe(3);
    expect(beyond.stdout).toMatch(/^(COMPLETE SO FAR AND DELIVERED|INCOMPLETE: not covered: .*, the daemon is not running)\n/);
    // The file has the reason of the exit code, and so has standard error.
    const notFinal = await place.waybill('ledger', '--config', 'waybill.yaml', '--out', 'all.txt', '--to', future, '--require-final');
    expect(notFinal).toMatchObject({ code: 3, stdout: '' });
    expect(notFinal.stderr.split('\n')[0]).toBe(readFileSync(place.path('all.txt'), 'utf8').split('\n')[0]);
    expect([csv.code, html]).toEqual([0, { code: 0, stdout: '', stderr: '' }]);
    const [verdict, ...rows] = csv.stdout.split(/(?<=\r\n)/);
    expect([verdict, rows.length]).toEqual(['# COMPLETE AND DELIVERED\r\n', source.windows.length + 1]);
    const report = readFileSync(place.path('report.html'), 'utf8');
    expect(report).toContain(`<code>${createHash('sha256').update(rows.join('')).digest('hex')}</code>`);
    expect(report).toContain(`Collected: ${inWindows.length.toLocaleString('en')} records, each once.`);

    // The commands of docs/audit.md, unchanged.
    installWaybill(place);
    const day = start.slice(0, 10);
    const env = auditor(service, day);
    const commands = commandsOf('docs/audit.md', 'Counting a day at the service');
    const counted = await bash(place, commands, env);
    const windows = source.windows.filter(({ from }) => from.startsWith(day));
    const until = Date.parse(windows.at(-1)?.to ?? '');
    const expected = truth.filter((record) => timeOf(record) < until).length;
    // The ledger does not begin with the day.
    const summary = expect.stringMatching(
      /^INCOMPLETE: not covered: [^;]*, before the start of the ledger(; [^;]*, the daemon is not running)?\n$/,
    ) as string;
    expect(counted).toEqual({ code: 0, stdout: `${expected} at the service, ${expected} in the ledger of ${day}\n`, stderr: summary });
    // The commands would detect a missing record.
    const at = (windows[0]?.from ?? '').replace('Z', '.5');
    await service.add([JSON.stringify({ logId: 77_000_001, logTimestamp: at, actionAttempted: 'Decrypt', result: 'AccessDenied' })]);
    const again = await bash(place, commands, env);
    expect(again).toEqual({ code: 1, stdout: `${expected + 1} at the service, ${expected} in the ledger of ${day}\n`, stderr: summary });

    await countsFail(place, service, commands, env);

    // The SIEM has the records of the file sink; then some are missing, some are duplicates,
    // and one is unknown.
    const period = ['--source', 'production', '--from', start, '--to', reached];
    const held = linesOf(place.path('siem.ndjson')).filter((event) => timeOf(originalOf(event) ?? '') < Date.parse(reached));
    expect(held).toHaveLength(inWindows.length);
    const lost = [held[3], held[700]].map((event) => logId(originalOf(event ?? '') ?? ''));
    const twice = [held[5], held[5], held[900]].map((event) => event ?? '');
    const damaged = [...held.filter((_, i) => i !== 3 && i !== 700), ...twice, JSON.stringify({ event: { id: '9007199254740993' } })];
    writeFileSync(place.path('damaged.ndjson'), `${damaged.join('\n')}\n`);
    const ids = damaged.map((event) => (JSON.parse(event) as { event: { id: string } }).event.id);
    writeFileSync(place.path('ids.txt'), `${ids.join('\n')}\n`);
    writeFileSync(place.path('ids.csv'), `"time","event.id"\r\n${ids.map((id, i) => `"a ""quoted"",\r\n${i}",${id}`).join('\r\n')}\r\n`);
    const compare = (file: string) => place.waybill('compare', '--config', 'waybill.yaml', ...period, '--ids', file, '--json');
    const results = await Promise.all(['damaged.ndjson', 'ids.txt', 'ids.csv'].map(compare));
    for (const result of results) {
      expect(result).toMatchObject({ code: 3, stderr: '' });
      const found = JSON.parse(result.stdout) as Record<string, unknown> & Record<'missing' | 'doubled' | 'unknown', { logId: string }[]>;
      expect(found).toMatchObject({
        complete: false,
        unproven: [],
        ids: damaged.length,
        records: inWindows.length + 1,
        counts: { missing: 3, doubled: 3, unknown: 1 },
      });
      expect(found.missing.map((one) => one.logId)).toEqual([...lost, '77000001'].sort());
      expect(found.doubled.map((one) => one.logId)).toEqual([...new Set(twice.map((event) => logId(originalOf(event) ?? '')))].sort());
      expect(found.unknown).toEqual([{ logId: '9007199254740993', logTimestamp: null, service: 0, there: 1 }]);
    }
    // Raw records contain the id under its own name; no record is missing, and the comparison needs
    // no state.
    writeFileSync(place.path('raw.ndjson'), (await service.truth()).join('\n'));
    const [whole, unread] = await Promise.all([
      place.waybill('compare', '--config', 'waybill.yaml', ...period, '--ids', 'raw.ndjson', '--field', 'logId'),
      place.waybill('compare', '--config', 'waybill.yaml', ...period, '--ids', 'raw.ndjson'),
    ]);
    expect(whole.code).toBe(0);
    expect(whole.stdout).toMatch(/^MISSING in --ids: 0$/m);
    expect(unread).toMatchObject({ code: 2, stdout: '' });
    expect(unread.stderr).toMatch(/none of its \d+ lines has the field "event.id"; see --field/);
  });
});
