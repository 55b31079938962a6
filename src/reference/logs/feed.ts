/**
 * Brings records into the store: many at once at start, then so many a second, those of what people do, and those that a test hands in. It decides at which node a
 * record is collected and how long it takes to become visible, which is what makes records late.
 */
import { keysOf, RecordMaker, storedFrom, type Happening, type MadeRecord } from './records.ts';
import type { ServiceClock } from '../clock.ts';
import { instantOf } from '../instant.ts';
import { idOf, makeOdd } from './oddities.ts';
import type { DataFile } from '../data-file.ts';
import type { Organisation } from '../people/organisation.ts';
import { below, randomOf, type Random } from '../random.ts';
import type { Arrival, Store, StoredRecord } from './store.ts';
import type { SwitchValues } from '../switches.ts';

const tickMs = 20;
const tieShare = 0.1;
const progressEach = 20_000;
const latestMs = 30 * 86_400_000;
/** Pareto: one value in a hundred is beyond 35 times the median. */
const paretoAlpha = Math.log(50) / Math.log(35);
const idsRemembered = 100;
const firstLogId = 1_000_001;

/** A line that cannot be taken as a record. */
export class BadLine extends Error {
  override readonly name = 'BadLine';
}

export class Feed {
  readonly #clock: ServiceClock;
  readonly #data: DataFile;
  readonly #store: Store;
  readonly #values: SwitchValues;
  readonly #maker: RecordMaker;
  readonly #random: Random;
  /** For what calls cause: how often they come does not change which records are made besides. */
  readonly #randomOfCalls: Random;
  readonly #lastIds: string[][] = [];
  #timer: NodeJS.Timeout | undefined;
  /** ns since 1970. */
  #lastTick = 0n;
  #owed = 0;

  constructor(clock: ServiceClock, data: DataFile, store: Store, values: SwitchValues, organisation: Organisation, seed: string) {
    this.#clock = clock;
    const firstId = Number(data.fact('nextLogId') ?? firstLogId);
    this.#data = data;
    this.#store = store;
    this.#values = values;
    this.#maker = new RecordMaker(organisation.people, seed, firstId);
    this.#random = randomOf(`${seed}/arrival/${firstId}`);
    this.#randomOfCalls = randomOf(`${seed}/calls/${firstId}`);
  }

  /** Adds so many records, spread evenly with some ties over the time before now; none when the signal is aborted meanwhile. */
  async fill(count: number, spanMs: number, progress: (done: number) => void, signal: AbortSignal): Promise<void> {
    await this.#store.addMany(this.#history(count, (spanMs * 1e6) / count, progress), this.#clock.now(), signal);
  }

  /** Begins to make records at the rate of the switch, and to show those that are due. */
  start(): void {
    this.#lastTick = this.#clock.nanos();
    // A manual clock ticks when it is moved.
    if (!this.#clock.isManual) this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Moves the clock, and makes and shows the records that are due then. */
  advance(ms: number): void {
    for (let left = ms; left > 0; left -= tickMs) {
      this.#clock.advance(Math.min(left, tickMs));
      this.#tick();
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Adds JSON texts as they are, one record each, visible after so many ms. Its place is its logTimestamp when it has a readable one,
   * else the time of the call. All are added or none: a text that is not one JSON value throws a BadLine.
   */
  addVerbatim(texts: readonly string[], visibleInMs: number): number {
    const now = this.#clock.now();
    const arrivals = texts.map((text, index) => ({ record: verbatim(text, index + 1, this.#clock.nanos()), shownAt: now + visibleInMs }));
    this.#store.add(arrivals, now);
    return arrivals.length;
  }

  /** Adds the record of what has just happened. Inside a transaction it is there when the rest is. */
  tell(happening: Happening): void {
    const instant = this.#clock.nanos();
    const now = this.#clock.now();
    const { record, delayMs } = this.#collected(this.#maker.tell(happening, instant), this.#randomOfCalls);
    this.#data.transaction(() => {
      this.#store.add([{ record, shownAt: now + delayMs }], now);
      this.#keepNextId();
    });
  }

  #tick(): void {
    const at = this.#clock.nanos();
    const rate = this.#values.rate;
    this.#owed = rate === 0 ? 0 : this.#owed + (Number(at - this.#lastTick) / 1e9) * rate;
    this.#lastTick = at;
    const count = Math.floor(this.#owed);
    this.#owed -= count;
    let instant = this.#clock.nanos();
    const arrivals = Array.from({ length: count }, () => {
      if (this.#random() >= tieShare) instant = this.#clock.nanos();
      return this.#arrival(instant);
    });
    if (arrivals.length > 0) {
      this.#data.transaction(() => {
        this.#store.add(arrivals, this.#clock.now());
        this.#keepNextId();
      });
    }
    this.#store.reveal(this.#clock.now());
  }

  /** Records one after the other, `stepNs` apart on average, up to now. */
  *#history(count: number, stepNs: number, progress: (done: number) => void): Generator<Arrival> {
    const until = this.#clock.nanos();
    let instant = until;
    for (let left = count; left > 0; left -= 1) {
      if (left === count || this.#random() >= tieShare) instant = until - BigInt(Math.round(stepNs * (left - this.#random())));
      yield this.#arrival(instant);
      if (left % progressEach === 1) progress(count - left + 1);
    }
    this.#keepNextId();
  }

  /** In the transaction of the records that have the ids before it: a service that is killed must not give one a second time. */
  #keepNextId(): void {
    this.#data.setFact('nextLogId', String(this.#maker.nextId));
  }

  #arrival(instant: bigint): Arrival {
    const { record, delayMs } = this.#collected(this.#maker.make(instant), this.#random);
    return { record, shownAt: Number(instant / 1000n) / 1000 + delayMs };
  }

  /** The record as one of the nodes collects it, and how many ms it takes to become visible. */
  #collected(made: MadeRecord, random: Random): { record: StoredRecord; delayMs: number } {
    const node = below(random, this.#values.nodes);
    makeOdd(made, this.#values, random, this.#idsOfOthers(node));
    const ids = (this.#lastIds[node] ??= []);
    const id = idOf(made);
    if (id !== undefined) ids.push(id);
    if (ids.length > idsRemembered) ids.shift();
    return { record: storedFrom(made), delayMs: this.#delay(node, random) };
  }

  #idsOfOthers(node: number): string[] {
    if (this.#values.oddRepeatedId === 0) return [];
    return this.#lastIds.slice(0, this.#values.nodes).flatMap((ids, other) => (other === node ? [] : ids));
  }

  /** How many ms after its logTimestamp a record of this node becomes visible. */
  #delay(node: number, random: Random): number {
    const { lateShare, lateDelay, lateTail } = this.#values;
    if (random() >= (lateShare[node % lateShare.length] ?? 0)) return 0;
    const scale = lateDelay[node % lateDelay.length] ?? 0;
    const chance = 1 - random();
    if (lateTail[node % lateTail.length] === 'bounded') return scale * chance;
    return Math.min(latestMs, scale * (2 * chance) ** (-1 / paretoAlpha));
  }
}

function verbatim(text: string, line: number, nowNanos: bigint): StoredRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new BadLine(`line ${line} is not one JSON value`, { cause: error });
  }
  const fields = typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  const given = typeof fields['logTimestamp'] === 'string' ? instantOf(fields['logTimestamp']) : undefined;
  return { ...keysOf(fields), at: given ?? nowNanos, head: text, network: '', personal: '', tail: '' };
}
