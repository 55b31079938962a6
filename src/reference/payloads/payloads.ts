/**
 * The stored payloads: metadata of protected files, and their keys, which never leave the service.
 */
import type { DataFile } from '../data-file.ts';
import type { User, Users } from '../people/users.ts';
import { keyBytes } from './container.ts';

/** One payload. */
export interface Payload {
  readonly payloadId: string;
  readonly owner: User;
  /** With its leading dot. */
  readonly fileType: string;
  /** Without extension. */
  readonly fileName: string;
  /** ISO 8601 with offset */
  readonly fileCreatedDate: string;
  readonly createdDate: string;
  readonly isRevoked: boolean;
  readonly key: Buffer;
}

interface Row extends Omit<Payload, 'owner' | 'isRevoked'> {
  readonly ownerId: string;
  readonly isRevoked: number;
}

export class Payloads {
  readonly #data: DataFile;
  readonly #users: Users;

  constructor(data: DataFile, users: Users) {
    this.#data = data;
    this.#users = users;
    data.exec(`CREATE TABLE IF NOT EXISTS payloads (id TEXT PRIMARY KEY, owner_id TEXT NOT NULL REFERENCES users (id),
      file_type TEXT NOT NULL, file_name TEXT NOT NULL, file_created TEXT NOT NULL, created TEXT NOT NULL,
      revoked INTEGER NOT NULL DEFAULT 0 CHECK (revoked IN (0, 1)), key BLOB NOT NULL CHECK (length(key) = ${keyBytes})) STRICT`);
  }

  add({ payloadId, owner, fileType, fileName, fileCreatedDate, createdDate, key }: Payload): void {
    this.#data
      .prepared('INSERT INTO payloads (id, owner_id, file_type, file_name, file_created, created, key) VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(payloadId, owner.userId, fileType, fileName, fileCreatedDate, createdDate, key);
  }

  find(payloadId: string): Payload | undefined {
    const row = this.#data
      .prepared(
        `SELECT id AS payloadId, owner_id AS ownerId, file_type AS fileType, file_name AS fileName, file_created AS fileCreatedDate,
         created AS createdDate, revoked AS isRevoked, key FROM payloads WHERE id = ?`,
      )
      .get(payloadId) as Row | undefined;
    if (!row) return undefined;
    const { ownerId, isRevoked, ...rest } = row;
    const owner = this.#users.find(ownerId);
    if (!owner) throw new Error(`the owner of payload ${payloadId} does not exist`);
    return { ...rest, owner, isRevoked: isRevoked === 1 };
  }

  setOwner(payloadId: string, userId: string): void {
    this.#data.prepared('UPDATE payloads SET owner_id = ? WHERE id = ?').run(userId, payloadId);
  }

  setRevoked(payloadId: string, isRevoked: boolean): void {
    this.#data.prepared('UPDATE payloads SET revoked = ? WHERE id = ?').run(isRevoked ? 1 : 0, payloadId);
  }
}
