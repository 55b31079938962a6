/**
 * `npm run bench -- logs-endpoint [--records 1000000] [--seconds 10] [--connections 8] [--windows
 * 300] [--json]`: the speed of the reference service's log over HTTPS. wrk (Debian: `apt-get
 * install wrk`) requests full pages, each of another window, and compares total, items, page and
 * length of every response with the truth; the floor is the same server with prepared bytes, before
 * and after. Then single sequential requests: the latency of a collector's windows, and of wide
 * ones. Machines are shared: quote ratios.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { randomOf } from '../src/reference/random.ts';
import { Client, type StartLine } from './logs-client.ts';
import { Truth, type Expected } from './logs-truth.ts';
import { flag, integerFromZero, options, positiveInteger } from './options.ts';
import { cpuSeconds, mainThreadMs, start, type Program } from './process.ts';
import { table } from './table.ts';

const { records, seconds, connections, windows, json } = options({
  records: positiveInteger(1_000_000),
  /** Duration of the load for each page size; 0: none. */
  seconds: integerFromZero(10),
  connections: positiveInteger(8),
  /** Number of sequential requests of each kind; 0: none. */
  windows: integerFromZero(300),
  json: flag,
});
const pageSizes = [100, 1000];
const warmSeconds = 3;
/** The number of planned requests per second, more than any machine can serve. */
const plannedPerSecond = 2_000_000;
const checkedPages = 100;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** The output of wrk's script. `broken`: failed connections and responses. */
interface Load {
  readonly pages: number;
  readonly records: number;
  readonly wrong: number;
  readonly example: string;
  readonly broken: number;
  readonly seconds: number;
  readonly bytes: number;
  readonly p50ms: number;
  readonly p99ms: number;
}

interface Rate {
  readonly pagesPerSecond: number;
  /** Of the server process. */
  readonly pagesPerCpuSecond: number;
  readonly megabytesPerSecond: number;
  readonly p50ms: number;
  readonly p99ms: number;
}

if (spawnSync('wrk', ['-v']).error) {
  say('the load comes from wrk, which is not here: apt-get install wrk');
  process.exit(1);
}
const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'waybill-bench-logs-'));
/** The service and the floor use certificates of one CA. */
const tlsFolder = join(folder, 'tls');
const random = randomOf('bench');
const main = path('../src/reference/main.ts');
const service = start(process.execPath, [main, '--json', '--records', String(records), '--span', '1d', '--tls-dir', tlsFolder]);
try {
  const line = JSON.parse(await service.firstLine) as StartLine;
  await using client = await Client.of(line);
  const { headers } = client;
  const truth = await Truth.of(line.control);
  say(`${truth.records} records`);

  const rates: { pageSize: number; service: Rate; floor: Rate; ofFloor: number }[] = [];
  for (const pageSize of seconds === 0 ? [] : pageSizes) {
    await load(line.baseUrl, headers, plan(truth, pageSize, warmSeconds), warmSeconds);
    const asked = plan(truth, pageSize, seconds);
    const [first] = asked;
    if (!first) throw new Error(`there is no full page of ${pageSize}`);
    const before = await floor(headers, first);
    const answersBefore = await client.answers();
    const served = await measured(service.pid, () => load(line.baseUrl, headers, asked, seconds));
    const counted = (await client.answers()) - answersBefore;
    // At the end, each connection may be cut during a request.
    if (counted < served.load.pages || counted > served.load.pages + connections) {
      throw new Error(`wrk has ${served.load.pages} answers, the service counts ${counted}`);
    }
    const after = await floor(headers, first);
    for (let i = 0; i < checkedPages; i += 1) {
      const one = asked[Math.floor((i * asked.length) / checkedPages)];
      if (one) await client.check(truth, one);
    }
    const mean = meanOf(before, after);
    rates.push({ pageSize, service: served.rate, floor: mean, ofFloor: served.rate.pagesPerSecond / mean.pagesPerSecond });
    say(`${served.load.pages} pages of ${pageSize}: every total, number of items and length right; ${checkedPages} compared id by id`);
  }
  const times = windows === 0 ? [] : await timesOf(client, truth);
  if (json) process.stdout.write(`${JSON.stringify({ records: truth.records, rates, times })}\n`);
  else print(rates, times);
} finally {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}

