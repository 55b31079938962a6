/** Objects that several OCSF classes share, and the values without a place in a class. */
import type { EcsDocument } from '../record/document.ts';
import { ecsNumbers as ecs, ecsPaths, ecsTable } from '../record/ecs.ts';

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
export function endpointOf(document: EcsDocument): object | undefined {
  const ip = document.text(ecs['source.ip']);
  const hostname = document.text(ecs['host.hostname']);
  const uid = document.text(ecs['host.id']);
  if (ip === undefined && hostname === undefined && uid === undefined) return undefined;
  return { ...typeOf(document), ip, mac: macOf(document), hostname, domain: document.text(ecs['host.domain']), uid };
}

/** The `device` of an OCSF class that requires one, for an event that identifies no device. The schema then requires `name`. */
export function unknownDevice(document: EcsDocument): object {
  return { ...typeOf(document), name: 'Unknown', mac: macOf(document), domain: document.text(ecs['host.domain']) };
}

function typeOf(document: EcsDocument): { type_id: number; type: string | undefined } {
  const type = document.text(ecs['dpas.network.device_type']);
  if (type === undefined) return { type_id: 0, type: undefined };
  return { type_id: deviceTypes.indexOf(type.toLowerCase()) + 1 || 99, type };
}

/** OCSF has no type for an address of eight bytes. */
function macOf(document: EcsDocument): string | undefined {
  const mac = document.text(ecs['source.mac']);
  return mac?.length === 17 ? mac.replaceAll('-', ':') : undefined;
}

/** Values for which the class has no attribute. `places` names what the class has attributes for. */
export function unmappedOf(document: EcsDocument, places: 'file' | 'entity' | 'entity without endpoint' | 'nothing'): object | undefined {
  const hasEndpoint = places === 'entity';
  const isBare = places === 'nothing';
  return present({
    ledger: isLedger(document) ? statementOf(document) : undefined,
    actionAttempted: document.text(ecs['dpas.action_attempted']),
    result: document.text(ecs['dpas.result']),
    resultReason: document.text(ecs['event.reason']),
    ...(isBare ? bareFields(document) : {}),
    userNetwork: present({
      ...(isBare
        ? {
            ipAddress: document.text(ecs['source.address']),
            machineName: document.text(ecs['host.hostname']),
            mac: document.text(ecs['dpas.network.mac']),
          }
        : {}),
      ...(isBare || places === 'entity without endpoint'
        ? { domainName: document.text(ecs['host.domain']), deviceType: document.text(ecs['dpas.network.device_type']) }
        : {}),
      // If the uuid identifies the machine, an attribute of the class has it.
      uuid: isBare || document.text(ecs['host.id']) === undefined ? document.text(ecs['dpas.network.uuid']) : undefined,
      networkName: hasEndpoint ? undefined : document.text(ecs['dpas.network.name']),
      networkId: document.text(ecs['dpas.network.id']),
      serviceProvider: hasEndpoint ? undefined : document.text(ecs['dpas.network.service_provider']),
      latLong: document.text(ecs['dpas.network.lat_long']),
      address: document.text(ecs['dpas.network.address']),
    }),
  });
}

/** The user, the file and its owner, for a class that has no place for them. */
function bareFields(document: EcsDocument): object {
  return {
    userId: document.text(ecs['user.id']),
    userEmailAddress: document.text(ecs['user.email']),
    userFullName: document.text(ecs['user.full_name']),
    payloadId: document.text(ecs['dpas.payload.id']),
    payloadName: document.text(ecs['file.name']),
    currentPayloadOwnerId: document.text(ecs['file.uid']),
    currentOwnerEmailAddress: document.text(ecs['file.owner']),
    currentOwnerFullName: document.text(ecs['dpas.owner.full_name']),
  };
}

const ledgerPrefix = 'dpas.ledger.';
const ledgerPaths = ecsPaths.filter((path) => path.startsWith(ledgerPrefix));

export function isLedger(document: EcsDocument): boolean {
  return document.text(ecs['event.kind']) === 'state';
}

/** The statement of a ledger entry. */
function statementOf(document: EcsDocument): object | undefined {
  return present(
    Object.fromEntries(
      ledgerPaths.map((path) => {
        const text = document.text(ecs[path]);
        return [path.slice(ledgerPrefix.length), ecsTable[path] === 'number' && text !== undefined ? Number(text) : text];
      }),
    ),
  );
}

/** The values to search for across classes, by path. @param endpoint  the attribute of the machine */
export function observablesOf(document: EcsDocument, endpoint: 'device' | 'src_endpoint'): object[] | undefined {
  const found = [
    { name: 'actor.user.uid', type_id: 31, value: document.text(ecs['user.id']) },
    { name: 'file.name', type_id: 7, value: endpoint === 'device' ? document.text(ecs['file.name']) : undefined },
    { name: `${endpoint}.ip`, type_id: 2, value: document.text(ecs['source.ip']) },
  ].filter(({ value }) => value !== undefined);
  return found.length === 0 ? undefined : found;
}

/** The object; undefined when it is empty. */
export function present(object: Readonly<Record<string, unknown>>): object | undefined {
  return Object.values(object).some((value) => value !== undefined) ? object : undefined;
}
