/** Which sinks fail, from the facts of a snapshot: one rule for the headline of `status`, its tables and its advice. Pure. */
import type { SinkSnapshot } from '../model/snapshot.ts';

type Facts = Pick<SinkSnapshot, 'state' | 'hasDelivered' | 'attempts' | 'trouble' | 'lagSeconds'>;

/** A single failure is usually a restart of the receiver, unless nothing was ever accepted: then the settings are likely wrong. */
const maxFailed = 3;
/** A first delivery may take so long: a batch waits to be filled. */
const firstDeliverySeconds = 60;

/**
 * Whether its attempts fail: three in a row, or each one that was ever made, or records wait a minute for the first delivery. Of a stopped
 * daemon the attempts are not known.
 */
export function isFailing({ state, hasDelivered, attempts = 0, lagSeconds }: Facts): boolean {
  if (state === 'retired' || state === 'unconfigured' || state === 'stopped') return false;
  if (hasDelivered) return attempts >= maxFailed;
  return attempts > 0 || lagSeconds >= firstDeliverySeconds;
}

/** Whether a person must act: it is blocked, gone from the configuration, not ready, or fails. */
export function sinkNeedsYou(sink: Facts): boolean {
  const { state, trouble } = sink;
  if (state === 'retired') return false;
  return state === 'blocked' || state === 'unconfigured' || trouble !== undefined || isFailing(sink);
}
