/**
 * The whole program with an archive in a bucket of versitygw, killed while it writes. Both verifiers
 * accept the archive, and it holds each record of the service once. `WAYBILL_SERVER_KILLS` is the
 * number of kills (10).
 */
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GetObjectLegalHoldCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { archivedRecords, publicKeyPath } from '../support/archive-files.ts';
import { ago, caughtUp, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce } from '../support/e2e-oracle.ts';
import { inPlace, pause, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { hasPython, verifyWithPython } from '../support/second-verifier.ts';
import { s3Missing, S3Server } from '../support/servers/s3-server.ts';

const missing = s3Missing('versitygw');
const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 10);
/** Records that exist at the start, for each kill. A segment has at most `batch`. */
const history = 400;
const batch = 25;
const patient = 300_000;

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
