/**
 * Appends segments to an archive. The numbered checkpoint is the commit: a segment without one
 * belongs to an unfinished attempt, and nothing reads it. Tiles and entries follow the commit, so
 * that only the writer whose checkpoint was created stores them, and a path never gets two
 * contents. The copy `checkpoint` comes last: it publishes them. If a writer ended too early, the
 * next writer publishes its newest checkpoint when it opens the archive.
 */
import type { KeyObject } from 'node:crypto';
import { WaybillError } from '../errors/errors.ts';
import { checkpointPath, formatCheckpoint, type Checkpoint } from './checkpoint.ts';
import type { EntryLog, Growth, StoredObject } from './entry-log.ts';
import { openHead, publicKeyObject, type Head } from './head.ts';
import { LineFormatter, saltBytes, type EntryLine, type Line, type PositionLine } from './line.ts';
import { consistencyRanges, provesExtension } from './merkle.ts';
import { formatSegment, type Codec } from './segment.ts';
import { formatVerifier, keyName, signerOf, signNote, type Signer } from './signed-note.ts';
import type { WritableArchiveStore } from './store.ts';
import { rangeHash, tilePath, type Tile } from './tiles.ts';
import { computeIndex, indexPath, indexWidth, missingIndexes } from './uid-index.ts';

/** The position up to which a segment archives the journal. `after` default: where the archive ends. */
export type Through = Omit<PositionLine, 'kind' | 'after'> & Partial<Pick<PositionLine, 'after'>>;

export interface WriterOptions {
  /** An Ed25519 key. */
  readonly key: KeyObject;
  /** The key that `key` replaces: both sign the first checkpoint of `key`. */
  readonly previousKey?: KeyObject | undefined;
  readonly random: (bytes: number) => Uint8Array;
  /** An archive, or its continuation with another journal, holds the entries of that journal above this sequence number. */
  readonly beginsAfter: number;
  /** Of segments; default gzip. */
  readonly codec?: Codec | undefined;
}

export class ArchiveWriter {
  readonly #store: WritableArchiveStore;
  readonly #options: WriterOptions;
  readonly #signer: Signer;
  #head: Head;
  #note: string | undefined;
  #isKeyStored = false;
  /** Files of the index that earlier writers left out. */
  #unindexed: readonly number[] = [];
  /** Complete bundles since the last file of the index, by path: at most 4 MB, which need not be read again. */
  readonly #bundles = new Map<string, Buffer>();
  readonly #lines = new LineFormatter();

  private constructor(store: WritableArchiveStore, options: WriterOptions, head: Head) {
    this.#store = store;
    this.#options = options;
    this.#signer = signerOf(head.origin, options.key);
    this.#head = head;
  }

  /**
   * Opens an archive, or begins one if the store has none.
   * @throws WaybillError `archive_broken` when the newest checkpoint is not signed with the key, or does
   * not match the archive
   */
  static async open(store: WritableArchiveStore, options: WriterOptions): Promise<ArchiveWriter> {
    const newOrigin = (): string => `waybill/${Buffer.from(options.random(12)).toString('base64url')}`;
    const head = await openHead(store, keysOf(options), newOrigin, options.codec);
    const writer = new ArchiveWriter(store, options, head);
    await writer.#publish(head.unpublished);
    writer.#unindexed = await missingIndexes(store, head.log.size);
    return writer;
  }

  /** The identity of the archive: `waybill/` and a random id. */
  get origin(): string {
    return this.#head.origin;
  }

