/**
 * `waybill status` as text: the summary, tables of sources and sinks, the journal, and advice on
 * the most urgent problem. At most 24 lines: rows with problems come first, and rows that do not
 * fit are counted.
 */
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { journalForecast } from './journal-forecast.ts';
import { worst } from './advice.ts';
import { backfillLines } from './backfills.ts';
import { samples, seenWithin } from '../telemetry/delays.ts';
import { bound } from './close-delay-advice.ts';
import { size } from './format-size.ts';
import { isFailing, sinkNeedsAttention } from './sink-health.ts';
import { printable } from '../escape.ts';
import { cut, right, table, wrapped } from './text-table.ts';
import { ago, counted, grouped, span, zoned } from './format-time.ts';
import { completeUntil, serverTime, sourceNeedsAttention, statusSummary } from './status-summary.ts';
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
const adviceMax = 6;
const backfillsMax = 2;
/** The maximum number of lines about waiting sources, and about failing sinks. */
const waitsMax = 2;
const failuresMax = 3;
const notesMax = 3;

export function statusText(snapshot: Snapshot, { color, tz, width }: StatusTextOptions): string {
  const advice = worst(snapshot);
  const head = wrapped(statusSummary(snapshot, tz), width, Infinity, '  ');
  const tail = advice
    ? [
        ...wrapped(advice.what, width, adviceMax - 4, '  '),
        ...wrapped(advice.lost, width, 2, '  '),
        ...wrapped(`To do: ${advice.operation}`, width, 2, '  '),
      ]
    : ['Nothing to do.'];
  // The tables share the lines that the other parts leave; each gets at least half if it needs it.
  const history = backfillLines(snapshot.sources, backfillsMax);
  // These lines are wrapped, not cut: their end is the time.
  const waits = waitLines(snapshot, tz).flatMap((line) => wrapped(line, width, Infinity, '  '));
  const journal = wrapped(journalLine(snapshot), width, 2, '  ');
  const failures = snapshot.sinks.toSorted(byTrouble(sinkTrouble)).filter(hasFailureLine).slice(0, failuresMax);
  const notes = snapshot.sinks.flatMap((sink) => [...replayLine(sink), ...stampLine(sink, snapshot)]).slice(0, notesMax);
  const rest = [head, tail, history, waits, journal, failures, notes].reduce((sum, { length }) => sum + length, 0);
  const rows = linesMax - rest - 6;
  const half = Math.floor(rows / 2);
  const forSources = Math.min(snapshot.sources.length, Math.max(half, rows - snapshot.sinks.length));
  const forSinks = Math.min(snapshot.sinks.length, rows - forSources);
  const sources = sourceLines(snapshot, tz, forSources, width);
  const body = [...sources, ...waits, '', ...sinkLines(snapshot, forSinks, failures), ...notes, '', ...history, ...journal];

  const needsYou = advice !== undefined;
  const painted = (line: string): string => (color ? `\u001b[${needsYou ? '33' : '32'};1m${line}\u001b[0m` : line);
  return [...head.map(painted), '', ...body.map((line) => cut(line, width)), '', ...tail].join('\n');
}

function sourceLines(snapshot: Snapshot, tz: string, maxLines: number, width: number): string[] {
  const measured = snapshot.sources.some(({ delays }) => delays !== undefined && samples(delays) > 0);
  const lines = sourceTable(snapshot, tz, maxLines, measured);
  // The column of delays is omitted if it does not fit.
  return lines.some((line) => line.length > width) && measured ? sourceTable(snapshot, tz, maxLines, false) : lines;
}

