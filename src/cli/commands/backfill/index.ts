/** `waybill backfill`: adds history to the ledger of a source. The daemon reads it; this command shows its progress. */
import { systemClock } from '../../../time/clock.ts';
import { queryOf } from '../../../collect/windows.ts';
import { loadConfig } from '../../../config/load.ts';
import { openSource } from '../../../daemon/open-source.ts';
import type { Config, SourceConfig } from '../../../config/load.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { backfillsOf, uncoveredOf } from '../../../journal/queries/backfills.ts';
import { bytesPerRecord } from '../../../journal/queries/stored.ts';
import type { BackfillProgress, Window } from '../../../model/ledger.ts';
import { backfillText, shorten } from '../../../report/backfills.ts';
import { rfc3339 } from '../../../report/format-time.ts';
import { defineCommand, subcommand } from '../../command.ts';
import { byId } from '../../not-found.ts';
import { operation, actor, operationOptions, confirmed } from '../../operation.ts';
import { estimate, estimateText, watch, type Estimate } from './watch.ts';
import { printJson, printTable, type Io } from '../../io.ts';
import { jsonOption, parsed, text, toggle, type ValuesOf } from '../../option.ts';
import { readState, settingsFor, stateOptions, type StatePlace } from '../../state-access.ts';
import { assertForward, parseTime } from '../../../settings/period.ts';

const sourceOption = { source: text('ID', 'source') };
const changeOptions = {
  ...sourceOption,
  from: text('T', 'start: a time, a date, a month, 2026-Q3, -7d or -6h'),
  ...operationOptions,
};

const addOptions = {
  ...changeOptions,
  to: text('T', 'end; default where the ledger starts'),
  rate: parsed(
    'N',
    'at most N requests a second, within the limit of the source',
    'a number of requests a second, above 0, at most 1000',
    rateOf,
  ),
  sinks: text('ID,…', 'only these sinks receive the records; default all'),
  'dry-run': toggle('print the estimated windows, requests, hours and bytes; change nothing'),
  'no-wait': toggle('return as soon as the period is added'),
};

export const command = defineCommand({
  name: 'backfill',
  summary: 'adds history to the ledger of a source',
  description: `Adds a period to the ledger of a source, without what the ledger already covers: nothing is delivered twice. The daemon reads the period with
the same proof as new records, whenever no newer record waits, and resumes after a restart. The command shows the progress; ending it does not
end the backfill. Without a running daemon, the command stores the period, and the next daemon reads it.

pause, resume and cancel act on the only unfinished period; pass --source and --from when there are several.`,
  options: addOptions,
  run: add,
  subcommands: {
    list: subcommand({
      summary: 'lists unfinished periods',
      options: { ...sourceOption, all: toggle('include finished periods'), ...jsonOption, ...stateOptions },
      run: async (values, io) => list((await settingsFor(values, io)).settings, values, io),
    }),
    pause: subcommand({ summary: 'pauses a period', options: changeOptions, run: (values, io) => change('pause', values, io) }),
    resume: subcommand({ summary: 'resumes a paused period', options: changeOptions, run: (values, io) => change('resume', values, io) }),
    cancel: subcommand({
      summary: 'ends a period; what was collected stays in the ledger',
      options: changeOptions,
      run: (values, io) => change('cancel', values, io),
    }),
  },
  examples: [
    'waybill backfill --source production --from 2026-01-01 --dry-run',
    "waybill backfill --source production --from 2026-Q1 --to 2026-Q2 --rate 2 --reason 'ticket 4711' --yes",
  ],
});

