/**
 * The fields of an ECS 9.4.0 document in their order, and where the value of each comes from:
 * docs/formats.md, "Fields in ECS". The normalizer fills the document by this table, and the format
 * `ecs` writes it.
 */
import { fieldNumbers } from './fields.ts';

type FieldName = keyof typeof fieldNumbers;

/**
 * The origin of a value: the name of a field of the record whose text is copied, or
 * - `text`, `number`: the normalizer computes it
 * - `record`: the text of the record; `hash`: its SHA-256 in hex
 */
type Origin = FieldName | 'text' | 'number' | 'record' | 'hash';

/**
 * By path, in the order of the document. The items of a list are fields too; an absent one is left
 * out. The name of the file is last: it may have 64 KiB, and Splunk extracts fields from the first
 * 5,000 bytes only (limits.conf, [spath] extraction_cutoff).
 */
const table = {
  '@timestamp': 'text',
  'ecs.version': 'text',
  'data_stream.type': 'text',
  'data_stream.dataset': 'text',
  'data_stream.namespace': 'text',
  'event.kind': 'text',
  'event.category[0]': 'text',
  'event.category[1]': 'text',
  'event.type[0]': 'text',
  'event.action': 'text',
  'event.outcome': 'text',
  'event.reason': 'resultReason',
  'event.code': 'text',
  'event.id': 'logId',
  'event.provider': 'text',
  'event.module': 'text',
  'event.dataset': 'text',
  'event.severity': 'number',
  'event.timezone': 'text',
  'event.created': 'text',
  'event.start': 'text',
  'event.end': 'text',
  'event.original': 'record',
  'event.hash': 'hash',
  message: 'text',
  'tags[0]': 'text',
  'tags[1]': 'text',
  'tags[2]': 'text',
  'tags[3]': 'text',
  'tags[4]': 'text',
  'tags[5]': 'text',
  'user.id': 'userId',
  'user.email': 'userEmailAddress',
  'user.full_name': 'text',
  'user.name': 'text',
  'user.domain': 'text',
  'source.address': 'ipAddress',
  'source.ip': 'text',
  'source.mac': 'text',
  'source.geo.location.lat': 'number',
  'source.geo.location.lon': 'number',
  'source.as.organization.name': 'serviceProvider',
  'host.name': 'text',
  'host.hostname': 'machineName',
  'host.domain': 'domainName',
  'host.id': 'text',
  'host.mac[0]': 'text',
  'host.type': 'deviceType',
  'network.name': 'networkName',
  'network.type': 'text',
  'related.user[0]': 'text',
  'related.user[1]': 'text',
  'related.user[2]': 'text',
  'related.user[3]': 'text',
  'related.user[4]': 'text',
  'related.ip[0]': 'text',
  'related.hosts[0]': 'text',
  'related.hosts[1]': 'text',
  'organization.id': 'text',
  'observer.vendor': 'text',
  'observer.product': 'text',
  'observer.version': 'text',
  'observer.hostname': 'text',
  'dpas.uid': 'text',
  'dpas.action_attempted': 'actionAttempted',
  'dpas.result': 'result',
  'dpas.result_reason': 'resultReason',
  'dpas.log_time': 'logTimestamp',
  'dpas.user.id': 'userId',
  'dpas.user.last_name_first_name': 'userLastNameFirstName',
  'dpas.owner.id': 'currentPayloadOwnerId',
  'dpas.owner.email': 'currentOwnerEmailAddress',
  'dpas.owner.full_name': 'text',
  'dpas.owner.last_name_first_name': 'currentOwnerLastNameFirstName',
  'dpas.network.id': 'networkId',
  'dpas.network.name': 'networkName',
  'dpas.network.address': 'address',
  'dpas.network.lat_long': 'latLong',
  'dpas.network.device_type': 'deviceType',
  'dpas.network.mac': 'mac',
  'dpas.network.uuid': 'uuid',
  'dpas.network.domain_name': 'domainName',
  'dpas.network.service_provider': 'serviceProvider',
  'dpas.ledger.source': 'text',
  'dpas.ledger.state': 'text',
  'dpas.ledger.revision': 'number',
  'dpas.ledger.total': 'number',
  'dpas.ledger.records': 'number',
  'dpas.ledger.late': 'number',
  'dpas.ledger.recounts': 'number',
  'dpas.ledger.digest': 'text',
  'dpas.ledger.operation': 'text',
  'dpas.ledger.actor': 'text',
  'dpas.ledger.checkpoint': 'text',
  'dpas.payload.id': 'payloadId',
  'dpas.payload.name': 'payloadName',
  'file.uid': 'currentPayloadOwnerId',
  'file.owner': 'currentOwnerEmailAddress',
  'file.extension': 'text',
  'file.name': 'payloadName',
} as const satisfies Readonly<Record<string, Origin>>;

/** A field of a document, by its path. */
export type EcsPath = keyof typeof table;

export const ecsTable: Readonly<Record<EcsPath, Origin>> = table;

/** The paths of the fields; a field's number is its place here. */
export const ecsPaths = Object.keys(table) as readonly EcsPath[];

export const ecsNumbers = Object.fromEntries(ecsPaths.map((path, number) => [path, number])) as Readonly<Record<EcsPath, number>>;
