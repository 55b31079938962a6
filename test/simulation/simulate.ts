/**
 * One seed: an environment, a safety phase with every fault that is drawn, and a liveness phase in
 * which all work must complete. The same seed and commit give the same run, step by step.
 */
import type Database from 'better-sqlite3';
import { perform } from '../../src/daemon/operations/perform.ts';
import { Journal } from '../../src/journal/journal.ts';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import type { Config } from '../../src/config/load.ts';
import { Chance } from './chance.ts';
import { Caretaker } from './caretaker.ts';
import { Changes } from './changes.ts';
import { FleetDatabase } from './unreliable-database.ts';
import type { Place } from './effects.ts';
import { drawEnvironment, environmentOf, firstSource, probability } from './environment.ts';
import type { Environment } from './environment.ts';
import { Historian } from './historian.ts';
import { configOf, Life } from './life.ts';
import { Oracle } from './oracle.ts';
import { Receiver } from './receiver.ts';
import { isRefused } from './rolled-back.ts';
import { Service } from './service.ts';
import { Sometimes } from './sometimes.ts';
import type { State } from './sometimes.ts';
import { drawTruth } from './truth.ts';
import { World } from './world.ts';

/** Counts over a campaign. */
export interface Figures {
  seeds: number;
  steps: number;
  lives: number;
  kills: number;
  powerCuts: number;
  /** Owners of a shard that were stopped, or cut off from its database, for a while. */
  stops: number;
  /** Shards that another life took from such an owner. */
  takeOvers: number;
  /** Losses of commits by the database of a shard. */
  rollBacks: number;
  /** Losses of commits by the database of a shard that the owner repaired. */
  repairs: number;
  lostAcknowledgements: number;
  requests: number;
  records: number;
  windows: number;
}

export interface Outcome {
  readonly seed: number;
  readonly environment: Environment;
  /** Effects of the safety phase: each is a point at which a life could have ended. */
  readonly effects: number;
  readonly faults: readonly string[];
  readonly hash: string;
  readonly figures: Figures;
  readonly sometimes: Sometimes['counts'];
  readonly trace: readonly string[] | undefined;
}

/**
 * In the liveness phase the daemon is stopped until the next gap is due. A gap is tried again after 1,
 * 5 and 15 minutes, and then once a day, so this many stops are enough.
 */
const maxAbsences = 8;
/**
 * Interval between two checks of the permissions, and the shortest time that they stay lost after a
 * suspension started.
 */
const lookMs = 500;
const minSuspendedMs = 3_000;
/** Without faults the daemon detects a lost permission within a few seconds. */
const noticedMs = 60_000;
/**
 * Without faults the last entry is delivered within the longest wait for a batch, 3 s, and the time
 * of a send and its acknowledgement. A loop that missed an entry reads the journal after a minute.
 */
const deliveredMs = 20_000;
/** The longest torn write that a power cut leaves, bytes: up to more than a page of the file. */
const maxTorn = 5_000;
/** Interval between two visits of an operator. */
const visitMs = 10_000;

/** Ends lives at these effects of the run instead of at random, counted from 1 over all lives. */
export interface Script {
  readonly ends: readonly number[];
  readonly isPowerCut: boolean;
}

export async function simulate(seed: number, base: Config, place: Place, traced = false): Promise<Outcome> {
  return new Simulation(drawEnvironment(seed), base, place, traced, undefined).run();
}

/** Runs an environment that ends where a script requests it; empty `ends`: without a kill. */
export async function play(environment: Environment, script: Script, base: Config, place: Place, traced = false): Promise<Outcome> {
  return new Simulation(environment, base, place, traced, script).run();
}

