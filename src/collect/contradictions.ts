/**
 * Compares what the service shows without times with what it finds by times. A proof counts the matches of a query with times, so it says
 * nothing about a record that no such query finds: a service may read the times of queries in another zone, ignore their seconds, or hold
 * records that are dated outside of every window. Records from both ends of the unbounded query show that.
 */
import { codeOf } from '../errors/errors.ts';
import type { CollectedRecord } from '../model/journal.ts';
import type { PageRequest } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { Handoff } from './handoff.ts';
import type { Paging } from './page-size.ts';
import { findRecord, secondOf } from './reference-record.ts';
import type { Answer, Requester } from './requester.ts';
import { dayMicros, queryFrom, secondMicros } from './windows.ts';

export interface Looking {
  readonly requester: Pick<Requester, 'ask' | 'count'>;
  readonly paging: Paging;
  readonly log: Log;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Before a record that its own query does not show is looked for again, ms. */
  readonly pauseMs: number;
  readonly handoff: Pick<Handoff, 'offer'>;
}

/** A record that the service showed, and the answer that held it. */
interface Shown {
  readonly record: CollectedRecord;
  readonly answer: Answer;
}

/** A record to look for by its time, and the request that showed it. Holds no part of the answer. */
export interface Sample {
  readonly uid: string;
  readonly time: Micros;
  readonly request: PageRequest;
  /** It is dated far outside of the query that showed it. */
  readonly isStray?: boolean;
}

/** The records at both ends of the unbounded query, and its total. */
export interface Ends {
  readonly total: number | undefined;
  readonly shown: readonly Shown[];
}

const sampleSize = 20;
/** No page after this many records is requested: services limit deep paging. */
const deepest = 5_000;
const minuteMicros = 60 * secondMicros;
const quarterMicros = 15 * minuteMicros;
/** Offsets of time zones, and more: each quarter of an hour up to 14 hours, whole hours first, then halves. */
const shifts: readonly Micros[] = [4, 2, 1].flatMap((step) =>
  Array.from({ length: 56 / step }, (_, i) => (i + 1) * step)
    .filter((quarters) => step === 4 || quarters % (2 * step) !== 0)
    .flatMap((quarters) => [-quarters * quarterMicros, quarters * quarterMicros]),
);

/** All that one look at the service shows, for `check`; empty when nothing contradicts. */
export async function contradictionsNow(
  looking: Looking,
  { closeDelay }: { readonly closeDelay: number },
  signal: AbortSignal,
): Promise<string[]> {
  const ends = await endsOf(looking, signal);
  const now = Math.max(...ends.shown.map(({ answer }) => answer.serverNow));
  const outside = outsideOf(ends, now, (time) => time >= dayMicros);
  const short = outside ? undefined : await notCountedByTime(looking, ends.total, signal);
  const found = [...(outside ? [outsideText(outside)] : []), ...(short ? [shortfallText(short)] : [])];
  for (const sample of samplesOf(ends, now)) {
    const message = await misread(looking, sample, sample.time + closeDelay * 1000 <= now, signal);
    if (message !== undefined) return [...found, message];
  }
  return found;
}

/**
 * Requests the newest records, and the oldest ones unless the total is the known one; one to three requests.
 * @throws what a request throws that cannot be retried, and the signal's reason
 */
export async function endsOf({ requester, paging, handoff }: Looking, signal: AbortSignal, knownTotal?: number): Promise<Ends> {
  const ask = async (page: number | undefined, newestFirst: boolean, pageSize = Math.min(sampleSize, paging.size)): Promise<Answer> => {
    await handoff.offer();
    try {
      return await requester.ask({ query: {}, page, pageSize, ...(newestFirst && { newestFirst }) }, signal);
    } catch (thrown) {
      if (codeOf(thrown) !== 'page_refused' || (!newestFirst && pageSize === paging.size)) throw thrown;
      return ask(page, newestFirst && pageSize < paging.size, paging.size);
    }
  };
  const first = await ask(paging.first, true);
  const { total } = first;
  const answers = [first];
  const isAll = total !== undefined && total <= first.records.length;
  if (isDescending(first)) {
    if (!isAll && (total === undefined || total !== knownTotal)) answers.push(await ask(paging.first, false));
  } else if (total !== undefined && !isAll) {
    // The service does not sort in this order: these are the oldest records.
    const pages = Math.ceil(Math.min(total, deepest) / Math.max(1, first.records.length));
    answers.push(await ask((paging.first ?? 0) + pages - 1, false, first.request.pageSize));
  }
  return { total, shown: answers.flatMap((answer) => answer.records.map((record) => ({ record, answer }))) };
}

