/** The settings of the sink `splunk-hec`, and values derived from them. */
import { hostname } from 'node:os';
import { z } from 'zod';
import { httpsUrl, line, secret, text } from '../../settings/values.ts';
import type { Message } from '../../model/sink.ts';
import { proxySettings, tlsSettings } from '../../connect/settings.ts';

const guid = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

export const splunkHecSettings = z.strictObject({
  url: httpsUrl().describe('Address of the HTTP Event Collector, such as `https://splunk.example:8088`'),
  token: secret().describe('Token of the HTTP Event Collector'),
  index: line().optional().describe('Index of each event; `{source}` stands for the id of the source; default: the index of the token'),
  source: line().default('waybill').describe('`source` of each event; `{source}` stands for the id of the source'),
  sourcetype: line().default('dpas:audit').describe('`sourcetype` of each event'),
  host: line().optional().describe('`host` of each event; default the name of this machine'),
  indexerAcknowledgement: z
    .boolean()
    .default(false)
    .describe('Wait until Splunk has indexed a batch; the token must have indexer acknowledgement enabled'),
  channel: text(guid, 'a GUID such as 0aeeac95-ac74-4aa9-b30d-6c4c0ac581ba')
    .optional()
    .describe('Channel of acknowledgements; default a random one for each start'),
  tls: tlsSettings.optional(),
  proxy: proxySettings.optional().describe('Proxy of this sink in place of the general one; `none` connects directly'),
});

export type SplunkHecSettings = z.output<typeof splunkHecSettings>;

/**
 * With acknowledgements the order of requests does not matter: a batch is delivered when all are indexed. Without, the first failed request
 * ends the batch, and the requests before it are delivered.
 */
export function maxRequests({ indexerAcknowledgement }: SplunkHecSettings): number {
  return indexerAcknowledgement ? 8 : 1;
}

export interface Metadata {
  readonly host: string;
  readonly source: string;
  readonly sourcetype: string;
  readonly index?: string;
}

const ledgerSourcetype = 'dpas:ledger';

/** The metadata for each source, cached. */
export function metadataOf(settings: SplunkHecSettings): (message: Pick<Message, 'source' | 'isLedger'>) => Metadata {
  const made = new Map<string, Metadata>();
  const host = settings.host ?? hostname();
  const { sourcetype, index } = settings;
  return ({ source, isLedger }) => {
    const key = isLedger ? `ledger ${source}` : source;
    const filled = (template: string): string => template.replaceAll('{source}', source);
    const metadata = made.get(key) ?? {
      host,
      source: filled(settings.source),
      sourcetype: isLedger ? ledgerSourcetype : sourcetype,
      ...(index === undefined ? {} : { index: filled(index) }),
    };
    made.set(key, metadata);
    return metadata;
  };
}

/** The address without the path of an endpoint, which users often copy with it. */
export function baseOf({ url }: SplunkHecSettings): string {
  return url.replace(/\/services\/collector(\/.*)?$/, '');
}
