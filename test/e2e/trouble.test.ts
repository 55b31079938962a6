/**
 * Trouble with a state in use: an older copy is restored, the directory is read-only, the disk is
 * full, journal.maxSize is reached. Each is reported, nothing is lost, and once the cause is gone
 * the daemon resumes by itself.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ago, configure, Daemon, ledgerOf, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf, Seconds } from '../support/e2e-oracle.ts';
import { inPlace, pause, until, patience } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { mounted } from '../support/e2e-tmpfs.ts';
import { Service } from '../support/e2e-service.ts';

const quick = { closeDelay: '1s', recountAfter: [] };
const file = { id: 'siem', type: 'file', path: './siem.ndjson' };

/** Text that does not compress. */
function noise(place: Place, length: number): string {
  const bytes = Uint8Array.from({ length: Math.ceil((length * 3) / 4) }, () => Math.floor(place.chance() * 256));
  return Buffer.from(bytes).toString('base64url');
}

/** The size of the state on disk: the database file with its WAL. */
function sizeOf(place: Place): number {
  const sizes = ['waybill.db', 'waybill.db-wal'].map((name) => statSync(place.path(`state/${name}`), { throwIfNoEntry: false })?.size ?? 0);
  return sizes.reduce((sum, size) => sum + size);
}

