/**
 * Eight virtual hours of a source, three sinks and an operator, with outages, cut answers, missing
 * totals, lost permissions, kills and stops. Each minute the verdict of the program on the whole
 * ledger is compared with the oracle's; every third minute also the verdict on a random period.
 * `npm run simulate:verdicts -- --seeds 1000 --from 1` ends with 1 at the first seed that fails,
 * and prints the command that repeats it.
 *
 * promise: The summary equals the verdict of an oracle at each minute.
 */
import { parseArgs } from 'node:util';
import type Database from 'better-sqlite3';
import type { Config, SinkConfig } from '../../src/config/load.ts';
import { reportSettings } from '../../src/config/report-settings.ts';
import { WaybillError, messageOf } from '../../src/errors/errors.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openLedgerReport } from '../../src/journal/queries/ledger.ts';
import { snapshotOf, withCoverage } from '../../src/journal/queries/snapshot.ts';
import { openReadOnly } from '../../src/journal/state.ts';
import type { Coverage, Snapshot } from '../../src/model/snapshot.ts';
import type { Page, PageRequest } from '../../src/model/source.ts';
import type { Micros } from '../../src/model/time.ts';
import { completeness, presentOf } from '../../src/report/completeness.ts';
import { statusCompleteness, statusSummary } from '../../src/report/status-summary.ts';
import { assessed, summaryOf } from '../../src/report/summary.ts';
import type { Completeness } from '../../src/report/completeness.ts';
import { Chance } from './chance.ts';
import { Place } from './effects.ts';
import { drawEnvironment, firstSource } from './environment.ts';
import type { Environment, SinkEnvironment } from './environment.ts';
import { baseConfig, configOf, Life } from './life.ts';
import { Receiver } from './receiver.ts';
import { Service } from './service.ts';
import { Sometimes } from './sometimes.ts';
import { drawTruth } from './truth.ts';
import { VerdictOracle } from './verdict-oracle.ts';
import type { Expected } from './verdict-oracle.ts';
import { World } from './world.ts';

const minute = 60_000;
const hour = 60 * minute;
const lasts = 8 * hour;
/**
 * Longer sleeps end at the next full minute. The program checks for work every second; that takes time
 * here and shows nothing more.
 */
const shortMs = 500;
const gridMs = minute;
/** Interval between checks; the first is after the work of the full minute. */
const lookMs = 5_000;
/** So long after the last disturbance all work must be complete. */
const calmMs = 45 * minute;
const underWayLooks = 3;
/** Three polls without an answer count as a failure. */
const silentMs = 8 * minute;

const cached = new WeakSet<Database.Database>();

/** Prepares each statement once per connection: the same few run thousands of times here. */
function cacheStatements(db: Database.Database): void {
  if (cached.has(db)) return;
  cached.add(db);
  const prepared = new Map<string, Database.Statement>();
  const prepare = db.prepare.bind(db);
  const prepareOnce = (sql: string): Database.Statement => {
    const found = prepared.get(sql) ?? prepare(sql);
    prepared.set(sql, found);
    return found;
  };
  Object.defineProperty(db, 'prepare', { value: prepareOnce, configurable: true });
}

function coverageBy({ sources }: Snapshot): ReadonlyMap<string, Coverage> {
  return new Map(sources.flatMap(({ id, coverage }) => (coverage ? [[id, coverage] as const] : [])));
}

class CoarseWorld extends World {
  override after(ms: number, fire: () => void): () => void {
    const due = this.ms + ms;
    return super.after(ms < shortMs ? ms : Math.ceil(due / gridMs) * gridMs - this.ms, fire);
  }
}

