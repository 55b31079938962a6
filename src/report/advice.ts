/**
 * The most urgent problem of a snapshot, with its consequence and the action. `rules` lists the
 * problems, the most urgent first.
 */
import type { SuspensionReason } from '../model/ledger.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import { unreadCommand } from './backfills.ts';
import { isFailing, replayFails } from './sink-health.ts';
import { size } from './format-size.ts';
import { ago, counted, rfc3339, span } from './format-time.ts';
import { isLate } from './status-summary.ts';

interface Advice {
  readonly what: string;
  readonly lost: string;
  readonly operation: string;
}

/** A clock that is ahead by this much suspends the source. */
const farBehindSeconds = 3_600;

/** Reported long before the suspension. */
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
};

const suspensionActions: Readonly<Record<SuspensionReason, (id: string) => string>> = {
  fields: (id) => `Restore the rights of the client of ${id}; collection then resumes.`,
  rows: (id) =>
    `Restore the rights of the client of ${id}; collection then resumes. If records were deleted on purpose, accept the loss: waybill gaps accept WINDOW --source ${id} --reason TEXT.`,
  forbidden: (id) => `Restore the right of the client of ${id} to read logs; collection then resumes.`,
  timestamp: (id) =>
    `Ask the operator of the service of ${id} why its records lack a valid logTimestamp; collection resumes with the first valid one.`,
  clock: (id) => `Correct the wrong clock, here or at the service of ${id}; collection then resumes.`,
};

function suspensionText({ held, trouble, lastError }: SourceSnapshot): string {
  if (!held) return `: ${trouble ?? lastError ?? 'the service shows fewer fields or records than before'}`;
  const isReported = trouble === undefined || trouble.startsWith(`suspended (${held.reason})`);
  return ` (${held.reason}): ${held.message}${isReported ? '' : `; ${trouble}`}`;
}

/** The last failure, unless `trouble` already names it. */
function lastErrorText({ trouble = '', lastError }: SourceSnapshot): string {
  return lastError === undefined || trouble.includes(lastError) ? '' : ` (${lastError})`;
}

/** Undefined if the snapshot does not have this problem. */
type Rule = (snapshot: Snapshot) => Advice | undefined;

/** A rule for the first source, or sink, that matches. */
function firstSource(matches: (source: SourceSnapshot, snapshot: Snapshot) => boolean, advice: (source: SourceSnapshot) => Advice): Rule {
  return (snapshot) => {
    const found = snapshot.sources.find((source) => matches(source, snapshot));
    return found && advice(found);
  };
}

function firstSink(matches: (sink: SinkSnapshot) => boolean, advice: (sink: SinkSnapshot) => Advice): Rule {
  return ({ sinks }) => {
    const found = sinks.find(matches);
    return found && advice(found);
  };
}

const isActive = ({ state }: { readonly state: string }): boolean => state === 'active';
const isRetired = ({ state }: { readonly state: string }): boolean => state === 'retired';
const isUnconfigured = ({ state }: { readonly state: string }): boolean => state === 'unconfigured';

