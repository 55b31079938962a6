/**
 * The error type of Waybill. `code` is stable, the message is not. The text of the other side comes last in the message and passes `quote`;
 * then the complete message is searched for secrets once more.
 */
import { quote } from './quote.ts';
import { withoutSecrets } from './secrets.ts';

/** Every stable error code. A new one gets a heading in docs/operations.md. */
export type ErrorCode =
  // configuration and use
  | 'usage' // invalid command line or request
  | 'config_invalid' // invalid settings; `problems` lists each
  | 'secret_missing' // the file or variable of a setting is missing or empty
  // the source and its token endpoint
  | 'source_unreachable' // no response: name resolution, connection, reset, timeout
  | 'source_busy' // 429, 403 with Retry-After, 5xx: retry later
  | 'source_unauthorized' // 401 with a fresh token: the key or the token is rejected
  | 'source_forbidden' // 403 without Retry-After: the right is missing
  | 'tls_untrusted' // untrusted certificate of the source or its token endpoint
  | 'proxy_refused' // the proxy refuses the tunnel (407, 403 on CONNECT)
  | 'token_refused' // the token endpoint refuses the credentials
  | 'token_unreachable' // no response of the token endpoint, or one without a token
  | 'page_malformed' // not JSON, cut, too large, without `data`
  | 'page_refused' // 400: the service rejects the request (a page size above its maximum)
  | 'page_not_found' // 404: past the last page, or a wrong base URL
  // the state
  | 'state_too_new' // written by a newer release
  | 'state_locked' // another running process owns it
  | 'state_unusable' // not a directory, not writable, not a state
  | 'state_corrupt' // reported by SQLite, or the hash chain is broken
  | 'state_missing' // a command reads a state, or --require-state requires one, and there is none
  | 'state_moved' // a fleet has its journal, or gets it
  | 'backup_failed' // the copy of the state could not be written or verified
  | 'journal_full' // `journal.maxSize` is reached, or the disk is full
  | 'database_refused' // the database of a fleet lacks a table or a right
  | 'database_unreachable' // no answer of the database of a fleet: what was sent is sent again
  | 'database_rolled_back' // the database of a fleet has lost commits that it had acknowledged
  | 'lease_lost' // another member of the fleet has taken the shard
  | 'internal_error' // an assertion of docs/testing.md failed: the process exits
  // sinks
  | 'sink_unavailable' // none of these messages was accepted; retry later
  | 'sink_refused' // the whole request was rejected, without naming a message
  | 'sink_outcome_unknown' // the messages may have been accepted
  | 'sink_blocked' // needs an operator
  | 'file_truncated' // a file is shorter than the data delivered to it
  | 'archive_conflict' // another writer created the next checkpoint of an archive
  | 'archive_ahead' // an archive has entries that a restored state does not know
  | 'archive_broken' // an archive cannot be continued: signature, root or numbering is wrong
  | 'admin_listen_failed' // the admin server cannot listen
  | 'admin_busy' // the admin server is overloaded
  | 'admin_unreachable' // a command cannot reach the admin server of --admin
  | 'otlp_export_failed' // the OTLP receiver did not accept metrics or traces
  | 'aborted';

interface WaybillErrorOptions {
  readonly cause?: unknown;
  /** The wait that the other side requests, ms. */
  readonly retryAfterMs?: number | undefined;
  /** The request exceeded its deadline: a smaller one may not. */
  readonly isLate?: boolean | undefined;
  /** The receiver has no capacity for the request (429): a smaller one may fit. */
  readonly isCrowded?: boolean | undefined;
  /** The answer has no body. */
  readonly isEmpty?: boolean;
  /** For `config_invalid`: one line for each problem. */
  readonly problems?: readonly string[];
}

export class WaybillError extends Error {
  override readonly name = 'WaybillError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly isLate: boolean;
  readonly isCrowded: boolean;
  readonly isEmpty: boolean;
  readonly problems: readonly string[];

  constructor(code: ErrorCode, message: string, options: WaybillErrorOptions = {}) {
    super(withoutSecrets(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.isLate = options.isLate ?? false;
    this.isCrowded = options.isCrowded ?? false;
    this.isEmpty = options.isEmpty ?? false;
    this.problems = (options.problems ?? []).map(withoutSecrets);
  }
}

const foreignMax = 1_000;

/** The messages of a thrown value and of its causes, without repetition. A foreign error is quoted: it may contain text of a server. */
export function messageOf(thrown: unknown): string {
  const words: string[] = [];
  let at: unknown = thrown;
  for (let depth = 0; at !== undefined && at !== null && depth < 8; depth += 1) {
    const word = wordOf(at);
    if (word && !words.some((w) => w.includes(word))) words.push(word);
    at = at instanceof Error ? at.cause : undefined;
  }
  return words.join(': ');
}

/** The message of one error, without the messages of its causes. */
export function wordOf(thrown: unknown): string {
  if (thrown instanceof WaybillError) return thrown.message;
  // Its own message is empty when no address of a name connects.
  if (thrown instanceof AggregateError) return [...new Set([thrown.message, ...thrown.errors.map(wordOf)])].filter(Boolean).join(', ');
  if (thrown instanceof Error) return quote(thrown.message || thrown.name, foreignMax);
  return quote(typeof thrown === 'string' ? thrown : JSON.stringify(thrown), foreignMax);
}

/** A fatal error: nothing more may be collected, sent or acknowledged. */
export function isFinal(thrown: unknown): boolean {
  return thrown instanceof WaybillError && ['internal_error', 'state_corrupt', 'state_unusable'].includes(thrown.code);
}

export function codeOf(thrown: unknown): ErrorCode | undefined {
  return thrown instanceof WaybillError ? thrown.code : undefined;
}
