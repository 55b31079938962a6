/**
 * The worst trouble of a moment: what it is, whether anything is lost by it, and what to do. In the order in which a person should care:
 * what stops all sources, what stops one, what is not proven, what stops a sink, what was refused.
 */
import type { HoldReason } from '../model/ledger.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { unreadCommand } from './backfill-words.ts';
import { isFailing } from './sink-health.ts';
import { size } from './size-words.ts';
import { ago, counted, rfc3339, span } from './time-words.ts';
import { isLate } from './verdict.ts';

export interface Advice {
  readonly what: string;
  readonly lost: string;
  readonly act: string;
}

/** Further behind than this a clock is wrong, and not only not exact; as far ahead it is a hold. */
const farBehindSeconds = 3_600;

/** Further ahead than this is told: it is as far from a hold as it is from being exact. */
const aheadSeconds = 300;

const hidden = 'Nothing collected is lost; what the service hides or has deleted cannot be collected.';
const unproven = 'Nothing is lost: records are collected and delivered; no window is closed meanwhile.';

const holdLost: Readonly<Record<HoldReason, string>> = {
  fields: hidden,
  rows: hidden,
  forbidden: 'Nothing is lost while the service keeps its log: it is late.',
  timestamp: unproven,
  clock: unproven,
};

const holdActs: Readonly<Record<HoldReason, (id: string) => string>> = {
  fields: (id) => `Give the client of ${id} its rights back; it goes on by itself.`,
  rows: (id) =>
    `Give the client of ${id} its rights back, and it goes on by itself. If records were deleted for good, it waits for you: waybill gaps accept WINDOW --source ${id} --why TEXT.`,
  forbidden: (id) => `Give the client of ${id} the right to read logs again; it goes on by itself.`,
  timestamp: (id) =>
    `Ask whoever runs the service of ${id} why its records have no readable logTimestamp; it goes on with the first that have.`,
  clock: (id) => `Set the clock of this machine right, or have that of the service of ${id} set right; it goes on by itself.`,
};

/** Why, and what else is in the way: that no daemon runs. */
function holdWords({ held, trouble, lastError }: SourceSnapshot): string {
  if (!held) return `: ${trouble ?? lastError ?? 'fewer fields or records are shown than before'}`;
  const isSaid = trouble === undefined || trouble.startsWith(`hold (${held.reason})`);
  return ` (${held.reason}): ${held.words}${isSaid ? '' : `; ${trouble}`}`;
}

/** The last failure, unless it is the one that was just told. */
function lastWords({ trouble = '', lastError }: SourceSnapshot): string {
  return lastError === undefined || trouble.includes(lastError) ? '' : ` (${lastError})`;
}

function diskIsFull({ directory }: Snapshot['journal']): Advice {
  return {
    what: `The disk of the state is full: nothing can be written in ${directory}.`,
    lost: 'Nothing is lost while the service keeps its log: collecting and delivering wait.',
    act: `make room on the disk of ${directory}; everything goes on by itself.`,
  };
}

function quotaIsFull({ directory, bytes, quota }: Snapshot['journal'], sinks: Snapshot['sinks']): Advice {
  const [last] = sinks
    .filter(({ state, lagRecords }) => state !== 'retired' && lagRecords > 0)
    .toSorted((a, b) => b.lagRecords - a.lagRecords);
  const mend = last === undefined ? '' : `mend sink ${last.id}, which is furthest behind, or `;
  return {
    what: `Collecting is paused: the state in ${directory} uses ${size(bytes)} of its quota of ${size(quota)}.`,
    lost: 'Nothing is lost while the service keeps its log: what is new waits there; delivering goes on.',
    act: `${mend}raise journal.quota; collecting goes on by itself below 90 % of it.`,
  };
}

