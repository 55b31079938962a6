/**
 * `waybill compare`: reads a period of a source with a counting proof and says what somebody else's collection of it lacks. Needs no state,
 * changes nothing, and holds neither side in memory.
 */
import { createReadStream } from 'node:fs';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { systemClock, systemRandom } from '../../../clock.ts';
import { Handoff } from '../../../collect/handoff.ts';
import { Requester } from '../../../collect/requester.ts';
import { readWindow } from '../../../collect/read-window.ts';
import type { Reading } from '../../../collect/read-window.ts';
import { lowerHalf, nextWidth, owns, queryOf, widestMicros, wholeSecond } from '../../../collect/windows.ts';
import { loadConfig } from '../../../config/load.ts';
import type { Config, SourceConfig } from '../../../config/load.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import type { Appended, CollectedPage } from '../../../model/journal.ts';
import type { Verdict, Window } from '../../../model/ledger.ts';
import { logEvents } from '../../../model/log-events.ts';
import type { Log, Meters } from '../../../model/telemetry.ts';
import type { Micros } from '../../../model/time.ts';
import { printable } from '../../../escape.ts';
import { counted, grouped, rfc3339, span } from '../../../report/format-time.ts';
import { identify } from '../../../record/identity.ts';
import { objectOf, parseRecord, textOf } from '../../../record/json.ts';
import { calibrate } from '../../../source/calibrate.ts';
import { createSource } from '../../../source/client.ts';
import { Budget } from '../../../source/limits.ts';
import { ServerClock } from '../../../source/server-clock.ts';
import { idsOf } from './ids.ts';
import { Tally } from './tally.ts';
import type { Kind, Tallied } from './tally.ts';
import type { Io } from '../../io.ts';
import { linesOf } from '../../lines.ts';
import { assertForward, periodOptions } from '../../period-options.ts';
import { joinSpans, parseTime } from '../../../settings/period.ts';

export const summary = 'says what another collector or a SIEM lacks of a period';

export const usage = `waybill compare --source ID --from T [--to T] --ids FILE|- [--field event.id] [--config FILE] [--json]

Reads the period from the source with a counting proof, and compares it with the logIds that another collector or a SIEM holds: missing
there, there more than once, and unknown at the service. Needs no state and changes nothing; any number of records is held on disk.

  --source ID         the source of the configuration to read
  --from T, --to T    the period by logTimestamp: a time, a date, a month, 2026-Q3, -7d or -6h; without
                      --to it ends now
  --ids FILE          what they hold: NDJSON, CSV with a header, or one id a line; - is standard input
  --field PATH        where the logId stands in an event, or the name of the column; default event.id (in records: logId)
  --json              everything that was found, as JSON; the text shows the first 20 of each kind
  --config FILE       the configuration

Exits 3 when something is missing there, or when a part of the period could not be proven.

Examples:
  waybill compare --source production --from 2026-11-20 --to 2026-11-20 --ids siem-export.ndjson
  cut -f1 ids.tsv | waybill compare --source production --from -7d --to -1d --ids - --json
`;

interface Unproven extends Window {
  readonly reason: string;
  readonly message: string;
}

/** What was read of the period. */
interface Period {
  readonly records: number;
  /** Records that have no logId: nothing can be said about them. */
  readonly withoutId: number;
  readonly windows: number;
  readonly unproven: readonly Unproven[];
}

