/**
 * `npm run bench -- flood [--rate 1000] [--rest 10] [--seconds 20] [--only TEXT] [--json]`: collects
 * and delivers 1,000 records a second while the admin server is flooded. Prints for each flood the
 * rates before, during and after it, the highest latency of `/healthz`, and resident memory; finally
 * SIGTERM in the middle of a flood. Exits 1 if a bound is missed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import type { Flood, Flooded } from './flood-client.ts';
import { Lines, Meter, Prober } from './flood-meter.ts';
import type { Health, Rates } from './flood-meter.ts';
import { flag, options, positiveInteger, positiveNumber, text } from './options.ts';
import { memoryMiB, sleep, start } from './process.ts';
import { table } from './table.ts';

const shutdownTimeoutMs = 10_000;
const token = 'flood-token';
const root = fileURLToPath(new URL('..', import.meta.url));
const say = (line: string): void => void process.stderr.write(`${line}\n`);

type Named = Omit<Flood, 'port' | 'seconds'> & { readonly name: string };
const bearer = { authorization: `Bearer ${token}` };
const wrong = { authorization: 'Bearer wrong' };
const one = { kind: 'pipelined', total: 30_000, connections: 1 } as const;
const twelve = { kind: 'pipelined', total: 200_000, connections: 12 } as const;
const floods: readonly Named[] = [
  { name: '/metrics, 30,000 pipelined', request: 'GET /metrics', ...one, headers: bearer },
  { name: '/metrics, 200,000 pipelined on 12', request: 'GET /metrics', ...twelve, headers: bearer },
  { name: '/metrics, no token, 200,000 pipelined on 12', request: 'GET /metrics', ...twelve },
  { name: '/metrics, wrong token, 200,000 pipelined on 12', request: 'GET /metrics', ...twelve, headers: wrong },
  { name: '/readyz, 30,000 pipelined', request: 'GET /readyz', ...one },
  { name: '/readyz, 200,000 pipelined on 12', request: 'GET /readyz', ...twelve },
  { name: '/healthz, 200,000 pipelined on 12', request: 'GET /healthz', ...twelve },
  { name: '/metrics one after the other on 12', kind: 'sequential', request: 'GET /metrics', total: 0, connections: 12, headers: bearer },
  { name: '/readyz one after the other on 200', kind: 'sequential', request: 'GET /readyz', total: 0, connections: 200 },
  { name: '/status, a connection each, 100 at once', kind: 'connections', request: 'GET /status', total: 0, connections: 100, headers: bearer },
  { name: 'the status page, a connection each, 100 at once', kind: 'connections', request: 'GET /overview', total: 0, connections: 100, headers: bearer },
  { name: '/ledger as html, 3,000 on 300', kind: 'sequential', request: 'GET /ledger?format=html', total: 3_000, connections: 300, headers: bearer },
  { name: '/ledger as html, no token, 200,000 on 12', request: 'GET /ledger?format=html', ...twelve },
  { name: '/ledger, 300 that do not read', kind: 'slow', request: 'GET /ledger', total: 300, connections: 300, headers: bearer },
  { name: '10,000 connections with half a request', kind: 'idle', request: 'GET /metrics', total: 10_000, connections: 2_000 },
  { name: 'POST /operations of 10 MB, 300 on 12', kind: 'bodies', request: 'POST /operations', total: 300, connections: 12, headers: bearer },
  { name: 'GET /readyz with 10 MB, 300 on 12', kind: 'bodies', request: 'GET /readyz', total: 300, connections: 12 },
]; // prettier-ignore

const { rate, rest, seconds, only, json } = options({
  /** Records per second. */
  rate: positiveInteger(1_000),
  /** Duration of the measurements before and after each flood, seconds. */
  rest: positiveNumber(10),
  /** Duration of a flood, seconds; up to three times as long until its requests are sent. */
  seconds: positiveNumber(20),
  /** Runs floods whose name contains this text. */
  only: text(`a part of one of these names: ${floods.map(({ name }) => name).join('; ')}`, (part) =>
    floods.some(({ name }) => name.includes(part)),
  ),
  json: flag,
});
const directory = mkdtempSync(join(tmpdir(), 'waybill-flood-'));
const out = join(directory, 'events.ndjson');

