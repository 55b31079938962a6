/**
 * The worst trouble of a moment: what it is, whether anything is lost by it, and what to do. In the order in which a person should care:
 * what stops all sources, what stops one, what is not proven, what stops a sink, what was rejected.
 */
import type { SuspensionReason } from '../model/ledger.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { unreadCommand } from './backfills.ts';
import { isFailing } from './sink-health.ts';
import { size } from './format-size.ts';
import { ago, counted, rfc3339, span } from './format-time.ts';
import { isLate } from './verdict.ts';

export interface Advice {
  readonly what: string;
  readonly lost: string;
  readonly operation: string;
}

/** Further behind than this a clock is wrong, and not only not exact; as far ahead it suspends the source. */
const farBehindSeconds = 3_600;

/** A clock further ahead than this is reported: halfway between exact and a suspension. */
const aheadSeconds = 300;

const hidden = 'Nothing collected is lost; what the service hides or has deleted cannot be collected.';
const unproven = 'Nothing is lost: records are collected and delivered; no window is closed meanwhile.';

const suspensionLost: Readonly<Record<SuspensionReason, string>> = {
  fields: hidden,
  rows: hidden,
  forbidden: 'Nothing is lost while the service keeps its log: it is late.',
  timestamp: unproven,
  clock: unproven,
};

const suspensionActions: Readonly<Record<SuspensionReason, (id: string) => string>> = {
  fields: (id) => `Give the client of ${id} its rights back; it goes on by itself.`,
  rows: (id) =>
    `Give the client of ${id} its rights back, and it goes on by itself. If records were deleted for good, it waits for you: waybill gaps accept WINDOW --source ${id} --reason TEXT.`,
  forbidden: (id) => `Give the client of ${id} the right to read logs again; it goes on by itself.`,
  timestamp: (id) =>
    `Ask whoever runs the service of ${id} why its records have no readable logTimestamp; it goes on with the first that have.`,
  clock: (id) => `Set the clock of this machine right, or have that of the service of ${id} set right; it goes on by itself.`,
};

/** Why, and what else is in the way: that no daemon runs. */
function suspensionText({ held, trouble, lastError }: SourceSnapshot): string {
  if (!held) return `: ${trouble ?? lastError ?? 'fewer fields or records are shown than before'}`;
  const isReported = trouble === undefined || trouble.startsWith(`suspended (${held.reason})`);
  return ` (${held.reason}): ${held.message}${isReported ? '' : `; ${trouble}`}`;
}

/** The last failure, unless it is the one that was just reported. */
function lastErrorText({ trouble = '', lastError }: SourceSnapshot): string {
  return lastError === undefined || trouble.includes(lastError) ? '' : ` (${lastError})`;
}

function diskIsFull({ directory }: Snapshot['journal']): Advice {
  return {
    what: `The disk of the state is full: nothing can be written in ${directory}.`,
    lost: 'Nothing is lost while the service keeps its log: collecting and delivering wait.',
    operation: `make room on the disk of ${directory}; everything goes on by itself.`,
  };
}

function journalIsFull({ directory, bytes, maxSize }: Snapshot['journal'], sinks: Snapshot['sinks']): Advice {
  const [last] = sinks
    .filter(({ state, lagRecords }) => state !== 'retired' && lagRecords > 0)
    .toSorted((a, b) => b.lagRecords - a.lagRecords);
  const fix = last === undefined ? '' : `fix sink ${last.id}, which is furthest behind, or `;
  return {
    what: `Collecting is paused: the state in ${directory} uses ${size(bytes)} of its journal.maxSize of ${size(maxSize)}.`,
    lost: 'Nothing is lost while the service keeps its log: what is new waits there; delivering goes on.',
    operation: `${fix}raise journal.maxSize; collecting goes on by itself below 90 % of it.`,
  };
}

function sinkFails({ id, hasDelivered, attempts = 0, failingSince, nextAttempt, lastError = '' }: SinkSnapshot, now: Micros): Advice {
  const since = failingSince === undefined ? '' : `, for ${span((now - failingSince) / 1e6)}`;
  const next = nextAttempt === undefined ? '' : ` The next one is in ${span((nextAttempt - now) / 1e6)}.`;
  return {
    what: `Sink ${id} ${hasDelivered ? 'fails' : 'has never delivered'}: ${
      attempts === 0 ? 'no attempt has ended yet' : `${counted(attempts, 'attempt')} failed${since} (${lastError})`
    }.${next}`,
    lost: `Nothing is lost: the journal keeps what ${id} has not accepted, until it is full.`,
    operation: /\bENOSPC\b/.test(lastError)
      ? `make room there; ${id} goes on by itself`
      : `waybill check --sink ${id}; it retries by itself`,
  };
}

/** The first sink that lost delivered records, with what happened. */
function lossOf(sources: readonly SourceSnapshot[]): { readonly id: string; readonly message: string } | undefined {
  const polled = sources.filter(({ state }) => state !== 'unconfigured' && state !== 'retired');
  const found = polled.flatMap(({ coverage }) => coverage?.sinks ?? []).find(({ lost }) => lost > 0);
  return found && { id: found.id, message: found.loss ?? 'its receiver no longer has them' };
}

