/**
 * One seed: an environment, a safety phase in which everything goes wrong that may, and a liveness phase in which everything must come right.
 * The same seed and commit give the same run, to the last step.
 */
import type Database from 'better-sqlite3';
import { perform } from '../../src/daemon/operations/perform.ts';
import { Journal } from '../../src/journal/journal.ts';
import { codeOf, messageOf } from '../../src/errors.ts';
import type { Config } from '../../src/config/load.ts';
import { Chance } from './chance.ts';
import { Caretaker } from './caretaker.ts';
import { Changes } from './changes.ts';
import type { Place } from './effects.ts';
import { drawEnvironment, probability } from './environment.ts';
import type { Environment } from './environment.ts';
import { Historian } from './historian.ts';
import { configOf, Life } from './life.ts';
import { Oracle } from './oracle.ts';
import { Receiver } from './receiver.ts';
import { isRefused } from './rolled-back.ts';
import { Service } from './service.ts';
import { Sometimes } from './sometimes.ts';
import { drawTruth } from './truth.ts';
import { World } from './world.ts';

/** What is counted over a campaign. */
export interface Figures {
  seeds: number;
  steps: number;
  lives: number;
  kills: number;
  powerCuts: number;
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

/** Gaps are tried again after 1, 5 and 15 minutes, and then once a day: so often the daemon may be away until then. */
const maxAbsences = 8;
/** Between two checks of the rights, and the least time for which rights stay lost after a suspension began. */
const lookMs = 500;
const minSuspendedMs = 3_000;
/** In quiet times a right that is gone is noticed within a few seconds. */
const noticedMs = 60_000;
/** What a power cut leaves of what was being written, bytes: nothing, or up to more than a page of the file. */
const maxTorn = 5_000;
/** Between two looks of a person. */
const visitMs = 10_000;

/** Where lives end, in place of chance: at these effects of the run, counted from 1 over all lives. */
export interface Script {
  readonly ends: readonly number[];
  readonly isPowerCut: boolean;
}

export async function simulate(seed: number, base: Config, place: Place, traced = false): Promise<Outcome> {
  return new Simulation(drawEnvironment(seed), base, place, traced, undefined).run();
}

/** One run of an environment that ends where a script says; `ends` without a number: it is not killed at all. */
export async function play(environment: Environment, script: Script, base: Config, place: Place, traced = false): Promise<Outcome> {
  return new Simulation(environment, base, place, traced, script).run();
}

class Simulation {
  readonly #environment: Environment;
  readonly #config: Config;
  readonly #place: Place;
  readonly #world: World;
  readonly #service: Service;
  readonly #receivers: readonly Receiver[];
  readonly #oracle: Oracle;
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
  readonly #figures: Figures;
  readonly #script: Script | undefined;
  #directory: string;
  #life: Life | undefined;
  /** Effects until the next kill. */
  #killIn: number;
  /** Effects at which a life could have ended so far. */
  #effects = 0;
  #isCalm = false;
  #shrunkAt: number | undefined;
  #suspendedFor = 0;
  #wasPaused = false;
  /** Windows that a person has accepted. */
  #accepted = 0;
  /** The state at the moment of the last kill, as it will be found. */
  #left: string | undefined;
  #backup: string | undefined;

