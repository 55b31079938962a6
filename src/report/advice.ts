/** Every problem of a snapshot, the most urgent first: what it is, what is lost, what to do, and the word that `waybill explain` knows. Pure. */
import { completeUntil, type SuspensionReason } from '../model/ledger.ts';
import { endingWithin, unreported, type SinkSnapshot, type Snapshot, type SourceSnapshot } from '../model/snapshot.ts';
import { unreadCommand } from './backfills.ts';
import { isLate, isStuck, isUsed, readUntil, serverTime, sinkState, sourceState } from './states.ts';
import { size } from './format-size.ts';
import { ago, counted, rfc3339, span } from './format-time.ts';
import type { Micros } from '../model/time.ts';

export interface Problem {
  /** The source or sink; undefined for the whole. */
  readonly source?: string;
  readonly sink?: string;
  readonly what: string;
  readonly lost: string;
  readonly operation: string;
  /** A word that `waybill explain` knows. */
  readonly code?: string | undefined;
}

export function problems(snapshot: Snapshot): readonly Problem[] {
  return rules.flatMap((rule) => rule(snapshot) ?? []);
}

/** The sources and sinks with the worst problem first, retired ones last. */
export function worstFirst(snapshot: Snapshot): Snapshot {
  const found = problems(snapshot);
  const rank =
    (kind: 'source' | 'sink') =>
    ({ id, state }: { readonly id: string; readonly state: string }): number => {
      const at = found.findIndex((problem) => problem[kind] === id);
      return /* mutant: worst-first */ at >= 0 ? at : found.length + (state === 'retired' ? 1 : 0);
    };
  const [ofSource, ofSink] = [rank('source'), rank('sink')];
  return {
    ...snapshot,
    sources: snapshot.sources.toSorted((a, b) => ofSource(a) - ofSource(b)),
    sinks: snapshot.sinks.toSorted((a, b) => ofSink(a) - ofSink(b)),
  };
}

export function actOf({ operation, code }: Pick<Problem, 'operation' | 'code'>): string {
  return code === undefined ? operation : `${operation.replace(/\.$/, '')}. More: waybill explain ${code}`;
}

/** A clock that is ahead by this much suspends the source. */
const farBehindSeconds = 3_600;

/** A clock that is ahead by this much is reported; the suspension begins at an hour. */
const aheadSeconds = 300;

const late = 'Nothing is lost while the service keeps its log. Records arrive late.';
const hidden = 'Nothing collected is lost. Records that the service hides or deleted cannot be collected.';
const unproven = 'Nothing is lost: records are collected and delivered, but no window is closed.';

const suspensionLost: Readonly<Record<SuspensionReason, string>> = {
  fields: hidden,
  rows: hidden,
  forbidden: late,
  timestamp: unproven,
  clock: unproven,
  moved: late,
  filter: 'Nothing collected is lost. Records that no query by time finds are not collected.',
};

const suspensionActions: Readonly<Record<SuspensionReason, (id: string) => string>> = {
  fields: (id) => `Restore the rights of the client of ${id}; collection then resumes.`,
  rows: (id) =>
    `Restore the rights of the client of ${id}; collection then resumes. If records were deleted on purpose, accept the loss: waybill gaps accept WINDOW --source ${id} --reason TEXT.`,
  forbidden: (id) => `Restore the right of the client of ${id} to read logs; collection then resumes.`,
  timestamp: (id) =>
    `Ask the operator of the service of ${id} why its records lack a valid logTimestamp; collection resumes with the first valid one.`,
  moved: (id) => `Restore baseUrl and tenantId of ${id}, or run: waybill sources move --source ${id} --reason TEXT.`,
  clock: (id) => `Correct the wrong clock, here or at the service of ${id}; collection then resumes.`,
  filter: (id) => `Ask the operator of the service of ${id} to read startTime and endTime as UTC, to the second; collection then resumes.`,
};

