/** `waybill archive compare`: is an export exactly what the archive has. */
import { Prover } from '../../../archive/prove.ts';
import { parseRecordLine } from '../../../archive/parse-line.ts';
import { fieldNumbers } from '../../../record/fields.ts';
import { readRecord } from '../../../record/read.ts';
import { UidSet } from '../../../record/uid-set.ts';
import { counted } from '../../../report/format-time.ts';
import { assertForward, parsePeriod } from '../../../settings/period.ts';
import { systemClock } from '../../../time/clock.ts';
import { subcommand } from '../../command.ts';
import { writeResult } from '../../io.ts';
import { notFound } from '../../not-found.ts';
import { choice, required, text, timeOptions, withDefault, type ValuesOf } from '../../option.ts';
import { readIds } from '../compare/ids.ts';
import { differences, kinds } from '../compare/result-text.ts';
import type { Kind, Tally } from '../compare/tally.ts';
import { placeOf, placeOptions } from './place.ts';
import { isInPeriod } from './prove.ts';

const options = {
  source: required(text('ID', 'records of this source')),
  ...timeOptions,
  ids: required(text('FILE', 'ids to compare: NDJSON, CSV with a header, or one id a line; - is standard input')),
  by: withDefault(choice('ID', ['uid', 'logId'], 'the id that --ids has; default uid, which no two records share'), 'uid'),
  field: withDefault(text('PATH', 'path of the id in an event, or its column; default dpas.uid'), 'dpas.uid'),
  ...placeOptions,
};

export const compare = subcommand({
  summary: 'finds the records of a period that an export lacks, has twice, or has in addition',
  options,
  run: async (values: ValuesOf<typeof options>, io) => {
    const { store: opened } = await placeOf(values, io);
    await using store = opened;
    const { from = -Infinity, to = Infinity } = parsePeriod(values, systemClock.now() * 1_000);
    assertForward('compare', from, to, values);
    // With SQLite, without which the other commands of `archive` start.
    const tallies = await import('../compare/tally.ts');
    using tally = new tallies.Tally();
    const theirs = await readIds(values.ids, values.field, tally, io);
    const prover = await Prover.open(store);
    const [seen, sources, leftOut] = [new UidSet(), new Set<string>(), new Set<string>()];
    let withoutId = 0;
    const isNew = (uid: string): boolean => !seen.has(uid) && (seen.add(uid), true);
    const lines = prover.lines(
      (facts) => {
        io.signal.throwIfAborted();
        if ('source' in facts) sources.add(facts.source);
        return facts.kind === 'record' && isInPeriod(facts, values.source, from, to) && isNew(facts.uid);
      },
      ({ result }) => leftOut.add(result),
    );
    for await (const { line } of lines) {
      const { uid, record } = parseRecordLine(line);
      const { time = null, ...found } = idOf(values.by, uid, record);
      if (found.id === undefined) withoutId += 1;
      else tally.addHere(found.id, time);
    }
    const counts = Object.fromEntries(kinds.map((kind) => [kind, tally.count(kind)])) as Record<Kind, ReturnType<Tally['count']>>;
    const isComplete = leftOut.size === 0 && !prover.newer;
    if (!sources.has(values.source) && isComplete) throw notFound('source', values.source, [...sources]);
    const heads = [
      `In the archive: ${counted(seen.size, 'record')}${withoutId === 0 ? '' : `, ${withoutId} without a logId, which were not compared`}.`,
      `In --ids: ${counted(theirs.ids, 'id')}${theirs.withoutId === 0 ? '' : `, ${counted(theirs.withoutId, 'line')} without an id`}.`,
      ...(isComplete ? [] : ['Lines of the archive are missing or cannot be proven: see "waybill archive verify".']),
    ];
    await writeResult(io, [`${heads.join('\n')}\n`]);
    await writeResult(io, differences(tally, counts, 'ADDITIONAL in --ids (another period, another source, or not a record)', values.by));
    if (leftOut.has('altered')) return 1;
    return isComplete && withoutId === 0 && theirs.withoutId === 0 && kinds.every((kind) => counts[kind].ids === 0) ? 0 : 3;
  },
});

function idOf(by: 'uid' | 'logId', uid: string, bytes: Uint8Array): { readonly id: string | undefined; readonly time: number | undefined } {
  const record = readRecord(bytes);
  return { id: by === 'uid' ? uid : record.text(fieldNumbers.logId), time: record.time };
}
