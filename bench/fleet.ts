/**
 * `npm run bench -- fleet [--records 200000] [--rounds 5] [--seconds 60] [--kills 10] [--sources 300] [--only history,idle,takes,rest] [--save]`:
 * one shard on PostgreSQL beside SQLite, in interleaved rounds; the WAL of an idle source; the time until the shards of a killed member have a
 * new owner; and many sources over three members at rest. PostgreSQL has its default settings, a database of its own, and the same cores.
 */
import Database from 'better-sqlite3';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPool } from '../src/fleet/database.ts';
import { setupStatements } from '../src/fleet/tables.ts';
import { Postgres, postgresMissing } from '../test/support/servers/postgres.ts';
import { configuration } from './configuration.ts';
import { flag, options, positiveInteger, refuse, someOf } from './options.ts';
import { cpuSeconds, memoryMiB, sleep, start, type Program } from './process.ts';
import { waybill } from './program.ts';
import { machine, publish } from './publish.ts';
import { perSecond } from './record.ts';
import { digits, rangeOf, rangeText, type Bar, type Result } from './result.ts';

const parts = ['history', 'idle', 'takes', 'rest'];
const { records, rounds, seconds, kills, sources, only, save } = options({
  records: positiveInteger(200_000),
  rounds: positiveInteger(5),
  seconds: positiveInteger(60),
  kills: positiveInteger(10),
  sources: positiveInteger(300),
  only: someOf(parts),
  save: flag,
});
if (postgresMissing !== undefined) refuse(postgresMissing);
if (save && parts.some((name) => !only.includes(name))) refuse('--save needs all parts: run it without --only');
const sentence = machine();
const timeoutMs = 600_000;
const directory = mkdtempSync(join(tmpdir(), 'waybill-bench-fleet-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const say = (line: string): void => void process.stderr.write(`${line}\n`);

const server = await Postgres.start();
const pool = openPool({ connectionString: server.url }, 30_000);
const tables: Result['tables'][number][] = [];
const bars: Bar[] = [];
let roundTrip = NaN;
try {
  roundTrip = await commitMs();
  if (only.includes('history')) await history();
  if (only.includes('idle')) await idle();
  if (only.includes('takes')) await takes();
  if (only.includes('rest')) await rest();
} finally {
  await pool.end();
  await server[Symbol.asyncDispose]();
}
publish(
  'fleet',
  {
    title: 'A fleet on PostgreSQL',
    command: `npm run bench -- fleet --records ${records} --rounds ${rounds} --seconds ${seconds} --kills ${kills} --sources ${sources} --only ${only.join(',')}`,
    text: [sentence, `PostgreSQL runs on the same cores; an empty commit takes ${roundTrip.toFixed(2)} ms from here (median of 200).`],
    tables,
    bars,
  },
  save,
);

/** The floor of every commit. */
async function commitMs(): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 200; i += 1) {
    const began = performance.now();
    await pool.query("SELECT pg_logical_emit_message(true, 'bench', '')");
    times.push(performance.now() - began);
  }
  return rangeOf(times).median;
}

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly databaseCpuSeconds: number;
  readonly walBytes: number;
}

/** Progress of the only source, from either store. */
interface Progress {
  readonly collected: number;
  readonly closed: number;
}

