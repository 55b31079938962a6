/** Where the programs of real receivers lie that no package puts on the path: `WAYBILL_TEST_CACHE`, else ~/.cache/waybill-servers. */
import { homedir } from 'node:os';
import { join } from 'node:path';

export function cacheFolder(): string {
  return process.env['WAYBILL_TEST_CACHE'] ?? join(homedir(), '.cache/waybill-servers');
}