function sinkFails({ id, everDelivered, tries = 0, failingSince, nextAttempt, lastError = '' }: SinkSnapshot, now: Micros): Advice {
  const since = failingSince === undefined ? '' : `, for ${span((now - failingSince) / 1e6)}`;
  const next = nextAttempt === undefined ? '' : ` The next one is in ${span((nextAttempt - now) / 1e6)}.`;
  return {
    what: `Sink ${id} ${everDelivered ? 'fails' : 'has never delivered'}: ${
      tries === 0 ? 'no attempt has ended yet' : `${counted(tries, 'attempt')} failed${since} (${lastError})`
    }.${next}`,
    lost: `Nothing is lost: the journal keeps what ${id} has not taken, until its quota is full.`,
    act: /\bENOSPC\b/.test(lastError) ? `make room there; ${id} goes on by itself` : `waybill check --sink ${id}; it retries by itself`,
  };
}

/** The first sink that lost delivered records, with what happened. */
function lossOf(sources: readonly SourceSnapshot[]): { readonly id: string; readonly words: string } | undefined {
  const polled = sources.filter(({ mode }) => mode !== 'orphaned' && mode !== 'retired');
  const found = polled.flatMap(({ coverage }) => coverage?.sinks ?? []).find(({ lost }) => lost > 0);
  return found && { id: found.id, words: found.loss ?? 'its receiver does not hold them any more' };
}

