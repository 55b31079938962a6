/** The part of `waybill check` for the admin server: whether the daemon could listen. */
import { tryAddresses } from '../../../admin/server.ts';
import type { Config } from '../../../config/load.ts';
import { WaybillError } from '../../../errors.ts';
import { isRunning } from '../../daemon-client.ts';
import type { Line } from './state.ts';

/** Returns no line while a daemon runs with this state: the address is its own. */
export async function adminLines({ admin, dataDir }: Pick<Config, 'admin' | 'dataDir'>): Promise<Line[]> {
  const subject = 'admin';
  const setting = 'admin.listen';
  try {
    if (await isRunning(dataDir)) return [];
    await tryAddresses(admin);
    return [{ subject, level: 'ok', message: `can listen on ${[admin.listen].flat().join(', ')}` }];
  } catch (thrown) {
    if (!(thrown instanceof WaybillError)) throw thrown;
    return [{ subject, level: 'error', message: thrown.message, setting }];
  }
}
