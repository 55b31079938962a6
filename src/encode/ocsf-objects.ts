/** Objects that several OCSF classes share, and the values without a place in a class. */
import type { EcsDocument } from '../model/event.ts';

/** `email_t` of the schema; OCSF does not accept another value as an address. */
const emailPattern = /^[a-zA-Z0-9!#$%&'*+-/=?^_`{|}~.]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+$/;
const emailMax = 320;

const deviceTypes = ['server', 'desktop', 'laptop', 'tablet', 'mobile', 'virtual'];

/** OCSF requires an id or a name for a user; with neither, only a full name is possible. */
export function userOf(uid: string | undefined, email: string | undefined, fullName: string | undefined): object | undefined {
  if (uid === undefined && email === undefined) {
    return fullName === undefined ? undefined : { type_id: 0, name: 'Unknown', full_name: fullName };
  }
  const isAddress = email !== undefined && email.length <= emailMax && emailPattern.test(email);
  return { uid, type_id: 1, name: email, email_addr: isAddress ? email : undefined, full_name: fullName };
}

/** The machine with its type; undefined without an identifying value. */
export function endpointOf({ source, host, dpas }: EcsDocument): object | undefined {
  if (source?.ip === undefined && host?.hostname === undefined && host?.id === undefined) return undefined;
  return {
    ...typeOf(dpas.network?.device_type),
    ip: source?.ip,
    mac: macOf(source?.mac),
    hostname: host?.hostname,
    domain: host?.domain,
    uid: host?.id,
  };
}

/**
 * The `device` of an OCSF class that requires one, for an event that identifies no device. The
 * schema then requires `name`.
 */
export function unknownDevice({ source, host, dpas }: EcsDocument): object {
  return { ...typeOf(dpas.network?.device_type), name: 'Unknown', mac: macOf(source?.mac), domain: host?.domain };
}

function typeOf(type: string | undefined): { type_id: number; type: string | undefined } {
  if (type === undefined) return { type_id: 0, type: undefined };
  return { type_id: deviceTypes.indexOf(type.toLowerCase()) + 1 || 99, type };
}

/** OCSF has no type for an address of eight bytes. */
function macOf(mac: string | undefined): string | undefined {
  return mac?.length === 17 ? mac.replaceAll('-', ':') : undefined;
}

/**
 * Values without a place in the class. `entity` has one for network and provider, `nothing` has
 * none for user and file either.
 */
export function unmappedOf(document: EcsDocument, places: 'file' | 'entity' | 'entity without endpoint' | 'nothing'): object | undefined {
  const { event, dpas, user, file, source, host } = document;
  const { network } = dpas;
  const hasEndpoint = places === 'entity';
  const isBare = places === 'nothing';
  return present({
    ledger: dpas.ledger && present({ ...dpas.ledger }),
    actionAttempted: dpas.action_attempted,
    result: dpas.result,
    resultReason: event.reason,
    ...(isBare ? { userId: user?.id, userEmailAddress: user?.email, userFullName: user?.full_name } : {}),
    ...(isBare ? { payloadId: dpas.payload?.id, payloadName: file?.name, currentPayloadOwnerId: file?.uid } : {}),
    ...(isBare ? { currentOwnerEmailAddress: file?.owner, currentOwnerFullName: dpas.owner?.full_name } : {}),
    userNetwork: present({
      ...(isBare ? { ipAddress: source?.address, machineName: host?.hostname, mac: network?.mac } : {}),
      ...(isBare || places === 'entity without endpoint' ? { domainName: host?.domain, deviceType: network?.device_type } : {}),
      // If it does not identify the machine, it has no other place.
      uuid: isBare || host?.id === undefined ? network?.uuid : undefined,
      networkName: hasEndpoint ? undefined : network?.name,
      networkId: network?.id,
      serviceProvider: hasEndpoint ? undefined : network?.service_provider,
      latLong: network?.lat_long,
      address: network?.address,
    }),
  });
}

/**
 * The values to search for across classes, by path.
 * @param endpoint  the attribute of the machine
 */
export function observablesOf({ user, file, source }: EcsDocument, endpoint: 'device' | 'src_endpoint'): object[] | undefined {
  const found = [
    { name: 'actor.user.uid', type_id: 31, value: user?.id },
    { name: 'file.name', type_id: 7, value: endpoint === 'device' ? file?.name : undefined },
    { name: `${endpoint}.ip`, type_id: 2, value: source?.ip },
  ].filter(({ value }) => value !== undefined);
  return found.length === 0 ? undefined : found;
}

/** The object; undefined when it is empty. */
export function present(object: Readonly<Record<string, unknown>>): object | undefined {
  return Object.values(object).some((value) => value !== undefined) ? object : undefined;
}
