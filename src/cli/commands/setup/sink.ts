/** The sink that `waybill setup` prepares. */
import type { Config, SinkConfig } from '../../../config/load.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { byId } from '../../not-found.ts';

/** @throws WaybillError `usage` when the configuration has no such sink of this type */
export function sinkOf(config: Config, type: string, id: string): SinkConfig {
  const sink = byId('sink', config.sinks, id);
  if (sink.type !== type)
    throw new WaybillError('usage', `cannot use the sink "${id}" of type ${sink.type}: this command needs a sink of type ${type}`);
  return sink;
}
