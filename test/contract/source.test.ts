/**
 * The Source boundary with a real HTTPS server: the requests, the result of each response, and the
 * error of each transport fault.
 */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { sharingTokens } from '../../src/daemon/open-source.ts';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import { createAuthority } from '../support/certificates.ts';
import type { Authority, KeyPair } from '../support/certificates.ts';
import { answerJson, answering, startService } from '../support/model-service-server.ts';
import type { Handler, TestService } from '../support/model-service-server.ts';
import { base } from '../support/records.ts';
import { errorOf, MovableClock, pemOf, secretOf, sourceUnderTest } from '../support/source-under-test.ts';
import type { UnderTest, Wish } from '../support/source-under-test.ts';
import { noting } from '../support/telemetry/written-events.ts';

let authority: Authority;
let certificate: KeyPair;
let service: TestService;
let open: UnderTest[] = [];

beforeAll(async () => {
  authority = await createAuthority('Test Root');
  certificate = await authority.issue({ name: 'service', hosts: ['127.0.0.1'] });
});
beforeEach(async () => {
  service = await startService({ certificate });
});
afterEach(async () => {
  for (const each of open) await each.source[Symbol.asyncDispose]();
  open = [];
  await service[Symbol.asyncDispose]();
});
afterAll(() => {
  expect(process.env['NODE_TLS_REJECT_UNAUTHORIZED']).toBeUndefined();
});

function make(wish: Partial<Wish> = {}): UnderTest {
  const made = sourceUnderTest({ at: `127.0.0.1:${service.port}`, sharedCa: pemOf(authority.cert), ...wish });
  open.push(made);
  return made;
}

/** Neither the message of an error nor of its causes contains a secret. */
function expectNoSecret(error: Error): void {
  expect(`${messageOf(error)} ${JSON.stringify(error)} ${error.stack ?? ''}`).not.toMatch(/secret-\d|key-\d|canary/);
}

describe('a request', () => {
  test('has its parameters in a fixed order, the plus of the sort order escaped, and the headers of the specification', async () => {
    const { page } = make();
    await page({ query: { startTime: '2026-11-20T02:00:00.00', endTime: '2026-11-20T02:15:00.00' }, page: 3, pageSize: 500 });
    const [asked] = service.pages;
    expect(decodeURIComponent(asked?.url.replaceAll('%2B', '%252B') ?? '')).toBe(
      '/v2/api/logs/full-payload?startTime=2026-11-20T02:00:00.00&endTime=2026-11-20T02:15:00.00&page=3&pageSize=500&sort=%2BlogTimestamp',
    );
    expect(asked?.headers).toMatchObject({
      authorization: 'Bearer token-1-canary',
      'ocp-apim-subscription-key': 'key-1',
      'cache-control': 'no-cache',
      accept: 'application/json',
      'accept-encoding': 'gzip',
    });
  });

  test('omits unset parameters', async () => {
    const { page } = make({ endpoint: 'payload' });
    await page({ page: undefined, pageSize: 1 });
    expect(service.pages[0]?.url).toBe('/v2/api/logs/payload?pageSize=1&sort=%2BlogTimestamp');
  });

  test('for a token follows the specification, for each grant', async () => {
    await make().page();
    const userAccess = make({
      auth: { grantType: 'password', username: 'user-1', password: pemless('secret-1'), clientSecret: undefined },
    });
    await userAccess.page();
    expect(service.tokens.map(({ url }) => url)).toEqual(['/tenant-1/oauth2/v2.0/token', '/tenant-1/oauth2/v2.0/token']);
    expect(service.tokens.map(({ body }) => Object.fromEntries(new URLSearchParams(body)))).toEqual([
      { grant_type: 'client_credentials', client_id: 'client-1', client_secret: 'secret-1', scope: 'api://scope-1/.default' },
      { grant_type: 'password', client_id: 'client-1', scope: 'api://scope-1/access_as_user', username: 'user-1', password: 'secret-1' },
    ]);
    expect(service.tokens[0]?.headers['content-type']).toMatch(/^application\/x-www-form-urlencoded/);
  });

  test('reuses the connection', async () => {
    const { page } = make();
    for (let n = 0; n < 5; n += 1) await page();
    // One connection for the token endpoint, one for the pages: the client treats them as different servers.
    expect(service.connections).toBe(2);
  });
});