/** Ranges of time, ms since the start. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

function stretches(chance: Chance, everyMs: number, lastsMs: number): Stretch[] {
  const found: Stretch[] = [];
  for (let at = chance.distance(everyMs); at < lasts;) {
    const until = at + minute + chance.distance(lastsMs);
    found.push({ from: at, to: until });
    at = until + chance.distance(everyMs);
  }
  return found;
}

/** The faults of a seed. */
interface Plan {
  readonly down: readonly Stretch[];
  readonly cut: readonly Stretch[];
  readonly totalless: readonly Stretch[];
  readonly shrunk: readonly Stretch[];
  readonly away: readonly (Stretch & { readonly isKill: boolean })[];
  readonly sinks: ReadonlyMap<string, readonly Stretch[]>;
  /**
   * The time of the backfill request, and its range; ms since the start, both ends before the
   * ledger.
   */
  readonly history: { readonly at: number; readonly from: number; readonly to: number } | undefined;
  /** The time at which an operator accepts every gap. */
  readonly accepts: number | undefined;
  /** The start of one sink, or of all of them: then no sink answers for earlier windows. */
  readonly sinkFrom: number | undefined;
  readonly isFromOfAll: boolean;
  /**
   * The time at which a receiver loses records that it had accepted, and which: shares of the
   * acknowledged entries.
   */
  readonly loss: { readonly at: number; readonly sink: string; readonly first: number; readonly last: number } | undefined;
}

function drawPlan(seed: number, environment: Environment): Plan {
  const chance = new Chance(seed, 'verdicts');
  const sometimes = (probability: number, everyMs: number, lastsMs: number): Stretch[] => {
    const drawn = stretches(chance, everyMs, lastsMs);
    return chance.is(probability) ? drawn : [];
  };
  const { historyMs } = environment.daemon;
  const before = chance.whole(1, 8) * 15 * minute + historyMs;
  return {
    down: sometimes(0.8, 2 * hour, 20 * minute),
    cut: sometimes(0.5, 2 * hour, 10 * minute),
    totalless: sometimes(0.4, 3 * hour, 10 * minute),
    shrunk: environment.rights === 'rows' ? sometimes(1, 4 * hour, 20 * minute) : [],
    away: sometimes(0.9, 1.5 * hour, 25 * minute).map((stretch) => ({ ...stretch, isKill: chance.is(0.7) })),
    sinks: new Map(environment.sinks.map(({ id }) => [id, sometimes(0.6, 2 * hour, 30 * minute)])),
    history: chance.is(0.4)
      ? { at: chance.between(hour, 6 * hour), from: -before - chance.whole(1, 60) * minute, to: chance.is(0.5) ? -historyMs : -before }
      : undefined,
    accepts: chance.is(0.4) ? chance.between(hour, lasts) : undefined,
    sinkFrom: chance.is(0.5) ? chance.whole(-60, 400) * minute : undefined,
    isFromOfAll: new Chance(seed, 'sinks').is(0.3),
    loss: drawLoss(new Chance(seed, 'loss'), environment),
  };
}

/** Not of an archive: it finds its losses itself, and takes back one that it cannot find. */
function drawLoss(chance: Chance, { sinks }: Environment): Plan['loss'] {
  const [id, ...others] = sinks.filter(({ isArchive }) => !isArchive).map((sink) => sink.id);
  if (id === undefined || !chance.is(0.3)) return undefined;
  const [first = 0, last = 1] = [chance.between(0, 1), chance.between(0, 1)].sort((a, b) => a - b);
  return { at: chance.between(hour, lasts), sink: chance.pick([id, ...others] as const), first, last };
}

/**
 * A service, receivers and settings without the faults of the other simulation: the plan adds its
 * own.
 */