/** Full pages of windows with one to five pages, each of another window. */
function plan(truth: Truth, pageSize: number, forSeconds: number): Expected[] {
  const pageMs = (truth.spanMs / truth.records) * pageSize;
  const planned: Expected[] = [];
  while (planned.length < (forSeconds * plannedPerSecond) / pageSize) {
    const lengthMs = pageMs * (1.2 + 4 * random());
    const window = truth.window(random() * (truth.spanMs - lengthMs), lengthMs);
    const pages = Math.floor(window.total / pageSize);
    if (pages > 0) planned.push(truth.page(window, 1 + Math.floor(random() * pages), pageSize));
  }
  return planned;
}

async function load(url: string, headers: Readonly<Record<string, string>>, asked: readonly Expected[], forSeconds: number): Promise<Load> {
  const file = join(folder, 'plan');
  const root = new URL(url).pathname;
  writeFileSync(
    file,
    asked.map(({ path, total, items, page, bytes }) => `${[root + path, total, items, page, bytes].join('\t')}\n`).join(''),
  );
  const args = [
    ...['-t', String(connections), '-c', String(connections), '-d', `${forSeconds}s`, '--timeout', '30s', '-s', path('logs-endpoint.lua')],
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...[url, '--', file, String(connections)],
  ];
  const wrk = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  for await (const part of wrk.stdout.setEncoding('utf8') as AsyncIterable<string>) out += part;
  const text = /^\{.*\}$/m.exec(out)?.[0];
  if (text === undefined) throw new Error(`wrk has no figures: ${out}`);
  const figures = JSON.parse(text) as Load;
  if (figures.wrong > 0 || figures.broken > 0) {
    throw new Error(`${figures.wrong} answers are wrong and ${figures.broken} broken, such as: ${figures.example}`);
  }
  return figures;
}

async function measured(pid: number, work: () => Promise<Load>): Promise<{ load: Load; rate: Rate }> {
  const cpu = cpuSeconds(pid);
  const load = await work();
  const rate = {
    pagesPerSecond: load.pages / load.seconds,
    pagesPerCpuSecond: load.pages / (cpuSeconds(pid) - cpu),
    megabytesPerSecond: load.bytes / load.seconds / 1e6,
    p50ms: load.p50ms,
    p99ms: load.p99ms,
  };
  return { load, rate };
}

/** A floor whose responses have the length of this request's response, and its URL. */
async function floorOf(one: Expected): Promise<{ server: Program; url: string }> {
  const pagination = { totalRecords: one.total, pageSize: one.items, itemsInPage: one.items, page: one.page };
  const head = `{"pagination":${JSON.stringify(pagination)},"data":[`;
  const server = start(process.execPath, [path('logs-endpoint-floor.ts'), tlsFolder, head, String(one.bytes)]);
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  return { server, url: `https://127.0.0.1:${port}/v2/api` };
}