describe('a page', () => {
  test('holds the exact bytes of its items and the numbers of the service', async () => {
    service.model.fill(250, base);
    const got = await make().page({ page: 3, pageSize: 100 });
    expect(got.items.map(({ bytes }) => bytes.toString())).toEqual(service.model.records.slice(200).map(({ text }) => text));
    expect(got).toMatchObject({ page: 3, pageSize: 100, total: 250, age: 0 });
    expect(Math.abs(got.received / 1000 - Date.now())).toBeLessThan(5_000);
    expect(Math.abs((got.date ?? 0) - Date.now())).toBeLessThan(5_000);
    expect(Math.abs(got.receivedMonotonic - performance.now())).toBeLessThan(5_000);
  });

  const paginations: readonly (readonly [string, unknown, object])[] = [
    ['decimal text', { page: '2', pageSize: '50', totalRecords: '123' }, { page: 2, pageSize: 50, total: 123 }],
    ['a negative total', { page: 0, pageSize: -1, totalRecords: -1 }, { page: 0, pageSize: undefined, total: undefined }],
    [
      'a fraction, and a number that is not exact',
      { page: 1.5, pageSize: 1e300, totalRecords: 2 ** 63 },
      { page: undefined, pageSize: undefined, total: undefined },
    ],
    ['null and words', { page: null, pageSize: 'many', totalRecords: '1e3' }, { page: undefined, pageSize: undefined, total: undefined }],
    ['no object', 'none', { page: undefined, pageSize: undefined, total: undefined }],
  ];
  test.each(paginations)('with %s for numbers', async (_name, pagination, expected) => {
    service.nextPages.push((_request, response) => answerJson(response, 200, { pagination, data: [] }));
    expect(await make().page()).toMatchObject(expected);
  });

  test.each([
    ['204', 204, '', 0],
    ['null in place of the list', 200, '{"data":null,"pagination":{"totalRecords":0}}', 0],
    ['null, and the service counts records', 200, '{"data":null,"pagination":{"totalRecords":7}}', 7],
    ['null and no numbers', 200, '{"data":null}', undefined],
  ])('without records: %s', async (_name, status, body, total) => {
    service.nextPages.push(answering(status, {}, body));
    expect(await make().page()).toMatchObject({ items: [], total });
  });

  test('may be compressed', async () => {
    const body = gzipSync('{"data":[{"a":1}],"pagination":{"totalRecords":1}}');
    service.nextPages.push((_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(body));
    expect(await make().page()).toMatchObject({ total: 1 });
  });

  test('from a cache has its age', async () => {
    service.nextPages.push(answering(200, { age: '17', date: 'Fri, 20 Nov 2026 02:00:00 GMT' }, '{"data":[]}'));
    expect(await make().page()).toMatchObject({ age: 17, date: Date.UTC(2026, 10, 20, 2) });
  });

  test('without a Date header has no date', async () => {
    service.nextPages.push((_request, response) => {
      response.sendDate = false;
      response.end('{"data":[]}');
    });
    expect((await make().page()).date).toBeUndefined();
  });
});

describe('a response that is not a page', () => {
  const cut: Handler = (_request, response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('{"data":[{"a":1}');
    setTimeout(() => response.socket?.end(), 20);
  };
  const reset: Handler = (_request, response) => {
    response.writeHead(200, { 'transfer-encoding': 'chunked' }).write('{"data":[{"a":1}');
    setTimeout(() => response.socket?.destroy(), 20);
  };
  const endless: Handler = (_request, response) => {
    const chunk = Buffer.alloc(256 * 1024, 0x20);
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    more();
  };
  const cases: readonly (readonly [string, Handler, RegExp])[] = [
    [
      'HTML',
      answering(200, { 'content-type': 'text/html; charset=utf-8' }, '<html><head>'),
      /expected a JSON object, got \d+ bytes of text\/html$/,
    ],
    ['an empty body', answering(200, {}), /truncated after 0 bytes|expected a JSON object/],
    ['a body cut by the connection', cut, /truncated after 16 bytes/],
    ['a chunked body that is reset', reset, /truncated after 16 bytes/],
    ['a whole body of cut JSON', answering(200, {}, '{"data":[{"a":1}'), /ends too early, after 16 bytes/],
    ['an endless body', endless, /larger than 16777216 bytes/],
    [
      'a gzip bomb',
      (_q, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(17_000_000))),
      /larger than 16777216 bytes/,
    ],
    [
      'a page of more items than any has',
      (_q, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(`{"data":[${'0,'.repeat(500_000)}0]}`)),
      /expected at most 50000 items in "data", got \d+ bytes of no media type$/,
    ],
    [
      'a gzip stream that is cut',
      (_q, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(randomBytes(1000)).subarray(0, 500)),
      /truncated after/,
    ],
    [
      'a body that is not gzip',
      answering(200, { 'content-encoding': 'gzip' }, '{"data":[]}'),
      /truncated after 0 bytes: incorrect header check/,
    ],
    ['gzip within another encoding', answering(200, { 'content-encoding': 'br, gzip' }, 'x'), /encoded as "br, gzip", not gzip/],
    ['another encoding', answering(200, { 'content-encoding': 'br' }, 'x'), /encoded as "br", not gzip/],
    // The body of a 206 contains records, which no message may quote.
    ['a part of the content', answering(206, {}, '{"data":[{"payloadName":"canary"}]}'), /expected status 200, got 206$/],
  ];
  test.each(cases)('%s is malformed', async (_name, handler, words) => {
    service.nextPages.push(handler);
    const made = make();
    const error = await errorOf(made.page());
    expect(error).toMatchObject({ code: 'page_malformed', message: expect.stringMatching(words) as string });
    expect(error.message).toMatch(/^cannot read page 1 of sources\.production: /);
    expect(made.outcomes).toEqual(['page_malformed']);
    // The connection still works.
    expect(await made.page()).toMatchObject({ total: 0 });
  });
});

