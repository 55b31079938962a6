/** Checks that involve several settings. They read the configuration as written, so that one load reports these and all other problems. */
import { type Document, type Fault, type Path, referenceAt } from './document.ts';
import { nearestOrAll } from '../settings/nearest.ts';
import { memberOf } from './schema-walk.ts';
import { sinkPathFaults } from './sink-paths.ts';
import { formatOf, formats, isFormat } from '../encode/index.ts';
import { membersOf } from '../record/json-object.ts';
import type { SinkDefinition, WrittenSink } from '../sink/define.ts';
import { shortNamePattern, unresolved } from '../settings/values.ts';

/** @param read  every file from which the configuration is read */
export function crossFaults(document: Document, read: readonly string[], types: readonly SinkDefinition[]): readonly Fault[] {
  const { value } = document;
  const sources = itemsOf(memberOf(value, 'sources'));
  const sinks = itemsOf(memberOf(value, 'sinks'));
  const written = sinks.map((sink, index): WrittenSink => ({ index, settings: membersOf(sink) }));
  return [
    ...repeated(sources, 'sources', 'source'),
    ...repeated(sinks, 'sinks', 'sink'),
    ...sinkPathFaults(written, types, memberOf(value, 'dataDir') ?? './state', read),
    ...types.flatMap((type) => ownFaults(type, written)),
    ...(memberOf(value, 'fleet') === undefined ? [] : written.flatMap((sink) => fleetFaults(sink, types))),
    ...sinks.flatMap((sink, index) => ledgerFaults(sink, index, types)),
    ...sinks.flatMap((sink, index) => unknownSources(document, sink, index, sources)),
    ...sources.flatMap((source, index) => [...grantFaults(source, ['sources', index, 'auth']), ...groupFaults(sources, index)]),
    ...sources.flatMap((source, index) => [
      ...pairFaults(memberOf(source, 'tls'), ['sources', index, 'tls']),
      ...pairFaults(memberOf(memberOf(source, 'auth'), 'tls'), ['sources', index, 'auth', 'tls']),
    ]),
    ...sinks.flatMap((sink, index) => pairFaults(memberOf(sink, 'tls'), ['sinks', index, 'tls'])),
    ...repeatedAddresses(itemsOf(memberOf(memberOf(value, 'admin'), 'listen'))),
  ];
}

function ownFaults(type: SinkDefinition, sinks: readonly WrittenSink[]): readonly Fault[] {
  const own = sinks.filter(({ settings }) => settings['type'] === type.type);
  const faults = type.faults?.(own, sinks) ?? [];
  return faults.map(({ sink: { index }, setting, message }) => ({ path: ['sinks', index, setting], message }));
}

function fleetFaults({ index, settings }: WrittenSink, types: readonly SinkDefinition[]): readonly Fault[] {
  const message = types.find(({ type }) => type === settings['type'])?.refusedInFleet?.(settings);
  return message === undefined ? [] : [{ path: ['sinks', index, 'type'], message }];
}

