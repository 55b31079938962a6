/** The databases with which a fleet is tested, and how each of them fails. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../e2e-place.ts';
import { freePort } from './ports.ts';
import { Postgres, serverUser } from './postgres.ts';

export interface FleetDatabase extends AsyncDisposable {
  /** The port at which it takes commits now. */
  readonly port: () => number;
  /** Fails, and takes commits again at the end. */
  fail(pause: () => Promise<void>): Promise<void>;
}

/** One server, which is killed. */
export async function singleServer(): Promise<FleetDatabase> {
  const server = await Postgres.start();
  return {
    port: () => server.port,
    fail: async (pause) => {
      await server.end('SIGKILL');
      await pause();
      await server.start();
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

type PoolMode = 'session' | 'transaction' | 'statement';

/** pgbouncer on loopback. Any user may connect to any database of the server. */
export class PgBouncer implements AsyncDisposable {
  static readonly program = '/usr/sbin/pgbouncer';
  static readonly missing = existsSync(PgBouncer.program) ? undefined : 'pgbouncer is missing: test/servers/install.sh pgbouncer';
  readonly port: number;
  readonly #directory = mkdtempSync(join(tmpdir(), 'waybill-pgbouncer-'));
  #child: ChildProcess | undefined;

  static async start(server: number, mode: PoolMode): Promise<PgBouncer> {
    const bouncer = new PgBouncer(await freePort(), server, mode);
    await bouncer.run();
    return bouncer;
  }

  private constructor(port: number, server: number, mode: PoolMode) {
    this.port = port;
    const settings = [
      '[databases]',
      `* = host=127.0.0.1 port=${server}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${join(this.#directory, 'users')}`,
      `pool_mode = ${mode}`,
      'default_pool_size = 20',
      'server_login_retry = 1',
    ];
    writeFileSync(join(this.#directory, 'settings'), `${settings.join('\n')}\n`);
    writeFileSync(join(this.#directory, 'users'), '"member" ""\n"postgres" ""\n');
    const { uid, gid = 0 } = serverUser();
    if (uid !== undefined) chownSync(this.#directory, uid, gid);
  }

  async run(): Promise<void> {
    const child = spawn(PgBouncer.program, [join(this.#directory, 'settings')], { ...serverUser(), stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => (output = (output + part).slice(-2_000)));
    await until(
      () => `pgbouncer listens: ${output}`,
      20_000,
      () => (output.includes(`listening on 127.0.0.1:${this.port}`) ? true : undefined),
    );
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** One server behind pgbouncer: both are killed. */
export async function pooledServer(mode: PoolMode): Promise<FleetDatabase> {
  const server = await singleServer();
  const bouncer = await PgBouncer.start(server.port(), mode);
  return {
    port: () => bouncer.port,
    fail: async (pause) => {
      await bouncer.kill();
      await Promise.all([server.fail(pause), pause().then(() => bouncer.run())]);
    },
    [Symbol.asyncDispose]: async () => {
      await bouncer[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}
