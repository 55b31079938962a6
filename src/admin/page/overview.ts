/** The data of the status page: `GET /status` with problems first, the newest windows, rates, and the history of one source. Pure. */
import type { PageFacts, ShownWindow, Snapshot } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { WaybillError } from '../../errors/errors.ts';
import { worstFirst } from '../../report/advice.ts';
import { statusJson } from '../../report/status-json.ts';
import type { History } from './history.ts';

export interface Overview {
  /** @param source  default the one with the worst problem. @throws WaybillError `usage` when the source does not exist */
  text(source: string | undefined): string;
}

/** Also the type of the data in the page's script. */
export type OverviewJson = ReturnType<typeof statusWith> & {
  /** The windows and history of one source; null without any source. */
  readonly detail: ReturnType<typeof detailOf> | null;
};

/** Limit for all sources together: the page reads the overview every few seconds, so its size must not grow with the number of sources. */
const maxWindowsShown = 2_400;
const windowsOfOne = 240;
const sinksDrawn = 8;

export function windowsWanted(sources: number): number {
  return Math.max(24, Math.min(windowsOfOne, Math.floor(maxWindowsShown / Math.max(1, sources))));
}

export function overviewOf(given: Snapshot, windows: PageFacts['windows'], history: History, today = { records: 0, late: 0 }): Overview {
  const snapshot = worstFirst(given);
  const { sources, sinks } = snapshot;
  const common = JSON.stringify(statusWith(snapshot, windows, history, today));
  const texts = new Map<string | undefined, string>();
  return {
    text: (id) => {
      const source = id === undefined ? sources[0] : sources.find((each) => each.id === id);
      if (id !== undefined && !source) throw new WaybillError('usage', `there is no source "${id}"`);
      const known = texts.get(source?.id);
      if (known !== undefined) return known;
      const used = sinks.filter(({ state }) => state !== 'retired').slice(0, sinksDrawn);
      // Sorted by name, so that each sink keeps the color of its line.
      const drawn = used.map(({ id: sink }) => sink).sort();
      const detail = source ? detailOf(source.id, windows.get(source.id) ?? [], drawn, history) : null;
      const text = `${common.slice(0, -1)},"detail":${JSON.stringify(detail)}}`;
      texts.set(source?.id, text);
      return text;
    },
  };
}

/** @param today  records of the windows that began since midnight UTC */
function statusWith(snapshot: Snapshot, windows: PageFacts['windows'], history: History, today: PageFacts['today']) {
  const { sources, sinks, ...common } = statusJson(snapshot);
  return {
    ...common,
    today,
    sources: sources.map((source) => ({
      ...source,
      recordsPerSecond: history.sourceRate(source.id) ?? null,
      /** One letter for each window, oldest first. */
      strip: (windows.get(source.id) ?? []).map(letterOf).join(''),
    })),
    sinks: sinks.map((sink) => ({ ...sink, recordsPerSecond: history.sinkRate(sink.id) ?? null })),
  };
}

/** `p` proven, `f` final, `g` gap, `a` accepted, `d` in doubt. */
function letterOf({ state, isInDoubt }: ShownWindow): string {
  return isInDoubt ? 'd' : state.slice(0, 1);
}

/** Times are seconds since 1970: half the size of RFC 3339. */
function detailOf(source: string, windows: readonly ShownWindow[], sinks: readonly string[], history: History) {
  const seconds = (at: Micros): number => Math.round(at / 1e5) / 10;
  const tenths = (value: number | null | undefined): number | null => (typeof value === 'number' ? Math.round(value * 10) / 10 : null);
  return {
    source,
    windows: windows.map((window) => [seconds(window.from), seconds(window.to), letterOf(window), window.records, window.total] as const),
    intervalSeconds: history.interval / 1e6,
    samples: history.samples.map(({ at }) => seconds(at)),
    lag: history.samples.map((sample) => tenths(sample.sources.get(source)?.lagSeconds)),
    sinks: sinks.map((id) => ({ id, lag: history.samples.map((sample) => tenths(sample.sinks.get(id)?.lagSeconds)) })),
  };
}
