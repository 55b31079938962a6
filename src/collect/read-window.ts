/**
 * Reads a window until the service itself confirms that nothing is missing. This is where the theorem is used:
 *
 *   Fix a query. If the set of matching records only grows, totals are true, and a record keeps its identity, then: when an answer served after
 *   the last page reports a total T equal to the number of distinct records received for that query, every matching record was received.
 *   (The records received are a subset of those that match, and a finite set has no proper subset of its own size.)
 *   An answer that holds one identity twice shows that identities are fewer than records: equality proves nothing then.
 *
 * Nothing is assumed about order, pages, retries or restarts: they make the loop longer, never end it wrongly. Nor about the number that an answer
 * gives its page, or where a pass ends: a record is in U because an answer to the query held it, whichever page that was, and what a pass has missed
 * leaves U smaller than T.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '../errors.ts';
import type { Appended, CollectedPage, CollectJournal } from '../model/journal.ts';
import type { Verdict, Window } from '../model/ledger.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { Handoff } from './handoff.ts';
import type { Answer, Requester } from './requester.ts';
import type { VisibilityCheck } from './visibility.ts';
import { pass } from './read-pages.ts';
import type { PageRefused, Paging } from './page-cursor.ts';
import type { ReferenceRecords } from './reference-record.ts';
import { endsOf, filterSlack, owns, queryOf, recordsMax, recordsOfSecondMax } from './windows.ts';

/** What reading a window needs besides the window. */
export interface Reading {
  readonly sourceId: string;
  readonly requester: Requester;
  readonly paging: Paging;
  readonly journal: Pick<CollectJournal, 'append'>;
  readonly caps: Caps;
  readonly visibility: Pick<VisibilityCheck, 'isHeld' | 'isPlain' | 'admits' | 'candidates' | 'proven'>;
  readonly clock: Clock;
  readonly log: Log;
  /** ms between two passes. */
  readonly pauseMs: number;
  readonly handoff: Pick<Handoff, 'isWanted' | 'offer'>;
  readonly afterAppend: AfterAppend;
}

/** What follows from an append: metrics, what the visibility check learns, and the wait for sinks. */
export type AfterAppend = (page: CollectedPage, appended: Appended) => Promise<void>;

/** The largest total that this source has ever given: a total that equals it may be a cap. */
export interface Caps {
  largest: number;
}

/** A window is proven, a gap, or too much to be proven in one piece: then it is to be halved. Or nothing can be said while suspended. */
export type Outcome = Verdict | Split | { readonly held: true };

interface Split {
  readonly split: true;
  /** What it holds; undefined where the query itself is refused, or not answered in time, and a narrower one is answered. */
  readonly records: number | undefined;
  /** What a person should know. */
  readonly message: string;
}

/** Which windows may be split: any, only one that is too much for the service to answer, or none. */
export type Splitting = 'any' | 'refused' | 'none';

const maxPasses = 6;
/** Without a usable total no pass can prove anything: these are for records that pages hid from each other. */
const passesWithoutTotal = 3;
/** With a place that cannot be read: so many passes that find nothing new show that there is nothing else to find. */
const maxFruitlessPasses = 2;
/** Passes that found something do not count, up to here. */
const maxPassesWithFinds = 40;
/** Below this a total that equals the largest ever given is no sign of a cap. */
const minCap = 100;

/**
 * @param query  the query of the window: a recount asks the stored one, word for word
 * @param splitting  not `any` for a window that is in the ledger already
 */