const rules: readonly Rule[] = [
  daemonStopped,
  collectionPaused,
  firstSource(({ state }) => state === 'suspended', suspended),
  firstSource(
    (source) => isActive(source) && source.trouble !== undefined,
    (source) => ({
      what: `Source ${source.id}: ${source.trouble ?? ''}${lastErrorText(source)}.`,
      lost: late,
      operation: `waybill check --source ${source.id}`,
    }),
  ),
  firstSink(({ state }) => state === 'blocked', blocked),
  firstSink((sink) => sink.trouble !== undefined && !isUnconfigured(sink) && !isRetired(sink), blocked),
  sinkFails,
  firstSource(
    (source) => isActive(source) && (source.clockOffsetSeconds ?? 0) < -farBehindSeconds,
    ({ id, clockOffsetSeconds = 0 }) => ({
      what: `The clock of the service of ${id} is ${span(-clockOffsetSeconds)} behind the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered. Windows are closed late, by the clock of the service.',
      operation: 'Correct the wrong clock, here or at the service.',
    }),
  ),
  undatedAndQuiet,
  firstSource(
    (source) => source.windows.gap + source.windows.inDoubt > 0 && !isRetired(source),
    ({ id, windows: { gap, inDoubt } }) => ({
      what: [
        ...(gap === 0 ? [] : [`${counted(gap, 'window')} of ${id} could not be proven.`]),
        ...(inDoubt === 0 ? [] : [`${counted(inDoubt, 'proven window')} of ${id} ${inDoubt === 1 ? 'is' : 'are'} in doubt.`]),
      ].join(' '),
      lost: 'Collected records are delivered; records may be missing. The list shows the next attempt.',
      operation: 'waybill gaps list',
    }),
  ),
  firstSource(isUnconfigured, ({ id }) => ({
    what: `Source ${id} is not in the configuration and is no longer polled.`,
    lost: 'Collected records are delivered. New records are only at the service.',
    operation: `restore sources.${id} in the configuration, or waybill sources retire --source ${id} if it was removed on purpose`,
  })),
  firstSink(isUnconfigured, ({ id }) => ({
    what: `Sink ${id} is not in the configuration; the journal keeps its records.`,
    lost: 'Nothing is lost, but the journal grows until it is full.',
    operation: `waybill sinks retire --sink ${id} if it was removed on purpose; else restore sinks.${id} in the configuration`,
  })),
  sinkLostRecords,
  firstSink(replayFails, ({ id, replay: { archive = '', error = '', sent = 0 } = {} }) => ({
    what: `Sink ${id}: the replay from the archive ${archive} failed after ${counted(sent, 'record')}: ${error}.`,
    lost: 'New records are delivered. The replay continues when the archive can be read; what the archive has lost is not sent.',
    operation: `waybill check --sink ${archive}; then waybill archive verify --sink ${archive} --key FILE. If the archive is lost: waybill replay cancel --sink ${id}`,
  })),
  firstSink(
    (sink) => sink.deadLetters > 0 && !isRetired(sink),
    ({ id, deadLetters }) => ({
      what: `Sink ${id} rejected ${counted(deadLetters, 'record')} permanently.`,
      lost: 'Nothing is lost: each record is kept with the message of the receiver.',
      operation: `waybill dead-letters show --all --sink ${id}; then "retry" after fixing the cause, or "discard"`,
    }),
  ),
  startIsUnread,
  firstSource(
    (source) => isActive(source) && (source.clockOffsetSeconds ?? 0) > aheadSeconds,
    ({ id, clockOffsetSeconds = 0 }) => ({
      what: `The clock of the service of ${id} is ${span(clockOffsetSeconds)} ahead of the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered. Windows are closed by the slower clock.',
      operation: 'Correct the wrong clock, here or at the service.',
    }),
  ),
  firstSource(
    (source) => isActive(source) && source.uncalibrated !== undefined,
    ({ id, uncalibrated = '' }) => ({
      what: `The calibration of ${id} fails: ${uncalibrated}.`,
      lost: 'Nothing is lost: collection continues with the previous calibration.',
      operation: `it is repeated at least every hour; if it keeps failing: waybill check --source ${id}`,
    }),
  ),
  firstSource(
    (source) => source.recountsOverdue > 0 && !isRetired(source),
    ({ id, recountsOverdue }) => ({
      what: `${counted(recountsOverdue, 'recount')} of ${id} overdue.`,
      lost: 'Nothing is lost: late records are found later.',
      operation: `if this persists, raise sources[].requests.perSecond of ${id}.`,
    }),
  ),
];

/** Undefined when no action is needed. */
export function worst(snapshot: Snapshot): Advice | undefined {
  for (const rule of rules) {
    const advice = rule(snapshot);
    if (advice) return advice;
  }
  return undefined;
}

function daemonStopped({ stopped, now }: Snapshot): Advice | undefined {
  return (
    stopped && {
      what: `No daemon runs; the state was last written ${ago(stopped.since, now)}.`,
      lost: 'Nothing is lost while the service keeps its log. The daemon collects it after the next start.',
      operation: 'start it (waybill run, or your service manager); the end of its log shows why it ended.',
    }
  );
}

function collectionPaused({ journal, sinks }: Snapshot): Advice | undefined {
  if (journal.paused === undefined) return undefined;
  return /^disk\b/.test(journal.paused) ? diskIsFull(journal) : journalIsFull(journal, sinks);
}

function diskIsFull({ directory }: Snapshot['journal']): Advice {
  return {
    what: `The disk is full: cannot write to ${directory}.`,
    lost: 'Nothing is lost while the service keeps its log. Collection and delivery wait.',
    operation: `free space on the disk of ${directory}; collection and delivery then resume.`,
  };
}

