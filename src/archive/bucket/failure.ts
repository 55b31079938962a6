/** Classifies a failed request to a bucket: retry it, or an operator must act. */
import { S3ServiceException } from '@aws-sdk/client-s3';
import type { Connection } from '../../connect/connection.ts';
import { messageOf, WaybillError } from '../../errors/errors.ts';
import { quote } from '../../errors/quote.ts';
import { ForeignAnswerError } from './client.ts';

interface Failure {
  readonly error: WaybillError;
  /** The same request may succeed later, or its response was lost. */
  readonly isTransient: boolean;
}

/** Errors that are transient whatever their status. */
const transientErrors: ReadonlySet<string> = new Set([
  'ConditionalRequestConflict',
  'OperationAborted',
  'RequestTimeout',
  // The SDK corrects its clock by the response, and the next request has the right time.
  'RequestTimeTooSkewed',
  'SlowDown',
]);

/** The remedy for an error. */
const advice: Readonly<Record<string, string>> = {
  AccessDenied: 'the credentials need s3:ListBucket, s3:GetObject, s3:PutObject and, with objectLock, s3:PutObjectRetention',
  AuthorizationHeaderMalformed: 'see region',
  InvalidAccessKeyId: 'see accessKeyId',
  NoSuchBucket: 'see bucket',
  NotImplemented: 'the server lacks conditional writes or Object Lock',
  PermanentRedirect: 'see region and endpoint',
  RequestTimeTooSkewed: 'set the clock of this machine',
  SignatureDoesNotMatch: 'see secretAccessKey',
};

/** @param action  `cannot write "s3://…" (sinks.archive.s3)` */
export function failureOf(thrown: unknown, action: string, connection: Connection): Failure {
  if (!(thrown instanceof S3ServiceException)) return unanswered(thrown, action, connection);
  const status = thrown.$metadata.httpStatusCode ?? 0;
  const detail = `${status} ${thrown.name}: ${quote(thrown.message, 300)}`;
  const isTransient = isTransientStatus(status) || transientErrors.has(thrown.name);
  const hint = advice[thrown.name];
  const message = `${action}: ${hint === undefined ? '' : `${hint}: `}${detail}`;
  return { isTransient, error: new WaybillError(isTransient ? 'sink_unavailable' : 'sink_blocked', message, { cause: thrown }) };
}

function isTransientStatus(status: number): boolean {
  return (status >= 500 && status !== 501) || status === 429;
}

/** The status of a response that is not of S3. If the SDK cannot read it, its own error text is for programmers. */
function foreignStatus(thrown: unknown): number | undefined {
  if (thrown instanceof ForeignAnswerError) return thrown.status;
  const response = thrown instanceof Error && '$response' in thrown ? thrown.$response : undefined;
  return (response as { readonly statusCode?: number } | undefined)?.statusCode;
}

/** The status of a response that is an error; undefined without a response. */
export function statusOf(thrown: unknown): number | undefined {
  return thrown instanceof S3ServiceException ? thrown.$metadata.httpStatusCode : undefined;
}

function unanswered(thrown: unknown, action: string, connection: Connection): Failure {
  // The default credentials of the SDK come from files, variables or another service.
  const isCredentials = thrown instanceof Error && /Credential|TokenProvider/.test(thrown.name);
  if (isCredentials)
    return {
      isTransient: false,
      error: new WaybillError('sink_blocked', `${action}: no credentials: set accessKeyId and secretAccessKey: ${messageOf(thrown)}`),
    };
  const foreign = foreignStatus(thrown);
  if (foreign !== undefined) {
    // A proxy before the server also sends such responses while the server does not respond.
    const isTransient = foreign < 400 || isTransientStatus(foreign);
    const message = `${action}: the response is not one of S3 (status ${foreign}); see endpoint`;
    return { isTransient, error: new WaybillError(isTransient ? 'sink_unavailable' : 'sink_blocked', message, { cause: thrown }) };
  }
  const known = connection.translate(thrown);
  const isTransient = known.code === 'source_unreachable';
  const error = new WaybillError(isTransient ? 'sink_unavailable' : 'sink_blocked', `${action}: ${messageOf(known)}`, { cause: thrown });
  return { isTransient, error };
}
