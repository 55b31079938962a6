/** The sink `archive`: each batch becomes one segment with one signed checkpoint. Its position is in the signed log. */
import { randomBytes, type KeyObject } from 'node:crypto';
import type { EntryLine, LineRange, PositionLine } from '../../archive/line.ts';
import { joined, without } from '../../archive/line-ranges.ts';
import { archiveOrder } from '../../archive/parse-line.ts';
import { Prover } from '../../archive/prove.ts';
import type { Codec } from '../../archive/segment.ts';
import type { WritableArchiveStore } from '../../archive/store.ts';
import { ArchiveWriter, type Through } from '../../archive/writer.ts';
import { WaybillError, codeOf, messageOf } from '../../errors/errors.ts';
import type { Position } from '../../model/ledger.ts';
import {
  storedBy,
  type Batch,
  type DeliveryResult,
  type Message,
  type ResumePoint,
  type ResumePosition,
  type Sink,
  type CosignatureState,
  type TimeStampState,
} from '../../model/sink.ts';
import type { SinkContext } from '../define.ts';
import { Cosigner, type WitnessAccess } from './cosigner.ts';
import { entryLine } from './entry-line.ts';
import { Remover } from './remover.ts';
import { TimeStamper, type Authority } from './time-stamper.ts';

interface ArchiveTarget {
  /** The directory or the bucket, for messages. */
  readonly name: string;
  /** The sink closes it. */
  readonly store: WritableArchiveStore & Partial<AsyncDisposable>;
  readonly key: KeyObject;
  /** The key that `key` replaces. */
  readonly previousKey?: KeyObject | undefined;
  readonly random?: (bytes: number) => Uint8Array;
  readonly codec?: Codec;
  /** Reads the last checkpoint of the archive that a new one continues. */
  readonly former?: (() => Promise<string>) | undefined;
  /** Undefined: no time stamps. The sink closes it. */
  readonly authority?: Authority | undefined;
  /** The sink closes them. */
  readonly witnesses?: readonly WitnessAccess[];
}

const dayMs = 86_400_000;
const hourMs = 3_600_000;
/** Clocks of collectors and services differ less, µs. */
const maxClockDifference = 2 * 86_400_000_000;

type Context = Pick<SinkContext, 'id' | 'clock' | 'log' | 'selected' | 'filtered'>;

export class ArchiveSink implements Sink {
  readonly #target: ArchiveTarget;
  readonly #context: Context;
  readonly #resumePoint: ResumePoint;
  readonly #writer: ArchiveWriter;
  readonly #remover: Remover;
  /** The records that the archive had when this state was made to continue it. Read once one of that time is sent. */
  #archived: { has(uid: string): boolean } | undefined;
  #stamper: TimeStamper | undefined;
  #cosigners: readonly Cosigner[] = [];
  /** The UTC day of the last checkpoint that was reported. */
  #reportedOn: number | undefined;
  /** An hour after the last checkpoint; an archive without one waits for its first batch. */
  beatAt: number | undefined;
  /** The last append: after its deadline it may still be writing. */
  #append: Promise<unknown> = Promise.resolve();

  private constructor(target: ArchiveTarget, context: Context, resumePoint: ResumePoint, writer: ArchiveWriter) {
    this.#target = target;
    this.#context = context;
    this.#resumePoint = resumePoint;
    this.#writer = writer;
    this.#remover = new Remover({ ...context, store: target.store, replayedFrom: () => resumePoint.replayedFrom() });
  }

