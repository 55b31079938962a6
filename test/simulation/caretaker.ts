/**
 * An operator who looks after sinks as `waybill dead-letters` and `waybill replay` do: with
 * requests to the running daemon. On each visit the operator retries a dead letter, often after
 * fixing the cause of the rejection, discards it, or replays a part of the journal. A request lost
 * because the daemon was killed is sent again.
 */
import { perform } from '../../src/daemon/operations/perform.ts';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import { Chance } from './chance.ts';
import type { CaretakerEnvironment, Environment } from './environment.ts';
import type { Life } from './life.ts';
import type { Oracle } from './oracle.ts';
import type { Receiver } from './receiver.ts';
import type { Sometimes } from './sometimes.ts';
import type { World } from './world.ts';

const calmMs = 2_000;
/**
 * Expected errors of a sink that is unreachable, not configured or busy with another replay, and of
 * a full journal.
 */
const usual: ReadonlySet<string | undefined> = new Set([
  'sink_unavailable',
  'sink_blocked',
  'sink_outcome_unknown',
  'usage',
  'journal_full',
]);

export class Caretaker {
  readonly #world: World;
  readonly #settings: CaretakerEnvironment;
  readonly #chance: Chance;
  readonly #receivers: readonly Receiver[];
  readonly #oracle: Oracle;
  readonly #sometimes: Sometimes;
  readonly #life: () => Life | undefined;
  #isCalm = false;

  constructor(
    world: World,
    { seed }: Environment,
    settings: CaretakerEnvironment,
    receivers: readonly Receiver[],
    oracle: Oracle,
    sometimes: Sometimes,
    life: () => Life | undefined,
  ) {
    this.#world = world;
    this.#settings = settings;
    this.#chance = new Chance(seed, 'visits of the caretaker');
    this.#receivers = receivers;
    this.#oracle = oracle;
    this.#sometimes = sometimes;
    this.#life = life;
  }

  begin(): void {
    this.#world.after(this.#isCalm ? calmMs : this.#chance.distance(this.#settings.everyMs), () => {
      this.begin();
      void this.#visit();
    });
  }

  /** Faults have ended: from now on only retries dead letters whose cause is fixed. */
  calm(): void {
    this.#isCalm = true;
  }

  async #visit(): Promise<void> {
    const life = this.#life();
    if (!life?.journal || !life.isRunning || life.isDead) return;
    // An unavailable sink delays no other sink.
    if (this.#isCalm) for (const receiver of this.#receivers) await this.#attempt(life, () => this.#retryMended(life, receiver));
    else await this.#attempt(life, () => this.#act(life, this.#chance.pick(this.#receivers as [Receiver])));
  }

  async #attempt(life: Life, what: () => Promise<void>): Promise<void> {
    if (life.isOver()) return;
    try {
      await what();
    } catch (thrown) {
      if (this.#life() === life && !life.isOver() && !usual.has(codeOf(thrown))) this.#oracle.fault(`caretaker: ${messageOf(thrown)}`);
    }
  }

  async #act(life: Life, receiver: Receiver): Promise<void> {
    const { id } = receiver.settings;
    const kept = life.journal?.deadLetters.stored(id) ?? [];
    const seq = kept[this.#chance.whole(0, Math.max(0, kept.length - 1))];
    const what = this.#chance.pick(['retry', 'retry', 'discard', 'replay'] as const);
    if (what === 'replay') {
      const first = this.#chance.whole(1, Math.max(1, this.#oracle.head));
      await this.#ask(life, { operation: 'replay', sink: id, first, last: first + this.#chance.whole(0, 60) });
      this.#sometimes.count('replay started');
      return;
    }
    if (seq === undefined) return;
    if (what === 'discard') {
      const uid = await uidOf(life, id, seq);
      // Never discards a dead letter whose cause is fixed.
      if (uid !== undefined && !receiver.pardoned.has(uid))
        await this.#ask(life, { operation: 'dead-letters discard', sink: id, seqs: [seq] });
      return;
    }
    const uid = await uidOf(life, id, seq);
    // An earlier visit that waited may have discarded it meanwhile.
    if (uid === undefined || life.journal?.deadLetters.stored(id).includes(seq) !== true) return;
    if (this.#chance.is(0.7)) receiver.pardoned.add(uid);
    await this.#retry(life, id, seq);
  }

  async #retryMended(life: Life, { settings: { id }, pardoned }: Receiver): Promise<void> {
    for (const seq of life.journal?.deadLetters.stored(id) ?? []) {
      const uid = await uidOf(life, id, seq);
      if (uid !== undefined && pardoned.has(uid)) await this.#retry(life, id, seq);
    }
  }

  async #retry(life: Life, sink: string, seq: number): Promise<void> {
    const { sent } = (await this.#ask(life, { operation: 'dead-letters retry', sink, seqs: [seq] })) ?? {};
    if (sent?.delivered === 1) this.#sometimes.count('dead letter delivered by a retry');
  }

  async #ask(life: Life, request: object): Promise<Awaited<ReturnType<typeof perform>> | undefined> {
    const { journal } = life;
    if (!journal) return undefined;
    this.#world.note(`caretaker ${JSON.stringify(request)}`);
    return perform(
      { actor: 'uid 1000', ...request },
      journal,
      this.#world.now,
      () => undefined,
      (id) => life.sinks.find((sink) => sink.id === id),
    );
  }
}

async function uidOf(life: Life, sink: string, seq: number): Promise<string | undefined> {
  const entry = await life.journal?.deadLetter(sink, seq);
  return entry && Buffer.from(entry.uid, 'base64url').toString('hex');
}
