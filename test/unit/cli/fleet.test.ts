/** What `waybill fleet` refuses before it asks the database. test/servers/fleet-move.test.ts runs it with PostgreSQL. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/fleet.ts';
import { outputOf } from '../../support/command-io.ts';
import { temporary } from '../../support/journal/opening.ts';
import { service } from '../../support/offline-check.ts';

test('fleet refuses a configuration without a fleet, two ways to name shards, and a move without confirmation', async () => {
  const configOf = (more: object): string => {
    const file = join(temporary(), 'waybill.yaml');
    const sinks = [{ id: 'siem', type: 'elasticsearch', nodes: 'https://es.example:9200' }];
    writeFileSync(file, JSON.stringify({ dataDir: './state', sources: [{ id: 'production', ...service }], sinks, ...more }));
    return file;
  };
  const run = (config: string, ...args: string[]) => outputOf((given, io) => command.run(given, io), [...args, '--config', config]);
  const alone = configOf({});
  const member = configOf({ fleet: { database: 'postgres://waybill@127.0.0.1:1/audit' } });
  const moves = [
    ['import', '--from', './state'],
    ['export', '--shard', '3', '--to', './out'],
  ];
  for (const args of [['list'], ['release', '--shard', '1', '--yes'], ...moves.map((move) => [...move, '--yes'])])
    await expect(run(alone, ...args)).rejects.toThrow('the configuration has no "fleet"');
  for (const args of [[], ['--shard', '1', '--member', 'one']])
    await expect(run(member, 'release', ...args)).rejects.toThrow('pass either --shard N or --member NAME');
  for (const move of moves) await expect(run(member, ...move)).rejects.toThrow('not a terminal; pass --yes to confirm');
  await expect(run(member, 'export', '--shard', 'x', '--to', './out')).rejects.toThrow('not the number of a shard');
  await expect(run(member, 'list')).rejects.toMatchObject({ code: 'database_unreachable' });
});
