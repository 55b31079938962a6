/** The progress of a backfill as text, for `status` and `waybill backfill`. */
import type { BackfillProgress, Window } from '../model/ledger.ts';
import type { Unread } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { printable } from '../errors/escape.ts';
import { grouped, rfc3339, span } from './format-time.ts';

/** The completed share, 0 to 1: of the expected records if known, else of the time. 1 only at the end. */
export function share({ from, to, closedUntil, state, records, order }: BackfillProgress): number {
  if (state === 'done') return 1;
  const byTime = (closedUntil - from) / (to - from);
  const byRecords = order.expected ? records / order.expected : byTime;
  return Math.min(0.999, Math.max(0, byRecords));
}

/** The time left at this speed; undefined if it cannot be estimated. */
export function secondsLeft(progress: BackfillProgress, perSecond: number): number | undefined {
  const { expected } = progress.order;
  if (expected === undefined || perSecond <= 0) return undefined;
  return Math.max(0, (expected - progress.records) / perSecond);
}

/** `41.2 % (1,234,567 of 2,995,000 records), up to 2026-03-02T10:00:00Z, 3,100 records/s, 12 min left` */
export function backfillText(progress: BackfillProgress): string {
  const { closedUntil, state, records, gaps, order, perSecond, secondsLeft: left } = progress;
  const of = order.expected === undefined ? '' : ` of ${grouped(order.expected)}`;
  const speed = [
    ...(perSecond === undefined ? [] : [`${grouped(Math.round(perSecond))} records/s`]),
    ...(left === undefined ? [] : [`${span(left)} left`]),
  ];
  return [
    `${(Math.floor(share(progress) * 1000) / 10).toFixed(1)} % (${grouped(records)}${of} records)`,
    `up to ${rfc3339(closedUntil)}`,
    ...(gaps === 0 ? [] : [`${grouped(gaps)} ${gaps === 1 ? 'window is a gap' : 'windows are gaps'}`]),
    ...(state === 'running' ? speed : [state]),
  ].join(', ');
}

/** Explains that records after `start` are not read, and names the command that reads them. */
export function unreadText(source: string, { from, to, startsAt }: Unread): string {
  return `start is before ${rfc3339(startsAt)}, where its ledger starts: ${unreadCommand(source, { from, to })} reads the earlier records`;
}

export function unreadCommand(source: string, { from, to }: Window): string {
  return `waybill backfill --source ${source} --from ${rfc3339(from)} --to ${rfc3339(to)}`;
}

/** Describes a cancelled range, which now ends at `ends` (µs): removed, shortened or unchanged. */
export function shorten({ from, to }: Window, ends: Micros): string {
  if (ends === from) return 'cancelled: nothing was collected';
  const end = rfc3339(ends);
  return ends < to
    ? `cancelled: the range now ends at ${end}`
    : `nothing was cancelled: the window in progress reaches the end of the range, ${end}, and is still read`;
}

/** `BACKFILL  production, 2026-01-01T00:00:00Z to …`: at most `maxLines` lines; the last counts the rest. */
export function backfillLines(
  sources: readonly { readonly id: string; readonly backfills?: readonly BackfillProgress[] | undefined }[],
  maxLines: number,
): string[] {
  const all = sources.flatMap(({ id, backfills }) =>
    (backfills ?? []).map((each) => `BACKFILL  ${printable(id)}, ${rfc3339(each.from)} to ${rfc3339(each.to)}: ${backfillText(each)}`),
  );
  return all.length <= maxLines
    ? all
    : [...all.slice(0, maxLines - 1), `BACKFILL  and ${grouped(all.length - maxLines + 1)} more: waybill backfill list`];
}
