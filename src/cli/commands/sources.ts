/** `waybill sources`: the sources that the state knows, also those that are gone from the configuration, and their retirement. */
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/load.ts';
import { WaybillError } from '../../errors.ts';
import { sourcesOf } from '../../journal/backfills.ts';
import type { KnownSource } from '../../journal/backfills.ts';
import { openReadOnly } from '../../journal/state.ts';
import { table } from '../../report/text-table.ts';
import { grouped, rfc3339 } from '../../report/format-time.ts';
import { operation, actor, operationOptions, operationUsage, agreed } from '../operation.ts';
import type { OperationValues } from '../operation.ts';
import type { Io } from '../io.ts';
import { listOnly, settingsFor, stateOptions, stateUsage } from '../state-access.ts';

export const summary = 'lists the sources of the state, and retires those that are gone';

export const usage = `waybill sources list [--json]
waybill sources retire --source ID

list shows every source that the state knows. One that is gone from the configuration is unconfigured, an alarm: its ledger says where it ended.
retire ends the alarm, for one that was meant to go. Its ledger stays; should it come back, it goes on from where it ended.

  --source ID         the source
${operationUsage}
${stateUsage}

Examples:
  waybill sources list
  waybill sources retire --source old-tenant --reason 'tenant closed, ticket 4711' --yes
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { ...operationOptions, ...stateOptions, source: { type: 'string' } },
  });
  const [what = 'list', ...others] = positionals;
  if ((what !== 'list' && what !== 'retire') || others.length > 0)
    throw new WaybillError('usage', `cannot do "sources ${positionals.join(' ')}": there are sources list and sources retire`);
  if (what === 'retire') {
    listOnly('--data-dir', values['data-dir']);
    const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
    return retire(config, readSources(config), values, io);
  }
  const { settings } = await settingsFor(values, io);
  const known = readSources(settings);
  const isConfigured = (id: string): boolean => settings.sources.some((source) => source.id === id);
  if (values.json) {
    const sources = known.map(({ id, state, startsAt, frontier, closedUntil, records }) => ({
      ...{
        id,
        state,
        configured: isConfigured(id),
        startsAt: rfc3339(startsAt),
        frontier: rfc3339(frontier),
        closedUntil: rfc3339(closedUntil),
        records,
      },
    }));
    io.stdout.write(`${JSON.stringify({ sources }, null, 2)}\n`);
    return 0;
  }
  const columns = ['source', 'state', 'configured', 'starts at', 'complete until', 'closed until', 'records'].map((head, i) => ({
    head,
    align: i === 6 ? ('right' as const) : ('left' as const),
  }));
  const rows = known.map(({ id, state, startsAt, frontier, closedUntil, records }) => [
    ...[id, state, isConfigured(id) ? 'yes' : 'no', rfc3339(startsAt), rfc3339(frontier), rfc3339(closedUntil), grouped(records)],
  ]);
  io.stdout.write(known.length === 0 ? 'no source: no ledger has begun\n' : `${table(columns, rows).join('\n')}\n`);
  return 0;
}

async function retire(
  config: Config,
  known: readonly KnownSource[],
  values: OperationValues & { readonly source?: string | undefined; readonly json: boolean },
  io: Io,
): Promise<number> {
  const names = known.map(({ id }) => id).join(', ');
  if (values.source === undefined) throw new WaybillError('usage', `cannot retire without --source: there are ${names}`);
  const found = known.find(({ id }) => id === values.source);
  if (!found) throw new WaybillError('usage', `cannot find the source "${values.source}" in the state: there are ${names}`);
  if (config.sources.some(({ id }) => id === found.id))
    throw new WaybillError('usage', `cannot retire the source "${found.id}": it is configured; take it out of the configuration first`);
  const plan = [`Retires the source ${found.id}, whose ledger ends at ${rfc3339(found.closedUntil)}; the ledger stays`];
  if (!(await agreed(plan, values, io))) return 1;
  await operation(config, { operation: 'sources retire', source: found.id, ...actor(values, io) }, io.signal);
  io.stdout.write(values.json ? `${JSON.stringify({ retired: found.id })}\n` : 'done\n');
  return 0;
}

function readSources({ dataDir }: { readonly dataDir: string }): KnownSource[] {
  const db = openReadOnly(dataDir);
  try {
    return sourcesOf(db);
  } finally {
    db.close();
  }
}
