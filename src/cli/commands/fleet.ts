/** `waybill fleet`: members and shards, giving shards up, and the way into a fleet and out of it. */
import { loadConfig } from '../../config/load.ts';
import { version } from '../../disk/version.ts';
import { WaybillError } from '../../errors/errors.ts';
import { fleetList, shardsOwnedBy } from '../../fleet/list.ts';
import { exportShard, importState } from '../../fleet/move.ts';
import { placeOf } from '../../fleet/placements.ts';
import { withDatabase } from '../../fleet/readers.ts';
import { release as releaseRequest, requested } from '../../fleet/requests.ts';
import { grouped, rfc3339 } from '../../report/format-time.ts';
import { size } from '../../report/format-size.ts';
import { right } from '../../report/text-table.ts';
import { systemClock } from '../../time/clock.ts';
import { defineCommand, subcommand } from '../command.ts';
import { printJson, printTable, type Io } from '../io.ts';
import { confirmed, confirmOption } from '../operation.ts';
import { configOption, jsonOption, required, shardNumber, text, withDefault } from '../option.ts';
import { accessOf, settingsFor, stateOptions, type StatePlace, type StateValues } from '../state-access.ts';

const shardOption = shardNumber('number of the shard');
const commonOptions = { ...confirmOption, ...jsonOption, ...configOption };

export const command = defineCommand({
  name: 'fleet',
  summary: 'lists the members and shards of a fleet; gives shards up; moves a state into a fleet, or a shard out of it',
  description: 'For a configuration with "fleet", whose state is in PostgreSQL: docs/fleet.md.',
  notes: `An import or export that was cut off leaves one owner of the journal, and the same command completes it. After an import the old state
refuses to start (state_moved). After an export no member serves the shard.`,
  subcommands: {
    list: subcommand({
      summary: 'lists the members, and each shard with its owner, size and sources',
      options: { ...jsonOption, ...stateOptions },
      run: list,
    }),
    release: subcommand({
      summary: 'asks a member to give up one shard or all of its shards; it takes none for a minute',
      options: {
        shard: shardOption,
        member: text('NAME', 'member, as `waybill fleet list` names it: all of its shards'),
        ...commonOptions,
      },
      run: release,
    }),
    import: subcommand({
      summary: 'moves the state of a stopped daemon into a shard that has no records',
      options: {
        from: required(text('DIR', 'the state directory of the daemon')),
        shard: withDefault({ ...shardOption, help: 'shard that gets the state; default 0' }, '0'),
        ...commonOptions,
      },
      run: moveIn,
    }),
    export: subcommand({
      summary: 'moves a shard to a new state directory for one daemon, and verifies it',
      options: { shard: required(shardOption), to: required(text('DIR', 'new directory for the state')), ...commonOptions },
      run: moveOut,
    }),
  },
  fallback: 'list',
  examples: [
    'waybill fleet list',
    'waybill fleet release --member waybill-5d9c7b6f4-x2x7q/1/0f3a5b7c --yes',
    'waybill fleet import --from /var/lib/waybill/state --yes',
    'waybill fleet export --shard 3 --to /var/lib/waybill/shard-3 --yes',
  ],
});

function inFleet<Place extends StatePlace>(place: Place): Place & { readonly fleet: NonNullable<StatePlace['fleet']> } {
  const { fleet } = place;
  if (!fleet) throw new WaybillError('usage', 'cannot find a fleet: the configuration has no "fleet"');
  return { ...place, fleet };
}

async function list(values: StateValues & { readonly json: boolean }, io: Io): Promise<number> {
  const { settings } = await settingsFor(values, io);
  const { members, shards } = await withDatabase(accessOf(inFleet(settings)), fleetList);
  const time = (date: Date): string => rfc3339(date.getTime() * 1000);
  if (values.json) {
    printJson(io, {
      members: members.map(({ name, release, started, seen }) => ({ name, release, started: time(started), seen: time(seen) })),
      shards: shards.map(({ isExported, ...shard }) => ({ ...shard, exported: isExported })),
    });
    return 0;
  }
  const owned = (name: string): string => String(shards.filter(({ owner }) => owner === name).length);
  const memberRows = members.map(({ name, release, started, seen }) => [name, release, time(started), time(seen), owned(name)]);
  printTable(io, ['MEMBER', 'RELEASE', 'STARTED', 'SEEN', right('SHARDS')], memberRows);
  io.stdout.write('\n');
  const shardRows = shards.map(({ shard, owner, epoch, commits, bytes, sources }) => [
    ...[String(shard), grouped(epoch), grouped(commits), size(bytes)],
    ...[owner ?? 'none', sources.join(', ')],
  ]);
  printTable(io, [right('SHARD'), right('EPOCH'), right('COMMITS'), right('SIZE'), 'OWNER', 'SOURCES'], shardRows);
  return 0;
}

interface Common {
  readonly config: string | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

async function release(
  values: Common & { readonly shard: number | undefined; readonly member: string | undefined },
  io: Io,
): Promise<number> {
  const { shard, member } = values;
  if ((shard === undefined) === (member === undefined)) throw new WaybillError('usage', 'pass either --shard N or --member NAME');
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  return withDatabase(accessOf(inFleet(config)), async (pool) => {
    const shards = shard === undefined ? await shardsOwnedBy(pool, member ?? '') : [shard];
    if (shards.length === 0) throw new WaybillError('usage', `cannot find a shard of the member "${member ?? ''}"; see waybill fleet list`);
    const plan = `Asks for shards ${shards.join(', ')}: other members take them. Their owner takes no shard for a minute`;
    if (!(await confirmed([plan], values, io))) return 1;
    await requested(pool, shards, releaseRequest, systemClock, io.signal);
    if (values.json) printJson(io, { released: shards });
    else io.stdout.write('done\n');
    return 0;
  });
}

async function moveIn(values: Common & { readonly from: string; readonly shard: number }, io: Io): Promise<number> {
  const { from, shard } = values;
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const place = inFleet(config);
  const { database } = place.fleet;
  const plan = `Moves the state in "${from}" to shard ${shard} of ${database}; no daemon can start from "${from}" afterwards`;
  if (!(await confirmed([plan], values, io))) return 1;
  const placeOfSource = (id: string): string => placeOf(config.sources.find((source) => source.id === id) ?? { id, requests: {} });
  const moved = await withDatabase(accessOf(place), (pool) =>
    importState(from, { pool, shard, clock: systemClock, signal: io.signal, version, database, placeOf: placeOfSource }),
  );
  if (values.json) printJson(io, { directory: from, shard, ...moved });
  else io.stdout.write(`moved the state in "${from}" to shard ${shard}: last entry ${grouped(moved.head)}\n`);
  return 0;
}

async function moveOut(values: Common & { readonly shard: number; readonly to: string }, io: Io): Promise<number> {
  const { shard, to } = values;
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const plan = `Moves shard ${shard} of ${inFleet(config).fleet.database} to "${to}"; no member serves the shard afterwards`;
  if (!(await confirmed([plan], values, io))) return 1;
  const moved = await withDatabase(accessOf(config), (pool) => exportShard(to, { pool, shard, clock: systemClock, signal: io.signal }));
  if (values.json) printJson(io, { directory: to, shard, ...moved });
  else io.stdout.write(`moved shard ${shard} to "${to}": last entry ${grouped(moved.head)}; verified\n`);
  return 0;
}
