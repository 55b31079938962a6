/** Interprets responses of `_bulk` (docs/guarantees.md, "Elasticsearch"). Rejects a message only for a reason in its document. Pure. */
import { membersOf } from '../../record/json-object.ts';
import { quote } from '../../errors/quote.ts';

/** One item of the response; a member is undefined if the item lacks it. */
export interface Item {
  readonly _id?: string;
  readonly status?: number;
  /** `noop`: a pipeline dropped the document. */
  readonly result?: string;
  /** `used`: the document is in the failure store, not in the stream. */
  readonly failure_store?: string;
  readonly error?: ItemError;
}

/** An error, without members of an unexpected type. */
export interface ItemError {
  readonly type?: string;
  readonly reason?: string;
  /** The reason is a limit of the index, such as `index.mapping.total_fields.limit`: raising it helps, no other document does. */
  readonly isLimit?: true;
  /** A node or a shard failed: no document is the cause. */
  readonly isOfNode?: true;
  readonly caused_by?: ItemError;
}

export function itemFrom(given: unknown): Item {
  const { _id, status, result, failure_store, error } = membersOf(given);
  // Plain text may quote the document, like a reason.
  const itemError = error === undefined ? undefined : errorFrom(typeof error === 'string' ? { reason: error } : error);
  return {
    ...(typeof _id === 'string' && { _id }),
    ...(typeof status === 'number' && { status }),
    ...(result === 'noop' && { result }),
    ...(typeof failure_store === 'string' && { failure_store }),
    ...(itemError !== undefined && { error: itemError }),
  };
}

/** An error in any of the forms of Elasticsearch; undefined for another value. */
export function errorFrom(given: unknown): ItemError | undefined {
  if (typeof given === 'string') return errorFrom({ type: given });
  if (typeof given !== 'object' || given === null) return undefined;
  const { type, reason, caused_by } = membersOf(given);
  const cause = errorFrom(caused_by);
  return {
    // `itemResultOf` compares these types, so redaction must not change them.
    ...(typeof type === 'string' && {
      type: [badDocument, aboutServer, deciding].some((each) => each.has(type)) ? type : quote(type, 100),
    }),
    ...(typeof type === 'string' && ofNode.test(type) && { isOfNode: true }),
    ...(typeof reason === 'string' && limitReached.test(reason) && { isLimit: true }),
    ...(typeof reason === 'string' && { reason: quote(reason, 1_000) }),
    ...(cause !== undefined && { caused_by: cause }),
  };
}

/**
 * `duplicate`: the `_id` exists. `dropped`: by a pipeline. `failure_store`: the document is there. `rejected`: it is invalid. `retryable`:
 * an overload or a failure of a node, which passes. `suspect`: the document or the target, for example its pipeline or a privilege, is the
 * cause; the fate of the other documents shows which. `unexpected`: the response has an unknown form.
 */
type ItemResult = 'delivered' | 'duplicate' | 'dropped' | 'failure_store' | 'rejected' | 'retryable' | 'suspect' | 'unexpected';

const ofNode = /(?:^|_)(?:node|transport|shard|primary|translog|closed|timeout|i_o|file_system)_/;
const limitReached = /(?:^|: )Limit of (?:total fields|mapping depth|nested fields|field name length) \[/;

const badDocument: ReadonlySet<string> = new Set([
  'document_parsing_exception',
  'x_content_parse_exception',
  'x_content_e_o_f_exception',
  'mapper_parsing_exception',
  'strict_dynamic_mapping_exception',
  // A foreign template maps a field so that Lucene cannot store the value. Appears as the cause of an illegal argument.
  'max_bytes_length_exceeded_exception',
]);

/** Other error types that decisions depend on: redaction must not change them. */
const deciding: ReadonlySet<string> = new Set(['version_conflict_engine_exception', 'illegal_argument_exception']);

export function itemResultOf({ status, result, failure_store, error }: Item): ItemResult {
  const { type = '' } = error ?? {};
  if (status === undefined) return 'unexpected';
  if (status === 201) return failure_store === 'used' ? 'failure_store' : 'delivered';
  if (status === 200 && result === 'noop') return 'dropped';
  if (status === 409 && type === 'version_conflict_engine_exception') return 'duplicate';
  if (status === 429 || (status > 500 && status < 600) || (status === 500 && (error?.isOfNode ?? aboutServer.has(type))))
    return 'retryable';
  // mutant: field-limit
  if (error?.isLimit ?? error?.caused_by?.isLimit) return 'suspect';
  return status === 400 && isBadDocument(error) ? 'rejected' : 'suspect';
}

function isBadDocument(error: ItemError | undefined): boolean {
  return badDocument.has(error?.type ?? '') || badDocument.has(error?.caused_by?.type ?? '');
}

/** The server's message with its causes. May quote the document, so only the dead letter stores it. */
export function messageOfItem({ status, error }: Item): string {
  const causes: string[] = [];
  for (let at = error, depth = 0; at !== undefined && depth < 4; at = at.caused_by, depth += 1) {
    causes.push([at.type, at.reason].filter((word) => word !== undefined).join(': '));
  }
  return causes.length > 0 ? causes.join('; ') : `answered with ${status ?? 'nothing'}`;
}

/** Error types whose reason is about the server, never about a document. */
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

/** Text that may be logged: the type, and the reason only if it cannot quote a document. */
export function plainText(error: ItemError | undefined): string {
  const { type = 'no reason', reason = '', caused_by } = error ?? {};
  const isPlain =
    aboutServer.has(type) || (type === 'illegal_argument_exception' && caused_by === undefined && reason.startsWith('pipeline '));
  if (caused_by?.isLimit) return plainText(caused_by);
  return (isPlain || error?.isLimit === true) && reason !== '' ? `${type}: ${reason}` : type;
}

/** For a status other than 200. `rejected`: too large, or a message is invalid: halve it. `unknown`: some messages may be stored. */
export type RequestResult = 'rejected' | 'retryable' | 'blocked' | 'unknown';

/** @param isElasticsearch  the server itself answers, not a proxy in front of it, which may dislike the content of a message */
export function requestResultOf(status: number, error: ItemError | undefined, isElasticsearch: boolean): RequestResult {
  if (status === 413) return 'rejected';
  if (status === 400 && error?.type !== 'media_type_header_exception') return 'rejected';
  if (status === 429) return 'retryable';
  if (status === 408 || status >= 500 || status < 300) return 'unknown';
  return status !== 401 && !isElasticsearch ? 'rejected' : 'blocked';
}
