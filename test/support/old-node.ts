/**
 * A Node on this machine that is older than Waybill needs: the shell of a newcomer may find it
 * first.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

interface OldNode {
  /** Its directory, for PATH. */
  readonly directory: string;
  /** Without the `v`. */
  readonly version: string;
}

/** @returns undefined if each Node on PATH and in the usual directories is new enough */
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
