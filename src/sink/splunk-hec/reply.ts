/**
 * Interprets a response of the HTTP Event Collector: by its code if it has one (0 to 22 as in `splunkadmins_hec_reply_code_lookup.csv` of
 * gjanders/SplunkAdmins, 23 to 27 of newer servers), else by its HTTP status. Pure.
 */
import { objectIn } from '../../record/json-object.ts';
import { quote, sizeAndType } from '../../errors/quote.ts';

/**
 * - `delivered`: in Splunk's input queue
 * - `crowded`: delivered, and the queue is nearly full
 * - `retryable`: nothing was accepted
 * - `blocked`: nothing was accepted, and an operator must act
 * - `rejected`: the data is invalid
 * - `refused`: nothing was accepted, because of the data or of the receiver, for example by a firewall in front of it
 * - `unknown`: a part may have been accepted
 */
type Meaning = 'delivered' | 'crowded' | 'retryable' | 'blocked' | 'rejected' | 'refused' | 'unknown';

export interface Reply {
  readonly meaning: Meaning;
  readonly status: number;
  readonly code: number | undefined;
  /** Status, code and the text of Splunk. */
  readonly message: string;
  readonly ackId: number | undefined;
  /** Index, from 0, of the event at which Splunk stopped. It has accepted the earlier events. */
  readonly stoppedAt: number | undefined;
}

const meanings: ReadonlyMap<number, Meaning> = new Map([
  [0, 'delivered'], // success
  [1, 'blocked'], // token disabled
  [2, 'blocked'], // token is required
  [3, 'blocked'], // invalid authorization
  [4, 'blocked'], // invalid token
  [5, 'unknown'], // no data: only for an empty request, which delivery never sends
  [6, 'rejected'], // invalid data format
  [7, 'refused'], // incorrect index: of one source, or of all
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

/** The setting to which a response relates, for a blocked sink. */
export function settingOf({ code }: Pick<Reply, 'code'>): 'token' | 'index' | 'indexerAcknowledgement' | 'channel' | 'url' {
  if (code === 7) return 'index';
  if (code === 10 || code === 14) return 'indexerAcknowledgement';
  if (code === 11) return 'channel';
  return code !== undefined && meanings.has(code) ? 'token' : 'url';
}

interface Answer {
  readonly status: number;
  /** JSON if the response is from Splunk itself. */
  readonly body: string;
  readonly mediaType?: string | readonly string[] | undefined;
}

/** Reads a response. Does not quote the text of a success, because it may echo the request. */
export function readReply({ status, body, mediaType }: Answer): Reply {
  const { code, text, ackId, stoppedAt } = partsOf(body);
  const isSuccess = status >= 200 && status <= 299;
  const detail = isSuccess ? `(${sizeAndType(body, mediaType)})` : quote(text ?? body.trim(), 200);
  const message = [String(status), ...(code === undefined ? [] : [`code ${code}`]), ...(detail === '' ? [] : [detail])].join(' ');
  return { meaning: meaningOf(status, code), status, code, message, ackId, stoppedAt };
}

function meaningOf(status: number, code: number | undefined): Meaning {
  if (status === 413) return 'rejected';
  const meaning = code === undefined ? undefined : meanings.get(code);
  const isSuccess = meaning === 'delivered' || meaning === 'crowded';
  // A 2xx status without the code of a success has no defined meaning.
  if (status >= 200 && status <= 299) return isSuccess ? meaning : 'unknown';
  if (meaning !== undefined && !isSuccess) return meaning;
  if (status === 429) return 'retryable';
  return status >= 300 && status <= 499 && status !== 408 ? 'refused' : 'unknown';
}

/** The acknowledgements that are `true` in `{"acks": {"0": true, "1": false}}`; undefined without an `acks` object. */
export function readAcknowledgements(body: string): ReadonlySet<number> | undefined {
  const { acks } = objectIn(body);
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
  // A proxy or another server may send any text: its status decides then.
  const { code, text, ackId, 'invalid-event-number': stoppedAt } = objectIn(body);
  const count = (given: unknown): number | undefined =>
    typeof given === 'number' && Number.isSafeInteger(given) && given >= 0 ? given : undefined;
  return {
    code: count(code),
    text: typeof text === 'string' ? text : undefined,
    ackId: count(ackId),
    stoppedAt: count(stoppedAt),
  };
}
