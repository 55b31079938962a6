/**
 * History that is added to a ledger: read with proof behind everything that is new, gone on with after `kill -9`, nothing sent twice, and every
 * change by a person on record.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ago, configure, Daemon, ledgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, faultsOf, linesOf, originalOf, Seconds } from '../support/e2e-oracle.ts';
import { inPlace, pause, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const file = { id: 'siem', type: 'file', path: './siem.ndjson' };
const quick = { settle: '1s', recount: [] };

interface Listed {
  readonly source: string;
  readonly from: string;
  readonly until: string;
  readonly reached: string;
  readonly state: string;
  readonly records: number;
  readonly expected: number | null;
}

async function backfills(place: Place): Promise<Listed[]> {
  const { code, stdout, stderr } = await place.waybill('backfill', 'list', '--all', '--json', '--config', 'waybill.yaml');
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { backfills: Listed[] }).backfills;
}

interface Operation {
  readonly who: string;
  readonly what: string;
  readonly source: string;
  readonly why: string | null;
}

async function operations(place: Place): Promise<Operation[]> {
  const { stdout } = await place.waybill('operations', 'list', '--json', '--config', 'waybill.yaml');
  return (JSON.parse(stdout) as { operations: Operation[] }).operations;
}

describe.concurrent('history', () => {
  test('a backfill over kill -9: what is new goes first, each record once, the ledger tiles', { timeout: 120_000 }, () =>
    inPlace('backfill', async (place) => {
      const begin = ago(600_000);
      const start = ago(120_000);
      const service = await Service.start(place, '--records', '12000', '--span', '9m', '--rate', '20');
      configure(place, [sourceOf(service, start, { ...quick, requests: { perSecond: 40, timeout: '5s' } })], [file]);
      const first = new Daemon(place);
      await first.logged('first window proven');

      const dry = await place.waybill(
        'backfill',
        '--source',
        'production',
        '--from',
        begin,
        '--dry-run',
        '--json',
        '--config',
        'waybill.yaml',
      );
      expect(dry.code, dry.stderr).toBe(0);
      const { ranges, estimate } = JSON.parse(dry.stdout) as {
        ranges: unknown;
        estimate: { records: number; windows: number; requests: number };
      };
      expect(ranges).toEqual([{ from: begin, until: start }]);
      const truth = await service.truth();
      const older = new Seconds(truth).matching(Date.parse(begin) / 1000, Date.parse(start) / 1000);
      // The count is that of a query with a second of padding on both sides.
      expect(Math.abs(estimate.records - older)).toBeLessThan(100);
      expect(estimate.windows).toBeGreaterThan(0);
      expect(await operations(place)).toEqual([]);

      const asked = ['backfill', '--source', 'production', '--from', begin, '--rate', '8', '--config', 'waybill.yaml'];
      const refused = await place.waybill(...asked);
      expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
      expect(refused.stderr).toMatch(/nothing was done: nobody can be asked here; --yes does it/);
      const added = await place.waybill(...asked, '--no-wait', '--yes', '--json', '--by', 'j.doe', '--why', 'ticket 4711');
      expect(added.code, added.stderr).toBe(0);
      expect(JSON.parse(added.stdout)).toEqual({ added: [{ from: begin, until: start }] });
      const again = await place.waybill(...asked, '--yes');
      expect(again).toMatchObject({ code: 0 });
      expect(again.stdout).toMatch(/nothing to add/);

      const kills = 4;
      let daemon = first;
      for (let life = 0; life < kills; life += 1) {
        await pause(300 + place.chance() * 900);
        await daemon.kill();
        daemon = new Daemon(place);
        await daemon.logged('first record').catch(() => undefined);
      }
      const [halfway] = await backfills(place);
      expect(halfway, 'the kills fell into it').toMatchObject({ state: 'running', from: begin, until: start });
      const status = await place.waybill('status', '--config', 'waybill.yaml');
      expect(status.stdout).toMatch(/^BACKFILL {2}production, .* % \(.* of .* records\), up to /m);

      // What is new is there within a poll or two although history is being read.
      const size = linesOf(place.path('siem.ndjson')).length;
      const newest = (await service.truth()).at(-1) ?? '';
      await until('the newest record while history is read', 5_000, () =>
        readFileSync(place.path('siem.ndjson'), 'utf8').includes(JSON.stringify(newest).slice(1, -1)) ? true : undefined,
      );
      expect(size).toBeGreaterThan(0);

      const [range] = await until('the backfill is done', 90_000, async () => {
        const found = await backfills(place);
        return found.every(({ state }) => state === 'done') ? found : undefined;
      });
      await service.set({ rate: 0 });
      await pause(1_000);
      await settled(daemon, Math.floor(Date.now() / 1000) * 1000 - 2_000, 30_000);
      await delivered(service, [place.path('siem.ndjson')]);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
      const all = await service.truth();
      const seconds = new Seconds(all);
      expect(range?.records).toBe(seconds.between(Date.parse(begin) / 1000, Date.parse(start) / 1000));
      expect(compare(linesOf(place.path('siem.ndjson')), all, originalOf)).toEqual(exactlyOnce);
      const { code, ledger } = await ledgerOf(place);
      expect({ code, complete: ledger.complete }).toEqual({ code: 0, complete: true });
      const [source] = ledger.sources;
      if (!source) throw new Error('the report has no source');
      const faults = faultsOf(source, seconds, Date.parse(begin) / 1000).filter((fault) => !fault.startsWith('the ledger ends at'));
      expect(faults).toEqual([]);
      expect(await operations(place)).toMatchObject([{ who: 'j.doe', what: 'backfill', source: 'production', why: 'ticket 4711' }]);
    }),
  );
});
