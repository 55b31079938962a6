/**
 * A life is one run of the daemon, from its start to a kill at any effect, a power cut or an orderly
 * shutdown. It consists of the real parts of the daemon, wired as the daemon wires them, with the clock
 * of the simulation, the model service and the model receivers. At its end the objects are dropped, as
 * if their process had ended.
 */
import { isDeepStrictEqual } from 'node:util';
import { contentOf, contentOfCopy } from '../support/journal/model-database.ts';
import { UnreliableDatabase } from './unreliable-database.ts';
import type { FleetDatabase } from './unreliable-database.ts';
import { uncounted } from '../support/uncounted.ts';
import type Database from 'better-sqlite3';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import type { Config, SinkConfig, SourceConfig } from '../../src/config/load.ts';
import type { DaemonOptions } from '../../src/daemon/options.ts';
import { createDelivery } from '../../src/daemon/open-delivery.ts';
import type { ConfiguredSink, CreatedSink } from '../../src/daemon/open-delivery.ts';
import { codeOf, messageOf, WaybillError } from '../../src/errors/errors.ts';
import { PollOverlap } from '../../src/collect/poll-overlap.ts';
import { runSource } from '../../src/daemon/source/run.ts';
import { showStatus } from '../../src/daemon/member.ts';
import { LiveStatus } from '../../src/daemon/live-status.ts';
import { Journal } from '../../src/journal/journal.ts';
import type { ResumePoint, Sink } from '../../src/model/sink.ts';
import type { Page, PageRequest, Source } from '../../src/model/source.ts';
import type { ComponentLog } from '../../src/telemetry/log.ts';
import { defineSink } from '../../src/sink/define.ts';
import { Budgets } from '../../src/source/limits.ts';
import type { Chance } from './chance.ts';
import { watch } from './effects.ts';
import type { Place } from './effects.ts';
import { firstSource } from './environment.ts';
import type { Environment } from './environment.ts';
import type { Receiver } from './receiver.ts';
import type { Service } from './service.ts';
import { LifeClock } from './world.ts';
import type { World } from './world.ts';
import { note } from '../support/telemetry/written-events.ts';

/** The callbacks of the simulation during a life. */
interface Fate {
  /** Called at each effect; true: the life ends now. */
  readonly isOver: (what: string, db: Database.Database | undefined) => boolean;
  /** The progress of a sink according to the state file. */
  readonly progress: (sink: string) => { readonly acknowledged: number; readonly delivered: number };
  /** Called before each request to the service of a source. */
  readonly asks: (source: string, request: PageRequest) => void;
  /** Called after each COMMIT, with the connection of the journal. */
  readonly committed: (db: Database.Database) => void;
  /**
   * Called after pruning has removed what it could; `before`: wall clock in µs, the latest time of
   * receipt to prune.
   */
  readonly afterPruning: (db: Database.Database, before: number) => void;
  /** Reports a violation. */
  readonly fault: (message: string) => void;
  /** No faults any more: everything must be collected and delivered. */
  readonly isCalm: () => boolean;
  /** The last entry in a commit. */
  readonly head: () => number;
  /** The owner of a shard has written lost commits again. */
  readonly repaired: () => void;
}

interface LifeParts {
  readonly world: World;
  readonly environment: Environment;
  readonly config: Config;
  /** By the id of their source. */
  readonly services: ReadonlyMap<string, Service>;
  readonly receivers: readonly Receiver[];
  readonly directory: string;
  /** The database of a shard; undefined: the state is a file. */
  readonly database: FleetDatabase | undefined;
  readonly chance: Chance;
  readonly result: Fate;
}

/** Ends the code that runs when the life ends. Nothing outside of that life sees it. */
class Ended extends Error {}

/** Discards the log: a simulation checks actions, not messages. */
export const quietLog: ComponentLog = {
  write: (event, ...[fields]) => note(event, fields),
  child: () => quietLog,
};
/**
 * A new promise each time: a shared one would keep a reference to every caller that ever waited for
 * it.
 */
const never = (): Promise<never> => new Promise(() => undefined);
const pruneMs = 10_000;
const dayMs = 86_400_000;

