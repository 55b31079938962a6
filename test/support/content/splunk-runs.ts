/** Runs a search of content/splunk by its schedule, as Splunk does, with the evaluator of SPL. */
import type { Row } from './events.ts';
import { runTimes } from './kibana-runs.ts';
import { spl } from './spl.ts';
import { atSearchTime, conf, savedSearch } from './splunk-app.ts';

const minute = 60_000;
const units: Readonly<Record<string, number>> = { m: minute, h: 60 * minute };

/** @param text  `-65m@m`, `@m`, `-24h` or `+5m`, relative to a full minute; without a limit: any time before @returns ms */
export function msOf(text: string | undefined): number {
  if (text === undefined) return -Infinity;
  if (text === '@m') return 0;
  const [, sign, count, unit = ''] = /^([+-])(\d+)([mh])(?:@m)?$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit] ?? NaN);
  return sign === '-' ? -ms : ms;
}

/**
 * The alerts of a search in all its runs, with its throttling, and the time of the run as `run`, ms.
 * @param rows  documents with `event.ingested`
 * @param lookups  the rows of the lists of an operator
 */
export function splunkAlertsOf(name: string, rows: readonly Row[], lookups: Readonly<Record<string, readonly Row[]>>): readonly Row[] {
  const keys = conf('savedsearches').get(name) ?? new Map<string, string>();
  const { run, limits } = spl(savedSearch(name));
  const fields = (keys.get('alert.suppress.fields') ?? '').split(',');
  const quiet = msOf(`+${keys.get('alert.suppress.period') ?? ''}`);
  const interval = keys.get('cron_schedule') === '*/5 * * * *' ? 5 * minute : 60 * minute;
  const sourcetype = limits['sourcetype'] === 'dpas:ledger' ? 'dpas:ledger' : 'dpas:audit';
  const arrivals = rows.map((row) => ({
    row: { ...atSearchTime(sourcetype, row), sourcetype },
    at: Date.parse(String(row['@timestamp'])),
    arrived: Date.parse(String(row['event.ingested'])),
  }));
  const opened = new Map<string, number>();
  const alerts: Row[] = [];
  const [earliest, latest] = [msOf(keys.get('dispatch.earliest_time')), msOf(keys.get('dispatch.latest_time'))];
  const [firstIndexed, lastIndexed] = [msOf(limits['_index_earliest']), msOf(limits['_index_latest'])];
  for (const now of runTimes(arrivals, interval, savedSearch(name).includes('now() - _time > '))) {
    const isSeen = ({ at, arrived }: { readonly at: number; readonly arrived: number }): boolean =>
      at >= now + earliest && at < now + latest && arrived >= now + firstIndexed && arrived < now + lastIndexed;
    const seen = arrivals.filter(isSeen);
    const found =
      seen.length === 0
        ? []
        : run(
            seen.map(({ row }) => row),
            { now: now / 1_000, lookups },
          );
    for (const alert of found) {
      const key = JSON.stringify(fields.map((field) => alert[field]));
      if (now - (opened.get(key) ?? -Infinity) < quiet) continue;
      opened.set(key, now);
      alerts.push({ ...alert, run: now });
    }
  }
  return alerts;
}
