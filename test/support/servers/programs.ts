/**
 * Common code of all real receivers: when they are requested, and the paths of programs that no
 * package puts on the PATH.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * The reason why this run starts no real receivers, which keeps `npm test` short; undefined if they
 * are requested.
 */
export function notAsked(): string | undefined {
  return process.env['WAYBILL_TEST_SERVERS'] === undefined ? 'real receivers are for npm run test:servers' : undefined;
}

/** `WAYBILL_TEST_CACHE`, else ~/.cache/waybill-servers. */
export function cacheFolder(): string {
  return process.env['WAYBILL_TEST_CACHE'] ?? join(homedir(), '.cache/waybill-servers');
}
