/** The thread of the delivery loops: it normalizes, encodes and sends. Started by delivery-thread.ts. */
import { parentPort } from 'node:worker_threads';
import { systemClock, systemRandom } from '../../clock.ts';
import { shareNames } from '../../connect/names.ts';
import { sinks } from '../../sink/index.ts';
import { Channel, portOf } from '../channel.ts';
import { collectWhenIdle } from '../collect-when-idle.ts';
import { serveLoops } from './host.ts';
import type { SinkPlan } from './plan.ts';

if (!parentPort) throw new Error('cannot start: this file runs only as a worker thread of the daemon');

function definitionOf({ sink: { type } }: SinkPlan) {
  const found = sinks.find((definition) => definition.type === type);
  if (!found) throw new RangeError(`cannot find the definition of "${type}"`);
  return found;
}

shareNames();
const channel = new Channel(portOf(parentPort), (thrown) => {
  // Ends the thread, and with it the daemon.
  throw thrown;
});
collectWhenIdle();
serveLoops(channel, { definitionOf, environment: process.env, clock: systemClock, random: systemRandom });
