/**
 * Measures how fast the reference service serves pages: `node test/unit/reference/load.ts [RECORDS] [SECONDS]`. Eight connections, each
 * request another window of a million records that holds about one page; prints one line of JSON for each size of page.
 */
import { Pool } from 'undici';
import { readFileSync } from 'node:fs';
import { Service } from './service.ts';

const records = Number(process.argv[2] ?? 1_000_000);
const seconds = Number(process.argv[3] ?? 5);
const connections = 8;
const spanMs = 86_400_000;

const begin = performance.now();
await using service = await Service.start('--records', String(records), '--span', '1d');
const startSeconds = (performance.now() - begin) / 1000;
const { line } = service;
const headers = { authorization: `Bearer ${await service.token()}`, 'ocp-apim-subscription-key': line.subscriptionKey };
const pool = new Pool(line.authUrl, { connections, connect: { ca: readFileSync(line.ca, 'utf8') } });
for (const pageSize of [100, 1000]) {
  const windowMs = Math.ceil((spanMs / records) * pageSize * 1.1);
  const oldest = Date.now() - spanMs + 60_000;
  const text = (ms: number): string => new Date(ms).toISOString().slice(0, 22);
  let pages = 0;
  let bytes = 0;
  let asked = 0;
  const from = performance.now();
  const work = async (): Promise<void> => {
    while (performance.now() - from < seconds * 1000) {
      const start = oldest + ((asked++ * 7_919_000) % (spanMs - windowMs - 120_000));
      const query = `startTime=${text(start)}&endTime=${text(start + windowMs)}&pageSize=${pageSize}&sort=%2BlogTimestamp`;
      const { statusCode, body } = await pool.request({ method: 'GET', path: `/v2/api/logs/full-payload?${query}`, headers });
      if (statusCode !== 200) throw new Error(`status ${statusCode}`);
      for await (const part of body as AsyncIterable<Buffer>) bytes += part.length;
      pages += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  const took = (performance.now() - from) / 1000;
  const figures = {
    records,
    startSeconds,
    pageSize,
    pagesPerSecond: pages / took,
    megabytesPerSecond: bytes / took / 1e6,
    bytesPerPage: bytes / pages,
  };
  process.stdout.write(
    `${JSON.stringify(figures, (_, value: unknown) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value))}\n`,
  );
}
await pool.close();
