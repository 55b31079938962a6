/**
 * Syslog over TCP through real proxies, and to a receiver that closes by itself: how often the end of a connection confirms what nobody read.
 * Prints the figures of docs/guarantees.md, "Syslog". WAYBILL_SERVER_KILLS sets the number of rounds.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { syslog } from '../../src/sink/syslog/index.ts';
import type { Message, Sink } from '../../src/model/sink.ts';
import { batchOf, contextOf, message, messages, ModelKept } from '../support/sinks/sink-batches.ts';
import { readFrames, readSyslog } from '../support/sinks/syslog-reader.ts';
import { notAsked } from '../support/servers/programs.ts';
import { freePort } from '../support/servers/ports.ts';
import { syslogNgLimited, syslogNgMissing } from '../support/servers/syslog-ng.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';
import { products, TcpProxy } from '../support/servers/tcp-proxy.ts';

const never = new AbortController().signal;
const rounds = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 20);

/** A receiver that counts what its process has read. `stop` ends it like a process that dies. */
class Reader implements AsyncDisposable {
  readonly port: number;
  readonly read: string[] = [];
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(port: number) {
    this.port = port;
  }

  async start(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      let rest: Buffer = Buffer.alloc(0);
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined).on('end', () => socket.end());
      socket.on('data', (bytes: Buffer) => {
        const frames = readFrames('octet-counting', Buffer.concat([rest, bytes]));
        rest = frames.rest;
        this.read.push(...frames.frames.map((frame) => readSyslog(frame).text));
      });
    });
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(server, 'close');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** One sender, with its own experience of the receiver. */
function senderOf(port: number, id: string): (batch: readonly Message[]) => Promise<boolean> {
  const context = contextOf(id);
  const settings = {
    ...{ address: `tcp://127.0.0.1:${port}`, framing: 'octet-counting', header: 'rfc5424', facility: 'local4' },
    ...{ appName: 'waybill', hostname: 'gateway-1', confirm: 'close' },
  } as Parameters<typeof syslog.open>[0];
  return async (batch) => {
    let sink: Sink | undefined;
    try {
      sink = await syslog.open(settings, context, new ModelKept(), never);
      await sink.send(batchOf(batch), never);
      return true;
    } catch {
      return false;
    } finally {
      await sink?.[Symbol.asyncDispose]();
    }
  };
}

function print(what: string, figures: Readonly<Record<string, number>>): void {
  process.stdout.write(`${what}: ${Object.entries(figures).map(([name, count]) => `${name} ${count}`).join(', ')}\n`); // prettier-ignore
}

const senders = 30;
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(products)('$name', (product) => {
  const missing = notAsked() ?? product.missing();

  // promise: A proxy whose receiver is down confirms no batch, and no record is lost.
  test('whose receiver is down confirms no batch, and no record is lost', { timeout: 600_000 }, async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    await using reader = new Reader(await freePort());
    await using proxy = await TcpProxy.start(product, reader.port);
    // A proxy with checks needs some time to see that the receiver is down.
    await wait(1_500);
    let attempts = 0;
    let confirmed = 0;
    const each = async (_: unknown, i: number): Promise<void> => {
      const send = senderOf(proxy.port, `down-${i}`);
      const end = performance.now() + rounds * 1_000;
      for (let round = 0; performance.now() < end; round += 1) {
        attempts += 1;
        if (await send(messages(i * 100 + 1, i * 100 + 1 + (round % 3)))) confirmed += 1;
        else await wait(50);
      }
    };
    await Promise.all(Array.from({ length: senders }, each));
    print(`${product.name}, receiver down`, { attempts, confirmed, read: reader.read.length });
    expect(confirmed).toBe(0);
  });

  test('whose receiver dies and starts at any moment', { timeout: 600_000 }, async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    await using reader = new Reader(await freePort());
    await reader.start();
    await using proxy = await TcpProxy.start(product, reader.port);
    let deaths = 0;
    const over = new AbortController();
    const lives = (async () => {
      for (; deaths < rounds; deaths += 1) {
        await wait(4_000 + Math.random() * 2_000);
        await reader.stop();
        await wait(500 + Math.random() * 500);
        await reader.start();
      }
      over.abort();
    })();
    const delivered: string[] = [];
    let attempts = 0;
    const each = async (_: unknown, i: number): Promise<void> => {
      const send = senderOf(proxy.port, `deaths-${i}`);
      for (let seq = i * 10_000 + 1; !over.signal.aborted;) {
        const batch = messages(seq, seq + 9);
        attempts += 1;
        if (!(await send(batch))) continue;
        delivered.push(...batch.map(({ bytes }) => Buffer.from(bytes).toString()));
        seq += 10;
      }
    };
    await Promise.all([lives, ...Array.from({ length: senders }, each)]);
    await wait(500);
    const read = new Set(reader.read);
    const lost = delivered.filter((text) => !read.has(text)).length;
    print(`${product.name}, receiver dies`, { deaths, attempts, delivered: delivered.length, lost, twice: reader.read.length - read.size });
    expect(delivered.length).toBeGreaterThan(0);
    // The race that remains: the receiver dies between the end of the connection by Waybill and its own.
    expect(lost).toBeLessThanOrEqual(delivered.length / 20);
  });
});

describe('syslog-ng', () => {
  const missing = notAsked() ?? syslogNgMissing();

  test('that closes at a message above its limit confirms no batch with it', { timeout: 600_000 }, async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    await using receiver = await SyslogReceiver.start(syslogNgLimited(2_048));
    const port = Number(new URL(receiver.address('tcp')).port);
    let attempts = 0;
    let confirmed = 0;
    const each = async (_: unknown, i: number): Promise<void> => {
      const send = senderOf(port, `long-${i}`);
      const batch = messages(i * 100 + 1, i * 100 + 40).map((one) => (one.seq % 100 === 36 ? message(one.seq, 'x'.repeat(2_900)) : one));
      const end = performance.now() + rounds * 1_000;
      while (performance.now() < end) {
        attempts += 1;
        if (await send(batch)) confirmed += 1;
      }
    };
    await Promise.all(Array.from({ length: senders }, each));
    print('syslog-ng, message above log-msg-size', { attempts, confirmed });
    expect(confirmed).toBe(0);
  });
});
