/**
 * The loop of a source on the model of a service: the additional parts that `Collector` needs, and
 * its duration.
 */
import { expect } from 'vitest';
import { Collector } from '../../../src/collect/scheduler.ts';
import { accessSource } from '../../../src/collect/source-access.ts';
import type { CollectorParts, CollectSettings } from '../../../src/collect/scheduler.ts';
import type { CollectJournal } from '../../../src/model/journal.ts';
import type { PageRequest } from '../../../src/model/source.ts';
import type { Meters } from '../../../src/model/telemetry.ts';
import { ServerClock } from '../../../src/source/server-clock.ts';
import type { ClockProfile } from '../../../src/source/server-clock.ts';
import { minute, uidOfRecord } from '../records.ts';
import { source as sourceId } from '../journal/opening.ts';
import { ages, Lines, world } from './world.ts';
import type { Options, World } from './world.ts';

const settings: CollectSettings = { id: sourceId, pollInterval: 30_000, closeDelay: 900_000, recountAfter: ages.map((us) => us / 1000) };

export interface Running extends World {
  readonly collector: Collector;
  readonly serverClock: ServerClock;
  /** Runs the loop until server time `until`, or without an end. */
  readonly runUntil: (until: number) => Promise<void>;
  readonly counted: { collected: number; late: number; suspensions: string[] };
  readonly lines: Lines;
}

export function running(
  it: World,
  more: Partial<CollectSettings> = {},
  journal: CollectJournal = it.journal,
  parts: Partial<CollectorParts> = {},
  /** What the server clock had measured before a restart. */
  profile?: ClockProfile,
): Running {
  const own = { ...settings, ...more };
  const counted = { collected: 0, late: 0, suspensions: [] as string[] };
  const lines = new Lines();
  const meters = {
    recordsCollected: (_source: string, count: number) => (counted.collected += count),
    recordsLate: (_source: string, count: number) => (counted.late += count),
    recordDelay: (_source: string, seconds: number) => expect(seconds).toBeGreaterThanOrEqual(0),
    sourceSuspended: (_source: string, reason: string) => counted.suspensions.push(reason),
    windowShrunk: () => undefined,
  } as unknown as Meters;
  const serverClock = new ServerClock({ source: sourceId, closeDelay: own.closeDelay, clock: it.clock, log: lines, profile });
  const { source, paging, caps, clock } = it;
  const random = (): number => 0.5;
  const access = accessSource({
    ...{ sourceId, source, journal, paging, serverClock, clock, random, log: lines, meters, closeDelay: own.closeDelay * 1000 },
    uidOf: uidOfRecord,
    lastFullVisibility: parts.visibility?.lastFullVisibility,
  });
  const collector = new Collector({ settings: own, access, caps, meters, ...parts });
  const runUntil = async (until: number): Promise<void> => {
    const abort = new AbortController();
    const watch = (async () => {
      while (source.now() < until) await clock.sleep(5_000, abort.signal);
      abort.abort(new Error('enough'));
    })();
    await expect(Promise.race([collector.run(abort.signal), watch.then(() => collector.run(abort.signal))])).rejects.toThrow('enough');
    abort.abort(new Error('enough'));
    await watch.catch(() => undefined);
  };
  return { ...it, requester: access.requester, collector, serverClock, runUntil, counted, lines };
}

export async function begun(options: Options & Partial<CollectSettings> = {}): Promise<Running> {
  const it = await world({ after: minute, ...options });
  it.source.delay = 20;
  return running(it, options);
}

export function isLivePoll({ query, pageSize }: PageRequest): boolean {
  return query.startTime !== undefined && query.endTime === undefined && pageSize > 1;
}

/** A query of one second, padded: it looks for one record. */
export function isOfOneRecord({ query: { startTime, endTime } }: PageRequest): boolean {
  return Date.parse(`${endTime ?? ''}Z`) - Date.parse(`${startTime ?? ''}Z`) <= 3_000;
}
