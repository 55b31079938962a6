/**
 * A file, one message a line, each line exactly once: a batch is appended and synced before it is acknowledged, and what was written past the
 * acknowledged position is cut when the file is opened again. Whoever renames the file (logrotate) is noticed before the next batch.
 */
import { constants } from 'node:fs';
import { access, lstat, open, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { WaybillError, wordsOf } from '../errors.ts';
import type { Batch, Kept, Position, Sink, Taken } from '../model.ts';
import { defineSink } from './define.ts';
import type { Finding, SinkContext } from './define.ts';
import { LineBuffer } from './file-lines.ts';
import { markOf, PositionFile, sameFile } from './file-position.ts';
import type { FileMark, FileName } from './file-position.ts';

const config = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe(
      'The file; its directory must exist. A relative path is taken from the working directory; a link in place of the file is refused',
    ),
});

type FileConfig = z.output<typeof config>;

const lineBreak = 0x0a;

/** Which file each sink has, by its id: paths do not tell, for a file may have several. */
const holders = new Map<string, { readonly name: FileName; readonly path: string }>();

/** Writes and openings that are still under way, by path: a deadline cannot stop them, so whoever opens the file waits for them. */
const underWay = new Map<string, Promise<unknown>>();

export const file = defineSink('file', {
  summary: 'a file on a local disk, one message a line',
  config,
  later: ['rotate', 'gzip'],
  formats: ['ecs', 'cef', 'raw'],
  batch: { records: 250, bytes: 1024 * 1024, wait: 1_000 },
  resolvable: true,
  keepsPosition: true,
  deadline: 60_000,
  destination: ({ path }) => resolve(path),
  guarantee: () => ({
    delivery: 'exactly once',
    duplicates: '0 (one batch in a file that somebody else rotated between the begin of a batch and the start after a kill)',
    losses: '0',
  }),
  async check({ path }, { id }) {
    const setting = `sinks.${id}.path`;
    const words = (what: string, cause: unknown): string => `cannot ${what} "${path}" (${setting}): ${wordsOf(cause)}`;
    try {
      await access(dirname(resolve(path)), constants.W_OK | constants.X_OK);
    } catch (cause) {
      return [{ level: 'error', words: words('write in the directory of', cause), setting }];
    }
    const found: Finding[] = [];
    for (const each of [path, `${path}.position`]) {
      try {
        const kind = await kindAt(each);
        if (kind !== undefined) return [{ level: 'error', words: `cannot use "${each}" (${setting}): ${kind}`, setting }];
        await access(each, constants.R_OK | constants.W_OK);
        if (each === path) found.push({ level: 'ok', words: `"${path}" is there and can be written` });
      } catch (cause) {
        if (!isAbsent(cause)) return [{ level: 'error', words: words('write', cause), setting }];
        if (each === path) found.push({ level: 'ok', words: `"${path}" can be made` });
      }
    }
    return found;
  },
  open: (settings, context, kept) => FileSink.open(settings, context, kept),
});

class FileSink implements Sink {
  readonly #path: string;
  readonly #id: string;
  readonly #kept: Kept;
  readonly #slots: PositionFile;
  readonly #slotsHandle: FileHandle;
  readonly #lines = new LineBuffer();
  #handle: FileHandle;
  #name: FileName;
  /** Bytes of the file that are ours to keep: everything up to the last batch that was taken. */
  #length: number;
  #position: Position;

