/** The records of an archive, for a replay. The archive is opened again after it was closed. */
import { WaybillError } from '../errors/errors.ts';
import type { ArchivedRecords, ArchiveReplay } from '../model/journal.ts';

/** Opens the archive of a replay, to read its records until `signal` ends that. */
export type OpenArchive = (replay: ArchiveReplay, signal: AbortSignal) => Promise<ArchivedRecords>;

/** Thrown for an archive without a checkpoint: what it will get reaches the sink from the journal. */
export class EmptyArchive extends WaybillError {}

export class ArchiveSource {
  readonly #open: OpenArchive;
  readonly #stop = new AbortController();
  #records: Promise<ArchivedRecords> | undefined;

  constructor(open: OpenArchive) {
    this.#open = open;
  }

  /**
   * @returns the records, and `replay` with the identity of the archive
   * @throws WaybillError `archive_broken` when the archive cannot be read, or is another one than before; EmptyArchive when it was never written
   */
  async open(replay: ArchiveReplay): Promise<{ readonly records: ArchivedRecords; readonly replay: ArchiveReplay }> {
    const { archive, at } = replay;
    const records = await (this.#records ??= this.#open(replay, this.#stop.signal));
    const { lines, origin } = records;
    if (lines === 0)
      throw new (replay.origin === undefined ? EmptyArchive : WaybillError)(
        'archive_broken',
        `cannot read the archive "${archive}": it has no checkpoint`,
      );
    if ((replay.origin ?? origin) !== origin || lines < at)
      throw new WaybillError(
        'archive_broken',
        `cannot continue the replay from "${archive}" after line ${at} of "${replay.origin}": the archive is now "${origin}" with ${lines} lines`,
      );
    return { records, replay: { ...replay, origin } };
  }
  /** Closes the archive. Waits for an open in progress. */
  async close(): Promise<void> {
    const records = this.#records;
    this.#records = undefined;
    const opened = await records?.catch(() => undefined);
    await opened?.[Symbol.asyncDispose]();
  }

  /** Ends an attempt to open the archive, and closes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new WaybillError('aborted', 'the replay has stopped'));
    await this.close();
  }
}