function suspensionText({ held, trouble, lastError }: SourceSnapshot): string {
  if (!held) return `: ${trouble ?? lastError ?? 'the service shows fewer fields or records than before'}`;
  const isReported = trouble === undefined || trouble.startsWith(`suspended (${held.reason})`);
  return ` (${held.reason}): ${held.message}${isReported ? '' : `; ${trouble}`}`;
}

type Rule = (snapshot: Snapshot) => Problem | readonly Problem[] | undefined;
type Of<Item> = (item: Item, snapshot: Snapshot) => Problem;

function eachSource(matches: (source: SourceSnapshot, snapshot: Snapshot) => boolean, problem: Of<SourceSnapshot>): Rule {
  return (snapshot) =>
    snapshot.sources.filter((source) => matches(source, snapshot)).map((source) => ({ source: source.id, ...problem(source, snapshot) }));
}

function eachSink(matches: (sink: SinkSnapshot, snapshot: Snapshot) => boolean, problem: Of<SinkSnapshot>): Rule {
  return (snapshot) =>
    snapshot.sinks.filter((sink) => matches(sink, snapshot)).map((sink) => ({ sink: sink.id, ...problem(sink, snapshot) }));
}

const isActive = ({ state }: { readonly state: string }): boolean => state === 'active';
const isRetired = ({ state }: { readonly state: string }): boolean => state === 'retired';
const isContradicted = ({ contradiction, trouble, state }: SourceSnapshot): boolean =>
  contradiction !== undefined && (trouble ?? contradiction) === contradiction && state !== 'retired' && state !== 'suspended';
const isUnconfigured = ({ state }: { readonly state: string }): boolean => state === 'unconfigured';

