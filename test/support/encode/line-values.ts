/**
 * The values that a consumer must read from a CEF or LEEF line: the values of the ECS document after the
 * cleaning that docs/formats.md describes.
 */
import type { EcsDocument } from '../normalize/ecs-document.ts';

type Values = ReadonlyMap<string, string>;

/** Without the time, which the document does not have in milliseconds. */
export function cefValues(document: EcsDocument): Values {
  const { event, user, file, source, host, dpas, organization, observer } = document;
  const { network } = dpas;
  const isFile = event.category?.[0] === 'file';
  const verdict = { success: 'Allowed', failure: 'Denied', unknown: undefined }[event.outcome];
  const isIpv4 = document.network?.type === 'ipv4';
  const { lat, lon } = source?.geo?.location ?? {};
  const custom = (number: number, value: string | undefined, label: string): readonly Pair[] => {
    const read = cefText(value, 4000);
    return read === undefined ? [] : [[`cs${number}`, read], [`cs${number}Label`, label]]; // prettier-ignore
  };
  return defined([
    ['externalId', (event.id?.length ?? 0) > 40 ? undefined : cefText(event.id, 40)],
    ['cat', cefText(dpas.action_attempted, 1023)],
    ['act', isFile ? verdict : cefText(event.reason, 63)],
    ['outcome', event.outcome],
    ['reason', cefText(event.reason, 1023)],
    ['suid', cefText(user?.id, 1023)],
    ['suser', cefText(user?.email, 1023)],
    ['duid', cefText(file?.uid, 1023)],
    ['duser', cefText(file?.owner, 1023)],
    ['fname', cefText(file?.name, 1023)],
    ['fileId', cefText(dpas.payload?.id, 1023)],
    ['src', isIpv4 ? source?.ip : undefined],
    ['c6a2', isIpv4 ? undefined : source?.ip],
    ['c6a2Label', isIpv4 || source?.ip === undefined ? undefined : 'Source IPv6 Address'],
    ['smac', source?.mac?.length === 17 ? source.mac.replaceAll('-', ':') : undefined],
    ['shost', cefText(host?.hostname, 1023)],
    [host?.domain?.includes('.') ? 'sourceDnsDomain' : 'sntdom', cefText(host?.domain, 255)],
    ['deviceExternalId', cefText(organization?.id, 255)],
    ['dvchost', cefText(observer.hostname, 100)],
    ...custom(1, dpas.result, 'Result'),
    ...custom(2, network?.name, 'NetworkName'),
    ...custom(3, network?.service_provider, 'ServiceProvider'),
    ...custom(4, network?.device_type, 'DeviceType'),
    ...custom(5, network?.uuid, 'DeviceUuid'),
    ...custom(6, network?.address, 'Address'),
    ...(lat === undefined ? [] : [['cfp1', String(lat)], ['cfp1Label', 'Latitude'], ['cfp2', String(lon)], ['cfp2Label', 'Longitude']] as const), // prettier-ignore
    ['WaybillDpasUid', dpas.uid],
    ['WaybillDpasNetworkId', cefText(network?.id, 1023)],
    ['WaybillDpasUserName', cefText(dpas.user?.last_name_first_name, 1023)],
    ['WaybillDpasOwnerName', cefText(dpas.owner?.last_name_first_name, 1023)],
    ['msg', cefText(document.message, 1023)],
  ]);
}

/** Without the time. */
export function leefValues({ event, user, file, source, host, dpas, organization }: EcsDocument): Values {
  const { network } = dpas;
  const { lat, lon } = source?.geo?.location ?? {};
  const texts: readonly Pair[] = [
    ['cat', dpas.action_attempted],
    ['domain', host?.domain],
    ['resource', host?.hostname],
    ['uid', dpas.uid],
    ['logId', (event.id?.length ?? 0) > 1023 ? undefined : event.id],
    ['action', event.action],
    ['outcome', event.outcome],
    ['result', dpas.result],
    ['reason', event.reason],
    ['userId', user?.id],
    ['userFullName', user?.full_name],
    ['ownerId', file?.uid],
    ['ownerEmail', file?.owner],
    ['ownerFullName', dpas.owner?.full_name],
    ['payloadId', dpas.payload?.id],
    ['fileName', file?.name],
    ['serviceProvider', network?.service_provider],
    ['networkName', network?.name],
    ['networkId', network?.id],
    ['deviceType', network?.device_type],
    ['deviceUuid', network?.uuid],
    ['address', network?.address],
    ['tenantId', organization?.id],
  ];
  return defined([
    ...texts.map(([key, value]): Pair => [key, leefText(value, 1023)]),
    ['sev', String(Math.max(1, event.severity))],
    ['usrName', leefText(user?.email ?? user?.id, 255)],
    ['src', source?.ip],
    ['srcMAC', source?.mac?.length === 17 ? source.mac.replaceAll('-', ':') : undefined],
    ['latitude', lat === undefined ? undefined : String(lat)],
    ['longitude', lon === undefined ? undefined : String(lon)],
  ]);
}

type Pair = readonly [key: string, value: string | undefined];

const defined = (pairs: readonly Pair[]): Values =>
  new Map(pairs.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));

/** LEEF has no escape for line breaks. */
const leefText = (value: string | undefined, max: number): string | undefined => cefText(value?.replace(/[\r\n]/g, ' '), max);

/** Character by character: control characters become spaces, and no character is cut in half. */
function cefText(value: string | undefined, max: number): string | undefined {
  if (value === undefined) return undefined;
  if (/^[\x21-\x7e]*$/.test(value)) return value === '' ? undefined : value.slice(0, max);
  const clean = Array.from(value, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === '\n' || character === '\r') return character;
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029 ? ' ' : character;
  });
  let text = '';
  for (const character of Array.from(clean.join('').trim())) {
    if (text.length + character.length > max) break;
    text += character;
  }
  const read = text.trim().replaceAll('\r\n', '\n');
  return read === '' ? undefined : read;
}
