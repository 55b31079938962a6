/**
 * A fleet of three members whose processes and database are killed and stopped, while it collects and delivers through a proxy that loses answers
 * of commits, delivers commits late and cuts connections. In the end each sink has each record of each source once, and each shard is whole:
 * kcat, searches, SQL and a second implementation of the chain count.
 */
import { writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { openPool } from '../../../src/fleet/database.ts';
import { ago, sourceOf } from '../e2e-daemon.ts';
import { pause, until, type Place } from '../e2e-place.ts';
import { Service } from '../e2e-service.ts';
import { shardIn } from '../journal/postgres-content.ts';
import { faultsOf } from '../journal/recompute.ts';
import { ModelElasticsearch } from '../model-elasticsearch.ts';
import { Elasticsearch } from './elasticsearch.ts';
import { faultsIn, lagsIn, type Arrived } from './fleet-count.ts';
import type { FleetDatabase } from './fleet-databases.ts';
import { Members, type MemberProgram } from './fleet-members.ts';
import { createTopic } from './kafka-admin.ts';
import { KafkaBroker } from './kafka-broker.ts';
import { PostgresProxy } from './postgres-proxy.ts';
import { stream, topic } from './three-receivers.ts';

/** The limit of a wait for a fleet that has everything it needs. */
const patient = 600_000;

export interface Chaos {
  /** In each round one member and the database are killed, and another member is stopped for longer than its lease. */
  readonly rounds: number;
  readonly shards: number;
  readonly sources: number;
  readonly leaseMs: number;
  /** New records a second, of each source. */
  readonly rate: number;
  /** False: a model, which starts at once. */
  readonly hasElasticsearch: boolean;
  readonly database: () => Promise<FleetDatabase>;
  /** By slot: what differs from the program under test. */
  readonly programs?: ((place: Place) => readonly MemberProgram[]) | undefined;
}

export async function chaos(
  place: Place,
  { rounds, shards, sources: count, leaseMs, rate, hasElasticsearch, ...given }: Chaos,
): Promise<void> {
  await using database = await given.database();
  // The administrator's connections have no faults; they follow a fail-over.
  await using direct = await PostgresProxy.start(database.port, place.chance);
  await using proxy = await PostgresProxy.start(database.port, place.chance);
  await using broker = await KafkaBroker.start('4.4.0');
  await using siem = await (hasElasticsearch ? realReceiver() : modelReceiver());
  await createTopic(broker, { topic, numPartitions: 3 });
  const url = `postgres://postgres@127.0.0.1:${direct.port}/postgres`;
  const pool = openPool({ connectionString: url }, 10_000);
  await pool.query('CREATE ROLE member LOGIN');
  const service = await Service.start(place, '--records', '400', '--span', '9m');
  const ids = Array.from({ length: count }, (_, i) => `tenant-${i}`);
  const start = ago(600_000);
  const sources = ids.map((id) => ({
    ...sourceOf(service, start, { recountAfter: ['5s'], requests: { perSecond: 50, timeout: '5s' } }),
    ...{ id, observer: { product: id } },
  }));
  const sinks = [
    { id: 'siem', type: 'elasticsearch', nodes: siem.url },
    { id: 'lake', type: 'kafka', brokers: [broker.address()], topic, batch: { maxRecords: 50, maxWait: '50ms' } },
  ];
  for (const slot of [0, 1, 2]) {
    const fleet = { database: `postgres://member@127.0.0.1:${proxy.port}/postgres`, lease: `${leaseMs}ms` };
    const config = { dataDir: `./member-${slot}`, sources, sinks, fleet, shutdownTimeout: '5s', admin: { listen: '127.0.0.1:0' } };
    writeFileSync(place.path(`member-${slot}.yaml`), JSON.stringify(config));
  }
  const setup = async (...args: string[]): Promise<unknown> =>
    expect(
      await place.waybillWith({ WAYBILL_SETUP_DATABASE: url }, 'setup', ...args, '--config', place.path('member-0.yaml')),
    ).toMatchObject({ code: 0 });
  for (let time = 0; time < 2; time += 1) await setup('postgres', '--shards', String(shards), '--yes');
  await setup('kafka', '--sink', 'lake', '--shards', String(shards));
  if (hasElasticsearch) await setup('elasticsearch', '--sink', 'siem', '--yes');

  const members = new Members(place, given.programs?.(place));
  for (const slot of [0, 1, 2]) members.start(slot);
  await service.set({ rate });
  const moreArrive = async (): Promise<void> => {
    const before = await siem.count();
    await until(
      () => `records arrive\n${members.output}`,
      patient,
      async () => ((await siem.count()) > before ? true : undefined),
    );
  };
  await moreArrive();
  proxy.rate = 0.05;
  for (let round = 0; round < rounds; round += 1) {
    const [killed, stopped] = [round % 3, (round + 1) % 3];
    // Longer than its lease: others take its shards, and it finds that when it continues.
    members.signal(stopped, 'SIGSTOP');
    const continued = pause(leaseMs * (1 + place.chance() * 2)).then(() => members.signal(stopped, 'SIGCONT'));
    await members.kill(killed);
    await pause(place.chance() * leaseMs * 2);
    members.start(killed);
    await continued;
    await database.fail(() => pause(place.chance() * leaseMs * 2));
    await moreArrive();
  }
  // A busy machine commits rarely.
  proxy.rate = 0.2;
  await until(
    () => `each fault happens: ${JSON.stringify(proxy.counts)}`,
    patient,
    () => (Math.min(...Object.values(proxy.counts)) > 0 ? true : undefined),
  );
  proxy.rate = 0;
  await service.set({ rate: 0 });
  const truth = await service.truth();
  const faults = async (): Promise<object> => {
    const inKafka = (await broker.values(topic, (value) => value)).map((value) => JSON.parse(value) as Arrived);
    return faultsIn(pool, { siem: await siem.all(), lake: inKafka }, ids, truth);
  };
  // What the members claim: every record is collected, and acknowledged by each sink.
  let claimed: unknown;
  const isClaimed = async (): Promise<true | undefined> => {
    const { rows } = await pool.query<{ id: string; collected: number }>(
      'SELECT id, collected FROM waybill.sources WHERE collected <> $1',
      [truth.length],
    );
    const lags = await lagsIn(pool);
    claimed = { of: truth.length, lacking: Object.fromEntries(rows.map(({ id, collected }) => [id, collected])), lags };
    return rows.length + Object.keys(lags).length === 0 ? true : undefined;
  };
  try {
    await until(() => `all is acknowledged: ${JSON.stringify(claimed)}`, patient, isClaimed);
  } catch (thrown) {
    throw new Error(`${String(thrown)}\n${JSON.stringify(await faults(), null, 2)}\n${members.output}`, { cause: thrown });
  }
  expect(await faults()).toEqual({});
  expect(await members.stop(), members.output).toEqual([0, 0, 0]);
  expect(members.defects).toEqual([]);

  const takes = await pool.query<{ shard: number; owners: number }>(
    'SELECT shard, count(*) AS owners FROM waybill.takes GROUP BY shard ORDER BY shard',
  );
  expect(takes.rows.map(({ shard }) => shard)).toEqual(Array.from({ length: shards }, (_, i) => i));
  expect(Math.max(...takes.rows.map(({ owners }) => owners)), 'a shard moved').toBeGreaterThan(1);
  // No owner wrote after its successor, and no take-over began before the last commit of the owner before.
  const disorder = await pool.query(
    `SELECT shard, seq FROM (SELECT shard, seq, epoch < lag(epoch) OVER (PARTITION BY shard ORDER BY seq) AS back FROM waybill.segments) AS s WHERE back
     UNION ALL SELECT shard, epoch FROM (SELECT shard, epoch, commits < lag(commits) OVER (PARTITION BY shard ORDER BY epoch) AS back FROM waybill.takes) AS t WHERE back`,
  );
  expect(disorder.rows).toEqual([]);
  const collected: Record<string, number> = {};
  for (const { shard } of takes.rows) {
    const state = await shardIn(pool, shard);
    expect(faultsOf(state)).toEqual([]);
    for (const { id, collected: records } of state
      .prepare<[], { id: string; collected: number }>('SELECT id, collected FROM sources')
      .all())
      collected[id] = records;
  }
  expect(collected).toEqual(Object.fromEntries(ids.map((id) => [id, truth.length])));
  await pool.end();
  const moves = takes.rows.reduce((sum, { owners }) => sum + owners, 0);
  const network = Object.entries(proxy.counts).map(([name, times]) => `${name} ${times}`);
  process.stderr.write(
    `${rounds} kills and ${rounds} stops of members, ${rounds} kills of the database, ${network.join(', ')}, ${moves} shards taken: ` +
      `${truth.length * count} records, each once in Elasticsearch and Kafka; ${JSON.stringify(Object.fromEntries(members.events))}\n`,
  );
}

interface Receiver extends AsyncDisposable {
  readonly url: string;
  count(): Promise<number>;
  all(): Promise<readonly Arrived[]>;
}

async function realReceiver(): Promise<Receiver> {
  const server = await Elasticsearch.start('elasticsearch-9.5.3');
  return {
    url: server.url,
    count: () => server.count(stream),
    all: () => server.fields<Arrived>(stream, ['event.original', 'observer.product']),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function modelReceiver(): Promise<Receiver> {
  const model = await new ModelElasticsearch().listen();
  const texts = (): string[] => [...model.targets.keys()].flatMap((target) => model.texts(target));
  return {
    url: `http://127.0.0.1:${model.port}`,
    count: () => Promise.resolve(texts().length),
    all: () => Promise.resolve(texts().map((text) => JSON.parse(text) as Arrived)),
    [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
  };
}