const rules: readonly Rule[] = [
  daemonStopped,
  databaseAway,
  shardsUnreported,
  databaseRolledBack,
  collectionPaused,
  configurationRejected,
  eachSource((source, snapshot) => sourceState(source, snapshot) === 'suspended', suspended),
  eachSource(isContradicted, ({ id, contradiction = '' }) => ({
    what: `Source ${id}: ${contradiction}.`,
    lost: 'Nothing else is lost: other records are collected and delivered. The ledger is not complete with this record.',
    operation: `ask the operator of the service of ${id} to correct the time of the record.`,
  })),
  eachSource((source, snapshot) => sourceState(source, snapshot) === 'failing' && !isContradicted(source), sourceFails),
  eachSource(
    (source, snapshot) => sourceState(source, snapshot) === 'waiting' && source.lastSuccess !== undefined && source.trouble !== undefined,
    ({ id, trouble = '' }) => ({
      what: `Source ${id} waits: ${trouble}.`,
      lost: late,
      operation: `waybill check --source ${id}`,
    }),
  ),
  eachSink((sink, snapshot) => isStuck(sink, snapshot) && !waitsForSpace(sink, snapshot), sinkFails),
  eachSource(
    (source) => isActive(source) && (source.clockOffsetSeconds ?? 0) < -farBehindSeconds,
    ({ id, clockOffsetSeconds = 0 }) => ({
      what: `The clock of the service of ${id} is ${span(-clockOffsetSeconds)} behind the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered. Windows are closed late, by the clock of the service.',
      operation: 'Correct the wrong clock, here or at the service.',
      code: 'clock set back',
    }),
  ),
  eachSource(
    (source, snapshot) => sourceState(source, snapshot) === 'catching up' && completeUntil(source) !== undefined,
    (source, snapshot) => ({
      what: `Source ${source.id} is behind: read until ${rfc3339(readUntil(source))} (${ago(readUntil(source), serverTime(source, snapshot))}).`,
      lost: late,
      operation: `no action needed; it catches up. If it does not: waybill check --source ${source.id}`,
      code: 'WaybillProofLate',
    }),
  ),
  endingCertificates,
  eachSource(isUndatedAndQuiet, ({ id, undated }, { now }) => ({
    what: `Responses of ${id} carry no Date, and its newest record is from ${ago(undated?.known ?? 0, now)}.`,
    lost: 'Nothing is lost: windows are closed as soon as a newer record shows the time of the service.',
    operation: 'no action needed; if a gateway removes the Date header, configure it to keep the header.',
  })),
  eachSource(
    (source) => source.windows.gap + source.windows.inDoubt > 0 && !isRetired(source),
    ({ id, windows: { gap, inDoubt } }) => ({
      what: [
        ...(gap === 0 ? [] : [`${counted(gap, 'window')} of ${id} could not be proven.`]),
        ...(inDoubt === 0 ? [] : [`${counted(inDoubt, 'proven window')} of ${id} ${inDoubt === 1 ? 'is' : 'are'} in doubt.`]),
      ].join(' '),
      lost: 'Collected records are delivered; records may be missing. The list shows the next attempt.',
      operation: 'waybill gaps list',
      code: 'a gap',
    }),
  ),
  eachSource(isUnconfigured, ({ id }) => ({
    what: `Source ${id} is not in the configuration and is no longer polled.`,
    lost: 'Collected records are delivered. New records are only at the service.',
    operation: `restore sources.${id} in the configuration, or waybill sources retire --source ${id} if it was removed on purpose`,
    code: 'an unconfigured source',
  })),
  eachSink(isUnconfigured, ({ id }) => ({
    what: `Sink ${id} is not in the configuration; the journal keeps its records.`,
    lost: 'Nothing is lost, but the journal grows until it is full.',
    operation: `waybill sinks retire --sink ${id} if it was removed on purpose; else restore sinks.${id} in the configuration`,
    code: 'an unconfigured sink',
  })),
  sinksLostRecords,
  eachSink(
    ({ state, replays = [] }) => state !== 'retired' && replays[0]?.state === 'failed',
    ({ id, replays: [{ archive = '', error = '', sent = 0 } = {}] = [] }) => ({
      what: `Sink ${id}: the replay from the archive ${archive} failed after ${counted(sent, 'record')}: ${error}.`,
      lost: 'Nothing else is lost: new records are delivered, and the replay continues by itself when the archive can be read.',
      operation:
        `waybill check --sink ${archive}; waybill archive verify --sink ${archive} --key FILE. To go on without lines that the archive has lost: ` +
        `waybill replay --sink ${id} --archive ${archive} --from LINE, behind the lines named above. If the archive is lost: waybill replay cancel --sink ${id}`,
      code: 'replay',
    }),
  ),
  eachSink(
    (sink) => sink.deadLetters > 0 && !isRetired(sink),
    ({ id, deadLetters }) => ({
      what: `Sink ${id} rejected ${counted(deadLetters, 'record')} permanently.`,
      lost: 'Nothing is lost: each record is kept with the message of the receiver.',
      operation: `waybill dead-letters show --all --sink ${id}; then "retry" after fixing the cause, or "discard"`,
      code: 'a dead letter',
    }),
  ),
  eachSource(
    (source) => isActive(source) && source.unread !== undefined,
    ({ id, unread = { from: 0, to: 0, startsAt: 0 } }) => ({
      what: `Source ${id}: start is before ${rfc3339(unread.startsAt)}, where its ledger starts.`,
      lost: 'Earlier records are not collected; the service keeps them until its retention ends.',
      operation: unreadCommand(id, unread),
      code: 'history',
    }),
  ),
  eachSource(
    (source) => isActive(source) && (source.clockOffsetSeconds ?? 0) > aheadSeconds,
    ({ id, clockOffsetSeconds = 0 }) => ({
      what: `The clock of the service of ${id} is ${span(clockOffsetSeconds)} ahead of the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered. Windows are closed by the slower clock.',
      operation: 'Correct the wrong clock, here or at the service.',
      code: 'clock set back',
    }),
  ),
  eachSource(
    (source) => isActive(source) && source.uncalibrated !== undefined,
    ({ id, uncalibrated = '' }) => ({
      what: `The calibration of ${id} fails: ${uncalibrated}.`,
      lost: 'Nothing is lost: collection continues with the previous calibration.',
      operation: `it is repeated at least every hour; if it keeps failing: waybill check --source ${id}`,
    }),
  ),
  eachSource(
    // Of a source that fails or is paused, recounts are late for that reason.
    (source, snapshot) => source.recountsOverdue > 0 && ['active', 'catching up'].includes(sourceState(source, snapshot)),
    ({ id, recountsOverdue }) => ({
      what: `${counted(recountsOverdue, 'recount')} of ${id} overdue.`,
      lost: 'Nothing is lost: late records are found later.',
      operation: `if this persists, raise sources[].requests.perSecond of ${id}.`,
    }),
  ),
];

