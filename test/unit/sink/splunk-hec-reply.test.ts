/**
 * Every reply code of the HTTP Event Collector, with the published list of codes and the reaction
 * to each.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readAcknowledgements, readReply, settingOf } from '../../../src/sink/splunk-hec/reply.ts';

interface Row {
  readonly code: number;
  readonly status: number;
  readonly text: string;
}

/** Codes 0 to 22 as published; 23 to 27 of newer servers. */
const published: readonly Row[] = readFileSync(new URL('../../fixtures/splunk-hec-reply-codes.csv', import.meta.url), 'utf8')
  .split(/\r?\n/)
  .slice(1)
  .flatMap((line) => {
    const [, code, status, text] = /^(\d+),(\d+),[^,]*,("[^"]*"|[^,]*),/.exec(line) ?? [];
    return code === undefined ? [] : [{ code: Number(code), status: Number(status), text: (text ?? '').replaceAll('"', '') }];
  });
const newer: readonly Row[] = [
  { code: 23, status: 503, text: 'Server is shutting down' },
  { code: 24, status: 200, text: 'HEC queue is nearing capacity' },
  { code: 25, status: 200, text: 'HEC ACK channel is nearing capacity' },
  { code: 26, status: 429, text: 'HEC queue is at capacity' },
  { code: 27, status: 429, text: 'HEC ACK channel is at capacity' },
];

/** The reaction of the sink to each code, by docs/guarantees.md. */
const expected: Readonly<Record<string, readonly number[]>> = {
  delivered: [0],
  crowded: [24, 25],
  retryable: [26, 27],
  blocked: [1, 2, 3, 4, 10, 11, 14, 16, 21, 22],
  refused: [7],
  rejected: [6, 12, 13, 15],
  // 17 to 20 are health responses: for data they leave the outcome unknown.
  unknown: [5, 8, 9, 17, 18, 19, 20, 23],
};

describe('the response to data', () => {
  test('the list has every code once', () => {
    expect([...published, ...newer].map(({ code }) => code)).toEqual(Array.from({ length: 28 }, (_, i) => i));
    expect(Object.values(expected).flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 28 }, (_, i) => i)); // prettier-ignore
  });

  test.each<[code: number | undefined, setting: string]>([
    ...[1, 2, 3, 4, 16, 21, 22].map((code) => [code, 'token'] as [number, string]),
    [7, 'index'],
    [10, 'indexerAcknowledgement'],
    [14, 'indexerAcknowledgement'],
    [11, 'channel'],
    [99, 'url'],
    [undefined, 'url'],
  ])('a code names a setting: code %s: %s', (code, setting) => {
    expect(settingOf({ code })).toBe(setting);
  });

  test.each([...published, ...newer])('code $code, $status $text', ({ code, status, text }) => {
    const reply = readReply({ status, body: JSON.stringify({ text, code }) });
    expect(expected[reply.meaning]).toContain(code);
    const isSuccess = status < 300;
    expect(reply.message).toMatch(isSuccess ? /^200 code \d+ \(\d+ bytes of no media type\)$/ : /./);
    if (!isSuccess) expect(reply.message).toBe(`${status} code ${code} ${text}`);
  });

  test.each([
    [200, { text: 'Server is busy', code: 9 }, 'unknown'],
    [200, { text: 'Invalid token', code: 4 }, 'unknown'],
    [200, {}, 'unknown'],
    [201, { text: 'Success', code: 0 }, 'delivered'],
    [500, { text: 'Success', code: 0 }, 'unknown'],
    [400, { text: 'Success', code: 0 }, 'refused'],
    [400, { text: 'something new', code: 99 }, 'refused'],
    [503, { text: 'something new', code: 99 }, 'unknown'],
    [413, { text: 'Request entity too large', code: 27 }, 'rejected'],
  ])('a status and a code that do not match: %i %j is %s', (status, body, meaning) => {
    expect(readReply({ status, body: JSON.stringify(body) }).meaning).toBe(meaning);
  });

  test.each([
    [200, 'unknown'],
    [302, 'refused'],
    [400, 'refused'],
    [401, 'refused'],
    [403, 'refused'],
    [404, 'refused'],
    [408, 'unknown'],
    [413, 'rejected'],
    [429, 'retryable'],
    [500, 'unknown'],
    [502, 'unknown'],
    [504, 'unknown'],
  ])('another server in between: %i without a code is %s', (status, meaning) => {
    expect(readReply({ status, body: '<html><body>no Splunk</body></html>' }).meaning).toBe(meaning);
  });

  test('names the event at which Splunk stopped, and the acknowledgement to wait for', () => {
    expect(readReply({ status: 400, body: '{"text":"Invalid data format","code":6,"invalid-event-number":3}' }).stoppedAt).toBe(3);
    expect(readReply({ status: 200, body: '{"text":"Success","code":0,"ackId":0}' }).ackId).toBe(0);
    for (const odd of ['"3"', '-1', '1.5', 'null', '{}']) {
      expect(readReply({ status: 400, body: `{"code":6,"invalid-event-number":${odd}}` }).stoppedAt).toBeUndefined();
    }
  });

  test('texts of another server become one short line', () => {
    const { message: words } = readReply({ status: 502, body: `<html>\n${'x'.repeat(5_000)}` });
    expect(words).toMatch(/^502 <html>\\nx+…$/);
    expect(words.length).toBeLessThan(300);
  });
});

test('acknowledgements: only true means indexed', () => {
  expect(readAcknowledgements('{"acks":{"0":true,"1":false,"7":true}}')).toEqual(new Set([0, 7]));
  expect(readAcknowledgements('{"acks":{"0":"true","1":1}}')).toEqual(new Set());
  for (const odd of ['', 'null', '[]', '{}', '{"acks":null}']) expect(readAcknowledgements(odd)).toBeUndefined();
});
