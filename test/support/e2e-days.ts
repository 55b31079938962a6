/** Whole days of a service: records by day, and the ledger's row of each day. */
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import type { Place } from './e2e-place.ts';

export const dayMs = 86_400_000;

/** The last ten whole days in UTC, as `2026-11-20`. */
export function wholeDays(now: number): readonly string[] {
  const today = Math.floor(now / dayMs) * dayMs;
  return Array.from({ length: 10 }, (_, i) => new Date(today - (10 - i) * dayMs).toISOString().slice(0, 10));
}

/** Counts records by the day of their `logTimestamp` (UTC, the date first). */
export function countByDay(records: readonly string[], days: readonly string[]): Record<string, number> {
  const counts = Object.fromEntries(days.map((day) => [day, 0]));
  for (const record of records) {
    const day = /"logTimestamp"\s*:\s*"(\d{4}-\d\d-\d\d)T/.exec(record)?.[1] ?? '';
    if (day in counts) counts[day] = (counts[day] ?? 0) + 1;
  }
  return counts;
}

interface LedgerDay {
  readonly day: string;
  readonly from: string;
  readonly to: string;
  readonly records: number;
}

/** The days of the ledger of `production`, as `--by day --format csv` prints them; columns as docs/audit.md reads them. */
export async function ledgerDays(place: Place, days: readonly string[]): Promise<readonly LedgerDay[]> {
  const period = ['--from', days[0] ?? '', '--to', days.at(-1) ?? ''];
  const done = await place.waybill(
    ...['ledger', '--config', 'waybill.yaml', '--source', 'production', ...period, '--by', 'day', '--format', 'csv', '--out', 'days.csv'],
  );
  if (done.stderr !== '') throw new Error(inspect(done));
  return (
    readFileSync(place.path('days.csv'), 'utf8')
      .trimEnd()
      .split('\r\n')
      // The summary is a comment before the header.
      .filter((line) => !line.startsWith('# '))
      .slice(1)
      .map((line) => line.split(','))
      .map((cells) => ({ day: cells[1] ?? '', from: cells[2] ?? '', to: cells[3] ?? '', records: Number(cells[11]) }))
  );
}
