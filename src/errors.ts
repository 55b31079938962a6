/**
 * The one error type of the forwarder. Programs match on `code`, which is stable; the words may improve (docs/operations.md has a heading
 * for each code). The other side's own words come last in the message; a secret never stands in one: text of the other side passes `quote`, and
 * the finished message is searched once more.
 */
import { quote } from './quote.ts';
import { withoutSecrets } from './secrets.ts';

/** Every stable error code. A new one gets a heading in docs/operations.md. */
export type ErrorCode =
  // configuration and use
  | 'usage' // the command line does not fit
  | 'config_invalid' // one or more settings are wrong; `problems` lists each
  | 'secret_missing' // a file or variable that a setting names is not there, or empty
  // the source and its token endpoint
  | 'source_unreachable' // name, connection, reset, timeout: no answer
  | 'source_busy' // 429, 403 with Retry-After, 5xx: asked to come back
  | 'source_unauthorized' // 401 with a fresh token: the key or the token is not accepted
  | 'source_forbidden' // 403 without Retry-After: the right is missing
  | 'tls_untrusted' // a certificate that is not trusted, for source or token endpoint
  | 'proxy_refused' // the proxy itself refuses (407, 403 on CONNECT)
  | 'token_refused' // the token endpoint refuses the credentials
  | 'token_unreachable' // the token endpoint does not answer, or not with a token
  | 'page_malformed' // not JSON, cut, too large, without `data`
  | 'page_refused' // 400: the request does not suit the service (a page size above its maximum)
  | 'page_not_found' // 404: past the last page, or a wrong base URL
  // the state
  | 'state_too_new' // written by a newer release
  | 'state_locked' // another running process owns it
  | 'state_unusable' // not a directory, not writable, not a state
  | 'state_corrupt' // SQLite says so, or the chain is broken
  | 'state_missing' // --expect-state and there is none
  | 'journal_full' // the quota is reached
  | 'internal_error' // an assertion of docs/guarantees.md does not hold: the process ends
  // sinks
  | 'sink_unavailable' // nothing of these items was taken; later
  | 'sink_refused' // the request as a whole was refused, no item named
  | 'sink_outcome_unknown' // the outcome is not known
  | 'sink_blocked' // cannot go on before a person acts
  | 'file_truncated' // a file of ours is shorter than what it had taken
  | 'admin_listen_failed' // the admin server cannot listen
  | 'admin_busy' // the admin server has too much to answer at once
  | 'admin_unreachable' // a command cannot ask the admin server that --admin names
  | 'aborted';

interface WaybillErrorOptions {
  readonly cause?: unknown;
  /** How long the other side asks us to wait, in ms. */
  readonly retryAfterMs?: number | undefined;
  /** What was sent was too much for the time that it may take. */
  readonly isLate?: boolean | undefined;
  /** The receiver has no room for the request (429): a smaller one may fit. */
  readonly isCrowded?: boolean | undefined;
  /** For `config_invalid`: every problem, one line each. */
  readonly problems?: readonly string[];
}

export class WaybillError extends Error {
  override readonly name = 'WaybillError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly isLate: boolean;
  readonly isCrowded: boolean;
  readonly problems: readonly string[];

  constructor(code: ErrorCode, message: string, options: WaybillErrorOptions = {}) {
    super(withoutSecrets(message, false), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.isLate = options.isLate ?? false;
    this.isCrowded = options.isCrowded ?? false;
    this.problems = (options.problems ?? []).map((line) => withoutSecrets(line, false));
  }
}

/** Characters of a message of somebody else's error. */
const foreignMax = 1_000;

/** The words of anything that was thrown, with the words of its causes behind it, each once. What is no error of ours is quoted: it may repeat what a server said. */
export function messageOf(thrown: unknown): string {
  const message: string[] = [];
  let at: unknown = thrown;
  for (let depth = 0; at !== undefined && at !== null && depth < 8; depth += 1) {
    const word = wordOf(at);
    if (word && !message.some((w) => w.includes(word))) message.push(word);
    at = at instanceof Error ? at.cause : undefined;
  }
  return message.join(': ');
}

/** @returns the message of one error, without those of its causes */
export function wordOf(thrown: unknown): string {
  if (thrown instanceof WaybillError) return thrown.message;
  if (thrown instanceof Error) return quote(thrown.message || thrown.name, foreignMax);
  return quote(typeof thrown === 'string' ? thrown : JSON.stringify(thrown), foreignMax);
}

/** Whether nothing more may be collected, sent or acknowledged: the process must end. */
export function isFinal(thrown: unknown): boolean {
  return thrown instanceof WaybillError && ['internal_error', 'state_corrupt', 'state_unusable'].includes(thrown.code);
}

/** The code of a WaybillError, else undefined. */
export function codeOf(thrown: unknown): ErrorCode | undefined {
  return thrown instanceof WaybillError ? thrown.code : undefined;
}
