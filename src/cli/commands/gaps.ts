/** `waybill gaps`: the windows that could not be proven, and what a person can do about one: have it tried again now, or accept it. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/load.ts';
import { parseInstant } from '../../settings/values.ts';
import { WaybillError, messageOf } from '../../errors.ts';
import { gapsOf } from '../../journal/queries/gaps.ts';
import type { Gap } from '../../journal/queries/gaps.ts';
import { openReadOnly } from '../../journal/state.ts';
import { jsonText } from '../../report/chunks.ts';
import { table } from '../../report/text-table.ts';
import { counted } from '../../report/format-time.ts';
import { operation, actor, operationOptions, operationUsage, agreed } from '../operation.ts';
import type { OperationValues } from '../operation.ts';
import { adminOptions, adminServer, adminUsage } from '../daemon-client.ts';
import type { Io } from '../io.ts';
import { listOnly, settingsFor, stateOptions, stateUsage } from '../state-access.ts';

export const summary = 'lists the windows that could not be proven; tries them again, or accepts them';

export const usage = `waybill gaps list [--source ID] [--json]
waybill gaps retry [WINDOW…|--all] [--source ID]
waybill gaps accept [WINDOW…|--all] [--source ID] --reason TEXT [--evidence FILE]

list shows the windows that are not proven: gaps, gaps that a person accepted, and windows that a later count put in doubt. What was seen of
them is delivered all the same; each is tried again at the time shown. retry has one tried again at once. accept says, for a window that can
never be proven, that a person knows and why: the frontier moves on, the ledger says so for ever, and "waybill ledger" still exits 3. Of a source
on hold because records are missing, all windows that shrank by the same event are accepted with any one of them.

  WINDOW              its begin, as list shows it
  --all               every window that is open
  --source ID         only this source
  --evidence FILE     a file that shows why it is accepted; its SHA-256 is kept
${operationUsage}
${stateUsage}
${adminUsage}

Examples:
  waybill gaps list
  waybill gaps accept 2026-08-14T02:00:00Z --source production --reason 'service outage, ticket 4711' --evidence outage.pdf --yes
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      ...{ ...operationOptions, ...stateOptions, ...adminOptions },
      ...{ source: { type: 'string' }, all: { type: 'boolean', default: false }, evidence: { type: 'string' } },
    },
  });
  const [what = 'list', ...windows] = positionals;
  if (what !== 'list' && what !== 'retry' && what !== 'accept')
    throw new WaybillError('usage', `cannot do "gaps ${positionals.join(' ')}": there are gaps list, gaps retry and gaps accept`);
  if (what === 'list') {
    if (windows.length > 0 || values.all)
      throw new WaybillError('usage', 'cannot name windows with "gaps list": it lists all that are not proven');
    const server = adminServer(values, io.env);
    const { source } = values;
    list(
      server
        ? (await server.get<{ readonly gaps: readonly Gap[] }>('/gaps', { gaps: 'objects' }, { source })).gaps
        : readGaps((await settingsFor(values, io)).settings, source),
      values.json,
      io,
    );
    return 0;
  }
  listOnly('--data-dir', values['data-dir']);
  for (const option of ['admin', 'admin-ca'] as const) listOnly(`--${option}`, values[option]);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const gaps = readGaps(config, values.source);
  return change(what, config, chosen(what, gaps, windows, values.all), values, io);
}

async function change(
  what: 'retry' | 'accept',
  config: Config,
  gaps: readonly Gap[],
  values: OperationValues & { readonly evidence?: string | undefined; readonly json: boolean },
  io: Io,
): Promise<number> {
  const { reason } = values;
  if (what === 'accept' && (reason === undefined || reason.trim() === ''))
    throw new WaybillError('usage', 'cannot accept a gap without --reason: the reason is kept in the ledger');
  if (what === 'retry' && values.evidence !== undefined) throw new WaybillError('usage', 'cannot use --evidence with "gaps retry"');
  const evidence = values.evidence === undefined ? undefined : digestOf(values.evidence);
  const names = gaps.map(
    ({ source, from, to, reason, together }) =>
      `  ${source}, ${from} to ${to} (${reason ?? 'gap'}${together ? ', shrank by the same event' : ''})`,
  );
  const plan = [`${what === 'retry' ? 'Tries again at once' : 'Accepts for ever'} ${counted(gaps.length, 'window')}:`, ...names];
  if (!(await agreed(plan, values, io))) return 1;
  const by = actor(values, io);
  for (const { source, from } of gaps) {
    const asked = { source, from, ...by };
    await operation(
      config,
      what === 'retry' ? { operation: 'gaps retry', ...asked } : { operation: 'gaps accept', ...asked, evidence, reason: reason ?? '' },
      io.signal,
    );
  }
  const done = gaps.map(({ source, from, to }) => ({ source, from, to }));
  if (values.json) io.stdout.write(jsonText({ [what === 'retry' ? 'retried' : 'accepted']: done }));
  else io.stdout.write('done\n');
  return 0;
}

/** The windows that are meant, each of them open. */
function chosen(what: string, gaps: readonly Gap[], windows: readonly string[], all: boolean): Gap[] {
  const open = gaps.filter(({ state }) => state !== 'accepted');
  if (all && windows.length > 0) throw new WaybillError('usage', 'cannot take both --all and windows by name');
  if (all) {
    if (open.length === 0) throw new WaybillError('usage', `cannot ${what} anything: no gap is open`);
    return open;
  }
  if (windows.length === 0)
    throw new WaybillError('usage', `cannot ${what} nothing: name a window by its begin, as "waybill gaps list" shows it, or --all`);
  const named = windows.map((text) => {
    const at = parseInstant(text);
    if (at === undefined)
      throw new WaybillError('usage', `cannot read the window "${text}": not the time of its begin, such as 2026-08-14T02:00:00Z`);
    const found = gaps.filter(({ from }) => parseInstant(from) === at);
    const [gap, second] = found;
    if (!gap) throw new WaybillError('usage', `cannot find a gap that begins at ${text}; "waybill gaps list" has them`);
    if (second)
      throw new WaybillError(
        'usage',
        `cannot tell whose window begins at ${text}: --source says which of ${found.map(({ source }) => source).join(', ')}`,
      );
    if (gap.state === 'accepted')
      throw new WaybillError('usage', `cannot ${what} the window that begins at ${text}: it is accepted already`);
    return gap;
  });
  if (what !== 'accept') return named;
  const sources = new Set(named.filter(({ together }) => together).map(({ source }) => source));
  return open.filter((gap) => named.includes(gap) || (gap.together && sources.has(gap.source)));
}

