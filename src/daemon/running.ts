/**
 * The running sources and sinks. A change of the configuration ends the affected loops, then starts
 * the loops of the new configuration; every other loop continues.
 */
import { hostname } from 'node:os';
import type { Config, SinkConfig, SourceConfig } from '../config/load.ts';
import { settingsText } from '../config/state-settings.ts';
import type { Journal } from '../journal/journal.ts';
import { snapshotOf } from '../journal/queries/snapshot.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { ArchiveSettings } from '../sink/archive/settings.ts';
import { Budgets } from '../source/limits.ts';
import { Certificates } from './certificates.ts';
import { archiveSettingsOf } from './delivery/loop.ts';
import { LiveStatus, secretsOf } from './live-status.ts';
import type { DaemonOptions } from './options.ts';
import type { Changes } from '../config/changes.ts';
import { operationOf, perform } from './operations/perform.ts';
import { createDelivery, type ConfiguredSink, type CreatedSink } from './open-delivery.ts';
import { sharingTokens } from './open-source.ts';
import { runSource } from './source/run.ts';
import type { Task, Tasks } from './tasks.ts';
import { whenWritable } from './when-writable.ts';

/** ms between the starts of two sources. */
const maxSpread = 100;

interface RunningParts {
  readonly journal: Journal;
  readonly meters: Meters;
  readonly tasks: Tasks;
}

export class Running {
  readonly #options: DaemonOptions;
  readonly #parts: RunningParts;
  readonly #budgets: Budgets;
  readonly #sources = new Map<string, Task>();
  readonly #deliveries = new Map<string, Task>();
  readonly #sinks = new Map<string, ConfiguredSink>();
  readonly liveStatus: LiveStatus;
  readonly certificates: Certificates;
  #config: Config;

  constructor(options: DaemonOptions, parts: RunningParts) {
    this.#options = { openSource: sharingTokens(), ...options };
    this.#parts = parts;
    this.#config = options.config;
    this.#budgets = new Budgets(options.clock);
    this.liveStatus = new LiveStatus(options.config);
    this.certificates = new Certificates(options.config, this.liveStatus.sources);
  }

  get config(): Config {
    return this.#config;
  }

