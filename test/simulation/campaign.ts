/** A campaign runs many seeds, sums up their counts, and decides whether it failed. */
import type { Config } from '../../src/config/load.ts';
import { Place } from './effects.ts';
import { baseConfig } from './life.ts';
import type { Environment } from './environment.ts';
import { scene } from './every-effect.ts';
import { play, simulate } from './simulate.ts';
import type { Figures, Outcome, Script } from './simulate.ts';
import { sometimesLeast } from './sometimes.ts';
import type { Sometimes, State } from './sometimes.ts';

/** One unit of a campaign: a seed, or the fixed scene with a script. */
export type Task = { readonly seed: number } | { readonly script: Script };

export interface Result {
  readonly task: Task;
  readonly faults: readonly string[];
  /** The environment that a failed seed drew. */
  readonly environment: Environment | undefined;
  readonly sums: Sums;
}

export interface Sums {
  readonly figures: Figures;
  readonly sometimes: Sometimes['counts'];
  /** Seeds run twice, each time with the same trace. */
  twice: number;
}

export const nothing = (): Sums => ({
  figures: {
    seeds: 0,
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
    records: 0,
    windows: 0,
  },
  sometimes: {},
  twice: 0,
});

export function addTo(sums: Sums, { figures, sometimes, twice }: Sums): void {
  for (const [name, count] of Object.entries(figures) as [keyof Figures, number][]) sums.figures[name] += count;
  for (const [name, count] of Object.entries(sometimes) as [State, number][]) sums.sometimes[name] = (sums.sometimes[name] ?? 0) + count;
  sums.twice += twice;
}

/**
 * The states that the campaign reached too seldom, one line each. Campaigns of fewer than 2,000
 * seeds have no minimum.
 */
export function tooSeldom({ figures, sometimes }: Sums): string[] {
  const share = figures.seeds / 2_000;
  if (share < 1) return [];
  return Object.entries(sometimesLeast).flatMap(([state, least]) => {
    const count = sometimes[state as State] ?? 0;
    return count < least * share ? [`${state}: ${count}, minimum ${Math.ceil(least * share)}`] : [];
  });
}

/** Runs tasks in this process. */
export class Runner {
  readonly #place: Place;
  readonly #base: Config;

  static async make(): Promise<Runner> {
    const place = new Place();
    return new Runner(place, await baseConfig(place));
  }

  private constructor(place: Place, base: Config) {
    this.#place = place;
    this.#base = base;
  }

  async task(task: Task, traced = false): Promise<{ readonly outcome: Outcome; readonly sums: Sums }> {
    return 'seed' in task ? this.#seed(task.seed, traced) : this.#script(task.script, traced);
  }

  /** Runs a seed. Every hundredth seed runs twice, and both traces must be equal. */
  async #seed(seed: number, traced: boolean): Promise<{ readonly outcome: Outcome; readonly sums: Sums }> {
    let outcome = await simulate(seed, this.#base, this.#place, traced);
    let twice = 0;
    if (seed % 100 === 0) {
      const second = await simulate(seed, this.#base, this.#place);
      if (second.hash !== outcome.hash)
        outcome = { ...outcome, faults: [...outcome.faults, `two runs of the seed differ: ${outcome.hash}, ${second.hash}`] };
      else twice = 1;
    }
    return { outcome, sums: { figures: outcome.figures, sometimes: outcome.sometimes, twice } };
  }

  /** Runs the fixed scene, and ends the daemon where the script requests it. */
  async #script(script: Script, traced: boolean): Promise<{ readonly outcome: Outcome; readonly sums: Sums }> {
    const outcome = await play(scene, script, this.#base, this.#place, traced);
    return { outcome, sums: { figures: outcome.figures, sometimes: outcome.sometimes, twice: 0 } };
  }

  leave(): void {
    this.#place.leave();
  }
}
