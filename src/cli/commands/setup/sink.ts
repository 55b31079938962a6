/** The sink that `waybill setup` prepares. */
import type { Config, SinkConfig } from '../../../config/load.ts';
import { byId } from '../../not-found.ts';

/** @throws WaybillError `usage` when the configuration has no such sink of this type */
export function sinkOf(config: Config, type: string, id: string): SinkConfig {
  return byId(
    `${type} sink`,
    config.sinks.filter((sink) => sink.type === type),
    id,
  );
}