export class Life {
  readonly clock: LifeClock;
  readonly directory: string;
  isDead = false;
  /** Another life has taken the shard: this one still runs, and must end when it notices. */
  isFormer = false;
  /** Loops are running; until then the life recovers. */
  isRunning = false;
  /** The last page received belongs to a window. */
  isPaging = false;
  journal: Journal | undefined;
  views: LiveStatus | undefined;
  /** The sinks configured in this life. */
  sinks: readonly ConfiguredSink[] = [];
  /** The error that ended the program: always a fault. */
  failure: unknown;
  readonly #parts: LifeParts;
  readonly #stop = new AbortController();
  readonly #abandon = new AbortController();
  /** The turns of the member, which renew the lease until the journal is closed. */
  readonly #turns = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #database: UnreliableDatabase | undefined;

  constructor(parts: LifeParts) {
    this.#parts = parts;
    this.directory = parts.directory;
    this.clock = new LifeClock(parts.world, () => this.isDead);
  }

  begin(): void {
    watch(this.directory, {
      before: (what, db) => this.#mayEnd(what, db),
      committed: (db) => {
        if (!this.#parts.database) this.#parts.result.committed(db);
        this.#mayEnd('COMMIT is done', db);
      },
    });
    this.#ended = this.#run()
      .catch((thrown: unknown) => {
        if (!this.isDead && !this.#stop.signal.aborted) this.#lost(thrown);
      })
      .finally(() => this.#turns.abort(new Error('the shard is given up')));
  }

  fault(message: string): void {
    this.#parts.result.fault(message);
  }

  /** An effect outside of the state. It never returns in a life that is over. */
  async effect(what: string): Promise<void> {
    if (this.isDead || this.#isOver(what)) await never();
    const { going } = this.clock;
    if (going) await going.then(() => (this.isDead ? never() : undefined));
  }

  get isEnding(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Its results are of no interest any more. */
  isOver(): boolean {
    return this.isDead || this.isFormer;
  }

  get isOwner(): boolean {
    return this.#database?.isOwner ?? true;
  }

  /** Stops the process, as SIGSTOP does. A commit and requests to sinks may be under way. */
  stopFor(ms: number): void {
    this.#database?.leaveBehind(ms);
    this.clock.stop();
    this.#parts.world.after(ms, () => this.clock.go());
  }

  /** Only this process cannot reach the database: it goes on until it needs a commit, or its lease ends. */
  cutOffFor(ms: number): void {
    this.#database?.leaveBehind(ms);
    if (this.#database) this.#database.cutUntil = this.#parts.world.ms + ms;
  }

  /** Resolves when the loops have ended and the journal is closed. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /**
   * Sends SIGTERM: the daemon shuts down in order. The returned function says whether it has ended,
   * in order or by a kill.
   */
  ending(): () => boolean {
    let hasEnded = false;
    this.#end();
    void this.#ended.then(() => (hasEnded = true));
    return () => hasEnded || this.isDead;
  }

  #end(): void {
    this.#stop.abort(new Error('stop'));
    this.#parts.world.after(1_000, () => this.#abandon.abort(new Error('the shutdown timeout has passed')));
  }

  /** Releases the resources of the process that ended. */
  release(place: Place): void {
    this.isDead = true;
    this.clock.leave();
    watch(this.directory, undefined);
    if (this.journal) {
      // Only to close the files: the state was copied when the life ended.
      void this.journal[Symbol.asyncDispose]().catch(() => undefined);
    }
    place.remove(this.directory);
  }

  #isOver(what: string, db = this.journal?.db): boolean {
    this.#parts.world.steps += 1;
    if (!this.#parts.result.isOver(what, db)) return false;
    this.isDead = true;
    return true;
  }

  #mayEnd(what: string, db: Database.Database): void {
    if (this.isDead || this.#isOver(what, db)) throw new Ended();
  }

  async #run(): Promise<void> {
    const { config, environment, chance } = this.#parts;
    const { clock } = this;
    const stop = this.#stop.signal;
    const options: DaemonOptions = {
      config,
      version: '0.0.0',
      expectState: false,
      lockWait: 0,
      clock,
      random: chance.next,
      // Runs have few records: the measured overlap applies after three records.
      ...(environment.daemon.measuresOverlap && { pollOverlap: () => new PollOverlap(3, 30_000) }),
      log: quietLog,
      openSource: ({ id }) => ({ ...this.#source(id), authenticate: () => Promise.resolve(), routes: () => [] }),
    };
    const { quotaPages, retentionMs } = environment.daemon;
    const quota = (quotaPages ?? 250_000) * 4_096;
    this.#database = this.#parts.database && new UnreliableDatabase(this.#parts.database, this, this.#parts);
    this.#database?.renew(this.#turns.signal).catch((thrown: unknown) => {
      if (!this.#turns.signal.aborted) this.#lost(thrown);
    });
    const journal = await Journal.open(
      {
        directory: this.directory,
        maxSize: quota,
        retention: retentionMs,
        version: options.version,
        expectState: false,
        lockWait: 0,
        // The copy empties everything that it can.
        localSize: 0,
        database: this.#database,
      },
      clock,
      stop,
    );
    this.journal = journal;
    journal.markSourcesUnconfigured(new Set(config.sources.map(({ id }) => id)));
    journal.sinkPositions.markUnconfigured(new Set(config.sinks.map(({ id }) => id)));
    const views = new LiveStatus(config);
    this.views = views;
    const budgets = new Budgets(clock);
    const sinks = this.#createSinks(journal, options);
    this.sinks = sinks;
    const tend = async (): Promise<void> => {
      for (;;) {
        await clock.sleep(pruneMs, stop);
        while (journal.prune() > 0) await clock.sleep(10, stop);
        this.#parts.result.afterPruning(journal.db, (clock.now() - retentionMs) * 1_000);
      }
    };
    // Each step of the self-check is a whole round, once a second: few lives last long.
    const examine = async (): Promise<void> => {
      for (;;) {
        await clock.sleep(1_000, stop);
        await journal.examine(dayMs);
        // One task does both: a row that the check has fetched stays until it is checked.
        while (journal.shrinkCopy() > 0) await clock.sleep(10, stop);
      }
    };
    const running = [
      ...config.sources.map((source) =>
        runSource({ settings: source, journal, options, meters: uncounted, budgets, liveStatus: views }, stop),
      ),
      ...sinks.map(({ loop }) => loop.run(stop, this.#abandon.signal)),
      tend(),
      examine(),
      ...(this.#parts.database
        ? [
            showStatus(
              journal,
              () => journal.head().seq,
              (seq) => this.#shown(seq),
              clock,
              stop,
            ),
          ]
        : []),
    ];
    // Without a source there is no first answer to wait for.
    if (config.sources.length === 0) this.isRunning = true;
    // A loop that ends by itself ends the life, as in the daemon.
    const ends = running.map(async (each) => {
      try {
        await each;
      } catch (thrown) {
        if (stop.aborted || this.isDead) return;
        this.#lost(thrown);
      }
    });
    await Promise.all(ends);
    try {
      await this.#compareCopy(journal);
      await journal[Symbol.asyncDispose]();
    } catch (thrown) {
      if (!this.isFormer || codeOf(thrown) !== 'lease_lost') throw thrown;
    }
    this.journal = undefined;
  }

  /** A former owner ends as a member ends it: see Member in src/fleet. Any other error ends the life as it ends the daemon. */
  #lost(thrown: unknown): void {
    if (!this.isFormer || codeOf(thrown) !== 'lease_lost') this.failure ??= thrown;
    if (this.#stop.signal.aborted || !this.isFormer) return;
    this.#database?.lease.lose();
    this.#end();
  }

  /** A status of the shard shows only entries that the database has. */
  async #shown(head: number): Promise<void> {
    if (head > this.#parts.result.head()) this.fault(`a status shows entry ${head}, the database ends at ${this.#parts.result.head()}`);
  }

  /** At an orderly end: the working copy has the rows of its database. */
  async #compareCopy(journal: Journal): Promise<void> {
    const { database } = this.#parts;
    if (!database || this.isDead || this.isFormer || this.failure !== undefined) return;
    await journal.flush();
    // Commits that the database lost since: no later one has found it out.
    database.restore();
    if (!isDeepStrictEqual(contentOfCopy(journal.db, database.rows), contentOf(database.rows)))
      this.fault('the working copy differs from its database');
  }

  #createSinks(journal: Journal, options: DaemonOptions): CreatedSink[] {
    return this.#parts.config.sinks.map((sink) => createDelivery(this.#sinkOf(sink), journal, options, uncounted));
  }

  #source(id: string): Source {
    const { services, world, environment } = this.#parts;
    const service = services.get(id);
    if (!service) throw new Error(`no service for ${id}`);
    return {
      page: async (request, signal) => {
        const { query, page, pageSize } = request;
        const isNext = page !== undefined && page > service.firstPage;
        await this.effect(isNext ? 'next page' : 'page');
        this.#parts.result.asks(id, request);
        if (service.hasDeadName) {
          await this.clock.sleep(service.deadNameMs(), signal);
          throw new WaybillError('source_unreachable', 'getaddrinfo EAI_AGAIN');
        }
        await this.clock.sleep(atMultiple(service.latency(), world.ms, environment.answersEveryMs), signal);
        if (service.isSilent) await never();
        const asked = `${id === firstSource ? '' : `${id} `}${query.startTime ?? ''}/${query.endTime ?? ''} ${page ?? ''} ${pageSize}`;
        let answer: Page;
        try {
          answer = service.answer(request, Math.floor(this.clock.now() * 1_000), this.clock.monotonic(), this.isFormer);
        } catch (thrown) {
          world.note(`${asked}: ${codeOf(thrown) ?? ''} ${messageOf(thrown)}`);
          throw thrown;
        }
        world.note(`${asked}: ${answer.items.length} of ${answer.total ?? '?'}`);
        this.isRunning = true;
        this.isPaging = query.endTime !== undefined && pageSize > 1;
        await this.effect('answer');
        return answer;
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  /** A configured sink whose definition opens a model receiver. */
  #sinkOf(sink: Config['sinks'][number]): Config['sinks'][number] {
    const receiver = this.#parts.receivers.find(({ settings }) => settings.id === sink.id);
    if (!receiver) throw new Error(`no receiver for ${sink.id}`);
    const open = async (_settings: unknown, _context: unknown, resumePoint: ResumePoint, signal: AbortSignal): Promise<Sink> => {
      if (!this.isOwner) this.fault(`${sink.id} is opened by a process whose lease has ended`);
      await this.effect(`${sink.id} opened`);
      await this.clock.sleep(1, signal);
      return receiver.open(this, () => this.#parts.result.progress(sink.id), resumePoint);
    };
    return { ...sink, definition: { ...sink.definition, open, takesOnce: receiver.settings.isArchive } };
  }
}

const definitionOf = (type: string, resolvable: boolean) =>
  defineSink(type, {
    summary: 'a model',
    config: z.strictObject({}),
    formats: ['ecs', 'raw', 'cef'],
    batch: { records: 100, bytes: 1_000_000, wait: 1_000 },
    resolvable: () => resolvable,
    deadline: 30_000,
    destination: () => 'a model',
    guarantees: [{ delivery: 'at least once', duplicates: '', losses: '' }],
    check: () => Promise.resolve([]),
    open: () => Promise.reject(new Error('opened without a receiver')),
  });

const text = `
dataDir: /nowhere
sources:
  - id: service
    baseUrl: https://service.test/v2/api
    auth: { authUrl: https://login.test, tenantId: tenant, clientId: client, clientSecret: canary, scopeAddress: scope }
    start: 2026-11-20T00:00:00Z
sinks:
  - { id: by-uid, type: uids }
  - { id: by-position, type: position }
  - { id: plain, type: plain }
`;

/** The ms from now to the first multiple of `every` at or after `now + ms`. */
function atMultiple(ms: number, now: number, every: number): number {
  return every === 0 ? ms : Math.ceil((now + ms) / every) * every - now;
}

/** The base configuration of every seed: a small file parsed by the real schema. */
export async function baseConfig(place: Place): Promise<Config> {
  const sinks = [definitionOf('uids', true), definitionOf('position', true), definitionOf('plain', false)];
  return (await loadConfig(place.write('waybill.yaml', text), {}, { sinks })).config;
}

/** The base configuration with the settings that a seed drew. */
export function configOf(base: Config, environment: Environment): Config {
  const { pollMs, closeDelayMs, agesMs, pageSize, historyMs } = environment.daemon;
  const start = { kind: 'instant' as const, at: (environment.beginMs - historyMs) * 1_000 };
  return {
    ...base,
    // The declared types refuse an unknown key.
    sources: base.sources.flatMap((source) =>
      [source.id, ...environment.others.map(({ id }) => id)].map((id): SourceConfig => ({
        ...source,
        id,
        start,
        pollInterval: pollMs,
        closeDelay: closeDelayMs,
        recountAfter: [...agesMs],
        pageSize,
      })),
    ),
    sinks: environment.sinks.map((drawn): SinkConfig => {
      const sink = base.sinks.find(({ definition }) => definition.type === drawn.kind);
      if (!sink) throw new Error(`no model of kind ${drawn.kind} for ${drawn.id}`);
      const filter = drawn.filter === undefined ? {} : { filter: { result: [drawn.filter] } };
      return {
        ...sink,
        ...filter,
        id: drawn.id,
        format: drawn.format,
        ledger: drawn.ledger,
        batch: { maxRecords: drawn.batchRecords, maxBytes: 1_000_000, maxWait: drawn.waitMs },
      };
    }),
  };
}
