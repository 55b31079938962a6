/**
 * Fills a SIEM from the archive: as a new sink while the daemon is killed, and again on demand
 * without a daemon.
 */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { S3Model } from '../support/sinks/s3-model.ts';
import { archivedRecords } from '../support/archive-files.ts';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, linesOf } from '../support/e2e-oracle.ts';
import { inPlace, pause, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

// promise: A replay from an archive to a new sink sends each record once, also when the daemon is killed.
test('a new sink receives each archived record once although the daemon is killed', { timeout: 300_000 }, () =>
  inPlace('fill', async (place) => {
    const service = await Service.start(place, '--records', '900', '--span', '1m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const archive = {
      id: 'evidence',
      type: 'archive',
      directory: './archive',
      signingKey: '${file:./key.pem}',
      batch: { maxWait: '200ms' },
    };
    const source = sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] });
    const withSinks = (...sinks: object[]): string => configure(place, [source], [archive, ...(sinks as { id: string }[])]);
    const truth = await service.truth();
    withSinks();
    const first = new Daemon(place);
    await until('every record in the archive', patience, () =>
      archivedRecords(place.path('archive')).length >= truth.length ? true : undefined,
    );
    await first.stop();

    const siem = { id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw', start: 'archive:evidence', batch: { maxRecords: 1 } };
    withSinks(siem);
    const lines = (): string[] => (existsSync(place.path('siem.ndjson')) ? linesOf(place.path('siem.ndjson')) : []);
    // While the daemon writes, and after a kill, the last line may be incomplete: `lines` refuses that.
    const written = (): number =>
      existsSync(place.path('siem.ndjson')) ? readFileSync(place.path('siem.ndjson'), 'utf8').split('\n').length - 1 : 0;
    for (const atLeast of [1, 150]) {
      const daemon = new Daemon(place);
      // Not by `until`, which asks ten times a second: a quick disk has all records by then.
      while (written() < atLeast) await pause(2);
      await daemon.kill();
      expect(written()).toBeLessThan(truth.length);
    }
    // The segments cannot be read for a while. As for every error that may need an operator, the next attempt is a minute later.
    const [segments, away] = [place.path('archive/segments'), place.path('away')];
    renameSync(segments, away);
    const last = new Daemon(place);
    await last.logged('sink.archive_replay_failed');
    expect(await place.waybill('status', '--exit-code', '--config', 'waybill.yaml')).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(
        /^siem: replay from the archive evidence, .*; last attempt: cannot read the lines \d+ to \d+ of the archive/m,
      ) as string,
    });
    renameSync(away, segments);
    await last.logged('sink.archive_replay_completed');
    await until('every record in the file', patience, () => (written() >= truth.length ? true : undefined));
    await last.stop();
    expect(compare(lines(), truth, (line) => line)).toEqual(exactlyOnce);

    // The SIEM is lost, and filled again under another id.
    rmSync(place.path('siem.ndjson'));
    const again = { id: 'again', type: 'file', path: './again.ndjson', format: 'raw', start: 'now' };
    withSinks(again);
    const starts = new Daemon(place);
    await starts.ready(200);
    await starts.stop();
    const replay = async (): Promise<{ code: number | null; stdout: string; stderr: string }> =>
      place.waybill('replay', '--sink', 'again', '--archive', 'evidence', '--yes', '--config', 'waybill.yaml');
    expect(await replay()).toMatchObject({ code: 0, stdout: `replay to again finished: ${truth.length} records sent\n` });
    expect(compare(linesOf(place.path('again.ndjson')), truth, (line) => line)).toEqual(exactlyOnce);

    // A segment is lost: the replay names its lines, sends what is before them, and goes on behind them only when told.
    const names = readdirSync(place.path('archive/segments')).sort();
    expect(names.length).toBeGreaterThan(2);
    const [, lost = '', following = ''] = names;
    const [before, through] = [Number(lost.slice(0, 16)), Number(following.slice(0, 16))];
    const inLost = gunzipSync(readFileSync(place.path(`archive/segments/${lost}`))).toString().split('\n').filter((line) => line.includes('"kind":"record"')).length; // prettier-ignore
    rmSync(place.path(`archive/segments/${lost}`));
    const named = `cannot read the lines ${before + 1} to ${through} of the archive`;
    expect(await replay()).toMatchObject({ code: 1, stderr: expect.stringContaining(named) as string });
    const command = ['replay', '--sink', 'again', '--archive', 'evidence', '--from', String(through + 1), '--yes', '--json'];
    const went = await place.waybill(...command, '--config', 'waybill.yaml');
    expect([went.code, JSON.parse(went.stdout)]).toMatchObject([
      0,
      { state: 'done', sent: truth.length - inLost, leftOut: through - before },
    ]);
    const held = 2 * truth.length - inLost;
    expect(linesOf(place.path('again.ndjson'))).toHaveLength(held);

    // An archive without its segments is not sent at all.
    for (const name of readdirSync(place.path('archive/segments'))) rmSync(place.path(`archive/segments/${name}`));
    const failed = await replay();
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/archive verify.*run the command again to continue/) as string });
    // No daemon tries again.
    expect(failed.stderr).not.toContain('retryInMs');
    const stored = await place.waybill('status', '--config', 'waybill.yaml');
    expect(stored.stdout).toContain('again: replay from the archive evidence, stopped after line 0, 0 records sent');
    expect(
      await place.waybill('replay', '--sink', 'again', '--archive', 'evidence', '--from', '-7d', '--yes', '--config', 'waybill.yaml'),
    ).toMatchObject({ code: 2, stderr: expect.stringContaining('"waybill replay cancel --sink again" ends it') as string });
    expect(linesOf(place.path('again.ndjson'))).toHaveLength(held);

    // The state stores that replay. An operator ends it, as no attempt can succeed.
    const cancel = () => place.waybill('replay', 'cancel', '--sink', 'again', '--yes', '--config', 'waybill.yaml');
    const replayState = async (): Promise<string | undefined> => {
      const { stdout } = await place.waybill('status', '--json', '--config', 'waybill.yaml');
      const { sinks } = JSON.parse(stdout) as { sinks: readonly { id: string; replay?: { state: string } }[] };
      return sinks.find(({ id }) => id === 'again')?.replay?.state;
    };
    const tries = new Daemon(place);
    await tries.logged('sink.archive_replay_failed');
    expect(await replayState()).toBe('failed');
    expect(await cancel()).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(await replayState()).toBe('cancelled');
    await tries.stop();
    const quiet = new Daemon(place);
    await quiet.ready(200);
    expect(await cancel()).toMatchObject({ code: 2, stderr: expect.stringContaining('none is under way') as string });
    await quiet.stop();
    expect(quiet.find('sink.archive_replay_failed')).toBeUndefined();
  }),
);

