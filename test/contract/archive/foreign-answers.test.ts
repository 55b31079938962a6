/** A proxy before a bucket responds with a page of its own, and status 200: nothing counts as stored, or as what the bucket has. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BucketStore } from '../../../src/archive/bucket/store.ts';
import { openHead } from '../../../src/archive/head.ts';
import { formatVerifier, parseVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyReport } from '../../../src/archive/verify/verify.ts';
import { systemClock } from '../../../src/time/clock.ts';
import type { Clock } from '../../../src/model/time.ts';
import { archive } from '../../../src/sink/archive/index.ts';
import { bucketTarget } from '../../../src/sink/archive/settings.ts';
import { keyFrom, openWriter, recordLine, start, through, windowLines, writeArchive } from '../../support/archive.ts';
import { sized } from '../../support/long-run.ts';
import { S3Model } from '../../support/sinks/s3-model.ts';

/** Pauses between attempts take no time. */
const clock: Clock = { ...systemClock, now: () => systemClock.now(), sleep: () => Promise.resolve() };
const prefix = 'production/';
const foreign = expect.stringMatching(/: the response is not one of S3 \(status 20[0146]\); see endpoint$/) as string;
/** The first attempt, and three more. */
const attempts = 4;

let model: S3Model;
let store: BucketStore;
beforeEach(async () => {
  model = await S3Model.start();
  const s3 = { bucket: 'audit', prefix: 'production', region: 'eu-central-1', endpoint: model.endpoint, objectLock: '1d' };
  const settings = archive.config.parse({
    s3: { ...s3, accessKeyId: 'model-key', secretAccessKey: 'model-secret' },
    signingKey: keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString(),
  });
  store = new BucketStore(bucketTarget(settings.s3 as never, {}), { setting: 'sinks.a.s3', clock });
});
afterEach(async () => {
  await store[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

/** An archive of nine records in three segments. */
async function write(): Promise<void> {
  await writeArchive(store, windowLines(3, 3), 4);
  model.asked.length = 0;
}

function verify(): Promise<VerifyReport> {
  const [origin = ''] = (model.files(prefix).get('checkpoint') ?? '').toString().split('\n');
  const verifier = parseVerifier(formatVerifier(signerOf(origin, keyFrom(1))));
  return verifyArchive(store, verifier ? [verifier] : []);
}

async function listed(): Promise<string[]> {
  const paths: string[] = [];
  for await (const path of store.list('')) paths.push(path);
  return paths;
}

/** From now on. */
function daysLocked(path: string): number {
  return ((model.versions.get(`${prefix}${path}`)?.at(-1)?.lockedUntil ?? 0) - Date.now()) / 86_400_000;
}

// API reference, PutObject, "Response Syntax": ETag and checksum of the object in headers, and no body.
describe.each(['text', 'tagged', 'blank', 'created', 'unequal'] as const)('a %s response to a write', (fault) => {
  const bytes = Buffer.from('bytes');

  test('leads to the same request again', async () => {
    for (const work of [() => store.create('segments/1', bytes), () => store.replace('checkpoint', bytes)]) {
      let left = attempts - 1;
      model.asked.length = 0;
      model.fault = () => ((left -= 1) >= 0 ? fault : undefined);
      expect(await work()).not.toBe(false);
      expect(new Set(model.asked.slice(0, attempts).map((each) => JSON.stringify(each))).size).toBe(1);
    }
    expect(model.files(prefix)).toEqual(new Map([['segments/1', bytes], ['checkpoint', bytes]])); // prettier-ignore
  });

  test('does not count as stored after the last attempt', async () => {
    model.fault = () => fault;
    await expect(store.create('segments/1', bytes)).rejects.toMatchObject({ code: 'sink_unavailable', message: foreign });
    await expect(store.replace('checkpoint', bytes)).rejects.toMatchObject({ code: 'sink_unavailable', message: foreign });
    expect(model.asked).toHaveLength(2 * attempts);
    expect(model.versions.size).toBe(0);
  });

  test('does not say that the server ignores conditions', async () => {
    let puts = 0;
    // The write that tests the condition comes second.
    model.fault = ({ method }) => (method === 'PUT' && (puts += 1) === 2 ? fault : undefined);
    expect(await store.create('segments/1', bytes)).toBe(true);
    expect(model.versions.get(`${prefix}segments/1`)).toHaveLength(1);
  });
});

test('a page in place of the response to each write of a segment loses nothing', async () => {
  await write();
  const writer = await openWriter(store, 'more');
  model.asked.length = 0;
  let appended = 0;
  for (let at = 0; ; at += sized(3, 1)) {
    let puts = 0;
    model.fault = ({ method }) => (method === 'PUT' && (puts += 1) === at + 1 ? 'text' : undefined);
    await writer.append([recordLine(13 + appended, start)], through(13 + appended));
    appended += 1;
    model.fault = () => undefined;
    expect(await verify()).toMatchObject({ result: 'intact', records: 9 + appended, findings: [] });
    if (at >= puts) break;
  }
  expect(model.files(`${prefix}segments/`).size).toBe(3 + appended);
  expect(appended).toBeGreaterThan(sized(2, 4));
});

test.each(['text', 'tagged', 'blank', 201, 204, 206] as const)('a %s response to a read is not what the object has', async (fault) => {
  const bytes = Buffer.from('bytes');
  await store.create('segments/1', bytes);
  let left = attempts - 1;
  model.fault = () => ((left -= 1) >= 0 ? fault : undefined);
  expect(await store.read('segments/1')).toEqual(bytes);
  // After 412 the object is read: this writer wrote it before.
  model.fault = ({ method }) => (method === 'GET' && (left += 1) === 1 ? fault : undefined);
  left = 0;
  expect(await store.create('segments/1', bytes)).toBe(true);
  model.fault = () => fault;
  await expect(store.read('segments/1')).rejects.toMatchObject({ code: 'sink_unavailable', message: foreign });
});

// API reference, ListObjectsV2, "Response Syntax": IsTruncated in each response, NextContinuationToken if it is true.
test.each(['text', 'xhtml', 'tagged', 'untokened'] as const)('a %s response to a list does not end it', async (fault) => {
  await write();
  const paths = await listed();
  expect(paths).toHaveLength(model.versions.size);
  const pages = model.asked.length;
  expect(pages).toBeGreaterThan(3);
  for (let at = 1; at <= pages; at += sized(3, 1)) {
    let lists = 0;
    model.fault = () => ((lists += 1) === at ? fault : undefined);
    expect(await listed()).toEqual(paths);
  }
  model.fault = () => fault;
  await expect(listed()).rejects.toMatchObject({ code: 'sink_unavailable', message: foreign });
});

// "If all of the results were returned, the value is set to false."
test.each(['', 'more'])('a list ends with the page that is not truncated, whatever its token ("%s")', async (token) => {
  await write();
  model.lastToken = token;
  expect(await listed()).toHaveLength(model.versions.size);
  expect(await verify()).toMatchObject({ result: 'intact', records: 9, findings: [] });
});

test.each(['xhtml', 'tagged'] as const)(
  'an archive with a %s page in place of the response to each request is verified and opened',
  async (fault) => {
    await write();
    await verify();
    const requests = model.asked.length;
    expect(new Set(model.asked.map(({ key }) => key.slice(prefix.length).split('/')[0]))).toEqual(
      new Set(['', 'checkpoints', 'checkpoint', 'segments', 'tile', 'keys']),
    );
    for (let at = 1; at <= requests; at += sized(5, 1)) {
      let count = 0;
      model.fault = () => ((count += 1) === at ? fault : undefined);
      expect(await verify()).toMatchObject({ result: 'intact', records: 9, findings: [] });
      count = 0;
      expect(await openHead(store, [keyFrom(1)], () => '')).toMatchObject({ number: 3 });
    }
  },
);

test('an object without an ETag is read if the response has the request id of S3: versitygw knows no ETag of files put into its folder', async () => {
  await write();
  model.hasTags = false;
  expect(await verify()).toMatchObject({ result: 'intact', records: 9, findings: [] });
});

// PutObject: the ETag is the MD5 of the object, or 32 digits and the number of parts. Cloudflare R2 sends no request ids.
test.each([undefined, '"9b2cf535f27731c974343645a3985328-2"', '"9B2CF535F27731C974343645A3985328-12"'])(
  'an archive in a server that sends no request ids, with the ETag %s, is written and read',
  async (tag) => {
    model.hasIds = false;
    model.tag = tag;
    await write();
    expect(await verify()).toMatchObject({ result: 'intact', records: 9, findings: [] });
  },
);

test.each(['"9b2cf535f27731c974343645a3985328"', '"2aa6-5d"', 'W/"5d8c72a5edda8d6a"'])(
  'bytes with the ETag %s and no request id are not of S3',
  async (tag) => {
    await write();
    model.hasIds = false;
    model.tag = tag;
    await expect(store.read('checkpoint')).rejects.toMatchObject({ code: 'sink_unavailable', message: foreign });
  },
);

test('the time of a proxy with a page and an ETag does not decide until when the next object is locked', async () => {
  await write();
  model.checksTime = false;
  model.foreignDate = 'Fri, 01 Jan 2100 00:00:00 GMT';
  model.fault = () => 'tagged';
  await expect(store.read('checkpoint')).rejects.toMatchObject({ code: 'sink_unavailable', message: foreign });
  model.fault = () => undefined;
  model.hasIds = false;
  await store.create('segments/1', Buffer.from('bytes'));
  expect(daysLocked('segments/1')).toBeCloseTo(1, 2);
});

// Common response headers: x-amz-request-id in each response of S3.
const pages = ['text', 'tagged', 'blank', 'created', 'proxy'] as const;
test.each(pages)('the time of a proxy with a %s response to a write does not decide until when the object is locked', async (fault) => {
  // A server that does refuses the next request, and so tells its own time.
  model.checksTime = false;
  model.foreignDate = 'Fri, 01 Jan 2100 00:00:00 GMT';
  let left = attempts - 1;
  model.fault = () => ((left -= 1) >= 0 ? fault : undefined);
  await store.create('segments/1', Buffer.from('bytes'));
  expect(left).toBeLessThan(0);
  expect(daysLocked('segments/1')).toBeCloseTo(1, 2);
});

test.each(['GET', 'PUT'] as const)('a server that sends no request ids tells its time by responses with an ETag to %s', async (verb) => {
  const bytes = Buffer.from('bytes');
  await store.create('segments/1', bytes);
  model.hasIds = false;
  model.ahead = 3 * 86_400_000;
  if (verb === 'GET') await store.read('segments/1');
  else await store.replace('checkpoint', bytes);
  await store.create('segments/2', bytes);
  expect(daysLocked('segments/2')).toBeCloseTo(4, 2);
});
