/** A state moves from one process into a fleet and back, on a real PostgreSQL and Kafka: whole, and with one owner after each interruption. */
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { codeOf } from '../../src/errors/errors.ts';
import { openPool, type Pool } from '../../src/fleet/database.ts';
import { take } from '../../src/fleet/lease.ts';
import { exportShard, importState } from '../../src/fleet/move.ts';
import { setupStatements } from '../../src/fleet/tables.ts';
import { Journal } from '../../src/journal/journal.ts';
import { openState } from '../../src/journal/state.ts';
import { systemClock } from '../../src/time/clock.ts';
import { ago, Daemon, ledgerOf, sourceOf } from '../support/e2e-daemon.ts';
import { endOf, inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { contentOf, ModelDatabase } from '../support/journal/model-database.ts';
import { pageOf, proven, source, span } from '../support/journal/opening.ts';
import { shardIn } from '../support/journal/postgres-content.ts';
import { ModelElasticsearch } from '../support/model-elasticsearch.ts';
import { base, collected, second } from '../support/records.ts';
import { KafkaBroker, kafkaMissing } from '../support/servers/kafka-broker.ts';
import { createTopic } from '../support/servers/kafka-admin.ts';
import { Postgres, postgresMissing } from '../support/servers/postgres.ts';
import { notAsked } from '../support/servers/programs.ts';

const missing = notAsked() ?? postgresMissing;

const { signal } = new AbortController();

/** All rows of a state, without the mark of a move. */
function contentIn(directory: string): Record<string, unknown[]> {
  const db = new Database(join(directory, 'waybill.db'), { readonly: true });
  const content = contentOf(db);
  db.close();
  return withoutMove(content);
}

function withoutMove({ meta = [], ...content }: Record<string, unknown[]>): Record<string, unknown[]> {
  return { ...content, meta: meta.filter((row) => (row as { key: string }).key !== 'moved_to') };
}

describe('a move', () => {
  let server: Postgres;
  let pool: pg.Pool;

  beforeAll(async () => {
    if (missing !== undefined) return;
    server = await Postgres.start();
    pool = openPool({ connectionString: server.url }, 10_000);
    for (const statement of setupStatements(2)) await pool.query(statement);
  });
  afterAll(async () => {
    if (missing !== undefined) return;
    await pool.end();
    await server[Symbol.asyncDispose]();
  });
  beforeEach(async ({ skip }) => {
    skip(missing !== undefined, missing);
    await emptied();
  });

  async function emptied(): Promise<void> {
    await pool.query('UPDATE waybill.journals SET lease = NULL, owner = NULL, expires = NULL');
    const states = Object.keys(contentOf(new ModelDatabase().rows)).map((name) => `waybill.${name}`);
    await pool.query(`TRUNCATE waybill.takes, waybill.placements, waybill.requests, ${states.join(', ')}`);
  }

  const temporary = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'waybill-move-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    return directory;
  };

  const options = { maxSize: 2 ** 30, version: '0.1.0', expectState: true, lockWait: 0 };

  /** A state with records, uids, windows, a sink with a dead letter, and entries that no sink has. */
  async function stateIn(directory: string): Promise<void> {
    const journal = await Journal.open({ ...options, directory, retention: 1e12, expectState: false }, systemClock, signal);
    journal.registerSource(source, 'tenant', base);
    await journal.append(pageOf(Array.from({ length: 300 }, (_, i) => collected(i, base + i * second, { text: `Ж \0 𝄞 ${i}` }))));
    await journal.close(source, span(0, 60), proven(60), 0);
    journal.sinkPositions.register('siem', 'syslog', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
    const [entry] = await journal.read(0, { records: 1, bytes: 1e6 });
    if (!entry) throw new Error('no entry');
    const deadLetter = { entry, rejection: { seq: 1, code: 'c', message: 'm' }, attempts: 1 };
    await journal.acknowledge('siem', { acknowledged: 1, delivered: undefined }, [deadLetter]);
    await journal[Symbol.asyncDispose]();
  }

  const moveIn = (from: string, through: Pool = pool, shard = 0) =>
    importState(from, {
      pool: through,
      shard,
      version: '0.1.0',
      database: 'postgres://w@db/audit',
      placeOf: (id) => id,
      clock: systemClock,
      signal,
    });
  const moveOut = (to: string, through: Pool = pool, shard = 0) => exportShard(to, { pool: through, shard, clock: systemClock, signal });

  /** True if a daemon could start from the directory. */
  async function isUsable(directory: string): Promise<boolean> {
    try {
      const { db, lock } = await openState(directory, options, systemClock, signal);
      db.close();
      lock.close();
      return true;
    } catch (thrown) {
      expect(['state_moved', 'state_missing']).toContain(codeOf(thrown));
      return false;
    }
  }

  /** True if a member would take the shard and find the journal. */
  async function isServed(shard = 0): Promise<boolean> {
    const { rows } = await pool.query(
      'SELECT 1 FROM waybill.head JOIN waybill.journals USING (shard) WHERE shard = $1 AND (lease IS NULL OR expires < clock_timestamp())',
      [shard],
    );
    return rows.length === 1;
  }

  /** Connections that are cut at statement `at`: before it is sent, or after the server has carried it out. */
  function cutting(at: number, isCarriedOut: boolean): { readonly pool: Pool; readonly sent: () => number } {
    let sent = 0;
    const cutAt = async (query: () => Promise<unknown>): Promise<unknown> => {
      sent += 1;
      if (sent !== at) return query();
      if (isCarriedOut) await query();
      throw new Error('the connection was cut');
    };
    const cut = {
      query: (...given: unknown[]) => cutAt(() => (pool.query as (...each: unknown[]) => Promise<unknown>)(...given)),
      connect: async () => {
        const client = await pool.connect();
        return new Proxy(client, {
          get: (target, name) => {
            const member: unknown = Reflect.get(target, name, target);
            if (typeof member !== 'function') return member;
            if (name !== 'query') return member.bind(target) as unknown;
            return (...given: unknown[]) => cutAt(() => Reflect.apply(member, target, given) as Promise<unknown>);
          },
        });
      },
    };
    return { pool: cut as unknown as Pool, sent: () => sent };
  }

  // promise: A state that moves into a fleet or out of it has one owner after each interruption, and the same command completes the move.
  test.each([false, true])(
    'cut at each statement (carried out: %s), leaves one owner, and runs again',
    { timeout: 300_000 },
    async (isCarriedOut) => {
      const original = temporary();
      await stateIn(original);
      const before = contentIn(original);
      let isWhole = false;
      for (let at = 1; !isWhole; at += 1) {
        await emptied();
        const from = join(temporary(), 'state');
        cpSync(original, from, { recursive: true });
        const cut = cutting(at, isCarriedOut);
        isWhole = await moveIn(from, cut.pool).then(
          () => true,
          () => false,
        );
        const owners = [await isUsable(from), await isServed()];
        expect(owners.filter(Boolean).length, `import, statement ${at}`).toBeLessThan(2);
        if (isWhole) expect([owners, cut.sent()]).toEqual([[false, true], at - 1]);
        await moveIn(from);
        expect([await isUsable(from), await isServed()]).toEqual([false, true]);
        const stored = contentOf(await shardIn(pool, 0));
        expect(stored).toEqual(contentIn(from));
        expect({ ...stored, meta: stored['meta']?.filter((row) => (row as { key: string }).key !== 'shard') }).toEqual(before);
      }
      isWhole = false;
      for (let at = 1; !isWhole; at += 1) {
        await emptied();
        const [from, to] = [join(temporary(), 'state'), join(temporary(), 'copy')];
        cpSync(original, from, { recursive: true });
        await moveIn(from);
        const stored = contentOf(await shardIn(pool, 0));
        const cut = cutting(at, isCarriedOut);
        isWhole = await moveOut(to, cut.pool).then(
          () => true,
          () => false,
        );
        const owners = [await isUsable(to), await isServed()];
        expect(owners.filter(Boolean).length, `export, statement ${at}`).toBeLessThan(2);
        if (isWhole) expect([owners, cut.sent()]).toEqual([[true, false], at - 1]);
        await moveOut(to);
        expect([await isUsable(to), await isServed()]).toEqual([true, false]);
        expect(readdirSync(to).toSorted()).toEqual(['lock.db', 'waybill.db']);
        expect(contentIn(to)).toEqual(stored);
        expect((await pool.query('SELECT 1 FROM waybill.segments')).rows).toEqual([]);
        // No member takes it.
        expect((await take(pool, 'one', [], 2, 60_000)).map(({ shard }) => shard)).toEqual([1]);
      }
    },
  );

  test('a journal that has moved on is not imported again from its old state, and an older export stays unusable', async () => {
    const [state, first, last] = [join(temporary(), 'state'), join(temporary(), 'first'), join(temporary(), 'last')];
    await stateIn(state);
    await moveIn(state);
    // The copy of an export that was cut off before its commit.
    for (let at = 1; !existsSync(first) || readdirSync(first).length === 0; at += 1)
      await moveOut(first, cutting(at, false).pool).catch(() => undefined);
    expect(readdirSync(first)).toEqual([expect.stringMatching(/^waybill\.db\.[0-9a-f-]{36}$/)]);
    await moveOut(last);
    await moveIn(state);
    expect([await isUsable(state), await isServed()]).toEqual([false, false]);
    await expect(moveOut(first)).rejects.toMatchObject({ code: 'state_missing' });
    expect([await isUsable(first), await isUsable(last)]).toEqual([false, true]);
    // Back into the same shard: its owner was a directory.
    await moveIn(last);
    expect([await isUsable(last), await isServed()]).toEqual([false, true]);
  });

  test('is refused while it would mix journals', async () => {
    const [state, other] = [join(temporary(), 'state'), join(temporary(), 'other')];
    await stateIn(state);
    await stateIn(other);
    const running = await Journal.open({ ...options, directory: state, retention: 1e12 }, systemClock, signal);
    await expect(moveIn(state)).rejects.toMatchObject({ code: 'state_locked' });
    running.sinkPositions.register('lake', 'kafka', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
    await running[Symbol.asyncDispose]();
    await expect(moveIn(state, pool, 1)).rejects.toThrow('its positions at the sinks belong to shard 0; pass --shard 0');
    await expect(moveIn(state, pool, 7)).rejects.toThrow();
    await moveIn(other, pool, 0);
    await expect(moveIn(state)).rejects.toThrow('the shard has a source or records already');
    const third = join(temporary(), 'third');
    await stateIn(third);
    await expect(moveIn(third, pool, 1)).rejects.toThrow(`"${source}" belongs to shard 0 already`);
    expect([await isUsable(state), await isUsable(third)]).toEqual([true, true]);
    await expect(moveOut(join(temporary(), 'none'), pool, 1)).rejects.toMatchObject({ code: 'state_missing' });
    await expect(moveOut(third)).rejects.toThrow('it is not empty');
  });
});

describe('a daemon', () => {
  // promise: A daemon becomes a shard of a fleet and a daemon again: each record arrives once at Kafka, and its ledger, uids and dead letters go along.
  test('becomes a shard of a fleet and a daemon again', { timeout: 400_000 }, ({ skip }) => {
    const lacking = missing ?? kafkaMissing('4.4.0');
    skip(lacking !== undefined, lacking);
    return inPlace('fleet-move', async (place) => {
      await using server = await Postgres.start();
      await using broker = await KafkaBroker.start('4.4.0');
      await createTopic(broker, { topic: 'audit', numPartitions: 3 });
      await using receiver = await new ModelElasticsearch().listen();
      let refused = 0;
      receiver.refuse = () =>
        refused++ === 0 ? { status: 400, type: 'document_parsing_exception', reason: 'a test refuses it' } : undefined;
      const pool = openPool({ connectionString: server.url }, 10_000);
      await pool.query('CREATE ROLE member LOGIN');
      const service = await Service.start(place, '--records', '200', '--span', '9m');
      const sources = [sourceOf(service, ago(600_000))];
      const sinks = [
        { id: 'siem', type: 'elasticsearch', nodes: `http://127.0.0.1:${receiver.port}` },
        { id: 'lake', type: 'kafka', brokers: [broker.address()], topic: 'audit', batch: { maxRecords: 50, maxWait: '50ms' } },
      ];
      const write = (name: string, more: object): string => {
        const file = place.path(name);
        writeFileSync(file, JSON.stringify({ sources, sinks, shutdownTimeout: '5s', admin: { listen: '127.0.0.1:0' }, ...more }));
        return file;
      };
      const run = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await place.waybill(...args);
        expect({ code, stderr }, `${args.join(' ')}\n${stdout}`).toMatchObject({ code: 0 });
        return stdout;
      };
      let output = '';
      const allArrived = async (): Promise<void> => {
        await service.set({ rate: 15 });
        const { length } = await service.truth();
        await until('new records', 60_000, async () => ((await service.truth()).length > length + 30 ? true : undefined));
        await service.set({ rate: 0 });
        const truth = await service.truth();
        await until(
          () => `${truth.length} records arrive\n${output}`,
          90_000,
          async () => ((await broker.count('audit')) >= truth.length && documents().length >= truth.length - 1 ? true : undefined),
        );
        const texts = await broker.values('audit', (value) => (JSON.parse(value) as { event: { original: string } }).event.original);
        expect(texts.toSorted()).toEqual(truth.toSorted());
      };
      const documents = (): string[] => [...receiver.targets.keys()].flatMap((target) => receiver.texts(target));

      write('waybill.yaml', { dataDir: './state' });
      const first = new Daemon(place);
      await allArrived();
      expect(await first.stop()).toMatchObject({ code: 0 });
      const before = contentIn(place.path('state'));

      const member = write('member.yaml', {
        dataDir: './member',
        fleet: { database: server.url.replace('postgres@', 'member@'), lease: '5s' },
      });
      const setup = ['setup', 'postgres', '--shards', '2', '--yes', '--config', member];
      expect(await place.waybillWith({ WAYBILL_SETUP_DATABASE: server.url }, ...setup)).toMatchObject({ code: 0 });
      // Kills of the command, wherever it is.
      for (let i = 0; i < 6; i += 1) {
        const importing = place.spawnWaybill(['fleet', 'import', '--from', place.path('state'), '--yes', '--config', member]);
        const ended = endOf(importing);
        await new Promise((resolve) => setTimeout(resolve, 300 + place.chance() * 1_200));
        importing.kill('SIGKILL');
        await ended;
      }
      expect(await run('fleet', 'import', '--from', place.path('state'), '--yes', '--config', member)).toContain('moved the state');
      const stored = contentOf(await shardIn(pool, 0));
      expect(stored).toEqual(contentIn(place.path('state')));
      for (const table of ['seen', 'windows', 'dead_letters', 'segments', 'ranges', 'sinks', 'operations'])
        expect(stored[table], table).toEqual(before[table]);
      expect(stored['dead_letters']).toHaveLength(1);
      const moved = await place.waybill('run', '--config', place.path('waybill.yaml'));
      expect(moved.code).toBe(1);
      expect(moved.stderr).toContain('"state_moved"');

      const running = place.spawnWaybill(['run', '--config', member]);
      running.stderr?.on('data', (part: Buffer) => (output += part.toString()));
      await allArrived();
      interface Listed {
        readonly members: readonly { readonly name: string }[];
        readonly shards: readonly {
          readonly shard: number;
          readonly owner: string | null;
          readonly exported: boolean;
          readonly sources: readonly string[];
        }[];
      }
      const listed = async (): Promise<Listed> => JSON.parse(await run('fleet', 'list', '--json', '--config', member)) as Listed;
      const [name] = (await listed()).members.map((each) => each.name);
      expect((await listed()).shards).toMatchObject([
        { shard: 0, owner: name, exported: false, sources: ['production'] },
        { shard: 1, owner: name, exported: false, sources: [] },
      ]);
      await run('fleet', 'release', '--member', name ?? '', '--yes', '--config', member);
      await until(
        () => `the member gives its shards up\n${output}`,
        30_000,
        async () => ((await listed()).shards.every(({ owner }) => owner === null) ? true : undefined),
      );
      const last = contentOf(await shardIn(pool, 0));
      expect(await run('fleet', 'export', '--shard', '0', '--to', place.path('exported'), '--yes', '--config', member)).toContain(
        'verified',
      );
      expect(contentIn(place.path('exported'))).toEqual(last);
      expect((await listed()).shards[0]).toMatchObject({ owner: `exported to ${place.path('exported')}`, exported: true, sources: [] });

      write('waybill.yaml', { dataDir: './exported' });
      const again = new Daemon(place);
      await allArrived();
      expect(await again.stop()).toMatchObject({ code: 0 });
      expect(contentIn(place.path('exported'))['dead_letters']).toEqual(last['dead_letters']);
      const { ledger } = await ledgerOf(place);
      expect(ledger.sources).toMatchObject([{ id: 'production', lifetime: { collected: (await service.truth()).length } }]);
      const ended = endOf(running);
      running.kill('SIGTERM');
      expect(await ended).toMatchObject({ code: 0 });
      await pool.end();
    });
  });
});
