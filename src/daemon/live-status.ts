/** The state of the running sources and sinks that is not in the journal, for status, probes and gauges. */
import type { Collector } from '../collect/scheduler.ts';
import type { Config } from '../config/load.ts';
import { requestedBy } from '../config/report-settings.ts';
import type { Delivery } from '../deliver/delivery.ts';
import type { Journal } from '../journal/journal.ts';
import type { LiveFacts } from '../journal/queries/snapshot.ts';
import { secondsLeft } from '../report/backfills.ts';
import type { SourceSnapshot } from '../model/snapshot.ts';
import { Secret } from '../settings/secret.ts';
import type { Delays } from '../telemetry/delays.ts';
import type { ServerClock } from '../source/server-clock.ts';
import type { UnboundedQuery } from '../source/unbounded-query.ts';
import type { ServiceSource } from '../source/client.ts';

/** By setting, where each secret of a source or sink comes from; not those written in the configuration itself. */
export function secretsOf({ sources, sinks }: Pick<Config, 'sources' | 'sinks'>): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const walk = (value: unknown, path: string): void => {
    if (value instanceof Secret) {
      const { reference } = value;
      if ('template' in reference) found[path] = reference.template;
    } else if (typeof value === 'object' && value !== null) for (const [key, item] of Object.entries(value)) walk(item, `${path}.${key}`);
  };
  for (const source of sources) walk(source, `sources.${source.id}`);
  for (const { id, settings } of sinks) walk(settings, `sinks.${id}`);
  return found;
}

interface RunningSource {
  readonly source: ServiceSource;
  readonly queries: Pick<UnboundedQuery, 'forms'>;
  readonly collector: Collector;
  readonly delays: Delays;
  /** The error of the last calibration. */
  readonly calibrator: { readonly trouble: string | undefined };
  readonly clock: Pick<ServerClock, 'dated' | 'now'>;
}

export class LiveStatus {
  readonly collectors = new Map<string, Collector>();
  readonly deliveries = new Map<string, Delivery>();
  readonly sources = new Map<string, ServiceSource>();
  readonly #running = new Map<string, RunningSource>();
  readonly #awaited = new Map<string, string>();
  #config: Config;

  constructor(config: Config) {
    this.#config = config;
  }

  follow(config: Config): void {
    this.#config = config;
  }

  add(id: string, running: RunningSource): void {
    this.#running.set(id, running);
    this.sources.set(id, running.source);
    this.collectors.set(id, running.collector);
  }

  /** The loops of the source have ended. */
  remove(id: string): void {
    for (const map of [this.#running, this.sources, this.collectors, this.#awaited]) map.delete(id);
  }

  /** Sets the condition that delays the start of a source's ledger; undefined removes it. */
  await(id: string, message: string | undefined): void {
    if (message === undefined) this.#awaited.delete(id);
    else this.#awaited.set(id, message);
  }

  live(journal: Journal): LiveFacts {
    const closeDelay = new Map(this.#config.sources.map((source) => [source.id, source.closeDelay / 1000]));
    return {
      source: (id) => this.#source(id),
      backfill: (id, range) => {
        const perSecond = range.state === 'running' ? this.collectors.get(id)?.backfiller.perSecond(range.from) : undefined;
        return perSecond === undefined ? {} : { perSecond, secondsLeft: secondsLeft(range, perSecond) };
      },
      sink: (id) => this.deliveries.get(id)?.view(),
      closeDelaySeconds: (id) => closeDelay.get(id) ?? 0,
      paused: journal.refuses(),
      maxSize: this.#config.journal.maxSize,
      commits: journal.usage().commits,
      configured: this.#config.sources.map((source) => source.id),
      requested: requestedBy(this.#config),
    };
  }

  #source(id: string): Partial<SourceSnapshot> | undefined {
    const running = this.#running.get(id);
    if (!running) return undefined;
    const { collector, clock, delays, calibrator, queries } = running;
    const { suspension, ...known } = collector.view();
    const trouble = this.#awaited.get(id) ?? known.trouble;
    // Without a Date header, the server time comes from records, and stops when none arrive. Ages then use the clock of this machine.
    const timing = !clock.dated() && { serverNow: undefined, clockOffsetSeconds: undefined, undated: { known: clock.now() } };
    const parts = { ...known, ...timing, trouble, delays: delays.measure(), uncalibrated: calibrator.trouble, queryForms: queries.forms };
    return suspension ? { ...parts, state: 'suspended' } : parts;
  }
}
