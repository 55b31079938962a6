/**
 * Splits messages into requests to the HTTP Event Collector: events, each a JSON object with its
 * time and metadata, or lines, where all lines of a request share their metadata. Pure.
 */
import type { Message } from '../../model/sink.ts';
import type { Metadata } from './settings.ts';

/**
 * Bytes of a request before compression: accepted by Splunk Cloud and every version of Splunk
 * Enterprise.
 */
const maxRequestBytes = 1_000_000;

export interface HecRequest {
  readonly messages: readonly Message[];
  readonly body: Buffer;
  /** The query string after the path of the endpoint. */
  readonly query: string;
}

const openBrace = 0x7b;
const lineBreak = Buffer.from('\n');

/**
 * @param kind   `event` for JSON, `raw` for lines
 * @param first  the seq of each message that must begin a request
 */
export function requestsOf(
  kind: 'event' | 'raw',
  messages: readonly Message[],
  metadataOf: (message: Pick<Message, 'source' | 'isLedger'>) => Metadata,
  first: ReadonlySet<number>,
): HecRequest[] {
  const requests: HecRequest[] = [];
  let held: Message[] = [];
  let chunks: Buffer[] = [];
  let bytes = 0;
  let query = '';
  const close = (): void => {
    if (held.length > 0) requests.push({ messages: held, body: Buffer.concat(chunks), query });
    [held, chunks, bytes] = [[], [], 0];
  };
  for (const message of messages) {
    const metadata = metadataOf(message);
    const own = kind === 'event' ? eventOf(message, metadata) : [bytesOf(message), lineBreak];
    const length = own.reduce((sum, chunk) => sum + chunk.length, 0);
    const ownQuery = kind === 'event' ? '' : queryOf(metadata);
    if (bytes + length > maxRequestBytes || first.has(message.seq) || ownQuery !== query) close();
    query = ownQuery;
    chunks.push(...own);
    held.push(message);
    bytes += length;
  }
  close();
  return requests;
}

/**
 * Wraps an event in the HEC envelope. A message that is not a JSON object is sent as a string,
 * because HEC rejects null and "".
 */
function eventOf(message: Message, metadata: Metadata): Buffer[] {
  const { time, uid, number } = message;
  const head = `{"time":${(time / 1e6).toFixed(6)},${JSON.stringify(metadata).slice(1, -1)},"event":`;
  const bytes = bytesOf(message);
  const event = bytes[0] === openBrace ? bytes : Buffer.from(JSON.stringify(bytes.toString('utf8')));
  return [Buffer.from(head), event, Buffer.from(`,"fields":${JSON.stringify({ id: uid, number })}}`)];
}

function bytesOf({ bytes }: Message): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function queryOf(metadata: Metadata): string {
  return `?${new URLSearchParams({ ...metadata }).toString()}`;
}