  /** One life of a file begins when the one before has let go: an opening that comes too late must not cut what a later life has written. */
  static async open(settings: FileConfig, context: SinkContext, kept: Kept): Promise<FileSink> {
    const absolute = resolve(settings.path);
    const opening = (underWay.get(absolute) ?? Promise.resolve()).then(() => FileSink.#open(absolute, settings, context, kept));
    return whileUnderWay(absolute, opening);
  }

  static async #open(absolute: string, { path }: FileConfig, { id }: SinkContext, kept: Kept): Promise<FileSink> {
    // Nothing is made beside what cannot be the file.
    const kind = await kindAt(absolute).catch(() => undefined);
    if (kind !== undefined) throw blockedAt(absolute, id, kind);
    const slotsHandle = await openFile(`${absolute}.position`, id);
    try {
      const slots = await PositionFile.read(slotsHandle);
      const at = await believed(slots, kept, id, path);
      const handle = await openFile(absolute, id);
      try {
        const found = await nameAndSize(handle);
        const ours = at.mark && sameFile(at.mark.file, found.name) ? at.mark : undefined;
        const sink = new FileSink(absolute, id, kept, slots, slotsHandle, handle, found.name, ours?.length ?? found.size, at.position);
        sink.#hold(found.name);
        if (!ours) {
          if (kept.adopt === true) await sink.#adopt();
          await sink.#begin();
        } else if (found.size < ours.length) {
          throw new WaybillError(
            'file_lost_data',
            `cannot go on in "${path}" for sink "${id}": it holds ${found.size} bytes, and ${ours.length} had been taken; restore it, give the sink a new id, or see "waybill sinks adopt"`,
          );
        } else if (found.size > ours.length) {
          // What lies beyond was never acknowledged. The cut is synced before anything else is written.
          await handle.truncate(ours.length);
          await handle.sync();
        }
        return sink;
      } catch (thrown) {
        await handle.close();
        throw thrown;
      }
    } catch (thrown) {
      await slotsHandle.close();
      throw thrown;
    }
  }

  private constructor(
    path: string,
    id: string,
    kept: Kept,
    slots: PositionFile,
    slotsHandle: FileHandle,
    handle: FileHandle,
    name: FileName,
    length: number,
    position: Position,
  ) {
    this.#path = path;
    this.#id = id;
    this.#kept = kept;
    this.#slots = slots;
    this.#slotsHandle = slotsHandle;
    this.#handle = handle;
    this.#name = name;
    this.#length = length;
    this.#position = position;
  }