  get journals(): readonly Journal[] {
    return [this.#parts.journal];
  }

  sink(id: string): ConfiguredSink | undefined {
    return this.#sinks.get(id);
  }

  snapshot(): Snapshot {
    const { version, clock } = this.#options;
    const { journal } = this.#parts;
    return {
      ...snapshotOf(journal.db, version, clock.now() * 1000, this.liveStatus.live(journal)),
      host: hostname(),
      secrets: secretsOf(this.#config),
      certificates: this.certificates.ends(),
    };
  }

  /** Performs an operation on the state, and logs it. */
  async operate(request: unknown): Promise<unknown> {
    const { clock, log } = this.#options;
    const collecting = this.liveStatus.collectors;
    const result = await perform(
      request,
      this.#parts.journal,
      clock.now() * 1000,
      (source) => collecting.get(source),
      (id) => this.sink(id),
    );
    log.write('operation.performed', { ...operationOf(request) });
    if (result.moved) log.write('source.moved', { source: operationOf(request).source, ...result.moved });
    return result;
  }

  /** Writes the configuration to the state: sources and sinks that it does not name become unconfigured. */
  register(): void {
    const { journal } = this.#parts;
    markUnconfigured(journal, this.#options.log, this.#config);
    journal.storeSettings(settingsText(this.#config));
  }

  /** Starts every source and sink. Registers sinks before the first record can arrive: `start: now` means this moment. */
  start(): void {
    const { sources, sinks } = this.#config;
    for (const delivery of archivesFirst(sinks).map((sink) => this.#createSink(sink))) this.#startSink(delivery);
    this.#startSources(sources);
  }

  /**
   * Ends the changed and removed loops of a new configuration, and starts the changed and added loops. Sources and added sinks do not wait
   * for a sink that hangs until the shutdown timeout.
   */
  async change(config: Config, { sources, sinks }: Changes, signal: AbortSignal): Promise<void> {
    const { shutdownTimeout } = this.#config;
    const ended = new Map([...sinks.changed, ...sinks.removed].map((id) => [id, this.#endSink(id, shutdownTimeout)]));
    const placeOf = ({ type, definition, settings }: SinkConfig): string => `${type} ${definition.destination(settings)}`;
    const left = new Map(this.#config.sinks.map((sink) => [placeOf(sink), ended.get(sink.id)]));
    // A sink with a new id at the place of an ended one waits for it: both would write the same file.
    const endedBefore = (sink: SinkConfig): Promise<void> | undefined => ended.get(sink.id) ?? left.get(placeOf(sink));
    await Promise.all([...sources.changed, ...sources.removed].map((id) => this.#endSource(id, shutdownTimeout)));
    // A daemon that is stopping starts nothing.
    signal.throwIfAborted();
    this.#config = config;
    this.liveStatus.follow(config);
    this.certificates.follow(config);
    const isIn = (ids: readonly string[]) => (each: { readonly id: string }) => ids.includes(each.id);
    const started = archivesFirst(config.sinks).filter(isIn([...sinks.added, ...sinks.changed]));
    for (const sink of started.filter((each) => !endedBefore(each))) await this.#startChangedSink(sink, signal);
    this.#startSources(config.sources.filter(isIn([...sources.added, ...sources.changed])));
    await Promise.all(
      started.map(async (sink) => {
        const before = endedBefore(sink);
        if (!before) return;
        await before;
        await this.#startChangedSink(sink, signal);
      }),
    );
    await Promise.all(ended.values());
    for (const id of sinks.removed) {
      this.#sinks.delete(id);
      this.liveStatus.deliveries.delete(id);
    }
    await whenWritable(() => this.register(), this.#options, signal);
  }

  async #endSource(id: string, shutdownTimeout: number): Promise<void> {
    await this.#sources.get(id)?.end(shutdownTimeout);
    this.#sources.delete(id);
    this.#budgets.release(id);
    this.liveStatus.remove(id);
  }

  async #endSink(id: string, shutdownTimeout: number): Promise<void> {
    await this.#deliveries.get(id)?.end(shutdownTimeout);
    this.#deliveries.delete(id);
    this.certificates.removeSink(id);
  }

  #startSources(sources: readonly SourceConfig[]): void {
    const options = { ...this.#options, config: this.#config };
    const { journal, meters, tasks } = this.#parts;
    for (const [index, source] of sources.entries()) {
      // Spreads the starts over one poll interval: otherwise sources with the same interval would always poll together.
      const delayMs = index * Math.min(maxSpread, source.pollInterval / sources.length);
      const task = tasks.start(`collect ${source.id}`, async (stop) => {
        await options.clock.sleep(delayMs, stop);
        await runSource({ settings: source, journal, options, meters, budgets: this.#budgets, liveStatus: this.liveStatus }, stop);
      });
      this.#sources.set(source.id, task);
    }
  }

  #createSink(sink: SinkConfig): CreatedSink {
    const { journal, meters } = this.#parts;
    const archive = (id: string): ArchiveSettings | undefined => archiveSettingsOf(this.#config, id);
    return createDelivery(sink, journal, { ...this.#options, config: this.#config }, meters, this.certificates, archive);
  }

  async #startChangedSink(sink: SinkConfig, signal: AbortSignal): Promise<void> {
    const delivery = await whenWritable(() => this.#createSink(sink), this.#options, signal);
    signal.throwIfAborted();
    this.#startSink(delivery);
  }

  #startSink(sink: CreatedSink): void {
    const { id, loop } = sink;
    this.#sinks.set(id, sink);
    this.liveStatus.deliveries.set(id, loop);
    this.#deliveries.set(
      id,
      this.#parts.tasks.start(`deliver ${id}`, (stop, abandon) => loop.run(stop, abandon)),
    );
  }
}

/** A sink that starts with the records of an archive needs the position of that archive. */
function archivesFirst(sinks: readonly SinkConfig[]): readonly SinkConfig[] {
  const isLater = ({ type }: SinkConfig): number => (type === 'archive' ? 0 : 1);
  return sinks.toSorted((a, b) => isLater(a) - isLater(b));
}

function markUnconfigured(journal: Journal, log: Log, config: Config): void {
  const sources = journal.markSourcesUnconfigured(new Set(config.sources.map(({ id }) => id)));
  for (const id of sources) log.write('source.unconfigured', { source: id });
  const sinks = journal.sinkPositions.markUnconfigured(new Set(config.sinks.map(({ id }) => id)));
  for (const { id } of sinks) log.write('sink.unconfigured', { sink: id });
}
