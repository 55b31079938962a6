/** `waybill gaps list`: the windows that could not be proven, with the reason and the next try. */
import { parseArgs } from 'node:util';
import { loadConfig } from '../config/load.ts';
import { WaybillError } from '../errors.ts';
import { ledgerReport } from '../journal/report.ts';
import { openReadOnly } from '../journal/state.ts';
import { table } from '../observe/table.ts';
import type { Io } from './io.ts';

export const summary = 'lists the windows that could not be proven';

export const usage = `waybill gaps list [--config FILE] [--source ID] [--json]

The windows that are not proven: gaps, gaps that a person accepted, and windows that a later count put in doubt. What was seen of them is
delivered all the same; each is tried again at the time shown.

Examples:
  waybill gaps list
  waybill gaps list --source production --json
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' }, source: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  const [what = 'list', ...others] = positionals;
  if (what !== 'list' || others.length > 0)
    throw new WaybillError('usage', `cannot do "gaps ${positionals.join(' ')}": this release knows gaps list`);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const db = openReadOnly(config.state);
  try {
    const gaps = ledgerReport(db, { source: values.source }).sources.flatMap((source) =>
      source.windows
        .filter((window) => window.state === 'gap' || window.state === 'accepted' || window.reason === 'reread')
        .map(({ from, until, state, reason, total, own, nextRecount }) => ({
          source: source.id,
          from,
          until,
          state,
          reason,
          total,
          own,
          nextTry: nextRecount,
        })),
    );
    if (values.json) io.stdout.write(`${JSON.stringify({ gaps }, null, 2)}\n`);
    else if (gaps.length === 0) io.stdout.write('no gap\n');
    else {
      const columns = ['source', 'from', 'until', 'state', 'reason', 'counted', 'received', 'next try'].map((head, i) => ({
        head,
        align: i === 5 || i === 6 ? ('right' as const) : ('left' as const),
      }));
      const rows = gaps.map((gap) => [
        gap.source,
        gap.from,
        gap.until,
        gap.state,
        gap.reason ?? '',
        String(gap.total ?? '-'),
        String(gap.own),
        gap.nextTry ?? '-',
      ]);
      io.stdout.write(`${table(columns, rows).join('\n')}\n`);
    }
    return 0;
  } finally {
    db.close();
  }
}
