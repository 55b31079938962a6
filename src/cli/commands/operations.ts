/** `waybill operations list`: every change that an operator made, and what came of it. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import { WaybillError } from '../../errors.ts';
import { openReadOnly } from '../../journal/state.ts';
import { flat } from '../../journal/operation-detail.ts';
import { operationList } from '../../journal/queries/operations.ts';
import type { OperationItem } from '../../journal/queries/operations.ts';
import { detailText } from '../../report/ledger/sentences.ts';
import { jsonText } from '../../report/chunks.ts';
import { table } from '../../report/text-table.ts';
import { grouped, rfc3339 } from '../../report/format-time.ts';
import { adminOptions, adminServer, adminUsage } from '../daemon-client.ts';
import type { AdminValues } from '../daemon-client.ts';
import type { Io } from '../io.ts';
import { readUsage, settingsFor, stateOptions } from '../state-access.ts';
import type { StateValues } from '../state-access.ts';
import { joinSpans, parseTime } from '../../settings/period.ts';

export const summary = 'lists every change that an operator made';

export const usage = `waybill operations list [--from T] [--to T] [--json]

Every change that an operator made to the state: when, who (as claimed), what, on which source or sink, and what came of it. The same operation
on several windows or records in a row is one row of the text; --json has each.

  --from T, --to T    a time, a date, a month, 2026-Q3, -7d or -6h
  --json              as JSON
${readUsage}
${adminUsage}

Examples:
  waybill operations list
  waybill operations list --from 2026-Q3 --to 2026-Q3 --json
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args: joinSpans(args),
    allowPositionals: true,
    options: {
      ...{ ...stateOptions, ...adminOptions },
      ...{ from: { type: 'string' }, to: { type: 'string' }, json: { type: 'boolean', default: false } },
    },
  });
  const [what = 'list', ...others] = positionals;
  if (what !== 'list' || others.length > 0)
    throw new WaybillError('usage', `cannot do "operations ${positionals.join(' ')}": there is operations list`);
  const found = await operations(values, io);
  if (values.json) io.stdout.write(jsonText({ operations: found }));
  else if (found.length === 0) io.stdout.write('no operation\n');
  else io.stdout.write(`${operationsText(found).join('\n')}\n`);
  return 0;
}

type Values = StateValues & AdminValues & { readonly from?: string | undefined; readonly to?: string | undefined };

async function operations(values: Values, io: Io): Promise<readonly OperationItem[]> {
  const now = systemClock.now() * 1000;
  const from = values.from === undefined ? 0 : parseTime(values.from, '--from', now, false);
  const to = values.to === undefined ? Number.MAX_SAFE_INTEGER : parseTime(values.to, '--to', now, true);
  const server = adminServer(values, io.env);
  if (server) {
    const period = { from: values.from === undefined ? undefined : rfc3339(from), to: values.to === undefined ? undefined : rfc3339(to) };
    return (await server.get<{ readonly operations: readonly OperationItem[] }>('/operations', { operations: 'objects' }, period))
      .operations;
  }
  const { settings } = await settingsFor(values, io);
  const db = openReadOnly(settings.dataDir);
  try {
    return operationList(db, from, to);
  } finally {
    db.close();
  }
}

/** Operations of one command come so close together. */
const togetherMs = 60_000;

function operationsText(found: readonly OperationItem[]): string[] {
  const groups: OperationItem[][] = [];
  for (const item of found) {
    const last = groups.at(-1);
    if (last && isTogether(last.at(-1), item)) last.push(item);
    else groups.push([item]);
  }
  const columns = ['time', 'actor (as claimed)', 'operation', 'source or sink', 'count', 'outcome', 'reason', 'detail'].map((head) => ({
    head,
    align: head === 'count' ? ('right' as const) : ('left' as const),
  }));
  const rows = groups.map((group) => {
    const [first] = group;
    if (!first) return [];
    const { at, actor, operation: what, source, sink, reason } = first;
    const on = [source, sink].find((each) => typeof each === 'string') ?? '';
    return [
      ...[new Date(at).toISOString(), actor ?? '', what, on, grouped(sum(group.map(countOf)))],
      ...[outcomeOf(group), typeof reason === 'string' ? reason : '', group.length === 1 ? detailOf(first) : spanText(group)],
    ];
  });
  return table(columns, rows);
}

function isTogether(before: OperationItem | undefined, after: OperationItem): boolean {
  const key = ({ actor, operation: what, source, sink, reason }: OperationItem): string =>
    JSON.stringify([actor, what, source, sink, reason]);
  return before !== undefined && key(before) === key(after) && Date.parse(after.at) - Date.parse(before.at) <= togetherMs;
}

/** How many windows, records or events it concerns. */
function countOf({ detail }: OperationItem): number {
  return typeof detail['count'] === 'number' ? detail['count'] : 1;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** What is written down in the transaction of its change is done; what is sent to a sink has an outcome of its own. */
function outcomeOf(group: readonly OperationItem[]): string {
  const outcomes = group.map(({ operation: what, detail: { outcome, delivered } }) => {
    if (typeof outcome === 'string') return outcome;
    if (what === 'dead-letters retry' && typeof delivered === 'boolean') return delivered ? 'accepted' : 'refused';
    if (what === 'sinks test') return 'not known';
    return what === 'replay' ? 'started' : 'done';
  });
  const [first = '', ...others] = [...new Set(outcomes)];
  if (others.length === 0) return first;
  return [first, ...others].map((each) => `${outcomes.filter((outcome) => outcome === each).length} ${each}`).join(', ');
}

const shown: ReadonlySet<string> = new Set(['outcome', 'delivered', 'count']);

function detailOf({ operation: what, detail }: OperationItem): string {
  const rest = Object.entries(flat(detail)).filter(([name]) => !shown.has(name) && !(what.startsWith('gaps ') && name === 'reason'));
  return detailText({ detail: Object.fromEntries(rest) });
}

function spanText(group: readonly OperationItem[]): string {
  const froms = group.flatMap(({ detail: { from } }) => (typeof from === 'string' ? [from] : [])).toSorted();
  const untils = group.flatMap(({ detail: { to } }) => (typeof to === 'string' ? [to] : [])).toSorted();
  const [from, to] = [froms[0], untils.at(-1)];
  return from === undefined || to === undefined ? '' : `between ${from} and ${to}`;
}
