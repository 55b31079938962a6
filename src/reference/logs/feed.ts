/**
 * Adds records to the store: initial records, records at the rate of the switch, and records of API
 * calls and tests. It selects the node that collects a record, and the delay until the record is
 * visible, which makes records late.
 */
import { keysOf, RecordGenerator, storedFrom, type LoggedAction, type GeneratedRecord } from './records.ts';
import type { ServiceClock } from '../clock.ts';
import { instantOf } from '../instant.ts';
import { idOf, makeOdd } from './oddities.ts';
import type { DataFile } from '../data-file.ts';
import type { Organization } from '../people/organization.ts';
import { below, randomOf, type Random } from '../random.ts';
import type { Arrival, Store, StoredRecord } from './store.ts';
import type { SwitchValues } from '../switches.ts';

const tickMs = 20;
const tieShare = 0.1;
const progressEach = 20_000;
const latestMs = 30 * 86_400_000;
/** Pareto: one value in a hundred exceeds 35 times the median. */
const paretoAlpha = Math.log(50) / Math.log(35);
const idsRemembered = 100;
const firstLogId = 1_000_001;

/** A line that is not a record. */
export class BadLine extends Error {
  override readonly name = 'BadLine';
}

export class Feed {
  readonly #clock: ServiceClock;
  readonly #data: DataFile;
  readonly #store: Store;
  readonly #values: SwitchValues;
  readonly #generator: RecordGenerator;
  readonly #random: Random;
  /**
   * A separate stream for records of calls, so that their number does not change the other records.
   */
  readonly #randomOfCalls: Random;
  readonly #lastIds: string[][] = [];
  #timer: NodeJS.Timeout | undefined;
  /** ns since 1970. */
  #lastTick = 0n;
  #owed = 0;

  constructor(clock: ServiceClock, data: DataFile, store: Store, values: SwitchValues, organization: Organization, seed: string) {
    this.#clock = clock;
    const firstId = Number(data.fact('nextLogId') ?? firstLogId);
    this.#data = data;
    this.#store = store;
    this.#values = values;
    this.#generator = new RecordGenerator(organization.people, seed, firstId);
    this.#random = randomOf(`${seed}/arrival/${firstId}`);
    this.#randomOfCalls = randomOf(`${seed}/calls/${firstId}`);
  }

  /**
   * Adds records, spread evenly, with some ties, over the time before now; none if the signal is
   * aborted.
   */
  async fill(count: number, spanMs: number, progress: (done: number) => void, signal: AbortSignal): Promise<void> {
    await this.#store.addMany(this.#history(count, (spanMs * 1e6) / count, progress), this.#clock.now(), signal);
  }

  /** Starts to generate records at the rate of the switch, and to show due records. */
  start(): void {
    this.#lastTick = this.#clock.nanos();
    // A manual clock only ticks in `advance`.
    if (!this.#clock.isManual) this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Moves the clock, then generates and shows the records that are due. */
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
   * Adds JSON texts unchanged, one record each, visible after `visibleIn` ms. A record is sorted by
   * its logTimestamp if readable, else by the time of the call. Adds all or none. @throws BadLine
   * for a text that is not a JSON value
   */
  addVerbatim(texts: readonly string[], visibleInMs: number): number {
    const now = this.#clock.now();
    const arrivals = texts.map((text, index) => ({ record: verbatim(text, index + 1, this.#clock.nanos()), shownAt: now + visibleInMs }));
    this.#store.add(arrivals, now);
    return arrivals.length;
  }

  /** Adds the record of an action, within its transaction if there is one. */
  addAction(action: LoggedAction): void {
    const instant = this.#clock.nanos();
    const now = this.#clock.now();
    const { record, delayMs } = this.#collected(this.#generator.ofAction(action, instant), this.#randomOfCalls);
    this.#data.transaction(() => {
      this.#store.add([{ record, shownAt: now + delayMs }], now);
      this.#storeNextId();
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
        this.#storeNextId();
      });
    }
    this.#store.reveal(this.#clock.now());
  }

  /** Generates records up to now, `stepNs` apart on average. */
  *#history(count: number, stepNs: number, progress: (done: number) => void): Generator<Arrival> {
    const until = this.#clock.nanos();
    let instant = until;
    for (let left = count; left > 0; left -= 1) {
      if (left === count || this.#random() >= tieShare) instant = until - BigInt(Math.round(stepNs * (left - this.#random())));
      yield this.#arrival(instant);
      if (left % progressEach === 1) progress(count - left + 1);
    }
    this.#storeNextId();
  }

  /** Stores the next id in the transaction of the records, so that no id is reused after a kill. */
  #storeNextId(): void {
    this.#data.setFact('nextLogId', String(this.#generator.nextId));
  }

  #arrival(instant: bigint): Arrival {
    const { record, delayMs } = this.#collected(this.#generator.next(instant), this.#random);
    return { record, shownAt: Number(instant / 1000n) / 1000 + delayMs };
  }

  /** A record of one of the nodes, and the ms until it is visible. */
  #collected(generated: GeneratedRecord, random: Random): { record: StoredRecord; delayMs: number } {
    const node = below(random, this.#values.nodes);
    makeOdd(generated, this.#values, random, this.#idsOfOthers(node));
    const ids = (this.#lastIds[node] ??= []);
    const id = idOf(generated);
    if (id !== undefined) ids.push(id);
    if (ids.length > idsRemembered) ids.shift();
    return { record: storedFrom(generated), delayMs: this.#delay(node, random) };
  }

  #idsOfOthers(node: number): string[] {
    if (this.#values.oddRepeatedId === 0) return [];
    return this.#lastIds.slice(0, this.#values.nodes).flatMap((ids, other) => (other === node ? [] : ids));
  }

  /** ms from logTimestamp until a record of this node is visible. */
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
