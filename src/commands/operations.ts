/** `waybill operations list`: every change that a person made. */
import { parseArgs } from 'node:util';
import { systemClock } from '../clock.ts';
import { loadConfig } from '../config/load.ts';
import { WaybillError } from '../errors.ts';
import { openReadOnly } from '../journal/state.ts';
import { flat } from '../journal/operation-detail.ts';
import { operationList } from '../journal/operation-list.ts';
import { detailWords } from '../observe/ledger-words.ts';
import { jsonText } from '../observe/pieces.ts';
import { table } from '../observe/table.ts';
import type { Io } from './io.ts';
import { joinSpans, parseTime } from '../config/period.ts';

export const summary = 'lists every change that a person made';

export const usage = `waybill operations list [--from T] [--to T] [--json]

Every change that a person made to the state: when, who (as claimed), what, on which source or sink, why, and what else belongs to it.

  --from T, --to T    a time, a date, a month, 2026-Q3, or -7d

Examples:
  waybill operations list
  waybill operations list --from 2026-Q3 --to 2026-Q3 --json
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args: joinSpans(args),
    allowPositionals: true,
    options: { config: { type: 'string' }, from: { type: 'string' }, to: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  const [what = 'list', ...others] = positionals;
  if (what !== 'list' || others.length > 0)
    throw new WaybillError('usage', `cannot do "operations ${positionals.join(' ')}": there is operations list`);
  const now = systemClock.now() * 1000;
  const from = values.from === undefined ? 0 : parseTime(values.from, '--from', now, false);
  const to = values.to === undefined ? Number.MAX_SAFE_INTEGER : parseTime(values.to, '--to', now, true);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const db = openReadOnly(config.state);
  try {
    const found = operationList(db, from, to);
    if (values.json) io.stdout.write(jsonText({ operations: found }));
    else if (found.length === 0) io.stdout.write('no operation\n');
    else {
      const columns = ['n', 'at', 'who (claimed)', 'what', 'source or sink', 'why', 'detail'].map((head) => ({ head }));
      io.stdout.write(
        `${table(
          columns,
          found.map(({ n, at, who, what: done, source, sink, why, detail }) => [
            ...[String(n), at, who ?? '', done, ...[source ?? sink, why].map((each) => (typeof each === 'string' ? each : ''))],
            detailWords({ detail: flat(detail) }),
          ]),
        ).join('\n')}\n`,
      );
    }
    return 0;
  } finally {
    db.close();
  }
}
