/** What every `waybill setup` begins with: the sink that is meant. */
import type { Config, SinkConfig } from '../../../config/load.ts';
import { WaybillError } from '../../../errors.ts';
import type { Log } from '../../../model/telemetry.ts';

/** @throws WaybillError `usage` when the configuration has no such sink of this type */
export function sinkOf(config: Config, type: string, id: string | undefined): SinkConfig {
  const sinks = config.sinks.filter((sink) => sink.type === type);
  const found = sinks.find((sink) => sink.id === id);
  if (found) return found;
  const there = sinks.length === 0 ? `there is none of the type ${type}` : `there is ${sinks.map((sink) => sink.id).join(', ')}`;
  throw new WaybillError('usage', `cannot find the sink "${id ?? ''}": --sink names one; ${there}`);
}

/** Whoever sets up sees it on the terminal. */
export const silent: Log = { write: () => undefined };
