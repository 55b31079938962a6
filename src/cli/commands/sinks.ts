/** `waybill sinks`: the sinks of the state, and the operations on them. */
import { systemClock } from '../../time/clock.ts';
import { loadConfig, type Config } from '../../config/load.ts';
import { parseTime } from '../../settings/period.ts';
import type { StateSettings } from '../../config/state-settings.ts';
import { adoptable, assertAdoptable, assertResolvable } from '../../daemon/operations/sinks.ts';
import { outcomeCodes } from '../../normalize/outcomes.ts';
import { WaybillError } from '../../errors/errors.ts';
import { sinksOf, type KnownSink } from '../../journal/queries/sinks.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { printable } from '../../errors/escape.ts';
import { right } from '../../report/text-table.ts';
import { counted, grouped, rfc3339 } from '../../report/format-time.ts';
import { defineCommand, subcommand } from '../command.ts';
import { liveSink, liveSnapshot } from '../daemon-client.ts';
import { printJson, printTable, type Io } from '../io.ts';
import { byId } from '../not-found.ts';
import { operation, actor, operationOptions, confirmed, type OperationValues } from '../operation.ts';
import { choice, jsonOption, parsed, required, text, withDefault } from '../option.ts';
import { snapshotOfFleet } from '../snapshot.ts';
import { readState, settingsFor, stateOptions, type StateValues } from '../state-access.ts';

const sinkOption = { sink: required(text('ID', 'sink')) };
const changeOptions = { ...sinkOption, ...operationOptions };

export const command = defineCommand({
  name: 'sinks',
  summary: 'lists the sinks of the state; retries, retires, adopts, reconciles or tests one',
  description: 'A sink that is no longer in the configuration is "unconfigured": the journal keeps all records for it until it is retired.',
  subcommands: {
    list: subcommand({ summary: 'lists every sink of the state', options: { ...jsonOption, ...stateOptions }, run: listSinks }),
    retry: subcommand({
      summary: 'retries a retrying or blocked sink at once',
      options: changeOptions,
      run: (values, io) => order('retry', values, io),
    }),
    retire: subcommand({
      summary:
        'stops keeping records for a sink that was removed on purpose; if it returns, it resumes at its "start", never before its position',
      options: changeOptions,
      run: (values, io) => order('retire', values, io),
    }),
    adopt: subcommand({
      summary:
        'unblocks a sink whose position belongs to another state (lost, or restored from an older copy); records may be delivered twice',
      options: changeOptions,
      run: (values, io) => order('adopt', values, io),
    }),
    reconcile: subcommand({
      summary: 'after a restore of an older state: queries the sink for records dated T or later, and sends only the missing ones',
      options: { ...sinkOption, from: required(text('T', 'a time, a date, -7d or -6h')), ...operationOptions },
      run: (values, io) => order('reconcile', values, io, values.from),
    }),
    test: subcommand({
      summary: 'sends synthetic events, tagged waybill_test, that are not in the journal',
      options: {
        ...sinkOption,
        as: choice('CODE', outcomeCodes, 'outcome, such as Decrypt:AccessDenied:TimeEmbargoFailed'),
        count: withDefault(parsed('N', 'number of events, 1 to 1000; default 1', 'a number from 1 to 1000', countOf), '1'),
        ...operationOptions,
      },
      run: test,
    }),
  },
  fallback: 'list',
  examples: ['waybill sinks list', 'waybill sinks test --sink siem --count 3 --yes'],
});

type Change = 'retry' | 'retire' | 'adopt' | 'reconcile';

type Values = OperationValues & { readonly sink: string };

function countOf(given: string): number | undefined {
  const count = Number(given);
  return Number.isInteger(count) && count >= 1 && count <= 1_000 ? count : undefined;
}

async function listSinks(values: StateValues & { readonly json: boolean }, io: Io): Promise<number> {
  const { settings } = await settingsFor(values, io);
  const known = await readState(settings, (db, shard) => sinksOf(db).map((sink) => ({ ...sink, shard })));
  const live = settings.fleet ? await snapshotOfFleet(settings) : await liveSnapshot(settings.dataDir);
  list(settings, known.flat(), live?.stopped ? undefined : live, values.json, io);
  return 0;
}

async function configuredSink(values: Values, io: Io): Promise<{ config: Config; sink: KnownSink }> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  return { config, sink: byId('sink', (await readState(config, sinksOf)).flat(), values.sink) };
}

