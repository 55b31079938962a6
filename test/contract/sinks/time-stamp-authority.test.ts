/** Requests to a time-stamping authority: an authority of OpenSSL grants, and every response that is not what was requested is refused. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { TimeStampAuthority } from '../../../src/archive/timestamp/authority.ts';
import { formatRequest, readResponse } from '../../../src/archive/timestamp/token.ts';
import { messageOf } from '../../../src/errors/errors.ts';
import { PemFiles } from '../../../src/settings/pem.ts';
import { Secret } from '../../../src/settings/secret.ts';
import { Authority, AuthorityServer, hasOpenssl, sendReply, verifyWithOpenssl } from '../../support/time-stamp-authority.ts';

const never = new AbortController().signal;
const content = Buffer.from('waybill/example\n7\nroot\n\n\u2014 signature\n');
const imprint = createHash('sha256').update(content).digest();

describe.skipIf(!hasOpenssl)('a time-stamping authority', () => {
  const authorities: Authority[] = [];
  const authority = (...args: ConstructorParameters<typeof Authority>): Authority => {
    const made = new Authority(...args);
    authorities.push(made);
    return made;
  };
  afterAll(() => authorities.forEach((each) => each[Symbol.dispose]()));
  const usual = hasOpenssl ? authority() : (undefined as never);

  /** Stamps with a server that answers so. */
  async function stamped(
    answer: (query: Buffer, response: ServerResponse) => void,
    settings: Partial<ConstructorParameters<typeof TimeStampAuthority>[0]> = {},
  ) {
    await using server = await AuthorityServer.start(answer);
    const ca = new PemFiles([usual.rootPath]);
    await using client = new TimeStampAuthority({ url: server.url, ca, ...settings }, { setting: 'sinks.a.timestamp', requestMs: 5_000 });
    const stamp = await client.stamp(content, never);
    return { stamp, server };
  }

  test.each(['rsa', 'ec'] as const)('grants a token with a key of type %s, which openssl ts -verify accepts', async (key) => {
    const granting = authority(`With ${key}`, { key });
    const before = Math.floor(Date.now() / 1000) * 1000;
    const { stamp, server } = await stamped((query, response) => sendReply(response, granting.reply(query)), {
      ...{ ca: new PemFiles([granting.rootPath]), policy: '1.2.3.4.2', username: 'user', password: new Secret('secret-password') },
    });
    expect(stamp.time / 1000).toBeGreaterThanOrEqual(before);
    expect(stamp.time / 1000).toBeLessThanOrEqual(Date.now());
    expect(server.requests[0]?.headers).toMatchObject({
      'content-type': 'application/timestamp-query',
      authorization: `Basic ${Buffer.from('user:secret-password').toString('base64')}`,
    });
    const [data, token] = [join(granting.folder, 'content'), join(granting.folder, 'token.tsr')];
    writeFileSync(data, content);
    writeFileSync(token, stamp.bytes);
    expect(verifyWithOpenssl(data, token, granting.rootPath)).toMatchObject({ code: 0 });
    expect(readResponse(stamp.bytes, { imprint }).time).toBe(stamp.time);
  });

  const otherNonce = Buffer.alloc(16, 0x41);
  test.each<[string, RegExp, (query: Buffer, response: ServerResponse) => void]>([
    ['refuses the policy', /the authority refuses: status 2/, (_, response) => sendReply(response, usual.reply(withPolicy()))],
    [
      'repeats another nonce',
      /its nonce differs from/,
      (_, response) => sendReply(response, usual.reply(formatRequest({ imprint, nonce: otherNonce }))),
    ],
    [
      'stamps other bytes',
      /its token stamps other bytes/,
      (_, response) =>
        sendReply(response, usual.reply(formatRequest({ imprint: createHash('sha256').update('other').digest(), nonce: otherNonce }))),
    ],
    ['answers with a token without a nonce', /its nonce/, (_, response) => sendReply(response, usual.responseAt(Date.now(), content))],
    [
      'changes a byte of the signature',
      /its signature is invalid/,
      (query, response) => sendReply(response, changed(usual.reply(query), -1)),
    ],
    [
      'answers with HTML',
      /status 200 and .*text\/html/,
      (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>sign in</html>'),
    ],
    ['answers with an error', /status 503/, (_, response) => response.writeHead(503, { 'content-type': 'text/plain' }).end('busy')],
    ['answers with too much', /more than 65536 bytes/, (_, response) => sendReply(response, Buffer.alloc(2_000_000, 0x30))],
    [
      'answers with a part',
      /it is not a time-stamp response/,
      (query, response) => sendReply(response, usual.reply(query).subarray(0, 900)),
    ],
    ['answers with nothing', /it is not a time-stamp response/, (_, response) => sendReply(response, Buffer.alloc(0))],
    ['ends the connection', /cannot reach|other side closed/, (_, response) => response.destroy()],
  ])('that %s gives no token', async (_name, message, answer) => {
    const refused = await stamped(answer).catch((thrown: unknown) => thrown as Error);
    expect(refused).toMatchObject({ code: 'sink_unavailable', message: expect.stringMatching(message) as string });
  });

  test.each<[string, RegExp, () => Authority, (made: Authority) => Authority]>([
    ['leads to another root', /'.*Foreign Stamps' does not lead to sinks\.a\.timestamp\.ca/s, () => authority('Foreign'), () => usual],
    ['has ended', /does not lead to/, () => authority('Ended', { validTo: Date.now() - 86_400_000 }), (made) => made],
    ['has not begun', /does not lead to/, () => authority('Soon', { validFrom: Date.now() + 86_400_000 }), (made) => made],
  ])('whose certificate %s gives no token', async (_name, message, made, trusted) => {
    const other = made();
    const ca = new PemFiles([trusted(other).rootPath]);
    const refused = await stamped((query, response) => sendReply(response, other.reply(query)), { ca }).catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ code: 'sink_unavailable', message: expect.stringMatching(message) as string });
  });

  test.each([
    ['is for another purpose', 'critical,serverAuth'],
    ['is not only for time stamps', 'critical,timeStamping,serverAuth'],
    ['is not critically for time stamps', 'timeStamping'],
  ])('whose certificate %s gives no token', (_name, usage) => {
    const response = authority('Other', { usage }).responseAt(Date.now(), content);
    expect(() => readResponse(response, { imprint })).toThrow('its certificate is not for time stamps alone');
  });

  test.each([
    ['nothing', ''],
    ['a byte', 'x'],
    ['bytes of no encoding', '\xff'.repeat(200)],
    ['text', 'not a time stamp'],
    ['another structure', '\x30\x03\x02\x01\x00'],
    ['an unfinished structure', '\x30\x82\x01'],
  ])('is not the author of %s, in the same words', async (_name, text) => {
    await using client = new TimeStampAuthority({ url: 'http://127.0.0.1:1' }, { setting: 'sinks.a.timestamp' });
    const read = async () => client.timeOf(Buffer.from(text, 'latin1'), content);
    expect(await read().catch(messageOf)).toBe('it is not a time-stamp response of RFC 3161');
  });

  test('of timestamp.ca did not sign the stored token of another one', async () => {
    const foreign = authority('Foreign').responseAt(Date.now(), content);
    const of = (ca?: PemFiles) => new TimeStampAuthority({ url: 'http://127.0.0.1:1', ca }, { setting: 'sinks.a.timestamp' });
    await using strict = of(new PemFiles([usual.rootPath]));
    await using lenient = of();
    expect(() => strict.timeOf(foreign, content)).toThrow(/'.*Foreign Stamps' does not lead to sinks\.a\.timestamp\.ca/s);
    expect(lenient.timeOf(foreign, content)).toBe(readResponse(foreign, { imprint }).time);
  });

  test('that does not answer is abandoned after the time limit', async () => {
    await using server = await AuthorityServer.start(() => undefined);
    await using client = new TimeStampAuthority({ url: server.url }, { setting: 'sinks.a.timestamp', requestMs: 300 });
    await expect(client.stamp(content, never)).rejects.toThrow('no complete response within 0.3 s');
  });

  function withPolicy(): Buffer {
    return formatRequest({ imprint, nonce: otherNonce, policy: '1.2.3.4.9' });
  }
});

/** One bit of a byte from the end is changed. */
function changed(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = copy.length + at;
  copy[index] = (copy[index] ?? 0) ^ 1;
  return copy;
}
