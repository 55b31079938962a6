/**
 * The state directory from the operator's view: a second daemon, a volume that is not mounted, a
 * newer release, a lost state, a stop. The daemon exits or continues as documented, with helpful
 * messages.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ago, configure, Daemon, readLedgerOf, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, pause } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { freePort } from '../support/servers/ports.ts';

const records = 200;
const startService = (place: Place): Promise<Service> => Service.start(place, '--records', String(records), '--span', '2m');
/** Quick: no recounts, so that windows of the past are final at once. */
const quick = { closeDelay: '1s', recountAfter: [] };
const file = { id: 'siem', type: 'file', path: './siem.ndjson' };

/** @returns false while another process has the lock of a state */
function takes(lock: Database.Database): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code === 'SQLITE_BUSY') return false;
    throw thrown;
  }
}

// Each test has its own directory and programs, and mostly waits.
describe.concurrent('the state', () => {
  test('a configuration with errors: all errors are printed, exit 2, no state is created', () =>
    inPlace('configuration', async (place) => {
      const auth = { authUrl: 'https://login.example', tenantId: 't', scopeAddress: 's', clientSecret: `\${file:${place.path('none')}}` };
      const source = { id: 'production', baseUrl: 'http://service.example/v2/api', auth, closeDelay: '15 minutes', subscriptionKy: 'abc' };
      configure(place, [source], [{ id: 'siem', type: 'kafkaa' }], { setle: 3, admin: { listen: 'nowhere' } });
      const expected = [
        /setle .*is not a setting/,
        /sources\.production\.baseUrl .*https:/,
        /sources\.production\.auth\.clientId .*is missing/,
        /sources\.production\.closeDelay .*"15 minutes" is not a duration/,
        /sources\.production\.subscriptionKy .*nearest is "subscriptionKey"/,
        /sinks\.siem\.type .*"kafkaa" is not one of/,
        /admin\.listen .*"nowhere"/,
      ];
      for (const command of [['run'], ['check', '--offline'], ['check']]) {
        const { code, stdout, stderr } = await place.waybill(...command, '--config', 'waybill.yaml');
        expect({ code, stdout }, command.join(' ')).toEqual({ code: 2, stdout: '' });
        for (const problem of expected) expect(stderr, command.join(' ')).toMatch(problem);
      }
      expect(existsSync(place.path('state'))).toBe(false);
    }));

  test('a missing secret: exit 2 and the name of the setting; check --offline lists it and exits 0', () =>
    inPlace('secret', async (place) => {
      const auth = {
        authUrl: 'https://login.example',
        tenantId: 't',
        clientId: 'c',
        scopeAddress: 's',
        clientSecret: `\${file:${place.path('none')}}`,
      };
      configure(place, [{ id: 'production', baseUrl: 'https://service.example/v2/api', auth, start: ago(0) }], [file]);
      for (const command of [['run'], ['check', '--offline', '--require-secrets'], ['check']]) {
        const { code, stderr } = await place.waybill(...command, '--config', 'waybill.yaml');
        expect(code, command.join(' ')).toBe(2);
        expect(stderr).toMatch(/sources\.production\.auth\.clientSecret/);
        expect(stderr).toContain(place.path('none'));
      }
      const offline = await place.waybill('check', '--offline', '--config', 'waybill.yaml');
      expect(offline.code).toBe(0);
      expect(offline.stdout).toMatch(/sources\.production\.auth\.clientSecret/);
    }));

  test('one daemon owns the state: a second daemon exits 75, and the first continues', { timeout: 300_000 }, () =>
    inPlace('owner', async (place) => {
      const service = await startService(place);
      configure(place, [sourceOf(service, ago(150_000), quick)], [file]);
      const first = new Daemon(place);
      await first.ready(200);
      const began = performance.now();
      const second = await place.waybill('run', '--config', 'waybill.yaml', '--lock-wait', '1s');
      expect(second.code).toBe(75);
      expect(performance.now() - began).toBeGreaterThan(1_000);
      const last = second.stderr.trim().split('\n').at(-1) ?? '';
      expect(JSON.parse(last)).toMatchObject({ level: 'error', code: 'state_locked', event: 'daemon.not_started' });
      expect(last).toMatch(/cannot lock the state in .*another running process/);
      await first.ready(200);
      // After the first has exited, a waiting daemon takes over.
      const third = new Daemon(place, '--lock-wait', '20s');
      await third.logged('admin.listening');
      await third.logged('state.waiting_for_lock');
      expect((await third.get('/healthz')).status, 'while it waits').toBe(200);
      await first.kill();
      await third.logged('state.opened');
      await third.ready(200);
      expect(await third.stop()).toMatchObject({ code: 0, signal: null });
    }),
  );

  test('a daemon that waits for the state also waits for the port of its owner', { timeout: 300_000 }, () =>
    inPlace('takeover', async (place) => {
      const service = await startService(place);
      const port = await freePort();
      configure(place, [sourceOf(service, ago(150_000), quick)], [file], { admin: { listen: `127.0.0.1:${port}` } });
      const first = new Daemon(place);
      await first.ready(200);
      const second = new Daemon(place, '--lock-wait', '60s');
      await second.logged('state.waiting_for_lock');
      const stopped = first.stop();
      await second.ready(200);
      expect((await stopped).code).toBe(0);
      expect(second.find('admin.listening')).toMatchObject({ addresses: [`http://127.0.0.1:${port}`] });
      // The port becomes free together with the lock, also for another program.
      const ended = second.stop();
      const lock = new Database(place.path('state/lock.db'), { timeout: 0 });
      while (!takes(lock)) await pause(1);
      await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
      lock.close();
      expect(await ended).toMatchObject({ code: 0, signal: null });
    }),
  );

  test('--require-state refuses an empty directory', () =>
    inPlace('expect', async (place) => {
      const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', scopeAddress: 's', clientSecret: 'hush' };
      configure(place, [{ id: 'production', baseUrl: 'https://service.example/v2/api', auth, start: ago(0) }], [file]);
      mkdirSync(place.path('state'), { mode: 0o700 });
      const { code, stderr } = await place.waybill('run', '--config', 'waybill.yaml', '--require-state');
      expect(code).toBe(1);
      expect(stderr).toMatch(/cannot find a state in .*is the volume mounted\?/);
      expect(readdirSync(place.path('state'))).toEqual([]);
      expect(existsSync(place.path('siem.ndjson'))).toBe(false);
    }));

  test(
    'only its owner may read it; a newer release is refused in one line; after its loss the file sink is blocked with a reason, and a new sink receives all records from start',
    { timeout: 300_000 },
    () =>
      inPlace('lost', async (place) => {
        const service = await startService(place);
        const source = sourceOf(service, ago(150_000), quick);
        configure(place, [source], [file]);
        const first = new Daemon(place);
        await delivered(service, [place.path('siem.ndjson')]);
        const mode = (name: string): string => (statSync(place.path(name)).mode & 0o777).toString(8);
        expect(mode('state')).toBe('700');
        for (const name of ['state/waybill.db', 'siem.ndjson', '.waybill/siem.ndjson.position']) expect(mode(name), name).toBe('600');
        expect(await first.stop()).toMatchObject({ code: 0 });

        const db = new Database(place.path('state/waybill.db'));
        const set = db.prepare('UPDATE meta SET value = ? WHERE key = ?');
        for (const [key, value] of [
          ['schema', 99],
          ['min_reader', 99],
          ['written_by', '9.9.9'],
          ['readable_from', '9.0.0'],
        ])
          expect(set.run(value, key).changes, String(key)).toBe(1);
        db.close();
        const expected = /state was written by 9\.9\.9 \(schema 99, readable from 9\.0\.0 on\); this .*\. Start 9\.0\.0 or later/;
        for (const command of ['run', 'ledger', 'status']) {
          const { code, stderr } = await place.waybill(command, '--config', 'waybill.yaml');
          expect(code, command).toBe(1);
          const lines = stderr.split('\n').filter((line) => expected.test(line));
          expect(lines, `${command}: ${stderr}`).toHaveLength(1);
          // The daemon writes it in the format of its log.
          if (command === 'run')
            expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'error', code: 'state_too_new', event: 'daemon.not_started' });
        }
        const after = new Database(place.path('state/waybill.db'), { readonly: true });
        expect(after.prepare("SELECT value FROM meta WHERE key = 'written_by'").pluck().get(), 'not touched').toBe('9.9.9');
        after.close();

        const size = statSync(place.path('siem.ndjson')).size;

        rmSync(place.path('state'), { recursive: true });
        configure(
          place,
          [source],
          [
            { ...file, failReadinessAfter: '1s' },
            { id: 'other', type: 'file', path: './other.ndjson' },
          ],
        );
        const second = new Daemon(place);
        expect(await second.logged('state.created')).toMatchObject({ level: 'warn' });
        const blocked = await second.logged('sink.delivery_blocked');
        expect(blocked).toMatchObject({ level: 'error', sink: 'siem', code: 'sink_blocked' });
        await second.ready(503, /sink siem: .*siem\.ndjson.*belongs to another state/);
        expect((await second.get('/readyz?sink=other')).status).toBe(200);
        const truth = await service.truth();
        await delivered(service, [place.path('other.ndjson')]);
        expect(compare(linesOf(place.path('siem.ndjson')), truth, originalOf)).toEqual(exactlyOnce);
        expect(statSync(place.path('siem.ndjson')).size).toBe(size);
        expect(await second.stop()).toMatchObject({ code: 0 });
      }),
  );

  test('SIGTERM under load: exit 0 within shutdownTimeout, no torn line, and the next start continues', { timeout: 300_000 }, () =>
    inPlace('stop', async (place) => {
      const service = await Service.start(
        place,
        '--records',
        '6000',
        '--span',
        '5m',
        '--fault-slow',
        '0.2',
        '--slow-for',
        '300ms',
        '--fault-stalled',
        '0.03',
      );
      configure(place, [sourceOf(service, ago(310_000), quick)], [file]);
      const moments = ['source.first_record', 'sink.first_delivery', 'admin.listening', 'window.first_proven'] as const;
      for (const after of moments) {
        const daemon = new Daemon(place);
        await daemon.logged(after);
        await pause(place.chance() * 300);
        const { code, signal, ms } = await daemon.stop();
        expect({ code, signal }, after).toEqual({ code: 0, signal: null });
        expect(ms, after).toBeLessThan(20_000);
        expect(daemon.log.at(-1), after).toMatchObject({ event: 'daemon.stopped' });
        if (existsSync(place.path('siem.ndjson'))) {
          const found = compare(linesOf(place.path('siem.ndjson')), await service.truth(), originalOf);
          expect({ ...found, missing: [] }, after).toEqual(exactlyOnce);
        }
      }
      await service.set({ faultSlow: 0, faultStalled: 0 });
      const daemon = new Daemon(place);
      await daemon.logged('source.first_token');
      await delivered(service, [place.path('siem.ndjson')]);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
      expect((await readLedgerOf(place)).code).toBe(0);
    }),
  );

  test(
    'a sink with a missing directory is blocked and other sinks continue; after a restart with the directory it receives all records',
    { timeout: 300_000 },
    () =>
      inPlace('directory', async (place) => {
        const service = await startService(place);
        const later = { id: 'later', type: 'file', path: './later/siem.ndjson', failReadinessAfter: '1s' };
        configure(place, [sourceOf(service, ago(150_000), quick)], [file, later]);
        const first = new Daemon(place);
        await first.ready(503, /sink later: .*sinks\.later\.path/);
        expect((await first.get('/readyz?sink=siem')).status).toBe(200);
        await first.logged('sink.first_delivery');
        expect(await first.stop()).toMatchObject({ code: 0 });
        mkdirSync(place.path('later'));
        const second = new Daemon(place);
        await second.ready(200);
        await delivered(service, [place.path('later/siem.ndjson'), place.path('siem.ndjson')]);
        expect(await second.stop()).toMatchObject({ code: 0 });
      }),
  );
});
