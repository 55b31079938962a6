/** `waybill gaps`: lists the windows that are not proven, retries them, or accepts them. */
import { hash } from 'node:crypto';
import { loadConfig, type Config } from '../../config/load.ts';
import type { StateSettings } from '../../config/state-settings.ts';
import { parseInstant } from '../../settings/units.ts';
import { WaybillError } from '../../errors/errors.ts';
import { gapsOf, type GapLists, type ListedWindow } from '../../journal/queries/gaps.ts';
import { storedSources } from '../../journal/queries/stored.ts';
import { counted } from '../../report/format-time.ts';
import { adminOptions, adminServer } from '../admin-client.ts';
import { defineCommand, subcommand } from '../command.ts';
import { printJson, printTable, readInput, type Io } from '../io.ts';
import { assertKnownSource } from '../not-found.ts';
import { operation, actor, operationOptions, confirmed, type OperationValues } from '../operation.ts';
import { jsonOption, required, text, toggle, type ValuesOf } from '../option.ts';
import { settingsFor, statesOf, stateOptions, type StatePlace } from '../state-access.ts';

const source = { source: text('ID', 'only this source') };
const listOptions = { ...source, ...jsonOption, ...stateOptions, ...adminOptions };
const windowOptions = { ...source, all: toggle('every gap and every window in doubt') };
const windows = { name: 'WINDOW…', help: 'start of a window, as list shows it' };

export const command = defineCommand({
  name: 'gaps',
  summary: 'lists the windows that could not be proven; retries or accepts them',
  description: `A gap is a window that is not proven. Waybill delivers the received records anyway, and retries the window at the time that "list" shows.

Accept a gap that can never be proven: "complete until" then moves past it. The ledger keeps the reason permanently, and "waybill ledger" still
exits with 3. When a source is suspended because records are missing, accepting one window also accepts all others that shrank in the same event.`,
  subcommands: {
    list: subcommand({
      summary: 'shows gaps, accepted gaps, and windows that a later count put in doubt',
      options: listOptions,
      run: list,
    }),
    retry: subcommand({
      summary: 'retries windows at once',
      options: { ...windowOptions, ...operationOptions },
      positionals: windows,
      run: async (values, io, given) => {
        const { config, gaps } = await choose('retry', values, io, given);
        return change('retry', config, gaps, values, undefined, io);
      },
    }),
    accept: subcommand({
      summary: 'accepts gaps permanently',
      options: {
        ...windowOptions,
        ...operationOptions,
        reason: required(operationOptions.reason),
        evidence: text('FILE', 'file that documents the reason; the ledger keeps its SHA-256'),
      },
      positionals: windows,
      run: async (values, io, given) => {
        if (values.reason.trim() === '') throw new WaybillError('usage', 'cannot accept a gap: --reason is empty');
        const { config, gaps } = await choose('accept', values, io, given);
        const evidence = values.evidence === undefined ? undefined : hash('sha256', readInput(values.evidence, '--evidence'));
        return change('accept', config, gaps, values, evidence, io);
      },
    }),
  },
  fallback: 'list',
  examples: [
    'waybill gaps list',
    "waybill gaps accept 2026-08-14T02:00:00Z --source production --reason 'service outage, ticket 4711' --evidence outage.pdf --yes",
  ],
});

type WindowValues = ValuesOf<typeof windowOptions> & Pick<OperationValues, 'config'>;

async function choose(
  verb: 'retry' | 'accept',
  { config: file, source: id, all }: WindowValues,
  io: Io,
  given: readonly string[],
): Promise<{ config: Config; gaps: ListedWindow[] }> {
  const { config } = await loadConfig(file, io.env, { requireSecrets: false });
  return { config, gaps: chosen(verb, await localGaps(config, id), given, all) };
}

