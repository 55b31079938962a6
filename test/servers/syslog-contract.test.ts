/** The contract of every sink, for `syslog` with real receivers. */
import { describe, test } from 'vitest';
import type { ResumePoint, Sink } from '../../src/model/sink.ts';
import { syslog } from '../../src/sink/syslog/index.ts';
import { contextOf } from '../support/sinks/sink-batches.ts';
import { sinkSuite } from '../support/sinks/sink-suite.ts';
import type { Place } from '../support/sinks/sink-suite.ts';
import { CuttingProxy } from '../support/servers/cutting-proxy.ts';
import { notAsked } from '../support/servers/programs.ts';
import { rsyslog, rsyslogMissing } from '../support/servers/rsyslog.ts';
import { syslogNg, syslogNgMissing } from '../support/servers/syslog-ng.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';
import type { Way } from '../support/servers/syslog-receiver.ts';

const never = new AbortController().signal;
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });
const quietMs = 200;

class ReceiverPlace implements Place {
  readonly #receiver: SyslogReceiver;
  readonly #proxy: CuttingProxy;
  readonly #way: Way;
  readonly #opened: Sink[] = [];

  constructor(receiver: SyslogReceiver, proxy: CuttingProxy, way: Way) {
    this.#receiver = receiver;
    this.#proxy = proxy;
    this.#way = way;
  }

  readonly open = async (kept: ResumePoint): Promise<Sink> => {
    const { client, authority } = this.#receiver;
    const tls = this.#way.endsWith('tls') ? { cert: pem(client.cert), key: pem(client.key) } : undefined;
    const address = `${this.#way}://127.0.0.1:${this.#proxy.port}`;
    const sink = await syslog.open(
      {
        address,
        framing: 'octet-counting',
        header: 'rfc5424',
        facility: 'local4',
        appName: 'waybill',
        hostname: 'gateway-1',
        confirm: 'close',
        tls,
      } as never,
      contextOf('under-test', { ca: pem(authority.cert) }),
      kept,
      never,
    );
    this.#opened.push(sink);
    return sink;
  };

  async kill(): Promise<void> {
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  /**
   * The content of the receiver's file once it stops growing: the receiver queues messages first.
   */
  async received(): Promise<readonly string[]> {
    let found = this.#receiver.received(this.#way);
    for (let before = -1; found.length !== before || before === 0;) {
      before = found.length;
      await new Promise((resolve) => setTimeout(resolve, quietMs));
      found = this.#receiver.received(this.#way);
      if (found.length === 0) break;
    }
    return found.map(({ msg }) => msg);
  }

  cutAnswer(): void {
    this.#proxy.cutNext(this.#way.startsWith('relp') ? 'answers' : 'end');
  }

  stall(): void {
    this.#proxy.stall();
  }

  async ruin(): Promise<void> {
    await this.#proxy[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#proxy[Symbol.asyncDispose]();
    await this.#receiver[Symbol.asyncDispose]();
  }
}

for (const [program, missing] of [
  [rsyslog(), notAsked() ?? rsyslogMissing()],
  [syslogNg, notAsked() ?? syslogNgMissing()],
] as const) {
  for (const way of program.ways.filter((each) => each !== 'udp')) {
    const name = `${program.name}, ${way}`;
    if (missing !== undefined) {
      describe(name, () => test('the contract of every sink', ({ skip }) => skip(missing)));
      continue;
    }
    sinkSuite({
      name,
      formats: ['raw', 'ecs', 'cef'],
      twice: (size) => size,
      // The rest of the default frame of 8,096 bytes, in characters of four bytes.
      longest: 4_000,
      batches: 20,
      secrets: [],
      async start() {
        const receiver = await SyslogReceiver.start(program);
        return new ReceiverPlace(receiver, await CuttingProxy.start(Number(new URL(receiver.address(way)).port)), way);
      },
    });
  }
}