describe('a status', () => {
  const date = 'Fri, 20 Nov 2026 02:00:00 GMT';
  const cases: readonly (readonly [string, Handler, string, number | undefined, RegExp])[] = [
    ['429 with seconds', answering(429, { 'retry-after': '7' }, 'slow down'), 'source_busy', 7_000, /429 slow down/],
    ['429 with a date', answering(429, { 'retry-after': 'Fri, 20 Nov 2026 02:00:30 GMT', date }), 'source_busy', 30_000, /429/],
    ['429 with nothing', answering(429), 'source_busy', undefined, /429/],
    ['503 with ten years', answering(503, { 'retry-after': '315360000' }), 'source_busy', 900_000, /503/],
    ['503 without Retry-After', answering(503, { 'retry-after': '0' }), 'source_busy', 1_000, /503/],
    ['500', answering(500, {}, '{"title":"broken","detail":"worse"}'), 'source_busy', undefined, /500 broken: worse/],
    [
      '403 with Retry-After: a quota',
      answering(403, { 'retry-after': '60' }, '{"message":"Out of call volume quota"}'),
      'source_busy',
      60_000,
      /Out of call volume quota/,
    ],
    [
      '403',
      answering(403, {}, '{"error":{"message":"no"}}'),
      'source_forbidden',
      undefined,
      /the right logs\.read\.all is missing for client "client-1".*403 no/,
    ],
    ['404', answering(404), 'page_not_found', undefined, /sources\.production\.baseUrl/],
    ['a present 404 through a cache', answering(404, { age: '0' }), 'page_not_found', undefined, /404/],
    ['a cached 404 from before the page may have existed', answering(404, { age: '12' }), 'source_busy', 1_000, /cached/],
    ['400', answering(400, {}, '{"title":"pageSize is too large"}'), 'page_refused', undefined, /400 pageSize is too large/],
    ['301', answering(301, { location: 'https://elsewhere.example/' }), 'source_unreachable', undefined, /redirects are not followed/],
    ['307', answering(307, { location: '/v2/api/logs/payload' }), 'source_unreachable', undefined, /redirects are not followed/],
  ];
  test.each(cases)('%s', async (_name, handler, code, retryAfterMs, words) => {
    const made = make();
    // The token is accepted, so a later refusal has another cause.
    await made.page();
    service.nextPages.push(handler);
    const error = await errorOf(made.page());
    expect(error).toMatchObject({ code, retryAfterMs, message: expect.stringMatching(words) as string });
    expect(made.outcomes).toEqual(['ok', code]);
    // No request was repeated, and none went elsewhere.
    expect(service.pages).toHaveLength(2);
  });

  test('403 on payload names the smaller permission', async () => {
    service.nextPages.push(answering(403));
    expect((await errorOf(make({ endpoint: 'payload' }).page())).message).toMatch(/the right logs\.read is missing/);
  });

  test('texts of the service are short, on one line, and contain no secret', async () => {
    const made = make();
    await made.page();
    service.nextPages.push(
      answering(400, {}, `bad key-1\n\u001b[31m token-1-canary ${Buffer.from('key-1').toString('base64')} ${'x'.repeat(1000)}`),
    );
    const error = await errorOf(made.page());
    expect(error.message).toContain(String.raw`400 bad [secret]\n\u001b[31m [secret] [secret] xxx`);
    expect(error.message.length).toBeLessThan(400);
    expectNoSecret(error);
  });
});