async function change(
  verb: 'retry' | 'accept',
  config: Config,
  gaps: readonly ListedWindow[],
  values: OperationValues,
  evidence: string | undefined,
  io: Io,
): Promise<number> {
  const names = gaps.map(
    ({ source: id, from, to, reason, together }) =>
      `  ${id}, ${from} to ${to} (${reason ?? 'gap'}${together ? ', shrank in the same event' : ''})`,
  );
  const plan = [`${verb === 'retry' ? 'Retries' : 'Accepts permanently'} ${counted(gaps.length, 'window')}:`, ...names];
  if (!(await confirmed(plan, values, io))) return 1;
  const by = actor(values, io);
  for (const { source: id, from } of gaps) {
    const request = { source: id, from, ...by };
    await operation(
      config,
      verb === 'retry'
        ? { operation: 'gaps retry', ...request }
        : { operation: 'gaps accept', ...request, evidence, reason: values.reason ?? '' },
      io.signal,
    );
  }
  const done = gaps.map(({ source: id, from, to }) => ({ source: id, from, to }));
  if (values.json) printJson(io, { [verb === 'retry' ? 'retried' : 'accepted']: done });
  else io.stdout.write('done\n');
  return 0;
}

/** The gaps and windows in doubt that the arguments select. */
function chosen(verb: string, { gaps, inDoubt, accepted }: GapLists, names: readonly string[], all: boolean): ListedWindow[] {
  const open = [...gaps, ...inDoubt];
  if (all && names.length > 0) throw new WaybillError('usage', 'cannot combine --all with windows');
  if (all) {
    if (open.length === 0) throw new WaybillError('usage', `cannot ${verb}: there are no open gaps`);
    return open;
  }
  if (names.length === 0) throw new WaybillError('usage', `cannot ${verb}: no window given; pass its start time or --all`);
  const named = names.map((name) => {
    const at = parseInstant(name);
    if (at === undefined)
      throw new WaybillError('usage', `cannot read the window "${name}": not a start time such as 2026-08-14T02:00:00Z`);
    const found = [...open, ...accepted].filter(({ from }) => parseInstant(from) === at);
    const [gap, second] = found;
    if (!gap) throw new WaybillError('usage', `cannot find a gap that starts at ${name}; see waybill gaps list`);
    if (second)
      throw new WaybillError(
        'usage',
        `cannot select the window that starts at ${name}: several sources have one; pass --source ${found.map((each) => each.source).join('|')}`,
      );
    if (accepted.includes(gap)) throw new WaybillError('usage', `cannot ${verb} the window that starts at ${name}: it is already accepted`);
    return gap;
  });
  if (verb !== 'accept') return named;
  const sources = new Set(named.filter(({ together }) => together).map((gap) => gap.source));
  return open.filter((gap) => named.includes(gap) || (gap.together && sources.has(gap.source)));
}

async function list(values: ValuesOf<typeof listOptions>, io: Io): Promise<number> {
  const { source: id, json } = values;
  const server = adminServer(values, io.env);
  const lists = server
    ? await server.get<GapLists>('/gaps', { gaps: 'objects', inDoubt: 'objects', accepted: 'objects' }, { source: id })
    : await localGaps((await settingsFor(values, io)).settings, id);
  const states = { gap: lists.gaps, 'in doubt': lists.inDoubt, accepted: lists.accepted };
  const rows = Object.entries(states).flatMap(([state, windows]) =>
    windows.map((each) => [each.source, each.from, each.to, state, each.nextTry ?? '-', reasonText(each)]),
  );
  if (json) printJson(io, lists);
  else if (rows.length === 0) io.stdout.write('no gaps\n');
  else {
    printTable(io, ['SOURCE', 'FROM', 'TO', 'STATE', 'NEXT RETRY', 'REASON'], rows);
  }
  return 0;
}

async function localGaps(settings: StatePlace & Pick<StateSettings, 'sources'>, id: string | undefined): Promise<GapLists> {
  using opened = await statesOf(settings);
  const dbs = opened.states.map(({ db }) => db);
  assertKnownSource(id, settings, dbs.flatMap(storedSources));
  return gapsOf(dbs, id);
}

/** The code first, as docs/operations.md lists it; then the message, or both counts. */
function reasonText({ reason, message, total, received }: ListedWindow): string {
  const numbers = `received ${received}, the service counted ${total ?? 'nothing'}`;
  return `${reason ?? 'gap'}: ${message === null || message === '' ? numbers : message}`;
}