test('a new archive, and a sink that begins with it, need no attention', { timeout: 300_000 }, () =>
  inPlace('both', async (place) => {
    const service = await Service.start(place, '--records', '200', '--span', '1m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const key = '${file:./key.pem}';
    const archive = { id: 'evidence', type: 'archive', directory: './archive', signingKey: key, batch: { maxWait: '5s' } };
    const siem = { id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw', start: 'archive:evidence' };
    const source = sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] });
    const truth = await service.truth();
    configure(place, [source], [archive, siem]);
    const daemon = new Daemon(place);
    const lines = (): string[] => (existsSync(place.path('siem.ndjson')) ? linesOf(place.path('siem.ndjson')) : []);
    await until('every record in the file', patience, () => (lines().length >= truth.length ? true : undefined));
    // The archive is written later than the file.
    const { code, stdout } = await place.waybill('status', '--exit-code', '--config', 'waybill.yaml');
    expect(stdout).toContain('siem: replay from the archive evidence, waits for the first checkpoint of the archive, 0 records sent');
    expect([code, stdout.includes('FAILS')]).toEqual([0, false]);
    await until('every record in the archive', patience, () =>
      archivedRecords(place.path('archive')).length >= truth.length ? true : undefined,
    );
    await daemon.stop();
    expect(daemon.find('sink.archive_replay_failed')).toBeUndefined();
    // The next start finds the archive, and that all its records came from the journal.
    const next = new Daemon(place);
    await next.logged('sink.archive_replay_completed');
    await next.stop();
    expect(compare(lines(), truth, (line) => line)).toEqual(exactlyOnce);

    // Without a daemon, nothing waits for an archive.
    configure(place, [source], [archive, siem, { ...archive, id: 'later', directory: './later' }]);
    expect(await place.waybill('replay', '--sink', 'siem', '--archive', 'later', '--yes', '--config', 'waybill.yaml')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('it has no checkpoint yet; run the command again to continue') as string,
    });
  }),
);

test('a new sink, and a sink on request, receive each record of an archive in a bucket once', { timeout: 300_000 }, () =>
  inPlace('bucket', async (place) => {
    await using bucket = await S3Model.start();
    const service = await Service.start(place, '--records', '200', '--span', '1m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    writeFileSync(place.path('secret'), 'model-secret');
    const archive = {
      id: 'evidence',
      type: 'archive',
      s3: {
        ...{ bucket: 'audit', prefix: 'production', region: 'eu-central-1', endpoint: bucket.endpoint, objectLock: '365d' },
        ...{ accessKeyId: 'model-key', secretAccessKey: '${file:./secret}' },
      },
      signingKey: '${file:./key.pem}',
      batch: { maxWait: '200ms' },
    };
    const source = sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] });
    const truth = await service.truth();
    configure(place, [source], [archive]);
    const first = new Daemon(place);
    await until('every record in the bucket', patience, () => (recordsIn(bucket).length >= truth.length ? true : undefined));
    await first.stop();

    const siem = { id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw', start: 'archive:evidence' };
    const again = { id: 'again', type: 'file', path: './again.ndjson', format: 'raw', start: 'now' };
    configure(place, [source], [archive, siem, again]);
    const second = new Daemon(place);
    await second.logged('sink.archive_replay_completed');
    await second.stop();
    expect(compare(linesOf(place.path('siem.ndjson')), truth, (line) => line)).toEqual(exactlyOnce);

    expect(await place.waybill('replay', '--sink', 'again', '--archive', 'evidence', '--yes', '--config', 'waybill.yaml')).toMatchObject({
      code: 0,
      stdout: `replay to again finished: ${truth.length} records sent\n`,
    });
    expect(compare(linesOf(place.path('again.ndjson')), truth, (line) => line)).toEqual(exactlyOnce);
  }),
);

/** The lines of records in the segments of a bucket. */
function recordsIn(bucket: S3Model): readonly string[] {
  return [...bucket.files('production/segments/').values()]
    .flatMap((segment) => gunzipSync(segment).toString().trimEnd().split('\n'))
    .filter((line) => (JSON.parse(line) as { kind: string }).kind === 'record');
}