  /** The public half of the key, as text for auditors. */
  get publicKey(): string {
    return formatVerifier(this.#signer);
  }

  /** The last checkpoint that this writer signed, as the text of a signed note. */
  get note(): string | undefined {
    return this.#note;
  }

  /** The key that signed the newest checkpoint, as `name+id`; the signing key for a new archive. */
  get newestKey(): string {
    const { previousKey } = this.#options;
    return keyName(this.#head.isKeyKnown || previousKey === undefined ? this.#signer : signerOf(this.#head.origin, previousKey));
  }

  /** The key that signs the next checkpoint, as `name+id`. */
  get signingKey(): string {
    return keyName(this.#signer);
  }

  /** The number of the newest checkpoint; 0 for a new archive. */
  get checkpoint(): number {
    return this.#head.number;
  }

  /** The number of lines. */
  get size(): number {
    return this.#head.log.size;
  }

  /** Two keys signed the newest checkpoint. */
  get isKeyChange(): boolean {
    return this.#head.isKeyChange;
  }

  /** The last archived position; undefined for a new archive. */
  get position(): PositionLine | undefined {
    return this.#head.position;
  }

  /**
   * Archives the lines and the position as one segment. On return they are durable and signed.
   *
   * After an error the outcome is unknown: open the archive again, and continue after its position.
   * @param lines  in the order of the journal, above the last archived position
   * @param signal  aborted: the segment gets no checkpoint, unless that is already being written
   * @throws WaybillError `archive_conflict` when another writer has created the next checkpoint, `archive_broken` when the newest one
   * is no longer there
   */
  async append(lines: readonly EntryLine[], through: Through, signal?: AbortSignal): Promise<Checkpoint> {
    const before = this.#head;
    const after = before.position?.journal === through.journal ? before.position.seq : this.#options.beginsAfter;
    const all = [...lines, { kind: 'position' as const, after, ...through }];
    assertOrder(all);
    const { text, ends } = this.#lines.format(all, this.#options.random(saltBytes * all.length));

    const log = before.log.copy();
    let start = 0;
    for (let i = 0; i < all.length; i += 1) {
      const end = ends[i] as number;
      log.append(all[i] as Line, text.subarray(start, end - 1));
      start = end;
    }
    const { tiles, bundles, objects } = log.take();
    const checkpoint = { origin: before.origin, size: log.size, root: log.root() };
    assertExtension(before.log, checkpoint, tiles);

    const segment = await formatSegment(before.log.size, text, this.#options.codec);
    await this.#create(segment.path, segment.bytes);
    const signers = this.#signers();
    const note = Buffer.from(signNote(formatCheckpoint(checkpoint), signers));
    signal?.throwIfAborted();
    await this.#assertUnreplaced();
    await this.#create(checkpointPath(before.number + 1), note);
    // The keys are stored after the checkpoint: if the first checkpoint fails, the next attempt has another origin.
    const keys = this.#isKeyStored ? [] : signers.map(publicKeyObject);
    await this.#publish([...objects, ...keys, { path: 'checkpoint', bytes: note }]);
    this.#isKeyStored = true;

    const position = all.at(-1) as PositionLine;
    const isKeyChange = signers.length > 1;
    this.#head = { origin: before.origin, number: before.number + 1, log, position, note, isKeyChange, isKeyKnown: true, unpublished: [] };
    this.#note = note.toString();
    await this.#index(before.log.size, log.size, bundles);
    return checkpoint;
  }

  /**
   * Stores the files of the index that these leaves completed, and one missing file of an earlier
   * writer. Without a file, `prove` reads the entries.
   */
  async #index(from: number, to: number, bundles: Growth['bundles']): Promise<void> {
    for (const { path, bytes } of bundles) this.#bundles.set(path, bytes);
    const [missing, ...others] = this.#unindexed;
    this.#unindexed = others;
    const numbers = missing === undefined ? [] : [missing];
    for (let number = Math.floor(from / indexWidth); (number + 1) * indexWidth <= to; number += 1) numbers.push(number);
    for (const number of numbers) {
      const bytes = await computeIndex((path) => this.#takeBundle(path), number);
      if (bytes) await this.#store.replace(indexPath(number), bytes);
    }
  }

  async #takeBundle(path: string): Promise<Buffer | undefined> {
    const bundle = this.#bundles.get(path);
    this.#bundles.delete(path);
    return bundle ?? this.#store.read(path);
  }

  /** A directory or a bucket may be replaced by an older copy at any time: a checkpoint there would leave a hole that nobody can fill. */
  async #assertUnreplaced(): Promise<void> {
    const { number, note } = this.#head;
    if (note === undefined) return;
    const path = checkpointPath(number);
    const found = await this.#store.read(path);
    // mutant: replaced-archive
    if (found?.equals(note) === true) return;
    const reason = found ? 'it has other bytes than the sink stored' : 'it is missing';
    throw new WaybillError(
      'archive_broken',
      `cannot continue the archive at "${path}": ${reason}; the archive was replaced while the daemon runs; restore it`,
    );
  }

  /** The previous key also signs the first checkpoint of a new key. */
  #signers(): readonly Signer[] {
    const { previousKey } = this.#options;
    if (this.#head.isKeyKnown || previousKey === undefined) return [this.#signer];
    return [this.#signer, signerOf(this.#head.origin, previousKey)];
  }

  /** @param objects  of the newest checkpoint; the last is its copy */
  async #publish(objects: readonly StoredObject[]): Promise<void> {
    await this.#replaceAll(objects.slice(0, -1));
    await this.#replaceAll(objects.slice(-1));
  }

  /** Waits for every write, also after a failure: no write of this writer is under way after its error. */
  async #replaceAll(objects: readonly StoredObject[]): Promise<void> {
    const writes = await Promise.allSettled(objects.map(({ path, bytes }) => this.#store.replace(path, bytes)));
    const failed = writes.find((write) => write.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #create(path: string, bytes: Uint8Array): Promise<void> {
    if (await this.#store.create(path, bytes)) return;
    throw new WaybillError(
      'archive_conflict',
      `cannot create "${path}" of the archive: another writer created it; only one daemon may write an archive`,
    );
  }
}

function keysOf({ key, previousKey }: WriterOptions): readonly KeyObject[] {
  return previousKey === undefined ? [key] : [key, previousKey];
}

function assertOrder(lines: readonly Line[]): void {
  const position = lines.at(-1);
  let last = position?.kind === 'position' ? position.after : 0;
  for (const { kind, seq } of lines) {
    if (seq < last || (seq === last && kind !== 'position'))
      throw new WaybillError('internal_error', `cannot archive entry ${seq} after entry ${last}: entries must follow the journal`);
    last = seq;
  }
}

/** A checkpoint that does not extend the previous one is never signed. */
function assertExtension(before: EntryLog, after: Checkpoint, tiles: readonly Tile[]): void {
  if (before.size === 0) return;
  const hashes = new Map(tiles.map((tile) => [tilePath(tile), tile.hashes]));
  const proof = consistencyRanges({ from: before.size, to: after.size }).map((range) =>
    rangeHash(range, after.size, (tile) => hashes.get(tilePath(tile)) ?? new Uint8Array()),
  );
  if (!provesExtension({ size: before.size, root: before.root() }, after, proof))
    throw new WaybillError(
      'internal_error',
      `cannot sign a checkpoint of ${after.size} leaves: it does not extend the previous one of ${before.size} leaves`,
    );
}