function isDescending({ records }: Answer): boolean {
  const times = records.flatMap(({ time }) => time ?? []);
  return times.length > 1 && (times[0] ?? 0) > (times.at(-1) ?? 0);
}

/** Totals of one service that differ. */
export interface Shortfall {
  /** The total of the unbounded query; the smallest of several. */
  readonly all: number;
  /** The total of a query for all times. */
  readonly byTime: number;
}

/**
 * Compares the total of the unbounded query with that of a query for all times, in which no record that a window can hold is missing.
 * @returns undefined unless the second is smaller three times in a row: records come and go meanwhile
 */
export async function notCountedByTime(
  { requester, paging, clock, pauseMs, handoff }: Looking,
  total: number | undefined,
  signal: AbortSignal,
): Promise<Shortfall | undefined> {
  if (paging.hasTotals === false) return undefined;
  let all = total;
  for (let attempt = 1; ; attempt += 1) {
    if (all === undefined) return undefined;
    await handoff.offer();
    const { total: byTime = all } = await requester.count(queryFrom(dayMicros), paging.first, signal);
    // mutant: totals-not-compared
    if (byTime >= all) return undefined;
    if (attempt === 3) return { all, byTime };
    await clock.sleep(pauseMs, signal);
    const { total: again } = await requester.count({}, paging.first, signal);
    all = again === undefined ? undefined : Math.min(all, again);
  }
}

export function shortfallText({ all, byTime }: Shortfall): string {
  return `no query with times counts ${all - byTime} of ${all} records`;
}

/** @returns undefined for a record without a readable time */
export function sampleOf(record: CollectedRecord, request: PageRequest): Sample | undefined {
  const { uid, time } = record;
  return time === undefined ? undefined : { uid, time, request };
}

/** The newest and the oldest record, of those that a window can hold by now. */
export function samplesOf({ shown }: Ends, now: Micros): readonly Sample[] {
  const dated = shown.filter(({ record: { time } }) => time !== undefined && time >= dayMicros && time <= now);
  const sorted = dated.toSorted((a, b) => (a.record.time ?? 0) - (b.record.time ?? 0));
  return [...new Set([sorted.at(-1), sorted[0]])].flatMap((found) => (found && sampleOf(found.record, found.answer.request)) ?? []);
}

/**
 * Looks for a record by its time.
 * @param isSettled  every node of the service shows the record by now
 * @returns how the service contradicts itself; undefined if it does not, or nothing is certain
 */
export async function misread(
  looking: Looking,
  { uid, time, request, isStray = false }: Sample,
  isSettled: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const parts = copyOf(looking);
  const second = secondOf(time);
  const own = await findByTime(looking, { uid, time }, signal);
  const { stray } = own;
  // The other half of its minute must not show it.
  const other = secondOf(time + (time % minuteMicros < minuteMicros / 2 ? 30 : -30) * secondMicros);
  const isOfMinute = (found: Micros = time): boolean => Math.floor(found / minuteMicros) === Math.floor(time / minuteMicros);
  const ofMinute = isOfMinute(stray?.time)
    ? (stray ?? (isStray && own.record && (await findRecord(parts, uid, other, signal)).record))
    : undefined;
  if (ofMinute)
    return `the time filter ignores seconds: a query of one second returns records of its whole minute, such as ${nameOf(ofMinute)}`;
  const wide = stray && `the time filter returns ${nameOf(stray)} for a query of the second ${secondText(time)}`;
  if (own.record !== undefined) return wide;
  if (!own.isWhole) return undefined;
  const minute = Math.floor(time / minuteMicros) * minuteMicros + secondMicros;
  const inMinute = (await findRecord(parts, uid, { from: minute, to: minute + minuteMicros - 2 * secondMicros }, signal, true)).record;
  const elsewhere = inMinute
    ? `the time filter ignores seconds: it finds ${nameOf(inMinute)} only by whole minutes`
    : await otherZone(looking, uid, time, signal);
  // The filter may have become right meanwhile.
  // mutant: right-meanwhile
  if (elsewhere !== undefined) return (await findRecord(parts, uid, second, signal)).record ? wide : elsewhere;
  if (wide !== undefined || !isSettled) return wide;
  // A record that was deleted in the meantime is no contradiction.
  const again = await looking.requester.ask(request, signal);
  const shown = again.records.find((each) => each.uid === uid);
  if (!shown || (await findRecord(parts, uid, second, signal)).record) return undefined;
  return `the time filter does not find ${nameOf(shown)}, at its time or up to 14 h before or after it`;
}

