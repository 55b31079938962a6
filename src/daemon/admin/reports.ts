/** Parses the parameters of a report and orders it from a report thread. */
import { parseTime, parseZone } from '../../settings/period.ts';
import { WaybillError } from '../../errors.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Clock } from '../../model/time.ts';
import type { AdminSources } from '../../admin/routes.ts';
import { presentOf } from '../../report/completeness.ts';
import type { Reported } from './messages.ts';
import type { Reports } from './report-maker.ts';

interface AdminReportsOptions {
  /** The state directory. */
  readonly state: string;
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
      const query = {
        source,
        from: from === undefined ? undefined : parseTime(from, 'from', now, false),
        to: to === undefined ? undefined : parseTime(to, 'to', now, true),
        now,
        ...settings,
      };
      const known = await snapshot();
      if (!known) throw new WaybillError('usage', 'cannot create the report: the state is not open yet');
      return reports.make({
        ...{ kind: 'ledger', state, query, present: presentOf(known), format },
        options: { by, tz: parseZone(tz), version, services },
      });
    },
    gaps: async ({ source }) => reports.make({ kind: 'gaps', state, source }),
    operations: async ({ from, to }) => {
      const now = clock.now() * 1000;
      return reports.make({
        ...{ kind: 'operations', state },
        from: from === undefined ? 0 : parseTime(from, 'from', now, false),
        to: to === undefined ? Number.MAX_SAFE_INTEGER : parseTime(to, 'to', now, true),
      });
    },
  };
}
