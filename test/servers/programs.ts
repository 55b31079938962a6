/** What all real receivers share: when they are asked for, and where their programs lie that no package puts on the path. */
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Why no real receiver is started in this run; undefined when they are wanted. `npm test` stays short without them. */
export function notAsked(): string | undefined {
  return process.env['WAYBILL_TEST_SERVERS'] === undefined ? 'real receivers are for npm run test:servers' : undefined;
}

/** `WAYBILL_TEST_CACHE`, else ~/.cache/waybill-servers. */
export function cacheFolder(): string {
  return process.env['WAYBILL_TEST_CACHE'] ?? join(homedir(), '.cache/waybill-servers');
}
