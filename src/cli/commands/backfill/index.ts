/** `waybill backfill`: history that is added to a source's ledger, and what becomes of it. The daemon reads it; this command asks and watches. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../../clock.ts';
import { queryOf } from '../../../collect/windows.ts';
import { loadConfig } from '../../../config/load.ts';
import type { Config, SourceConfig } from '../../../config/load.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import { backfillsOf, uncoveredOf } from '../../../journal/backfills.ts';
import { openReadOnly } from '../../../journal/state.ts';
import type { BackfillProgress, Window } from '../../../model/ledger.ts';
import type { Meters } from '../../../model/telemetry.ts';
import { backfillText, shorten } from '../../../report/backfills.ts';
import { table } from '../../../report/text-table.ts';
import { rfc3339 } from '../../../report/format-time.ts';
import { createSource } from '../../../source/client.ts';
import { Budget } from '../../../source/limits.ts';
import { operation, actor, operationOptions, operationUsage, agreed } from '../../operation.ts';
import type { OperationValues } from '../../operation.ts';
import { estimate, estimateText, watch } from './watch.ts';
import type { Estimate } from './watch.ts';
import type { Io } from '../../io.ts';
import { settingsFor, stateOptions, stateUsage } from '../../state-access.ts';
import { joinSpans, parseTime } from '../../../settings/period.ts';

export const summary = 'adds history to the ledger of a source';

export const usage = `waybill backfill --source ID --from T [--to T] [--dry-run] [--rate N] [--sinks ID,…] [--no-wait]
waybill backfill list [--source ID] [--all]
waybill backfill pause|resume|cancel [--source ID] [--from T]

Adds a stretch of time to what the ledger of a source covers. What the ledger has already is left out, so nothing is sent twice. The daemon
reads it with the same proof as the present, whenever nothing newer is waiting, and goes on with it after any stop; this command shows how far
it is, and may be ended. Without a running daemon the range is noted, and read when one runs.

  --source ID         the source
  --from T, --to T    a time, a date, a month, 2026-Q3, -7d or -6h; --to is left out for up to what the ledger has
  --dry-run           says windows, requests, hours and bytes, and changes nothing
  --rate N            at most N requests a second for it, within the budget of the source
  --sinks ID,…        only these sinks get its records; default all
  --no-wait           returns once the range is added
${operationUsage}
${stateUsage}

list shows the ranges that are not done (--all: those that are as well). pause and resume stop one and continue it. cancel cuts it off behind
what was collected: that stays in the ledger. Where there is more than one, --from says which.

Examples:
  waybill backfill --source production --from 2026-01-01 --dry-run
  waybill backfill --source production --from 2026-Q1 --to 2026-Q2 --rate 2 --reason 'ticket 4711' --yes
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args: joinSpans(args),
    allowPositionals: true,
    options: {
      ...operationOptions,
      ...stateOptions,
      source: { type: 'string' },
      from: { type: 'string' },
      to: { type: 'string' },
      rate: { type: 'string' },
      sinks: { type: 'string' },
      all: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      'no-wait': { type: 'boolean', default: false },
    },
  });
  const [what, ...others] = positionals;
  if (others.length > 0 || (what !== undefined && !isWord(what)))
    throw new WaybillError(
      'usage',
      `cannot do "backfill ${positionals.join(' ')}": there are backfill, backfill list, pause, resume and cancel`,
    );
  const fitting = optionsOf[what ?? 'add'];
  const useless = Object.entries(values).find(([name, value]) => value !== false && !fitting.includes(name))?.[0];
  if (useless !== undefined)
    throw new WaybillError('usage', `cannot use --${useless} with "backfill${what === undefined ? '' : ` ${what}`}"`);
  if (what === 'list') return list((await settingsFor(values, io)).settings, values, io);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: what === undefined });
  if (what !== undefined) return change(config, what, values, io);
  return add(config, values, io);
}

const one = ['source', 'from', 'yes', 'reason', 'actor', 'json', 'config'];
const optionsOf = {
  add: [...one, 'to', 'rate', 'sinks', 'dry-run', 'no-wait'],
  list: ['source', 'all', 'json', 'config', 'data-dir'],
  pause: one,
  resume: one,
  cancel: one,
};

function isWord(word: string): word is Change | 'list' {
  return word !== 'add' && Object.hasOwn(optionsOf, word);
}

interface AddValues extends OperationValues {
  readonly source?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly rate?: string | undefined;
  readonly sinks?: string | undefined;
  readonly json: boolean;
  readonly 'dry-run': boolean;
  readonly 'no-wait': boolean;
}

async function add(config: Config, values: AddValues, io: Io): Promise<number> {
  const source = configured(config, values.source);
  const rate = rateOf(values.rate);
  const sinks = sinksOf(config, values.sinks);
  const now = systemClock.now() * 1000;
  if (values.from === undefined) throw new WaybillError('usage', 'cannot add history without --from: say where it begins');
  const from = wholeSecond(parseTime(values.from, '--from', now, false), false);
  const to = wholeSecond(values.to === undefined ? now : parseTime(values.to, '--to', now, true), true);
  if (from >= to)
    throw new WaybillError('usage', `cannot add history from "${values.from}" to "${values.to ?? 'now'}": the end is not behind the begin`);

  const { parts, bytesPerRecord } = partsOf(config, source.id, { from, to });
  if (parts.length === 0) {
    if (values.json) io.stdout.write(`${JSON.stringify({ added: [] })}\n`);
    else io.stdout.write(`nothing to add: the ledger of ${source.id} has all of ${spanText({ from, to })}\n`);
    return 0;
  }
  const counts = await count(source, config, parts, io.signal).catch((thrown: unknown) => {
    io.signal.throwIfAborted();
    if (values['dry-run'] || !(thrown instanceof WaybillError)) throw thrown;
    io.stderr.write(`how much it is cannot be told now: ${messageOf(thrown)}\n`);
    return undefined;
  });
  const perSecond = Math.min(rate ?? Infinity, source.requests.perSecond);
  const closeDelay = source.closeDelay * 1000;
  const guess =
    counts &&
    estimate(
      counts.records,
      parts,
      { pageSize: counts.pageSize, perSecond, bytes: bytesPerRecord },
      { settled: now - closeDelay, closeDelay },
    );
  if (values['dry-run']) {
    dryRun(source.id, parts, guess, values.json, io);
    return 0;
  }
  const plan = [
    `Adds to the ledger of ${source.id}: ${parts.map(spanText).join('; ')}`,
    ...(guess ? [`  ${estimateText(guess)}`] : []),
    ...(sinks ? [`  only for ${sinks.join(', ')}`] : []),
  ];
  if (!(await agreed(plan, values, io))) return 1;
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
  if (!daemon) io.stderr.write('no daemon runs: it is read when one does\n');
  if (!daemon || values['no-wait'] || ranges.length === 0) return 0;
  return watch(config, source.id, ranges, io);
}

function dryRun(id: string, parts: readonly Window[], guess: Estimate | undefined, json: boolean, io: Io): void {
  if (json) io.stdout.write(`${JSON.stringify({ source: id, ranges: parts.map(jsonOf), estimate: guess ?? null }, null, 2)}\n`);
  else {
    const lines = [`would add to the ledger of ${id}:`, ...parts.map((part) => `  ${spanText(part)}`)];
    io.stdout.write(
      `${[...lines, guess ? estimateText(guess) : 'the service gives no usable total: how much it is cannot be told'].join('\n')}\n`,
    );
  }
}

/** What the service counts in these parts. Undefined where it gives no usable total. */
async function count(
  settings: SourceConfig,
  config: Config,
  parts: readonly Window[],
  signal: AbortSignal,
): Promise<{ records: number; pageSize: number } | undefined> {
  const budget = new Budget(systemClock, settings.requests.perSecond);
  await using source = createSource(settings, { clock: systemClock, budget, meters: unmetered, ca: config.tls.ca });
  const requested = settings.pageSize === 'auto' ? 1_000 : settings.pageSize;
  let records = 0;
  for (const part of parts) {
    const { total } = await source.page({ query: queryOf(part), page: undefined, pageSize: 1 }, signal);
    if (total === undefined) return undefined;
    records += total;
  }
  return { records, pageSize: requested };
}

