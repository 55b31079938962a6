/** The settings of a fleet: the database that keeps the state of its members. */
import { z } from 'zod';
import { duration, secret, text } from '../settings/values.ts';

/** `fleet` */
export const fleetSettings = z
  .strictObject({
    database: text(
      /^postgres(ql)?:\/\/[^:@/\s]+@[^@/\s]+\/[^/?#\s]+$/,
      'an address such as postgres://waybill@db.example:5432/audit, without a password',
    ).describe('Database in PostgreSQL 15 or later, with the user that `waybill setup postgres` gives rights to'),
    password: secret().optional().describe('Password of this user'),
    lease: duration({ min: '5s', max: '5m' })
      .prefault('15s')
      .describe('Time after which other members take over the shards of a member that does not answer. The same for all members'),
  })
  .describe('Keep the state in a database that any number of equal processes share; default: one process with a file in `dataDir`');

export type FleetSettings = z.output<typeof fleetSettings>;
