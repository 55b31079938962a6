/**
 * Deletes the segments of lines that an order to prune named, once a checkpoint has signed the order, in parallel to the sink. The position
 * line of each segment has the lines whose segments are left, so that the next start goes on.
 */
import type { LineRange } from '../../archive/line.ts';
import { hasLine } from '../../archive/line-ranges.ts';
import { parseSegmentPath } from '../../archive/segment.ts';
import type { WritableArchiveStore } from '../../archive/store.ts';
import type { Log } from '../../model/telemetry.ts';

interface RemoverParts {
  readonly id: string;
  readonly store: WritableArchiveStore;
  readonly log: Log;
  /** The first line that a replay from this archive has yet to read; undefined: no replay reads it. */
  readonly replayedFrom: () => number | undefined;
}

export class Remover implements AsyncDisposable {
  readonly #parts: RemoverParts;
  #left: readonly LineRange[] = [];
  #isStopped = false;
  #work: Promise<void> | undefined;

  constructor(parts: RemoverParts) {
    this.#parts = parts;
  }

  /** The lines whose segments are left. */
  get left(): readonly LineRange[] {
    return this.#left;
  }

  /** @param lines  of signed orders, made of complete segments. After a failure, the next call tries again */
  start(lines: readonly LineRange[]): void {
    this.#left = lines;
    if (lines.length > 0) this.#work ??= this.#remove().finally(() => (this.#work = undefined));
  }

  /** Waits for the deletion of one segment. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    await this.#work;
  }

  async #remove(): Promise<void> {
    const { id, store, log, replayedFrom } = this.#parts;
    const lines = this.#left;
    const end = replayedFrom() ?? Infinity;
    let segments = 0;
    try {
      const listed = (await Array.fromAsync(store.list('segments/'))).flatMap((path) => parseSegmentPath(path) ?? []);
      listed.sort((a, b) => a.firstLeaf - b.firstLeaf);
      // The next segment begins after the last line of this one. The newest one always stays.
      const firsts = [...new Set(listed.map(({ firstLeaf }) => firstLeaf))];
      const nexts = new Map(firsts.map((first, i) => [first, firsts[i + 1]]));
      for (const { path, firstLeaf } of listed) {
        const next = nexts.get(firstLeaf);
        if (!hasLine(lines, firstLeaf + 1) || next === undefined || next >= end) continue;
        if (this.#isStopped) return;
        await store.remove(path);
        segments += 1;
      }
      // An order that was signed meanwhile is carried out by the next call.
      this.#left = this.#left.filter(({ first, last }) => last >= end || !lines.some((done) => done.first === first && done.last === last));
    } catch (error) {
      log.write('archive.removal_failed', { sink: id, error });
    }
    if (segments > 0) log.write('archive.segments_removed', { sink: id, segments });
  }
}