const shown = 20;
const kinds: readonly Kind[] = ['missing', 'doubled', 'unknown'];
const meanings: Readonly<Record<Kind, string>> = {
  missing: 'MISSING there',
  doubled: 'MORE THAN ONCE there',
  unknown: 'UNKNOWN at the service (another period, another source, or never a record)',
};

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args: joinSpans(args),
    options: { ...periodOptions, ids: { type: 'string' }, field: { type: 'string', default: 'event.id' } },
  });
  const { source: id, from: begin, to: end, ids } = values;
  if (id === undefined || begin === undefined || ids === undefined)
    throw new WaybillError('usage', 'cannot compare without --source, --from and --ids');
  const { config } = await loadConfig(values.config, io.env);
  const settings = config.sources.find((source) => source.id === id);
  if (!settings)
    throw new WaybillError('usage', `cannot find the source "${id}": there are ${config.sources.map((source) => source.id).join(', ')}`);
  const now = systemClock.now() * 1000;
  const period = {
    from: wholeSecond(parseTime(begin, '--from', now, false)),
    to: wholeSecond(end === undefined ? now : parseTime(end, '--to', now, true)),
  };
  assertForward('compare', period.from, period.to, values);
  if (period.to > now) throw new WaybillError('usage', `cannot compare up to "${end ?? 'now'}": it lies ahead`);

  using tally = new Tally();
  const theirs = await readIds(ids, values.field, tally, io);
  const read = await readPeriod(settings, config, period, tally, new Progress(io.stderr, period), io);
  const counts = Object.fromEntries(kinds.map((kind) => [kind, tally.count(kind)])) as Record<Kind, ReturnType<Tally['count']>>;
  const early = period.to > now - settings.closeDelay * 1000;
  if (values.json) await writeJson({ id, period, read, theirs, counts, tally }, io);
  else await writeText({ id, period, read, theirs, counts, tally, early }, io);
  return counts.missing.ids > 0 || read.unproven.length > 0 ? 3 : 0;
}

interface Found {
  readonly id: string;
  readonly period: Window;
  readonly read: Period;
  readonly theirs: { readonly ids: number; readonly withoutId: number };
  readonly counts: Readonly<Record<Kind, { readonly ids: number; readonly records: number }>>;
  readonly tally: Tally;
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
    throw new WaybillError('usage', `cannot find an id in --ids: none of its ${withoutId} lines has "${field}"; see --field`);
  return { ids, withoutId };
}

const nothing = (): void => undefined;

/** Window by window, as close does: each is read until the service itself confirms its number. What cannot be proven is named, and compared all the same. */
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
  const budget = new Budget(clock, settings.requests.perSecond);
  await using source = createSource(settings, { clock, budget, meters: unmetered, ca: config.tls.ca });
  // Asked once without repeating: a wrong address or a missing right is told at once.
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
    sourceId: settings.id,
    requester,
    paging: { first: firstPage, size: pageSize },
    journal: { append: (page) => Promise.resolve(remember(page, own)) },
    // Nothing is kept: a poorer copy of a record does no harm here.
    visibility: {
      isHeld: false,
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
    afterAppend: () => Promise.resolve(),
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
    progress.at(from, records);
  }
  progress.end();
  return { records, withoutId, windows, unproven };
}

/** Reads a window, or as much of its lower end as can be proven in one piece. */
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
    if ('held' in outcome) throw new WaybillError('internal_error', `window at ${window.from} was held back, and nothing here holds`);
    if (!('split' in outcome)) return outcome;
    if (!half) throw new WaybillError('internal_error', `window of one second at ${window.from} was to be split`);
    window = half;
    halved(half);
  }
}

/** The records that the window under way owns, by identity: a pass may bring one again. */
function remember(
  { records, window }: Pick<CollectedPage, 'records' | 'window'>,
  own: Map<string, { id: string | undefined; time: Micros }>,
): Appended {
  const fresh = records.filter(({ uid, time }) => time !== undefined && window !== undefined && owns(window, time) && !own.has(uid));
  for (const { uid, text, time } of fresh) {
    const id = textOf(objectOf(parseRecord(text))?.['logId']);
    own.set(uid, { id: id?.trim() === '' ? undefined : id, time: time ?? 0 });
  }
  return { received: records.length, appended: fresh.length, known: 0, outside: records.length - fresh.length, late: 0, fresh };
}

