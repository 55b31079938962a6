/**
 * `waybill compare`: reads a period of a source with a counting proof, and finds what another
 * collector lacks. Keeps both sides on disk, not in memory.
 */
import { createReadStream } from 'node:fs';
import { systemClock, systemRandom } from '../../../clock.ts';
import { Handoff } from '../../../collect/handoff.ts';
import { Requester } from '../../../collect/requester.ts';
import { readWindow, type Reading } from '../../../collect/read-window.ts';
import { lowerHalf, nextWidth, owns, queryOf, widestMicros, wholeSecond } from '../../../collect/windows.ts';
import { loadConfig } from '../../../config/load.ts';
import { openSource } from '../../../daemon/open-source.ts';
import type { Config, SourceConfig } from '../../../config/load.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import type { Appended, CollectedPage } from '../../../model/journal.ts';
import type { Verdict, Window } from '../../../model/ledger.ts';
import { logEvents } from '../../../model/log-events.ts';
import type { Log } from '../../../model/telemetry.ts';
import type { Micros } from '../../../model/time.ts';
import { printable } from '../../../escape.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { identify } from '../../../record/identity.ts';
import { fieldNumbers } from '../../../record/fields.ts';
import { readRecord } from '../../../record/read.ts';
import { calibrate } from '../../../source/calibrate.ts';
import { ServerClock } from '../../../source/server-clock.ts';
import { idsOf } from './ids.ts';
import { Tally, type Kind, type Tallied } from './tally.ts';
import { defineCommand } from '../../command.ts';
import { writeResult, type Io } from '../../io.ts';
import { Progress } from '../../progress.ts';
import { linesOf } from '../../lines.ts';
import { byId } from '../../not-found.ts';
import { required, text, toggle, withDefault, type ValuesOf } from '../../option.ts';
import { configOption } from '../../state-access.ts';
import { assertForward, parseTime } from '../../../settings/period.ts';

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

interface Unproven extends Window {
  readonly reason: string;
  readonly message: string;
}

/** The period as the service returned it. */
interface Period {
  readonly records: number;
  /** Records without a logId cannot be compared. */
  readonly withoutId: number;
  readonly windows: number;
  readonly unproven: readonly Unproven[];
}

const shown = 20;
const kinds: readonly Kind[] = ['missing', 'doubled', 'unknown'];
const meanings: Readonly<Record<Kind, string>> = {
  missing: 'MISSING in --ids',
  doubled: 'DUPLICATED in --ids',
  unknown: 'UNKNOWN to the service (another period, another source, or not a record)',
};

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
  await writeResult(io, values.json ? jsonOf(found) : textOfFound(found));
  return counts.missing.ids > 0 || read.unproven.length > 0 ? 3 : 0;
}

interface Found {
  readonly id: string;
  readonly period: Window;
  readonly read: Period;
  readonly theirs: { readonly ids: number; readonly withoutId: number };
  readonly counts: Readonly<Record<Kind, { readonly ids: number; readonly records: number }>>;
  readonly tally: Tally;
  /** The period ends within the last `closeDelay`. */
  readonly early: boolean;
}

async function readIds(file: string, field: string, tally: Tally, io: Io): Promise<{ ids: number; withoutId: number }> {
  const input = file === '-' ? io.stdin : createReadStream(file);
  let ids = 0;
  let withoutId = 0;
  try {
    for await (const { id } of idsOf(linesOf(input, io.signal), field)) {
      if (id === undefined) withoutId += 1;
      else {
        ids += 1;
        tally.addThere(id);
      }
    }
  } catch (thrown) {
    io.signal.throwIfAborted();
    if (thrown instanceof WaybillError || !(thrown instanceof Error) || !('code' in thrown)) throw thrown;
    throw new WaybillError('usage', `cannot read --ids "${file}": ${messageOf(thrown)}`, { cause: thrown });
  }
  if (ids === 0 && withoutId > 0)
    throw new WaybillError('usage', `cannot find an id in --ids: none of its ${withoutId} lines has the field "${field}"; see --field`);
  return { ids, withoutId };
}

