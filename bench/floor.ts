/**
 * The floor of the benchmark: a plain pipeline without any durability, in a separate process. It
 * requests the pages in order, and the next page while it processes the current one. It parses each
 * page as a whole, normalizes and encodes with the code of the daemon, and appends to a file.
 */
import { open } from 'node:fs/promises';
import { request } from 'undici';
import { encoder } from '../src/encode/index.ts';
import { normalizer } from '../src/normalize/normalizer.ts';
import { readText } from '../src/record/read.ts';

const [, , baseUrl = '', records = '0', path = ''] = process.argv;

const normalize = normalizer({
  tenantId: 'bench',
  baseUrl,
  observer: { vendor: 'Waybill', product: 'Data Protection and Audit Service', version: '1.0' },
  dataset: 'dpas.audit',
  namespace: 'default',
  mapping: { severity: {}, names: {}, hostIdFromUuid: true },
  privacy: { rules: [] },
});
const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });

async function page(number: number): Promise<string> {
  const { body } = await request(
    `${baseUrl}/logs/full-payload?startTime=1971-01-01T00:00:00.00&page=${number}&pageSize=1000&sort=%2BlogTimestamp`,
  );
  return body.text();
}

const file = await open(path, 'w');
const begin = performance.now();
const cpu = process.cpuUsage();
let done = 0;
let next = page(1);
for (let number = 2; done < Number(records); number += 1) {
  const text = await next;
  next = page(number);
  const { data } = JSON.parse(text) as { data: unknown[] };
  if (data.length === 0) break;
  const received = Date.now() * 1000;
  // `event.original` is the text of the record: a pipeline that parses whole pages has to serialize
  // it again.
  const lines = data.map((value) =>
    encode(normalize({ record: readText(JSON.stringify(value)), uid: 'AAAAAAAAAAAAAAAAAAAAAA', received })).toString(),
  );
  await file.write(`${lines.join('\n')}\n`);
  done += data.length;
}
await next;
const used = process.cpuUsage(cpu);
const seconds = (performance.now() - begin) / 1000;
await file.close();
process.stdout.write(
  `${JSON.stringify({ records: done, seconds, cpuSeconds: (used.user + used.system) / 1e6, rssMiB: process.resourceUsage().maxRSS / 1024 })}\n`,
);