class Simulation {
  readonly #environment: Environment;
  readonly #config: Config;
  readonly #place: Place;
  readonly #world: World;
  /** Of the first source. */
  readonly #service: Service;
  /** By the id of their source, the first source first. */
  readonly #services: ReadonlyMap<string, Service>;
  readonly #receivers: readonly Receiver[];
  /** Of the first source. */
  readonly #oracle: Oracle;
  /** The first source first. */
  readonly #oracles: ReadonlyMap<string, Oracle>;
  readonly #historian: Historian | undefined;
  readonly #caretaker: Caretaker | undefined;
  readonly #changes: Changes;
  readonly #sometimes = new Sometimes();
  readonly #kills: Chance;
  readonly #historyKills: Chance;
  readonly #syncs: Chance;
  readonly #program: Chance;
  readonly #purges: Chance;
  readonly #torn: Chance;
  readonly #retires: Chance;
  readonly #stops: Chance;
  readonly #figures: Figures;
  readonly #script: Script | undefined;
  #directory: string;
  /** Set when the journal is a shard: the database outlives each life. */
  readonly #database: FleetDatabase | undefined;
  /** Lives that another one has replaced, and that do not know it yet. */
  readonly #formers = new Set<Life>();
  /** How long after the end of a lease another member looks, ms. */
  #lookAfter = 0;
  #life: Life | undefined;
  /** Effects until the next kill. */
  #killIn: number;
  /** Effects so far at which a life could have ended. */
  #effects = 0;
  #isCalm = false;
  /** The error that ended a former owner of the shard: always a fault. */
  #failure: unknown;
  #shrunkAt: number | undefined;
  #suspendedFor = 0;
  #wasPaused = false;
  /** Windows that an operator has accepted. */
  #accepted = 0;
  /** The state at the moment of the last kill: the next life starts with it. */
  #left: string | undefined;
  #backup: string | undefined;

