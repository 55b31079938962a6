/** The journal of a fleet on a real PostgreSQL: tables, fence, leases, and what the next owner finds. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { firstLost, Lease, release, renew, take, type Taken } from '../../src/fleet/lease.ts';
import { databaseFindings } from '../../src/fleet/check.ts';
import { openPool } from '../../src/fleet/database.ts';
import { Member, type OpenShard } from '../../src/fleet/members.ts';
import { shardsOf } from '../../src/fleet/placements.ts';
import { Shard } from '../../src/fleet/shard.ts';
import { requested, serveRequests } from '../../src/fleet/requests.ts';
import { fleetStatus, publish, type ShardStatus } from '../../src/fleet/status.ts';
import { rightsOf, setupStatements } from '../../src/fleet/tables.ts';
import { Journal } from '../../src/journal/journal.ts';
import type { Entry } from '../../src/model/journal.ts';
import type { Change } from '../../src/journal/replica/shard-database.ts';
import { systemClock } from '../../src/time/clock.ts';
import { contentOf, contentOfCopy, ModelDatabase } from '../support/journal/model-database.ts';
import { shardIn } from '../support/journal/postgres-content.ts';
import { notReadyReasons } from '../../src/admin/readiness.ts';
import { problems } from '../../src/report/advice.ts';
import { statusText } from '../../src/report/status-text.ts';
import * as shownAs from '../support/report/snapshots.ts';
import { uncounted } from '../support/uncounted.ts';
import { pageOf, proven, source, span } from '../support/journal/opening.ts';
import { base, collected, hour, second } from '../support/records.ts';
import { noting } from '../support/telemetry/written-events.ts';
import { PgBouncer } from '../support/servers/fleet-databases.ts';
import { Postgres, postgresMissing } from '../support/servers/postgres.ts';
import { notAsked } from '../support/servers/programs.ts';

const missing = notAsked() ?? postgresMissing;
const leaseMs = 60_000;
const shards = 8;
const facts = { version: '1', now: 1_000_000_000, leaseMs, database: 'postgres://waybill@db/audit', configured: ['here', 'elsewhere'] };

describe('PostgreSQL', () => {
  let server: Postgres;
  let pool: pg.Pool;

  beforeAll(async () => {
    if (missing !== undefined) return;
    server = await Postgres.start();
    pool = openPool({ connectionString: server.url }, 10_000);
    for (const statement of setupStatements(shards)) await pool.query(statement);
  });
  afterAll(async () => {
    if (missing !== undefined) return;
    await pool.end();
    await server[Symbol.asyncDispose]();
  });

  beforeEach(async ({ skip }) => {
    skip(missing !== undefined, missing);
    await pool.query('UPDATE waybill.journals SET lease = NULL, owner = NULL, expires = NULL');
    const states = Object.keys(contentOf(new ModelDatabase().rows)).map((name) => `waybill.${name}`);
    await pool.query(
      `TRUNCATE waybill.members, waybill.takes, waybill.rollbacks, waybill.statuses, waybill.requests, ${states.join(', ')}`,
    );
  });

  const takeOne = async (shard?: number): Promise<Taken> => {
    const all = await take(pool, 'one', [], shard === undefined ? 1 : shards, leaseMs);
    const taken = all.find((each) => shard === undefined || each.shard === shard);
    if (!taken) throw new Error('the shard is not free');
    return taken;
  };

  const shardOf = (taken: Taken): Shard =>
    new Shard(pool, taken, leaseMs, new Lease(systemClock, leaseMs, systemClock.monotonic()), {
      log: noting({ write: () => undefined }),
      meters: uncounted,
    });

  const open = (taken: Taken): Promise<Journal> => openWith(shardOf(taken));

  const openWith = (database: Shard): Promise<Journal> => {
    const directory = mkdtempSync(join(tmpdir(), 'waybill-shard-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const options = { directory, maxSize: 2 ** 30, retention: 1e12, version: '0.1.0', expectState: false, lockWait: 0, localSize: 0 };
    return Journal.open({ ...options, database }, systemClock, new AbortController().signal);
  };

  const contentIn = async ({ shard }: Taken): Promise<Record<string, unknown[]>> => contentOf(await shardIn(pool, shard));

  test('its tables have the columns of the tables of SQLite, and setup may run again', async () => {
    for (const statement of setupStatements(shards)) await pool.query(statement);
    const { rows } = await pool.query<{ table_name: string; column_name: string; data_type: string; is_nullable: string }>(
      `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'waybill' ORDER BY ordinal_position`,
    );
    const model = new ModelDatabase();
    const types: Record<string, string> = { INTEGER: 'bigint', TEXT: 'text', BLOB: 'bytea', ANY: 'text' };
    for (const name of Object.keys(contentOf(model.rows))) {
      const columns = model.rows.pragma(`table_info(${name})`) as { name: string; type: string; notnull: number; pk: number }[];
      const found = rows.filter((row) => row.table_name === name).map((row) => [row.column_name, row.data_type, row.is_nullable]);
      const wanted = columns.map((column) => [column.name, types[column.type], column.notnull === 1 || column.pk > 0 ? 'NO' : 'YES']);
      expect(found, name).toEqual([['shard', 'integer', 'NO'], ['epoch', 'bigint', 'NO'], ...wanted]);
    }
  });

  test('the next owner finds every row of the last one', async () => {
    const first = await takeOne();
    const journal = await open(first);
    journal.registerSource(source, 'tenant', base);
    const records = Array.from({ length: 300 }, (_, i) => collected(i, base + i * second, { text: `Ж € 𝄞 ${i}` }));
    await journal.append(pageOf([...records, collected(999, undefined)]));
    await journal.close(source, span(0, 60), proven(60), 0);
    journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
    const [entry] = await journal.read(0, { records: 1, bytes: 1e6 });
    if (!entry) throw new Error('no entry');
    const rejection = { seq: 1, code: 'too large', message: 'a "quoted" word' };
    await journal.acknowledge('siem', { acknowledged: 1, delivered: undefined }, [{ entry, rejection: rejection, attempts: 1 }]);
    const before = contentOf(journal.db);
    await journal[Symbol.asyncDispose]();
    expect(await contentIn(first)).toEqual(before);
    await release(pool, first);
    const next = await takeOne(first.shard);
    const again = await open(next);
    const database = new ModelDatabase();
    database.fill(before);
    expect(contentOfCopy(again.db, database.rows)).toEqual(before);
    expect(await again.append(pageOf(records))).toMatchObject({ received: 300, appended: 0 });
    await again[Symbol.asyncDispose]();
  });

  const mark = (value: string): Change => ({ table: 'meta', key: ['mark'], row: { key: 'mark', value } });
  const marked = async ({ shard }: Taken): Promise<unknown> =>
    (await pool.query(`SELECT value FROM waybill.meta WHERE shard = $1 AND key = 'mark'`, [shard])).rows;

  test('a commit counts once, and a late one changes nothing', async () => {
    const taken = await takeOne();
    const shard = shardOf(taken);
    const n = taken.commits;
    const one = { fence: { lease: taken.lease, commits: n }, number: n + 1, changes: [mark('one')] };
    expect(await shard.commit(one)).toBe(true);
    expect(await shard.commit(one)).toBe(false);
    expect(await shard.commit({ fence: { lease: taken.lease, commits: n + 1 }, number: n + 2, changes: [mark('two')] })).toBe(true);
    expect(await shard.commit(one)).toBe(false);
    expect(await marked(taken)).toEqual([{ value: '"two"' }]);
  });

  test('a commit of 70,000 rows is one statement, and texts keep every character', async () => {
    const taken = await takeOne();
    const shard = shardOf(taken);
    const texts = ['NUL \0 SUB \x1a \x1a0 \x1a\x1a', '\0', '', 'Ж € 𝄞 "{,}\\NULL', 'NULL'];
    const operation = (n: number): Change => ({
      table: 'operations',
      key: [n],
      row: {
        operation_no: n,
        at_us: 2 ** 52 + n,
        actor: n % 2 === 0 ? null : (texts[n % 5] ?? ''),
        operation: texts[n % 5] ?? '',
        detail: null,
      },
    });
    const written = Array.from({ length: 70_000 }, (_, i) => operation(i));
    const [one, two] = [taken.commits, taken.commits + 1].map((commits) => ({
      fence: { lease: taken.lease, commits },
      number: commits + 1,
    }));
    if (!one || !two) throw new Error('no commit');
    expect(await shard.commit({ ...one, changes: [...written, mark('NUL \0')] })).toBe(true);
    const content: Record<string, unknown[]> = {};
    for await (const [name, rows] of shard.load()) (content[name] ??= []).push(...rows);
    expect(content['operations']).toEqual(written.map(({ row }) => row));
    expect(content['meta']).toContainEqual({ key: 'mark', value: 'NUL \0' });
    const gone = written.map(({ table, key }) => ({ table, key, row: undefined }));
    expect(await shard.commit({ ...two, changes: gone })).toBe(true);
    expect((await contentIn(taken))['operations']).toEqual([]);
  });

  test('a take-over leaves bodies and uids in the database, and the journal fetches what it needs', async () => {
    const first = await takeOne();
    const journal = await open(first);
    if (!journal.hasSource(source)) journal.registerSource(source, 'tenant', base);
    const records = Array.from({ length: 240 }, (_, i) => collected(10_000 + i, base + i * hour, { text: `record ${i}` }));
    for (const record of records) await journal.append(pageOf([record]));
    const { seq } = journal.head();
    const textsOf = (entries: readonly Entry[]): unknown[] => entries.map(({ seq, text, uid }) => [seq, text, uid]);
    const all = textsOf(await journal.read(0, { records: 1_000, bytes: 1e9 }));
    const before = contentOf(journal.db);
    await journal[Symbol.asyncDispose]();
    await release(pool, first);
    const next = await takeOne(first.shard);
    const again = await open(next);
    const absent = (table: string, column: string): unknown =>
      again.db.prepare(`SELECT count(*) AS n FROM ${table} WHERE length(${column}) = 0`).get();
    expect(absent('segments', 'body')).toEqual({ n: seq - 200 });
    expect(absent('seen', 'uids')).toEqual({ n: (before['seen'] ?? []).length });
    expect(await again.append(pageOf([...records.slice(0, 3), collected(20_000, base + 7 * hour)]))).toMatchObject({
      known: 3,
      appended: 1,
    });
    const found: unknown[] = [];
    for (let after = 0; after < seq; after = found.length)
      found.push(...textsOf(await again.read(after, { records: Math.min(50, seq - after), bytes: 1e9 })));
    expect(found).toEqual(all);
    while (!(await again.examine(86_400_000)));
    expect(absent('segments', 'body')).toEqual({ n: 0 });
    again.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
    await again.acknowledge('siem', { acknowledged: 100, delivered: undefined }, []);
    while (again.shrinkCopy() > 0);
    expect(absent('segments', 'body')).toEqual({ n: 100 });
    expect((await again.read(99, { records: 1, bytes: 1e6 }))[0]?.text).toBe((all[99] as unknown[])[1]);
    // Emptied rows are no changes of the state.
    await again.flush();
    expect((await contentIn(next))['segments']).toHaveLength(seq + 1);
    expect((await contentIn(next))['segments']?.slice(0, seq)).toEqual(before['segments']);
    await again[Symbol.asyncDispose]();
  });

  test('a commit that waits while the shard is taken is refused', async () => {
    const taken = await takeOne();
    const shard = shardOf(taken);
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query('UPDATE waybill.journals SET lease = gen_random_uuid(), epoch = epoch + 1 WHERE shard = $1', [taken.shard]);
    const commit = shard.commit({
      fence: { lease: taken.lease, commits: taken.commits },
      number: taken.commits + 1,
      changes: [mark('late')],
    });
    const isWaiting = async (): Promise<boolean> =>
      (await pool.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).rowCount === 1;
    while (!(await isWaiting()));
    await client.query('COMMIT');
    client.release();
    expect(await commit).toBe(false);
  });

  test('a shard has one owner; a lease that ended is taken, and the former owner is told', async () => {
    const all = await take(pool, 'one', [], 8, leaseMs);
    expect(all).toHaveLength(8);
    expect(await take(pool, 'two', [], 8, leaseMs)).toEqual([]);
    // The answer to the request was lost: the same member takes the shards again.
    expect(await take(pool, 'one', all.slice(1), 8, leaseMs)).toMatchObject([{ shard: all[0]?.shard }]);
    expect(await renew(pool, all, leaseMs)).toHaveLength(7);
    await renew(pool, all.slice(1), -1);
    expect(await take(pool, 'two', [], 8, leaseMs)).toHaveLength(7);
    expect(await renew(pool, all, leaseMs)).toEqual([]);
  });

  test('commits wait while the server is away, and continue', async () => {
    const taken = await takeOne();
    const journal = await open(taken);
    if (!journal.hasSource(source)) journal.registerSource(source, 'tenant', base);
    await journal.settled();
    await server.end('SIGKILL');
    let isStored = false;
    const appended = journal.append(pageOf([collected(5_000, base + second)])).then((result) => {
      isStored = true;
      return result;
    });
    const { seq } = journal.head();
    while (journal.head().seq === seq) await new Promise((resolve) => setImmediate(resolve));
    expect(isStored).toBe(false);
    await server.start();
    expect(await appended).toMatchObject({ appended: 1 });
    const database = new ModelDatabase();
    database.fill(await contentIn(taken));
    expect(contentOfCopy(journal.db, database.rows)).toEqual(contentOf(database.rows));
    await journal[Symbol.asyncDispose]();
  });

  /** The rows of a shard and its last commit, as a standby that receives nothing more has them. @returns puts them back */
  const standbyOf = async ({ shard }: Taken): Promise<() => Promise<void>> => {
    const tables = Object.keys(contentOf(new ModelDatabase().rows));
    for (const name of tables) await pool.query(`CREATE TABLE standby_${name} AS SELECT * FROM waybill.${name} WHERE shard = ${shard}`);
    const { rows } = await pool.query<{ commits: number }>(`SELECT commits FROM waybill.journals WHERE shard = ${shard}`);
    return async () => {
      for (const name of tables)
        await pool.query(`BEGIN; DELETE FROM waybill.${name} WHERE shard = ${shard}; INSERT INTO waybill.${name} SELECT * FROM standby_${name};
          DROP TABLE standby_${name}; UPDATE waybill.journals SET commits = ${rows[0]?.commits ?? 0} WHERE shard = ${shard}; COMMIT`);
    };
  };

  test('after a fail-over to a standby that lacked commits, their owner writes them again', async () => {
    const taken = await takeOne();
    const events: unknown[] = [];
    const lease = new Lease(systemClock, leaseMs, systemClock.monotonic());
    const log = noting({ write: (event, ...fields) => void events.push([event, ...fields]) });
    const shard = new Shard(pool, taken, leaseMs, lease, { log, meters: uncounted });
    const journal = await openWith(shard);
    if (!journal.hasSource(source)) journal.registerSource(source, 'tenant', base);
    await journal.append(pageOf([collected(1, base + second)]));
    const failOver = await standbyOf(taken);
    const kept = shard.last;
    for (let i = 2; i < 6; i += 1) await journal.append(pageOf([collected(i, base + i * second)]));
    const { last } = shard;
    await failOver();
    expect((await contentIn(taken))['segments']).toHaveLength(1);
    await journal.append(pageOf([collected(6, base + 6 * second)]));
    const repair = { shard: taken.shard, epoch: taken.epoch, first: kept + 1, last };
    expect(events).toEqual([['shard.repaired', repair]]);
    expect((await pool.query('SELECT shard, epoch, first, last, repaired FROM waybill.rollbacks')).rows).toEqual([
      { ...repair, repaired: true },
    ]);
    expect(await contentIn(taken)).toEqual(contentOf(journal.db));
    await journal[Symbol.asyncDispose]();
  });

  describe('members', () => {
    const shortLease = 1_500;

    /** A member whose shards have a journal, in which it appends records of `source` without end. */
    const member = (name: string, isIdle = false, ownLease = shortLease) => {
      const stop = new AbortController();
      const events: string[] = [];
      const log = noting({ write: (...[event]) => void events.push(event) });
      const openShard = (shard: Shard): OpenShard => {
        const own = new AbortController();
        const { promise: failed, reject } = Promise.withResolvers<never>();
        const work = async (): Promise<void> => {
          const journal = await openWith(shard);
          try {
            if (!journal.hasSource(source)) journal.registerSource(source, 'tenant', base);
            for (let i = journal.head().seq; !own.signal.aborted && !isIdle; i += 1) {
              await journal.append(pageOf([collected(i, base + i * second)]));
              await new Promise((resolve) => setTimeout(resolve, 20));
            }
          } finally {
            await journal[Symbol.asyncDispose]();
          }
        };
        const working = work().catch(reject);
        return {
          failed,
          end: () => {
            own.abort();
            return working;
          },
        };
      };
      const it = new Member({
        pool,
        name,
        release: '0.1.0',
        leaseMs: ownLease,
        clock: systemClock,
        log,
        meters: uncounted,
        open: openShard,
      });
      return { it, events, stop };
    };
    type Running = ReturnType<typeof member>;

    const run = (running: Running) => {
      const ended = running.it.run(running.stop.signal);
      onTestFinished(async () => {
        running.stop.abort();
        await ended;
      });
      return ended;
    };
    const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
      while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    const all = Array.from({ length: shards }, (_, i) => i);
    const heldBy = (...members: Running[]): number[] => members.flatMap(({ it }) => it.shards).toSorted((a, b) => a - b);

    test('share the shards, and an orderly stop hands them over with everything stored', async () => {
      const one = member('one');
      void run(one);
      await until(() => heldBy(one).length === shards);
      const [two, three] = [member('two'), member('three')];
      void run(two);
      const stopping = run(three);
      const isShared = (): boolean => [one, two, three].every(({ it }) => it.shards.length >= 2 && it.shards.length <= 3);
      await until(() => isShared() && heldBy(one, two, three).join() === all.join());
      three.stop.abort();
      await stopping;
      expect(three.it.shards).toEqual([]);
      await until(() => heldBy(one, two).length === shards);
      expect((await pool.query("SELECT name FROM waybill.members WHERE name = 'three'")).rows).toEqual([]);
      expect([one, two, three].flatMap(({ events }) => events.filter((event) => /lost|failed/.test(event)))).toEqual([]);
      one.stop.abort();
      two.stop.abort();
      await until(() => heldBy(one, two).length === 0);
      // What each owner wrote, the next one continued: the entries of each shard are whole, each record is stored once.
      const { rows } = await pool.query<{ entries: number; seq: number; uids: number; owners: number }>(
        `SELECT sum(n)::bigint AS entries, (SELECT seq FROM waybill.head AS h WHERE h.shard = s.shard) AS seq, count(DISTINCT uids) AS uids,
           count(DISTINCT epoch) AS owners FROM waybill.segments AS s WHERE kind & 255 = 1 GROUP BY shard`,
      );
      expect(rows).toHaveLength(shards);
      for (const { entries, seq, uids } of rows) expect([entries, uids]).toEqual([seq, seq]);
      expect(rows.filter(({ owners }) => owners > 1).length).toBeGreaterThan(3);
    });

    test('a member that dies is replaced, and one that was stopped discards what it holds', async () => {
      const [one, two] = [member('one', true), member('two')];
      // It takes shards, and no turn renews them: as a process that was stopped.
      await one.it.turn(false);
      await one.it.turn(false);
      const frozen = one.it.shards;
      expect(frozen.length).toBeGreaterThan(0);
      void run(two);
      await until(() => new Set(heldBy(two)).size === shards);
      expect(one.it.shards).toEqual(frozen);
      await one.it.turn(true);
      expect(one.events.filter((event) => event === 'shard.lost')).toHaveLength(frozen.length);
      await until(() => one.it.shards.length === 0);
      const { rows } = await pool.query<{ shard: number }>("SELECT DISTINCT shard FROM waybill.takes WHERE owner = 'two' ORDER BY shard");
      expect(rows.map(({ shard }) => shard)).toEqual(all);
    });

    test('shards of a dead member are taken when their leases end, while the others have their part', async () => {
      const [one, two] = [member('one', true, leaseMs), member('two', true, leaseMs)];
      for (let turn = 0; turn < 3; turn += 1) for (const each of [one, two]) await each.it.turn(false);
      // Two members with four shards each.
      expect([one, two].map(({ it }) => it.shards.length)).toEqual([4, 4]);
      await pool.query(`UPDATE waybill.members SET seen = seen - interval '${leaseMs} ms', started = started - interval '1 h' WHERE name = 'one';
        UPDATE waybill.journals SET expires = clock_timestamp() - interval '1 ms' WHERE owner = 'one'`);
      await two.it.turn(false);
      expect(two.it.shards).toEqual(all);
      for (const each of [one, two]) {
        each.stop.abort();
        await each.it.run(each.stop.signal);
      }
    });

    test('a member whose shard was rolled back before it could repair it says which commits are missing', async () => {
      const one = member('one');
      void run(one);
      await until(() => heldBy(one).length === shards);
      const journals = (columns: string) =>
        pool.query<{ commits: number; lease: string }>(`SELECT ${columns} FROM waybill.journals WHERE shard IN (1, 2)`);
      await until(async () => (await journals('commits')).rows.every(({ commits }) => commits > 5));
      // Shard 1: a standby that lacks the take-over, too. Shard 2: another member took it there, and nothing is missing.
      await pool.query(`BEGIN; DELETE FROM waybill.takes WHERE shard = 1;
        UPDATE waybill.journals SET lease = gen_random_uuid(), owner = 'two', expires = clock_timestamp() + interval '1 min',
          commits = CASE shard WHEN 1 THEN 2 ELSE commits END WHERE shard IN (1, 2);
        INSERT INTO waybill.takes (shard, epoch, owner, lease, commits) SELECT shard, epoch + 1, owner, lease, commits FROM waybill.journals WHERE shard = 2; COMMIT`);
      await until(() => one.events.filter((event) => /lost|rolled/.test(event)).length >= 2);
      expect(one.events.filter((event) => /lost|rolled|failed/.test(event)).toSorted()).toEqual(['shard.lost', 'shard.rolled_back']);
      await until(() => one.it.counts?.lost === 1);

      // The member is gone; the database knows what happened.
      one.stop.abort();
      await pool.query(
        "INSERT INTO waybill.rollbacks VALUES (4, 1, 7, 9, true, clock_timestamp() - interval '25 h'), (5, 1, 7, 9, false, clock_timestamp() - interval '25 h')",
      );
      const shown = await fleetStatus(pool, facts);
      expect(shown.fleet?.rollbacks).toMatchObject([
        { shard: 1, first: 3, repaired: false },
        { shard: 5, first: 7, last: 9, repaired: false },
      ]);
      expect(problems(shown).find(({ code }) => code === 'database_rolled_back')?.what).toMatch(
        /^The database lost commits, and no owner could write them again: shard 1, commits 3 to \d+, \S+Z; shard 5, commits 7 to 9, \S+Z\.$/,
      );
    });

    test('a shard whose state cannot be opened ends alone, and is taken again when the state is whole', async () => {
      const first = member('first');
      const ended = run(first);
      await until(() => heldBy(first).length === shards);
      await until(async () => (await pool.query('SELECT FROM waybill.head')).rowCount === shards);
      first.stop.abort();
      await ended;
      const { rows } = await pool.query<{ head: unknown }>('DELETE FROM waybill.head WHERE shard = 3 RETURNING to_jsonb(head) AS head');
      const second = member('second');
      void run(second);
      await until(() => second.events.includes('shard.failed'));
      await until(() => all.every((shard) => shard === 3 || heldBy(second).includes(shard)));
      await pool.query('INSERT INTO waybill.head SELECT * FROM jsonb_populate_record(NULL::waybill.head, $1)', [rows[0]?.head]);
      const taken = (): number => second.events.filter((event) => event === 'shard.taken').length;
      const failed = (): number => second.events.filter((event) => event === 'shard.failed').length;
      await until(() => heldBy(second).length === shards && taken() - failed() === shards);
    });

    test('a member that was stopped while its shard went through many owners claims no loss, and moves are remembered', async () => {
      const former = await takeOne(3);
      await release(pool, former);
      expect(await firstLost(pool, former, former.commits + 1)).toBe(former.commits + 1);
      // The row of a move says that it was completed: an operator may run it again years later.
      await pool.query(`INSERT INTO waybill.takes (shard, epoch, owner, lease, commits, is_move)
        VALUES (3, ${former.epoch - 1}, 'waybill fleet import', gen_random_uuid(), 0, true)`);
      await pool.query('UPDATE waybill.journals SET epoch = epoch + 1000 WHERE shard = 3');
      await takeOne(3);
      const kept = await pool.query('SELECT epoch FROM waybill.takes WHERE shard = 3 ORDER BY epoch');
      expect(kept.rows).toEqual([{ epoch: former.epoch - 1 }, { epoch: former.epoch + 1001 }]);
      expect(await firstLost(pool, former, former.commits + 1)).toBeUndefined();
    });

    test('a source has one shard for all members, and keeps it', async () => {
      const ids = Array.from({ length: 40 }, (_, i) => `tenant-${i}`);
      const [one, other] = await Promise.all([shardsOf(pool, ids), shardsOf(pool, ids.toReversed())]);
      expect([...one].toSorted()).toEqual([...other].toSorted());
      expect(new Set(one.values()).size).toBeGreaterThan(shards / 2);
      await pool.query("UPDATE waybill.placements SET shard = 3 WHERE place = 'tenant-7'");
      expect((await shardsOf(pool, ids)).get('tenant-7')).toBe(3);
    });
  });

  test('check refuses a pool whose connections change within a transaction', async ({ skip }) => {
    skip(PgBouncer.missing !== undefined, PgBouncer.missing);
    for (const mode of ['transaction', 'session', 'statement'] as const) {
      await using bouncer = await PgBouncer.start(server.port, mode);
      const pooled = openPool({ connectionString: server.url.replace(/:\d+\//, `:${bouncer.port}/`) }, 10_000);
      const findings = await databaseFindings(pooled, systemClock).finally(() => pooled.end());
      const message = expect.stringMatching(/statement pooling.*pool_mode = transaction/) as string;
      if (mode === 'statement') expect(findings).toEqual([{ level: 'error', message }]);
      else expect(findings.map(({ level }) => level)).toEqual(['ok', 'ok']);
    }
  });

  test('check refuses what makes a commit untrue, and warns where a fail-over loses some', async () => {
    const found = async (): Promise<string[]> => {
      const fresh = openPool({ connectionString: server.url }, 10_000);
      const findings = await databaseFindings(fresh, systemClock).finally(() => fresh.end());
      return findings.map(({ level, message }) => `${level}: ${message}`);
    };
    expect(await found()).toEqual([
      expect.stringMatching(/^ok: PostgreSQL 1\d.*, 8 shards, 40 connections/),
      expect.stringMatching(/^ok: a commit takes [\d.]+ ms .* at most \d+ commits a second/),
    ]);
    const replicated = {
      connect: () => pool.connect(),
      query: async (sql: string) => {
        const { rows } = await pool.query<object>(sql);
        return { rows: rows.map((row) => ('standbys' in row ? { ...row, standbys: 1 } : row)) };
      },
    } as unknown as pg.Pool;
    expect((await databaseFindings(replicated, systemClock)).at(-1)).toEqual({
      level: 'warning',
      message: expect.stringContaining('synchronous_standby_names is empty, and there is a standby') as string,
    });
    const slow = {
      connect: () => pool.connect(),
      query: async (sql: string) => {
        if (sql.includes('emit_message')) await systemClock.sleep(51, new AbortController().signal);
        const { rows } = await pool.query<object>(sql);
        return { rows: rows.map((row) => ('long' in row ? { ...row, long: 2, autovacuum: 'off' } : row)) };
      },
    } as unknown as pg.Pool;
    const slowness = (await databaseFindings(slow, systemClock)).filter(({ level }) => level === 'warning').map(({ message }) => message);
    expect(slowness).toEqual([
      expect.stringContaining('commits are slow'),
      expect.stringContaining('autovacuum is off'),
      expect.stringMatching(/^2 transactions have been open/),
    ]);
    for (const [name, value, expected] of [
      ['fsync', 'off', /^error: fsync is off/],
      ['synchronous_commit', 'off', /^error: synchronous_commit is off/],
      ['default_transaction_isolation', "'repeatable read'", /^error: default_transaction_isolation is "repeatable read"/],
      ['default_transaction_read_only', 'on', /^error: the server is read-only/],
    ] as const) {
      await pool.query(`ALTER SYSTEM SET ${name} = ${value}`);
      await pool.query('SELECT pg_reload_conf()');
      try {
        await expect.poll(found, { timeout: 10_000 }).toEqual([expect.stringMatching(expected)]);
      } finally {
        await pool.query(`ALTER SYSTEM RESET ${name}`);
        await pool.query('SELECT pg_reload_conf()');
      }
      // Each connection reads its settings anew some time after the reload.
      const shown = async (): Promise<unknown> => (await pool.query<Record<string, string>>(`SHOW ${name}`)).rows[0]?.[name];
      await expect.poll(shown, { timeout: 10_000 }).not.toBe(value.replaceAll("'", ''));
    }
    await pool.query('CREATE ROLE outsider LOGIN');
    const outsider = openPool({ connectionString: server.url.replace('postgres@', 'outsider@') }, 10_000);
    await expect(databaseFindings(outsider, systemClock)).rejects.toMatchObject({ code: 'database_refused' });
    for (const statement of rightsOf('member', 'outsider').filter((each) => each.includes('outsider'))) await pool.query(statement);
    expect(await databaseFindings(outsider, systemClock)).toEqual([
      { level: 'error', message: expect.stringContaining('may not write') as string },
    ]);
    await outsider.end();
  });

  test('a request that no member takes is withdrawn, and one whose owner ended has an unknown outcome', async () => {
    const { signal } = new AbortController();
    let now = 0;
    const clock = { ...systemClock, monotonic: () => now, sleep: (ms: number) => systemClock.sleep((now += ms) && 1, signal) };
    await expect(requested(pool, [3], { operation: 'sinks retry', sink: 'siem' }, clock, signal)).rejects.toThrow(
      'no member owns shard 3; nothing changed',
    );
    expect((await pool.query('SELECT 1 FROM waybill.requests')).rows).toEqual([]);

    const former = await takeOne(3);
    const stop = new AbortController();
    const { promise: begun, resolve } = Promise.withResolvers<undefined>();
    const operate = (): Promise<unknown> => {
      resolve(undefined);
      return new Promise(() => undefined);
    };
    const ended = new AbortController();
    const serving = serveRequests(pool, former, operate, systemClock, ended.signal);
    const answer = requested(pool, [3], { operation: 'sinks retry', sink: 'siem' }, systemClock, signal);
    const outcome = expect(answer).rejects.toThrow('its owner ended; it may be carried out');
    await begun;
    // It does not wait for the operation.
    ended.abort(new Error('given up'));
    await expect(serving).rejects.toThrow('given up');
    await release(pool, former);
    const next = await takeOne(3);
    void serveRequests(pool, next, () => Promise.reject(new Error('taken again')), systemClock, stop.signal).catch(() => undefined);
    await outcome;
    stop.abort();
  });

  test('a status shows sources whose shard nobody has opened, and keeps none of an owner that lost its lease', async () => {
    const all = await take(pool, 'one', [], shards, leaseMs);
    const [taken, other] = [1, 2].map((shard) => all.find((each) => each.shard === shard)) as [Taken, Taken];
    for (const each of all.filter(({ shard }) => shard !== 1 && shard !== 2)) await release(pool, each);
    const status = (records: number, state: string): ShardStatus => ({
      snapshot: shownAs.snapshot({
        sources: [shownAs.source({ id: 'here', collected: records })],
        sinks: [shownAs.sink({ id: 'siem', state, lagEntries: 2, lagSeconds: records, acknowledged: records })],
      }),
      windows: [],
      today: { records, late: 0 },
    });
    await publish(pool, taken, status(7, 'active'));
    // Another member took the shard meanwhile.
    await publish(pool, { ...taken, lease: randomUUID() }, status(8, 'active'));
    await publish(pool, other, { ...status(5, 'blocked'), snapshot: { ...status(5, 'blocked').snapshot, sources: [] } });
    await pool.query(
      "INSERT INTO waybill.members (name, release, started, seen) VALUES ('one', '1', clock_timestamp(), clock_timestamp())",
    );
    const shown = await fleetStatus(pool, facts);
    expect(shown.sources.map(({ id, collected, trouble }) => [id, collected, trouble])).toEqual([
      ['elsewhere', 0, 'no member has opened its shard yet'],
      ['here', 7, undefined],
    ]);
    expect(shown.sinks).toMatchObject([{ id: 'siem', state: 'blocked', lagEntries: 4, lagSeconds: 7, acknowledged: 12 }]);
    expect(shown.fleet?.shards.filter(({ owner }) => owner === 'one').map(({ shard }) => shard)).toEqual([1, 2]);
    expect(notReadyReasons(shown)).toContain('shard 0: no member reports on it');

    await pool.query("UPDATE waybill.statuses SET at = at - interval '61 s'");
    const stale = await fleetStatus(pool, facts);
    expect(stale.sources.map(({ trouble, serverNow }) => [trouble, serverNow])).toEqual([
      ['no member has opened its shard yet', undefined],
      ['shard 1: no member has reported on it for 61 s', undefined],
    ]);
    expect(problems(stale)[0]?.what).toBe('No member reports on shards 0, 1, 2, 3, 4, 5, 6, 7.');
    await pool.query('TRUNCATE waybill.members');
    expect(statusText(await fleetStatus(pool, facts), { color: false, tz: 'UTC', width: 200 })).toMatch(/^DAEMON NOT RUNNING/);
  });
});
