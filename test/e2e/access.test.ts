/**
 * Invalid credentials, permissions, addresses and certificates: `check` exits 1 and names the
 * setting; the daemon continues, reports the same at `/readyz`, and resumes by itself once the
 * cause is fixed. One source for each, all in one daemon.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { Settings } from '../support/e2e-daemon.ts';
import { Place, until, patience } from '../support/e2e-place.ts';
import type { Done } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

interface Case {
  readonly id: string;
  /** What the message must contain: the setting and the reason. */
  readonly says: readonly RegExp[];
  readonly change: (source: Source) => void;
  /** The file that contains the fault, and its correct text. */
  readonly correct?: () => readonly [file: string, text: string];
  readonly role?: string;
}

interface Source extends Settings {
  baseUrl: string;
  subscriptionKey: string;
  tls: { ca: string };
  auth: { authUrl: string; tenantId: string; clientId: string; clientSecret: string; scopeAddress: string; tls?: { ca: string } };
}

const place = new Place('access');
let service: Service;
let daemon: Daemon;
let checked: Done;
let findings: readonly { readonly subject: string; readonly level: string; readonly message: string }[];
const expired = { port: 0, ca: '' };
const wrongSecret = 'not-the-secret-of-anyone';

const cases: readonly Case[] = [
  {
    id: 'secret',
    says: [/sources\.secret\.auth\.clientSecret/, /cannot obtain a token/],
    change: (source) => (source.auth.clientSecret = inFile('secret', wrongSecret)),
    correct: () => ['secret', service.client('Security Administrator').clientSecret],
  },
  {
    id: 'key',
    says: [/sources\.key\.subscriptionKey|subscriptionKey/, /401|not accept/],
    change: (source) => (source.subscriptionKey = inFile('key', wrongSecret)),
    correct: () => ['key', service.line.subscriptionKey],
  },
  { id: 'client', says: [/sources\.client\.auth\.clientId/], change: (source) => (source.auth.clientId = 'nobody') },
  { id: 'tenant', says: [/sources\.tenant\.auth\.tenantId/], change: (source) => (source.auth.tenantId = 'nowhere') },
  { id: 'scope', says: [/sources\.scope\.auth\.scopeAddress/], change: (source) => (source.auth.scopeAddress = 'elsewhere.example') },
  { id: 'recipient', role: 'Recipient', says: [/sources\.recipient/, /logs\.read\.all|permission|right/], change: () => undefined },
  { id: 'author', role: 'Author', says: [/sources\.author/, /logs\.read\.all|permission|right/], change: () => undefined },
  {
    id: 'port',
    says: [/sources\.port\.baseUrl/, /127\.0\.0\.1:1\b/, /cannot reach/],
    change: (source) => (source.baseUrl = 'https://127.0.0.1:1/v2/api'),
  },
  {
    id: 'host',
    says: [/sources\.host\.baseUrl/, /nowhere\.invalid/, /cannot reach/],
    change: (source) => (source.baseUrl = 'https://nowhere.invalid/v2/api'),
  },
  {
    id: 'header',
    says: [/sources\.header\.subscriptionKey/, /a header cannot carry/],
    change: (source) => (source.subscriptionKey = 'ключ'),
  },
  {
    id: 'token-port',
    says: [/sources\.token-port\.auth\.authUrl/, /cannot obtain a token/],
    change: (source) => (source.auth.authUrl = 'https://127.0.0.1:1'),
  },
  { id: 'path', says: [/sources\.path/, /404/], change: (source) => (source.baseUrl = source.baseUrl.replace('/v2/api', '/v2/api/other')) },
  {
    id: 'ca',
    says: [/sources\.ca\.(auth\.)?tls\.ca/, /is not trusted/, /Stranger/],
    change: (source) => (source.tls.ca = place.path('ca.pem')),
    correct: () => ['ca.pem', readFileSync(service.line.ca, 'utf8')],
  },
  {
    id: 'expired',
    says: [/sources\.expired\.tls\.ca/, /has expired/],
    change: (source) => {
      source.auth.tls = source.tls;
      source.baseUrl = `https://127.0.0.1:${expired.port}/v2/api`;
      source.tls = { ca: expired.ca };
    },
  },
];

