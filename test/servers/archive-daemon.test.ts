/**
 * The whole program with an archive in a bucket of versitygw, killed while it writes. Both verifiers
 * accept the archive, and it holds each record of the service once. `WAYBILL_SERVER_KILLS` is the
 * number of kills (10).
 */
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GetObjectLegalHoldCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { archivedRecords, publicKeyPath } from '../support/archive-files.ts';
import { ago, caughtUp, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce } from '../support/e2e-oracle.ts';
import { inPlace, pause, until, type Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { hasPython, verifyWithPython } from '../support/second-verifier.ts';
import { s3Missing, S3Server } from '../support/servers/s3-server.ts';

const missing = s3Missing('versitygw');
const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 10);
/** Records that exist at the start, for each kill. A segment has at most `batch`. */
const history = 400;
const batch = 25;
const patient = 300_000;
const preload = fileURLToPath(new URL('../support/kill-at.ts', import.meta.url));

// promise: `kill -9` of a daemon that archives to a bucket: each record is there once, and the archive is intact.
test(
  `${kills} kills of the daemon: each record once in the bucket, and the archive is intact`,
  { timeout: 600_000 + kills * 60_000 },
  async ({ skip, annotate }) => {
    if (missing !== undefined) return skip(missing);
    await using server = await S3Server.start('versitygw');
    await server.createBucket('audit');
    await inPlace('archive-bucket', async (place) => {
      const start = ago(1_800_000);
      const service = await Service.start(place, '--seed', '17', '--records', String(kills * history), '--span', '29m');
      writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
      const { accessKeyId, secretAccessKey } = S3Server;
      const bucket = { bucket: 'audit', prefix: 'production', region: 'us-east-1', endpoint: server.endpoint, objectLock: '1d' };
      const archive = { id: 'archive', type: 'archive', signingKey: '${file:./key.pem}', batch: { maxRecords: batch, maxWait: '50ms' } };
      configure(place, [sourceOf(service, start)], [{ ...archive, s3: { ...bucket, accessKeyId, secretAccessKey } }]);

      await service.set({ rate: 20 });
      for (let kill = 1; kill <= kills; kill += 1) {
        const daemon = new Daemon(place);
        // Every third kill comes at any time of the daemon's start, the others while it writes segments.
        if (kill % 3 !== 0)
          await until(
            () => `the bucket takes a segment\n${daemon.words()}`,
            patient,
            () => daemon.find('sink.first_delivery'),
          );
        await pause(place.chance() * (kill % 3 === 0 ? 3_000 : 300));
        await daemon.kill();
      }
      const last = new Daemon(place);
      await service.set({ rate: 0 });
      const end = Math.floor(Date.now() / 1_000) * 1_000;
      await caughtUp(last, service, patient);
      await settled(last, end, patient);
      expect(await last.stop()).toMatchObject({ code: 0, signal: null });

      const truth = await service.truth();
      const directory = place.path('bucket');
      await server.save('audit', 'production/', directory);
      expect(compare(archivedRecords(directory), truth, (record) => record)).toEqual(exactlyOnce);
      const [checkpoints, segments] = ['checkpoints', 'segments'].map((folder) => readdirSync(join(directory, folder)).length) as [
        number,
        number,
      ];
      process.stderr.write(
        `${truth.length} records in ${checkpoints} segments; kills left ${segments - checkpoints} without a checkpoint\n`,
      );
      const { code, stdout } = await place.waybill('archive', 'verify', '--config', 'waybill.yaml', '--sink', 'archive', '--json');
      expect([code, JSON.parse(stdout)]).toMatchObject([0, { result: 'intact', records: truth.length }]);
      if (hasPython) expect(verifyWithPython('--directory', directory, '--key', publicKeyPath(directory))).toMatchObject({ code: 0 });
      else await annotate('verify.py is skipped: python3 or openssl is missing');
    });
  },
);

