/** The machine's own Node where it is older than Waybill needs: a newcomer's shell has it first. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

interface OldNode {
  /** The directory that holds it, for PATH. */
  readonly directory: string;
  /** Without the `v`. */
  readonly version: string;
}

/** @returns undefined where each Node on PATH and in the usual directories is new enough */
export function oldNode(): OldNode | undefined {
  const directories = [...(process.env['PATH'] ?? '').split(':'), '/usr/local/bin', '/usr/bin'];
  for (const directory of directories) {
    const { status, stdout } = spawnSync(join(directory, 'node'), ['--version'], { encoding: 'utf8' });
    if (status !== 0) continue;
    const version = stdout.trim().replace(/^v/, '');
    if (Number(version.split('.')[0]) < 24) return { directory, version };
  }
  return undefined;
}
