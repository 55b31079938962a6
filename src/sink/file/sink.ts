/**
 * Writes a file, each line exactly once: appends and syncs a batch before its acknowledgement, and truncates further bytes at the next
 * open. Rotates the file, and detects before each batch, and every second, that another program (logrotate) renamed it.
 */
import type { BigIntStats } from 'node:fs';
import { stat, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { Position } from '../../model/ledger.ts';
import type { Batch, ResumePoint, ResumePosition, Sink, DeliveryResult } from '../../model/sink.ts';
import type { Clock } from '../../model/time.ts';
import type { SinkContext } from '../define.ts';
import {
  blockedAt,
  endsWithinLine,
  isAbsent,
  kindAt,
  linksWords,
  nameAndSize,
  nameOf,
  openFile,
  openPositionFile,
  syncDirectory,
} from './disk.ts';
import { Compressor } from './gzip.ts';
import { LineBuffer } from './lines.ts';
import { lockFor } from './lock.ts';
import { validPosition, PositionFile, sameFile, type FileMark, type FileName } from './position.ts';
import { isRotationDue, rotateFile, rotationProblem, type RotateSettings } from './rotation.ts';

interface FileSettings {
  readonly path: string;
  readonly rotate?: RotateSettings | undefined;
  readonly compression: 'none' | 'gzip';
}

/** The file of each sink, by sink id: a path does not identify a file. `by`: the instance that has it open. */
const holders = new Map<string, { readonly name: FileName; readonly path: string; readonly by: FileSink | undefined }>();

/** Writes and opens in progress, by path: a deadline cannot cancel them, so the next open waits for them. */
const inProgress = new Map<string, Promise<unknown>>();

/** Less than the time between two rotations: the second one may compress and delete the file, which looks like a loss. */
const lookMs = 1_000;

export class FileSink implements Sink {
  readonly #path: string;
  readonly #id: string;
  readonly #resumePoint: ResumePoint;
  readonly #slots: PositionFile;
  readonly #slotsHandle: FileHandle;
  /** Releases the lock against other processes. */
  readonly #releaseLock: () => void;
  readonly #clock: Clock;
  readonly #rotate: RotateSettings | undefined;
  readonly #compressor: Compressor;
  readonly #lines = new LineBuffer();
  readonly #closed = new AbortController();
  /** The write or look in progress: one at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #handle: FileHandle;
  #name: FileName;
  /** Length of the file up to the last accepted batch. */
  #length: number;
  #position: Position;
  /** See ResumePosition.sink. */
  readonly #storedBy: string | undefined;
  /** The last entry of the previous file. */
  #after: number;
  /** True: the bytes before the first batch end within a line. */
  #isWithinLine = false;
  /** Start of the file, ms since 1970. */
  #since = 0;

  /** Waits for the previous instance to close: a late open must not truncate lines of a later instance. */
  static async open(settings: FileSettings, context: SinkContext, kept: ResumePoint): Promise<FileSink> {
    const absolute = resolve(settings.path);
    const opening = (inProgress.get(absolute) ?? Promise.resolve()).then(() => FileSink.#open(absolute, settings, context, kept));
    return whileInProgress(absolute, opening);
  }

  static async #open(absolute: string, settings: FileSettings, context: SinkContext, kept: ResumePoint): Promise<FileSink> {
    const { path } = settings;
    const { id } = context;
    // Creates no other file next to a path that is not a file.
    const kind = await kindAt(absolute).catch(() => undefined);
    if (kind !== undefined) throw blockedAt(absolute, id, kind);
    const tooLong = settings.rotate && rotationProblem(absolute, settings.compression === 'gzip');
    if (tooLong !== undefined) throw blockedAt(absolute, id, tooLong);
    const slotsHandle = await openPositionFile(absolute, id);
    let releaseLock: (() => void) | undefined;
    try {
      releaseLock = await lockFor(absolute, id);
      const slots = await PositionFile.read(slotsHandle);
      const at = await validPosition(slots, kept, id, path);
      const handle = await openFile(absolute, id);
      try {
        const found = await nameAndSize(handle);
        const ours = at.mark && sameFile(at.mark.file, found.name) ? at.mark : undefined;
        const sink = new FileSink(
          absolute,
          settings,
          context,
          kept,
          slots,
          slotsHandle,
          releaseLock,
          handle,
          found.name,
          ours?.length ?? found.size,
          at.position,
          at.sink,
          ours ? (ours.after ?? 0) : at.position.seq,
        );
        sink.#hold(found.name);
        if (found.links > 1) throw blockedAt(absolute, id, linksWords(found.links));
        if (!ours) {
          if (kept.adopt === true) await sink.#adopt();
          await sink.#begin();
        } else if (found.size < ours.length) {
          throw new WaybillError(
            'file_truncated',
            `cannot resume "${path}" for sink "${id}": it has ${found.size} bytes, but ${ours.length} were delivered; restore it, give the sink a new id, or see "waybill sinks adopt"`,
          );
        } else if (found.size > ours.length) {
          // Further bytes were never acknowledged. Syncs the truncation before the next write.
          // mutant: truncate-file
          await handle.truncate(ours.length);
          await handle.sync();
        }
        await sink.#look();
        if (settings.rotate || settings.compression !== 'none') sink.#compressor.begin();
        void sink.#watch();
        return sink;
      } catch (thrown) {
        await handle.close();
        throw thrown;
      }
    } catch (thrown) {
      await slotsHandle.close();
      releaseLock?.();
      throw thrown;
    }
  }

  private constructor(
    path: string,
    { rotate, compression }: FileSettings,
    { id, clock, log }: SinkContext,
    kept: ResumePoint,
    slots: PositionFile,
    slotsHandle: FileHandle,
    releaseLock: () => void,
    handle: FileHandle,
    name: FileName,
    length: number,
    position: Position,
    storedBy: string | undefined,
    after: number,
  ) {
    this.#path = path;
    this.#id = id;
    this.#clock = clock;
    this.#rotate = rotate;
    this.#compressor = new Compressor(path, compression === 'gzip', id, log);
    this.#resumePoint = kept;
    this.#slots = slots;
    this.#slotsHandle = slotsHandle;
    this.#releaseLock = releaseLock;
    this.#handle = handle;
    this.#name = name;
    this.#length = length;
    this.#position = position;
    this.#storedBy = storedBy;
    this.#after = after;
  }

  async position(): Promise<ResumePosition> {
    return { position: this.#position, resumeNote: this.#resumeNote(), sink: this.#storedBy };
  }

  async send(batch: Batch): Promise<DeliveryResult> {
    return this.#inTurn(() => this.#write(batch));
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return whileInProgress(this.#path, result);
  }

  /** Follows a renamed file although no batch comes. An error is not lost: the next batch meets it again, and reports it. */
  async #watch(): Promise<void> {
    const { signal } = this.#closed;
    const pause = (): Promise<boolean> =>
      this.#clock.sleep(lookMs, signal).then(
        () => true,
        () => false,
      );
    while (await pause()) {
      // A later instance writes the file.
      if (holders.get(this.#id)?.by !== this) return;
      await this.#inTurn(() => this.#followRename()).catch(() => undefined);
    }
  }

  async #followRename(): Promise<void> {
    const at = await this.#statPath();
    // Further bytes of a write that failed are truncated at the next open.
    if (!this.#closed.signal.aborted && !(at && sameFile(nameOf(at), this.#name))) await this.#followPath();
  }

  async #statPath(): Promise<BigIntStats | undefined> {
    return stat(this.#path, { bigint: true }).catch((cause: unknown) => {
      if (isAbsent(cause)) return undefined;
      throw cause;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    await this.#compressor[Symbol.asyncDispose]();
    await inProgress.get(this.#path);
    try {
      await this.#handle.close();
      await this.#slotsHandle.close();
    } finally {
      this.#releaseLock();
      const held = holders.get(this.#id);
      if (held?.by === this) holders.set(this.#id, { ...held, by: undefined });
    }
  }

  async #write(batch: Batch): Promise<DeliveryResult> {
    try {
      await this.#followPath();
      if (this.#isRotationDue(batch)) await this.#rotateFile();
      const bytes = this.#lines.lines(batch.messages, this.#isWithinLine);
      // mutant: write-lines
      for (let written = 0; written < bytes.length;) {
        const { bytesWritten } = await this.#handle.write(bytes, written, bytes.length - written, this.#length + written);
        written += bytesWritten;
      }
      await this.#handle.datasync();
      this.#length += bytes.length;
      this.#isWithinLine = false;
      // mutant: file-position
      this.#position = batch.through;
      // mutant: write-position
      await this.#slots.write(this.#written());
      return { rejections: [], resumeNote: this.#resumeNote() };
    } catch (cause) {
      this.#closed.abort();
      if (cause instanceof WaybillError) throw cause;
      throw new WaybillError(
        'sink_outcome_unknown',
        `cannot write "${this.#path}" for sink "${this.#id}" (sinks.${this.#id}.path): ${messageOf(cause)}`,
        { cause },
      );
    }
  }

  /**
   * Continues with the new file at the path after another program renamed the file. One that was deleted, or is shorter than its accepted
   * length, has lost delivered lines: reports the loss before the next write.
   */
  async #followPath(): Promise<void> {
    const at = await this.#statPath();
    const isOurs = at !== undefined && sameFile(nameOf(at), this.#name);
    if (isOurs && Number(at.size) === this.#length) return;
    const before = await nameAndSize(this.#handle);
    const lost =
      before.links === 0
        ? 'was deleted (or compressed right after it was rotated: logrotate needs delaycompress)'
        : before.size < this.#length
          ? `was truncated from ${this.#length} to ${before.size} bytes`
          : undefined;
    const [first, last] = [this.#after + 1, this.#position.seq];
    if (lost !== undefined && this.#length > 0 && first <= last) {
      const message = `"${this.#path}" ${lost}: entries ${first} to ${last} may be lost; "waybill replay" sends again what the journal still holds`;
      await this.#resumePoint.lost(
        { first, last, message },
        JSON.stringify({ ...this.#mark(), length: before.size, after: last } satisfies FileMark),
      );
    }
    if (!isOurs) await this.#openPath();
    await this.#beginHere();
  }

  /** Commits acknowledgements first, because the sink never reads a rotated file again. */
  async #rotateFile(): Promise<void> {
    // mutant: commit-before-rotation
    await this.#resumePoint.commitResumeNote(this.#resumeNote());
    await rotateFile(this.#path, this.#clock.now());
    await this.#openPath();
    await this.#beginHere();
    this.#compressor.begin();
  }

  #isRotationDue({ messages, bytes }: Batch): boolean {
    return this.#rotate !== undefined && isRotationDue(this.#rotate, this.#length, this.#since, bytes + messages.length, this.#clock.now());
  }

  async #openPath(): Promise<void> {
    const handle = await openFile(this.#path, this.#id);
    try {
      const { name, links } = await nameAndSize(handle);
      this.#hold(name);
      if (links > 1) throw blockedAt(this.#path, this.#id, linksWords(links));
    } catch (thrown) {
      await handle.close();
      throw thrown;
    }
    await this.#handle.close();
    this.#handle = handle;
  }

  async #beginHere(): Promise<void> {
    const found = await nameAndSize(this.#handle);
    this.#name = found.name;
    this.#length = found.size;
    this.#after = this.#position.seq;
    await this.#begin();
    await this.#look();
  }

  /** Reads the last byte and the age of the file. Without a birth time on the file system, the age starts now. */
  async #look(): Promise<void> {
    this.#isWithinLine = await endsWithinLine(this.#handle, this.#length);
    const birth = Number(BigInt(this.#name.birth) / 1_000_000n);
    this.#since = birth > 0 || this.#rotate === undefined ? birth : this.#clock.now();
  }

  /** Writes and syncs the position of this journal into the position file: an older one would block the sink again. */
  async #adopt(): Promise<void> {
    await this.#slots.write(this.#written());
    await this.#slotsHandle.datasync();
  }

  /** Commits the identity and start length of a file to the journal before its first line is written. */
  async #begin(): Promise<void> {
    await this.#handle.sync();
    // mutant: sync-directory
    await syncDirectory(dirname(this.#path));
    await this.#resumePoint.commitResumeNote(this.#resumeNote());
  }

  /**
   * Reserves the file for this sink while the process runs: a second one would truncate the lines of the first as unacknowledged. A later
   * instance of this sink may open it, and after its close another sink by the same path: the position file there names this one.
   */
  #hold(name: FileName): void {
    const isTaken = ({ by, path }: { readonly by: FileSink | undefined; readonly path: string }): boolean =>
      by !== undefined || path !== this.#path;
    const other = [...holders].find(([id, held]) => id !== this.#id && sameFile(held.name, name) && isTaken(held));
    if (other) {
      const [id, { path }] = other;
      const message = `the sink "${id}" writes the same file, as "${path}"`;
      throw new WaybillError('sink_blocked', `cannot use "${this.#path}" for sink "${this.#id}" (sinks.${this.#id}.path): ${message}`);
    }
    holders.set(this.#id, { name, path: this.#path, by: this });
  }

  #written(): Parameters<PositionFile['write']>[0] {
    return { journal: this.#resumePoint.journal, sink: this.#id, position: this.#position, ...this.#mark() };
  }

  #resumeNote(): string {
    return JSON.stringify(this.#mark());
  }

  #mark(): FileMark {
    return { file: this.#name, length: this.#length, after: this.#after };
  }
}

/** The next open of the file waits for this work. */
async function whileInProgress<Result>(path: string, work: Promise<Result>): Promise<Result> {
  const settled = work.catch(() => undefined);
  inProgress.set(path, settled);
  try {
    return await work;
  } finally {
    if (inProgress.get(path) === settled) inProgress.delete(path);
  }
}
