/** The sink `archive` with a time-stamping authority: a token a day over the newest checkpoint. An authority that is down stops nothing. */
import { createHash, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { parseVerifier } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { PemFiles } from '../../../src/settings/pem.ts';
import { Secret } from '../../../src/settings/secret.ts';
import { archive } from '../../../src/sink/archive/index.ts';
import { publicKeyIn, publicKeyPath } from '../../support/archive-files.ts';
import { temporary } from '../../support/model-journal.ts';
import { hasPython, resultOf, secondVerifier, verifyWithPython } from '../../support/second-verifier.ts';
import { TimeStampAuthority } from '../../../src/archive/timestamp/authority.ts';
import { readResponse } from '../../../src/archive/timestamp/token.ts';
import type { WritableArchiveStore } from '../../../src/archive/store.ts';
import { ArchiveSink } from '../../../src/sink/archive/sink.ts';
import type { Authority as SinkAuthority } from '../../../src/sink/archive/time-stamper.ts';
import { keyFrom, MemoryStore, seededBytes } from '../../support/archive.ts';
import { Authority, AuthorityServer, hasOpenssl, sendReply, verifyWithOpenssl } from '../../support/time-stamp-authority.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { batchOf, contextOf, messages, ModelKept } from '../../support/sinks/sink-batches.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const never = new AbortController().signal;
const hour = 3_600_000;
const day = 24 * hour;
const startOf = Date.parse('2026-11-20T22:00:00Z');
const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe.skipIf(!hasOpenssl || !hasPython)('time stamps of an archive', () => {
  /** An authority with the clock of the test. Its tokens are signed by `openssl cms`. */
  const validity = { validFrom: startOf - day, validTo: startOf + 36_500 * day };
  const openssl = hasOpenssl ? new Authority('Example', validity) : (undefined as never);

  afterAll(() => openssl[Symbol.dispose]());

  class Rig {
    readonly store: WritableArchiveStore & MemoryStore;
    readonly clock = new VirtualClock(startOf, 'manual');
    /** Clock of the authority at the start, ms. */
    authority = startOf;
    readonly kept = new ModelKept();
    readonly events: string[] = [];
    /** Set: the authority in place of the one with the clock of the test. */
    client: (() => SinkAuthority) | undefined;
    /** Set: the authority does not answer. */
    outage: string | undefined;
    requests = 0;
    keys: readonly [KeyObject, KeyObject?] = [keyFrom(1)];

    constructor(store = new MemoryStore()) {
      this.store = store;
    }

    async open(): Promise<ArchiveSink> {
      const authority: SinkAuthority = {
        stamp: async (content) => {
          this.requests += 1;
          if (this.outage !== undefined) throw new Error(this.outage);
          const now = this.authority + this.clock.monotonic();
          return { bytes: openssl.responseAt(now, content), time: Math.floor(now / 1000) * 1e6 };
        },
        timeOf: (token, content) => readResponse(token, { imprint: createHash('sha256').update(content).digest() }).time,
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
      const log = noting({ write: (...[event]) => void this.events.push(event) });
      const target = {
        name: 'memory',
        store: this.store,
        key: this.keys[0],
        previousKey: this.keys[1],
        random: seededBytes('rig'),
        authority: this.client?.() ?? authority,
      };
      return ArchiveSink.open(target, contextOf('archive', { format: 'raw', clock: this.clock, log }), this.kept);
    }

    async send(sink: ArchiveSink, seq: number): Promise<void> {
      const batch = batchOf(messages(seq, seq));
      this.kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
      await settled();
    }

    /** The result of both verifiers. */
    async judged(): Promise<readonly [string, string]> {
      const key = [...this.store.files].find(([path]) => path.startsWith('keys/'))?.[1].toString() ?? '';
      const verifier = parseVerifier(key.trim());
      const now = this.clock.now();
      const timeStamps = { roots: [new X509Certificate(openssl.root)], now: now * 1000 };
      const { result } = await verifyArchive(this.store, verifier ? [verifier] : [], { timeStamps });
      const options = { key, roots: openssl.root, now: Math.floor(now / 1000) };
      const [judgement = []] = await secondVerifier(this.store.files, options);
      return [result, resultOf(judgement)];
    }

    tokens(): string[] {
      return [...this.store.files.keys()].filter((path) => path.startsWith('timestamps/')).sort();
    }

    /** What the position line of each segment names. */
    async named(): Promise<unknown[]> {
      const { gunzipSync } = await import('node:zlib');
      return [...this.store.files]
        .filter(([path]) => path.startsWith('segments/'))
        .sort()
        .map(
          ([, bytes]) => (JSON.parse(gunzipSync(bytes).toString().trimEnd().split('\n').at(-1) ?? '') as { timestamp?: unknown }).timestamp,
        );
    }
  }

  test('one a day, and the next segment names it before the next one is requested', async () => {
    const rig = new Rig();
    await using sink = await rig.open();
    expect(rig.requests).toBe(0);
    await rig.send(sink, 1);
    expect(rig.tokens()).toEqual(['timestamps/0000000001.tsr']);
    // The day ends before a segment names the first token. So the next checkpoint, whose segment names it, is stamped.
    await rig.clock.advance(3 * hour);
    await rig.send(sink, 2);
    await rig.send(sink, 3);
    expect(rig.tokens()).toEqual(['timestamps/0000000001.tsr', 'timestamps/0000000002.tsr']);
    const [first, second] = rig.tokens().map((path) => digest(rig.store.files.get(path) ?? Buffer.alloc(0)));
    expect(await rig.named()).toEqual([undefined, { checkpoint: 1, sha256: first }, { checkpoint: 2, sha256: second }]);
    expect(sink.timeStamp).toEqual({ newest: Date.parse('2026-11-21T01:00:00Z') * 1000, lastError: undefined });
    expect(rig.events).toEqual(['archive.time_stamped', 'archive.time_stamped']);
  });

  test('one a day also without a record: the sink signs its position once an hour', async () => {
    const rig = new Rig();
    await using sink = await rig.open();
    // There is nothing to sign before the first segment.
    expect(sink.beatAt).toBeUndefined();
    await rig.send(sink, 1);
    for (let hours = 0; hours < 50; hours += 1) {
      await rig.clock.advance(hour - 1);
      expect(sink.beatAt).toBe(rig.clock.monotonic() + 1);
      await rig.clock.advance(1);
      await sink.beat(never);
      await settled();
    }
    // 20 November at 22:00, and the three midnights after it.
    expect(rig.tokens()).toEqual([1, 3, 27, 51].map((number) => `timestamps/${String(number).padStart(10, '0')}.tsr`));
    expect([...rig.store.files.keys()].filter((path) => path.startsWith('checkpoints/'))).toHaveLength(51);
    expect(await rig.judged()).toEqual(['intact', 'intact']);
    // A restart does not begin another hour.
    await rig.clock.advance(hour / 2);
    await using again = await rig.open();
    expect(again.beatAt).toBe(rig.clock.monotonic() + hour / 2);
  });

  test('one after a change of key, on the same day', async () => {
    const rig = new Rig();
    await using first = await rig.open();
    await rig.send(first, 1);
    await rig.send(first, 2);
    await first[Symbol.asyncDispose]();
    rig.keys = [keyFrom(2), keyFrom(1)];
    await using second = await rig.open();
    await rig.send(second, 3);
    await rig.send(second, 4);
    expect(rig.tokens()).toEqual(['timestamps/0000000001.tsr', 'timestamps/0000000003.tsr']);
  });

  test('are requested again after 1, 2, 4 minutes and so on up to an hour, and every segment is archived meanwhile', async () => {
    const rig = new Rig();
    rig.outage = 'connection refused';
    await using sink = await rig.open();
    const at: number[] = [];
    for (let minute = 0, before = 0; minute < 300; minute += 1) {
      if (minute % 100 === 0) await rig.send(sink, minute / 100 + 1);
      if (rig.requests > before) at.push(minute);
      before = rig.requests;
      await rig.clock.advance(60_000);
      await settled();
    }
    expect(at).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    expect(rig.store.files.has('checkpoints/0000000003')).toBe(true);
    expect(sink.timeStamp).toEqual({ newest: undefined, lastError: 'connection refused' });
    rig.outage = undefined;
    await rig.clock.advance(hour);
    await settled();
    // The newest checkpoint, although the attempts began with the first.
    expect(rig.tokens()).toEqual(['timestamps/0000000003.tsr']);
    expect(sink.timeStamp?.lastError).toBeUndefined();
  });

  // promise: A kill at each step of a time stamp of an archive: no token is requested twice for a day, and none stays unnamed.
  test('continue after a kill at every step: no token is requested twice for a day, and none stays unnamed', async () => {
    for (let steps = 0; ; steps += 1) {
      const rig = new Rig();
      const life = { left: steps, isDead: false };
      const step = async (): Promise<void> => {
        if (life.left === 0) life.isDead = true;
        life.left -= 1;
        if (life.isDead) await new Promise(() => undefined);
      };
      // Every write takes effect, or not; a write after the kill does not return.
      const { store } = rig;
      const stopping: WritableArchiveStore = {
        read: (path) => store.read(path),
        list: (folder) => store.list(folder),
        create: async (path, bytes) => {
          await step();
          const isMade = await store.create(path, bytes);
          await step();
          return isMade;
        },
        replace: async (path, bytes) => {
          await step();
          await store.replace(path, bytes);
          await step();
        },
        remove: (path) => store.remove(path),
      };
      const killed = Object.assign(new Rig(), { store: Object.assign(stopping, { files: store.files }), kept: rig.kept });
      const lived = (async () => {
        const sink = await killed.open();
        await killed.send(sink, 1);
        await killed.clock.advance(3 * hour);
        await killed.send(sink, 2);
      })();
      await Promise.race([lived, dead(() => life.isDead)]);
      await rig.clock.advance(4 * hour);
      await using sink = await rig.open();
      await settled();
      const next = ((await sink.position())?.position.seq ?? 0) + 1;
      for (const seq of [next, next + 1, next + 2]) await rig.send(sink, seq);
      const tokens = rig.tokens();
      const named = (await rig.named()) as ({ checkpoint: number; sha256: string } | undefined)[];
      for (const path of tokens)
        expect(named, `${path} after ${steps} steps`).toContainEqual({
          ...{ checkpoint: Number(path.slice(11, 21)), sha256: digest(rig.store.files.get(path) ?? Buffer.alloc(0)) },
        });
      expect(tokens.length, `after ${steps} steps`).toBeGreaterThan(0);
      expect(tokens.length, `after ${steps} steps`).toBeLessThan(3);
      if (!life.isDead) break;
      expect(steps).toBeLessThan(60);
    }
  });

  test.each(['', ' after a restart', ' after a restart, also with files that are no tokens'])(
    'with a time before that of the previous one are refused%s',
    async (when) => {
      const rig = new Rig();
      let sink = await rig.open();
      await rig.send(sink, 1);
      await rig.send(sink, 2);
      if (when !== '') {
        await sink[Symbol.asyncDispose]();
        if (when.includes('files'))
          for (const number of ['0000000002', '9999999999']) rig.store.files.set(`timestamps/${number}.tsr`, Buffer.from('not a token'));
        sink = await rig.open();
      }
      const before = rig.tokens();
      rig.authority -= 4 * hour;
      await rig.clock.advance(3 * hour);
      await rig.send(sink, 3);
      expect(rig.tokens()).toEqual(before);
      expect(sink.timeStamp).toEqual({
        newest: startOf * 1000,
        lastError:
          'cannot store the time stamp of the authority (sinks.archive.timestamp): its time 2026-11-20T21:00:00.000Z is before 2026-11-20T22:00:00.000Z, the time of "timestamps/0000000001.tsr"',
      });
      expect(rig.events).toEqual(['archive.time_stamped', 'archive.time_stamp_failed']);
      rig.authority += 4 * hour;
      await rig.clock.advance(60_000);
      await settled();
      expect(rig.tokens()).toContain('timestamps/0000000003.tsr');
      expect(sink.timeStamp).toEqual({ newest: Date.parse('2026-11-21T01:01:00Z') * 1000, lastError: undefined });
      if (!when.includes('files')) expect(await rig.judged()).toEqual(['intact', 'intact']);
      await sink[Symbol.asyncDispose]();
    },
  );

  // Days between the clock of the collector and the clock of the authority.
  test.each([0, 1, -1, 400, -400])('are requested once a day of the authority with a clock that is %i days ahead', async (ahead) => {
    const rig = new Rig();
    rig.clock.wall += ahead * day;
    let sink = await rig.open();
    let [seq, counted] = [0, 0];
    /** Archives every ten minutes for an hour. @returns the requests since the last call */
    const requestsOfHour = async (): Promise<number> => {
      for (let i = 0; i < 6; i += 1) {
        await rig.send(sink, (seq += 1));
        await rig.clock.advance(hour / 6);
      }
      const before = counted;
      counted = rig.requests;
      return counted - before;
    };
    const expectOneADay = async (): Promise<void> => {
      for (let i = 0; i < 3; i += 1) {
        expect(await requestsOfHour()).toBe(1);
        await rig.clock.advance(23 * hour);
      }
    };
    const restart = async (): Promise<void> => {
      await sink[Symbol.asyncDispose]();
      sink = await rig.open();
      await settled();
    };
    await expectOneADay();
    // After a restart the clock of the authority is unknown. For a clock that is a day behind, it is still the day of the last token.
    await restart();
    expect(await requestsOfHour()).toBe(ahead === -1 ? 0 : 1);
    await rig.clock.advance(23 * hour);
    await expectOneADay();
    expect(await requestsOfHour()).toBe(1);
    // For another wrong clock, that day is over: the authority is asked once more.
    await restart();
    expect(await requestsOfHour()).toBe(ahead === 0 ? 0 : 1);
    await rig.clock.advance(22 * hour);
    // The clock is set right.
    rig.clock.wall -= ahead * day;
    await expectOneADay();
    // A clock that is a day behind dates a line up to 48 h before its time stamp, and a minute. A clock that is set by more than two days is told.
    const result = ahead === 0 || ahead === 1 ? 'intact' : 'unproven';
    expect(await rig.judged()).toEqual([result, result]);
    await sink[Symbol.asyncDispose]();
  });

  test('of two servers with clocks seconds apart, around midnight, are in order', async () => {
    const rig = new Rig();
    await using sink = await rig.open();
    await rig.clock.advance(2 * hour);
    for (let i = 0; i < 8; i += 1) {
      // The collector is 2 s ahead of the first server, and 4 s ahead of the second.
      rig.authority = startOf - (rig.requests % 2 === 0 ? 2_000 : 4_000);
      await rig.send(sink, i + 1);
      await rig.clock.advance(1_000);
    }
    await rig.clock.advance(60_000);
    await settled();
    expect(rig.requests).toBeLessThanOrEqual(3);
    expect(await rig.judged()).toEqual(['intact', 'intact']);
  });

  test('of the configured authority are in the directory, where openssl and the verifier accept them', async () => {
    await using server = await AuthorityServer.start((query, response) => sendReply(response, openssl.reply(query)));
    const directory = join(temporary(), 'archive');
    const ca = new PemFiles([openssl.rootPath]);
    const settings = {
      ...{ directory, signingKey: new Secret(keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString()) },
      timestamp: { url: server.url, ca },
    };
    const findings = async (given: object): Promise<unknown> =>
      (await archive.check({ ...settings, timestamp: { url: server.url, ...given } }, contextOf('archive'), never)).slice(1);
    expect(await findings({ ca })).toMatchObject([
      { level: 'ok', message: expect.stringContaining("signed by 'CN=Example Stamps'") as string },
    ]);
    expect(await findings({})).toMatchObject([{ level: 'ok' }, { level: 'warning', setting: 'sinks.archive.timestamp' }]);
    expect(await findings({ policy: '1.2.3.4.9' })).toMatchObject([{ level: 'error' }, { level: 'warning' }]);

    await using sink = await archive.open(settings, contextOf('archive', { format: 'raw' }), new ModelKept(), never);
    await sink.send(batchOf(messages(1, 3)), never);
    const [content, token] = [join(directory, 'checkpoints/0000000001'), join(directory, 'timestamps/0000000001.tsr')];
    await expect.poll(() => existsSync(token), { timeout: 10_000 }).toBe(true);
    expect(verifyWithOpenssl(content, token, openssl.rootPath)).toMatchObject({ code: 0 });
    const verifier = parseVerifier(publicKeyIn(directory));
    const timeStamps = { roots: [new X509Certificate(openssl.root)], now: Date.now() * 1000 };
    expect(await verifyArchive(new DirectoryStore(directory), verifier ? [verifier] : [], { timeStamps })).toMatchObject({
      ...{ result: 'intact', findings: [{ severity: 'note', object: 'segments/' }], timeStamps: { count: 1, lines: 4 } },
    });
    const key = publicKeyPath(directory);
    expect(verifyWithPython('--directory', directory, '--key', key, '--timestamp-ca', openssl.rootPath)).toMatchObject({ code: 0 });
    const foreign = new Authority('Foreign');
    expect(verifyWithPython('--directory', directory, '--key', key, '--timestamp-ca', foreign.rootPath)).toMatchObject({ code: 3 });
    foreign[Symbol.dispose]();
  });

  // Whoever may add files to the archive may add tokens of an authority of their own.
  test.each([
    ['of another authority than timestamp.ca do not count', true],
    ['of any authority count without timestamp.ca, and an error names the file that the next one must not precede', false],
  ])('%s', async (_name, hasRoots) => {
    using foreign = new Authority('Foreign', { validTo: Date.parse('2100-01-01T00:00:00Z') });
    await using server = await AuthorityServer.start((query, response) => sendReply(response, openssl.reply(query)));
    const settings = { url: server.url, ca: hasRoots ? new PemFiles([openssl.rootPath]) : undefined };
    const rig = new Rig();
    rig.client = () => new TimeStampAuthority(settings, { setting: 'sinks.archive.timestamp' });
    {
      await using sink = await rig.open();
      await rig.send(sink, 1);
      await expect.poll(() => rig.tokens()).toHaveLength(1);
      await rig.send(sink, 2);
    }
    const content = rig.store.files.get('checkpoints/0000000002') ?? Buffer.alloc(0);
    rig.store.files.set('timestamps/0000000002.tsr', foreign.responseAt(Date.parse('2099-01-01T00:00:00Z'), content));
    await using sink = await rig.open();
    const events = rig.events.length;
    await rig.clock.advance(2 * day);
    await rig.send(sink, 3);
    await expect.poll(() => rig.events).toHaveLength(events + 1);
    if (hasRoots) {
      expect(rig.tokens().at(-1)).toBe('timestamps/0000000003.tsr');
      expect(sink.timeStamp?.newest).toBeLessThan((Date.now() + day) * 1000);
    } else expect(sink.timeStamp?.lastError).toMatch(/is before 2099-01-01T00:00:00.000Z, the time of "timestamps\/0000000002.tsr"$/);
  });

  test('of a former authority, or files that are none, do not delay the start: only the newest 100 are read', async () => {
    const rig = new Rig();
    {
      await using sink = await rig.open();
      for (let seq = 1; seq <= 130; seq += 1) await rig.send(sink, seq);
    }
    for (let number = 1; number <= 10_130; number += 1)
      rig.store.files.set(`timestamps/${String(number).padStart(10, '0')}.tsr`, Buffer.from('x'));
    const read: string[] = [];
    rig.store.read = (path) => {
      if (path.startsWith('timestamps/')) read.push(path);
      return MemoryStore.prototype.read.call(rig.store, path);
    };
    await using sink = await rig.open();
    expect(read).toEqual(Array.from({ length: 100 }, (_, i) => `timestamps/${String(130 - i).padStart(10, '0')}.tsr`));
    expect(sink.timeStamp).toEqual({
      newest: undefined,
      lastError: expect.stringMatching(/^cannot read "timestamps\/0000000130.tsr"/) as string,
    });
  });

  test('are not requested while files that are none have their names: status and log say so, with pauses', async () => {
    const rig = new Rig();
    const planted = Array.from({ length: 20 }, (_, i) => `timestamps/${String(i + 1).padStart(10, '0')}.tsr`);
    for (const path of planted) rig.store.files.set(path, Buffer.from('x'));
    await using sink = await rig.open();
    for (let seq = 1; seq <= 20; seq += 1) await rig.send(sink, seq);
    expect(rig.requests).toBe(0);
    expect(rig.events).toEqual(['archive.time_stamp_failed']);
    expect(sink.timeStamp).toEqual({ newest: undefined, lastError: expect.stringContaining('"timestamps/0000000001.tsr"') as string });
    await rig.clock.advance(60_000);
    await settled();
    expect(rig.events).toEqual(['archive.time_stamp_failed', 'archive.time_stamp_failed']);
    expect(sink.timeStamp?.lastError).toContain('"timestamps/0000000020.tsr"');
    await rig.send(sink, 21);
    await rig.clock.advance(120_000);
    await settled();
    expect(rig.events.slice(2)).toEqual(['archive.time_stamped']);
    expect(rig.tokens().filter((path) => !planted.includes(path))).toEqual(['timestamps/0000000021.tsr']);
    expect(sink.timeStamp?.lastError).toBeUndefined();
  });

  test('whose name a folder or a large file has are not reported as stored', async () => {
    const rig = new Rig();
    // Neither can be read as a token.
    const create = MemoryStore.prototype.create.bind(rig.store);
    rig.store.create = (path, bytes) => (path.startsWith('timestamps/') ? Promise.resolve(false) : create(path, bytes));
    await using sink = await rig.open();
    await rig.send(sink, 1);
    expect(rig.events).toEqual(['archive.time_stamp_failed']);
    expect(sink.timeStamp).toEqual({ newest: undefined, lastError: expect.stringContaining('"timestamps/0000000001.tsr"') as string });
  });

  test('count when they were stored although the response was lost', async () => {
    const rig = new Rig();
    const create = MemoryStore.prototype.create.bind(rig.store);
    rig.store.create = async (path, bytes) => {
      const isMade = await create(path, bytes);
      if (path.startsWith('timestamps/')) throw new Error('no response');
      return isMade;
    };
    await using sink = await rig.open();
    await rig.send(sink, 1);
    expect(sink.timeStamp).toEqual({ newest: undefined, lastError: 'no response' });
    await rig.clock.advance(60_000);
    await settled();
    expect(rig.requests).toBe(1);
    expect(sink.timeStamp).toEqual({ newest: startOf * 1000, lastError: undefined });
    await rig.send(sink, 2);
    expect((await rig.named())[1]).toMatchObject({ checkpoint: 1 });
    expect(await rig.judged()).toEqual(['intact', 'intact']);
  });

  test('are abandoned when the sink is closed', async () => {
    const rig = new Rig();
    rig.outage = 'down';
    const sink = await rig.open();
    await rig.send(sink, 1);
    await sink[Symbol.asyncDispose]();
    await rig.clock.advance(48 * hour);
    expect(rig.requests).toBe(1);
  });

  test('replace a file that is no token by one of the next checkpoint', async () => {
    const rig = new Rig();
    {
      await using sink = await rig.open();
      await rig.send(sink, 1);
    }
    rig.store.files.set('timestamps/0000000001.tsr', Buffer.from('not a token'));
    await using sink = await rig.open();
    await settled();
    expect(sink.timeStamp?.lastError).toContain('cannot read "timestamps/0000000001.tsr"');
    await rig.send(sink, 2);
    expect(rig.tokens()).toEqual(['timestamps/0000000001.tsr', 'timestamps/0000000002.tsr']);
  });
});

/** Lets work that waits for nothing else come to its end. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await setImmediate();
}

async function dead(isDead: () => boolean): Promise<void> {
  while (!isDead()) await setImmediate();
  await settled();
}
