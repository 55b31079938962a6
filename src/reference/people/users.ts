/**
 * The stored people of the organization: users, roles, groups and credentials. The seed determines
 * the initial ones; calls change them. Constraints of the tables enforce the invariants.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { DataFile } from '../data-file.ts';
import { nameOf, passwordOf, type Organization, type Person } from './organization.ts';
import { roles as everyRole, type Role } from './roles.ts';

/** A user with all fields of user management. */
export interface User extends Person {
  readonly groupIds: readonly string[];
  /** ms since 1970 */
  readonly createdAt: number;
}

/** Credentials for the grant password. */
export interface Account {
  readonly userId: string;
  readonly username: string;
  readonly password: string;
}

interface NewUser {
  readonly firstName: string;
  readonly lastName: string;
  readonly email: string;
  readonly roles: readonly Role[];
  readonly groupIds: readonly string[];
}

export interface GroupRow {
  readonly groupId: string;
  readonly name: string;
  readonly memberIds: readonly string[];
}

interface Row {
  readonly id: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly email: string;
  readonly created_at: number;
  readonly roles: string;
  readonly groups: string;
}

/** A change that would violate a rule of the organization, which the text names. */
export class Conflict extends Error {
  override readonly name = 'Conflict';
}

const texts = (values: readonly string[]): string => values.map((value) => `'${value}'`).join();
const tables = `
  CREATE TABLE IF NOT EXISTS users (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, first_name TEXT NOT NULL, last_name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE COLLATE NOCASE, username TEXT NOT NULL UNIQUE COLLATE NOCASE, password TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS user_roles (user_id TEXT NOT NULL REFERENCES users (id), role TEXT NOT NULL CHECK (role IN (${texts(everyRole)})),
    PRIMARY KEY (user_id, role)) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS one_super_administrator ON user_roles (role) WHERE role = 'Super Administrator';
  CREATE TABLE IF NOT EXISTS groups (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE IF NOT EXISTS group_members (group_id TEXT NOT NULL REFERENCES groups (id), user_id TEXT NOT NULL REFERENCES users (id),
    PRIMARY KEY (user_id, group_id)) STRICT, WITHOUT ROWID;`;
const selectUsers = `SELECT id, first_name, last_name, email, created_at,
  (SELECT json_group_array(role) FROM user_roles WHERE user_id = id) AS roles,
  (SELECT json_group_array(group_id) FROM group_members WHERE user_id = id) AS groups FROM users`;

export class Users {
  readonly #data: DataFile;

  /** Creates the tables, and the people of the seed if there are none. */
  constructor(data: DataFile, organization: Organization, seed: string) {
    this.#data = data;
    data.exec(tables);
    if (this.count() === 0) this.settle(organization, seed);
  }

  count(): number {
    return this.#data.prepared('SELECT count(*) FROM users').pluck().get() as number;
  }

  /** In the order of creation. */
  page(limit: number, offset: number): User[] {
    const rows = this.#data.prepared(`${selectUsers} ORDER BY number LIMIT ? OFFSET ?`).all(limit, offset) as Row[];
    return rows.map(userOf);
  }

  find(userId: string): User | undefined {
    const row = this.#data.prepared(`${selectUsers} WHERE id = ?`).get(userId) as Row | undefined;
    return row && userOf(row);
  }

  account(username: string): Account | undefined {
    return this.#data.prepared('SELECT id AS userId, username, password FROM users WHERE username = ?').get(username) as
      Account | undefined;
  }

  accounts(): Account[] {
    return this.#data.prepared('SELECT id AS userId, username, password FROM users ORDER BY number').all() as Account[];
  }

  groups(): GroupRow[] {
    const rows = this.#data
      .prepared(
        `SELECT id AS groupId, name, (SELECT json_group_array(user_id) FROM group_members WHERE group_id = id) AS members
         FROM groups ORDER BY number`,
      )
      .all() as { groupId: string; name: string; members: string }[];
    return rows.map(({ groupId, name, members }) => ({ groupId, name, memberIds: JSON.parse(members) as string[] }));
  }

  hasGroup(groupId: string): boolean {
    return this.#data.prepared('SELECT 1 FROM groups WHERE id = ?').get(groupId) !== undefined;
  }

