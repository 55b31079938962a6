/** Opens the client of a source, for the daemon and for commands that read the service. */
import type { Config, SourceConfig } from '../config/load.ts';
import { createSource, type ClientContext, type ServiceSource } from '../source/client.ts';
import { Budget } from '../source/limits.ts';
import { unmetered } from '../telemetry/discard.ts';

/**
 * @param context  `budget`: default a separate one at the configured rate; `meters`: default none
 * @param create  replaced by the simulation
 */
export function openSource(
  settings: SourceConfig,
  { tls: { ca } }: Pick<Config, 'tls'>,
  context: Pick<ClientContext, 'clock' | 'log'> & Partial<Pick<ClientContext, 'budget' | 'meters' | 'tracer'>>,
  create: typeof createSource = createSource,
): ServiceSource {
  const { clock, log, tracer, meters = unmetered, budget = new Budget(clock, settings.requests.perSecond) } = context;
  return create(settings, { clock, budget, meters, ca, log, tracer });
}