/** @returns the offset of the filter, if it finds the record at another time */
async function otherZone(looking: Looking, uid: string, time: Micros, signal: AbortSignal): Promise<string | undefined> {
  for (const shift of shifts) {
    await looking.handoff.offer();
    const { record } = await findRecord(copyOf(looking), uid, secondOf(time + shift), signal, true);
    // mutant: zone-named
    if (record)
      return `the time filter reads times ${hours(Math.abs(shift))} ${shift < 0 ? 'behind' : 'ahead of'} UTC: it finds ${nameOf(record)} at ${secondText(time + shift)}`;
  }
  return undefined;
}

/** Looks for a record in the query of its second, and once more if the answers do not show it. */
export async function findByTime(
  looking: Looking,
  { uid, time }: Pick<Sample, 'uid' | 'time'>,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<typeof findRecord>>> {
  const find = async (): ReturnType<typeof findRecord> => {
    await looking.handoff.offer();
    return findRecord(copyOf(looking), uid, secondOf(time), signal);
  };
  const own = await find();
  if (own.record !== undefined || !own.isWhole) return own;
  await looking.clock.sleep(looking.pauseMs, signal);
  return find();
}

/** These queries must not change the page size of others. */
function copyOf(looking: Looking): Looking {
  const { first, size } = looking.paging;
  return { ...looking, paging: { first, size } };
}

/**
 * A record that no window will hold: dated before 1970, far in the future, or before the ledger if that is to hold everything.
 * @param covers  true for a time that the ledger covers
 */
export function outsideOf({ shown }: Ends, now: Micros, covers: (time: Micros) => boolean): Shown | undefined {
  return shown.find(({ record }) => {
    const { time } = record;
    return time === undefined ? isOutOfReach(record) : time > now + dayMicros || !covers(time);
  });
}

export function outsideText({ record }: Shown): string {
  return `${nameOf(record)} is outside of every window`;
}

/** `record 4711 of 0001-01-01T00:00:00`. */
function nameOf(record: CollectedRecord): string {
  const { logId, logTimestamp } = valueOf(record) ?? {};
  const isId = typeof logId === 'string' || typeof logId === 'number';
  return `record ${isId ? plain(String(logId)) : 'without logId'} of ${typeof logTimestamp === 'string' ? plain(logTimestamp) : 'an unknown time'}`;
}

/** The characters of identifiers and times; a record may hold any text. */
function plain(text: string): string {
  return text.slice(0, 40).replace(/[^\w.:+-]/g, '?');
}

/** True if the time of a record is a date that no window can hold: Waybill reads those from 1970 to 2254. */
function isOutOfReach(record: CollectedRecord): boolean {
  const text = valueOf(record)?.logTimestamp;
  const year = typeof text === 'string' ? /^([+-]?\d{4,6})-\d\d-\d\d/.exec(text)?.[1] : undefined;
  return year !== undefined && (Number(year) < 1970 || Number(year) >= 2255);
}

function valueOf(record: CollectedRecord): { readonly logId?: unknown; readonly logTimestamp?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(record.text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function hours(us: Micros): string {
  const minutes = us / minuteMicros;
  return [...(minutes < 60 ? [] : [`${Math.floor(minutes / 60)} h`]), ...(minutes % 60 === 0 ? [] : [`${minutes % 60} min`])].join(' ');
}

function secondText(us: Micros): string {
  return new Date(Math.floor(us / 1000)).toISOString().slice(0, 19);
}
