/**
 * `waybill status` as text: the headline, tables of sources and sinks, the journal, and every problem with its act. At most 24 lines with one
 * problem: rows with problems come first, and rows that do not fit are counted.
 */
import { completeUntil } from '../model/ledger.ts';
import type { ReplayProgress } from '../model/journal.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { journalForecast } from './journal-forecast.ts';
import { actOf, problems, worstFirst, type Problem } from './advice.ts';
import { backfillLines } from './backfills.ts';
import { samples, seenWithin } from '../telemetry/delays.ts';
import { bound } from './close-delay-advice.ts';
import { size } from './format-size.ts';
import { isUsed, serverTime, sinkState, sourceState } from './states.ts';
import { printable } from '../errors/escape.ts';
import { cut, right, table, wrapped } from './text-table.ts';
import { ago, counted, grouped, span, zoned } from './format-time.ts';
import { statusSummary } from './status-summary.ts';
import { whenDue } from './summary.ts';

export interface StatusTextOptions {
  /** The caller checks the terminal and NO_COLOR. */
  readonly color: boolean;
  /** IANA name of the zone of all times. */
  readonly tz: string;
  /** Columns of the terminal. */
  readonly width: number;
}

const linesMax = 24;
/** The lines of one problem, and the number of problems in full. */
const problemLines = 7;
const problemsMax = 6;
const backfillsMax = 2;
const waitsMax = 2;
const notesMax = 3;

export function statusText(given: Snapshot, { color, tz, width }: StatusTextOptions): string {
  const found = problems(given);
  const snapshot = worstFirst(given);
  const head = wrapped(statusSummary(snapshot, tz), width, Infinity, '  ');
  // The tables share the lines that the other parts leave; each gets at least half if it needs it.
  const history = backfillLines(snapshot.sources, backfillsMax);
  // These lines are wrapped, not cut: their end is the time.
  const forms = snapshot.sources.flatMap(({ id, queryForms = [] }) => queryForms.map((form) => `${id}: ${form}`)).slice(0, waitsMax);
  const waits = [...waitLines(snapshot, tz), ...forms].flatMap((line) => wrapped(line, width, Infinity, '  '));
  const journal = [...fleetLine(snapshot), journalLine(snapshot)].flatMap((line) => wrapped(line, width, 3, '  '));
  const notes = snapshot.sinks
    .flatMap((sink) => [...filterLine(sink), ...replayLines(sink), ...stampLine(sink, snapshot), ...witnessLines(sink, snapshot)])
    .slice(0, notesMax);
  const rest = [head, history, waits, journal, notes].reduce((sum, { length }) => sum + length, found.length === 0 ? 1 : problemLines);
  const rows = linesMax - rest - 6;
  const half = Math.floor(rows / 2);
  const forSources = Math.min(snapshot.sources.length, Math.max(half, rows - snapshot.sinks.length));
  const forSinks = Math.min(snapshot.sinks.length, rows - forSources);
  const sources = sourceLines(snapshot, found, tz, forSources, width);
  const body = [...sources, ...waits, '', ...sinkLines(snapshot, found, forSinks), ...notes, '', ...history, ...journal];
  const painted = (line: string): string => (color ? `\u001b[${found.length > 0 ? '33' : '32'};1m${line}\u001b[0m` : line);
  return [...head.map(painted), '', ...body.map((line) => cut(line, width)), '', ...problemText(found, width)].join('\n');
}

/** One paragraph for each problem: what, what is lost, what to do. */
function problemText(found: readonly Problem[], width: number): string[] {
  if (found.length === 0) return ['Nothing to do.'];
  const rest = found.length - problemsMax;
  const paragraphs = found
    .slice(0, problemsMax)
    .map((problem, i) => [
      ...wrapped(problem.what, width, 2, '  '),
      ...(problem.lost === found[i - 1]?.lost ? [] : wrapped(problem.lost, width, 2, '  ')),
      ...wrapped(`To do: ${actOf(problem)}`, width, 3, '  '),
    ]);
  const more = rest > 0 ? [['', `and ${counted(rest, 'more problem')}: waybill status --json`]] : [];
  return [...paragraphs.flatMap((lines, i) => (i === 0 ? lines : ['', ...lines])), ...more.flat()];
}

function sourceLines(snapshot: Snapshot, found: readonly Problem[], tz: string, maxLines: number, width: number): string[] {
  const measured = snapshot.sources.some(({ delays }) => delays !== undefined && samples(delays) > 0);
  const lines = sourceTable(snapshot, found, tz, maxLines, measured);
  // The column of delays is omitted if it does not fit.
  return lines.some((line) => line.length > width) && measured ? sourceTable(snapshot, found, tz, maxLines, false) : lines;
}