  /** Adds people and groups of the seed. Skips the ones that an earlier start added. */
  settle({ people, groups, accounts }: Pick<Organization, 'people' | 'groups' | 'accounts'>, seed: string): void {
    this.#data.transaction(() => {
      const newPeople = people.filter(({ userId }) => !this.find(userId));
      for (const person of newPeople) {
        const account = accounts.find((each) => each.person.userId === person.userId);
        this.#insert(person, person.email, account?.password ?? passwordOf(seed, person.userId));
        for (const role of person.roles) this.giveRole(person.userId, role);
      }
      for (const { groupId, name, members } of groups.filter((group) => !this.hasGroup(group.groupId))) {
        this.#data.prepared('INSERT INTO groups (id, name) VALUES (?, ?)').run(groupId, name);
        for (const { userId } of members) this.#data.prepared('INSERT INTO group_members VALUES (?, ?)').run(groupId, userId);
      }
    });
  }

  /** A new user, who signs in with the e-mail address. @throws Conflict */
  create(given: NewUser): User {
    return this.#data.transaction(() => {
      this.#checkEmail(given.email);
      const userId = randomUUID();
      this.#insert({ ...given, userId }, given.email, randomBytes(20).toString('hex'));
      for (const role of given.roles) this.giveRole(userId, role);
      this.#setGroups(userId, given.groupIds);
      return this.#known(userId);
    });
  }

  /** Changes the given fields, all or none. @throws Conflict */
  change(userId: string, given: Partial<Omit<NewUser, 'roles'>>): User {
    return this.#data.transaction(() => {
      const { firstName, lastName, email } = { ...this.#known(userId), ...given };
      if (given.email !== undefined) this.#checkEmail(given.email, userId);
      this.#data.prepared('UPDATE users SET first_name = ?, last_name = ?, email = ? WHERE id = ?').run(firstName, lastName, email, userId);
      if (given.groupIds) this.#setGroups(userId, given.groupIds);
      return this.#known(userId);
    });
  }

  /** @throws Conflict if another user is Super Administrator */
  giveRole(userId: string, role: Role): User {
    if (role === 'Super Administrator') {
      const holder = this.#data.prepared(`SELECT user_id FROM user_roles WHERE role = 'Super Administrator'`).pluck().get();
      if (holder !== undefined && holder !== userId)
        throw new Conflict('An organization has exactly one Super Administrator, and another user has this role');
    }
    this.#data.prepared('INSERT OR IGNORE INTO user_roles VALUES (?, ?)').run(userId, role);
    return this.#known(userId);
  }

  /** @throws Conflict for the last role of a user, and for Super Administrator */
  takeRole(userId: string, role: Role): User {
    const user = this.#known(userId);
    if (role === 'Super Administrator')
      throw new Conflict('An organization has exactly one Super Administrator: the role cannot be revoked');
    if (user.roles.every((held) => held === role)) throw new Conflict('A user needs at least one role, and this is the last');
    this.#data.prepared('DELETE FROM user_roles WHERE user_id = ? AND role = ?').run(userId, role);
    return this.#known(userId);
  }

  #insert(user: Pick<Person, 'userId' | 'firstName' | 'lastName' | 'email'>, username: string, password: string): void {
    this.#data
      .prepared('INSERT INTO users (id, first_name, last_name, email, username, password, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(user.userId, user.firstName, user.lastName, user.email, username, password, Date.now());
  }

  #setGroups(userId: string, groupIds: readonly string[]): void {
    this.#data.prepared('DELETE FROM group_members WHERE user_id = ?').run(userId);
    for (const groupId of new Set(groupIds)) {
      this.#data.prepared('INSERT INTO group_members VALUES (?, ?)').run(groupId, userId);
    }
  }

  /** The sign-in name does not change, so it may be a former address of another user. */
  #checkEmail(email: string, userId = ''): void {
    const taken = this.#data.prepared('SELECT 1 FROM users WHERE (email = ? OR username = ?) AND id <> ?').get(email, email, userId);
    if (taken !== undefined) throw new Conflict(`Another user has the e-mail address ${email}`);
  }

  #known(userId: string): User {
    const user = this.find(userId);
    if (!user) throw new Error(`there is no user ${userId}`);
    return user;
  }
}

function userOf(row: Row): User {
  return {
    userId: row.id,
    firstName: row.first_name,
    lastName: row.last_name,
    name: nameOf(row.first_name, row.last_name),
    email: row.email,
    roles: JSON.parse(row.roles) as Role[],
    groupIds: JSON.parse(row.groups) as string[],
    createdAt: row.created_at,
  };
}