function daemonStopped({ stopped, now }: Snapshot): Problem | undefined {
  return (
    stopped && {
      what: `No daemon runs; the state was last written ${ago(stopped.since, now)}.`,
      lost: 'Nothing is lost while the service keeps its log. The daemon collects it after the next start.',
      operation: 'start it (waybill run, or your service manager); the end of its log shows why it ended.',
    }
  );
}

function databaseAway({ fleet }: Snapshot): Problem | undefined {
  if (fleet?.unreachable === undefined) return undefined;
  return {
    what: `This shows the last known status: ${fleet.unreachable}.`,
    lost: 'Nothing is lost while the service keeps its log. Collection waits; delivery ends with the leases.',
    operation: 'restore the database, or the way to it; the members then continue.',
    code: 'database_unreachable',
  };
}

function shardsUnreported({ fleet, stopped }: Snapshot): Problem | undefined {
  const found = fleet && !stopped && fleet.unreachable === undefined ? unreported(fleet) : [];
  if (found.length === 0) return undefined;
  return {
    what: `No member reports on ${found.length === 1 ? 'shard' : 'shards'} ${found.join(', ')}.`,
    lost: 'Nothing is lost while the service keeps its log. The sources of these shards wait for a member.',
    operation: 'no action in the first minute; then the log of the members names the cause (shard.failed).',
  };
}

const rollbacksNamed = 4;

/** At most two problems: roll-backs that lost commits, and repaired roll-backs. */
function databaseRolledBack({ fleet }: Snapshot): Problem[] {
  return [false, true].flatMap((isRepaired) => {
    const found = fleet?.rollbacks.filter(({ repaired }) => repaired === isRepaired) ?? [];
    if (found.length === 0) return [];
    const named = found
      .slice(0, rollbacksNamed)
      .map(({ shard, first, last, at }) => `shard ${shard}, commits ${first} to ${last}, ${rfc3339(at)}`);
    const others = found.length - named.length;
    const rows = isRepaired ? ', and their owners wrote their rows again' : ', and no owner could write them again';
    return {
      what: `The database lost commits${rows}: ${named.join('; ')}${others === 0 ? '' : `; and ${counted(others, 'more roll-back')}`}.`,
      lost: isRepaired
        ? 'Nothing is lost: state and sinks agree.'
        : 'What sinks received is safe. The records of these commits are collected again: a sink may get them twice, or is blocked.',
      operation: `${isRepaired ? '' : 'repair the sinks that are blocked; '}let commits wait for a standby (synchronous_standby_names), so that a fail-over loses none.`,
      code: 'database_rolled_back',
    };
  });
}

function collectionPaused({ journal, sinks }: Snapshot): Problem | undefined {
  if (journal.paused === undefined) return undefined;
  return isDiskFull(journal) ? diskIsFull(journal) : journalIsFull(journal, sinks);
}

function isDiskFull({ paused = '' }: Snapshot['journal']): boolean {
  return /^disk\b/.test(paused);
}

/** True for a sink whose acknowledgements cannot be stored on the full disk, which is a problem of its own. */
function waitsForSpace({ lastCode }: SinkSnapshot, { journal }: Snapshot): boolean {
  return isDiskFull(journal) && lastCode === 'journal_full';
}

function configurationRejected({ rejected, now }: Snapshot): Problem | undefined {
  if (!rejected) return undefined;
  const { since, problems: found } = rejected;
  return {
    what: `The configuration on disk is rejected for ${span((now - since) / 1e6)} (since ${rfc3339(since)}), ${counted(found.length, 'problem')}: ${found[0] ?? ''}.`,
    lost: 'Nothing is lost: the daemon runs with the configuration before it. The next start would fail.',
    operation: 'correct the file; waybill check --offline lists every problem.',
    code: 'reload',
  };
}

