/**
 * The sink `archive` in buckets of versitygw and MinIO: the contract of every sink, kills, two
 * writers, locks, and `check`.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DeleteObjectCommand, ListObjectVersionsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseVerifier } from '../../src/archive/signed-note.ts';
import { BucketStore } from '../../src/archive/bucket/store.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { systemClock } from '../../src/time/clock.ts';
import { codeOf } from '../../src/errors/errors.ts';
import type { ResumePoint, Sink } from '../../src/model/sink.ts';
import { archive } from '../../src/sink/archive/index.ts';
import { openStore } from '../../src/sink/archive/open.ts';
import { bucketTarget } from '../../src/sink/archive/settings.ts';
import { batchOf, contextOf, messages, ModelKept, positionOf } from '../support/sinks/sink-batches.ts';
import { sinkSuite } from '../support/sinks/sink-suite.ts';
import type { Place } from '../support/sinks/sink-suite.ts';
import { archivedRecords } from '../support/archive-files.ts';
import { keyFrom } from '../support/archive.ts';
import { temporary } from '../support/model-journal.ts';
import { hasPython, resultOf, secondVerifier } from '../support/second-verifier.ts';
import { Authority, AuthorityServer, hasOpenssl, sendReply } from '../support/time-stamp-authority.ts';
import { s3Missing, S3Server, s3Servers } from '../support/servers/s3-server.ts';

const never = new AbortController().signal;
const pem = keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString();
const { accessKeyId, secretAccessKey } = S3Server;
const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 10);

function settingsOf(endpoint: string, bucket: string, given: object = {}) {
  const s3 = { bucket, prefix: 'production', region: 'us-east-1', endpoint, objectLock: '1d', accessKeyId, secretAccessKey, ...given };
  return archive.config.parse({ s3, signingKey: pem });
}

/** @returns the versions of objects whose key matches; nobody can delete one */
async function lockedVersions(server: S3Server, bucket: string, pattern: RegExp): Promise<number> {
  const { Versions = [] } = await server.s3.send(new ListObjectVersionsCommand({ Bucket: bucket }));
  const locked = Versions.filter(({ Key = '' }) => pattern.test(Key));
  for (const { Key, VersionId } of locked)
    await expect(server.s3.send(new DeleteObjectCommand({ Bucket: bucket, Key, VersionId }))).rejects.toThrow();
  return locked.length;
}

const open = (endpoint: string, bucket: string, kept: ResumePoint): Promise<Sink> =>
  archive.open(settingsOf(endpoint, bucket), contextOf('under-test', { format: 'raw' }), kept, never);

/** Every object of the archive, read with a plain client. */
async function filesOf(endpoint: string, bucket: string): Promise<Map<string, Buffer>> {
  await using store = await openStore(settingsOf(endpoint, bucket), { id: 'archive', clock: systemClock });
  const files = new Map<string, Buffer>();
  for await (const path of store.list('')) files.set(path, (await store.read(path)) ?? Buffer.alloc(0));
  return files;
}

