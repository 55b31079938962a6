/**
 * What the answers of `_bulk` mean (docs/guarantees.md, "Elasticsearch"). HTTP 200 says nothing about items: each has its own status. Nothing
 * becomes a rejection for a reason that lies outside the document. Pure.
 */
import { quote } from '../../quote.ts';

/** One item of the answer; what is missing was not said. */
export interface Item {
  readonly _id?: string;
  readonly status?: number;
  /** `used`: the failure store has it, and the stream does not. */
  readonly failure_store?: string;
  readonly error?: ItemError;
}

/** What is no text is left out. */
export interface ItemError {
  readonly type?: string;
  readonly reason?: string;
  readonly caused_by?: ItemError;
}

/** An object, or nothing that is in one. */
export function membersOf(given: unknown): Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null && !Array.isArray(given) ? (given as Readonly<Record<string, unknown>>) : {};
}

/** One item of the answer to `_bulk`. */
export function itemFrom(given: unknown): Item {
  const { _id, status, failure_store, error } = membersOf(given);
  // A mere text may quote the document, as a reason does.
  const said = error === undefined ? undefined : errorFrom(typeof error === 'string' ? { reason: error } : error);
  return {
    ...(typeof _id === 'string' && { _id }),
    ...(typeof status === 'number' && { status }),
    ...(typeof failure_store === 'string' && { failure_store }),
    ...(said !== undefined && { error: said }),
  };
}

/** An error in any of the forms that Elasticsearch gives it; undefined for what is none. */
export function errorFrom(given: unknown): ItemError | undefined {
  if (typeof given === 'string') return errorFrom({ type: given });
  if (typeof given !== 'object' || given === null) return undefined;
  const { type, reason, caused_by } = membersOf(given);
  const cause = errorFrom(caused_by);
  return {
    // What is decided by must stay what it is, whatever the secret.
    ...(typeof type === 'string' && {
      type: badDocument.has(type) || aboutServer.has(type) || deciding.has(type) ? type : quote(type, 100),
    }),
    ...(typeof reason === 'string' && { reason: quote(reason, 1_000) }),
    ...(cause !== undefined && { caused_by: cause }),
  };
}

/**
 * `duplicate`: the uid is there already. `failure_store`: the server kept the document in the failure store. `rejected`: the document is at fault.
 * `retryable`: later. `blocked`: a person must act. `unexpected`: the answer cannot be understood.
 */
type ItemResult = 'delivered' | 'duplicate' | 'failure_store' | 'rejected' | 'retryable' | 'blocked' | 'unexpected';

const badDocument: ReadonlySet<string> = new Set([
  'document_parsing_exception',
  'x_content_parse_exception',
  'x_content_e_o_f_exception',
  'mapper_parsing_exception',
  'strict_dynamic_mapping_exception',
  // A value that Lucene cannot hold, in a field that a template of somebody else has mapped; said as the cause of an illegal argument.
  'max_bytes_length_exceeded_exception',
]);

/** Types that are neither and yet decide. */
const deciding: ReadonlySet<string> = new Set(['version_conflict_engine_exception', 'illegal_argument_exception']);

export function judge({ status, failure_store, error }: Item): ItemResult {
  if (status === undefined) return 'unexpected';
  if (status === 201) return failure_store === 'used' ? 'failure_store' : 'delivered';
  if (status < 400) return 'unexpected';
  if (status === 409 && error?.type === 'version_conflict_engine_exception') return 'duplicate';
  if (status === 429 || status >= 500) return 'retryable';
  if (status === 400 && isBadDocument(error)) return 'rejected';
  return 'blocked';
}

function isBadDocument(error: ItemError | undefined): boolean {
  return badDocument.has(error?.type ?? '') || badDocument.has(error?.caused_by?.type ?? '');
}

/** The server's words, with those of the cause behind them. They may quote the document: they are for the dead letter alone. */
export function messageOfItem({ status, error }: Item): string {
  const message: string[] = [];
  for (let at = error, depth = 0; at !== undefined && depth < 4; at = at.caused_by, depth += 1) {
    message.push([at.type, at.reason].filter((word) => word !== undefined).join(': '));
  }
  return message.length > 0 ? message.join('; ') : `answered with ${status ?? 'nothing'}`;
}

/** Types of error whose reason speaks of the server, never of a document. */
const aboutServer: ReadonlySet<string> = new Set([
  'circuit_breaking_exception',
  'cluster_block_exception',
  'es_rejected_execution_exception',
  'index_closed_exception',
  'index_not_found_exception',
  'media_type_header_exception',
  'security_exception',
  'unavailable_shards_exception',
]);

/** Words that the log may hold: the type, and the reason only where it cannot quote a document. */
export function plainText(error: ItemError | undefined): string {
  const { type = 'no reason', reason = '', caused_by } = error ?? {};
  const isPlain =
    aboutServer.has(type) || (type === 'illegal_argument_exception' && caused_by === undefined && reason.startsWith('pipeline '));
  return isPlain && reason !== '' ? `${type}: ${reason}` : type;
}

/**
 * A request that was answered as a whole with something else than 200. `rejected`: too large, or one of its messages is at fault: halve it.
 * `unknown`: some of it may have been taken.
 */
export type RequestResult = 'rejected' | 'retryable' | 'blocked' | 'unknown';

/**
 * @param alone  of a batch of one, how often in a row a request of one was refused before: it says nothing about the record then, but of a client
 *               or a server of the wrong line; undefined for a larger batch
 */
export function judgeRequest(status: number, error: ItemError | undefined, alone: number | undefined): RequestResult {
  if (status === 413) return 'rejected';
  if (status === 400 && error?.type !== 'media_type_header_exception')
    return alone === undefined ? 'rejected' : alone === 0 ? 'retryable' : 'blocked';
  if (status === 429) return 'retryable';
  if (status === 408 || status >= 500 || status < 300) return 'unknown';
  return 'blocked';
}
