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
import { wordsOf } from '../errors.ts';
import type { CollectJournal } from '../model/journal.ts';
import type { Verdict, Window } from '../model/ledger.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import type { Answer, Asker } from './ask.ts';
import type { Gate } from './gate.ts';
import { pass } from './pass.ts';
import type { Paging, Refused } from './pass.ts';
import type { Witnesses } from './witness.ts';
import { endsOf, filterSlack, owns, queryOf, recordsMax, recordsOfSecondMax } from './windows.ts';

/** What reading a window needs besides the window. */
export interface Reading {
  readonly sourceId: string;
  readonly asker: Asker;
  readonly paging: Paging;
  readonly journal: Pick<CollectJournal, 'append'>;
  readonly caps: Caps;
  readonly gate: Pick<Gate, 'isHeld' | 'isPlain' | 'admits' | 'candidates' | 'proven'>;
  readonly clock: Clock;
  readonly log: Log;
  /** ms between two passes. */
  readonly pauseMs: number;
  /** Runs tip when it is due; between two pages. */
  readonly between: (signal: AbortSignal) => Promise<void>;
  readonly tipIsDue: () => boolean;
}

/** The largest total that this source has ever given: a total that equals it may be a cap. */
export interface Caps {
  largest: number;
}

/** A window is proven, a gap, or too much to be proven in one piece: then it is to be halved. Or nothing can be said while on hold. */
export type Outcome = Verdict | Split | { readonly held: true };

export interface Split {
  readonly split: true;
  /** What it holds; undefined where the query itself is refused, or not answered in time, and a narrower one is answered. */
  readonly records: number | undefined;
  /** What a person should know. */
  readonly words: string;
}

/** Which windows may be split: any, only one that is too much for the service to answer, or none. */
export type Splitting = 'any' | 'refused' | 'none';

