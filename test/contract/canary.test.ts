/**
 * No secret in any output. Each server returns each configured secret in each encoding, with
 * several statuses, in body, JSON, headers, status line and certificate; every output is searched
 * for fragments. `npm run test:canary` tries every case.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock, systemRandom } from '../../src/time/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config, SinkConfig } from '../../src/config/load.ts';
import { runDaemon } from '../../src/daemon/daemon.ts';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import { dispatch } from '../../src/main.ts';
import type { Sink } from '../../src/model/sink.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { TokenSource } from '../../src/sink/kafka/token.ts';
import { createSource } from '../../src/source/client.ts';
import type { ServiceSource } from '../../src/source/client.ts';
import { Budget } from '../../src/source/limits.ts';
import { canaries, Search } from '../support/canary.ts';
import { createAuthority } from '../support/certificates.ts';
import { answerOf, CertificateServer, EchoServer } from '../support/echo-servers.ts';
import type { Question, Saying } from '../support/echo-servers.ts';
import { encodings } from '../support/encodings.ts';
import { KafkaModel } from '../support/kafka-model.ts';
import { ModelElasticsearch } from '../support/model-elasticsearch.ts';
import { batchOf, contextOf, messages, ModelKept } from '../support/sinks/sink-batches.ts';
import { PostgresRefusal } from '../support/postgres-refusal.ts';
import { Secret } from '../../src/settings/secret.ts';
import { withDatabase } from '../../src/fleet/readers.ts';
import { shardNumbers } from '../../src/fleet/database.ts';
import { RelpReceiver } from '../support/sinks/syslog-receivers.ts';

/**
 * Only every `step`-th case is tried. 29 and 97 are coprime with the numbers of encodings, secrets,
 * statuses and forms, so that each of them occurs.
 */
const step = Number(process.env['WAYBILL_CANARY'] ?? 1);
/** The smallest number of cases at each place, and at places with slow cases. */
const [leastCases, leastSlowCases] = [74, 20];
/** More rounds of the daemon, too. */
const isWhole = step < 97;
const statuses = [200, 201, 400, 401, 403, 404, 413, 429, 500, 503];
const forms = ['text', 'json', 'headers'] as const;
const secrets = Object.entries(canaries);
const never = new AbortController().signal;
const marker = 'echo-of-the-server';

const directory = mkdtempSync(join(tmpdir(), 'waybill-canary-'));
const echo = new EchoServer(canaries.accessToken);
const elastic = new ModelElasticsearch();
const relp = new RelpReceiver();
const postgres = new PostgresRefusal();
const databasePassword = new Secret(canaries.databasePassword);
const broker = new KafkaModel({ user: { name: 'alice', password: 'another password' } }).create('audit');
let certificates: CertificateServer;
let config: Config;
let configFile: string;
const search = new Search();

/** Everything that the process itself writes. */
const written: string[] = [];
const writes = { stdout: process.stdout.write.bind(process.stdout), stderr: process.stderr.write.bind(process.stderr) };

