/**
 * The ECS document of a record, built a second time: an object from JSON.parse, written by
 * JSON.stringify. It shares with the program the outcomes and the functions that values.test.ts
 * tests, but not the byte scanner, the table of fields, the columns, or the writer.
 */
import { createHash } from 'node:crypto';
import { canonicalIp } from '../../../src/normalize/ip.ts';
import { messageText } from '../../../src/normalize/message.ts';
import type { NormalizeSettings } from '../../../src/normalize/normalizer.ts';
import { outcomesByCode } from '../../../src/normalize/outcomes.ts';
import { unknownOutcome } from '../../../src/normalize/unknown.ts';
import { emailParts, fileExtension, fullName, macAddress, position } from '../../../src/normalize/values.ts';
import { isAbsent, isRawNumber, objectOf, parseRecord, textOf } from '../../../src/record/json.ts';
import { microsToIso, parseTimestamp } from '../../../src/record/timestamp.ts';

const main = [
  ...['logId', 'userId', 'payloadId', 'payloadName', 'currentPayloadOwnerId'],
  ...['actionAttempted', 'result', 'resultReason', 'logTimestamp'],
];
const personal = ['userLastNameFirstName', 'userEmailAddress', 'currentOwnerLastNameFirstName', 'currentOwnerEmailAddress'];
const inNetwork = [
  ...['ipAddress', 'networkName', 'networkId', 'domainName', 'deviceType', 'machineName'],
  ...['mac', 'uuid', 'serviceProvider', 'latLong', 'address'],
];

/** @param text  the record after the privacy rules, which dropped the fields `dropped` */
export function ecsText(
  text: string,
  { uid, received }: { readonly uid: string; readonly received: number },
  settings: NormalizeSettings,
  dropped: readonly string[],
): string {
  const record = objectOf(parseRecord(text));
  const network = objectOf(record?.['userNetwork']);
  const values = [
    ...[...main, ...personal].map((name) => [name, record?.[name]] as const),
    ...inNetwork.map((name) => [name, network?.[name]] as const),
  ];
  const of = Object.fromEntries(values.map(([name, value]) => [name, textOf(value)]));
  const isOdd =
    (network === undefined && !isAbsent(record?.['userNetwork'])) ||
    values.some(([name, value]) => {
      if (value === undefined || value === null || typeof value === 'string') return false;
      return name !== 'logId' || !(typeof value === 'number' || isRawNumber(value));
    });
  const isMissing = main.some((name) => isAbsent(record?.[name]) && !dropped.includes(name));

  const known = outcomesByCode(settings.mapping).get([of['actionAttempted'], of['result'], of['resultReason']].join(':'));
  const outcome = known ?? unknownOutcome(of['actionAttempted'], of['result'], of['resultReason']);
  const timestamp = of['logTimestamp'] === undefined ? undefined : parseTimestamp(of['logTimestamp']);
  const tags = [
    ...(known ? [] : ['unknown_combination']),
    ...(isMissing ? ['missing_field'] : []),
    ...(isOdd ? ['unexpected_type'] : []),
    ...(timestamp ? [] : ['invalid_timestamp']),
  ];
  const created = microsToIso(received);
  const ip = map(of['ipAddress'], canonicalIp);
  const mac = map(of['mac'], macAddress);
  const hostId = settings.mapping.hostIdFromUuid ? of['uuid'] : undefined;
  const address = map(of['userEmailAddress'], emailParts);
  const document = {
    '@timestamp': timestamp?.iso ?? created,
    ecs: { version: '9.4.0' },
    data_stream: { type: 'logs', dataset: settings.dataset, namespace: settings.namespace },
    event: {
      kind: record ? 'event' : 'pipeline_error',
      category: outcome.category,
      type: outcome.type,
      action: outcome.action,
      outcome: outcome.outcome,
      reason: of['resultReason'],
      code: outcome.code,
      id: of['logId'],
      provider: 'dpas',
      module: 'dpas',
      dataset: settings.dataset,
      severity: outcome.severity,
      timezone: 'UTC',
      created,
      original: text,
      hash: createHash('sha256').update(text).digest('hex'),
    },
    message: messageText(outcome.name, shown(of['userEmailAddress']) ?? shown(of['userId']), shown(of['payloadName']), of['resultReason']),
    tags: ['forwarded', ...(record ? tags : ['not_an_object'])],
    user: {
      ...{ id: of['userId'], email: of['userEmailAddress'], full_name: map(of['userLastNameFirstName'], fullName) },
      ...{ name: address?.name, domain: address?.domain },
    },
    source: {
      ...{ address: of['ipAddress'], ip, mac },
      geo: { location: map(of['latLong'], position) },
      as: { organization: { name: of['serviceProvider'] } },
    },
    host: {
      ...{ name: of['machineName']?.toLowerCase(), hostname: of['machineName'], domain: of['domainName'], id: hostId },
      ...{ mac: listOf(mac), type: of['deviceType'] },
    },
    network: { name: of['networkName'], type: map(ip, (text) => (text.includes(':') ? 'ipv6' : 'ipv4')) },
    related: {
      user: listOf(of['userId'], of['currentPayloadOwnerId'], of['userEmailAddress'], address?.name, of['currentOwnerEmailAddress']),
      ip: listOf(ip),
      hosts: listOf(of['machineName'], hostId),
    },
    organization: { id: settings.tenantId },
    observer: { ...settings.observer, hostname: map(settings.baseUrl, (url) => new URL(url).hostname) },
    dpas: {
      ...{ uid, action_attempted: of['actionAttempted'], result: of['result'], result_reason: of['resultReason'] },
      log_time: of['logTimestamp'],
      user: { id: of['userId'], last_name_first_name: of['userLastNameFirstName'] },
      owner: {
        ...{ id: of['currentPayloadOwnerId'], email: of['currentOwnerEmailAddress'] },
        ...{ full_name: map(of['currentOwnerLastNameFirstName'], fullName), last_name_first_name: of['currentOwnerLastNameFirstName'] },
      },
      network: {
        ...{ id: of['networkId'], name: of['networkName'], address: of['address'], lat_long: of['latLong'] },
        ...{ device_type: of['deviceType'], mac: of['mac'], uuid: of['uuid'], domain_name: of['domainName'] },
        service_provider: of['serviceProvider'],
      },
      payload: { id: of['payloadId'], name: of['payloadName'] },
    },
    file: {
      ...{ uid: of['currentPayloadOwnerId'], owner: of['currentOwnerEmailAddress'] },
      ...{ extension: map(of['payloadName'], fileExtension), name: of['payloadName'] },
    },
  };
  return JSON.stringify(withoutEmpty(document));
}

/** The value without empty objects and lists. */
function withoutEmpty(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value)
    .map(([key, item]) => [key, withoutEmpty(item)] as const)
    .filter(([, item]) => item !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function map<T, R>(value: T | undefined, read: (value: T) => R): R | undefined {
  return value === undefined ? undefined : read(value);
}

function shown(value: string | undefined): string | undefined {
  return value === '***' ? undefined : value;
}

/** The values that are present and not masked, without duplicates. */
function listOf(...values: readonly (string | undefined)[]): string[] | undefined {
  const items = [...new Set(values.filter((value) => value !== undefined && value !== '***'))] as string[];
  return items.length === 0 ? undefined : items;
}
