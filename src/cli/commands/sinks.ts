/** `waybill sinks`: the sinks that the state knows, also those that are gone from the configuration, and what a person can do to one. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/load.ts';
import { joinSpans, parseTime } from '../../settings/period.ts';
import type { StateSettings } from '../../config/state-settings.ts';
import { adoptable, fits, assertResolvable } from '../../daemon/operations/sinks.ts';
import { outcomeCodes } from '../../normalize/outcomes.ts';
import { WaybillError } from '../../errors.ts';
import { sinksOf } from '../../journal/sink-positions.ts';
import type { KnownSink } from '../../journal/sink-positions.ts';
import { openReadOnly } from '../../journal/state.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { printable } from '../../escape.ts';
import { table } from '../../report/text-table.ts';
import { counted, grouped, rfc3339 } from '../../report/format-time.ts';
import { operation, actor, operationOptions, operationUsage, agreed } from '../operation.ts';
import { liveSink, liveSnapshot } from '../daemon-client.ts';
import type { OperationValues } from '../operation.ts';
import type { Io } from '../io.ts';
import { listOnly, settingsFor, stateOptions, stateUsage } from '../state-access.ts';

export const summary = 'lists the sinks of the state; retries, retires, adopts, verifies or tests one';

export const usage = `waybill sinks list [--json]
waybill sinks retry --sink ID
waybill sinks retire --sink ID
waybill sinks adopt --sink ID
waybill sinks reconcile --sink ID --from T
waybill sinks test --sink ID [--as CODE] [--count N]

list shows every sink that the state knows. retry has the running daemon try a waiting or blocked sink at once. One that is gone from the configuration is orphaned: the journal keeps everything for it. retire ends
that, for one that was meant to go; back again it begins at its "from", never before what it had.
adopt is for one that is blocked because its position is not of this state (the state was lost, or an older one restored): this state continues what
it holds, and what it has already may come twice. reconcile is for a state that was restored, and a sink that can be asked: what is dated from T on is
asked for before it is sent, and sent only where it is missing. test sends synthetic events, tagged waybill_test, that are in no journal.

  --sink ID           the sink
  --from T            for reconcile: a time, a date, -7d or -6h
  --as CODE           for test: the outcome, e.g. Decrypt:AccessDenied:TimeEmbargoFailed
  --count N           for test: how many events, 1 to 1000; default 1
${operationUsage}
${stateUsage}

Examples:
  waybill sinks list
  waybill sinks test --sink siem --count 3 --yes
`;

const operations = ['retry', 'retire', 'adopt', 'reconcile', 'test'] as const;

type Values = OperationValues & {
  readonly sink?: string | undefined;
  readonly from?: string | undefined;
  readonly as?: string | undefined;
  readonly count?: string | undefined;
  readonly json: boolean;
};

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args: joinSpans(args),
    allowPositionals: true,
    options: {
      ...operationOptions,
      ...stateOptions,
      ...{ sink: { type: 'string' }, from: { type: 'string' }, as: { type: 'string' }, count: { type: 'string' } },
    },
  });
  const [what = 'list', ...others] = positionals;
  if (what === 'verify') throw new WaybillError('usage', 'cannot do "sinks verify": it was renamed to "sinks reconcile"');
  const chosen = operations.find((each) => each === what);
  if ((what !== 'list' && !chosen) || others.length > 0)
    throw new WaybillError('usage', `cannot do "sinks ${positionals.join(' ')}": there are sinks list, ${operations.join(', ')}`);
  onlyWith(chosen, 'reconcile', '--from', values.from);
  onlyWith(chosen, 'test', '--as', values.as);
  onlyWith(chosen, 'test', '--count', values.count);
  if (!chosen) {
    const { settings } = await settingsFor(values, io);
    const known = readSinks(settings);
    list(settings, known, await liveSnapshot(settings.dataDir), values.json, io);
    return 0;
  }
  listOnly('--data-dir', values['data-dir']);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const known = readSinks(config);
  const names = known.map(({ id }) => id).join(', ');
  if (values.sink === undefined) throw new WaybillError('usage', `cannot ${chosen} without --sink: there are ${names}`);
  const sink = known.find(({ id }) => id === values.sink);
  if (!sink) throw new WaybillError('usage', `cannot find the sink "${values.sink}" in the state: there are ${names}`);
  if (chosen === 'test') return test(config, sink, values, io);
  return order(chosen, config, sink, values, io);
}

function onlyWith(what: string | undefined, requested: string, option: string, given: string | undefined): void {
  if (given !== undefined && what !== requested) throw new WaybillError('usage', `cannot use ${option} without "sinks ${requested}"`);
}

/** @param live  undefined: no daemon runs, so that nothing is being sent */
function list(
  { sinks }: Pick<StateSettings, 'sinks'>,
  known: readonly KnownSink[],
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
      .map(({ id, type, state, destination, acknowledged, lag, deadLetters, since, orders }) => ({
        ...{ id, type, state, configured: isConfigured(id), destination, since: since === 0 ? null : rfc3339(since) },
        ...{ acknowledged, lagRecords: lag, deadLetters, adopt: orders.adopt === true },
        reconcile: orders.reconcile === undefined ? null : rfc3339(orders.reconcile.from),
      }));
    io.stdout.write(`${JSON.stringify({ sinks: listed }, null, 2)}\n`);
    return;
  }
  if (known.length === 0) {
    io.stdout.write('no sink: the daemon has not run yet\n');
    return;
  }
  const columns = ['sink', 'type', 'state', 'configured', 'since', 'entry', 'behind', 'dead letters', 'destination'].map((head, i) => ({
    head,
    align: i >= 5 && i <= 7 ? ('right' as const) : ('left' as const),
  }));
  const rows = known.map(({ id, type, state, destination, acknowledged, lag, deadLetters, since, orders }) => [
    ...[id, type, orders.adopt === true ? `${state}, to be adopted` : state, isConfigured(id) ? 'yes' : 'no'],
    ...[since === 0 ? 'the begin' : rfc3339(since), String(acknowledged), grouped(lag), grouped(deadLetters), destination],
  ]);
  io.stdout.write(`${table(columns, rows).join('\n')}\n`);
}

