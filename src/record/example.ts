/** Synthetic records with every field: example names and domains (RFC 2606), documentation addresses (RFC 5737). */

/** The fields that differ between examples. */
interface ExampleTriple {
  readonly actionAttempted: string;
  readonly result: string;
  readonly resultReason: string;
}

/** @param index  0 to 199; makes `logId` and the second of `logTimestamp` differ */
export function exampleRecord(triple: ExampleTriple, index: number): string {
  const at = new Date(Date.UTC(2024, 4, 1, 12, 0, index)).toISOString().slice(0, 19);
  return JSON.stringify({
    logId: 1_000_001 + index,
    userId: 'example-user',
    payloadId: 'example-payload',
    payloadName: 'Example file.docx',
    currentPayloadOwnerId: 'example-owner',
    actionAttempted: triple.actionAttempted,
    result: triple.result,
    resultReason: triple.resultReason,
    logTimestamp: `${at}.1234567`,
    userNetwork: {
      ipAddress: '192.0.2.10',
      networkName: 'Example network',
      networkId: 'example-network',
      domainName: 'example.com',
      deviceType: 'Laptop',
      machineName: 'EXAMPLE-01',
      mac: '00:00:5E:00:53:01',
      uuid: '00000000-0000-4000-8000-000000000001',
      serviceProvider: 'Example provider',
      latLong: '0.5,-0.5',
      address: 'Example street 1, Example town',
    },
    userLastNameFirstName: 'User,Example',
    userEmailAddress: 'user@example.com',
    currentOwnerLastNameFirstName: 'Owner,Example',
    currentOwnerEmailAddress: 'owner@example.com',
  });
}
