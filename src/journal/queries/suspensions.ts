/** The suspensions that are in force. Reads only the database. */
import type { Database } from 'better-sqlite3';
import type { Suspension } from '../../model/ledger.ts';
import type { Micros } from '../../model/time.ts';
import { storedJson } from '../damage.ts';

/** By source: the starts of windows that one `rows` suspension lists. */
export function suspendedTogether(db: Database): ReadonlyMap<string, ReadonlySet<Micros>> {
  const rows = db.prepare<[], { id: string; suspension: string }>(
    "SELECT id, json_extract(profile, '$.suspension') AS suspension FROM sources WHERE json_extract(profile, '$.suspension') IS NOT NULL",
  );
  return new Map(
    rows.all().map(({ id, suspension }) => {
      const { windows = [], shrunk = [] } = storedJson(suspension) as Suspension;
      return [id, new Set([...windows, ...shrunk])];
    }),
  );
}