function sourceTable(snapshot: Snapshot, found: readonly Problem[], tz: string, maxLines: number, measured: boolean): string[] {
  const zone = tz === 'UTC' ? 'Z' : '';
  const columns = [
    ...['SOURCE', 'STATE', tz === 'UTC' ? 'COMPLETE UNTIL' : `COMPLETE UNTIL (${tz})`, 'LAST SUCCESS'],
    ...['RECORDS', 'LATE', 'GAPS'].map(right),
    // Over the last one to two weeks.
    ...(measured ? ['DELAY p50, p99'] : []),
  ];
  const troubled = new Set(found.flatMap(({ source }) => source ?? []));
  return rowsOf('SOURCE', snapshot.sources, troubled, maxLines, columns, (source) => {
    const now = serverTime(source, snapshot);
    const until = completeUntil(source);
    const complete = until === undefined ? 'not yet' : `${shortTime(until, now, tz)}${zone} (${ago(until, now)})`;
    const answer = source.lastSuccess === undefined ? 'none yet' : ago(source.lastSuccess, snapshot.now);
    const cells = [
      source.id,
      sourceState(source, snapshot),
      complete,
      answer,
      grouped(source.collected),
      grouped(source.late),
      gapsText(source),
    ];
    return measured ? [...cells, seen(source)] : cells;
  });
}

/** Time of day, after the date if that is not the date of `now`. */
function shortTime(at: Micros, now: Micros, tz: string): string {
  const { date, time } = zoned(at, tz);
  return `${date === zoned(now, tz).date ? '' : `${date} `}${time.slice(0, 5)}`;
}

function gapsText({ windows: { gap, inDoubt } }: SourceSnapshot): string {
  return `${grouped(gap)}${inDoubt === 0 ? '' : `, ${grouped(inDoubt)} in doubt`}`;
}

function seen({ delays }: SourceSnapshot): string {
  return delays === undefined || samples(delays) === 0
    ? '-'
    : [0.5, 0.99].map((share) => bound(seenWithin(delays, share)).replace(/^\d/, '≤ $&')).join(', ');
}

/** Why the next window cannot be proven yet, and when it can be. */
export function waitLines(snapshot: Snapshot, tz: string): string[] {
  // Without an answer there is nothing to measure.
  const waiting = snapshot.sources.filter(
    (source) => source.clock && source.lastSuccess !== undefined && /active|waiting|catching/.test(sourceState(source, snapshot)),
  );
  return waiting.slice(0, waitsMax).map((source) => {
    const { id, clock, nextProof } = source;
    const { remainingMs = 0, answersMissing = 0 } = clock ?? {};
    const left = remainingMs > 0 || answersMissing === 0 ? `, at least ${span(remainingMs / 1000)} left` : '';
    const answers = answersMissing === 0 ? '' : `, ${counted(answersMissing, 'more response')} needed`;
    const proof = nextProof === undefined ? '' : `; next window proven ${whenDue(nextProof, serverTime(source, snapshot), tz)}`;
    return `${id} waits: the clock of the service is being measured${left}${answers}${proof}`;
  });
}

function sinkLines(snapshot: Snapshot, found: readonly Problem[], maxLines: number): string[] {
  const columns = ['SINK', 'TYPE', 'STATE', 'LAG', 'LAST DELIVERY', right('DEAD LETTERS')];
  const troubled = new Set(found.flatMap(({ sink }) => sink ?? []));
  return rowsOf('SINK', snapshot.sinks, troubled, maxLines, columns, (sink) => {
    const state = sinkState(sink, snapshot);
    return [
      sink.id,
      sink.type,
      sink.attempts === undefined || sink.attempts === 0 ? state : `${state}, ${counted(sink.attempts, 'attempt')}`,
      // Nothing is sent to a sink that is not configured.
      !isUsed(sink)
        ? '-'
        : sink.lagEntries === 0
          ? 'nothing'
          : `${counted(sink.lagEntries, 'entry', 'entries')} (${span(sink.lagSeconds)})`,
      lastDelivery(sink, snapshot),
      grouped(sink.deadLetters),
    ];
  });
}

function replayLines({ id, replays = [] }: SinkSnapshot): string[] {
  return replays.filter(({ state }) => state !== 'done' && state !== 'cancelled').map((replay) => replayLine(id, replay));
}

