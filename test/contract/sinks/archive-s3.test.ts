/** The sink `archive` in a bucket: the contract of every sink, a hostile server, and `check`. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BucketStore } from '../../../src/archive/bucket/store.ts';
import { parseVerifier } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { codeOf, WaybillError } from '../../../src/errors/errors.ts';
import type { Message, ResumePoint, Sink } from '../../../src/model/sink.ts';
import type { Clock } from '../../../src/model/time.ts';
import { archive } from '../../../src/sink/archive/index.ts';
import { bucketTarget } from '../../../src/sink/archive/settings.ts';
import { Chance } from '../../simulation/chance.ts';
import { archivedRecords } from '../../support/archive-files.ts';
import { keyFrom, openWriter, recordLine, through } from '../../support/archive.ts';
import { temporary } from '../../support/model-journal.ts';
import { hasPython, resultOf, secondVerifier } from '../../support/second-verifier.ts';
import { S3Model } from '../../support/sinks/s3-model.ts';
import { batchOf, contextOf, messages, ModelKept, positionOf } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';

const never = new AbortController().signal;
const pem = keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString();
const prefix = 'audit/production/';
const secretKey = 'model-secret-of-the-bucket';

/** Pauses between attempts take no time. */
const clock: Clock = { ...systemClock, now: () => systemClock.now(), sleep: () => Promise.resolve() };

function settingsOf(endpoint: string, given: object = {}, keys: object = { signingKey: pem }) {
  return archive.config.parse({
    s3: {
      ...{ bucket: 'audit', prefix: 'audit/production', region: 'eu-central-1', endpoint, objectLock: '365d' },
      ...{ accessKeyId: 'model-key', secretAccessKey: secretKey, ...given },
    },
    ...keys,
  });
}

function openAt(endpoint: string, kept: ResumePoint, at = clock, keys?: object): Promise<Sink> {
  return archive.open(settingsOf(endpoint, {}, keys), contextOf('under-test', { format: 'raw', clock: at }), kept, never);
}

