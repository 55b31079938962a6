/** The configuration of each life: what a person changes in it while the daemon is away. */
import Database from 'better-sqlite3';
import { join } from 'node:path';
import type { Config, SourceConfig } from '../../src/config/load.ts';
import { Chance } from './chance.ts';
import { watch } from './effects.ts';
import type { AbsenceEnvironment, ChangesEnvironment, Environment } from './environment.ts';

export class Changes {
  readonly #config: Config;
  readonly #settings: ChangesEnvironment | undefined;
  readonly #chance: Chance;
  readonly #absence: AbsenceEnvironment | undefined;
  readonly #absences: Chance;
  /** The sink that is out of the configuration at this moment. */
  gone: string | undefined;
  /** The one that will not come back. */
  retired: string | undefined;
  /** How long the life under way goes on at most, ms, because the source is out of the configuration; undefined: it is not. */
  absentMs: number | undefined;
  /** The life under way has another configuration than the one in the end. */
  isOther = false;

  /** `config` is what a seed has drawn; it stands again once faults have ended. */
  constructor(config: Config, { seed, changes, absence }: Environment) {
    this.#config = config;
    this.#settings = changes;
    this.#chance = new Chance(seed, 'changes of lives');
    this.#absence = absence;
    this.#absences = new Chance(seed, 'absences of lives');
  }

  /** What the next life is given, whose state lies in `directory`; which sinks that knows, and whether it knows the source. */
  next(directory: string, isKnown: (sink: string) => boolean, isSourceKnown: boolean, isCalm: boolean): Config {
    const { settings, sink } = this.#settings ?? {};
    const config = settings && !isCalm ? this.#changed() : this.#config;
    if (sink && isKnown(sink.id)) this.#change(sink, directory, isCalm);
    this.absentMs = isSourceKnown && !isCalm ? this.#absent() : undefined;
    const isAbsent = this.absentMs !== undefined;
    this.isOther = config !== this.#config || (this.gone !== undefined && this.retired === undefined) || isAbsent;
    const { sinks } = config;
    return {
      ...config,
      sources: isAbsent ? [] : config.sources,
      sinks: this.gone === undefined ? sinks : sinks.filter(({ id }) => id !== this.gone),
    };
  }

  /** The source is taken out for one life, or for a few. */
  #absent(): number | undefined {
    if (!this.#absence || !this.#absences.is(this.absentMs === undefined ? 0.35 : 0.3)) return undefined;
    return 500 + this.#absences.distance(this.#absence.lastsMs);
  }

  /** A sink is taken out, and put back some lives later; or it is retired. */
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

  /** There is no command for it in this release: the row is changed in the file, as the command will. */
  #retire(id: string, directory: string): void {
    watch(directory, undefined);
    const db = new Database(join(directory, 'waybill.db'));
    db.prepare("UPDATE sinks SET state = 'retired' WHERE id = ?").run(id);
    db.close();
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