/** Undefined when nothing needs a person. */
export function worst(snapshot: Snapshot): Advice | undefined {
  const { sources, sinks, journal, stopped, now } = snapshot;
  if (stopped) {
    return {
      what: `No daemon runs; the state was last written ${ago(stopped.since, now)}.`,
      lost: 'Nothing is lost while the service keeps its log: the next start collects it.',
      act: 'start it (waybill run, or your service manager). The last lines of its log say why it ended.',
    };
  }
  if (journal.paused !== undefined) return /^disk\b/.test(journal.paused) ? diskIsFull(journal) : quotaIsFull(journal, sinks);
  const held = sources.find(({ mode }) => mode === 'hold');
  if (held) {
    const reason = held.held?.reason ?? 'rows';
    return { what: `Source ${held.id} is on hold${holdWords(held)}.`, lost: holdLost[reason], act: holdActs[reason](held.id) };
  }
  const failing = sources.find(({ mode, trouble }) => mode === 'normal' && trouble !== undefined);
  if (failing) {
    return {
      what: `Source ${failing.id}: ${failing.trouble ?? ''}${lastWords(failing)}.`,
      lost: 'Nothing is lost while the service keeps its log: it is late.',
      act: `waybill check --source ${failing.id}`,
    };
  }
  const blocked =
    sinks.find(({ state }) => state === 'blocked') ??
    sinks.find(({ state, trouble }) => trouble !== undefined && state !== 'orphaned' && state !== 'retired');
  if (blocked) {
    const words = blocked.trouble ?? blocked.lastError ?? 'it waits for a person';
    return {
      what: `Sink ${blocked.id} is ${blocked.state}: ${words}.`,
      lost: `Nothing is lost: the journal keeps what ${blocked.id} has not taken, until its quota is full.`,
      act: /\bENOSPC\b/.test(words) ? `make room there; ${blocked.id} goes on by itself` : `waybill check --sink ${blocked.id}`,
    };
  }
  const unwell = sinks.filter(isFailing).toSorted((a, b) => (b.tries ?? 0) - (a.tries ?? 0))[0];
  if (unwell) return sinkFails(unwell, now);
  const behind = sources.find(({ mode, clockOffsetSeconds = 0 }) => mode === 'normal' && clockOffsetSeconds < -farBehindSeconds);
  if (behind) {
    return {
      what: `The clock of the service of ${behind.id} is ${span(-(behind.clockOffsetSeconds ?? 0))} behind the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered; windows are closed by the clock of the service, so late.',
      act: 'Set the clock that is wrong right: that of this machine, or that of the service.',
    };
  }
  const still = sources.find((s) => s.mode === 'normal' && s.undated?.known !== undefined && isLate(s, s.undated.known, snapshot));
  if (still?.undated?.known !== undefined) {
    return {
      what: `The answers of ${still.id} carry no Date, and its records do not say yet that it is later there than ${ago(still.undated.known, snapshot.now)}.`,
      lost: 'Nothing is lost: windows are closed once a newer record says what time it is there.',
      act: 'It goes on by itself. If a gateway takes the Date out of answers, have it pass.',
    };
  }
  const gap = sources.find(({ gaps, mode }) => gaps > 0 && mode !== 'retired');
  if (gap) {
    return {
      what: `${counted(gap.gaps, 'window')} of ${gap.id} could not be proven.`,
      lost: 'What was seen is delivered; whether that is everything is not known. The list says when it is tried again.',
      act: 'waybill gaps list',
    };
  }
  const orphan = sources.find(({ mode }) => mode === 'orphaned');
  if (orphan) {
    return {
      what: `Source ${orphan.id} is gone from the configuration and is polled no more.`,
      lost: 'What was collected is delivered; what is new since is only at the service.',
      act: `put sources.${orphan.id} back into the configuration, or waybill sources retire --source ${orphan.id} if it was meant to go`,
    };
  }
  const orphaned = sinks.find(({ state }) => state === 'orphaned');
  if (orphaned) {
    return {
      what: `Sink ${orphaned.id} is gone from the configuration; the journal keeps everything for it.`,
      lost: 'Nothing is lost, but the journal grows until its quota is full.',
      act: `waybill sinks retire --sink ${orphaned.id}, if it was meant to go; else put sinks.${orphaned.id} back into the configuration`,
    };
  }
  const loss = lossOf(sources);
  if (loss) {
    return {
      what: `Sink ${loss.id} lost delivered records: ${loss.words}.`,
      lost: 'Nothing is lost that the journal still holds: it can be sent again.',
      act: `waybill replay --sink ${loss.id} --from POSITION, with the first of these entries; once it has ended they count as delivered`,
    };
  }
  const refused = sinks.find(({ deadLetters, state }) => deadLetters > 0 && state !== 'retired');
  if (refused) {
    return {
      what: `Sink ${refused.id} refused ${counted(refused.deadLetters, 'record')} for good.`,
      lost: 'Nothing is lost: each is kept with the words of the receiver.',
      act: `waybill dead-letters show --all --sink ${refused.id}; then "retry" once the reason is mended, or "discard"`,
    };
  }
  const unread = sources.find(({ unread: part, mode }) => part !== undefined && mode === 'normal');
  if (unread?.unread) {
    return {
      what: `Source ${unread.id}: start lies before ${rfc3339(unread.unread.begins)}, where its ledger begins.`,
      lost: 'What is dated before is not collected; the service has it until its retention ends.',
      act: unreadCommand(unread.id, unread.unread),
    };
  }
  const ahead = sources.find(({ mode, clockOffsetSeconds = 0 }) => mode === 'normal' && clockOffsetSeconds > aheadSeconds);
  if (ahead) {
    return {
      what: `The clock of the service of ${ahead.id} is ${span(ahead.clockOffsetSeconds ?? 0)} ahead of the clock of this machine.`,
      lost: 'Nothing is lost: records are collected and delivered; windows are closed by the clock that is behind.',
      act: 'Set the clock that is wrong right: that of this machine, or that of the service.',
    };
  }
  const uncalibrated = sources.find(({ mode, uncalibrated }) => mode === 'normal' && uncalibrated !== undefined);
  if (uncalibrated) {
    return {
      what: `The calibration of ${uncalibrated.id} is due and fails: ${uncalibrated.uncalibrated ?? ''}.`,
      lost: 'Nothing is lost: collecting goes on with what the last one found.',
      act: `It is tried again by itself, each hour at least. If it stays so: waybill check --source ${uncalibrated.id}`,
    };
  }
  const overdue = sources.find(({ recountsOverdue, mode }) => recountsOverdue > 0 && mode !== 'retired');
  return (
    overdue && {
      what: `${counted(overdue.recountsOverdue, 'recount')} of ${overdue.id} should have been done already.`,
      lost: 'Nothing is lost: a late record is found later than it could be.',
      act: `If it stays so, raise sources[].requests.perSecond of ${overdue.id}.`,
    }
  );
}
