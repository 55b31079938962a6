/**
 * The service of the benchmark: a separate process that answers window queries from bytes prepared
 * at start, so that the client dominates the measurement. Plain HTTP on loopback. Prints one line
 * of JSON when it listens, and counts and times of its requests at `/stats`, which `?reset` clears.
 */
import { createServer } from 'node:http';
import { inCharacters, perSecond, recordText } from './record.ts';
import type { Characters } from './record.ts';

const records = Number(process.argv[2]);
const beginMs = Number(process.argv[3]);
/** Records per second. */
const rate = Number(process.argv[4] ?? perSecond);
const characters = (process.argv[5] ?? 'ascii') as Characters;
const chunkRecords = 100_000;
const comma = 1;

/** The records as one text cut into chunks, and the offset of each record in its chunk. */
const chunks: Buffer[] = [];
const starts: Uint32Array[] = [];
for (let from = 0; from < records; from += chunkRecords) {
  const texts = Array.from({ length: Math.min(chunkRecords, records - from) }, (_, i) =>
    Buffer.from(`${inCharacters(recordText(from + i, beginMs, rate), characters)},`),
  );
  const at = new Uint32Array(texts.length + 1);
  texts.forEach((text, i) => (at[i + 1] = (at[i] ?? 0) + text.length));
  chunks.push(Buffer.concat(texts));
  starts.push(at);
}

/** The bytes of records [from, until), separated by commas. */
function slices(from: number, until: number): Buffer[] {
  const parts: Buffer[] = [];
  for (let i = from; i < until;) {
    const c = Math.floor(i / chunkRecords);
    const end = Math.min(until, (c + 1) * chunkRecords);
    const at = starts[c];
    const chunk = chunks[c];
    if (!at || !chunk) break;
    const last = end === until ? comma : 0;
    parts.push(chunk.subarray(at[i - c * chunkRecords], (at[end - c * chunkRecords] ?? 0) - last));
    i = end;
  }
  return parts;
}

/** The first record at or after a time; the bounds are inclusive. */
function indexAt(text: string | null, otherwise: number, isEnd: boolean): number {
  if (text === null) return otherwise;
  const seconds = (Date.parse(`${text}Z`) - beginMs) / 1000;
  const index = isEnd ? Math.floor(seconds * rate) + 1 : Math.ceil(seconds * rate);
  return Math.min(records, Math.max(0, index));
}

/**
 * `windowed`: requests with both bounds, which only reads of windows send. The times are ms since
 * 1970, of the first request, the first window and the last record.
 */
const none = { pages: 0, counts: 0, windowed: 0, firstAt: 0, windowAt: 0, lastRecordAt: 0 };
let stats = { ...none };

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://bench');
  if (url.pathname.endsWith('/token')) {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: 'bench', token_type: 'Bearer', expires_in: 86_400 }));
    return;
  }
  if (url.pathname === '/stats') {
    response.end(JSON.stringify(stats));
    if (url.searchParams.has('reset')) stats = { ...none };
    return;
  }
  const { searchParams } = url;
  const from = indexAt(searchParams.get('startTime'), 0, false);
  const until = Math.max(from, indexAt(searchParams.get('endTime'), records, true));
  const page = Number(searchParams.get('page') ?? 1);
  const pageSize = Math.min(1000, Number(searchParams.get('pageSize') ?? 100));
  const begin = Math.min(until, from + (page - 1) * pageSize);
  const end = Math.min(until, begin + pageSize);
  stats[pageSize === 1 ? 'counts' : 'pages'] += 1;
  const now = performance.timeOrigin + performance.now();
  stats.firstAt ||= now;
  if (searchParams.has('endTime')) {
    stats.windowed += 1;
    stats.windowAt ||= now;
  }
  if (end === records && begin < end) stats.lastRecordAt = now;
  const head = `{"pagination":{"totalRecords":${until - from},"pageSize":${pageSize},"itemsInPage":${end - begin},"page":${page}},"data":[`;
  const body = [Buffer.from(head), ...slices(begin, end), Buffer.from(']}')];
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.reduce((sum, part) => sum + part.length, 0) });
  for (const part of body.slice(0, -1)) response.write(part);
  response.end(body.at(-1));
});

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  process.stdout.write(`${JSON.stringify({ port, bytes: chunks.reduce((sum, chunk) => sum + chunk.length, 0) })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