function calmEnvironment(seed: number): Environment {
  const drawn = drawEnvironment(seed);
  const chance = new Chance(seed, 'verdict environment');
  const sink = (each: SinkEnvironment): SinkEnvironment => ({
    ...{ ...each, batchRecords: 25, waitMs: 200, latencyMs: 1, down: 'off', slow: 'off', busy: 'off', lost: 'off', refusal: 'named' },
    ...{ refused: each.kind === 'uids' ? chance.pick([0, 3]) : 0, rollovers: 'off', oldPosition: false, partial: 'off' },
    filter: each.kind === 'plain' && chance.is(0.3) ? 'AccessDenied' : undefined,
  });
  return {
    ...drawn,
    ...{ others: [], answersEveryMs: 0 },
    // Not at a full minute, like everything in reality.
    beginMs: Date.UTC(2026, 10, 20, chance.whole(0, 23), chance.whole(0, 59), chance.whole(0, 59)),
    safetyMs: lasts,
    daemon: {
      ...{ pollMs: 2 * minute, closeDelayMs: chance.pick([5, 10, 15] as const) * minute, agesMs: [hour], pageSize: 'auto' },
      ...{ historyMs: chance.pick([0, 7, 60, 200] as const) * minute, quotaPages: undefined, retentionMs: 30 * 24 * hour },
      measuresOverlap: false,
    },
    records: {
      ...{
        count: 80,
        bursts: 0.2,
        lateness: chance.pick(['off', 'rare']),
        surprises: 'off',
        ties: 'off',
        edges: 'rare',
        sameLogId: 'off',
      },
      ...{ collisions: false, unreadable: 'off', unreadableMatches: 'always', wrongNode: 'off', padBytes: 0, purge: false },
      ...{ nulls: 'off', placeholders: false },
    },
    ...{
      rights: chance.is(0.25) ? 'rows' : 'whole',
      returns: false,
      history: undefined,
      changes: undefined,
      caretaker: undefined,
      absence: undefined,
    },
    service: {
      ...{
        firstPage: 1,
        pageCap: 100,
        capChanges: 'off',
        admitsCap: true,
        refuseAbove: Infinity,
        widestMicros: Infinity,
        numbers: 'right',
        beforeFirst: 'refused',
        empties: 'page',
        gateway: 'off',
        refusedForm: 'none',
        zone: undefined,
        hasDeadName: false,
      },
      ...{ order: 'ascending', hidden: 'off', pastEnd: 'empty', lowerBound: 'included', upperBound: 'included', cutMicros: 1 },
      ...{ total: 'true', totalCap: 1_000, totalLagMs: 1_000, dates: 'right', nodeOffMs: 0, lead: undefined, latencyMs: 2 },
      ...{ transport: 'off', unauthorized: 'off', cached: 'off', outages: 'off' },
    },
    sinks: drawn.sinks.map(sink),
  };
}

class PlannedService extends Service {
  isDown = false;
  isCut = false;
  isTotalless = false;
  /** True time of the last answer, ms. */
  answeredMs = 0;
  readonly #world: World;
  readonly #cuts: Chance;

  constructor(world: World, environment: Environment, truths: ReturnType<typeof drawTruth>) {
    super(world, environment, truths, new Sometimes());
    this.#world = world;
    this.#cuts = new Chance(environment.seed, 'cut answers');
  }

  override answer(request: PageRequest, received: Micros, receivedMonotonic: number): Page {
    if (this.isDown) throw new WaybillError('source_unreachable', 'connect ECONNREFUSED');
    if (this.isCut && this.#cuts.is(0.4)) throw new WaybillError('source_unreachable', 'read ECONNRESET');
    const page = super.answer(request, received, receivedMonotonic);
    this.answeredMs = this.#world.ms;
    return this.isTotalless ? { ...page, total: undefined } : page;
  }
}

class PlannedReceiver extends Receiver {
  isAway = false;

  override isDown(): boolean {
    return this.isAway;
  }

  /** Removes entries [first, last]. */
  lose(first: number, last: number): void {
    const left = this.has.filter(({ seq }) => seq < first || seq > last);
    this.has.splice(0, Infinity, ...left);
  }
}

interface Figures {
  seeds: number;
  checks: number;
  kills: number;
  stops: number;
  losses: number;
  /** Checks by the first message of the verdict, and by the reasons of uncovered seconds. */
  readonly heads: Record<string, number>;
}

class Day {
  readonly faults: string[] = [];
  readonly figures: Figures = { seeds: 1, checks: 0, kills: 0, stops: 0, losses: 0, heads: {} };
  readonly #plan: Plan;
  readonly #environment: Environment;
  readonly #config: Config;
  readonly #place: Place;
  readonly #world: World;
  readonly #service: PlannedService;
  readonly #receivers: readonly PlannedReceiver[];
  readonly #oracle: VerdictOracle;
  readonly #program: Chance;
  readonly #periods: Chance;
  readonly #starts: Micros;
  #directory: string;
  #life: Life | undefined;
  /** The state at the last kill. */
  #left: string | undefined;
  #isKillDue = false;
  /** The time of the last disturbance, ms. */
  #disturbedMs: number;
  #stoppedMs = 0;
  #looks = 0;
  /** Consecutive checks at which a sink without dead letters lacked more records than it had lost. */
  #shortLooks = 0;
  /** The state, opened for reading while no daemon runs. */
  #reader: Database.Database | undefined;