function partsOf(config: Config, id: string, span: Window): { parts: Window[]; bytesPerRecord: number | undefined } {
  const db = openReadOnly(config.dataDir);
  try {
    const parts = uncoveredOf(db, id, span);
    if (!parts) throw new WaybillError('usage', `cannot add history to "${id}": its ledger has not begun; is the daemon running?`);
    const stored = db
      .prepare<[], { bytes: number | null; records: number | null }>(
        'SELECT sum(length(body) + length(uids) * 2) AS bytes, sum(n) AS records FROM (SELECT body, uids, n FROM segments WHERE kind & 255 = 1 ORDER BY seq DESC LIMIT 200)',
      )
      .get();
    return { parts, bytesPerRecord: stored?.bytes && stored.records ? stored.bytes / stored.records : undefined };
  } finally {
    db.close();
  }
}

function list(config: { readonly dataDir: string }, values: { source?: string | undefined; all: boolean; json: boolean }, io: Io): number {
  const found = readProgress(config, values.all).filter(({ source }) => values.source === undefined || source === values.source);
  if (values.json)
    io.stdout.write(`${JSON.stringify({ backfills: found.map((each) => ({ source: each.source, ...progressJson(each) })) }, null, 2)}\n`);
  else if (found.length === 0) io.stdout.write('no backfill\n');
  else {
    const columns = ['source', 'from', 'until', 'is', 'how far'].map((head) => ({ head }));
    const rows = found.map((each) => [each.source, rfc3339(each.from), rfc3339(each.to), each.state, backfillText(each)]);
    io.stdout.write(`${table(columns, rows).join('\n')}\n`);
  }
  return 0;
}

