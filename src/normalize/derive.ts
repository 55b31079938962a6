/** Fills in the fields of an ECS document that are not copies: docs/formats.md, "Fields in ECS". */
import type { EcsDocument } from '../record/document.ts';
import { ecsNumbers as ecs, type EcsPath } from '../record/ecs.ts';
import { fieldNumbers } from '../record/fields.ts';
import type { RecordFields } from '../model/record.ts';
import { canonicalIp } from './ip.ts';
import { emailParts, fileExtension, fullName, macAddress, position } from './values.ts';

const { userEmailAddress, userLastNameFirstName, currentOwnerLastNameFirstName, payloadName, ipAddress, mac, latLong, machineName } =
  fieldNumbers;

/** Machines and places recur, so the last of them are parsed once. */
const maxRemembered = 500;

const relatedUsers = numbersOf('related.user[0]', 'related.user[1]', 'related.user[2]', 'related.user[3]', 'related.user[4]');
const users = numbersOf('user.id', 'file.uid', 'user.email', 'user.name', 'file.owner');
const relatedHosts = numbersOf('related.hosts[0]', 'related.hosts[1]');
const hosts = numbersOf('host.hostname', 'host.id');

const macOf = remembered(macAddress);
const positionOf = remembered((text) => {
  const found = position(text);
  return found && { lat: JSON.stringify(found.lat), lon: JSON.stringify(found.lon) };
});

/** @param hostIdFromUuid  true if `uuid` identifies the machine */
export function derive(document: EcsDocument, record: RecordFields, hostIdFromUuid: boolean): void {
  const email = record.text(userEmailAddress);
  const parts = email === undefined ? undefined : emailParts(email);
  if (parts) {
    document.set(ecs['user.name'], parts.name);
    document.set(ecs['user.domain'], parts.domain);
  }
  const userNames = record.text(userLastNameFirstName);
  if (userNames !== undefined) document.set(ecs['user.full_name'], fullName(userNames));
  const ownerNames = record.text(currentOwnerLastNameFirstName);
  if (ownerNames !== undefined) document.set(ecs['dpas.owner.full_name'], fullName(ownerNames));

  const name = record.text(payloadName);
  if (name !== undefined) document.set(ecs['file.extension'], fileExtension(name));

  const address = record.text(ipAddress);
  const ip = address === undefined ? undefined : canonicalIp(address);
  if (ip !== undefined) {
    if (ip === address) document.setSame(ecs['source.ip'], ecs['source.address']);
    else document.set(ecs['source.ip'], ip);
    document.setSame(ecs['related.ip[0]'], ecs['source.ip']);
    document.set(ecs['network.type'], ip.includes(':') ? 'ipv6' : 'ipv4');
  }
  const macText = record.text(mac);
  const hardware = macText === undefined ? undefined : macOf(macText);
  if (hardware !== undefined) {
    document.set(ecs['source.mac'], hardware);
    document.setSame(ecs['host.mac[0]'], ecs['source.mac']);
  }
  const place = record.text(latLong);
  const location = place === undefined ? undefined : positionOf(place);
  if (location) {
    document.set(ecs['source.geo.location.lat'], location.lat);
    document.set(ecs['source.geo.location.lon'], location.lon);
  }

  const machine = record.text(machineName);
  if (machine !== undefined) document.set(ecs['host.name'], machine.toLowerCase());
  if (hostIdFromUuid) document.setSame(ecs['host.id'], ecs['dpas.network.uuid']);
  document.setList(relatedUsers, users);
  document.setList(relatedHosts, hosts);
}

function remembered<T>(read: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const known = results.get(text);
    if (known !== undefined) return known;
    const result = read(text);
    if (results.size >= maxRemembered) results.clear();
    results.set(text, result);
    return result;
  };
}

function numbersOf(...paths: readonly EcsPath[]): readonly number[] {
  return paths.map((path) => ecs[path]);
}
