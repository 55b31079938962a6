/** `waybill operations`: the changes by operators. */
import { systemClock } from '../../clock.ts';
import { flat } from '../../journal/operation-detail.ts';
import { operationList, type OperationItem } from '../../journal/queries/operations.ts';
import { detailText } from '../../report/ledger/sentences.ts';
import { right } from '../../report/text-table.ts';
import { grouped, rfc3339 } from '../../report/format-time.ts';
import { parsePeriod } from '../../settings/period.ts';
import { adminOptions, adminServer, type AdminValues } from '../admin-client.ts';
import { defineCommand, subcommand } from '../command.ts';
import { printJson, printTable, type Io } from '../io.ts';
import { jsonOption, timeOptions, type ValuesOf } from '../option.ts';
import { readState, settingsFor, stateOptions, type StateValues } from '../state-access.ts';

export const command = defineCommand({
  name: 'operations',
  summary: 'lists every change to the state that an operator made',
  description: `Lists every change that an operator made to the state: time, actor (not authenticated), operation, source or sink, and outcome. The text
combines consecutive operations of the same kind, on several windows or records, into one row; --json lists each.`,
  subcommands: {
    list: subcommand({
      summary: 'lists the operations of a period',
      options: { ...timeOptions, ...jsonOption, ...stateOptions, ...adminOptions },
      run: async (values, io) => {
        const found = await operations(values, io);
        if (values.json) printJson(io, { operations: found });
        else if (found.length === 0) io.stdout.write('no operations\n');
        else printOperations(found, io);
        return 0;
      },
    }),
  },
  fallback: 'list',
  examples: ['waybill operations list', 'waybill operations list --from 2026-Q3 --to 2026-Q3 --json'],
});

type Values = StateValues & AdminValues & ValuesOf<typeof timeOptions>;

async function operations(values: Values, io: Io): Promise<readonly OperationItem[]> {
  const { from, to } = parsePeriod(values, systemClock.now() * 1000);
  const server = adminServer(values, io.env);
  if (server) {
    const period = { from: from === undefined ? undefined : rfc3339(from), to: to === undefined ? undefined : rfc3339(to) };
    return (await server.get<{ readonly operations: readonly OperationItem[] }>('/operations', { operations: 'objects' }, period))
      .operations;
  }
  return readState((await settingsFor(values, io)).settings, (db) => operationList(db, from ?? 0, to ?? Number.MAX_SAFE_INTEGER));
}

/**
 * The maximum distance between two operations of one command. Replays are never combined: each has a
 * range of its own.
 */
const togetherMs = 60_000;

function printOperations(found: readonly OperationItem[], io: Io): void {
  const groups: OperationItem[][] = [];
  for (const item of found) {
    const last = groups.at(-1);
    if (last && isTogether(last.at(-1), item)) last.push(item);
    else groups.push([item]);
  }
  const columns = ['TIME', 'ACTOR (NOT AUTHENTICATED)', 'OPERATION', 'SOURCE OR SINK', right('COUNT'), 'OUTCOME', 'REASON', 'DETAIL'];
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
  printTable(io, columns, rows);
}

function isTogether(before: OperationItem | undefined, after: OperationItem): boolean {
  const key = ({ actor, operation: what, source, sink, reason }: OperationItem): string =>
    JSON.stringify([actor, what, source, sink, reason]);
  return (
    before !== undefined &&
    after.operation !== 'replay' &&
    key(before) === key(after) &&
    Date.parse(after.at) - Date.parse(before.at) <= togetherMs
  );
}

/** Windows, records or events of the operation. */
function countOf({ detail }: OperationItem): number {
  return typeof detail['count'] === 'number' ? detail['count'] : 1;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/**
 * A change is done with its transaction; only an operation that sends to a sink records an outcome.
 */
function outcomeOf(group: readonly OperationItem[]): string {
  const outcomes = group.map(({ operation: what, detail: { outcome, delivered } }) => {
    if (typeof outcome === 'string') return outcome;
    if (what === 'dead-letters retry' && typeof delivered === 'boolean') return delivered ? 'delivered' : 'rejected';
    if (what === 'sinks test') return 'unknown';
    return what === 'replay' ? 'requested' : 'done';
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
