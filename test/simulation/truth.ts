/**
 * The records of a run, drawn before it begins: the time of each, the time from which the service
 * shows it, and its identity, computed a second time as docs/formats.md describes it. The oracle
 * trusts nothing but this list.
 */
import { createHash } from 'node:crypto';
import type { Micros } from '../../src/model/time.ts';
import { Chance } from './chance.ts';
import { firstSource, probability } from './environment.ts';
import type { Environment, HistoryEnvironment } from './environment.ts';

export interface Truth {
  readonly index: number;
  /** The time of the event, µs: the service filters and sorts by it. */
  readonly at: Micros;
  /** `logTimestamp` in µs; undefined if its text cannot be parsed. */
  readonly time: Micros | undefined;
  /** True times at which answers start and stop to include it, µs. */
  visible: Micros;
  gone: Micros;
  /** May become visible before `visible`: while the pages of its window are read. */
  readonly isSurprise: boolean;
  /** Matches every query, regardless of its bounds. */
  readonly always: boolean;
  readonly text: string;
  readonly bytes: Uint8Array;
  /**
   * The record without the field that a permission hides; undefined if it lacks the field by
   * nature.
   */
  readonly poor: Uint8Array | undefined;
  /** 32 hex digits. */
  readonly uid: string;
  readonly result: string | undefined;
}

/** One of the fields that "appear depending on the permissions". */
const hiddenField = 'userLastNameFirstName';
const outcomes = [
  ['Encrypt', 'AccessGranted', 'Success'],
  ['Decrypt', 'AccessGranted', 'Success'],
  ['Decrypt', 'AccessDenied', 'TimeEmbargoFailed'],
  ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess'],
] as const;
const second = 1_000_000;
const maxSafe = 9_007_199_254_740_991n;