const passesMost = 6;
/** Without a usable total no pass can prove anything: these are for records that pages hid from each other. */
const passesWithoutTotal = 3;
/** With a place that cannot be read: so many passes that find nothing new show that there is nothing else to find. */
const vainMost = 2;
/** Passes that found something do not count, up to here. */
const passesFoundMost = 40;
/** Below this a total that equals the largest ever given is no sign of a cap. */
const capLeast = 100;

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
  const { asker, paging, journal, caps, gate, clock } = reading;
  const requestsBefore = asker.health.requests;
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
  let strangers = 0;
  // Two records of one answer with one identity: the distinct ones are fewer than the records, and a total of as many proves nothing.
  const shared = new Set<string>();
  // Passes in a row that met an unreadable place and found nothing new.
  let vain = 0;
  const unreadable: string[] = [];
  let unreadableWords = '';
  let shown: number | undefined;
  let tooMuch: Split | undefined;
  const isTooMuch = async (refused: Refused): Promise<boolean> => {
    if (refused.isDeep || (await isForWidth(reading, window, query, refused, signal)))
      tooMuch = { split: true, records: refused.isDeep ? (shown ?? seen.size) : undefined, words: wordsOf(refused.thrown) };
    return tooMuch !== undefined;
  };
  const witnesses: Witnesses = {};
  const gap = (reason: (Verdict & { proven: false })['reason'], words: string): Verdict => {
    for (const [uid, isOwn] of seen) dropped.set(uid, isOwn);
    const own = ownOf(dropped);
    const requests = asker.health.requests - requestsBefore;
    return {
      proven: false,
      reason,
      words,
      query,
      total,
      own: own.length,
      seen: dropped.size,
      digest: digestOf(own),
      passes: rounds,
      requests,
    };
  };
  const store = async (answer: Answer): Promise<void> => {
    // mutant: store-page
    await journal.append({
      source: reading.sourceId,
      records: answer.records,
      received: answer.received,
      serverNow: answer.serverNow,
      window,
    });
    const inAnswer = new Set<string>();
    for (const { uid, time } of answer.records) {
      if (inAnswer.has(uid)) shared.add(uid);
      // mutant: count-record
      inAnswer.add(uid);
      if (time !== undefined && (time < window.from - filterSlack || time >= window.until + filterSlack)) strangers += 1;
      else seen.set(uid, time !== undefined && owns(window, time));
    }
  };

  for (;;) {
    unreadable.length = 0;
    const pages = pass({
      asker,
      paging,
      query,
      pagesMax: Number.MAX_SAFE_INTEGER,
      ahead: (answer) => !reading.tipIsDue() && gate.isPlain(answer),
      log: reading.log,
      signal,
      unreadable: (page, thrown, pageSize) => {
        unreadable.push(String(page));
        unreadableWords = `with pageSize ${pageSize} cannot be read: ${wordsOf(thrown)}`;
      },
      ...(splitting !== 'none' && { isTooMuch }),
    });
    for await (const { answer, isFirst, isAhead } of pages) {
      first ??= answer.serverNow;
      // mutant: page-total
      shown = answer.total;
      // Lets the question that was asked ahead leave before this thread is busy with storing.
      await clock.sleep(0, signal);
      if (!(await gate.admits(answer, signal))) return { held: true };
      await store(answer);
      gate.candidates(answer.records, window, witnesses);
      if (isFirst && answer.total !== undefined && answer.total > recordsMax && mayBeSplit) return splitFor(answer.total);
      if (seen.size > recordsOfSecondMax) return gap('size', `more than ${recordsOfSecondMax} records`);
      // A service that does not filter by time at all would have everything read for each window.
      if (strangers > recordsMax) break;
      if (!isAhead) await reading.between(signal);
    }
    if (tooMuch) return tooMuch;
    // The pass was read to its end all the same: what the service serves is collected, proven or not.
    if (strangers > 0) return gap('filter', `${strangers} records of the answers are dated more than 2 s outside the window`);
    if (unreadable.length > 0) {
      // What lies behind such a place was read, but ties in another order each time may hide others behind it: read on while that finds something.
      rounds += 1;
      const wanted = seen.size === 0 ? undefined : (await asker.count(query, paging.first, signal)).total;
      vain = seen.size > most ? 0 : vain + 1;
      most = Math.max(most, seen.size);
      total = wanted ?? total;
      const isAll = seen.size === 0 || (wanted !== undefined && seen.size >= wanted - 1);
      if (isAll || vain >= vainMost || rounds >= passesFoundMost)
        return gap('unreadable', `page ${unreadable.slice(0, 5).join(', ')} ${unreadableWords}`);
      if (gate.isHeld) return { held: true };
      await clock.sleep(reading.pauseMs, signal);
      continue;
    }
    const counted = await asker.count(query, paging.first, signal);
    // mutant: window-total
    total = counted.total;
    rounds += 1;
    // In hold nothing is closed: what the service shows now may be less than there is.
    if (gate.isHeld) return { held: true };
    if (total === seen.size && shared.size > 0)
      return gap('count', `received ${seen.size}, the service counted ${total}${sharedBy(shared)} and count as one here`);
    if (/* mutant: proof */ total === seen.size) {
      if (/* mutant: cap */ !(await mayBeCap(reading, query, total, signal))) {
        const own = ownOf(seen);
        const requests = asker.health.requests - requestsBefore;
        const last = counted.serverNow ?? first ?? 0;
        await gate.proven(witnesses);
        return {
          proven: true,
          proof: { query, total, own: own.length, digest: digestOf(own), passes: rounds, requests, first: first ?? last, last },
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
    if (passes >= (total === undefined ? passesWithoutTotal : passesMost) || rounds >= passesFoundMost) {
      if (total === undefined) return gap('total', 'the service gave no usable total');
      const words = `received ${most}, the service counted ${total}`;
      if (caps.largest >= capLeast && total >= caps.largest) return gap('total', words);
      return gap('count', total > most ? words + (await twinsOf(reading, query, signal)) : words);
    }
    await clock.sleep(reading.pauseMs, signal);
  }
}

function splitFor(records: number): Split {
  return { split: true, records, words: `it holds ${records} records or more` };
}

/**
 * Whether a query is refused, or not answered in time, because it is wide: the same page of its first second, or of its last, is answered. Where
 * neither is, halving would lead nowhere. And where a smaller page of the same query is answered in time it is a matter of the page.
 */
async function isForWidth(
  { asker, paging }: Reading,
  window: Window,
  query: WindowQuery,
  { pageSize, isUnanswered }: Refused,
  signal: AbortSignal,
): Promise<boolean> {
  const page = paging.first;
  if (isUnanswered && (await asker.isAnswered({ query, page }, signal))) return false;
  const [earliest, latest] = endsOf(window);
  return (
    (await asker.isAnswered({ query: queryOf(earliest), page, pageSize }, signal)) ||
    (await asker.isAnswered({ query: queryOf(latest), page, pageSize }, signal))
  );
}

/**
 * Two records that share everything that identity hangs on count as one, so their window can never be proven. One more pass finds out which
 * they are: the same uid with other content, or twice in one answer. The same text in two answers says nothing, pages may have moved in between:
 * then another pass with pages that end elsewhere has both in one.
 */
async function twinsOf(reading: Reading, query: WindowQuery, signal: AbortSignal): Promise<string> {
  const { size } = reading.paging;
  const usual = await sharedIn(reading, query, size, signal);
  const isElsewhere = usual.twins.size === 0 && usual.isRepeated && size > 2;
  const { twins } = isElsewhere ? await sharedIn(reading, query, size - 1, signal) : usual;
  if (twins.size === 0) return '';
  return sharedBy(twins);
}

function sharedBy(twins: ReadonlySet<string>): string {
  return `; records share the identity ${[...twins].slice(0, 5).join(', ')}${twins.size > 5 ? ', …' : ''}`;
}

/** The uids that two records share in one pass with pages of a size; and whether any uid came in two answers with the same text. */
async function sharedIn(
  { asker, paging, log }: Reading,
  query: WindowQuery,
  size: number,
  signal: AbortSignal,
): Promise<{ twins: Set<string>; isRepeated: boolean }> {
  const texts = new Map<string, string>();
  const twins = new Set<string>();
  let isRepeated = false;
  const pages = pass({
    // What is granted for these pages says nothing of others.
    ...{ asker, paging: { ...paging, size }, query, log, signal },
    pagesMax: Number.MAX_SAFE_INTEGER,
    ahead: () => false,
    unreadable: () => undefined,
  });
  for await (const { answer } of pages) {
    const here = new Set<string>();
    for (const { uid, text } of answer.records) {
      if (here.has(uid) || (texts.get(uid) ?? text) !== text) twins.add(uid);
      else if (texts.has(uid)) isRepeated = true;
      here.add(uid);
      texts.set(uid, text);
    }
  }
  return { twins, isRepeated };
}

/**
 * A total that may be a cap proves nothing. One that is at least as large as any before it is held against the total of everything: in a sound
 * service that is larger, or what the window holds is all there is.
 */
async function mayBeCap(reading: Reading, query: WindowQuery, total: number, signal: AbortSignal): Promise<boolean> {
  const { asker, paging, caps } = reading;
  if (total < capLeast || total < caps.largest) return false;
  const everything = await asker.count({}, paging.first, signal);
  caps.largest = Math.max(caps.largest, total, everything.total ?? 0);
  if (total >= caps.largest) return true;
  // More than was ever given: if that is because a cap was lifted since, the count of the window stood under it still.
  return (await asker.count(query, paging.first, signal)).total !== total;
}

function ownOf(seen: ReadonlyMap<string, boolean>): string[] {
  const own: string[] = [];
  for (const [uid, isOwn] of seen) if (isOwn) own.push(uid);
  return own;
}

/** SHA-256 over the uids, 16 bytes each, sorted as bytes. */
function digestOf(uids: readonly string[]): Buffer {
  // One character a byte: the order of such strings is the order of the bytes.
  const sorted = uids.map((uid) => Buffer.from(uid, 'base64url').toString('latin1')).sort();
  return createHash('sha256').update(sorted.join(''), 'latin1').digest();
}
