/** The sentences of the completeness report, for the terminal and the page. Pure. */
import type { LedgerReportSuspension, LedgerReportOperation, LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import type { LedgerPeriod } from './periods.ts';
import type { LedgerTally } from './tally.ts';
import { counted, grouped, span, stretchWords, zoned } from '../format-time.ts';

/** `2026-11-20 02:45`, with seconds unless they are 0: a window may be a second wide. */
export function local(time: string, tz: string): string {
  const { date, time: clock } = zoned(Date.parse(time) * 1_000, tz);
  return `${date} ${clock.endsWith(':00') ? clock.slice(0, 5) : clock}`;
}

/** The end of a window or period, without its date if that is the date of the start. */
export function endText({ from, to }: { readonly from: string; readonly to: string }, tz: string): string {
  const end = local(to, tz);
  return end.slice(0, 10) === local(from, tz).slice(0, 10) ? end.slice(11) : end;
}

/** A delay in its two largest units: `6 h 12 min`. */
export function delayText(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [large, small, unit, rest] =
    whole < 3_600 ? [60, 1, 'min', 's'] : whole < 86_400 ? [3_600, 60, 'h', 'min'] : [86_400, 3_600, 'd', 'h'];
  const left = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${unit}${left === 0 ? '' : ` ${left} ${rest}`}`;
}

/** The paragraph that an auditor can quote: one source, one period. */
export function quotable(report: LongLedgerReport, source: LongLedgerReportSource, tally: LedgerTally, tz: string): string[] {
  const stretches = source.covered.map(({ from, to }) => stretchOf(from, to, tz));
  return [
    `Source ${source.id}, ${stretches.length === 0 ? 'no time covered' : stretches.join(' and ')}.`,
    `Collected: ${counted(source.collected, 'record')}, each once.`,
    ...overlapSentence(report, [tally], tz),
    ...provenSentence(tally),
    ...holesOf(report, source.id, tz).map((hole) => `Not covered: ${hole}.`),
    ...(tally.all === 0 ? [] : gapSentences(tally, acceptances(report, source), tz)),
    source.late === 0
      ? 'No record was late.'
      : `${counted(source.late, 'record')} ${source.late === 1 ? 'was' : 'were'} late, the longest by ${delayText(source.lateDelays.longestSeconds ?? 0)}.`,
    ...deliveredSentences(source),
    ...(source.sinks.length === 0 || tally.unanswered === 0
      ? []
      : [`For ${counted(tally.unanswered, 'window')} no sink answers: nothing is stated about the delivery of their records.`]),
    ...(source.state === 'suspended' ? ['Collection is suspended: no window is closed at present.'] : []),
  ];
}

/** The numbers of a report count each window whole, also beyond the ends of its period. */
export function overlapSentence(
  { from, to }: Pick<LongLedgerReport, 'from' | 'to'>,
  tallies: readonly Pick<LedgerTally, 'from' | 'to'>[],
  tz: string,
): string[] {
  const starts = tallies.flatMap(({ from: first }) => (first === undefined ? [] : [Date.parse(first)]));
  const ends = tallies.flatMap(({ to: last }) => (last === undefined ? [] : [Date.parse(last)]));
  const [first, last] = [Math.min(...starts), Math.max(...ends)];
  const isOverlapped = (from !== null && first < Date.parse(from)) || (to !== null && last > Date.parse(to));
  if (!isOverlapped) return [];
  return [`Windows that overlap the ends of the period count whole: the numbers are for ${stretchWords(first * 1_000, last * 1_000, tz)}.`];
}

export function crossingSentence(periods: readonly LedgerPeriod[], by: 'day' | 'month', tz: string): string[] {
  const crossing = periods.reduce((sum, period) => sum + period.crossing, 0);
  if (crossing === 0) return [];
  const head = crossing === 1 ? '1 window crosses' : `${grouped(crossing)} windows cross`;
  return [
    `${head} midnight at the end of a ${by} in ${tz}: ${crossing === 1 ? 'it counts' : 'each counts'} for the ${by} in which it starts. In UTC no window with records crosses midnight.`,
  ];
}

export function holesOf({ uncovered }: Pick<LongLedgerReport, 'uncovered'>, id: string, tz: string): string[] {
  return uncovered.filter(({ source }) => source === id).map(({ from, to, message }) => `${stretchOf(from, to, tz)}, ${message}`);
}

function stretchOf(from: string, to: string, tz: string): string {
  return stretchWords(Date.parse(from) * 1_000, Date.parse(to) * 1_000, tz);
}

/** Defines "proven" only if the report contains a proven window. */
function provenSentence({ all, proven }: LedgerTally): string[] {
  if (all === 0) return ['No window is closed in this period, so nothing is proven.'];
  const head =
    proven < all ? `${grouped(proven)} of ${counted(all, 'window')}` : all === 1 ? 'The one window' : `All ${counted(all, 'window')}`;
  return [
    `${head} ${all === 1 || proven === 1 ? 'is' : 'are'} proven.`,
    ...(proven === 0 ? [] : ['Proven means: the service answered the query of the window with as many records as it counted for it.']),
  ];
}

/** The last acceptance of each gap, by the start of its window. */
function acceptances({ operations }: LongLedgerReport, { id }: LongLedgerReportSource): ReadonlyMap<string, LedgerReportOperation> {
  const accepting = operations.filter(({ operation, detail }) => operation === 'gaps accept' && detail['source'] === id);
  return new Map(accepting.map((operation) => [String(operation.detail['from']), operation]));
}

/** `1 gap was accepted by j.doe on 2026-08-14 ("service outage, ticket 4711").` */
function acceptedSentences(accepted: readonly string[], operations: ReadonlyMap<string, LedgerReportOperation>, tz: string): string[] {
  const by = Map.groupBy(accepted, (from) => {
    const operation = operations.get(from);
    if (!operation) return 'an operator';
    const reason = operation.detail['reason'];
    return `${operation.actor ?? 'an operator'} on ${local(operation.at, tz).slice(0, 10)}${reason === undefined ? '' : ` ("${String(reason)}")`}`;
  });
  return [...by].map(
    ([whom, windows]) => `${counted(windows.length, 'gap')} ${windows.length === 1 ? 'was' : 'were'} accepted by ${whom}.`,
  );
}

/** The event, its reason and its message; an end has only the event, because its cause is in the line of the start. */
export function suspensionText({ event, reason, message }: LedgerReportSuspension): [what: string, reason: string, known: string] {
  const what = { active: 'ended', changed: 'changed' }[event] ?? 'started';
  return [`suspension ${what}`, reason ?? '', event === 'active' ? '' : (message ?? '')];
}

function gapSentences(
  { gap, acceptedStarts, inDoubt, shrunk }: LedgerTally,
  operations: ReadonlyMap<string, LedgerReportOperation>,
  tz: string,
): string[] {
  return [
    ...(gap === 0
      ? ['There is no gap.']
      : [
          `${counted(gap, 'gap')} ${gap === 1 ? 'is' : 'are'} open: the counted and received numbers of ${gap === 1 ? 'this window' : 'these windows'} differ.`,
        ]),
    ...acceptedSentences(acceptedStarts, operations, tz),
    ...(inDoubt === 0 ? [] : [`${counted(inDoubt, 'proven window')} ${inDoubt === 1 ? 'is' : 'are'} in doubt: a later count differs.`]),
    ...(shrunk === 0
      ? []
      : [`For ${counted(shrunk, 'proven window')} the service shows fewer records than before: retention, or deletion at the service.`]),
  ];
}

function deliveredSentences({ sinks }: LongLedgerReportSource): string[] {
  if (sinks.length === 0) return [];
  const parts = sinks.map((sink) => {
    const deadLetters = sink.deadLetters === 0 ? '' : ` and ${counted(sink.deadLetters, 'dead letter')}`;
    const lost = sink.lost === 0 ? '' : `, ${counted(sink.lost, 'window')} lost`;
    const missing = sink.windows - sink.complete - sink.lost;
    const under = missing === 0 ? '' : `, ${counted(missing, 'window')} pending`;
    const since = sink.since === null ? '' : `, from ${sink.since} on`;
    const what = sink.records === null ? `the records that match its filter in ${counted(sink.complete, 'window')}` : grouped(sink.records);
    return `${sink.id} ${what}${deadLetters}${lost}${under}${since}`;
  });
  return [`Delivered: ${parts.join('; ')}.`];
}

/** The limits of the proof, each with the numbers that cause it. */
export function unproven(
  report: LongLedgerReport,
  source: LongLedgerReportSource,
  { proven, final, lastRecount }: LedgerTally,
  tz: string,
): string[] {
  const open = proven - final;
  const filtered = source.sinks.filter((sink) => sink.filtered).map(({ id }) => id);
  return [
    'Records that the service never shows to these credentials are unknown to Waybill. If its totals are always wrong, a proof is wrong too.',
    'Records that become visible after the last recount of their window are not found.',
    ...(open === 0
      ? []
      : [
          `${counted(open, 'window')} ${open === 1 ? 'is' : 'are'} proven but not final: recounts are pending${lastRecount === undefined ? '' : `; the next recount of the last of these windows is at ${local(lastRecount, tz)} (${tz})`}.`,
        ]),
    ...holesOf(report, source.id, tz).map((hole) => `Time not covered: ${hole}.`),
    ...(source.lifetime.outside > 0 && report.from === null && report.to === null
      ? [
          `${counted(source.lifetime.outside, 'collected record')} ${source.lifetime.outside === 1 ? 'is' : 'are'} outside the counts of windows: the window is not closed yet, the record was found after the last count, or it has no readable time. Such records are delivered like all others.`,
        ]
      : []),
    ...(filtered.length === 0 ? [] : [`The ledger does not count the records that match the filter of ${filtered.join(', ')}.`]),
    ...(report.operations.some(({ actor }) => actor !== null) ? ['The names of operators are not authenticated.'] : []),
  ];
}

/** The time before which every window is proven or accepted, its age when the report was generated, and the time until which windows were read. */
export function reach({ startsAt, completeUntil, readUntil }: LongLedgerReportSource, tz: string, generatedAt?: string): string {
  if (completeUntil === null) return startsAt === null ? 'not started' : 'nothing is proven yet';
  const at = (time: string): string => `${local(time, tz)} ${tz}`;
  const age = generatedAt === undefined ? '' : ` (${span((Date.parse(generatedAt) - Date.parse(completeUntil)) / 1_000)} before)`;
  const read =
    readUntil === null || readUntil === completeUntil ? '' : `, read until ${at(readUntil)} (the windows between wait for a gap)`;
  return `complete until ${at(completeUntil)}${age}${read}`;
}

/** Why a window may have been counted with more records than are in it. */
export const paddingSentence =
  'The query of a window reaches one second beyond both ends: COUNTED = RECEIVED are for the query. Records in these two seconds belong to the neighbouring windows, so they are not RECORDS IN WINDOW.';

export function capital(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}
