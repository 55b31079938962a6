/** Which sinks count as healthy, from the facts of a snapshot: the same answer for `status`, the report and the probes. Pure. */
import type { SinkSnapshot } from '../model/snapshot.ts';

type Facts = Pick<SinkSnapshot, 'state' | 'everDelivered' | 'tries' | 'trouble' | 'lagSeconds'>;

/** A single failure is usually a restart of the receiver, unless nothing was ever accepted: then the settings are likely wrong. */
const failedMost = 3;
/** A first delivery may take so long: a batch waits to be filled. */
const firstDeliverySeconds = 60;

/** Whether its attempts fail: three in a row, or each one that was ever made, or records wait a minute for the first delivery. */
export function isFailing({ state, everDelivered, tries = 0, lagSeconds }: Facts): boolean {
  if (state === 'retired' || state === 'orphaned' || state === 'stopped') return false;
  if (everDelivered) return tries >= failedMost;
  return tries > 0 || lagSeconds >= firstDeliverySeconds;
}

/** Whether it works as far as is known: it has accepted messages, and no attempt fails now. */
export function isHealthy(sink: Facts): boolean {
  return sink.state === 'active' && sink.everDelivered && sink.trouble === undefined && !isFailing(sink);
}
