/** The state of each source and sink in one word: the same in headline, tables, page, probe and metrics. Pure. */
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { dueAfterSeconds } from './completeness.ts';

/** The words that docs/operations.md, "States" defines. */
export const sourceStates = [
  'active',
  'waiting',
  'catching up',
  'failing',
  'paused',
  'suspended',
  'stopped',
  'unconfigured',
  'retired',
] as const;
export const sinkStates = ['active', 'waiting', 'retrying', 'blocked', 'stopped', 'unconfigured', 'retired'] as const;
type SourceState = (typeof sourceStates)[number];
type SinkState = (typeof sinkStates)[number];

type Whole = Pick<Snapshot, 'now' | 'stopped' | 'journal'>;

export function sourceState(source: SourceSnapshot, whole: Whole): SourceState {
  const { state, held, trouble, failing, lastSuccess, windows, undated } = source;
  if (state === 'retired' || state === 'unconfigured') return state;
  if (state === 'suspended' || held) return 'suspended';
  if (whole.stopped) return 'stopped';
  if (whole.journal.paused !== undefined) return 'paused';
  // Until its first request ends, a source has neither an answer nor a failure; then something else may delay the start of its ledger.
  if (trouble !== undefined && (failing || (lastSuccess !== undefined && begun(source)))) return 'failing';
  const isTimed = begun(source) && !(undated && undated.known === undefined);
  if (isTimed && (serverTime(source, whole) - readUntil(source)) / 1e6 > dueAfterSeconds(source.closeDelaySeconds)) return 'catching up';
  return windows.all === 0 ? 'waiting' : 'active';
}

export function sinkState(sink: SinkSnapshot, { stopped }: Pick<Snapshot, 'stopped'>): SinkState {
  const { state, attempts = 0, hasDelivered } = sink;
  if (state === 'retired' || state === 'unconfigured') return state;
  if (stopped) return 'stopped';
  if (state === 'blocked') return state;
  if (attempts > 0 || state === 'retrying' || isFailing(sink)) return 'retrying';
  return hasDelivered ? 'active' : 'waiting';
}

/** The snapshot with these words, for the metrics. */
export function withStates(snapshot: Snapshot): Snapshot {
  return {
    ...snapshot,
    sources: snapshot.sources.map((source) => ({ ...source, state: sourceState(source, snapshot) })),
    sinks: snapshot.sinks.map((sink) => ({ ...sink, state: sinkState(sink, snapshot) })),
  };
}

/** True if the sink delivers nothing, and not only for a moment. */
export function isStuck(sink: SinkSnapshot, snapshot: Pick<Snapshot, 'stopped'>): boolean {
  const state = sinkState(sink, snapshot);
  return state === 'blocked' || (state === 'retrying' && (isFailing(sink) || sink.trouble !== undefined));
}

/** True for a source or sink that the configuration has. */
export function isUsed({ state }: { readonly state: string }): boolean {
  return state !== 'retired' && state !== 'unconfigured';
}

/** The time at the service; the local time while that is unknown. */
export function serverTime(source: SourceSnapshot, { now }: Pick<Snapshot, 'now'>): Micros {
  return source.serverNow ?? now;
}

/** How far windows are read: proven, accepted or gaps. */
export function readUntil({ frontier, closedUntil }: SourceSnapshot): Micros {
  return Math.max(frontier, closedUntil);
}

/** False before the ledger has a start: with `start: now` that is before the first response. */
export function begun(source: SourceSnapshot): boolean {
  return source.frontier !== 0;
}

/** A single failure is usually a restart of the receiver. If the sink has never delivered, its settings are probably wrong. */
const maxFailed = 3;
/** The time allowed for the first delivery, because a batch waits to be filled. */
const firstDeliverySeconds = 60;

/**
 * True after three failed attempts in a row. A sink that has never delivered fails with its first failed attempt, or when records have
 * waited a minute. The attempts of a stopped daemon are unknown.
 */
export function isFailing({
  state,
  hasDelivered,
  attempts = 0,
  lagSeconds,
}: Pick<SinkSnapshot, 'state' | 'hasDelivered' | 'attempts' | 'lagSeconds'>): boolean {
  if (state === 'retired' || state === 'unconfigured' || state === 'stopped') return false;
  if (hasDelivered) return attempts >= maxFailed;
  return attempts > 0 || lagSeconds >= firstDeliverySeconds;
}

/** The bound of the alert WaybillProofLate. A healthy frontier lags about twice the close delay. */
export function isLate(source: SourceSnapshot, time: Micros, snapshot: Pick<Snapshot, 'now'>): boolean {
  return serverTime(source, snapshot) - time > (2 * source.closeDelaySeconds + 900) * 1e6;
}
