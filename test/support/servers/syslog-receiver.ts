/**
 * A real syslog receiver on loopback, in a separate process. It writes each message, as its own
 * parser read it, to one file per transport. Tests read these files, and use no state of the
 * sender.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../certificates.ts';
import type { Authority, KeyPair } from '../certificates.ts';
import { until } from '../e2e-place.ts';
import { freePort } from './ports.ts';

export type Way = 'tcp' | 'tls' | 'udp' | 'relp' | 'relp+tls';

/** One received message, from the receiver's parser. */
export interface Parsed {
  readonly pri: string;
  readonly ts: string;
  readonly host: string;
  readonly app: string;
  readonly msgid: string;
  readonly sd: string;
  readonly msg: string;
}

/** Paths and ports of a receiver; certificates are ca.pem, server.pem and server.key. */
export interface Place {
  readonly at: (name: string) => string;
  readonly ports: Readonly<Record<Way, number>>;
}

export interface Program {
  readonly name: string;
  readonly ways: readonly Way[];
  readonly configure: (place: Place) => string;
  /** Runs in the foreground with the configuration at `at('receiver.conf')`. */
  readonly command: (place: Place) => { readonly file: string; readonly args: readonly string[]; readonly env?: NodeJS.ProcessEnv };
}

export class SyslogReceiver implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'waybill-syslog-'));
  readonly authority: Authority;
  /** The client certificate `collector.test`, for receivers that accept no other. */
  readonly client: KeyPair;
  readonly #program: Program;
  readonly #place: Place;
  #child: ChildProcess | undefined;

  static async start(program: Program): Promise<SyslogReceiver> {
    const authority = await createAuthority('Test root');
    const [server, client] = [
      await authority.issue({ name: 'localhost', hosts: ['127.0.0.1', 'localhost'] }),
      await authority.issue({ name: 'collector.test', hosts: ['collector.test'] }),
    ];
    const free = await Promise.all(program.ways.map(() => freePort()));
    const ports = Object.fromEntries(program.ways.map((way, i) => [way, free[i] ?? 0])) as Record<Way, number>;
    const receiver = new SyslogReceiver(authority, client, program, ports);
    const files = { 'ca.pem': authority.cert, 'server.pem': server.cert, 'server.key': server.key };
    for (const [name, text] of Object.entries(files)) writeFileSync(receiver.#place.at(name), text);
    writeFileSync(receiver.#place.at('receiver.conf'), program.configure(receiver.#place));
    await receiver.run();
    return receiver;
  }

  private constructor(authority: Authority, client: KeyPair, program: Program, ports: Readonly<Record<Way, number>>) {
    this.authority = authority;
    this.client = client;
    this.#program = program;
    this.#place = { at: (name) => join(this.directory, name), ports };
  }

  address(way: Way): string {
    return `${way}://127.0.0.1:${this.#place.ports[way]}`;
  }

  /** Starts it, and waits until it listens. */
  async run(): Promise<void> {
    const { name, ways } = this.#program;
    const { file, args, env } = this.#program.command(this.#place);
    const words: string[] = [];
    const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
    child.stderr.on('data', (text: Buffer) => words.push(text.toString()));
    this.#child = child;
    const ports = ways.filter((way) => way !== 'udp').map((way) => this.#place.ports[way]);
    await until(
      () => `${name} listens\n${words.join('')}`,
      20_000,
      () => {
        if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}: ${words.join('')}`);
        return ports.every(listens) || undefined;
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

  /** The messages of this transport, in the order in which they were written. */
  received(way: Way): Parsed[] {
    const path = this.#place.at(`${way}.json`);
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
}

/**
 * True if a process listens on the port, by the kernel's table (proc(5)): the receiver would notice
 * a connection, and an attempt to bind could take the port from it.
 */
function listens(port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1);
  return lines.some((line) => {
    const [, address = '', , state] = line.trim().split(/\s+/);
    return address.endsWith(local) && state === '0A';
  });
}
