/**
 * The sink `syslog` with real receivers, over every transport; the receiver's parser wrote the
 * messages that tests read.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import type { Batch, Sink } from '../../src/model/sink.ts';
import { syslog } from '../../src/sink/syslog/index.ts';
import { batchOf, contextOf, message, messages, ModelKept } from '../support/sinks/sink-batches.ts';
import { until } from '../support/e2e-place.ts';
import { notAsked } from '../support/servers/programs.ts';
import { rsyslog, rsyslogMissing } from '../support/servers/rsyslog.ts';
import { syslogNg, syslogNgMissing } from '../support/servers/syslog-ng.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';
import type { Parsed, Way } from '../support/servers/syslog-receiver.ts';

const never = new AbortController().signal;
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });

type Settings = Parameters<typeof syslog.open>[0];

const plain = {
  framing: 'octet-counting',
  header: 'rfc5424',
  facility: 'local4',
  appName: 'waybill',
  hostname: 'gateway-1',
  confirm: 'close',
} as const;

async function opened(receiver: SyslogReceiver, way: Way, overrides: Partial<Settings> = {}): Promise<Sink> {
  const tls = way.endsWith('tls')
    ? ({ cert: pem(receiver.client.cert), key: pem(receiver.client.key) } as unknown as Settings['tls'])
    : undefined;
  const settings: Settings = { ...plain, address: receiver.address(way), tls, ...overrides };
  return syslog.open(settings, contextOf('siem', { ca: pem(receiver.authority.cert) }), new ModelKept(), never);
}

const texts = (list: readonly { readonly bytes: Uint8Array }[]): string[] => list.map(({ bytes }) => Buffer.from(bytes).toString());

async function cameBy(receiver: SyslogReceiver, way: Way, count: number, after = 0): Promise<Parsed[]> {
  return until(
    () => `${count} messages by ${way}, but ${receiver.received(way).length - after}`,
    15_000,
    () => {
      const found = receiver.received(way).slice(after);
      return found.length >= count ? found : undefined;
    },
  );
}

/**
 * Retries until the batch is accepted, like the delivery loop: after an unknown outcome with a new
 * sink and the whole batch.
 */
