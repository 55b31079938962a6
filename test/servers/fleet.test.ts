/**
 * A fleet in its short forms: kills and stops, and all shards seen from any member. fleet-chaos.test.ts has the long form.
 */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openPool } from '../../src/fleet/database.ts';
import { ago, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { ModelElasticsearch } from '../support/model-elasticsearch.ts';
import { chaos } from '../support/servers/fleet-chaos.ts';
import { singleServer } from '../support/servers/fleet-databases.ts';
import { Members } from '../support/servers/fleet-members.ts';
import { freePort } from '../support/servers/ports.ts';
import { kafkaMissing } from '../support/servers/kafka-broker.ts';
import { Postgres, postgresMissing } from '../support/servers/postgres.ts';
import { notAsked } from '../support/servers/programs.ts';

const missing = notAsked() ?? postgresMissing ?? kafkaMissing('4.4.0');
const shards = 6;
const sourceCount = 6;
const rounds = Number(process.env['WAYBILL_FLEET_ROUNDS'] ?? 3);

describe('a fleet of three members', () => {
  // promise: Kills of members and of the database of a fleet: each record of each source arrives, and each shard is whole.
  test(
    'keeps every record while members and the database are killed and stopped',
    { timeout: 1_500_000 + rounds * 120_000 },
    ({ skip }) => {
      if (missing !== undefined) return skip(missing);
      return inPlace('fleet', (place) =>
        chaos(place, { rounds, shards, sources: sourceCount, leaseMs: 5_000, rate: 15, hasElasticsearch: false, database: singleServer }),
      );
    },
  );

  // promise: Any member shows all shards of a fleet; reports need no member, and operations reach the owner of a shard.
  test('shows all shards from any member and without one, and carries out operations at their owners', { timeout: 900_000 }, ({ skip }) => {
    if (missing !== undefined) return skip(missing);
    return inPlace('fleet-status', async (place) => {
      await using server = await Postgres.start();
      const pool = openPool({ connectionString: server.url }, 10_000);
      await pool.query('CREATE ROLE member LOGIN; CREATE ROLE reader LOGIN');
      await using receiver = await new ModelElasticsearch().listen();
      const start = ago(600_000);
      const service = await Service.start(place, '--records', '200', '--span', '9m');
      const sources = Array.from({ length: sourceCount }, (_, i) => ({ ...sourceOf(service, start, {}), id: `tenant-${i}` }));
      const ids = sources.map(({ id }) => id);
      const sinks = [{ id: 'siem', type: 'elasticsearch', nodes: `http://127.0.0.1:${receiver.port}` }];
      const ports = [await freePort(), await freePort()];
      const databaseOf = (user: string): string => server.url.replace('postgres@', `${user}@`);
      const write = (name: string, user: string, port: number): void => {
        const fleet = { database: databaseOf(user), lease: '5s' };
        const config = { dataDir: `./${name}`, sources, sinks, fleet, shutdownTimeout: '5s', admin: { listen: `127.0.0.1:${port}` } };
        writeFileSync(place.path(`${name}.yaml`), JSON.stringify(config));
      };
      for (const [slot, port] of ports.entries()) write(`member-${slot}`, 'member', port);
      write('reader', 'reader', 1);
      let refused = 0;
      receiver.refuse = () =>
        refused++ === 0 ? { status: 400, type: 'document_parsing_exception', reason: 'a test refuses it' } : undefined;
      const run = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await place.waybill(...args);
        expect({ code, stderr }, `${args.join(' ')}\n${stdout}`).toMatchObject({ code: 0 });
        return stdout;
      };
      const read = async <Value>(...args: string[]): Promise<Value> =>
        JSON.parse(await run(...args, '--json', '--config', place.path('reader.yaml'))) as Value;
      const before = await place.waybill('status', '--config', place.path('reader.yaml'));
      expect(before.stderr).toContain('waybill setup postgres');
      const setup = [
        'setup',
        'postgres',
        '--shards',
        String(shards),
        '--reader',
        'reader',
        '--yes',
        '--config',
        place.path('member-0.yaml'),
      ];
      expect(await place.waybillWith({ WAYBILL_SETUP_DATABASE: server.url }, ...setup)).toMatchObject({ code: 0 });
      const members = new Members(place);
      for (const slot of ports.keys()) members.start(slot);

      interface Status {
        readonly complete: boolean;
        readonly stoppedSince: string | null;
        readonly sources: readonly { readonly id: string; readonly records: number; readonly state: string }[];
        readonly sinks: readonly { readonly id: string; readonly lagEntries: number; readonly deadLetters: number }[];
        readonly fleet: {
          readonly members: readonly { readonly name: string }[];
          readonly shards: readonly { readonly owner: string | null }[];
        };
      }
      interface Ledger {
        readonly sources: readonly { readonly id: string; readonly lifetime: { readonly collected: number } }[];
      }
      const truth = await service.truth();
      const isWhole = (status: Status): boolean =>
        status.complete &&
        status.sinks[0]?.lagEntries === 0 &&
        status.fleet.members.length === 2 &&
        new Set(status.fleet.shards.map(({ owner }) => owner)).size === 2 &&
        status.sources.every(({ records }) => records === truth.length);
      let last: unknown;
      const whole = await until(
        () => `the status is whole: ${JSON.stringify(last)}\n${members.output}`,
        300_000,
        async () => {
          const status = await read<Status>('status');
          last = status;
          return isWhole(status) ? status : undefined;
        },
      );
      expect(whole.sources.map(({ id }) => id).toSorted()).toEqual(ids);
      expect(whole.sinks).toMatchObject([{ id: 'siem', deadLetters: 1 }]);
      expect(whole.fleet.shards.map(({ owner }) => owner)).not.toContain(null);
      for (const port of ports) {
        const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json();
        expect(await get('/readyz')).toEqual({ ready: true, reasons: [] });
        const shown = (await get('/status')) as Status;
        expect(shown.sources.map(({ id, records }) => [id, records]).toSorted()).toEqual(ids.map((id) => [id, truth.length]));
        expect(shown.fleet.members.map(({ name }) => name)).toEqual(whole.fleet.members.map(({ name }) => name));
        const page = (await get('/overview')) as { sources: { id: string; strip: string }[]; detail: { source: string } };
        expect(page.sources.map(({ id, strip }) => [id, strip.length > 0]).toSorted()).toEqual(ids.map((id) => [id, true]));
        // The reports of the commands, from the database: also of the shards of the other member.
        expect(((await get('/ledger')) as Ledger).sources.map(({ id, lifetime }) => [id, lifetime.collected])).toEqual(
          ids.map((id) => [id, truth.length]),
        );
        expect(await get('/gaps')).toEqual(await read('gaps', 'list'));
        expect(await get('/operations')).toEqual({ operations: [] });
        expect(await get('/gaps?source=x')).toMatchObject({ error: expect.stringContaining('cannot find the source "x"') as string });
      }

      // A source that a member collects from a SIGHUP on.
      sources.push({ ...sourceOf(service, start, {}), id: 'tenant-new' });
      ids.push('tenant-new');
      for (const [slot, port] of ports.entries()) write(`member-${slot}`, 'member', port);
      write('reader', 'reader', 1);
      for (const slot of ports.keys()) members.signal(slot, 'SIGHUP');
      await until(
        () => `the new source is collected: ${JSON.stringify(last)}\n${members.output}`,
        300_000,
        async () => {
          const status = await read<Status>('status');
          last = status;
          return isWhole(status) ? status : undefined;
        },
      );

      // From another machine, with the right to write requests.
      const operator = ['--config', place.path('member-0.yaml'), '--yes', '--reason', 'a test'];
      const [letter] = (await read<{ deadLetters: { shard: number; seq: number }[] }>('dead-letters', 'list')).deadLetters;
      const entry = `${letter?.shard}:${letter?.seq}`;
      expect(await run('dead-letters', 'show', entry, '--config', place.path('reader.yaml'))).toContain('"');
      expect(await run('dead-letters', 'retry', entry, ...operator)).toBe('1 record delivered\n');
      await run('replay', '--sink', 'siem', '--from', start, ...operator);
      await run('sources', 'retry', '--source', 'tenant-3', ...operator);
      const adoption = await place.waybill('sinks', 'adopt', '--sink', 'siem', ...operator);
      expect(adoption).toMatchObject({ code: 2, stderr: expect.stringContaining('stores no position') as string });
      const positions = await place.waybill('replay', '--sink', 'siem', '--from', '1', ...operator);
      expect(positions).toMatchObject({ code: 2, stderr: expect.stringContaining('each shard of a fleet has its own') as string });
      const forbidden = await place.waybill('sources', 'retry', '--source', 'tenant-3', '--config', place.path('reader.yaml'), '--yes');
      expect(forbidden).toMatchObject({ code: 1, stderr: expect.stringContaining('permission denied') as string });

      expect(await members.stop(), members.output).toEqual([0, 0]);
      expect(members.defects).toEqual([]);
      const stopped = await read<Status>('status');
      expect(stopped).toMatchObject({ stoppedSince: expect.any(String) as string, fleet: { members: [] } });
      expect(stopped.sources.map(({ id, state, records }) => [id, state, records])).toEqual(ids.map((id) => [id, 'stopped', truth.length]));
      const { operations } = await read<{ operations: { operation: string; source: string | null; sink: string | null }[] }>('operations');
      const counts = Map.groupBy(operations, ({ operation, source, sink }) => `${operation} ${source ?? sink}`);
      expect(Object.fromEntries([...counts].map(([name, all]) => [name, all.length]))).toEqual({
        'dead-letters retry siem': 1,
        'replay siem': new Set((await pool.query<{ shard: number }>('SELECT shard FROM waybill.placements')).rows.map(({ shard }) => shard))
          .size,
        'sources retry tenant-3': 1,
      });
      const ledger = JSON.parse(
        (await place.waybill('ledger', '--format', 'json', '--config', place.path('reader.yaml'))).stdout,
      ) as Ledger;
      expect(ledger.sources.map(({ id, lifetime }) => [id, lifetime.collected])).toEqual(ids.map((id) => [id, truth.length]));
      expect(await read('gaps', 'list')).toEqual({ gaps: [], inDoubt: [], accepted: [] });
      const { sources: listed } = await read<{ sources: { id: string }[] }>('sources', 'list');
      expect(listed.map(({ id }) => id).toSorted()).toEqual(ids);
      await pool.end();
    });
  });
});
