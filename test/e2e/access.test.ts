/**
 * Invalid credentials, permissions, addresses and certificates: `check` exits 1 and names the
 * setting; the daemon continues, reports the same at `/readyz`, and resumes by itself once the
 * cause is fixed. One source for each, all in one daemon. `npm test` runs four of the cases.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { Settings } from '../support/e2e-daemon.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
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

interface Finding {
  readonly subject: string;
  readonly level: string;
  readonly message: string;
}

interface Ready {
  readonly status: number;
  readonly text: string;
}

const wrongSecret = 'not-the-secret-of-anyone';

/** @param expired  a server with an expired certificate */
const casesOf = (place: Place, service: Service, expired: { readonly port: number; readonly ca: string }): readonly Case[] => [
  {
    id: 'secret',
    says: [/sources\.secret\.auth\.clientSecret/, /cannot obtain a token/],
    change: (source) => (source.auth.clientSecret = inFile(place, 'secret', wrongSecret)),
    correct: () => ['secret', service.client('Security Administrator').clientSecret],
  },
  {
    id: 'key',
    says: [/sources\.key\.subscriptionKey|subscriptionKey/, /401|not accept/],
    change: (source) => (source.subscriptionKey = inFile(place, 'key', wrongSecret)),
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

test('a wrong setting is named by check and at /readyz, and its source resumes once the setting is right', { timeout: 600_000 }, () =>
  inPlace('access', async (place) => {
    const expired = await startExpired(place);
    const service = await Service.start(place, '--records', '300', '--span', '1m');
    const cases = casesOf(place, service, expired);
    const sources = cases.map(({ id, change, role }) => {
      const source = sourceOf(service, ago(90_000), { id }, role) as Source;
      change(source);
      return source;
    });
    sources.push(sourceOf(service, ago(90_000), { id: 'sound' }) as Source);
    configure(place, sources, [{ id: 'siem', type: 'file', path: './siem.ndjson' }]);

    // `check` exits 1 with one error for each wrong source and none for the right one.
    const checked = await place.waybill('check', '--config', 'waybill.yaml', '--json');
    expect({ code: checked.code, stderr: checked.stderr }).toEqual({ code: 1, stderr: '' });
    const { findings } = JSON.parse(checked.stdout) as { findings: readonly Finding[] };
    const errors = findings.filter(({ level }) => level === 'error');
    expect(errors.map(({ subject }) => subject).sort()).toEqual(cases.map(({ id }) => `source ${id}`).sort());
    const counted = expect.stringMatching(/totalRecords equals the records returned: \d+/) as string;
    expect(findings.filter(({ subject }) => subject === 'source sound')).toContainEqual(
      expect.objectContaining({ level: 'ok', message: counted }),
    );
    await expectCounted(place, service);

    const daemon = new Daemon(place);
    const readyz = (source: string): Promise<Ready> => daemon.get(`/readyz?source=${source}`);
    const readyAgain = (id: string, ms = 75_000): Promise<true> =>
      until(
        () => `/readyz of ${id} with 200\n${daemon.words()}`,
        ms,
        async () => ((await readyz(id)).status === 200 ? true : undefined),
      );
    await readyAgain('sound', patience);
    for (const { id, says } of cases) {
      const message = errors.find(({ subject }) => subject === `source ${id}`)?.message ?? '';
      expect(message, 'one line').not.toMatch(/\n|\.$/);
      for (const pattern of says) expect(message, id).toMatch(pattern);
      let last: Ready | undefined;
      await until(
        () => `/readyz of ${id} with 503 and the reason, but ${JSON.stringify(last)}`,
        patience,
        async () => {
          last = await readyz(id);
          return last.status === 503 && says.every((pattern) => pattern.test(last?.text ?? '')) ? true : undefined;
        },
      );
    }

    // A corrected file makes its source ready without a restart.
    const corrected = cases.filter(({ correct }) => correct);
    for (const { correct } of corrected) {
      const [file, text] = correct?.() ?? ['', ''];
      writeFileSync(place.path(file), text);
    }
    for (const { id } of corrected) await readyAgain(id);
    await expectOutages(service, readyz, () => readyAgain('sound'));

    expect((await daemon.get('/healthz')).status).toBe(200);
    const outputs = [checked.stdout, (await daemon.get('/metrics')).text, (await daemon.get('/status')).text];
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    outputs.push(readFileSync(place.path('daemon.log'), 'utf8'));
    const { subscriptionKey, clients } = service.line;
    for (const output of outputs)
      for (const secret of [wrongSecret, subscriptionKey, ...clients.map(({ clientSecret }) => clientSecret)])
        expect(output).not.toContain(secret);
  }),
);

/** `check` counts the records of a window itself and warns if totalRecords differs. */
async function expectCounted(place: Place, service: Service): Promise<void> {
  await service.set({ total: 'capped', totalCap: 3 });
  const { stdout, code } = await place.waybill('check', '--config', 'waybill.yaml', '--source', 'sound');
  await service.set({ total: 'right' });
  expect(code).toBe(0);
  expect(stdout.replace(/\s+/g, ' ')).toMatch(
    /source sound warning totalRecords differs from the records returned: 3 counted, \d+ returned in the sample window \S+Z to \S+Z; windows cannot be verified/,
  );
}

/** A revoked permission and an outage of the token endpoint make the source not ready while they last. */
async function expectOutages(service: Service, readyz: (source: string) => Promise<Ready>, readyAgain: () => Promise<true>): Promise<void> {
  await service.set({ permissions: 'none' });
  await until('/readyz of sound says the right is missing', patience, async () => {
    const { status, text } = await readyz('sound');
    return status === 503 && text.includes('403') ? true : undefined;
  });
  await service.set({ permissions: 'full' });
  await readyAgain();
  await service.set({ identityProvider: 'unavailable', revokeTokens: 'now' });
  await until('/readyz of sound names the token endpoint', patience, async () => {
    const { status, text } = await readyz('sound');
    return status === 503 && text.includes('sources.sound.auth.authUrl') ? true : undefined;
  });
  await service.set({ identityProvider: 'up' });
  await readyAgain();
}

/** Starts a server with an expired certificate. `stranger.pem` and `ca.pem` are the certificate of its authority. */
async function startExpired(place: Place): Promise<{ port: number; ca: string }> {
  const authority = await createAuthority('Stranger');
  const ca = place.path('stranger.pem');
  for (const file of [ca, place.path('ca.pem')]) writeFileSync(file, authority.cert);
  const day = 86_400_000;
  const old = { name: 'old', hosts: ['127.0.0.1'], notBefore: new Date(Date.now() - 9 * day), notAfter: new Date(Date.now() - day) };
  const server = createServer(await authority.issue(old)).listen(0, '127.0.0.1');
  server.unref();
  await new Promise((resolve) => server.once('listening', resolve));
  return { port: (server.address() as AddressInfo).port, ca };
}

function inFile(place: Place, name: string, text: string): string {
  writeFileSync(place.path(name), text);
  return `\${file:${place.path(name)}}`;
}
