/** Servers of the S3 protocol: versitygw and MinIO, each on loopback with a folder for its data. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CreateBucketCommand, GetObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3';
import { freePort } from './ports.ts';
import { cacheFolder, notAsked } from './programs.ts';

export const s3Servers = ['versitygw', 'minio'] as const;
type Name = (typeof s3Servers)[number];

const programs: Readonly<Record<Name, string>> = {
  versitygw: 'versitygw-1.8.0/versitygw',
  minio: 'minio-0.0.0-20260212201848-7aac2a2c5b7c/minio',
};
const program = (name: Name): string => join(cacheFolder(), programs[name]);

/** Why the server is not started in this run. */
export function s3Missing(name: Name): string | undefined {
  return notAsked() ?? (existsSync(program(name)) ? undefined : `no ${program(name)}: test/servers/install.sh ${name} builds it`);
}

export class S3Server implements AsyncDisposable {
  static readonly accessKeyId = 'testkey';
  static readonly secretAccessKey = 'testsecret123';
  readonly endpoint: string;
  readonly s3: S3Client;
  readonly #name: Name;
  readonly #port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'waybill-s3-'));
  #process: ChildProcess | undefined;

  private constructor(name: Name, port: number) {
    this.#name = name;
    this.#port = port;
    this.endpoint = `http://127.0.0.1:${port}`;
    const { accessKeyId, secretAccessKey } = S3Server;
    const credentials = { accessKeyId, secretAccessKey };
    this.s3 = new S3Client({ endpoint: this.endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
  }

  static async start(name: Name): Promise<S3Server> {
    const server = new S3Server(name, await freePort());
    await server.run();
    return server;
  }

  /** Starts it, again after a kill, and waits until it responds. */
  async run(): Promise<void> {
    // Neither name may be a prefix of the other: versitygw refuses that.
    const [data, versions] = ['data', 'versions'].map((name) => join(this.#folder, name)) as [string, string];
    for (const folder of [data, versions]) mkdirSync(folder, { recursive: true });
    const address = `127.0.0.1:${this.#port}`;
    const { accessKeyId, secretAccessKey } = S3Server;
    const names = this.#name === 'minio' ? ['MINIO_ROOT_USER', 'MINIO_ROOT_PASSWORD'] : ['ROOT_ACCESS_KEY', 'ROOT_SECRET_KEY'];
    this.#process = spawn(
      program(this.#name),
      this.#name === 'minio'
        ? ['server', data, '--address', address, '--console-address', '127.0.0.1:0', '--quiet']
        : ['--port', address, 'posix', '--versioning-dir', versions, data],
      { stdio: 'ignore', env: { ...process.env, [names[0] as string]: accessKeyId, [names[1] as string]: secretAccessKey } },
    );
    for (let attempt = 0; ; attempt += 1) {
      const status = await fetch(this.endpoint).then(
        (answer) => answer.status,
        () => undefined,
      );
      if (status !== undefined && status < 500) return;
      if (attempt > 300) throw new Error(`${this.#name} did not respond within 30 s`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async createBucket(bucket: string, hasLock = true): Promise<void> {
    await this.s3.send(new CreateBucketCommand({ Bucket: bucket, ObjectLockEnabledForBucket: hasLock }));
  }

  /** Writes the newest version of each object below a prefix into a folder. */
  async save(bucket: string, prefix: string, folder: string): Promise<void> {
    for await (const { Contents = [] } of paginateListObjectsV2({ client: this.s3 }, { Bucket: bucket, Prefix: prefix })) {
      for (const { Key = '' } of Contents) {
        const { Body } = await this.s3.send(new GetObjectCommand({ Bucket: bucket, Key }));
        const path = join(folder, Key.slice(prefix.length));
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, (await Body?.transformToByteArray()) ?? new Uint8Array());
      }
    }
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.s3.destroy();
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