  constructor(seed: number, base: Config, place: Place) {
    const environment = calmEnvironment(seed);
    const plan = drawPlan(seed, environment);
    const hasFrom = (id: string): boolean => plan.isFromOfAll || id === 'by-position';
    const sinkFrom = plan.sinkFrom === undefined ? undefined : (environment.beginMs + plan.sinkFrom) * 1_000;
    const config = configOf(base, environment);
    this.#environment = environment;
    this.#plan = plan;
    this.#config = {
      ...config,
      sinks: config.sinks.map((sink): SinkConfig => ({
        ...sink,
        start: hasFrom(sink.id) && sinkFrom !== undefined ? { kind: 'instant' as const, at: sinkFrom } : sink.start,
      })),
    };
    this.#place = place;
    this.#directory = place.fresh();
    this.#world = new CoarseWorld(environment.beginMs, false);
    const truths = drawTruth(environment);
    this.#service = new PlannedService(this.#world, environment, truths);
    this.#receivers = environment.sinks.map((sink) => new PlannedReceiver(sink, environment, this.#world, new Sometimes()));
    this.#program = new Chance(seed, 'program');
    this.#periods = new Chance(seed, 'periods');
    this.#starts = (environment.beginMs - environment.daemon.historyMs) * 1_000;
    this.#disturbedMs = environment.beginMs;
    const filtered = new Set(environment.sinks.filter(({ filter }) => filter !== undefined).map(({ id }) => id));
    const late = environment.sinks.filter(({ id }) => hasFrom(id));
    const begins = new Map(sinkFrom === undefined ? [] : late.map(({ id }) => [id, sinkFrom] as const));
    this.#oracle = new VerdictOracle(
      truths,
      this.#receivers,
      this.#starts,
      environment.daemon.closeDelayMs * 1_000,
      filtered,
      begins,
      environment.beginMs * 1_000,
    );
  }

  async run(): Promise<void> {
    const { beginMs } = this.#environment;
    this.#begin();
    for (let at = lookMs - (beginMs % gridMs) + minute; at < lasts && this.faults.length === 0; at += minute) {
      await this.#until(beginMs + at);
      this.#check();
      await this.#act(at);
    }
    this.#close();
    const life = this.#life;
    if (life && !life.isDead) await this.#world.run(this.#world.ms + 5 * minute, life.ending());
    if (life?.isDead === true) life.release(this.#place);
    else this.#place.remove(this.#directory);
  }

  /** Lets time pass; a fault of the plan applies from the next check on. */
  async #until(ms: number): Promise<void> {
    await this.#world.run(ms, () => this.#life?.failure !== undefined);
    if (this.#life?.failure !== undefined) this.faults.push(`the daemon ended: ${messageOf(this.#life.failure)}`);
    if (this.#life?.isDead === true) this.#release();
  }

  async #act(at: number): Promise<void> {
    const within = (parts: readonly Stretch[]): boolean => parts.some(({ from, to: until }) => from <= at && at < until);
    const { down, cut, totalless, shrunk, away, sinks, history, accepts, loss } = this.#plan;
    const set = (key: 'isDown' | 'isCut' | 'isTotalless' | 'isShrunk', is: boolean): void => {
      if (this.#service[key] !== is || is) this.#disturbedMs = this.#world.ms;
      this.#service[key] = is;
    };
    set('isDown', within(down));
    set('isCut', within(cut));
    set('isTotalless', within(totalless));
    set('isShrunk', within(shrunk));
    for (const receiver of this.#receivers) {
      const is = within(sinks.get(receiver.settings.id) ?? []);
      if (is || receiver.isAway !== is) this.#disturbedMs = this.#world.ms;
      receiver.isAway = is;
    }
    const gone = away.find(({ from, to: until }) => from <= at && at < until);
    if (gone || !this.#life) this.#disturbedMs = this.#world.ms;
    if (gone && this.#life) await this.#end(this.#life, gone.isKill);
    else if (!gone && !this.#life) this.#begin();
    const journal = this.#life?.journal;
    if (!journal?.hasSource(firstSource)) return;
    if (history && at >= history.at && at < history.at + minute) this.#request(history.from, history.to);
    if (loss && at >= loss.at && at < loss.at + minute) await this.#lose(journal, loss);
    if (accepts !== undefined && at >= accepts && at < accepts + minute) {
      const open = journal.db.prepare<[], { at: number }>("SELECT from_us AS at FROM windows WHERE state = 'gap'").all();
      for (const gap of open) await journal.acceptGap(firstSource, gap.at, { at: this.#world.now, actor: 'uid 1000', reason: 'no total' });
    }
  }

  #request(from: number, until: number): void {
    const { beginMs } = this.#environment;
    const [a, b] = [from, until].map((ms) => Math.floor((beginMs + ms) / 1_000) * 1_000_000) as [number, number];
    if (a >= b) return;
    this.#disturbedMs = this.#world.ms;
    this.#life?.journal?.history.add(firstSource, { from: a, to: b }, {}, { actor: 'uid 1000', reason: undefined });
    this.#oracle.requested(a, b, this.#world.now);
  }

  /**
   * Reports lost entries as the file sink does when its file was truncated: with its resume point,
   * and continues.
   */
  async #lose(journal: Journal, { sink, first: from, last: to }: NonNullable<Plan['loss']>): Promise<void> {
    const { acknowledged: acked, resumeNote: note } = journal.sinkProgress(sink);
    const [first, last] = [Math.floor(from * acked) + 1, Math.ceil(to * acked)];
    if (first > last) return;
    await journal.lost(sink, { first, last, message: 'the receiver was emptied' }, note ?? '');
    this.#receivers.find(({ settings: { id } }) => id === sink)?.lose(first, last);
    this.#oracle.lost(journal.db, sink, first, last);
    this.figures.losses += 1;
  }

  #begin(): void {
    this.#close();
    const life = new Life({
      world: this.#world,
      environment: this.#environment,
      config: this.#config,
      services: new Map([[firstSource, this.#service]]),
      receivers: this.#receivers,
      directory: this.#directory,
      database: undefined,
      chance: this.#program,
      result: {
        isOver: () => this.#isOver(),
        progress: () => ({ acknowledged: 0, delivered: 0 }),
        asks: () => undefined,
        committed: () => undefined,
        head: () => 0,
        repaired: () => undefined,
        isCalm: () => true,
        afterPruning: () => undefined,
        fault: () => undefined,
      },
    });
    this.#life = life;
    life.begin();
  }

  #close(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  #isOver(): boolean {
    if (!this.#isKillDue) return false;
    this.#isKillDue = false;
    this.#left = this.#place.copy(this.#directory);
    return true;
  }

  async #end(life: Life, isKill: boolean): Promise<void> {
    this.#stoppedMs = this.#world.ms;
    if (!isKill) {
      this.figures.stops += 1;
      await this.#world.run(this.#world.ms + 5 * minute, life.ending());
      this.#life = undefined;
      return;
    }
    this.figures.kills += 1;
    this.#isKillDue = true;
    // The kill happens at the next effect of the daemon.
    await this.#world.run(this.#world.ms + 5 * minute, () => life.isDead);
    this.#release();
  }

  #release(): void {
    this.#life?.release(this.#place);
    this.#life = undefined;
    if (this.#left !== undefined) this.#directory = this.#left;
    this.#left = undefined;
  }

  #check(): void {
    const journal = this.#life?.journal;
    if (journal) {
      cacheStatements(journal.db);
      this.#compare(journal.db, true);
      return;
    }
    if (this.#life) return;
    this.#reader ??= openReadOnly(this.#directory);
    cacheStatements(this.#reader);
    this.#compare(this.#reader, false);
  }

  #compare(db: Database.Database, isRunning: boolean): void {
    const { now } = this.#world;
    const snapshot = this.#snapshot(db, isRunning, now);
    const serverNow = snapshot.sources[0]?.serverNow;
    const known = { db, now, serverNow, isRunning, isSilent: this.#service.isDown && this.#world.ms - this.#service.answeredMs > silentMs };
    const found = statusCompleteness(snapshot);
    if (!found) throw new Error('no source is polled');
    this.#hold(found, this.#oracle.expect({ ...known, from: undefined, to: undefined }), 'status');
    this.#settled(found);
    const head = statusSummary(snapshot);
    if (!isRunning && !head.startsWith('DAEMON NOT RUNNING since about ')) this.faults.push(`status says ${head}`);
    this.#looks += 1;
    if (this.#looks % 3 !== 0) return;
    const period = this.#period(now);
    const expected = this.#oracle.expect({ ...known, ...period });
    const present = presentOf(snapshot);
    const query = { ...period, ...reportSettings(this.#config) };
    const here = completeness({ ...present, now, ...period, coverage: coverageBy(withCoverage(db, snapshot, query)) });
    this.#hold(here, expected, `the period ${JSON.stringify(period)}`);
    this.#words(summaryOf(here, 'UTC'), expected);
    if (this.#looks % 30 !== 0) return;
    // The report itself, with its rows, and the contents of the receivers.
    using reading = openLedgerReport(db, { now, ...query });
    this.#hold(assessed(reading, { now, ...period }, present, 'UTC').found, expected, `the report ${JSON.stringify(period)}`);
    // A window that was read while rows were hidden lacks them until its recount
    // (docs/guarantees.md, "Suspension").
    if (this.#environment.rights === 'whole') this.faults.push(...this.#oracle.unheld({ db }));
  }

  #snapshot(db: Database.Database, isRunning: boolean, now: Micros): Snapshot {
    const { journal, views } = this.#life ?? {};
    const live =
      isRunning && journal && views
        ? views.live(journal)
        : {
            source: () => ({ trouble: 'the daemon does not run' }),
            sink: () => undefined,
            closeDelaySeconds: () => this.#environment.daemon.closeDelayMs / 1_000,
            paused: undefined,
            maxSize: 1e9,
            stopped: { since: this.#stoppedMs * 1_000 },
            configured: [firstSource],
          };
    return withCoverage(db, snapshotOf(db, '0.0.0', now, live), reportSettings(this.#config));
  }

  /** Mostly whole seconds, sometimes the present, the start of the ledger or the future. */
  #period(now: Micros): { readonly from: Micros | undefined; readonly to: Micros | undefined } {
    const chance = this.#periods;
    const at = (): Micros => Math.floor(chance.between(this.#starts - hour * 1_000, now + 600_000_000) / 1e6) * 1e6;
    const from = chance.is(0.3) ? undefined : at();
    const to = chance.is(0.3) ? undefined : at();
    return { from, to: from !== undefined && to !== undefined && to <= from ? undefined : to };
  }

  #hold(found: Completeness, expected: Expected, what: string): void {
    this.figures.checks += 1;
    const minuteOf = new Date(this.#world.ms).toISOString();
    const fault = (message: string): void => void this.faults.push(`${minuteOf}, ${what}: ${message}`);
    for (const name of ['complete', 'soFar', 'delivered', 'final', 'gaps', 'accepted', 'inDoubt'] as const)
      if (found[name] !== expected[name]) fault(`${name} is ${found[name]}, and should be ${expected[name]}`);
    const reported = new Map(
      found.uncovered.flatMap(({ from, to, reason }) =>
        Array.from({ length: (to - from) / 1e6 }, (_, i) => [from / 1e6 + i, reason] as const),
      ),
    );
    if (reported.size !== expected.missed.length)
      fault(`${reported.size} seconds are not covered, and should be ${expected.missed.length}`);
    const wrong = expected.missed.find(({ second, reasons }) => !reasons.includes(reported.get(second) ?? ''));
    if (wrong)
      fault(`the reason at ${wrong.second} is ${reported.get(wrong.second) ?? 'none'}, and should be ${wrong.reasons.join(' or ')}`);
    for (const [id, { windows, lacking, lost }] of expected.sinks) {
      const short = found.shortfalls.find((each) => each.id === id);
      if ((short?.lacking ?? 0) !== lacking) fault(`${id} lacks ${short?.lacking ?? 0}, and should lack ${lacking}`);
      if ((short?.lost ?? 0) !== lost) fault(`${id} lost ${short?.lost ?? 0}, and should have lost ${lost}`);
      if (short && short.windows !== windows) fault(`${id} owes ${short.windows}, and should owe ${windows}`);
    }
    for (const head of [found.complete ? 'complete' : 'incomplete', ...new Set(found.uncovered.map(({ reason }) => reason as string))])
      this.figures.heads[head] = (this.figures.heads[head] ?? 0) + 1;
    if (found.complete && found.delivered === null) this.figures.heads['unanswered'] = (this.figures.heads['unanswered'] ?? 0) + 1;
    if (found.complete && found.delivered === false)
      this.figures.heads['not all delivered'] = (this.figures.heads['not all delivered'] ?? 0) + 1;
    for (const name of ['gaps', 'accepted', 'inDoubt', 'final'] as const)
      if (found[name]) this.figures.heads[name] = (this.figures.heads[name] ?? 0) + 1;
  }

  /**
   * A while after the last disturbance the live range is covered, and sinks lack only the records
   * they rejected.
   */
  #settled(found: Completeness): void {
    if (this.#world.ms - this.#disturbedMs < calmMs) return;
    this.figures.heads['settled'] = (this.figures.heads['settled'] ?? 0) + 1;
    const late = found.uncovered.find(({ reason }) => reason !== 'not_requested' && reason !== 'history_unread');
    if (late) this.faults.push(`${new Date(this.#world.ms).toISOString()}: long after the last disturbance ${JSON.stringify(late)}`);
    // New records may be in transit for a few checks.
    const short = found.shortfalls.find(({ deadLetters, lacking, lost }) => deadLetters === 0 && lacking > lost);
    this.#shortLooks = short ? this.#shortLooks + 1 : 0;
    if (short && this.#shortLooks > underWayLooks)
      this.faults.push(`${new Date(this.#world.ms).toISOString()}: long after the last disturbance ${JSON.stringify(short)}`);
  }

  #words(summary: string, { complete, soFar, nothingDue, isNew, delivered }: Expected): void {
    if (isNew && !nothingDue && summary.startsWith('CATCHING UP: ')) return;
    const first = complete
      ? `COMPLETE${soFar ? ' SO FAR' : ''}${delivered === null ? '; ' : delivered ? ' AND DELIVERED' : ', NOT ALL DELIVERED: '}`
      : nothingDue
        ? 'NOTHING DUE YET: '
        : 'INCOMPLETE: ';
    if (!(complete && delivered ? summary === first : summary.startsWith(first)))
      this.faults.push(`the report begins "${summary}", and should begin "${first}"`);
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { seeds: { type: 'string', default: '1000' }, from: { type: 'string', default: '1' } },
  });
  const place = new Place();
  const began = performance.now();
  const sums: Figures = { seeds: 0, checks: 0, kills: 0, stops: 0, losses: 0, heads: {} };
  try {
    const base = await baseConfig(place);
    for (let seed = Number(values.from); seed < Number(values.from) + Number(values.seeds); seed += 1) {
      const day = new Day(seed, base, place);
      await day.run();
      for (const name of ['seeds', 'checks', 'kills', 'stops', 'losses'] as const) sums[name] += day.figures[name];
      for (const [head, count] of Object.entries(day.figures.heads)) sums.heads[head] = (sums.heads[head] ?? 0) + count;
      if (seed % 50 === 0) console.error(`seed ${seed}: ${((performance.now() - began) / 1_000).toFixed(0)} s`);
      if (day.faults.length === 0) continue;
      console.log(`seed ${seed} failed:\n  ${day.faults.slice(0, 10).join('\n  ')}`);
      console.log(`  repeat it: npm run simulate:verdicts -- --seeds 1 --from ${seed}`);
      return 1;
    }
    const counts = Object.entries(sums.heads).map(([head, count]) => `${head} ${count}`);
    const seconds = (performance.now() - began) / 1_000;
    console.log(
      `seeds ${sums.seeds}, checks ${sums.checks}, kills ${sums.kills}, stops ${sums.stops}, losses ${sums.losses}; ${counts.join(', ')}; ${seconds.toFixed(0)} s`,
    );
    return 0;
  } finally {
    place.leave();
  }
}

process.exitCode = await main();