  constructor(environment: Environment, base: Config, place: Place, traced: boolean, script: Script | undefined) {
    const { seed, beginMs } = environment;
    this.#environment = environment;
    this.#script = script;
    this.#config = configOf(base, environment);
    this.#changes = new Changes(this.#config, environment);
    this.#stops = new Chance(seed, 'stops');
    if (process.env['WAYBILL_SIMULATION_SHARD'] !== undefined) this.#database = new FleetDatabase(this.#stops.pick([4_000, 4_000, 15_000]));
    this.#changes.database = this.#database;
    this.#place = place;
    this.#directory = place.fresh();
    this.#world = new World(beginMs, traced);
    this.#world.skew = environment.machine.aheadMs;
    const sources = new Map([
      [firstSource, environment],
      ...environment.others.map((other) => [other.id, environmentOf(other, environment)] as const),
    ]);
    const services = [...sources].map(([id, own]) => [id, new Service(this.#world, own, drawTruth(own, id), this.#sometimes)] as const);
    this.#services = new Map(services);
    this.#service = this.#services.get(firstSource) as Service;
    this.#receivers = environment.sinks.map((sink) => new Receiver(sink, environment, this.#world, this.#sometimes));
    const oracleOf = ([id, service]: readonly [string, Service]): readonly [string, Oracle] => {
      const foreignUids = new Set(services.flatMap(([other, { truths }]) => (other === id ? [] : truths.map(({ uid }) => uid))));
      const own = sources.get(id) ?? environment;
      return [id, new Oracle(this.#world, own, service, this.#receivers, this.#sometimes, { id, foreignUids })];
    };
    this.#oracles = new Map(services.map(oracleOf));
    this.#oracle = this.#oracles.get(firstSource) as Oracle;
    const { history } = environment;
    this.#historian = history && new Historian(this.#world, environment, history, this.#oracle, () => this.#life);
    const { caretaker } = environment;
    this.#caretaker =
      caretaker && new Caretaker(this.#world, environment, caretaker, this.#receivers, this.#oracle, this.#sometimes, () => this.#life);
    this.#kills = new Chance(seed, 'kills');
    this.#program = new Chance(seed, 'program');
    this.#purges = new Chance(seed, 'purge');
    this.#historyKills = new Chance(seed, 'kills of history');
    this.#syncs = new Chance(seed, 'syncs');
    this.#torn = new Chance(seed, 'torn');
    this.#retires = new Chance(seed, 'retires');
    this.#killIn = this.#kills.distance(environment.machine.killEvery);
    this.#figures = {
      seeds: 1,
      steps: 0,
      lives: 0,
      kills: 0,
      powerCuts: 0,
      stops: 0,
      takeOvers: 0,
      rollBacks: 0,
      repairs: 0,
      lostAcknowledgements: 0,
      requests: 0,
      records: [...this.#services.values()].reduce((sum, { truths }) => sum + truths.length, 0),
      windows: 0,
    };
  }

  async run(): Promise<Outcome> {
    if (this.#environment.records.purge) void this.#attend();
    if (this.#environment.rights !== 'whole') this.#changeRights();
    this.#historian?.begin();
    this.#caretaker?.begin();
    try {
      await this.#safety();
      if (!this.#hasFailed()) await this.#liveness();
    } finally {
      this.#release();
      for (const life of this.#formers) life.release(this.#place);
      this.#formers.clear();
    }
    for (const receiver of this.#receivers) await this.#verify(receiver);
    const { environment, faults } = { environment: this.#environment, faults: this.#faults() };
    this.#figures.lostAcknowledgements = this.#receivers.reduce((sum, { lostAnswers }) => sum + lostAnswers, 0);
    const requests = [...this.#services.values()].reduce((sum, service) => sum + service.requests, 0);
    const windows = [...this.#oracles.values()].reduce((sum, oracle) => sum + oracle.windows.size, 0);
    this.#figures.rollBacks = this.#database?.rollBacks ?? 0;
    Object.assign(this.#figures, { steps: this.#world.steps, requests, windows });
    return {
      seed: environment.seed,
      environment,
      effects: this.#effects,
      faults,
      hash: this.#world.hash,
      figures: this.#figures,
      sometimes: this.#sometimes.counts,
      trace: this.#world.trace,
    };
  }

  /** P5: the archive verifies. A gap or a filter leaves windows unproven. */
  async #verify({ archive, has, settings }: Receiver): Promise<void> {
    const report = await archive?.verified();
    if (!report) return;
    this.#sometimes.count(report.result === 'intact' ? 'archive intact' : 'archive with an unproven window');
    const [first] = report.findings.filter(({ severity }) => severity === 'altered');
    if (first) this.#oracle.fault(`P5: ${settings.id}: ${first.object}: ${first.message}`);
    if (report.lines !== has.length + report.checkpoints)
      this.#oracle.fault(
        `P5: ${settings.id} has ${has.length} entries, and its archive ${report.lines} lines in ${report.checkpoints} segments`,
      );
  }

  /** Applies every fault that is drawn; every check after a commit must still pass. */
  async #safety(): Promise<void> {
    const { machine, beginMs, safetyMs, records, daemon } = this.#environment;
    const end = beginMs + safetyMs;
    while (this.#world.ms < end && !this.#hasFailed()) {
      const life = this.#begin();
      const isOrderly = this.#kills.is(machine.orderly);
      const leaves = isOrderly ? this.#world.ms + this.#kills.between(1_000, 60_000) : end;
      const { absentMs } = this.#changes;
      if (machine.lifeMs !== undefined) this.#killAfter(life, machine.lifeMs);
      const comesBack = absentMs === undefined ? end : this.#world.ms + absentMs;
      await this.#world.run(Math.min(end, leaves, comesBack), () => life.isDead || this.#hasFailed() || this.#isFree());
      if (!life.isDead && this.#database && this.#isFree()) await this.#takeOver(life, this.#database);
      if (!life.isOver() && (isOrderly || absentMs !== undefined) && this.#world.ms < end) await this.#endInOrder(life);
      if (!life.isDead) continue;
      this.#release();
      if (this.#backup !== undefined && this.#kills.is(0.5)) await this.#rollBack(this.#backup);
      if (records.purge && this.#purges.is(0.3)) this.#delete();
      const away = this.#kills.is(0.05) ? this.#kills.between(20_000, 2 * daemon.closeDelayMs + 60_000) : this.#kills.distance(1_000);
      await this.#world.run(this.#world.ms + away, () => false);
      // Nobody can take a shard while its database is away.
      if (this.#database) await this.#world.run(Math.min(end, this.#database.awayUntil), () => false);
      this.#maybeSkew();
    }
  }

  /** The lease has ended, and another member looks for it now. */
  #isFree(): boolean {
    const { expires, awayUntil } = this.#database ?? { expires: Infinity, awayUntil: 0 };
    return this.#world.ms > Math.max(expires, awayUntil) + this.#lookAfter;
  }

  /** Another member takes the shard from a life that may wake up at any time. */
  async #takeOver(former: Life, database: FleetDatabase): Promise<void> {
    this.#world.note('take-over');
    this.#figures.takeOvers += 1;
    former.isFormer = true;
    this.#life = undefined;
    this.#formers.add(former);
    void former.ended.then(() => {
      if (!this.#formers.delete(former)) return;
      this.#failure ??= former.failure;
      former.release(this.#place);
    });
    this.#cutOff(() => undefined);
    const rolledBack = database.lost > 0 ? this.#place.serialized(database.rows) : undefined;
    this.#directory = this.#place.copy('', undefined, database);
    database.take();
    // The lost commits are for good: a sink that has their entries is ahead of the shard.
    if (rolledBack === undefined) return;
    await this.#rollBack(rolledBack);
    this.#place.remove(rolledBack);
  }

  /** The process of a life is stopped, or cut off from its database, often until after its lease. The database may fail over meanwhile. */
  #stopFor(life: Life, database: FleetDatabase): void {
    const chance = this.#stops;
    const ms = chance.between(0.2, 4) * database.leaseMs;
    this.#figures.stops += 1;
    if (chance.is(0.5)) {
      this.#world.note('stop');
      life.stopFor(ms);
    } else {
      this.#world.note('cut off');
      life.cutOffFor(ms);
    }
    if (chance.is(0.2)) database.failOver(chance.whole(1, 5));
  }

  /** Kills a life at its first effect after this time. */
  #killAfter(life: Life, ms: number): void {
    const windows = this.#oracle.windows.size;
    this.#world.after(ms, () => {
      if (life !== this.#life || life.isDead || this.#isCalm) return;
      this.#killIn = 1;
      this.#sometimes.count('life of a few seconds');
      if (this.#oracle.windows.size > windows) this.#sometimes.count('window recorded in a life of a few seconds');
    });
  }

  /**
   * Deletes by retention: everything before a time. Or by an operator: a few seconds of a window
   * with records, so that other windows stay intact and show that only this one has lost records.
   */
  #delete(): void {
    const windows = [...this.#oracle.windows.values()].filter(({ total }) => (total ?? 0) > 0);
    const window = windows[this.#purges.whole(0, Math.max(0, windows.length - 1))];
    const at = window?.from ?? this.#world.now - this.#purges.whole(5_000, 150_000) * 1_000;
    if (this.#purges.is(0.3)) this.#service.purge(-Infinity, at);
    else this.#service.purge(at, at + this.#purges.whole(1, 10) * 1_000_000);
  }

  /** Faults end. Within a time limit that follows from the settings all work must complete. */
  async #liveness(): Promise<void> {
    this.#isCalm = true;
    for (const service of this.#services.values()) service.isCalm = true;
    for (const receiver of this.#receivers) receiver.isCalm = true;
    this.#historian?.calm();
    this.#caretaker?.calm();
    this.#world.skew = 0;
    const { closeDelayMs, agesMs } = this.#environment.daemon;
    const width = Math.max(closeDelayMs, 10_000);
    // Enough time for the last recount of the newest records, and for one more retry of a loop that pauses for a minute.
    const budget = (agesMs.at(-1) ?? 0) + closeDelayMs + 3 * width + 150_000;
    this.#life?.clock.go();
    await this.#world.run(this.#world.ms + 300_000, () => this.#formers.size === 0 || this.#hasFailed());
    if (this.#formers.size > 0) this.#oracle.fault('a former owner of the shard did not end');
    if (this.#life && this.#changes.isOther) await this.#endInOrder(this.#life);
    let life = this.#life ?? this.#begin();
    if (this.#service.isShrunk) await this.#noticed();
    await this.#untilIdle(budget);
    for (let absence = 0; absence < maxAbsences && !this.#hasFailed(); absence += 1) {
      const next = this.#nextTry();
      if (next === undefined) break;
      if (next === Infinity) this.#oracle.fault('L: a window is open without a next attempt');
      if (next === Infinity) break;
      // The daemon is down until a gap is due, and then catches up.
      await this.#endInOrder(life);
      const absenceMs = Math.max(0, next / 1_000 - this.#world.ms);
      await this.#world.run(this.#world.ms + absenceMs, () => false);
      life = this.#begin();
      // A service that grants a minute at a time is read in windows of 50 s, with several slow requests each.
      await this.#untilIdle(120_000 + absenceMs / 100);
    }
    await this.#silence();
    if (this.#hasFailed() || !life.journal) return;
    for (const oracle of this.#oracles.values()) oracle.finish(this.#database?.rows ?? life.journal.db);
    const { seq, chain } = life.journal.head();
    // The journal contains the checkpoints of an archive, which depend on the random id of the
    // state.
    const hasArchive = this.#environment.sinks.some(({ isArchive }) => isArchive);
    this.#world.note(`entry ${seq}${hasArchive ? '' : `, chain ${Buffer.from(chain).toString('hex')}`}`);
  }

  /**
   * Silences every source right after a new entry, so that no other entry follows the last one. All
   * entries must still be delivered. While a source answers, an entry is often still in transit.
   */
  async #silence(): Promise<void> {
    const before = this.#oracle.head;
    const isCollected = (): boolean => this.#oracle.head > before && this.#every((oracle) => oracle.uncollected().length === 0);
    await this.#world.run(this.#world.ms + 60_000, () => this.#hasFailed() || isCollected());
    for (const service of this.#services.values()) service.isSilent = true;
    for (const oracle of this.#oracles.values()) oracle.silence();
    this.#world.note('the sources are silent');
    if (!this.#every((oracle) => oracle.undelivered().length === 0))
      this.#sometimes.count('last entry in transit when the sources fall silent');
    await this.#world.run(
      this.#world.ms + deliveredMs,
      () => this.#hasFailed() || this.#every((oracle) => oracle.undelivered().length === 0),
    );
  }

  /**
   * Waits until no work is left and the last recounts are over, or until the time limit. The limit
   * restarts when an operator accepts a window: each window with deleted records starts another
   * suspension, which lasts until the operator checks again (`visitMs`).
   */
  async #untilIdle(budgetMs: number): Promise<void> {
    let lookAt = 0;
    const isIdle = (): boolean => {
      if (this.#hasFailed()) return true;
      if (this.#world.ms < lookAt) return false;
      lookAt = this.#world.ms + 5_000;
      return this.#historian?.isDone !== false && this.#every((oracle) => oracle.isIdle());
    };
    for (let accepted = -1; accepted < this.#accepted;) {
      accepted = this.#accepted;
      if (await this.#world.run(this.#world.ms + budgetMs, isIdle)) return;
    }
  }

  /**
   * An operator checks suspensions now and then, and accepts only windows whose records the service
   * has deleted: any other suspension must end by itself.
   */
  async #attend(): Promise<void> {
    this.#world.after(visitMs, () => void this.#attend());
    const life = this.#life;
    if (life?.journal === undefined || !life.isRunning || life.isDead) return;
    try {
      for (const { from } of this.#oracle.lacking()) {
        await life.journal.acceptGap(firstSource, from, { at: this.#world.now, actor: 'uid 1000', reason: 'deleted by the service' });
        this.#accepted += 1;
        this.#sometimes.count('window accepted');
      }
    } catch (thrown) {
      if (this.#life === life && !life.isOver()) this.#oracle.fault(`an operator could not accept a window: ${messageOf(thrown)}`);
    }
  }

  /**
   * Shrinks permissions when the daemon can detect it, and restores them a while later: during the
   * suspension, or when no answer in that time could show the loss. So no page is answered with
   * fewer fields and checked with more.
   */
  #changeRights(): void {
    const service = this.#service;
    if (this.#isCalm && !service.isShrunk) return;
    this.#world.after(lookMs, () => this.#changeRights());
    if (!service.isShrunk && this.#shrunkAt === undefined && this.#oracle.mayShrink()) {
      service.isShrunk = true;
      this.#shrunkAt = this.#world.ms;
      this.#world.note('rights shrink');
    } else if (service.isShrunk && this.#oracle.isSuspended) {
      this.#suspendedFor += lookMs;
      if (this.#suspendedFor === lookMs) this.#sometimes.count('suspension while permissions were shrunk');
      if (this.#suspendedFor > minSuspendedMs && this.#kills.is(0.2)) this.#restoreRights();
    }
  }

  /**
   * Restores permissions before faults end: during a suspension, or without one if no answer could
   * show the loss.
   */
  async #noticed(): Promise<void> {
    const service = this.#service;
    const isRestored = await this.#world.run(this.#world.ms + noticedMs, () => !service.isShrunk || this.#hasFailed());
    if (isRestored) return;
    if (this.#environment.rights === 'rows') this.#oracle.fault('H: no record is shown, and the daemon did not detect it');
    this.#restoreRights();
  }

  #restoreRights(): void {
    this.#service.isShrunk = false;
    this.#world.note('rights are restored');
  }

  #begin(): Life {
    this.#figures.lives += 1;
    for (const service of this.#services.values()) service.forget();
    const isKnown = (sink: string): boolean => this.#oracle.sink(sink) !== undefined;
    const config = this.#changes.next(this.#directory, isKnown, this.#oracle.source !== undefined, this.#isCalm);
    const { gone, retired } = this.#changes;
    for (const [id, oracle] of this.#oracles) {
      const own = config.sources.find((each) => each.id === id);
      const { closeDelay: settle, pollInterval: poll } = own ?? { closeDelay: 0, pollInterval: 0 };
      oracle.begins({ closeDelayMs: settle, pollMs: poll, retired, isAbsent: own === undefined });
    }
    const source = config.sources.find(({ id }) => id === firstSource);
    if (!source) this.#world.note('the source is removed');
    if (gone !== undefined) this.#world.note(`${gone} is ${retired === undefined ? 'gone' : 'retired'}`);
    if (this.#database) this.#lookAfter = this.#stops.between(0, this.#database.leaseMs / 5);
    const life: Life = new Life({
      world: this.#world,
      environment: this.#environment,
      config,
      services: this.#services,
      receivers: this.#receivers,
      directory: this.#directory,
      database: this.#database,
      chance: this.#program,
      result: {
        isOver: (what, db) => !life.isFormer && this.#isOver(what, db),
        progress: (sink) => this.#oracle.sink(sink) ?? { acknowledged: 0, delivered: 0 },
        asks: (id, request) => {
          if (!life.isFormer) this.#oracles.get(id)?.asks(request);
        },
        committed: (db) => {
          const before = this.#oracle.head;
          for (const oracle of this.#oracles.values()) oracle.committed(db);
          if (this.#oracle.head > before && [...this.#services.values()].some(({ hasDeadName }) => hasDeadName))
            this.#sometimes.count('stored while another source has a dead name');
          this.#maybeSlow();
        },
        afterPruning: (db, before) => {
          if (!life.isFormer) this.#oracle.afterPruning(db, before);
        },
        fault: (message) => this.#oracle.fault(message),
        isCalm: () => this.#isCalm,
        head: () => this.#oracle.head,
        repaired: () => {
          this.#figures.repairs += 1;
        },
      },
    });
    this.#life = life;
    life.begin();
    if (this.#environment.machine.secondDaemon && !this.#isCalm && this.#kills.is(0.3)) {
      this.#world.after(this.#kills.between(100, 20_000), () => void this.#secondDaemon(life));
    }
    if (!source && this.#environment.absence?.isRetired === true)
      this.#world.after(this.#retires.between(10, 4_000), () => void this.#retireSource(life));
    return life;
  }

  async #endInOrder(life: Life): Promise<void> {
    const ended = life.ending();
    // A process exits after its shutdown timeout, although its commits still wait for the database.
    if (this.#database && !(await this.#world.run(this.#world.ms + 30_000, ended))) this.#killIn = 1;
    const isInTime = await this.#world.run(this.#world.ms + 300_000, ended);
    if (!isInTime) this.#oracle.fault('the daemon did not stop within five minutes');
    this.#world.note('ended in order');
    if (life.isDead) return;
    this.#life = undefined;
    // An orderly shutdown gives up a batch that was accepted in part, and the batch comes again
    // from its first message.
    for (const receiver of this.#receivers) {
      const { id } = receiver.settings;
      const acked = this.#oracle.sink(id)?.acknowledged ?? 0;
      if (id !== this.#changes.gone && receiver.owes(acked)) receiver.wasCut(acked);
    }
  }

  /** Called at every effect: true if the life ends here. Then the state is copied as it is. */
  #isOver(what: string, db: Database.Database | undefined): boolean {
    this.#watchQuota();
    if (this.#isCalm) return false;
    const { machine } = this.#environment;
    const life = this.#life;
    this.#effects += 1;
    if (!this.#isDue(what) || !life) return false;
    if (this.#database && !this.#script && !life.isEnding && !life.clock.isStopped && this.#stops.is(0.4)) {
      this.#killIn = 1 + this.#kills.distance(machine.killEvery);
      this.#stopFor(life, this.#database);
      return false;
    }
    const isPowerCut = this.#script ? this.#script.isPowerCut : this.#kills.is(machine.powerCuts);
    const synchronous = isPowerCut && db ? Number(db.pragma('synchronous', { simple: true })) : 2;
    const torn = isPowerCut ? this.#torn.bytes(this.#torn.whole(0, maxTorn)) : undefined;
    this.#left = this.#place.copy(this.#directory, torn && { synchronous, torn }, this.#database);
    if (torn && torn.length > 0 && db?.inTransaction === true) this.#sometimes.count('torn tail of a transaction under way');
    this.#figures.kills += 1;
    if (isPowerCut) this.#figures.powerCuts += 1;
    this.#world.note(`${isPowerCut ? 'power cut' : 'kill'} at ${what}`);
    this.#countKill(what, life);
    // Kills can follow each other closely, so that they interrupt recovery too.
    this.#killIn = this.#kills.is(0.15) ? this.#kills.whole(1, 25) : 1 + this.#kills.distance(machine.killEvery);
    for (const receiver of this.#receivers) receiver.maybeRollOver(machine.aimed ? 0.4 : 0.1);
    return true;
  }

  #isDue(what: string): boolean {
    if (this.#script) return this.#script.ends.includes(this.#effects);
    this.#killIn -= 1;
    if (this.#environment.machine.aimed && this.#isAimedAt(what)) this.#killIn = Math.min(this.#killIn, this.#kills.whole(0, 2));
    if (this.#oracle.isReadingHistory && this.#historyKills.is(0.06)) return true;
    return this.#killIn <= 0;
  }

  /**
   * True if acknowledgements are only in memory, or a sink has just accepted messages that the file
   * does not show: random kills rarely hit these moments.
   */
  #isAimedAt(what: string): boolean {
    if (!what.endsWith('took')) return false;
    return this.#kills.is(0.04);
  }

  #countKill(what: string, life: Life): void {
    if (!life.isRunning) this.#sometimes.count('kill during recovery');
    if (what === 'next page' || (what === 'COMMIT is done' && life.isPaging)) this.#sometimes.count('kill between append and next page');
    if (life.isRunning && this.#oracle.isReadingHistory) this.#sometimes.count('kill while history is read');
    this.#cutOff((state) => this.#sometimes.count(state));
  }

  /** The owner of the journal is gone: what its sinks have and the journal does not know comes again. */
  #cutOff(count: (state: State) => void): void {
    for (const receiver of this.#receivers) {
      const { kind, id } = receiver.settings;
      // A sink that is not configured was cut off before.
      if (id === this.#changes.gone) continue;
      const acked = this.#oracle.sink(id)?.acknowledged ?? 0;
      if (receiver.owes(acked)) count('kill while the rest of a batch awaits a retry');
      if (receiver.beyond(acked) === 0) continue;
      count('kill between delivery and acknowledgement');
      if (kind === 'position') count('kill between commit at the sink and in the journal');
      receiver.wasCut(acked);
    }
  }

  #release(): void {
    const life = this.#life;
    if (!life) return;
    this.#life = undefined;
    life.release(this.#place);
    if (this.#left === undefined) return;
    this.#directory = this.#left;
    this.#left = undefined;
    const isDue = this.#environment.machine.restored && this.#backup === undefined && this.#oracle.head > 0;
    if (isDue && this.#kills.is(0.3)) this.#backup = this.#place.copy(this.#directory);
  }

  /**
   * An operator restores an older copy of the state: nothing may be sent to a sink that stores our
   * position. Then the right copy is restored.
   */
  async #rollBack(backup: string): Promise<void> {
    const receiver = this.#receivers.find(({ settings }) => settings.kind === 'position');
    if (!receiver?.kept) return;
    const verdict = await isRefused(this.#place.copy(backup), receiver, this.#config, this.#world, this.#place);
    if (verdict === 'does not apply') return;
    if (verdict === 'blocked') this.#sometimes.count('rolled-back state blocked');
    else this.#oracle.fault(`a state that was rolled back is ${verdict}`);
  }

  /**
   * An operator retires an unconfigured source: `waybill sources retire`. It may return all the
   * same.
   */
  async #retireSource(life: Life): Promise<void> {
    const isOver = (): boolean => life.isDead || life !== this.#life;
    if (isOver() || !life.journal || this.#oracle.source?.state !== 'unconfigured') return;
    try {
      await perform(
        { operation: 'sources retire', source: firstSource, actor: 'uid 1000' },
        life.journal,
        this.#world.now,
        () => undefined,
      );
      this.#sometimes.count('source retired');
    } catch (thrown) {
      if (!isOver()) this.#oracle.fault(`a removed source could not be retired: ${messageOf(thrown)}`);
    }
  }

  /** A second daemon on the same state must be refused at once, and change nothing. */
  async #secondDaemon(life: Life): Promise<void> {
    if (life.isDead || life !== this.#life || !life.journal) return;
    const options = { directory: life.directory, maxSize: 1e9, retention: 1e12, version: '0.0.0', expectState: false, lockWait: 0 };
    try {
      await using second = await Journal.open(options, life.clock, new AbortController().signal);
      this.#oracle.fault(`a second daemon owns ${second.id}`);
    } catch (thrown) {
      if (codeOf(thrown) === 'state_locked') this.#sometimes.count('second daemon refused');
      else this.#oracle.fault(`a second daemon ended with ${messageOf(thrown)}`);
    }
  }

  #maybeSkew(): void {
    if (this.#kills.is(probability(this.#environment.machine.skew, 0.1, 0.5))) {
      this.#world.skew = this.#kills.pick([0, 5_000, -5_000, 7_200_000, -3_000_000, -7_200_000, 31_536_000_000]);
    }
  }

  /** A slow commit: nothing else can run in that time. */
  #maybeSlow(): void {
    if (this.#isCalm || !this.#syncs.is(probability(this.#environment.machine.slowSync, 0.003, 0.02))) return;
    this.#world.ms += this.#syncs.between(200, 8_000);
    this.#world.note('slow sync');
    this.#sometimes.count('slow commit');
  }

  #watchQuota(): void {
    if (this.#environment.daemon.quotaPages === undefined) return;
    const isPaused = this.#life?.journal?.refuses() === 'journal_full';
    if (this.#wasPaused && !isPaused) this.#sometimes.count('quota reached, then space freed');
    this.#wasPaused = isPaused;
  }

  #hasFailed(): boolean {
    const failure = this.#failure ?? [this.#life, ...this.#formers].find((life) => life?.failure !== undefined)?.failure;
    if (failure !== undefined && this.#faults().length === 0) this.#oracle.fault(`the daemon ended: ${messageOf(failure)}`);
    return this.#faults().length > 0;
  }

  #faults(): readonly string[] {
    return [...this.#oracles.values()].flatMap(({ faults }) => faults);
  }

  #every(holds: (oracle: Oracle) => boolean): boolean {
    return [...this.#oracles.values()].every(holds);
  }

  /** The earliest next attempt of all sources: see Oracle.nextTry. */
  #nextTry(): number | undefined {
    const all = [...this.#oracles.values()].flatMap((oracle) => oracle.nextTry() ?? []);
    return all.length === 0 ? undefined : Math.min(...all);
  }
}
