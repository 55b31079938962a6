/**
 * The most urgent problem of a snapshot: what happened, what is lost, and what to do. Problems of all
 * sources come first, then of one source, gaps, sinks, and rejected records.
 */
import type { SuspensionReason } from '../model/ledger.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { unreadCommand } from './backfills.ts';
import { isFailing } from './sink-health.ts';
import { size } from './format-size.ts';
import { ago, counted, rfc3339, span } from './format-time.ts';
import { isLate } from './verdict.ts';

interface Advice {
  readonly what: string;
  readonly lost: string;
  readonly operation: string;
}

/** The same distance ahead suspends the source. */
const farBehindSeconds = 3_600;

/** Reported long before the suspension. */
const aheadSeconds = 300;

const hidden = 'Nothing collected is lost. Records that the service hides or deleted cannot be collected.';
const unproven = 'Nothing is lost: records are collected and delivered, but no window is closed.';

const suspensionLost: Readonly<Record<SuspensionReason, string>> = {
  fields: hidden,
  rows: hidden,
  forbidden: 'Nothing is lost while the service keeps its log. Records arrive late.',
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

function sinkFails({ id, hasDelivered, attempts = 0, failingSince, nextAttempt, lastError = '' }: SinkSnapshot, now: Micros): Advice {
  const since = failingSince === undefined ? '' : `, for ${span((now - failingSince) / 1e6)}`;
  const next = nextAttempt === undefined ? '' : ` Next attempt in ${span((nextAttempt - now) / 1e6)}.`;
  return {
    what: `Sink ${id} ${hasDelivered ? 'fails' : 'has never delivered'}: ${
      attempts === 0 ? 'the first attempt is still running' : `${counted(attempts, 'attempt')} failed${since} (${lastError})`
    }.${next}`,
    lost: `Nothing is lost until the journal is full: it keeps what ${id} has not accepted.`,
    operation: /\bENOSPC\b/.test(lastError) ? `free space there; ${id} then resumes` : `waybill check --sink ${id}; attempts continue`,
  };
}

function lossOf(sources: readonly SourceSnapshot[]): { readonly id: string; readonly message: string } | undefined {
  const polled = sources.filter(({ state }) => state !== 'unconfigured' && state !== 'retired');
  const found = polled.flatMap(({ coverage }) => coverage?.sinks ?? []).find(({ lost }) => lost > 0);
  return found && { id: found.id, message: found.loss ?? 'its receiver no longer has them' };
}

/** Undefined when no action is needed. */
export function worst(snapshot: Snapshot): Advice | undefined {
  const { sources, sinks, journal, stopped, now } = snapshot;
  if (stopped) {
    return {
      what: `No daemon runs; the state was last written ${ago(stopped.since, now)}.`,
      lost: 'Nothing is lost while the service keeps its log. The daemon collects it after the next start.',
      operation: 'start it (waybill run, or your service manager); the end of its log shows why it ended.',
    };
  }
  if (journal.paused !== undefined) return /^disk\b/.test(journal.paused) ? diskIsFull(journal) : journalIsFull(journal, sinks);
  const held = sources.find(({ state }) => state === 'suspended');
  if (held) {
    const reason = held.held?.reason ?? 'rows';
    return {
      what: `Source ${held.id} is suspended${suspensionText(held)}.`,
      lost: suspensionLost[reason],
      operation: suspensionActions[reason](held.id),
    };
  }
  const failing = sources.find(({ state, trouble }) => state === 'active' && trouble !== undefined);
  if (failing) {
    return {
      what: `Source ${failing.id}: ${failing.trouble ?? ''}${lastErrorText(failing)}.`,
      lost: 'Nothing is lost while the service keeps its log. Records arrive late.',
      operation: `waybill check --source ${failing.id}`,
    };
  }
  const blocked =
    sinks.find(({ state }) => state === 'blocked') ??
    sinks.find(({ state, trouble }) => trouble !== undefined && state !== 'unconfigured' && state !== 'retired');
  if (blocked) {
    const message = blocked.trouble ?? blocked.lastError ?? 'an operator must act';
    return {
      what: `Sink ${blocked.id} is ${blocked.state}: ${message}.`,
      lost: `Nothing is lost until the journal is full: it keeps what ${blocked.id} has not accepted.`,
      operation: /\bENOSPC\b/.test(message) ? `free space there; ${blocked.id} then resumes` : `waybill check --sink ${blocked.id}`,
    };
  }
  const unwell = sinks.filter(isFailing).toSorted((a, b) => (b.attempts ?? 0) - (a.attempts ?? 0))[0];
  if (unwell) return sinkFails(unwell, now);
  const behind = sources.find(({ state, clockOffsetSeconds = 0 }) => state === 'active' && clockOffsetSeconds < -farBehindSeconds);
  if (behind) {
    return {
      what: `The clock of the service of ${behind.id} is ${span(-(behind.clockOffsetSeconds ?? 0))} behind the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered. Windows are closed late, by the clock of the service.',
      operation: 'Correct the wrong clock, here or at the service.',
    };
  }
  const still = sources.find((s) => s.state === 'active' && s.undated?.known !== undefined && isLate(s, s.undated.known, snapshot));
  if (still?.undated?.known !== undefined) {
    return {
      what: `Responses of ${still.id} carry no Date, and its newest record is from ${ago(still.undated.known, snapshot.now)}.`,
      lost: 'Nothing is lost: windows are closed as soon as a newer record shows the time of the service.',
      operation: 'no action needed; if a gateway removes the Date header, let it pass.',
    };
  }
  const gap = sources.find(({ gaps, state }) => gaps > 0 && state !== 'retired');
  if (gap) {
    return {
      what: `${counted(gap.gaps, 'window')} of ${gap.id} could not be proven.`,
      lost: 'Collected records are delivered; records may be missing. The list shows the next attempt.',
      operation: 'waybill gaps list',
    };
  }
  const unconfigured = sources.find(({ state }) => state === 'unconfigured');
  if (unconfigured) {
    return {
      what: `Source ${unconfigured.id} is not in the configuration and is no longer polled.`,
      lost: 'Collected records are delivered. New records are only at the service.',
      operation: `restore sources.${unconfigured.id} in the configuration, or waybill sources retire --source ${unconfigured.id} if it was removed on purpose`,
    };
  }
  const unconfiguredSink = sinks.find(({ state }) => state === 'unconfigured');
  if (unconfiguredSink) {
    return {
      what: `Sink ${unconfiguredSink.id} is not in the configuration; the journal keeps its records.`,
      lost: 'Nothing is lost, but the journal grows until it is full.',
      operation: `waybill sinks retire --sink ${unconfiguredSink.id} if it was removed on purpose; else restore sinks.${unconfiguredSink.id} in the configuration`,
    };
  }
  const loss = lossOf(sources);
  if (loss) {
    return {
      what: `Sink ${loss.id} lost delivered records: ${loss.message}.`,
      lost: 'Nothing is lost that the journal still holds: a replay sends it again.',
      operation: `waybill replay --sink ${loss.id} --from POSITION, the first lost entry; after the replay these records count as delivered`,
    };
  }
  const rejected = sinks.find(({ deadLetters, state }) => deadLetters > 0 && state !== 'retired');
  if (rejected) {
    return {
      what: `Sink ${rejected.id} rejected ${counted(rejected.deadLetters, 'record')} for good.`,
      lost: 'Nothing is lost: each record is kept with the message of the receiver.',
      operation: `waybill dead-letters show --all --sink ${rejected.id}; then "retry" after fixing the cause, or "discard"`,
    };
  }
  const unread = sources.find(({ unread: part, state }) => part !== undefined && state === 'active');
  if (unread?.unread) {
    return {
      what: `Source ${unread.id}: start is before ${rfc3339(unread.unread.startsAt)}, where its ledger starts.`,
      lost: 'Earlier records are not collected; the service keeps them until its retention ends.',
      operation: unreadCommand(unread.id, unread.unread),
    };
  }
  const ahead = sources.find(({ state, clockOffsetSeconds = 0 }) => state === 'active' && clockOffsetSeconds > aheadSeconds);
  if (ahead) {
    return {
      what: `The clock of the service of ${ahead.id} is ${span(ahead.clockOffsetSeconds ?? 0)} ahead of the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered. Windows are closed by the slower clock.',
      operation: 'Correct the wrong clock, here or at the service.',
    };
  }
  const uncalibrated = sources.find(({ state, uncalibrated }) => state === 'active' && uncalibrated !== undefined);
  if (uncalibrated) {
    return {
      what: `The calibration of ${uncalibrated.id} fails: ${uncalibrated.uncalibrated ?? ''}.`,
      lost: 'Nothing is lost: collection continues with the previous calibration.',
      operation: `it is repeated at least every hour; if it keeps failing: waybill check --source ${uncalibrated.id}`,
    };
  }
  const overdue = sources.find(({ recountsOverdue, state }) => recountsOverdue > 0 && state !== 'retired');
  return (
    overdue && {
      what: `${counted(overdue.recountsOverdue, 'recount')} of ${overdue.id} overdue.`,
      lost: 'Nothing is lost: late records are found later.',
      operation: `if this persists, raise sources[].requests.perSecond of ${overdue.id}.`,
    }
  );
}
