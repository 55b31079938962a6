/** The options of the daemon. The simulation passes its own clock, randomness and source. */
import type { PollOverlap } from '../collect/poll-overlap.ts';
import type { ConfigSource } from '../config/config-file.ts';
import type { Config } from '../config/load.ts';
import type { Clock, Random } from '../model/time.ts';
import type { createSource } from '../source/client.ts';
import type { Tracer } from '../model/telemetry.ts';
import type { ComponentLog, Logs } from '../telemetry/log.ts';

export interface DaemonOptions {
  readonly config: Config;
  readonly version: string;
  readonly expectState: boolean;
  /** ms */
  readonly lockWait: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ComponentLog;
  /** Default: a client over HTTPS. */
  readonly openSource?: typeof createSource;
  /** Called for each source. Default: an overlap that first measures many records. */
  readonly pollOverlap?: () => PollOverlap;
  /** Default: no traces. */
  readonly tracer?: Tracer | undefined;
  /** For `waybill log level`; undefined: the daemon rejects it. */
  readonly logs?: Pick<Logs, 'setLevel' | 'components'>;
  /** Log lines that could not be written since the start. */
  readonly lostLines?: () => number;
  /** Changed configurations; default none. */
  readonly configSource?: ConfigSource;
  /** Called with each changed configuration that is in effect. */
  readonly reloaded?: (config: Config) => void;
  /** Called once, with the addresses of the admin server. */
  readonly listening?: (addresses: readonly string[]) => void;
}