export async function readWindow(
  reading: Reading,
  window: Window,
  query: WindowQuery,
  splitting: Splitting,
  signal: AbortSignal,
): Promise<Outcome> {
  const mayBeSplit = splitting === 'any';
  const { requester, paging, caps, visibility, clock } = reading;
  const requestsBefore = requester.health.requests;
  // U of the algorithm: uid, and whether the window itself owns the record.
  const seen = new Map<string, boolean>();
  // What earlier rounds received before U began from nothing; a gap tells of all of it.
  const dropped = new Map<string, boolean>();
  let first: Micros | undefined;
  let most = 0;
  let passes = 0;
  let rounds = 0;
  let exceeded = 0;
  let total: number | undefined;
  // mutant: window-count
  let outOfRange = 0;
  // Two records of one answer with one identity: the distinct ones are fewer than the records, and a total of as many proves nothing.
  const shared = new Set<string>();
  // Passes in a row that met an unreadable place and found nothing new.
  let vain = 0;
  const unreadable: string[] = [];
  let unreadableMessage = '';
  let shown: number | undefined;
  let tooMuch: Split | undefined;
  const isTooMuch = async (refused: PageRefused): Promise<boolean> => {
    if (refused.isDeep || (await isForWidth(reading, window, query, refused, signal)))
      tooMuch = { split: true, records: refused.isDeep ? (shown ?? seen.size) : undefined, message: messageOf(refused.thrown) };
    return tooMuch !== undefined;
  };
  const referenceRecords: ReferenceRecords = {};
  const gap = (reason: (Verdict & { proven: false })['reason'], message: string): Verdict => {
    for (const [uid, isOwn] of seen) dropped.set(uid, isOwn);
    const inWindow = inWindowOf(dropped);
    const requests = requester.health.requests - requestsBefore;
    return {
      proven: false,
      reason,
      message,
      query,
      total,
      inWindow: inWindow.length,
      seen: dropped.size,
      digest: digestOf(inWindow),
      passes: rounds,
      requests,
    };
  };
  const store = async (answer: Answer): Promise<void> => {
    // mutant: store-page
    await append(reading, answer, window);
    const inAnswer = new Set<string>();
    for (const { uid, time } of answer.records) {
      if (inAnswer.has(uid)) shared.add(uid);
      // mutant: count-record
      inAnswer.add(uid);
      if (time !== undefined && (time < window.from - filterSlack || time >= window.to + filterSlack)) outOfRange += 1;
      else seen.set(uid, time !== undefined && owns(window, time));
    }
  };

  for (;;) {
    unreadable.length = 0;
    const pages = pass({
      requester,
      paging,
      query,
      pagesMax: Number.MAX_SAFE_INTEGER,
      ahead: (answer) => !reading.handoff.isWanted && visibility.isPlain(answer),
      log: reading.log,
      signal,
      unreadable: (page, thrown, pageSize) => {
        unreadable.push(String(page));
        unreadableMessage = `with pageSize ${pageSize} cannot be read: ${messageOf(thrown)}`;
      },
      ...(splitting !== 'none' && { isTooMuch }),
    });
    for await (const { answer, isFirst, isAhead } of pages) {
      first ??= answer.serverNow;
      // mutant: page-total
      shown = answer.total;
      // Lets the question that was asked ahead leave before this thread is busy with storing.
      await clock.sleep(0, signal);
      if (!(await visibility.admits(answer, signal))) return { held: true };
      await store(answer);
      visibility.candidates(answer.records, window, referenceRecords);
      if (isFirst && answer.total !== undefined && answer.total > recordsMax && mayBeSplit) return splitFor(answer.total);
      if (seen.size > recordsOfSecondMax) return gap('size', `more than ${recordsOfSecondMax} records`);
      // A service that does not filter by time at all would have everything read for each window.
      if (outOfRange > recordsMax) break;
      if (!isAhead) await reading.handoff.offer();
    }
    if (tooMuch) return tooMuch;
    // The pass was read to its end all the same: what the service serves is collected, proven or not.
    if (outOfRange > 0) return gap('out_of_range', `${outOfRange} records of the answers are dated more than 2 s outside the window`);
    if (unreadable.length > 0) {
      // What lies behind such a place was read, but ties in another order each time may hide others behind it: read on while that finds something.
      rounds += 1;
      const requested = seen.size === 0 ? undefined : (await requester.count(query, paging.first, signal)).total;
      vain = seen.size > most ? 0 : vain + 1;
      most = Math.max(most, seen.size);
      total = requested ?? total;
      const isAll = seen.size === 0 || (requested !== undefined && seen.size >= requested - 1);
      if (isAll || vain >= maxFruitlessPasses || rounds >= maxPassesWithFinds)
        return gap('unreadable', `page ${unreadable.slice(0, 5).join(', ')} ${unreadableMessage}`);
      if (visibility.isHeld) return { held: true };
      await clock.sleep(reading.pauseMs, signal);
      continue;
    }
    const counted = await requester.count(query, paging.first, signal);
    // mutant: window-total
    total = counted.total;
    rounds += 1;
    // While suspended nothing is closed: what the service shows now may be less than there is.
    if (visibility.isHeld) return { held: true };
    if (total === seen.size && shared.size > 0)
      return gap('count', `received ${seen.size}, the service counted ${total}${sharedBy(shared)} and count as one here`);
    if (/* mutant: proof */ total === seen.size) {
      if (/* mutant: cap */ !(await mayBeCap(reading, query, total, signal))) {
        const inWindow = inWindowOf(seen);
        const requests = requester.health.requests - requestsBefore;
        const last = counted.serverNow ?? first ?? 0;
        await visibility.proven(referenceRecords);
        return {
          proven: true,
          proof: {
            query,
            total,
            inWindow: inWindow.length,
            digest: digestOf(inWindow),
            passes: rounds,
            requests,
            first: first ?? last,
            last,
          },
        };
      }
      if (mayBeSplit) return splitFor(total);
      return gap('total', `the service counted ${total}, the most it has ever counted: this may be a cap`);
    }
    const grew = seen.size > most;
    most = Math.max(most, seen.size);
    if (total !== undefined && seen.size > total) {
      exceeded += 1;
      // The same in two passes running: not something that vanished, but a total that is capped.
      if (exceeded >= 2 && mayBeSplit) return splitFor(seen.size);
      for (const [uid, isOwn] of seen) dropped.set(uid, isOwn);
      seen.clear();
    } else exceeded = 0;
    if (!grew) passes += 1;
    if (passes >= (total === undefined ? passesWithoutTotal : maxPasses) || rounds >= maxPassesWithFinds) {
      if (total === undefined) return gap('total', 'the service gave no usable total');
      const message = `received ${most}, the service counted ${total}`;
      if (caps.largest >= minCap && total >= caps.largest) return gap('total', message);
      return gap('count', total > most ? message + (await identityCollisions(reading, query, signal)) : message);
    }
    await clock.sleep(reading.pauseMs, signal);
  }
}

