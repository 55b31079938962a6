/** The part of `waybill check` for the admin server: whether the daemon could listen. */
import { tryAddresses } from '../../../admin/server.ts';
import type { Config } from '../../../config/load.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { isRunning } from '../../daemon-client.ts';
import { systemCode } from '../../http-exchange.ts';
import type { Line } from './state.ts';

/** Returns no line while a daemon runs with this state: the address is its own. */
export async function adminLines({ admin, dataDir }: Pick<Config, 'admin' | 'dataDir'>): Promise<Line[]> {
  const subject = 'admin';
  try {
    if (await isRunning(dataDir)) return [];
    await tryAddresses(admin);
    return [{ subject, level: 'ok', message: `can listen on ${[admin.listen].flat().join(', ')}` }];
  } catch (thrown) {
    if (!(thrown instanceof WaybillError)) throw thrown;
    // Another user's state: its own line says so, and whose the address is remains unknown.
    if (systemCode(thrown.cause) === 'EACCES' && thrown.code === 'state_unusable') return [];
    // Messages name the setting: `admin.listen` or one of `admin.tls`.
    const [setting] = /admin\.[a-z.]*[a-z]/.exec(thrown.message) ?? [];
    return [{ subject, level: 'error', message: thrown.message, ...(setting !== undefined && { setting }) }];
  }
}
