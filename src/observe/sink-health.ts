/** Which sinks count as healthy, from the facts of a snapshot: the same answer for `status`, the report and the probes. Pure. */
import type { SinkSnapshot } from '../model.ts';

type Facts = Pick<SinkSnapshot, 'state' | 'everDelivered' | 'tries' | 'trouble'>;

/** A single failure is usually a restart of the receiver, unless nothing was ever accepted: then the settings are likely wrong. */
const failedMost = 3;

/** Whether its attempts fail: three in a row, or each one that was ever made. */
export function isFailing({ state, everDelivered, tries = 0 }: Facts): boolean {
  if (state === 'retired' || state === 'orphaned') return false;
  return tries >= (everDelivered ? failedMost : 1);
}

/** Whether it works as far as is known: it has accepted messages, and no attempt fails now. */
export function isHealthy(sink: Facts): boolean {
  return sink.state === 'active' && sink.everDelivered && sink.trouble === undefined && !isFailing(sink);
}