function readGaps({ dataDir }: { readonly dataDir: string }, source: string | undefined): Gap[] {
  const db = openReadOnly(dataDir);
  try {
    return gapsOf(db, source);
  } finally {
    db.close();
  }
}

function list(gaps: readonly Gap[], json: boolean, io: Io): void {
  if (json) io.stdout.write(jsonText({ gaps }));
  else if (gaps.length === 0) io.stdout.write('no gap\n');
  else {
    const columns = ['source', 'from', 'to', 'state', 'next try', 'reason'].map((head) => ({ head }));
    const rows = gaps.map((gap) => [gap.source, gap.from, gap.to, gap.state, gap.nextTry ?? '-', reasonText(gap)]);
    io.stdout.write(`${table(columns, rows).join('\n')}\n`);
  }
}

/** The code first, for the search in docs/operations.md; then what is known, or both numbers where nothing else is. */
function reasonText({ reason, message, total, received }: Gap): string {
  const numbers = `received ${received}, the service counted ${total ?? 'nothing'}`;
  return `${reason ?? 'gap'}: ${message === null || message === '' ? numbers : message}`;
}

function digestOf(path: string): string {
  try {
    return createHash('sha256').update(readFileSync(path)).digest('hex');
  } catch (cause) {
    throw new WaybillError('usage', `cannot read --evidence "${path}": ${messageOf(cause)}`, { cause });
  }
}
