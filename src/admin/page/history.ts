/**
 * The data of the charts on the status page: a bounded number of samples for each source and sink. A full history merges pairs of samples,
 * which doubles their interval; at the longest interval it drops the oldest sample.
 */
import type { Micros } from '../../model/time.ts';

export interface Sample {
  readonly at: Micros;
  /** By source: the largest distance of the frontier in the interval, in seconds; null before the ledger starts. */
  readonly sources: ReadonlyMap<string, { readonly lagSeconds: number | null; readonly collected: number }>;
  /** By sink: the largest age of the first unacknowledged record in the interval, in seconds since its receipt. */
  readonly sinks: ReadonlyMap<string, { readonly lagSeconds: number; readonly acknowledged: number }>;
}

interface HistoryBounds {
  readonly maxSamples: number;
  /** µs between two samples: at the start, and at most. */
  readonly minInterval: Micros;
  readonly maxInterval: Micros;
}

/** Covers 12 minutes at the start, and at most 6 h 24 min. */
const defaultBounds: HistoryBounds = { maxSamples: 360, minInterval: 2_000_000, maxInterval: 64_000_000 };
/** Rates are averages over a minute. */
const rateMicros = 60_000_000;

export class History {
  readonly #bounds: HistoryBounds;
  #samples: (Sample & { readonly since: Micros })[] = [];
  /** Every sample of the last minute. */
  #lastMinute: Sample[] = [];
  #interval: Micros;

  constructor(bounds = defaultBounds) {
    this.#bounds = bounds;
    this.#interval = bounds.minInterval;
  }

  get samples(): readonly Sample[] {
    return this.#samples;
  }

  /** µs between two samples. A longer distance means that samples are missing. */
  get interval(): Micros {
    return this.#interval;
  }

  add(sample: Sample): void {
    const { maxSamples, maxInterval } = this.#bounds;
    this.#lastMinute = [...this.#lastMinute.filter(({ at }) => at <= sample.at && sample.at - at <= rateMicros), sample];
    const last = this.#samples.at(-1);
    // The wall clock was set back: the samples lie in the future.
    if (last && sample.at < last.at) this.#samples = [];
    else if (last && sample.at < last.since + this.#interval) {
      this.#samples[this.#samples.length - 1] = { ...merged(last, sample), since: last.since };
      return;
    }
    this.#samples.push({ ...sample, since: sample.at });
    if (this.#samples.length <= maxSamples) return;
    if (this.#interval >= maxInterval) this.#samples.shift();
    else {
      this.#interval *= 2;
      this.#samples = this.#samples.flatMap((first, i, all) => {
        const second = all[i + 1];
        return i % 2 === 1 ? [] : [second ? { ...merged(first, second), since: first.since } : first];
      });
    }
  }

  /** Records collected a second; undefined before there are two samples. */
  sourceRate(id: string): number | undefined {
    return this.#rate((sample) => sample.sources.get(id)?.collected);
  }

  /** Entries acknowledged a second; undefined before there are two samples. */
  sinkRate(id: string): number | undefined {
    return this.#rate((sample) => sample.sinks.get(id)?.acknowledged);
  }

  #rate(of: (sample: Sample) => number | undefined): number | undefined {
    const known = this.#lastMinute.flatMap((sample) => {
      const count = of(sample);
      return count === undefined ? [] : [{ at: sample.at, count }];
    });
    const [first, last] = [known[0], known.at(-1)];
    if (!first || !last || first.at === last.at) return undefined;
    // A replay or an adoption sets a position back.
    return Math.max(0, ((last.count - first.count) * 1e6) / (last.at - first.at));
  }
}

function merged(first: Sample, second: Sample): Sample {
  const sources = [...second.sources].map(([id, { lagSeconds, collected }]) => {
    const before = first.sources.get(id)?.lagSeconds ?? null;
    return [
      id,
      { lagSeconds: before === null || lagSeconds === null ? (lagSeconds ?? before) : Math.max(before, lagSeconds), collected },
    ] as const;
  });
  const sinks = [...second.sinks].map(([id, { lagSeconds, acknowledged }]) => {
    return [id, { lagSeconds: Math.max(first.sinks.get(id)?.lagSeconds ?? 0, lagSeconds), acknowledged }] as const;
  });
  return { at: second.at, sources: new Map(sources), sinks: new Map(sinks) };
}
