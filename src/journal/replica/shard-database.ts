/** The boundary between a journal and the database that stores its rows. src/fleet implements it for PostgreSQL, the tests with a model. */

export type Value = number | string | Buffer | null;
export type Row = Readonly<Record<string, Value>>;

/** The final content of a row that transactions changed; `row` undefined: they deleted it. */
export interface Change {
  readonly table: string;
  /** The values of the primary key, in the order of its columns. */
  readonly key: readonly Value[];
  readonly row: Row | undefined;
}

/** The columns of the fence row that a commit requires. */
export interface Fence {
  /** The random id of the owner's lease. */
  readonly lease: string;
  /** The number of the last commit. */
  readonly commits: number;
}

export interface Commit {
  /** The fence row must have these values. The statement sets `commits` to `number`. */
  readonly fence: Fence;
  readonly number: number;
  readonly changes: readonly Change[];
}

/**
 * The rows of one shard under the lease of its owner. Each member throws `database_unreachable` if the answer is missing: a commit may have
 * been carried out, or may still be carried out later. Any other error is a defect.
 */
export interface ShardDatabase {
  /** The fence row when the owner took the shard. */
  readonly taken: Fence;
  /** All rows of the shard, as one snapshot. No row: the shard has no journal yet. */
  load(): AsyncIterable<readonly [table: string, rows: readonly Row[]]>;
  /** Carries out the commit in one transaction. @returns false if the fence refused it: nothing was changed */
  commit(commit: Commit): Promise<boolean>;
  /** The fence row now; undefined if the shard is gone. */
  fence(): Promise<Fence | undefined>;
}