/** Line formats have keys for the fields of a record, and none for a ledger entry. */
function ledgerFaults(sink: unknown, index: number, types: readonly SinkDefinition[]): readonly Fault[] {
  const type = types.find((each) => each.type === memberOf(sink, 'type'));
  const format = memberOf(sink, 'format') ?? type?.formats[0];
  if (memberOf(sink, 'ledger') !== true || typeof format !== 'string' || !isFormat(format) || formatOf(format).shape === 'document')
    return [];
  const possible = (type?.formats ?? formats).filter((name) => formatOf(name).shape === 'document');
  const message = `true is not possible with the format ${format}, which holds records only: set "format" to one of ${possible.join(', ')}`;
  return [{ path: ['sinks', index, 'ledger'], message }];
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function repeated(items: readonly unknown[], list: string, noun: string): readonly Fault[] {
  const texts = items.map((item) => {
    const given = memberOf(item, 'id');
    return typeof given === 'string' && given !== unresolved ? given : undefined;
  });
  return texts.flatMap((text, index) => {
    const first = texts.indexOf(text);
    if (text === undefined || first === index) return [];
    return [{ path: [list, index, 'id'], message: `is also the id of another ${noun}, ${list}[${first}]` }];
  });
}

/** A port above 0 can be listened on once; port 0 is another port each time. */
function repeatedAddresses(addresses: readonly unknown[]): readonly Fault[] {
  return addresses.flatMap((address, index) => {
    const isRepeated = typeof address === 'string' && address !== unresolved && addresses.indexOf(address) < index;
    if (!isRepeated || /:0+$/.test(address)) return [];
    return [{ path: ['admin', 'listen', index], message: `is also admin.listen[${addresses.indexOf(address)}]` }];
  });
}

function unknownSources(document: Document, sink: unknown, index: number, sources: readonly unknown[]): readonly Fault[] {
  const ids = sources.map((source) => memberOf(source, 'id')).map((id) => (typeof id === 'string' ? id : undefined));
  const shown = (id: string | undefined, source: number): id is string =>
    id !== undefined && shortNamePattern.test(id) && referenceAt(document, ['sources', source, 'id']) === undefined;
  const shownIds = ids.filter(shown);
  return itemsOf(memberOf(sink, 'sources')).flatMap((id, at) => {
    if (typeof id !== 'string' || id === unresolved || ids.includes(id)) return [];
    const path = ['sinks', index, 'sources', at];
    const reference = referenceAt(document, path);
    if (reference !== undefined) return [{ path, message: `the value of ${reference} is not a source` }];
    const known = shownIds.length === 0 ? '' : `; ${nearestOrAll(id, shownIds)}`;
    return [{ path, message: `${JSON.stringify(id)} is not a source${known}` }];
  });
}

function grantFaults(source: unknown, path: Path): readonly Fault[] {
  const auth = memberOf(source, 'auth');
  if (typeof auth !== 'object' || auth === null || Array.isArray(auth)) return [];
  const grantType = memberOf(auth, 'grantType') ?? 'client_credentials';
  const needs = grantType === 'password' ? ['username', 'password'] : grantType === 'client_credentials' ? ['clientSecret'] : [];
  const useless = grantType === 'client_credentials' ? ['username', 'password'] : [];
  const [authUrl, tenantId] = [memberOf(auth, 'authUrl'), memberOf(auth, 'tenantId')];
  const hasTenant = typeof authUrl === 'string' && typeof tenantId === 'string' && authUrl.replace(/\/+$/, '').endsWith(`/${tenantId}`);
  return [
    ...(hasTenant ? [{ path: [...path, 'authUrl'], message: 'must end before the tenant id: Waybill adds tenantId' }] : []),
    ...needs
      .filter((key) => memberOf(auth, key) === undefined)
      .map((key) => ({ path: [...path, key], message: `is missing: grantType ${grantType as string} needs it` })),
    ...useless
      .filter((key) => memberOf(auth, key) !== undefined)
      .map((key) => ({ path: [...path, key], message: 'is not used: it belongs to grantType password' })),
  ];
}

/** Sources of one group share one rate limit, so they must agree on it. */
function groupFaults(sources: readonly unknown[], index: number): readonly Fault[] {
  const budgets = sources.map((source) => memberOf(source, 'requests'));
  const group = memberOf(budgets[index], 'group');
  const first = budgets.findIndex((budget) => memberOf(budget, 'group') === group);
  const [shared, own] = [first, index].map((at) => memberOf(budgets[at], 'perSecond') ?? 10);
  if (typeof group !== 'string' || typeof shared !== 'number' || typeof own !== 'number' || shared === own) return [];
  const message = `${own} differs from ${shared} in sources[${first}] of the same group "${group}"`;
  return [{ path: ['sources', index, 'requests', 'perSecond'], message }];
}

/** A certificate needs its key, and a key its certificate. */
function pairFaults(tls: unknown, path: Path): readonly Fault[] {
  const missing = (key: string, other: string) => memberOf(tls, key) === undefined && memberOf(tls, other) !== undefined;
  return [
    ...(missing('key', 'cert') ? [{ path: [...path, 'key'], message: 'is missing: "cert" is set and requires it' }] : []),
    ...(missing('cert', 'key') ? [{ path: [...path, 'cert'], message: 'is missing: "key" is set and requires it' }] : []),
  ];
}
