/**
 * Members of a fleet as processes, on a real PostgreSQL: kills and stops of members and of the database, while they collect and deliver. Every
 * record of every source arrives, and the state of each shard is whole.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openPool } from '../../src/fleet/database.ts';
import { ago, sourceOf } from '../support/e2e-daemon.ts';
import { endOf, inPlace, pause, until, type Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { shardIn } from '../support/journal/postgres-content.ts';
import { faultsOf } from '../support/journal/recompute.ts';
import { ModelElasticsearch } from '../support/model-elasticsearch.ts';
import { noteLine } from '../support/telemetry/written-events.ts';
import { Postgres, postgresMissing } from '../support/servers/postgres.ts';

const shards = 4;
const sourceCount = 6;
const leaseMs = 5_000;
const rounds = Number(process.env['WAYBILL_FLEET_ROUNDS'] ?? 3);

class Members {
  readonly #place: Place;
  readonly #running: ChildProcess[] = [];
  output = '';
  /** Lines that are no events, such as the stack of an unhandled error. */
  readonly defects: string[] = [];

  constructor(place: Place) {
    this.#place = place;
  }

  /** @param slot  0 to 2: each has a directory of its own */
  start(slot: number): void {
    const child = this.#place.spawnWaybill(['run', '--config', this.#place.path(`member-${slot}.yaml`)]);
    let rest = '';
    child.stderr?.on('data', (part: Buffer) => {
      this.output = (this.output + part.toString()).slice(-20_000);
      const lines = (rest + part.toString()).split('\n');
      rest = lines.pop() ?? '';
      lines.forEach(noteLine);
      this.defects.push(...lines.filter((line) => !line.startsWith('{"level"')));
    });
    this.#running[slot] = child;
  }

  signal(slot: number, signal: NodeJS.Signals): void {
    this.#running[slot]?.kill(signal);
  }

  async kill(slot: number): Promise<void> {
    const child = this.#running[slot];
    if (!child) return;
    const ended = endOf(child);
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<unknown[]> {
    const ends = this.#running.map((child) => endOf(child));
    for (const child of this.#running) child.kill('SIGTERM');
    return (await Promise.all(ends)).map(({ code }) => code);
  }
}

describe.skipIf(postgresMissing !== undefined)('a fleet of three members', () => {
  // promise: Kills of members and of the database of a fleet: each record of each source arrives, and each shard is whole.
  test('keeps every record while members and the database are killed and stopped', { timeout: 300_000 + rounds * 60_000 }, () =>
    inPlace('fleet', async (place) => {
      await using server = await Postgres.start();
      const pool = openPool({ connectionString: server.url }, 10_000);
      await pool.query('CREATE ROLE member LOGIN');
      await using receiver = await new ModelElasticsearch().listen();
      const start = ago(600_000);
      const service = await Service.start(place, '--records', '400', '--span', '9m');
      const sources = Array.from({ length: sourceCount }, (_, i) => ({
        ...sourceOf(service, start, { recountAfter: ['5s'], requests: { perSecond: 50, timeout: '5s' } }),
        id: `tenant-${i}`,
      }));
      const sinks = [{ id: 'siem', type: 'elasticsearch', nodes: `http://127.0.0.1:${receiver.port}` }];
      for (const slot of [0, 1, 2]) {
        const fleet = { database: server.url.replace('postgres@', 'member@'), lease: '5s' };
        const config = { dataDir: `./member-${slot}`, sources, sinks, fleet, shutdownTimeout: '5s', admin: { listen: '127.0.0.1:0' } };
        writeFileSync(place.path(`member-${slot}.yaml`), JSON.stringify(config));
      }
      const environment = { WAYBILL_SETUP_DATABASE: server.url };
      const setup = ['setup', 'postgres', '--config', place.path('member-0.yaml'), '--shards', String(shards), '--yes'];
      for (let time = 0; time < 2; time += 1) expect(await place.waybillWith(environment, ...setup)).toMatchObject({ code: 0 });
      const members = new Members(place);
      for (const slot of [0, 1, 2]) members.start(slot);
      await service.set({ rate: 15 });
      const documents = (): string[] => [...receiver.targets.keys()].flatMap((target) => receiver.texts(target));
      const arrived = (): number => documents().length;
      await until(
        () => `the first records arrive\n${members.output}`,
        60_000,
        () => Promise.resolve(arrived() > 0 ? true : undefined),
      );
      for (let round = 0; round < rounds; round += 1) {
        const slot = round % 3;
        await members.kill(slot);
        await pause(place.chance() * leaseMs * 2);
        members.start(slot);
        // Longer than its lease: others take its shards, and it finds that when it continues.
        members.signal((slot + 1) % 3, 'SIGSTOP');
        await pause(leaseMs * (1 + place.chance() * 2));
        members.signal((slot + 1) % 3, 'SIGCONT');
        await server.end('SIGKILL');
        await pause(place.chance() * leaseMs * 2);
        await server.start();
        await pause(2_000);
      }
      await service.set({ rate: 0 });
      const truth = await service.truth();
      await until(
        () => `${truth.length * sourceCount} records arrive: ${arrived()}\n${members.output}`,
        120_000,
        () => Promise.resolve(arrived() >= truth.length * sourceCount ? true : undefined),
      );
      expect(await members.stop(), members.output).toEqual([0, 0, 0]);
      expect(members.defects).toEqual([]);

      const originals = documents().map((text) => (JSON.parse(text) as { event: { original: string } }).event.original);
      const counts = new Map<string, number>();
      for (const text of originals) counts.set(text, (counts.get(text) ?? 0) + 1);
      expect(truth.filter((text) => counts.get(text) !== sourceCount)).toEqual([]);
      expect(counts.size).toBe(truth.length);

      const { rows } = await pool.query<{ shard: number; owners: number }>(
        'SELECT shard, count(*) AS owners FROM waybill.takes GROUP BY shard ORDER BY shard',
      );
      expect(rows.map(({ shard }) => shard)).toEqual([0, 1, 2, 3]);
      expect(Math.max(...rows.map(({ owners }) => owners)), 'a shard moved').toBeGreaterThan(1);
      const collected: Record<string, number> = {};
      for (const { shard } of rows) {
        const state = await shardIn(pool, shard);
        expect(faultsOf(state)).toEqual([]);
        for (const { id, collected: count } of state
          .prepare<[], { id: string; collected: number }>('SELECT id, collected FROM sources')
          .all())
          collected[id] = count;
      }
      expect(collected).toEqual(Object.fromEntries(sources.map(({ id }) => [id, truth.length])));
      await pool.end();
    }),
  );
});
