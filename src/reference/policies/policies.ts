/** The stored policies: access to payloads by user, time and place, and the excluded countries. */
import type { DataFile } from '../data-file.ts';
import { nameOf } from '../people/organization.ts';
import type { Payload } from '../payloads/payloads.ts';
import type { AccessLevel, Rules } from './shapes.ts';

/** Item of the list of policies. */
interface UserAuthorization {
  readonly userId: string;
  readonly userName: string;
  readonly email: string;
  readonly accessLevel: AccessLevel;
  readonly isRevoked: boolean;
}

interface GroupAuthorization {
  readonly groupId: string;
  readonly groupName: string;
  readonly accessLevel: AccessLevel;
  readonly isRevoked: boolean;
}

/** The change of a rule by a call; undefined without a change. */
export type Change = 'Created' | 'Changed' | undefined;
/** The table and column of authorized users or groups. */
type Side = 'user' | 'group';

interface Authorization {
  readonly level: AccessLevel;
  readonly revoked: number;
}

const noRules: Rules = { accessWindows: [], allowedAreas: [] };
const tableOf = (side: Side): string => `CREATE TABLE IF NOT EXISTS ${side}_authorizations (number INTEGER PRIMARY KEY,
  payload_id TEXT NOT NULL REFERENCES payloads (id), ${side}_id TEXT NOT NULL REFERENCES ${side}s (id),
  level TEXT NOT NULL CHECK (level IN ('View', 'FullAccess')), revoked INTEGER NOT NULL DEFAULT 0 CHECK (revoked IN (0, 1)),
  UNIQUE (payload_id, ${side}_id)) STRICT;`;

export class Policies {
  readonly #data: DataFile;

  constructor(data: DataFile) {
    this.#data = data;
    data.exec(`${tableOf('user')} ${tableOf('group')}
      CREATE TABLE IF NOT EXISTS payload_rules (payload_id TEXT PRIMARY KEY REFERENCES payloads (id), rules TEXT NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS excluded_countries (country TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;`);
  }

  /** Codes of ISO 3166-1, sorted. */
  excludedCountries(): string[] {
    return this.#data.prepared('SELECT country FROM excluded_countries').pluck().all() as string[];
  }

  excludeCountries(countries: readonly string[]): void {
    this.#data.transaction(() => {
      this.#data.prepared('DELETE FROM excluded_countries').run();
      for (const country of new Set(countries)) this.#data.prepared('INSERT INTO excluded_countries VALUES (?)').run(country);
    });
  }

  /**
   * The access of the user to the payload. The owner has full access. The authorization of the user
   * decides, also if it is revoked; without one, the highest access of a group.
   */
  levelOf(payload: Pick<Payload, 'payloadId' | 'owner'>, userId: string): AccessLevel | undefined {
    if (payload.owner.userId === userId) return 'FullAccess';
    const own = this.#authorization('user', payload.payloadId, userId);
    if (own) return own.revoked === 1 ? undefined : own.level;
    const levels = this.#data
      .prepared(
        `SELECT level FROM group_authorizations JOIN group_members USING (group_id)
         WHERE payload_id = ? AND user_id = ? AND revoked = 0`,
      )
      .pluck()
      .all(payload.payloadId, userId) as AccessLevel[];
    return levels.includes('FullAccess') ? 'FullAccess' : levels[0];
  }

  userAuthorizations(payloadId: string): UserAuthorization[] {
    const rows = this.#data
      .prepared(
        `SELECT users.id, first_name, last_name, email, level, revoked FROM user_authorizations JOIN users ON users.id = user_id
         WHERE payload_id = ? ORDER BY user_authorizations.number`,
      )
      .all(payloadId) as (Authorization & { id: string; first_name: string; last_name: string; email: string })[];
    return rows.map(({ id, first_name, last_name, email, level, revoked }) => {
      return { userId: id, userName: nameOf(first_name, last_name), email, accessLevel: level, isRevoked: revoked === 1 };
    });
  }

  groupAuthorizations(payloadId: string): GroupAuthorization[] {
    const rows = this.#data
      .prepared(
        `SELECT groups.id, name, level, revoked FROM group_authorizations JOIN groups ON groups.id = group_id
         WHERE payload_id = ? ORDER BY group_authorizations.number`,
      )
      .all(payloadId) as (Authorization & { id: string; name: string })[];
    return rows.map(({ id, name, level, revoked }) => ({ groupId: id, groupName: name, accessLevel: level, isRevoked: revoked === 1 }));
  }

  authorizeUser(payloadId: string, userId: string, level: AccessLevel): Change {
    return this.#authorize('user', payloadId, userId, level);
  }

  authorizeGroup(payloadId: string, groupId: string, level: AccessLevel): Change {
    return this.#authorize('group', payloadId, groupId, level);
  }

  /** Reports whether the authorization exists, and whether it was changed. */
  revoke(side: Side, payloadId: string, id: string, isRevoked: boolean): { found: boolean; change: Change } {
    const before = this.#authorization(side, payloadId, id);
    if (!before || (before.revoked === 1) === isRevoked) return { found: before !== undefined, change: undefined };
    this.#set(side, payloadId, id, before.level, isRevoked);
    return { found: true, change: 'Changed' };
  }

  /** An owner needs no authorization, and has none. */
  forgetUser(payloadId: string, userId: string): void {
    this.#data.prepared('DELETE FROM user_authorizations WHERE payload_id = ? AND user_id = ?').run(payloadId, userId);
  }

  rules(payloadId: string): Rules {
    return this.#rules(payloadId) ?? noRules;
  }

  /** Missing fields remain unchanged. */
  changeRules(payloadId: string, given: Partial<Rules>): Change {
    const before = this.#rules(payloadId);
    const after = { ...(before ?? noRules), ...given };
    if (JSON.stringify(after) === JSON.stringify(before ?? noRules)) return undefined;
    this.#data.prepared('INSERT OR REPLACE INTO payload_rules VALUES (?, ?)').run(payloadId, JSON.stringify(after));
    return before ? 'Changed' : 'Created';
  }

  #rules(payloadId: string): Rules | undefined {
    const text = this.#data.prepared('SELECT rules FROM payload_rules WHERE payload_id = ?').pluck().get(payloadId) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as Rules);
  }

  #authorization(side: Side, payloadId: string, id: string): Authorization | undefined {
    return this.#data
      .prepared(`SELECT level, revoked FROM ${side}_authorizations WHERE payload_id = ? AND ${side}_id = ?`)
      .get(payloadId, id) as Authorization | undefined;
  }

  #authorize(side: Side, payloadId: string, id: string, level: AccessLevel): Change {
    const before = this.#authorization(side, payloadId, id);
    if (before?.level === level && before.revoked === 0) return undefined;
    this.#set(side, payloadId, id, level, false);
    return before ? 'Changed' : 'Created';
  }

  #set(side: Side, payloadId: string, id: string, level: AccessLevel, isRevoked: boolean): void {
    this.#data
      .prepared(
        `INSERT INTO ${side}_authorizations (payload_id, ${side}_id, level, revoked) VALUES (?, ?, ?, ?)
         ON CONFLICT (payload_id, ${side}_id) DO UPDATE SET level = excluded.level, revoked = excluded.revoked`,
      )
      .run(payloadId, id, level, isRevoked ? 1 : 0);
  }
}
