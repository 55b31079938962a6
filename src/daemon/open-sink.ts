/** Creates the context in which a sink is opened, checked or set up. */
import type { Config, SinkConfig } from '../config/load.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { SinkContext } from '../sink/define.ts';
import { silentLog } from '../telemetry/discard.ts';

/** Without a log, for commands that print their findings themselves, the context drops log lines. */
export function sinkContext(
  { id, format, ledger, sources, filter }: Pick<SinkConfig, 'id' | 'format' | 'ledger' | 'sources' | 'filter'>,
  config: Pick<Config, 'tls' | 'proxy'> & { readonly sources: readonly { readonly id: string }[] },
  { clock, log = silentLog, shown }: { readonly clock: Clock; readonly log?: Log; readonly shown?: SinkContext['shown'] },
): SinkContext {
  const { tls, proxy } = config;
  const selection = { sources: sources ?? config.sources.map((source) => source.id), selected: sources, filtered: filter !== undefined };
  return { id, format, ledger, ...selection, log, clock, ca: tls.ca, proxy, shown };
}