  async position(): Promise<{ position: Position; note: string }> {
    return { position: this.#position, note: this.#note() };
  }

  async send(batch: Batch): Promise<Taken> {
    return whileUnderWay(this.#path, this.#write(batch));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await underWay.get(this.#path);
    await this.#handle.close();
    await this.#slotsHandle.close();
  }

  async #write(batch: Batch): Promise<Taken> {
    try {
      await this.#followPath();
      const bytes = this.#lines.lines(batch.messages);
      for (let written = 0; written < bytes.length;) {
        const { bytesWritten } = await this.#handle.write(bytes, written, bytes.length - written, this.#length + written);
        written += bytesWritten;
      }
      await this.#handle.datasync();
      this.#length += bytes.length;
      this.#position = batch.through;
      await this.#slots.write({ journal: this.#kept.journal, position: this.#position, file: this.#name, length: this.#length });
      return { rejections: [], note: this.#note() };
    } catch (cause) {
      if (cause instanceof WaybillError) throw cause;
      throw new WaybillError('sink_unknown', `cannot write "${this.#path}" for sink "${this.#id}": ${wordsOf(cause)}`, { cause });
    }
  }

  /** A file that is gone, another one, or one that was cut has been rotated by somebody else: writing goes on at the end of what is there. */
  async #followPath(): Promise<void> {
    const at = await stat(this.#path, { bigint: true }).catch((cause: unknown) => {
      if (isAbsent(cause)) return undefined;
      throw cause;
    });
    if (at && sameFile(nameOf(at), this.#name) && Number(at.size) === this.#length) return;
    if (!at || !sameFile(nameOf(at), this.#name)) {
      const handle = await openFile(this.#path, this.#id);
      try {
        this.#hold((await nameAndSize(handle)).name);
      } catch (thrown) {
        await handle.close();
        throw thrown;
      }
      await this.#handle.close();
      this.#handle = handle;
    }
    const found = await nameAndSize(this.#handle);
    this.#name = found.name;
    this.#length = found.size;
    await this.#begin();
  }

  /**
   * What is there is not ours to cut, so its last line may be torn; ours begin on a new one. The position beside the file is from now on that of
   * this journal, and synced: an older one would block the sink again.
   */
  async #adopt(): Promise<void> {
    const last = Buffer.alloc(1);
    if (this.#length > 0) await this.#handle.read(last, 0, 1, this.#length - 1);
    if (this.#length > 0 && last[0] !== lineBreak) {
      await this.#handle.write(Buffer.from([lineBreak]), 0, 1, this.#length);
      this.#length += 1;
    }
    await this.#slots.write({ journal: this.#kept.journal, position: this.#position, file: this.#name, length: this.#length });
    await this.#slotsHandle.datasync();
  }

  /** Before the first line goes into a file, the journal knows which file, and from where on it is ours. */
  async #begin(): Promise<void> {
    await this.#handle.sync();
    await syncDirectory(dirname(this.#path));
    await this.#kept.commitNote(this.#note());
  }

  /**
   * One sink a file, for as long as the process runs: what another one writes there would be taken for lines that were never acknowledged, and
   * cut. A later life of the same sink is another matter.
   */
  #hold(name: FileName): void {
    const other = [...holders].find(([id, held]) => id !== this.#id && sameFile(held.name, name));
    if (other) {
      const [id, { path }] = other;
      const words = `the sink "${id}" writes the same file, as "${path}"`;
      throw new WaybillError('sink_blocked', `cannot use "${this.#path}" for sink "${this.#id}" (sinks.${this.#id}.path): ${words}`);
    }
    holders.set(this.#id, { name, path: this.#path });
  }

  #note(): string {
    return JSON.stringify({ file: this.#name, length: this.#length } satisfies FileMark);
  }
}

/** Whoever opens the file next waits for this. */
async function whileUnderWay<Result>(path: string, work: Promise<Result>): Promise<Result> {
  const settled = work.catch(() => undefined);
  underWay.set(path, settled);
  try {
    return await work;
  } finally {
    if (underWay.get(path) === settled) underWay.delete(path);
  }
}

/** Which of the two candidates is true: the journal's own note, or the newest slot beside the file. */
async function believed(
  slots: PositionFile,
  kept: Kept,
  id: string,
  path: string,
): Promise<{ position: Position; mark: FileMark | undefined }> {
  const slot = slots.newest;
  if (kept.adopt === true) return { position: kept.position, mark: undefined };
  const own = { position: kept.position, mark: markOf(kept.note) };
  if (!slot) return own;
  if (slot.journal !== kept.journal) {
    throw new WaybillError(
      'sink_blocked',
      `cannot go on in "${path}" for sink "${id}": it belongs to another state (the state was lost, or two daemons write it); restore that state, use another path, or see "waybill sinks adopt"`,
    );
  }
  if (slot.position.seq <= kept.position.seq) return own;
  const chain = await kept.chainAt(slot.position.seq);
  if (!chain || Buffer.compare(chain, slot.position.chain) !== 0) {
    throw new WaybillError(
      'sink_blocked',
      `cannot go on in "${path}" for sink "${id}": it has entry ${slot.position.seq}, which this state does not know (an older copy was restored); restore the right state, use another path, or see "waybill sinks adopt"`,
    );
  }
  return { position: slot.position, mark: { file: slot.file, length: slot.length } };
}

function blockedAt(path: string, id: string, words: string, cause?: unknown): WaybillError {
  return new WaybillError('sink_blocked', `cannot open "${path}" for sink "${id}" (sinks.${id}.path): ${words}`, { cause });
}

async function openFile(path: string, id: string): Promise<FileHandle> {
  try {
    // Looked at before it is opened: to open a device can have an effect of its own.
    const kind = await kindAt(path);
    if (kind !== undefined) throw blockedAt(path, id, kind);
    return await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (cause) {
    throw cause instanceof WaybillError ? cause : blockedAt(path, id, wordsOf(cause), cause);
  }
}

/** What is there in place of a file; undefined for a file, and where nothing is. */
async function kindAt(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch((cause: unknown) => {
    if (isAbsent(cause)) return undefined;
    throw cause;
  });
  if (!found || found.isFile()) return undefined;
  if (found.isSymbolicLink()) return 'it is a symbolic link, which is not followed: name the file itself';
  if (found.isDirectory()) return 'it is a directory, not a file';
  return `it is ${found.isFIFO() ? 'a FIFO' : found.isSocket() ? 'a socket' : 'a device'}, not a file`;
}

function isAbsent(cause: unknown): boolean {
  return (cause as { code?: unknown }).code === 'ENOENT';
}

async function nameAndSize(handle: FileHandle): Promise<{ name: FileName; size: number }> {
  const found = await handle.stat({ bigint: true });
  return { name: nameOf(found), size: Number(found.size) };
}

function nameOf(found: { dev: bigint; ino: bigint; birthtimeNs: bigint }): FileName {
  return { dev: String(found.dev), ino: String(found.ino), birth: String(found.birthtimeNs) };
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
