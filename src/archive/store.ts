/**
 * The boundary to the storage of an archive: a directory or a bucket. Paths are relative to the
 * archive: `checkpoints/0000000001`.
 */
export interface ArchiveStore {
  /** @returns undefined when there is no such object, or a larger one than an archive has */
  read(path: string): Promise<Buffer | undefined>;
  /** The paths that begin with a folder such as `segments/`, in any order; '' lists all. */
  list(folder: string): AsyncIterable<string>;
}

/** The limit for reading a segment: 256 MiB of lines, and the overhead of gzip. */
const maxSegmentBytes = 300_000_000;
/** Of a time stamp: an answer of an authority with more bytes is not stored. */
export const maxTokenBytes = 65_536;
/** A file of the index has 1.2 MB, and the others are smaller. */
const maxOtherBytes = 2_000_000;

/** More than an object of an archive with this path has. For a reader, a larger object does not exist. */
export function maxBytesOf(path: string): number {
  if (path.startsWith('segments/')) return maxSegmentBytes;
  return path.startsWith('timestamps/') ? maxTokenBytes : maxOtherBytes;
}

/** An archive that can be written. `create` and `replace` return when the object survives a power cut. */
export interface WritableArchiveStore extends ArchiveStore {
  /**
   * Creates an object permanently: a bucket locks it. @returns false if the path has other bytes;
   * nothing was written
   */
  create(path: string, bytes: Uint8Array): Promise<boolean>;
  /** Creates an object, or replaces it at once: a reader finds the old bytes or the new ones. */
  replace(path: string, bytes: Uint8Array): Promise<void>;
  /** Deletes an object, in a bucket with all its versions. Does nothing if there is none. */
  remove(path: string): Promise<void>;
  /** Sets or ends the legal hold of an object. Only a bucket has it. */
  hold?(path: string, isHeld: boolean): Promise<void>;
}