type Change = 'pause' | 'resume' | 'cancel';

async function change(
  config: Config,
  what: Change,
  values: OperationValues & { source?: string | undefined; from?: string | undefined; json: boolean },
  io: Io,
): Promise<number> {
  const from = values.from === undefined ? undefined : parseTime(values.from, '--from', systemClock.now() * 1000, false);
  const all = readProgress(config, false).filter(({ source }) => values.source === undefined || source === values.source);
  const found = all.filter((each) => from === undefined || each.from === from);
  const [chosen, second] = found;
  const names = all.map((each) => `${each.source} from ${rfc3339(each.from)}`).join(', ');
  if (!chosen)
    throw new WaybillError(
      'usage',
      `cannot ${what} a backfill: ${all.length === 0 ? 'there is none that is not done' : `there are ${names}`}`,
    );
  if (second)
    throw new WaybillError('usage', `cannot tell which backfill to ${what}: name one with --source and --from; there are ${names}`);
  const message = {
    pause: 'Pauses',
    resume: 'Continues',
    cancel: 'Cuts off, behind what was collected,',
  }[what];
  const plan = [`${message} the backfill of ${chosen.source}, ${spanText(chosen)}: ${backfillText(chosen)}`];
  if (!(await agreed(plan, values, io))) return 1;
  const request = { operation: `backfill ${what}` as const, source: chosen.source, from: rfc3339(chosen.from), ...actor(values, io) };
  const { result } = await operation(config, request, io.signal);
  const cut = result.ends !== undefined && { ends: rfc3339(result.ends), cut: result.ends < chosen.to };
  if (values.json) io.stdout.write(`${JSON.stringify({ source: chosen.source, from: rfc3339(chosen.from), ...cut })}\n`);
  else if (result.ends === undefined) io.stdout.write('done\n');
  else io.stdout.write(`${shorten(chosen, result.ends)}\n`);
  return 0;
}

function readProgress(config: { readonly dataDir: string }, all: boolean): ReturnType<typeof backfillsOf> {
  const db = openReadOnly(config.dataDir);
  try {
    return backfillsOf(db, all);
  } finally {
    db.close();
  }
}

function progressJson(each: BackfillProgress): object {
  const { from, to, closedUntil, state, windows, records, gaps, order } = each;
  const { asked, rate, sinks, expected } = order;
  return {
    ...{ from: rfc3339(from), to: rfc3339(to), closedUntil: rfc3339(closedUntil), state, windows, records, gaps },
    ...{ asked: rfc3339(asked), expected: expected ?? null, rate: rate ?? null, sinks: sinks ?? null },
  };
}

function configured(config: Config, id: string | undefined): SourceConfig {
  const [first, second] = config.sources;
  if (id === undefined && first && !second) return first;
  const names = config.sources.map((source) => source.id).join(', ');
  if (id === undefined) throw new WaybillError('usage', `cannot add history without --source: there are ${names}`);
  const found = config.sources.find((source) => source.id === id);
  if (!found) throw new WaybillError('usage', `cannot find the source "${id}": there are ${names}`);
  return found;
}

function sinksOf(config: Config, text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const known = config.sinks.map(({ id }) => id);
  const sinks = text.split(',').map((each) => each.trim());
  const unknown = sinks.find((each) => !known.includes(each));
  if (unknown !== undefined) throw new WaybillError('usage', `cannot find the sink "${unknown}": there are ${known.join(', ')}`);
  return [...new Set(sinks)];
}

function rateOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const rate = Number(text);
  if (text.trim() === '' || !(rate > 0) || rate > 1_000)
    throw new WaybillError('usage', `cannot use --rate "${text}": not a number of requests a second above 0`);
  return rate;
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

const unmetered: Pick<Meters, 'sourceRequest'> = { sourceRequest: () => undefined };
