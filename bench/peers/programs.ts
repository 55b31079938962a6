/** The programs that `npm run bench -- peers` compares. Each reads the pages of one address and appends to one file until it is stopped. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { configuration } from '../configuration.ts';
import { start } from '../process.ts';
import type { Program } from '../process.ts';
import { waybill } from '../program.ts';

/** The input and output of a program. */
interface Job {
  readonly port: number;
  /** An empty folder for configuration and state. */
  readonly folder: string;
  readonly file: string;
  /** ms since 1970 of the first record. */
  readonly beginMs: number;
}

export interface Peer {
  readonly name: string;
  readonly version: string;
  readonly output: 'ECS' | 'OTLP';
  /** Builds it if necessary, which takes minutes. @returns why it cannot run here */
  readonly prepare?: () => string | undefined;
  readonly start: (job: Job) => Program;
}

const here = import.meta.dirname;
const cache = process.env['WAYBILL_TEST_CACHE'] ?? join(homedir(), '.cache/waybill-servers');

export function peers(): readonly Peer[] {
  return [
    {
      name: 'plain Node',
      version: process.versions.node,
      output: 'ECS',
      start: ({ port, file }) => start(process.execPath, [join(here, 'plain.ts'), addressOf(port), file]),
    },
    goProgram({ name: 'Benthos', module: 'github.com/redpanda-data/benthos/v4', folder: 'benthos', output: 'ECS', flag: '-c' }),
    goProgram({
      name: 'OpenTelemetry',
      module: 'github.com/observiq/bindplane-otel-contrib/receiver/restapireceiver',
      folder: 'otelcol',
      output: 'OTLP',
      flag: '--config',
      prefix: 'restapireceiver ',
    }),
    waybillPeer(),
  ];
}

function waybillPeer(): Peer {
  return {
    name: 'Waybill',
    version: (JSON.parse(readFileSync(join(here, '../../package.json'), 'utf8')) as { version: string }).version,
    output: 'ECS',
    prepare: () => void waybill(),
    start: ({ port, folder, file, beginMs }) => {
      const sinks = [{ id: 'file', type: 'file', path: file }];
      writeFileSync(join(folder, 'waybill.yaml'), configuration(port, beginMs, sinks));
      return start(waybill(), ['run', '--config', 'waybill.yaml'], folder);
    },
  };
}

interface GoProgram {
  readonly name: string;
  readonly module: string;
  /** Next to this file: its `go.mod` names the exact versions and `go.sum` their hashes. */
  readonly folder: string;
  readonly output: Peer['output'];
  /** The option that names the configuration. */
  readonly flag: string;
  /** Precedes the version of the module in tables. */
  readonly prefix?: string;
}

function goProgram({ name, module, folder, output, flag, prefix = '' }: GoProgram): Peer {
  const version = new RegExp(`${module} (v\\S+)`).exec(readFileSync(join(here, folder, 'go.mod'), 'utf8'))?.[1] ?? '';
  const sources = readdirSync(join(here, folder)).filter((file) => /\.go$|^go\.sum$/.test(file));
  const hash = sources.reduce((sum, file) => sum.update(readFileSync(join(here, folder, file))), createHash('sha256')).digest('hex');
  const binary = join(cache, `${folder}-${version}-${hash.slice(0, 8)}`, folder);
  return {
    name,
    version: `${prefix}${version}`,
    output,
    prepare: () => (existsSync(binary) ? undefined : build(folder, binary)),
    start: (job) => start(binary, [flag, join(here, folder, 'config.yaml')], job.folder, { ADDRESS: addressOf(job.port), FILE: job.file }),
  };
}

/** @returns the reason of a failed build */
function build(folder: string, binary: string): string | undefined {
  const go = ['go', '/usr/local/go/bin/go'].find((command) => spawnSync(command, ['version']).status === 0);
  if (go === undefined) return 'there is no Go (https://go.dev/dl) to build it';
  process.stderr.write(`building ${folder}\n`);
  mkdirSync(join(binary, '..'), { recursive: true });
  const args = ['build', '-mod=readonly', '-trimpath', '-buildvcs=false', '-ldflags', '-s -w', '-o', `${binary}.new`, '.'];
  const { status, stderr } = spawnSync(go, args, { cwd: join(here, folder), encoding: 'utf8' });
  if (status !== 0) return `go build failed: ${stderr.trim().split('\n').at(-1)?.trim() ?? ''}`;
  renameSync(`${binary}.new`, binary);
  return undefined;
}

function addressOf(port: number): string {
  return `http://127.0.0.1:${port}/v2/api`;
}
