/** The sink `syslog` against a real rsyslog, by every way; what came is what rsyslog's own parser wrote to a file. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import type { Batch, Sink } from '../../src/model.ts';
import { syslog } from '../../src/sink/syslog.ts';
import { batchOf, contextOf, message, messages, ModelKept } from '../contract/sink-batches.ts';
import { until } from '../support/e2e-place.ts';
import { Rsyslog, rsyslogMissing } from './rsyslog.ts';
import type { Parsed, Way } from './rsyslog.ts';

const missing = rsyslogMissing();
const never = new AbortController().signal;
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });

type Settings = Parameters<typeof syslog.open>[0];

async function opened(rsyslog: Rsyslog, way: Way, besides: Partial<Settings> = {}): Promise<Sink> {
  const tls = way.endsWith('tls')
    ? ({ cert: pem(rsyslog.client.cert), key: pem(rsyslog.client.key) } as unknown as Settings['tls'])
    : undefined;
  const settings: Settings = {
    ...{
      address: rsyslog.address(way),
      framing: 'octet-counting',
      facility: 'local4',
      appName: 'waybill',
      hostname: 'gateway-1',
      confirm: 'close',
      tls,
    },
    ...besides,
  };
  return syslog.open(settings, contextOf('siem', { ca: pem(rsyslog.authority.cert) }), new ModelKept(), never);
}

const texts = (list: readonly { readonly bytes: Uint8Array }[]): string[] => list.map(({ bytes }) => Buffer.from(bytes).toString());

async function cameBy(rsyslog: Rsyslog, way: Way, count: number, after = 0): Promise<Parsed[]> {
  return until(
    () => `${count} messages by ${way}, but ${rsyslog.received(way).length - after}`,
    15_000,
    () => {
      const found = rsyslog.received(way).slice(after);
      return found.length >= count ? found : undefined;
    },
  );
}

/** Sends until it is taken, as the loop does: after an unknown outcome opened anew, with the whole batch. */
async function insist(open: () => Promise<Sink>, batch: Batch): Promise<number> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await using sink = await open();
      const { again, rejections } = await sink.send(batch, AbortSignal.timeout(10_000));
      expect(rejections).toEqual([]);
      if (again === undefined) return attempts;
    } catch (thrown) {
      if (attempts > 200) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

describe('rsyslog', () => {
  let rsyslog: Rsyslog;
  beforeAll(async () => {
    if (missing === undefined) rsyslog = await Rsyslog.start();
  }, 60_000);
  afterAll(() => (missing === undefined ? rsyslog[Symbol.asyncDispose]() : undefined));
  beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  test.each<Way>(['tcp', 'tls', 'udp', 'relp', 'relp+tls'])('%s: every message once, in order, as it was sent', async (way) => {
    const before = rsyslog.received(way).length;
    await using sink = await opened(rsyslog, way);
    const all = messages(1, 600);
    for (let i = 0; i < 600; i += 200) expect(await sink.send(batchOf(all.slice(i, i + 200)), never)).toEqual({ rejections: [] });
    const came = await cameBy(rsyslog, way, 600, before);
    expect(came.map(({ msg }) => msg)).toEqual(texts(all));
    // local4 is 20, informational 6 (RFC 5424 tables 1 and 2).
    expect(came[0]).toMatchObject({ pri: String(20 * 8 + 6), ver: '1', host: 'gateway-1', app: 'waybill', msgid: 'Open' });
    expect(came[0]?.ts).toMatch(/^2026-11-20T00:00:00\.000/);
  });

  test('newline framing, and what would forge a frame, arrive as one event each', async () => {
    const before = rsyslog.received('tcp').length;
    await using sink = await opened(rsyslog, 'tcp', { framing: 'newline', enterpriseId: 32473 });
    const odd = message(2, 'CEF:0|a|b|c|d|e|5|fname=x] 12 <13>1 - - - - - forged\\n "q" Ж€𝄞');
    await sink.send(batchOf([message(1), odd, message(3)]), never);
    const came = await cameBy(rsyslog, 'tcp', 3, before);
    expect(came.map(({ msg }) => msg)).toEqual(texts([message(1), odd, message(3)]));
    expect(came[1]?.sd).toBe(`[meta sequenceId="2"][waybill@32473 id="${odd.uid}" number="2" source="records"]`);
  });

  test.each<Way>(['tcp', 'tls', 'relp', 'relp+tls'])('%s: a frame of the default limit is neither cut nor parted', async (way) => {
    const before = rsyslog.received(way).length;
    const room = syslog.messageBytes?.({
      address: rsyslog.address(way),
      framing: 'octet-counting',
      facility: 'local4',
      appName: 'waybill',
      hostname: 'gateway-1',
      confirm: 'close',
    });
    await using sink = await opened(rsyslog, way);
    const long = message(1, 'x'.repeat(room ?? 0));
    await sink.send(batchOf([long, message(2)]), never);
    expect((await cameBy(rsyslog, way, 2, before)).map(({ msg }) => msg)).toEqual(texts([long, message(2)]));
  });

  test('a client without the certificate that is asked for is never believed to be read', async () => {
    const before = rsyslog.received('tls').length;
    for (let i = 0; i < 10; i += 1) {
      // rsyslog ends the session as if all was well and resets the connection behind it.
      const code = codeOf(await insistOnce(() => opened(rsyslog, 'tls', { tls: undefined })));
      expect(['sink_unknown', 'sink_blocked']).toContain(code);
    }
    expect(rsyslog.received('tls')).toHaveLength(before);
  });

  test('check says what it found', async () => {
    const settings = {
      framing: 'octet-counting',
      facility: 'local4',
      appName: 'waybill',
      hostname: 'gateway-1',
      confirm: 'close',
    } as const;
    expect(await syslog.check({ ...settings, address: rsyslog.address('tcp') }, contextOf('siem'), never)).toMatchObject([{ level: 'ok' }]);
    expect(await syslog.check({ ...settings, address: rsyslog.address('relp') }, contextOf('siem'), never)).toMatchObject([
      { level: 'ok' },
    ]);
  });
});

async function insistOnce(open: () => Promise<Sink>): Promise<unknown> {
  try {
    await using sink = await open();
    await sink.send(batchOf([message(1)]), never);
  } catch (thrown) {
    return thrown;
  }
  return undefined;
}

describe('rsyslog that is killed', () => {
  const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 5);

  test(
    `RELP with a queue on disk: ${kills} times kill -9 in the flow, nothing is lost, and no more is twice than a batch each`,
    { timeout: 300_000 },
    async ({ skip }) => {
      if (missing !== undefined) return skip(missing);
      await using rsyslog = await Rsyslog.start({ isDurable: true });
      const size = 50;
      let attempts = 0;
      let batches = 0;
      const all = messages(1, size * kills * 4);
      const killing = (async () => {
        for (let i = 0; i < kills; i += 1) {
          await new Promise((resolve) => setTimeout(resolve, 150));
          await rsyslog.end('SIGKILL');
          await rsyslog.run();
        }
      })();
      for (let i = 0; i < all.length; i += size) {
        attempts += await insist(() => opened(rsyslog, 'relp'), batchOf(all.slice(i, i + size)));
        batches += 1;
      }
      await killing;
      const wanted = texts(all);
      const came = await until(
        () => `all in the file, but ${new Set(rsyslog.received('relp').map(({ msg }) => msg)).size} of ${wanted.length}`,
        30_000,
        () => {
          const found = rsyslog.received('relp').map(({ msg }) => msg);
          return new Set(found).size >= wanted.length ? found : undefined;
        },
      );
      expect([...new Set(came)].sort()).toEqual([...wanted].sort());
      // A batch is sent again only after an attempt that failed; rsyslog may write what was in its queue a second time, too.
      expect(came.length - wanted.length).toBeLessThanOrEqual((attempts - batches + kills) * size);
    },
  );
});
