/** Decides which sinks fail, for the summary, tables and advice of `status`. Pure. */
import type { SinkSnapshot } from '../model/snapshot.ts';

type Facts = Pick<SinkSnapshot, 'state' | 'hasDelivered' | 'attempts' | 'trouble' | 'lagSeconds' | 'replay'>;

/**
 * A single failure is usually a restart of the receiver. If the sink has never delivered, its
 * settings are probably wrong.
 */
const maxFailed = 3;
/** The time allowed for the first delivery, because a batch waits to be filled. */
const firstDeliverySeconds = 60;

/**
 * True after three failed attempts in a row. A sink that has never delivered fails with its first
 * failed attempt, or when records have waited a minute. The attempts of a stopped daemon are
 * unknown.
 */
export function isFailing({ state, hasDelivered, attempts = 0, lagSeconds }: Facts): boolean {
  if (state === 'retired' || state === 'unconfigured' || state === 'stopped') return false;
  if (hasDelivered) return attempts >= maxFailed;
  return attempts > 0 || lagSeconds >= firstDeliverySeconds;
}

/** True if an operator must act: the sink is blocked, unconfigured or not ready, or it fails, or a replay from an archive does. */
export function sinkNeedsAttention(sink: Facts): boolean {
  const { state, trouble } = sink;
  if (state === 'retired') return false;
  return state === 'blocked' || state === 'unconfigured' || trouble !== undefined || isFailing(sink) || replayFails(sink);
}

/** True while the archive of a replay to this sink cannot be read. */
export function replayFails({ replay }: Pick<SinkSnapshot, 'replay'>): boolean {
  return replay?.state === 'failed';
}
