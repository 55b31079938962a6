/**
 * A real rsyslog on loopback, as a process of its own: TCP with either framing, TLS that demands a client's certificate, UDP, RELP with and
 * without TLS. What it took it writes to files, which tests read; nothing of the sender's is asked.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../support/certificates.ts';
import type { Authority, KeyPair } from '../support/certificates.ts';
import { until } from '../support/e2e-place.ts';

/** Why there is none here; undefined when there is. */
export function rsyslogMissing(): string | undefined {
  const found = spawnSync('rsyslogd', ['-v'], { encoding: 'utf8' });
  if (found.error) return 'no rsyslogd on the path (Debian: rsyslog rsyslog-gnutls rsyslog-relp)';
  const modules = ['/usr/lib/x86_64-linux-gnu/rsyslog', '/usr/lib/aarch64-linux-gnu/rsyslog', '/usr/lib/rsyslog', '/usr/lib64/rsyslog'];
  const lacks = ['imrelp.so', 'lmnsd_gtls.so'].filter((name) => !modules.some((directory) => existsSync(join(directory, name))));
  return lacks.length > 0 ? `rsyslog has no ${lacks.join(', ')} (Debian: rsyslog-gnutls rsyslog-relp)` : undefined;
}

export type Way = 'tcp' | 'tls' | 'udp' | 'relp' | 'relp+tls';
const ways: readonly Way[] = ['tcp', 'tls', 'udp', 'relp', 'relp+tls'];

/** One line of what rsyslog took, by its own parser. */
export interface Parsed {
  readonly pri: string;
  readonly ver: string;
  readonly ts: string;
  readonly host: string;
  readonly app: string;
  readonly msgid: string;
  readonly sd: string;
  readonly msg: string;
}

export class Rsyslog implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'waybill-rsyslog-'));
  readonly authority: Authority;
  readonly client: KeyPair;
  readonly #ports: Readonly<Record<Way, number>>;
  readonly #isDurable: boolean;
  #child: ChildProcess | undefined;

  /** `isDurable`: what RELP acknowledged lies on disk, so that it outlives `kill -9`. */
  static async start({ isDurable = false } = {}): Promise<Rsyslog> {
    const authority = await createAuthority('Test root');
    const [server, client] = [
      await authority.issue({ name: 'localhost', hosts: ['127.0.0.1', 'localhost'] }),
      await authority.issue({ name: 'collector.test', hosts: ['collector.test'] }),
    ];
    const free = await Promise.all(ways.map(freePort));
    const ports = Object.fromEntries(ways.map((way, i) => [way, free[i] ?? 0])) as Record<Way, number>;
    const rsyslog = new Rsyslog(authority, client, ports, isDurable);
    rsyslog.#write('ca.pem', authority.cert);
    rsyslog.#write('server.pem', server.cert);
    rsyslog.#write('server.key', server.key);
    rsyslog.#write('rsyslog.conf', rsyslog.#configuration());
    await rsyslog.run();
    return rsyslog;
  }

  private constructor(authority: Authority, client: KeyPair, ports: Readonly<Record<Way, number>>, isDurable: boolean) {
    this.authority = authority;
    this.client = client;
    this.#ports = ports;
    this.#isDurable = isDurable;
  }

  address(way: Way): string {
    return `${way}://127.0.0.1:${this.#ports[way]}`;
  }

  /** Starts it, and waits until it listens. */
  async run(): Promise<void> {
    const errors: string[] = [];
    const child = spawn('rsyslogd', ['-n', '-f', join(this.directory, 'rsyslog.conf'), '-i', join(this.directory, 'pid')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.on('data', (text: Buffer) => errors.push(text.toString()));
    this.#child = child;
    await until(
      () => `rsyslog listens\n${errors.join('')}`,
      20_000,
      async () => {
        if (child.exitCode !== null) throw new Error(`rsyslogd ended with ${child.exitCode}: ${errors.join('')}`);
        const isTaken = await Promise.all([this.#ports.tcp, this.#ports.tls, this.#ports.relp, this.#ports['relp+tls']].map(listens));
        return isTaken.every(Boolean) || undefined;
      },
    );
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /** What came by this way, in the order in which it was written. */
  received(way: Way): Parsed[] {
    const path = join(this.directory, `${way}.json`);
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Parsed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGTERM');
    rmSync(this.directory, { recursive: true, force: true });
  }

  #write(name: string, text: string): void {
    writeFileSync(join(this.directory, name), text);
  }

  #configuration(): string {
    const at = (name: string): string => join(this.directory, name);
    const queue = this.#isDurable
      ? ' queue.type="disk" queue.filename="q" queue.checkpointInterval="1" queue.syncQueueFiles="on" queue.saveOnShutdown="on"'
      : '';
    const rulesets = ways.map(
      (way) =>
        `ruleset(name="${way}"${way === 'relp' ? queue : ''}) { action(type="omfile" file="${at(`${way}.json`)}" template="parsed"${way === 'relp' && this.#isDurable ? ' sync="on" flushOnTXEnd="on"' : ''}) }`,
    );
    const field = (name: string, property: string, more = ''): string =>
      `property(outname="${name}" name="${property}"${more} format="jsonf")`;
    return `global(
  workDirectory="${this.directory}"
  maxMessageSize="64k"
  defaultNetstreamDriverCAFile="${at('ca.pem')}"
  defaultNetstreamDriverCertFile="${at('server.pem')}"
  defaultNetstreamDriverKeyFile="${at('server.key')}"
  parser.escapeControlCharactersOnReceive="off"
)
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="x509/name" permittedPeer=["collector.test"])
module(load="imptcp")
module(load="imudp")
module(load="imrelp")
template(name="parsed" type="list" option.jsonf="on") {
  ${[
    field('pri', 'pri'),
    field('ver', 'protocol-version'),
    field('ts', 'timereported', ' dateFormat="rfc3339"'),
    field('host', 'hostname'),
    field('app', 'app-name'),
    field('msgid', 'msgid'),
    field('sd', 'structured-data'),
    field('msg', 'msg'),
  ].join('\n  ')}
}
${rulesets.join('\n')}
input(type="imptcp" port="${this.#ports.tcp}" address="127.0.0.1" ruleset="tcp" maxFrameSize="200000")
input(type="imtcp" port="${this.#ports.tls}" address="127.0.0.1" ruleset="tls")
input(type="imudp" port="${this.#ports.udp}" address="127.0.0.1" ruleset="udp")
input(type="imrelp" port="${this.#ports.relp}" address="127.0.0.1" ruleset="relp" maxDataSize="128k")
input(type="imrelp" port="${this.#ports['relp+tls']}" address="127.0.0.1" ruleset="relp+tls" maxDataSize="128k"
  tls="on" tls.caCert="${at('ca.pem')}" tls.myCert="${at('server.pem')}" tls.myPrivKey="${at('server.key')}" tls.authMode="name" tls.permittedPeer=["collector.test"])
`;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Whether somebody listens there already: seen by what cannot be bound, without a connection that the receiver would notice. */
async function listens(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return false;
  } catch {
    return true;
  }
}
