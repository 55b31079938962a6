/** Requests to the HTTP Event Collector: envelope, metadata, size. */
import { describe, expect, test } from 'vitest';
import { requestsOf } from '../../../src/sink/splunk-hec/request.ts';
import { metadataOf, splunkHecSettings } from '../../../src/sink/splunk-hec/settings.ts';
import { message, messages } from '../../support/sinks/sink-batches.ts';

const url = 'https://splunk.example:8088';
const settings = splunkHecSettings.parse({ url, token: 'x', host: 'gateway-1', source: 'waybill/{source}', index: 'dpas_{source}' });
const metadata = metadataOf(settings);
const none = new Set<number>();

describe('events', () => {
  test('each has an envelope: time in seconds with its microseconds, metadata, uid and number as indexed fields', () => {
    const one = message(1, '{"logId":9007199254740993}');
    const [request] = requestsOf([{ ...one, time: 1_714_566_896_123_456, source: 'records' }], metadata, none);
    expect(request?.body.toString('utf8')).toBe(
      '{"time":1714566896.123456,"host":"gateway-1","source":"waybill/records","sourcetype":"dpas:audit","index":"dpas_records",' +
        `"event":{"logId":9007199254740993},"fields":{"id":"${one.uid}","number":1}}`,
    );
  });

  test("a message without a number has none, and without an index the token's default applies", () => {
    const [request] = requestsOf([{ ...message(1), number: undefined }], metadataOf(splunkHecSettings.parse({ url, token: 'x' })), none); // prettier-ignore
    const event = JSON.parse(request?.body.toString('utf8') ?? '') as Record<string, unknown>;
    expect(Object.keys(event['fields'] as object)).toEqual(['id']);
    expect(event).not.toHaveProperty('index');
  });

  test('a ledger entry has a separate sourcetype, and no number', () => {
    const entry = { ...message(1), number: undefined, isLedger: true as const };
    const [request] = requestsOf([entry, message(2)], metadata, none);
    const events = (request?.body.toString('utf8') ?? '').split(/(?<=\}\})(?=\{"time)/).map((text) => JSON.parse(text) as object);
    expect(events).toMatchObject([{ sourcetype: 'dpas:ledger', fields: { id: entry.uid } }, { sourcetype: 'dpas:audit' }]);
  });

  test.each(['null', '""', '42', '"***"', '[1]', '{"a":1}'])('a record that is not an object is sent as text: %s', (text) => {
    const [request] = requestsOf([message(1, text)], metadata, none);
    const { event } = JSON.parse(request?.body.toString('utf8') ?? '') as { event: unknown };
    expect(event).toEqual(text.startsWith('{') ? JSON.parse(text) : text);
  });
});

test('a line is an event too: its time and metadata are in its envelope, even when the line has no time', () => {
  const lines = ['CEF:0|a|"b"|', 'LEEF:2.0|a\tx=1'].map((text, i) => ({
    ...message(i + 1, text),
    source: `s${i}`,
    time: 1_600_000_000_000_000 + i,
  }));
  const [request, ...others] = requestsOf(lines, metadata, none);
  expect(others).toEqual([]);
  const events = (request?.body.toString('utf8') ?? '').split(/(?<=\}\})(?=\{"time)/).map((text) => JSON.parse(text) as object);
  expect(events).toEqual([
    {
      ...{ time: 1_600_000_000, host: 'gateway-1', source: 'waybill/s0', sourcetype: 'dpas:audit', index: 'dpas_s0' },
      ...{ event: 'CEF:0|a|"b"|', fields: { id: lines[0]?.uid, number: 1 } },
    },
    {
      ...{ time: 1_600_000_000.000001, host: 'gateway-1', source: 'waybill/s1', sourcetype: 'dpas:audit', index: 'dpas_s1' },
      ...{ event: 'LEEF:2.0|a\tx=1', fields: { id: lines[1]?.uid, number: 2 } },
    },
  ]);
});

describe('the size of a request', () => {
  test('is at most 1,000,000 bytes, in order and without a loss', () => {
    const many = messages(1, 30).map((each) => ({
      ...each,
      bytes: Buffer.from(JSON.stringify({ seq: each.seq, pad: 'ж'.repeat(50_000) })),
    }));
    const requests = requestsOf(many, metadata, none);
    for (const { body } of requests) expect(body.length).toBeLessThanOrEqual(1_000_000);
    expect(requests.flatMap((each) => each.messages).map(({ seq }) => seq)).toEqual(many.map(({ seq }) => seq));
    expect(requests.length).toBe(4);
  });

  test('a larger message is sent alone', () => {
    const large = message(2, JSON.stringify({ pad: 'x'.repeat(1_200_000) }));
    const requests = requestsOf([message(1), large, message(3)], metadata, none);
    expect(requests.map((each) => each.messages.map(({ seq }) => seq))).toEqual([[1], [2], [3]]);
  });

  test('a message at which Splunk stopped starts a request', () => {
    const requests = requestsOf(messages(1, 5), metadata, new Set([3]));
    expect(requests.map((each) => each.messages.map(({ seq }) => seq))).toEqual([[1, 2], [3, 4, 5]]); // prettier-ignore
  });
});

test('the path of an endpoint in the configured URL is removed', async () => {
  const { baseOf } = await import('../../../src/sink/splunk-hec/settings.ts');
  for (const end of ['', '/', '/services/collector', '/services/collector/event', '/services/collector/raw/1.0']) {
    expect(baseOf(splunkHecSettings.parse({ url: `${url}/siem${end}`, token: 'x' }))).toBe(`${url}/siem`);
  }
});
