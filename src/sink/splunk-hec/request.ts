/** Splits messages into requests. Each message, also a line, is an event with its own time and metadata: Splunk guesses neither. Pure. */
import type { Message } from '../../model/sink.ts';
import type { Metadata } from './settings.ts';

/** Bytes of a request before compression: accepted by Splunk Cloud and every version of Splunk Enterprise. */
const maxRequestBytes = 1_000_000;

export interface HecRequest {
  readonly messages: readonly Message[];
  readonly body: Buffer;
}

const openBrace = 0x7b;

/** @param first  the seq of each message that must begin a request */
export function requestsOf(
  messages: readonly Message[],
  metadataOf: (message: Pick<Message, 'source' | 'isLedger'>) => Metadata,
  first: ReadonlySet<number>,
): HecRequest[] {
  const requests: HecRequest[] = [];
  let held: Message[] = [];
  let chunks: Buffer[] = [];
  let bytes = 0;
  const close = (): void => {
    if (held.length > 0) requests.push({ messages: held, body: Buffer.concat(chunks) });
    [held, chunks, bytes] = [[], [], 0];
  };
  for (const message of messages) {
    const own = eventOf(message, metadataOf(message));
    const length = own.reduce((sum, chunk) => sum + chunk.length, 0);
    if (bytes + length > maxRequestBytes || first.has(message.seq)) close();
    chunks.push(...own);
    held.push(message);
    bytes += length;
  }
  close();
  return requests;
}

/** Wraps an event in the HEC envelope. A message that is not a JSON object is sent as a string, because HEC rejects null and "". */
function eventOf(message: Message, metadata: Metadata): Buffer[] {
  const { time, uid, number } = message;
  const head = `{"time":${(time / 1e6).toFixed(6)},${JSON.stringify(metadata).slice(1, -1)},"event":`;
  const bytes = Buffer.from(message.bytes.buffer, message.bytes.byteOffset, message.bytes.length);
  const event = bytes[0] === openBrace ? bytes : Buffer.from(JSON.stringify(bytes.toString('utf8')));
  return [Buffer.from(head), event, Buffer.from(`,"fields":${JSON.stringify({ id: uid, number })}}`)];
}