/** @param source  its id */
export function drawTruth(environment: Environment, source = firstSource): Truth[] {
  const { records, beginMs, safetyMs, daemon } = environment;
  const chance = new Chance(environment.seed, 'records');
  const begin = beginMs * 1_000;
  const first = begin - daemon.historyMs * 1_000 - 20 * second;
  const end = begin + safetyMs * 1_000;
  const late = probability(records.lateness, 0.05, 0.4);
  const lastAge = (daemon.agesMs.at(-1) ?? 0) * 1_000;
  const bursts = Array.from({ length: 3 }, () => Math.floor(chance.between(begin - daemon.historyMs * 500, end)));
  // A separate stream. Only a window with more records than the cap, closed before faults end, has
  // a cut total.
  const caps = new Chance(environment.seed, 'caps');
  const isCapped = environment.service.total === 'capped' || environment.service.total === 'served';
  if (isCapped && caps.is(0.7)) bursts.fill(Math.floor(caps.between(begin - daemon.historyMs * 500, begin + 10 * second)));
  const truths: Truth[] = [];
  const rights = new Chance(environment.seed, 'fields');
  const nulls = new Chance(environment.seed, 'nulls');
  const usual = rights.pick([0.97, 0.92]);
  const { lead } = environment.service;
  let before: { at: Micros; logId: bigint } | undefined;
  for (let index = 0; index < records.count; index += 1) {
    let at = Math.floor(chance.between(first, end));
    if (chance.is(records.bursts)) at = Math.min(end, chance.pick(bursts as [number]) + Math.floor(chance.distance(2 * second)));
    if (before && chance.is(probability(records.ties, 0.1, 0.5))) at = before.at;
    if (chance.is(probability(records.edges, 0.1, 0.5))) at = Math.floor(at / second) * second;
    let visible = at + Math.floor(chance.distance(1.5 * second));
    if (chance.is(late)) {
      // Within `closeDelay`, by the last recount, or after it.
      visible = at + Math.floor(chance.pick([daemon.closeDelayMs * 1_000, lastAge, lastAge, lastAge * 1.3]) * chance.next());
    }
    // A node with a wrong clock: its records have a wrong time, and become visible when they
    // happen.
    if (chance.is(probability(records.wrongNode, 0.03, 0.2))) {
      visible = Math.max(at, begin - daemon.historyMs * 1_000);
      at += Math.floor(chance.between(-lastAge, 10 * 60 * second));
    }
    if (lead?.isDated && at >= begin + lead.fromMs * 1_000 && at < begin + lead.untilMs * 1_000) {
      visible = Math.max(at, visible);
      at += lead.ms * 1_000;
    }
    const isSurprise = chance.is(probability(records.surprises, 0.05, 0.2));
    if (isSurprise) visible = at + Math.floor(lastAge * 0.9);
    const digits = chance.whole(0, 9);
    // Digits cut from the text are cut from the time too.
    const cut = digits >= 6 ? 1 : 10 ** (6 - digits);
    at = Math.floor(at / cut) * cut;
    const same = before !== undefined && chance.is(probability(records.sameLogId, 0.05, 0.4));
    const logId: bigint = same && before ? before.logId : chance.is(0.05) ? maxSafe + BigInt(2 * index + 2) : BigInt(index + 1);
    const isUnreadable = chance.is(probability(records.unreadable, 0.03, 0.2));
    const [actionAttempted, result, resultReason] = chance.pick(outcomes);
    const logTimestamp = isUnreadable ? `yesterday ${index}` : timestamp(at, digits, chance);
    const isNull = nulls.is(probability(records.nulls, 0.05, 0.4));
    const shownReason = isNull ? null : resultReason;
    const pad = records.padBytes > 0 ? { pad: noise(chance, records.padBytes) } : {};
    const add = (more: object): void => {
      const isObject = !(isUnreadable && chance.is(0.2));
      // The field is usual, and some records lack it by nature.
      const shown = isObject && environment.rights === 'fields' && rights.is(usual) ? { [hiddenField]: 'Doe, John' } : {};
      const optional = isNull ? { payloadId: null, clientVersion: null } : {};
      const rest = {
        actionAttempted,
        result,
        resultReason: shownReason,
        logTimestamp,
        payloadName: `file ${index}`,
        ...optional,
        ...pad,
        ...more,
      };
      const fields = JSON.stringify({ ...rest, ...shown });
      // Only text keeps the digits of a number that a double cannot hold.
      const text = isObject ? `{"logId":${logId},${fields.slice(1)}` : JSON.stringify(`no object ${index}`);
      const parts = [String(logId), identityTime(logTimestamp), actionAttempted, result, shownReason];
      truths.push({
        index: truths.length,
        at,
        time: isUnreadable ? undefined : at,
        visible: Math.max(visible, 0),
        gone: Infinity,
        isSurprise,
        always: isUnreadable && records.unreadableMatches === 'always',
        text,
        bytes: Buffer.from(text, 'utf8'),
        poor: hiddenField in shown ? Buffer.from(`{"logId":${logId},${JSON.stringify(rest).slice(1)}`, 'utf8') : undefined,
        uid: uidOf([source, ...(isObject ? parts : [text])]),
        result: isObject ? result : undefined,
      });
    };
    add({});
    if (records.collisions && !isUnreadable && chance.is(0.05)) add({ payloadName: 'its twin' });
    before = { at, logId };
  }
  const drawn = unique(truths, records.collisions);
  if (environment.history) drawn.push(...drawHistory(environment, environment.history, drawn.length));
  if (records.placeholders) drawn.push(...drawPlaceholders(environment, drawn.length, source));
  return drawn;
}

/** Dates that programs write for "unknown". The program reads times from 1970 to 2254. */
const placeholders = ['0001-01-01T00:00:00', '1970-01-01T00:00:00', '9999-12-31T23:59:59.9999999'] as const;

function drawPlaceholders({ seed, beginMs, safetyMs }: Environment, index: number, source: string): Truth[] {
  const chance = new Chance(seed, 'placeholders');
  return Array.from({ length: chance.whole(1, 3) }, (_, i) => {
    const logTimestamp = chance.pick(placeholders);
    const at = Date.parse(`${logTimestamp.slice(0, 19)}Z`) * 1_000;
    const logId = 5_000_000 + i;
    const [actionAttempted, result, resultReason] = chance.pick(outcomes);
    const text = JSON.stringify({ logId, actionAttempted, result, resultReason, logTimestamp, payloadName: `undated file ${i}` });
    return {
      index: index + i,
      at,
      time: at === 0 ? at : undefined,
      visible: Math.floor((beginMs + chance.between(-60_000, safetyMs)) * 1_000),
      gone: Infinity,
      isSurprise: false,
      always: false,
      text,
      bytes: Buffer.from(text, 'utf8'),
      poor: undefined,
      uid: uidOf([source, String(logId), logTimestamp, actionAttempted, result, resultReason]),
      result,
    };
  });
}

