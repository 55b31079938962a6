/** What only the running daemon knows of its sources and sinks: what status, probes and gauges add to what stands in the file. */
import type { Collector } from '../collect/scheduler.ts';
import type { Config } from '../config/load.ts';
import type { StateSettings } from '../config/state-settings.ts';
import type { Delivery } from '../deliver/delivery.ts';
import type { Journal } from '../journal/journal.ts';
import type { ReportQuery } from '../journal/queries/ledger.ts';
import type { LiveFacts } from '../journal/queries/snapshot.ts';
import { secondsLeft } from '../report/backfills.ts';
import type { ReportedService } from '../report/ledger/html.ts';
import type { SinkSnapshot, SourceSnapshot } from '../model/snapshot.ts';
import { requestedStartOf } from './source/unread-start.ts';
import type { Delays } from '../telemetry/delays.ts';
import type { ServerClock } from '../source/server-clock.ts';
import type { ServiceSource } from '../source/client.ts';
import type { Calibrator } from './source/calibrator.ts';

/** From when on each source is to be collected, for a snapshot. */
export function requestedBy({ sources }: Pick<StateSettings, 'sources'>): NonNullable<LiveFacts['requested']> {
  return (id, profile, now) => {
    const source = sources.find((each) => each.id === id);
    return source && requestedStartOf(source, profile, now);
  };
}

/** What the configuration says of sources and sinks, for the completeness report. */
export function reportSettings({
  sources,
  sinks,
}: Pick<StateSettings, 'sources' | 'sinks'>): Pick<ReportQuery, 'sinkSources' | 'filteredSinks' | 'configured' | 'recountAges'> {
  return {
    sinkSources: new Map(sinks.flatMap((sink) => (sink.sources ? [[sink.id, sink.sources] as const] : []))),
    filteredSinks: new Set(sinks.filter((sink) => sink.filter !== undefined).map(({ id }) => id)),
    configured: new Map(sources.map(({ id, start }) => [id, start.kind === 'instant' ? start.at : undefined] as const)),
    recountAges: new Map(sources.map(({ id, recountAfter }) => [id, recountAfter] as const)),
  };
}

/** What the head of a report says of each source. */
export function serviceWords({ sources }: Pick<StateSettings, 'sources'>): Readonly<Record<string, ReportedService>> {
  return Object.fromEntries(
    sources.map(({ id, baseUrl, auth, closeDelay, recountAfter: recount }) => [
      id,
      {
        host: baseUrl === undefined ? undefined : URL.parse(baseUrl)?.host,
        tenant: auth?.tenantId,
        closeDelaySeconds: closeDelay / 1000,
        recountSeconds: recount.map((ms) => ms / 1000),
      },
    ]),
  );
}

export class LiveStatus {
  readonly collectors = new Map<string, Collector>();
  readonly deliveries = new Map<string, Delivery>();
  readonly delays = new Map<string, Delays>();
  readonly sources = new Map<string, ServiceSource>();
  readonly clocks = new Map<string, Pick<ServerClock, 'dated' | 'now'>>();
  readonly calibrators = new Map<string, Pick<Calibrator, 'trouble'>>();
  readonly #awaited = new Map<string, string>();
  readonly #config: Config;

  constructor(config: Config) {
    this.#config = config;
  }

  /** What a source waits for before its ledger begins; undefined: nothing any more. */
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
      sink: (id): Partial<SinkSnapshot> | undefined => this.deliveries.get(id)?.view(),
      closeDelaySeconds: (id) => closeDelay.get(id) ?? 0,
      paused: journal.refuses(),
      maxSize: this.#config.journal.maxSize,
      commits: journal.usage().commits,
      configured: this.#config.sources.map((source) => source.id),
      requested: requestedBy(this.#config),
    };
  }

  #source(id: string): Partial<SourceSnapshot> | undefined {
    const view = this.collectors.get(id)?.view();
    if (!view) return undefined;
    const { suspension, ...known } = view;
    const trouble = this.#awaited.get(id) ?? known.trouble;
    const clock = this.clocks.get(id);
    // A bound made of records stands still where none come: what is shown has its age by our own clock, which moves.
    const timing = clock?.dated() === false && { serverNow: undefined, clockOffsetSeconds: undefined, undated: { known: clock.now() } };
    const parts = { ...known, ...timing, trouble, delays: this.delays.get(id)?.measure(), uncalibrated: this.calibrators.get(id)?.trouble };
    return suspension ? { ...parts, state: 'suspended' } : parts;
  }
}
