/**
 * `waybill status` for people: the verdict, then sources, sinks and the journal in tables that line up, then what to do about the worst
 * trouble. Never more than 24 lines: what has trouble stands first, what does not fit is counted.
 */
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model.ts';
import { worst } from '../observe/advice.ts';
import { backfillLines } from '../observe/backfill-words.ts';
import { bound, samples, seenWithin } from '../observe/delays.ts';
import { size } from '../observe/size-words.ts';
import { cut, printable, table, wrapped } from '../observe/table.ts';
import { ago, counted, grouped, span, zoned } from '../observe/time-words.ts';
import { begun, serverTime, sinkNeedsYou, sourceNeedsYou, verdict } from '../observe/verdict.ts';

export interface StatusTextOptions {
  /** Only when asked: the one who calls knows the terminal and NO_COLOR. */
  readonly color: boolean;
  /** IANA name of the zone of all times. */
  readonly tz: string;
  /** Columns of the terminal. */
  readonly width: number;
}

const linesMax = 24;
const adviceMax = 6;
const backfillsMax = 2;

export function statusText(snapshot: Snapshot, { color, tz, width }: StatusTextOptions): string {
  const advice = worst(snapshot);
  const head = wrapped(verdict(snapshot, tz), width, 3, '  ');
  const tail = advice
    ? [
        ...wrapped(advice.what, width, adviceMax - 4, '  '),
        ...wrapped(advice.lost, width, 2, '  '),
        ...wrapped(`To do: ${advice.act}`, width, 2, '  '),
      ]
    : ['Nothing to do.'];
  // Verdict, blank, sources, blank, sinks, blank, journal, blank, advice: rows get what the rest leaves, each kind at least half if it needs it.
  const history = backfillLines(snapshot.sources, backfillsMax);
  const rows = linesMax - head.length - tail.length - history.length - 7;
  const half = Math.floor(rows / 2);
  const forSources = Math.min(snapshot.sources.length, Math.max(half, rows - snapshot.sinks.length));
  const forSinks = Math.min(snapshot.sinks.length, rows - forSources);
  const body = [...sourceLines(snapshot, tz, forSources), '', ...sinkLines(snapshot, forSinks), '', ...history, journalLine(snapshot)];

  const needsYou = advice !== undefined;
  const painted = (line: string): string => (color ? `\u001b[${needsYou ? '33' : '32'};1m${line}\u001b[0m` : line);
  return [...head.map(painted), '', ...body.map((line) => cut(line, width)), '', ...tail].join('\n');
}

function sourceLines(snapshot: Snapshot, tz: string, room: number): string[] {
  const zone = tz === 'UTC' ? 'Z' : '';
  const measured = snapshot.sources.some(({ delays }) => delays !== undefined && samples(delays) > 0);
  const columns = [
    { head: 'SOURCE' },
    { head: 'MODE' },
    { head: tz === 'UTC' ? 'WHOLE UP TO' : `WHOLE UP TO (${tz})` },
    { head: 'ANSWERED' },
    ...(['RECORDS', 'LATE', 'GAPS'] as const).map((name) => ({ head: name, align: 'right' as const })),
    // The half, and all but one in a hundred, of the last one to two weeks.
    ...(measured ? [{ head: 'SEEN IN (50, 99 %)' }] : []),
  ];
  return rowsOf('SOURCE', snapshot.sources, sourceTrouble, room, columns, (source) => {
    const now = serverTime(source, snapshot);
    const { date, time } = zoned(source.frontier, tz);
    const day = date === zoned(now, tz).date ? '' : `${date} `;
    const frontier = begun(source) ? `${day}${time.slice(0, 5)}${zone} (${ago(source.frontier, now)})` : 'not yet';
    const answer = source.lastSuccess === undefined ? 'none yet' : ago(source.lastSuccess, snapshot.now);
    const cells = [source.id, source.mode, frontier, answer, grouped(source.collected), grouped(source.late), grouped(source.gaps)];
    return measured ? [...cells, seen(source)] : cells;
  });
}

function seen({ delays }: SourceSnapshot): string {
  return delays === undefined || samples(delays) === 0 ? '-' : [0.5, 0.99].map((share) => bound(seenWithin(delays, share))).join(', ');
}

function sinkLines(snapshot: Snapshot, room: number): string[] {
  const columns = [
    { head: 'SINK' },
    { head: 'TYPE' },
    { head: 'STATE' },
    { head: 'BEHIND' },
    { head: 'LAST TAKEN' },
    { head: 'DEAD LETTERS', align: 'right' as const },
  ];
  return rowsOf('SINK', snapshot.sinks, sinkTrouble, room, columns, (sink) => [
    sink.id,
    sink.type,
    sink.tries === undefined || sink.tries === 0 ? sink.state : `${sink.state}, ${counted(sink.tries, 'try', 'tries')}`,
    sink.lagRecords === 0 ? 'nothing' : `${grouped(sink.lagRecords)} (${span(sink.lagSeconds)})`,
    sink.lastSuccess === undefined ? 'none yet' : ago(sink.lastSuccess, snapshot.now),
    grouped(sink.deadLetters),
  ]);
}

/** A head and at most `room` lines below it, those with trouble first; the last one counts what is left out. */
function rowsOf<Item extends { readonly id: string }>(
  what: string,
  items: readonly Item[],
  trouble: (item: Item) => number,
  room: number,
  columns: Parameters<typeof table>[0],
  cells: (item: Item) => readonly string[],
): string[] {
  if (items.length === 0) return [`${what}: none`];
  const sorted = items.toSorted((a, b) => trouble(b) - trouble(a));
  const shown = sorted.length <= room ? sorted : sorted.slice(0, Math.max(0, room - 1));
  const rest = sorted.slice(shown.length);
  const unwell = rest.filter((item) => trouble(item) > 0).length;
  const more =
    rest.length === 0 ? [] : [`and ${grouped(rest.length)} more, ${unwell === 0 ? 'all well' : `${grouped(unwell)} of them with trouble`}`];
  return [...table(columns, shown.map(cells)), ...more];
}

function sourceTrouble(source: SourceSnapshot): number {
  if (source.mode === 'retired') return -1;
  return sourceNeedsYou(source) ? 2 : source.gaps > 0 || source.recountsOverdue > 0 ? 1 : 0;
}

function sinkTrouble(sink: SinkSnapshot): number {
  if (sink.state === 'retired') return -1;
  return sinkNeedsYou(sink) ? 2 : sink.deadLetters > 0 ? 1 : 0;
}

function journalLine({ journal, created, now, version }: Snapshot): string {
  const share = journal.quota > 0 ? ` (${((100 * journal.bytes) / journal.quota).toFixed(1)} %)` : '';
  const paused = journal.paused === undefined ? '' : `, PAUSED: ${printable(journal.paused)}`;
  return `JOURNAL  ${size(journal.bytes)} of ${size(journal.quota)}${share}, ${counted(journal.head, 'entry', 'entries')} since ${ago(created, now)}${paused}  waybill ${version}`;
}