async function add(values: ValuesOf<typeof addOptions>, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env);
  const source = configured(config, values.source);
  const { rate } = values;
  const sinks = sinksOf(config, values.sinks);
  const now = systemClock.now() * 1000;
  if (values.from === undefined) throw new WaybillError('usage', 'missing --from: the start of the period');
  const from = wholeSecond(parseTime(values.from, '--from', now, false), false);
  const to = wholeSecond(values.to === undefined ? now : parseTime(values.to, '--to', now, true), true);
  assertForward('add history', from, to, values);

  const { parts, bytesPerRecord } = await partsOf(config, source.id, { from, to });
  if (parts.length === 0) {
    if (values.json) io.stdout.write(`${JSON.stringify({ added: [] })}\n`);
    else io.stdout.write(`nothing to add: the ledger of ${source.id} covers ${spanText({ from, to })}\n`);
    return 0;
  }
  const records = await count(source, config, parts, io.signal).catch((thrown: unknown) => {
    io.signal.throwIfAborted();
    if (values['dry-run'] || !(thrown instanceof WaybillError)) throw thrown;
    io.stderr.write(`cannot estimate the size: ${messageOf(thrown)}\n`);
    return undefined;
  });
  const perSecond = Math.min(rate ?? Infinity, source.requests.perSecond);
  const closeDelay = source.closeDelay * 1000;
  const service = { pageSize: source.pageSize === 'auto' ? 1_000 : source.pageSize, perSecond, bytes: bytesPerRecord };
  const guess = records === undefined ? undefined : estimate(records, parts, service, { settled: now - closeDelay, closeDelay });
  if (values['dry-run']) {
    dryRun(source.id, parts, guess, values.json, io);
    return 0;
  }
  const plan = [
    `Adds to the ledger of ${source.id}: ${parts.map(spanText).join('; ')}`,
    ...(guess ? [`  ${estimateText(guess)}`] : []),
    ...(sinks ? [`  only for ${sinks.join(', ')}`] : []),
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  const request = {
    operation: 'backfill',
    source: source.id,
    from: rfc3339(from),
    to: rfc3339(to),
    rate,
    sinks,
    expected: guess?.records,
    ...actor(values, io),
  } as const;
  const { result, daemon } = await operation(config, request, io.signal);
  const ranges = result.added ?? [];
  if (values.json) io.stdout.write(`${JSON.stringify({ added: ranges.map(jsonOf) })}\n`);
  if (!daemon) io.stderr.write('no daemon runs; the next daemon reads the period\n');
  // Another process reads it: waybill status shows its progress.
  if (config.fleet || !daemon || values['no-wait'] || ranges.length === 0) return 0;
  return watch(config, source.id, ranges, io);
}

function dryRun(id: string, parts: readonly Window[], guess: Estimate | undefined, json: boolean, io: Io): void {
  if (json) printJson(io, { source: id, ranges: parts.map(jsonOf), estimate: guess ?? null });
  else {
    const size = guess ? estimateText(guess) : 'cannot estimate the size: the service returns no usable total';
    const lines = [`would add to the ledger of ${id}:`, ...parts.map((part) => `  ${spanText(part)}`), size];
    io.stdout.write(`${lines.join('\n')}\n`);
  }
}

/** The number of records that the service counts; undefined when it returns no usable total. */
async function count(settings: SourceConfig, config: Config, parts: readonly Window[], signal: AbortSignal): Promise<number | undefined> {
  await using source = openSource(settings, config, { clock: systemClock });
  let records = 0;
  for (const part of parts) {
    const { total } = await source.page({ query: queryOf(part), page: undefined, pageSize: 1 }, signal);
    if (total === undefined) return undefined;
    records += total;
  }
  return records;
}

async function partsOf(config: Config, id: string, span: Window): Promise<{ parts: Window[]; bytesPerRecord: number | undefined }> {
  const found = await readState(config, (db) => ({ parts: uncoveredOf(db, id, span), bytesPerRecord: bytesPerRecord(db) }));
  for (const { parts, ...others } of found) if (parts) return { parts, ...others };
  throw new WaybillError('usage', `cannot add history to "${id}": its ledger has not started; check that the daemon runs`);
}

