/**
 * Opens a rolled-back state with a receiver that was not rolled back: nothing may be sent to it
 * (docs/testing.md, "one owner").
 */
import Database from 'better-sqlite3';
import { join } from 'node:path';
import type { Config } from '../../src/config/load.ts';
import { createDelivery } from '../../src/daemon/open-delivery.ts';
import { messageOf } from '../../src/errors/errors.ts';
import { Journal } from '../../src/journal/journal.ts';
import type { Batch, Sink } from '../../src/model/sink.ts';
import type { Meters } from '../../src/model/telemetry.ts';
import type { Place } from './effects.ts';
import { quietLog } from './life.ts';
import type { Receiver } from './receiver.ts';
import { LifeClock } from './world.ts';
import type { World } from './world.ts';

/**
 * Opens the older state in `directory` with the sink that stores our position.
 * @returns `blocked` is correct; `does not apply` if the state is not older than the position
 */
export async function isRefused(directory: string, receiver: Receiver, config: Config, world: World, place: Place): Promise<string> {
  const { kept } = receiver;
  const { id } = receiver.settings;
  try {
    const file = new Database(join(directory, 'waybill.db'));
    const { seq } = file.prepare<[], { seq: number }>('SELECT seq FROM head').get() ?? { seq: 0 };
    file.close();
    if (!kept || kept.seq <= seq) return 'does not apply';
    const clock = new LifeClock(world, () => false);
    const stop = new AbortController();
    const options = { directory, maxSize: 1e9, retention: 1e12, version: '0.0.0', expectState: true, lockWait: 0 };
    await using journal = await Journal.open(options, clock, stop.signal);
    const sent: Batch[] = [];
    const sink: Sink = {
      send: async (batch) => {
        sent.push(batch);
        return { rejections: [] };
      },
      position: async () => ({ position: kept, resumeNote: undefined, sink: id }),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    const settings = config.sinks.find((each) => each.id === id);
    if (!settings) throw new Error(`no sink ${id}`);
    const { loop } = createDelivery(
      { ...settings, definition: { ...settings.definition, open: () => Promise.resolve(sink) } },
      journal,
      { config, clock, random: () => 0.5, log: quietLog },
      new Proxy({} as Meters, { get: () => () => undefined }),
    );
    let failure: string | undefined;
    const running = loop.run(stop.signal, stop.signal).catch((thrown: unknown) => (failure = messageOf(thrown)));
    await world.run(world.ms + 5_000, () => false);
    const { state } = loop.view();
    stop.abort(new Error('stop'));
    await running;
    if (sent.length > 0) return 'sent';
    return failure === undefined ? state : `ended with an error: ${failure}`;
  } finally {
    place.remove(directory);
  }
}