function endingCertificates({ certificates = [], now }: Snapshot): Problem[] {
  return certificates
    .filter(({ at }) => at - now < endingWithin)
    .map(({ target, at }) => ({
      what: `The certificate of ${target} ${at <= now ? 'has ended' : `ends in ${span((at - now) / 1e6)}`} (${rfc3339(at)}).`,
      lost: 'Nothing is lost. After its end connections fail, and records are late.',
      operation: `renew the certificate of ${target}; Waybill reads its own files again by itself.`,
      code: 'certificate.ending',
    }));
}

function diskIsFull({ directory }: Snapshot['journal']): Problem {
  return {
    what: `The disk is full: cannot write to ${directory}.`,
    lost: 'Nothing is lost while the service keeps its log. Collection and delivery wait.',
    operation: `free space on the disk of ${directory}; collection and delivery then resume.`,
    code: 'disk full',
  };
}

function journalIsFull({ directory, bytes, maxSize }: Snapshot['journal'], sinks: Snapshot['sinks']): Problem {
  const [last] = sinks
    .filter(({ state, lagEntries }) => state !== 'retired' && lagEntries > 0)
    .toSorted((a, b) => b.lagEntries - a.lagEntries);
  const fix = last === undefined ? '' : `fix sink ${last.id}, which lags most, or `;
  return {
    what: `Collection is paused: the journal in ${directory} uses ${size(bytes)} of journal.maxSize ${size(maxSize)}.`,
    lost: 'Nothing is lost while the service keeps its log. Delivery continues.',
    operation: `${fix}raise journal.maxSize; collection resumes below 90 % of it.`,
    code: 'journal_full',
  };
}

function suspended(source: SourceSnapshot): Problem {
  const reason = source.held?.reason ?? 'rows';
  return {
    what: `Source ${source.id} is suspended${suspensionText(source)}.`,
    lost: suspensionLost[reason],
    operation: suspensionActions[reason](source.id),
    code: 'suspended',
  };
}

function sourceFails({ id, trouble = '', lastError, failing }: SourceSnapshot, snapshot: Snapshot): Problem {
  const { code, message = trouble, since, nextAttempt } = failing ?? {};
  const more = lastError === undefined || [message, trouble].some((text) => text.includes(lastError)) ? '' : ` (${lastError})`;
  return {
    what: `Source ${id} ${since === undefined ? 'fails' : `has failed for ${lasting(since, snapshot)}`}: ${message}${more}.${nextWords(nextAttempt, snapshot)}`,
    lost: late,
    operation:
      sourceActs[code ?? '']?.(id) ??
      unreachedAct(message, 'restore the service or the way to it', `waybill check --source ${id} tests every step`) ??
      settingAct(settingOf(message), snapshot) ??
      `waybill check --source ${id}`,
    code,
  };
}

function sinkFails(sink: SinkSnapshot, snapshot: Snapshot): Problem {
  const { id, trouble, lastError, lastCode, hasDelivered, attempts = 0, failingSince, nextAttempt } = sink;
  const message = lastError ?? trouble ?? 'the first attempt is still running';
  const isBlocked = sinkState(sink, snapshot) === 'blocked';
  const last = failingSince === undefined ? undefined : lasting(failingSince, snapshot);
  const word = last === undefined ? (isBlocked ? 'is blocked' : 'fails') : `has ${isBlocked ? 'been blocked' : 'failed'} for ${last}`;
  const tries = attempts === 0 ? '' : ` (${counted(attempts, 'attempt')})`;
  const retry = `at once after a repair: waybill sinks retry --sink ${id}`;
  return {
    what: `Sink ${id} ${isBlocked || hasDelivered ? word : 'has never delivered'}${tries}: ${message}.${nextWords(nextAttempt, snapshot)}`,
    lost: `Nothing is lost until the journal is full: it keeps what ${id} has not accepted.`,
    operation: /\bENOSPC\b/.test(message)
      ? `free space there; ${id} then resumes`
      : (unreachedAct(message, 'start the receiver or restore the way to it', retry) ??
        settingAct(settingOf(message) ?? (isBlocked ? refusedSecret(id, message, snapshot) : undefined), snapshot) ??
        `waybill check --sink ${id}; ${retry}`),
    code: lastCode ?? (isBlocked ? 'sink_blocked' : 'sink_unavailable'),
  };
}

