/**
 * Builds the parts of an ECS document from the fields of a record: docs/formats.md, "Fields". An
 * empty part is undefined, so that nothing empty is written.
 */
import type { EcsDocument, EcsDpas, EcsFile, EcsHost, EcsSource, EcsUser } from '../model/event.ts';
import { ipVersion } from './ip.ts';
import { masked } from './privacy.ts';
import type { Fields } from './reading.ts';
import { emailParts, fileExtension, fullName, macAddress, position } from './values.ts';

/** The parts that depend on the record only. */
type RecordParts = Pick<EcsDocument, 'user' | 'file' | 'source' | 'host' | 'network' | 'related'>;

export function recordParts(fields: Fields, hostIdFromUuid: boolean): RecordParts {
  const version = fields.ipAddress === undefined ? undefined : ipVersion(fields.ipAddress);
  const ip = version === undefined ? undefined : fields.ipAddress;
  const mac = fields.mac === undefined ? undefined : macAddress(fields.mac);
  const hostId = hostIdFromUuid ? fields.uuid : undefined;
  const user = userOf(fields);
  return {
    user,
    file: fileOf(fields),
    source: sourceOf(fields, ip, mac),
    host: hostOf(fields, hostId, mac),
    network:
      fields.networkName === undefined && version === undefined
        ? undefined
        : { name: fields.networkName, type: version === undefined ? undefined : version === 4 ? 'ipv4' : 'ipv6' },
    related: relatedOf(fields, user?.name, ip, hostId),
  };
}

/** The fields under `dpas`: values as the record has them, and values for which ECS has no field. */
export function dpasOf(fields: Fields, uid: string): EcsDpas {
  const { payloadId, payloadName, userId, userLastNameFirstName: names } = fields;
  return {
    uid,
    action_attempted: fields.actionAttempted,
    result: fields.result,
    result_reason: fields.resultReason,
    log_time: fields.logTimestamp,
    payload: payloadId === undefined && payloadName === undefined ? undefined : { id: payloadId, name: payloadName },
    user: userId === undefined && names === undefined ? undefined : { id: userId, last_name_first_name: names },
    owner: dpasOwnerOf(fields),
    network: dpasNetworkOf(fields),
  };
}

/** The value unless it is masked, for uses that compare or parse it. */
export function shown(value: string | undefined): string | undefined {
  return value === masked ? undefined : value;
}

function userOf(fields: Fields): EcsUser | undefined {
  const { userId, userEmailAddress: email, userLastNameFirstName: names } = fields;
  if (userId === undefined && email === undefined && names === undefined) return undefined;
  const parts = email === undefined ? undefined : emailParts(email);
  return { id: userId, email, full_name: names === undefined ? undefined : fullName(names), name: parts?.name, domain: parts?.domain };
}

function fileOf(fields: Fields): EcsFile | undefined {
  const { payloadName: name, currentPayloadOwnerId: uid, currentOwnerEmailAddress: owner } = fields;
  if (name === undefined && uid === undefined && owner === undefined) return undefined;
  return { name, extension: name === undefined ? undefined : fileExtension(name), uid, owner };
}

function sourceOf(fields: Fields, ip: string | undefined, mac: string | undefined): EcsSource | undefined {
  const { ipAddress: address, serviceProvider: provider } = fields;
  const location = fields.latLong === undefined ? undefined : position(fields.latLong);
  if (address === undefined && mac === undefined && location === undefined && provider === undefined) return undefined;
  return {
    address,
    ip,
    mac,
    geo: location === undefined ? undefined : { location },
    as: provider === undefined ? undefined : { organization: { name: provider } },
  };
}

function hostOf(fields: Fields, id: string | undefined, mac: string | undefined): EcsHost | undefined {
  const { machineName: hostname, domainName: domain, deviceType: type } = fields;
  if (hostname === undefined && domain === undefined && type === undefined && id === undefined && mac === undefined) return undefined;
  return { name: hostname?.toLowerCase(), hostname, domain, id, mac: mac === undefined ? undefined : [mac], type };
}

function relatedOf(
  fields: Fields,
  userName: string | undefined,
  ip: string | undefined,
  hostId: string | undefined,
): EcsDocument['related'] {
  const user: string[] = [];
  add(user, fields.userId);
  add(user, fields.currentPayloadOwnerId);
  add(user, fields.userEmailAddress);
  add(user, userName);
  add(user, fields.currentOwnerEmailAddress);
  const hosts: string[] = [];
  add(hosts, fields.machineName);
  add(hosts, hostId);
  if (user.length === 0 && ip === undefined && hosts.length === 0) return undefined;
  return {
    user: user.length === 0 ? undefined : user,
    ip: ip === undefined ? undefined : [ip],
    hosts: hosts.length === 0 ? undefined : hosts,
  };
}

/** Adds a value once. Masked values are left out: they would all seem related. */
function add(values: string[], value: string | undefined): void {
  if (value !== undefined && value !== masked && !values.includes(value)) values.push(value);
}

function dpasOwnerOf(fields: Fields): EcsDpas['owner'] {
  const { currentPayloadOwnerId: id, currentOwnerEmailAddress: email, currentOwnerLastNameFirstName: names } = fields;
  if (id === undefined && email === undefined && names === undefined) return undefined;
  return { id, email, full_name: names === undefined ? undefined : fullName(names), last_name_first_name: names };
}

function dpasNetworkOf(fields: Fields): EcsDpas['network'] {
  const { networkId, networkName, address, latLong, deviceType, mac, uuid, domainName, serviceProvider } = fields;
  const something = networkId ?? networkName ?? address ?? latLong ?? deviceType ?? mac ?? uuid ?? domainName ?? serviceProvider;
  if (something === undefined) return undefined;
  return {
    id: networkId,
    name: networkName,
    address,
    lat_long: latLong,
    device_type: deviceType,
    mac,
    uuid,
    domain_name: domainName,
    service_provider: serviceProvider,
  };
}
