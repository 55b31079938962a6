/** The summary of a period as text: the first line of every report, and `summary` of `ledger --json`. Pure. */
import type { LedgerReportWindows, LedgerTables, LongLedgerReport } from '../model/ledger-report.ts';
import type { Micros } from '../model/time.ts';
import { completeness, type Completeness, type Facts, type Present, type Shortfall } from './completeness.ts';
import { clockTime, counted, grouped, rfc3339, stretchWords, zoned } from './format-time.ts';

/** Further items are counted, not named. */
const maxNamed = 3;

/** The first line of a report. @param tz  IANA name of the time zone */
export function summaryOf(found: Completeness, tz: string): string {
  const head = found.soFar ? 'COMPLETE SO FAR' : 'COMPLETE';
  if (found.nothingDue) {
    const { firstProof, now } = found.nothingDue;
    return `NOTHING DUE YET: first proof ${firstProof === undefined ? 'with its first record' : whenDue(firstProof, now, tz)}`;
  }
  if (found.catchingUp) {
    const { firstProof, now } = found.catchingUp;
    return `CATCHING UP: ${firstProof === undefined ? 'waiting for the first response' : `first proof ${whenDue(firstProof, now, tz)}`}`;
  }
  if (!found.complete) return `INCOMPLETE: ${missing(found, tz).join('; ')}`;
  if (found.delivered) return `${head} AND DELIVERED`;
  const lacking = found.shortfalls.map((one) => shortfallWords(one, found));
  return [
    head,
    ...(lacking.length === 0 ? [] : [`, NOT ALL DELIVERED: ${named(lacking)}`]),
    ...(found.unanswered.windows === 0 ? [] : [`; ${unansweredWords(found, tz)}`]),
  ].join('');
}

/** No sink answers for windows that are before its start or before a change of its selection. */
function unansweredWords({ unanswered: { windows: count, reasons }, windows }: Completeness, tz: string): string {
  const isWhole = count === windows;
  const words = reasons.map(({ source, sink }) => {
    if (!sink) return `no sink receives ${source}`;
    const { at = 0, reason } = sink.since ?? {};
    const why =
      reason === undefined
        ? 'it does not receive this history'
        : `${reason === 'selection' ? 'its filter or sources changed' : 'it starts'} at ${timeWords(at, tz)}`;
    return `${sink.id}: ${isWhole ? 'no window of this period, ' : ''}${why}`;
  });
  const each = named([...new Set(words)]);
  return isWhole ? each : `no sink answers for ${grouped(count)} of ${counted(windows, 'window')} (${each})`;
}

function missing(
  { windows, contradictions, gaps, accepted, inDoubt, unknown, later, uncovered, isOfSeveral }: Completeness,
  tz: string,
): string[] {
  const open = [
    ...(gaps === 0 ? [] : [counted(gaps, 'gap')]),
    ...(accepted === 0 ? [] : [counted(accepted, 'accepted gap')]),
    ...(inDoubt === 0 ? [] : [`${counted(inDoubt, 'window')} in doubt`]),
  ];
  const holes = uncovered.map(
    ({ source, from, to, message }) => `${isOfSeveral ? `${source} ` : ''}${stretchWords(from, to, tz)}, ${message}`,
  );
  return [
    ...contradictions,
    ...(windows === 0 ? ['nothing is proven'] : []),
    ...(open.length === 0 ? [] : [open.join(', ')]),
    ...unknown.map((id) => `nothing is known of ${id}: its ledger has not started`),
    ...later.map(
      ({ id, startsAt }) => `the ledger${isOfSeveral ? ` of ${id}` : ''} starts after this period, at ${timeWords(startsAt, tz)}`,
    ),
    ...(holes.length === 0 ? [] : [`not covered: ${named(holes)}`]),
  ];
}

function timeWords(at: Micros, tz: string): string {
  const { date, time } = zoned(at, tz);
  return `${date} ${time} ${tz}`;
}

function shortfallWords(
  { id, windows, lacking, lost, loss, deadLetters, undated = 0, lastError }: Shortfall,
  { isStopped }: Completeness,
): string {
  const losses = lost === 0 ? [] : [`lost ${grouped(lost)}${loss === undefined ? '' : `: ${loss}`}`];
  const refused = deadLetters === 0 ? [] : [counted(deadLetters, 'dead letter')];
  const reasons = [...losses, ...(lastError === undefined ? [] : [lastError]), ...refused];
  const otherwise = isStopped ? 'the daemon is not running' : 'delivery is in progress';
  const lacks = [
    ...(lacking === 0 ? [] : [`${grouped(lacking)} of ${counted(windows, 'window')}`]),
    ...(undated === 0 ? [] : [`${counted(undated, 'record')} without a readable time`]),
  ];
  const what = lacks.length === 0 ? 'records that are waiting' : lacks.join(' and ');
  // Without a lacking window, the records without a time may all be dead letters, so no other reason is given.
  const why = reasons.length > 0 ? reasons.join('; ') : lacking === 0 && undated > 0 ? '' : otherwise;
  return `${id} lacks ${what}${why === '' ? '' : ` (${why})`}`;
}

function named(items: readonly string[]): string {
  const rest = items.length - maxNamed;
  return rest <= 0 ? items.join('; ') : `${items.slice(0, maxNamed).join('; ')}; and ${grouped(rest)} more`;
}

/** Adds the summary of the period to the tables of a report: the result of `ledger --json`. */
export function assessed(
  { generatedAt, from, to, sources, operations, coverage }: LedgerTables<LedgerReportWindows> & { readonly coverage: Facts['coverage'] },
  period: Pick<Facts, 'now' | 'from' | 'to'>,
  present: Present,
  tz: string,
): { readonly report: LongLedgerReport; readonly found: Completeness } {
  const known = new Map(present.sources.map((source) => [source.id, source]));
  const facts = sources.map(({ id, state }) => known.get(id) ?? { id, state, closeDelaySeconds: 0 });
  const found = completeness({ ...present, ...period, sources: facts, coverage });
  const { complete, delivered, final } = found;
  const summary = summaryOf(found, tz);
  const uncovered = found.uncovered.map((hole) => ({ ...hole, from: rfc3339(hole.from), to: rfc3339(hole.to) }));
  return { report: { summary, complete, delivered, final, uncovered, generatedAt, from, to, sources, operations }, found };
}

/** `about 19:45 UTC`, or `now` when the time has passed. */
export function whenDue(due: Micros, now: Micros, tz: string): string {
  return due <= now ? 'now' : `about ${clockTime(due, now, tz)}`;
}
