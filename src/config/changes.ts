/** Compares two configurations for running loops. New content of a secret's file is no change: a loop reads it again by itself. */
import type { Config, SinkConfig } from './load.ts';
import { isSame } from '../settings/same.ts';

/** Ids, in the order of the configuration. */
interface ListChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

export interface Changes {
  readonly sources: ListChanges;
  readonly sinks: ListChanges;
  /** Changed settings of the daemon that take effect without a restart. */
  readonly settings: readonly string[];
  /** Changed settings of the daemon that take effect only at the next start. */
  readonly restart: readonly string[];
}

type Read = (config: Config) => unknown;

const liveSettings: Readonly<Record<string, Read>> = {
  tls: ({ tls }) => tls,
  proxy: ({ proxy }) => proxy,
  privacy: ({ privacy }) => privacy,
  mapping: ({ mapping }) => mapping,
  shutdownTimeout: ({ shutdownTimeout }) => shutdownTimeout,
  'admin.token': ({ admin }) => admin.token,
  'admin.readToken': ({ admin }) => admin.readToken,
  'log.level': ({ log }) => log.level,
  'log.levels': ({ log }) => log.levels,
};

const restartSettings: Readonly<Record<string, Read>> = {
  dataDir: ({ dataDir }) => dataDir,
  'journal.maxSize': ({ journal }) => journal.maxSize,
  'journal.retention': ({ journal }) => journal.retention,
  fleet: ({ fleet }) => fleet,
  'admin.listen': ({ admin }) => admin.listen,
  'admin.tls': ({ admin }) => admin.tls,
  // The server decides at its start which tokens it accepts, and reads their values for each request.
  'admin.token': ({ admin }) => admin.token !== undefined,
  'admin.readToken': ({ admin }) => admin.readToken !== undefined,
  telemetry: ({ telemetry }) => telemetry,
  'log.format': ({ log }) => log.format,
};

export function changesBetween(before: Config, after: Config): Changes {
  const changed = (settings: Readonly<Record<string, Read>>): string[] =>
    Object.entries(settings).flatMap(([name, read]) => (isSame(read(before), read(after)) ? [] : [name]));
  return {
    sources: listChanges(
      before.sources.map((source) => [source.id, { source, ...sharedBySources(before) }]),
      after.sources.map((source) => [source.id, { source, ...sharedBySources(after) }]),
    ),
    sinks: listChanges(
      before.sinks.map((sink) => [sink.id, sinkSettings(sink, before)]),
      after.sinks.map((sink) => [sink.id, sinkSettings(sink, after)]),
    ),
    settings: changed(liveSettings),
    restart: changed(restartSettings),
  };
}

export function isEmpty({ sources, sinks, settings }: Changes): boolean {
  return (
    [sources, sinks].every((list) => [list.added, list.changed, list.removed].every((ids) => ids.length === 0)) && settings.length === 0
  );
}

type Entries = readonly (readonly [id: string, settings: unknown])[];

function listChanges(before: Entries, after: Entries): ListChanges {
  const [old, present] = [new Map(before), new Map(after)];
  return {
    added: after.map(([id]) => id).filter((id) => !old.has(id)),
    changed: after.filter(([id, settings]) => old.has(id) && !isSame(old.get(id), settings)).map(([id]) => id),
    removed: before.map(([id]) => id).filter((id) => !present.has(id)),
  };
}

/** `privacy.key`: the profile of a source records if its key differs. */
function sharedBySources({ tls, privacy }: Config): object {
  return { tls, generalKey: privacy.key };
}

/** The settings of a sink, of its sources as far as they appear in its messages, and of records of removed sources. */
function sinkSettings({ definition, ...sink }: SinkConfig, { sources, tls, proxy, privacy, mapping }: Config): object {
  const own = sources
    .filter(({ id }) => sink.sources?.includes(id) ?? true)
    .map(({ id, auth, baseUrl, observer, privacy: rules }) => ({ id, tenantId: auth.tenantId, baseUrl, observer, privacy: rules }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return { type: definition.type, sink, sources: own, tls, proxy, privacy, mapping };
}
