import { expect, test } from 'vitest';
import { codeOf, WaybillError } from '../../../src/errors/errors.ts';
import { protocolError, translate } from '../../../src/sink/kafka/errors.ts';

const attempt = { id: 'lake', what: 'send to topic "audit"', setting: 'topic' };

/** As the client throws it: its error after the last retry, with the cause inside. */
function exceeded(cause: object): Error {
  return Object.assign(new Error('it failed'), { name: 'KafkaJSNumberOfRetriesExceeded', retriable: false, cause });
}

function protocol(type: string, message = 'words of the client'): Error {
  return Object.assign(new Error(message), { name: 'KafkaJSProtocolError', type });
}

test.each([
  ['TOPIC_AUTHORIZATION_FAILED', 'sink_blocked', 'sinks.lake.topic'],
  ['UNKNOWN_TOPIC_OR_PARTITION', 'sink_blocked', 'sinks.lake.topic'],
  ['GROUP_AUTHORIZATION_FAILED', 'sink_blocked', 'Read on groups that begin with "waybill-"'],
  ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', 'sink_blocked', 'sinks.lake.exactlyOnce'],
  ['SASL_AUTHENTICATION_FAILED', 'sink_blocked', 'sinks.lake.sasl'],
  ['UNSUPPORTED_COMPRESSION_TYPE', 'sink_blocked', 'sinks.lake.compression'],
  ['MESSAGE_TOO_LARGE', 'sink_refused', 'words of the client'],
  ['INVALID_RECORD', 'sink_refused', 'words of the client'],
  ['NOT_ENOUGH_REPLICAS', 'sink_outcome_unknown', 'min.insync.replicas'],
  ['INVALID_PRODUCER_EPOCH', 'sink_outcome_unknown', 'another Waybill'],
  ['NOT_LEADER_FOR_PARTITION', 'sink_outcome_unknown', 'words of the client'],
])('%s inside exhausted retries is %s', (type, code, words) => {
  const error = translate(exceeded(protocol(type)), attempt, true);
  expect(codeOf(error)).toBe(code);
  expect(error.message).toContain(words);
  expect(error.message).toContain('"lake"');
});

test('a broker that is down: before anything was sent it is retried, afterwards the outcome is unknown', () => {
  const down = exceeded(
    Object.assign(new Error('Connection error: connect ECONNREFUSED'), { name: 'KafkaJSConnectionError', retriable: true }),
  );
  expect([codeOf(translate(down, attempt, false)), codeOf(translate(down, attempt, true))]).toEqual([
    'sink_unavailable',
    'sink_outcome_unknown',
  ]);
});

test('aggregated errors are checked one by one', () => {
  const gathered = Object.assign(new Error('Topic errors'), { name: 'KafkaJSAggregateError', errors: [protocol('POLICY_VIOLATION')] });
  expect(protocolError(gathered)).toBe('POLICY_VIOLATION');
});

test('our own error passes through the client unchanged', () => {
  const own = new WaybillError('sink_blocked', 'no token');
  expect(translate(exceeded(own), attempt, true)).toBe(own);
});

test('kafkajs failing at a truncated response is a lost connection, with our own message', () => {
  const stumbled = exceeded(new TypeError("Cannot read properties of null (reading 'topicMetadata')"));
  const error = translate(stumbled, { id: 'lake', what: 'describe topic "audit"', setting: 'topic' }, false);
  expect(codeOf(error)).toBe('sink_unavailable');
  expect(error.message).toBe(
    `cannot describe topic "audit" for sink "lake" (sinks.lake.brokers): the connection ended before a response was complete (kafkajs: Cannot read properties of null (reading 'topicMetadata'))`,
  );
});
