/**
 * Checks between the settings of one type of sink: required combinations, and settings without
 * effect.
 */
import type { Document, Fault } from './document.ts';
import { memberOf } from './schema-walk.ts';
import { parseInstant } from '../settings/units.ts';
import { unresolved } from '../settings/values.ts';

export function sinkTargetFaults(document: Document): readonly Fault[] {
  return [...elasticsearchFaults(document), ...progressTopicFaults(document), ...archiveFaults(document), ...archiveStartFaults(document)];
}

/**
 * Two `kafka` sinks on one cluster need separate progress topics: entries of one block the other.
 */
function progressTopicFaults({ value }: Document): readonly Fault[] {
  const sinks = memberOf(value, 'sinks');
  const topics = (Array.isArray(sinks) ? sinks : []).map((sink: unknown, index) => {
    const [id, given] = [memberOf(sink, 'id'), memberOf(sink, 'progressTopic')];
    const isUsed = memberOf(sink, 'type') === 'kafka' && memberOf(sink, 'exactlyOnce') !== false;
    const name = given ?? (typeof id === 'string' ? `waybill-progress-${id}` : undefined);
    const brokers = memberOf(sink, 'brokers');
    return { index, sink, given, name: isUsed && typeof name === 'string' && name !== unresolved ? name : undefined, brokers };
  });
  const isOneCluster = (a: unknown, b: unknown): boolean => Array.isArray(a) && Array.isArray(b) && a.some((broker) => b.includes(broker));
  return topics.flatMap(({ index, sink, given, name, brokers }) => {
    if (name === undefined) return [];
    const path = ['sinks', index, 'progressTopic'];
    const isSame = (other: (typeof topics)[number]): boolean =>
      other.index !== index &&
      other.name === name &&
      isOneCluster(other.brokers, brokers) &&
      (other.index < index || other.given === undefined);
    const other = given === undefined ? undefined : topics.find(isSame);
    if (other) return [{ path, message: `is also the progress topic of another sink, sinks[${other.index}]: each needs a separate one` }];
    if (memberOf(sink, 'topic') === name) return [{ path, message: 'is the topic of the messages: the position needs a separate one' }];
    return [];
  });
}

/** An `elasticsearch` sink has one kind of address, one kind of credentials and one destination. */
function elasticsearchFaults({ value }: Document): readonly Fault[] {
  const sinks = memberOf(value, 'sinks');
  return (Array.isArray(sinks) ? sinks : []).flatMap((sink: unknown, index) => {
    if (memberOf(sink, 'type') !== 'elasticsearch') return [];
    const has = (key: string): boolean => memberOf(sink, key) !== undefined;
    const fault = (key: string, message: string): Fault => ({ path: ['sinks', index, key], message });
    return [
      ...(has('nodes') || has('cloudId') ? [] : [fault('nodes', 'is missing: expected the addresses of the cluster, or "cloudId"')]),
      ...(has('nodes') && has('cloudId') ? [fault('cloudId', 'is not used: "nodes" has the addresses')] : []),
      ...(has('apiKey') && has('username') ? [fault('username', 'is not used: "apiKey" authenticates the client')] : []),
      ...(has('username') && !has('password') ? [fault('password', 'is missing: "username" needs it')] : []),
      ...(has('password') && !has('username') ? [fault('username', 'is missing: "password" needs it')] : []),
      ...(has('index') ? ['dataset', 'namespace'].filter(has).map((key) => fault(key, 'has no effect: "index" is set')) : []),
    ];
  });
}

/** `start: archive:ID` must name a sink of type archive. */
function archiveStartFaults({ value }: Document): readonly Fault[] {
  const sinks = memberOf(value, 'sinks');
  const all: readonly unknown[] = Array.isArray(sinks) ? sinks : [];
  const archives = new Set(all.flatMap((sink) => (memberOf(sink, 'type') === 'archive' ? [memberOf(sink, 'id')] : [])));
  return all.flatMap((sink, index) => {
    const start = memberOf(sink, 'start');
    const [, archive] = typeof start === 'string' ? (/^archive:(.*)$/.exec(start) ?? []) : [];
    if (archive === undefined || archives.has(archive)) return [];
    return [{ path: ['sinks', index, 'start'], message: `names "${archive}", which is not a sink of type archive` }];
  });
}

/** An archive proves the windows of its records, so it needs the ledger, and all records of a window or none. */
function archiveFaults({ value }: Document): readonly Fault[] {
  const sinks = memberOf(value, 'sinks');
  return (Array.isArray(sinks) ? sinks : []).flatMap((sink: unknown, index) => {
    if (memberOf(sink, 'type') !== 'archive') return [];
    const start = memberOf(sink, 'start');
    const isOther = typeof start === 'string' && (parseInstant(start) !== undefined || start.startsWith('archive:'));
    const [hasDirectory, hasBucket] = ['directory', 's3'].map((key) => memberOf(sink, key) !== undefined);
    return [
      ...(hasDirectory || hasBucket ? [] : [{ path: ['sinks', index, 'directory'], message: 'is missing: expected a directory, or "s3"' }]),
      ...(hasDirectory && hasBucket ? [{ path: ['sinks', index, 's3'], message: 'has no effect: "directory" is set' }] : []),
      ...(memberOf(sink, 'ledger') === false
        ? [{ path: ['sinks', index, 'ledger'], message: 'must be true: an archive contains the ledger' }]
        : []),
      ...(isOther ? [{ path: ['sinks', index, 'start'], message: 'must be journal or now: an archive contains only whole windows' }] : []),
    ];
  });
}
