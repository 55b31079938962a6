/** The thread of the delivery loops: it normalizes, encodes and sends. Started by delivery-thread.ts. */
import { parentPort } from 'node:worker_threads';
import { systemClock, systemRandom } from '../../clock.ts';
import { sinks } from '../../sink/index.ts';
import { Channel } from './channel.ts';
import type { Port } from './channel.ts';
import { serveLoops } from './host.ts';
import type { SinkPlan } from './plan.ts';

const port: Port = {
  post: (message, transfer) => parentPort?.postMessage(message, transfer),
  receive: (handler) => parentPort?.on('message', handler),
};

function definitionOf({ sink: { type } }: SinkPlan) {
  const found = sinks.find((definition) => definition.type === type);
  if (!found) throw new RangeError(`cannot find the definition of "${type}"`);
  return found;
}

const channel = new Channel(port, (thrown) => {
  // Ends the thread, and with it the daemon.
  throw thrown;
});
serveLoops(channel, { definitionOf, environment: process.env, clock: systemClock, random: systemRandom });
