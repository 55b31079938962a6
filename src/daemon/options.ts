/** The options of the daemon. The simulation passes its own clock, randomness and source. */
import type { Config } from '../config/load.ts';
import type { Clock, Random } from '../model/time.ts';
import type { createSource } from '../source/client.ts';
import type { ComponentLog } from '../telemetry/log.ts';

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
  /** Log lines that could not be written since the start. */
  readonly lostLines?: () => number;
  /** Called once, with the addresses of the admin server. */
  readonly listening?: (addresses: readonly string[]) => void;
}
