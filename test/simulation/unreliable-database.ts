/**
 * The database of a shard as a life reaches it: requests and answers are lost, requests arrive late, the database goes away, and it loses its
 * last commits. The life may end before a commit, and before and after its answer.
 */
import type { Clock } from '../../src/model/time.ts';
import { WaybillError } from '../../src/errors/errors.ts';
import type { Commit, Fence, Row, SeenColumns, SegmentColumns, ShardDatabase } from '../../src/journal/replica/shard-database.ts';
import type { ModelDatabase } from '../support/journal/model-database.ts';
import type { Chance } from './chance.ts';
import type { World } from './world.ts';

/** What it needs of a life: the points at which it may end, and its clock. */
interface Life {
  readonly clock: Clock;
  readonly effect: (what: string) => Promise<void>;
}

interface Parts {
  readonly world: World;
  readonly chance: Chance;
  readonly result: {
    readonly committed: (db: ModelDatabase['rows']) => void;
    readonly isCalm: () => boolean;
    readonly repaired: () => void;
  };
}

const forever = new AbortController().signal;
const unreachable = (): WaybillError => new WaybillError('database_unreachable', 'cannot reach the database: the connection was reset');

export class UnreliableDatabase implements ShardDatabase {
  readonly taken: Fence;
  readonly #model: ModelDatabase;
  readonly #life: Life;
  readonly #parts: Parts;
  /** The database is away until then, ms of the world. */
  #awayUntil = 0;

  /** Takes the shard for a life. */
  constructor(model: ModelDatabase, life: Life, parts: Parts) {
    this.#model = model;
    this.#life = life;
    this.#parts = parts;
    this.taken = model.take().taken;
  }

  async *load(): AsyncGenerator<readonly [string, readonly Row[]]> {
    for await (const part of this.#model.load()) {
      await this.#life.effect('load');
      yield part;
    }
  }

  async segments(seq: number): Promise<readonly SegmentColumns[]> {
    await this.#travel();
    return this.#model.segments(seq);
  }

  async seen(source: number, buckets: readonly number[]): Promise<readonly SeenColumns[]> {
    await this.#travel();
    return this.#model.seen(source, buckets);
  }

  repaired(first: number, last: number): void {
    this.#model.repairs.push([first, last]);
    this.#parts.result.repaired();
  }

  owned(): Promise<void> {
    return Promise.resolve();
  }

  async fence(): Promise<Fence> {
    await this.#travel();
    return this.#model.fence;
  }

  async commit(commit: Commit): Promise<boolean> {
    const { chance, world, result } = this.#parts;
    await this.#life.effect('commit sent');
    await this.#travel();
    const fate = result.isCalm() ? 0.5 : chance.next();
    // A fail-over to a standby that lacked the last commits.
    if (fate > 0.98) this.#model.rollBack(1 + Math.floor(chance.between(0, 5)));
    if (fate < 0.01) throw unreachable();
    if (fate < 0.02) {
      // The client gives up, and the request reaches the database afterwards: when this life may have ended.
      world.after(chance.between(10, 5_000), () => this.#carryOut(commit));
      throw unreachable();
    }
    if (fate < 0.022) this.#awayUntil = world.ms + chance.between(1_000, 600_000);
    const isDone = this.#carryOut(commit);
    if (fate < 0.06) {
      await this.#life.effect('answer lost');
      throw unreachable();
    }
    await this.#life.effect('commit answered');
    return isDone;
  }

  async #travel(): Promise<void> {
    const { chance, world } = this.#parts;
    await this.#life.clock.sleep(chance.is(0.02) ? chance.between(2, 3_000) : 2, forever);
    if (world.ms >= this.#awayUntil || this.#parts.result.isCalm()) return;
    await this.#life.clock.sleep(1_000, forever);
    throw unreachable();
  }

  #carryOut(commit: Commit): boolean {
    const isDone = this.#model.carryOut(commit);
    // A late attempt of a lost commit: the sinks and the oracle know more.
    if (isDone && this.#model.lost === 0) this.#parts.result.committed(this.#model.rows);
    return isDone;
  }
}
