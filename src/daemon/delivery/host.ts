/** Runs delivery loops for the main thread: creates each from its plan, with a journal, a log and meters that the main thread serves. */
import type { Delivery } from '../../deliver/delivery.ts';
import { WaybillError } from '../../errors.ts';
import type { ArchiveReplay, Operation, ReplayRange } from '../../model/journal.ts';
import type { Message } from '../../model/sink.ts';
import type { Clock, Random } from '../../model/time.ts';
import { remember } from '../../secrets.ts';
import type { Environment } from '../../settings/reference.ts';
import { revivedSettings } from '../../settings/carried.ts';
import type { SinkDefinition } from '../../sink/define.ts';
import type { Channel } from '../channel.ts';
import { remoteJournal, type FactsReceiver, type JournalFacts, type JournalService } from './journal-access.ts';
import { createLoop } from './loop.ts';
import type { SinkPlan } from './plan.ts';
import { remoteArchives, type ArchiveService } from './remote-archives.ts';
import { RemoteTracer, type SpanService } from './remote-tracer.ts';
import { remoteLog, remoteMeters, type ReportService } from './reports.ts';

interface HostParts {
  readonly definitionOf: (plan: SinkPlan) => SinkDefinition;
  /** Where the settings find environment variables. */
  readonly environment: Environment;
  readonly clock: Clock;
  readonly random: Random;
}

export type HostService = ReturnType<typeof hostService>;
export type LoopService = ReturnType<typeof loopService>;

/** Serves `host`, and `loop/ID` for each created loop. */
export function serveLoops(channel: Channel, parts: HostParts): void {
  channel.serve('host', hostService(channel, parts));
}

function hostService(channel: Channel, { definitionOf, environment, clock, random }: HostParts) {
  /** By sink. A plan owns its secrets: they stay registered as long as it exists. */
  const plans = new Map<string, SinkPlan>();
  return {
    /** Answered while this thread responds. */
    ping: (): void => undefined,
    /** @param settings  the plan, as `carriedSettings` returned it */
    create: (settings: unknown, facts: JournalFacts, isTraced: boolean): void => {
      const plan = revivedSettings(settings, environment) as SinkPlan;
      const { id } = plan.sink;
      plans.set(id, plan);
      for (const { privacy } of plan.normalize.values()) if (privacy.key !== undefined) remember(plan, privacy.key);
      const service = `journal/${id}`;
      const journal = remoteJournal(facts, channel.remote<JournalService>(service), channel.notified<JournalService>(service));
      const reports = channel.notified<ReportService>(`reports/${id}`);
      const tracer = isTraced ? new RemoteTracer(channel.notified<SpanService>(`spans/${id}`), clock) : undefined;
      const loop = createLoop(plan, {
        definition: definitionOf(plan),
        journal,
        clock,
        random,
        archive: remoteArchives(channel.remote<ArchiveService>(`archives/${id}`), environment),
        tracer,
        log: remoteLog(reports, tracer),
        meters: remoteMeters(reports),
        shown: (host, { validTo }) => reports.shown(host, validTo),
      });
      channel.serve(`loop/${id}`, loopService(loop, journal));
    },
  };
}

function loopService(loop: Delivery, journal: FactsReceiver) {
  const stop = new AbortController();
  const abandon = new AbortController();
  return {
    run: () => loop.run(stop.signal, abandon.signal),
    /** @param reason  a message */
    stop: (reason: string) => stop.abort(new WaybillError('aborted', reason)),
    abandon: (reason: string) => abandon.abort(new WaybillError('aborted', reason)),
    wake: () => loop.wake(),
    isOpen: () => loop.isOpen,
    view: () => loop.view(),
    retry: (seqs: readonly number[], operation: Operation) => loop.onDemand.retry(seqs, operation),
    test: (messages: readonly Message[]) => loop.onDemand.test(messages),
    replayArchive: (replay: ArchiveReplay) => loop.onDemand.replayArchive(replay),
    cancelReplay: () => loop.onDemand.cancelReplay(),
    replay: (range: ReplayRange, expected: number, deadLetters: ReadonlySet<number>) => loop.onDemand.replay(range, expected, deadLetters),
    facts: (facts: JournalFacts, hasChanged: boolean) => journal.facts(facts, hasChanged),
  };
}