function sourceTable(snapshot: Snapshot, tz: string, maxLines: number, measured: boolean): string[] {
  const zone = tz === 'UTC' ? 'Z' : '';
  const columns = [
    ...['SOURCE', 'STATE', tz === 'UTC' ? 'COMPLETE UNTIL' : `COMPLETE UNTIL (${tz})`, 'LAST RESPONSE'],
    ...['RECORDS', 'LATE', 'GAPS'].map(right),
    // Over the last one to two weeks.
    ...(measured ? ['DELAY p50, p99'] : []),
  ];
  return rowsOf('SOURCE', snapshot.sources, sourceTrouble, maxLines, columns, (source) => {
    const now = serverTime(source, snapshot);
    const until = completeUntil(source);
    const complete = until === undefined ? 'not yet' : `${shortTime(until, now, tz)}${zone} (${ago(until, now)})`;
    const answer = source.lastSuccess === undefined ? 'none yet' : ago(source.lastSuccess, snapshot.now);
    const state = snapshot.stopped && source.state === 'active' ? 'stopped' : source.state;
    const cells = [source.id, state, complete, answer, grouped(source.collected), grouped(source.late), gapsText(source)];
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
  return delays === undefined || samples(delays) === 0 ? '-' : [0.5, 0.99].map((share) => bound(seenWithin(delays, share))).join(', ');
}

/** Why the next window cannot be proven yet, and when it can be. */
export function waitLines(snapshot: Snapshot, tz: string): string[] {
  const waiting = snapshot.sources.filter(({ state, clock }) => state === 'active' && clock !== undefined);
  return waiting.slice(0, waitsMax).map((source) => {
    const { id, clock, nextProof } = source;
    const { remainingMs = 0, answersMissing = 0 } = clock ?? {};
    const left = remainingMs > 0 || answersMissing === 0 ? `, at least ${span(remainingMs / 1000)} left` : '';
    const answers = answersMissing === 0 ? '' : `, ${counted(answersMissing, 'more response')} needed`;
    const proof = nextProof === undefined ? '' : `; next window proven ${whenDue(nextProof, serverTime(source, snapshot), tz)}`;
    return `${id} waits: the clock of the service is being measured${left}${answers}${proof}`;
  });
}

function sinkLines(snapshot: Snapshot, maxLines: number, failures: readonly SinkSnapshot[]): string[] {
  const columns = ['SINK', 'TYPE', 'STATE', 'LAG', 'LAST DELIVERY', right('DEAD LETTERS')];
  const lines = rowsOf('SINK', snapshot.sinks, sinkTrouble, maxLines, columns, (sink) => [
    sink.id,
    sink.type,
    sink.attempts === undefined || sink.attempts === 0 ? sink.state : `${sink.state}, ${counted(sink.attempts, 'attempt')}`,
    sink.lagRecords === 0 ? 'nothing' : `${grouped(sink.lagRecords)} (${span(sink.lagSeconds)})`,
    lastDelivery(sink, snapshot),
    grouped(sink.deadLetters),
  ]);
  return [...lines, ...failures.map((sink) => failureLine(sink, snapshot))];
}

/** The progress of a replay that has not ended. */
function replayLine({ id, replay }: SinkSnapshot): string[] {
  if (!replay || replay.state === 'done' || replay.state === 'cancelled') return [];
  const { archive, state, at, passed, expected, sent, skipped = 0, error } = replay;
  // The number of lines is known only while the archive is read.
  const progress =
    state !== 'running'
      ? `${state} after line ${grouped(at)}`
      : expected === 0
        ? 'waits for the first checkpoint of the archive'
        : `${Math.min(100, Math.floor((100 * passed) / expected))} %`;
  const from = archive === undefined ? '' : ` from the archive ${archive}`;
  const failure = error === undefined ? '' : `; last attempt: ${printable(error)}`;
  const absent = skipped === 0 ? '' : `, ${counted(skipped, 'line')} skipped: the archive does not have their segments`;
  return [`${id}: replay${from}, ${progress}, ${counted(sent, 'record')} sent${absent}${failure}`];
}

/** The newest time stamp of an archive. */
function stampLine({ id, timeStamp }: SinkSnapshot, { now }: Snapshot): string[] {
  if (!timeStamp) return [];
  const { newest, lastError } = timeStamp;
  const failure = lastError === undefined ? '' : `; last attempt: ${printable(lastError)}`;
  return [`${id}: ${newest === undefined ? 'no time stamp yet' : `newest time stamp ${ago(newest, now)}`}${failure}`];
}

function lastDelivery({ lastSuccess, hasDelivered }: SinkSnapshot, { now, stopped }: Snapshot): string {
  if (lastSuccess !== undefined) return ago(lastSuccess, now);
  if (!hasDelivered) return 'never';
  return stopped ? 'not known' : 'before this start';
}

/** A single failed attempt is usually a restart of the receiver. */
function hasFailureLine(sink: SinkSnapshot): boolean {
  return sink.lastError !== undefined && sink.state !== 'retired' && ((sink.attempts ?? 0) >= 2 || isFailing(sink));
}

function failureLine({ id, lastError = '', nextAttempt }: SinkSnapshot, { now }: Snapshot): string {
  const next = nextAttempt === undefined || nextAttempt <= now ? '' : ` (next attempt in ${span((nextAttempt - now) / 1e6)})`;
  return `${id}${next}: ${printable(lastError)}`;
}

/**
 * A head and at most `maxLines` lines, problems first; the last line counts omitted rows.
 */
function rowsOf<Item extends { readonly id: string }>(
  what: string,
  items: readonly Item[],
  trouble: (item: Item) => number,
  maxLines: number,
  columns: Parameters<typeof table>[0],
  cells: (item: Item) => readonly string[],
): string[] {
  if (items.length === 0) return [`${what}: none`];
  const sorted = items.toSorted(byTrouble(trouble));
  const shown = sorted.length <= maxLines ? sorted : sorted.slice(0, Math.max(0, maxLines - 1));
  const rest = sorted.slice(shown.length);
  const unwell = rest.filter((item) => trouble(item) > 0).length;
  const more =
    rest.length === 0 ? [] : [`and ${grouped(rest.length)} more, ${unwell === 0 ? 'all healthy' : `${grouped(unwell)} with problems`}`];
  return [...table(columns, shown.map(cells)), ...more];
}

export function sourceTrouble(source: SourceSnapshot): number {
  if (source.state === 'retired') return -1;
  return sourceNeedsAttention(source) ? 2 : source.windows.gap + source.windows.inDoubt > 0 || source.recountsOverdue > 0 ? 1 : 0;
}

export function sinkTrouble(sink: SinkSnapshot): number {
  if (sink.state === 'retired') return -1;
  if (sinkNeedsAttention(sink)) return 2;
  return sink.deadLetters > 0 || !sink.hasDelivered ? 1 : 0;
}

export function byTrouble<Item>(trouble: (item: Item) => number): (a: Item, b: Item) => number {
  return (a, b) => trouble(b) - trouble(a);
}

function journalLine(snapshot: Snapshot): string {
  const { journal, created, now, version } = snapshot;
  const { bytes, maxSize, setAside = 0, head } = journal;
  const limit = maxSize > 0 ? ` of ${size(maxSize)}` : '';
  const aside = setAside > 0 ? ` (${size(setAside)} more reserved)` : '';
  const paused = journal.paused === undefined ? '' : `, PAUSED: ${printable(journal.paused)}`;
  const forecast = journalForecast(snapshot);
  const full = forecast ? `, full in about ${span(forecast.secondsUntilFull)} unless ${forecast.sink} resumes` : '';
  const age = span((now - created) / 1e6);
  return `JOURNAL  ${size(bytes - setAside)}${limit} used${aside}, ${counted(head, 'entry', 'entries')} in ${age}${full}${paused}  waybill ${version}`;
}
