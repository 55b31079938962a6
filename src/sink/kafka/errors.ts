/** Converts errors of the client by their cause, not by `retriable`: after exhausted retries a broker may still be only down. Pure. */
import { WaybillError, type ErrorCode } from '../../errors/errors.ts';
import { quote } from '../../errors/quote.ts';

/** The attempted action, and its setting. */
export interface Attempt {
  readonly id: string;
  /** `send to topic "audit"` */
  readonly what: string;
  /** `topic` */
  readonly setting: string;
}

/** The handling of protocol errors, by their names in Kafka's table of error codes. */
const blocked: Readonly<Record<string, string | undefined>> = {
  SASL_AUTHENTICATION_FAILED: 'sasl',
  UNSUPPORTED_SASL_MECHANISM: 'sasl.mechanism',
  ILLEGAL_SASL_STATE: 'sasl',
  SECURITY_DISABLED: 'sasl',
  TOPIC_AUTHORIZATION_FAILED: undefined,
  GROUP_AUTHORIZATION_FAILED: undefined,
  CLUSTER_AUTHORIZATION_FAILED: undefined,
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'exactlyOnce',
  INVALID_TRANSACTION_TIMEOUT: 'exactlyOnce',
  UNKNOWN_TOPIC_OR_PARTITION: undefined,
  INVALID_TOPIC_EXCEPTION: undefined,
  POLICY_VIOLATION: undefined,
  INVALID_REPLICATION_FACTOR: undefined,
  INVALID_REQUIRED_ACKS: undefined,
  UNSUPPORTED_VERSION: 'brokers',
  UNSUPPORTED_COMPRESSION_TYPE: 'compression',
  UNSUPPORTED_FOR_MESSAGE_FORMAT: 'exactlyOnce',
};

/** The missing privilege: the broker does not name it. */
const rights: Readonly<Record<string, string>> = {
  GROUP_AUTHORIZATION_FAILED: 'Read on groups that begin with "waybill-"',
  CLUSTER_AUTHORIZATION_FAILED: 'Create on the cluster, or on the topic',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'Write on transactional ids that begin with "waybill-"',
};

/** Errors of a message, not of the batch or the server. */
const refused: ReadonlySet<string> = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD']);

const plainer: Readonly<Record<string, string>> = {
  UNKNOWN_TOPIC_OR_PARTITION: 'the topic does not exist: "waybill setup kafka" prints the command that creates it',
  INVALID_PRODUCER_EPOCH: 'another Waybill with the same state has taken over, or the transaction took too long',
  NOT_ENOUGH_REPLICAS: 'fewer replicas are in sync than min.insync.replicas requires',
};

/** The name of the innermost protocol error among an error and its causes. */
export function protocolError(thrown: unknown): string | undefined {
  const types = causesOf(thrown).flatMap(({ type }) => (typeof type === 'string' ? [type] : []));
  return types.at(-1);
}

/** True when an error or one of its causes has this name. */
export function isNamed(thrown: unknown, requested: string): boolean {
  return causesOf(thrown).some(({ name }) => name === requested);
}

/** @param sent  true: a part of a batch may have been sent, so an unknown error becomes `sink_outcome_unknown`, else `sink_unavailable` */
export function translate(thrown: unknown, { id, what, setting }: Attempt, sent: boolean): WaybillError {
  const own = causesOf(thrown).find((cause) => cause instanceof WaybillError);
  if (own instanceof WaybillError) return own;
  const type = protocolError(thrown);
  const failure = (code: ErrorCode, at: string | undefined, message: string): WaybillError =>
    new WaybillError(code, `cannot ${what} for sink "${id}"${at === undefined ? '' : ` (sinks.${id}.${at})`}: ${message}`, {
      cause: bare(thrown),
    });
  // kafkajs throws a TypeError when a connection ends within a response.
  const message = isNamed(thrown, 'TypeError')
    ? `the connection ended before a response was complete (kafkajs: ${messageOfCauses(thrown)})`
    : messageOfCauses(thrown);
  const isAuthentication = isNamed(thrown, 'KafkaJSSASLAuthenticationError');
  if (isAuthentication) return failure('sink_blocked', /mechanism is not supported/.test(message) ? 'sasl.mechanism' : 'sasl', message);
  if (type !== undefined && type in blocked) {
    const right = rights[type] === undefined ? '' : `; needs ${rights[type]}`;
    return failure('sink_blocked', blocked[type] ?? setting, `${plainer[type] ?? message}${right} (${type})`);
  }
  if (type !== undefined && refused.has(type)) return failure('sink_refused', undefined, `${message} (${type})`);
  const more = type === undefined ? message : `${plainer[type] ?? message} (${type})`;
  if (sent) return failure('sink_outcome_unknown', undefined, more);
  const isConnection = isNamed(thrown, 'KafkaJSConnectionError') || isNamed(thrown, 'TypeError');
  return failure('sink_unavailable', isConnection ? 'brokers' : undefined, more);
}

interface Cause {
  readonly name?: unknown;
  readonly type?: unknown;
  readonly message?: unknown;
}

/** An error, its causes, and the errors that it aggregates, outermost first. */
function causesOf(thrown: unknown): readonly Cause[] {
  const found: Cause[] = [];
  const visit = (at: unknown): void => {
    if (typeof at !== 'object' || at === null || found.length > 16 || found.includes(at)) return;
    found.push(at);
    const { errors, cause } = at as { errors?: unknown; cause?: unknown };
    if (Array.isArray(errors)) errors.forEach(visit);
    visit(cause);
  };
  visit(thrown);
  return found;
}

/** The message of the innermost cause, which is the most specific. */
function messageOfCauses(thrown: unknown): string {
  const message = causesOf(thrown).flatMap(({ message }) => (typeof message === 'string' && message !== '' ? [quote(message, 300)] : []));
  return message.at(-1) ?? 'the client gave no reason';
}

/** Uses only the message: errors of the client contain requests and retries. */
function bare(thrown: unknown): Error {
  return new Error(messageOfCauses(thrown));
}