interface Row {
  readonly name: string;
  readonly flooded: Flooded;
  /** Records per second, collected and delivered. */
  readonly before: Rates;
  readonly during: Rates;
  readonly after: Rates;
  readonly health: Health;
  readonly memory: { readonly before: number; readonly most: number };
}
const service = start(process.execPath, [join(root, 'src/reference/main.ts'), '--json', '--rate', String(rate)], directory);
try {
  const line = JSON.parse(await service.firstLine) as ServiceLine;
  const port = await freePort();
  writeFileSync(join(directory, 'waybill.yaml'), configuration(line, port));
  const daemon = start(join(root, 'bin/waybill.js'), ['run', '--config', 'waybill.yaml'], directory);
  daemon.firstLine.catch(() => undefined);
  const lines = new Lines(out);
  const failed = daemon.ended.then((code) =>
    Promise.reject(new Error(`the daemon ended with ${code ?? 'a signal'} before its first delivery`)),
  );
  while (lines.count() < rate) await Promise.race([sleep(100), failed]);
  failed.catch(() => undefined);
  const db = new Database(join(directory, 'state/waybill.db'), { readonly: true });
  const rows: Row[] = [];
  for (const flood of floods.filter(({ name }) => only === undefined || name.includes(only)))
    rows.push(await measured(flood, port, daemon.pid, db, lines));
  db.close();
  const { ended } = await stopped(port, daemon);
  report(rows, ended);
} finally {
  await service[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
}

async function measured({ name, ...flood }: Named, port: number, pid: number, db: Database.Database, lines: Lines): Promise<Row> {
  say(name);
  const meter = new Meter(pid, db, lines);
  await sleep(rest * 1000);
  const before = meter.rates();
  const memoryBefore = memoryMiB(pid).now;
  const health = new Prober(port, pid);
  const client = start(process.execPath, [join(root, 'bench/flood-client.ts'), JSON.stringify({ ...flood, port, seconds })]);
  const flooded = JSON.parse(await client.firstLine) as Flooded;
  const during = meter.rates();
  const { memoryMost, ...asked } = await health.end();
  await client.ended;
  await sleep(rest * 1000);
  return { name, flooded, before, during, after: meter.rates(), health: asked, memory: { before: memoryBefore, most: memoryMost } };
}

/** Stops the daemon in the middle of a flood. @returns how long that took, ms */
async function stopped(port: number, daemon: ReturnType<typeof start>): Promise<{ ended: number }> {
  say('SIGTERM');
  const flood: Flood = { kind: 'sequential', request: 'GET /metrics', headers: bearer, total: 0, connections: 50, seconds: 5, port };
  const client = start(process.execPath, [join(root, 'bench/flood-client.ts'), JSON.stringify(flood)]);
  client.firstLine.catch(() => undefined);
  await sleep(2_000);
  const began = performance.now();
  await daemon[Symbol.asyncDispose]();
  const ended = performance.now() - began;
  await client[Symbol.asyncDispose]();
  return { ended };
}

function report(rows: readonly Row[], endedMs: number): void {
  const faults = rows.flatMap(({ name, before, during, health }) => [
    // The expectation is relative to the rate before the flood.
    ...(during.collected < 0.9 * Math.min(rate, before.collected) ? [`${name}: collected less than nine tenths`] : []),
    ...(during.delivered < 0.9 * Math.min(rate, before.delivered) ? [`${name}: delivered less than nine tenths`] : []),
    ...(health.failed > 0 || health.slowestMs > 1_000 ? [`${name}: /healthz did not answer within a second`] : []),
  ]);
  if (endedMs > shutdownTimeoutMs) faults.push(`SIGTERM took ${Math.round(endedMs)} ms of ${shutdownTimeoutMs}`);
  if (json) process.stdout.write(`${JSON.stringify({ rows, endedMs, faults }, null, 2)}\n`);
  else {
    const whole = (number: number): string => Math.round(number).toLocaleString('en');
    const rates = (of: Rates): string => `${whole(of.collected)} / ${whole(of.delivered)}`;
    const share = (of: Rates): string => whole(of.mainThread * 100);
    process.stdout.write(
      `${table(
        [
          'flood',
          'requests written',
          'answered',
          'before',
          'during',
          'after',
          'main thread, % of a CPU',
          '/healthz at most, ms',
          'memory, MiB',
        ],
        rows.map((row) => [
          row.name,
          whole(row.flooded.sent),
          Object.entries(row.flooded.answers).map(([status, count]) => `${whole(count)} × ${status}`).join(', ') || 'none', // prettier-ignore
          rates(row.before),
          rates(row.during),
          rates(row.after),
          `${share(row.before)}, ${share(row.during)}, ${share(row.after)}`,
          `${whole(row.health.slowestMs)}${row.health.failed > 0 ? ` (${row.health.failed} of ${row.health.asked} failed)` : ''}`,
          `${whole(row.memory.before)} → ${whole(row.memory.most)}`,
        ]),
      )}\n\nRates: records a second, collected / delivered. SIGTERM during a flood: ${whole(endedMs)} ms.\n`,
    );
  }
  for (const fault of faults) say(fault);
  if (faults.length > 0) process.exitCode = 1;
}

interface ServiceLine {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly tenantId: string;
  readonly scopeAddress: string;
  readonly subscriptionKey: string;
  readonly ca: string;
  readonly clients: readonly { readonly clientId: string; readonly clientSecret: string; readonly roles: readonly string[] }[];
}

function configuration({ clients, ca, subscriptionKey, ...service }: ServiceLine, port: number): string {
  const client = clients.find(({ roles }) => roles.includes('Security Administrator'));
  if (!client) throw new Error('the reference service has no Security Administrator');
  const { baseUrl, authUrl, tenantId, scopeAddress } = service;
  const { clientId, clientSecret } = client;
  return JSON.stringify({
    dataDir: './state',
    sources: [
      {
        id: 'bench',
        baseUrl,
        subscriptionKey,
        tls: { ca },
        start: 'now',
        pollInterval: '1s',
        closeDelay: '10s',
        auth: { authUrl, tenantId, scopeAddress, clientId, clientSecret },
        requests: { perSecond: 1_000 },
      },
    ],
    sinks: [{ id: 'file', type: 'file', path: out }],
    admin: { listen: `127.0.0.1:${port}`, token },
    shutdownTimeout: `${shutdownTimeoutMs / 1000}s`,
    log: { level: 'error' },
  });
}

async function freePort(): Promise<number> {
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
