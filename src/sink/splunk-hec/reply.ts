/**
 * What an answer of the HTTP Event Collector means for what was sent: its code where it gives one (codes 0 to 22 as in gjanders/SplunkAdmins
 * `splunkadmins_hec_reply_code_lookup.csv`, 23 to 27 of newer servers), else the status of HTTP. Pure.
 */
import { quote, sizeAndType } from '../../quote.ts';

/**
 * - `delivered`: in Splunk's input queue
 * - `crowded`: delivered, and the queue is nearly full
 * - `retryable`: nothing was taken
 * - `blocked`: nothing was taken, and a person must act
 * - `rejected`: for the data
 * - `unknown`: part may have been taken
 */
type Meaning = 'delivered' | 'crowded' | 'retryable' | 'blocked' | 'rejected' | 'unknown';

export interface Reply {
  readonly meaning: Meaning;
  readonly status: number;
  readonly code: number | undefined;
  /** Status, code and Splunk's own text, for a message. */
  readonly message: string;
  readonly ackId: number | undefined;
  /** The place of the event in the request at which Splunk stopped, from 0: what stands before it was taken. */
  readonly stoppedAt: number | undefined;
}

const meanings: ReadonlyMap<number, Meaning> = new Map([
  [0, 'delivered'], // success
  [1, 'blocked'], // token disabled
  [2, 'blocked'], // token is required
  [3, 'blocked'], // invalid authorization
  [4, 'blocked'], // invalid token
  [5, 'unknown'], // no data: nobody sends an empty request
  [6, 'rejected'], // invalid data format
  [7, 'blocked'], // incorrect index
  [8, 'unknown'], // internal server error
  [9, 'unknown'], // server is busy
  [10, 'blocked'], // data channel is missing
  [11, 'blocked'], // invalid data channel
  [12, 'rejected'], // event field is required
  [13, 'rejected'], // event field cannot be blank
  [14, 'blocked'], // acknowledgement is disabled
  [15, 'rejected'], // error in handling indexed fields
  [16, 'blocked'], // query string authorization is not enabled
  [21, 'blocked'], // invalid token, by newer servers
  [22, 'blocked'], // token disabled, by newer servers
  [23, 'unknown'], // shutting down
  [24, 'crowded'], // queue nearly full
  [25, 'crowded'], // acknowledgements nearly full
  [26, 'retryable'], // queue full
  [27, 'retryable'], // acknowledgements full
]);

/** The setting that an answer is about which blocks the sink. */
export function settingOf({
  status,
  code,
}: Pick<Reply, 'status' | 'code'>): 'token' | 'index' | 'indexerAcknowledgement' | 'channel' | 'url' {
  if (code === 7) return 'index';
  if (code === 10 || code === 14) return 'indexerAcknowledgement';
  if (code === 11) return 'channel';
  const isKnown = code !== undefined && meanings.has(code);
  return isKnown || status === 401 || status === 403 ? 'token' : 'url';
}

/** An answer of HTTP. */
interface Answer {
  readonly status: number;
  /** JSON where Splunk itself speaks. */
  readonly body: string;
  readonly mediaType?: string | readonly string[] | undefined;
}

/** Reads the answer to data. The text of a success is not quoted: only a server that returns the request has anything to say there. */
export function readReply({ status, body, mediaType }: Answer): Reply {
  const { code, text, ackId, stoppedAt } = partsOf(body);
  const isSuccess = status >= 200 && status <= 299;
  const said = isSuccess ? `(${sizeAndType(body, mediaType)})` : quote(text ?? body.trim(), 200);
  const message = [String(status), ...(code === undefined ? [] : [`code ${code}`]), ...(said === '' ? [] : [said])].join(' ');
  return { meaning: meaningOf(status, code), status, code, message, ackId, stoppedAt };
}

function meaningOf(status: number, code: number | undefined): Meaning {
  if (status === 413) return 'rejected';
  const meaning = code === undefined ? undefined : meanings.get(code);
  const isSuccess = meaning === 'delivered' || meaning === 'crowded';
  // A success that is not 200, or 200 with the code of something else, is an answer that nobody understands.
  if (status >= 200 && status <= 299) return isSuccess ? meaning : 'unknown';
  if (meaning !== undefined && !isSuccess) return meaning;
  if (status === 429) return 'retryable';
  // Another path, another server, a right that is missing: the fault lies outside of the records.
  return status >= 300 && status <= 499 && status !== 408 ? 'blocked' : 'unknown';
}

/** The acknowledgements that are `true` in `{"acks": {"0": true, "1": false}}`; undefined without an `acks` object. */
export function readAcknowledgements(body: string): ReadonlySet<number> | undefined {
  const acks = memberOf(parsed(body), 'acks');
  if (typeof acks !== 'object' || acks === null) return undefined;
  return new Set(Object.entries(acks).flatMap(([id, isIndexed]) => (isIndexed === true ? [Number(id)] : [])));
}

interface Parts {
  readonly code: number | undefined;
  readonly text: string | undefined;
  readonly ackId: number | undefined;
  readonly stoppedAt: number | undefined;
}

function partsOf(body: string): Parts {
  const value = parsed(body);
  const count = (key: string): number | undefined => {
    const given = memberOf(value, key);
    return typeof given === 'number' && Number.isSafeInteger(given) && given >= 0 ? given : undefined;
  };
  const text = memberOf(value, 'text');
  return {
    code: count('code'),
    text: typeof text === 'string' ? text : undefined,
    ackId: count('ackId'),
    stoppedAt: count('invalid-event-number'),
  };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // A proxy or another server speaks: its status says what there is to say.
    return undefined;
  }
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
}