const nothing = (): void => undefined;

/**
 * Window by window, like the daemon: reads each until the count of the service confirms it.
 * Compares what is not proven, too.
 */
async function readPeriod(
  settings: SourceConfig,
  config: Config,
  period: Window,
  tally: Tally,
  progress: Progress,
  io: Io,
): Promise<Period> {
  const clock = systemClock;
  const { signal } = io;
  const log = warningsTo(io.stderr);
  await using source = openSource(settings, config, { clock });
  // No retries: a wrong address or a missing permission fails at once.
  const { firstPage, pageSize, total } = await calibrate(source, settings.pageSize, signal);
  const serverClock = new ServerClock({ source: settings.id, closeDelay: settings.closeDelay, clock, log });
  const requester = new Requester({
    source,
    sourceId: settings.id,
    uidOf: identify(settings.id),
    serverClock,
    clock,
    random: systemRandom,
    log,
  });
  const own = new Map<string, { id: string | undefined; time: Micros }>();
  const reading: Reading = {
    requester,
    paging: { first: firstPage, size: pageSize },
    pages: { store: ({ records }, place) => Promise.resolve(remember(records, place?.window, own)) },
    // Nothing is stored, so a less complete copy of a record does no harm.
    visibility: {
      isSuspended: false,
      isPlain: () => true,
      admits: () => Promise.resolve(true),
      candidates: nothing,
      proven: () => Promise.resolve(),
    },
    caps: { largest: total ?? 0 },
    clock,
    log,
    pauseMs: 2_000,
    handoff: new Handoff(),
  };
  const unproven: Unproven[] = [];
  let records = 0;
  let withoutId = 0;
  let windows = 0;
  let width = widestMicros(period.from, period.to, settings.closeDelay * 1000);
  for (let from = period.from; from < period.to;) {
    let window: Window = { from, to: Math.min(period.to, from + Math.max(1_000_000, wholeSecond(width))) };
    const verdict = await readWhole(reading, own, window, (half) => (window = half), signal);
    if (!verdict.proven) unproven.push({ ...window, reason: verdict.reason, message: verdict.message });
    for (const { id, time } of own.values()) {
      records += 1;
      if (id === undefined) withoutId += 1;
      else tally.addHere(id, time);
    }
    windows += 1;
    width = nextWidth(window.to - window.from, verdict.proven ? verdict.proof.total : verdict.seen);
    from = window.to;
    const share = (from - period.from) / (period.to - period.from);
    progress.show(share, (seconds) => readText(share, from, records, seconds));
  }
  progress.end();
  return { records, withoutId, windows, unproven };
}

/** Reads a window, or the largest lower part of it that can be proven at once. */
async function readWhole(
  reading: Reading,
  own: Map<string, unknown>,
  whole: Window,
  halved: (half: Window) => void,
  signal: AbortSignal,
): Promise<Verdict> {
  for (let window = whole; ;) {
    own.clear();
    const half = lowerHalf(window);
    const outcome = await readWindow(reading, window, queryOf(window), half === undefined ? 'none' : 'any', signal);
    if (!('kind' in outcome)) return outcome;
    if (outcome.kind === 'suspended') throw new WaybillError('internal_error', `compare suspends no source: window at ${window.from}`);
    if (!half) throw new WaybillError('internal_error', `cannot split the window of one second at ${window.from}`);
    window = half;
    halved(half);
  }
}

/** The records in the window being read, by identity: a second pass returns them again. */
function remember(
  records: CollectedPage['records'],
  window: Window | undefined,
  own: Map<string, { id: string | undefined; time: Micros }>,
): Appended {
  const fresh = records.filter(({ uid, time }) => time !== undefined && window !== undefined && owns(window, time) && !own.has(uid));
  for (const { uid, bytes, time } of fresh) {
    own.set(uid, { id: readRecord(bytes).text(fieldNumbers.logId), time: time ?? 0 });
  }
  return { received: records.length, appended: fresh.length, known: 0, outside: records.length - fresh.length, late: 0, fresh };
}

