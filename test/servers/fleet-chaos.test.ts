/**
 * The long form of the test of a fleet: 12 shards, 24 sources, a real Elasticsearch, and the environments in which a fleet runs.
 * `WAYBILL_FLEET_ROUNDS` sets the rounds of each test (3). `npm run test:fleet -- -t pgbouncer` runs one of them.
 */
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'vitest';
import { inPlace, type Place } from '../support/e2e-place.ts';
import { elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { chaos, type Chaos } from '../support/servers/fleet-chaos.ts';
import { PgBouncer, pooledServer, singleServer } from '../support/servers/fleet-databases.ts';
import type { MemberProgram } from '../support/servers/fleet-members.ts';
import { kafkaMissing } from '../support/servers/kafka-broker.ts';
import { postgresMissing } from '../support/servers/postgres.ts';
import { notAsked } from '../support/servers/programs.ts';

const missing = notAsked() ?? postgresMissing ?? kafkaMissing('4.4.0') ?? elasticsearchMissing('elasticsearch-9.5.3');
const rounds = Number(process.env['WAYBILL_FLEET_ROUNDS'] ?? 3);
const [fakeTime] = globSync('/usr/lib/*/faketime/libfaketime.so.1');

interface Variant extends Pick<Chaos, 'database' | 'programs'> {
  readonly name: string;
  readonly missing?: string | undefined;
}

const variants: readonly Variant[] = [
  { name: 'with one server', database: singleServer },
  { name: 'through pgbouncer in transaction mode', database: () => pooledServer('transaction'), missing: PgBouncer.missing },
  {
    name: 'while the clock of one member is ten minutes fast',
    database: singleServer,
    programs: () => [{ env: { LD_PRELOAD: fakeTime ?? '', FAKETIME: '+10m', FAKETIME_DONT_FAKE_MONOTONIC: '1' } }],
    missing: fakeTime === undefined ? 'faketime is missing: test/servers/install.sh faketime' : undefined,
  },
  { name: 'with a member of the commit before', database: singleServer, programs: (place) => [formerRelease(place)] },
];

describe('12 shards with 24 sources', () => {
  // promise: A fleet of 12 shards and 24 sources with a real Kafka and a real Elasticsearch, also through pgbouncer, with a wrong clock, and with two releases: kills and stops of members and of the database lose no record, and none is twice in a sink.
  test.for(variants)(
    'keep every record $name',
    { timeout: 1_800_000 + rounds * 180_000 },
    async ({ database, programs, ...variant }, { skip }) => {
      const lacking = missing ?? variant.missing;
      if (lacking !== undefined) return skip(lacking);
      await inPlace('fleet-chaos', (place) =>
        chaos(place, { rounds, shards: 12, sources: 24, leaseMs: 15_000, rate: 3, hasElasticsearch: true, database, programs }),
      );
    },
  );
});

/** `WAYBILL_FLEET_FORMER`: a commit; default: the one before. */
function formerRelease(place: Place): MemberProgram {
  const root = resolve(import.meta.dirname, '../..');
  const folder = place.path('former');
  mkdirSync(folder);
  const archive = execFileSync(
    'git',
    ['archive', process.env['WAYBILL_FLEET_FORMER'] ?? 'HEAD^', 'bin', 'src', 'config', 'content', 'package.json'],
    {
      cwd: root,
      maxBuffer: 2 ** 28,
    },
  );
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return { program: join(folder, 'bin/waybill.js') };
}
