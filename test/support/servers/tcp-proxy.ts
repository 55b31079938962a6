/** HAProxy and nginx as TCP proxies on loopback, as they stand before syslog receivers: they accept a connection whether the receiver is up or not. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../e2e-place.ts';
import { freePort } from './ports.ts';

interface Product {
  readonly name: string;
  /** The reason why it is not available; undefined if it is. */
  readonly missing: () => string | undefined;
  readonly configure: (directory: string, port: number, receiver: number) => string;
  readonly command: (file: string) => readonly [string, ...string[]];
}

function haproxy(name: string, server: string): Product {
  return {
    name,
    missing: () => (spawnSync('haproxy', ['-v']).error ? 'no haproxy on the path (test/servers/install.sh haproxy)' : undefined),
    configure: (_directory, port, receiver) => `defaults
  mode tcp
  timeout connect 5s
  timeout client 50s
  timeout server 50s
listen syslog
  bind 127.0.0.1:${port}
  server receiver 127.0.0.1:${receiver} ${server}
`,
    command: (file) => ['haproxy', '-db', '-f', file],
  };
}

function streamModule(): string | undefined {
  return globSync('/usr/lib/nginx/modules/ngx_stream_module.so')[0];
}

const nginx: Product = {
  name: 'nginx stream',
  missing: () =>
    streamModule() === undefined || !existsSync('/usr/sbin/nginx')
      ? 'no nginx with its stream module (test/servers/install.sh nginx)'
      : undefined,
  configure: (directory, port, receiver) => `load_module ${streamModule() ?? ''};
daemon off;
pid ${directory}/pid;
error_log ${directory}/errors;
events {}
stream { server { listen 127.0.0.1:${port}; proxy_pass 127.0.0.1:${receiver}; } }
`,
  command: (file) => ['/usr/sbin/nginx', '-c', file],
};

export const products: readonly Product[] = [haproxy('HAProxy', ''), haproxy('HAProxy with check', 'check inter 200ms'), nginx];

export class TcpProxy implements AsyncDisposable {
  readonly port: number;
  readonly #directory: string;
  readonly #child: ChildProcess;

  static async start(product: Product, receiver: number): Promise<TcpProxy> {
    const directory = mkdtempSync(join(tmpdir(), 'waybill-proxy-'));
    const port = await freePort();
    const file = join(directory, 'proxy.conf');
    writeFileSync(file, product.configure(directory, port, receiver));
    const [program, ...args] = product.command(file);
    const words: string[] = [];
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.on('data', (text: Buffer) => words.push(text.toString()));
    await until(
      () => `${product.name} listens\n${words.join('')}`,
      10_000,
      async () => {
        if (child.exitCode !== null) throw new Error(`${product.name} ended with ${child.exitCode}: ${words.join('')}`);
        return (await answers(port)) || undefined;
      },
    );
    return new TcpProxy(port, directory, child);
  }

  private constructor(port: number, directory: string, child: ChildProcess) {
    this.port = port;
    this.#directory = directory;
    this.#child = child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