/** What is written down in the state, and takes effect when the sink is opened or gets its next batch. */
async function order(
  what: 'retry' | 'retire' | 'adopt' | 'reconcile',
  config: Config,
  sink: KnownSink,
  values: Values,
  io: Io,
): Promise<number> {
  const { id } = sink;
  const now = systemClock.now() * 1000;
  if (what === 'retire' && config.sinks.some((each) => each.id === id))
    throw new WaybillError('usage', `cannot retire the sink "${id}": it is configured; take it out of the configuration first`);
  if (what === 'reconcile' && values.from === undefined) throw new WaybillError('usage', 'cannot reconcile without --from');
  const from = values.from === undefined ? 0 : parseTime(values.from, '--from', now, false);
  const configured = config.sinks.find((each) => each.id === id);
  const made = configured && { ...configured, loop: undefined, testMessages: () => [] };
  // What would be refused anyway is refused before anybody is asked.
  if (what === 'reconcile') assertResolvable(sink, made);
  if (what === 'adopt') {
    adoptable(sink, made);
    const live = await liveSink(config.dataDir, id);
    if (live && live.state !== 'blocked') throw fits(id);
  }
  const plan = {
    retry: [`Has the daemon try the sink ${id} at once, before its next attempt is due`],
    retire: [
      `Retires the sink ${id}, which has everything up to entry ${sink.acknowledged}: nothing is kept for it any more`,
      ...(sink.lagRecords === 0
        ? []
        : [`  ${counted(sink.lagRecords, 'record')} behind that ${sink.lagRecords === 1 ? 'is' : 'are'} never sent to it`]),
    ],
    adopt: [
      `Takes this state for the continuation of what the sink ${id} holds (${sink.destination})`,
      `  the ${counted(sink.lagRecords, 'record')} behind entry ${sink.acknowledged} may come twice, and so may what is still to be collected, as far as it has them`,
      ...(await troubleText(config, id)),
    ],
    reconcile: [
      `From now on the sink ${id} is asked for every record dated from ${rfc3339(from)} on before it is sent: it gets what it lacks`,
    ],
  }[what];
  if (!(await agreed(plan, values, io))) return 1;
  const by = actor(values, io);
  await operation(
    config,
    what === 'reconcile'
      ? { operation: 'sinks reconcile', sink: id, from: rfc3339(from), ...by }
      : { operation: `sinks ${what}`, sink: id, ...by },
    io.signal,
  );
  const done = { retry: 'retried', retire: 'retired', adopt: 'adopted', reconcile: 'reconciled' }[what];
  io.stdout.write(values.json ? `${JSON.stringify({ [done]: id })}\n` : 'done\n');
  return 0;
}

async function troubleText(config: Config, id: string): Promise<string[]> {
  const lastError = (await liveSink(config.dataDir, id))?.lastError;
  return lastError === undefined ? [] : [`  it says now: ${printable(lastError)}`];
}

async function test(config: Config, { id }: KnownSink, values: Values, io: Io): Promise<number> {
  const { as } = values;
  if (as !== undefined && !outcomeCodes.includes(as))
    throw new WaybillError('usage', `cannot test as "${as}": there are ${outcomeCodes.join(', ')}`);
  const count = values.count === undefined ? 1 : Number(values.count);
  if (!Number.isInteger(count) || count < 1 || count > 1_000)
    throw new WaybillError('usage', `cannot use --count "${values.count ?? ''}": not a number from 1 to 1000`);
  const plan = [`Sends ${counted(count, 'synthetic event')}, tagged waybill_test, to the sink ${id}`];
  if (!(await agreed(plan, values, io))) return 1;
  const { result } = await operation(
    config,
    { operation: 'sinks test', sink: id, count, ...(as !== undefined && { as }), ...actor(values, io) },
    io.signal,
  );
  const { delivered, rejected: refused } = result.sent ?? { delivered: 0, rejected: [] };
  if (values.json) io.stdout.write(`${JSON.stringify({ sink: id, delivered, refused }, null, 2)}\n`);
  else io.stdout.write(`${counted(delivered, 'event')} taken${refused.length === 0 ? '' : `, ${refused.length} refused`}\n`);
  if (!values.json) for (const { code, message } of refused) io.stderr.write(`refused, ${code}: ${printable(message)}\n`);
  return refused.length === 0 ? 0 : 1;
}

function readSinks({ dataDir }: { readonly dataDir: string }): KnownSink[] {
  const db = openReadOnly(dataDir);
  try {
    return sinksOf(db);
  } finally {
    db.close();
  }
}
