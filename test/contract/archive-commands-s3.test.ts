/** `waybill archive verify`, `prove` and `export` on an archive in a bucket, as configured. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BucketStore } from '../../src/archive/bucket/store.ts';
import { command } from '../../src/cli/commands/archive/index.ts';
import { systemClock } from '../../src/time/clock.ts';
import { archive as definition } from '../../src/sink/archive/index.ts';
import { bucketTarget } from '../../src/sink/archive/settings.ts';
import { keyFrom, uidOf, windowLines, writeArchive } from '../support/archive.ts';
import { commandIo } from '../support/command-io.ts';
import { temporary } from '../support/model-journal.ts';
import { valid } from '../support/config/loading.ts';
import { S3Model } from '../support/sinks/s3-model.ts';

const pem = keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString();
const prefix = 'audit/production/';

let folder: string;
let model: S3Model;
let storeOf: (fleet?: { readonly shard: number }) => BucketStore;
beforeEach(async () => {
  folder = temporary();
  model = await S3Model.start();
  writeFileSync(join(folder, 'key.pem'), pem);
  const s3 = {
    ...{ bucket: 'audit', prefix: 'audit/production', region: 'eu-central-1', endpoint: model.endpoint, objectLock: '365d' },
    ...{ accessKeyId: 'model-key', secretAccessKey: 'model-secret' },
  };
  const config = valid({ sink: `signingKey: \${file:${join(folder, 'key.pem')}}\ns3: ${JSON.stringify(s3)}` });
  writeFileSync(join(folder, 'waybill.yaml'), config.replace('type: stdout', 'type: archive'));
  const settings = definition.config.parse({ s3, signingKey: pem });
  const bucket = settings.s3;
  if (!bucket) throw new Error('the settings have no bucket');
  storeOf = (fleet) => new BucketStore(bucketTarget(bucket, { fleet }), { setting: 'sinks.out.s3', clock: systemClock });
  await using store = storeOf();
  await writeArchive(store, windowLines(20, 4), 30);
  model.asked.length = 0;
});
afterEach(async () => {
  await model[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** @param signal  ends the command */
async function run(signal: AbortSignal, name: string, ...args: string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  const stdout = new PassThrough({ highWaterMark: 2 ** 24 });
  const io = commandIo({ stdout, signal });
  const code = await command.run([name, ...args, '--config', join(folder, 'waybill.yaml'), '--sink', 'out'], io);
  return { code, stdout: (stdout.read() as Buffer | null)?.toString() ?? '' };
}

function archive(name: string, ...args: string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  return run(new AbortController().signal, name, ...args);
}

/** A file with the public key. */
function keyFile(): string {
  const [, bytes] = [...model.files(prefix)].find(([path]) => path.startsWith('keys/')) ?? [];
  writeFileSync(join(folder, 'archive.pub'), bytes ?? '');
  return join(folder, 'archive.pub');
}

/** Checks proofs with the public key alone. */
async function checked(proof: string): Promise<number> {
  const proofs = join(folder, 'proofs');
  writeFileSync(proofs, proof);
  return command.run(['verify', '--proof', proofs, '--key', keyFile()], commandIo());
}

test('verify takes location and key from the configuration, and only reads', async () => {
  const { code, stdout } = await archive('verify', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ result: 'intact', records: 80, lines: 104, checkpoints: 4, findings: [] });
  expect(new Set(model.asked.map(({ method }) => method))).toEqual(new Set(['GET']));
});

test('verify refuses a period that ends before it starts, and a file of --since or --timestamp-ca that has no such content', async () => {
  const period = ['--from', '2026-07-02T00:00:00Z', '--to', '2026-07-01T00:00:00Z'];
  await expect(archive('verify', ...period)).rejects.toMatchObject({
    code: 'usage',
    message: expect.stringContaining('2026-07-02') as string,
  });
  const other = join(folder, 'waybill.yaml');
  for (const option of ['--since', '--timestamp-ca'])
    await expect(archive('verify', option, other)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining(`cannot use ${option} "${other}"`) as string,
    });
});

test('verify reports a segment that is missing from the bucket', async () => {
  const segment = [...model.files(prefix).keys()].find((path) => path.startsWith('segments/')) ?? '';
  model.versions.delete(prefix + segment);
  const { code, stdout } = await archive('verify', '--json');
  expect(code).toBe(1);
  const { findings } = JSON.parse(stdout) as { findings: { severity: string; object: string }[] };
  expect(findings.filter(({ severity }) => severity === 'altered').map(({ object }) => object.slice(0, 25))).toContain(
    segment.slice(0, 25),
  );
});

test('verify reports no result for a bucket that refuses every request', async () => {
  model.fault = () => 403;
  await expect(archive('verify')).rejects.toMatchObject({ code: 'sink_blocked' });
});

test(
  'verify reports an object without an end like a missing one, and reads no more of it than an archive has',
  { timeout: 60_000 },
  async () => {
    model.fault = ({ key }) => (key.startsWith(`${prefix}checkpoints/0000000002`) ? 'endless' : undefined);
    const { code, stdout } = await archive('verify', '--json');
    expect(code).toBe(1);
    const { findings } = JSON.parse(stdout) as { findings: { severity: string; object: string; message: string }[] };
    expect(findings).toContainEqual({ severity: 'altered', object: 'checkpoints/0000000002', message: 'it is missing' });
    // Buffers of both ends included.
    expect(model.sent).toBeLessThan(50_000_000);
  },
);