describe('no response', () => {
  test('a closed connection', async () => {
    service.nextPages.push((request) => void request.socket.destroy());
    const error = await errorOf(make().page());
    expect(error).toMatchObject({
      code: 'source_unreachable',
      message: expect.stringContaining(`cannot reach "https://127.0.0.1:${service.port}"`) as string,
    });
    expectNoSecret(error);
  });

  test('no listener', async () => {
    const gone = await startService({ certificate });
    const { port } = gone;
    await gone[Symbol.asyncDispose]();
    const made = make({ baseUrl: `https://127.0.0.1:${port}/v2/api` });
    expect(await errorOf(made.page())).toMatchObject({
      code: 'source_unreachable',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
  });

  test('an unknown name', async () => {
    const made = make({ baseUrl: 'https://nobody.invalid/v2/api' });
    expect(await errorOf(made.page())).toMatchObject({
      code: 'source_unreachable',
      message: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/) as string,
    });
  });

  test('a stall before a response, a stall within it, and a slow drip', async () => {
    const made = make({ requests: { timeout: 1_000 } });
    service.nextPages.push(() => undefined);
    expect(await errorOf(made.page())).toMatchObject({
      code: 'source_unreachable',
      message: expect.stringContaining('no answer within 1000 ms') as string,
    });
    service.nextPages.push((_request, response) => void response.writeHead(200).write('{"data":['));
    expect(await errorOf(made.page())).toMatchObject({
      code: 'source_unreachable',
      message: expect.stringContaining('no complete response within 1000 ms') as string,
    });
    service.nextPages.push((_request, response) => {
      response.writeHead(200).write('{"data":[');
      const drip = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(drip));
    });
    expect(await errorOf(made.page())).toMatchObject({ code: 'source_unreachable' });
    // A loaded machine may need more than a second for one of them.
    await vi.waitFor(async () => expect(await made.page()).toMatchObject({ total: 0 }), { timeout: 60_000 });
  });

  test('headers of a megabyte', async () => {
    service.nextPages.push((_request, response) => {
      for (let n = 0; n < 100; n += 1) response.setHeader(`x-${n}`, 'x'.repeat(10_000));
      response.end('{"data":[]}');
    });
    expect(await errorOf(make().page())).toMatchObject({
      code: 'source_unreachable',
      message: expect.stringContaining('Headers Overflow') as string,
    });
  });

  test('the signal ends the request with its own reason', async () => {
    const stop = new AbortController();
    const reason = new Error('stopping');
    // After the request has arrived, and before any response.
    service.nextPages.push(() => stop.abort(reason));
    const made = make();
    expect(await errorOf(made.page({}, stop.signal))).toBe(reason);
    expect(made.outcomes).toEqual(['aborted']);
    expect(await errorOf(made.page({}, AbortSignal.abort(reason)))).toBe(reason);
  });
});

describe('a content coding', () => {
  const page = '{"pagination":{"totalRecords":0},"data":[]}';
  // Seen in public reports; browsers and curl show the text. RFC 9110 section 8.4.1 has no such codings.
  test.each(['UTF-8', 'utf8', 'none', 'identity', 'identity, identity', 'aws-chunked', '', 'x'])(
    '"%s" on plain JSON is read as it is',
    async (coding) => {
      service.nextPages.push(answering(200, { 'content-encoding': coding }, page));
      service.nextTokens.push((_request, response) => {
        service.good.add('plain-canary');
        response.writeHead(200, { 'content-encoding': coding }).end('{"access_token":"plain-canary"}');
      });
      expect(await make().page()).toMatchObject({ total: 0 });
    },
  );

  test.each(['gzip', 'x-gzip', 'GZIP', 'gzip, identity', 'identity,gzip', 'UTF-8, gzip'])('"%s" is decompressed', async (coding) => {
    service.nextPages.push((_request, response) => void response.writeHead(200, { 'content-encoding': coding }).end(gzipSync(page)));
    expect(await make().page()).toMatchObject({ total: 0 });
  });
});