function journalIsFull({ directory, bytes, maxSize }: Snapshot['journal'], sinks: Snapshot['sinks']): Advice {
  const [last] = sinks
    .filter(({ state, lagRecords }) => state !== 'retired' && lagRecords > 0)
    .toSorted((a, b) => b.lagRecords - a.lagRecords);
  const fix = last === undefined ? '' : `fix sink ${last.id}, which lags most, or `;
  return {
    what: `Collection is paused: the journal in ${directory} uses ${size(bytes)} of journal.maxSize ${size(maxSize)}.`,
    lost: 'Nothing is lost while the service keeps its log. Delivery continues.',
    operation: `${fix}raise journal.maxSize; collection resumes below 90 % of it.`,
  };
}

function suspended(source: SourceSnapshot): Advice {
  const reason = source.held?.reason ?? 'rows';
  return {
    what: `Source ${source.id} is suspended${suspensionText(source)}.`,
    lost: suspensionLost[reason],
    operation: suspensionActions[reason](source.id),
  };
}

function blocked({ id, state, trouble, lastError }: SinkSnapshot): Advice {
  const message = trouble ?? lastError ?? 'an operator must act';
  return {
    what: `Sink ${id} is ${state}: ${message}.`,
    lost: keptFor(id),
    operation: /\bENOSPC\b/.test(message) ? `free space there; ${id} then resumes` : `waybill check --sink ${id}`,
  };
}

/** The sink with the most failed attempts. */
function sinkFails({ sinks, now }: Snapshot): Advice | undefined {
  const [sink] = sinks.filter(isFailing).toSorted((a, b) => (b.attempts ?? 0) - (a.attempts ?? 0));
  if (!sink) return undefined;
  const { id, hasDelivered, attempts = 0, failingSince, nextAttempt, lastError = '' } = sink;
  const since = failingSince === undefined ? '' : `, for ${span((now - failingSince) / 1e6)}`;
  const next = nextAttempt === undefined ? '' : ` Next attempt in ${span((nextAttempt - now) / 1e6)}.`;
  return {
    what: `Sink ${id} ${hasDelivered ? 'fails' : 'has never delivered'}: ${
      attempts === 0 ? 'the first attempt is still running' : `${counted(attempts, 'attempt')} failed${since} (${lastError})`
    }.${next}`,
    lost: keptFor(id),
    operation: /\bENOSPC\b/.test(lastError) ? `free space there; ${id} then resumes` : `waybill check --sink ${id}; attempts continue`,
  };
}

function keptFor(sinkId: string): string {
  return `Nothing is lost until the journal is full: it keeps what ${sinkId} has not accepted.`;
}

function undatedAndQuiet(snapshot: Snapshot): Advice | undefined {
  for (const source of snapshot.sources) {
    const newest = source.undated?.known;
    if (!isActive(source) || newest === undefined || !isLate(source, newest, snapshot)) continue;
    return {
      what: `Responses of ${source.id} carry no Date, and its newest record is from ${ago(newest, snapshot.now)}.`,
      lost: 'Nothing is lost: windows are closed as soon as a newer record shows the time of the service.',
      operation: 'no action needed; if a gateway removes the Date header, configure it to keep the header.',
    };
  }
  return undefined;
}

function sinkLostRecords({ sources }: Snapshot): Advice | undefined {
  const polled = sources.filter((source) => !isUnconfigured(source) && !isRetired(source));
  const losing = polled.flatMap(({ coverage }) => coverage?.sinks ?? []).filter(({ lost }) => lost > 0);
  const [found] = losing;
  if (!found) return undefined;
  const { id, loss } = found;
  // A sink has a loss for each source; one replay covers all of them.
  const ranges = losing.flatMap((each) => (each.id === id ? (each.lostEntries ?? []) : []));
  const first = Math.min(...ranges.map((range) => range.first));
  const last = Math.max(...ranges.map((range) => range.last));
  return {
    what: `Sink ${id} lost delivered records: ${loss ?? 'its receiver no longer has them'}.`,
    lost: 'Nothing is lost that the journal still holds: a replay sends it again.',
    operation: `waybill replay --sink ${id} --from ${first} --to ${last}; after the replay these records count as delivered`,
  };
}

function startIsUnread({ sources }: Snapshot): Advice | undefined {
  for (const { id, state, unread } of sources) {
    if (state !== 'active' || unread === undefined) continue;
    return {
      what: `Source ${id}: start is before ${rfc3339(unread.startsAt)}, where its ledger starts.`,
      lost: 'Earlier records are not collected; the service keeps them until its retention ends.',
      operation: unreadCommand(id, unread),
    };
  }
  return undefined;
}