test('verify reads a segment of at most 300 MB', { timeout: 120_000 }, async () => {
  model.fault = ({ key }) => (key.startsWith(`${prefix}segments/0000000000000000`) ? 'endless' : undefined);
  const { code, stdout } = await archive('verify', '--json');
  expect(code).toBe(1);
  expect(stdout).toContain('segments/0000000000000000');
  expect(model.sent).toBeGreaterThanOrEqual(300_000_000);
  expect(model.sent).toBeLessThan(700_000_000);
});

test('verify reports a list without an end, and names the bucket', { timeout: 60_000 }, async () => {
  model.fault = ({ key }) => (key === '' ? 'endless' : undefined);
  const { code, stdout } = await archive('verify', '--key', keyFile(), '--json');
  expect(code).toBe(3);
  expect(stdout).toContain('the response has more than 16000000 bytes');
  expect(stdout).toContain('s3://audit/audit/production/');
});

test.each([
  ['repeated', 'the server repeats a continuation token, so the list would not end'],
  ['emptied', 'the server sends pages with less than 10 objects, so the list would not end'],
  ['growing', 'the server sends pages with less than 10 objects, so the list would not end'],
  ['outside', 'the server lists objects outside this prefix'],
] as const)('verify reports a list that is %s, and names the bucket', { timeout: 60_000 }, async (fault, message) => {
  const key = keyFile();
  model.fault = ({ key: object }) => (object === '' ? fault : undefined);
  const { code, stdout } = await archive('verify', '--key', key, '--json');
  expect(code).toBe(3);
  const { findings } = JSON.parse(stdout) as { findings: unknown };
  const place = 's3://audit/audit/production';
  expect(findings).toEqual([
    {
      ...{ severity: 'unproven', object: place },
      message: `cannot read the whole archive: cannot list "${place}/checkpoints/" (sinks.out.s3): ${message}`,
    },
  ]);
});

test('verify reports a server that does not answer as S3, after several attempts', { timeout: 60_000 }, async () => {
  const key = keyFile();
  model.fault = () => 'text';
  const { code, stdout } = await archive('verify', '--key', key);
  expect(code).toBe(3);
  expect(stdout).toContain('the response is not one of S3 (status 200); see endpoint');
  // A proxy sends such a page while the server restarts: the request is repeated.
  let failures = 2;
  model.fault = () => ((failures -= 1) >= 0 ? 'proxy' : undefined);
  expect((await archive('verify', '--key', key)).code).toBe(0);
});

/** Without a stop, a request takes 20 seconds, and is repeated three times. */
const uid = uidOf(7, windowLines(20, 4));
test.each([
  ...(['stalled', 'halted', 503] as const).flatMap((fault) =>
    [['verify'], ['prove', `--uid=${uid}`], ['export']].map((args) => [args.join(' '), fault] as const),
  ),
])('%s ends when it is stopped while every answer is %s', { timeout: 30_000 }, async (args, fault) => {
  const stop = new AbortController();
  const reason = new Error('stopped');
  model.fault = () => {
    // The request is on its way, or a pause before the next one.
    setTimeout(() => stop.abort(reason), 20);
    return fault;
  };
  await expect(run(stop.signal, ...(args.split(' ') as [string]))).rejects.toBe(reason);
  expect(model.asked).toHaveLength(1);
});

test.each(['verify', 'export'])('%s ends when it is stopped between two requests', async (name) => {
  const stop = new AbortController();
  const reason = new Error('stopped');
  model.fault = () => {
    if (model.asked.length === 5) stop.abort(reason);
    return undefined;
  };
  await expect(run(stop.signal, name)).rejects.toBe(reason);
  expect(model.asked.length).toBeLessThanOrEqual(16 + 5);
});

test('prove proves one record', async () => {
  const { code, stdout } = await archive('prove', `--uid=${uid}`);
  expect(code).toBe(0);
  expect(stdout).toContain(uid);
  expect(await checked(stdout)).toBe(0);
  expect(await checked(stdout.replace('\\"seq\\":7', '\\"seq\\":8'))).toBe(1);
});

test('export prints the lines of a period, each with its proof', async () => {
  const out = join(folder, 'out.ndjson');
  expect(await archive('export', '--from', '2026-07-01T00:02:00Z', '--to', '2026-07-01T00:04:00Z', '--out', out)).toMatchObject({
    code: 0,
  });
  const text = readFileSync(out, 'utf8');
  const seqs = text.trimEnd().split('\n').map((line) => (JSON.parse((JSON.parse(line) as { line: string }).line) as { seq: number }).seq); // prettier-ignore
  expect(seqs).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  expect(await checked(text)).toBe(0);
});

test('--shard names one archive of a fleet', async () => {
  const file = join(folder, 'waybill.yaml');
  writeFileSync(file, `${readFileSync(file, 'utf8')}\nfleet: { database: postgres://waybill@127.0.0.1:1/audit }\n`);
  await using store = storeOf({ shard: 3 });
  await writeArchive(store, windowLines(12, 4), 30);
  const { code, stdout } = await archive('verify', '--json', '--shard', '3');
  expect({ code, found: JSON.parse(stdout) as unknown }).toMatchObject({ code: 0, found: { records: 12 * 4 } });
  expect(await archive('verify', '--json', '--shard', '4')).toMatchObject({ code: 1 });
  await expect(archive('verify', '--shard', 'x')).rejects.toThrow('cannot use --shard "x": not the number of a shard');
  const elsewhere = command.run(['verify', '--directory', folder, '--shard', '3'], commandIo());
  await expect(elsewhere).rejects.toThrow('cannot use --shard without --sink');
});