function replayLine(id: string, { archive, state, at, passed, expected, sent, leftOut = 0, error }: ReplayProgress): string {
  // The number of lines is known only while the archive is read.
  const progress =
    state !== 'running'
      ? `${state} after ${archive === undefined ? 'entry' : 'line'} ${grouped(at)}`
      : expected === 0
        ? 'waits for the first checkpoint of the archive'
        : `${Math.min(100, Math.floor((100 * passed) / expected))} %`;
  const from = archive === undefined ? '' : ` from the archive ${archive}`;
  const failure = error === undefined ? '' : `; last attempt: ${printable(error)}`;
  const without = leftOut === 0 ? '' : `, ${counted(leftOut, 'line')} left out by --from`;
  return `${id}: replay${from}, ${progress}, ${counted(sent, 'record')} sent${without}${failure}`;
}

/** A filter that has passed nothing may be misspelt. */
function filterLine({ id, unselected }: SinkSnapshot): string[] {
  return unselected === undefined ? [] : [`${id}: 0 of ${counted(unselected, 'record')} passed its filter`];
}

function stampLine({ id, timeStamp }: SinkSnapshot, { now }: Snapshot): string[] {
  if (!timeStamp) return [];
  const { newest, lastError } = timeStamp;
  const failure = lastError === undefined ? '' : `; last attempt: ${printable(lastError)}`;
  return [`${id}: ${newest === undefined ? 'no time stamp yet' : `newest time stamp ${ago(newest, now)}`}${failure}`];
}

/** The newest cosignature by each witness of an archive. */
function witnessLines({ id, cosignatures = [] }: SinkSnapshot, { now }: Snapshot): string[] {
  return cosignatures.map(({ witness, newest, lastError }) => {
    const failure = lastError === undefined ? '' : `; last attempt: ${printable(lastError)}`;
    const age = newest === undefined ? 'has not cosigned yet' : `cosigned ${ago(newest, now)}`;
    return `${id}: witness ${printable(witness)} ${age}${failure}`;
  });
}

function lastDelivery({ lastSuccess, hasDelivered }: SinkSnapshot, { now, stopped }: Snapshot): string {
  if (lastSuccess !== undefined) return ago(lastSuccess, now);
  if (!hasDelivered) return 'never';
  return stopped ? 'not known' : 'before this start';
}

/** A head and at most `maxLines` lines; the last line counts omitted rows. */
function rowsOf<Item extends { readonly id: string }>(
  what: string,
  items: readonly Item[],
  troubled: ReadonlySet<string>,
  maxLines: number,
  columns: Parameters<typeof table>[0],
  cells: (item: Item) => readonly string[],
): string[] {
  if (items.length === 0) return [`${what}: none`];
  const shown = items.length <= maxLines ? items : items.slice(0, Math.max(0, maxLines - 1));
  const rest = items.slice(shown.length);
  const unwell = rest.filter(({ id }) => troubled.has(id)).length;
  const more =
    rest.length === 0 ? [] : [`and ${grouped(rest.length)} more, ${unwell === 0 ? 'all healthy' : `${grouped(unwell)} with problems`}`];
  return [...table(columns, shown.map(cells)), ...more];
}

/** The members of a fleet, and how many shards have no owner. */
function fleetLine({ fleet }: Snapshot): string[] {
  if (!fleet) return [];
  const { members, shards } = fleet;
  const free = shards.filter(({ owner }) => owner === null).length;
  const releases = new Set(members.map(({ release }) => release));
  const mixed = releases.size > 1 ? `, releases ${[...releases].join(' and ')}` : '';
  return [
    `FLEET  ${counted(members.length, 'member')}, ${counted(shards.length, 'shard')}${free === 0 ? '' : `, ${free} without an owner`}${mixed}`,
  ];
}

function journalLine(snapshot: Snapshot): string {
  const { journal, created, now, version } = snapshot;
  const { bytes, maxSize, setAside = 0, head } = journal;
  const limit = maxSize > 0 ? ` of ${size(maxSize)}` : '';
  const aside = setAside > 0 ? ` (${size(setAside)} more reserved)` : '';
  const paused = journal.paused === undefined ? '' : `, PAUSED: ${printable(journal.paused)}`;
  const forecast = journalForecast(snapshot);
  const full = forecast ? `, full in about ${span(forecast.secondsUntilFull)} unless ${forecast.sink} resumes` : '';
  const records = snapshot.sources.reduce((sum, { collected }) => sum + collected, 0);
  const age = span((now - created) / 1e6);
  return `JOURNAL  ${size(bytes - setAside)}${limit} used${aside}, ${counted(records, 'record')} and ${counted(Math.max(0, head - records), 'ledger line')} in ${age}${full}${paused}  waybill ${version}`;
}
