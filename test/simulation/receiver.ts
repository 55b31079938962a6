/**
 * Model receivers: the servers that the sinks send to. They outlive the daemon. One identifies
 * messages by uid, one stores a batch and our position in one transaction, one stores every message
 * it gets. The sink in front of a receiver is as thin as a real one.
 */
import { WaybillError } from '../../src/errors/errors.ts';
import type { Position } from '../../src/model/ledger.ts';
import type {
  RetryableRejection,
  Batch,
  FeedPosition,
  Message,
  Rejection,
  ResumePoint,
  Sink,
  DeliveryResult,
} from '../../src/model/sink.ts';
import { SimulatedArchive } from './archive.ts';
import { Chance } from './chance.ts';
import { probability } from './environment.ts';
import type { Environment, SinkEnvironment } from './environment.ts';
import type { Sometimes } from './sometimes.ts';
import type { LifeClock, World } from './world.ts';

/** The life of the daemon that sends: its clock, its effects, and its report of violations. */
interface ReceivingLife {
  readonly clock: LifeClock;
  effect(what: string): Promise<void>;
  fault(message: string): void;
  /** False: another life has the shard. */
  readonly isOwner: boolean;
}

interface Received {
  readonly seq: number;
  /** 32 hex digits. */
  readonly uid: string;
  readonly text: string;
  /**
   * The last entry that may arrive before this message: its own entry. For a message that the receiver
   * asked to retry, the last entry of the batch, whose other messages it had accepted.
   */
  readonly behind: number;
  /** Sent on demand of an operator, out of order. */
  readonly isOnDemand: boolean;
}

export class Receiver {
  readonly settings: SinkEnvironment;
  /** uids of messages that it rejected and accepts now: 32 hex digits each. */
  readonly pardoned = new Set<string>();
  /** Messages delivered again because an operator requested it. */
  replayed = 0;
  readonly #replayed = new Set<string>();
  /** Every message it holds, in order of receipt. */
  readonly has: Received[] = [];
  readonly seqs = new Set<number>();
  /** The duplicates allowed so far, by the row of this kind of sink in docs/guarantees.md. */
  allowance = 0;
  /** Lost answers to batches that it had accepted. */
  lostAnswers = 0;
  /** The position stored with the last accepted batch. */
  kept: Position | undefined;
  isCalm = false;
  /** The real sink `archive`, if the receiver is an archive. */
  readonly archive: SimulatedArchive | undefined;
  readonly #world: World;
  readonly #chance: Chance;
  readonly #sometimes: Sometimes;
  readonly #partials: Chance;
  /**
   * The entries to retry from batches that were accepted in part, each with the last entry of its batch.
   */
  readonly #wanted = new Map<number, number>();
  /** Entries accepted from batches whose other entries are to be retried. */
  readonly #partly = new Set<number>();
  /** Of the last accepted batch, if an operator requested it: reported with the position. */
  #feed: FeedPosition | undefined;
  /** uids of the current write index, and of the indices before it. */
  #current = new Set<string>();
  readonly #before = new Set<string>();
  /** Each opening fences earlier ones. */
  #generation = 0;
  #downUntil = 0;
  #oldUntil = 0;
  #first: Position | undefined;
  #blocked = false;
  /** The first entry of the batches whose answers were lost. A later one, sent alone, may overtake it. */
  #endedAt = Infinity;
  /** The last entry that may arrive before each of these. */
  readonly #overtaken = new Map<number, number>();