  constructor(environment: Environment, base: Config, place: Place, traced: boolean, script: Script | undefined) {
    const { seed, beginMs } = environment;
    this.#environment = environment;
    this.#script = script;
    this.#config = configOf(base, environment);
    this.#changes = new Changes(this.#config, environment);
    this.#place = place;
    this.#directory = place.fresh();
    this.#world = new World(beginMs, traced);
    this.#world.skew = environment.machine.aheadMs;
    this.#service = new Service(this.#world, environment, drawTruth(environment), this.#sometimes);
    this.#receivers = environment.sinks.map((sink) => new Receiver(sink, environment, this.#world, this.#sometimes));
    this.#oracle = new Oracle(this.#world, environment, this.#service, this.#receivers, this.#sometimes);
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
      lostAcknowledgements: 0,
      requests: 0,
      records: this.#service.truths.length,
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
      this.#bury();
    }
    for (const receiver of this.#receivers) await this.#verify(receiver);
    const { environment, faults } = { environment: this.#environment, faults: this.#oracle.faults };
    this.#figures.lostAcknowledgements = this.#receivers.reduce((sum, { lostAnswers }) => sum + lostAnswers, 0);
    Object.assign(this.#figures, { steps: this.#world.steps, requests: this.#service.requests, windows: this.#oracle.windows.size });
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

  /** Everything goes wrong that may; nothing that is checked after every commit may. */
  async #safety(): Promise<void> {
    const { machine, beginMs, safetyMs, records, daemon } = this.#environment;
    const end = beginMs + safetyMs;
    while (this.#world.ms < end && !this.#hasFailed()) {
      const life = this.#begin();
      const isOrderly = this.#kills.is(machine.orderly);
      const leaves = isOrderly ? this.#world.ms + this.#kills.between(1_000, 60_000) : end;
      const { absentMs } = this.#changes;
      const comesBack = absentMs === undefined ? end : this.#world.ms + absentMs;
      await this.#world.run(Math.min(end, leaves, comesBack), () => life.isDead || this.#hasFailed());
      if (!life.isDead && (isOrderly || absentMs !== undefined) && this.#world.ms < end) await this.#endInOrder(life);
      if (!life.isDead) continue;
      this.#bury();
      if (this.#backup !== undefined && this.#kills.is(0.5)) await this.#rollBack(this.#backup);
      if (records.purge && this.#purges.is(0.3)) this.#delete();
      const away = this.#kills.is(0.05) ? this.#kills.between(20_000, 2 * daemon.closeDelayMs + 60_000) : this.#kills.distance(1_000);
      await this.#world.run(this.#world.ms + away, () => false);
      this.#maybeSkew();
    }
  }

  /**
   * Retention: everything that is so old. Or what somebody deletes of a window with records: a few seconds, so that others stay as they are, and
   * show that only this one has vanished.
   */
  #delete(): void {
    const windows = [...this.#oracle.windows.values()].filter(({ total }) => (total ?? 0) > 0);
    const window = windows[this.#purges.whole(0, Math.max(0, windows.length - 1))];
    const at = window?.from ?? this.#world.now - this.#purges.whole(5_000, 150_000) * 1_000;
    if (this.#purges.is(0.3)) this.#service.purge(-Infinity, at);
    else this.#service.purge(at, at + this.#purges.whole(1, 10) * 1_000_000);
  }

  /** Faults end. Within a time that follows from the settings everything must be where it belongs. */
  async #liveness(): Promise<void> {
    this.#isCalm = this.#service.isCalm = true;
    for (const receiver of this.#receivers) receiver.isCalm = true;
    this.#historian?.calm();
    this.#caretaker?.calm();
    this.#world.skew = 0;
    const { closeDelayMs, agesMs } = this.#environment.daemon;
    const width = Math.max(closeDelayMs, 10_000);
    // What happened last is recounted for the last time; and whoever waits a minute before trying again does so once more.
    const budget = (agesMs.at(-1) ?? 0) + closeDelayMs + 3 * width + 150_000;
    if (this.#life && this.#changes.isOther) await this.#endInOrder(this.#life);
    let life = this.#life ?? this.#begin();
    if (this.#service.isShrunk) await this.#noticed();
    await this.#untilIdle(budget);
    for (let absence = 0; absence < maxAbsences && !this.#hasFailed(); absence += 1) {
      const next = this.#oracle.nextTry();
      if (next === undefined) break;
      if (next === Infinity) this.#oracle.fault('L: a window is open and will never be tried again');
      if (next === Infinity) break;
      // The daemon is away until a gap is due; what is left undone meanwhile it makes up for.
      await this.#endInOrder(life);
      await this.#world.run(Math.max(this.#world.ms, next / 1_000), () => false);
      life = this.#begin();
      await this.#untilIdle(120_000);
    }
    // What came at the very end is still on its way.
    await this.#world.run(this.#world.ms + 60_000, () => this.#hasFailed() || this.#oracle.unfinished().length === 0);
    if (this.#hasFailed() || !life.journal) return;
    this.#oracle.finish(life.journal.db);
    const { seq, chain } = life.journal.head();
    // The journal has the checkpoints of an archive, which depend on the random id of the state.
    const hasArchive = this.#environment.sinks.some(({ isArchive }) => isArchive);
    this.#world.note(`entry ${seq}${hasArchive ? '' : `, chain ${Buffer.from(chain).toString('hex')}`}`);
  }

  /**
   * Lets time pass until nothing is left to be done and the last recounts of what there is are over, or until the time is up. That begins anew
   * where a person had to accept a window: each window with deleted records begins another suspension, which waits for the next visit.
   */
  async #untilIdle(budgetMs: number): Promise<void> {
    let lookAt = 0;
    const isIdle = (): boolean => {
      if (this.#hasFailed()) return true;
      if (this.#world.ms < lookAt) return false;
      lookAt = this.#world.ms + 5_000;
      return this.#oracle.isIdle();
    };
    for (let accepted = -1; accepted < this.#accepted;) {
      accepted = this.#accepted;
      if (await this.#world.run(this.#world.ms + budgetMs, isIdle)) return;
    }
  }

  /**
   * An operator looks at suspensions now and then, and accepts only windows whose records the service has deleted: any other suspension must end by
   * itself.
   */
  async #attend(): Promise<void> {
    this.#world.after(visitMs, () => void this.#attend());
    const life = this.#life;
    if (life?.journal === undefined || !life.isRunning || life.isDead) return;
    try {
      for (const { from } of this.#oracle.lacking()) {
        await life.journal.acceptGap('service', from, { at: this.#world.now, actor: 'uid 1000', reason: 'deleted by the service' });
        this.#accepted += 1;
        this.#sometimes.count('window accepted');
      }
    } catch (thrown) {
      if (this.#life?.isDead === false) this.#oracle.fault(`a person could not accept a window: ${messageOf(thrown)}`);
    }
  }

  /**
   * Rights shrink when the daemon can notice it, and are restored a while after it did: during the suspension, or when no answer in all that time could
   * show it. So no page is answered with fewer fields and checked with more.
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
      if (this.#suspendedFor === lookMs) this.#sometimes.count('suspension while rights were less');
      if (this.#suspendedFor > minSuspendedMs && this.#kills.is(0.2)) this.#restoreRights();
    }
  }

  /** Rights are restored before faults end: during a suspension, or without one where no answer could show the loss. */
  async #noticed(): Promise<void> {
    const service = this.#service;
    const isRestored = await this.#world.run(this.#world.ms + noticedMs, () => !service.isShrunk || this.#hasFailed());
    if (isRestored) return;
    if (this.#environment.rights === 'rows') this.#oracle.fault('H: no record is shown, and nobody noticed');
    this.#restoreRights();
  }

  #restoreRights(): void {
    this.#service.isShrunk = false;
    this.#world.note('rights are restored');
  }

  #begin(): Life {
    this.#figures.lives += 1;
    this.#service.forget();
    const isKnown = (sink: string): boolean => this.#oracle.sink(sink) !== undefined;
    const config = this.#changes.next(this.#directory, isKnown, this.#oracle.source !== undefined, this.#isCalm);
    const [source] = config.sources;
    const { gone, retired } = this.#changes;
    const { closeDelay: settle, pollInterval: poll } = source ?? { closeDelay: 0, pollInterval: 0 };
    this.#oracle.begins({ closeDelayMs: settle, pollMs: poll, retired, isAbsent: source === undefined });
    if (!source) this.#world.note('the source is gone');
    if (gone !== undefined) this.#world.note(`${gone} is ${retired === undefined ? 'gone' : 'retired'}`);
    const life = new Life({
      world: this.#world,
      environment: this.#environment,
      config,
      service: this.#service,
      receivers: this.#receivers,
      directory: this.#directory,
      chance: this.#program,
      result: {
        isOver: (what, db) => this.#isOver(what, db),
        progress: (sink) => this.#oracle.sink(sink) ?? { acknowledged: 0, delivered: 0 },
        asks: this.#oracle.asks,
        committed: (db) => {
          this.#oracle.committed(db);
          this.#maybeSlow();
        },
        tended: this.#oracle.tended,
        fault: (words) => this.#oracle.fault(words),
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
    const isInTime = await this.#world.run(this.#world.ms + 300_000, life.ending());
    if (!isInTime) this.#oracle.fault('the daemon did not end within five minutes');
    this.#world.note('ended in order');
    if (life.isDead) return;
    this.#life = undefined;
    // A batch of which some are wanted again is given up by an end in order too, and comes again from its first message.
    for (const receiver of this.#receivers) {
      const { id } = receiver.settings;
      const acked = this.#oracle.sink(id)?.acknowledged ?? 0;
      if (id !== this.#changes.gone && receiver.owes(acked)) receiver.wasCut(acked);
    }
  }

  /** At every effect: whether the life ends here. If so, the state is copied as it is. */
  #isOver(what: string, db: Database.Database | undefined): boolean {
    this.#watchQuota();
    if (this.#isCalm) return false;
    const { machine } = this.#environment;
    const life = this.#life;
    this.#effects += 1;
    if (!this.#isDue(what) || !life) return false;
    const isPowerCut = this.#script ? this.#script.isPowerCut : this.#kills.is(machine.powerCuts);
    const synchronous = isPowerCut && db ? Number(db.pragma('synchronous', { simple: true })) : 2;
    const torn = isPowerCut ? this.#torn.bytes(this.#torn.whole(0, maxTorn)) : undefined;
    this.#left = this.#place.copy(this.#directory, torn && { synchronous, torn });
    if (torn && torn.length > 0 && db?.inTransaction === true) this.#sometimes.count('torn tail of a transaction under way');
    this.#figures.kills += 1;
    if (isPowerCut) this.#figures.powerCuts += 1;
    this.#world.note(`${isPowerCut ? 'power cut' : 'kill'} at ${what}`);
    this.#countKill(what, life);
    // One after another, so that recovery is hit as well.
    this.#killIn = this.#kills.is(0.15) ? this.#kills.whole(1, 25) : 1 + this.#kills.distance(machine.killEvery);
    for (const receiver of this.#receivers) receiver.maybeRollOver(machine.aimed ? 0.4 : 0.1);
    return true;
  }

  #isDue(what: string): boolean {
    if (this.#script) return this.#script.ends.includes(this.#effects);
    this.#killIn -= 1;
    if (this.#environment.machine.aimed && this.#isWorthIt(what)) this.#killIn = Math.min(this.#killIn, this.#kills.whole(0, 2));
    if (this.#oracle.isReadingHistory && this.#historyKills.is(0.06)) return true;
    return this.#killIn <= 0;
  }

  /** Acknowledgements wait in memory, or a sink has just taken what the file does not know: there random kills seldom fall. */
  #isWorthIt(what: string): boolean {
    if (!what.endsWith('took')) return false;
    return this.#kills.is(0.04);
  }

  #countKill(what: string, life: Life): void {
    if (!life.isRunning) this.#sometimes.count('kill during recovery');
    if (what === 'next page' || (what === 'COMMIT is done' && life.isPaging)) this.#sometimes.count('kill between append and next page');
    if (life.isRunning && this.#oracle.isReadingHistory) this.#sometimes.count('kill while history is read');
    for (const receiver of this.#receivers) {
      const { kind, id } = receiver.settings;
      // One that is not delivered to was cut before already.
      if (id === this.#changes.gone) continue;
      const acked = this.#oracle.sink(id)?.acknowledged ?? 0;
      if (receiver.owes(acked)) this.#sometimes.count('kill while the rest of a batch is wanted again');
      if (receiver.beyond(acked) === 0) continue;
      this.#sometimes.count('kill between taking and acknowledging');
      if (kind === 'position') this.#sometimes.count('kill between commit at the sink and ours');
      receiver.wasCut(acked);
    }
  }

  #bury(): void {
    const life = this.#life;
    if (!life) return;
    this.#life = undefined;
    life.bury(this.#place);
    if (this.#left === undefined) return;
    this.#directory = this.#left;
    this.#left = undefined;
    const isDue = this.#environment.machine.restored && this.#backup === undefined && this.#oracle.head > 0;
    if (isDue && this.#kills.is(0.3)) this.#backup = this.#place.copy(this.#directory);
  }

  /** Somebody restores an older copy of the state: a sink that keeps our position must be sent nothing. Then the right one is restored. */
  async #rollBack(backup: string): Promise<void> {
    const receiver = this.#receivers.find(({ settings }) => settings.kind === 'position');
    if (!receiver?.kept) return;
    const verdict = await isRefused(this.#place.copy(backup), receiver, this.#config, this.#world, this.#place);
    if (verdict === 'does not apply') return;
    if (verdict === 'blocked') this.#sometimes.count('rolled-back state blocked');
    else this.#oracle.fault(`I12: a state that was rolled back is ${verdict}`);
  }

  /** A person retires a source that is gone: `waybill sources retire`. It may come back all the same. */
  async #retireSource(life: Life): Promise<void> {
    const isOver = (): boolean => life.isDead || life !== this.#life;
    if (isOver() || !life.journal || this.#oracle.source?.state !== 'unconfigured') return;
    try {
      await perform({ operation: 'sources retire', source: 'service', actor: 'uid 1000' }, life.journal, this.#world.now, () => undefined);
      this.#sometimes.count('source retired');
    } catch (thrown) {
      if (!isOver()) this.#oracle.fault(`a source that is gone could not be retired: ${messageOf(thrown)}`);
    }
  }

  /** A second daemon on the same state must be refused at once, and change nothing. */
  async #secondDaemon(life: Life): Promise<void> {
    if (life.isDead || life !== this.#life || !life.journal) return;
    const options = { directory: life.directory, maxSize: 1e9, retention: 1e12, version: '0.0.0', expectState: false, lockWait: 0 };
    try {
      await using second = await Journal.open(options, life.clock, new AbortController().signal);
      this.#oracle.fault(`I11: a second daemon owns ${second.id}`);
    } catch (thrown) {
      if (codeOf(thrown) === 'state_locked') this.#sometimes.count('second daemon refused');
      else this.#oracle.fault(`I11: a second daemon ended with ${messageOf(thrown)}`);
    }
  }

  #maybeSkew(): void {
    if (this.#kills.is(probability(this.#environment.machine.skew, 0.1, 0.5))) {
      this.#world.skew = this.#kills.pick([0, 5_000, -5_000, 7_200_000, -3_000_000, -7_200_000, 31_536_000_000]);
    }
  }

  /** A commit that took long: nothing else could run meanwhile. */
  #maybeSlow(): void {
    if (this.#isCalm || !this.#syncs.is(probability(this.#environment.machine.slowSync, 0.003, 0.02))) return;
    this.#world.ms += this.#syncs.between(200, 8_000);
    this.#world.note('slow sync');
    this.#sometimes.count('commit that took seconds');
  }

  #watchQuota(): void {
    if (this.#environment.daemon.quotaPages === undefined) return;
    const isPaused = this.#life?.journal?.refuses() === 'journal_full';
    if (this.#wasPaused && !isPaused) this.#sometimes.count('quota reached and left');
    this.#wasPaused = isPaused;
  }

  #hasFailed(): boolean {
    const failure = this.#life?.failure;
    if (failure !== undefined && this.#oracle.faults.length === 0) this.#oracle.fault(`the daemon ended: ${messageOf(failure)}`);
    return this.#oracle.faults.length > 0;
  }
}