/** Undefined when nothing needs a person. */
export function worst(snapshot: Snapshot): Advice | undefined {
  const { sources, sinks, journal, stopped, now } = snapshot;
  if (stopped) {
    return {
      what: `No daemon runs; the state was last written ${ago(stopped.since, now)}.`,
      lost: 'Nothing is lost while the service keeps its log: the next start collects it.',
      operation: 'start it (waybill run, or your service manager). The last lines of its log say why it ended.',
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
      lost: 'Nothing is lost while the service keeps its log: it is late.',
      operation: `waybill check --source ${failing.id}`,
    };
  }
  const blocked =
    sinks.find(({ state }) => state === 'blocked') ??
    sinks.find(({ state, trouble }) => trouble !== undefined && state !== 'unconfigured' && state !== 'retired');
  if (blocked) {
    const message = blocked.trouble ?? blocked.lastError ?? 'it waits for a person';
    return {
      what: `Sink ${blocked.id} is ${blocked.state}: ${message}.`,
      lost: `Nothing is lost: the journal keeps what ${blocked.id} has not accepted, until it is full.`,
      operation: /\bENOSPC\b/.test(message) ? `make room there; ${blocked.id} goes on by itself` : `waybill check --sink ${blocked.id}`,
    };
  }
  const unwell = sinks.filter(isFailing).toSorted((a, b) => (b.attempts ?? 0) - (a.attempts ?? 0))[0];
  if (unwell) return sinkFails(unwell, now);
  const behind = sources.find(({ state, clockOffsetSeconds = 0 }) => state === 'active' && clockOffsetSeconds < -farBehindSeconds);
  if (behind) {
    return {
      what: `The clock of the service of ${behind.id} is ${span(-(behind.clockOffsetSeconds ?? 0))} behind the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered; windows are closed by the clock of the service, so late.',
      operation: 'Set the clock that is wrong right: that of this machine, or that of the service.',
    };
  }
  const still = sources.find((s) => s.state === 'active' && s.undated?.known !== undefined && isLate(s, s.undated.known, snapshot));
  if (still?.undated?.known !== undefined) {
    return {
      what: `The answers of ${still.id} carry no Date, and its records do not say yet that it is later there than ${ago(still.undated.known, snapshot.now)}.`,
      lost: 'Nothing is lost: windows are closed once a newer record says what time it is there.',
      operation: 'It goes on by itself. If a gateway takes the Date out of answers, have it pass.',
    };
  }
  const gap = sources.find(({ gaps, state }) => gaps > 0 && state !== 'retired');
  if (gap) {
    return {
      what: `${counted(gap.gaps, 'window')} of ${gap.id} could not be proven.`,
      lost: 'What was seen is delivered; whether that is everything is not known. The list says when it is tried again.',
      operation: 'waybill gaps list',
    };
  }
  const unconfigured = sources.find(({ state }) => state === 'unconfigured');
  if (unconfigured) {
    return {
      what: `Source ${unconfigured.id} is gone from the configuration and is polled no more.`,
      lost: 'What was collected is delivered; what is new since is only at the service.',
      operation: `put sources.${unconfigured.id} back into the configuration, or waybill sources retire --source ${unconfigured.id} if it was meant to go`,
    };
  }
  const unconfiguredSink = sinks.find(({ state }) => state === 'unconfigured');
  if (unconfiguredSink) {
    return {
      what: `Sink ${unconfiguredSink.id} is gone from the configuration; the journal keeps everything for it.`,
      lost: 'Nothing is lost, but the journal grows until it is full.',
      operation: `waybill sinks retire --sink ${unconfiguredSink.id}, if it was meant to go; else put sinks.${unconfiguredSink.id} back into the configuration`,
    };
  }
  const loss = lossOf(sources);
  if (loss) {
    return {
      what: `Sink ${loss.id} lost delivered records: ${loss.message}.`,
      lost: 'Nothing is lost that the journal still holds: it can be sent again.',
      operation: `waybill replay --sink ${loss.id} --from POSITION, with the first of these entries; once it has ended they count as delivered`,
    };
  }
  const rejected = sinks.find(({ deadLetters, state }) => deadLetters > 0 && state !== 'retired');
  if (rejected) {
    return {
      what: `Sink ${rejected.id} rejected ${counted(rejected.deadLetters, 'record')} for good.`,
      lost: 'Nothing is lost: each is kept with the message of the receiver.',
      operation: `waybill dead-letters show --all --sink ${rejected.id}; then "retry" once the reason is fixed, or "discard"`,
    };
  }
  const unread = sources.find(({ unread: part, state }) => part !== undefined && state === 'active');
  if (unread?.unread) {
    return {
      what: `Source ${unread.id}: start lies before ${rfc3339(unread.unread.startsAt)}, where its ledger begins.`,
      lost: 'What is dated before is not collected; the service has it until its retention ends.',
      operation: unreadCommand(unread.id, unread.unread),
    };
  }
  const ahead = sources.find(({ state, clockOffsetSeconds = 0 }) => state === 'active' && clockOffsetSeconds > aheadSeconds);
  if (ahead) {
    return {
      what: `The clock of the service of ${ahead.id} is ${span(ahead.clockOffsetSeconds ?? 0)} ahead of the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered; windows are closed by the clock that is behind.',
      operation: 'Set the clock that is wrong right: that of this machine, or that of the service.',
    };
  }
  const uncalibrated = sources.find(({ state, uncalibrated }) => state === 'active' && uncalibrated !== undefined);
  if (uncalibrated) {
    return {
      what: `The calibration of ${uncalibrated.id} is due and fails: ${uncalibrated.uncalibrated ?? ''}.`,
      lost: 'Nothing is lost: collecting goes on with what the last one found.',
      operation: `It is tried again by itself, each hour at least. If it stays so: waybill check --source ${uncalibrated.id}`,
    };
  }
  const overdue = sources.find(({ recountsOverdue, state }) => recountsOverdue > 0 && state !== 'retired');
  return (
    overdue && {
      what: `${counted(overdue.recountsOverdue, 'recount')} of ${overdue.id} should have been done already.`,
      lost: 'Nothing is lost: a late record is found later than it could be.',
      operation: `If it stays so, raise sources[].requests.perSecond of ${overdue.id}.`,
    }
  );
}
