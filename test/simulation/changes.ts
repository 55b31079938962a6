/**
 * The configuration of each life of the daemon (life.ts), with the changes that an operator makes while the daemon is down.
 */
import type { ModelDatabase } from '../support/journal/model-database.ts';
import Database from 'better-sqlite3';
import { join } from 'node:path';
import type { Config, SourceConfig } from '../../src/config/load.ts';
import { Chance } from './chance.ts';
import { watch } from './effects.ts';
import { firstSource } from './environment.ts';
import type { AbsenceEnvironment, ChangesEnvironment, Environment } from './environment.ts';

export class Changes {
  /** The database of a shard, which has the rows instead of the file. */
  database: ModelDatabase | undefined;
  readonly #config: Config;
  readonly #settings: ChangesEnvironment | undefined;
  readonly #chance: Chance;
  readonly #absence: AbsenceEnvironment | undefined;
  readonly #absences: Chance;
  readonly #hosts: Chance;
  /** The host of every source changes between lives, with the same service behind it. */
  readonly #isMoving: boolean;
  #isAtOtherHost = false;
  /** The sink that is missing from the configuration at the moment. */
  gone: string | undefined;
  /** The sink that was retired and never returns. */
  retired: string | undefined;
  /**
   * The longest time, in ms, that the current life lasts without the source; undefined: the source
   * is configured.
   */
  absentMs: number | undefined;
  /** The current life has a configuration other than the final one. */
  isOther = false;

  /** `config` is the configuration that the seed drew. It applies again once faults have ended. */
  constructor(config: Config, { seed, changes, absence }: Environment) {
    this.#config = config;
    this.#settings = changes;
    this.#chance = new Chance(seed, 'changes of lives');
    this.#absence = absence;
    this.#absences = new Chance(seed, 'absences of lives');
    this.#hosts = new Chance(seed, 'hosts of lives');
    this.#isMoving = this.#hosts.is(0.2);
  }

  /**
   * The configuration of the next life. `directory` holds its state; `isKnown` and `isSourceKnown`
   * say which sinks that state knows, and whether it knows the source.
   */
  next(directory: string, isKnown: (sink: string) => boolean, isSourceKnown: boolean, isCalm: boolean): Config {
    const { settings, sink } = this.#settings ?? {};
    const config = settings && !isCalm ? this.#changed() : this.#config;
    if (sink && isKnown(sink.id)) this.#change(sink, directory, isCalm);
    this.absentMs = isSourceKnown && !isCalm ? this.#absent() : undefined;
    const isAbsent = this.absentMs !== undefined;
    const sources = this.#isMoving && this.#moves(isCalm) ? config.sources.map(atOtherHost) : config.sources;
    this.isOther = config !== this.#config || (this.gone !== undefined && this.retired === undefined) || isAbsent;
    const { sinks } = config;
    return {
      ...config,
      sources: isAbsent ? sources.filter(({ id }) => id !== firstSource) : sources,
      sinks: this.gone === undefined ? sinks : sinks.filter(({ id }) => id !== this.gone),
    };
  }

  /** @returns whether the next life polls at the other host; once faults have ended, the host stays */
  #moves(isCalm: boolean): boolean {
    if (!isCalm && this.#hosts.is(0.3)) this.#isAtOtherHost = !this.#isAtOtherHost;
    return this.#isAtOtherHost;
  }

  /** Decides how long the source is missing from the configuration; undefined: it is present. */
  #absent(): number | undefined {
    if (!this.#absence || !this.#absences.is(this.absentMs === undefined ? 0.35 : 0.3)) return undefined;
    return 500 + this.#absences.distance(this.#absence.lastsMs);
  }

  /** Removes a sink from the configuration, and some lives later restores or retires it. */
  #change({ id, end }: NonNullable<ChangesEnvironment['sink']>, directory: string, isCalm: boolean): void {
    if (this.retired !== undefined) return;
    if (this.gone === undefined) {
      if (!isCalm && this.#chance.is(0.4)) this.gone = id;
      return;
    }
    if (end === 'back') {
      if (isCalm || this.#chance.is(0.3)) this.gone = undefined;
      return;
    }
    if (isCalm || this.#chance.is(0.3)) this.#retire(id, directory);
  }

  /** Changes the row in the file, because the daemon is down. */
  #retire(id: string, directory: string): void {
    watch(directory, undefined);
    const db = new Database(join(directory, 'waybill.db'));
    db.prepare("UPDATE sinks SET state = 'retired' WHERE id = ?").run(id);
    db.close();
    this.database?.rows.prepare("UPDATE sinks SET state = 'retired' WHERE id = ?").run(id);
    this.retired = id;
  }

  #changed(): Config {
    const chance = this.#chance;
    const sources = this.#config.sources.map((source): SourceConfig => ({
      ...source,
      pollInterval: chance.pick([source.pollInterval, 2_000, 7_000]),
      closeDelay: source.closeDelay + chance.pick([0, 0, 2_000, 7_000]),
      pageSize: chance.pick([source.pageSize, 'auto', 8, 25] as const),
    }));
    return { ...this.#config, sources };
  }
}

function atOtherHost(source: SourceConfig): SourceConfig {
  return { ...source, baseUrl: source.baseUrl.replace('service.test', 'moved.test') };
}
