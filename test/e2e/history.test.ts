/**
 * History added to a ledger: read with proof after all new records, resumed after `kill -9`, and
 * never sent twice; and other operations, with and without a running daemon, each in the record of
 * operations.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ago, configure, Daemon, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, faultsOf, linesOf, originalOf, Seconds } from '../support/e2e-oracle.ts';
import { inPlace, pause, until, patience } from '../support/e2e-place.ts';
import type { Done, Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const file = { id: 'siem', type: 'file', path: './siem.ndjson' };
const quick = { closeDelay: '1s', recountAfter: [] };
/** Number of kills while history is read. */
const kills = Number(process.env['WAYBILL_E2E_BACKFILL_KILLS'] ?? 2);

interface Listed {
  readonly source: string;
  readonly from: string;
  readonly to: string;
  readonly readUntil: string;
  readonly state: string;
  readonly records: number;
}

interface Operation {
  readonly actor: string;
  readonly operation: string;
  readonly source: string;
  readonly why: string | null;
}

const waybill = (place: Place, ...args: string[]): Promise<Done> => place.waybill(...args, '--config', 'waybill.yaml');

async function json<Value>(place: Place, ...args: string[]): Promise<Value> {
  const { code, stdout, stderr } = await waybill(place, ...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as Value;
}

const backfills = async (place: Place): Promise<Listed[]> =>
  (await json<{ backfills: Listed[] }>(place, 'backfill', 'list', '--all')).backfills;
const operations = async (place: Place): Promise<Operation[]> =>
  (await json<{ operations: Operation[] }>(place, 'operations', 'list')).operations;

/**
 * The unfinished ranges of history, from the running daemon; polled without starting a program each
 * time.
 */
async function running(daemon: Daemon): Promise<Listed[]> {
  const { text } = await daemon.get('/status');
  return (JSON.parse(text) as { sources: { backfills?: Listed[] }[] }).sources.flatMap((source) => source.backfills ?? []);
}

async function done(daemon: Daemon, ms = patience): Promise<void> {
  let last: Listed[] = [];
  await until(
    () => `the backfill is done: ${JSON.stringify(last)}\n${daemon.words()}`,
    ms,
    async () => ((last = await running(daemon)).length === 0 ? true : undefined),
  );
}

/** The number of complete lines in a file that is being written. */
function countOf(path: string): number {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

/** The times of the records in a file of ECS lines, in seconds. */
function secondsIn(path: string): number[] {
  return linesOf(path).map((line) => Date.parse((JSON.parse(line) as { '@timestamp': string })['@timestamp']) / 1000);
}

describe.concurrent('history', () => {
  // promise: A backfill with `kill -9`: new records are delivered first, each record once, and the windows leave no hole.
  test(
    'a backfill with kill -9: new records are delivered first, each record once, and the windows leave no hole',
    { timeout: 300_000 },
    () =>
      inPlace('backfill', async (place) => {
        // At least nine windows, because no window crosses midnight: more than the lives of the daemon read.
        const begin = ago(8 * 86_400_000 + 60_000);
        const start = ago(60_000);
        const service = await Service.start(place, '--records', '4000', '--span', '8d', '--rate', '20', '--page-size-max', '200');
        configure(place, [sourceOf(service, start, quick)], [file]);
        const first = new Daemon(place);
        await first.logged('window.first_proven');

        interface Dry {
          readonly ranges: unknown;
          readonly estimate: { readonly records: number; readonly windows: number; readonly requests: number };
        }
        const dry = await json<Dry>(place, 'backfill', '--source', 'production', '--from', begin, '--dry-run');
        expect(dry.ranges).toEqual([{ from: begin, to: start }]);
        // The total is the query's, with a second of padding on both sides.
        const [from, end] = [Date.parse(begin) / 1000 - 1, Date.parse(start) / 1000 + 1];
        expect(dry.estimate.records).toBe(new Seconds(await service.truth()).matching(from, end));
        expect(dry.estimate.windows).toBeGreaterThan(0);
        expect(await operations(place)).toEqual([]);

        // After each window the backfill pauses for about 13 s, so that kills, restarts and commands happen before its end.
        const asked = ['backfill', '--source', 'production', '--from', begin, '--rate', '0.3'];
        const refused = await waybill(place, ...asked);
        expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
        expect(refused.stderr).toMatch(/not a terminal; pass --yes to confirm/);
        expect(await backfills(place)).toEqual([]);
        const by = ['--yes', '--actor', 'j.doe', '--reason', 'ticket 4711'];
        expect(await json(place, ...asked, '--no-wait', ...by)).toEqual({ added: [{ from: begin, to: start }] });
        expect((await waybill(place, ...asked, ...by)).stdout).toMatch(/nothing to add/);

        let daemon = first;
        for (let life = 0; life < kills; life += 1) {
          await pause(200 + place.chance() * 800);
          await daemon.kill();
          daemon = new Daemon(place);
          await daemon.logged('source.first_record');
        }
        const newest = JSON.stringify((await service.truth()).at(-1)).slice(1, -1);
        const isThere = (): boolean => readFileSync(place.path('siem.ndjson'), 'utf8').includes(newest);
        await until('the newest record while history is read', patience, () => (isThere() ? true : undefined));
        expect(await running(daemon), 'history is read after new records').toMatchObject([{ state: 'running', from: begin, to: start }]);
        const status = await waybill(place, 'status');
        expect(status.stdout).toMatch(/^BACKFILL {2}production, .* % \(.* of .* records\), up to /m);

        await service.set({ rate: 0 });
        await done(daemon, 180_000);
        const [range] = await backfills(place);
        const all = await service.truth();
        const seconds = new Seconds(all);
        await settled(daemon, Math.ceil(seconds.last + 1) * 1000, patience);
        await delivered(service, [place.path('siem.ndjson')]);
        expect(await daemon.stop()).toMatchObject({ code: 0 });
        expect(range?.records).toBe(seconds.between(Date.parse(begin) / 1000, Date.parse(start) / 1000));
        expect(compare(linesOf(place.path('siem.ndjson')), all, originalOf)).toEqual(exactlyOnce);
        const { code, ledger } = await readLedgerOf(place);
        expect({ code, complete: ledger.complete }).toEqual({ code: 0, complete: true });
        if (!ledger.sources[0]) throw new Error('the report has no source');
        expect(faultsOf(ledger.sources[0], seconds, Date.parse(begin) / 1000)).toEqual([]);
        expect(await operations(place)).toMatchObject([
          { actor: 'j.doe', operation: 'backfill', source: 'production', reason: 'ticket 4711' },
        ]);
      }),
  );

  test(
    'a backfill is added, paused, cancelled and added again, for one sink, with and without a daemon; no record is delivered twice',
    { timeout: 300_000 },
    () =>
      inPlace('offline', async (place) => {
        const [earlier, begin, middle, start] = [ago(700_000), ago(600_000), ago(300_000), ago(30_000)];
        const service = await Service.start(place, '--records', '3000', '--span', '9m');
        const other = { id: 'archive', type: 'file', path: './archive.ndjson' };
        configure(place, [sourceOf(service, start, { ...quick, requests: { perSecond: 100, timeout: '5s' } })], [file, other]);
        const none = await waybill(place, 'backfill', '--source', 'production', '--from', begin, '--yes');
        expect(none).toMatchObject({ code: 1, stdout: '' });
        expect(none.stderr).toMatch(/cannot find a state in/);
        const first = new Daemon(place);
        await first.logged('window.first_proven');
        expect(await first.stop()).toMatchObject({ code: 0 });

        // No daemon: the command takes the lock itself.
        const add = ['backfill', '--source', 'production', '--from', begin, '--to', middle, '--sinks', 'archive', '--yes'];
        const added = await waybill(place, ...add);
        expect(added).toMatchObject({ code: 0 });
        expect(added.stderr).toMatch(
          /about .* records, .* windows?, .* requests.*\n.*only for archive\nno daemon runs; the next daemon reads the period/,
        );
        await json(place, 'backfill', 'pause', '--yes');
        expect((await waybill(place, 'backfill', 'pause', '--yes')).code).toBe(2);

        const second = new Daemon(place);
        await second.logged('window.first_proven');
        expect(await backfills(place)).toMatchObject([{ state: 'paused', readUntil: begin, records: 0 }]);
        await json(place, 'backfill', 'resume', '--yes');
        // Progress to the end, as plain lines without a terminal.
        const rest = await waybill(place, 'backfill', '--source', 'production', '--from', begin, '--yes', '--reason', 'the rest');
        expect(rest).toMatchObject({ code: 0 });
        expect(rest.stderr).toMatch(/^backfill of production: \d+\.\d % \(.*$/m);
        expect(rest.stderr).toMatch(/^backfill of production finished: [\d,]+ records in \d+ windows?$/m);
        await done(second);
        await delivered(service, [place.path('archive.ndjson')]);
        // A daemon that owns the state but cannot be reached: the command changes nothing.
        rmSync(place.path('state/waybill.sock'));
        const owned = await waybill(place, 'backfill', '--source', 'production', '--from', earlier, '--yes');
        expect({ code: owned.code, stdout: owned.stdout }).toEqual({ code: 75, stdout: '' });
        expect(owned.stderr).toMatch(/another running process owns it/);
        expect(await second.stop()).toMatchObject({ code: 0 });

        const truth = await service.truth();
        expect(compare(linesOf(place.path('archive.ndjson')), truth, originalOf)).toEqual(exactlyOnce);
        // The other sink has every record except those requested for the first sink alone.
        const withheld = new Seconds(truth).between(Date.parse(begin) / 1000, Date.parse(middle) / 1000);
        expect(withheld).toBeGreaterThan(100);
        expect(secondsIn(place.path('siem.ndjson')).filter((at) => at < Date.parse(middle) / 1000)).toEqual([]);
        expect(linesOf(place.path('siem.ndjson'))).toHaveLength(truth.length - withheld);
        expect((await operations(place)).map(({ operation }) => operation)).toEqual([
          'backfill',
          'backfill pause',
          'backfill resume',
          'backfill',
        ]);
      }),
  );

  test(
    'a backfill cancelled during collection ends after the collected records; added again, it delivers no record twice',
    { timeout: 300_000 },
    () =>
      inPlace('cancel', async (place) => {
        const [begin, start] = [ago(400_000), ago(30_000)];
        const service = await Service.start(place, '--records', '6000', '--span', '6m', '--page-size-max', '100');
        configure(place, [sourceOf(service, start, quick)], [file]);
        const daemon = new Daemon(place);
        await daemon.logged('window.first_proven');
        const add = ['backfill', '--source', 'production', '--from', begin, '--no-wait', '--yes'];
        // Slow enough to be cancelled before the end.
        await json(place, ...add, '--rate', '2');
        await until('some of it is read', patience, async () => (((await running(daemon))[0]?.records ?? 0) > 0 ? true : undefined));
        const { ends } = await json<{ ends: string }>(place, 'backfill', 'cancel', '--yes');
        expect(Date.parse(ends)).toBeGreaterThan(Date.parse(begin));
        await done(daemon);
        if (Date.parse(ends) < Date.parse(start)) {
          expect(await backfills(place)).toMatchObject([{ from: begin, to: ends, readUntil: ends }]);
          expect(await json(place, ...add)).toEqual({ added: [{ from: ends, to: start }] });
        }
        await done(daemon);
        await delivered(service, [place.path('siem.ndjson')]);
        expect(await daemon.stop()).toMatchObject({ code: 0 });
        expect(compare(linesOf(place.path('siem.ndjson')), await service.truth(), originalOf)).toEqual(exactlyOnce);
      }),
  );

  test('one gap is accepted and another retried, with and without a daemon', { timeout: 300_000 }, () =>
    inPlace('gaps', async (place) => {
      const start = ago(62_000);
      const service = await Service.start(place, '--records', '600', '--span', '1m', '--total', 'missing');
      configure(place, [sourceOf(service, start, { ...quick, closeDelay: '2s' })], [file]);
      const daemon = new Daemon(place);
      interface Gap {
        readonly from: string;
        readonly to: string;
        readonly state: string;
      }
      const gaps = async (): Promise<Gap[]> => (await json<{ gaps: Gap[] }>(place, 'gaps', 'list')).gaps;
      await daemon.logged('window.not_proven');
      await until('two gaps', patience, async () => ((await gaps()).length >= 2 ? true : undefined));
      const [one, two] = await gaps();
      if (!one || !two) throw new Error('there are no two gaps');
      expect((await waybill(place, 'gaps', 'accept', one.from, '--yes')).stderr).toMatch(/missing --reason/);
      expect((await waybill(place, 'gaps', 'accept', '2020-01-01T00:00:00Z', '--reason', 'x', '--yes')).code).toBe(2);
      writeFileSync(place.path('outage.txt'), 'the service was down');
      const accept = [
        'gaps',
        'accept',
        one.from,
        '--reason',
        'outage, ticket 4711',
        '--evidence',
        place.path('outage.txt'),
        '--actor',
        'j.doe',
      ];
      expect(await json(place, ...accept, '--yes')).toMatchObject({ accepted: [{ from: one.from }] });
      expect((await waybill(place, ...accept, '--yes')).stderr).toMatch(/already accepted/);
      const ledger = await daemon.ledger();
      expect(ledger.sources[0]?.completeUntil).toBe(one.to);
      expect(ledger.sources[0]?.windows[0]).toMatchObject({ from: one.from, state: 'accepted' });

      // The service sends totals again: a retry is due at once, not after a minute.
      await service.set({ total: 'right' });
      await json(place, 'gaps', 'retry', two.from, '--yes');
      await until('the second is proven', patience, async () => ((await gaps()).some(({ from }) => from === two.from) ? undefined : true));
      expect(await daemon.stop()).toMatchObject({ code: 0 });
      const open = (await gaps()).filter(({ state }) => state === 'gap');
      if (open[0]) await json(place, 'gaps', 'accept', '--all', '--reason', 'without a daemon', '--yes');
      const { code, ledger: after } = await readLedgerOf(place);
      expect({ code, completeUntil: after.sources[0]?.completeUntil }).toEqual({ code: 3, completeUntil: after.sources[0]?.readUntil });
      const text = await waybill(place, 'operations', 'list');
      expect(text.stdout).toMatch(/j\.doe +gaps accept +production +1 +done +outage, ticket 4711 +from /);
      expect((await operations(place)).slice(0, 2)).toMatchObject([
        { operation: 'gaps accept' },
        { operation: 'gaps retry', source: 'production' },
      ]);
    }),
  );

  test('start: earliest in an included file; a source that leaves the configuration is delivered and retired', { timeout: 300_000 }, () =>
    inPlace('earliest', async (place) => {
      const service = await Service.start(place, '--records', '1000', '--span', '20d', '--sort', 'ignored');
      const more = { ...quick, requests: { perSecond: 1_000, timeout: '5s' } };
      const later = { id: 'later', type: 'file', path: './later/siem.ndjson' };
      configure(place, [sourceOf(service, 'earliest', more)], [file, later], { include: ['tenants/*.yaml'] });
      mkdirSync(place.path('tenants'));
      const tenant = { ...sourceOf(service, ago(21 * 86_400_000), more), id: 'tenant-b' };
      writeFileSync(place.path('tenants/b.yaml'), JSON.stringify({ sources: [tenant] }));
      const first = new Daemon(place);
      const truth = await service.truth();
      await until('both sources in the file', patience, () => (countOf(place.path('siem.ndjson')) === truth.length * 2 ? true : undefined));
      const seconds = new Seconds(truth);
      const begin = Date.parse((await first.ledger()).sources.find(({ id }) => id === 'production')?.windows[0]?.from ?? '') / 1000;
      expect(begin).toBeLessThanOrEqual(seconds.first);
      expect(seconds.first - begin).toBeLessThan(5);
      expect(await first.stop()).toMatchObject({ code: 0 });

      // Removes the source before the second sink has received any of its records.
      configure(place, [sourceOf(service, 'earliest', more)], [file, later]);
      mkdirSync(place.path('later'));
      const second = new Daemon(place);
      await second.logged('source.unconfigured');
      await until('the records in the journal are delivered', patience, () =>
        countOf(place.path('later/siem.ndjson')) === truth.length * 2 ? true : undefined,
      );
      const tenants = linesOf(place.path('later/siem.ndjson')).map(
        (line) => (JSON.parse(line) as { organization?: { id?: string } }).organization?.id,
      );
      expect(new Set(tenants)).toEqual(new Set([service.line.tenantId]));
      const listed = await json<{ sources: { id: string; state: string; configured: boolean }[] }>(place, 'sources', 'list');
      expect(listed.sources).toMatchObject([
        { id: 'production', state: 'active', configured: true },
        { id: 'tenant-b', state: 'unconfigured', configured: false },
      ]);
      expect((await waybill(place, 'sources', 'retire', '--source', 'production', '--yes')).stderr).toMatch(/it is configured/);
      await json(place, 'sources', 'retire', '--source', 'tenant-b', '--reason', 'tenant closed', '--yes');
      expect((await second.get('/status')).text).toMatch(/"id":"tenant-b","state":"retired"/);
      expect(await second.stop()).toMatchObject({ code: 0 });
      expect((await readLedgerOf(place, '--source', 'production')).code).toBe(0);
      expect((await operations(place)).map(({ operation, source }) => [operation, source])).toEqual([['sources retire', 'tenant-b']]);
    }),
  );
});