  constructor(settings: SinkEnvironment, environment: Environment, world: World, sometimes: Sometimes) {
    this.settings = settings;
    this.#world = world;
    this.#chance = new Chance(environment.seed, `sink ${settings.id}`);
    this.#sometimes = sometimes;
    this.#partials = new Chance(environment.seed, `partial answers of ${settings.id}`);
    if (settings.isArchive)
      this.archive = new SimulatedArchive(new Chance(environment.seed, 'archive bytes'), (message) => this.#archived(message));
  }

  /** Rejects a record permanently: always the same records, until an operator fixes the cause. */
  refuses(uid: string): boolean {
    return parseInt(uid.slice(8, 12), 16) % 100 < this.settings.refused && !this.pardoned.has(uid);
  }

  /** Drops a record on purpose: it counts as delivered, without a dead letter. */
  drops(uid: string): boolean {
    return this.settings.refusal === 'drops' && this.refuses(uid);
  }

  /**
   * Switches to another write index: a uid that only earlier indices hold would be accepted again.
   */
  rollOver(): void {
    for (const uid of this.#current) this.#before.add(uid);
    this.#current = new Set();
  }

  /**
   * The daemon ended at this acknowledgement: messages accepted after it come again, one batch at
   * most.
   */
  wasCut(acked: number): void {
    this.allowance += Math.min(this.beyond(acked), this.settings.batchRecords);
  }

  /**
   * The number of entries after the last acknowledged one. The last accepted entry may be an older
   * one, from a delayed request.
   */
  beyond(acked: number): number {
    return [...this.seqs].filter((seq) => seq > acked).length;
  }

  /** True if a batch was accepted in part, and entries of it are still to come. */
  owes(acked: number): boolean {
    return [...this.#wanted.keys()].some((seq) => seq > acked && !this.seqs.has(seq));
  }

  maybeRollOver(probabilityNow: number): void {
    if (this.settings.rollovers !== 'off' && this.#chance.is(probabilityNow)) this.rollOver();
  }

  /** The sink of one life. `marks`: its progress according to the state file. */
  async open(
    life: ReceivingLife,
    marks: () => { readonly acknowledged: number; readonly delivered: number },
    resumePoint: ResumePoint,
  ): Promise<Sink> {
    const archived = await this.archive?.open(this.settings.id, this.settings.filter !== undefined, life, resumePoint);
    this.#generation += 1;
    const generation = this.#generation;
    const send = async (batch: Batch, signal: AbortSignal): Promise<DeliveryResult> => {
      const { isOwner } = life;
      if (!isOwner) life.fault(`${this.settings.id} is sent a batch by a process whose lease has ended`);
      await life.effect(`${this.settings.id} asked`);
      this.#world.note(`${this.settings.id} ${batch.messages[0]?.seq ?? 0}-${batch.through.seq} ${batch.uncertain ? 'uncertain' : 'sure'}`);
      const { acknowledged: acked } = marks();
      if (batch.through.seq > acked + 10_000) life.fault(`${this.settings.id} was sent entry ${batch.through.seq}, acked is ${acked}`);
      if (this.#blocked && life.isOwner) life.fault(`${this.settings.id} was sent a batch although its position does not fit`);
      const { slow, latencyMs } = this.settings;
      const isSlow = !this.isCalm && this.#chance.is(probability(slow, 0.01, 0.08));
      const outcome = this.#outcome();
      if (isSlow) {
        // The sink times out; the delayed request arrives at an unexpected time.
        this.#maybeOvertake(batch);
        this.#travel(batch, generation, acked);
        await life.clock.sleep(1e9, signal);
      }
      await life.clock.sleep(this.#chance.distance(latencyMs), signal);
      // Sent by an owner that was stopped then: it arrives while another life has the shard.
      if (isOwner && !life.isOwner) this.#allow(batch, acked);
      const isFenced = this.settings.kind === 'position' && !archived && generation !== this.#generation;
      if (outcome === 'lost before' || isFenced || (!life.isOwner && this.#storesLateTwice)) throw this.#unknown(batch, acked);
      if (outcome === 'again') throw new WaybillError('sink_unavailable', '429', { retryAfterMs: this.#chance.whole(0, 4) * 1_000 });
      if (outcome === 'blocked') throw new WaybillError('sink_blocked', '401');
      const again = outcome === 'taken' ? this.#wantAgain(batch) : undefined;
      // A calm receiver names what it rejects: after the last record no other could show that it takes others.
      const isPoison = ({ uid }: Message): boolean => !this.isCalm && this.refuses(hex(uid));
      this.#maybeOvertake(batch);
      if (this.settings.refusal === 'ends' && batch.messages.some(isPoison)) {
        this.#sometimes.count('connection ended at a record');
        this.#take(batch, generation, life, batch.messages.slice(0, batch.messages.findIndex(isPoison)));
        throw this.#unknown(batch, acked);
      }
      if (this.settings.refusal === 'pipeline' && batch.messages.some(isPoison)) {
        this.#sometimes.count('record that a pipeline fails on');
        return this.#failPipeline(batch, generation, life, batch.messages.filter(isPoison));
      }
      const isNow = (message: Message): boolean => again?.seqs.includes(message.seq) !== true;
      const now = batch.messages.filter(isNow);
      if (this.settings.refusal === 'whole' && now.some(({ uid }) => this.refuses(hex(uid)))) {
        if (batch.messages.length > 1) this.#sometimes.count('dead letter found by halving');
        if (batch.messages.some(({ seq }) => this.#wanted.has(seq))) this.#sometimes.count('rest of a batch rejected as a whole');
        throw new WaybillError('sink_refused', '400');
      }
      const dropped = now.filter(({ uid }) => this.drops(hex(uid))).length;
      const rejections = now.flatMap(({ seq, uid }): Rejection[] =>
        this.refuses(hex(uid)) && !this.drops(hex(uid)) ? [{ seq, code: 'bad_document', message: 'cannot parse' }] : [],
      );
      if (dropped > 0) this.#sometimes.count('record that a pipeline drops');
      const isCut = outcome === 'cut' && this.settings.kind !== 'position';
      const result = await archived?.send(batch, signal);
      if (result) this.kept = this.kept && this.kept.seq > batch.through.seq ? this.kept : batch.through;
      else this.#take(batch, generation, life, isCut ? now.slice(0, Math.ceil(now.length / 2)) : now);
      await life.effect(`${this.settings.id} took`);
      if (isCut || outcome === 'lost after') {
        this.lostAnswers += 1;
        throw this.#unknown(batch, acked);
      }
      return result ?? { rejections, retryable: again, dropped, resumeNote: `through ${batch.through.seq}` };
    };
    const position = async (signal: AbortSignal) => {
      await life.effect(`${this.settings.id} position`);
      if (archived) return archived.position?.(signal);
      const { kept } = this;
      const isOld = this.#reportsOld(marks().delivered);
      const reported = isOld ? this.#first : kept;
      this.#blocked = isOld;
      if (!reported) return undefined;
      return {
        position: reported,
        resumeNote: `through ${reported.seq}`,
        sink: this.settings.id,
        feed: isOld ? undefined : this.#feed,
      };
    };
    const close = async (): Promise<void> => life.effect(`${this.settings.id} closed`);
    return { send, ...(this.settings.kind === 'position' && { position }), [Symbol.asyncDispose]: close };
  }

  /** A checkpoint commits the message. */
  #archived({ seq, uid, bytes }: Message): void {
    this.has.push({ seq, uid: hex(uid), text: Buffer.from(bytes).toString('utf8'), behind: seq, isOnDemand: false });
    this.seqs.add(seq);
  }

  /** True if nothing can reach the receiver. */
  isDown(): boolean {
    if (this.isCalm) return false;
    const { down } = this.settings;
    if (this.#world.ms < this.#downUntil) return true;
    if (!this.#chance.is(probability(down, 0.01, 0.06))) return false;
    this.#downUntil = this.#world.ms + this.#chance.distance(20_000);
    return true;
  }

  #outcome(): 'taken' | 'lost before' | 'lost after' | 'cut' | 'again' | 'blocked' {
    if (this.isDown()) return 'again';
    if (this.isCalm) return 'taken';
    this.maybeRollOver(probability(this.settings.rollovers, 0.01, 0.08));
    const { lost, busy } = this.settings;
    if (this.#chance.is(probability(busy, 0.03, 0.15))) return this.#chance.is(0.03) ? 'blocked' : 'again';
    if (this.#chance.is(probability(lost, 0.03, 0.2))) return this.#chance.pick(['lost before', 'lost after', 'lost after', 'cut']);
    return 'taken';
  }

  /**
   * Requests a retry of some messages. A receiver that rejects whole requests includes the messages
   * it would reject.
   */
  #wantAgain({ messages, through }: Batch): RetryableRejection | undefined {
    const { partial, refusal } = this.settings;
    const chance = this.#partials;
    if (this.isCalm || messages.length < 2 || !chance.is(probability(partial, 0.05, 0.4))) return undefined;
    const isLeft = ({ uid }: Message): boolean => chance.is(0.5) || (refusal === 'whole' && this.refuses(hex(uid)));
    const left = messages.filter(isLeft);
    if (left.length === 0 || left.length === messages.length) return undefined;
    for (const message of messages) {
      if (left.includes(message)) this.#wanted.set(message.seq, Math.max(through.seq, this.#wanted.get(message.seq) ?? 0));
      else this.#partly.add(message.seq);
    }
    this.#sometimes.count('batch accepted in part');
    const code = chance.is(0.03) ? 'sink_blocked' : 'sink_unavailable';
    return { seqs: left.map(({ seq }) => seq), code, message: 'queue full', retryAfterMs: chance.pick([undefined, 1_000]) };
  }

  /** Stores the others, and refuses these one by one. */
  #failPipeline(batch: Batch, generation: number, life: ReceivingLife, refused: readonly Message[]): DeliveryResult {
    const taken = batch.messages.filter((message) => !refused.includes(message));
    this.#take(batch, generation, life, taken);
    for (const { seq } of refused) this.#wanted.set(seq, Math.max(batch.through.seq, this.#wanted.get(seq) ?? 0));
    for (const { seq } of taken) this.#partly.add(seq);
    const last = taken.at(-1)?.seq ?? 0;
    const seqs = refused.map(({ seq }) => seq);
    const reasons = seqs.map((seq) => ({ seq, code: '400', message: 'a pipeline fails' }));
    return {
      rejections: [],
      retryable: { code: 'sink_blocked', seqs, message: 'a pipeline fails', reasons, suspects: seqs.filter((seq) => seq < last) },
    };
  }

  /** A message alone may be sent before the first of the batches whose answers were lost, to see that the receiver takes others. */
  #maybeOvertake({ messages, feed }: Batch): void {
    const [only, ...others] = messages;
    if (!only || others.length > 0 || feed) return;
    for (let seq = this.#endedAt; seq < only.seq; seq += 1) this.#overtaken.set(seq, Math.max(only.seq, this.#overtaken.get(seq) ?? 0));
  }

  #unknown(batch: Batch, acked: number): WaybillError {
    this.#endedAt = Math.min(this.#endedAt > acked ? this.#endedAt : Infinity, batch.messages[0]?.seq ?? Infinity);
    this.#allow(batch, acked);
    return new WaybillError('sink_outcome_unknown', 'read ECONNRESET');
  }

  /**
   * After each lost answer one batch may come again, with the messages accepted in part before it.
   */
  #allow({ messages }: Batch, acked: number): void {
    if (this.settings.kind !== 'plain') return;
    const asked = new Set(messages.map(({ seq }) => seq));
    this.allowance += messages.length + [...this.#partly].filter((seq) => seq > acked && !asked.has(seq)).length;
  }

  /**
   * If a delayed request arrives after the lookup of its outcome, a data stream may store duplicates; only then (docs/guarantees.md).
   */
  get #storesLateTwice(): boolean {
    return this.settings.kind === 'uids' && this.settings.rollovers !== 'off';
  }

  #travel(batch: Batch, generation: number, acked: number): void {
    this.#allow(batch, acked);
    if (this.#storesLateTwice) return;
    if (this.settings.refusal === 'whole' && batch.messages.some(({ uid }) => this.refuses(hex(uid)))) return;
    this.#world.after(this.#chance.between(0, 60_000), () => this.#take(batch, generation, undefined, batch.messages));
  }

  #take(batch: Batch, generation: number, life: ReceivingLife | undefined, messages: readonly Message[]): void {
    const { kind } = this.settings;
    if (kind === 'position' && generation !== this.#generation) return;
    const isOnDemand = batch.feed !== undefined;
    for (const { seq, uid: id, bytes } of messages) {
      const uid = hex(id);
      if (this.refuses(uid)) continue;
      if (kind === 'uids') {
        if (this.#current.has(uid)) continue;
        // The receiver resolves an uncertain batch by a search of all indices.
        if (batch.uncertain && this.#before.has(uid)) continue;
        this.#current.add(uid);
      }
      this.has.push({
        seq,
        uid,
        text: Buffer.from(bytes).toString('utf8'),
        behind: Math.max(this.#wanted.get(seq) ?? seq, this.#overtaken.get(seq) ?? seq),
        isOnDemand,
      });
      this.seqs.add(seq);
    }
    this.#feed = batch.feed;
    if (isOnDemand) this.#acceptOnDemand(batch, life, messages);
    if (kind !== 'position') return;
    if (isOnDemand) {
      this.kept ??= batch.through;
      return;
    }
    if (this.kept && batch.through.seq <= this.kept.seq)
      life?.fault(`P4: ${this.settings.id} was sent ${batch.through.seq} after ${this.kept.seq}`);
    this.kept = batch.through;
    this.#first ??= batch.through;
  }

  /**
   * On-demand messages do not move the position. They may be duplicates if an operator requested
   * it, or if the receiver cannot be queried.
   */
  #acceptOnDemand({ feed, through, uncertain }: Batch, life: ReceivingLife | undefined, accepted: readonly Message[]): void {
    const { id, kind } = this.settings;
    const { feed: name = '' } = feed ?? {};
    if (kind === 'position' && this.kept && through.seq !== this.kept.seq)
      life?.fault(`P4: ${id} is at ${this.kept.seq}, but was sent a batch of ${name} for the position ${through.seq}`);
    if (!uncertain) life?.fault(`P2: ${id} was sent a batch of ${name} that is not marked uncertain`);
    if (name.startsWith('range')) {
      this.replayed += accepted.length;
      // A replay that continues after a kill repeats nothing at a receiver that stores our position.
      for (const { seq, uid } of kind === 'position' ? accepted : []) {
        if (this.refuses(hex(uid))) continue;
        if (this.#replayed.has(`${name} ${seq}`)) life?.fault(`P2: ${id} was sent entry ${seq} twice by the replay ${name}`);
        this.#replayed.add(`${name} ${seq}`);
      }
    }
    if (kind === 'plain') this.allowance += accepted.length;
  }

  /** A sink restored from an older copy reports an old position for a while. */
  #reportsOld(taken: number): boolean {
    if (this.isCalm || !this.settings.oldPosition || !this.#first || this.#first.seq >= taken) return false;
    if (this.#oldUntil === 0) {
      if (!this.#chance.is(0.1)) return false;
      this.#oldUntil = this.#world.ms + this.#chance.distance(40_000);
    }
    return this.#world.ms < this.#oldUntil;
  }
}

function hex(uid: string): string {
  return Buffer.from(uid, 'base64url').toString('hex');
}
