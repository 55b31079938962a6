/** The operator actions of a period as rows of text; consecutive ones of a kind share a row. Pure. */
import type { LedgerReportOperation } from '../../model/ledger-report.ts';
import { grouped } from '../format-time.ts';

/** The maximum distance between two operations of one command. Replays are never combined: each has a range of its own. */
const togetherMs = 60_000;

export const operationHeads = ['actor (not authenticated)', 'operation', 'source or sink', 'count', 'outcome', 'reason', 'detail'] as const;

/** The time of the first operation of a row, and a cell for each heading. */
export function operationRows(found: readonly LedgerReportOperation[]): { readonly at: string; readonly cells: readonly string[] }[] {
  const groups: LedgerReportOperation[][] = [];
  for (const item of found) {
    const last = groups.at(-1);
    if (last && isTogether(last.at(-1), item)) last.push(item);
    else groups.push([item]);
  }
  return groups.flatMap((group) => {
    const [first] = group;
    if (!first) return [];
    const { at, actor, operation, detail } = first;
    const count = group.reduce((sum, { detail: { count: each } }) => sum + (typeof each === 'number' ? each : 1), 0);
    const on = String(detail['source'] ?? detail['sink'] ?? '');
    const rest = group.length === 1 ? detailText(detail) : spanText(group);
    return [{ at, cells: [actor ?? '-', operation, on, grouped(count), outcomeOf(group), String(detail['reason'] ?? ''), rest] }];
  });
}

function isTogether(before: LedgerReportOperation | undefined, after: LedgerReportOperation): boolean {
  const key = ({ actor, operation, detail: { source, sink, reason } }: LedgerReportOperation): string =>
    JSON.stringify([actor, operation, source, sink, reason]);
  return (
    before !== undefined &&
    after.operation !== 'replay' &&
    key(before) === key(after) &&
    Date.parse(after.at) - Date.parse(before.at) <= togetherMs
  );
}

/** A change is done with its transaction; only an operation that sends to a sink records an outcome. */
function outcomeOf(group: readonly LedgerReportOperation[]): string {
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

const shownApart: ReadonlySet<string> = new Set(['source', 'sink', 'reason', 'outcome', 'delivered', 'count']);

function detailText(detail: LedgerReportOperation['detail']): string {
  return Object.entries(detail)
    .filter(([name, value]) => !shownApart.has(name) && value !== '')
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ');
}

function spanText(group: readonly LedgerReportOperation[]): string {
  const froms = group.flatMap(({ detail: { from } }) => (typeof from === 'string' ? [from] : [])).toSorted();
  const untils = group.flatMap(({ detail: { to } }) => (typeof to === 'string' ? [to] : [])).toSorted();
  const [from, to] = [froms[0], untils.at(-1)];
  return from === undefined || to === undefined ? '' : `between ${from} and ${to}`;
}