// promise: A hold sets a legal hold on the segments in a bucket, and a prune leaves what the bucket locks.
test(
  'a hold sets a legal hold on segments of the bucket, and prune leaves what the bucket locks',
  { timeout: 300_000 },
  async ({ skip }) => {
    if (missing !== undefined) return skip(missing);
    await using server = await S3Server.start('versitygw');
    await server.createBucket('audit');
    await inPlace('archive-bucket-hold', async (place) => {
      const service = await Service.start(place, '--records', '100', '--span', '9m');
      writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
      const { accessKeyId, secretAccessKey } = S3Server;
      const s3 = { bucket: 'audit', prefix: 'production', region: 'us-east-1', endpoint: server.endpoint, objectLock: '1d' };
      const archive = { id: 'archive', type: 'archive', signingKey: '${file:./key.pem}', batch: { maxRecords: 20, maxWait: '200ms' } };
      configure(place, [sourceOf(service, ago(600_000))], [{ ...archive, s3: { ...s3, accessKeyId, secretAccessKey } }]);
      const daemon = new Daemon(place);
      await caughtUp(daemon, service, patient);
      const holds = async (): Promise<string[]> => {
        const { Contents = [] } = await server.s3.send(new ListObjectsV2Command({ Bucket: 'audit', Prefix: 'production/segments/' }));
        const held: string[] = [];
        for (const { Key } of Contents) {
          const answer = await server.s3.send(new GetObjectLegalHoldCommand({ Bucket: 'audit', Key })).catch(() => undefined);
          if (answer?.LegalHold?.Status === 'ON') held.push(Key ?? '');
        }
        return held;
      };
      const order = (...args: string[]) => place.waybill('archive', ...args, '--sink', 'archive', '--yes');
      expect(await holds()).toEqual([]);
      const held = await order('hold', '--case', '2026-114', '--from', '2020-01-01', '--json');
      expect(held.code, held.stderr).toBe(0);
      expect((await holds()).length).toBeGreaterThan(3);
      const isSigned = async (name: string): Promise<true | undefined> =>
        (await place.waybill('archive', 'export', '--sink', 'archive')).stdout.includes(`\\"operation\\":\\"${name}\\"`) || undefined;
      await until('the signed hold', patient, () => isSigned('archive hold'));
      const before = new Date().toISOString();
      // Everything is held.
      expect(await order('prune', '--before', before, '--reason', '13 months')).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing to remove') as string }); // prettier-ignore
      const released = await order('hold', '--case', '2026-114', '--release');
      expect(released.code, released.stderr).toBe(0);
      expect(await holds()).toEqual([]);
      await until('the signed release', patient, () => isSigned('archive release'));
      const pruned = await order('prune', '--before', before, '--reason', '13 months');
      expect(pruned.code, pruned.stderr).toBe(0);
      expect(pruned.stdout).toContain('ordered');
      expect(await daemon.logged('archive.removal_failed', patient)).toMatchObject({ sink: 'archive' });
      expect((await place.waybill('archive', 'verify', '--sink', 'archive')).code).toBe(0);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
    });
  },
);

/** Of a program that is killed before its `change`th request that changes the bucket. */
const killedAt = (change: number): Record<string, string> => ({ NODE_OPTIONS: `--import ${preload}`, KILL_AT: String(change) });

