/** Parses the parameters of a report and requests it from a report thread. */
import { nearestOrAll } from '../../settings/nearest.ts';
import { assertForward, parsePeriod, parseZone } from '../../settings/period.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Clock, Micros } from '../../model/time.ts';
import type { AdminSources } from '../../admin/routes.ts';
import { presentOf } from '../../report/completeness.ts';
import type { Reported } from './messages.ts';
import type { Reports } from './report-maker.ts';
import type { ReportOrder } from './report-thread.ts';

interface AdminReportsOptions {
  readonly state: () => Promise<ReportOrder['state']>;
  /** The settings at the time of the request. */
  readonly reported: () => Reported;
  readonly snapshot: () => Promise<Snapshot | undefined>;
  readonly version: string;
  readonly clock: Clock;
}

export function adminReports(
  reports: Reports,
  { state, reported, snapshot, version, clock }: AdminReportsOptions,
): Pick<AdminSources, 'ledger' | 'gaps' | 'operations'> {
  return {
    ledger: async ({ source, from, to, by = 'window', format = 'json', tz = 'UTC' }) => {
      const now = clock.now() * 1000;
      const { settings, services } = reported();
      const zone = parseZone(tz, 'tz');
      const query = { source, ...periodOf({ from, to }, now, zone), now, ...settings };
      const known = await opened(snapshot);
      assertKnown(source, known);
      return reports.make({
        kind: 'ledger',
        state: await state(),
        query,
        present: presentOf(known),
        format,
        options: { by, tz: zone, version, services },
      });
    },
    gaps: async ({ source }) => {
      if (source !== undefined) assertKnown(source, await opened(snapshot));
      return reports.make({ kind: 'gaps', state: await state(), source });
    },
    operations: async (given) => {
      const { from = 0, to = Number.MAX_SAFE_INTEGER } = periodOf(given, clock.now() * 1000, 'UTC');
      return reports.make({ kind: 'operations', state: await state(), from, to });
    },
  };
}

/** @throws WaybillError `usage` */
function periodOf(given: Parameters<typeof parsePeriod>[0], now: Micros, tz: string): ReturnType<typeof parsePeriod> {
  const period = parsePeriod(given, now, tz, '');
  assertForward('report', period.from, period.to, given);
  return period;
}

async function opened(snapshot: AdminReportsOptions['snapshot']): Promise<Snapshot> {
  const known = await snapshot();
  if (!known) throw new WaybillError('usage', 'cannot create the report: the state is not open yet');
  return known;
}

/** The ledger of a source outlives its configuration. */
function assertKnown(source: string | undefined, { sources }: Snapshot): void {
  const ids = sources.map(({ id }) => id);
  if (source === undefined || ids.includes(source)) return;
  throw new WaybillError('usage', `cannot find the source "${source}": ${ids.length === 0 ? 'there is none' : nearestOrAll(source, ids)}`);
}