beforeAll(async () => {
  const first = await (await createAuthority('first')).issue({ name: 'first', hosts: ['127.0.0.1'] });
  certificates = await new CertificateServer(first).listen();
  await Promise.all([echo.listen(), elastic.listen(), relp.listen(), broker.listen(), postgres.listen()]);
  const own = { cert: join(directory, 'own.pem'), key: join(directory, 'own.key') };
  writeFileSync(own.cert, first.cert);
  writeFileSync(own.key, first.key);
  const base = `http://127.0.0.1:${echo.port}`;
  const tls = `https://127.0.0.1:${certificates.port}`;
  const timing = {
    start: `${new Date(Date.now() - 60_000).toISOString().slice(0, 19)}Z`,
    pollInterval: '1s',
    closeDelay: '2s',
    recountAfter: ['3s'],
  };
  const requests = { perSecond: 500, timeout: '5s' };
  const auth = { authUrl: base, tenantId: 'tenant', clientId: 'client', clientSecret: canaries.clientSecret, scopeAddress: 'scope' };
  const user = { ...auth, clientSecret: undefined, grantType: 'password', username: 'user', password: canaries.userPassword };
  const proxy = { url: `http://user:${encodeURIComponent(canaries.proxyPassword)}@127.0.0.1:${echo.port}` };
  const subscriptionKey = canaries.subscriptionKey;
  configFile = join(directory, 'waybill.yaml');
  writeFileSync(
    configFile,
    JSON.stringify({
      dataDir: join(directory, 'state'),
      privacy: { key: canaries.privacyKey },
      admin: { listen: '127.0.0.1:0', token: canaries.adminToken, readToken: canaries.readToken },
      shutdownTimeout: '1s',
      sources: [
        { id: 'client', baseUrl: `${base}/v2/api`, auth, subscriptionKey, requests, ...timing },
        { id: 'user', baseUrl: `${base}/v2/api`, auth: user, requests, ...timing },
        { id: 'far', baseUrl: 'https://service.test/v2/api', auth: { ...auth, authUrl: 'https://login.test' }, proxy, requests, ...timing },
        { id: 'shown', baseUrl: tls, auth: { ...auth, authUrl: tls }, tls: { ...own, passphrase: canaries.passphrase }, requests, ...timing },
      ],
      sinks: [
        { id: 'key', type: 'elasticsearch', nodes: `http://127.0.0.1:${elastic.port}`, apiKey: canaries.apiKey },
        { id: 'pair', type: 'elasticsearch', nodes: `http://127.0.0.1:${elastic.port}`, username: 'elastic-user', password: canaries.elasticPassword },
        { id: 'hec', type: 'splunk-hec', url: base, token: canaries.hecToken },
        { id: 'relp', type: 'syslog', address: `relp://127.0.0.1:${relp.port}` },
        { id: 'kafka', type: 'kafka', brokers: [`127.0.0.1:${broker.port}`], topic: 'audit', sasl: { mechanism: 'PLAIN', username: 'alice', password: canaries.saslPassword } },
        { id: 'oauth', type: 'kafka', brokers: [`127.0.0.1:${broker.port}`], topic: 'audit', sasl: { mechanism: 'OAUTHBEARER', oauth: { tokenUrl: `${base}/kafka/token`, clientId: 'client', clientSecret: canaries.kafkaClientSecret } } },
      ],
    }), // prettier-ignore
  );
  ({ config } = await loadConfig(configFile, {}));
  databasePassword.read();
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (chunk: string | Uint8Array, ...rest: never[]): boolean => {
      written.push(String(chunk));
      return writes[name](chunk, ...rest);
    };
  }
});

