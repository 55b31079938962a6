/** `waybill sources`: the sources of the state, an attempt at once, the retirement of one, and its move to another service. */
import { loadConfig } from '../../config/load.ts';
import { destinationOf } from '../../source/destination.ts';
import { WaybillError } from '../../errors/errors.ts';
import { sourcesOf, storedSources } from '../../journal/queries/stored.ts';
import { completeUntil } from '../../model/ledger.ts';
import { right } from '../../report/text-table.ts';
import { counted, grouped, rfc3339 } from '../../report/format-time.ts';
import { defineCommand, subcommand } from '../command.ts';
import { printJson, printTable, type Io } from '../io.ts';
import { byId } from '../not-found.ts';
import { operation, actor, operationOptions, confirmed, type OperationValues } from '../operation.ts';
import { jsonOption, required, text } from '../option.ts';
import { readState, settingsFor, stateOptions, type StateValues } from '../state-access.ts';

export const command = defineCommand({
  name: 'sources',
  summary: 'lists the sources of the state; retries, retires or moves one',
  description: `A source that is no longer in the configuration is "unconfigured", which raises an alert. Retire a source that was removed on purpose: its
ledger stays, and continues where it ended if the source returns. A source whose path or tenant has changed is suspended until it is moved: it
keeps its ledger and its uids, and every proven window is counted once more.`,
  subcommands: {
    list: subcommand({ summary: 'lists every source of the state', options: { ...jsonOption, ...stateOptions }, run: list }),
    retry: subcommand({
      summary: 'asks the service of a failing or suspended source at once, with a new token',
      options: { source: required(text('ID', 'source')), ...operationOptions },
      run: retry,
    }),
    retire: subcommand({
      summary: 'ends the alert for a source that was removed from the configuration',
      options: { source: required(text('ID', 'source')), ...operationOptions },
      run: retire,
    }),
    move: subcommand({
      summary: 'continues a suspended source with the path and tenant of the configuration',
      options: { source: required(text('ID', 'source')), ...operationOptions, reason: required(operationOptions.reason) },
      run: move,
    }),
  },
  fallback: 'list',
  examples: [
    'waybill sources retry --source production',
    "waybill sources retire --source old-tenant --reason 'tenant closed, ticket 4711' --yes",
    "waybill sources move --source production --reason 'the service moved to /v3/api' --yes",
  ],
});

async function list(values: StateValues & { readonly json: boolean }, io: Io): Promise<number> {
  const { settings } = await settingsFor(values, io);
  const known = (await readState(settings, sourcesOf)).flat();
  const isConfigured = (id: string): boolean => settings.sources.some((source) => source.id === id);
  if (values.json) {
    const sources = known.map(({ id, state, startsAt, closedUntil, records, ...times }) => {
      const until = completeUntil(times);
      const [complete, read] = [until === undefined ? null : rfc3339(until), rfc3339(closedUntil)];
      return { id, state, configured: isConfigured(id), startsAt: rfc3339(startsAt), completeUntil: complete, readUntil: read, records };
    });
    printJson(io, { sources });
  } else if (known.length === 0) io.stdout.write('no sources: no ledger has started\n');
  else {
    const rows = known.map(({ id, state, startsAt, closedUntil, records, ...times }) => {
      const until = completeUntil(times);
      const complete = until === undefined ? 'not yet' : rfc3339(until);
      return [id, state, isConfigured(id) ? 'yes' : 'no', rfc3339(startsAt), complete, rfc3339(closedUntil), grouped(records)];
    });
    printTable(io, ['SOURCE', 'STATE', 'CONFIGURED', 'STARTS AT', 'COMPLETE UNTIL', 'READ UNTIL', right('RECORDS')], rows);
  }
  return 0;
}

async function retry(values: OperationValues & { readonly source: string }, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const { id } = byId('source', config.sources, values.source);
  await operation(config, { operation: 'sources retry', source: id, ...actor(values, io) }, io.signal);
  io.stdout.write(values.json ? `${JSON.stringify({ retried: id })}\n` : 'done\n');
  return 0;
}

async function retire(values: OperationValues & { readonly source: string }, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const found = byId('source', (await readState(config, sourcesOf)).flat(), values.source);
  if (config.sources.some(({ id }) => id === found.id))
    throw new WaybillError('usage', `cannot retire the source "${found.id}": it is configured; remove it from the configuration first`);
  const plan = [`Retires the source ${found.id}; its ledger ends at ${rfc3339(found.closedUntil)} and is kept`];
  if (!(await confirmed(plan, values, io))) return 1;
  await operation(config, { operation: 'sources retire', source: found.id, ...actor(values, io) }, io.signal);
  io.stdout.write(values.json ? `${JSON.stringify({ retired: found.id })}\n` : 'done\n');
  return 0;
}

async function move(values: OperationValues & { readonly source: string; readonly reason: string }, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const settings = byId('source', config.sources, values.source);
  const { id } = settings;
  const { destination: before } = byId('source', (await readState(config, storedSources)).flat(), id);
  const destination = destinationOf(settings);
  const plan = [
    `Moves the source ${id} from "${before ?? 'unknown'}" to "${destination}"`,
    '  it keeps its ledger and its uids; every proven window is in doubt until it was counted once more at the new address',
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  const request = { operation: 'sources move' as const, source: id, destination, ...actor(values, io), reason: values.reason };
  const { windows = 0 } = (await operation(config, request, io.signal)).result.moved ?? {};
  io.stdout.write(values.json ? `${JSON.stringify({ moved: id, windows })}\n` : `done; counting ${counted(windows, 'window')} once more\n`);
  return 0;
}