function* textOfFound({ id, period, read, theirs, counts, tally, early }: Found): Generator<string> {
  const proven = read.windows - read.unproven.length;
  const lines = [
    `Source ${id}, ${rfc3339(period.from)} to ${rfc3339(period.to)}: ${counted(read.records, 'record')} at the service, ${grouped(proven)} of ${counted(read.windows, 'window')} proven.`,
    `In --ids: ${counted(theirs.ids, 'id')}${theirs.withoutId === 0 ? '' : `, ${counted(theirs.withoutId, 'line')} without an id`}.`,
    ...(read.withoutId === 0 ? [] : [`${counted(read.withoutId, 'record')} without a logId: not compared.`]),
    ...(early ? ['The period ends within the last closeDelay: more of its records may still become visible.'] : []),
    ...read.unproven.map(
      (window) =>
        `NOT PROVEN: ${rfc3339(window.from)} to ${rfc3339(window.to)} (${window.reason}): ${printable(window.message)}; more may be missing`,
    ),
  ];
  yield `${lines.join('\n')}\n`;
  for (const kind of kinds) {
    const { ids, records } = counts[kind];
    yield `${meanings[kind]}: ${grouped(records)}${ids === records ? '' : ` (${counted(ids, 'id')})`}\n`;
    let left = shown;
    for (const tallied of tally.of(kind)) {
      if ((left -= 1) < 0) break;
      yield `  ${lineOf(kind, tallied)}\n`;
    }
    if (ids > shown) yield `  and ${grouped(ids - shown)} more; --json shows all\n`;
  }
}

function lineOf(kind: Kind, { id, here, there, time }: Tallied): string {
  const at = time === null ? '' : `  ${rfc3339(time)}`;
  const times = kind === 'unknown' ? (there === 1 ? '' : `  ${there} times`) : here === 1 && there === 0 ? '' : `  ${there} of ${here}`;
  return `logId ${printable(id)}${at}${times}`;
}

/** One object, written in chunks: the lists may be long. */
function* jsonOf({ id, period, read, theirs, counts, tally }: Found): Generator<string> {
  const head = {
    source: id,
    from: rfc3339(period.from),
    to: rfc3339(period.to),
    complete: counts.missing.ids === 0 && read.unproven.length === 0,
    records: read.records,
    recordsWithoutId: read.withoutId,
    windows: read.windows,
    unproven: read.unproven.map((window) => ({ ...window, from: rfc3339(window.from), to: rfc3339(window.to) })),
    ids: theirs.ids,
    linesWithoutId: theirs.withoutId,
    counts: Object.fromEntries(kinds.map((kind) => [kind, counts[kind].records])),
  };
  yield JSON.stringify(head, null, 2).slice(0, -2);
  for (const kind of kinds) {
    yield `,\n  "${kind}": [`;
    let separator = '\n';
    for (const { id: logId, here, there, time } of tally.of(kind)) {
      const item = { logId, logTimestamp: time === null ? null : rfc3339(time), service: here, there };
      yield `${separator}    ${JSON.stringify(item)}`;
      separator = ',\n';
    }
    yield separator === '\n' ? ']' : '\n  ]';
  }
  yield '\n}\n';
}

function readText(share: number, closedUntil: Micros, records: number, seconds: number): string {
  const rate = grouped(Math.round(records / seconds));
  return `read up to ${rfc3339(closedUntil)}: ${Math.floor(share * 100)} %, ${counted(records, 'record')}, ${rate}/s`;
}

/** Prints warnings and errors. */
function warningsTo(stream: NodeJS.WritableStream): Log {
  return {
    write: (event, fields) => {
      const { level, message } = logEvents[event];
      if (level !== 'warn' && level !== 'error') return;
      const thrown = fields && 'error' in fields ? fields.error : undefined;
      stream.write(`${message}${thrown === undefined ? '' : `: ${printable(messageOf(thrown))}`}\n`);
    },
  };
}