// promise: A kill before each request of a prune, a hold or a release in a bucket: the archive verifies, and the command completes when run again.
test(
  'a hold, a release and a prune that are killed before each request and run again: the archive verifies, and they complete',
  { timeout: 900_000 },
  async ({ skip }) => {
    if (missing !== undefined) return skip(missing);
    await using server = await S3Server.start('versitygw');
    await server.createBucket('held');
    await server.createBucket('plain', false);
    const { accessKeyId, secretAccessKey } = S3Server;
    const archived = async (place: Place, bucket: string, objectLock: string): Promise<void> => {
      const service = await Service.start(place, '--records', '100', '--span', '9m');
      writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
      const s3 = { bucket, prefix: 'production', region: 'us-east-1', endpoint: server.endpoint, objectLock, accessKeyId, secretAccessKey };
      const archive = { id: 'archive', type: 'archive', signingKey: '${file:./key.pem}', batch: { maxRecords: 20, maxWait: '200ms' } };
      configure(place, [sourceOf(service, ago(600_000))], [{ ...archive, s3 }]);
      const daemon = new Daemon(place);
      await caughtUp(daemon, service, patient);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
    };
    const segments = async (bucket: string): Promise<string[]> => {
      const { Contents = [] } = await server.s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: 'production/segments/' }));
      return Contents.map(({ Key = '' }) => Key);
    };
    const isHeld = async (Key: string): Promise<boolean> => {
      const answer = await server.s3.send(new GetObjectLegalHoldCommand({ Bucket: 'held', Key })).catch(() => undefined);
      return answer?.LegalHold?.Status === 'ON';
    };
    const verified = async (place: Place): Promise<string> => {
      const { code, stdout } = await place.waybill('archive', 'verify', '--sink', 'archive');
      expect(code, stdout).toBe(0);
      return stdout;
    };

    await inPlace('archive-bucket-hold-kills', async (place) => {
      await archived(place, 'held', '1d');
      const old = await segments('held');
      const run = ['--sink', 'archive', '--case', '2026-114', '--yes'];
      for (const [args, held, order] of [
        [['--from', '2020-01-01'], old.length, 'archive hold'],
        [['--release'], 0, 'archive release'],
      ] as const) {
        let change = 1;
        for (let isKilled = true; isKilled; change += 1) {
          // A killed program has no exit code.
          const { code, stderr } = await place.waybillWith(killedAt(change), 'archive', 'hold', ...run, ...args);
          expect([null, 0], stderr).toContain(code);
          isKilled = code === null;
          await verified(place);
        }
        process.stderr.write(`hold ${args[0]}: ${change - 2} kills\n`);
        expect(change).toBeGreaterThan(old.length);
        expect((await Promise.all(old.map(isHeld))).filter(Boolean)).toHaveLength(held);
        const daemon = new Daemon(place);
        await until('the signed order', patient, async () => (await place.waybill('archive', 'export', '--sink', 'archive')).stdout.includes(order) || undefined); // prettier-ignore
        expect(await daemon.stop()).toMatchObject({ code: 0 });
      }
    });

    await inPlace('archive-bucket-prune-kills', async (place) => {
      await archived(place, 'plain', 'none');
      const before = new Date().toISOString();
      const old = await segments('plain');
      let last = '';
      let change = 0;
      for (let isKilled = true; isKilled;) {
        const pruned = await place.waybill('archive', 'prune', '--sink', 'archive', '--before', before, '--reason', '13 months', '--yes');
        expect(pruned.code, pruned.stderr).toBe(0);
        place.environment = killedAt((change += 1));
        const daemon = new Daemon(place);
        place.environment = {};
        let signal: string | null | undefined;
        void daemon.ended.then((ended) => (signal = ended.signal));
        const isLeft = async (): Promise<boolean> => (await segments('plain')).filter((each) => old.includes(each)).length > 1;
        await until(
          () => `the kill\n${daemon.words()}`,
          patient,
          async () => signal !== undefined || !(await isLeft()) || undefined,
        );
        if (signal === undefined) await daemon.stop();
        isKilled = (await daemon.ended).signal === 'SIGKILL';
        last = await verified(place);
      }
      process.stderr.write(`prune: ${change - 1} kills\n`);
      expect(change).toBeGreaterThan(4);
      expect((await segments('plain')).filter((each) => old.includes(each))).toHaveLength(1);
      expect(last).toMatch(/operation \d+ removed it: .*13 months/);
    });
  },
);
