/** `waybill compare`: reads a period of a source with a counting proof, and finds what another collector lacks. All data stays on disk. */
import { systemClock } from '../../../time/clock.ts';
import { wholeSecond } from '../../../collect/windows.ts';
import { loadConfig } from '../../../config/load.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { assertForward, parseTime } from '../../../settings/period.ts';
import { defineCommand } from '../../command.ts';
import { writeResult, type Io } from '../../io.ts';
import { byId } from '../../not-found.ts';
import { configOption, required, text, toggle, withDefault, type ValuesOf } from '../../option.ts';
import { Progress } from '../../progress.ts';
import { readIds } from './ids.ts';
import { readPeriod } from './read-period.ts';
import { jsonOf, kinds, textOf } from './result-text.ts';
import { Tally, type Kind } from './tally.ts';

const options = {
  source: required(text('ID', 'source of the configuration to read')),
  from: required(text('T', 'start by logTimestamp: a time, a date, a month, 2026-Q3, -7d or -6h')),
  to: text('T', 'end, in the same forms; default now'),
  ids: required(text('FILE', 'ids to compare: NDJSON, CSV with a header, or one id a line; - is standard input')),
  field: withDefault(text('PATH', 'path of the logId in an event, or its column; default event.id (in records: logId)'), 'event.id'),
  json: toggle('print every difference as JSON; the text shows the first 20 of each kind'),
  ...configOption,
};

export const command = defineCommand({
  name: 'compare',
  summary: 'finds the records of a period that another collector or a SIEM lacks',
  description: `Reads a period from the source with a counting proof, and compares it with the logIds of another collector or a SIEM. Finds ids that --ids
lacks or repeats, and ids that the service does not know. Needs no state and changes nothing. Compares on disk, so the period may be large.

Exits with 3 when --ids lacks an id, or a part of the period is not proven.`,
  options,
  examples: [
    'waybill compare --source production --from 2026-11-20 --to 2026-11-20 --ids siem-export.ndjson',
    'cut -f1 ids.tsv | waybill compare --source production --from -7d --to -1d --ids - --json',
  ],
  run,
});

async function run(values: ValuesOf<typeof options>, io: Io): Promise<number> {
  const { source: id, from: begin, to: end, ids } = values;
  const { config } = await loadConfig(values.config, io.env);
  const settings = byId('source', config.sources, id);
  const now = systemClock.now() * 1000;
  const period = {
    from: wholeSecond(parseTime(begin, '--from', now, false)),
    to: wholeSecond(end === undefined ? now : parseTime(end, '--to', now, true)),
  };
  assertForward('compare', period.from, period.to, values);
  if (period.to > now) throw new WaybillError('usage', `cannot compare up to "${end ?? 'now'}": it is in the future`);

  using tally = new Tally();
  const theirs = await readIds(ids, values.field, tally, io);
  const read = await readPeriod(settings, config, period, tally, new Progress(io.stderr), io);
  const counts = Object.fromEntries(kinds.map((kind) => [kind, tally.count(kind)])) as Record<Kind, ReturnType<Tally['count']>>;
  const early = period.to > now - settings.closeDelay * 1000;
  const found = { id, period, read, theirs, counts, tally, early };
  await writeResult(io, values.json ? jsonOf(found) : textOf(found));
  return counts.missing.ids > 0 || read.unproven.length > 0 ? 3 : 0;
}