async function writeText({ id, period, read, theirs, counts, tally, early }: Found & { readonly early: boolean }, io: Io): Promise<void> {
  const proven = read.windows - read.unproven.length;
  const lines = [
    `Source ${id}, ${rfc3339(period.from)} to ${rfc3339(period.to)}: ${counted(read.records, 'record')} at the service, ${grouped(proven)} of ${counted(read.windows, 'window')} proven.`,
    `There: ${counted(theirs.ids, 'id')}${theirs.withoutId === 0 ? '' : `, ${counted(theirs.withoutId, 'line')} without one`}.`,
    ...(read.withoutId === 0 ? [] : [`${counted(read.withoutId, 'record')} without a logId: not compared.`]),
    ...(early ? ['The period ends within the last `settle`: records of it may still become visible.'] : []),
    ...read.unproven.map(
      (window) =>
        `NOT PROVEN: ${rfc3339(window.from)} to ${rfc3339(window.to)} (${window.reason}): ${printable(window.message)}; more may be missing`,
    ),
  ];
  await write(io, `${lines.join('\n')}\n`);
  for (const kind of kinds) {
    const { ids, records } = counts[kind];
    await write(io, `${meanings[kind]}: ${grouped(records)}${ids === records ? '' : ` (${counted(ids, 'id')})`}\n`);
    let left = shown;
    for (const tallied of tally.of(kind)) {
      if ((left -= 1) < 0) break;
      await write(io, `  ${lineOf(kind, tallied)}\n`);
    }
    if (ids > shown) await write(io, `  and ${grouped(ids - shown)} more; --json shows all\n`);
  }
}

function lineOf(kind: Kind, { id, here, there, time }: Tallied): string {
  const at = time === null ? '' : `  ${rfc3339(time)}`;
  const times = kind === 'unknown' ? (there === 1 ? '' : `  ${there} times`) : here === 1 && there === 0 ? '' : `  ${there} of ${here}`;
  return `logId ${printable(id)}${at}${times}`;
}

/** One object, written piece by piece: the lists may be long. */
async function writeJson({ id, period, read, theirs, counts, tally }: Found, io: Io): Promise<void> {
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
  await write(io, JSON.stringify(head, null, 2).slice(0, -2));
  for (const kind of kinds) {
    await write(io, `,\n  "${kind}": [`);
    let separator = '\n';
    for (const { id: logId, here, there, time } of tally.of(kind)) {
      const item = { logId, logTimestamp: time === null ? null : rfc3339(time), service: here, there };
      await write(io, `${separator}    ${JSON.stringify(item)}`);
      separator = ',\n';
    }
    await write(io, separator === '\n' ? ']' : '\n  ]');
  }
  await write(io, '\n}\n');
}

async function write(io: Io, text: string): Promise<void> {
  if (!io.stdout.write(text)) await once(io.stdout, 'drain', { signal: io.signal });
}

/** How far the reading is: a bar on a terminal, a line now and then otherwise. */
class Progress {
  readonly #stream: NodeJS.WritableStream;
  readonly #period: Window;
  readonly #isTerminal: boolean;
  readonly #begun = systemClock.monotonic();
  #saidAt = this.#begun;

  constructor(stream: NodeJS.WritableStream, period: Window) {
    this.#stream = stream;
    this.#period = period;
    this.#isTerminal = 'isTTY' in stream && stream.isTTY === true;
  }

  at(closedUntil: Micros, records: number): void {
    const now = systemClock.monotonic();
    if (now - this.#saidAt < (this.#isTerminal ? 200 : 30_000)) return;
    this.#saidAt = now;
    const { from, to } = this.#period;
    const share = (closedUntil - from) / (to - from);
    const seconds = (now - this.#begun) / 1000;
    const message = `${Math.floor(share * 100)} %, ${counted(records, 'record')}, ${grouped(Math.round(records / seconds))}/s, ${span((seconds * (1 - share)) / share)} left`;
    const bar = '#'.repeat(Math.round(share * 30)).padEnd(30, '.');
    this.#stream.write(this.#isTerminal ? `\r\u001b[K[${bar}] ${message}` : `read up to ${rfc3339(closedUntil)}: ${message}\n`);
  }

  end(): void {
    if (this.#isTerminal) this.#stream.write('\r\u001b[K');
  }
}

/** What holds up the reading is said; the rest is not news. */
function warningsTo(stream: NodeJS.WritableStream): Log {
  return {
    write: (event, fields = {}) => {
      const { level, message } = logEvents[event];
      if (level !== 'warn' && level !== 'error') return;
      const thrown = 'error' in fields ? fields.error : undefined;
      stream.write(`${message}${thrown === undefined ? '' : `: ${printable(messageOf(thrown))}`}\n`);
    },
  };
}

const unmetered: Pick<Meters, 'sourceRequest'> = { sourceRequest: () => undefined };
