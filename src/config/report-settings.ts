/** What reports show of the settings. */
import { wholeSecond } from '../collect/windows.ts';
import type { RequestedStart } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import type { SourceConfig } from './load.ts';
import type { StateSettings } from './state-settings.ts';

/** A start that is a duration depends on the local clock, the ledger's on the service's. A larger difference suspends the source. */
const maxClockDifference: Micros = 3_600_000_000;

/** Undefined for `now`, and for `earliest` until the service gave its earliest record. @param now  µs */
export function requestedStartOf(
  { start }: Pick<SourceConfig, 'start'>,
  { earliest }: { readonly earliest?: Micros },
  now: Micros,
): RequestedStart | undefined {
  switch (start.kind) {
    case 'instant':
      return { from: wholeSecond(start.at), apart: 0 };
    case 'ago':
      return { from: wholeSecond(now - start.ms * 1000), apart: maxClockDifference };
    case 'earliest':
      return earliest === undefined ? undefined : { from: earliest, apart: 0 };
    case 'now':
      return undefined;
  }
}

/** The requested start of each source, for a snapshot. */
export function requestedBy({ sources }: Pick<StateSettings, 'sources'>) {
  return (id: string, profile: { readonly earliest?: Micros }, now: Micros): RequestedStart | undefined => {
    const source = sources.find((each) => each.id === id);
    return source && requestedStartOf(source, profile, now);
  };
}

/** The settings of sources and sinks that the completeness report uses. */
export function reportSettings({ sources, sinks }: Pick<StateSettings, 'sources' | 'sinks'>) {
  return {
    sinkSources: new Map(sinks.flatMap((sink) => (sink.sources ? [[sink.id, sink.sources] as const] : []))),
    filteredSinks: new Set(sinks.filter((sink) => sink.filter !== undefined).map(({ id }) => id)),
    configured: new Map(sources.map(({ id, start }) => [id, start.kind === 'instant' ? start.at : undefined] as const)),
    recountAges: new Map(sources.map(({ id, recountAfter }) => [id, recountAfter] as const)),
  };
}

/** The facts of each source in the head of a report. */
export function serviceWords({ sources }: Pick<StateSettings, 'sources'>) {
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
