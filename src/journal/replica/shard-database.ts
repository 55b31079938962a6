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

/** The large columns of a segment. */
export interface SegmentColumns {
  readonly seq: number;
  readonly uids: Buffer;
  readonly ends: Buffer;
  readonly body: Buffer;
}

/** The large column of a row of `seen`, with its key. */
export interface SeenColumns {
  readonly source: number;
  readonly bucket: number;
  readonly seq: number;
  readonly uids: Buffer;
}

export interface Commit {
  /** The fence row must have these values. The statement sets `commits` to `number`. */
  readonly fence: Fence;
  readonly number: number;
  readonly changes: readonly Change[];
  /** The commits that the database had lost, and whose rows this one writes again. */
  readonly lost?: { readonly first: number; readonly last: number };
}

/**
 * The rows of one shard under the lease of its owner. Each member throws `database_unreachable` if the answer is missing: a commit may have
 * been carried out, or may still be carried out later. Any other error is a defect.
 */
export interface ShardDatabase {
  /** The fence row when the owner took the shard. */
  readonly taken: Fence;
  /**
   * All rows of the shard, as one snapshot. No row: the shard has no journal yet. The columns of SegmentColumns and SeenColumns may be empty, but
   * not in segments of a moment and not in buckets below 0.
   */
  load(): AsyncIterable<readonly [table: string, rows: readonly Row[]]>;
  /** The segment at `seq` and some after it. */
  segments(seq: number): Promise<readonly SegmentColumns[]>;
  /** The uids of buckets of a source. */
  seen(source: number, buckets: readonly number[]): Promise<readonly SeenColumns[]>;
  /** Carries out the commit in one transaction. @returns false if the fence refused it: nothing was changed */
  commit(commit: Commit): Promise<boolean>;
  /** Resolves while no other member can own the shard, by the clock of this one; waits for a renewal. @throws WaybillError `lease_lost` */
  owned(signal: AbortSignal): Promise<void>;
  /** The database has carried out the commit. @param ms  since it was first sent */
  done(commit: Commit, ms: number): void;
  /** The fence row now; undefined if the shard is gone. */
  fence(): Promise<Fence | undefined>;
}
