/** `waybill setup postgres`: the tables of a fleet, and the rights of its members. */
import { loadConfig } from '../../../config/load.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { asked, poolOf } from '../../../fleet/database.ts';
import { rightsOf, setupStatements } from '../../../fleet/tables.ts';
import { confirmed } from '../../operation.ts';
import type { Io } from '../../io.ts';

/** For a database that is slow to create tables. */
const timeoutMs = 30_000;

interface SetupValues {
  readonly config: string | undefined;
  readonly shards: number;
  readonly reader: string | undefined;
  readonly print: boolean;
  readonly yes: boolean;
}

export async function setup(values: SetupValues, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const { fleet } = config;
  if (!fleet) throw new WaybillError('usage', 'cannot set up a database: the configuration has no "fleet"');
  const user = decodeURIComponent(new URL(fleet.database).username);
  const statements = [...setupStatements(values.shards), ...rightsOf(user, values.reader)];
  if (values.print) {
    io.stdout.write(`BEGIN;\n${statements.join(';\n')};\nCOMMIT;\n`);
    return 0;
  }
  const { WAYBILL_SETUP_DATABASE: administrator } = io.env;
  const plan = `In ${new URL(fleet.database).host}, creates what is missing in the schema "waybill": tables, ${values.shards} shards, and rights of "${user}"`;
  if (!(await confirmed([plan], values, io))) return 1;
  const access = administrator === undefined ? fleet : { database: administrator };
  const pool = poolOf({ ...access, ...config.tls }, timeoutMs);
  try {
    await asked(() => pool.query(`BEGIN;\n${statements.join(';\n')};\nCOMMIT`));
  } finally {
    await pool.end();
  }
  io.stderr.write('the database is ready\n');
  return 0;
}