  /** @throws WaybillError `archive_broken`, or `sink_blocked` when the archive does not belong to this state, `archive_ahead` when it never will */
  static async open(target: ArchiveTarget, context: Context, resumePoint: ResumePoint): Promise<ArchiveSink> {
    const { name, store, key, previousKey, random = randomBytes, codec, former } = target;
    const { position, adopt = false } = resumePoint;
    const options = { key, previousKey, random, codec, beginsAfter: position.seq };
    const writer = await ArchiveWriter.open(store, options).catch(async (cause: unknown) => {
      await store[Symbol.asyncDispose]?.();
      throw failure('sink_unavailable', `cannot open the archive "${name}" for sink "${context.id}"`, cause);
    });
    const sink = new ArchiveSink(target, context, resumePoint, writer);
    const action = `cannot continue the archive "${name}" for sink "${context.id}"`;
    try {
      await sink.#reportLoss();
      const isKnown = await isKnownTo(writer, resumePoint);
      // The first line shows which archive this one continues.
      if (former && writer.checkpoint === 0 && resumePoint.resumeNote === undefined)
        await writer.append([], { ...sink.#through(position), after: position.seq, former: await former() });
      if (adopt) await sink.#adopt(position, isKnown);
      else assertContinues(writer, isKnown, resumePoint, context.id, action);
    } catch (thrown) {
      await sink[Symbol.asyncDispose]();
      throw thrown;
    }
    await sink.#attest();
    const { position: archived } = writer;
    sink.#remover.start(archived?.removing ?? []);
    if (archived) sink.beatAt = context.clock.monotonic() + Math.max(0, hourMs - Math.max(0, context.clock.now() - archived.at / 1_000));
    return sink;
  }

  position(): Promise<ResumePosition | undefined> {
    const { position, newestKey } = this.#writer;
    if (/* mutant: archived-position */ !position || !isOf(position, this.#resumePoint)) return Promise.resolve(undefined);
    const { seq, chain, sink } = position;
    const by = storedBy(sink, this.#context.id, this.#resumePoint);
    return Promise.resolve({ position: { seq, chain: Buffer.from(chain, 'hex') }, resumeNote: newestKey, sink: by });
  }

  async send({ messages, through }: Batch, signal: AbortSignal): Promise<DeliveryResult> {
    const lacking = await this.#lacking(messages);
    await this.#add(lacking.map(entryLine), this.#through(through), signal);
    return { rejections: [], resumeNote: this.#writer.newestKey, duplicates: messages.length - lacking.length };
  }

  /**
   * Without the records that an archive had before this state continued it: the state collects them again. An entry later than that, even by
   * a clock that is ahead, needs no look.
   */
  async #lacking(messages: readonly Message[]): Promise<readonly Message[]> {
    const { adopted } = this.#writer.position ?? {};
    const isOld = ({ isLedger, undated, time }: Message): boolean =>
      isLedger === undefined && (undated === true || time < (adopted?.at ?? 0) + maxClockDifference);
    if (!adopted || !messages.some(isOld)) return messages;
    const archived = (this.#archived ??= await (await Prover.open(this.#target.store)).uids(adopted.lines));
    // mutant: archived-twice
    return messages.filter(({ isLedger, uid }) => isLedger === true || !archived.has(uid));
  }

  /** Signs the position again: without it, nobody could tell a quiet hour from a cut archive. */
  async beat(signal: AbortSignal): Promise<void> {
    const { position } = this.#writer;
    if (position) await this.#add([], this.#through({ seq: position.seq, chain: Buffer.from(position.chain, 'hex') }), signal);
  }

  async #add(lines: readonly EntryLine[], through: Through, signal: AbortSignal): Promise<void> {
    const removing = this.#ordered(lines);
    const position = { ...through, removing: removing.length === 0 ? undefined : removing };
    const append = this.#writer.append(/* mutant: archived-entries */ lines, position, signal);
    this.#append = append.catch(() => undefined);
    try {
      // mutant: archive-append
      await append;
    } catch (cause) {
      throw failure('sink_outcome_unknown', `cannot write to the archive "${this.#target.name}" for sink "${this.#context.id}"`, cause);
    }
    this.beatAt = this.#context.clock.monotonic() + hourMs;
    this.#consider();
    this.#remover.start(removing);
    await this.#reportCheckpoint();
  }

  /** Reports one checkpoint a day: its receiver can later prove that nothing before it was removed. */
  async #reportCheckpoint(): Promise<void> {
    const day = Math.floor(this.#context.clock.now() / dayMs);
    const { note } = this.#writer;
    if (day === this.#reportedOn || note === undefined) return;
    try {
      await this.#resumePoint.archiveCheckpoint(note);
      this.#reportedOn = day;
    } catch (cause) {
      // The archive has the segment. A later segment reports its checkpoint, once the journal has space.
      if (codeOf(cause) !== 'journal_full') throw cause;
    }
  }

  get timeStamp(): TimeStampState | undefined {
    return this.#stamper?.state;
  }

  get cosignatures(): readonly CosignatureState[] | undefined {
    return this.#cosigners.length === 0 ? undefined : this.#cosigners.map(({ state }) => state);
  }

  /** Starts to have checkpoints stamped and cosigned. */
  async #attest(): Promise<void> {
    const { name, store, authority, witnesses = [] } = this.#target;
    const { checkpoint } = this.#writer;
    try {
      if (authority) this.#stamper = await TimeStamper.open({ ...this.#context, store, authority }, checkpoint);
      this.#cosigners = await Promise.all(witnesses.map((witness) => Cosigner.open({ ...this.#context, store, witness }, checkpoint)));
    } catch (cause) {
      await this[Symbol.asyncDispose]();
      throw failure('sink_unavailable', `cannot open the archive "${name}" for sink "${this.#context.id}"`, cause);
    }
    this.#consider();
  }

  #consider(): void {
    this.#stamper?.consider(this.#writer.checkpoint, this.#writer.position, this.#writer.isKeyChange);
    for (const cosigner of this.#cosigners) cosigner.consider(this.#writer.checkpoint);
  }

  /**
   * Entries that were delivered to this archive, and that it no longer has: it was replaced by an older copy, or is gone. They count as
   * delivered again once the archive is back.
   */
  async #reportLoss(): Promise<void> {
    const { journal, position: delivered, resumeNote } = this.#resumePoint;
    const { position, origin } = this.#writer;
    if (resumeNote === undefined) return;
    const isOurs = position !== undefined && isOf(position, { journal }) && resumeNote.startsWith(`${origin}+`);
    const has = isOurs ? position.seq : 0;
    if (has < delivered.seq) {
      const message = `"${this.#target.name}" ends at entry ${has}: entries ${has + 1} to ${delivered.seq} are gone; restore the archive`;
      await this.#resumePoint.lost({ first: has + 1, last: delivered.seq, message, code: 'archive_broken' }, resumeNote);
    } else if (position?.adopted === undefined) await this.#resumePoint.restored();
  }

  /** Waits for an append that missed its deadline: a second writer would compete with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#append;
    await this.#remover[Symbol.asyncDispose]();
    await this.#stamper?.[Symbol.asyncDispose]();
    await Promise.all(this.#cosigners.map((cosigner) => cosigner[Symbol.asyncDispose]()));
    await this.#target.store[Symbol.asyncDispose]?.();
  }

  /**
   * Signs a line that sets the archive to the position of this journal, and states that it lacks earlier entries. An archive that is ahead of a
   * restored state has entries with the numbers that follow: the name of its journal gets another number.
   */
  async #adopt(position: Position, isKnown: boolean): Promise<void> {
    const { position: archived, size } = this.#writer;
    const { journal } = this.#resumePoint;
    const isOurs = archived !== undefined && isOf(archived, { journal });
    if (archived === undefined || (isOurs && isKnown && archived.seq >= position.seq)) return;
    const restored = Number(archived.journal.slice(journal.length + 1)) + 1;
    const through = { ...this.#through(position), after: position.seq };
    const adopted = isOurs && isKnown ? archived.adopted : { lines: size, at: through.at };
    await this.#writer.append([], { ...through, adopted, ...(isOurs && !isKnown && { journal: `${journal}.${restored}` }) });
  }

  /** The lines whose segments are to be deleted once these lines are signed. A hold that follows an order to prune spares its lines. */
  #ordered(lines: readonly EntryLine[]): readonly LineRange[] {
    let removing = this.#remover.left;
    for (const line of lines) {
      const order = line.kind === 'operation' ? archiveOrder.safeParse({ ...line.detail, operation: line.operation }).data : undefined;
      if (order?.archive !== this.#writer.origin) continue;
      if (order.operation === 'archive prune') removing = joined([...removing, ...order.lines]);
      if (order.operation === 'archive hold') removing = without(removing, order.lines);
    }
    return removing;
  }

  #through({ seq, chain }: Position): Through {
    const { id, clock, selected, filtered = false } = this.#context;
    const { completeSince } = this.#resumePoint;
    const { position } = this.#writer;
    return {
      journal: position && isOf(position, this.#resumePoint) ? position.journal : this.#resumePoint.journal,
      adopted: position?.adopted,
      sink: id,
      seq,
      chain: Buffer.from(chain).toString('hex'),
      at: clock.now() * 1_000,
      completeSince,
      sources: selected ?? null,
      filtered,
      timestamp: this.#stamper?.newest,
      removing: this.#remover.left.length === 0 ? undefined : this.#remover.left,
    };
  }
}

/** The archive belongs to this state. After each restore of an older copy that an operator adopted, the journal is named with another number. */
function isOf({ journal: archived }: Pick<PositionLine, 'journal'>, { journal }: Pick<ResumePoint, 'journal'>): boolean {
  return archived === journal || archived.startsWith(`${journal}.`);
}

/** False for an archive with entries of this journal that the journal does not know: an older copy of the state was restored. */
async function isKnownTo({ position }: ArchiveWriter, resumePoint: ResumePoint): Promise<boolean> {
  if (!position || !isOf(position, resumePoint) || position.seq <= resumePoint.position.seq) return true;
  const chain = await resumePoint.chainAt(position.seq);
  return chain !== undefined && Buffer.from(chain).toString('hex') === position.chain;
}

/**
 * Refuses to begin a new archive when the one with the earlier records is missing or was replaced, and to continue after a checkpoint of a
 * former key. The resume note has the origin of the archive and the id of the key that signed last: `waybill/…+…`.
 */
function assertContinues(
  writer: ArchiveWriter,
  isKnown: boolean,
  { journal, resumeNote, position: kept }: ResumePoint,
  id: string,
  action: string,
): void {
  const { position, origin, newestKey, signingKey } = writer;
  // mutant: archive-ahead
  if (!isKnown)
    throw new WaybillError(
      'archive_ahead',
      `${action}: it has entry ${position?.seq}, which this state does not know (an older copy was restored); restore the newer state, or see "waybill sinks adopt"`,
    );
  if (position !== undefined && !isOf(position, { journal }))
    throw new WaybillError(
      'sink_blocked',
      `${action}: it belongs to another state (the state was lost, or two daemons write it); restore that state, use another directory or prefix, or see "waybill sinks adopt"`,
    );
  // mutant: position-line-names-sink
  if (position?.sink !== undefined && position.sink !== id && position.seq > kept.seq)
    throw new WaybillError(
      'sink_blocked',
      `${action}: the sink "${position.sink}" wrote it up to entry ${position.seq}; use another directory or prefix, name the sink "${position.sink}" again, or see "waybill sinks adopt"`,
    );
  if (resumeNote === undefined) return;
  const [deliveredTo] = resumeNote.split('+');
  const found = position === undefined ? 'the archive is empty' : `the archive is "${origin}"`;
  if (position === undefined || deliveredTo !== origin)
    throw new WaybillError(
      'archive_broken',
      `${action}: records were delivered to "${deliveredTo ?? ''}", but ${found}; restore the archive, or see "waybill sinks adopt"`,
    );
  if (resumeNote === signingKey && newestKey !== signingKey)
    throw new WaybillError(
      'archive_broken',
      `${action}: "${newestKey}" signed the newest checkpoint, after "${signingKey}" replaced this key; remove what another writer appended`,
    );
}

/** Adds the name of the sink to an error of the storage; others have it. */
function failure(code: 'sink_unavailable' | 'sink_outcome_unknown', action: string, cause: unknown): WaybillError {
  const given = codeOf(cause);
  if (cause instanceof WaybillError && given !== 'sink_unavailable' && given !== 'sink_blocked') return cause;
  return new WaybillError(given === 'sink_blocked' ? given : code, `${action}: ${messageOf(cause)}`, { cause });
}