async function append({ sourceId, journal, afterAppend }: Reading, answer: Answer, window: Window): Promise<void> {
  const page = { source: sourceId, records: answer.records, received: answer.received, serverNow: answer.serverNow, window };
  await afterAppend(page, await journal.append(page));
}

function splitFor(records: number): Split {
  return { split: true, records, message: `it holds ${records} records or more` };
}

/**
 * Whether a query is refused, or not answered in time, because it is wide: the same page of its first second, or of its last, is answered. Where
 * neither is, halving would lead nowhere. And where a smaller page of the same query is answered in time it is a matter of the page.
 */
async function isForWidth(
  { requester, paging }: Reading,
  window: Window,
  query: WindowQuery,
  { pageSize, isUnanswered }: PageRefused,
  signal: AbortSignal,
): Promise<boolean> {
  const page = paging.first;
  if (isUnanswered && (await requester.isAnswered({ query, page }, signal))) return false;
  const [earliest, latest] = endsOf(window);
  return (
    (await requester.isAnswered({ query: queryOf(earliest), page, pageSize }, signal)) ||
    (await requester.isAnswered({ query: queryOf(latest), page, pageSize }, signal))
  );
}

/**
 * Two records that share everything that identity hangs on count as one, so their window can never be proven. One more pass finds out which
 * they are: the same uid with other content, or twice in one answer. The same text in two answers says nothing, pages may have moved in between:
 * then another pass with pages that end elsewhere has both in one.
 */
async function identityCollisions(reading: Reading, query: WindowQuery, signal: AbortSignal): Promise<string> {
  const { size } = reading.paging;
  const usual = await sharedIn(reading, query, size, signal);
  const isElsewhere = usual.collisions.size === 0 && usual.isRepeated && size > 2;
  const { collisions } = isElsewhere ? await sharedIn(reading, query, size - 1, signal) : usual;
  if (collisions.size === 0) return '';
  return sharedBy(collisions);
}

function sharedBy(collisions: ReadonlySet<string>): string {
  return `; records share the identity ${[...collisions].slice(0, 5).join(', ')}${collisions.size > 5 ? ', …' : ''}`;
}

/** The uids that two records share in one pass with pages of a size; and whether any uid came in two answers with the same text. */
async function sharedIn(
  { requester, paging, log }: Reading,
  query: WindowQuery,
  size: number,
  signal: AbortSignal,
): Promise<{ collisions: Set<string>; isRepeated: boolean }> {
  const texts = new Map<string, string>();
  const collisions = new Set<string>();
  let isRepeated = false;
  const pages = pass({
    // What is granted for these pages says nothing of others.
    ...{ requester, paging: { ...paging, size }, query, log, signal },
    pagesMax: Number.MAX_SAFE_INTEGER,
    ahead: () => false,
    unreadable: () => undefined,
  });
  for await (const { answer } of pages) {
    const here = new Set<string>();
    for (const { uid, text } of answer.records) {
      if (here.has(uid) || (texts.get(uid) ?? text) !== text) collisions.add(uid);
      else if (texts.has(uid)) isRepeated = true;
      here.add(uid);
      texts.set(uid, text);
    }
  }
  return { collisions, isRepeated };
}

/**
 * A total that may be a cap proves nothing. One that is at least as large as any before it is held against the total of everything: in a sound
 * service that is larger, or what the window holds is all there is.
 */
async function mayBeCap(reading: Reading, query: WindowQuery, total: number, signal: AbortSignal): Promise<boolean> {
  const { requester, paging, caps } = reading;
  if (total < minCap || total < caps.largest) return false;
  const unboundedQuery = await requester.count({}, paging.first, signal);
  caps.largest = Math.max(caps.largest, total, unboundedQuery.total ?? 0);
  if (total >= caps.largest) return true;
  // More than was ever given: if that is because a cap was lifted since, the count of the window stood under it still.
  return (await requester.count(query, paging.first, signal)).total !== total;
}

function inWindowOf(seen: ReadonlyMap<string, boolean>): string[] {
  const inWindow: string[] = [];
  for (const [uid, isOwn] of seen) if (isOwn) inWindow.push(uid);
  return inWindow;
}

/** SHA-256 over the uids, 16 bytes each, sorted as bytes. */
function digestOf(uids: readonly string[]): Buffer {
  // One character a byte: the order of such strings is the order of the bytes.
  const sorted = uids.map((uid) => Buffer.from(uid, 'base64url').toString('latin1')).sort();
  return createHash('sha256').update(sorted.join(''), 'latin1').digest();
}