function recordsOf(files: ReadonlyMap<string, Buffer>): string[] {
  const folder = temporary();
  for (const [path, bytes] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  const records = archivedRecords(folder);
  rmSync(folder, { recursive: true });
  return records;
}

async function expectIntact(endpoint: string, bucket: string, count: number): Promise<void> {
  const files = await filesOf(endpoint, bucket);
  const key = [...files].find(([path]) => path.startsWith('keys/'))?.[1].toString() ?? '';
  const verifier = parseVerifier(key);
  await using store = await openStore(settingsOf(endpoint, bucket), { id: 'archive', clock: systemClock });
  expect(await verifyArchive(store, verifier ? [verifier] : [])).toMatchObject({ result: 'intact', records: count });
  expect(recordsOf(files)).toEqual(messages(1, count).map(({ bytes }) => Buffer.from(bytes).toString()));
  if (hasPython) expect((await secondVerifier(files, { key })).map(resultOf)).toEqual(['intact']);
}

for (const name of s3Servers) {
  const missing = s3Missing(name);
  if (missing !== undefined) {
    test(`an archive in ${name}`, ({ skip }) => skip(missing));
    continue;
  }
  let server: S3Server;
  let buckets = 0;
  beforeAll(async () => void (server = await S3Server.start(name)), 60_000);
  afterAll(async () => server[Symbol.asyncDispose]());

  const newBucket = async (hasLock = true): Promise<string> => {
    const bucket = `audit-${name}-${(buckets += 1)}`;
    await server.createBucket(bucket, hasLock);
    return bucket;
  };

  sinkSuite({
    name: `archive in ${name}`,
    formats: archive.formats,
    twice: () => 0,
    batches: 10,
    takesOnce: true,
    secrets: [pem, secretAccessKey],
    async start(): Promise<Place> {
      const bucket = await newBucket();
      return {
        open: (kept) => open(server.endpoint, bucket, kept),
        kill: () => Promise.resolve(),
        received: async () => recordsOf(await filesOf(server.endpoint, bucket)),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
    },
  });

  describe(`an archive in ${name}`, () => {
    test(`holds each record once after ${kills} kills of the server while it writes`, { timeout: 60_000 + kills * 20_000 }, async () => {
      const bucket = await newBucket();
      const kept = new ModelKept();
      for (let kill = 1; kill <= kills; kill += 1) {
        const batch = messages(1, kill * 40);
        const writing = (async () => {
          await using sink = await open(server.endpoint, bucket, kept);
          const found = await sink.position?.(never);
          if (found) kept.acknowledge({ ...batchOf([]), through: found.position }, found.resumeNote);
          for (const message of batch.filter(({ seq }) => seq > kept.position.seq)) {
            const one = batchOf([message]);
            kept.acknowledge(one, (await sink.send(one, never)).resumeNote);
          }
        })().catch((thrown: unknown) => thrown);
        await new Promise((resolve) => setTimeout(resolve, 40 + ((kill * 97) % 400)));
        await server.kill();
        await server.run();
        const thrown = await writing;
        if (thrown !== undefined) expect(['sink_unavailable', 'sink_outcome_unknown']).toContain(codeOf(thrown));
      }
      await using sink = await open(server.endpoint, bucket, kept);
      const { position } = (await sink.position?.(never)) ?? { position: positionOf(0) };
      const rest = messages(position.seq + 1, position.seq + 20);
      await sink.send(batchOf(rest), never);
      await expectIntact(server.endpoint, bucket, position.seq + 20);
    });

    test('stays intact with two writers: one of them stops', async () => {
      const bucket = await newBucket();
      const kept = new ModelKept();
      await using first = await open(server.endpoint, bucket, kept);
      const batch = batchOf(messages(1, 3));
      kept.acknowledge(batch, (await first.send(batch, never)).resumeNote);
      await using second = await open(server.endpoint, bucket, kept);
      const sent = await Promise.allSettled([first, second].map((sink, i) => sink.send(batchOf(messages(4, 300 - i)), never)));
      const failed = sent.flatMap((each) => (each.status === 'rejected' ? [codeOf(each.reason)] : []));
      expect(failed).toEqual(['archive_conflict']);
      await expectIntact(server.endpoint, bucket, sent[0]?.status === 'fulfilled' ? 300 : 299);
    });

    test('is locked: a segment and a checkpoint cannot be deleted, and check reports no problem', async () => {
      const bucket = await newBucket();
      await using sink = await open(server.endpoint, bucket, new ModelKept());
      await sink.send(batchOf(messages(1, 3)), never);
      expect(await lockedVersions(server, bucket, /\/(segments|checkpoints)\//)).toBe(2);
      const findings = await archive.check(settingsOf(server.endpoint, bucket), contextOf('under-test', { format: 'raw' }), never);
      // The test uses the keys of the server's owner, who may delete every object that is not
      // locked.
      expect(findings.flatMap(({ level, message }) => (level === 'ok' ? [] : [message.split(':')[0]]))).toEqual([
        'the credentials may delete versions that are not locked',
      ]);
      await expectIntact(server.endpoint, bucket, 3);
    });

    test.skipIf(!hasOpenssl)('is locked: a time stamp cannot be deleted', async () => {
      const bucket = await newBucket();
      using openssl = new Authority();
      await using authority = await AuthorityServer.start((query, response) => sendReply(response, openssl.reply(query)));
      const settings = { ...settingsOf(server.endpoint, bucket), timestamp: { url: authority.url } };
      await using sink = await archive.open(settings, contextOf('under-test', { format: 'raw' }), new ModelKept(), never);
      await sink.send(batchOf(messages(1, 3)), never);
      await expect.poll(() => lockedVersions(server, bucket, /\/timestamps\//), { timeout: 10_000 }).toBe(1);
      await expectIntact(server.endpoint, bucket, 3);
    });

    test('keeps an object with a legal hold, and deletes one without a lock with all its versions', async () => {
      const bucket = await newBucket();
      const settings = settingsOf(server.endpoint, bucket, { objectLock: 'none' });
      if (!settings.s3) throw new Error('it has a bucket');
      await using store = new BucketStore(bucketTarget(settings.s3, {}), { setting: 's3', clock: systemClock });
      const versions = async (): Promise<number> => {
        const { Versions = [], DeleteMarkers = [] } = await server.s3.send(new ListObjectVersionsCommand({ Bucket: bucket }));
        return Versions.length + DeleteMarkers.length;
      };
      for (const [path, text] of [['segments/a', 'a'], ['segments/ab', 'b'], ['segments/a', 'c']] as const) await store.replace(path, Buffer.from(text)); // prettier-ignore
      expect(await versions()).toBe(3);
      await store.hold('segments/ab', true);
      await expect(store.remove('segments/ab')).rejects.toMatchObject({ code: 'sink_blocked' });
      await store.remove('segments/a');
      expect(await store.read('segments/a')).toBeUndefined();
      expect(await versions()).toBe(1);
      await store.hold('segments/ab', false);
      await store.remove('segments/ab');
      await store.remove('segments/ab');
      expect(await versions()).toBe(0);
    });

    test('is refused without Object Lock, with a wrong secret, and in an absent bucket', async () => {
      const unlocked = await newBucket(false);
      const errors = async (bucket: string, given: object = {}): Promise<string[]> =>
        (await archive.check(settingsOf(server.endpoint, bucket, given), contextOf('under-test', { format: 'raw' }), never)).flatMap(
          ({ level, message }) => (level === 'error' ? [message] : []),
        );
      expect(await errors(unlocked)).toEqual(expect.arrayContaining([expect.stringMatching(/no (versioning|Object Lock)/)]));
      await expect(
        open(server.endpoint, unlocked, new ModelKept()).then((sink) => sink.send(batchOf(messages(1, 2)), never)),
      ).rejects.toMatchObject({ code: 'sink_blocked' });
      expect(await errors(unlocked, { secretAccessKey: 'wrong-secret' })).toEqual([expect.stringContaining('secretAccessKey')]);
      expect(await errors('no-such-bucket')).toEqual([expect.stringContaining('NoSuchBucket')]);
    });
  });
}