afterAll(async () => {
  Object.assign(process.stdout, { write: writes.stdout });
  Object.assign(process.stderr, { write: writes.stderr });
  for (const each of [echo, elastic, relp, broker, postgres, certificates]) await each[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test('the search finds each secret in each encoding, also where an output escapes it', () => {
  expect(search.in(`${marker} end, [secret], {"type":"Bearer"}, <p>`)).toEqual([]);
  for (const [setting, secret] of secrets) {
    for (const { name, encode } of encodings) {
      const text = encode(secret);
      const html = text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
      for (const output of [text, JSON.stringify(text), html])
        expect(search.in(`${marker} ${output} end`), `${setting}, ${name}`).not.toEqual([]);
    }
  }
});

/** A place where a server can return text, and the call that makes it do so. */
interface Place {
  readonly name: string;
  readonly statuses: readonly number[];
  readonly forms: readonly Saying['form'][];
  /** If a case takes long: tries only one case of this many. */
  readonly every?: number;
  readonly provoke: (saying: Saying) => Promise<unknown>;
}

const sinkOf = (id: string): SinkConfig => {
  const found = config.sinks.find((sink) => sink.id === id);
  if (found === undefined) throw new Error(`no sink ${id}`);
  return found;
};
const openSink = (id: string): Promise<Sink> => sinkOf(id).definition.open(sinkOf(id).settings, contextOf(id), new ModelKept(), never);
const checkSink = (id: string): Promise<unknown> => sinkOf(id).definition.check(sinkOf(id).settings, contextOf(id), never);

function sourceOf(id: string): ServiceSource {
  const settings = config.sources.find((source) => source.id === id);
  if (settings === undefined) throw new Error(`no source ${id}`);
  return createSource(settings, { clock: systemClock, budget: new Budget(systemClock, 1_000), meters: { sourceRequest: () => undefined } });
}

const request = { query: {}, page: 1, pageSize: 100 };

/** Returns the text in response to matching requests while the call lasts. */
async function saying<Result>(wanted: (question: Question) => boolean, what: Saying, call: () => Promise<Result>): Promise<Result> {
  echo.say = (question) => (wanted(question) ? what : undefined);
  try {
    return await call();
  } finally {
    echo.say = () => undefined;
  }
}

const isToken = ({ path }: Question): boolean => path.endsWith('/token');
const isPage = ({ path }: Question): boolean => path.includes('/logs/');

function elasticSays(what: Saying, wanted: (path: string) => boolean): void {
  const { headers, body } = answerOf(what);
  const product = { 'x-elastic-product': 'Elasticsearch' };
  // Without this header the client only reports that the server is not Elasticsearch.
  elastic.fault = (_method, path) => (wanted(path) ? { status: what.status, text: body, headers: { ...headers, ...product } } : undefined);
}

async function places(open: AsyncDisposableStack): Promise<readonly Place[]> {
  const client = open.use(sourceOf('client'));
  const user = open.use(sourceOf('user'));
  const far = open.use(sourceOf('far'));
  const shown = open.use(sourceOf('shown'));
  await client.authenticate(never);
  // A source whose token the service has refused keeps it for a while.
  const fresh = open.use(sourceOf('client'));
  const hec = open.use(await openSink('hec'));
  const key = open.use(await openSink('key'));
  const { settings } = sinkOf('oauth') as { settings: { sasl?: { oauth?: ConstructorParameters<typeof TokenSource>[0] } } };
  const oauth = settings.sasl?.oauth;
  if (oauth === undefined) throw new Error('no oauth');
  const tokens = open.use(new TokenSource(oauth, contextOf('oauth')));
  const http = { statuses, forms };
  return [
    { ...http, name: 'page', provoke: (what) => saying(isPage, what, () => client.page(request, never)) },
    {
      ...{ ...http, name: 'token endpoint, client secret' },
      provoke: (what) => saying(isToken, what, () => (fresh.renew?.(), fresh.authenticate(never))),
    },
    {
      ...http,
      name: 'token endpoint, password',
      provoke: (what) => saying(isToken, what, () => (user.renew?.(), user.authenticate(never))),
    },
    { ...http, name: 'kafka token endpoint', provoke: (what) => saying(isToken, what, () => tokens.get()) },
    {
      ...{ name: 'proxy', statuses: [301, 400, 403, 407, 500, 502], forms: ['headers'] },
      provoke: (what) =>
        saying(
          ({ method }) => method === 'CONNECT',
          what,
          () => far.authenticate(never),
        ),
    },
    {
      ...{ ...http, name: 'elasticsearch, open' },
      provoke: (what) => (elasticSays(what, () => true), openSink(what.message.length % 2 === 0 ? 'key' : 'pair')),
    },
    { ...http, name: 'elasticsearch, check', provoke: (what) => (elasticSays(what, (path) => path !== '/'), checkSink('pair')) },
    {
      ...{ ...http, name: 'elasticsearch, batch' },
      provoke: (what) => (elasticSays(what, (path) => path === '/_bulk'), key.send(batchOf(messages(1, 2)), never)),
    },
    {
      ...{ name: 'elasticsearch, document', statuses: [201, 400, 401, 403, 429, 500], forms: ['json'] },
      provoke: ({ status, message: words }) => {
        const error = {
          type: status === 400 ? 'document_parsing_exception' : words,
          reason: words,
          caused_by: { type: words, reason: words },
        };
        const [message] = messages(1, 1);
        const create = { _id: message?.uid, status, ...(status === 201 ? { failure_store: 'used' } : { error }) };
        const hits = { hits: [{ _source: { error: { type: words, message: words } } }] };
        const headers = { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' };
        elastic.fault = (_method, path) => ({ status: 200, headers, body: path === '/_bulk' ? { items: [{ create }] } : { hits } });
        return key.send(batchOf(messages(1, 1)), never);
      },
    },
    {
      ...http,
      name: 'splunk-hec, check',
      provoke: (what) =>
        saying(
          () => true,
          what,
          () => checkSink('hec'),
        ),
    },
    {
      ...http,
      name: 'splunk-hec, batch',
      provoke: (what) =>
        saying(
          ({ bytes }) => bytes > 0,
          what,
          () => hec.send(batchOf(messages(1, 2)), never),
        ),
    },
    {
      ...{ name: 'RELP, open', statuses: [200, 500], forms: ['text'], every: 7 },
      provoke: async ({ status, message: words }) => {
        relp.opening = `${status} ${words}\nrelp_software=${words}`;
        return openSink('relp');
      },
    },
    {
      ...{ name: 'RELP, message', statuses: [500, 503], forms: ['text'], every: 7 },
      provoke: async ({ status, message: words }) => {
        relp.opening = '200 OK\nrelp_version=0\ncommands=syslog';
        relp.answer = () => `${status} ${words}`;
        await using sink = await openSink('relp');
        return await sink.send(batchOf(messages(1, 1)), never);
      },
    },
    {
      ...{ name: 'kafka, SASL', statuses: [58], forms: ['text'], every: 7 },
      provoke: async ({ message: words }) => {
        broker.refusal = words;
        return openSink('kafka');
      },
    },
    {
      // The index of a SQLSTATE: it refuses, passes, or is a defect.
      ...{ name: 'database of a fleet', statuses: [0, 1, 2], forms: ['text'], every: 3 },
      provoke: async ({ status, message: text }) => {
        postgres.says = { code: ['28P01', '57P03', 'XX000'][status] ?? '', text };
        const answer = withDatabase({ database: postgres.url, password: databasePassword }, shardNumbers);
        return answer.finally(() => expect(postgres.password).toBe(canaries.databasePassword));
      },
    },
    {
      ...{ name: 'certificate, issuer', statuses: [0], forms: ['text'], every: 3 },
      provoke: async ({ message: words }) => {
        certificates.show(await (await createAuthority(distinguished(words))).issue({ name: distinguished(words), hosts: ['127.0.0.1'] }));
        return shown.authenticate(never);
      },
    },
  ];
}

/** RFC 4514 section 2.4. A certificate holds 64 characters of a name: of a longer text, it shows none, because parts of a secret are not removed. */
function distinguished(words: string): string {
  const name = words.replace(/[^\x20-\x7e]/g, ' ').trim();
  return (name.length > 64 ? 'too long for a name' : name).replace(/[,+"\\<>;=#]/g, '\\$&'); // prettier-ignore
}

test(
  'no server, secret or encoding leaves a secret in errors, findings, rejections and the three log formats',
  { timeout: isWhole ? 3_600_000 : 120_000 },
  async () => {
    await using open = new AsyncDisposableStack();
    const lines: string[] = [];
    let ahead = 0;
    // The log repeats the same failure only once a minute.
    const clock = { ...systemClock, monotonic: () => (ahead += 61_000) };
    const logs = (['json', 'pretty', 'ecs'] as const).map((format) => {
      const settings = { level: 'debug', format, levels: {} } as const;
      return createLog(settings, clock, { write: (line: string) => lines.push(line) }, {}).root;
    });
    const counts: Record<string, { tried: number; quoted: number; removed: number }> = {};
    const reached = new Set<string>();
    for (const place of await places(open)) {
      const count = (counts[place.name] = { tried: 0, quoted: 0, removed: 0 });
      const all = place.statuses.length * place.forms.length * secrets.length * encodings.length;
      const stride = isWhole
        ? step * (place.every ?? 1)
        : Math.min(step, Math.max(1, Math.floor(all / (place.every === undefined ? leastCases : leastSlowCases))) | 1);
      for (let at = 0; at < all; at += stride) {
        const [setting, secret] = secrets[Math.floor(at / encodings.length) % secrets.length] ?? ['', ''];
        const encoding = encodings[at % encodings.length];
        const among = Math.floor(at / encodings.length / secrets.length);
        const status = place.statuses[among % place.statuses.length] ?? 0;
        const form = place.forms[Math.floor(among / place.statuses.length)] ?? 'text';
        const words = `${marker} ${encoding?.encode(secret) ?? ''} end`;
        lines.length = 0;
        const outcome = await place
          .provoke({ status, form, message: place.name.startsWith('certificate') ? words.slice(marker.length + 1) : words })
          .then(
            async (result) => {
              if (typeof result === 'object' && result !== null && Symbol.asyncDispose in result)
                await (result as Sink)[Symbol.asyncDispose]();
              return JSON.stringify(result, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
            },
            (thrown: unknown) => {
              for (const log of logs) log.write('daemon.failed', { name: messageOf(thrown), error: thrown, code: codeOf(thrown) });
              return `${messageOf(thrown)}\n${(thrown as Error).message}\n${(thrown as Error).stack ?? ''}`;
            },
          );
        const output = `${outcome}\n${lines.join('')}`;
        expect(search.in(output), `${place.name}, ${status}, ${form}, ${setting} as ${encoding?.name}`).toEqual([]);
        count.tried += 1;
        if (output.includes(marker) || place.name.startsWith('certificate')) count.quoted += 1;
        if (output.includes('[secret]')) count.removed += 1;
        reached.add(`${place.name}/${encoding?.name}`);
      }
    }
    elastic.fault = () => undefined;
    const total = Object.values(counts).reduce((sum, { tried }) => sum + tried, 0);
    writes.stdout(
      `canary: ${secrets.length} secrets × ${encodings.length} encodings, ${Object.keys(counts).length} places, ${total} answers, ${search.size} parts searched for\n`,
    );
    for (const [name, { tried, quoted, removed }] of Object.entries(counts)) writes.stdout(`canary: ${name}: ${tried} answers, ${quoted} quoted, ${removed} with a secret removed\n`); // prettier-ignore
    // A place that quotes no server would prove nothing.
    for (const [name, { removed }] of Object.entries(counts)) expect(removed, name).toBeGreaterThan(3);
  },
);

/** Runs one command of the program. @returns all its output */
async function command(...args: readonly string[]): Promise<string> {
  let output = '';
  const stream = (): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        output += chunk.toString();
        done();
      },
    });
  const io = { stdin: new PassThrough(), stdout: stream(), stderr: stream(), env: { WAYBILL_CONFIG: configFile }, signal: never };
  await dispatch(args, io);
  return output;
}

/** Every value of every table as text. */
function tablesOf(state: string, isWanted: (name: string) => boolean = () => true): Record<string, string> {
  const contents: Record<string, string> = {};
  using open = new DisposableStack();
  const db = open.adopt(new Database(join(state, 'waybill.db'), { readonly: true }), (each) => each.close());
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
  for (const table of tables.filter(isWanted)) {
    const rows = db.prepare(`SELECT * FROM "${table}"`).raw().all() as unknown[][];
    contents[`table ${table}`] = rows.flat().map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : String(value))).join('\n'); // prettier-ignore
  }
  return contents;
}

/** Every value of every table, and every file, as text. */
function stateOf(state: string): Record<string, string> {
  const contents = tablesOf(state);
  for (const entry of readdirSync(state, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) contents[`file ${entry.name}`] = readFileSync(join(entry.parentPath, entry.name), 'latin1');
  }
  return contents;
}

// promise: No output of the daemon and no file of the state shows a secret that a server sends back in one of the encodings that operations.md lists.
test(
  'the daemon with such servers leaves no secret in log, commands, admin server, and every file and table of the state',
  { timeout: isWhole ? 900_000 : 180_000 },
  async () => {
    const fresh = await loadConfig(configFile, {});
    const lines: string[] = [];
    const logs = createLog({ level: 'debug', format: 'json', levels: {} }, systemClock, { write: (line: string) => lines.push(line) }, {});
    let turn = 0;
    const next = (): Saying => {
      turn += 1;
      const [, secret = ''] = secrets[turn % secrets.length] ?? [];
      const words = `${marker} ${encodings[turn % encodings.length]?.encode(secret) ?? ''} end`;
      return { status: statuses[turn % statuses.length] ?? 400, form: forms[turn % forms.length] ?? 'text', message: words };
    };
    // Tokens and some pages are served, so that there are a ledger and windows with unreadable
    // pages.
    let pages = 0;
    echo.say = (question) =>
      isToken(question) ? (turn++ % 3 === 0 ? next() : undefined) : isPage(question) && pages++ % 4 === 0 ? undefined : next();
    elastic.fault = () => {
      const what = next();
      const { headers, body } = answerOf(what);
      return { status: what.status, text: body, headers: { ...headers, 'x-elastic-product': 'Elasticsearch' } };
    };
    relp.opening = `500 ${next().message}`;
    broker.refusal = next().message;

    const stop = new AbortController();
    const listening = Promise.withResolvers<readonly string[]>();
    const daemon = runDaemon(
      { config: fresh.config, version: '0.0.0', expectState: false, lockWait: 1_000, clock: systemClock, random: systemRandom, log: logs.root, listening: listening.resolve }, // prettier-ignore
      stop.signal,
    );
    const outputs: Record<string, string> = {};
    const keep = (name: string, output: string): void => void (outputs[name] = `${outputs[name] ?? ''}${output}`);
    try {
      const [address = ''] = await Promise.race([listening.promise, daemon.then(() => [])]);
      const rounds = isWhole ? 20 : 4;
      // A window becomes a gap, which stores the service's message, after its pages have failed
      // often enough.
      const deadline = performance.now() + 120_000;
      const isRecorded = (): boolean =>
        existsSync(join(directory, 'state', 'waybill.db')) &&
        tablesOf(join(directory, 'state'), (name) => name === 'windows')['table windows']?.includes('[secret]') === true;
      for (let round = 0; round < rounds; round += 1) {
        while (round === rounds - 1 && !isRecorded() && performance.now() < deadline)
          await new Promise((resolve) => setTimeout(resolve, 500));
        const before = echo.responses;
        const until = performance.now() + 20_000;
        while (echo.responses < before + 25 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
        expect(echo.responses, 'answers within 20 s').toBeGreaterThan(before);
        for (const args of [
          ...[['status'], ['status', '--json'], ['check'], ['ledger'], ['ledger', '--json'], ['gaps', 'list'], ['gaps', 'list', '--json']],
          ...[
            ['sinks', 'list'],
            ['sinks', 'list', '--json'],
            ['sources', 'list'],
            ['operations', 'list'],
            ['dead-letters', 'list', '--sink', 'hec'],
          ],
        ]) {
          keep(`waybill ${args.join(' ')}`, await command(...args));
        }
        for (const path of [
          '/',
          '/status',
          '/overview',
          '/readyz',
          '/healthz',
          '/metrics',
          ...['csv', 'html', 'json'].map((format) => `/ledger?format=${format}`),
        ]) {
          const answer = await fetch(`${address.startsWith('http') ? address : `http://${address}`}${path}`, {
            headers: { authorization: `Bearer ${canaries.adminToken}` },
          });
          keep(path, await answer.text());
        }
        relp.opening = `500 ${next().message}`;
        broker.refusal = next().message;
      }
    } finally {
      stop.abort();
      await daemon;
      logs.flush();
      echo.say = () => undefined;
      elastic.fault = () => undefined;
    }
    keep('log', lines.join(''));
    keep('standard output and error of the process', written.join(''));
    Object.assign(outputs, stateOf(join(directory, 'state')));
    for (const [name, output] of Object.entries(outputs)) expect(search.in(output), name).toEqual([]);
    const removedFrom = Object.entries(outputs).filter(([, output]) => output.includes('[secret]')).map(([name]) => name); // prettier-ignore
    writes.stdout(
      `canary: the daemon: ${turn} answers, ${Object.keys(outputs).length} outputs searched, a secret removed from: ${removedFrom.join(', ')}\n`,
    );
    // These outputs contain texts of the servers: they would show a secret.
    for (const name of [
      'log',
      'waybill status',
      'waybill status --json',
      'waybill check',
      'waybill ledger --json',
      '/status',
      '/overview',
      '/readyz',
      '/ledger?format=csv',
      '/ledger?format=html',
      'table windows',
    ])
      expect(removedFrom).toContain(name);
  },
);