describe('a token', () => {
  test('is renewed once when the service forgets it, and the page is read', async () => {
    const made = make();
    await made.page();
    service.good.clear();
    await made.page();
    expect(service.tokens).toHaveLength(2);
    expect(made.outcomes).toEqual(['ok', 'source_unauthorized', 'ok']);
  });

  test.each([400, 413, 431])('that was never accepted is replaced once a minute if a request is refused with %i', async (status) => {
    const made = make();
    service.nextPages.push(answering(status));
    await made.page();
    expect(service.tokens).toHaveLength(2);
    expect(made.outcomes).toEqual(['page_refused', 'ok']);
    // The token was accepted since, so this refusal has another cause.
    service.nextPages.push(answering(status));
    expect(await errorOf(made.page())).toMatchObject({ code: 'page_refused' });
    expect(service.tokens).toHaveLength(2);
  });

  test('that is refused repeatedly is not fetched repeatedly', async () => {
    const made = make();
    service.nextPages.push(...Array.from({ length: 10 }, () => answering(431)));
    for (let n = 0; n < 5; n += 1) expect(await errorOf(made.page())).toMatchObject({ code: 'page_refused' });
    expect(service.tokens).toHaveLength(2);
  });

  test('is renewed once for several waiting requests', async () => {
    const made = make();
    await made.page();
    service.good.clear();
    await Promise.all(Array.from({ length: 20 }, () => made.page()));
    expect(service.tokens).toHaveLength(2);
  });

  test('is fetched again on request: it may contain permissions', async () => {
    const made = make();
    await made.page();
    made.source.renew?.();
    await made.page();
    await made.page();
    expect(service.tokens).toHaveLength(2);
    expect(made.outcomes).toEqual(['ok', 'ok', 'ok']);
  });

  test('is renewed after four fifths of its lifetime, and the log names only the first', async () => {
    const clock = new MovableClock();
    const lines: unknown[] = [];
    const made = make({ clock, log: noting({ write: (event, ...[fields]) => void lines.push([event, fields]) }) });
    await made.page();
    clock.advance(0.8 * 3_600_000 - 60_000);
    await made.page();
    expect(service.tokens).toHaveLength(1);
    clock.advance(60_000);
    await made.page();
    expect(service.tokens).toHaveLength(2);
    expect(lines).toEqual([['source.first_token', { source: 'production', seconds: 3_600 }]]);
  });

  test('a subscription key changed on disk takes effect after its refusal; a wrong one is named', async () => {
    const made = make();
    await made.page();
    service.subscriptionKey = 'key-2';
    const error = await errorOf(made.page());
    expect(error).toMatchObject({
      code: 'source_unauthorized',
      message: expect.stringContaining('sources.production.subscriptionKey') as string,
    });
    expect(error.message).toContain('401 Access denied');
    expectNoSecret(error);
    made.subscriptionKey.stored = 'key-2';
    expect(await made.page()).toMatchObject({ total: 0 });
  });

  test('a client secret changed on disk takes effect after its refusal; a wrong one is named', async () => {
    service.secret = 'secret-2';
    const lines: unknown[] = [];
    const made = make({ log: noting({ write: (...line) => void lines.push(line) }) });
    const error = await errorOf(made.page());
    expect(error).toMatchObject({
      code: 'token_refused',
      message:
        `cannot obtain a token from "https://127.0.0.1:${service.port}" for client "client-1": invalid_client: ` +
        'AADSTS7000215: Invalid client secret provided.; see sources.production.auth.clientSecret',
    });
    expectNoSecret(error);
    expect(lines).toEqual([]);
    made.clientSecret.stored = 'secret-2';
    expect(await made.page()).toMatchObject({ total: 0 });
    expect(lines).toContainEqual(['source.setting_reread', { setting: 'sources.production.auth.clientSecret' }]);
  });

  const oauth =
    (error: string, error_description?: string): Handler =>
    (_request, response) =>
      answerJson(response, 400, { error, error_description });
  const refusals: readonly (readonly [string, Handler, string, RegExp])[] = [
    [
      'an unknown tenant',
      oauth('invalid_request', "AADSTS90002: Tenant 'x' not found."),
      'token_refused',
      /see sources\.production\.auth\.tenantId$/,
    ],
    ['an unknown client', oauth('unauthorized_client', 'AADSTS700016: Application not found.'), 'token_refused', /auth\.clientId$/],
    ['an unknown scope', oauth('invalid_scope'), 'token_refused', /: invalid_scope; see sources\.production\.auth\.scopeAddress$/],
    ['a refusal that repeats the secret', oauth('invalid_client', 'not secret-1'), 'token_refused', /invalid_client: not \[secret\]/],
    ['a refusal that passes', oauth('temporarily_unavailable'), 'token_unreachable', /temporarily_unavailable/],
    ['HTML', answering(200, {}, '<html>canary'), 'token_unreachable', /the response is not JSON, or empty/],
    [
      'an answer without a token',
      answering(200, {}, '{"token_type":"Bearer","id_token":"canary"}'),
      'token_unreachable',
      /the response has no access_token \(RFC 6749 section 5\.1\)/,
    ],
    [
      'a token of another type',
      answering(200, {}, '{"token_type":"mac","access_token":"canary"}'),
      'token_unreachable',
      /expected a token of the type Bearer, got "mac"/,
    ],
    [
      'a token that breaks a header',
      answering(200, {}, String.raw`{"token_type":"Bearer","access_token":"can\r\nary: canary"}`),
      'token_unreachable',
      /no usable access_token/,
    ],
    [
      'a wrong address',
      (_request, response) => answerJson(response, 404, { error: 'not_found' }),
      'token_refused',
      /not_found; see sources\.production\.auth\.authUrl and sources\.production\.auth\.tenantId$/,
    ],
    [
      'a refusal with status 200',
      answering(200, {}, '{"error":"invalid_client","error_description":"expired"}'),
      'token_refused',
      /invalid_client: expired/,
    ],
    ['503', answering(503, { 'retry-after': '9' }), 'token_unreachable', /status 503/],
    ['a redirect', answering(302, { location: 'https://elsewhere.example/' }), 'token_unreachable', /redirects are not followed/],
    [
      '401 with a challenge',
      answering(401, { 'www-authenticate': 'Basic realm="x"', 'content-type': 'application/json' }, '{"error":"invalid_client"}'),
      'token_refused',
      /invalid_client/,
    ],
    ['a body without end', answering(200, {}, 'x'.repeat(2_000_000)), 'token_unreachable', /larger than 1048576 bytes/],
    [
      'a cut connection',
      (request) => void request.socket.destroy(),
      'token_unreachable',
      /cannot reach.*see sources\.production\.auth\.authUrl$/,
    ],
  ];
  test.each(refusals)('%s', async (name, handler, code, words) => {
    service.nextTokens.push(handler);
    const made = make();
    const error = await errorOf(made.page());
    expect(error).toMatchObject({ code, message: expect.stringMatching(words) as string });
    if (name === '503') expect(error.retryAfterMs).toBe(9_000);
    expectNoSecret(error);
    expect(service.pages).toHaveLength(0);
    expect(await made.page()).toMatchObject({ total: 0 });
  });

  // RFC 6749 section 5.1: `access_token` and `token_type` are required, the others optional; the client uses no more than `expires_in`.
  test.each([
    { refresh_token: null },
    { refresh_token: '' },
    { id_token: null },
    { id_token: 'no JWT' },
    { scope: null },
    { scope: ['a', 'b'] },
    { expires_in: null },
    { expires_in: -1 },
    { expires_in: 'soon' },
    { expires_in: {} },
    { token_type: null },
    { token_type: 'bearer', expires_in: '3599' },
    { authorization_details: 7, error: null },
  ])('is used whatever the optional members of its response are: %j', async (members) => {
    service.good.add('plain-canary');
    const response = { access_token: 'plain-canary', token_type: 'Bearer', expires_in: 3600, ...members };
    service.nextTokens.push(answering(200, {}, JSON.stringify(response)));
    const made = make();
    await made.page();
    await made.page();
    expect(service.tokens).toHaveLength(1);
  });

  // Gateways of other products answer an expired token in each of these ways (404, 403, 400, a redirect to a login page).
  const refusalsOfGateways: readonly (readonly [string, Handler])[] = [
    ['404', answering(404, {}, '{"message":"Not found"}')],
    ['400', answering(400, {}, '{"error":"invalid_token"}')],
    ['403', answering(403, {}, '{"message":"token expired"}')],
    ['418', answering(418)],
    ['302', answering(302, { location: '/login' })],
    ['500', answering(500)],
    ['200 with HTML', answering(200, { 'content-type': 'text/html' }, '<html>Please sign in')],
    ['200 without data', answering(200, {}, '{"message":"token expired"}')],
  ];
  test.each(refusalsOfGateways)(
    'that was accepted is replaced if every answer becomes %s, at most once a minute',
    async (_name, refuse) => {
      const clock = new MovableClock();
      const made = make({ clock });
      await made.page();
      service.nextPages.push(...Array.from({ length: 3 }, () => refuse));
      for (let n = 0; n < 3; n += 1) await errorOf(made.page());
      expect(service.tokens).toHaveLength(1);
      // The fourth refusal in a row: another token, and the same request again.
      service.nextPages.push(refuse);
      expect(await made.page()).toMatchObject({ total: 0 });
      expect(service.tokens).toHaveLength(2);

      service.nextPages.push(...Array.from({ length: 20 }, () => refuse));
      for (let n = 0; n < 20; n += 1) await errorOf(made.page());
      expect([service.tokens.length, service.nextPages.length]).toEqual([2, 0]);
      clock.advance(60_000);
      service.nextPages.push(refuse);
      expect(await made.page()).toMatchObject({ total: 0 });
      expect(service.tokens).toHaveLength(3);
    },
  );

  test.each([answering(429), answering(503, { 'retry-after': '1' })])('is not suspected by a service that asks to wait', async (busy) => {
    const made = make();
    await made.page();
    service.nextPages.push(...Array.from({ length: 9 }, () => busy));
    for (let n = 0; n < 9; n += 1) await errorOf(made.page());
    expect(service.tokens).toHaveLength(1);
  });

  test.each<readonly [string, Handler]>([
    ['a 503 that asks to wait', answering(503, { 'retry-after': '5' })],
    ['a 429', answering(429)],
    ['a connection that ends', (request) => void request.socket.destroy()],
  ])('that was accepted is renewed at most once a minute when nothing but %s comes', async (_name, fail) => {
    const clock = new MovableClock();
    const made = make({ clock });
    await made.page();
    const tokens: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      service.nextPages.push(fail);
      await errorOf(made.page());
      tokens.push(service.tokens.length);
      clock.advance(20_000);
    }
    // The failures of 20 and 80 s. At 140 s the third token is younger than two minutes: it may not be valid yet.
    expect(tokens).toEqual([1, 1, 2, 2, 2, 3, 3, 3]);
    await made.page();
    clock.advance(60_000);
    await made.page();
    expect(service.tokens).toHaveLength(3);
  });

  test('that is renewed for such failures is used on while the token endpoint fails', async () => {
    const clock = new MovableClock();
    const made = make({ clock });
    await made.page();
    const busy = answering(503, { 'retry-after': '5' });
    service.nextPages.push(busy, busy);
    await errorOf(made.page());
    clock.advance(15_000);
    await errorOf(made.page());
    service.nextTokens.push(answering(503));
    expect(await made.page()).toMatchObject({ total: 0 });
    expect([service.tokens.length, service.nextTokens.length]).toEqual([2, 0]);
  });

  // RFC 7519 section 4.1.5: a token must not be accepted before its `nbf`. The issuer's clock is ahead of the service's.
  test.each([
    [5_000, 401],
    [12_000, 401],
    [20_000, 401],
    [70_000, 401],
    [110_000, 401],
    [70_000, 403],
    [70_000, 400],
    [20_000, 404],
  ])('that becomes valid only after %d ms is kept, while the service refuses it with %d', async (aheadMs, status) => {
    const clock = new MovableClock();
    const issued = new Map<string, number>();
    const refuse: Handler = (request, response, body) => {
      const token = request.headers.authorization ?? '';
      issued.set(token, issued.get(token) ?? clock.now());
      if (clock.now() < (issued.get(token) ?? 0) + aheadMs) answering(status)(request, response, body);
      else answerJson(response, 200, { pagination: { totalRecords: 0, pageSize: 100, itemsInPage: 0, page: 1 }, data: [] });
    };
    const made = make({ clock });
    const pauses = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 0];
    let read = false;
    for (const pause of pauses) {
      service.nextPages.splice(0, 9, refuse, refuse, refuse);
      read = await made.page().then(
        () => true,
        () => false,
      );
      if (read) break;
      if (status === 403) made.source.renew?.();
      clock.advance(pause);
    }
    expect(read).toBe(true);
    expect(service.tokens.length).toBeLessThanOrEqual(2);
  });

  test('that states a later begin than the time of the service is kept for longer than two minutes, and the message says so', async () => {
    const clock = new MovableClock();
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const nbf = Math.floor(clock.now() / 1000) + 600;
    const token = `${part({ alg: 'none' })}.${part({ nbf, exp: nbf + 3600 })}.canary`;
    const issue = answering(200, {}, JSON.stringify({ token_type: 'Bearer', access_token: token, expires_in: 3600 }));
    service.nextTokens.push(issue, issue);
    const made = make({ clock });
    const early: Handler = (_request, response) =>
      void response.writeHead(401, { date: new Date(clock.now()).toUTCString() }).end('{"message":"IDX10222"}');
    service.nextPages.push(early, early);
    expect((await errorOf(made.page())).message).toMatch(
      /^cannot read page 1 of sources\.production: the token becomes valid in (599|600|601) s by the time of the service: the clock of sources\.production\.auth\.authUrl is ahead: 401 IDX10222$/,
    );
    for (let n = 0; n < 4; n += 1) {
      clock.advance(120_000);
      service.nextPages.push(early);
      expect(await errorOf(made.page())).toMatchObject({ code: 'source_unauthorized' });
    }
    expect(service.tokens).toHaveLength(2);
    clock.advance(130_000);
    service.good.add(token);
    await made.page();
    expect(service.tokens).toHaveLength(2);
  });

  test('that is refused from the start is replaced once, and then every two minutes', async () => {
    const clock = new MovableClock();
    const made = make({ clock });
    const tokens: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      service.nextPages.push(answering(401), answering(401));
      await errorOf(made.page());
      service.nextPages.length = 0;
      tokens.push(service.tokens.length);
      clock.advance(60_000);
    }
    expect(tokens).toEqual([2, 2, 3, 3, 4, 4, 5, 5]);
  });

  test('with a lifetime that only the token states is used for that long', async () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'none' })}.${part({ iat: 1_000_000, exp: 1_001_000 })}.canary`;
    service.good.add(token);
    service.nextTokens.push(answering(200, {}, JSON.stringify({ token_type: 'Bearer', access_token: token })));
    const clock = new MovableClock();
    const made = make({ clock });
    await made.page();
    clock.advance(740_000);
    await made.page();
    expect(service.tokens).toHaveLength(1);
    clock.advance(60_000);
    await made.page();
    expect(service.tokens).toHaveLength(2);
  });

  test('without token_type, which the specification does not name, is a bearer token', async () => {
    service.good.add('plain-canary');
    service.nextTokens.push(answering(200, {}, '{"access_token":"plain-canary"}'));
    expect(await make().page()).toMatchObject({ total: 0 });
  });

  test('an aborted request does not stop the renewal for the others', async () => {
    const made = make();
    const stop = new AbortController();
    const first = errorOf(made.page({}, stop.signal));
    const second = made.page();
    stop.abort(new Error('enough'));
    expect((await first).message).toBe('enough');
    expect(await second).toMatchObject({ total: 0 });
    expect(service.tokens).toHaveLength(1);
  });

  test('a renewal that hangs ends when the source is released', async () => {
    const made = make();
    const asked = new Promise((resolve) => service.nextTokens.push(resolve));
    const waiting = errorOf(made.page());
    await asked;
    await made.source[Symbol.asyncDispose]();
    expect(await waiting).toMatchObject({ code: 'aborted' });
  });
});

// RFC 6749 does not say that an earlier token stays valid; at some servers a client has one valid token.
describe('sources with one client, whose new token ends the one before,', () => {
  const clock = new MovableClock();
  let shared: Partial<Wish>;
  let lines: unknown[];

  beforeEach(() => {
    service.endsTokens = true;
    lines = [];
    shared = {
      auth: { clientSecret: secretOf('secret-1') },
      sharedCa: pemOf(authority.cert),
      create: sharingTokens(),
      log: noting({ write: (event, ...[fields]) => void lines.push([event, fields]) }),
      clock,
    };
  });
  const asks = ({ page }: UnderTest): Promise<unknown> => page().then(() => 'read', codeOf);

  test('share one token for four fifths of its lifetime, and the log names the first of each', async () => {
    const sources = ['a', 'b', 'c'].map((id) => make({ ...shared, id }));
    for (let minutes = 0; minutes < 240; minutes += 6) {
      await Promise.all(sources.flatMap(({ page }) => [page(), page({ page: 2 })]));
      clock.advance(6 * 60_000);
    }
    expect(sources.flatMap(({ outcomes }) => outcomes).filter((outcome) => outcome !== 'ok')).toEqual([]);
    expect(service.tokens).toHaveLength(240 / 48);
    expect(lines).toEqual(['a', 'b', 'c'].map((source) => ['source.first_token', { source, seconds: 3_600 }]));
  });

  test('all use the token that replaces one that the service has forgotten', async () => {
    const sources = ['a', 'b', 'c'].map((id) => make({ ...shared, id }));
    await Promise.all(sources.map(asks));
    for (let times = 2; times < 6; times += 1) {
      service.good.clear();
      expect(await Promise.all(sources.map(asks))).toEqual(['read', 'read', 'read']);
      expect(service.tokens).toHaveLength(times);
    }
  });

  // The two queries of the last case: one is always refused, the other always answered.
  test.each([
    ['401', [401, 401], 0],
    ['400', [400, 400], 0],
    ['403', [403, 403], 0],
    ['404', [404, 404], 0],
    ['401 for one of two queries', [401, 401], 1],
  ] as const)('lose at most one token a minute to a source that gets %s', async (_name, statuses, answered) => {
    const [a, b, refused] = ['a', 'b', 'c'].map((id) => make({ ...shared, id })) as [UnderTest, UnderTest, UnderTest];
    const minutes = 4;
    for (let seconds = 0; seconds < minutes * 60; seconds += 5) {
      service.nextPages.push(...statuses.map((status) => answering(status)));
      expect(await asks(refused)).not.toBe('read');
      if (statuses[0] === 403) refused.source.renew?.();
      service.nextPages.length = 0;
      if (answered === 1) expect(await asks(refused)).toBe('read');
      expect([await asks(a), await asks(b)]).toEqual(['read', 'read']);
      clock.advance(5_000);
    }
    // The first one, and one for each begun minute.
    expect(service.tokens.length).toBeLessThanOrEqual(1 + minutes);
  });

  test('keep a token that becomes valid later by the clock of the service', async () => {
    const sources = ['a', 'b', 'c'].map((id) => make({ ...shared, id }));
    const issued = new Map<string, number>();
    const early: Handler = (request, response) => {
      const token = request.headers.authorization ?? '';
      issued.set(token, issued.get(token) ?? clock.monotonic());
      if (clock.monotonic() < (issued.get(token) ?? 0) + 70_000) answering(401)(request, response, '');
      else answerJson(response, 200, { pagination: { totalRecords: 0, pageSize: 100, itemsInPage: 0, page: 1 }, data: [] });
    };
    for (let seconds = 0; seconds < 75; seconds += 5) {
      for (const source of sources) {
        service.nextPages.splice(0, 9, early, early);
        await asks(source);
      }
      clock.advance(5_000);
    }
    for (const source of sources) {
      service.nextPages.splice(0, 9, early);
      expect(await asks(source)).toBe('read');
    }
    expect(service.tokens).toHaveLength(2);
  });

  test('are each named by the error of a wrong secret', async () => {
    service.secret = 'secret-2';
    const errors = await Promise.all(['a', 'b'].map((id) => errorOf(make({ ...shared, id }).page())));
    expect(errors.map(({ message }) => /; see (.*)/.exec(message)?.[1])).toEqual(['a', 'b'].map((id) => `sources.${id}.auth.clientSecret`));
    expect(service.tokens).toHaveLength(1);
  });

  test('do not end the login of the others when they end; the last one does', async () => {
    const [a, b] = ['a', 'b'].map((id) => make({ ...shared, id })) as [UnderTest, UnderTest];
    await a.page();
    await a.source[Symbol.asyncDispose]();
    service.good.clear();
    await b.page();
    expect(service.tokens).toHaveLength(2);
    await make({ ...shared, id: 'a' }).page();
    expect(service.tokens).toHaveLength(2);
    for (const { source } of open) await source[Symbol.asyncDispose]();
    await make({ ...shared, id: 'a' }).page();
    expect(service.tokens).toHaveLength(3);
  });

  test.each([
    { auth: { clientSecret: secretOf('secret-1') } },
    { scopeAddress: 'scope-2' },
    { tenantId: 'tenant-2' },
    { clientId: 'client-2' },
  ])('have tokens of their own with another login: %#', async ({ auth, ...other }) => {
    service.endsTokens = false;
    for (const each of [{}, { ...auth, ...other }]) await make({ ...shared, auth: { ...shared.auth, ...each } }).page();
    expect(service.tokens).toHaveLength(2);
  });
});

function pemless(value: string) {
  return { read: () => value, refresh: () => undefined, describe: () => 'a password of the test' };
}