/** @param live  undefined: no daemon runs */
function list(
  { sinks }: Pick<StateSettings, 'sinks'>,
  known: readonly (KnownSink & { readonly shard: number | undefined })[],
  live: Snapshot | undefined,
  json: boolean,
  io: Io,
): void {
  const isConfigured = (id: string): boolean => sinks.some((sink) => sink.id === id);
  const stateOf = ({ id, state }: KnownSink): string => {
    if (state !== 'active') return state;
    return live ? (live.sinks.find((sink) => sink.id === id)?.state ?? state) : 'stopped';
  };
  if (json) {
    const listed = known
      .map((sink) => ({ ...sink, state: stateOf(sink) }))
      .map(({ id, shard, type, state, destination, acknowledged, lag, lagRecords, deadLetters, since, orders }) => ({
        id,
        shard,
        type,
        state,
        configured: isConfigured(id),
        destination,
        since: since === 0 ? null : rfc3339(since),
        acknowledged,
        lagEntries: lag,
        lagRecords,
        deadLetters,
        adopt: orders.adopt === true,
        reconcile: orders.reconcile === undefined ? null : rfc3339(orders.reconcile.from),
      }));
    printJson(io, { sinks: listed });
  } else if (known.length === 0) io.stdout.write('no sinks: the daemon has not run yet\n');
  else {
    const numbers = [right('ENTRY'), right('LAG'), right('DEAD LETTERS')];
    const rows = known.map(({ id, shard, type, state, destination, acknowledged, lag, deadLetters, since, orders }) => [
      ...[
        shard === undefined ? id : `${id}, shard ${shard}`,
        type,
        orders.adopt === true ? `${state}, adoption pending` : state,
        isConfigured(id) ? 'yes' : 'no',
      ],
      ...[since === 0 ? 'the start' : rfc3339(since), String(acknowledged), grouped(lag), grouped(deadLetters), destination],
    ]);
    printTable(io, ['SINK', 'TYPE', 'STATE', 'CONFIGURED', 'SINCE', ...numbers, 'DESTINATION'], rows);
  }
}

/** Changes that the journal stores, and that take effect when the sink is opened or receives its next batch. */
async function order(verb: Change, values: Values, io: Io, since?: string): Promise<number> {
  const { config, sink } = await configuredSink(values, io);
  const { id } = sink;
  if (verb === 'retire' && config.sinks.some((each) => each.id === id))
    throw new WaybillError('usage', `cannot retire the sink "${id}": it is configured; remove it from the configuration first`);
  const from = since === undefined ? 0 : parseTime(since, '--from', systemClock.now() * 1000, false);
  const configured = config.sinks.find((each) => each.id === id);
  const target = configured && { ...configured, loop: undefined, testMessages: () => [] };
  // Refused before the user is asked to confirm.
  if (verb === 'reconcile') assertResolvable(sink, target);
  if (verb === 'adopt') {
    await adoptable(sink, target);
    const live = await liveSink(config.dataDir, id);
    if (live) assertAdoptable(id, live);
  }
  const plan = {
    // Changes nothing that would need a confirmation.
    retry: undefined,
    retire: [
      `Retires the sink ${id}, which has everything up to entry ${sink.acknowledged}: the journal keeps nothing more for it`,
      ...(sink.lagRecords === 0 ? [] : [`  ${counted(sink.lagRecords, 'record')} after that will not be sent`]),
    ],
    adopt: [
      `Continues the sink ${id} (${sink.destination}) from this state`,
      sink.type === 'archive'
        ? '  after its last entry if this state wrote it; else it gets a signed line that names this state, and the records that it lacks'
        : `  ${counted(sink.lagRecords, 'record')} after entry ${sink.acknowledged}, and records still to be collected, may be delivered twice`,
      ...(await troubleText(config, id)),
    ],
    reconcile: [`Looks up every record dated ${rfc3339(from)} or later in the sink ${id} before sending it; sends only missing records`],
  }[verb];
  if (plan !== undefined && !(await confirmed(plan, values, io))) return 1;
  const by = actor(values, io);
  await operation(
    config,
    verb === 'reconcile'
      ? { operation: 'sinks reconcile', sink: id, from: rfc3339(from), ...by }
      : { operation: `sinks ${verb}`, sink: id, ...by },
    io.signal,
  );
  const done = { retry: 'retried', retire: 'retired', adopt: 'adopted', reconcile: 'reconciled' }[verb];
  io.stdout.write(values.json ? `${JSON.stringify({ [done]: id })}\n` : 'done\n');
  return 0;
}

async function troubleText(config: Config, id: string): Promise<string[]> {
  const lastError = (await liveSink(config.dataDir, id))?.lastError;
  return lastError === undefined ? [] : [`  its last error: ${printable(lastError)}`];
}

async function test(values: Values & { readonly as: string | undefined; readonly count: number }, io: Io): Promise<number> {
  const { as, count } = values;
  const { config, sink } = await configuredSink(values, io);
  const { id } = sink;
  io.stderr.write(`Sends ${counted(count, 'synthetic event')}, tagged waybill_test, to the sink ${id}\n`);
  const { result } = await operation(
    config,
    { operation: 'sinks test', sink: id, count, ...(as !== undefined && { as }), ...actor(values, io) },
    io.signal,
  );
  const { delivered, rejected: refused } = result.sent ?? { delivered: 0, rejected: [] };
  if (values.json) printJson(io, { sink: id, delivered, refused });
  else io.stdout.write(`${counted(delivered, 'event')} delivered${refused.length === 0 ? '' : `, ${refused.length} rejected`}\n`);
  if (!values.json) for (const { code, message } of refused) io.stderr.write(`rejected, ${code}: ${printable(message)}\n`);
  return refused.length === 0 ? 0 : 1;
}