describe.concurrent('trouble with the state', () => {
  test(
    'with an older copy of the state the file sink is blocked and the file unchanged; with the right state delivery resumes',
    { timeout: 300_000 },
    () =>
      inPlace('restored', async (place) => {
        const service = await Service.start(place, '--records', '600', '--span', '1m');
        configure(place, [sourceOf(service, ago(90_000), quick)], [{ ...file, failReadinessAfter: '1s' }]);
        const first = new Daemon(place);
        await delivered(service, [place.path('siem.ndjson')]);
        expect(await first.stop()).toMatchObject({ code: 0 });
        cpSync(place.path('state'), place.path('older'), { recursive: true });

        await service.set({ rate: 40 });
        const second = new Daemon(place);
        await second.logged('sink.first_delivery');
        await pause(1_000);
        await service.set({ rate: 0 });
        await delivered(service, [place.path('siem.ndjson')]);
        expect(await second.stop()).toMatchObject({ code: 0 });
        cpSync(place.path('state'), place.path('right'), { recursive: true });
        const { size } = statSync(place.path('siem.ndjson'));

        rmSync(place.path('state'), { recursive: true });
        cpSync(place.path('older'), place.path('state'), { recursive: true });
        const third = new Daemon(place);
        expect(await third.logged('sink.delivery_blocked')).toMatchObject({ level: 'error', sink: 'siem', code: 'sink_blocked' });
        await third.ready(503, /sink siem: /);
        // Records that the service still has are collected nevertheless.
        await third.logged('window.first_proven');
        const status = await place.waybill('status', '--config', 'waybill.yaml');
        expect(status.stdout).toMatch(/^DELIVERY BLOCKED at siem since /);
        expect(statSync(place.path('siem.ndjson')).size).toBe(size);
        expect(await third.stop()).toMatchObject({ code: 0 });
        expect(statSync(place.path('siem.ndjson')).size).toBe(size);

        rmSync(place.path('state'), { recursive: true });
        cpSync(place.path('right'), place.path('state'), { recursive: true });
        const fourth = new Daemon(place);
        await fourth.ready(200);
        await delivered(service, [place.path('siem.ndjson')]);
        expect(await fourth.stop()).toMatchObject({ code: 0 });
        expect(compare(linesOf(place.path('siem.ndjson')), await service.truth(), originalOf)).toEqual(exactlyOnce);
      }),
  );

  test('a state directory that is read-only or cannot be created: one line at once, exit 1', { timeout: 300_000 }, () =>
    inPlace('unwritable', async (place) => {
      const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 'hush-hush', scopeAddress: 's' };
      const source = { id: 'production', baseUrl: 'https://service.example/v2/api', auth, start: ago(0) };
      const refused = async (state: string, words: RegExp): Promise<void> => {
        configure(place, [source], [file], { dataDir: state });
        const { code, stderr } = await place.waybill('run', '--config', 'waybill.yaml', '--lock-wait', '1s');
        // Every line, including the last, has the format of the log.
        const lines = stderr.split('\n').filter((line) => line !== '');
        const errors = lines.map((line) => JSON.parse(line) as { level: string; error?: unknown }).filter(({ level }) => level === 'error');
        expect({ code, errors }, state).toMatchObject({
          code: 1,
          errors: [{ event: 'daemon.not_started', error: { message: expect.stringMatching(words) as string } }],
        });
      };
      // The creation of directories in this path once never ended.
      await refused('/proc/waybill/state', /^cannot use the state in "\/proc\/waybill\/state": .*ENOENT/);
      writeFileSync(place.path('plain'), '');
      await refused('./plain', /^cannot use "\.\/plain" for the state: it is not a directory/);
      await using readOnly = mounted(place, 'volume', 'size=1m');
      if (readOnly) {
        expect(spawnSync('mount', ['-o', 'remount,ro', readOnly.path]).status).toBe(0);
        await refused('./volume/state', /^cannot use the state in ".\/volume\/state": .*(EROFS|read-only)/);
        await refused('./volume', /^cannot use the state in ".\/volume": .*(EROFS|read-only)/);
      }
      if (process.getuid?.() === 0)
        process.stderr.write('skipped, modes do not hold for root: a state directory without the right to write\n');
      else {
        mkdirSync(place.path('closed'), { mode: 0o500 });
        await refused('./closed', /^cannot use the state in ".\/closed": .*EACCES/);
        chmodSync(place.path('closed'), 0o700);
      }
    }),
  );

  test(
    'a full disk pauses collection and delivery and is reported; with free space both resume, each record once',
    { timeout: 300_000 },
    () =>
      inPlace('disk', async (place) => {
        await using volume = mounted(place, 'volume', 'size=12m');
        if (!volume) return;
        const service = await Service.start(place, '--records', '200', '--span', '1m');
        configure(place, [sourceOf(service, ago(120_000), quick)], [file], { dataDir: './volume/state' });
        const full = new Daemon(place);
        await delivered(service, [place.path('siem.ndjson')]);
        const fill = (): void => expect(() => writeFileSync(place.path('volume/plug'), Buffer.alloc(16 * 2 ** 20))).toThrow('ENOSPC');
        fill();
        await service.set({ rate: 150 });
        await full.ready(503, /journal: collecting is paused \(disk\)/);
        expect((await full.get('/healthz')).status).toBe(200);
        const status = await place.waybill('status', '--config', 'waybill.yaml');
        const state = place.path('volume/state');
        expect(status.stdout).toMatch(new RegExp(`^The disk is full: cannot write to\\s+${state}\\.$`, 'm'));
        expect(status.stdout).toMatch(/^To do: free space on the disk of/m);
        const during = await ledgerOf(place);
        expect(during.ledger.sources).toHaveLength(1);
        rmSync(place.path('volume/plug'));
        await full.ready(200);
        fill();
        await full.ready(503, /journal: collecting is paused \(disk\)/);
        // The stop is clean: unsaved acknowledgements are reconciled at the next start.
        expect(await full.stop()).toMatchObject({ code: 0, signal: null });
        rmSync(place.path('volume/plug'));
        const daemon = new Daemon(place);
        await daemon.ready(200);
        await service.set({ rate: 0 });
        const truth = await service.truth();
        expect(truth.length).toBeGreaterThan(200);
        await settled(daemon, Math.ceil(new Seconds(truth).last + 1) * 1000, patience);
        await delivered(service, [place.path('siem.ndjson')]);
        expect(await daemon.stop()).toMatchObject({ code: 0 });
        expect(compare(linesOf(place.path('siem.ndjson')), truth, originalOf)).toEqual(exactlyOnce);
        expect((await readLedgerOf(place)).code).toBe(0);
      }),
  );

  test(
    'at journal.maxSize collection pauses, the state stays below it, and a shutdown is clean; then collection resumes',
    { timeout: 300_000 },
    () =>
      inPlace('quota', async (place) => {
        const quota = 16 * 2 ** 20;
        interface Status {
          readonly sinks: readonly { readonly lagEntries: number }[];
          readonly sources: readonly { readonly readUntil: string }[];
        }

        // Before the service creates its history, so that the ledger contains all of it.
        const start = ago(300_000);
        const service = await Service.start(place, '--records', '1800', '--span', '5m');
        // Incompressible and derived from the seed: a few of these records fill the journal. The
        // service adds them unchanged.
        const large = (await service.truth()).map((text, i) =>
          text
            .replace(/"logId":\d+/, `"logId":${800_000_000 + i}`)
            .replace(/"payloadName":(null|"(?:[^"\\]|\\.)*")/, `"payloadName":"${noise(place, 13_000)}"`),
        );
        expect(Math.min(...large.map((text) => text.length))).toBeGreaterThan(13_000);
        for (let at = 0; at < large.length; at += 50) await service.add(large.slice(at, at + 50));
        const ended = Date.now();
        const away = { ...file, path: './later/siem.ndjson', format: 'raw' };
        configure(place, [sourceOf(service, start, quick)], [away], { journal: { maxSize: '16MiB' } });
        const first = new Daemon(place);
        await first.ready(503, /journal: collecting is paused \(journal_full\)/);
        expect(await first.logged('source.paused')).toMatchObject({ level: 'error' });
        const before = await ledgerOf(place);
        await pause(1_500);
        expect((await ledgerOf(place)).ledger.sources[0]?.readUntil, 'no window is closed in that time').toBe(
          before.ledger.sources[0]?.readUntil,
        );
        expect(sizeOf(place)).toBeLessThanOrEqual(quota);
        const status = await place.waybill('status', '--config', 'waybill.yaml');
        expect(status.stdout).toMatch(/COLLECTION PAUSED: the journal is full/);
        expect(await first.stop()).toMatchObject({ code: 0, signal: null });

        mkdirSync(place.path('later'));
        const second = new Daemon(place);
        await until(
          () => `every record in the file\n${second.words()}`,
          90_000,
          async () => {
            await pause(500);
            const { sinks, sources } = JSON.parse((await second.get('/status')).text) as Status;
            return sinks[0]?.lagEntries === 0 && Date.parse(sources[0]?.readUntil ?? '') > ended ? true : undefined;
          },
        );
        await second.ready(200);
        expect(readFileSync(place.path('daemon.log'), 'utf8')).toMatch(/"event":"source.paused".*"(code|reason)":"journal_full"/);
        expect(await second.stop()).toMatchObject({ code: 0 });
        expect(sizeOf(place)).toBeLessThanOrEqual(quota);
        expect(compare(linesOf(place.path('later/siem.ndjson')), await service.truth(), (line) => line)).toEqual(exactlyOnce);
        const { code, ledger } = await readLedgerOf(place);
        expect({ code, complete: ledger.complete }).toEqual({ code: 0, complete: true });
        expect(existsSync(place.path('state/waybill.sock'))).toBe(false);
      }),
  );
});