async function floor(headers: Readonly<Record<string, string>>, one: Expected): Promise<Rate> {
  const { server, url } = await floorOf(one);
  try {
    await load(url, headers, [one], 1);
    return (await measured(server.pid, () => load(url, headers, [one], seconds))).rate;
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

function meanOf(one: Rate, other: Rate): Rate {
  const means = (Object.entries(one) as [keyof Rate, number][]).map(([name, value]) => [name, (value + other[name]) / 2]);
  return Object.fromEntries(means) as Rate;
}

interface Times {
  readonly what: string;
  readonly median: number;
  readonly p95: number;
  readonly p99: number;
  readonly worst: number;
  /** CPU time of the server's main thread per request: mean and maximum. */
  readonly cpu: number;
  readonly worstCpu: number;
  /** The number of records in the slowest window. */
  readonly worstTotal: number;
}

/**
 * Single requests of each kind, ms. The floor is requested after each, so that both see the same
 * machine load.
 */
async function timesOf(client: Client, truth: Truth): Promise<Times[]> {
  const span = truth.spanMs;
  const recordMs = span / truth.records;
  /** Widths on a logarithmic scale, so that narrow ones are as frequent as wide ones. */
  const width = (least: number, most: number): number => least * (most / least) ** random();
  const anyOf = (pages: number): number => 1 + Math.floor(random() * pages);
  const kinds: [what: string, lengthMs: () => number, page: (pages: number) => number][] = [
    ['1 to 10,000 records, first page', () => recordMs * width(1, 10_000), () => 1],
    ['1 to 10,000 records, any page', () => recordMs * width(1, 10_000), anyOf],
    ['10,000 records to all, first page', () => width(recordMs * 10_000, span), () => 1],
    ['10,000 records to all, any page', () => width(recordMs * 10_000, span), anyOf],
  ];
  const { server, url } = await floorOf(truth.page(truth.window(0, span), 1, 100));
  try {
    const ofFloor: Asked[] = [];
    const all = [];
    for (const [what, lengthOf, pageOf] of kinds) {
      const asked: Asked[] = [];
      for (let i = 0; i < windows; i += 1) {
        const lengthMs = lengthOf();
        const window = truth.window(random() * (span - lengthMs), lengthMs);
        const one = truth.page(window, pageOf(Math.max(1, Math.ceil(window.total / 100))), 100);
        asked.push(await asking(service.pid, one, () => client.check(truth, one)));
        ofFloor.push(await asking(server.pid, one, async () => (await client.ask(url + one.path)).ms));
      }
      all.push(summed(what, asked));
    }
    return [summed('floor: prepared bytes', ofFloor), ...all];
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

interface Asked {
  readonly ms: number;
  readonly cpuMs: number;
  readonly total: number;
}

async function asking(pid: number, { total }: Expected, ask: () => Promise<number>): Promise<Asked> {
  const before = mainThreadMs(pid);
  const ms = await ask();
  return { ms, cpuMs: mainThreadMs(pid) - before, total };
}

function summed(what: string, asked: Asked[]): Times {
  asked.sort((a, b) => a.ms - b.ms);
  const at = (share: number): number => asked[Math.min(asked.length - 1, Math.floor(share * asked.length))]?.ms ?? 0;
  const cpu = asked.map(({ cpuMs }) => cpuMs);
  return {
    what,
    median: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    worst: at(1),
    cpu: cpu.reduce((sum, ms) => sum + ms, 0) / cpu.length,
    worstCpu: Math.max(...cpu),
    worstTotal: asked.at(-1)?.total ?? 0,
  };
}

function print(rates: readonly { pageSize: number; service: Rate; floor: Rate; ofFloor: number }[], times: readonly Times[]): void {
  const columns = ['', 'pages/s', 'of floor', 'pages per CPU s', 'MB/s', 'median ms', 'p99 ms'];
  const row = (what: string, rate: Rate, ofFloor: number): string[] => [
    what,
    ...[Math.round(rate.pagesPerSecond).toString(), ofFloor.toFixed(2), Math.round(rate.pagesPerCpuSecond).toString()],
    ...[rate.megabytesPerSecond.toFixed(0), rate.p50ms.toFixed(1), rate.p99ms.toFixed(1)],
  ];
  const rows = rates.flatMap(({ pageSize, service, floor, ofFloor }) => [
    row(`pages of ${pageSize}, floor`, floor, 1),
    row(`pages of ${pageSize}, service`, service, ofFloor),
  ]);
  if (rows.length > 0) process.stdout.write(`\n${table(columns, rows)}\n`);
  if (times.length === 0) return;
  const timesRows = times.map(({ what, median, p95, p99, worst, cpu, worstCpu, worstTotal }) => [
    what,
    ...[median, p95, p99, worst, cpu, worstCpu].map((ms) => ms.toFixed(1)),
    String(worstTotal),
  ]);
  const heads = ['windows one at a time, ms', 'median', 'p95', 'p99', 'worst', 'CPU', 'most CPU', 'records in the worst'];
  process.stdout.write(`\n${table(heads, timesRows)}\n`);
}