/**
 * Records before the start of the ledger. Most are visible as soon as they happen, some only while
 * history is read.
 */
function drawHistory(environment: Environment, { records, beforeMs }: HistoryEnvironment, index: number): Truth[] {
  const chance = new Chance(environment.seed, 'history');
  const { beginMs, daemon, safetyMs } = environment;
  const start = (beginMs - daemon.historyMs) * 1_000;
  const lastAge = (daemon.agesMs.at(-1) ?? 0) * 1_000;
  let before = start;
  return Array.from({ length: records }, (_, i) => {
    // The times reach 25 s before the requested range, so that padded queries return records outside it.
    let at = Math.floor(chance.between(start - beforeMs * 1_000 - 25 * second, start));
    if (chance.is(0.2)) at = before;
    if (chance.is(0.2)) at = Math.floor(at / second) * second;
    before = at;
    let visible = at + Math.floor(chance.distance(1.5 * second));
    if (chance.is(0.15)) visible = at + Math.floor(chance.between(0, lastAge));
    if (chance.is(0.1)) visible = Math.floor((beginMs + chance.between(0, safetyMs)) * 1_000);
    const [actionAttempted, result, resultReason] = chance.pick(outcomes);
    const logId = 1_000_000 + i;
    const logTimestamp = timestamp(at, 6, chance);
    const text = JSON.stringify({ logId, actionAttempted, result, resultReason, logTimestamp, payloadName: `old file ${i}` });
    return {
      index: index + i,
      at,
      time: at,
      visible,
      gone: Infinity,
      isSurprise: false,
      always: false,
      text,
      bytes: Buffer.from(text, 'utf8'),
      poor: undefined,
      uid: uidOf([firstSource, String(logId), identityTime(logTimestamp), actionAttempted, result, resultReason]),
      result,
    };
  });
}

/** Random draws may collide; only twins may share an identity. */
function unique(truths: readonly Truth[], twins: boolean): Truth[] {
  const uids = new Set<string>();
  return truths
    .filter(({ uid, text }) => {
      const isNew = !uids.has(uid);
      uids.add(uid);
      return isNew || (twins && text.includes('its twin'));
    })
    .map((truth, index) => ({ ...truth, index }));
}

/** `logTimestamp`: UTC without offset, with this many digits; digits after the sixth are random. */
function timestamp(at: Micros, digits: number, chance: Chance): string {
  const seconds = Math.floor(at / second);
  const text = new Date(seconds * 1_000).toISOString().slice(0, 19);
  if (digits === 0) return text;
  const micros = String(at - seconds * second).padStart(6, '0');
  const beyond = digits > 6 ? String(chance.whole(0, 10 ** (digits - 6) - 1)).padStart(digits - 6, '0') : '';
  return `${text}.${(micros + beyond).slice(0, digits)}`;
}

function identityTime(logTimestamp: string): string {
  return logTimestamp.includes('.') ? logTimestamp.replace(/0+$/, '').replace(/\.$/, '') : logTimestamp;
}

function uidOf(parts: readonly (string | null)[]): string {
  const hash = createHash('sha256');
  for (const part of ['waybill/1', ...parts]) {
    const bytes = Buffer.from(part ?? '', 'utf8');
    const length = Buffer.alloc(4, 0xff);
    if (part !== null) length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return hash.digest('hex').slice(0, 32);
}

/** Text that does not compress. */
function noise(chance: Chance, bytes: number): string {
  let text = '';
  while (text.length < bytes) text += Math.floor(chance.next() * 2 ** 48).toString(36);
  return text;
}
