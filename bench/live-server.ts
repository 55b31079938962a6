/**
 * The service of the live benchmark, in a separate process: a new record at a fixed interval, each
 * visible some time after its `logTimestamp`. It answers the queries of Waybill in ascending order
 * with exact totals. Prints its port, and its counts at `/stats`.
 */
import { createServer } from 'node:http';
import { recordText } from './record.ts';
import { visibleAfterMs } from './visibility.ts';

const beginMs = Number(process.argv[2]);
const rate = Number(process.argv[3]);

/** Records [from, to), some possibly not visible yet; no delay is longer than a minute. */
function visible(from: number, to: number, now: number): number[] {
  const found: number[] = [];
  const settled = indexAt(now - 60_000);
  for (let i = from; i < to; i += 1) if (i < settled || beginMs + (i * 1000) / rate + visibleAfterMs(i) <= now) found.push(i);
  return found;
}

/** The first record at or after a time, ms. */
function indexAt(ms: number): number {
  return Math.max(0, Math.ceil(((ms - beginMs) * rate) / 1000));
}

const stats = { requests: 0, counts: 0, polled: 0, closed: 0 };

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://bench');
  response.setHeader('content-type', 'application/json');
  if (url.pathname.endsWith('/token')) {
    request.resume();
    response.end(JSON.stringify({ access_token: 'bench', token_type: 'Bearer', expires_in: 86_400 }));
    return;
  }
  if (url.pathname === '/stats') {
    response.end(JSON.stringify(stats));
    return;
  }
  const { searchParams } = url;
  const now = Date.now();
  const time = (name: string): number | undefined => {
    const text = searchParams.get(name);
    return text === null ? undefined : Date.parse(`${text}Z`);
  };
  const endMs = Math.min(time('endTime') ?? now, now);
  const found = visible(indexAt(time('startTime') ?? beginMs), indexAt(endMs + 1), now);
  const page = Number(searchParams.get('page') ?? 1);
  const pageSize = Math.min(1000, Number(searchParams.get('pageSize') ?? 100));
  const items = found.slice((page - 1) * pageSize, page * pageSize);
  stats.requests += 1;
  if (pageSize === 1) stats.counts += 1;
  else stats[searchParams.has('endTime') ? 'closed' : 'polled'] += items.length;
  const pagination = JSON.stringify({ totalRecords: found.length, pageSize, itemsInPage: items.length, page });
  response.end(`{"pagination":${pagination},"data":[${items.map((i) => recordText(i, beginMs, rate)).join(',')}]}`);
});

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
