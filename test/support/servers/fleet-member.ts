/** A member of a fleet as a program: fleet-member.ts CONFIG URL NAME LEASE_MS. It logs to standard error, and ends by SIGTERM. */
import { loadConfig } from '../../../src/config/load.ts';
import { runMember } from '../../../src/daemon/member.ts';
import { openPool } from '../../../src/fleet/database.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { systemClock, systemRandom } from '../../../src/time/clock.ts';
import { uncounted } from '../uncounted.ts';

const [file, url = '', name = '', leaseMs] = process.argv.slice(2);
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort(new Error('SIGTERM')));
const { config } = await loadConfig(file, process.env);
const logs = createLog({ ...config.log }, systemClock, process.stderr, process.env);
const pool = openPool(url, 3_000);
const options = { version: '0.1.0', expectState: false, lockWait: 0, clock: systemClock, random: systemRandom, log: logs.root };
await runMember({ config, pool, name, leaseMs: Number(leaseMs), ...options }, uncounted, stop.signal);
logs.flush();
await pool.end();
process.exit(0);