beforeAll(async () => {
  await place.during(async () => {
    const authority = await createAuthority('Stranger');
    writeFileSync(place.path('ca.pem'), authority.cert);
    expired.ca = place.path('stranger.pem');
    writeFileSync(expired.ca, authority.cert);
    const day = 86_400_000;
    const old = { name: 'old', hosts: ['127.0.0.1'], notBefore: new Date(Date.now() - 9 * day), notAfter: new Date(Date.now() - day) };
    const server = createServer(await authority.issue(old)).listen(0, '127.0.0.1');
    server.unref();
    await new Promise((resolve) => server.once('listening', resolve));
    expired.port = (server.address() as AddressInfo).port;

    service = await Service.start(place, '--records', '300', '--span', '1m');
    const sources = cases.map(({ id, change, role }) => {
      const source = sourceOf(service, ago(90_000), { id }, role) as Source;
      change(source);
      return source;
    });
    sources.push(sourceOf(service, ago(90_000), { id: 'sound' }) as Source);
    configure(place, sources, [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);
    checked = await place.waybill('check', '--config', 'waybill.yaml', '--json');
    if (!checked.stdout.startsWith('{')) throw new Error(`check ended with ${checked.code ?? 'a signal'}: ${checked.stderr}`);
    ({ findings } = JSON.parse(checked.stdout) as { findings: typeof findings });
    daemon = new Daemon(place);
    await until('the sound source works', patience, async () => ((await readyz('sound')).status === 200 ? true : undefined));
  });
});

afterAll(() => place[Symbol.asyncDispose]());

test('check exits 1 with one error for each wrong source and none for the right one', () =>
  place.during(async () => {
    expect(checked.code).toBe(1);
    const errors = findings.filter(({ level }) => level === 'error');
    expect(errors.map(({ subject }) => subject).sort()).toEqual(cases.map(({ id }) => `source ${id}`).sort());
    const sound = findings.filter(({ subject }) => subject === 'source sound');
    expect(sound).toContainEqual(
      expect.objectContaining({ level: 'ok', message: expect.stringMatching(/totalRecords equals the records returned: \d+/) as string }),
    );
  }));

test('check counts the records of a window itself and warns if totalRecords differs', () =>
  place.during(async () => {
    await service.set({ total: 'capped', totalCap: 3 });
    const { stdout, code } = await place.waybill('check', '--config', 'waybill.yaml', '--source', 'sound');
    await service.set({ total: 'right' });
    expect(code).toBe(0);
    expect(stdout.replace(/\s+/g, ' ')).toMatch(
      /source sound warning totalRecords differs from the records returned: 3 counted, \d+ returned in the sample window \S+Z to \S+Z; windows cannot be verified/,
    );
  }));

test.each(cases)('$id: check and /readyz name the setting and the reason', ({ id, says }) =>
  place.during(async () => {
    const words = findings.find(({ subject, level }) => subject === `source ${id}` && level === 'error')?.message ?? '';
    for (const said of says) expect(words).toMatch(said);
    expect(words, 'one line').not.toMatch(/\n|\.$/);
    const { status, text } = await readyz(id);
    expect(status).toBe(503);
    for (const said of says) expect(text).toMatch(said);
  }),
);

const correctable = cases.filter(({ correct }) => correct);
test('a corrected file makes its source ready without a restart', { timeout: 300_000 }, () =>
  place.during(async () => {
    for (const { correct } of correctable) {
      const [file, text] = correct?.() ?? ['', ''];
      writeFileSync(place.path(file), text);
    }
    for (const { id } of correctable)
      await until(
        () => `/readyz of ${id} with 200\n${daemon.words()}`,
        75_000,
        async () => ((await readyz(id)).status === 200 ? true : undefined),
      );
  }),
);

test('a revoked permission makes the source not ready, and the restored permission makes it ready', { timeout: 300_000 }, () =>
  place.during(async () => {
    await service.set({ permissions: 'none' });
    await until('/readyz of sound says the right is missing', patience, async () => {
      const { status, text } = await readyz('sound');
      return status === 503 && text.includes('403') ? true : undefined;
    });
    await service.set({ permissions: 'full' });
    await until('/readyz of sound with 200', 75_000, async () => ((await readyz('sound')).status === 200 ? true : undefined));
  }),
);

test('an outage of the token endpoint makes the source not ready until the endpoint responds', { timeout: 300_000 }, () =>
  place.during(async () => {
    await service.set({ identityProvider: 'unavailable', revokeTokens: 'now' });
    await until('/readyz of sound names the token endpoint', patience, async () => {
      const { status, text } = await readyz('sound');
      return status === 503 && text.includes('sources.sound.auth.authUrl') ? true : undefined;
    });
    await service.set({ identityProvider: 'up' });
    await until('/readyz of sound with 200', 75_000, async () => ((await readyz('sound')).status === 200 ? true : undefined));
  }),
);

test('the daemon still runs, and no output contains a secret', () =>
  place.during(async () => {
    expect((await daemon.get('/healthz')).status).toBe(200);
    const log = readFileSync(place.path('daemon.log'), 'utf8');
    const metrics = (await daemon.get('/metrics')).text;
    const status = (await daemon.get('/status')).text;
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    const { subscriptionKey, clients } = service.line;
    for (const said of [log, metrics, status, checked.stdout, checked.stderr])
      for (const secret of [wrongSecret, subscriptionKey, ...clients.map(({ clientSecret }) => clientSecret)])
        expect(said).not.toContain(secret);
  }));

function readyz(source: string): Promise<{ status: number; text: string }> {
  return daemon.get(`/readyz?source=${source}`);
}

function inFile(name: string, text: string): string {
  writeFileSync(place.path(name), text);
  return `\${file:${place.path(name)}}`;
}