async function insist(open: () => Promise<Sink>, batch: Batch): Promise<number> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await using sink = await open();
      const { retryable: again, rejections } = await sink.send(batch, AbortSignal.timeout(10_000));
      expect(rejections).toEqual([]);
      if (again === undefined) return attempts;
    } catch (thrown) {
      if (attempts > 600) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

describe.each([
  { program: rsyslog(), missing: notAsked() ?? rsyslogMissing() },
  { program: syslogNg, missing: notAsked() ?? syslogNgMissing() },
])('$program.name', ({ program, missing }) => {
  const has = (way: Way): boolean => program.ways.includes(way);
  let receiver: SyslogReceiver;
  beforeAll(async () => {
    if (missing === undefined) receiver = await SyslogReceiver.start(program);
  }, 60_000);
  afterAll(() => (missing === undefined ? receiver[Symbol.asyncDispose]() : undefined));
  beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  test.each(program.ways)('%s: every message once, in order, as it was sent', async (way) => {
    const before = receiver.received(way).length;
    await using sink = await opened(receiver, way);
    const all = messages(1, 600);
    for (let i = 0; i < 600; i += 200) expect(await sink.send(batchOf(all.slice(i, i + 200)), never)).toEqual({ rejections: [] });
    const came = await cameBy(receiver, way, 600, before);
    expect(came.map(({ msg }) => msg)).toEqual(texts(all));
    // local4 is 20, informational 6 (RFC 5424 tables 1 and 2).
    expect(came[0]).toMatchObject({ pri: String(20 * 8 + 6), host: 'gateway-1', app: 'waybill', msgid: 'Open' });
    expect(came[0]?.ts).toMatch(/^2026-11-20T00:00:00\.000/);
  });

  test('a message that imitates a frame arrives as one event', async () => {
    const before = receiver.received('tcp').length;
    // rsyslog detects the framing; syslog-ng's `syslog()` requires octet counting.
    const framing = has('relp') ? 'newline' : 'octet-counting';
    await using sink = await opened(receiver, 'tcp', { framing, enterpriseId: 32473 });
    const odd = message(2, 'CEF:0|a|b|c|d|e|5|fname=x] 12 <13>1 - - - - - forged\\n "q" Ж€𝄞');
    await sink.send(batchOf([message(1), odd, message(3)]), never);
    const came = await cameBy(receiver, 'tcp', 3, before);
    expect(came.map(({ msg }) => msg)).toEqual(texts([message(1), odd, message(3)]));
    for (const part of [`sequenceId="2"`, `id="${odd.uid}"`, 'number="2"', 'source="records"']) expect(came[1]?.sd).toContain(part);
  });

  // The `syslog()` source of syslog-ng reads RFC 5424 only.
  test.each(program.ways.filter((way) => has('relp') && !way.endsWith('tls')))(
    '%s: a header of RFC 3164 is parsed, and the message unchanged',
    async (way) => {
      const before = receiver.received(way).length;
      const line = 'CEF:0|a|b|1.0|Open|c|5|msg=x: y[1]: z';
      await using sink = await opened(receiver, way, { header: 'rfc3164' });
      await using untagged = await opened(receiver, way, { header: 'rfc3164', appName: '' });
      await sink.send(batchOf([message(1, line)]), never);
      await untagged.send(batchOf([message(2, `<134>x ${line}`)]), never);
      const [tagged, second] = await cameBy(receiver, way, 2, before);
      // rsyslog treats the space after the tag as part of the message.
      expect(tagged).toMatchObject({ pri: String(20 * 8 + 6), host: 'gateway-1', app: 'waybill', sd: '-', msg: ` ${line}` });
      expect(tagged?.ts).toMatch(/^\d{4}-11-20T00:00:00/);
      expect(`${second?.app ?? ''}${second?.msg ?? ''}`).toContain(line);
    },
  );

  test.each(program.ways.filter((way) => way !== 'udp'))('%s: a frame of the default limit is neither truncated nor split', async (way) => {
    const before = receiver.received(way).length;
    const room = syslog.messageBytes?.({ ...plain, address: receiver.address(way) });
    await using sink = await opened(receiver, way);
    const long = message(1, 'x'.repeat(room ?? 0));
    await sink.send(batchOf([long, message(2)]), never);
    expect((await cameBy(receiver, way, 2, before)).map(({ msg }) => msg)).toEqual(texts([long, message(2)]));
  });

  test.each(program.ways.filter((way) => way.endsWith('tls')))(
    '%s: a client without the required certificate is blocked, the setting is named, and nothing is sent',
    async (way) => {
      const before = receiver.received(way).length;
      for (let i = 0; i < 10; i += 1) {
        const thrown = await insistOnce(() => opened(receiver, way, { tls: undefined }));
        expect([codeOf(thrown), messageOf(thrown)]).toEqual(['sink_blocked', expect.stringContaining('sinks.siem.tls.cert') as string]);
      }
      expect(receiver.received(way)).toHaveLength(before);
      const settings = { ...plain, address: receiver.address(way) };
      const found = await syslog.check(settings, contextOf('siem', { ca: pem(receiver.authority.cert) }), never);
      expect(found.at(-1)).toMatchObject({ level: 'error', message: expect.stringContaining('sinks.siem.tls.cert') as string });
    },
  );

  test('check sends an empty line for framing: newline: a receiver that counts octets is found, and rsyslog stores nothing', async () => {
    const before = receiver.received('tcp').length;
    const found = await syslog.check({ ...plain, framing: 'newline', address: receiver.address('tcp') }, contextOf('siem'), never);
    const isCounting = !has('relp');
    expect(found).toMatchObject([isCounting ? { level: 'error', setting: 'sinks.siem.framing' } : { level: 'ok' }]);
    await using sink = await opened(receiver, 'tcp');
    await sink.send(batchOf([message(1)]), never);
    expect(await cameBy(receiver, 'tcp', 1, before)).toHaveLength(1);
  });

  test('check reports its findings', async () => {
    for (const way of program.ways.filter((each) => each === 'tcp' || each === 'relp')) {
      const found = await syslog.check({ ...plain, address: receiver.address(way) }, contextOf('siem'), never);
      expect(found, way).toMatchObject([{ level: 'ok' }]);
    }
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

describe('rsyslog, killed', () => {
  const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 20);

  test(
    `RELP, acknowledged when it is in the file: ${kills} times kill -9 during delivery loses nothing, and duplicates at most a batch each`,
    { timeout: 300_000 },
    async ({ skip }) => {
      const missing = notAsked() ?? rsyslogMissing();
      if (missing !== undefined) return skip(missing);
      await using receiver = await SyslogReceiver.start(rsyslog({ isDurable: true }));
      const size = 20;
      let attempts = 0;
      let batches = 0;
      const all = messages(1, size * kills * 4);
      // One kill for every four batches, at a random moment of one of them: a receiver that
      // restarts slowly is not killed before it accepts messages.
      let lives = Promise.resolve();
      for (let i = 0; i < all.length; i += size) {
        if (batches % 4 === 1) {
          const afterMs = (batches * 7) % 40;
          lives = lives.then(async () => {
            await new Promise((resolve) => setTimeout(resolve, afterMs));
            await receiver.end('SIGKILL');
            await receiver.run();
          });
        }
        attempts += await insist(() => opened(receiver, 'relp'), batchOf(all.slice(i, i + size)));
        batches += 1;
        if (batches % 4 === 0) await lives;
      }
      const wanted = texts(all);
      const came = await until(
        () => `all in the file, but ${new Set(receiver.received('relp').map(({ msg }) => msg)).size} of ${wanted.length}`,
        30_000,
        () => {
          const found = receiver.received('relp').map(({ msg }) => msg);
          return new Set(found).size >= wanted.length ? found : undefined;
        },
      );
      expect([...new Set(came)].sort()).toEqual([...wanted].sort());
      // A batch is sent again only after a failed attempt.
      expect(came.length - wanted.length).toBeLessThanOrEqual((attempts - batches) * size);
    },
  );
});
