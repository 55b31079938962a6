/**
 * An operator who adds history to the ledger, pauses and resumes it, and cuts it off, as `waybill
 * backfill` does: with requests to the running daemon. If a kill interrupts a request, the operator
 * looks up what exists, and repeats the request.
 */
import { perform } from '../../src/daemon/operations/perform.ts';
import { microsToIso } from '../../src/record/timestamp.ts';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import type { Window } from '../../src/model/ledger.ts';
import type { Micros } from '../../src/model/time.ts';
import { firstSource } from './environment.ts';
import type { Environment, HistoryEnvironment } from './environment.ts';
import type { Life } from './life.ts';
import type { Oracle } from './oracle.ts';
import type { World } from './world.ts';

const again = 2_000;
const source = firstSource;

type Act = HistoryEnvironment['operations'][number]['what'] | 'add';

export class Historian {
  readonly #world: World;
  readonly #oracle: Oracle;
  readonly #settings: HistoryEnvironment;
  readonly #life: () => Life | undefined;
  readonly #start: Micros;
  readonly #plan: { readonly what: Act; readonly afterMs: number }[];
  #isCalm = false;

  constructor(world: World, { daemon, beginMs }: Environment, settings: HistoryEnvironment, oracle: Oracle, life: () => Life | undefined) {
    this.#world = world;
    this.#oracle = oracle;
    this.#settings = settings;
    this.#life = life;
    this.#start = (beginMs - daemon.historyMs) * 1_000;
    this.#plan = [{ what: 'add', afterMs: settings.atMs }, ...settings.operations];
  }

  begin(): void {
    const [next] = this.#plan;
    // Every paused range is resumed in the end.
    if (!next && !this.#oracle.history().some(({ isPaused }) => isPaused)) return;
    this.#world.after(this.#isCalm ? again : (next?.afterMs ?? again), () => void this.#act(next?.what ?? 'resume'));
  }

  /** Faults have ended: performs the remaining operations at once, and pauses nothing any more. */
  calm(): void {
    this.#isCalm = true;
  }

  /** The operator has performed every operation. */
  get isDone(): boolean {
    return this.#plan.length === 0;
  }

  async #act(what: Act): Promise<void> {
    const life = this.#life();
    const isThere = life?.journal?.hasSource(source) === true && !life.isOver();
    if (what === 'older' && this.#oracle.history().some(({ isDone, isPaused }) => !isDone && !isPaused)) {
      this.#world.after(again, () => void this.#act(what));
      return;
    }
    try {
      if (isThere && !(what === 'pause' && this.#isCalm)) await this.#ask(what, life);
      if (!isThere || life.isOver()) throw new Error('not answered');
      this.#plan.shift();
      this.begin();
    } catch (thrown) {
      if (isThere && !life.isOver() && codeOf(thrown) !== 'journal_full') this.#oracle.fault(`backfill ${what}: ${messageOf(thrown)}`);
      this.#world.after(again, () => void this.#act(what));
    }
  }

  async #ask(what: Act, life: Life): Promise<void> {
    const { journal, views } = life;
    if (!journal) return;
    const { rate, sinks } = this.#settings;
    const ask = (request: object): Promise<unknown> =>
      perform({ source, actor: 'uid 1000', ...request }, journal, this.#world.now, (id) => views?.collectors.get(id));
    this.#world.note(`backfill ${what}`);
    if (what === 'add' || what === 'more' || what === 'older') {
      const span = this.#span(what);
      this.#oracle.mayAdd(span);
      await ask({ operation: 'backfill', from: microsToIso(span.from), to: microsToIso(span.to), rate, sinks });
      if (!life.isOver()) this.#oracle.covers(span);
      return;
    }
    const open = this.#oracle.history().filter(({ isDone }) => !isDone);
    const { from } = open.find(({ isPaused }) => isPaused === (what === 'resume')) ?? (what === 'cancel' ? open[0] : undefined) ?? {};
    if (from === undefined) return;
    if (what === 'cancel') this.#oracle.mayCut(from);
    await ask({ operation: `backfill ${what}`, from: microsToIso(from) });
  }

  #span(what: 'add' | 'more' | 'older'): Window {
    const { beforeMs, behindMs } = this.#settings;
    const second = 1_000_000;
    const from = Math.floor((this.#start - beforeMs * 1_000) / second) * second;
    const earlier = { add: 0, more: 10, older: 20 }[what];
    return { from: from - earlier * second, to: Math.ceil((this.#start + behindMs * 1_000) / second) * second };
  }
}
