/** `waybill setup`: prepares the place where a sink sends to, as far as its rights go, and prints what an administrator does. */
import { parseArgs } from 'node:util';
import { systemClock } from '../clock.ts';
import { loadConfig } from '../config/load.ts';
import type { Config, SinkConfig } from '../config/load.ts';
import { WaybillError } from '../errors.ts';
import type { Log } from '../model.ts';
import type { SinkContext } from '../sink/define.ts';
import type { Io } from './io.ts';

export const summary = 'prepares the place where a sink sends to';

export const usage = `waybill setup kafka --sink ID [--config FILE] [--print]

Makes the progress topic of a sink that sends to Kafka, if it is not there, and prints the topics and rights that an administrator of the cluster
gives it, and a consumer that reads only what was committed. May be run again.

  --sink ID   the sink of the configuration
  --print     prints alone, and connects to nothing

Examples:
  waybill setup kafka --sink lake
  waybill setup kafka --sink lake --print > for-the-administrator.sh
`;

type Setup = (
  sink: SinkConfig,
  config: Config,
  io: Io,
  options: { readonly isPrint: boolean; readonly context: SinkContext },
) => Promise<void>;

/** By type of sink; each is read only when it is asked for. */
const setups: Readonly<Record<string, () => Promise<{ readonly setup: Setup }>>> = {
  kafka: () => import('./setup-kafka.ts'),
};

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' }, sink: { type: 'string' }, print: { type: 'boolean', default: false } },
  });
  const [type, ...others] = positionals;
  const load = type !== undefined && Object.hasOwn(setups, type) ? setups[type] : undefined;
  if (load === undefined || others.length > 0)
    throw new WaybillError(
      'usage',
      `cannot set up ${type === undefined ? 'nothing' : `"${type}"`}: name one of ${Object.keys(setups).join(', ')}`,
    );
  if (values.sink === undefined)
    throw new WaybillError('usage', `cannot set up ${type ?? ''} without "--sink": the id of a sink is needed`);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: !values.print });
  const sink = config.sinks.find(({ id }) => id === values.sink);
  if (sink === undefined || sink.type !== type) {
    const ids = config.sinks.filter((each) => each.type === type).map(({ id }) => id);
    throw new WaybillError(
      'usage',
      `cannot find the sink "${values.sink}" of the type ${type ?? ''}: there is ${ids.join(', ') || 'none'}`,
    );
  }
  const context = { id: sink.id, log: silent, clock: systemClock, ca: config.tls.ca, proxy: config.proxy };
  await (await load()).setup(sink, config, io, { isPrint: values.print, context });
  return 0;
}

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
