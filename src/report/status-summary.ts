/** The headline of `status` and of the page: the worst first, at most 90 characters, without text of another program. Pure. */
import { cut } from '../record/text.ts';
import { completeUntil } from '../model/ledger.ts';
import { endingWithin, type SinkSnapshot, type Snapshot, type SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { completeness, presentOf, type Completeness } from './completeness.ts';
import { ago, clockTime, counted, grouped } from './format-time.ts';
import { isStuck, isUsed, serverTime, sourceState } from './states.ts';
import { summaryOf, whenDue } from './summary.ts';

const maxLength = 90;
const hour = 3_600 * 1e6;

/** @param tz  IANA name of the time zone */
export function statusSummary(snapshot: Snapshot, tz = 'UTC'): string {
  const heads = headlines(snapshot, tz);
  // This clause is the only sign that a state was lost (docs/operations.md, "State lost").
  const young = snapshot.now - snapshot.created < hour ? [`state created ${ago(snapshot.created, snapshot.now)}`] : [];
  const rejected = snapshot.rejected ? ['configuration rejected'] : [];
  const letters = snapshot.sinks.reduce((sum, sink) => sum + (sink.state === 'retired' ? 0 : sink.deadLetters), 0);
  const proven = statusCompleteness(snapshot)?.shortfalls.reduce((sum, one) => sum + one.deadLetters, 0) ?? 0;
  const where = proven > 0 && proven < letters ? ` (${grouped(proven)} in proven windows)` : '';
  const dead = letters === 0 ? [] : [`${counted(letters, 'dead letter')}${where}`];
  const ending = (snapshot.certificates ?? []).some(({ at }) => at - snapshot.now < endingWithin) ? ['a certificate ends'] : [];
  const replays = snapshot.sinks.some(({ replays = [] }) => replays[0]?.state === 'failed') ? ['a replay fails'] : [];
  const urgent = [...rejected, ...ending, ...replays];
  for (const more of [[...young, ...urgent, ...dead], [...young, ...urgent], urgent, young, rejected, []]) {
    const line = heads.map((head) => [head, ...more].join(', ')).find(({ length }) => length <= maxLength);
    if (line !== undefined) return line;
  }
  return `${cut(heads.at(-1) ?? '', maxLength - 1)}…`;
}

/** The summary of a report on every source, from its start until now; undefined without a source. */
export function statusCompleteness(snapshot: Snapshot): Completeness | undefined {
  const { sources } = snapshot;
  if (sources.length === 0) return undefined;
  const coverage = new Map(sources.flatMap(({ id, coverage: found }) => (found ? [[id, found] as const] : [])));
  return completeness({ ...presentOf(snapshot), now: snapshot.now, from: undefined, to: undefined, coverage });
}

/** The same statement in several lengths, the longest first. */
function headlines(snapshot: Snapshot, tz: string): string[] {
  const { sources, sinks, journal, now, stopped } = snapshot;
  const found = statusCompleteness(snapshot);
  if (!found) return ['NO SOURCE is configured'];
  const polled = sources.filter(isUsed);
  const known = completenessWords(snapshot, found, tz);
  if (polled.length === 0) return followed('NO SOURCE is polled', known);
  if (stopped) return followed(`DAEMON NOT RUNNING since about ${clockTime(stopped.since, now, tz)} (${ago(stopped.since, now)})`, known);
  const rest = restWords(snapshot, found, tz);
  if (journal.paused !== undefined)
    return followed(`COLLECTION PAUSED: the ${/^disk\b/.test(journal.paused) ? 'disk' : 'journal'} is full`, rest);
  const failing = polled.filter((source) => isBad(source, snapshot));
  const stuck = sinks.filter((sink) => isStuck(sink, snapshot));
  if (failing.length + stuck.length === 0) return known;
  return followed(failureWords(failing, stuck, snapshot, tz), rest);
}

function followed(head: string, others: readonly string[]): string[] {
  return [...others.map((words) => `${head}; ${words}`), head];
}

function isBad(source: SourceSnapshot, snapshot: Snapshot): boolean {
  return ['failing', 'suspended'].includes(sourceState(source, snapshot));
}

function failureWords(failing: readonly SourceSnapshot[], stuck: readonly SinkSnapshot[], snapshot: Snapshot, tz: string): string {
  const { sources, sinks, now } = snapshot;
  const since = (at: Micros | undefined): string => (at === undefined ? '' : ` since ${clockTime(at, now, tz)}`);
  const [source, sink] = [failing[0], stuck[0]];
  const isHeld = failing.every((each) => sourceState(each, snapshot) === 'suspended');
  if (source && failing.length + stuck.length === 1)
    return `COLLECTION ${isHeld ? 'SUSPENDED' : 'FAILS'} at ${source.id}${since(isHeld ? source.held?.since : source.failing?.since)}`;
  if (sink && failing.length + stuck.length === 1)
    return `DELIVERY ${sink.state === 'blocked' ? 'BLOCKED' : 'FAILS'} at ${sink.id}${since(sink.failingSince)}`;
  const of = (some: number, all: number, what: string, one: string, many: string): string[] =>
    some === 0 ? [] : [`${grouped(some)} of ${counted(all, what)} ${some === 1 ? one : many}`];
  const [fails, fail] = isHeld ? ['is suspended', 'are suspended'] : ['fails', 'fail'];
  return [
    ...of(failing.length, sources.filter(isUsed).length, 'source', fails, fail),
    ...of(stuck.length, sinks.filter(isUsed).length, 'sink', 'does not deliver', 'do not deliver'),
  ].join(', ');
}

/** How far everything else is complete; of a single source, how far it is complete itself. */
function restWords(snapshot: Snapshot, found: Completeness, tz: string): string[] {
  const sinks = snapshot.sinks.filter((sink) => !isStuck(sink, snapshot));
  const names = new Set(sinks.map(({ id }) => id));
  const healthy =
    snapshot.journal.paused === undefined ? snapshot.sources.filter((source) => isUsed(source) && !isBad(source, snapshot)) : [];
  const sources = healthy.map((source) => ({
    ...source,
    ...(source.coverage && { coverage: { ...source.coverage, sinks: source.coverage.sinks.filter(({ id }) => names.has(id)) } }),
  }));
  const rest = statusCompleteness({ ...snapshot, sources, sinks });
  if (!rest) return untilWords(snapshot.sources.filter(isUsed), found, snapshot, tz);
  const until = slowest(sources);
  const { firstProof } = rest.nothingDue ?? rest.catchingUp ?? {};
  if (firstProof !== undefined) return [`first proof ${whenDue(firstProof, snapshot.now, tz)}`];
  if (!rest.complete || until === undefined) return [`the rest is incomplete: ${shortfall(rest)}`, 'the rest is incomplete'];
  const time = clockTime(until.frontier, serverTime(until, snapshot), tz);
  const isMissing = rest.delivered === false ? ', not all delivered' : '';
  return [`the rest is complete until ${time}${isMissing}`, `the rest is complete${isMissing}`];
}

function untilWords(sources: readonly SourceSnapshot[], found: Completeness, snapshot: Snapshot, tz: string): string[] {
  const until = slowest(sources);
  if (!until) return ['nothing is proven'];
  const { word, at } = reach(until, found);
  return [`${word} ${clockTime(at, serverTime(until, snapshot), tz)}`];
}

/** With an accepted gap, a window in doubt or uncovered time before the frontier, it is no time of completeness. */
function reach({ frontier, closedUntil }: SourceSnapshot, { accepted, inDoubt, uncovered }: Completeness): { word: string; at: Micros } {
  const isComplete = accepted + inDoubt === 0 && uncovered.every(({ from }) => from >= frontier);
  return isComplete ? { word: 'complete until', at: frontier } : { word: 'read until', at: closedUntil };
}

function slowest(sources: readonly SourceSnapshot[]): SourceSnapshot | undefined {
  return sources.filter((source) => completeUntil(source) !== undefined).toSorted((a, b) => a.frontier - b.frontier)[0];
}

/** The summary without errors of a receiver, and how far the slowest source is proven. */
function completenessWords(snapshot: Snapshot, found: Completeness, tz: string): string[] {
  const quiet = { ...found, shortfalls: found.shortfalls.map((one) => ({ ...one, lastError: undefined, loss: undefined })) };
  const long = summaryOf(quiet, tz);
  if (found.nothingDue || found.catchingUp) return [long];
  const at = slowest(snapshot.sources.filter(isUsed));
  const head = `COMPLETE${found.soFar ? ' SO FAR' : ''}`;
  const short = !found.complete
    ? `INCOMPLETE: ${shortfall(found)}`
    : found.delivered === false
      ? `${head}, NOT ALL DELIVERED: ${counted(found.shortfalls.length, 'sink')} behind`
      : found.delivered
        ? long
        : `${head}; no sink answers for ${grouped(found.unanswered.windows)} of ${counted(found.windows, 'window')}`;
  const reached = at && { ...reach(at, found), now: serverTime(at, snapshot) };
  const until = reached ? [`, ${reached.word} ${clockTime(reached.at, reached.now, tz)}`] : [];
  const age = reached && found.complete ? until.map((words) => `${words} (${ago(reached.at, reached.now)})`) : [];
  return [...[...age, ...until, ''].map((words) => `${long}${words}`), ...[...until, ''].map((words) => `${short}${words}`)];
}

function shortfall({ windows, gaps, accepted, inDoubt, unknown, uncovered }: Completeness): string {
  const count = (some: number, one: string): string[] => (some === 0 ? [] : [counted(some, one)]);
  const parts = [
    ...(windows === 0 ? ['nothing is proven'] : []),
    ...[...count(gaps, 'gap'), ...count(accepted, 'accepted gap')],
    ...(inDoubt === 0 ? [] : [`${counted(inDoubt, 'window')} in doubt`]),
    ...(unknown.length === 0 ? [] : [`${counted(unknown.length, 'source')} without a ledger`]),
    ...(uncovered.length === 0 ? [] : [`${counted(uncovered.length, 'range')} not covered`]),
  ];
  return parts.join(', ');
}