/** Acts on failures that no single setting explains, by error code. */
const sourceActs: Readonly<Record<string, (id: string) => string>> = {
  source_busy: () => 'nothing here; attempts continue. If it lasts, ask the operator of the service, or lower requests.perSecond',
  source_forbidden: (id) => `give the client of ${id} the right to read logs at the service; attempts continue`,
  proxy_refused: () => 'correct proxy.url and its credentials, or proxy.noProxy',
};

/** The setting that a message names: `…; see sources.production.auth.clientSecret`. */
function settingOf(message: string): string | undefined {
  return /\bsee ((?:sources|sinks|proxy)\.[\w.-]*\w)/.exec(message)?.[1];
}

/** Without a connection the other side may be down, or its address wrong. */
function unreachedAct(message: string, repair: string, then: string): string | undefined {
  const setting = settingOf(message);
  return setting !== undefined && message.includes('cannot reach') ? `${repair}, or correct ${setting}; ${then}` : undefined;
}

/** The only secret of a sink whose receiver refuses the credentials. */
function refusedSecret(id: string, message: string, { secrets = {} }: Snapshot): string | undefined {
  const [setting, ...others] = Object.keys(secrets).filter((name) => name.startsWith(`sinks.${id}.`));
  return others.length === 0 && /\b(401|403)\b|\b(token|password|api key)\b/i.test(message) ? setting : undefined;
}

function settingAct(setting: string | undefined, { secrets = {} }: Snapshot): string | undefined {
  if (setting === undefined) return undefined;
  const from = secrets[setting];
  if (from === undefined) return `correct ${setting} in the configuration; the daemon reads it within seconds`;
  const [, file] = /^\$\{file:([^}]+)\}$/.exec(from) ?? [];
  if (file === undefined) return `put a valid value into ${setting}, which comes from ${from}; a variable needs a restart`;
  return `put a valid secret into ${file} (${setting}); the daemon reads it within a minute`;
}

function lasting(since: Micros, { now }: Snapshot): string {
  return span((now - since) / 1e6);
}

function nextWords(nextAttempt: Micros | undefined, { now }: Snapshot): string {
  return nextAttempt === undefined || nextAttempt <= now ? '' : ` Next attempt in ${span((nextAttempt - now) / 1e6)}.`;
}

function isUndatedAndQuiet(source: SourceSnapshot, snapshot: Snapshot): boolean {
  const newest = source.undated?.known;
  return isActive(source) && newest !== undefined && isLate(source, newest, snapshot);
}

function sinksLostRecords({ sources }: Snapshot): Problem[] {
  const losing = sources
    .filter(isUsed)
    .flatMap(({ coverage }) => coverage?.sinks ?? [])
    .filter(({ lost }) => lost > 0);
  return [...new Set(losing.map(({ id }) => id))].map((id) => {
    // A sink has a loss for each source; one replay covers all of them.
    const own = losing.filter((each) => each.id === id);
    const ranges = own.flatMap((each) => each.lostEntries ?? []);
    const first = Math.min(...ranges.map((range) => range.first));
    const last = Math.max(...ranges.map((range) => range.last));
    return {
      sink: id,
      what: `Sink ${id} lost delivered records: ${own[0]?.loss ?? 'its receiver no longer has them'}.`,
      lost: 'Nothing is lost that the journal still holds: a replay sends it again.',
      operation: `waybill replay --sink ${id} --from ${first} --to ${last}; after the replay these records count as delivered`,
      code: 'a position that does not fit',
    };
  });
}
