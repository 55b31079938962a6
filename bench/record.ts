/**
 * The records of the benchmark, generated from their numbers: 30 per second, 786 bytes of JSON
 * each, with every field of the specification.
 */

export const perSecond = 30;
export const firstLogId = 1_000_000;

const places = [
  ['51.5074,-0.1278', '10 Sample Street, London'],
  ['48.8566,2.3522', '20 Sample Street, Paris'],
  ['52.5200,13.4050', '30 Sample Street, Berlin'],
  ['40.7128,-74.0060', '40 Sample Street, New York'],
] as const;
const outcomes = [
  ['Decrypt', 'AccessGranted', 'Success'],
  ['Encrypt', 'AccessGranted', 'Success'],
  ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess'],
  ['Audit', 'AuthorisedUserAccess', 'Created'],
  ['Decrypt', 'AccessDenied', 'GeoValidationFailed'],
] as const;

/** How names in a page are written: without, with, or with escaped characters beyond ASCII. */
export const characterSets = ['ascii', 'utf-8', 'escaped'] as const;
export type Characters = (typeof characterSets)[number];

/** The JSON of a record with names in these characters. */
export function inCharacters(text: string, characters: Characters): string {
  if (characters === 'ascii') return text;
  const named = text.replaceAll('Sample', 'Sämple').replaceAll('Person', 'Łukasz').replaceAll('Quarterly forecast', '四半期予測');
  return characters === 'utf-8' ? named : named.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export type LogRecord = ReturnType<typeof recordOf>;

/** The JSON of record `i`. */
export function recordText(i: number, beginMs: number, rate = perSecond): string {
  return JSON.stringify(recordOf(i, beginMs, rate));
}

/** Record `i` of a log that starts at `beginMs`. @param rate  records per second */
export function recordOf(i: number, beginMs: number, rate = perSecond) {
  const [action, result, reason] = outcomes[i % outcomes.length] ?? outcomes[0];
  const [latLong, address] = places[i % places.length] ?? places[0];
  const user = i % 997;
  const owner = i % 89;
  const micros = Math.floor((i * 1_000_000) / rate);
  const at = new Date(beginMs + Math.floor(micros / 1000)).toISOString().slice(0, 23);
  return {
    logId: firstLogId + i,
    userId: `u-${user.toString().padStart(6, '0')}`,
    payloadId: `p-${(i % 5003).toString().padStart(8, '0')}`,
    payloadName: `Quarterly forecast ${(i % 5003).toString().padStart(5, '0')} draft.xlsx`,
    currentPayloadOwnerId: `u-${owner.toString().padStart(6, '0')}`,
    actionAttempted: action,
    result,
    resultReason: reason,
    logTimestamp: `${at}${(micros % 1000).toString().padStart(3, '0')}`,
    userNetwork: {
      ipAddress: `192.0.2.${i % 250}`,
      networkName: 'Sample corporate network',
      networkId: `net-${(i % 17).toString().padStart(4, '0')}`,
      domainName: 'corp.example.com',
      deviceType: 'Laptop',
      machineName: `LT-${user.toString().padStart(6, '0')}`,
      mac: '00-00-5E-00-53-AF',
      uuid: `4c4c4544-0042-3510-8054-${user.toString(16).padStart(12, '0')}`,
      serviceProvider: 'Sample Telecom plc',
      latLong,
      address,
    },
    userLastNameFirstName: `Sample-${user.toString().padStart(4, '0')},Person`,
    userEmailAddress: `person-${user.toString().padStart(4, '0')}@example.com`,
    currentOwnerLastNameFirstName: `Sample-${owner.toString().padStart(4, '0')},Owner`,
    currentOwnerEmailAddress: `owner-${owner.toString().padStart(4, '0')}@example.com`,
  };
}