async function list(place: StatePlace, values: { source?: string | undefined; all: boolean; json: boolean }, io: Io): Promise<number> {
  const found = (await readState(place, (db) => backfillsOf(db, values.all)))
    .flat()
    .filter(({ source }) => values.source === undefined || source === values.source);
  if (values.json) printJson(io, { backfills: found.map((each) => ({ source: each.source, ...progressJson(each) })) });
  else if (found.length === 0) io.stdout.write('no backfills\n');
  else {
    const rows = found.map((each) => [each.source, rfc3339(each.from), rfc3339(each.to), each.state, backfillText(each)]);
    printTable(io, ['SOURCE', 'FROM', 'TO', 'STATE', 'PROGRESS'], rows);
  }
  return 0;
}

type Change = 'pause' | 'resume' | 'cancel';

async function change(verb: Change, values: ValuesOf<typeof changeOptions>, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const from = values.from === undefined ? undefined : parseTime(values.from, '--from', systemClock.now() * 1000, false);
  const unfinished = (await readState(config, (db) => backfillsOf(db, false))).flat();
  const all = unfinished.filter(({ source }) => values.source === undefined || source === values.source);
  const found = all.filter((each) => from === undefined || each.from === from);
  const [chosen, second] = found;
  const names = all.map((each) => `${each.source} from ${rfc3339(each.from)}`).join(', ');
  if (!chosen)
    throw new WaybillError('usage', `cannot ${verb} a backfill: ${all.length === 0 ? 'none is unfinished' : `unfinished are ${names}`}`);
  if (second)
    throw new WaybillError('usage', `cannot ${verb} a backfill: several are unfinished; pass --source and --from of one: ${names}`);
  const message = { pause: 'Pauses', resume: 'Resumes', cancel: 'Keeps the collected part, and ends the rest of' }[verb];
  const plan = [`${message} the backfill of ${chosen.source}, ${spanText(chosen)}: ${backfillText(chosen)}`];
  if (!(await confirmed(plan, values, io))) return 1;
  const request = { operation: `backfill ${verb}` as const, source: chosen.source, from: rfc3339(chosen.from), ...actor(values, io) };
  const { result } = await operation(config, request, io.signal);
  const cut = result.ends !== undefined && { ends: rfc3339(result.ends), cut: result.ends < chosen.to };
  if (values.json) io.stdout.write(`${JSON.stringify({ source: chosen.source, from: rfc3339(chosen.from), ...cut })}\n`);
  else if (result.ends === undefined) io.stdout.write('done\n');
  else io.stdout.write(`${shorten(chosen, result.ends)}\n`);
  return 0;
}

function progressJson(each: BackfillProgress): object {
  const { from, to, closedUntil, state, windows, records, gaps, order } = each;
  const { asked, rate, sinks, expected } = order;
  return {
    from: rfc3339(from),
    to: rfc3339(to),
    readUntil: rfc3339(closedUntil),
    state,
    windows,
    records,
    gaps,
    asked: rfc3339(asked),
    expected: expected ?? null,
    rate: rate ?? null,
    sinks: sinks ?? null,
  };
}

function configured(config: Config, id: string | undefined): SourceConfig {
  const [first, second] = config.sources;
  if (id !== undefined) return byId('source', config.sources, id);
  if (first && !second) return first;
  throw new WaybillError('usage', `missing --source: one of ${config.sources.map((source) => source.id).join(', ')}`);
}

function sinksOf(config: Config, given: string | undefined): string[] | undefined {
  if (given === undefined) return undefined;
  return [...new Set(given.split(',').map((each) => byId('sink', config.sinks, each.trim()).id))];
}

function rateOf(given: string): number | undefined {
  const rate = Number(given);
  return given.trim() !== '' && rate > 0 && rate <= 1_000 ? rate : undefined;
}

function wholeSecond(at: number, up: boolean): number {
  return (up ? Math.ceil(at / 1e6) : Math.floor(at / 1e6)) * 1e6;
}

function spanText({ from, to }: Window): string {
  return `${rfc3339(from)} to ${rfc3339(to)}`;
}

function jsonOf({ from, to }: Window): { from: string; to: string } {
  return { from: rfc3339(from), to: rfc3339(to) };
}
