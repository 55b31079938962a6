/** The shapes of the log on the wire, without the effects of switches. */
import { z } from 'zod';
import { combinations } from './combinations.ts';

const oneOf = (column: 0 | 1 | 2): z.ZodEnum<Record<string, string>> =>
  z.enum([...new Set(combinations.map((row): string => row[column]))]);

const network = z
  .strictObject({
    ipAddress: z.string(),
    networkName: z.string(),
    networkId: z.string(),
    domainName: z.string(),
    deviceType: z.string(),
    machineName: z.string(),
    mac: z.string(),
    uuid: z.string(),
    serviceProvider: z.string(),
    latLong: z.string(),
    address: z.string(),
  })
  .meta({ id: 'LogUserNetwork', description: 'Network and geolocation information; with logs.read.all alone' });

/** A record of /logs/payload. Only with the permission logs.read.all does it have userNetwork. */
const payloadRecord = z.strictObject({
  logId: z.int(),
  userId: z.string(),
  payloadId: z.string(),
  payloadName: z.string(),
  currentPayloadOwnerId: z.string(),
  actionAttempted: oneOf(0),
  result: oneOf(1),
  resultReason: oneOf(2),
  logTimestamp: z.string().meta({ description: 'UTC, ISO 8601 without offset, with a fraction of 1 to 9 digits' }),
  userNetwork: network.optional(),
});

const fullPayloadRecord = payloadRecord.extend({
  userLastNameFirstName: z.string(),
  userEmailAddress: z.string(),
  currentOwnerLastNameFirstName: z.string(),
  currentOwnerEmailAddress: z.string(),
});

/** Without totalPages, which is absent in log responses. */
const pagination = z
  .strictObject({ totalRecords: z.int(), pageSize: z.int(), itemsInPage: z.int(), page: z.int() })
  .meta({ id: 'LogPagination' });

export const payloadLog = z.strictObject({ pagination, data: z.array(payloadRecord.meta({ id: 'PayloadLogRecord' })) });
export const fullPayloadLog = z.strictObject({ pagination, data: z.array(fullPayloadRecord.meta({ id: 'FullPayloadLogRecord' })) });