/** The records of the archive in the model, read without the program. */
function recordsIn(model: S3Model): string[] {
  const folder = temporary();
  for (const [path, bytes] of model.files(prefix)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  const records = archivedRecords(folder);
  rmSync(folder, { recursive: true });
  return records;
}

class BucketPlace implements Place {
  readonly #model: S3Model;

  constructor(model: S3Model) {
    this.#model = model;
  }

  open = (kept: ResumePoint): Promise<Sink> => openAt(this.#model.endpoint, kept);

  /** Abandons the object without closing it. */
  async kill(): Promise<void> {}

  received(): Promise<readonly string[]> {
    return Promise.resolve(recordsIn(this.#model));
  }

  /** Every attempt loses its answer. */
  cutAnswer(): void {
    let left = 4;
    this.#model.fault = ({ method, key }) =>
      method === 'PUT' && key.startsWith(`${prefix}checkpoints/`) && (left -= 1) >= 0 ? 'lost' : undefined;
  }

  ruin(): void {
    this.#model.fault = () => 403;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#model[Symbol.asyncDispose]();
  }
}

sinkSuite({
  name: 'archive in a bucket',
  formats: archive.formats,
  twice: () => 0,
  batches: 10,
  takesOnce: true,
  secrets: [pem, pem.split('\n')[1] ?? '', secretKey],
  start: async () => new BucketPlace(await S3Model.start()),
});

describe('an archive in a bucket', () => {
  let model: S3Model;
  let kept: ModelKept;
  beforeEach(async () => {
    model = await S3Model.start();
    kept = new ModelKept();
  });
  afterEach(async () => model[Symbol.asyncDispose]());

  async function deliver(batch: readonly Message[], keys?: object): Promise<void> {
    await using sink = await openAt(model.endpoint, kept, clock, keys);
    const found = await sink.position?.(never);
    if (found) kept.acknowledge({ ...batchOf([]), through: found.position }, found.resumeNote);
    const missing = batch.filter(({ seq }) => seq > kept.position.seq);
    if (missing.length === 0) return;
    kept.acknowledge(batchOf(missing), (await sink.send(batchOf(missing), never)).resumeNote);
  }

  /** Both verifiers find an intact archive of these records. */
  async function expectIntact(count: number): Promise<void> {
    const files = model.files(prefix);
    const keys = [...files].flatMap(([path, bytes]) => (path.startsWith('keys/') ? [bytes.toString().trimEnd()] : []));
    await using store = new BucketStore(bucketTarget(settingsOf(model.endpoint).s3 as never, {}), { setting: 'sinks.a.s3', clock });
    const report = await verifyArchive(
      store,
      keys.flatMap((each) => parseVerifier(each) ?? []),
    );
    expect(report.findings.filter(({ severity }) => severity !== 'note')).toEqual([]);
    expect(report).toMatchObject({ result: 'intact', records: count });
    expect(recordsIn(model)).toEqual(messages(1, count).map(({ bytes }) => Buffer.from(bytes).toString()));
    if (hasPython) expect((await secondVerifier(files, { key: keys.join('\n') })).map(resultOf)).toEqual(['intact']);
  }

  test('locks segments and checkpoints by the time of the server, but no object that is replaced', async () => {
    model.ahead = 86_400_000;
    await deliver(messages(1, 5));
    const year = 365 * 86_400_000;
    const locks = [...model.versions].map(([key, [version]]) => [key.slice(prefix.length).split('/')[0], version?.lockedUntil] as const);
    expect(locks.length).toBeGreaterThan(4);
    for (const [folder, until] of locks)
      if (folder === 'segments' || folder === 'checkpoints')
        expect(Math.abs((until ?? 0) - Date.now() - model.ahead - year)).toBeLessThan(60_000);
      else expect(until).toBeUndefined();
    await expectIntact(5);
  });

  test('each shard of a fleet has its own archive, and both are intact', async () => {
    const shards = [0, 11].map((shard) => ({ shard, own: new ModelKept(String(shard % 10).repeat(32)) }));
    for (const from of [1, 6])
      for (const { shard, own } of shards) {
        const context = contextOf('under-test', { format: 'raw', clock, fleet: { shard } });
        await using sink = await archive.open(settingsOf(model.endpoint), context, own, never);
        const batch = batchOf(messages(from, from + 4));
        own.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
      }
    const origins = new Set<string>();
    for (const { shard } of shards) {
      const keys = [...model.files(`${prefix}shard-${shard}/`)].flatMap(([path, bytes]) =>
        path.startsWith('keys/') ? [bytes.toString().trimEnd()] : [],
      );
      const target = bucketTarget(settingsOf(model.endpoint).s3 as never, { fleet: { shard } });
      await using store = new BucketStore(target, { setting: 'sinks.a.s3', clock });
      const verifiers = keys.flatMap((each) => parseVerifier(each) ?? []);
      const report = await verifyArchive(store, verifiers);
      expect(report).toMatchObject({ result: 'intact', records: 10 });
      origins.add(report.origin ?? '');
    }
    expect(origins.size).toBe(2);
    expect([...model.versions.keys()].filter((key) => !/^audit\/production\/shard-(0|11)\//.test(key))).toEqual([]);
  });

  const faults = ['lost', 'dropped', 'cut', 'text', 'xhtml', 409, 500, 503] as const;
  test.each(faults)('survives one %s answer at each of its requests', async (fault) => {
    await deliver(messages(1, 3));
    const begun = new Map(model.versions);
    model.asked.length = 0;
    await deliver(messages(1, 300));
    const requests = model.asked.length;
    expect(requests).toBeGreaterThan(10);
    for (let at = 0; at < requests; at += 1) {
      model.versions.clear();
      for (const [key, versions] of begun) model.versions.set(key, versions);
      kept = new ModelKept();
      let count = 0;
      model.fault = () => ((count += 1) === at + 1 ? fault : undefined);
      await deliver(messages(1, 300));
      model.fault = () => undefined;
      expect(recordsIn(model)).toHaveLength(300);
    }
    await expectIntact(300);
    expect([...model.versions].filter(([key, all]) => /checkpoints|segments/.test(key) && all.length > 1)).toEqual([]);
  });

  /** The server executes this number of requests, the last without a response, and no later one. */
  function killAfter(requests: number): void {
    let left = requests + 1;
    model.fault = () => {
      left -= 1;
      return left > 1 ? undefined : left === 1 ? 'lost' : 'dropped';
    };
  }

  test.each([0, 3])('continues after a kill at each of its requests, and a second kill, in an archive of %i records', async (before) => {
    if (before > 0) await deliver(messages(1, before));
    const begun = new Map(model.versions);
    model.asked.length = 0;
    kept = new ModelKept();
    await deliver(messages(1, 300));
    const requests = model.asked.length;
    expect(requests).toBeGreaterThan(10);
    for (let at = 0; at <= requests; at += 1) {
      model.versions.clear();
      for (const [key, versions] of begun) model.versions.set(key, versions);
      kept = new ModelKept();
      killAfter(at);
      await expect(deliver(messages(1, 300)), `killed after request ${at}`).rejects.toThrow();
      // The writer that continues has fewer requests left if the first one was killed late.
      killAfter((at * 7) % requests);
      await deliver(messages(1, 300)).catch(() => undefined);
      model.fault = () => undefined;
      await deliver(messages(1, 300));
      await expectIntact(300);
    }
    expect([...model.versions].filter(([key, all]) => /checkpoints|segments/.test(key) && all.length > 1)).toEqual([]);
  });

  test('replaces its key by one checkpoint of both keys, with one lost or refused answer at each request', async () => {
    await deliver(messages(1, 3));
    const begun = new Map(model.versions);
    const keys = { signingKey: keyFrom(2).export({ format: 'pem', type: 'pkcs8' }).toString(), previousSigningKey: pem };
    const signatures = (): number[] =>
      [...model.files(`${prefix}checkpoints/`)]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, note]) => note.toString().split('\n\u2014 ').length - 1);
    model.asked.length = 0;
    await deliver(messages(1, 300), keys);
    const requests = model.asked.length;
    expect(requests).toBeGreaterThan(10);
    for (const [i, fault] of (['lost', 403] as const).entries())
      for (let at = 1 + 3 * i; at <= requests; at += 1) {
        model.versions.clear();
        for (const [key, versions] of begun) model.versions.set(key, versions);
        kept = new ModelKept();
        let count = 0;
        model.fault = () => ((count += 1) === at ? fault : undefined);
        const attempt = deliver(messages(1, 300), keys);
        // After a 403 the sink opens the archive again.
        if (fault === 403)
          await attempt.catch((thrown: unknown) => expect(['sink_blocked', 'sink_outcome_unknown']).toContain(codeOf(thrown)));
        else await attempt;
        model.fault = () => undefined;
        await deliver(messages(1, 301), keys);
        expect(recordsIn(model)).toHaveLength(301);
        expect(signatures()).toEqual(signatures().map((_, i) => (i === 1 ? 2 : 1)));
      }
    await deliver(messages(1, 310), keys);
    await expectIntact(310);
    await expect(deliver(messages(1, 311))).rejects.toMatchObject({ code: 'archive_broken' });
    expect([...model.versions].filter(([key, all]) => /checkpoints|segments/.test(key) && all.length > 1)).toEqual([]);
  });

  test('holds each record once after requests that are executed long after they failed', async () => {
    const chance = new Chance(7, 'late').next;
    for (let end = 20; end <= 200; end += 20) {
      model.fault = ({ method }) => (method === 'PUT' && chance() < 0.3 ? 'late' : undefined);
      await deliver(messages(1, end)).catch((thrown: unknown) => expect(thrown).toMatchObject({ code: 'sink_outcome_unknown' }));
      model.fault = () => undefined;
      if (chance() < 0.5) model.runLate();
      await deliver(messages(1, end)).catch((thrown: unknown) => expect(thrown).toMatchObject({ code: 'archive_conflict' }));
      model.runLate();
    }
    await deliver(messages(1, 210));
    await expectIntact(210);
  });

  test('has two writers for a moment: one of them stops, and the archive stays intact', async () => {
    await deliver(messages(1, 3));
    await using first = await openAt(model.endpoint, kept);
    await using second = await openAt(model.endpoint, kept);
    await second.send(batchOf(messages(4, 300)), never);
    await expect(first.send(batchOf(messages(4, 290)), never)).rejects.toMatchObject({ code: 'archive_conflict' });
    await expectIntact(300);
    await using again = await openAt(model.endpoint, kept);
    expect((await again.position?.(never))?.position).toEqual(positionOf(300));
  });

  test('is written correctly with a local clock that is a day behind or ahead', async () => {
    for (const [i, offset] of [-86_400_000, 86_400_000].entries()) {
      await using sink = await openAt(model.endpoint, kept, { ...clock, now: () => Date.now() + offset });
      const batch = batchOf(messages(i * 10 + 1, i * 10 + 10));
      kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
    }
    model.ahead = 86_400_000;
    await deliver(messages(1, 30));
    await expectIntact(30);
  });

  test.each<[string, (model: S3Model) => void, string]>([
    ['has no right to write', (each) => (each.denied = [`PUT ${prefix}`]), 's3:PutObject'],
    ['has no right to list', (each) => (each.denied = ['list-type']), 's3:ListBucket'],
    ['has no Object Lock', (each) => (each.hasLock = false), 'InvalidRequest'],
    ['ignores conditions', (each) => (each.isConditional = false), 'If-None-Match'],
  ])('blocks the sink when the bucket %s', async (_name, change, words) => {
    change(model);
    await expect(deliver(messages(1, 3))).rejects.toMatchObject({
      code: 'sink_blocked',
      message: expect.stringContaining(words) as string,
    });
  });

  test('is not started again if delete markers hide its objects', async () => {
    await deliver(messages(1, 3));
    model.versions.clear();
    await expect(deliver(messages(1, 5))).rejects.toMatchObject({ code: 'archive_broken' });
  });

  test('fails a request that gets no response in time, and continues', async () => {
    await using store = new BucketStore(bucketTarget(settingsOf(model.endpoint).s3 as never, {}), {
      ...{ setting: 'sinks.a.s3', clock, requestMs: 2_000 },
    });
    model.fault = () => 'stalled';
    await expect(openWriter(store, 'stalled')).rejects.toMatchObject({ code: 'sink_unavailable' });
    model.fault = () => undefined;
    const writer = await openWriter(store, 'resumed');
    expect((await writer.append([recordLine(1, 0)], through(1))).size).toBe(2);
  });

  // The daemon gives up its sinks after shutdownTimeout. Four attempts of 20 s each are longer.
  test.each(['GET', 'PUT'])('is given up at once while the server does not answer to %s', { timeout: 15_000 }, async (verb) => {
    await deliver(messages(1, 3));
    model.asked.length = 0;
    model.fault = ({ method }) => (method === verb ? 'stalled' : undefined);
    const abandon = new AbortController();
    const work = (async () => {
      const context = contextOf('under-test', { format: 'raw', clock });
      await using sink = await archive.open(settingsOf(model.endpoint), context, kept, abandon.signal);
      await sink.send(batchOf(messages(4, 5)), never);
    })().catch((thrown: unknown) => thrown);
    await expect.poll(() => model.asked.some(({ method }) => method === verb)).toBe(true);
    const reason = new WaybillError('aborted', 'the shutdown timeout');
    abandon.abort(reason);
    expect(await work).toBe(reason);
    model.fault = () => undefined;
    await deliver(messages(1, 5));
    await expectIntact(5);
  });
});

describe('check of a bucket', () => {
  let model: S3Model;
  beforeEach(async () => void (model = await S3Model.start()));
  afterEach(async () => model[Symbol.asyncDispose]());

  const levels = async (given: object = {}): Promise<string[]> => {
    const found = await archive.check(settingsOf(model.endpoint, given), contextOf('under-test', { format: 'raw', clock }), never);
    return found.flatMap(({ level, message }) => (level === 'ok' ? [] : [`${level} ${message}`]));
  };

  async function begin(): Promise<void> {
    await using sink = await openAt(model.endpoint, new ModelKept());
    await sink.send(batchOf(messages(1, 3)), never);
  }

  test('reports no error, and stores nothing', async () => {
    expect(await levels()).toEqual([]);
    expect(model.versions.size).toBe(0);
    await begin();
    const before = new Map(model.versions);
    expect(await levels()).toEqual([]);
    expect(model.versions).toEqual(before);
  });

  test.each(['text', 'xhtml', 'tagged', 'blank'] as const)('names a %s response of a proxy to each request', async (fault) => {
    await begin();
    const context = contextOf('under-test', { format: 'raw', clock });
    model.fault = () => fault;
    const foreign = expect.stringMatching(
      /^cannot read versioning of .*the response is not one of S3 \(status 200\); see endpoint$/,
    ) as string;
    expect(await archive.check(settingsOf(model.endpoint), context, never)).toMatchObject([{ level: 'error', message: foreign }]);
    model.asked.length = 0;
    model.fault = () => undefined;
    expect(await levels()).toEqual([]);
    const steps = model.asked.slice(0, 7).map(({ method }) => method);
    expect(steps).toEqual(['GET', 'GET', 'GET', 'PUT', 'GET', 'PUT', 'DELETE']);
    for (const at of steps.keys()) {
      let count = 0;
      // Reads, lists and the write of a checkpoint are repeated.
      model.fault = ({ method }) => ((count += 1) > at && method === steps[at] ? fault : undefined);
      expect(await levels(), `from request ${at} on`).toEqual([
        expect.stringMatching(/^error .*the response is not one of S3 \(status 200\)/),
      ]);
    }
  });

  test.each<[string, (model: S3Model) => void, object, RegExp]>([
    ['versioning', (each) => (each.isVersioned = false), {}, /^error .*no versioning/],
    ['Object Lock', (each) => (each.hasLock = false), {}, /^error .*no Object Lock/],
    ['Object Lock by choice', (each) => (each.hasLock = false), { objectLock: 'none' }, /^warning .*objectLock is none/],
    ['a default retention that is longer', (each) => (each.defaultDays = 700), {}, /^warning .*700 days/],
    ['checksums', (each) => (each.checksChecksums = false), {}, /^error .*checksum/],
    ['conditional writes', (each) => (each.isConditional = false), {}, /^error .*If-None-Match/],
    ['the right to list', (each) => (each.denied = ['list-type']), {}, /^error .*s3:ListBucket/],
    ['the right to write', (each) => (each.denied = [`PUT ${prefix}`]), {}, /^error .*s3:PutObject/],
    ['the right to read versioning', (each) => (each.denied = ['versioning']), {}, /^warning .*s3:GetBucketVersioning/],
    ['no right to delete', (each) => (each.mayDelete = true), {}, /^warning .*s3:DeleteObjectVersion/],
    ['the bucket', () => undefined, { bucket: 'other' }, /^error .*NoSuchBucket/],
    ['the access key', () => undefined, { accessKeyId: 'other' }, /^error .*accessKeyId.*InvalidAccessKeyId/],
  ])('names the missing item: %s', async (_name, change, given, finding) => {
    await begin();
    change(model);
    const found = await levels(given);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(finding);
  });
});