/** The same history into both stores, in turn. Each round is compared with itself. */
async function history(): Promise<void> {
  const beginMs = beginOf(records);
  const endUs = (beginMs + Math.ceil(records / perSecond) * 1000) * 1000;
  await using pages = await serve(records, beginMs);
  const pairs: { readonly sqlite: Run; readonly postgres: Run }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const sqlite = await collected(undefined);
    const postgres = await collected(1);
    pairs.push({ sqlite, postgres });
    say(`history, round ${round + 1}: ${digits(sqlite.seconds / postgres.seconds)} of the rate of SQLite`);
  }
  const rate = rangeOf(pairs.map(({ sqlite, postgres }) => sqlite.seconds / postgres.seconds)).median;
  const cpu = rangeOf(pairs.map(({ sqlite, postgres }) => postgres.cpuSeconds / sqlite.cpuSeconds)).median;
  const row = (name: string, of: 'sqlite' | 'postgres', [ofRate, ofCpu]: [number, number]): string[] => [
    name,
    rangeText(rangeOf(pairs.map((pair) => records / pair[of].seconds))),
    ofRate.toFixed(2),
    rangeText(rangeOf(pairs.map((pair) => (pair[of].cpuSeconds / records) * 100_000))),
    ofCpu.toFixed(2),
    ...(of === 'sqlite'
      ? ['-', '-']
      : [
          rangeText(rangeOf(pairs.map((pair) => (pair[of].databaseCpuSeconds / records) * 100_000))),
          rangeText(rangeOf(pairs.map((pair) => pair[of].walBytes / records))),
        ]),
  ];
  tables.push({
    caption: `${records.toLocaleString('en-US')} records of history from one source into the state, from the first page to the last window; no sink; median (lowest–highest) of ${rounds} interleaved rounds:`,
    columns: ['', 'records/s', 'of SQLite', 'CPU s per 100,000', 'of SQLite', 'CPU s of PostgreSQL', 'WAL bytes a record'],
    rows: [row('SQLite', 'sqlite', [1, 1]), row('one shard on PostgreSQL', 'postgres', [rate, cpu])],
  });
  bars.push(
    { what: 'rate of history of a shard, of SQLite', value: rate, limit: 'at least', bar: 0.5 },
    { what: 'CPU of history of a shard, of SQLite', value: cpu, limit: 'at most', bar: 1.5 },
  );

  async function collected(shards: number | undefined): Promise<Run> {
    if (shards !== undefined) await setUp(shards);
    await using daemon = run('history', pages.port, beginMs, { fleet: shards !== undefined });
    const progress = shards === undefined ? inFile(join(directory, 'history/state/waybill.db')) : inDatabase;
    const first = await until('the first page is stored', progress, ({ collected: count }) => count > 0);
    const [began, cpu, databaseCpu, wal] = [performance.now(), cpuSeconds(daemon.pid), cpuSeconds(server.pid), await walNow()];
    const isWhole = ({ collected: count, closed }: Progress): boolean => count === records && closed >= endUs;
    await until('every window is proven', progress, isWhole);
    // The measurement begins after the first page: extrapolates to all records.
    const share = records / (records - first.collected);
    return {
      seconds: (share * (performance.now() - began)) / 1000,
      cpuSeconds: share * (cpuSeconds(daemon.pid) - cpu),
      databaseCpuSeconds: share * (cpuSeconds(server.pid) - databaseCpu),
      walBytes: share * ((await walNow()) - wal),
    };
  }
}

/** WAL bytes of one poll, from two runs that differ only in `pollInterval`. */
async function idle(): Promise<void> {
  const beginMs = beginOf(1_000);
  await using pages = await serve(1_000, beginMs);
  const measured: { readonly polls: number; readonly bytes: number }[] = [];
  for (const pollInterval of ['1s', '10s']) {
    await setUp(1);
    await using _ = run('idle', pages.port, beginMs, { fleet: true, source: { pollInterval, closeDelay: '15m' } });
    await until('the history is stored', inDatabase, ({ collected }) => collected === 1_000);
    // The first change of a page after a checkpoint writes the whole page.
    await pool.query('CHECKPOINT');
    await sleep(20_000);
    const [polls, wal] = [await pages.requests(), await walNow()];
    await sleep(seconds * 1000);
    measured.push({ polls: (await pages.requests()) - polls, bytes: (await walNow()) - wal });
  }
  const [often, seldom] = measured as [(typeof measured)[number], (typeof measured)[number]];
  const perPoll = (often.bytes - seldom.bytes) / (often.polls - seldom.polls);
  tables.push({
    caption: `One idle source for ${seconds} s:`,
    columns: ['', 'polls', 'WAL bytes', 'bytes a poll', 'bytes a second without polls'],
    rows: [
      [
        'a poll each second',
        digits(often.polls),
        digits(often.bytes),
        digits(perPoll),
        digits((often.bytes - often.polls * perPoll) / seconds),
      ],
      [
        'a poll each 10 s',
        digits(seldom.polls),
        digits(seldom.bytes),
        digits(perPoll),
        digits((seldom.bytes - seldom.polls * perPoll) / seconds),
      ],
    ],
  });
  bars.push({ what: 'WAL of a poll of an idle source', value: perPoll, unit: ' B', limit: 'at most', bar: 1000 });
}

