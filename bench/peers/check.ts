/**
 * Compares the file that a program wrote with the records of the service, record by record: the
 * original text, and every field that all programs write.
 */
import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { firstLogId, recordOf } from '../record.ts';
import type { LogRecord } from '../record.ts';
import { Tally } from '../tally.ts';
import type { Peer } from './programs.ts';

export interface Check {
  /** Records of the service that the file lacks. */
  readonly lost: number;
  /** Copies after the first. */
  readonly doubled: number;
  /** Copies whose original or a compared field is not that of the service. */
  readonly changed: number;
  /** Fields of the first record in the file. An object is none, only its members are; a list is one. */
  readonly fields: number;
  /** Bytes of the file per record in it. */
  readonly bytes: number;
}

/** The parts of a line of OTLP JSON (opentelemetry-proto, logs.proto) that the check reads. */
interface OtlpLine {
  readonly resourceLogs: readonly { readonly scopeLogs: readonly { readonly logRecords: readonly OtlpRecord[] }[] }[];
}

interface OtlpRecord {
  readonly attributes: readonly { readonly key: string; readonly value: OtlpValue }[];
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly arrayValue?: { readonly values: readonly OtlpValue[] };
}

/** The served log. */
interface Log {
  readonly records: number;
  /** ms since 1970 of the first record. */
  readonly beginMs: number;
  /** Records per second. */
  readonly rate?: number;
  /** The `organization.id` of each source, if there are several: each source has all records. */
  readonly tenants?: readonly string[];
}

/** A document of ECS, or the attributes of OTLP, whose names have dots. */
type Document = Readonly<Record<string, unknown>>;

/**
 * The fields that each program writes with the same value, and what the specification of the service
 * and ECS 9.4 put there. A list of one value counts as the value.
 */
const expectations: Readonly<Record<string, (record: LogRecord) => string>> = {
  '@timestamp': ({ logTimestamp }) => `${logTimestamp}Z`,
  'ecs.version': () => '9.4.0',
  'event.kind': () => 'event',
  'event.module': () => 'dpas',
  'event.dataset': () => 'dpas.audit',
  'event.id': ({ logId }) => String(logId),
  'event.outcome': ({ result }) => (result === 'AccessDenied' ? 'failure' : 'success'),
  'event.reason': ({ resultReason }) => resultReason,
  'user.id': ({ userId }) => userId,
  'user.email': ({ userEmailAddress }) => userEmailAddress,
  'file.name': ({ payloadName }) => payloadName,
  'source.ip': ({ userNetwork }) => userNetwork.ipAddress,
  'source.address': ({ userNetwork }) => userNetwork.ipAddress,
  'host.id': ({ userNetwork }) => userNetwork.uuid,
  'host.hostname': ({ userNetwork }) => userNetwork.machineName,
  'host.domain': ({ userNetwork }) => userNetwork.domainName,
  'host.mac': ({ userNetwork }) => userNetwork.mac,
  'host.type': ({ userNetwork }) => userNetwork.deviceType,
  'network.name': ({ userNetwork }) => userNetwork.networkName,
  'dpas.action_attempted': ({ actionAttempted }) => actionAttempted,
  'dpas.user.last_name_first_name': ({ userLastNameFirstName }) => userLastNameFirstName,
  'dpas.payload.id': ({ payloadId }) => payloadId,
  'dpas.owner.id': ({ currentPayloadOwnerId }) => currentPayloadOwnerId,
  'dpas.owner.email': ({ currentOwnerEmailAddress }) => currentOwnerEmailAddress,
  'dpas.network.id': ({ userNetwork }) => userNetwork.networkId,
  'dpas.network.service_provider': ({ userNetwork }) => userNetwork.serviceProvider,
  'dpas.network.address': ({ userNetwork }) => userNetwork.address,
  'dpas.network.lat_long': ({ userNetwork }) => userNetwork.latLong,
};
const compared = Object.entries(expectations).map(([name, of]) => ({ path: name.split('.'), of }));
export const comparedFields = compared.length;

export async function check(file: string, output: Peer['output'], { records, beginMs, rate, tenants }: Log): Promise<Check> {
  const tallies = new Map((tenants ?? ['']).map((tenant) => [tenant, new Tally(records)]));
  let changed = 0;
  let copies = 0;
  let fields = 0;
  for await (const line of createInterface({ input: createReadStream(file, { highWaterMark: 1_048_576 }) })) {
    for (const document of documentsOf(line, output)) {
      copies += 1;
      fields ||= leavesOf(document);
      const original = valueAt(document, ['event', 'original']);
      const logId = Number(/"logId":(\d+)/.exec(original)?.[1]);
      const tally = tallies.get(tenants === undefined ? '' : valueAt(document, ['organization', 'id']));
      if (!tally?.add(logId) || !isRight(document, original, recordOf(logId - firstLogId, beginMs, rate))) changed += 1;
    }
  }
  const sum = (of: (tally: Tally) => number): number => [...tallies.values()].reduce((total, tally) => total + of(tally), 0);
  return {
    lost: sum((tally) => tally.lost()),
    doubled: sum((tally) => tally.doubled),
    changed,
    fields,
    bytes: statSync(file).size / copies,
  };
}

/** @throws Error with the numbers, if there is any */
export function requireAll(what: string, { lost, doubled, changed }: Pick<Check, 'lost' | 'doubled' | 'changed'>): void {
  if (lost + doubled + changed > 0) throw new Error(`${what}: ${lost} records lost, ${doubled} doubled, ${changed} changed`);
}

function isRight(document: Document, original: string, expected: LogRecord): boolean {
  const isOriginal = original === JSON.stringify(expected) || isDeepStrictEqual(JSON.parse(original), expected);
  return isOriginal && compared.every(({ path, of }) => valueAt(document, path) === of(expected));
}

function documentsOf(line: string, output: Peer['output']): Document[] {
  if (output === 'ECS') return [JSON.parse(line) as Document];
  const { resourceLogs } = JSON.parse(line) as OtlpLine;
  return resourceLogs
    .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map(({ attributes }) => Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)])));
}

/** The text of a field; a list of one value counts as the value. */
function valueAt(document: Document, path: readonly string[]): string {
  const value = path.reduce((part: unknown, name) => (part as Document | undefined)?.[name], document) ?? document[path.join('.')];
  return String(value);
}

/** The number of fields that are not objects. */
function leavesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 1;
  return Object.values(value).reduce((sum: number, member) => sum + leavesOf(member), 0);
}

function plainValue({ stringValue, arrayValue }: OtlpValue): unknown {
  return stringValue ?? arrayValue?.values.map(plainValue);
}
