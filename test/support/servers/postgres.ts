/** A PostgreSQL server of its own on loopback, from Debian's package. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from './ports.ts';

const versions = ['18', '17', '16', '15'];
const postgresFolder = versions.map((version) => `/usr/lib/postgresql/${version}/bin`).find((path) => existsSync(path));

/** Why no server can be started; undefined if one can. */
export const postgresMissing = postgresFolder === undefined ? 'PostgreSQL is missing: test/servers/install.sh postgresql' : undefined;

/** PostgreSQL and pgbouncer refuse to run as root. */
export function serverUser(): { uid?: number; gid?: number } {
  const id = (option: string): number => Number(spawnSync('id', [option, 'postgres'], { encoding: 'utf8' }).stdout);
  return process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : {};
}

export class Postgres implements AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly #directory: string;
  readonly #user: { uid?: number; gid?: number };
  #server: ChildProcess | undefined;

  static async start(): Promise<Postgres> {
    const server = new Postgres(await freePort());
    await server.start();
    return server;
  }

  private constructor(port: number) {
    this.port = port;
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    this.#directory = mkdtempSync(join(tmpdir(), 'waybill-postgres-'));
    this.#user = serverUser();
    if (this.#user.uid !== undefined) chownSync(this.#directory, this.#user.uid, this.#user.gid ?? 0);
    const options = ['-D', join(this.#directory, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C'];
    const made = spawnSync(join(postgresFolder ?? '', 'initdb'), options, { ...this.#user, cwd: this.#directory, encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  }

  /** Of the server while it runs; its connections are children. */
  get pid(): number {
    return this.#server?.pid ?? NaN;
  }

  async start(): Promise<void> {
    const settings = [
      'listen_addresses=127.0.0.1',
      `port=${this.port}`,
      `unix_socket_directories=${this.#directory}`,
      'max_connections=40',
    ];
    const given = ['-D', join(this.#directory, 'data'), ...settings.flatMap((setting) => ['-c', setting])];
    this.#server = spawn(join(postgresFolder ?? '', 'postgres'), given, { ...this.#user, cwd: this.#directory, stdio: 'ignore' });
    const isReady = (): boolean =>
      spawnSync(join(postgresFolder ?? '', 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(this.port)]).status === 0;
    while (!isReady()) {
      if (this.#server.exitCode !== null) throw new Error(`PostgreSQL ended with ${this.#server.exitCode}`);
      await setTimeout(50);
    }
  }

  async end(signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server || server.exitCode !== null) return;
    server.kill(signal);
    await once(server, 'exit');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGINT');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