/** From `kill -9` of a member until the next owner of each of its shards has committed, with the default lease. */
async function takes(): Promise<void> {
  const shards = 8;
  const beginMs = beginOf(1_000);
  await using pages = await serve(1_000, beginMs);
  await setUp(shards);
  const member = (slot: number): Program =>
    run(`member-${slot}`, pages.port, beginMs, { fleet: true, count: 2 * shards, source: { closeDelay: '15m' } });
  const members = [member(0), member(1)];
  const times: number[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    const slot = kill % 2;
    const isShared = (owners: readonly Owned[]): boolean =>
      members.every(({ pid }) => owners.filter((each) => each.pid === pid).length === shards / 2);
    const before = await until('the members share the shards', ownersOf, isShared);
    // At any time between two renewals.
    await sleep(2_000 + (kill * 3_000) / kills);
    const dead = members[slot];
    if (!dead) throw new Error('no member');
    const lost = new Map(before.filter(({ pid }) => pid === dead.pid).map(({ shard, epoch }) => [shard, epoch]));
    const began = performance.now();
    process.kill(dead.pid, 'SIGKILL');
    await until('each shard has a new owner', ownersOf, (owners) => {
      for (const { shard, epoch, hasCommitted } of owners)
        if (hasCommitted && epoch > (lost.get(shard) ?? Infinity)) {
          times.push((performance.now() - began) / 1000);
          lost.delete(shard);
        }
      return lost.size === 0;
    });
    await dead[Symbol.asyncDispose]();
    say(`take-over ${kill + 1} of ${kills}: ${digits(times.at(-1) ?? NaN)} s`);
    members[slot] = member(slot);
  }
  for (const each of members) await each[Symbol.asyncDispose]();
  const bounds = [5, 10, 12.5, 15, 17.5, 20, 22.5, 25, Infinity];
  const sorted = times.toSorted((one, other) => one - other);
  tables.push({
    caption: `From kill -9 of one of two members until the next owner of a shard has committed, lease 15 s, ${times.length} shards:`,
    columns: ['seconds', 'shards', ''],
    rows: bounds.map((bound, i) => {
      const count = times.filter((time) => time <= bound && time > (bounds[i - 1] ?? 0)).length;
      return [
        bound === Infinity ? `above ${bounds.at(-2)}` : `up to ${bound}`,
        String(count),
        '█'.repeat(Math.round((30 * count) / times.length)),
      ];
    }),
  });
  bars.push({ what: 'take-over, p99', value: sorted[Math.ceil(0.99 * sorted.length) - 1] ?? NaN, unit: ' s', limit: 'at most', bar: 25 });
}

/** Many sources over three members, without new records. */
async function rest(): Promise<void> {
  const [each, shards] = [30, 12];
  const beginMs = beginOf(each);
  await using pages = await serve(each, beginMs);
  await setUp(shards);
  const members = [0, 1, 2].map((slot) =>
    run(`rest-${slot}`, pages.port, beginMs, { fleet: true, count: sources, source: { closeDelay: '15m' } }),
  );
  const all = async (): Promise<Progress> => {
    const { rows } = await pool.query<Progress>(
      'SELECT coalesce(sum(collected), 0)::bigint AS collected, 0 AS closed FROM waybill.sources',
    );
    return rows[0] ?? { collected: 0, closed: 0 };
  };
  await until('every record is stored', all, ({ collected }) => collected === each * sources);
  await until('the members share the shards', ownersOf, (owners) =>
    members.every(({ pid }) => owners.filter((owner) => owner.pid === pid).length === shards / members.length),
  );
  await sleep(30_000);
  const cpuOf = (): number[] => [...members, server].map(({ pid }) => cpuSeconds(pid));
  const [before, wal, began] = [cpuOf(), await walNow(), performance.now()];
  await sleep(seconds * 1000);
  const passed = (performance.now() - began) / 1000;
  const cores = cpuOf().map((cpu, i) => (cpu - (before[i] ?? NaN)) / passed);
  const bytes = ((await walNow()) - wal) / passed;
  tables.push({
    caption: `${sources} sources at rest over three members, ${shards} shards, for ${seconds} s; WAL: ${digits(bytes / 1000)} kB a second:`,
    columns: ['', 'cores', 'MiB', 'peak MiB'],
    rows: [
      ...members.map(({ pid }, i) => {
        const { now, peak } = memoryMiB(pid);
        return [`member ${i + 1}`, (cores[i] ?? NaN).toFixed(3), digits(now), digits(peak)];
      }),
      ['PostgreSQL', (cores.at(-1) ?? NaN).toFixed(3), '-', '-'],
    ],
  });
  for (const member of members) await member[Symbol.asyncDispose]();
}

