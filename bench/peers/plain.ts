/**
 * The floor of `npm run bench -- peers`: a plain Node pipeline without any durability. It parses each
 * page as a whole, builds an ECS document of each record, and appends the lines of a page in one write.
 * Meanwhile it reads the next page. Arguments: the URL of the API and the file. It runs until it is
 * stopped, and sends no request after an empty page.
 */
import { open } from 'node:fs/promises';

interface RecordOfLog {
  readonly logId: number;
  readonly userId: string;
  readonly payloadId: string;
  readonly payloadName: string;
  readonly currentPayloadOwnerId: string;
  readonly actionAttempted: string;
  readonly result: string;
  readonly resultReason: string;
  readonly logTimestamp: string;
  readonly userNetwork: Readonly<
    Record<
      | 'ipAddress'
      | 'networkName'
      | 'networkId'
      | 'domainName'
      | 'deviceType'
      | 'machineName'
      | 'mac'
      | 'uuid'
      | 'serviceProvider'
      | 'latLong'
      | 'address',
      string
    >
  >;
  readonly userLastNameFirstName: string;
  readonly userEmailAddress: string;
  readonly currentOwnerEmailAddress: string;
}

const [, , address = '', path = ''] = process.argv;

async function page(number: number): Promise<readonly RecordOfLog[]> {
  const response = await fetch(
    `${address}/logs/full-payload?startTime=1971-01-01T00:00:00.00&sort=%2BlogTimestamp&pageSize=1000&page=${number}`,
  );
  return ((await response.json()) as { data: readonly RecordOfLog[] }).data;
}

/** The fields of benthos/config.yaml. */
function document(record: RecordOfLog): object {
  const { userNetwork: network, userId, userEmailAddress: email, payloadName, actionAttempted, resultReason } = record;
  return {
    '@timestamp': `${record.logTimestamp}Z`,
    ecs: { version: '9.4.0' },
    event: {
      kind: 'event',
      module: 'dpas',
      dataset: 'dpas.audit',
      id: String(record.logId),
      outcome: record.result === 'AccessDenied' ? 'failure' : 'success',
      reason: resultReason,
      original: JSON.stringify(record),
    },
    message: `${actionAttempted}: ${email} / ${payloadName} (${resultReason})`,
    user: { id: userId, email },
    file: { name: payloadName },
    source: { ip: network.ipAddress, address: network.ipAddress },
    host: { id: network.uuid, hostname: network.machineName, domain: network.domainName, mac: [network.mac], type: network.deviceType },
    network: { name: network.networkName },
    related: { ip: [network.ipAddress], user: [userId, email] },
    dpas: {
      action_attempted: actionAttempted,
      payload: { id: record.payloadId },
      user: { last_name_first_name: record.userLastNameFirstName },
      owner: { id: record.currentPayloadOwnerId, email: record.currentOwnerEmailAddress },
      network: { id: network.networkId, service_provider: network.serviceProvider, address: network.address, lat_long: network.latLong },
    },
  };
}

const file = await open(path, 'w');
let next = page(1);
for (let number = 2; ; number += 1) {
  const records = await next;
  if (records.length === 0) break;
  next = page(number);
  await file.write(`${records.map((record) => JSON.stringify(document(record))).join('\n')}\n`);
}
await file.close();
setInterval(() => undefined, 60_000);