/** The log ends a while ago, so that all of it is history. */
function beginOf(count: number): number {
  return Math.floor(Date.now() / 1000) * 1000 - Math.ceil(count / perSecond) * 1000 - 1_800_000;
}

async function serve(count: number, beginMs: number) {
  const program = start(process.execPath, [join(import.meta.dirname, 'server.ts'), String(count), String(beginMs)]);
  const { port } = JSON.parse(await program.firstLine) as { port: number };
  return {
    port,
    requests: async (): Promise<number> => ((await (await fetch(`http://127.0.0.1:${port}/stats`)).json()) as { pages: number }).pages,
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

/** An empty database with this number of shards. */
async function setUp(shards: number): Promise<void> {
  await pool.query('DROP SCHEMA IF EXISTS waybill CASCADE');
  for (const statement of setupStatements(shards)) await pool.query(statement);
}

function run(
  name: string,
  port: number,
  beginMs: number,
  { fleet, count = 1, source = {} }: { readonly fleet: boolean; readonly count?: number; readonly source?: object },
): Program {
  const folder = join(directory, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const given = JSON.parse(configuration(port, beginMs, [], { sources: count })) as { sources: object[] };
  const config = {
    ...given,
    sources: given.sources.map((each) => ({ ...each, ...source })),
    ...(fleet && { fleet: { database: server.url } }),
  };
  writeFileSync(join(folder, 'waybill.yaml'), JSON.stringify(config));
  return start(waybill(), ['run', '--config', 'waybill.yaml'], folder);
}

async function until<Value>(what: string, read: () => Promise<Value>, isReached: (value: Value) => boolean): Promise<Value> {
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    const value = await read();
    if (isReached(value)) return value;
    if (performance.now() > giveUpAt) throw new Error(`not reached in ${timeoutMs / 1000} s: ${what}; ${JSON.stringify(value)}`);
    await sleep(50);
  }
}

const progressOf = (schema: string): string =>
  `SELECT coalesce((SELECT collected FROM ${schema}.sources), 0) AS collected, coalesce((SELECT max(closed_until_us) FROM ${schema}.ranges), 0) AS closed`;

async function inDatabase(): Promise<Progress> {
  return (await pool.query<Progress>(progressOf('waybill'))).rows[0] ?? { collected: 0, closed: 0 };
}

/** Asks the file, as the database is asked, and not the measured program. */
function inFile(path: string): () => Promise<Progress> {
  return () => {
    if (!existsSync(path)) return Promise.resolve({ collected: 0, closed: 0 });
    const db = new Database(path, { readonly: true });
    try {
      const isMade = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'ranges'").get() !== undefined;
      return Promise.resolve(
        isMade ? (db.prepare<[], Progress>(progressOf('main')).get() ?? { collected: 0, closed: 0 }) : { collected: 0, closed: 0 },
      );
    } finally {
      db.close();
    }
  };
}

async function walNow(): Promise<number> {
  const { rows } = await pool.query<{ bytes: number }>("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS bytes");
  return rows[0]?.bytes ?? NaN;
}

interface Owned {
  readonly shard: number;
  readonly epoch: number;
  /** Of the owner. */
  readonly pid: number;
  readonly hasCommitted: boolean;
}

async function ownersOf(): Promise<readonly Owned[]> {
  const sql = `SELECT j.shard, j.epoch, split_part(j.owner, '/', 2)::int AS pid, j.commits > t.commits AS "hasCommitted"
    FROM waybill.journals AS j JOIN waybill.takes AS t ON t.shard = j.shard AND t.epoch = j.epoch WHERE j.owner IS NOT NULL`;
  return (await pool.query<Owned>(sql)).rows;
}
